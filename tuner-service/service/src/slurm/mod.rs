//! Sources of outcomes: how jobs ended, according to Slurm.

pub(crate) mod associations;
mod command;
pub(crate) mod hooks;
pub(crate) mod nodes;
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
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::associations::LiveAssociations;
use self::command::Program;
use self::hooks::Hooks;
use self::nodes::Nodes;
pub(crate) use self::notation::goes_on;
use self::sacct::Sacct;
use self::squeue::Squeue;
use crate::limits::TimeLimit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlurmConfig {
    /// ClusterName: only runs of this cluster are queried.
    cluster: String,
    /// Sources of outcomes, queried in this order; without any, the fallback rule judges.
    #[serde(
        default = "SlurmConfig::default_sources",
        deserialize_with = "sources",
        serialize_with = "names"
    )]
    sources: Vec<Source>,
    #[serde(default = "SlurmConfig::default_squeue")]
    squeue: PathBuf,
    #[serde(default = "SlurmConfig::default_sacct")]
    sacct: PathBuf,
    #[serde(default = "SlurmConfig::default_scontrol")]
    scontrol: PathBuf,
    #[serde(default = "SlurmConfig::default_sacctmgr")]
    sacctmgr: PathBuf,
    /// Which users are in which accounts is asked for now and then.
    #[serde(default)]
    pub(crate) associations: bool,
    /// slurm.conf; Slurm's default if `None`.
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

    fn default_scontrol() -> PathBuf {
        "/usr/bin/scontrol".into()
    }

    fn default_sacctmgr() -> PathBuf {
        "/usr/bin/sacctmgr".into()
    }

    /// `None`: they are not asked for.
    pub(crate) fn associations(&self) -> Option<LiveAssociations> {
        let sacctmgr = || Program {
            path: self.sacctmgr.clone(),
            conf: self.conf.clone(),
        };
        (self.associations).then(|| LiveAssociations::new(sacctmgr(), self.cluster.clone()))
    }

    pub(crate) fn hooks(&self) -> Hooks {
        Hooks::new(Program {
            path: self.scontrol.clone(),
            conf: self.conf.clone(),
        })
    }

    pub(crate) fn nodes(&self) -> Nodes {
        Nodes::new(Program {
            path: self.scontrol.clone(),
            conf: self.conf.clone(),
        })
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
                    // It is not queried: it posts to /v1/outcomes.
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

fn names<S: Serializer>(sources: &[Source], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sources.iter().map(|source| source.as_str()))
}

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

fn tells_suspension(source: Source) -> bool {
    match source {
        Source::Squeue | Source::Sacct => true,
        Source::Jobcomp => false,
    }
}

pub(crate) struct Sources {
    pub(crate) cluster: String,
    /// All, in the configured order.
    pub(crate) names: Vec<Source>,
    /// Those that can be queried.
    pub(crate) asked: Vec<Box<dyn OutcomeSource>>,
}

impl Sources {
    pub(crate) fn tell_suspension(&self) -> bool {
        self.names.iter().copied().any(tells_suspension)
    }
}

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
        uid: outcome.uid,
        node_list: outcome.node_list.clone(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) job_id: u32,
    pub(crate) restart_count: u32,
    pub(crate) age: Duration,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) alive: HashSet<u32>,
    /// Time limits of all jobs that have not ended, if the source lists them.
    pub(crate) limits: Option<HashMap<u32, TimeLimit>>,
}

pub(crate) type Asking<'a> =
    Pin<Box<dyn Future<Output = Result<Answer, OutcomeError>> + Send + 'a>>;

/// A source that can be queried, for many launches at once.
pub(crate) trait OutcomeSource: Send + Sync {
    fn name(&self) -> Source;

    fn ask<'a>(&'a self, launches: &'a [Launch]) -> Asking<'a>;
}

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
    #[error("{program} says more than is read")]
    TooLong { program: PathBuf },
    #[error("which uids {users} users have was not known within {} s: the name service is slow", .after.as_secs())]
    Names { users: usize, after: Duration },
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
