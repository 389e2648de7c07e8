//! The verdict on a run. It counts, for the parametrization that was applied, if Slurm says
//! COMPLETED or, without an outcome, if a source once listed its job and nothing speaks against it.
//! A timeout is a lower bound. No other end ever looks fast.

use std::time::Duration;

use io_autotune_engine::Parametrization;
use io_autotune_model::{NotCountedBecause, Objective};
use io_autotune_protocol::{Applied, Note, Request, count_hosts, has_host};
use io_autotune_store::Verdict;

use crate::merge::MergedRun;

/// Slurm's limits are in minutes: an elapsed below this is below any limit.
const SHORTEST_LIMIT_SECONDS: f64 = 60.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Wait of a reported run for its outcome.
    pub(crate) outcome: Duration,
    /// Wait for missing reports of a job that ended well.
    pub(crate) report: Duration,
    /// When an ended run frees its exploring place, or a run of which no source knows is given up.
    pub(crate) release: Duration,
    /// When a run without a report is given up if no source can be queried.
    pub(crate) lost: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Alive,
    /// No queried source knows it.
    Unknown,
    /// A source did not answer, so silence means nothing.
    NoAnswer,
    /// No source can be queried; one reports by itself.
    Nobody,
    NoSource,
}

#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) launched: &'a Parametrization,
    pub(crate) default: &'a Parametrization,
    /// The study's objective.
    pub(crate) objective: &'a Objective,
    /// The user's request, if readable.
    pub(crate) request: Option<Request>,
    pub(crate) reported: Option<MergedRun>,
    /// True if the job's burst buffer has, or may have, directives of which no node knows.
    pub(crate) directed: bool,
    /// The job's user, by the node that started it.
    pub(crate) uid: u32,
    /// That node.
    pub(crate) node: &'a str,
    /// The job's user by Slurm, if known.
    pub(crate) owner: Option<u32>,
    /// The job's nodes by Slurm, if known.
    pub(crate) node_list: Option<&'a str>,
    /// True if a source has ever listed the job.
    pub(crate) listed: bool,
    /// Slurm's state.
    pub(crate) outcome: Option<&'a str>,
    pub(crate) suspended: bool,
    /// The job's time limit in seconds, if Slurm gave it.
    pub(crate) limit_seconds: Option<u64>,
    /// The time since the run's start.
    pub(crate) age: Duration,
    /// The time since its first report.
    pub(crate) reported_age: Duration,
    /// The time since its first outcome record.
    pub(crate) outcome_age: Duration,
    pub(crate) asked: Asked,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    Wait,
    /// Wait, but free its exploring place: its job is over.
    Release,
    Judge(Verdict),
}

/// Why a run does not count: the reason of the list, and the sentence with its particulars.
type WhyNot = (NotCountedBecause, String);

pub(crate) fn next(facts: &Facts<'_>, timeouts: Timeouts) -> Next {
    if facts.outcome.is_some()
        && let Some(why) = contradiction(facts)
    {
        return Next::Judge(not_counted(why));
    }
    match (facts.outcome, &facts.reported) {
        (Some("COMPLETED"), Some(run)) => completed(facts, run, timeouts),
        (Some("COMPLETED"), None) => wait_for_reports(
            facts.outcome_age,
            timeouts,
            NotCountedBecause::NotReported,
            "Slurm says COMPLETED, and no node reported the run",
        ),
        (Some("TIMEOUT"), reported) => Next::Judge(cut_short(facts, reported.as_ref())),
        (Some(word), _) => {
            let because =
                NotCountedBecause::of_state(word).unwrap_or(NotCountedBecause::EndedOtherwise);
            let why = (because, format!("Slurm says {word}"));
            Next::Judge(match because {
                NotCountedBecause::Failed | NotCountedBecause::OutOfMemory => failed(facts, why),
                _ => not_counted(why),
            })
        }
        (None, Some(run)) => without_a_record(facts, run, timeouts),
        (None, None) => silent(facts, timeouts),
    }
}

fn completed(facts: &Facts<'_>, run: &MergedRun, timeouts: Timeouts) -> Next {
    if let Some(missing) = &run.missing {
        return wait_for_parts(facts, run, missing, timeouts);
    }
    if run.may_lack_steps && facts.reported_age < timeouts.release {
        return Next::Wait;
    }
    if let Err(why) = says_something(facts).and_then(|()| kept_its_size(facts, run)) {
        return Next::Judge(not_counted(why));
    }
    if run.wait_status != 0 {
        // Without a batch step a job ends as its user's shell does, whatever its steps did.
        let status = run.wait_status;
        let why = format!("Slurm says COMPLETED, but a step ended with wait status {status}");
        return Next::Judge(failed(facts, (NotCountedBecause::Failed, why)));
    }
    if facts.suspended {
        return Next::Judge(not_counted(suspended()));
    }
    Next::Judge(sample(facts, run, ""))
}

