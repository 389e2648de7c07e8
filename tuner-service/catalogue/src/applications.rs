//! Rules by which a job's name becomes an application.

use std::collections::BTreeSet;

use io_autotune_configuration::parse_recoverable;
use io_autotune_protocol::{ApplicationName, Mode, Note, Request, is_name, is_name_byte};
use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;
use toml::Spanned;

use crate::Template;
use crate::fault::{Fault, Faults};

/// The rules of a service whose configuration names no file.
pub const SHIPPED: &str = include_str!("../../../deploy/etc/applications.toml");

/// Job names that do not name a program; compared without case and script extensions.
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

/// The most rules. Patterns match in time linear in the text and in the compiled pattern; this and
/// the following limits bound the latter.
const RULES_MAX: usize = 100;
const PATTERN_MAX: usize = 500;
const COMPILED_MAX: usize = 64 * 1024;

/// The length in bytes from which on a name may have been cut: the next byte, if it was not UTF-8,
/// would not have fitted into 256 bytes ([`Request`]).
const CUT_FROM: usize = 252;

/// The reason why a file of rules was refused: all its faults, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RulesError(pub Vec<Fault>);

/// Ordered rules, of which the first that matches decides.
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
    /// The application; `None`: names that match do not name a program.
    application: Option<Template>,
}

/// The result of the rules for a job's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// The application; `None`: there is none.
    pub application: Option<ApplicationName>,
    /// True if the name does not name a program, so that its jobs are only observed.
    pub meaningless: bool,
    /// The rule that decided; `None`: none matched.
    pub rule: Option<&'a str>,
    /// True if that rule has read the job's comment.
    pub reads_comment: bool,
}

/// A request with its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The request; `app` is the application's name.
    pub request: Request,
    /// The text that the name was made of, if the name does not have all of it.
    pub full_name: Option<String>,
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
    /// Reads a file's text. Returns an error with every wrong line, its rule, and what to write
    /// instead.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let mut faults = Faults::of(text);
        let mut rules = Vec::new();
        let read = parse_recoverable::<Document>(text);
        for one in &read.found {
            faults.at(&one.place, one.problem.as_str());
        }
        match read.value {
            Some(document) => {
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
            None => debug_assert!(!read.found.is_empty()),
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

    /// The number of rules.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// The result for a job's name and comment.
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
        let application = job_name
            .filter(|name| !may_be_cut(name))
            .and_then(ApplicationName::of);
        Named {
            meaningless: application
                .as_ref()
                .is_none_or(|application| is_meaningless(&plain(application))),
            application,
            rule: None,
            reads_comment: false,
        }
    }

    /// The request with its application. If the name does not name a program, the job is only
    /// observed. An `app` that the user gave stays; a comment that decided nothing is left out.
    #[must_use]
    pub fn resolve(&self, request: Request) -> Resolved {
        if request.app.is_some() {
            let request = Request {
                job_name: None,
                comment: None,
                rule: None,
                ..request
            };
            return Resolved {
                request,
                full_name: None,
            };
        }
        let named = self.named(request.job_name.as_deref(), request.comment.as_deref());
        let (mode, note) = if named.meaningless {
            (Mode::Observe, Some(Note::MeaninglessName))
        } else {
            (request.mode, None)
        };
        let (app, full_name) = named.application.map(ApplicationName::into_parts).unzip();
        let request = Request {
            mode,
            note,
            rule: named.rule.map(str::to_owned),
            comment: request.comment.filter(|_| named.reads_comment),
            app,
            accelerator: request.accelerator,
            job_name: request.job_name,
            tell: request.tell,
            dir: request.dir,
        };
        Resolved {
            request,
            full_name: full_name.flatten(),
        }
    }
}

impl Entry {
    /// The rule, unless it has a fault.
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
    /// Applies the rule. `None`: it does not match. `Some(None)`: it gives no application.
    fn matched(
        &self,
        job_name: Option<&str>,
        comment: Option<&str>,
    ) -> Option<Option<ApplicationName>> {
        let job_name = captured(self.job_name.as_ref(), job_name)?;
        let comment = captured(self.comment.as_ref(), comment)?;
        let group = |name: &str| {
            let of = |captures: &Option<Captures<'_>>| {
                let found = captures.as_ref()?.name(name)?;
                Some(found.as_str().to_owned())
            };
            // A group that took no part in the match is empty.
            Some(
                of(&job_name)
                    .or_else(|| of(&comment))
                    .unwrap_or_default()
                    .into(),
            )
        };
        let application = self.application.as_ref();
        Some(application.and_then(|template| ApplicationName::of(&template.filled(group)?)))
    }
}

