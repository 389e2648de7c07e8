//! Jobs' time limits. Slurm 22.05 does not pass the limit to the prolog, so the last answer of
//! squeue is kept. It is a hint: the limit that a decision used is stored with the decision.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use io_autotune_engine::{KnownLimit, ToldBy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    Unlimited,
    Seconds(u64),
}

/// Jobs whose limits are kept: ten times Slurm's default MaxJobCount.
const MOST_JOBS: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Limits {
    jobs: RwLock<HashMap<u32, TimeLimit>>,
}

impl Limits {
    pub(crate) fn replace(&self, jobs: impl IntoIterator<Item = (u32, TimeLimit)>) {
        let jobs = jobs.into_iter().take(MOST_JOBS).collect();
        *self.jobs.write().unwrap_or_else(PoisonError::into_inner) = jobs;
    }

    pub(crate) fn of(&self, job_id: u32) -> Option<TimeLimit> {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.get(&job_id).copied()
    }
}

/// The job's own limit if known, else that of the study's latest run. `None`: unlimited or unknown.
pub(crate) fn known_limit(
    start: Option<u64>,
    squeue: Option<TimeLimit>,
    latest_run: Option<u64>,
) -> Option<KnownLimit> {
    let (seconds, told_by) = match (start, squeue) {
        (Some(seconds), _) => (seconds, ToldBy::Start),
        (None, Some(TimeLimit::Seconds(seconds))) => (seconds, ToldBy::Squeue),
        (None, Some(TimeLimit::Unlimited)) => return None,
        (None, None) => (latest_run?, ToldBy::LatestRun),
    };
    Some(KnownLimit { seconds, told_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_s_own_limit_goes_before_its_study_s() {
        let told = |start, squeue, latest| {
            known_limit(start, squeue, latest).map(|limit| (limit.seconds, limit.told_by))
        };
        let listed = Some(TimeLimit::Seconds(120));
        assert_eq!(told(Some(60), listed, Some(180)), Some((60, ToldBy::Start)));
        assert_eq!(told(None, listed, Some(180)), Some((120, ToldBy::Squeue)));
        assert_eq!(told(None, Some(TimeLimit::Unlimited), Some(180)), None);
        assert_eq!(told(None, None, Some(180)), Some((180, ToldBy::LatestRun)));
        assert_eq!(told(None, None, None), None);
    }

    #[test]
    fn only_squeue_s_latest_answer_is_remembered_and_not_without_bound() {
        let limits = Limits::default();
        limits.replace([(7, TimeLimit::Seconds(60))]);
        limits.replace([(8, TimeLimit::Unlimited)]);
        assert_eq!(
            (limits.of(7), limits.of(8)),
            (None, Some(TimeLimit::Unlimited))
        );
        limits.replace((0..200_000).map(|job_id| (job_id, TimeLimit::Seconds(60))));
        assert_eq!(limits.jobs.read().unwrap().len(), MOST_JOBS);
    }
}
