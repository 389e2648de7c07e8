//! Work of the sweeps that has failed, set apart so that nothing else waits for it.
//!
//! A sweep looks at many studies, runs and jobs. The work on one of them may be impossible: a row
//! that no release should have written, or a study that takes longer than a statement may. It is
//! tried again after a pause that doubles with each failure, and `doctor`, the metrics and the log
//! name it; the sweep goes on with the rest. Each replica has its own list, in memory: a service
//! that is restarted tries everything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use io_autotune_protocol::Check;
use io_autotune_store::StoreError;
use tokio::time::Instant;

/// A piece of a sweep's work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// A step that is not about one study, job or run.
    Step(&'static str),
    /// The assessment of a study.
    Study(i64),
    /// The choice of the studies with which a study shares its runs.
    Sharing(i64),
    /// The outcome of a job according to Slurm.
    Job { cluster: String, job_id: u32 },
    /// The verdict of a run.
    Run(i64),
}

impl Work {
    fn kind(&self) -> Kind {
        match self {
            Self::Step(_) => Kind::Steps,
            Self::Study(_) | Self::Sharing(_) => Kind::Studies,
            Self::Job { .. } => Kind::Jobs,
            Self::Run(_) => Kind::Runs,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => f.write_str(step),
            Self::Study(study_id) => write!(f, "the assessment of study {study_id}"),
            Self::Sharing(study_id) => write!(f, "whom study {study_id} hears"),
            Self::Job { cluster, job_id } => write!(f, "Slurm's word on job {job_id} of {cluster}"),
            Self::Run(run_id) => write!(f, "the verdict of run {run_id}"),
        }
    }
}

/// The kind of a piece of [`Work`], as a label of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Jobs,
    Runs,
    Steps,
    Studies,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Jobs, Self::Runs, Self::Steps, Self::Studies];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Runs => "runs",
            Self::Steps => "steps",
            Self::Studies => "studies",
        }
    }
}

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// How long work that is due is still reported if nobody tries it again: longer than a round takes,
/// and than a usual pause between sweeps.
const FORGOTTEN: Duration = Duration::from_mins(15);
/// The most pieces of work that `doctor` names.
const NAMED: usize = 5;

#[derive(Clone, Debug)]
struct Waiting {
    failures: u32,
    next: Instant,
    why: String,
}

/// All work that is set apart.
#[derive(Debug, Default)]
pub(crate) struct Apart(Mutex<BTreeMap<Work, Waiting>>);

impl Apart {
    fn waiting(&self) -> std::sync::MutexGuard<'_, BTreeMap<Work, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the work may be tried now: it has not failed, or its pause is over.
    pub(crate) fn is_due(&self, work: &Work) -> bool {
        let now = Instant::now();
        self.waiting()
            .get(work)
            .is_none_or(|waiting| waiting.next <= now)
    }

    /// The work whose pause is not over, as `of` identifies it; `of` returns `None` for work of
    /// another kind.
    fn resting<T>(&self, of: impl Fn(&Work) -> Option<T>) -> Vec<T> {
        let now = Instant::now();
        let waiting = self.waiting();
        let resting = waiting.iter().filter(|(_, waiting)| waiting.next > now);
        resting.filter_map(|(work, _)| of(work)).collect()
    }

    pub(crate) fn resting_studies(&self) -> Vec<i64> {
        self.resting(|work| match work {
            Work::Study(study_id) => Some(*study_id),
            _ => None,
        })
    }

    pub(crate) fn resting_runs(&self) -> Vec<i64> {
        self.resting(|work| match work {
            Work::Run(run_id) => Some(*run_id),
            _ => None,
        })
    }

    pub(crate) fn resting_jobs(&self, of: &str) -> Vec<i64> {
        self.resting(|work| match work {
            Work::Job { cluster, job_id } if cluster == of => Some(i64::from(*job_id)),
            _ => None,
        })
    }

    /// Records whether some work succeeded. Returns the error if it is not the work's own: while
    /// the database is away, everything has to wait.
    pub(crate) fn note(&self, work: Work, done: Result<(), StoreError>) -> Result<(), StoreError> {
        match done {
            Ok(()) => {
                if let Some(waiting) = self.waiting().remove(&work) {
                    tracing::info!(%work, failures = waiting.failures, "what was set apart is done");
                }
                Ok(())
            }
            Err(error) if error.is_outage() => Err(error),
            // The row is locked by another transaction, which will end soon.
            Err(error) if !error.is_of_the_data() => {
                tracing::debug!(%work, %error, "it is busy");
                Ok(())
            }
            Err(error) => {
                self.fail(work, error.to_string());
                Ok(())
            }
        }
    }

