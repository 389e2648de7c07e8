//! What of a run is told to whom.
//!
//! Which runs of a settled study are control runs is drawn, so that nobody can tell beforehand. Who
//! could tell while a run goes on could cancel the control runs, or those that go slowly, and what
//! is left would prove what is not so.

use io_autotune_store::RunRow;

/// Who asks about runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Of everyone's runs, all of it.
    Admin,
    /// Of everyone's runs, what their users are told.
    Operator,
    /// Of the user's own runs.
    User(u32),
}

impl Reader {
    /// The owner whose studies and runs are visible; `None`: everyone's.
    pub(crate) fn owner(self) -> Option<u32> {
        match self {
            Reader::Admin | Reader::Operator => None,
            Reader::User(uid) => Some(uid),
        }
    }

    /// The owner whose studies and runs are meant if only those of `uid` are asked for. `None`: none
    /// are visible.
    pub(crate) fn among(self, uid: Option<u32>) -> Option<Option<u32>> {
        match (self.owner(), uid) {
            (Some(owner), Some(uid)) if owner != uid => None,
            (owner, uid) => Some(owner.or(uid)),
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
