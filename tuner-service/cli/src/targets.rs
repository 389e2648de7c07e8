//! The words that name an application, a study or a job. They mean the same in every command; no
//! other module reads them.
//!
//! `app:NAME` (`application:NAME`), `study:N` and `job:N` say what they name. A word alone names
//! what the command is about. If it can be read in two ways it is kept with both readings, and what
//! exists decides ([`crate::resolve_target`]).

use std::fmt;
use std::str::FromStr;

use io_autotune_protocol::is_name;

/// A word that does not name what is expected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WordError(String);

/// The argument of a command about studies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Study(i64),
    Application(String),
    /// Digits alone: a study's number, or the name of an application.
    Number {
        study: i64,
        name: String,
    },
}

/// A target whose meaning is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Study(i64),
    Application(String),
}

/// A job as squeue and sacct write it. A step stands for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The number that Slurm gives it.
    Id(u32),
    /// A task of an array: `11_1`.
    Task { array: u32, task: u32 },
    /// A component of a heterogeneous job: `11+0`.
    Component { leader: u32, offset: u32 },
}

/// The argument of a command about jobs or studies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Job(Job),
    Target(Target),
    /// A word alone that may name a job or something else.
    Either {
        word: String,
        job: Job,
        target: Target,
    },
}

/// The kind of thing that a word's prefix says it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Application,
    Study,
    Job,
}

const FORMS: &str = "app:NAME, study:NUMBER and job:ID say what a word names";

/// The kind in a word's prefix, if it has one, and the rest.
fn parts(text: &str) -> Result<(Option<Kind>, &str), WordError> {
    let Some((prefix, rest)) = text.split_once(':') else {
        return Ok((None, text));
    };
    let kind = match prefix {
        "app" | "application" => Kind::Application,
        "study" => Kind::Study,
        "job" => Kind::Job,
        _ => return Err(WordError(format!("no name has a colon: {FORMS}"))),
    };
    match rest.is_empty() {
        true => Err(WordError(format!("nothing follows the colon: {FORMS}"))),
        false => Ok((Some(kind), rest)),
    }
}

fn digits<N: FromStr>(text: &str) -> Option<N> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn number_of_study(text: &str) -> Result<i64, WordError> {
    digits(text).ok_or_else(|| {
        WordError(format!(
            "{text:?} is no study's number; `io-autotune status` lists the studies with theirs"
        ))
    })
}

/// A study's number, alone or as `study:N`.
pub(crate) fn study(text: &str) -> Result<i64, WordError> {
    match parts(text)? {
        (None | Some(Kind::Study), number) => number_of_study(number),
        _ => Err(WordError("a study is expected: 12 or study:12".to_owned())),
    }
}

/// An application's name, alone or as `app:NAME`.
pub(crate) fn application(text: &str) -> Result<String, WordError> {
    match parts(text)? {
        (None | Some(Kind::Application), name) => Ok(name.to_owned()),
        _ => Err(WordError(
            "an application is expected: ocean or app:ocean".to_owned(),
        )),
    }
}

impl FromStr for Target {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match parts(text)? {
            (Some(Kind::Study), number) => Ok(Self::Study(number_of_study(number)?)),
            (Some(Kind::Application), name) => Ok(Self::Application(name.to_owned())),
            (Some(Kind::Job), _) => Err(WordError(format!(
                "a study or an application is expected, and this is a job: `io-autotune explain {text}` says of which \
                 study it is"
            ))),
            (None, word) => Ok(match digits(word) {
                Some(study) => Self::Number {
                    study,
                    name: word.to_owned(),
                },
                None => Self::Application(word.to_owned()),
            }),
        }
    }
}

impl FromStr for Job {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match parts(text)? {
            (None | Some(Kind::Job), word) => job(word),
            _ => Err(WordError(format!(
                "a job is expected, such as 4711 or job:4711: `io-autotune history {text}` lists those of {text}"
            ))),
        }
    }
}

impl FromStr for Thing {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        Ok(match parts(text)? {
            (Some(Kind::Job), word) => Self::Job(job(word)?),
            (Some(_), _) => Self::Target(text.parse()?),
            (None, word) if names_several(word) => return Err(one_of_several(word)),
            (None, word) => match job(word) {
                Ok(job) => Self::Either {
                    word: word.to_owned(),
                    job,
                    target: word.parse()?,
                },
                Err(_) => Self::Target(word.parse()?),
            },
        })
    }
}

