//! Numbers and differences in sentences.

use std::fmt;

/// Seconds with four significant digits, without trailing zeros.
pub fn seconds(value: f64) -> String {
    let magnitude = if value == 0.0 || !value.is_finite() {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let decimals = usize::try_from((3 - magnitude).clamp(0, 12)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} s")
}

/// At most `most` of the names, with commas between them, and the number of those left out.
pub fn listed(names: &[impl AsRef<str>], most: usize) -> String {
    let (shown, others) = names.split_at(names.len().min(most));
    let shown = shown.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    match others.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

pub(crate) fn different(
    f: &mut fmt::Formatter<'_>,
    cv: f64,
    runs: u64,
    tuned: u64,
    modes: Option<(f64, f64)>,
) -> fmt::Result {
    write!(f, "the last {runs} runs of the default ")?;
    match modes {
        Some((quick, slow)) => {
            if tuned > 0 {
                write!(
                    f,
                    "and {tuned} of another parametrization, brought to its level, "
                )?;
            }
            write!(
                f,
                "gather around two times, {} and {}",
                seconds(quick),
                seconds(slow)
            )
        }
        None => write!(f, "vary by {:.0} %", 100.0 * cv),
    }
}

const TABLE_BEGINS: &str = "<!-- The table is written by `make rules`. -->";
const TABLE_ENDS: &str = "<!-- End of the table. -->";

/// The Markdown page with this table between its marks; none if the page has no marks.
#[must_use]
pub fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(TABLE_BEGINS)?;
    let (_, after) = rest.split_once(TABLE_ENDS)?;
    Some(format!(
        "{before}{TABLE_BEGINS}\n{table}{TABLE_ENDS}{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_named_by_a_few() {
        assert_eq!(listed(&["a", "b"], 5), "a, b");
        assert_eq!(listed(&["a"; 5], 5), "a, a, a, a, a");
        assert_eq!(listed(&["a"; 7], 5), "a, a, a, a, a and 2 more");
    }

    #[test]
    fn seconds_are_short() {
        for (value, text) in [
            (19.7, "19.7 s"),
            (0.0, "0 s"),
            (2.10004, "2.1 s"),
            (1234.56, "1235 s"),
            (100.0, "100 s"),
            (0.001_234_56, "0.001235 s"),
            (172.69, "172.7 s"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }
}
