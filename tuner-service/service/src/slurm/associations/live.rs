//! Asks sacctmgr for the associations now and then, and the name service for their users' uids.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::unistd::User;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::OutcomeError;
use super::super::command::Program;
use super::{Associations, Names};

/// How often Slurm is asked.
const PERIOD: Duration = Duration::from_secs(300);

/// How often Slurm is asked after a failure.
const AGAIN: Duration = Duration::from_secs(30);

/// The age from which the associations are not valid any more, as a coordinator may have been
/// removed since. It leaves time to upgrade slurmdbd, for example.
const KEPT: Duration = Duration::from_secs(900);

/// Longest wait for the name service.
const NAMES: Duration = Duration::from_secs(60);

/// The associations as they were read last.
#[derive(Debug)]
pub(crate) struct LiveAssociations {
    sacctmgr: Program,
    pub(crate) cluster: String,
    last: Mutex<Last>,
    /// Held while sacctmgr is asked: a second caller asks later, so that an older answer never
    /// replaces a newer one.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Last {
    read: Option<(Instant, Arc<Associations>)>,
    fails: bool,
}

impl LiveAssociations {
    pub(in super::super) fn new(sacctmgr: Program, cluster: String) -> Self {
        Self {
            sacctmgr,
            cluster,
            last: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The associations; empty if they could not be read lately.
    pub(crate) fn current(&self) -> Arc<Associations> {
        self.known().unwrap_or_default()
    }

    /// The associations; `None` if they could not be read lately.
    pub(crate) fn known(&self) -> Option<Arc<Associations>> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Option<Arc<Associations>> {
        let last = self.last();
        let (read, known) = last.read.as_ref()?;
        (now.duration_since(*read) < KEPT).then(|| Arc::clone(known))
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the associations anew, and returns them. Only the first of several failures is logged.
    pub(crate) async fn ask(&self) -> Result<Arc<Associations>, OutcomeError> {
        let _asking = self.asking.lock().await;
        // Their age counts from the question.
        let asked = Instant::now();
        let read = self.read().await.map(Arc::new);
        let mut last = self.last();
        match &read {
            Ok(known) => {
                let (users, accounts, coordinators) = known.counts();
                if last.fails || last.read.is_none() {
                    tracing::info!(
                        users,
                        accounts,
                        coordinators,
                        "Slurm's associations are known"
                    );
                }
                last.fails = false;
                last.read = Some((asked, Arc::clone(known)));
            }
            Err(error) => {
                if !last.fails {
                    let minutes = KEPT.as_secs() / 60;
                    tracing::warn!(
                        %error,
                        "Slurm's associations cannot be read: {minutes} minutes after they were last, nobody \
                         is an account's coordinator or member here"
                    );
                }
                last.fails = true;
            }
        }
        read
    }

    async fn read(&self) -> Result<Associations, OutcomeError> {
        let mut members = Names::OF_MEMBERS.map(str::to_owned).to_vec();
        members.push(format!("cluster={}", self.cluster));
        let coordinators = Names::OF_COORDINATORS.map(str::to_owned);
        let (members, coordinators) = tokio::try_join!(
            self.sacctmgr.output(&members),
            self.sacctmgr.output(&coordinators)
        )?;
        let resolved = tokio::task::spawn_blocking(move || {
            let names = Names::parse(&members, &coordinators);
            let users = names.users();
            match uids(&users) {
                Some(uids) => Ok(Associations::of(&names, &uids)),
                None => Err(users.len()),
            }
        });
        match resolved.await {
            Ok(Ok(known)) => Ok(known),
            Ok(Err(users)) => Err(OutcomeError::Names {
                users,
                after: NAMES,
            }),
            Err(_) => Err(OutcomeError::Names {
                users: 0,
                after: NAMES,
            }),
        }
    }

    /// Asks now, and now and then, until it is stopped.
    pub(crate) async fn watch(&self, mut stopping: watch::Receiver<bool>) {
        loop {
            let pause = match self.ask().await {
                Ok(_) => PERIOD,
                Err(_) => AGAIN,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopping.changed() => return,
            }
        }
    }
}

/// The uids of the users whom the name service knows; `None` if it is too slow.
fn uids(users: &BTreeSet<&str>) -> Option<HashMap<String, u32>> {
    let until = Instant::now() + NAMES;
    let mut uids = HashMap::with_capacity(users.len());
    for user in users {
        if Instant::now() > until {
            return None;
        }
        if let Ok(Some(found)) = User::from_name(user) {
            uids.insert((*user).to_owned(), found.uid.as_raw());
        }
    }
    Some(uids)
}

#[cfg(test)]
mod tests {
    use super::super::tests::known;
    use super::*;

    fn asking(sacctmgr: &str) -> LiveAssociations {
        let program = Program {
            path: sacctmgr.into(),
            conf: None,
        };
        LiveAssociations::new(program, "alpha".into())
    }

    impl LiveAssociations {
        /// The associations of alice, uid 1001, and bob, uid 1002.
        pub(crate) fn sample() -> Self {
            let live = asking("/nonexistent");
            live.last().read = Some((Instant::now(), Arc::new(known())));
            live
        }
    }

    /// Attack (others): sacctmgr is silent while somebody stops coordinating an account.
    /// Outcome: What was read holds for a quarter of an hour; then nobody coordinates.
    #[tokio::test]
    async fn what_was_read_long_ago_or_never_is_nothing() {
        let live = LiveAssociations::sample();
        let now = Instant::now();
        assert!(live.at(now).unwrap().is_member(1001, "physics"));
        assert_eq!(live.at(now + KEPT), None);
        // A failure alone changes nothing, until it is too long.
        live.ask().await.unwrap_err();
        assert!(live.last().fails);
        assert!(live.current().is_member(1001, "physics"));
        let never = asking("/nonexistent");
        never.ask().await.unwrap_err();
        assert_eq!(*never.current(), Associations::default());
    }

    #[tokio::test]
    async fn both_lists_are_read_and_names_are_looked_up() {
        let directory = tempfile::tempdir().unwrap();
        let (text, sacctmgr) = (directory.path().join("text"), directory.path().join("run"));
        let script = "#!/bin/sh\ncase \"$*\" in *cluster=alpha*) echo 'physics|nobody';; \
                      *withcoord*) echo 'physics|nobody,root';; esac\n";
        std::fs::write(&text, script).unwrap();
        // Another process writes it: what this one has open for writing, a test's fork keeps busy.
        let mut install = std::process::Command::new("install");
        let installed = install.arg("--mode=755").args([&text, &sacctmgr]).status();
        assert!(installed.unwrap().success());
        let live = asking(sacctmgr.to_str().unwrap());
        assert_eq!(live.ask().await.unwrap(), live.current());
        assert_eq!(
            Vec::from_iter(live.current().coordinated_by(65534)),
            ["physics"]
        );
        assert!(live.current().is_member(65534, "physics"));
        assert_eq!(live.current().counts(), (1, 1, 1));
    }
}
