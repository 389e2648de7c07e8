//! What the service logs while a test listens.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::watch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// The lines that a test's own thread has logged since it [listens](Self::listen), as a service writes
/// them that is not told how much.
pub(crate) struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone)]
struct Lines {
    text: Arc<Mutex<Vec<u8>>>,
    written: watch::Sender<()>,
}

impl Log {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        let lines = Lines {
            text: Arc::default(),
            written: watch::Sender::new(()),
        };
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter("info")
            .with_writer(lines.clone())
            .json()
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines that were not taken yet.
    pub(crate) fn take(&self) -> Vec<Value> {
        read(&std::mem::take(&mut *self.lines.text.lock().unwrap()))
    }

    /// Those of them that say that something has failed.
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

    /// What has this message, once it is logged.
    pub(crate) fn heard(&self, message: &str) -> impl Future<Output = ()> + use<> {
        let (lines, message) = (self.lines.clone(), message.to_owned());
        async move {
            let mut written = lines.written.subscribe();
            loop {
                let heard = read(&lines.text.lock().unwrap());
                if heard
                    .iter()
                    .any(|line| line["fields"]["message"] == *message)
                {
                    return;
                }
                written.changed().await.unwrap();
            }
        }
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
        self.written.send_replace(());
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
