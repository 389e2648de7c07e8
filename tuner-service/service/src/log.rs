//! The log: a JSON object a line.
//!
//! A fault may last for a whole night, and each request, each sweep and each connection of the pool
//! logs it. Of warnings, and of sqlx's lines, a few a second are written from each place in the
//! program; the others are counted, and their number is written with the next line.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::rate_limited_log::Seldom;

/// The subscriber that writes the log, with the lines that the filter admits.
pub(crate) fn subscriber<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        // A line that cannot be written is lost. An error about it would go to standard error,
        // which has just failed, and the thread would panic.
        .log_internal_errors(false)
        .json()
        .map_event_format(Bounded::new)
        .finish()
}

/// A format that writes a limited number of lines from each place in the program.
struct Bounded<F> {
    format: F,
    places: Mutex<HashMap<Identifier, Seldom>>,
}

impl<F> Bounded<F> {
    fn new(format: F) -> Self {
        Self {
            format,
            places: Mutex::default(),
        }
    }

    /// The result of [`Seldom::now`] for the place in the program that has this metadata.
    fn left_out(&self, metadata: &Metadata<'_>) -> Option<u64> {
        // Lines of lower levels report each action once.
        if *metadata.level() > Level::WARN && !metadata.target().starts_with("sqlx") {
            return Some(0);
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places
            .entry(metadata.callsite())
            .or_insert_with(Seldom::new);
        place.now()
    }
}

impl<S, N, F> FormatEvent<S, N> for Bounded<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        match self.left_out(metadata) {
            None => return Ok(()),
            Some(0) => {}
            Some(left_out) => {
                let mut timestamp = String::new();
                SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
                let line = json!({
                    "timestamp": timestamp,
                    "level": metadata.level().as_str(),
                    "fields": { "message": "lines like the next one were left out", "left_out": left_out },
                    "target": metadata.target(),
                });
                writeln!(writer, "{line}")?;
            }
        }
        self.format.format_event(context, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::log::Log;

    /// Attack (database): The database is gone for a night, and each request says so.
    /// Outcome: A few such lines a second are logged.
    #[test]
    fn a_fault_that_lasts_does_not_fill_the_log() {
        let log = Log::listen();
        for number in 0..1000 {
            tracing::warn!(number, "the database is gone");
            tracing::info!(target: "sqlx::pool", number, "it cannot be connected to");
            tracing::info!(number, "a run started");
        }
        tracing::error!("another fault");
        let mut written = std::collections::BTreeMap::<String, usize>::new();
        for fields in log.read() {
            let message = fields["message"].as_str().unwrap().to_owned();
            *written.entry(message).or_default() += 1;
        }
        let expected = [
            ("a run started", 1000),
            ("another fault", 1),
            ("it cannot be connected to", 10),
            ("the database is gone", 10),
        ];
        let expected = expected.map(|(message, count)| (message.to_owned(), count));
        assert_eq!(written.into_iter().collect::<Vec<_>>(), expected);
    }
}
