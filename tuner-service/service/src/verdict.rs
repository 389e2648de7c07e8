//! Whether a run counts. Only what Slurm calls COMPLETED counts, and only for what was really
//! applied.

use std::time::Duration;

use io_autotune_engine::Parametrization;
use io_autotune_protocol::{Applied, Note, Request};
use io_autotune_store::{AwaitedRun, Verdict};

/// Slurm's word for a job that ended well.
const COMPLETED: &str = "COMPLETED";

/// Ends that may be the parametrization's doing.
const FAILURES: [&str; 3] = ["FAILED", "OUT_OF_MEMORY", "TIMEOUT"];

/// How long a run is waited for once the other half of the truth is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For Slurm's word, once the report has come.
    pub(crate) outcome: Duration,
    /// For the report, once Slurm has said that the job ended, or knows the job no longer.
    pub(crate) report: Duration,
}

/// The verdict on a run, or `None` while there is still something to wait for.
///
/// `known_to_slurm`: whether Slurm still lists the job.
pub(crate) fn verdict(
    run: &AwaitedRun,
    default: &Parametrization,
    known_to_slurm: bool,
    patience: Patience,
) -> Option<Verdict> {
    match (&run.outcome, run.reported) {
        (Some(outcome), true) => Some(complete(run, default, outcome)),
        (None, true) => {
            let waited = run.reported_age.unwrap_or(0.0) > patience.outcome.as_secs_f64();
            (waited && !known_to_slurm)
                .then(|| not_counted("Slurm no longer knows how the job ended"))
        }
        (Some(outcome), false) => {
            let waited = run.outcome_age.unwrap_or(0.0) > patience.report.as_secs_f64();
            waited.then(|| {
                not_counted(&format!(
                    "Slurm says {outcome}, and no node reported the run"
                ))
            })
        }
        (None, false) => {
            let waited = run.age > patience.report.as_secs_f64();
            (waited && !known_to_slurm).then(|| not_counted("the job was never heard of again"))
        }
    }
}

fn complete(run: &AwaitedRun, default: &Parametrization, outcome: &str) -> Verdict {
    if outcome != COMPLETED {
        return Verdict::NotCounted {
            why: format!("Slurm says {outcome}"),
            failed: FAILURES.contains(&outcome).then(|| run.launched.clone()),
        };
    }
    let request: Option<Request> = serde_json::from_value(run.request.clone()).ok();
    if request
        .is_none_or(|request| request.note == Some(Note::MeaninglessName) || request.app.is_none())
    {
        return not_counted("the job's name says nothing about the application");
    }
    if let Some(status) = run.wait_status.filter(|status| *status != 0) {
        // A job without a batch step ends as its user's shell does, whatever its steps did.
        return Verdict::NotCounted {
            why: format!("Slurm says {COMPLETED}, but a step ended with wait status {status}"),
            failed: Some(run.launched.clone()),
        };
    }
    let Some(elapsed) = run.elapsed else {
        return not_counted("no step was seen to start and end");
    };
    let applied: Option<Applied> = run
        .applied
        .clone()
        .and_then(|applied| serde_json::from_value(applied).ok());
    match applied {
        Some(Applied::Default) => {
            let why = if run.launched == *default {
                format!("completed in {elapsed:.3} s with the default")
            } else {
                format!(
                    "completed in {elapsed:.3} s; our answer came too late, so it counts for the default"
                )
            };
            Verdict::Counted {
                parametrization: default.clone(),
                why,
            }
        }
        Some(Applied::Parametrization { parametrization }) => Verdict::Counted {
            parametrization,
            why: format!("completed in {elapsed:.3} s"),
        },
        Some(Applied::User { variables }) => not_counted(&format!(
            "the user's own {} was left alone",
            variables.join(", ")
        )),
        Some(Applied::Incomplete { detail }) => not_counted(&format!(
            "the parametrization did not reach every step: {detail}"
        )),
        None => not_counted("nothing is known of what was applied"),
    }
}

