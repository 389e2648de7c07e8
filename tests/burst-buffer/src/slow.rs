//! The slow side: a directory behind a rate limit of the instrument's own. The kernel's throttle
//! holds for direct and synchronous I/O only; buffered writes escape it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlowSettings {
    /// Bytes a second that all streams share.
    pub(crate) rate: f64,
    /// The time that each request waits in addition while there are others.
    pub(crate) latency: Duration,
    /// So many streams at once cost nothing.
    pub(crate) streams: usize,
    /// The share of time that each one more costs all.
    pub(crate) penalty: f64,
    /// The share of the rate that a neighbour takes on average.
    pub(crate) neighbour: f64,
}

/// The slow side's one link.
#[derive(Debug)]
pub(crate) struct Link {
    settings: SlowSettings,
    free_at: Mutex<Instant>,
    streams: AtomicUsize,
}

impl Link {
    pub(crate) fn new(settings: SlowSettings) -> Self {
        Self {
            settings,
            free_at: Mutex::new(now()),
            streams: AtomicUsize::new(0),
        }
    }

    /// Waits as long as carrying `bytes` takes.
    pub(crate) fn carry(&self, bytes: usize) {
        let streams = self.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let more = streams.saturating_sub(self.settings.streams);
        let end = self.reserve(bytes, 1.0 + self.settings.penalty * as_f64(more));
        thread::sleep(end.saturating_duration_since(now()) + self.settings.latency);
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the link's next free time for so many bytes; returns when they are through.
    fn reserve(&self, bytes: usize, factor: f64) -> Instant {
        let takes = Duration::from_secs_f64(as_f64(bytes) / self.settings.rate * factor);
        let mut free_at = self.free_at.lock().unwrap_or_else(|held| held.into_inner());
        *free_at = (*free_at).max(now()) + takes;
        *free_at
    }

    /// Somebody else's work: bursts of up to a fifth of a second, at random times. A run then takes
    /// as long as its neighbour lets it, as on the papers' cluster.
    pub(crate) fn disturb(&self, seed: u64) {
        const LONGEST: f64 = 0.2;
        if self.settings.neighbour <= 0.0 {
            return;
        }
        let mut state = seed | 1;
        let mut uniform = move || {
            // Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
            let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
            share
        };
        loop {
            let burst = LONGEST * uniform();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a fifth of a second of any rate"
            )]
            let end = self.reserve((burst * self.settings.rate) as usize, 1.0);
            let share = self.settings.neighbour.min(0.9);
            let rest = 2.0 * uniform() * burst * (1.0 - share) / share;
            thread::sleep(end.saturating_duration_since(now()) + Duration::from_secs_f64(rest));
        }
    }
}

fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn as_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SETTINGS: SlowSettings = SlowSettings {
        rate: 1e6,
        latency: Duration::from_millis(20),
        streams: 2,
        penalty: 0.5,
        neighbour: 0.0,
    };

    fn seconds(streams: usize, each: usize, settings: SlowSettings) -> f64 {
        let link = Arc::new(Link::new(settings));
        let begin = now();
        let threads: Vec<_> = (0..streams)
            .map(|_| {
                let link = Arc::clone(&link);
                thread::spawn(move || link.carry(each))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        begin.elapsed().as_secs_f64()
    }

    #[test]
    fn streams_share_the_rate_and_wait_for_latency_beside_each_other() {
        let two = seconds(2, 50_000, SETTINGS);
        assert!(
            (0.12..0.4).contains(&two),
            "{two} s for 100 kB and one latency"
        );
    }

    #[test]
    fn more_streams_than_the_slow_side_likes_cost_all() {
        let four = seconds(4, 25_000, SETTINGS);
        assert!(
            four > 0.155,
            "{four} s: the third and fourth cost half and all of theirs more"
        );
    }
}
