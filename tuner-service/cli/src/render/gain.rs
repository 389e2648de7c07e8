//! A gain in one or two sentences, in exactly the nightly report's words.

use io_autotune_model::{Assessment, Gain, GainVerdict, Objective};

use io_autotune_protocol::StudySummary;

use super::plain::plain;
use super::units::{grouped, percent};

/// The objective of a study by name: `marked I/O seconds`, `rate (maximised)`.
pub(super) fn named(objective: &Objective) -> String {
    let more = if objective.is_maximised() {
        " (maximised)"
    } else {
        ""
    };
    format!("{}{more}", objective.words())
}

/// The gain of an assessment, and elapsed where the objective is another.
pub(super) fn of(known: &Assessment) -> String {
    let gain = plain(&sentence(&known.gain, &known.objective));
    match &known.elapsed {
        Some(beside) => format!("{gain} Of {}: {beside}.", beside.parametrization),
        None => gain,
    }
}

/// The gain of a study.
pub(crate) fn of_study(study: &StudySummary) -> String {
    let unsaid = || "not said: the service is older than this command".to_owned();
    study.assessment.as_ref().map_or_else(unsaid, of)
}

/// The shares by which the objective is less. If more is better, a share of the default's value
/// becomes one of its reciprocal.
fn shares(gain: &Gain, objective: &Objective) -> (Option<f64>, Option<(f64, f64)>) {
    let less = |share| objective.less(share);
    let ends = gain.low.zip(gain.high);
    let ends = ends.map(|(low, high)| match objective.is_maximised() {
        true => (less(high), less(low)),
        false => (low, high),
    });
    (gain.share.map(less), ends)
}

/// The quantity of which there is less if the objective is less.
pub(super) fn what(objective: &Objective) -> &str {
    match objective {
        Objective::Elapsed => "time",
        other => other.words(),
    }
}

pub(super) fn sentence(gain: &Gain, objective: &Objective) -> String {
    let does = if objective.is_elapsed() {
        "take"
    } else {
        "have"
    };
    let what = what(objective);
    let (share, ends) = shares(gain, objective);
    let runs = format!(
        "{} tuned {} and {} of the default",
        grouped(&gain.tuned_runs.to_string()),
        if gain.tuned_runs == 1 { "run" } else { "runs" },
        grouped(&gain.control_runs.to_string())
    );
    let level = level(gain.level);
    match (gain.verdict, share, ends) {
        (GainVerdict::Faster | GainVerdict::Slower, Some(share), Some(ends)) => format!(
            "Tuned runs {does} {} % {} {what} than the default ({}; {level} sure, however often one looks; {runs}).",
            percent(share.abs()),
            if share >= 0.0 { "less" } else { "more" },
            less_or_more(ends)
        ),
        (GainVerdict::NotYet, ..) => not_yet(gain, &runs),
        (GainVerdict::NoEffect, _, Some(ends)) => format!(
            "No effect that is worth telling apart: {} {what} ({level} sure; {runs}).",
            less_or_more(ends)
        ),
        (verdict, ..) => {
            let word = match verdict {
                GainVerdict::Faster => "Faster",
                GainVerdict::Slower => "Slower",
                GainVerdict::NoEffect => "No effect",
                GainVerdict::NotYet | GainVerdict::Unclear => "Unclear",
            };
            let reason = gain.reason.trim();
            let end = if reason.ends_with(['.', '!', '?']) {
                ""
            } else {
                "."
            };
            format!("{word}: {reason}{end}")
        }
    }
}

fn not_yet(gain: &Gain, runs: &str) -> String {
    let mut said = match gain.detectable {
        _ if gain.tuned_runs == 0 => "Not yet: no run was made with chosen values.".to_owned(),
        None => format!("Not yet: {runs} show nothing."),
        Some(share) => format!(
            "Not yet: with {runs} a gain of {:.*} % could have been seen.",
            usize::from(share < 0.1),
            100.0 * share
        ),
    };
    if let Some(needed) = gain.runs_needed.filter(|needed| *needed > 0) {
        said.push_str(&format!(
            " About {} more runs would show one of the size seen.",
            grouped(&about(needed))
        ));
    }
    said
}

fn less_or_more((low, high): (f64, f64)) -> String {
    if low >= 0.0 {
        format!("{} to {} % less", percent(low), percent(high))
    } else if high <= 0.0 {
        format!("{} to {} % more", percent(-high), percent(-low))
    } else {
        format!("from {} % more to {} % less", percent(-low), percent(high))
    }
}

/// A confidence level, which is never rounded up to certainty.
fn level(share: f64) -> String {
    format!("{} %", (1e4 * share + 1e-6).floor() / 100.0)
}

/// A number rounded to two digits.
fn about(number: u64) -> String {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    // Halves are rounded to the even number, as in the report.
    let (whole, rest) = (number / step, number % step);
    let up = 2 * rest > step || (2 * rest == step && whole % 2 == 1);
    ((whole + u64::from(up)) * step).to_string()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::units::node_time;
    use super::*;

    #[derive(Deserialize)]
    struct Said {
        gains: Vec<Case>,
        node_hours: Vec<(f64, String)>,
    }

    #[derive(Deserialize)]
    struct Case {
        gain: Gain,
        said: String,
    }

    /// The report's own test reads the same file.
    #[test]
    fn the_terminal_says_what_the_page_says() {
        let said = include_str!("../../../../analysis/report/tests/said.json");
        let said: Said = serde_json::from_str(said).unwrap();
        for case in said.gains {
            assert_eq!(sentence(&case.gain, &Objective::Elapsed), case.said);
        }
        for (hours, said) in said.node_hours {
            assert_eq!(node_time(hours * 3600.0), said);
        }
    }

    #[test]
    fn a_claim_without_its_interval_is_its_reason() {
        let said = include_str!("../../../../analysis/report/tests/said.json");
        let mut said: Said = serde_json::from_str(said).unwrap();
        let mut gain = said.gains.remove(0).gain;
        gain.low = None;
        assert_eq!(
            sentence(&gain, &Objective::Elapsed),
            "Faster: Typical runs and node-hours disagree."
        );
    }

    #[test]
    fn a_gain_is_told_in_the_objectives_words_and_elapsed_after_it() {
        let said = include_str!("../../../../analysis/report/tests/said.json");
        let mut said: Said = serde_json::from_str(said).unwrap();
        let gain = Gain {
            verdict: GainVerdict::Faster,
            share: Some(0.5),
            low: Some(0.2),
            high: Some(0.6),
            ..said.gains.remove(0).gain
        };
        let of = |word, maximised| {
            let objective = Objective::named(word, maximised).unwrap();
            sentence(&gain, &objective)
        };
        let marked = of("marked", false);
        let expected =
            "Tuned runs have 50.0 % less marked I/O seconds than the default (20.0 to 60.0 % less;";
        assert!(marked.starts_with(expected), "{marked}");
        let rate = of("rate", true);
        let expected = "Tuned runs have 100.0 % more rate than the default (25.0 to 150.0 % more;";
        assert!(rate.starts_with(expected), "{rate}");
    }
}