/// Why a run cannot be trusted to be of its job: root of any node can start and report a run of any
/// job.
fn contradiction(facts: &Facts<'_>) -> Option<WhyNot> {
    let node = facts.node;
    match (facts.owner, facts.node_list) {
        (Some(owner), _) if owner != facts.uid => {
            let why = format!(
                "Slurm says that it is a job of uid {owner}, and {node} started it for uid {}",
                facts.uid
            );
            Some((NotCountedBecause::OtherOwner, why))
        }
        (_, Some(nodes)) if !has_host(nodes, node) => {
            let why = format!(
                "{node} started it, and Slurm says that it ran on {nodes} when it ended: it gave up nodes meanwhile, or \
                 {node} is not one of its nodes"
            );
            Some((NotCountedBecause::OtherNodes, why))
        }
        _ => {
            let why = facts.reported.as_ref()?.contradiction.clone()?;
            Some((NotCountedBecause::TooManyNodes, why))
        }
    }
}

/// Waits for missing parts of steps. If all nodes have reported, one ran no prolog, and the wait
/// ends.
fn wait_for_parts(facts: &Facts<'_>, run: &MergedRun, missing: &str, timeouts: Timeouts) -> Next {
    let because = NotCountedBecause::PartlyReported;
    if run.all_reported {
        return Next::Judge(not_counted((because, missing.to_owned())));
    }
    wait_for_reports(facts.reported_age, timeouts, because, missing)
}

fn wait_for_reports(
    waited: Duration,
    timeouts: Timeouts,
    because: NotCountedBecause,
    missing: &str,
) -> Next {
    if waited >= timeouts.report {
        Next::Judge(not_counted((because, missing.to_owned())))
    } else if waited >= timeouts.release {
        Next::Release
    } else {
        Next::Wait
    }
}

fn cut_short(facts: &Facts<'_>, reported: Option<&MergedRun>) -> Verdict {
    match lower_bound(facts, reported) {
        Ok(verdict) => verdict,
        Err((because, why)) => not_counted((because, format!("Slurm says TIMEOUT; {why}"))),
    }
}

fn lower_bound(facts: &Facts<'_>, reported: Option<&MergedRun>) -> Result<Verdict, WhyNot> {
    const WORD: &str = "Slurm says TIMEOUT";
    let run = reported.ok_or_else(|| {
        let why = "no node has reported how long the run took".to_owned();
        (NotCountedBecause::NotReported, why)
    })?;
    says_something(facts)?;
    kept_its_size(facts, run)?;
    if facts.suspended {
        return Err(suspended());
    }
    if let Some(missing) = &run.missing {
        return Err((NotCountedBecause::PartlyReported, missing.clone()));
    }
    let elapsed = run.elapsed.ok_or_else(no_step)?;
    if let Some(measure) = facts.objective.measure() {
        // There is no lower bound, but the job is lost all the same.
        let why = format!("{WORD}; of {measure}, the study's objective, nothing is known then");
        return Ok(failed(facts, (NotCountedBecause::TimedOut, why)));
    }
    Ok(Verdict::Censored {
        parametrization: had(facts, &run.applied)?,
        why: format!("{WORD}: it would have taken longer than {elapsed:.3} s"),
    })
}

fn suspended() -> WhyNot {
    let why = "it was suspended for a while".to_owned();
    (NotCountedBecause::Suspended, why)
}

fn no_step() -> WhyNot {
    let why = "no step was seen to start and end".to_owned();
    (NotCountedBecause::NoStep, why)
}

/// A failure counts against the parametrization that was applied; if that is not known, against the
/// one with which the run was launched; against none if a node reports another one than was given.
fn failed(facts: &Facts<'_>, (because, why): WhyNot) -> Verdict {
    let nameless = says_something(facts).is_err();
    let blamed = match facts.reported.as_ref().map(|run| &run.applied) {
        _ if nameless => None,
        Some(Applied::User { .. }) => None,
        Some(Applied::Default) if !facts.directed => Some(facts.default),
        Some(Applied::Parametrization { parametrization }) if parametrization != facts.launched => {
            None
        }
        Some(Applied::Parametrization { .. } | Applied::Incomplete { .. } | Applied::Default)
        | None => Some(facts.launched),
    };
    Verdict::NotCounted {
        because,
        why,
        failed: blamed.cloned(),
    }
}

