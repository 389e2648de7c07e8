//! Log lines that anybody can cause: a few a second are written, the others counted.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in each [`WINDOW`].
const LINES: u64 = 10;

const WINDOW: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Seldom(Mutex<Option<Count>>);

#[derive(Debug)]
struct Count {
    since: Instant,
    asked: u64,
}

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The number of lines left out since the last one that was written; `None` if this one is left
    /// out too.
    pub(crate) fn now(&self) -> Option<u64> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Option<u64> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *count {
            Some(count) if now.duration_since(count.since) < WINDOW => {
                count.asked += 1;
                (count.asked <= LINES).then_some(0)
            }
            count => {
                let left_out = count
                    .as_ref()
                    .map_or(0, |count| count.asked.saturating_sub(LINES));
                *count = Some(Count {
                    since: now,
                    asked: 1,
                });
                Some(left_out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_are_written_and_the_others_counted() {
        let (seldom, now) = (Seldom::new(), Instant::now());
        let written = (0..1000).filter_map(|_| seldom.at(now)).count();
        assert_eq!(written, usize::try_from(LINES).unwrap());
        assert_eq!(seldom.at(now + WINDOW), Some(990));
        assert_eq!(seldom.at(now + WINDOW), Some(0));
    }
}
