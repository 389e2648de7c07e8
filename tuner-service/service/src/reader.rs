//! What of a run is told to whom.
//!
//! Which runs of a settled study are control runs is drawn, so that nobody can tell beforehand. Who
//! could tell while a run goes on could cancel the control runs, or those that go slowly, and what
//! is left would prove what is not so.

use io_autotune_store::{Coordinated, RunRow};

/// Whose studies and runs are visible, or meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// This owner's; without `coordinated`, `None` is everyone's.
    pub(crate) owner_uid: Option<u32>,
    /// And these.
    pub(crate) coordinated: Option<Coordinated>,
}

impl Seen {
    /// What of it is this user's. `None`: nothing.
    pub(crate) fn of(self, uid: Option<u32>) -> Option<Self> {
        let Some(uid) = uid else {
            return Some(self);
        };
        if self.owner_uid == Some(uid) || self == Self::default() {
            return Some(Self {
                owner_uid: Some(uid),
                coordinated: None,
            });
        }
        let mut coordinated = self.coordinated?;
        coordinated.members.retain(|(_, member, _)| *member == uid);
        (!coordinated.members.is_empty()).then_some(Self {
            owner_uid: None,
            coordinated: Some(coordinated),
        })
    }
}

/// Who asks about runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Of everyone's runs, all of it.
    Admin,
    /// Of everyone's runs, what their users are told.
    Operator,
    /// Of the user's own runs, and of those of the members of accounts that the user coordinates,
    /// what their users are told.
    Coordinator(u32),
    /// Of the user's own runs.
    User(u32),
}

impl Reader {
    /// The owner whose studies and runs are visible, whatever account they are charged to; `None`:
    /// everyone's.
    pub(crate) fn owner(self) -> Option<u32> {
        match self {
            Reader::Admin | Reader::Operator => None,
            Reader::Coordinator(uid) | Reader::User(uid) => Some(uid),
        }
    }

    /// Whether what is seen, and of this owner, is also changed by who reads it, who has this uid.
    pub(crate) fn changes(self, uid: u32, owner_uid: u32) -> bool {
        match self {
            Reader::Admin | Reader::Coordinator(_) => true,
            Reader::Operator | Reader::User(_) => owner_uid == uid,
        }
    }

    /// Whether the run's role is told, and what tells of it: what was given, applied and reported.
    pub(crate) fn learns_label(self, run: &RunRow) -> bool {
        self == Reader::Admin || !run.label_pends
    }

    /// Whether the inputs of its suggestion are told, and its reason, which may count what was in
    /// flight.
    pub(crate) fn learns_inputs(self, run: &RunRow) -> bool {
        self == Reader::Admin || !run.inputs_pend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_change_their_own_alone_and_coordinators_what_they_see() {
        for (reader, of_others) in [
            (Reader::Admin, true),
            (Reader::Coordinator(7), true),
            (Reader::Operator, false),
            (Reader::User(7), false),
        ] {
            assert!(reader.changes(7, 7), "{reader:?}");
            assert_eq!(reader.changes(7, 8), of_others, "{reader:?}");
        }
    }

    /// Attack (others): A user or a coordinator asks for what is one user's.
    /// Outcome: That is never more than what they see anyway.
    #[test]
    fn what_is_seen_of_one_user_is_never_more_than_what_is_seen() {
        let of = |owner_uid, members: Option<&[(u32, &str)]>| Seen {
            owner_uid,
            coordinated: members.map(|members| Coordinated {
                members: members
                    .iter()
                    .map(|(uid, account)| ("alpha".to_owned(), *uid, (*account).to_owned()))
                    .collect(),
            }),
        };
        let everyone = of(None, None);
        assert_eq!(everyone.clone().of(None), Some(everyone.clone()));
        assert_eq!(everyone.of(Some(7)), Some(of(Some(7), None)));
        let own = of(Some(7), None);
        assert_eq!(own.clone().of(Some(7)), Some(own.clone()));
        assert_eq!(own.of(Some(8)), None);
        let more = of(Some(7), Some(&[(7, "a"), (8, "a"), (8, "b"), (9, "b")]));
        assert_eq!(more.clone().of(None), Some(more.clone()));
        assert_eq!(more.clone().of(Some(7)), Some(of(Some(7), None)));
        let theirs = of(None, Some(&[(8, "a"), (8, "b")]));
        assert_eq!(more.clone().of(Some(8)), Some(theirs));
        assert_eq!(more.of(Some(10)), None);
        // A coordinator of nobody is not everyone.
        assert_eq!(of(Some(7), Some(&[])).of(Some(8)), None);
    }
}
