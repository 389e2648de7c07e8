//! Who may do what.

use std::net::IpAddr;

use io_autotune_protocol::ServiceAccount;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use serde::Deserialize;

use crate::reader::Reader;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AccessConfig {
    admin_uids: Vec<u32>,
    admin_groups: Vec<String>,
    /// Readers of the nightly report besides admins.
    report_uids: Vec<u32>,
    report_groups: Vec<String>,
    /// Root of a host starts and finishes runs only on the node that Slurm has at its address.
    pub(crate) check_origins: bool,
    /// Login names or uids of those who deliver the job-completion script's output.
    collectors: Vec<ServiceAccount>,
    /// Login names or uids of those who complete burst buffers' directives: SlurmUser.
    burst_buffers: Vec<ServiceAccount>,
}

/// The caller of a request, authenticated by its credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    /// Where the request comes from: by the credential, else by the connection. `None`: this host.
    pub(crate) origin: Option<IpAddr>,
}

impl Caller {
    /// Root of a node may start and finish any job's run.
    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }
}

#[derive(Debug)]
pub(crate) struct Access {
    config: AccessConfig,
}

impl Access {
    pub(crate) fn new(config: AccessConfig) -> Self {
        Self { config }
    }

    pub(crate) async fn is_admin(&self, caller: Caller) -> bool {
        is_one_of(caller, &self.config.admin_uids, &self.config.admin_groups).await
    }

    pub(crate) async fn reads_report(&self, caller: Caller) -> bool {
        is_one_of(caller, &self.config.report_uids, &self.config.report_groups).await
            || self.is_admin(caller).await
    }

    /// May deliver outcomes. Root may say how any job ended anyway.
    pub(crate) async fn is_collector(&self, caller: Caller) -> bool {
        caller.is_root() || is_an_account(caller, &self.config.collectors).await
    }

    /// May start a run before its job's nodes do, and say what became of its directives. Root may
    /// start any job's run anyway.
    pub(crate) async fn completes_directives(&self, caller: Caller) -> bool {
        caller.is_root() || is_an_account(caller, &self.config.burst_buffers).await
    }

    pub(crate) async fn reader(&self, caller: Caller) -> Reader {
        if self.is_admin(caller).await {
            Reader::Admin
        } else {
            Reader::User(caller.uid)
        }
    }
}

async fn is_an_account(caller: Caller, accounts: &[ServiceAccount]) -> bool {
    if accounts.is_empty() {
        return false;
    }
    let accounts = accounts.to_owned();
    tokio::task::spawn_blocking(move || {
        accounts.iter().any(|account| match account {
            ServiceAccount::Uid(uid) => *uid == caller.uid,
            ServiceAccount::Name(name) => User::from_name(name)
                .ok()
                .flatten()
                .is_some_and(|user| user.uid.as_raw() == caller.uid),
        })
    })
    .await
    .unwrap_or(false)
}

async fn is_one_of(caller: Caller, uids: &[u32], groups: &[String]) -> bool {
    if uids.contains(&caller.uid) {
        return true;
    }
    if groups.is_empty() {
        return false;
    }
    let groups = groups.to_owned();
    // The name service may use the network, so not on the runtime's threads.
    tokio::task::spawn_blocking(move || is_member(caller.uid, &groups))
        .await
        .unwrap_or(false)
}

fn is_member(uid: u32, groups: &[String]) -> bool {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else {
        return false;
    };
    let Ok(name) = std::ffi::CString::new(user.name) else {
        return false;
    };
    let Ok(member_of) = getgrouplist(&name, user.gid) else {
        return false;
    };
    groups
        .iter()
        .filter_map(|group| Group::from_name(group).ok().flatten())
        .any(|group| member_of.contains(&Gid::from_raw(group.gid.as_raw())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32) -> Caller {
        Caller { uid, origin: None }
    }

    #[tokio::test]
    async fn admins_are_those_configured_by_uid_or_group() {
        let by_uid = Access::new(AccessConfig {
            admin_uids: vec![42],
            ..AccessConfig::default()
        });
        assert!(by_uid.is_admin(caller(42)).await);
        assert!(!by_uid.is_admin(caller(43)).await);
        assert!(
            !by_uid.is_admin(caller(0)).await,
            "root of a node is no admin by itself"
        );
        let by_group = Access::new(AccessConfig {
            admin_groups: vec!["root".into()],
            ..AccessConfig::default()
        });
        assert!(by_group.is_admin(caller(0)).await);
        assert!(!by_group.is_admin(caller(65534)).await);
    }

    #[tokio::test]
    async fn the_report_is_for_admins_and_for_those_named_besides() {
        let access = Access::new(AccessConfig {
            admin_uids: vec![42],
            report_uids: vec![43],
            report_groups: vec!["root".into()],
            ..AccessConfig::default()
        });
        for uid in [0, 42, 43] {
            assert!(access.reads_report(caller(uid)).await, "{uid}");
        }
        assert!(!access.reads_report(caller(44)).await);
        assert!(!access.is_admin(caller(43)).await);
    }

    #[tokio::test]
    async fn collectors_are_root_and_whoever_is_named_by_name_or_uid() {
        let access = Access::new(AccessConfig {
            collectors: vec![
                ServiceAccount::Uid(42),
                ServiceAccount::Name("nobody".into()),
                ServiceAccount::Name("no-such-account".into()),
            ],
            ..AccessConfig::default()
        });
        for (uid, expected) in [(0, true), (42, true), (65534, true), (43, false)] {
            assert_eq!(access.is_collector(caller(uid)).await, expected, "{uid}");
        }
        assert!(!access.is_admin(caller(42)).await);
        assert!(
            !access.completes_directives(caller(42)).await,
            "each role is its own"
        );
    }

    #[tokio::test]
    async fn directives_are_completed_by_root_and_the_accounts_named_for_it() {
        let access = Access::new(AccessConfig {
            burst_buffers: vec![ServiceAccount::Name("nobody".into())],
            ..AccessConfig::default()
        });
        for (uid, expected) in [(0, true), (65534, true), (42, false)] {
            assert_eq!(
                access.completes_directives(caller(uid)).await,
                expected,
                "{uid}"
            );
        }
        assert!(!access.is_collector(caller(65534)).await);
        assert!(!access.is_admin(caller(65534)).await);
    }
}
