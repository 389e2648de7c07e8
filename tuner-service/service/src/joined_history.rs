//! The history of a study together with those of the studies that share with it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use io_autotune_engine::{History, Member, Members, Parametrization};

/// The study itself, among the members; the others have the numbers from 1 in their order.
const OWN: Member = 0;

/// The evidence for a study's next run.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    /// The study's own history, with others' runs if they are used, scaled to its own seconds.
    pub(crate) history: Cow<'a, History>,
    /// Why others' runs are used or not; `None` if there are no others.
    pub(crate) hearing: Option<Hearing>,
}

/// The use of others' runs in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Others' runs decide together with its own.
    Together { users: usize },
    /// Too few users have a counted run.
    Few { users: usize },
    /// The study has too few runs of the default.
    Unmeasured,
    /// The study's runs respond differently from the others'.
    Differs,
}

/// The evidence for a study's next run, of its own history and the others'. A function of the
/// histories alone: a replay has the same result.
pub(crate) fn heard<'a>(
    own: &'a History,
    others: impl IntoIterator<Item = &'a History>,
    default: &Parametrization,
) -> Heard<'a> {
    let mut all: BTreeMap<Member, &History> = (1..).zip(others).collect();
    if all.is_empty() {
        return Heard {
            history: Cow::Borrowed(own),
            hearing: None,
        };
    }
    all.insert(OWN, own);
    let members = Members::new(all, default);
    let users = members.active();
    let hearing = if members.hears(OWN) {
        Hearing::Together { users }
    } else if members.outliers().contains(&OWN) {
        Hearing::Differs
    } else if users < io_autotune_engine::LEAST_MEMBERS {
        Hearing::Few { users }
    } else {
        Hearing::Unmeasured
    };
    Heard {
        history: Cow::Owned(members.history(OWN)),
        hearing: Some(hearing),
    }
}
