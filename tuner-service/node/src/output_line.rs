//! The line that a job that asked for it (`--io-autotune=tell`) prints in its output about what it
//! runs with.
//!
//! How the job did is known only after its end, when no process of its user is left that could
//! print it.

use io_autotune_model::{Phase, Role};
use io_autotune_protocol::StartAnswer;

use crate::files::is_one_line;

/// The answer of the service for a job, or why there is none.
#[derive(Debug)]
pub(crate) enum Given<'a> {
    Answer(&'a StartAnswer),
    /// The settings of its node could not be changed.
    Refused,
    NoAnswer,
}

/// The line, in printable ASCII.
pub(crate) fn told(job_id: u32, given: &Given<'_>) -> String {
    let what = match given {
        Given::NoAnswer => "its defaults: the tuner did not answer".to_owned(),
        Given::Refused => "its defaults: its node's settings could not be changed".to_owned(),
        Given::Answer(StartAnswer {
            role: Role::Observe,
            ..
        }) => "its defaults: it is only observed".to_owned(),
        // Whether it is a control run is shown to nobody before the verdict: a user who knew could
        // cancel slow control runs.
        Given::Answer(StartAnswer {
            phase: Phase::Settled,
            role: Role::Settled | Role::Control,
            ..
        }) => "the best known values or, as drawn, the default to compare with".to_owned(),
        Given::Answer(answer) if answer.delivery.is_empty() => {
            format!("its defaults ({})", answer.role)
        }
        Given::Answer(answer) => {
            let values = answer.parametrization.to_string();
            match is_one_line(&values) {
                true => format!("{values} ({})", answer.role),
                false => format!("values that no line holds ({})", answer.role),
            }
        }
    };
    format!(
        "job {job_id} runs with {what}; how it did, once it has ended: io-autotune explain {job_id}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(phase: &str, role: &str, values: serde_json::Value) -> StartAnswer {
        serde_json::from_value(json!({
            "run_id": 17, "phase": phase, "role": role, "parametrization": values,
            "reason": "as drawn", "delivery": {
                "environment": [{ "name": "X", "value": "2" }], "files": [], "watch": ["X"],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_values_are_told_while_a_study_explores() {
        let told = told(
            4,
            &Given::Answer(&answer("design", "design", json!({ "a": 2, "b": "on" }))),
        );
        assert_eq!(
            told,
            "job 4 runs with a=2 b=on (design); how it did, once it has ended: io-autotune explain 4"
        );
    }

    #[test]
    fn a_control_run_looks_like_any_other_of_a_settled_study() {
        let of = |role, value: i64| {
            told(
                4,
                &Given::Answer(&answer("settled", role, json!({ "a": value }))),
            )
        };
        assert_eq!(of("control", 1), of("settled", 2));
        assert!(!of("control", 1).contains("a=1"));
        let mut bare = answer("settled", "control", json!({ "a": 1 }));
        bare.delivery.environment.clear();
        assert_eq!(told(4, &Given::Answer(&bare)), of("settled", 2));
        // The default before a study settles is no secret.
        let early = told(
            4,
            &Given::Answer(&answer("search", "control", json!({ "a": 1 }))),
        );
        assert!(early.contains("a=1 (control)"), "{early}");
    }

    #[test]
    fn defaults_are_told_with_their_reason() {
        let observed = answer("settled", "observe", json!({ "a": 1 }));
        for (given, why) in [
            (Given::NoAnswer, "the tuner did not answer"),
            (Given::Refused, "its node's settings could not be changed"),
            (Given::Answer(&observed), "it is only observed"),
        ] {
            let told = told(4, &given);
            assert!(
                told.starts_with(&format!("job 4 runs with its defaults: {why}; ")),
                "{told}"
            );
        }
    }

    #[test]
    fn where_nothing_is_delivered_the_job_runs_with_its_defaults() {
        let mut nothing = answer("baseline", "baseline", json!({ "a": 1 }));
        nothing.delivery.environment.clear();
        let told = told(4, &Given::Answer(&nothing));
        assert!(
            told.starts_with("job 4 runs with its defaults (baseline); "),
            "{told}"
        );
    }

    #[test]
    fn whatever_the_values_are_it_is_one_line() {
        for value in ["a\nset PATH=/tmp", "\u{e4}", &"x".repeat(5000)] {
            let told = told(
                4,
                &Given::Answer(&answer("search", "search", json!({ "a": value }))),
            );
            assert!(
                is_one_line(&told) && told.contains("values that no line holds (search)"),
                "{told}"
            );
        }
    }
}
