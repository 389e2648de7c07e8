//! One operation on the store.

use std::time::Duration;

use io_autotune_engine::{Parametrization, Phase, Role};
use io_autotune_store::{
    Audit, AwaitedRun, Lock, Store, StoreError, StudyFilter, StudyKey, Verdict,
};

use crate::support::{CLUSTER, Random, Report, Start, decision, other_space, point, space, study};

/// One operation on the store.
pub(crate) enum Operation {
    Start(Box<Start>, Phase, Role, Parametrization),
    Finish(Box<Report>),
    Outcome(i64, &'static str),
    Judge(i64, Verdict),
    Reset(i64),
    Pin(i64, Parametrization),
    Unpin(i64),
}

/// Jobs are few, so that some are started and finished again and again.
const JOBS: u32 = 400;

impl Operation {
    /// A random one; Slurm's word and a verdict only for a run that there is, and as the run is now.
    pub(crate) async fn any(random: &mut Random, store: &Store) -> Self {
        let awaited = store.awaited_runs(CLUSTER, true, 1000).await.unwrap();
        let only = |wanted: fn(&AwaitedRun) -> bool| -> Vec<AwaitedRun> {
            awaited.iter().filter(|run| wanted(run)).cloned().collect()
        };
        let reported = only(|run| run.reported);
        let known = only(|run| run.reported && run.outcome.is_some());
        match random.below(100) {
            0..35 => Self::start(random),
            35..60 => Self::finish(random, &awaited),
            60..75 if !reported.is_empty() => {
                let outcomes = ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT"];
                let run_id = random.of(&reported).run_id;
                let &outcome = random.of(&outcomes);
                Self::Outcome(run_id, outcome)
            }
            // Now and then a run that was lost.
            75..77 if !awaited.is_empty() => {
                let run = random.of(&awaited);
                Self::Judge(run.run_id, verdict(run))
            }
            77..95 if !known.is_empty() => {
                let run = random.of(&known);
                Self::Judge(run.run_id, verdict(run))
            }
            95.. => {
                let studies = store.studies(&StudyFilter::default()).await.unwrap();
                if studies.is_empty() {
                    return Self::start(random);
                }
                let study_id = random.of(&studies).study_id;
                match random.below(3) {
                    0 => Self::Reset(study_id),
                    1 => Self::Pin(study_id, point(random.below(24))),
                    _ => Self::Unpin(study_id),
                }
            }
            _ => Self::start(random),
        }
    }

    fn start(random: &mut Random) -> Self {
        let mut start = Start::of(1 + random.below(JOBS));
        start.study = study_of(start.job.job_id);
        start.lock = match random.below(4) {
            0 => Lock::None,
            _ => Lock::Wait(Duration::from_secs(10)),
        };
        // The catalogue changes now and then.
        start.space = match random.below(100) {
            0 => other_space(),
            _ => space(),
        };
        let phase = *random.of(Phase::ALL);
        let role = *random.of(Role::ALL);
        Self::Start(Box::new(start), phase, role, point(random.below(3)))
    }

    /// The report of a run that is awaited, or of a job that may never have started.
    fn finish(random: &mut Random, awaited: &[AwaitedRun]) -> Self {
        let job_id = match random.below(10) {
            0 => 1 + random.below(JOBS),
            _ if awaited.is_empty() => 1 + random.below(JOBS),
            _ => random.of(awaited).job.job_id,
        };
        let mut report = Report::of(job_id);
        report.study = study_of(job_id);
        if random.below(8) == 0 {
            report.node = "n2".into();
        }
        // Eighths are exact in binary, so that equal numbers have equal moments.
        report.elapsed = match random.below(12) {
            0 => None,
            _ => Some(5.0 + f64::from(random.below(400)) / 8.0),
        };
        report.applied = match random.below(3) {
            0 => None,
            index => Some(point(index)),
        };
        Self::Finish(Box::new(report))
    }

    /// Does it.
    ///
    /// # Panics
    /// When the store fails in a way that this operation has no reason for.
    pub(crate) async fn run(self, store: &Store) {
        let audit = Audit {
            uid: 0,
            why: "at random",
        };
        match self {
            Self::Start(start, phase, role, parametrization) => {
                start
                    .ask(store, |_| decision(phase, role, parametrization))
                    .await
                    .unwrap();
            }
            Self::Finish(report) => {
                report.deliver(store).await.unwrap();
            }
            Self::Outcome(run_id, outcome) => {
                unless_refused(store.record_outcome(run_id, outcome).await)
            }
            Self::Judge(run_id, verdict) => unless_refused(store.judge_run(run_id, &verdict).await),
            Self::Reset(study_id) => {
                store.reset(study_id, audit).await.unwrap();
            }
            Self::Pin(study_id, parametrization) => {
                store.pin(study_id, &parametrization, audit).await.unwrap();
            }
            Self::Unpin(study_id) => {
                store.unpin(study_id, audit).await.unwrap();
            }
        }
    }
}

/// Jobs are of one application of one of two users.
fn study_of(job_id: u32) -> StudyKey {
    study(1000 + job_id % 2, "solver")
}

/// The verdict that a run deserves.
fn verdict(run: &AwaitedRun) -> Verdict {
    let applied = run.applied.as_ref().map(|applied| {
        if applied["kind"] == "default" {
            return run.default.clone();
        }
        serde_json::from_value(applied["parametrization"].clone()).unwrap()
    });
    match (&run.outcome, run.elapsed, applied) {
        (Some(outcome), Some(_), Some(parametrization)) if outcome == "COMPLETED" => {
            Verdict::Counted {
                parametrization,
                why: "counted".into(),
            }
        }
        (Some(outcome), ..) if outcome == "FAILED" => Verdict::NotCounted {
            why: "failed".into(),
            failed: true,
        },
        _ => Verdict::NotCounted {
            why: "not counted".into(),
            failed: false,
        },
    }
}

/// Slurm's word may have changed since the verdict was made, or the verdict may have been given
/// since: the schema then refuses (PostgreSQL's `check_violation`), and nothing else may fail.
fn unless_refused<T>(result: Result<T, StoreError>) {
    match result {
        Ok(_) => {}
        Err(StoreError::Database {
            source: sqlx::Error::Database(error),
            ..
        }) if error.code().as_deref() == Some("23514") => {}
        Err(error) => panic!("{error:?}"),
    }
}
