//! Rules by which a job's name becomes an application.

use std::collections::BTreeSet;

use io_autotune_protocol::{Mode, Note, Request, is_name, is_name_byte};
use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;
use toml::Spanned;

use crate::Template;
use crate::fault::{Fault, Faults};

/// The rules that the service has where its configuration names no file.
pub const SHIPPED: &str = include_str!("../../../deploy/etc/applications.toml");

/// Job names that say nothing of the program; compared without case and script extensions.
const MEANINGLESS: [&str; 30] = [
    "a.out",
    "bash",
    "batch",
    "csh",
    "dash",
    "env",
    "fish",
    "interactive",
    "job",
    "ksh",
    "main",
    "mpiexec",
    "mpirun",
    "none",
    "null",
    "python",
    "python3",
    "run",
    "salloc",
    "sbatch",
    "script",
    "sh",
    "slurm",
    "slurm_script",
    "srun",
    "stdin",
    "submit",
    "tcsh",
    "wrap",
    "zsh",
];

const EXTENSIONS: [&str; 6] = [".sh", ".bash", ".sbatch", ".slurm", ".job", ".batch"];

/// Patterns match in time linear in text and compiled pattern; these bound the second.
const RULES_MAX: usize = 100;
const PATTERN_MAX: usize = 500;
const COMPILED_MAX: usize = 64 * 1024;

/// Why a file of rules was refused: all its faults, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RulesError(pub Vec<Fault>);

/// Ordered rules: the first that matches decides.
#[derive(Clone, Debug)]
pub struct Rules {
    text: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    name: String,
    job_name: Option<Regex>,
    comment: Option<Regex>,
    /// `None`: names that match say nothing of the program.
    application: Option<Template>,
}

/// What a job's name becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// The application; `None`: there is none.
    pub application: Option<String>,
    /// The name says nothing of the program: its jobs are only observed.
    pub meaningless: bool,
    /// The rule that decided; `None`: none matched.
    pub rule: Option<&'a str>,
    /// Whether that rule has read the job's comment.
    pub reads_comment: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    rules: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    job_name: Option<Spanned<String>>,
    comment: Option<Spanned<String>>,
    application: Option<Spanned<String>>,
    #[serde(default)]
    meaningless: bool,
}

impl Rules {
    /// Reads a file's text. Errs with every wrong line, its rule, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let mut faults = Faults::of(text);
        let mut rules = Vec::new();
        match toml::from_str::<Document>(text) {
            Ok(document) => {
                if let Some(first) = document.rules.get(RULES_MAX) {
                    let problem = format!("there are more than {RULES_MAX} rules");
                    faults.at(&first.span(), problem);
                }
                let mut names = BTreeSet::new();
                for entry in document.rules.iter().take(RULES_MAX) {
                    let (place, name) = (entry.span(), &entry.get_ref().name);
                    if !is_name(name.get_ref()) {
                        let problem = format!(
                            "rule {:?}: its name is 1 to 128 letters, digits and . _ + @ -, first a letter or digit",
                            name.get_ref()
                        );
                        faults.at(&name.span(), problem);
                    } else if !names.insert(name.get_ref().as_str()) {
                        let problem = format!("rule {:?}: another has this name", name.get_ref());
                        faults.at(&name.span(), problem);
                    }
                    rules.extend(entry.get_ref().checked(&place, &mut faults));
                }
            }
            Err(error) => faults.at(&error.span().unwrap_or(0..0), error.message()),
        }
        match faults.sorted() {
            found if found.is_empty() => Ok(Self {
                text: text.to_owned(),
                rules,
            }),
            found => Err(RulesError(found)),
        }
    }

    /// The text that was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many rules there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// What a job's name and comment become.
    #[must_use]
    pub fn named(&self, job_name: Option<&str>, comment: Option<&str>) -> Named<'_> {
        for rule in &self.rules {
            if let Some(application) = rule.matched(job_name, comment) {
                return Named {
                    meaningless: application.is_none(),
                    application,
                    rule: Some(&rule.name),
                    reads_comment: rule.comment.is_some(),
                };
            }
        }
        let application = job_name.and_then(adopted);
        Named {
            meaningless: application.as_deref().is_none_or(is_meaningless),
            application,
            rule: None,
            reads_comment: false,
        }
    }

    /// The request with its application. Without one that says something the job is only observed.
    /// An `app` that the user gave stays; a comment that decided nothing is left out.
    #[must_use]
    pub fn resolve(&self, request: Request) -> Request {
        if request.app.is_some() {
            return Request {
                job_name: None,
                comment: None,
                rule: None,
                ..request
            };
        }
        let named = self.named(request.job_name.as_deref(), request.comment.as_deref());
        let (mode, note) = if named.meaningless {
            (Mode::Observe, Some(Note::MeaninglessName))
        } else {
            (request.mode, None)
        };
        Request {
            mode,
            note,
            rule: named.rule.map(str::to_owned),
            comment: request.comment.filter(|_| named.reads_comment),
            app: named.application,
            accelerator: request.accelerator,
            job_name: request.job_name,
        }
    }
}

