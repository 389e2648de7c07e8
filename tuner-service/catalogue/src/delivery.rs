use std::collections::BTreeSet;
use std::ops::Range;

use io_autotune_model::Parameter;
use io_autotune_protocol::{
    OnlineLever, OnlinePolicy, OnlineRecord, SettingKind, is_deliverable_variable,
    is_directive_name, is_directive_value,
};
use serde::Deserialize;
use toml::Spanned;

use crate::fault::Faults;
use crate::need::Need;
use crate::template::Template;

/// The most parts of a variable's value.
const PARTS: usize = 64;
/// The most bytes of a text around values.
const TEXT: usize = 1024;

/// The deliveries of a file, in any mixture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deliveries {
    /// Environment variables.
    #[serde(default)]
    pub environment: Vec<VariableDelivery>,
    /// Files in the job's own directory.
    #[serde(default)]
    pub files: Vec<FileDelivery>,
    /// Settings of the node.
    #[serde(default)]
    pub settings: Vec<SettingDelivery>,
    /// A command of the site.
    pub command: Option<CommandDelivery>,
    /// Directives of the job's burst buffer.
    #[serde(default)]
    pub directives: Vec<DirectiveDelivery>,
    /// Tuning inside the job.
    pub online: Option<OnlineDelivery>,
}

/// A word `NAME=VALUE` of a burst buffer's directives, which slurmctld's host adds to the job's own
/// before the job's prologs. A name that the user has written keeps its value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectiveDelivery {
    /// The word's name.
    pub name: Spanned<String>,
    /// The word's value, a single word; `{NAME}` is replaced by the value of the parameter NAME.
    pub value: Spanned<Template>,
}

/// An agent on each of the job's nodes that moves levers while the job runs, if `node.toml` allows
/// these settings, and within the ranges given there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnlineDelivery {
    /// `{NAME}`: the parameter that has the policy's name, or `off`.
    pub policy: Spanned<Template>,
    /// The levers that the agent moves, all of the same kind.
    pub levers: Spanned<Vec<OnlineLever>>,
}

/// A command of the site that starts a service for a job, such as a burst buffer, on each of its
/// nodes, and stops it after the job. Each node's `node.toml` has the programs to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandDelivery {
    /// The command's name in `node.toml`.
    pub name: Spanned<String>,
    /// The variables in the command's environment.
    pub environment: Vec<CommandVariable>,
    /// Variables of the job that the command sets by printing `NAME=VALUE`.
    #[serde(default)]
    pub provides: Vec<Spanned<String>>,
}

/// A variable in a command's environment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandVariable {
    /// The variable's name.
    pub variable: Spanned<String>,
    /// The value; `{NAME}` is replaced by the value of the parameter NAME.
    pub value: Spanned<Template>,
}

/// A setting of the node. Root changes it in the prolog on each of the job's nodes, if `node.toml`
/// allows it, and restores it in the epilog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingDelivery {
    /// The kind of setting, which says where it is.
    pub kind: SettingKind,
    /// The setting's name there.
    pub name: Spanned<String>,
    /// The value; `{NAME}` is replaced by the value of the parameter NAME.
    pub value: Spanned<Template>,
    /// True if it is not changed when all its parameters have their defaults.
    #[serde(default)]
    pub omit_default: bool,
}

/// An environment variable of the job. A user's own value stays. It has a `value` or `parts`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariableDelivery {
    /// The variable.
    pub variable: Spanned<String>,
    /// The value; `{NAME}` is replaced by the value of the parameter NAME.
    pub value: Option<Spanned<Template>>,
    /// True if it is not set when all its parameters have their defaults, so that the accelerator
    /// decides.
    #[serde(default)]
    pub omit_default: bool,
    /// What the value is put together from, as in `MPICH_MPIIO_HINTS="*:cb_nodes=4:..."`. A part
    /// whose parameters have their defaults, or do not exist, is left out. Without any part the
    /// variable is not set.
    #[serde(default)]
    pub parts: Vec<Spanned<Template>>,
    /// The text between two parts.
    pub separator: Option<Spanned<String>>,
    /// The text before the first part.
    pub prefix: Option<Spanned<String>>,
    /// The text after the last part.
    pub suffix: Option<Spanned<String>>,
}

/// A file in the job's own directory that carries parameters to the application.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDelivery {
    /// The file's name: one plain path component.
    pub name: Spanned<String>,
    /// The environment variable that tells the application the file's path.
    pub variable: Spanned<String>,
    /// The line for each parameter, in which `{name}` and `{value}` are replaced.
    pub line: Spanned<String>,
    /// The text between two lines, before the line break: `,` in JSON.
    pub separator: Option<Spanned<String>>,
    /// The lines before the first parameter's, as in XML, JSON, or under an INI file's header.
    pub head: Option<Spanned<String>>,
    /// The lines after the last parameter's.
    pub tail: Option<Spanned<String>>,
    /// True if parameters at their defaults are left out, so that the accelerator decides.
    #[serde(default)]
    pub omit_default: bool,
    /// The parameters of the file, in the order of its lines.
    pub parameters: Vec<Spanned<String>>,
    /// Set if an empty file changes nothing. The first runs that a study measures are then given an
    /// empty one, and whether it is read shows if they use the accelerator.
    pub empty_shows_use: Option<EmptyFile>,
}

