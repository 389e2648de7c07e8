//! The data node's cores, which workers and destagers compete for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreSettings {
    /// The time that a request, or a block that is carried, costs a thread: network and protocol.
    pub(crate) turn: Duration,
    /// So many threads at once cost nothing.
    pub(crate) cores: usize,
    /// The share of time that each one more costs all.
    pub(crate) contention: f64,
}

#[derive(Debug)]
pub(crate) struct Cores {
    settings: CoreSettings,
    busy: AtomicUsize,
}

impl Cores {
    pub(crate) fn new(settings: CoreSettings) -> Self {
        Self {
            settings,
            busy: AtomicUsize::new(0),
        }
    }

    /// Waits as long as one thing takes beside what others do.
    pub(crate) fn take_turn(&self) {
        let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
        let more = u32::try_from(busy.saturating_sub(self.settings.cores)).unwrap_or(u32::MAX);
        let factor = 1.0 + self.settings.contention * f64::from(more);
        thread::sleep(self.settings.turn.mul_f64(factor));
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::time::Instant;

    use super::*;

    fn seconds(threads: usize) -> f64 {
        let cores = Arc::new(Cores::new(CoreSettings {
            turn: Duration::from_millis(50),
            cores: 2,
            contention: 1.0,
        }));
        let together = Arc::new(Barrier::new(threads));
        let begin = Instant::now();
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let (cores, together) = (Arc::clone(&cores), Arc::clone(&together));
                thread::spawn(move || {
                    together.wait();
                    cores.take_turn();
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        begin.elapsed().as_secs_f64()
    }

    #[test]
    fn more_threads_than_cores_cost_all_of_them_time() {
        let (two, four) = (seconds(2), seconds(4));
        assert!(two >= 0.05, "{two} s for one turn");
        assert!(four >= 0.15, "{four} s: the fourth waits for two more");
    }
}
