//! What the service writes to its log while a test looks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// The lines that this thread has written since it [began](Self::begin), as a service writes them that
/// is not told how much.
pub(crate) struct Log {
    text: Text,
    _until: DefaultGuard,
}

impl Log {
    pub(crate) fn begin() -> Self {
        let text = Text::default();
        let written = tracing_subscriber::fmt()
            .with_env_filter("info")
            .with_writer(text.clone())
            .json()
            .finish();
        Self {
            text,
            _until: tracing::subscriber::set_default(written),
        }
    }

    /// The lines that were not taken yet.
    pub(crate) fn take(&self) -> Vec<Value> {
        let text = std::mem::take(&mut *self.text.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Those of them that say that something has failed.
    pub(crate) fn take_errors(&self) -> Vec<Value> {
        let mut lines = self.take();
        lines.retain(|line| line["level"] == "ERROR");
        lines
    }
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Text {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