/// The condition under which an empty file is as good as none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptyFile {
    /// A file that the application reads if the variable is not set. On nodes that have it no empty
    /// file is given.
    pub unless_exists: Option<Spanned<String>>,
}

impl FileDelivery {
    /// The file with these lines of parameters.
    pub(crate) fn content(&self, lines: &[String]) -> String {
        let lines = lines.join(&format!("{}\n", text(&self.separator)));
        let around = |text: &Option<Spanned<String>>| match text {
            Some(text) => format!("{}\n", text.get_ref()),
            None => String::new(),
        };
        format!("{}{lines}\n{}", around(&self.head), around(&self.tail))
    }
}

impl Deliveries {
    /// Returns true if all deliveries are files of which an empty one shows whether they are used.
    pub(crate) fn are_shown_by_files(&self) -> bool {
        let Self {
            environment,
            files,
            settings,
            command,
            directives,
            online,
        } = self;
        environment.is_empty()
            && files.iter().all(|file| file.empty_shows_use.is_some())
            && settings.is_empty()
            && command.is_none()
            && directives.is_empty()
            && online.is_none()
    }

    pub(crate) fn check(&self, known: &BTreeSet<&str>, faults: &mut Faults<'_>) -> BTreeSet<&str> {
        let mut check = Check {
            known,
            faults,
            carried: BTreeSet::new(),
            variables: BTreeSet::new(),
        };
        for entry in &self.environment {
            check.variable(&entry.variable);
            check.value(entry);
        }
        let mut names = BTreeSet::new();
        for file in &self.files {
            let (name, line) = (file.name.get_ref(), file.line.get_ref());
            if !is_plain_name(name) {
                let problem = format!("name = {name:?} is not a plain file name");
                check.faults.at(&file.name.span(), problem);
            }
            if !names.insert(name) {
                let problem = format!("name = {name:?} is used twice: rename one");
                check.faults.at(&file.name.span(), problem);
            }
            check.variable(&file.variable);
            if !line.contains("{value}") || line.chars().any(char::is_control) {
                let problem = format!("line = {line:?} must be one line that contains {{value}}");
                check.faults.at(&file.line.span(), problem);
            }
            for text in [&file.separator, &file.head, &file.tail]
                .into_iter()
                .flatten()
            {
                check.text(text, &['\n', '\t']);
            }
            for text in [&file.head, &file.tail].into_iter().flatten() {
                if file.empty_shows_use.is_some() {
                    let problem = "a file with head or tail is never empty: leave out empty_shows_use, or head and tail";
                    check.faults.at(&text.span(), problem);
                }
            }
            for parameter in &file.parameters {
                check.parameter(parameter.get_ref(), &parameter.span());
            }
            let instead = file.empty_shows_use.iter();
            for path in instead.filter_map(|empty| empty.unless_exists.as_ref()) {
                if !is_plain_path(path.get_ref()) {
                    let problem = format!(
                        "unless_exists = {:?} is no plain path: write it from / on, without '..'",
                        path.get_ref()
                    );
                    check.faults.at(&path.span(), problem);
                }
            }
        }
        let mut settings = BTreeSet::new();
        for setting in &self.settings {
            let name = setting.name.get_ref();
            if !setting.kind.takes_name(name) {
                let problem = format!(
                    "name = {name:?} is no setting of kind {}: write vm.dirty_bytes for a sysctl, read_ahead_kb for a block device's queue, osc.*.max_dirty_mb for lctl, max_background for fuse, read_ahead_kb for nfs, a name in node.toml for a file",
                    setting.kind
                );
                check.faults.at(&setting.name.span(), problem);
            }
            if !settings.insert((setting.kind.to_string(), name)) {
                let problem =
                    format!("name = {name:?} is used twice: a setting can have one value");
                check.faults.at(&setting.name.span(), problem);
            }
            check.template(&setting.value);
        }
        if let Some(command) = &self.command {
            let name = command.name.get_ref();
            if !is_plain_name(name) {
                let problem = format!(
                    "name = {name:?} is no plain name: write what node.toml calls the command"
                );
                check.faults.at(&command.name.span(), problem);
            }
            let mut given = BTreeSet::new();
            for entry in &command.environment {
                let variable = entry.variable.get_ref();
                if !is_deliverable_variable(variable) || !given.insert(variable) {
                    let problem = format!(
                        "variable = {variable:?} is used twice, or none that a command can be given: use letters, digits and '_', and none that a loader, a shell or Slurm acts on"
                    );
                    check.faults.at(&entry.variable.span(), problem);
                }
                check.template(&entry.value);
            }
            for variable in &command.provides {
                check.variable(variable);
            }
        }
        let mut directives = BTreeSet::new();
        for directive in &self.directives {
            let name = directive.name.get_ref();
            if !is_directive_name(name) || !directives.insert(name) {
                let problem = format!(
                    "name = {name:?} is used twice, or no directive's: use letters, digits, '-' and '_', a letter first"
                );
                check.faults.at(&directive.name.span(), problem);
            }
            check.template(&directive.value);
            // Whatever the values are, they stand in a line of words that scripts read.
            let template = directive.value.get_ref();
            let example = template.filled(|_| Some("1".into())).unwrap_or_default();
            if !is_directive_value(&example) {
                let problem = format!(
                    "value = \"{template}\" is no word of a directive: use letters, digits and . _ - + : %"
                );
                check.faults.at(&directive.value.span(), problem);
            }
        }
        if let Some(online) = &self.online {
            check.template(&online.policy);
        }
        check.carried
    }

