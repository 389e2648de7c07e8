//! The studies that share with each other: rules of the site, and a sweep that follows them. A
//! start uses the last sweep's result.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use io_autotune_protocol::{is_account, is_application, is_name};
use io_autotune_store::{Sharer, Store, StoreError};
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::failed_work::{Apart, Work};
use crate::reconcile::Reconciled;
use crate::slurm::associations::{Associations, LiveAssociations};

/// A rule by which users share the runs of applications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SharingRule {
    /// Names, or beginnings of names that end in `*`.
    applications: Vec<String>,
    /// A Unix group, or
    group: Option<String>,
    /// an account of slurmdbd's.
    account: Option<String>,
    /// True if users see whose studies share with theirs.
    #[serde(default)]
    show_members: bool,
}

const RULES_MAX: usize = 100;
const NAMES_MAX: usize = 1000;

impl SharingRule {
    /// Checks all rules; `associations`: Slurm's associations are asked for.
    pub(crate) fn validate(rules: &[Self], associations: bool) -> Result<(), String> {
        if rules.len() > RULES_MAX {
            return Err(format!("there are more than {RULES_MAX} rules"));
        }
        for (number, rule) in (1..).zip(rules) {
            rule.check(associations)
                .map_err(|problem| format!("rule {number}: {problem}"))?;
        }
        Ok(())
    }

    fn check(&self, associations: bool) -> Result<(), String> {
        if !(1..=NAMES_MAX).contains(&self.applications.len()) {
            return Err(format!("1 to {NAMES_MAX} applications are expected"));
        }
        for name in &self.applications {
            let is_beginning = name.strip_suffix('*').is_some_and(is_name);
            if name != "*" && !is_application(name) && !is_beginning {
                return Err(format!(
                    "applications: {name:?} is neither the name of an application nor the beginning of one with \
                     a `*` at its end"
                ));
            }
        }
        match (&self.group, &self.account) {
            (Some(group), None) if is_group(group) => Ok(()),
            (None, Some(account)) if !associations => Err(format!(
                "account = {account:?} needs [slurm] associations = true, by which Slurm is asked who is in it"
            )),
            (None, Some(account)) if is_account(account) => Ok(()),
            (Some(name), None) | (None, Some(name)) => {
                Err(format!("{name:?} is no name of a group or an account"))
            }
            _ => Err("either `group` or `account` says who shares".to_owned()),
        }
    }

    fn is_about(&self, application: &str) -> bool {
        self.applications
            .iter()
            .any(|name| match name.strip_suffix('*') {
                Some(beginning) => application.starts_with(beginning),
                None => application == name,
            })
    }

    /// The group or account of the rule, as the store keeps it.
    fn share(&self) -> String {
        match (&self.group, &self.account) {
            (Some(group), _) => format!("group {group}"),
            (None, account) => format!("account {}", account.as_deref().unwrap_or_default()),
        }
    }
}

/// Returns true if a text may be a group's name, which some name services let have spaces.
fn is_group(text: &str) -> bool {
    (1..=256).contains(&text.len()) && !text.chars().any(char::is_control)
}

const PAGE: i64 = 1000;

#[derive(Debug)]
pub(crate) struct Sharing {
    /// A reload replaces them.
    rules: Mutex<Arc<[SharingRule]>>,
    /// The associations of each cluster for which they are asked for.
    associations: Arc<[Arc<LiveAssociations>]>,
}

impl Sharing {
    pub(crate) fn new(rules: Vec<SharingRule>, associations: Arc<[Arc<LiveAssociations>]>) -> Self {
        Self {
            rules: Mutex::new(rules.into()),
            associations,
        }
    }

