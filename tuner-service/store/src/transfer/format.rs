//! The format: one JSON value per line, each an object with one member whose name is the kind of
//! the line. First comes a header, then study after study, each with its epochs, its runs and its
//! nodes' reports, and last an end, without which the file was cut. `docs/transfer.md` describes
//! it.
//!
//! Nothing in it belongs to the installation: runs and epochs are identified by their place,
//! launches by their job.

use std::collections::BTreeMap;

use io_autotune_model::{
    Assessment, Objective, ParameterEffects, Parametrization, Phase, Role, Sluid, Space, Tally,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that is written, and the newest version that can be read.
pub const VERSION: u32 = 2;

const FORMAT: &str = "io-autotune-export";

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Header(Header),
    Study(Box<StudyRecord>),
    Epoch(Box<EpochRecord>),
    Run(Box<RunRecord>),
    Report(Box<ReportRecord>),
    End(End),
}

/// The header. A reader refuses members that a newer version adds, so the version comes first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub(super) studies: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyRecord {
    pub(super) application: String,
    /// Left out if there is none, because earlier programs do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) full_name: Option<String>,
    pub(super) owner_uid: u32,
    pub(super) owner_name: Option<String>,
    pub(super) accelerator: String,
    pub(super) context: BTreeMap<String, String>,
    pub(super) created_at: Timestamp,
    pub(super) accepted: Option<Accepted>,
    pub(super) pin: Option<Pin>,
    /// The assessment without its findings, which name studies by number.
    pub(super) assessment: Option<Assessment>,
}

/// The acceptance of mixed work.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Accepted {
    pub(super) at: Timestamp,
    pub(super) uid: u32,
    pub(super) why: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pin {
    pub(super) parametrization: Parametrization,
    pub(super) uid: u32,
    pub(super) why: String,
    pub(super) pinned_at: Timestamp,
    pub(super) until: Option<Timestamp>,
}

/// The knowledge that an epoch takes from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Takes {
    Nothing,
    Ranks,
    Runs,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EpochRecord {
    pub(super) ordinal: i32,
    pub(super) parent: Option<i32>,
    pub(super) takes: Takes,
    pub(super) taken_judgements: Option<i64>,
    pub(super) space: Space,
    pub(super) objective: Objective,
    pub(super) seed: i64,
    pub(super) opened_at: Timestamp,
    pub(super) opened_why: String,
    pub(super) inherited: Vec<Parametrization>,
    pub(super) drift: Option<Value>,
    pub(super) parameter_effects: ParameterEffects,
    /// The engine's evidence.
    pub(super) evidence: Option<Value>,
    pub(super) places: Places,
    /// Set if retention has removed the epoch's runs, which are then not in the file.
    pub(super) removed: Option<RemovedRecord>,
}

/// The part of an epoch that stays after its runs were removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedRecord {
    pub(super) at: Timestamp,
    /// The latest start of its runs.
    pub(super) through: Timestamp,
    pub(super) judgements: i64,
    pub(super) tally: Tally,
}

/// The runs that `drift` and `evidence` name, by their place among the study's runs in the file,
/// from 1; 0: none. In `drift` and `evidence` themselves they are 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Places {
    pub(super) through: i64,
    pub(super) since: i64,
    pub(super) drifted: i64,
}

/// A judged run, by its columns. State and verdict are those of its latest judgement.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRecord {
    pub(super) epoch: i32,
    pub(super) cluster: String,
    pub(super) job_id: u32,
    pub(super) restart_count: i32,
    pub(super) generation: i32,
    pub(super) sluid: Option<Sluid>,
    pub(super) uid: u32,
    pub(super) node: String,
    pub(super) nodes: Option<i32>,
    pub(super) request: Value,
    pub(super) phase: Phase,
    pub(super) role: Role,
    pub(super) parametrization: Parametrization,
    pub(super) reason: String,
    pub(super) suggestion: Value,
    pub(super) delivery: Value,
    pub(super) directives: Option<Value>,
    pub(super) started_at: Timestamp,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) elapsed: Option<f64>,
    pub(super) wait_status: Option<i32>,
    pub(super) applied: Option<Value>,
    pub(super) measures: BTreeMap<String, f64>,
    pub(super) outcome: Option<String>,
    pub(super) outcome_at: Option<Timestamp>,
    pub(super) outcome_source: Option<String>,
    pub(super) suspended: bool,
    pub(super) limit_seconds: Option<i64>,
    pub(super) missing: Option<String>,
    pub(super) epilog: Option<Value>,
    pub(super) unstarted: bool,
    pub(super) released: bool,
    pub(super) dirty: bool,
    pub(super) listed_at: Option<Timestamp>,
    /// The time when retention removed its reports and the inputs of its decision.
    pub(super) trimmed_at: Option<Timestamp>,
    /// True if it has changes that its latest judgement has not seen.
    pub(super) awaits_verdict: bool,
    /// How the cluster's runs fared before its start.
    pub(super) surroundings: Option<Surroundings>,
    pub(super) judgements: Vec<JudgementRecord>,
    pub(super) outcomes: Vec<OutcomeRecord>,
}