    /// Checks that the policy of tuning inside the job is a known one, and that it is off by
    /// default.
    pub(crate) fn check_online(&self, parameters: &[Spanned<Parameter>], faults: &mut Faults<'_>) {
        let Some(online) = &self.online else { return };
        let policy = online.policy.get_ref();
        let named = policy.parameters().next().unwrap_or_default();
        let parameter = parameters.iter().find(|one| one.get_ref().name == named);
        let is_policy =
            |value: &str| value == OnlinePolicy::OFF || value.parse::<OnlinePolicy>().is_ok();
        let fits = parameter.is_none_or(|parameter| {
            let parameter = parameter.get_ref();
            let mut values = (0..parameter.levels()).filter_map(|level| parameter.value_at(level));
            parameter.default.to_string() == OnlinePolicy::OFF
                && values.all(|value| is_policy(&value.to_string()))
        });
        if policy.to_string() != format!("{{{named}}}") || !fits {
            let names: Vec<_> = OnlinePolicy::ALL.iter().map(|one| one.as_str()).collect();
            let names = names.join(", ");
            let problem = format!(
                "policy = {:?} must be one parameter, {{NAME}}, with the default off and no other values than {names}",
                policy.to_string()
            );
            faults.at(&online.policy.span(), problem);
        }
        let levers = online.levers.get_ref();
        let is_one_kind = levers
            .iter()
            .all(|lever| levers.first().is_some_and(|first| lever.kind == first.kind));
        let names: BTreeSet<&str> = levers.iter().map(|lever| lever.name.as_str()).collect();
        let fits = is_one_kind
            && (1..=OnlineRecord::LEVERS).contains(&levers.len())
            && names.len() == levers.len()
            && levers.iter().all(|lever| {
                !matches!(lever.kind, SettingKind::Sysctl | SettingKind::Nfs)
                    && lever.kind.takes_name(&lever.name)
            });
        if !fits {
            let problem = format!(
                "levers must be 1 to {} different settings of one kind, block, lctl, fuse or file",
                OnlineRecord::LEVERS
            );
            faults.at(&online.levers.span(), problem);
        }
    }

    /// The requirements of these deliveries.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        let by_root = !self.settings.is_empty() || self.command.is_some() || self.online.is_some();
        let of_nodes = by_root.then_some([Need::Exclusive, Need::Root]);
        let of_slurm = (!self.directives.is_empty()).then_some(Need::BurstBuffer);
        of_nodes.into_iter().flatten().chain(of_slurm)
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &String> {
        let environment = self.environment.iter().map(|entry| &entry.variable);
        let files = self.files.iter().map(|file| &file.variable);
        let provided = self.command.iter().flat_map(|command| &command.provides);
        let variables = environment.chain(files).chain(provided);
        variables.map(Spanned::get_ref)
    }

