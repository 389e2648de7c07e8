//! The addresses of the cluster's nodes, by slurmctld: root of one host must not act for another.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::OutcomeError;
use super::command::Program;

/// How often Slurm is asked.
const PERIOD: Duration = Duration::from_secs(300);

/// The least time between two questions, however many unknown nodes ask.
const AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// Addresses by NodeName.
type Addresses = HashMap<String, HashSet<IpAddr>>;

#[derive(Debug)]
pub(crate) struct Nodes {
    scontrol: Program,
    known: RwLock<Addresses>,
    unknown: Notify,
}

/// Why a host is not believed to be a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotThere {
    #[error("Slurm lists no node {0:?}, or cannot be asked")]
    Unknown(String),
    #[error("node {node:?} is not at {origin}, where the request comes from")]
    Elsewhere { node: String, origin: IpAddr },
}

impl Nodes {
    pub(super) fn new(scontrol: Program) -> Self {
        Self {
            scontrol,
            known: RwLock::default(),
            unknown: Notify::new(),
        }
    }

    /// Returns an error unless Slurm has the node at this address. For an unknown node, Slurm is
    /// asked again.
    pub(crate) fn check(&self, node: &str, origin: IpAddr) -> Result<(), NotThere> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(node) {
            Some(addresses) if addresses.contains(&origin.to_canonical()) => Ok(()),
            Some(_) => Err(NotThere::Elsewhere {
                node: node.to_owned(),
                origin,
            }),
            None => {
                self.unknown.notify_one();
                Err(NotThere::Unknown(node.to_owned()))
            }
        }
    }

    async fn ask(&self) -> Result<Addresses, OutcomeError> {
        let command = ["--oneliner", "show", "nodes"].map(str::to_owned);
        let text = self.scontrol.output(&command).await?;
        let mut known = Addresses::new();
        for (node, address) in nodes(&text) {
            match tokio::net::lookup_host((address, 0)).await {
                Ok(found) => {
                    let found = found.map(|address| address.ip().to_canonical());
                    known.entry(node.to_owned()).or_default().extend(found);
                }
                Err(error) => {
                    tracing::warn!(node, address, %error, "a node's address is not known");
                }
            }
        }
        Ok(known)
    }

    /// Asks now; if Slurm does not answer, the known addresses stay.
    pub(crate) async fn renew(&self) {
        match self.ask().await {
            Ok(known) => *self.known.write().unwrap_or_else(PoisonError::into_inner) = known,
            Err(error) => tracing::warn!(%error, "the nodes' addresses stay as they were"),
        }
    }

    /// Asks now, now and then, and when a node is unknown, until it is stopped.
    pub(crate) async fn watch(&self, mut stopping: watch::Receiver<bool>) {
        loop {
            self.renew().await;
            let pause = async {
                tokio::time::sleep(AT_MOST_EVERY).await;
                // An unknown node is a reason to ask; otherwise Slurm is asked now and then.
                let _ = tokio::time::timeout(PERIOD, self.unknown.notified()).await;
            };
            tokio::select! {
                () = pause => {}
                _ = stopping.changed() => return,
            }
        }
    }
}

/// NodeName and NodeAddr of each line of `scontrol --oneliner show nodes`.
fn nodes(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        // Fields that an admin or a user may write (Reason, Comment) come later, and the first one
        // counts.
        let value = |name: &str| {
            line.split(' ').find_map(|field| {
                let (key, value) = field.split_once('=')?;
                (key == name && !value.is_empty()).then_some(value)
            })
        };
        Some((value("NodeName")?, value("NodeAddr")?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "NodeName=n1 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 NodeAddr=127.0.0.1 NodeHostName=localhost Port=6818 Reason=NodeAddr=10.0.0.9 NodeName=n9 [root@2026]\n\
        NodeName=n2 NodeAddr=10.0.0.2 NodeHostName=n2 Version=24.11\n\
        NodeName=gone Arch=x NodeHostName=gone\n";

    #[test]
    fn the_first_of_each_field_counts() {
        let found: Vec<_> = nodes(SHOWN).collect();
        assert_eq!(found, [("n1", "127.0.0.1"), ("n2", "10.0.0.2")]);
        assert_eq!(nodes("No nodes in the system\n").count(), 0);
    }

    /// Attack (nodes): With `check_origins`, root of a host speaks for another node, or for one
    /// that Slurm does not list.
    #[test]
    fn a_host_speaks_for_its_own_node_alone() {
        let nodes = Nodes::new(Program {
            path: "/nonexistent".into(),
            conf: None,
        });
        let here: IpAddr = "10.0.0.1".parse().unwrap();
        let there: IpAddr = "10.0.0.2".parse().unwrap();
        *nodes.known.write().unwrap() = [("n1".to_owned(), [here].into())].into();
        assert_eq!(nodes.check("n1", here), Ok(()));
        assert_eq!(
            nodes.check("n1", "::ffff:10.0.0.1".parse().unwrap()),
            Ok(())
        );
        assert!(matches!(
            nodes.check("n1", there),
            Err(NotThere::Elsewhere { .. })
        ));
        assert!(matches!(nodes.check("n2", here), Err(NotThere::Unknown(_))));
    }
}
