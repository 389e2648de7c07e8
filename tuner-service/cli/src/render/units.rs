//! Numbers as people say them.

/// Seconds with as many decimals as the spread justifies: its first digit is the last one shown.
/// Without a known spread three significant digits.
pub(crate) fn seconds(value: f64, spread: Option<f64>) -> String {
    let decimals = match spread.filter(|spread| *spread > 0.0 && spread.is_finite()) {
        Some(spread) => -magnitude(spread),
        None => 2 - magnitude(value),
    };
    let decimals = usize::try_from(decimals.clamp(0, 6)).unwrap_or(0);
    format!("{value:.decimals$}")
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a double is small"
)]
fn magnitude(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        0
    } else {
        value.abs().log10().floor() as i32
    }
}

/// The standard deviation of some numbers; `None` under two.
#[expect(clippy::cast_precision_loss, reason = "lists are short")]
pub(crate) fn spread(numbers: &[f64]) -> Option<f64> {
    if numbers.len() < 2 {
        return None;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares = numbers.iter().map(|number| (number - mean).powi(2));
    Some((squares.sum::<f64>() / (n - 1.0)).sqrt())
}

/// A node's time in the unit that people say: node-seconds, -minutes, -hours.
pub(crate) fn node_time(seconds: f64) -> String {
    // An empty sum is -0.
    let seconds = seconds + 0.0;
    let (value, unit) = match seconds.abs() {
        under if under < 120.0 => (seconds, "node-seconds"),
        under if under < 7200.0 => (seconds / 60.0, "node-minutes"),
        _ => (seconds / 3600.0, "node-hours"),
    };
    let decimals = usize::from(value.abs() < 9.95);
    format!("{} {unit}", grouped(&format!("{value:.decimals$}")))
}

/// A number in digits, thousands apart.
pub(crate) fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_owned();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// The same, for a column.
pub(crate) fn short_node_time(seconds: f64) -> String {
    let long = node_time(seconds);
    [
        ("node-seconds", "node-s"),
        ("node-minutes", "node-min"),
        ("node-hours", "node-h"),
    ]
    .iter()
    .fold(long, |text, (long, short)| text.replace(long, short))
}

/// A share in percent, with one decimal; zero is never shown as -0.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    match text.as_str() {
        "-0.0" => "0.0".to_owned(),
        _ => text,
    }
}

const DAY: f64 = 24.0 * 3600.0;
/// The number of days over which the service counts a study's runs.
const LATELY: f64 = 7.0;

/// The estimated time of this many runs, with its rate: that of the last seven days, or of the
/// epoch if it is younger. Empty for an epoch under a day old, because the number of jobs varies
/// with the hours.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn runs_to_go(runs: u64, lately: i64, age_seconds: f64) -> String {
    let age = age_seconds / DAY;
    let (span, said) = match age {
        older if older >= LATELY => (LATELY, "7 days".to_owned()),
        younger if younger >= 1.95 => (younger, format!("{younger:.0} days")),
        younger => (younger, "day".to_owned()),
    };
    // The first run began the epoch, and took none of its time.
    let came = if age < LATELY { lately - 1 } else { lately };
    if span < 1.0 || came <= 0 {
        return String::new();
    }
    let days = runs as f64 * span / came as f64;
    let time = match days {
        under if under < 1.5 / 24.0 => "an hour".to_owned(),
        under if under < 1.5 => format!("{:.0} hours", under * 24.0),
        under if under < 21.0 => format!("{under:.0} days"),
        _ => format!("{:.0} weeks", days / 7.0),
    };
    format!(", about {time} (at {lately} in the last {said})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_decimals_that_their_spread_carries() {
        for (value, spread, said) in [
            (2.3254, Some(0.058), "2.33"),
            (1.061, Some(0.3), "1.1"),
            (651.27, Some(12.0), "651"),
            (0.012_345, None, "0.0123"),
            (1.0612, None, "1.06"),
            (65.21, None, "65.2"),
            (1234.5, None, "1234"),
            (3.0, Some(0.0), "3.00"),
            (1.0, Some(1e-9), "1.000000"),
        ] {
            assert_eq!(seconds(value, spread), said, "{value} {spread:?}");
        }
        assert_eq!(spread(&[1.0]), None);
        assert_eq!(spread(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
    }

    #[test]
    fn node_time_is_said_in_the_unit_that_fits() {
        for (value, said) in [
            (0.0, "0.0 node-seconds"),
            (2.24, "2.2 node-seconds"),
            (119.0, "119 node-seconds"),
            (150.0, "2.5 node-minutes"),
            (7200.0, "2.0 node-hours"),
            (-360_000.0, "-100 node-hours"),
            (3_600_000.0, "1,000 node-hours"),
        ] {
            assert_eq!(node_time(value), said, "{value}");
        }
        assert_eq!(short_node_time(150.0), "2.5 node-min");
    }

    #[test]
    fn what_is_to_come_is_told_with_its_time_if_that_can_be_known() {
        let week = 30.0 * DAY;
        for (to_go, lately, age, said) in [
            (1, 0, week, ""),
            (16, 7, week, ", about 16 days (at 7 in the last 7 days)"),
            (
                2,
                1000,
                week,
                ", about an hour (at 1000 in the last 7 days)",
            ),
            (
                10,
                100,
                week,
                ", about 17 hours (at 100 in the last 7 days)",
            ),
            (60, 10, week, ", about 6 weeks (at 10 in the last 7 days)"),
            // For a younger epoch its own age counts.
            (10, 5, 2.0 * DAY, ", about 5 days (at 5 in the last 2 days)"),
            (6, 4, DAY, ", about 2 days (at 4 in the last day)"),
            (50, 1, 3.0 * DAY, ""),
            (50, 20, 600.0, ""),
            (50, 20, -1.0, ""),
        ] {
            assert_eq!(
                runs_to_go(to_go, lately, age),
                said,
                "{to_go} {lately} {age}"
            );
        }
    }
}