fn without_a_record(facts: &Facts<'_>, run: &MergedRun, timeouts: Timeouts) -> Next {
    match facts.asked {
        Asked::Alive | Asked::NoAnswer => Next::Wait,
        Asked::Unknown | Asked::Nobody if facts.reported_age < timeouts.outcome => {
            if facts.reported_age >= timeouts.release {
                Next::Release
            } else {
                Next::Wait
            }
        }
        Asked::Unknown | Asked::Nobody | Asked::NoSource => fallback(facts, run, timeouts),
    }
}

/// Without an outcome a run counts only if a source has ever listed its job, the batch step has
/// wait status 0, the epilogs were given 0:0, and elapsed is below the limit. A site without
/// sources has chosen to believe the nodes alone.
fn fallback(facts: &Facts<'_>, run: &MergedRun, timeouts: Timeouts) -> Next {
    if let Some(why) = contradiction(facts) {
        return Next::Judge(not_counted(why));
    }
    if let Some(missing) = &run.missing {
        return wait_for_parts(facts, run, missing, timeouts);
    }
    if let Err(why) = says_something(facts) {
        return Next::Judge(not_counted(why));
    }
    let verdict = match doubt(facts, run) {
        Some(doubt) => {
            let why = format!("Slurm's word could not be had, and {doubt}");
            not_counted((NotCountedBecause::Unconfirmed, why))
        }
        None => sample(facts, run, "; Slurm's word could not be had"),
    };
    Next::Judge(verdict)
}

fn doubt(facts: &Facts<'_>, run: &MergedRun) -> Option<String> {
    if !facts.listed && facts.asked != Asked::NoSource {
        return Some("no source ever listed the job: a made-up start looks the same".into());
    }
    if !run.has_batch_step {
        return Some("there was no batch step whose wait status could speak for it".into());
    }
    if run.wait_status != 0 {
        let status = run.wait_status;
        return Some(format!("the batch step ended with wait status {status}"));
    }
    let Some(epilog) = &run.epilog else {
        return Some("the epilog was told no exit code".into());
    };
    for code in [&epilog.exit_code, &epilog.derived_exit_code] {
        if code != "0:0" {
            return Some(format!("the epilog was told exit code {code}"));
        }
    }
    let elapsed = run.elapsed?;
    let limit = facts.limit_seconds.or(epilog.limit_seconds);
    #[expect(clippy::cast_precision_loss, reason = "no limit is that long")]
    let limit = limit.map(|limit| limit as f64);
    match limit {
        Some(limit) if elapsed >= limit => Some(format!(
            "{elapsed:.3} s are not below the time limit of {limit:.0} s"
        )),
        None if elapsed >= SHORTEST_LIMIT_SECONDS => Some("the time limit is not known".into()),
        _ => None,
    }
}

fn silent(facts: &Facts<'_>, timeouts: Timeouts) -> Next {
    let timeout = match facts.asked {
        Asked::Alive | Asked::NoAnswer => return Next::Wait,
        Asked::Unknown => timeouts.release,
        Asked::Nobody | Asked::NoSource => timeouts.lost,
    };
    if facts.age >= timeout {
        let why = "the job was never heard of again".to_owned();
        Next::Judge(not_counted((NotCountedBecause::Lost, why)))
    } else {
        Next::Wait
    }
}

/// Returns the reason if a run cannot be attributed to an application.
fn says_something(facts: &Facts<'_>) -> Result<(), WhyNot> {
    let nameless = facts
        .request
        .as_ref()
        .is_none_or(|request| request.note == Some(Note::MeaninglessName) || request.app.is_none());
    if nameless {
        let why = "the job's name says nothing about the application".to_owned();
        return Err((NotCountedBecause::NoName, why));
    }
    Ok(())
}

/// Returns the reason if the job gave up nodes or got more while it ran: its elapsed belongs to
/// neither size.
fn kept_its_size(facts: &Facts<'_>, run: &MergedRun) -> Result<(), WhyNot> {
    let ended_with = facts.node_list.and_then(count_hosts);
    match (run.nodes, ended_with) {
        (Some(began_with), Some(ended_with)) if u64::from(began_with) != ended_with => {
            let why = format!(
                "its size was changed while it ran: it began on {began_with} nodes, and Slurm says that it ended on \
                 {ended_with}"
            );
            Err((NotCountedBecause::Resized, why))
        }
        _ => Ok(()),
    }
}