    /// Replaces the rules; the next sweep follows the new ones.
    pub(crate) fn replace(&self, rules: Vec<SharingRule>) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules.into();
    }

    fn rules(&self) -> Arc<[SharingRule]> {
        Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if users see whose studies share with theirs.
    pub(crate) fn shows_members(&self, application: &str, share: &str) -> bool {
        let rules = self.rules();
        let mut rules = rules.iter();
        rules.any(|rule| rule.show_members && rule.is_about(application) && rule.share() == share)
    }

    /// Follows the rules now, and once in each period of the sweeps, until it is stopped.
    pub(crate) async fn watch(
        &self,
        store: Store,
        apart: Arc<Apart>,
        mut reconciled: watch::Receiver<Reconciled>,
        mut stopping: watch::Receiver<bool>,
    ) {
        loop {
            if let Err(error) = self.sweep(&store, &apart).await {
                tracing::warn!(%error, "who shares studies has to wait");
            }
            let period = reconciled.borrow_and_update().config.sweep();
            tokio::select! {
                () = tokio::time::sleep(period) => {}
                Ok(()) = reconciled.changed() => {}
                _ = stopping.changed() => return,
            }
        }
    }

    /// Writes the changes. A study to which no rule applies any more shares with no other. A study
    /// whose change cannot be written is set apart.
    pub(crate) async fn sweep(&self, store: &Store, apart: &Apart) -> Result<(), StoreError> {
        let rules = self.rules();
        let names = rules.iter().flat_map(|rule| &rule.applications);
        let names = names.map(|name| name.trim_end_matches('*').to_owned());
        let names: Vec<String> = names.collect();
        let mut after = 0;
        loop {
            let sharers = store.sharers(&names, after, PAGE).await?;
            let Some(last) = sharers.last() else {
                return Ok(());
            };
            after = last.study_id;
            let known = self.membership(&rules, &sharers).await;
            for sharer in &sharers {
                let Some(share) = share(&rules, sharer, &known) else {
                    continue;
                };
                let work = Work::Sharing(sharer.study_id);
                if share == sharer.share || !apart.is_due(&work) {
                    continue;
                }
                let shared = store.share(sharer.study_id, share.as_deref()).await;
                let is_shared = shared.is_ok();
                apart.note(work, shared)?;
                if !is_shared {
                    continue;
                }
                tracing::info!(
                    study_id = sharer.study_id,
                    uid = sharer.uid,
                    share = share.as_deref().unwrap_or("none"),
                    was = sharer.share.as_deref().unwrap_or("none"),
                    "whom a study hears has changed"
                );
            }
        }
    }

    async fn membership(&self, rules: &[SharingRule], sharers: &[Sharer]) -> Membership {
        let uids: BTreeSet<u32> = sharers.iter().map(|one| one.uid).collect();
        let groups = rules.iter().filter_map(|rule| rule.group.clone());
        let groups: BTreeSet<String> = groups.collect();
        let associations = self.associations.iter();
        let associations =
            associations.filter_map(|live| Some((live.cluster.clone(), live.known()?)));
        let associations = associations.collect();
        let groups = if groups.is_empty() {
            HashMap::new()
        } else {
            // The name service may use the network, so not on the runtime's threads.
            tokio::task::spawn_blocking(move || groups_of(&uids, &groups))
                .await
                .unwrap_or_default()
        };
        Membership {
            groups,
            associations,
        }
    }
}

/// The memberships of users in groups and accounts, as far as they are known now.
#[derive(Debug, Default)]
struct Membership {
    /// By uid and group. Pairs that are missing are not known now.
    groups: HashMap<(u32, String), bool>,
    /// By cluster.
    associations: HashMap<String, Arc<Associations>>,
}

impl Membership {
    /// `None`: not known now.
    fn has(&self, sharer: &Sharer, rule: &SharingRule) -> Option<bool> {
        match (&rule.group, &rule.account) {
            (Some(group), _) => self.groups.get(&(sharer.uid, group.clone())).copied(),
            (None, Some(account)) => {
                let known = self.associations.get(&sharer.cluster)?;
                Some(known.is_member(sharer.uid, account))
            }
            (None, None) => Some(false),
        }
    }
}

/// The share of a study by the first rule that applies, `Some(None)` if none does; `None` if a
/// membership is not known now, so that the study stays as it is.
fn share(rules: &[SharingRule], sharer: &Sharer, known: &Membership) -> Option<Option<String>> {
    for rule in rules
        .iter()
        .filter(|rule| rule.is_about(&sharer.application))
    {
        if known.has(sharer, rule)? {
            return Some(Some(rule.share()));
        }
    }
    Some(None)
}

/// For each user and group, true if the user is a member; without users about whom the name service
/// fails.
fn groups_of(uids: &BTreeSet<u32>, groups: &BTreeSet<String>) -> HashMap<(u32, String), bool> {
    let gids: Vec<(&String, Option<Gid>)> = groups
        .iter()
        .filter_map(|name| {
            let group = Group::from_name(name).ok()?;
            Some((name, group.map(|group| group.gid)))
        })
        .collect();
    let mut known = HashMap::new();
    for uid in uids {
        let Some(member_of) = groups_of_user(*uid) else {
            continue;
        };
        for (name, gid) in &gids {
            let is_member = gid.is_some_and(|gid| member_of.contains(&gid));
            known.insert((*uid, (*name).clone()), is_member);
        }
    }
    known
}

