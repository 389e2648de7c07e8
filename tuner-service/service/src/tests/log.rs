//! What the service logs, for tests of what is to be told to an admin.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::subscriber::DefaultGuard;

/// What is logged by the test's own thread as long as it lives.
pub(crate) struct Log {
    lines: Lines,
    _listening: DefaultGuard,
}

impl Log {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            lines,
            _listening: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines that warn, and have this text.
    pub(crate) fn warnings(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock();
        let lines = String::from_utf8_lossy(&lines);
        let warning = lines.lines().filter(|line| line.contains(" WARN "));
        let warning = warning.filter(|line| line.contains(text));
        warning.map(str::to_owned).collect()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
