//! The course of a campaign: what comes next, by what is known of its jobs and of their study. Pure.

use io_autotune_model::{FindingKind, GainVerdict, Rule};
use io_autotune_protocol::{RunState, RunSummary, StudySummary};
use jiff::{SignedDuration, Timestamp};

/// So many jobs in a row that do not count end a campaign: what ails them is not a setting.
pub(crate) const IN_VAIN: usize = 3;

/// The seconds of an hour.
pub(crate) const HOUR: f64 = 3600.0;

/// A job of the campaign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub(crate) job_id: u32,
    /// Its launches, the last one last; none, as long as the service has none.
    pub(crate) launches: Vec<RunSummary>,
    pub(crate) is_over: bool,
    /// True if an earlier command of the campaign has submitted it, and not this one.
    pub(crate) is_old: bool,
}

/// The limits that the user has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) runs: u32,
    pub(crate) node_seconds: f64,
    pub(crate) at_once: u32,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Submit,
    /// Until a job is over.
    Wait,
    End(End),
}

/// The reason why a campaign ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A gain is claimed.
    Claimed,
    /// Nothing is left to win.
    NothingLeft,
    /// All its runs are done.
    Runs,
    /// The next run may take more than the node-hours that are left.
    NodeHours,
    /// An order, or the study's pin, says what its runs get.
    Ordered,
    /// Its jobs are only observed.
    Observed,
    /// Job after job does not count.
    InVain,
    /// The service has no run of a job.
    Unknown(u32),
}

impl End {
    /// True if there is nothing to go on with.
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Claimed | Self::NothingLeft | Self::Runs)
    }
}

impl Job {
    pub(crate) fn counts(&self) -> bool {
        let states = self.launches.iter().map(|run| run.state);
        states
            .into_iter()
            .any(|state| state == RunState::Counted || state == RunState::Censored)
    }

    /// The time that it has taken, over all its launches.
    pub(crate) fn node_seconds(&self) -> f64 {
        self.launches.iter().map(node_seconds).sum()
    }
}

/// The node-seconds of a launch. What has no elapsed yet has none.
pub(crate) fn node_seconds(run: &RunSummary) -> f64 {
    let elapsed = run.elapsed.or_else(|| {
        let took = run.finished_at?.duration_since(run.started_at);
        Some(took.as_secs_f64().max(0.0))
    });
    elapsed.unwrap_or(0.0) * f64::from(run.nodes.unwrap_or(1))
}

/// The number of jobs that are over.
pub(crate) fn done(jobs: &[Job]) -> usize {
    jobs.iter().filter(|job| job.is_over).count()
}

/// The node-seconds that jobs have taken so far, as far as their ends are known.
pub(crate) fn spent(jobs: &[Job]) -> f64 {
    jobs.iter().map(Job::node_seconds).sum()
}

/// The step that is next. `usual`: the node-seconds of a run of the same application before the
/// campaign, 0 if there is none.
pub(crate) fn next(jobs: &[Job], study: Option<&StudySummary>, limits: Limits, usual: f64) -> Step {
    let open = jobs.len() - done(jobs);
    let wait_or = |end| match open {
        0 => Step::End(end),
        _ => Step::Wait,
    };
    if let Some(end) = by_study(study).or_else(|| by_jobs(jobs)) {
        return wait_or(end);
    }
    if jobs.len() >= limits.runs as usize {
        return wait_or(End::Runs);
    }
    if open >= limits.at_once as usize {
        return Step::Wait;
    }
    let ended = jobs.iter().filter(|job| job.is_over);
    let longest = ended.map(Job::node_seconds).fold(0.0, f64::max);
    let longest = if longest > 0.0 { longest } else { usual };
    // How long a run takes is not known: one goes ahead.
    if longest == 0.0 && open > 0 {
        return Step::Wait;
    }
    let whole: f64 = jobs
        .iter()
        .map(|job| match job.is_over {
            true => job.node_seconds(),
            false => job.node_seconds().max(longest),
        })
        .sum();
    match whole + longest > limits.node_seconds {
        true => wait_or(End::NodeHours),
        false => Step::Submit,
    }
}

/// The reason to end that the study's status gives.
fn by_study(study: Option<&StudySummary>) -> Option<End> {
    let study = study?;
    let rule = study.next.as_ref().map(|next| next.rule);
    if study.nameless || matches!(rule, Some(Rule::Observed | Rule::MixedWork)) {
        return Some(End::Observed);
    }
    if study.ordered.is_some() {
        return Some(End::Ordered);
    }
    let known = study.assessment.as_ref()?;
    let is_nothing = known
        .findings
        .iter()
        .any(|one| one.kind == FindingKind::NothingToWin);
    match known.gain.verdict {
        GainVerdict::Faster => Some(End::Claimed),
        GainVerdict::NoEffect | GainVerdict::Slower => Some(End::NothingLeft),
        _ => is_nothing.then_some(End::NothingLeft),
    }
}

