//! Which accelerator a job gets that names none, as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::history::Moments;

/// What a job has to do for an accelerator to matter to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedIf {
    /// It writes to storage, through the page cache or past it.
    Writes,
    /// It fetches from storage, or writes to it.
    ReadsOrWrites,
    /// It reads or writes on Lustre.
    Lustre,
    /// It reads or writes where a file system in user space is mounted.
    Fuse,
}

/// An accelerator that may take the place of the site's default one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// `None`: no measure shows whether a job uses it.
    pub used_if: Option<UsedIf>,
    /// It needs nodes that root may change for the job.
    pub changes_nodes: bool,
}

/// All that decides between the site's default accelerator, which cannot matter, and others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The default accelerator.
    pub default: String,
    /// In so many runs, in all of them, nothing read what it gives: it cannot matter.
    pub unread: u64,
    /// The others, in the site's order.
    pub candidates: Vec<Candidate>,
    /// The job's nodes.
    pub nodes: u32,
    /// The epoch in which the runs of the default are.
    pub epoch_id: i64,
    /// How many of them counted.
    pub runs: u64,
    /// Their mean elapsed, in seconds.
    pub elapsed: f64,
    /// Their measures by name, as moments of logarithms.
    pub measures: BTreeMap<String, Moments>,
}

/// What a [`Choice`] comes to. `Display` is a part of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The accelerator that can matter; none if none can.
    pub instead: Option<String>,
    /// The default accelerator.
    pub default: String,
    /// In so many runs nothing read what it gives.
    pub unread: u64,
    /// The others up to the chosen one, each with what is known of it.
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