/// The parametrization that was applied, or why the run does not count.
fn had(facts: &Facts<'_>, applied: &Applied) -> Result<Parametrization, WhyNot> {
    Err(match applied {
        Applied::Default if facts.directed => (
            NotCountedBecause::UnknownDirectives,
            "the directives of its burst buffer were completed, or the user's own, or unknown, and no node was told"
                .to_owned(),
        ),
        Applied::Default => return Ok(facts.default.clone()),
        Applied::Parametrization { parametrization } if parametrization == facts.launched => {
            return Ok(parametrization.clone());
        }
        Applied::Parametrization { .. } => (
            NotCountedBecause::GivenOtherwise,
            "a node reported a parametrization that the run was not given".to_owned(),
        ),
        Applied::User { variables } => (
            NotCountedBecause::OwnSettings,
            format!("the user's own {} was left alone", variables.join(", ")),
        ),
        Applied::Incomplete { detail } => (
            NotCountedBecause::Incomplete,
            format!("the parametrization did not reach every step: {detail}"),
        ),
    })
}

fn sample(facts: &Facts<'_>, run: &MergedRun, remark: &str) -> Verdict {
    completed_sample(facts, run, remark).unwrap_or_else(not_counted)
}

fn completed_sample(facts: &Facts<'_>, run: &MergedRun, remark: &str) -> Result<Verdict, WhyNot> {
    let elapsed = run.elapsed.ok_or_else(no_step)?;
    let manner = match &run.applied {
        Applied::Default if facts.launched == facts.default => " with the default",
        Applied::Default => "; our answer came too late, so it counts for the default",
        _ => "",
    };
    let value = facts.objective.value(elapsed, &run.measures);
    let value = value.ok_or_else(|| unreported(facts.objective))?;
    let objective = match facts.objective {
        Objective::Elapsed => String::new(),
        other => format!(
            ", {} {}{}",
            other.words(),
            shown(other.told(value)),
            other.unit()
        ),
    };
    Ok(Verdict::Counted {
        parametrization: had(facts, &run.applied)?,
        why: format!("completed in {elapsed:.3} s{objective}{manner}{remark}"),
    })
}

/// A number of any size to four digits.
fn shown(value: f64) -> String {
    let exponent = value.abs().log10().floor();
    match (-3.0..6.0).contains(&exponent) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 6"
        )]
        true => format!("{value:.*}", (3.0 - exponent).max(0.0) as usize),
        false => format!("{value:.3e}"),
    }
}

fn unreported(objective: &Objective) -> WhyNot {
    let why = format!(
        "the study's objective is {}, and the job has not told it: it needs {}",
        objective.words(),
        objective.in_job().unwrap_or_default()
    );
    (NotCountedBecause::NoObjective, why)
}

