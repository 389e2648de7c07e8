//! The service's log while a test listens.

use std::io;
use std::sync::{Arc, Mutex, Once};

use serde_json::Value;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::log;

/// The lines that a test's own thread has logged since it [listens](Self::listen), at the default
/// level.
pub(crate) struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines {
    text: Arc<Mutex<Vec<u8>>>,
    at: Arc<Mutex<Option<At>>>,
}

/// A message, and what is done when it is logged.
type At = (&'static str, Box<dyn FnOnce() + Send>);

impl Log {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        // A place in the program whose first line is logged by a thread without a subscriber, while
        // there is just one elsewhere, would be off for all: tracing then asks the thread's alone.
        static ELSEWHERE: Once = Once::new();
        ELSEWHERE.call_once(|| {
            let nowhere = log::subscriber(EnvFilter::new("info"), io::sink);
            tracing::subscriber::set_global_default(nowhere).expect("nobody else sets it");
        });
        let lines = Lines::default();
        let subscriber = log::subscriber(EnvFilter::new("info"), lines.clone());
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines that were not taken yet.
    pub(crate) fn take(&self) -> Vec<Value> {
        read(&std::mem::take(&mut *self.lines.text.lock().unwrap()))
    }

    /// The lines among them that report an error.
    pub(crate) fn take_errors(&self) -> Vec<Value> {
        let mut lines = self.take();
        lines.retain(|line| line["level"] == "ERROR");
        lines
    }

    /// The fields of the lines that were not taken yet.
    pub(crate) fn read(&self) -> Vec<Value> {
        let lines = self.take().into_iter();
        lines.map(|line| line["fields"].clone()).collect()
    }

    /// The lines that warn and have this text, also those that were looked at before; none is taken.
    pub(crate) fn warnings(&self, text: &str) -> Vec<String> {
        let lines = read(&self.lines.text.lock().unwrap()).into_iter();
        let warnings = lines.filter(|line| line["level"] == "WARN");
        let warnings = warnings.map(|line| line["fields"].to_string());
        warnings.filter(|line| line.contains(text)).collect()
    }

    /// Does this, once, when the service logs a line with this message, before the service goes on.
    pub(crate) fn at(&self, message: &'static str, does: impl FnOnce() + Send + 'static) {
        *self.lines.at.lock().unwrap() = Some((message, Box::new(does)));
    }
}

fn read(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.lock().unwrap().extend_from_slice(bytes);
        let line = String::from_utf8_lossy(bytes);
        let due = {
            let mut at = self.at.lock().unwrap();
            at.take_if(|(message, _)| line.contains(*message))
        };
        if let Some((_, does)) = due {
            does();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