    /// Sets some work apart, or apart for longer.
    pub(crate) fn fail(&self, work: Work, why: String) {
        let mut all = self.waiting();
        let failures = all.get(&work).map_or(1, |waiting| waiting.failures + 1);
        let pause = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16));
        let pause = pause.min(LONGEST_PAUSE);
        tracing::warn!(
            %work,
            failures,
            seconds = pause.as_secs(),
            error = why,
            "set apart: it is tried again later, and the rest goes on"
        );
        let next = Instant::now() + pause;
        all.insert(
            work,
            Waiting {
                failures,
                next,
                why,
            },
        );
    }

    /// Returns true if the work has failed before.
    pub(crate) fn has_failed(&self, work: &Work) -> bool {
        self.waiting().contains_key(work)
    }

    /// All work that is set apart, without the work that has not been tried again although it was
    /// due: another replica has done it, or there is nothing left to do.
    fn current(&self) -> std::sync::MutexGuard<'_, BTreeMap<Work, Waiting>> {
        let now = Instant::now();
        let mut waiting = self.waiting();
        waiting.retain(|_, waiting| now < waiting.next + FORGOTTEN);
        waiting
    }

    /// The number of pieces of work of each kind that are set apart.
    pub(crate) fn counts(&self) -> [(Kind, i64); Kind::ALL.len()] {
        let waiting = self.current();
        Kind::ALL.map(|kind| {
            let of_kind = waiting.keys().filter(|work| work.kind() == kind);
            (kind, i64::try_from(of_kind.count()).unwrap_or(i64::MAX))
        })
    }

    /// The check that `doctor` shows.
    pub(crate) fn check(&self) -> Check {
        const NAME: &str = "set apart";
        let waiting = self.current();
        if waiting.is_empty() {
            return Check::ok(NAME, "nothing: every sweep does all that there is to do");
        }
        let named = waiting.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|(work, waiting)| {
                format!(
                    "{work} (failed {} times: {})",
                    waiting.failures, waiting.why
                )
            })
            .collect();
        let more = match waiting.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Check::warning(
            NAME,
            format!("{}{more}", named.join("; ")),
            "the rest goes on, and each is tried again at least once an hour; if one stays, report it with the \
             service's log of it",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(apart: &Apart, run_id: i64) {
        apart.fail(Work::Run(run_id), "it cannot be read".into());
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_ever_less_often_and_at_least_once_an_hour() {
        let apart = Apart::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            failed(&apart, 7);
            let began = Instant::now();
            while !apart.is_due(&Work::Run(7)) {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            pauses.push(began.elapsed().as_secs());
        }
        assert_eq!(pauses[..4], [10, 20, 40, 80]);
        assert_eq!(pauses[10..], [3600, 3600]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_rests_by_itself_and_what_is_done_is_forgotten() {
        let apart = Apart::default();
        failed(&apart, 7);
        let job = |cluster: &str| Work::Job {
            cluster: cluster.into(),
            job_id: 7,
        };
        apart.fail(job("alpha"), "no".into());
        assert!(!apart.is_due(&Work::Run(7)) && apart.is_due(&Work::Study(7)));
        assert!(!apart.is_due(&job("alpha")) && apart.is_due(&job("beta")));
        assert_eq!(apart.resting_runs(), [7]);
        assert_eq!(apart.resting_jobs("alpha"), [7]);
        assert!(apart.resting_jobs("beta").is_empty() && apart.resting_studies().is_empty());
        let counts = apart.counts().map(|(kind, count)| (kind.as_str(), count));
        assert_eq!(
            counts,
            [("jobs", 1), ("runs", 1), ("steps", 0), ("studies", 0)]
        );
        let told = apart.check().detail;
        assert!(
            told.contains("the verdict of run 7 (failed 1 times: it cannot be read)"),
            "{told}"
        );
        apart.note(Work::Run(7), Ok(())).unwrap();
        assert!(apart.is_due(&Work::Run(7)));
        // Another replica has done it: nobody tries it again here.
        tokio::time::advance(FIRST_PAUSE + FORGOTTEN).await;
        assert_eq!(apart.counts().map(|(_, count)| count), [0; 4]);
    }

    #[test]
    fn an_outage_is_nobodys_and_what_is_busy_is_tried_at_once() {
        let apart = Apart::default();
        let outage = StoreError::Busy {
            transaction: "x",
            scarce: io_autotune_store::Scarce::Connections,
        };
        assert!(apart.note(Work::Run(7), Err(outage)).is_err());
        let busy = StoreError::Busy {
            transaction: "x",
            scarce: io_autotune_store::Scarce::Study,
        };
        apart.note(Work::Run(7), Err(busy)).unwrap();
        assert!(apart.is_due(&Work::Run(7)));
        assert_eq!(apart.check().state, io_autotune_protocol::CheckState::Ok);
    }
}
