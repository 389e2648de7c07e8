//! The users of accounts and the coordinators of these: slurmdbd's associations.
//!
//! They are asked for because a user may write any text as the account of a job where
//! AccountingStorageEnforce lacks `associations`.

mod live;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use io_autotune_protocol::is_account;

pub(crate) use self::live::LiveAssociations;

/// The most pairs of a member and an account that a coordinator may have: they are a part of each
/// of the coordinator's queries to the database. A user who coordinates more is better made an
/// operator.
const MOST_PAIRS: usize = 10_000;

/// The associations of one cluster at one moment, by uid.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Associations {
    members: BTreeMap<String, BTreeSet<u32>>,
    coordinated: BTreeMap<u32, BTreeSet<String>>,
    /// The users who coordinate too much, and therefore nothing.
    too_wide: BTreeSet<u32>,
}

impl Associations {
    /// Returns true if the user has an association with the account itself; one with an account
    /// below it does not count.
    pub(crate) fn is_member(&self, uid: u32, account: &str) -> bool {
        let members = self.members.get(account);
        members.is_some_and(|members| members.contains(&uid))
    }

    /// The users who have an association with the account.
    pub(crate) fn members(&self, account: &str) -> impl Iterator<Item = u32> {
        self.members.get(account).into_iter().flatten().copied()
    }

    /// The accounts that the user coordinates; Slurm includes the accounts below them. Root
    /// coordinates none, as otherwise root of any node would.
    pub(crate) fn coordinated_by(&self, uid: u32) -> impl Iterator<Item = &str> {
        let accounts = self.coordinated.get(&uid).into_iter().flatten();
        accounts.map(String::as_str)
    }

    /// Each member of each account that the user coordinates, with the account.
    pub(crate) fn members_coordinated_by(&self, uid: u32) -> Vec<(u32, String)> {
        let accounts = self.coordinated_by(uid);
        accounts
            .flat_map(|account| {
                let members = self.members(account);
                members.map(move |member| (member, account.to_owned()))
            })
            .collect()
    }

    /// The numbers of users, of accounts with users, and of coordinators.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let users: BTreeSet<u32> = self.members.values().flatten().copied().collect();
        (users.len(), self.members.len(), self.coordinated.len())
    }

    /// The users who would coordinate more than [`MOST_PAIRS`], and have no role for that reason.
    pub(crate) fn too_wide(&self) -> &BTreeSet<u32> {
        &self.too_wide
    }

    fn of(names: &Names<'_>, uids: &HashMap<String, u32>) -> Self {
        let mut known = Self::default();
        for (account, user) in &names.members {
            if let Some(uid) = uids.get(*user) {
                let members = known.members.entry((*account).to_owned()).or_default();
                members.insert(*uid);
            }
        }
        for (account, user) in &names.coordinators {
            if let Some(uid) = uids.get(*user).filter(|uid| **uid != 0) {
                let accounts = known.coordinated.entry(*uid).or_default();
                accounts.insert((*account).to_owned());
            }
        }
        let size = |account: &String| known.members.get(account).map_or(0, BTreeSet::len);
        let wide = known.coordinated.iter();
        let wide =
            wide.filter(|(_, accounts)| accounts.iter().map(size).sum::<usize>() > MOST_PAIRS);
        known.too_wide = wide.map(|(uid, _)| *uid).collect();
        for uid in &known.too_wide {
            known.coordinated.remove(uid);
        }
        known
    }
}

/// The lists of sacctmgr, by name: each account with a user.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names<'a> {
    members: BTreeSet<(&'a str, &'a str)>,
    coordinators: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Names<'a> {
    /// Parses the output for [`Names::OF_MEMBERS`] and [`Names::OF_COORDINATORS`]. Lines of another
    /// form are left out.
    fn parse(members: &'a str, coordinators: &'a str) -> Self {
        // An account's own association, which has no user, is left out with the others.
        let members = lines(members).filter(|(_, user)| is_user(user)).collect();
        let coordinators = lines(coordinators).flat_map(|(account, users)| {
            let users = users.split(',').filter(|user| is_user(user));
            users.map(move |user| (account, user))
        });
        Self {
            members,
            coordinators: coordinators.collect(),
        }
    }

    fn users(&self) -> BTreeSet<&'a str> {
        let pairs = self.members.iter().chain(&self.coordinators);
        pairs.map(|(_, user)| *user).collect()
    }

    /// The arguments besides `cluster=`.
    const OF_MEMBERS: [&'static str; 6] = [
        "--readonly",
        "--noheader",
        "--parsable2",
        "show",
        "associations",
        "format=Account,User",
    ];
    const OF_COORDINATORS: [&'static str; 7] = [
        "--readonly",
        "--noheader",
        "--parsable2",
        "show",
        "account",
        "withcoord",
        "format=Account,Coordinators",
    ];
}

/// The two columns of each line that has two and begins with an account.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (account, users) = line.split_once('|')?;
        (is_account(account) && !users.contains('|')).then_some((account, users))
    })
}

