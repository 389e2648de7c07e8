//! Slurm's notation of a time that something took or may take.

/// The seconds of `[DD-]HH:MM:SS`; `None` for anything else.
#[must_use]
pub fn clock_seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return None;
    };
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    (hours < 24 && minutes < 60 && seconds < 60).then(|| {
        digits(days)?
            .checked_mul(86_400)?
            .checked_add(hours * 3600 + minutes * 60 + seconds)
    })?
}

/// The number that these digits are, at most twelve: no time, id or count of Slurm's has more.
#[must_use]
pub fn digits(text: &str) -> Option<u64> {
    let are = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    are.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_has_three_parts_and_days_before_them_perhaps() {
        for (text, seconds) in [
            ("00:00:00", Some(0)),
            ("23:59:59", Some(86_399)),
            ("2-01:00:00", Some(176_400)),
            ("999999999999-00:00:00", Some(999_999_999_999 * 86_400)),
            ("", None),
            ("1:00", None),
            ("24:00:00", None),
            ("00:60:00", None),
            ("+1:00:00", None),
            ("-00:00:01", None),
            ("1-2-00:00:01", None),
            ("00:00:00.5", None),
        ] {
            assert_eq!(clock_seconds(text), seconds, "{text}");
        }
    }
}
