//! Slurm's word for how jobs ended: where it comes from, and how it is written.

mod command;
mod notation;
mod sacct;
mod squeue;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use io_autotune_protocol::Outcome;
use io_autotune_store::{OutcomeReport, Source};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use self::command::Program;
pub(crate) use self::notation::goes_on;
use self::sacct::Sacct;
use self::squeue::Squeue;
use crate::limits::TimeLimit;

/// `[slurm]` of the configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlurmConfig {
    /// ClusterName: only runs of this cluster are asked for.
    cluster: String,
    /// Where outcomes come from, the first one asked first; none at all leaves the fallback rule.
    #[serde(default = "SlurmConfig::default_sources", deserialize_with = "sources")]
    sources: Vec<Source>,
    /// The squeue to run.
    #[serde(default = "SlurmConfig::default_squeue")]
    squeue: PathBuf,
    /// The sacct to run.
    #[serde(default = "SlurmConfig::default_sacct")]
    sacct: PathBuf,
    /// slurm.conf, where it is not Slurm's default.
    #[serde(default)]
    conf: Option<PathBuf>,
}

impl SlurmConfig {
    fn default_sources() -> Vec<Source> {
        vec![Source::Squeue]
    }

    fn default_squeue() -> PathBuf {
        "/usr/bin/squeue".into()
    }

    fn default_sacct() -> PathBuf {
        "/usr/bin/sacct".into()
    }

    pub(crate) fn into_sources(self) -> Sources {
        let program = |path: &PathBuf| Program {
            path: path.clone(),
            conf: self.conf.clone(),
        };
        let asked = self
            .sources
            .iter()
            .filter_map(|name| -> Option<Box<dyn OutcomeSource>> {
                match name {
                    Source::Squeue => Some(Box::new(Squeue::new(program(&self.squeue)))),
                    Source::Sacct => Some(Box::new(Sacct::new(program(&self.sacct)))),
                    // It tells by itself, at POST /v1/outcomes.
                    Source::Jobcomp => None,
                }
            })
            .collect();
        Sources {
            cluster: self.cluster,
            names: self.sources,
            asked,
        }
    }
}

/// Reads source names; each may stand once.
fn sources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Source>, D::Error> {
    let mut sources = Vec::new();
    for name in Vec::<String>::deserialize(deserializer)? {
        let source = name.parse().map_err(|()| {
            let choices = Source::ALL.map(Source::as_str).join(", ");
            D::Error::custom(format!("{name:?} is no source: choose of {choices}"))
        })?;
        if sources.contains(&source) {
            return Err(D::Error::custom(format!("{name} is named twice")));
        }
        sources.push(source);
    }
    Ok(sources)
}

/// Whether the outcomes of a source say that a job was suspended.
fn tells_suspension(source: Source) -> bool {
    match source {
        Source::Squeue | Source::Sacct => true,
        Source::Jobcomp => false,
    }
}

/// The configured sources.
pub(crate) struct Sources {
    /// The cluster they speak for.
    pub(crate) cluster: String,
    /// All of them, in the configured order.
    pub(crate) names: Vec<Source>,
    /// Those that answer when asked.
    pub(crate) asked: Vec<Box<dyn OutcomeSource>>,
}

impl Sources {
    /// Whether any of them says that a job was suspended.
    pub(crate) fn tell_suspension(&self) -> bool {
        self.names.iter().copied().any(tells_suspension)
    }
}

/// An outcome as the store keeps it.
pub(crate) fn word(outcome: &Outcome) -> OutcomeReport {
    OutcomeReport {
        job_id: outcome.job_id,
        state: outcome.state.clone(),
        exit_code: outcome.exit_code.clone(),
        restart_count: outcome.restart_count,
        started_at: outcome.started_at,
        ended_at: outcome.ended_at,
        suspended_seconds: outcome.suspended_seconds,
        limit_seconds: outcome.limit_seconds,
        account: outcome.account.clone(),
    }
}

/// A launch that a source is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Slurm's job id.
    pub(crate) job_id: u32,
    /// The restart count.
    pub(crate) restart_count: u32,
    /// How long ago it started.
    pub(crate) age: Duration,
}

/// What a source says of the launches it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// How launches ended.
    pub(crate) outcomes: Vec<Outcome>,
    /// Jobs that have not ended.
    pub(crate) alive: HashSet<u32>,
    /// The time limits of all jobs, asked for or not, that have not ended, from a source that lists them.
    pub(crate) limits: Option<HashMap<u32, TimeLimit>>,
}

/// What [`OutcomeSource::ask`] returns.
pub(crate) type Asking<'a> =
    Pin<Box<dyn Future<Output = Result<Answer, OutcomeError>> + Send + 'a>>;

/// A source of outcomes that answers when asked. One question is for many launches.
pub(crate) trait OutcomeSource: Send + Sync {
    /// Its name.
    fn name(&self) -> Source;

    /// What it knows of these launches.
    fn ask<'a>(&'a self, launches: &'a [Launch]) -> Asking<'a>;
}

/// Why Slurm's word could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutcomeError {
    #[error("cannot run {program}: {source}")]
    Spawn {
        program: PathBuf,
        source: std::io::Error,
    },
    #[error("{program} did not answer within {} s", .after.as_secs())]
    Timeout { program: PathBuf, after: Duration },
    #[error("{program} failed: {stderr}")]
    Failed { program: PathBuf, stderr: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<SlurmConfig, toml::de::Error> {
        toml::from_str(&format!("cluster = \"c\"\n{text}"))
    }

    #[test]
    fn sources_are_squeue_unless_said_and_none_can_be_said() {
        let sources = |text: &str| config(text).unwrap().into_sources();
        assert_eq!(sources("").names, [Source::Squeue]);
        assert!(sources("").tell_suspension());
        let none = sources("sources = []");
        assert!(none.names.is_empty() && !none.tell_suspension());
        let pushed = sources("sources = [\"jobcomp\"]");
        assert!(pushed.asked.is_empty() && !pushed.tell_suspension());
        let both = sources("sources = [\"sacct\", \"jobcomp\"]");
        assert_eq!(both.asked[0].name(), Source::Sacct);
        assert!(both.tell_suspension());
    }

    #[test]
    fn a_source_that_does_not_exist_or_stands_twice_is_named() {
        for (text, expected) in [
            (
                "sources = [\"sinfo\"]",
                "\"sinfo\" is no source: choose of squeue, sacct, jobcomp",
            ),
            ("sources = [\"sacct\", \"sacct\"]", "sacct is named twice"),
        ] {
            let error = config(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
