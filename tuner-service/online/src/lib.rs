//! Tuning while a job runs. In every period a [`Policy`] gets the activity of a client's I/O path
//! and the values that are set, and returns the values to set next. It reads no clock, no file and
//! no randomness.
//!
//! [`IoPathTune`] is the published policy, [`Settling`] the project's own. [`Responsive`] keeps
//! either from moving levers that have no effect.

mod iopathtune;
mod responsive;
mod settling;

pub use iopathtune::{Contention, Directions, IoPathTune};
pub use responsive::Responsive;
pub use settling::Settling;

/// The bounds of a lever: a numeric setting that takes effect at once, as Lustre's
/// `max_pages_per_rpc` and `max_rpcs_in_flight` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lever {
    /// The smallest value, at least 1.
    pub least: u64,
    /// The largest value, at least `least`.
    pub most: u64,
}

/// The direction in which a lever moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To twice its value.
    Up,
    /// To half its value.
    Down,
}

/// The activity of a client's I/O path in a period: the four metrics of Rashid et al., "Design of
/// IOPathTune", each with their words for it. Reads count as writes do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// "How much data is in the dirty page cache": at the end of the period, in bytes.
    pub dirty: f64,
    /// "How fast the pages are getting cached": what programs put into the page cache or take from
    /// it, in bytes a second.
    pub cached: f64,
    /// "How quickly the client can generate RPCs": requests per second.
    pub requests: f64,
    /// "What speed the client is achieving while transferring RPCs": bytes a second.
    pub bandwidth: f64,
}

/// The values to set for the next period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The value of each lever.
    pub values: Vec<u64>,
    /// The reason.
    pub reason: Reason,
}

/// The reason why levers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing has moved yet.
    First,
    /// The last move increased the bandwidth.
    Faster,
    /// The last move did not increase the bandwidth.
    NotFaster,
    /// Data pile up since the last move, so it is taken back.
    Contention,
    /// The setting is tried to learn its effect.
    Try,
    /// The levers go back to the best known setting, because the one that was tried is not better.
    Back,
    /// The work has changed to one that was met before: its best setting is used.
    KnownWork,
    /// The work has changed to an unknown one: the default is measured with it.
    OtherWork,
    /// The lever has no effect, so it goes back to its initial value for good.
    Unresponsive,
}

/// A policy that decides which values to set.
pub trait Policy {
    /// Called at the end of a period with its observation, `None` if a statistic is missing, and
    /// the values that are set, one for each lever. `None` leaves everything as it is.
    fn act(&mut self, seen: Option<&Observation>, set: &[u64]) -> Option<Action>;

    /// Sets new bounds of a lever, because the device has refused a value or does not respond.
    fn narrow(&mut self, lever: usize, bounds: Lever);
}

impl Lever {
    /// A lever with a single value.
    #[must_use]
    pub fn at(value: u64) -> Self {
        Lever {
            least: value,
            most: value,
        }
    }

    /// Returns true if a value is within the bounds.
    #[must_use]
    pub fn takes(self, value: u64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// Twice or half the value, within the bounds.
    #[must_use]
    pub fn moved(self, value: u64, direction: Direction) -> u64 {
        match direction {
            Direction::Up => value.saturating_mul(2),
            Direction::Down => value / 2,
        }
        .clamp(self.least, self.most)
    }
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

impl Observation {
    /// Returns true if nothing moved and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.bandwidth <= 0.0 && self.dirty <= 0.0
    }

    /// Returns true if the numbers are possible for a path.
    fn is_sound(&self) -> bool {
        [self.dirty, self.cached, self.requests, self.bandwidth]
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0)
    }
}
