//! Sources of outcomes: how jobs ended, according to Slurm.

pub(crate) mod associations;
mod command;
pub(crate) mod hooks;
pub(crate) mod nodes;
mod notation;
mod sacct;
mod squeue;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use io_autotune_protocol::Outcome;
use io_autotune_store::Source;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::watch;

use self::associations::LiveAssociations;
use self::command::Program;
use self::hooks::Hooks;
use self::nodes::Nodes;
pub(crate) use self::notation::goes_on;
use self::sacct::Sacct;
use self::squeue::Squeue;
use crate::limits::{Limits, TimeLimit};

/// The one cluster's `[slurm]`, or a `[[slurm]]` for each of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlurmConfigs(Vec<SlurmConfig>);

impl SlurmConfigs {
    /// ClusterNames, which Slurm writes in small letters whatever slurm.conf has, and puts into names
    /// of tables and files. Commands ask the slurmctld that their slurm.conf names.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.0.is_empty() {
            return Err("there is no cluster".to_owned());
        }
        let (mut names, mut confs) = (HashSet::new(), HashSet::new());
        for SlurmConfig {
            cluster,
            sources,
            conf,
            ..
        } in &self.0
        {
            let is_plain =
                |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_-.".contains(&c);
            if !(1..=40).contains(&cluster.len())
                || cluster.starts_with('.')
                || !cluster.bytes().all(is_plain)
            {
                return Err(format!(
                    "cluster = {cluster:?} is no ClusterName: 1 to 40 small letters, digits and _-. are expected, \
                     as `scontrol show config` has it"
                ));
            }
            if !names.insert(cluster) {
                return Err(format!("cluster {cluster} is there twice"));
            }
            if !sources.is_empty() && !confs.insert(conf) {
                return Err(format!(
                    "cluster {cluster} would be asked about by the slurm.conf of another: name its own by `conf`"
                ));
            }
        }
        Ok(())
    }

    /// Returns true if the associations of at least one cluster are asked for.
    pub(crate) fn have_associations(&self) -> bool {
        self.0.iter().any(|one| one.associations)
    }

    /// The clusters' names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|one| one.cluster.clone()).collect()
    }

    /// The clusters; `check_origins`: the addresses of their nodes are checked.
    pub(crate) fn clusters(&self, check_origins: bool) -> Arc<[Arc<Cluster>]> {
        let clusters = self.0.iter();
        let clusters = clusters.map(|one| Arc::new(one.cluster(check_origins)));
        clusters.collect()
    }
}

impl<'de> Deserialize<'de> for SlurmConfigs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = SlurmConfigs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[slurm], or a [[slurm]] for each cluster")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let one = SlurmConfig::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SlurmConfigs(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(SlurmConfigs)
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}

impl Serialize for SlurmConfigs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

/// A cluster, and the state of the queries of its Slurm.
pub(crate) struct Cluster {
    pub(crate) sources: Sources,
    /// Time limits that squeue listed last.
    pub(crate) limits: Limits,
    pub(crate) hooks: Hooks,
    /// The addresses of the nodes, if they are checked.
    pub(crate) nodes: Option<Nodes>,
    /// The users of each account, if associations are asked for.
    pub(crate) associations: Option<Arc<LiveAssociations>>,
}

impl Cluster {
    /// Asks now and then for the configuration of its Slurm, until it is stopped.
    pub(crate) async fn watch(&self, stopping: watch::Receiver<bool>) {
        let nodes = async {
            if let Some(nodes) = &self.nodes {
                nodes.watch(stopping.clone()).await;
            }
        };
        let associations = async {
            if let Some(associations) = &self.associations {
                associations.watch(stopping.clone()).await;
            }
        };
        tokio::join!(self.hooks.watch(stopping.clone()), nodes, associations);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlurmConfig {
    /// ClusterName: only runs of this cluster are queried.
    cluster: String,
    /// Sources of outcomes, queried in this order; without any, the fallback rule judges.
    #[serde(
        default = "SlurmConfig::default_sources",
        deserialize_with = "sources",
        serialize_with = "names"
    )]
    sources: Vec<Source>,
    /// The directory of squeue, sacct, scontrol and sacctmgr.
    #[serde(default = "SlurmConfig::default_programs")]
    programs: PathBuf,
    /// True if the users of each account are asked for now and then.
    #[serde(default)]
    associations: bool,
    /// slurm.conf; Slurm's default if `None`.
    conf: Option<PathBuf>,
}

