//! The parts of a run that a reader may learn.
//!
//! Which runs of a settled study are control runs is drawn, so that nobody can predict it. Anybody
//! who could learn it while a run goes on could cancel the control runs, or the slow ones among
//! them, and the remaining runs would prove a gain that there is not.

use io_autotune_store::{Coordinated, RunRow};

/// The studies and runs that are visible, or asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The owner whose studies these are; `None` without `coordinated` is everyone's.
    pub(crate) owner_uid: Option<u32>,
    /// The studies that members charge to coordinated accounts, besides.
    pub(crate) coordinated: Option<Coordinated>,
}

impl Seen {
    /// The part of it that belongs to this user; all of it if `uid` is `None`. Returns `None` if no
    /// part does.
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

/// The reader of studies and runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Reads everyone's runs completely.
    Admin,
    /// Reads everyone's runs, as far as their users may learn.
    Operator,
    /// Reads the user's own runs and those that members charge to accounts that the user
    /// coordinates, as far as their users may learn.
    Coordinator(u32),
    /// Reads the user's own runs.
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

    /// Returns true if the reader, who has this uid, may also change studies of this owner that the
    /// reader sees.
    pub(crate) fn changes(self, uid: u32, owner_uid: u32) -> bool {
        match self {
            Reader::Admin | Reader::Coordinator(_) => true,
            Reader::Operator | Reader::User(_) => owner_uid == uid,
        }
    }

    /// Returns true if the reader may learn the run's role and all that shows it: the given,
    /// applied and reported parametrization.
    pub(crate) fn learns_label(self, run: &RunRow) -> bool {
        self == Reader::Admin || !run.label_pends
    }

    /// Returns true if the reader may learn the inputs of the run's suggestion and its reason,
    /// which may count runs that were in flight.
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