/// The reason to end that the jobs of this command give. Those of earlier ones were looked at then.
fn by_jobs(jobs: &[Job]) -> Option<End> {
    let ended = || jobs.iter().filter(|job| job.is_over && !job.is_old);
    if let Some(job) = ended().find(|job| job.launches.is_empty()) {
        return Some(End::Unknown(job.job_id));
    }
    let in_vain = ended().rev().take_while(|job| !job.counts()).count();
    (in_vain >= IN_VAIN).then_some(End::InVain)
}

/// When the last run should end, if the others come as fast as those before, the times in the queue
/// among them. `None` before the first one has ended.
pub(crate) fn expected_end(jobs: &[Job], runs: u32, now: Timestamp) -> Option<Timestamp> {
    let ended: Vec<&RunSummary> = jobs
        .iter()
        .filter(|job| job.is_over && !job.is_old)
        .filter_map(|job| job.launches.last())
        .collect();
    let first = ended.iter().map(|run| run.started_at).min()?;
    let last = ended.iter().filter_map(|run| run.finished_at).max()?;
    let left = runs.saturating_sub(u32::try_from(done(jobs)).ok()?);
    let each = last.duration_since(first).as_secs_f64().max(0.0) / ended.len() as f64;
    let span = SignedDuration::try_from_secs_f64(each * f64::from(left)).ok()?;
    now.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(job_id: u32, state: &str, elapsed: Option<f64>) -> RunSummary {
        let started = Timestamp::from_second(i64::from(job_id) * 100).unwrap();
        let finished = elapsed.map(|_| started + SignedDuration::from_secs(60));
        serde_json::from_value(serde_json::json!({
            "run_id": job_id, "study_id": 1, "application": "ocean.sh", "uid": 1000, "user": "io-alice",
            "nodes": 2, "epoch": 1, "epoch_opened_at": started, "epoch_opened_why": "first run",
            "cluster": "alpha", "job_id": job_id, "restart_count": 0, "node": "n1", "phase": "baseline",
            "role": null, "parametrization": null, "differs": null, "reason": null, "state": state,
            "verdict": null, "outcome": null, "applied": null, "elapsed": elapsed, "wait_status": null,
            "measures": {}, "started_at": started, "finished_at": finished,
        }))
        .unwrap()
    }

    fn job(job_id: u32, state: &str, elapsed: Option<f64>) -> Job {
        Job {
            job_id,
            launches: vec![run(job_id, state, elapsed)],
            is_over: elapsed.is_some(),
            is_old: false,
        }
    }

    fn counted(job_id: u32, elapsed: f64) -> Job {
        job(job_id, "counted", Some(elapsed))
    }

    fn study(verdict: &str) -> StudySummary {
        serde_json::from_value(serde_json::json!({
            "study_id": 7, "application": "ocean.sh", "uid": 1000, "user": "io-alice",
            "accelerator": "romio", "context": {}, "epoch": 1,
            "opened": { "at": "1970-01-01T00:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
            "phase": "settled", "counted": 1, "not_counted": 0, "in_flight": 0, "explored": [0, 50],
            "default": null, "control": null, "tuned": null, "gain": null, "recommended": null,
            "differs": {}, "why": "", "pin": null, "warnings": [],
            "assessment": {
                "epoch": 1, "effects": [], "findings": [],
                "gain": {
                    "verdict": verdict, "reason": "", "share": null, "low": null, "high": null,
                    "level": 0.95, "tuned_runs": 0, "control_runs": 0, "detectable": null,
                    "runs_needed": null, "evidence": 1.0,
                },
            },
        }))
        .unwrap()
    }

    const LIMITS: Limits = Limits {
        runs: 4,
        node_seconds: 100.0,
        at_once: 1,
    };

    fn of(jobs: &[Job]) -> Step {
        next(jobs, None, LIMITS, 0.0)
    }

    #[test]
    fn one_job_after_the_other_is_submitted_until_all_are_done() {
        assert_eq!(of(&[]), Step::Submit);
        assert_eq!(of(&[job(1, "in_flight", None)]), Step::Wait);
        // It waits in the queue, and nothing is known of it.
        let queued = Job {
            job_id: 1,
            ..Job::default()
        };
        assert_eq!(of(&[queued]), Step::Wait);
        let mut jobs = vec![counted(1, 10.0)];
        assert_eq!(of(&jobs), Step::Submit);
        jobs.extend([
            counted(2, 10.0),
            counted(3, 10.0),
            job(4, "in_flight", None),
        ]);
        assert_eq!(of(&jobs), Step::Wait);
        jobs[3] = counted(4, 10.0);
        assert_eq!(of(&jobs), Step::End(End::Runs));
        assert!(End::Runs.is_done() && !End::NodeHours.is_done());
    }

    #[test]
    fn several_run_at_once_where_the_user_says_so_once_one_has_said_how_long_it_takes() {
        let limits = Limits {
            at_once: 3,
            ..LIMITS
        };
        let of = |jobs: &[Job], usual| next(jobs, None, limits, usual);
        let open = |job_id| job(job_id, "in_flight", None);
        assert_eq!(of(&[open(1)], 0.0), Step::Wait);
        assert_eq!(of(&[open(1)], 20.0), Step::Submit);
        assert_eq!(of(&[counted(1, 10.0), open(2), open(3)], 0.0), Step::Submit);
        assert_eq!(of(&[open(1), open(2), open(3)], 20.0), Step::Wait);
    }

    #[test]
    fn no_run_is_begun_that_may_take_more_than_is_left() {
        // Two nodes each: 40 and 30 node-seconds of 100, then of 110.
        let jobs = [counted(1, 20.0), counted(2, 15.0)];
        assert_eq!(of(&jobs), Step::End(End::NodeHours));
        let more = Limits {
            node_seconds: 110.0,
            ..LIMITS
        };
        assert_eq!(next(&jobs, None, more, 0.0), Step::Submit);
        // What runs may take as long.
        let open = [counted(1, 20.0), job(2, "in_flight", None)];
        let more = Limits { at_once: 2, ..more };
        assert_eq!(next(&open, None, more, 0.0), Step::Wait);
        assert_eq!(spent(&open), 40.0);
        // Known from before.
        assert_eq!(next(&[], None, LIMITS, 100.5), Step::End(End::NodeHours));
    }

    #[test]
    fn it_ends_by_what_the_studys_status_says() {
        let jobs = [counted(1, 10.0)];
        let of = |study: &StudySummary| next(&jobs, Some(study), LIMITS, 0.0);
        for (verdict, step) in [
            ("not_yet", Step::Submit),
            ("unclear", Step::Submit),
            ("faster", Step::End(End::Claimed)),
            ("no_effect", Step::End(End::NothingLeft)),
            ("slower", Step::End(End::NothingLeft)),
        ] {
            assert_eq!(of(&study(verdict)), step, "{verdict}");
        }
        let mut nothing = study("not_yet");
        let known = nothing.assessment.as_mut().unwrap();
        known.findings = serde_json::from_value(serde_json::json!([
            { "kind": "nothing_to_win", "what": "x", "do": "" }
        ]))
        .unwrap();
        assert_eq!(of(&nothing), Step::End(End::NothingLeft));
        let ordered = StudySummary {
            ordered: Some("off".to_owned()),
            ..study("faster")
        };
        assert_eq!(of(&ordered), Step::End(End::Ordered));
        let nameless = StudySummary {
            nameless: true,
            ..study("not_yet")
        };
        assert_eq!(of(&nameless), Step::End(End::Observed));
        // What runs is waited for.
        let open = [counted(1, 10.0), job(2, "in_flight", None)];
        assert_eq!(next(&open, Some(&study("faster")), LIMITS, 0.0), Step::Wait);
    }

    #[test]
    fn jobs_that_do_not_count_end_it_and_begin_afresh_when_it_is_gone_on_with() {
        let failed = |job_id| job(job_id, "not_counted", Some(1.0));
        let limits = Limits { runs: 20, ..LIMITS };
        let of = |jobs: &[Job]| next(jobs, None, limits, 0.0);
        let mut jobs = vec![counted(1, 1.0), failed(2), failed(3)];
        assert_eq!(of(&jobs), Step::Submit);
        jobs.push(failed(4));
        assert_eq!(of(&jobs), Step::End(End::InVain));
        jobs.push(job(5, "censored", Some(1.0)));
        assert_eq!(of(&jobs), Step::Submit);
        let gone = Job {
            job_id: 6,
            is_over: true,
            ..Job::default()
        };
        jobs.push(gone);
        assert_eq!(of(&jobs), Step::End(End::Unknown(6)));
        let old: Vec<Job> = jobs
            .into_iter()
            .map(|job| Job {
                is_old: true,
                ..job
            })
            .collect();
        assert_eq!(of(&old), Step::Submit);
    }

    #[test]
    fn the_expected_end_is_by_the_pace_so_far() {
        let now = Timestamp::from_second(1000).unwrap();
        assert_eq!(expected_end(&[], 4, now), None);
        assert_eq!(expected_end(&[job(1, "in_flight", None)], 4, now), None);
        // They began at 100 and 200, and the second ended at 260: 80 s each.
        let jobs = [counted(1, 60.0), counted(2, 60.0)];
        let end = Timestamp::from_second(1160).unwrap();
        assert_eq!(expected_end(&jobs, 4, now), Some(end));
        assert_eq!(expected_end(&jobs, 2, now), Some(now));
    }
}