/// The groups of a user, none for a uid without a name; `None` if the name service fails.
fn groups_of_user(uid: u32) -> Option<Vec<Gid>> {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => getgrouplist(&CString::new(user.name).ok()?, user.gid).ok(),
        Ok(None) => Some(Vec::new()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> SharingRule {
        toml::from_str(text).unwrap()
    }

    fn sharer(uid: u32, application: &str) -> Sharer {
        Sharer {
            study_id: 1,
            cluster: "alpha".to_owned(),
            uid,
            application: application.to_owned(),
            share: None,
        }
    }

    fn known(groups: &[(u32, &str, bool)]) -> Membership {
        let groups = groups
            .iter()
            .map(|(uid, group, is_member)| ((*uid, (*group).to_owned()), *is_member));
        Membership {
            groups: groups.collect(),
            associations: HashMap::new(),
        }
    }

    /// Attack (sharing): A user outside a rule's group has the rule's application.
    /// Outcome: The rule does not let the user share.
    #[test]
    fn the_first_rule_of_ones_own_decides() {
        let rules = [
            rule("applications = [\"ocean*\", \"ice\"]\ngroup = \"polar\""),
            rule("applications = [\"*\"]\ngroup = \"all\""),
        ];
        let known = known(&[
            (1, "polar", true),
            (1, "all", true),
            (2, "polar", false),
            (2, "all", true),
            (3, "polar", false),
            (3, "all", false),
        ]);
        for (uid, application, expected) in [
            (1, "ocean-3d", Some("group polar")),
            (1, "ice", Some("group polar")),
            (1, "iceberg", Some("group all")),
            (2, "ocean", Some("group all")),
            (3, "ocean", None),
        ] {
            let found = share(&rules, &sharer(uid, application), &known).unwrap();
            assert_eq!(found.as_deref(), expected, "{uid} {application}");
        }
    }

    #[test]
    fn while_nobody_can_be_asked_all_stays_as_it_is() {
        let by_group = [rule("applications = [\"ocean\"]\ngroup = \"polar\"")];
        let by_account = [rule("applications = [\"ocean\"]\naccount = \"physics\"")];
        for rules in [&by_group, &by_account] {
            assert_eq!(share(rules, &sharer(1, "ocean"), &known(&[])), None);
            let another = share(rules, &sharer(1, "ice"), &known(&[]));
            assert_eq!(another, Some(None), "no rule is about it");
        }
        let asked = Membership {
            associations: [(
                "alpha".to_owned(),
                Arc::new(crate::slurm::associations::tests::known()),
            )]
            .into(),
            ..Membership::default()
        };
        let elsewhere = Sharer {
            cluster: "beta".to_owned(),
            ..sharer(1001, "ocean")
        };
        assert_eq!(
            share(&by_account, &elsewhere, &asked),
            None,
            "it tells nobody's"
        );
        for (uid, expected) in [(1001, Some("account physics")), (1002, None)] {
            let found = share(&by_account, &sharer(uid, "ocean"), &asked).unwrap();
            assert_eq!(found.as_deref(), expected, "{uid}");
        }
    }

    #[test]
    fn root_is_in_its_group_and_nobody_is_in_one_that_does_not_exist() {
        let groups = ["root", "no-such-group"].map(str::to_owned).into();
        let found = groups_of(&[0, 4_000_000_000].into(), &groups);
        for (uid, group, expected) in [
            (0, "root", true),
            (0, "no-such-group", false),
            (4_000_000_000, "root", false),
        ] {
            assert_eq!(found[&(uid, group.to_owned())], expected, "{uid} {group}");
        }
    }

    #[test]
    fn a_wrong_rule_is_refused_with_its_number_and_what_is_wrong() {
        let good = "applications = [\"ocean\"]\ngroup = \"polar\"";
        for (text, associations, problem) in [
            (good, false, None),
            (
                "applications = [\"calc_~cfe40eec2f\"]\ngroup = \"polar\"",
                false,
                None,
            ),
            ("applications = [\"*\"]\naccount = \"physics\"", true, None),
            (
                "applications = [\"*\"]\naccount = \"physics\"",
                false,
                Some("associations = true"),
            ),
            (
                "applications = []\ngroup = \"polar\"",
                false,
                Some("1 to 1000"),
            ),
            (
                "applications = [\"o*n\"]\ngroup = \"polar\"",
                false,
                Some("\"o*n\" is neither"),
            ),
            ("applications = [\"ocean\"]", false, Some("either")),
            (
                "applications = [\"ocean\"]\ngroup = \"a\"\naccount = \"b\"",
                true,
                Some("either"),
            ),
            (
                "applications = [\"ocean\"]\ngroup = \"po\\nlar\"",
                false,
                Some("no name of a group"),
            ),
        ] {
            let checked = SharingRule::validate(&[rule(good), rule(text)], associations);
            match problem {
                None => assert_eq!(checked, Ok(()), "{text}"),
                Some(problem) => {
                    let error = checked.unwrap_err();
                    assert!(error.starts_with("rule 2: "), "{error}");
                    assert!(error.contains(problem), "{error}");
                }
            }
        }
        assert!(toml::from_str::<SharingRule>("applications = []\nuser = \"a\"").is_err());
    }
}
