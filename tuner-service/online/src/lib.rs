//! Tuning while a job runs. A [`Policy`] is told every period what a client's I/O path did and what
//! is set, and says what to set next. It reads no clock, no file and no randomness.
//!
//! [`IoPathTune`] is the published one, [`Settling`] ours. [`Responsive`] stops either from moving
//! what does nothing.

mod iopathtune;
mod responsive;
mod settling;

pub use iopathtune::{Directions, IoPathTune};
pub use responsive::Responsive;
pub use settling::Settling;

/// The bounds of a lever: a numeric setting that takes effect at once, as Lustre's
/// `max_pages_per_rpc` and `max_rpcs_in_flight` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lever {
    /// At least 1.
    pub least: u64,
    /// At least `least`.
    pub most: u64,
}

/// Where a lever moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To twice its value.
    Up,
    /// To half of it.
    Down,
}

/// What a client's I/O path did in a period: the four metrics of Rashid et al., "Design of
/// IOPathTune". Reads count as writes do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Data that waits in the page cache at the period's end, bytes.
    pub dirty: f64,
    /// How fast programs put data into the page cache or take it from there, bytes a second.
    pub cached: f64,
    /// How many requests the client made, a second.
    pub requests: f64,
    /// How fast they moved data, bytes a second.
    pub bandwidth: f64,
}

/// What to set for the next period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The value of each lever.
    pub values: Vec<u64>,
    /// Why.
    pub reason: Reason,
}

/// Why levers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing has moved yet.
    First,
    /// The last move brought bandwidth.
    Faster,
    /// It did not.
    NotFaster,
    /// Data piles up since the last move: it is taken back.
    Contention,
    /// To learn what this does.
    Try,
    /// Back to the best known: what was tried is not better.
    Back,
    /// The work is another one, which was met before: its best.
    KnownWork,
    /// The work is another one: what the default does with it.
    OtherWork,
    /// This lever changes nothing: back to where it began, for good.
    Unresponsive,
}

/// Decides what to set.
pub trait Policy {
    /// At a period's end: what was seen in it, `None` if a statistic is missing, and what is set, a
    /// value of each lever. `None` leaves everything as it is.
    fn act(&mut self, seen: Option<&Observation>, set: &[u64]) -> Option<Action>;

    /// From now on a lever has these bounds: the device has refused a value, or does not respond.
    fn narrow(&mut self, lever: usize, bounds: Lever);
}

impl Lever {
    /// A lever that stays where it is.
    #[must_use]
    pub fn at(value: u64) -> Self {
        Lever {
            least: value,
            most: value,
        }
    }

    /// Whether a value is within the bounds.
    #[must_use]
    pub fn takes(self, value: u64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// Twice or half of a value, within the bounds.
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
    /// The other one.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

impl Observation {
    /// Nothing moved, and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.bandwidth <= 0.0 && self.dirty <= 0.0
    }

    /// The numbers are what a path can do.
    fn is_sound(&self) -> bool {
        [self.dirty, self.cached, self.requests, self.bandwidth]
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0)
    }
}