/// Returns true if a text may be a login name: 1 to 256 printable ASCII characters, none of them a
/// separator.
fn is_user(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b",|:/".contains(&byte);
    (1..=256).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// As 22.05.8 prints them; optics is below physics, which bob coordinates.
    const MEMBERS: &str = "\
root|
root|root
chemistry|
chemistry|bob
physics|
physics|alice
physics|alice
optics|
optics|alice
optics|gone
";
    const COORDINATORS: &str = "\
chemistry|alice,bob,root
optics|bob
physics|bob
root|
";

    /// Root is uid 0, alice 1001, bob 1002.
    pub(crate) fn known() -> Associations {
        let uids = [("root", 0), ("alice", 1001), ("bob", 1002)];
        let uids = uids.map(|(name, uid)| (name.to_owned(), uid)).into();
        Associations::of(&Names::parse(MEMBERS, COORDINATORS), &uids)
    }

    /// Attack (parsers): The output of sacctmgr.
    /// Outcome: Root coordinates nothing.
    #[test]
    fn fuzz_associations() {
        let samples = [MEMBERS, COORDINATORS];
        io_autotune_fuzzing::Target::new("associations", &samples).run(|input| {
            let text = String::from_utf8_lossy(input);
            let names = Names::parse(&text, &text);
            for (account, user) in names.members.iter().chain(&names.coordinators) {
                assert!(is_account(account) && is_user(user));
            }
            let uids = names.users().into_iter().zip(0..);
            let uids = uids.map(|(name, uid)| (name.to_owned(), uid)).collect();
            let known = Associations::of(&names, &uids);
            assert_eq!(known.coordinated_by(0).count(), 0);
            for uid in uids.values() {
                for (member, account) in known.members_coordinated_by(*uid) {
                    assert!(known.is_member(member, &account));
                }
            }
        });
    }

    #[test]
    fn members_and_coordinators_are_told_by_uid() {
        let known = known();
        assert!(known.is_member(1001, "physics") && known.is_member(1001, "optics"));
        assert!(!known.is_member(1001, "chemistry") && !known.is_member(1002, "physics"));
        assert!(!known.is_member(1001, "nothing") && !known.is_member(7, "physics"));
        assert_eq!(
            Vec::from_iter(known.members("optics")),
            [1001],
            "gone has no uid"
        );
        assert_eq!(Vec::from_iter(known.coordinated_by(1001)), ["chemistry"]);
        let bobs = Vec::from_iter(known.coordinated_by(1002));
        assert_eq!(bobs, ["chemistry", "optics", "physics"]);
        let pair = |uid, account: &str| (uid, account.to_owned());
        assert_eq!(
            known.members_coordinated_by(1002),
            [
                pair(1002, "chemistry"),
                pair(1001, "optics"),
                pair(1001, "physics")
            ]
        );
        assert_eq!(known.counts(), (3, 4, 2));
    }

    /// Attack (others): Slurm has root coordinate an account, and root of any node asks.
    #[test]
    fn root_of_any_node_coordinates_nothing() {
        assert_eq!(known().coordinated_by(0).count(), 0);
    }

    #[test]
    fn what_is_no_account_or_no_user_is_left_out() {
        for line in [
            "",
            "physics",
            "|alice",
            "phy sics|alice",
            "physics|al ice",
            "physics|alice|bob",
            "physics|\u{e4}lice",
            "physics|../alice",
        ] {
            let names = Names::parse(line, line);
            assert_eq!(names, Names::default(), "{line}");
        }
        let names = Names::parse("", "physics|alice,,b b,bob");
        let found = Vec::from_iter(&names.coordinators);
        assert_eq!(found, [&("physics", "alice"), &("physics", "bob")]);
    }

    /// Attack (others): One user coordinates too many members.
    /// Outcome: With more than 10,000 pairs of member and account they coordinate nobody; `doctor`
    /// names them.
    #[test]
    fn who_would_coordinate_too_many_coordinates_nobody() {
        let users = (1..=MOST_PAIRS).map(|user| format!("all|u{user}\n"));
        let mut members: String = users.collect();
        let uids = (1..=MOST_PAIRS + 1).map(|user| (format!("u{user}"), user as u32));
        let uids = uids.collect();
        let of = |members: &str| Associations::of(&Names::parse(members, "all|u1\nsome|u2"), &uids);
        let most = of(&members);
        assert_eq!(most.members_coordinated_by(1).len(), MOST_PAIRS);
        assert!(most.too_wide().is_empty());
        members.push_str(&format!("all|u{}\n", MOST_PAIRS + 1));
        let too_many = of(&members);
        assert_eq!(too_many.coordinated_by(1).count(), 0);
        assert_eq!(Vec::from_iter(too_many.too_wide()), [&1]);
        assert_eq!(Vec::from_iter(too_many.coordinated_by(2)), ["some"]);
    }
}
