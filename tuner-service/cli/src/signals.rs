//! Ctrl-C, and a request to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The time in which a signal is heard.
const HEARD: Duration = Duration::from_millis(50);

/// The signals that ask the process to end.
#[derive(Clone, Debug)]
pub(crate) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Takes them from now on. Further ones change nothing: `timeout` sends its own twice, and what runs
    /// is ended within seconds.
    pub(crate) fn taken() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let ignored = ignored();
        let taken = [SIGINT, SIGTERM, SIGHUP].into_iter();
        // nohup, and a shell for what it starts in the background, have some ignored: they stay so.
        for signal in taken.filter(|signal| ignored >> (signal - 1) & 1 == 0) {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Signals(asked))
    }

    /// True if one came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits so long, or until one comes. Nothing else runs on the thread meanwhile.
    pub(crate) fn wait(&self, time: Duration) {
        let began = Instant::now();
        while !self.came() {
            match time.checked_sub(began.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(HEARD)),
                _ => return,
            }
        }
    }
}

/// The signals that are ignored, a bit each; none where the kernel does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