impl Entry {
    /// The rule, unless something is wrong in it.
    fn checked(&self, place: &std::ops::Range<usize>, faults: &mut Faults<'_>) -> Option<Rule> {
        let name = self.name.get_ref();
        let said = |problem: String| format!("rule {name:?}: {problem}");
        if self.job_name.is_none() && self.comment.is_none() {
            let problem =
                "it matches nothing: write job_name = 'PATTERN', comment = 'PATTERN' or both";
            faults.at(place, said(problem.into()));
        }
        if self.application.is_some() == self.meaningless {
            let problem = "write one of application = \"NAME\" and meaningless = true";
            faults.at(place, said(problem.into()));
        }
        let mut captures = BTreeSet::new();
        let mut compiled = |key: &str, pattern: &Option<Spanned<String>>| {
            let pattern = pattern.as_ref()?;
            let mut wrong = |problem: String| faults.at(&pattern.span(), said(problem));
            match compile(pattern.get_ref()) {
                Ok(regex) => {
                    for capture in regex.capture_names().flatten() {
                        if !captures.insert(capture.to_owned()) {
                            wrong(format!(
                                "both patterns have a group {capture:?}: rename one"
                            ));
                        }
                    }
                    Some(regex)
                }
                Err(problem) => {
                    wrong(format!("{key}: {problem}"));
                    None
                }
            }
        };
        let job_name = compiled("job_name", &self.job_name);
        let comment = compiled("comment", &self.comment);
        let of_both = self.job_name.is_some() == job_name.is_some()
            && self.comment.is_some() == comment.is_some();
        let application = self.application.as_ref().and_then(|application| {
            let template = match Template::parse(application.get_ref()) {
                Ok(template) => template,
                Err(error) => {
                    faults.at(&application.span(), said(format!("application: {error}")));
                    return None;
                }
            };
            // Groups are known only if both patterns can be read.
            for group in template.parameters().filter(|_| of_both) {
                if !captures.contains(group) {
                    let problem = format!(
                        "application names {{{group}}}, and no pattern has a group (?<{group}>...)"
                    );
                    faults.at(&application.span(), said(problem));
                }
            }
            Some(template)
        });
        Some(Rule {
            name: name.clone(),
            job_name,
            comment,
            application,
        })
    }
}

impl Rule {
    /// `None`: it does not match. `Some(None)`: it gives no application.
    fn matched(&self, job_name: Option<&str>, comment: Option<&str>) -> Option<Option<String>> {
        let job_name = captured(self.job_name.as_ref(), job_name)?;
        let comment = captured(self.comment.as_ref(), comment)?;
        let group = |name: &str| {
            let of = |captures: &Option<Captures<'_>>| {
                let found = captures.as_ref()?.name(name)?;
                Some(found.as_str().to_owned())
            };
            // A group that took no part is empty.
            Some(
                of(&job_name)
                    .or_else(|| of(&comment))
                    .unwrap_or_default()
                    .into(),
            )
        };
        let application = self.application.as_ref();
        Some(application.and_then(|template| adopted(&template.filled(group)?)))
    }
}

/// `None`: there is a pattern and it does not match.
fn captured<'t>(pattern: Option<&Regex>, text: Option<&'t str>) -> Option<Option<Captures<'t>>> {
    match pattern {
        None => Some(None),
        Some(pattern) => pattern.captures(text?).map(Some),
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_MAX {
        return Err(format!("the pattern has more than {PATTERN_MAX} bytes"));
    }
    let built = RegexBuilder::new(pattern)
        .size_limit(COMPILED_MAX)
        .nest_limit(50)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "the pattern is too big: repeat less, or write [A-Za-z0-9_] for \\w".to_owned()
        }
        // Its last line has the reason; those before show the pattern again.
        error => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            format!("{pattern:?} is no pattern: {reason}")
        }
    })
}

/// The text as a name: each byte that a name cannot have becomes `_`. `None`: that is no name.
fn adopted(text: &str) -> Option<String> {
    let kept = |byte| if is_name_byte(byte) { byte.into() } else { '_' };
    let name: String = text.bytes().map(kept).collect();
    is_name(&name).then_some(name)
}

fn is_meaningless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let stem = EXTENSIONS
        .iter()
        .find_map(|extension| name.strip_suffix(extension))
        .filter(|stem| !stem.is_empty());
    MEANINGLESS.contains(&stem.unwrap_or(&name))
}