impl SlurmConfig {
    fn default_sources() -> Vec<Source> {
        vec![Source::Squeue]
    }

    fn default_programs() -> PathBuf {
        "/usr/bin".into()
    }

    fn cluster(&self, check_origins: bool) -> Cluster {
        let associations = || LiveAssociations::new(self.program("sacctmgr"), self.cluster.clone());
        Cluster {
            sources: self.sources(),
            limits: Limits::default(),
            hooks: Hooks::new(self.program("scontrol")),
            nodes: check_origins.then(|| Nodes::new(self.program("scontrol"))),
            associations: (self.associations).then(|| Arc::new(associations())),
        }
    }

    fn program(&self, name: &str) -> Program {
        Program {
            path: self.programs.join(name),
            conf: self.conf.clone(),
        }
    }

    fn sources(&self) -> Sources {
        let asked = self
            .sources
            .iter()
            .filter_map(|name| -> Option<Box<dyn OutcomeSource>> {
                match name {
                    Source::Squeue => Some(Box::new(Squeue::new(self.program("squeue")))),
                    Source::Sacct => Some(Box::new(Sacct::new(self.program("sacct")))),
                    // It is not queried: it posts to /v1/outcomes.
                    Source::Jobcomp => None,
                }
            })
            .collect();
        Sources {
            cluster: self.cluster.clone(),
            names: self.sources.clone(),
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
        let source = name.parse().map_err(D::Error::custom)?;
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
    /// The sources that can be queried.
    pub(crate) asked: Vec<Box<dyn OutcomeSource>>,
}

impl Sources {
    pub(crate) fn tell_suspension(&self) -> bool {
        self.names.iter().copied().any(tells_suspension)
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
        let sources = |text: &str| config(text).unwrap().sources();
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
    fn a_table_is_one_cluster_and_an_array_several_each_with_its_own_slurm_conf() {
        #[derive(Deserialize, Serialize)]
        struct File {
            slurm: SlurmConfigs,
        }
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.slurm);
        let one = read("[slurm]\ncluster = \"alpha\"").unwrap();
        assert_eq!(
            (one.names(), one.validate()),
            (vec!["alpha".to_owned()], Ok(()))
        );
        let beta = "[[slurm]]\ncluster = \"beta\"\nconf = \"/etc/slurm-beta/slurm.conf\"\n";
        let two = read(&format!("[[slurm]]\ncluster = \"alpha\"\n{beta}")).unwrap();
        assert_eq!(
            (two.names().join(" "), two.validate()),
            ("alpha beta".to_owned(), Ok(()))
        );
        for slurm in [one, two] {
            let shown = toml::to_string(&File {
                slurm: slurm.clone(),
            })
            .unwrap();
            assert_eq!(read(&shown).unwrap(), slurm, "{shown}");
        }
        let over = read(&format!(
            "{beta}[[slurm]]\ncluster = \"old\"\nsources = []\nconf = \"/etc/slurm-beta/slurm.conf\"\n"
        ));
        assert_eq!(over.unwrap().validate(), Ok(()));
        for (text, problem) in [
            ("slurm = []".to_owned(), "there is no cluster"),
            (format!("{beta}{beta}"), "cluster beta is there twice"),
            (
                format!(
                    "{beta}{}",
                    beta.replace("cluster = \"beta", "cluster = \"alpha")
                ),
                "cluster alpha would be asked about by the slurm.conf of another",
            ),
            (
                beta.replace("\"beta\"", "\"Beta\""),
                "\"Beta\" is no ClusterName",
            ),
            (
                beta.replace("\"beta\"", "\"../beta\""),
                "\"../beta\" is no ClusterName",
            ),
            (beta.replace("\"beta\"", "\"\""), "\"\" is no ClusterName"),
            (
                beta.replace("\"beta\"", &format!("{:?}", "b".repeat(41))),
                "is no ClusterName",
            ),
        ] {
            let error = read(&text).unwrap().validate().unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let unknown = read(&format!("{beta}program = \"/bin\"")).unwrap_err();
        assert!(
            unknown.to_string().contains("unknown field `program`"),
            "{unknown}"
        );
    }

    #[test]
    fn a_source_that_does_not_exist_or_stands_twice_is_named() {
        for (text, expected) in [
            (
                "sources = [\"sinfo\"]",
                "\"sinfo\" is not a source: it must be one of squeue, sacct, jobcomp",
            ),
            ("sources = [\"sacct\", \"sacct\"]", "sacct is named twice"),
        ] {
            let error = config(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
