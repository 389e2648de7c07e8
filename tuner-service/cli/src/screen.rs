//! The properties of the output: its width, whether it has colour, and local time.

use std::io::IsTerminal;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The least width: fewer columns show nothing of use.
const NARROWEST: usize = 40;

/// The properties of standard output for which text is made.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Columns of the terminal; `None`: no terminal, so nothing is cut.
    pub(crate) width: Option<usize>,
    /// True if text may be coloured: only on a terminal, and not with `NO_COLOR`.
    pub(crate) colour: bool,
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
}

impl Screen {
    /// This process's standard output.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let width = terminal_size::terminal_size_of(std::io::stdout());
        let says_none = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            width: width.map(|(width, _)| usize::from(width.0).max(NARROWEST)),
            colour: is_terminal && !says_none("NO_COLOR") && !is_dumb,
            zone: TimeZone::system(),
            now: Timestamp::now(),
        }
    }

    /// A file or a pipe: complete text without colours, in UTC.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self {
            width: None,
            colour: false,
            zone: TimeZone::UTC,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// A plain terminal.
    #[cfg(test)]
    pub(crate) fn wide(width: usize) -> Self {
        Self {
            width: Some(width),
            ..Self::plain()
        }
    }

    /// Local time to the second, as in sacct.
    pub(crate) fn exact(&self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        local.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// Local time in a short form: the day and minute for this year, the date for others.
    pub(crate) fn short(&self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        let now = self.now.to_zoned(self.zone.clone());
        let format = match local.year() == now.year() {
            true => "%m-%d %H:%M",
            false => "%Y-%m-%d",
        };
        local.strftime(format).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_local_and_short_within_the_year() {
        let screen = Screen {
            zone: TimeZone::fixed(jiff::tz::offset(1)),
            now: "2026-11-24T12:00:00Z".parse().unwrap(),
            ..Screen::plain()
        };
        let at = "2026-03-01T23:30:00Z".parse().unwrap();
        assert_eq!(screen.short(at), "03-02 00:30");
        assert_eq!(screen.exact(at), "2026-03-02T00:30:00");
        assert_eq!(
            screen.short("2025-03-01T12:00:00Z".parse().unwrap()),
            "2025-03-01"
        );
    }
}
