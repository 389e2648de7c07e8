//! Times as Slurm's commands read them, in local time; every option with a time uses this.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// The occurrence that is meant by a time of day, or by a day without a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Today's, or this year's, as in sacct.
    Past,
    /// The next one, as in sbatch.
    Ahead,
}

/// A moment of the past, as `sacct --starttime` takes it.
pub(crate) fn past(text: &str) -> Result<Timestamp, String> {
    read(text, &now(), Side::Past).map(|at| at.timestamp())
}

/// A moment to come, as `sbatch --begin` takes it.
pub(crate) fn ahead(text: &str) -> Result<Timestamp, String> {
    read(text, &now(), Side::Ahead).map(|at| at.timestamp())
}

/// A day of the past.
pub(crate) fn day(text: &str) -> Result<Date, String> {
    read(text, &now(), Side::Past).map(|at| at.date())
}

fn now() -> Zoned {
    Timestamp::now().to_zoned(TimeZone::system())
}

fn read(text: &str, now: &Zoned, side: Side) -> Result<Zoned, String> {
    let lower = text.trim().to_ascii_lowercase();
    understood(&lower, now, side).ok_or_else(|| {
        format!(
            "{text:?} is no time: write 2026-11-24, 2026-11-24T08:30, 11/24, 08:30, today, yesterday, tomorrow, noon, \
             midnight, now, now-2days or now+3h"
        )
    })
}

fn understood(text: &str, now: &Zoned, side: Side) -> Option<Zoned> {
    if let Some(offset) = text.strip_prefix("now") {
        return now.checked_add(span(offset)?).ok();
    }
    let zone = now.time_zone();
    let (today, midnight) = (now.date(), Time::midnight());
    let at = |at: DateTime| at.to_zoned(zone.clone()).ok();
    let next = |days: i64| today.checked_add(days.days()).ok();
    match text {
        "today" => return at(today.to_datetime(midnight)),
        "tomorrow" => return at(next(1)?.to_datetime(midnight)),
        "yesterday" => return at(next(-1)?.to_datetime(midnight)),
        _ => {}
    }
    if let Some(time) = time_of_day(text) {
        let todays = at(today.to_datetime(time))?;
        return match side == Side::Ahead && todays <= *now {
            true => at(next(1)?.to_datetime(time)),
            false => Some(todays),
        };
    }
    if let Some((date, time)) = month_and_day(text, today) {
        let this = at(date.to_datetime(time))?;
        let is_over = side == Side::Ahead && this < *now && !has_year(text);
        return match is_over {
            true => at(date.checked_add(1.year()).ok()?.to_datetime(time)),
            false => Some(this),
        };
    }
    // ISO 8601 has capital letters.
    let text = text.to_ascii_uppercase();
    if let Ok(exact) = text.parse::<Timestamp>() {
        return Some(exact.to_zoned(zone.clone()));
    }
    let local = text.parse::<DateTime>().ok();
    at(local.or_else(|| Some(text.parse::<Date>().ok()?.to_datetime(midnight)))?)
}

/// The text after `now`: nothing, or `+` or `-` with a number of seconds or of units.
fn span(text: &str) -> Option<Span> {
    let (sign, text) = match text.split_at_checked(1) {
        None => return Some(Span::new()),
        Some(("+", text)) => (1, text),
        Some(("-", text)) => (-1, text),
        Some(_) => return None,
    };
    let span = match text.parse::<i64>() {
        Ok(seconds) if !text.starts_with(['+', '-']) => Span::new().try_seconds(seconds).ok()?,
        _ => text.parse().ok()?,
    };
    Some(match sign < 0 {
        true => -span,
        false => span,
    })
}

/// A time of day: `noon` and similar words, `HH:MM[:SS]`, also followed by `am` or `pm`.
fn time_of_day(text: &str) -> Option<Time> {
    let hour = match text {
        "midnight" => 0,
        "elevenses" => 11,
        "noon" => 12,
        "fika" => 15,
        "teatime" => 16,
        _ => return clock(text),
    };
    Time::new(hour, 0, 0, 0).ok()
}

fn clock(text: &str) -> Option<Time> {
    let (text, half) = match text.strip_suffix("am") {
        Some(rest) => (rest.trim_end(), Some(0)),
        None => match text.strip_suffix("pm") {
            Some(rest) => (rest.trim_end(), Some(12)),
            None => (text, None),
        },
    };
    let parts: Option<Vec<i8>> = text.split(':').map(two_digits).collect();
    let (hour, minute, second) = match parts?.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
    };
    Time::new(hour, minute, second, 0).ok()
}