/// Reads `ID[_TASK|+COMPONENT][.STEP]`.
fn job(word: &str) -> Result<Job, WordError> {
    if names_several(word) {
        return Err(one_of_several(word));
    }
    let (of, step) = match word.split_once('.') {
        Some((of, step)) => (of, Some(step)),
        None => (word, None),
    };
    let read = if let Some((array, task)) = of.split_once('_') {
        let pair = digits(array).zip(digits(task));
        pair.map(|(array, task)| Job::Task { array, task })
    } else if let Some((leader, offset)) = of.split_once('+') {
        let pair = digits(leader).zip(digits(offset));
        pair.map(|(leader, offset)| Job::Component { leader, offset })
    } else {
        digits(of).map(Job::Id)
    };
    match read {
        Some(job) if step.is_none_or(is_step) => Ok(job),
        _ => Err(no_job(word)),
    }
}

fn is_step(text: &str) -> bool {
    let (step, component) = text.split_once('+').unwrap_or((text, "0"));
    let is_number = |text| digits::<u64>(text).is_some();
    is_number(component)
        && (is_number(step) || matches!(step, "batch" | "extern" | "interactive" | "TBD"))
}

/// Returns true for words that name several jobs: `11_[1-5%2]`, `11_*` and `11,12`.
fn names_several(word: &str) -> bool {
    let starts = word.starts_with(|first: char| first.is_ascii_digit());
    starts && word.contains(['[', ']', '*', ','])
}

fn one_of_several(word: &str) -> WordError {
    let array: String = word.chars().take_while(char::is_ascii_digit).collect();
    WordError(format!(
        "{word:?} names several jobs: name one, a task of an array as {array}_1"
    ))
}

fn no_job(word: &str) -> WordError {
    let hint = match is_name(word) {
        true => format!(
            "`io-autotune history {word}` lists those of application {word}, `io-autotune status {word}` says where it \
             stands"
        ),
        false => "`io-autotune history` lists yours".to_owned(),
    };
    WordError(format!(
        "a job is expected as squeue and sacct write it, such as 4711, 4711_3 or 4711.batch: {hint}"
    ))
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Task { array, task } => write!(f, "{array}_{task}"),
            Self::Component { leader, offset } => write!(f, "{leader}+{offset}"),
        }
    }
}

/// A word with two meanings, with the way to write each of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ambiguity {
    pub(crate) word: String,
    pub(crate) readings: Vec<Reading>,
}

/// One thing that a word may name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The thing in words.
    pub(crate) what: String,
    /// The word that means only this.
    pub(crate) written: String,
}

impl Reading {
    pub(crate) fn study(study: i64, application: &str) -> Self {
        Self {
            what: format!("study {study} (application {application})"),
            written: format!("study:{study}"),
        }
    }

    pub(crate) fn application(name: &str) -> Self {
        Self {
            what: format!("application {name}"),
            written: format!("app:{name}"),
        }
    }

    pub(crate) fn job(job: Job) -> Self {
        Self {
            what: format!("job {job}"),
            written: format!("job:{job}"),
        }
    }
}

impl Ambiguity {
    /// The possible meanings of the word, each with a complete command: the words that were typed,
    /// with this one made unambiguous. If the word occurs more than once, only its replacement is
    /// given.
    pub(crate) fn told(&self, typed: &[String]) -> String {
        let what: Vec<&str> = self.readings.iter().map(|one| one.what.as_str()).collect();
        let mut text = format!(
            "nothing was done: {} may be {}. Type one of these:",
            self.word,
            what.join(" or ")
        );
        let places = typed.iter().skip(1).filter(|one| **one == self.word);
        let is_clear = places.count() == 1;
        for reading in &self.readings {
            let words = typed.iter().skip(1).map(|one| match *one == self.word {
                true => quoted(&reading.written),
                false => quoted(one),
            });
            let line = match is_clear {
                true => format!("io-autotune {}", Vec::from_iter(words).join(" ")),
                false => reading.written.clone(),
            };
            text.push_str(&format!("\n  {line}"));
        }
        text
    }
}

