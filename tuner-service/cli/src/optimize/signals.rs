//! Ctrl-C, and a request to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the process was asked to end.
#[derive(Clone, Debug)]
pub(super) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Takes them from now on. A second one ends the process as ever.
    pub(super) fn taken() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))?;
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Signals(asked))
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
