//! `status --watch`: studies, drawn anew when something has changed.

use std::io::IsTerminal;
use std::time::Duration;

use io_autotune_console as console;
use io_autotune_protocol::shown_lines;

use crate::Answer;
use crate::arguments::StudiesOf;
use crate::render::status::studies as drawn;
use crate::screen::Screen;
use crate::service::{CliError, Service};
use crate::signals::Signals;

/// The time between two questions to the service.
const EVERY: Duration = Duration::from_secs(5);
/// The terminal's home, and nothing from there on.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// Draws studies until the user ends it. Once the service has answered, one that is away or busy is
/// waited for.
pub(crate) async fn studies(service: &Service, wanted: &StudiesOf) -> Result<Answer, CliError> {
    if !std::io::stdout().is_terminal() {
        let told = "--watch draws on a terminal, which standard output is not: leave it out, or ask each time";
        return Err(CliError::Usage(told.to_owned()));
    }
    let signals = Signals::taken()?;
    let (mut known, mut shown) = (None, String::new());
    while !signals.came() {
        let screen = Screen::of_stdout();
        let away = match service.studies(wanted).await {
            Ok(studies) => {
                known = Some(studies);
                String::new()
            }
            Err(error) if known.is_some() => shown_lines(&format!("\n{error}\n")),
            Err(error) => return Err(error),
        };
        let text = drawn(known.as_deref().unwrap_or_default(), &screen) + &away;
        if text != shown {
            if console::print(&format!("{CLEAR}{text}")).is_err() {
                break;
            }
            shown = text;
        }
        signals.wait(EVERY);
    }
    Ok(String::new().into())
}