impl RunRecord {
    pub(super) fn launch(&self) -> LaunchKey {
        LaunchKey {
            cluster: self.cluster.clone(),
            job_id: self.job_id,
            restart_count: self.restart_count,
            generation: self.generation,
        }
    }

    pub(super) fn latest(&self) -> Option<&JudgementRecord> {
        self.judgements.iter().max_by_key(|one| one.ordinal)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchKey {
    pub(super) cluster: String,
    pub(super) job_id: u32,
    pub(super) restart_count: i32,
    pub(super) generation: i32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Surroundings {
    pub(super) at: Timestamp,
    pub(super) slowness: f64,
    pub(super) runs: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgementRecord {
    pub(super) ordinal: i64,
    pub(super) effect: EffectWord,
    pub(super) parametrization: Option<Parametrization>,
    pub(super) elapsed: Option<f64>,
    pub(super) measures: BTreeMap<String, f64>,
    pub(super) verdict: String,
    pub(super) judged_at: Timestamp,
    /// Added in version 2.
    #[serde(default)]
    pub(super) not_counted_because: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EffectWord {
    Sample,
    Censored,
    Failure,
    OutOfMemory,
    Nothing,
}

impl EffectWord {
    /// The state of a run with this judgement.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self::Sample => "counted",
            Self::Censored => "censored",
            Self::Failure | Self::OutOfMemory | Self::Nothing => "not_counted",
        }
    }
}

/// An outcome record of the run's job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeRecord {
    pub(super) source: String,
    pub(super) state: String,
    pub(super) exit_code: Option<String>,
    pub(super) restart_count: Option<i32>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) suspended_seconds: Option<i64>,
    pub(super) limit_seconds: Option<i64>,
    pub(super) received_at: Timestamp,
    pub(super) account: Option<String>,
    pub(super) uid: Option<u32>,
    pub(super) node_list: Option<String>,
}

/// A node's report of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportRecord {
    pub(super) launch: LaunchKey,
    pub(super) node: String,
    pub(super) body: Value,
    pub(super) received_at: Timestamp,
}

pub(super) fn line(record: &Record) -> String {
    // It cannot fail, because map keys are texts and numbers are finite.
    serde_json::to_string(record).unwrap_or_default()
}

/// Returns an error in words unless this program can read a file with this first line.
pub fn check_header(text: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct First {
        header: Header,
    }
    let first: Option<First> = serde_json::from_str(text).ok();
    match first.map(|first| first.header) {
        Some(header) if header.format == FORMAT && (1..=VERSION).contains(&header.version) => {
            Ok(())
        }
        Some(header) if header.format == FORMAT && header.version > VERSION => Err(format!(
            "the file has version {} of the format and this service reads up to {VERSION}: upgrade the service, or \
             export with one of its version",
            header.version
        )),
        Some(header) if header.format == FORMAT => Err(format!(
            "there is no version {} of the format",
            header.version
        )),
        _ => Err("it does not begin as what `io-autotune transfer export` writes".to_owned()),
    }
}

/// Reads a line after the first. The error has the place in the line, and the problem.
pub(super) fn read(text: &str) -> Result<Record, (String, String)> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let record = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))?;
    deserializer
        .end()
        .map_err(|error| (".".to_owned(), error.to_string()))?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_it_is_and_a_newer_one_is_refused() {
        for version in 1..=VERSION {
            let own = format!(r#"{{"header":{{"format":"{FORMAT}","version":{version}}}}}"#);
            assert_eq!(check_header(&own), Ok(()));
        }
        for (text, said) in [
            (
                r#"{"header":{"format":"io-autotune-export","version":3,"x":1}}"#,
                "upgrade the service",
            ),
            (
                r#"{"header":{"format":"io-autotune-export","version":0}}"#,
                "no version 0",
            ),
            (r#"{"header":{"format":"x","version":1}}"#, "does not begin"),
            ("not json", "does not begin"),
            ("", "does not begin"),
        ] {
            let refused = check_header(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_line_is_told_with_its_path() {
        let (path, why) = read(r#"{"report":{"launch":{"cluster":"a","job_id":-1}}}"#).unwrap_err();
        assert_eq!(path, "report.launch.job_id", "{why}");
        let (path, why) = read(r#"{"end":{"studies":1,"more":2}}"#).unwrap_err();
        assert!(
            path.starts_with("end") && why.contains("`more`"),
            "{path}: {why}"
        );
        let (_, why) = read(r#"{"end":{"studies":1}} {}"#).unwrap_err();
        assert!(why.contains("trailing"), "{why}");
        assert!(read(r#"{"begin":{}}"#).is_err());
    }
}