fn not_counted(why: &str) -> Verdict {
    Verdict::NotCounted {
        why: why.to_owned(),
        failed: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_engine::Value;
    use io_autotune_store::{JobKey, Source};
    use serde_json::json;

    use super::*;

    const PATIENCE: Patience = Patience {
        outcome: Duration::from_secs(600),
        report: Duration::from_secs(3600),
    };

    fn point(value: i64) -> Parametrization {
        Parametrization(BTreeMap::from([("size".to_owned(), Value::Integer(value))]))
    }

    fn run() -> AwaitedRun {
        AwaitedRun {
            run_id: 1,
            job: JobKey {
                cluster: "c".into(),
                job_id: 1,
                restart_count: 0,
            },
            launched: point(4),
            default: point(1),
            request: json!({ "app": "ocean" }),
            state: "in_flight".into(),
            released: false,
            news: 2,
            reported: true,
            missing: None,
            elapsed: Some(2.0),
            wait_status: Some(0),
            applied: Some(json!(Applied::Parametrization {
                parametrization: point(4)
            })),
            epilog: None,
            outcome: Some("COMPLETED".into()),
            outcome_source: Some(Source::Squeue),
            suspended: false,
            limit_seconds: None,
            age: 10.0,
            reported_age: Some(1.0),
            outcome_age: Some(1.0),
        }
    }

    fn judged(run: &AwaitedRun) -> Option<Verdict> {
        verdict(run, &run.default, true, PATIENCE)
    }

    fn counts_for(run: &AwaitedRun) -> Option<Parametrization> {
        match judged(run) {
            Some(Verdict::Counted {
                parametrization, ..
            }) => Some(parametrization),
            _ => None,
        }
    }

    #[test]
    fn a_completed_run_counts_for_what_was_applied() {
        assert_eq!(counts_for(&run()), Some(point(4)));
    }

    #[test]
    fn what_the_finish_says_beats_what_the_start_meant() {
        let late = AwaitedRun {
            applied: Some(json!(Applied::Default)),
            ..run()
        };
        assert_eq!(counts_for(&late), Some(point(1)));
        let user = Applied::User {
            variables: vec!["ROMIO_HINTS".into()],
        };
        assert_eq!(
            counts_for(&AwaitedRun {
                applied: Some(json!(user)),
                ..run()
            }),
            None
        );
        let partial = Applied::Incomplete {
            detail: "step 3".into(),
        };
        assert_eq!(
            counts_for(&AwaitedRun {
                applied: Some(json!(partial)),
                ..run()
            }),
            None
        );
        assert_eq!(
            counts_for(&AwaitedRun {
                applied: None,
                ..run()
            }),
            None
        );
    }

    #[test]
    fn no_other_end_counts_and_failures_are_remembered() {
        for (outcome, expected) in [
            ("FAILED", true),
            ("OUT_OF_MEMORY", true),
            ("TIMEOUT", true),
            ("CANCELLED", false),
            ("PREEMPTED", false),
            ("NODE_FAIL", false),
            ("REQUEUED", false),
        ] {
            let ended = AwaitedRun {
                outcome: Some(outcome.into()),
                ..run()
            };
            match judged(&ended) {
                Some(Verdict::NotCounted { failed, .. }) => {
                    assert_eq!(failed.is_some(), expected, "{outcome}")
                }
                other => panic!("{outcome}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_job_whose_step_failed_is_not_taken_for_a_fast_one() {
        let failed = AwaitedRun {
            wait_status: Some(256),
            ..run()
        };
        assert!(matches!(
            judged(&failed),
            Some(Verdict::NotCounted {
                failed: Some(_),
                ..
            })
        ));
    }

    #[test]
    fn a_run_without_a_measured_step_or_a_meaningful_name_does_not_count() {
        assert_eq!(
            counts_for(&AwaitedRun {
                elapsed: None,
                ..run()
            }),
            None
        );
        let note = json!({ "app": "wrap", "note": "meaningless_name" });
        assert_eq!(
            counts_for(&AwaitedRun {
                request: note,
                ..run()
            }),
            None
        );
    }

    #[test]
    fn each_half_of_the_truth_is_waited_for_and_not_for_ever() {
        let no_outcome = AwaitedRun {
            outcome: None,
            outcome_age: None,
            ..run()
        };
        assert_eq!(judged(&no_outcome), None);
        let long = AwaitedRun {
            reported_age: Some(601.0),
            ..no_outcome.clone()
        };
        assert_eq!(judged(&long), None, "Slurm still lists the job");
        assert!(verdict(&long, &long.default, false, PATIENCE).is_some());

        let no_report = AwaitedRun {
            reported: false,
            applied: None,
            elapsed: None,
            ..run()
        };
        assert_eq!(judged(&no_report), None);
        assert!(
            judged(&AwaitedRun {
                outcome_age: Some(3601.0),
                ..no_report.clone()
            })
            .is_some()
        );

        let silent = AwaitedRun {
            outcome: None,
            age: 3601.0,
            ..no_report
        };
        assert_eq!(judged(&silent), None, "it may be a long job");
        assert!(verdict(&silent, &silent.default, false, PATIENCE).is_some());
    }
}
