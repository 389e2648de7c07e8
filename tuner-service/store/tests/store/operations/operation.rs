//! One operation on the store.

use std::time::Duration;

use io_autotune_model::{NotCountedBecause, Outcome, Parametrization, Phase, Role};
use io_autotune_store::{AwaitedRun, RunFilter, Source, Store, StudyFilter, StudyKey, Verdict};

use crate::support::{
    CLUSTER, Lock, Random, Report, Start, by, decision, other_space, point, space, study, word,
};

/// One operation on the store.
pub(crate) enum Operation {
    Start(Box<Start>, Phase, Role, Parametrization),
    Finish(Box<Report>),
    Outcome(Source, Outcome),
    Claim,
    Judge(i64, i64, Verdict),
    Release(i64),
    Reset(i64),
    Pin(i64, Parametrization),
    Unpin(i64),
    Accept(i64),
}

/// The number of jobs, small enough for some to be started and finished again and again.
const JOBS: u32 = 400;

impl Operation {
    /// A random operation. A verdict is only given on an existing run, by its present state.
    pub(crate) async fn any(random: &mut Random, store: &Store) -> Self {
        let awaited = store
            .awaited_runs(CLUSTER, true, 1000, &[])
            .await
            .unwrap()
            .runs;
        let only = |wanted: fn(&AwaitedRun) -> bool| -> Vec<AwaitedRun> {
            awaited.iter().filter(|run| wanted(run)).cloned().collect()
        };
        let reported = only(|run| run.reported);
        let known = only(|run| run.reported && run.outcome.is_some());
        // Runs that were judged and have changes since then.
        let contradicted = only(|run| run.state != "in_flight");
        match random.below(100) {
            0..25 => Self::start(random),
            25..46 => Self::finish(random, &awaited),
            46..57 if !reported.is_empty() => {
                let job_id = random.of(&reported).job.job_id;
                Self::outcome(random, job_id)
            }
            // The report of a job that was judged already, or that may never have started.
            57..68 => {
                let newest = RunFilter {
                    limit: 50,
                    ..RunFilter::default()
                };
                let mut runs = store.runs(&newest).await.unwrap();
                runs.retain(|run| run.state != "in_flight");
                let job_id = match random.below(8) {
                    0 => 1 + random.below(JOBS),
                    _ if runs.is_empty() => 1 + random.below(JOBS),
                    _ => random.of(&runs).job.job_id,
                };
                Self::outcome(random, job_id)
            }
            68..70 => Self::Claim,
            // A verdict, sometimes on a run that was lost.
            70..73 if !awaited.is_empty() => Self::judge(random.of(&awaited)),
            73..82 if !contradicted.is_empty() => Self::judge(random.of(&contradicted)),
            82..95 if !known.is_empty() => Self::judge(random.of(&known)),
            95..97 if !awaited.is_empty() => Self::Release(random.of(&awaited).run_id),
            97.. => {
                let studies = store.studies(&StudyFilter::default()).await.unwrap();
                if studies.is_empty() {
                    return Self::start(random);
                }
                let study_id = random.of(&studies).study_id;
                match random.below(4) {
                    0 => Self::Reset(study_id),
                    1 => Self::Pin(study_id, point(random.below(24))),
                    2 => Self::Unpin(study_id),
                    _ => Self::Accept(study_id),
                }
            }
            _ => Self::start(random),
        }
    }

    fn judge(run: &AwaitedRun) -> Self {
        Self::Judge(run.run_id, run.changes, verdict(run))
    }

    /// An outcome record of a source about a job's first launch.
    fn outcome(random: &mut Random, job_id: u32) -> Self {
        let outcomes = ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT"];
        let source = *random.of(Source::ALL);
        let outcome = match *random.of(&outcomes) {
            "FAILED" if job_id.is_multiple_of(2) => "OUT_OF_MEMORY",
            outcome => outcome,
        };
        Self::Outcome(source, word(job_id, outcome))
    }

    fn start(random: &mut Random) -> Self {
        let mut start = Start::of(1 + random.below(JOBS));
        start.study = study_of(start.job.job_id);
        start.lock = match random.below(4) {
            0 => Lock::None,
            _ => Lock::Wait(Duration::from_secs(10)),
        };
        // The catalogue changes now and then.
        start.space = match random.below(30) {
            0 => other_space(),
            _ => space(),
        };
        let phase = *random.of(Phase::ALL);
        let role = *random.of(Role::ALL);
        Self::Start(Box::new(start), phase, role, point(random.below(3)))
    }

    /// The report of an awaited run, or of a job that may never have started.
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

    /// Executes the operation.
    ///
    /// # Panics
    /// When the store fails in a way that this operation has no reason for.
    pub(crate) async fn run(self, store: &Store) {
        let audit = by(0, "at random");
        match self {
            Self::Start(start, phase, role, parametrization) => {
                start
                    .ask(store, |_| decision(phase, role, parametrization.clone()))
                    .await
                    .unwrap();
            }
            Self::Finish(report) => {
                report.deliver(store).await.unwrap();
            }
            Self::Outcome(source, word) => {
                store
                    .record_outcomes(source, CLUSTER, &[word])
                    .await
                    .unwrap();
            }
            Self::Claim => {
                store.claim_outcomes(CLUSTER, &[]).await.unwrap();
            }
            // The verdict may be outdated by now, but is never refused.
            Self::Judge(run_id, changes, verdict) => {
                store.judge_run(run_id, changes, &verdict).await.unwrap();
            }
            Self::Release(run_id) => store.release_run(run_id).await.unwrap(),
            Self::Accept(study_id) => {
                store.accept_mixed(study_id, audit).await.unwrap();
            }
            Self::Reset(study_id) => {
                store.reset(study_id, audit).await.unwrap();
            }
            Self::Pin(study_id, parametrization) => {
                store
                    .pin(study_id, &parametrization, None, audit)
                    .await
                    .unwrap();
            }
            Self::Unpin(study_id) => {
                store.unpin(study_id, audit).await.unwrap();
            }
        }
    }
}

/// The study of a job: all jobs are of one application of one of two users.
fn study_of(job_id: u32) -> StudyKey {
    study(1000 + job_id % 2, "solver")
}

/// The correct verdict on a run.
fn verdict(run: &AwaitedRun) -> Verdict {
    let applied = run.applied.as_ref().map(|applied| {
        if applied["kind"] == "default" {
            return run.default.clone();
        }
        serde_json::from_value(applied["parametrization"].clone()).unwrap()
    });
    let why = format!("{:?} after {:?} s", run.outcome, run.elapsed);
    match (run.outcome.as_deref(), run.elapsed, applied) {
        (Some("COMPLETED"), Some(_), Some(parametrization)) => Verdict::Counted {
            parametrization,
            why,
        },
        (Some("TIMEOUT"), Some(_), Some(parametrization)) => Verdict::Censored {
            parametrization,
            why,
        },
        (Some(word), ..) => {
            let because = NotCountedBecause::of_state(word).unwrap_or(NotCountedBecause::NoStep);
            let is_failure = matches!(
                because,
                NotCountedBecause::Failed | NotCountedBecause::OutOfMemory
            );
            Verdict::NotCounted {
                because,
                why,
                failed: is_failure.then(|| run.launched.clone()),
            }
        }
        _ => Verdict::NotCounted {
            because: NotCountedBecause::Unconfirmed,
            why,
            failed: None,
        },
    }
}