/// Matches a text. `None`: there is a pattern and it does not match.
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
        // The last line has the reason; those before show the pattern again.
        error => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            format!("{pattern:?} is no pattern: {reason}")
        }
    })
}

/// Returns true if a job's name may be the beginning of a longer one, of which the plugin sends 256
/// bytes.
fn may_be_cut(job_name: &str) -> bool {
    job_name.len() >= CUT_FROM
}

/// The text of an application's name with `_` for each character that a name cannot have, because
/// `slurm script` is as meaningless as `slurm_script`.
fn plain(application: &ApplicationName) -> String {
    let text = application.full_name().unwrap_or(application.name());
    let is_kept = |c: &char| u8::try_from(*c).is_ok_and(is_name_byte);
    let kept = |c: char| Some(c).filter(is_kept).unwrap_or('_');
    text.chars().map(kept).collect()
}

fn is_meaningless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let stem = EXTENSIONS
        .iter()
        .find_map(|extension| name.strip_suffix(extension))
        .filter(|stem| !stem.is_empty());
    MEANINGLESS.contains(&stem.unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::is_application;
    use proptest::prelude::*;

    use super::*;

    const UUID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn shipped() -> Rules {
        Rules::parse(SHIPPED).unwrap()
    }

    fn rules(text: &str) -> Rules {
        Rules::parse(text).unwrap()
    }

    fn problem(text: &str) -> String {
        Rules::parse(text).unwrap_err().to_string()
    }

    /// The application of a job's name, and the rule that gave it.
    fn becomes(job_name: &str, comment: Option<&str>) -> (Option<String>, Option<String>) {
        let rules = shipped();
        let named = rules.named(Some(job_name), comment);
        (
            named
                .application
                .filter(|_| !named.meaningless)
                .map(|application| application.name().to_owned()),
            named.rule.map(str::to_owned),
        )
    }

    fn application(job_name: &str, comment: Option<&str>) -> String {
        let (application, rule) = becomes(job_name, comment);
        assert!(rule.is_some(), "{job_name}");
        application.unwrap()
    }

    #[test]
    fn a_process_of_nextflow_is_one_application_whatever_its_sample() {
        for (job_name, expected) in [
            ("nf-ALIGN_(sample_1)", "nf-ALIGN"),
            ("nf-ALIGN_(7)", "nf-ALIGN"),
            ("nf-ALIGN", "nf-ALIGN"),
            (
                "nf-RNASEQ_FASTQ_QC_FASTQC_(WT_REP1)",
                "nf-RNASEQ_FASTQ_QC_FASTQC",
            ),
            ("nf-sort_bam_(a_(b)_[c]\nd)", "nf-sort_bam"),
            ("nf-ALIGN_(cut at its len", "nf-ALIGN"),
        ] {
            assert_eq!(application(job_name, None), expected, "{job_name}");
        }
        assert_ne!(
            application("nf-A_B_(1)", None),
            application("nf-A_C_(1)", None)
        );
        let long = format!("nf-{}_GATK_(s)", "SUBWORKFLOW_".repeat(15));
        let kept = application(&long, None);
        assert!(kept.len() == 128 && kept.ends_with("_GATK"), "{kept}");
        assert_eq!(becomes("nf", None), (Some("nf".into()), None));
    }

    #[test]
    fn a_rule_of_snakemake_is_one_application_whatever_run_and_wildcards() {
        let of = |comment| application(UUID, Some(comment));
        assert_eq!(of("rule_align"), "smk-align");
        assert_eq!(of("rule_align_wildcards_sample_1"), "smk-align");
        assert_eq!(of("rule_align_wildcards_a_wildcards_b"), "smk-align");
        assert_eq!(of("rule_sort_bam_wildcards_x"), "smk-sort_bam");
        let other = UUID.replace('0', "1");
        assert_eq!(application(&other, Some("rule_align")), of("rule_align"));
        let prefixed = format!("rna_seq-2_{UUID}");
        assert_eq!(
            application(&prefixed, Some("rule_align")),
            "smk-rna_seq-2_align"
        );
        assert_eq!(application("snakejob.align.12.sh", None), "smk-align");
        for comment in [None, Some("mine"), Some("rule_")] {
            assert_eq!(becomes(UUID, comment), (None, Some("uuid".into())));
        }
        let request = Request {
            job_name: Some(UUID.into()),
            ..Request::default()
        };
        assert_eq!(
            shipped().resolve(request).request.app,
            None,
            "one for each run would be left"
        );
        // No rule reads a comment alone.
        assert_eq!(
            becomes("ocean", Some("rule_align")),
            (Some("ocean".into()), None)
        );
    }

    #[test]
    fn other_tools() {
        assert_eq!(
            application("parsl.htex.block-12.1732345678.1234567", None),
            "parsl.htex"
        );
        assert_eq!(
            application("parsl.my.label.block-0.1732345678.1", None),
            "parsl.my.label"
        );
        for same in ["dask-worker", "rfm_IorWrite", "rfm_IorWrite_0a1b2c3d"] {
            assert_eq!(becomes(same, None), (Some(same.into()), None));
        }
    }

    #[test]
    fn names_that_say_nothing_are_only_observed() {
        let rules = shipped();
        for name in [
            "wrap",
            "run.sh",
            "JOB.SBATCH",
            "a.out",
            "slurm script",
            "Bash.bash",
        ] {
            let named = rules.named(Some(name), None);
            assert!(named.meaningless && named.rule.is_none(), "{name}");
            assert!(named.application.is_some(), "{name}: the observed study's");
        }
        for (name, expected) in [
            ("job.sh.sh", "job.sh.sh"),
            ("ocean.sh", "ocean.sh"),
            ("runs", "runs"),
            ("a b/c\u{e4}", "a_b_c_~0e5a282170"),
        ] {
            assert_eq!(becomes(name, None), (Some(expected.into()), None), "{name}");
        }
        for nothing in ["", ".sh", "_a", " a", &"a".repeat(252)] {
            let named = rules.named(Some(nothing), None);
            assert_eq!(
                (named.application, named.meaningless),
                (None, true),
                "{nothing}"
            );
        }
        for something in ["\u{e4}", "модель", &"a".repeat(129), &"a".repeat(251)] {
            assert!(
                !rules.named(Some(something), None).meaningless,
                "{something}"
            );
        }
        assert!(rules.named(None, Some("rule_a")).meaningless);
    }

    const TWO: &str = r#"
[[rules]]
name = "first"
job_name = '^x-(?<a>\d+)?'
comment = 'for (?<b>\w+)'
application = "x{a}.{b}"
[[rules]]
name = "second"
job_name = '^x'
application = "rest"
[[rules]]
name = "third"
comment = '^quiet$'
meaningless = true
"#;

    #[test]
    fn the_first_rule_that_matches_decides_and_both_patterns_must() {
        let rules = rules(TWO);
        let named = |job_name, comment| {
            let named = rules.named(job_name, comment);
            let application = named.application.map(|one| one.name().to_owned());
            (application, named.rule.map(str::to_owned))
        };
        let by =
            |application: &str, rule: &str| (Some(application.to_owned()), Some(rule.to_owned()));
        assert_eq!(named(Some("x-7"), Some("for me")), by("x7.me", "first"));
        assert_eq!(named(Some("x-"), Some("for a/b")), by("x.a", "first"));
        assert_eq!(named(Some("x-7"), Some("of me")), by("rest", "second"));
        assert_eq!(named(Some("x-7"), None), by("rest", "second"));
        assert_eq!(named(None, Some("quiet")), (None, Some("third".into())));
        assert_eq!(named(Some("y"), Some("q")), (Some("y".into()), None));
        // The result of a rule is not compared with the meaningless names.
        let main = Rules::parse(&TWO.replace("\"rest\"", "\"main\"")).unwrap();
        assert!(!main.named(Some("x"), None).meaningless);
        // A result that is not a name counts as none.
        let none = Rules::parse(&TWO.replace("\"rest\"", "\"_rest\""));
        assert!(none.unwrap().named(Some("x"), None).meaningless);
    }

    /// Attack (environment): A forged request has an application beside a name that makes another
    /// one.
    /// Outcome: The given application stays.
    #[test]
    fn a_request_is_resolved_and_keeps_no_comment_that_decided_nothing() {
        let rules = rules(TWO);
        let resolved = |text: &str| rules.resolve(text.parse().unwrap()).request;
        let one = resolved("name=x-7,comment=for%20me,accelerator=romio,mode=tune");
        assert_eq!(one.app.as_deref(), Some("x7.me"));
        assert_eq!(one.rule.as_deref(), Some("first"));
        assert_eq!(one.job_name.as_deref(), Some("x-7"));
        assert_eq!(one.comment.as_deref(), Some("for me"));
        assert_eq!((one.mode, one.note), (Mode::Tune, None));
        let two = resolved("name=x-7,comment=private,mode=observe");
        assert_eq!(
            (two.comment, two.mode, two.note),
            (None, Mode::Observe, None)
        );
        let none = resolved("name=wrap,comment=private,mode=tune");
        assert_eq!(
            (none.mode, none.note),
            (Mode::Observe, Some(Note::MeaninglessName))
        );
        assert_eq!((none.app.as_deref(), none.comment), (Some("wrap"), None));
        let unknown = resolved("mode=tune");
        assert_eq!(
            (unknown.app, unknown.note),
            (None, Some(Note::MeaninglessName))
        );
        // Names that users give, and those that plugins of 0.1.0 have made, stay.
        for text in [
            "app=x-7,mode=tune",
            "app=wrap,mode=observe,note=meaningless_name",
        ] {
            assert_eq!(resolved(text), text.parse().unwrap());
        }
        let forged = resolved("app=a,name=x-7,comment=for%20me,mode=tune");
        assert_eq!(forged, "app=a,mode=tune".parse().unwrap());
    }

    #[test]
    fn each_mistake_is_told_with_its_line_and_rule() {
        let entry = |rest: &str| format!("[[rules]]\nname = \"r\"\n{rest}\n");
        for (text, expected) in [
            ("[[rule]]\n".to_owned(), "unknown field `rule`"),
            (
                entry("jobname = 'a'"),
                "line 3, column 1: unknown field `jobname`",
            ),
            (
                entry("application = \"a\""),
                "rule \"r\": it matches nothing",
            ),
            (
                entry("job_name = 'a'"),
                "rule \"r\": write one of application",
            ),
            (
                entry("job_name = 'a'\napplication = \"a\"\nmeaningless = true"),
                "write one of application",
            ),
            (
                entry("job_name = '(a'\napplication = \"{b}\""),
                "line 3, column 12: rule \"r\": job_name: \"(a\" is no pattern: unclosed group",
            ),
            (
                entry("job_name = 'a(?=b)'\nmeaningless = true"),
                "look-around, including look-ahead and look-behind, is not supported",
            ),
            (
                entry("job_name = 'a'\napplication = \"{b}\""),
                "line 4, column 15: rule \"r\": application names {b}, and no pattern has a group",
            ),
            (
                entry("job_name = 'a'\napplication = \"{b\""),
                "brace without its other half",
            ),
            (
                entry("job_name = '(?<b>a)'\ncomment = '(?<b>a)'\napplication = \"{b}\""),
                "both patterns have a group \"b\"",
            ),
            (
                entry("job_name = 'a'\nmeaningless = true").repeat(2),
                "another has this name",
            ),
            (
                entry("job_name = 'a'\nmeaningless = true").replace("\"r\"", "\"a b\""),
                "line 2, column 8: rule \"a b\": its name is",
            ),
            (
                entry(&format!(
                    "job_name = '{}'\nmeaningless = true",
                    "a".repeat(501)
                )),
                "more than 500 bytes",
            ),
            (
                (0..101)
                    .map(|n| {
                        entry("job_name = 'a'\nmeaningless = true")
                            .replace("\"r\"", &format!("\"r{n}\""))
                    })
                    .collect(),
                "more than 100 rules",
            ),
        ] {
            let problem = problem(&text);
            assert!(problem.contains(expected), "{problem}");
            assert!(
                problem.contains("line ") && !problem.contains('\n'),
                "{problem}"
            );
        }
    }

    /// Attack (environment): A rule's pattern is huge when compiled, or slow by backtracking.
    /// Outcome: It is refused, or matches in linear time.
    #[test]
    fn a_pathological_pattern_is_refused_or_matches_in_linear_time() {
        let of = |pattern: &str| {
            Rules::parse(&format!(
                "[[rules]]\nname = \"r\"\njob_name = '{pattern}'\nmeaningless = true\n"
            ))
        };
        for pattern in [
            r"(a{1,200}){1,200}",
            r"(((\w{1,50}){1,50}){1,50})",
            r"\pL{9999}",
        ] {
            let problem = of(pattern).unwrap_err().to_string();
            assert!(problem.contains("pattern"), "{problem}");
        }
        // Exponential for an engine that backtracks.
        let name = "a".repeat(256);
        for pattern in [
            r"^(a+)+$|b",
            r"^(a|a)*b$",
            r"^(a*)*(a*)*(a*)*b$",
            r"(a?){100}a{100}b",
        ] {
            let rules = of(pattern).unwrap();
            for _ in 0..10 {
                let _ = rules.named(Some(&name), None);
            }
        }
    }

    #[test]
    fn what_a_name_was_made_of_is_kept_beside_it() {
        let rules = rules(TWO);
        let full_name = |text: &str| rules.resolve(text.parse().unwrap()).full_name;
        assert_eq!(full_name("name=a%20b,mode=tune").as_deref(), Some("a b"));
        assert_eq!(
            full_name("name=x-7,comment=for%20me,mode=tune").as_deref(),
            None
        );
        let template = Rules::parse(
            &TWO.replace("\"rest\"", "\"of {c}\"")
                .replace("'^x'", "'^x(?<c>.*)'"),
        );
        let of_rule = template
            .unwrap()
            .resolve("name=xyz,mode=tune".parse().unwrap());
        assert_eq!(of_rule.full_name.as_deref(), Some("of yz"));
        for plain in [
            "name=ocean,mode=tune",
            "app=ocean,mode=tune",
            "name=_a",
            "mode=tune",
        ] {
            assert_eq!(full_name(plain), None);
        }
    }

    proptest! {
        /// Attack (environment): Two jobs have any names.
        /// Outcome: They have one application only if a rule gives it to both.
        #[test]
        fn other_names_are_other_applications(one in "\\PC{1,60}", other in "\\PC{1,60}") {
            let rules = rules("");
            let of = |name: &str| rules.named(Some(name), None).application;
            if let (Some(of_one), Some(of_other)) = (of(&one), of(&other)) {
                prop_assert_eq!(of_one.name() == of_other.name(), one == other);
            }
        }

        /// Attack (environment): A job has any name and any comment.
        /// Outcome: Its application is a name, or it is only observed.
        #[test]
        fn whatever_a_job_is_called_its_application_is_a_name_or_none(
            job_name in ".{0,140}", comment in proptest::option::of(".{0,60}")
        ) {
            let request = Request { job_name: Some(job_name), comment, ..Request::default() };
            let resolved = shipped().resolve(request).request;
            prop_assert!(resolved.app.as_deref().is_none_or(is_application));
            prop_assert_eq!(resolved.note.is_some(), resolved.mode == Mode::Observe);
            prop_assert!(resolved.app.is_some() || resolved.note.is_some());
            prop_assert!(resolved.comment.is_none() || resolved.rule.is_some());
        }

        #[test]
        fn samples_merge_and_processes_do_not(
            one in "[A-Z][A-Z0-9_]{0,40}[A-Z0-9]", other in "[A-Z][A-Z0-9_]{0,40}[A-Z0-9]",
            samples in ("[^\\x00]{0,60}", "[^\\x00]{0,60}")
        ) {
            let of = |process: &str, sample: &str| application(&format!("nf-{process}_({sample})"), None);
            prop_assert_eq!(of(&one, &samples.0), of(&one, &samples.1));
            prop_assert_eq!(of(&one, &samples.0) == of(&other, &samples.1), one == other);
        }

        #[test]
        fn wildcards_and_runs_of_a_workflow_merge_and_rules_do_not(
            one in "[a-z][a-z0-9]{0,20}", other in "[a-z][a-z0-9]{0,20}",
            runs in ("[0-9a-f]{12}", "[0-9a-f]{12}"), wildcards in ("[^\\x00]{1,60}", "[^\\x00]{1,60}")
        ) {
            let of = |run: &str, rule: &str, wildcards: &str| {
                let name = format!("{}{run}", &UUID[..24]);
                application(&name, Some(&format!("rule_{rule}_wildcards_{wildcards}")))
            };
            let first = of(&runs.0, &one, &wildcards.0);
            prop_assert_eq!(&first, &of(&runs.1, &one, &wildcards.1));
            prop_assert_eq!(first == of(&runs.1, &other, &wildcards.1), one == other);
        }
    }

    /// Rules that can be read decide on any name; a file that is refused is refused by its line.
    ///
    /// Attack (parsers): A file of an admin's.
    #[test]
    fn fuzz_rules() {
        io_autotune_fuzzing::Target::new("rules", &[SHIPPED, TWO])
            .rounds(1500)
            .run(|input| {
                let Ok(text) = str::from_utf8(input) else {
                    return;
                };
                match Rules::parse(text) {
                    Ok(rules) => {
                        for name in [text, "x-7", UUID, "nf-ALIGN_(1)"] {
                            let name = &name[..name.floor_char_boundary(256)];
                            let named = rules.named(Some(name), Some("rule_a"));
                            let application = named.application;
                            assert!(application.is_none_or(|one| is_application(one.name())));
                        }
                    }
                    Err(error) => assert!(error.to_string().contains("line"), "{error}"),
                }
            });
    }
}
