//! A node's two clocks: stamps use the monotonic clock, and other nodes only share the time of day.

use jiff::{SignedDuration, Timestamp};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    now: Timestamp,
    /// The monotonic clock, in nanoseconds.
    monotonic: u64,
}

impl Clocks {
    /// Both clocks at present; none if the monotonic one cannot be read.
    pub(crate) fn now() -> Option<Self> {
        let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
        Some(Self {
            now: Timestamp::now(),
            monotonic: u64::try_from(monotonic.num_nanoseconds()).ok()?,
        })
    }

    /// The time of day at an instant of the monotonic clock; none for an instant in the future.
    pub(crate) fn at(self, monotonic: u64) -> Option<Timestamp> {
        let ago = i64::try_from(self.monotonic.checked_sub(monotonic)?).ok()?;
        self.now.checked_sub(SignedDuration::from_nanos(ago)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_as_long_ago_by_both_clocks() {
        let clocks = Clocks {
            now: "2026-11-28T12:00:00Z".parse().unwrap(),
            monotonic: 5_000_000_000,
        };
        let at = clocks.at(2_000_000_000).unwrap();
        assert_eq!(at.to_string(), "2026-11-28T11:59:57Z");
        assert_eq!(clocks.at(6_000_000_000), None);
        assert!(Clocks::now().is_some());
    }
}
