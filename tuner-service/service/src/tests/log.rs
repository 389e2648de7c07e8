//! What the service logs while a test listens.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::watch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// What is logged on a test's own thread, as the service writes it, until it is dropped.
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
        let subscriber = tracing_subscriber::fmt().json().with_writer(lines.clone());
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber.finish()),
        }
    }

    /// The fields of each line since this was asked last.
    pub(crate) fn read(&self) -> Vec<Value> {
        let text = std::mem::take(&mut *self.lines.text.lock().unwrap());
        fields(&text)
    }

    /// What has this message, once it is logged.
    pub(crate) fn heard(&self, message: &str) -> impl Future<Output = ()> + use<> {
        let (lines, message) = (self.lines.clone(), message.to_owned());
        async move {
            let mut written = lines.written.subscribe();
            loop {
                let heard = fields(&lines.text.lock().unwrap());
                if heard.iter().any(|line| line["message"] == *message) {
                    return;
                }
                written.changed().await.unwrap();
            }
        }
    }
}

fn fields(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(text);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["fields"].clone()).collect()
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