/// A word as it is written in a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_and_an_application_are_named_by_what_stands_before_the_colon() {
        for (text, target) in [
            ("ocean", Target::Application("ocean".to_owned())),
            ("app:ocean", Target::Application("ocean".to_owned())),
            ("application:3", Target::Application("3".to_owned())),
            ("study:12", Target::Study(12)),
            (
                "007",
                Target::Number {
                    study: 7,
                    name: "007".to_owned(),
                },
            ),
            ("+3", Target::Application("+3".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(target), "{text}");
        }
        for text in [
            "study:",
            "study:ocean",
            "study:+3",
            "jobs:3",
            "job:3",
            "a:b",
            ":3",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        assert_eq!((study("12"), study("study:12")), (Ok(12), Ok(12)));
        assert!(study("app:12").is_err() && study("ocean").is_err());
        assert_eq!(application("app:3"), application("3"));
        assert!(application("study:3").is_err());
    }

    #[test]
    fn a_job_is_named_as_squeue_and_sacct_write_it() {
        let task = Job::Task { array: 11, task: 1 };
        let component = Job::Component {
            leader: 11,
            offset: 1,
        };
        for (text, expected) in [
            ("4711", Job::Id(4711)),
            ("job:4711", Job::Id(4711)),
            ("11.batch", Job::Id(11)),
            ("11.extern", Job::Id(11)),
            ("11.interactive", Job::Id(11)),
            ("11.0", Job::Id(11)),
            ("11.0+1", Job::Id(11)),
            ("11_1", task),
            ("job:11_1.batch", task),
            ("11_1.0", task),
            ("11+1", component),
            ("11+1.batch", component),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "x",
            "11_",
            "11+",
            "11.",
            "11._",
            "11_1_1",
            "11.batch.0",
            "-1",
            "4294967296",
            "study:3",
            "app:3",
            "ocean.sh",
            "$(reboot)",
        ] {
            assert!(text.parse::<Job>().is_err(), "{text}");
        }
        for text in ["11_[1-5]", "11_[1,3%2]", "11_*", "11,12", "job:11_[1-5]"] {
            let error = text.parse::<Job>().unwrap_err().to_string();
            assert!(
                error.contains("several jobs") && error.contains("11_1"),
                "{error}"
            );
            assert!(text.parse::<Thing>().is_err(), "{text}");
        }
    }

    #[test]
    fn who_names_no_job_is_told_where_its_id_is() {
        let name = "ocean.sh".parse::<Job>().unwrap_err().to_string();
        assert!(name.contains("`io-autotune history ocean.sh`"), "{name}");
        let odd = "$(reboot)".parse::<Job>().unwrap_err().to_string();
        assert!(odd.contains("`io-autotune history` lists"), "{odd}");
        let study = "study:3".parse::<Job>().unwrap_err().to_string();
        assert!(study.contains("`io-autotune history study:3`"), "{study}");
        let job = "job:3".parse::<Target>().unwrap_err().to_string();
        assert!(job.contains("`io-autotune explain job:3`"), "{job}");
    }

    #[test]
    fn a_word_alone_that_may_be_a_job_is_kept_with_both_readings() {
        let either = |text: &str| matches!(text.parse(), Ok(Thing::Either { .. }));
        assert!(either("4711") && either("11_1") && either("11.batch"));
        assert_eq!(
            "job:11.batch".parse(),
            Ok(Thing::Job(Job::Id(11))),
            "what says that it is a job is one"
        );
        for text in ["ocean", "study:4711", "app:4711"] {
            assert_eq!(text.parse(), Ok(Thing::Target(text.parse().unwrap())));
        }
    }

    #[test]
    fn two_readings_are_written_out_as_commands() {
        let ambiguity = Ambiguity {
            word: "3".to_owned(),
            readings: vec![Reading::study(3, "ocean"), Reading::application("3")],
        };
        let told = |line: &str| {
            let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
            ambiguity.told(&typed)
        };
        assert_eq!(
            told("/usr/bin/io-autotune pin 3 cb_nodes=2 --why $x"),
            "nothing was done: 3 may be study 3 (application ocean) or application 3. Type one of these:\n\
             \x20 io-autotune pin study:3 cb_nodes=2 --why '$x'\n\
             \x20 io-autotune pin app:3 cb_nodes=2 --why '$x'"
        );
        assert!(told("io-autotune history 3 --limit 3").ends_with("\n  study:3\n  app:3"));
    }
}