    /// Each delivery in a few words, for people.
    pub fn words(&self) -> Vec<String> {
        let variables = self
            .environment
            .iter()
            .map(|entry| format!("variable {} = {}", entry.variable.get_ref(), entry.told()));
        let files = self.files.iter().map(|file| {
            let parameters: Vec<&str> = file
                .parameters
                .iter()
                .map(|p| p.get_ref().as_str())
                .collect();
            format!(
                "file {}, named by {}: {}",
                file.name.get_ref(),
                file.variable.get_ref(),
                parameters.join(", ")
            )
        });
        let settings = self.settings.iter().map(|setting| {
            let (name, value) = (setting.name.get_ref(), setting.value.get_ref());
            format!("{} {name} = {value}, on every node", setting.kind)
        });
        let command = self.command.iter().map(|command| {
            let given: Vec<String> = command
                .environment
                .iter()
                .map(|entry| format!("{}={}", entry.variable.get_ref(), entry.value.get_ref()))
                .collect();
            format!(
                "command {} on every node: {}",
                command.name.get_ref(),
                given.join(" ")
            )
        });
        let directives = self.directives.iter().map(|directive| {
            let (name, value) = (directive.name.get_ref(), directive.value.get_ref());
            format!("burst buffer directive {name}={value}")
        });
        let online = self.online.iter().map(|online| {
            let levers = online.levers.get_ref().iter();
            let levers: Vec<String> = levers
                .map(|lever| format!("{} {}", lever.kind, lever.name))
                .collect();
            format!(
                "tuning inside the job by {}, on every node: {}",
                online.policy.get_ref(),
                levers.join(", ")
            )
        });
        variables
            .chain(files)
            .chain(settings)
            .chain(command)
            .chain(directives)
            .chain(online)
            .collect()
    }
}

impl VariableDelivery {
    /// The templates of the value.
    fn templates(&self) -> impl Iterator<Item = &Spanned<Template>> {
        self.value.iter().chain(&self.parts)
    }

    /// The value from its parts.
    pub(crate) fn put_together(&self, parts: &[String]) -> String {
        let parts = parts.join(text(&self.separator));
        format!("{}{parts}{}", text(&self.prefix), text(&self.suffix))
    }

    fn told(&self) -> String {
        let templates: Vec<String> = self
            .templates()
            .map(|template| template.get_ref().to_string())
            .collect();
        self.put_together(&templates)
    }
}

/// A text around values; empty if the file has none.
fn text(of: &Option<Spanned<String>>) -> &str {
    of.as_ref().map_or("", |text| text.get_ref())
}

struct Check<'a, 'k, 'f, 't> {
    known: &'k BTreeSet<&'k str>,
    faults: &'f mut Faults<'t>,
    carried: BTreeSet<&'a str>,
    variables: BTreeSet<&'a str>,
}

impl<'a> Check<'a, '_, '_, '_> {
    fn variable(&mut self, variable: &'a Spanned<String>) {
        let name = variable.get_ref();
        if !is_deliverable_variable(name) {
            let problem = format!(
                "variable = {name:?} cannot be given to a job: use letters, digits and '_', and none that a loader, a shell or Slurm acts on"
            );
            self.faults.at(&variable.span(), problem);
        }
        if !self.variables.insert(name) {
            let problem =
                format!("variable = {name:?} is used twice: a job can have one value of it");
            self.faults.at(&variable.span(), problem);
        }
    }

    fn value(&mut self, entry: &'a VariableDelivery) {
        let around = [&entry.separator, &entry.prefix, &entry.suffix];
        let is_whole = entry.value.is_some();
        let has_around = around.iter().any(|text| text.is_some());
        if is_whole != entry.parts.is_empty() || (is_whole && has_around) {
            let problem = format!(
                "variable = {:?} needs a value, or parts and, if wanted, the texts separator, prefix and suffix around them",
                entry.variable.get_ref()
            );
            self.faults.at(&entry.variable.span(), problem);
        }
        if entry.parts.len() > PARTS {
            let problem = format!("a variable has at most {PARTS} parts");
            self.faults.at(&entry.variable.span(), problem);
        }
        for text in around.into_iter().flatten() {
            self.text(text, &[]);
        }
        for template in entry.templates() {
            self.template(template);
        }
    }

    /// Checks a text that is given to jobs as it is; these control characters may be in it.
    fn text(&mut self, text: &Spanned<String>, control: &[char]) {
        let wrong = |sign: char| sign.is_control() && !control.contains(&sign);
        if text.get_ref().len() > TEXT || text.get_ref().contains(wrong) {
            let problem = format!(
                "{:?} is no text for a job: write at most {TEXT} bytes without control characters",
                text.get_ref()
            );
            self.faults.at(&text.span(), problem);
        }
    }

    fn template(&mut self, template: &'a Spanned<Template>) {
        for parameter in template.get_ref().parameters() {
            self.parameter(parameter, &template.span());
        }
    }

    fn parameter(&mut self, parameter: &'a str, place: &Range<usize>) {
        if !self.known.contains(parameter) {
            let known: Vec<&str> = self.known.iter().copied().collect();
            let problem = format!(
                "parameter {parameter:?} is not among this accelerator's: {}",
                known.join(", ")
            );
            self.faults.at(place, problem);
        }
        self.carried.insert(parameter);
    }
}

fn is_plain_path(path: &str) -> bool {
    let below = path.strip_prefix('/');
    path.len() <= 255 && below.is_some_and(|below| below.split('/').all(is_plain_name))
}

pub(crate) fn is_plain_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}
