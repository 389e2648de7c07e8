//! The choice of an accelerator for a job that names none, as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::history::Moments;

/// The condition under which an accelerator can matter to a job, read off the job's measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedIf {
    /// The job writes to storage, through the page cache or past it.
    Writes,
    /// The job fetches from storage, or writes to it.
    ReadsOrWrites,
    /// The job reads or writes on Lustre.
    Lustre,
    /// The job reads or writes where a file system in user space is mounted.
    Fuse,
}

/// An accelerator that may take the place of the site's default one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The accelerator's name.
    pub name: String,
    /// The condition under which a job uses it. `None`: no measure shows that.
    pub used_if: Option<UsedIf>,
    /// True if it needs nodes whose settings root may change for the job.
    pub changes_nodes: bool,
}

/// The inputs of the choice between the site's default accelerator, which cannot matter to the job,
/// and other accelerators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The default accelerator.
    pub default: String,
    /// The number of runs that were given the default accelerator's files. In none of them anything
    /// read the files, so the accelerator cannot matter.
    pub unread: u64,
    /// The other accelerators, in the site's order.
    pub candidates: Vec<Candidate>,
    /// The number of the job's nodes.
    pub nodes: u32,
    /// The epoch that has the runs of the default.
    pub epoch_id: i64,
    /// The number of these runs that counted.
    pub runs: u64,
    /// Their mean elapsed, in seconds.
    pub elapsed: f64,
    /// Moments of the logarithms of their measures, by name.
    pub measures: BTreeMap<String, Moments>,
}

/// The result of a [`Choice`]. `Display` is a part of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The accelerator that can matter; none if none can.
    pub instead: Option<String>,
    /// The default accelerator.
    pub default: String,
    /// The number of runs in which nothing read the default accelerator's files.
    pub unread: u64,
    /// The candidates up to the chosen one: the name, and what is known of its use.
    pub considered: Vec<(String, String)>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instead,
            default,
            considered,
            unread,
        } = self;
        let why = |name: &str| considered.iter().find(|(other, _)| other == name);
        match instead.as_deref().and_then(why) {
            Some((name, why)) => write!(
                f,
                "{name}, because {why}, and {default} cannot matter: in {unread} runs nothing read its settings"
            ),
            None => {
                write!(f, "{default} cannot matter")?;
                for (name, why) in considered {
                    write!(f, "; nor can {name}: {why}")?;
                }
                Ok(())
            }
        }
    }
}
