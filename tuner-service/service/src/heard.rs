//! What a study knows together with the studies that it hears.

use std::borrow::Cow;
use std::collections::BTreeMap;

use io_autotune_engine::{History, Member, Members, Parametrization};

/// The study itself, among its users; the others are numbered on in their order.
const OWN: Member = 0;

/// What is known for a study's next run.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    /// With others' runs as far as they are believed, in the seconds of its own.
    pub(crate) history: Cow<'a, History>,
    /// Why others' runs are in it or not; `None`: there are no others.
    pub(crate) hearing: Option<Hearing>,
}

/// Whether others' runs decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Theirs and its own.
    Together { users: usize },
    /// Too few users have a counted run.
    Few { users: usize },
    /// Its own runs of the default are too few.
    Unmeasured,
    /// Tuning serves it otherwise than the others.
    Differs,
}

/// A function of the histories: a replay has the same.
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