fn not_counted((because, why): WhyNot) -> Verdict {
    Verdict::NotCounted {
        because,
        why,
        failed: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use io_autotune_engine::Value;
    use io_autotune_protocol::EpilogOutcome;

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        outcome: Duration::from_secs(600),
        report: Duration::from_secs(3600),
        release: Duration::from_secs(60),
        lost: Duration::from_secs(604_800),
    };

    fn point(value: i64) -> Parametrization {
        Parametrization(BTreeMap::from([("size".to_owned(), Value::Integer(value))]))
    }

    static LAUNCHED: LazyLock<Parametrization> = LazyLock::new(|| point(4));
    static DEFAULT: LazyLock<Parametrization> = LazyLock::new(|| point(1));

    fn merged() -> MergedRun {
        MergedRun {
            elapsed: Some(2.0),
            wait_status: 0,
            applied: Applied::Parametrization {
                parametrization: point(4),
            },
            measures: BTreeMap::new(),
            epilog: Some(EpilogOutcome {
                exit_code: "0:0".into(),
                derived_exit_code: "0:0".into(),
                limit_seconds: None,
            }),
            missing: None,
            all_reported: true,
            nodes: Some(2),
            may_lack_steps: false,
            has_batch_step: true,
            contradiction: None,
        }
    }

    fn facts(outcome: Option<&'static str>, reported: Option<MergedRun>) -> Facts<'static> {
        Facts {
            launched: &LAUNCHED,
            default: &DEFAULT,
            objective: &Objective::Elapsed,
            request: Some("app=ocean".parse().unwrap()),
            reported,
            directed: false,
            uid: 1000,
            node: "n1",
            owner: Some(1000),
            node_list: Some("n[1-2]"),
            listed: true,
            outcome,
            suspended: false,
            limit_seconds: None,
            age: Duration::from_secs(10),
            reported_age: Duration::from_secs(1),
            outcome_age: Duration::from_secs(1),
            asked: Asked::Unknown,
        }
    }

    fn completed_with(reported: MergedRun) -> Facts<'static> {
        facts(Some("COMPLETED"), Some(reported))
    }

    fn with(applied: Applied) -> MergedRun {
        MergedRun {
            applied,
            ..merged()
        }
    }

    fn user() -> Applied {
        Applied::User {
            variables: vec!["ROMIO_HINTS".into()],
        }
    }

    fn partial() -> Applied {
        Applied::Incomplete {
            detail: "step 3".into(),
        }
    }

    fn judged(facts: &Facts<'_>) -> Verdict {
        match next(facts, TIMEOUTS) {
            Next::Judge(verdict) => verdict,
            other => panic!("{other:?}: {facts:?}"),
        }
    }

    fn counts_for(facts: &Facts<'_>) -> Option<Parametrization> {
        match judged(facts) {
            Verdict::Counted {
                parametrization, ..
            } => Some(parametrization),
            _ => None,
        }
    }

    fn is_bound(facts: &Facts<'_>) -> bool {
        matches!(judged(facts), Verdict::Censored { .. })
    }

    fn blamed(facts: &Facts<'_>) -> Option<Parametrization> {
        match judged(facts) {
            Verdict::NotCounted { failed, .. } => failed,
            other => panic!("{other:?}"),
        }
    }

    fn why(facts: &Facts<'_>) -> String {
        match judged(facts) {
            Verdict::NotCounted { why, .. }
            | Verdict::Counted { why, .. }
            | Verdict::Censored { why, .. } => why,
        }
    }

    #[test]
    fn a_run_that_slurm_says_is_anothers_or_was_elsewhere_counts_for_nothing() {
        type Edit = fn(&mut Facts<'_>);
        let edits: [(Edit, &str); 2] = [
            (
                |facts| facts.owner = Some(1001),
                "a job of uid 1001, and n1 started it for uid 1000",
            ),
            (
                |facts| facts.node = "n3",
                "n3 started it, and Slurm says that it ran on n[1-2]",
            ),
        ];
        for (edit, expected) in edits {
            for word in ["COMPLETED", "FAILED", "TIMEOUT"] {
                let mut facts = facts(Some(word), Some(merged()));
                edit(&mut facts);
                assert_eq!(counts_for(&facts), None);
                assert_eq!(blamed(&facts), None);
                assert!(why(&facts).contains(expected), "{}", why(&facts));
            }
        }
        let untold = Facts {
            owner: None,
            node_list: None,
            node: "n3",
            ..completed_with(merged())
        };
        assert!(counts_for(&untold).is_some());
    }

    #[test]
    fn what_nodes_contradict_each_other_in_counts_for_nothing() {
        let forged = || MergedRun {
            wait_status: 256,
            contradiction: Some("n0, n1 reported a job of 1 nodes".into()),
            ..merged()
        };
        for outcome in ["COMPLETED", "TIMEOUT", "FAILED", "CANCELLED"] {
            let told = next(&facts(Some(outcome), Some(forged())), TIMEOUTS);
            let Next::Judge(Verdict::NotCounted {
                why, failed: None, ..
            }) = told
            else {
                panic!("{outcome}: {told:?}");
            };
            assert!(why.contains("reported a job of 1 nodes"), "{why}");
        }
    }

    /// The reason of the list that a run does not count for.
    fn because(facts: &Facts<'_>) -> Option<NotCountedBecause> {
        match next(facts, TIMEOUTS) {
            Next::Judge(verdict) => verdict.because(),
            other => panic!("it is judged: {other:?}"),
        }
    }

    #[test]
    fn each_run_that_does_not_count_has_a_reason_of_the_list() {
        use NotCountedBecause as Because;
        let completed = |change: fn(&mut MergedRun)| {
            let mut run = merged();
            change(&mut run);
            completed_with(run)
        };
        let changed = |change: fn(&mut Facts<'static>)| {
            let mut facts = completed_with(merged());
            change(&mut facts);
            facts
        };
        let other = point(2);
        let given = Applied::Parametrization {
            parametrization: other,
        };
        let rate = Objective::named("rate", true).unwrap();
        for (facts, expected) in [
            (facts(Some("FAILED"), None), Because::Failed),
            (completed(|run| run.wait_status = 256), Because::Failed),
            (facts(Some("OUT_OF_MEMORY"), None), Because::OutOfMemory),
            (facts(Some("CANCELLED"), None), Because::Cancelled),
            (facts(Some("PREEMPTED"), None), Because::Preempted),
            (facts(Some("NODE_FAIL"), None), Because::NodeFailed),
            (facts(Some("DEADLINE"), None), Because::EndedOtherwise),
            (changed(|facts| facts.suspended = true), Because::Suspended),
            (completed(|run| run.nodes = Some(3)), Because::Resized),
            (facts(Some("TIMEOUT"), None), Because::NotReported),
            (
                completed(|run| run.missing = Some("step 0".into())),
                Because::PartlyReported,
            ),
            (completed(|run| run.elapsed = None), Because::NoStep),
            (
                changed(|facts| facts.request = Some("mode=tune".parse().unwrap())),
                Because::NoName,
            ),
            (completed(|run| run.applied = user()), Because::OwnSettings),
            (
                completed(|run| run.applied = partial()),
                Because::Incomplete,
            ),
            (completed_with(with(given)), Because::GivenOtherwise),
            (
                Facts {
                    directed: true,
                    ..completed_with(with(Applied::Default))
                },
                Because::UnknownDirectives,
            ),
            (changed(|facts| facts.node = "n3"), Because::OtherNodes),
            (
                changed(|facts| facts.owner = Some(2000)),
                Because::OtherOwner,
            ),
            (
                completed(|run| run.contradiction = Some("two".into())),
                Because::TooManyNodes,
            ),
            (
                Facts {
                    age: Duration::from_secs(604_800),
                    asked: Asked::Nobody,
                    ..facts(None, None)
                },
                Because::Lost,
            ),
            (
                Facts {
                    asked: Asked::NoSource,
                    ..facts(
                        None,
                        Some(MergedRun {
                            epilog: None,
                            ..merged()
                        }),
                    )
                },
                Because::Unconfirmed,
            ),
            (
                Facts {
                    objective: &rate,
                    ..completed_with(merged())
                },
                Because::NoObjective,
            ),
            (
                Facts {
                    objective: &rate,
                    ..facts(Some("TIMEOUT"), Some(merged()))
                },
                Because::TimedOut,
            ),
        ] {
            assert_eq!(because(&facts), Some(expected), "{facts:?}");
        }
    }

    #[test]
    fn a_run_of_a_job_whose_size_changed_counts_for_neither_size() {
        for (ended_on, counts) in [("n[1-2]", true), ("n1", false), ("n[1-3]", false)] {
            let told = |outcome| Facts {
                node_list: Some(ended_on),
                ..facts(Some(outcome), Some(merged()))
            };
            assert_eq!(counts_for(&told("COMPLETED")).is_some(), counts);
            assert_eq!(is_bound(&told("TIMEOUT")), counts);
            let expected = (!counts).then_some(NotCountedBecause::Resized);
            assert_eq!(because(&told("COMPLETED")), expected);
        }
        let unreadable = Facts {
            node_list: Some("n1,n[2"),
            ..completed_with(merged())
        };
        assert!(counts_for(&unreadable).is_some(), "nothing is known");
    }

    #[test]
    fn a_completed_run_counts_for_what_was_applied_and_not_for_what_was_meant() {
        assert_eq!(counts_for(&completed_with(merged())), Some(point(4)));
        let late = completed_with(with(Applied::Default));
        assert_eq!(counts_for(&late), Some(point(1)));
        assert!(why(&late).contains("came too late"));
        for applied in [user(), partial()] {
            let run = completed_with(with(applied));
            assert_eq!(counts_for(&run), None);
            assert_eq!(blamed(&run), None);
        }
    }

    #[test]
    fn a_run_without_a_measured_step_or_a_meaningful_name_does_not_count() {
        let unmeasured = MergedRun {
            elapsed: None,
            ..merged()
        };
        assert_eq!(counts_for(&completed_with(unmeasured)), None);
        for text in ["app=wrap,note=meaningless_name", "mode=tune"] {
            let nameless = |outcome| Facts {
                request: Some(text.parse().unwrap()),
                ..facts(Some(outcome), Some(merged()))
            };
            assert_eq!(counts_for(&nameless("COMPLETED")), None);
            assert_eq!(blamed(&nameless("FAILED")), None);
            assert!(!is_bound(&nameless("TIMEOUT")));
        }
    }

    #[test]
    fn failures_speak_against_what_the_run_had() {
        for word in ["FAILED", "OUT_OF_MEMORY"] {
            let of = |reported| facts(Some(word), reported);
            assert_eq!(blamed(&of(Some(merged()))), Some(point(4)));
            assert_eq!(blamed(&of(Some(with(Applied::Default)))), Some(point(1)));
            assert_eq!(blamed(&of(Some(with(user())))), None);
            assert_eq!(blamed(&of(Some(with(partial())))), Some(point(4)));
            assert_eq!(blamed(&of(None)), Some(point(4)), "no report is needed");
        }
        let step_failed = MergedRun {
            wait_status: 256,
            ..merged()
        };
        assert_eq!(blamed(&completed_with(step_failed)), Some(point(4)));
    }

    #[test]
    fn other_ends_say_nothing_and_need_no_report() {
        for word in [
            "CANCELLED",
            "PREEMPTED",
            "NODE_FAIL",
            "REQUEUED",
            "BOOT_FAIL",
            "DEADLINE",
            "REVOKED",
        ] {
            for reported in [None, Some(merged())] {
                let run = facts(Some(word), reported);
                assert_eq!(blamed(&run), None, "{word}");
                assert_eq!(why(&run), format!("Slurm says {word}"));
            }
        }
    }

    #[test]
    fn a_timeout_is_a_lower_bound_whatever_the_script_made_of_its_signal() {
        let run = facts(Some("TIMEOUT"), Some(merged()));
        assert!(is_bound(&run));
        let killed = MergedRun {
            wait_status: 15,
            ..merged()
        };
        assert!(is_bound(&facts(Some("TIMEOUT"), Some(killed))));
        assert!(
            !is_bound(&facts(Some("TIMEOUT"), None)),
            "until a report tells how long"
        );
        assert!(!is_bound(&facts(Some("TIMEOUT"), Some(with(user())))));
        let suspended = Facts {
            suspended: true,
            ..run
        };
        assert!(!is_bound(&suspended));
    }

    #[test]
    fn a_run_counts_by_its_studys_objective_or_not_at_all() {
        let objective = Objective::named("rate", true).unwrap();
        let judged = |reported: MergedRun| {
            let facts = Facts {
                objective: &objective,
                ..completed_with(reported)
            };
            match next(&facts, TIMEOUTS) {
                Next::Judge(verdict) => verdict,
                other => panic!("it is judged: {other:?}"),
            }
        };
        let untold = judged(merged());
        let Verdict::NotCounted {
            why, failed: None, ..
        } = untold
        else {
            panic!("it does not count: {untold:?}")
        };
        assert!(why.contains("objective is rate"), "{why}");
        let mut told = merged();
        told.measures.insert("objective.rate".to_owned(), 812.5);
        let Verdict::Counted { why, .. } = judged(told.clone()) else {
            panic!("it counts")
        };
        assert!(why.contains("in 2.000 s, rate 812.5"), "{why}");
        // The value that it would have reached is not known, except that it did not get there.
        let cut = Facts {
            objective: &objective,
            ..facts(Some("TIMEOUT"), Some(told))
        };
        let next = next(&cut, TIMEOUTS);
        assert!(
            matches!(
                next,
                Next::Judge(Verdict::NotCounted {
                    failed: Some(_),
                    ..
                })
            ),
            "{next:?}"
        );
    }

    #[test]
    fn a_run_that_was_suspended_does_not_count() {
        let suspended = Facts {
            suspended: true,
            ..completed_with(merged())
        };
        assert_eq!(counts_for(&suspended), None);
        assert!(why(&suspended).contains("suspended"));
    }

    #[test]
    fn the_report_of_a_job_that_completed_is_waited_for_without_its_place_and_not_for_ever() {
        let after = |seconds| Facts {
            outcome_age: Duration::from_secs(seconds),
            ..facts(Some("COMPLETED"), None)
        };
        assert_eq!(next(&after(59), TIMEOUTS), Next::Wait);
        assert_eq!(next(&after(60), TIMEOUTS), Next::Release);
        assert_eq!(counts_for(&after(3600)), None);
    }

    #[test]
    fn the_part_of_a_node_is_waited_for_without_a_place_and_not_for_ever() {
        let missing = MergedRun {
            missing: Some("step 0 ran on 2 nodes, and 1 of them reported it".into()),
            all_reported: false,
            ..merged()
        };
        let after = |seconds| Facts {
            reported_age: Duration::from_secs(seconds),
            ..completed_with(missing.clone())
        };
        assert_eq!(next(&after(59), TIMEOUTS), Next::Wait);
        assert_eq!(next(&after(60), TIMEOUTS), Next::Release);
        assert!(why(&after(3600)).contains("1 of them"));
        let nothing_to_come = MergedRun {
            all_reported: true,
            ..missing.clone()
        };
        assert!(why(&completed_with(nothing_to_come)).contains("1 of them"));
        let timeout = facts(Some("TIMEOUT"), Some(missing));
        assert!(!is_bound(&timeout));
    }

    #[test]
    fn steps_that_may_have_run_elsewhere_are_waited_for_a_short_while() {
        let quiet = MergedRun {
            may_lack_steps: true,
            ..merged()
        };
        let after = |seconds| Facts {
            reported_age: Duration::from_secs(seconds),
            ..completed_with(quiet.clone())
        };
        assert_eq!(next(&after(59), TIMEOUTS), Next::Wait);
        assert_eq!(counts_for(&after(60)), Some(point(4)));
    }

    #[test]
    fn slurms_word_is_waited_for_while_it_may_come() {
        let after = |asked, seconds| Facts {
            asked,
            reported_age: Duration::from_secs(seconds),
            ..facts(None, Some(merged()))
        };
        for asked in [Asked::Unknown, Asked::Nobody] {
            assert_eq!(next(&after(asked, 59), TIMEOUTS), Next::Wait);
            assert_eq!(next(&after(asked, 599), TIMEOUTS), Next::Release);
            assert_eq!(counts_for(&after(asked, 600)), Some(point(4)));
        }
        for asked in [Asked::Alive, Asked::NoAnswer] {
            assert_eq!(next(&after(asked, 1_000_000), TIMEOUTS), Next::Wait);
        }
        assert_eq!(counts_for(&after(Asked::NoSource, 0)), Some(point(4)));
    }

    #[test]
    fn without_slurms_word_a_run_counts_only_if_nothing_speaks_against_it() {
        let alone = |run: MergedRun| Facts {
            asked: Asked::NoSource,
            ..facts(None, Some(run))
        };
        let epilog = |exit: &str, derived: &str, limit_seconds| {
            Some(EpilogOutcome {
                exit_code: exit.into(),
                derived_exit_code: derived.into(),
                limit_seconds,
            })
        };
        type Change = fn(&mut MergedRun);
        let changes: [(Change, &str); 6] = [
            (|run| run.has_batch_step = false, "no batch step"),
            (|run| run.wait_status = 15, "wait status 15"),
            (|run| run.epilog = None, "no exit code"),
            (|run| run.elapsed = Some(60.0), "limit is not known"),
            (|run| run.elapsed = None, "no step"),
            (|run| run.applied = user(), "ROMIO_HINTS"),
        ];
        for (change, expected) in changes {
            let mut run = merged();
            change(&mut run);
            let run = alone(run);
            assert_eq!(counts_for(&run), None, "{expected}");
            assert_eq!(blamed(&run), None);
            assert!(why(&run).contains(expected), "{}", why(&run));
        }
        for (exit, derived) in [("0:125", "0:0"), ("0:0", "3:0")] {
            let mut run = merged();
            run.epilog = epilog(exit, derived, None);
            assert_eq!(counts_for(&alone(run)), None);
        }
        for (elapsed, limit, counts) in [
            (59.0, None, true),
            (100.0, Some(120), true),
            (120.0, Some(120), false),
        ] {
            let mut run = merged();
            run.elapsed = Some(elapsed);
            run.epilog = epilog("0:0", "0:0", limit);
            assert_eq!(
                counts_for(&alone(run)).is_some(),
                counts,
                "{elapsed} of {limit:?}"
            );
        }
    }

    /// Attack (nodes): Root of a node reports a run of a job that no source ever listed.
    /// Outcome: It counts only if Slurm says that it completed, or if no source is configured.
    #[test]
    fn a_job_that_no_source_ever_listed_counts_by_slurms_word_alone() {
        let made_up = |asked, outcome| Facts {
            asked,
            listed: false,
            reported_age: Duration::from_secs(600),
            ..facts(outcome, Some(merged()))
        };
        for asked in [Asked::Unknown, Asked::Nobody] {
            let run = made_up(asked, None);
            assert_eq!(counts_for(&run), None);
            assert_eq!(blamed(&run), None);
            assert!(why(&run).contains("no source ever listed the job"));
            assert_eq!(
                counts_for(&made_up(asked, Some("COMPLETED"))),
                Some(point(4))
            );
        }
        assert_eq!(
            counts_for(&made_up(Asked::NoSource, None)),
            Some(point(4)),
            "an admin's choice"
        );
    }

    #[test]
    fn a_job_that_nobody_knows_any_more_is_given_up() {
        let after = |asked, seconds| Facts {
            asked,
            age: Duration::from_secs(seconds),
            ..facts(None, None)
        };
        assert_eq!(next(&after(Asked::Unknown, 59), TIMEOUTS), Next::Wait);
        assert!(why(&after(Asked::Unknown, 60)).contains("never heard of again"));
        for asked in [Asked::Alive, Asked::NoAnswer] {
            assert_eq!(next(&after(asked, 10_000_000), TIMEOUTS), Next::Wait);
        }
        for asked in [Asked::Nobody, Asked::NoSource] {
            assert_eq!(
                next(&after(asked, 604_799), TIMEOUTS),
                Next::Wait,
                "it may be long"
            );
            assert!(why(&after(asked, 604_800)).contains("never heard of again"));
        }
    }
}
