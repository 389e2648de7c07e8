//! Where output goes: its width, whether it has colour, and local time.

use std::io::IsTerminal;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

/// Fewer columns than this show nothing of use.
const NARROWEST: usize = 40;

/// Standard output, as text is made for it.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Columns of the terminal; `None`: no terminal, so nothing is cut.
    pub(crate) width: Option<usize>,
    /// Only a terminal has colour, and none with `NO_COLOR`.
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

    /// A file or a pipe: whole, plain, in UTC.
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

    /// Local time to the second, as sacct has it.
    pub(crate) fn exact(&self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        local.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// Local time, short: of this year its day and minute, of others the date.
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

/// A moment as Slurm's commands take it: `2026-11-24`, `2026-11-24T08:30`, `today`, `tomorrow`,
/// `now`, `now-2days`, `now+3h`. Local time.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    moment_in(text, &TimeZone::system(), Timestamp::now())
}

fn moment_in(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "{text:?} is no time: write 2026-11-24, 2026-11-24T08:30, today, tomorrow, now, now-2days or now+3h"
        )
    };
    let local = now.to_zoned(zone.clone());
    if let Some(offset) = text.strip_prefix("now") {
        let span: Span = match offset.split_at_checked(1) {
            None => return Ok(now),
            Some(("+", span)) => span.parse().map_err(|_| wrong())?,
            Some(("-", span)) => -span.parse::<Span>().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        let then = local.checked_add(span).map_err(|_| wrong())?;
        return Ok(then.timestamp());
    }
    let today = local.date();
    let at = match text {
        "today" => Ok(today.to_datetime(jiff::civil::Time::midnight())),
        "tomorrow" => today
            .checked_add(1.day())
            .map(|day| day.to_datetime(jiff::civil::Time::midnight())),
        _ => match text.parse::<Timestamp>() {
            Ok(exact) => return Ok(exact),
            Err(_) => text
                .parse::<DateTime>()
                .or_else(|_| text.parse::<Date>().map(|day| day.at(0, 0, 0, 0))),
        },
    };
    let zoned = at.and_then(|at| at.to_zoned(zone.clone()));
    zoned.map(|zoned| zoned.timestamp()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where clocks are put forward at midnight there is none; where they are put back to it there are
    /// two.
    #[test]
    fn a_day_without_a_midnight_begins_with_its_first_instant() {
        for (zone, now, text, expected) in [
            (
                "America/Santiago",
                "2026-09-06T12:00:00Z",
                "today",
                "2026-09-06T04:00:00Z",
            ),
            (
                "America/Santiago",
                "2026-09-05T12:00:00Z",
                "tomorrow",
                "2026-09-06T04:00:00Z",
            ),
            (
                "America/Santiago",
                "2026-11-24T12:00:00Z",
                "2026-09-06",
                "2026-09-06T04:00:00Z",
            ),
            (
                "Africa/Cairo",
                "2026-11-24T12:00:00Z",
                "2026-04-24",
                "2026-04-23T22:00:00Z",
            ),
            (
                "America/Havana",
                "2026-11-24T12:00:00Z",
                "2026-11-01",
                "2026-11-01T04:00:00Z",
            ),
            (
                "America/Santiago",
                "2026-11-24T12:00:00Z",
                "2026-04-05",
                "2026-04-05T04:00:00Z",
            ),
        ] {
            let zone = TimeZone::get(zone).unwrap();
            let at = moment_in(text, &zone, now.parse().unwrap()).unwrap();
            assert_eq!(at.to_string(), expected, "{zone:?} {text}");
        }
    }

    #[test]
    fn a_moment_is_written_as_slurms_commands_take_it() {
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let at = |text| moment_in(text, &zone, now).map(|at| at.to_string());
        for (text, expected) in [
            ("now", "2026-11-24T12:00:00Z"),
            ("now-2days", "2026-11-22T12:00:00Z"),
            ("now+3h", "2026-11-24T15:00:00Z"),
            ("today", "2026-11-23T23:00:00Z"),
            ("tomorrow", "2026-11-24T23:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("2026-11-20T08:30", "2026-11-20T07:30:00Z"),
            ("2026-11-20T08:30:05Z", "2026-11-20T08:30:05Z"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "yesteryear",
            "now*2",
            "now-",
            "2026-13-01",
            "now+999999years",
        ] {
            assert!(
                at(wrong).unwrap_err().contains("write 2026-11-24"),
                "{wrong}"
            );
        }
    }

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
