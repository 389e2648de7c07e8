//! Ctrl-C, and a request to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the process was asked to end.
#[derive(Clone, Debug)]
pub(super) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Takes them from now on. Further ones change nothing: `timeout` sends its own twice, and what runs
    /// is ended within seconds.
    pub(super) fn taken() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let ignored = ignored();
        let taken = [SIGINT, SIGTERM, SIGHUP].into_iter();
        // nohup, and a shell for what it starts in the background, have some ignored: they stay so.
        for signal in taken.filter(|signal| ignored >> (signal - 1) & 1 == 0) {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Signals(asked))
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The signals that are ignored, a bit each; none where the kernel does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