fn two_digits(text: &str) -> Option<i8> {
    let all = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// A day as `MMDD[YY]`, `MM/DD[/YY]` or `MM.DD[.YY]`, also followed by `-HH:MM[:SS]`.
fn month_and_day(text: &str, today: Date) -> Option<(Date, Time)> {
    let (day, time) = match text.split_once('-') {
        Some((day, time)) => (day, clock(time)?),
        None => (text, Time::midnight()),
    };
    let parts: Vec<&str> = if day.contains('/') {
        day.split('/').collect()
    } else if day.contains('.') {
        day.split('.').collect()
    } else if matches!(day.len(), 4 | 6) && day.is_ascii() {
        let (month, rest) = day.split_at(2);
        let (day, year) = rest.split_at(2);
        [month, day, year]
            .into_iter()
            .filter(|one| !one.is_empty())
            .collect()
    } else {
        return None;
    };
    let parts: Option<Vec<i8>> = parts.into_iter().map(two_digits).collect();
    let (month, day, year) = match parts?.as_slice() {
        [month, day] => (*month, *day, today.year()),
        [month, day, year] => (*month, *day, 2000 + i16::from(*year)),
        _ => return None,
    };
    Some((Date::new(year, month, day).ok()?, time))
}

/// Returns true if a day that [`month_and_day`] reads has a year.
fn has_year(text: &str) -> bool {
    let day = text.split('-').next().unwrap_or(text);
    day.split(['/', '.']).count() == 3 || day.len() == 6 && !day.contains(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, zone: &TimeZone, now: &str, side: Side) -> Result<String, String> {
        let now: Timestamp = now.parse().unwrap();
        let at = read(text, &now.to_zoned(zone.clone()), side)?;
        Ok(at.timestamp().to_string())
    }

    /// Where clocks are put forward at midnight there is no midnight; where they are put back to it
    /// there are two.
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
                "2026-09-07T12:00:00Z",
                "yesterday",
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
            let at = at(text, &zone, now, Side::Past);
            assert_eq!(at.as_deref(), Ok(expected), "{zone:?} {text}");
        }
    }

    #[test]
    fn a_moment_is_written_as_slurms_commands_take_it() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let at = |text, side| at(text, &zone, "2026-11-24T12:00:00Z", side);
        for (text, expected) in [
            ("now", "2026-11-24T12:00:00Z"),
            ("now-2days", "2026-11-22T12:00:00Z"),
            ("now-1day", "2026-11-23T12:00:00Z"),
            ("now-1week", "2026-11-17T12:00:00Z"),
            ("now-90", "2026-11-24T11:58:30Z"),
            ("now+3h", "2026-11-24T15:00:00Z"),
            ("now+3hours", "2026-11-24T15:00:00Z"),
            ("today", "2026-11-23T23:00:00Z"),
            ("TOMORROW", "2026-11-24T23:00:00Z"),
            ("yesterday", "2026-11-22T23:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("2026-11-20T08:30", "2026-11-20T07:30:00Z"),
            ("2026-11-20 08:30:05", "2026-11-20T07:30:05Z"),
            ("2026-11-20T08:30:05Z", "2026-11-20T08:30:05Z"),
            ("11/20/25", "2025-11-19T23:00:00Z"),
            ("11/20/25-08:30", "2025-11-20T07:30:00Z"),
            ("112025", "2025-11-19T23:00:00Z"),
            ("11.20.25", "2025-11-19T23:00:00Z"),
        ] {
            for side in [Side::Past, Side::Ahead] {
                assert_eq!(at(text, side).as_deref(), Ok(expected), "{text}");
            }
        }
        for (text, past, ahead) in [
            ("midnight", "2026-11-23T23:00:00Z", "2026-11-24T23:00:00Z"),
            ("noon", "2026-11-24T11:00:00Z", "2026-11-25T11:00:00Z"),
            ("teatime", "2026-11-24T15:00:00Z", "2026-11-24T15:00:00Z"),
            ("08:30", "2026-11-24T07:30:00Z", "2026-11-25T07:30:00Z"),
            ("8:30:05 PM", "2026-11-24T19:30:05Z", "2026-11-24T19:30:05Z"),
            ("12:00am", "2026-11-23T23:00:00Z", "2026-11-24T23:00:00Z"),
            ("1120", "2026-11-19T23:00:00Z", "2027-11-19T23:00:00Z"),
            ("11/20", "2026-11-19T23:00:00Z", "2027-11-19T23:00:00Z"),
            (
                "12/24-18:00",
                "2026-12-24T17:00:00Z",
                "2026-12-24T17:00:00Z",
            ),
        ] {
            assert_eq!(at(text, Side::Past).as_deref(), Ok(past), "{text}");
            assert_eq!(at(text, Side::Ahead).as_deref(), Ok(ahead), "{text}");
        }
        for wrong in [
            "",
            "yesteryear",
            "now*2",
            "now-",
            "now--2",
            "2026-13-01",
            "13/01",
            "25:00",
            "8",
            "8am",
            "13:00pm",
            "now+999999years",
        ] {
            assert!(
                at(wrong, Side::Past)
                    .unwrap_err()
                    .contains("write 2026-11-24"),
                "{wrong}"
            );
        }
    }
}
