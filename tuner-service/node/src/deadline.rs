//! The deadline of a run of the helper, counted from the start of the process.

use std::time::{Duration, Instant};

/// The moment by which the helper must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) end: Instant,
}

impl Deadline {
    /// The time reserved for writing files and an orderly exit.
    const RESERVE: Duration = Duration::from_millis(50);

    /// The time left for other work.
    pub(crate) fn left(self) -> Duration {
        self.end
            .saturating_duration_since(Instant::now())
            .saturating_sub(Self::RESERVE)
    }
}
