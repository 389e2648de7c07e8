//! Which run a record belongs to, and which of a run's records holds. Times: µs since 1970.

use super::Source;

/// Microseconds. The clocks of slurmctld and the database should differ by less, and a prolog
/// begins soon after its job.
const SLACK: i64 = 5_000_000;

/// Microseconds. A record further than this from a run is of another launch with the same key.
const OTHER_LAUNCH: i64 = 600_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunAt {
    pub(super) run_id: i64,
    pub(super) restart_count: i32,
    pub(super) started_at: i64,
    /// The start never arrived: `started_at` is the time of the report.
    pub(super) unstarted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct OutcomeRecord {
    pub(super) id: i64,
    pub(super) source: Source,
    pub(super) state: String,
    pub(super) restart_count: Option<i32>,
    pub(super) started_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
    pub(super) suspended: bool,
    pub(super) limit_seconds: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Truth {
    pub(super) outcome: String,
    pub(super) source: Source,
    pub(super) suspended: bool,
    pub(super) limit_seconds: Option<i64>,
}

/// For each record the run of the same job that it belongs to, if that is known:
///
/// * A record with a restart count belongs to the nearest run with that count, within
///   `OTHER_LAUNCH`.
/// * Any other belongs to the run that started inside its interval, nearest to its begin.
/// * A run without a start has no known begin. It takes a record only if no other record is
///   possible.
/// * sacct has no begin for some launches that were requeued early. Such a record belongs to the
///   last run before its end, unless sacct has another record of that run.
pub(super) fn claims(records: &[OutcomeRecord], runs: &[RunAt]) -> Vec<Option<i64>> {
    let mut claims: Vec<_> = records.iter().map(|record| claim(record, runs)).collect();
    for (place, record) in records.iter().enumerate() {
        let (Source::Sacct, None, None, Some(end)) = (
            record.source,
            record.restart_count,
            record.started_at,
            record.ended_at,
        ) else {
            continue;
        };
        let run_id = runs
            .iter()
            .filter(|run| !run.unstarted && run.started_at <= end.saturating_add(SLACK))
            .max_by_key(|run| run.started_at)
            .map(|run| run.run_id);
        let spoken_for = records
            .iter()
            .zip(&claims)
            .any(|(other, claim)| other.source == record.source && *claim == run_id);
        if !spoken_for {
            claims[place] = run_id;
        }
    }
    let mut unstarted = runs.iter().filter(|run| {
        let has_word = claims.contains(&Some(run.run_id));
        run.unstarted && !has_word
    });
    if let (Some(run), None) = (unstarted.next(), unstarted.next()) {
        let run_id = run.run_id;
        for source in Source::ALL {
            let mut possible = records.iter().enumerate().filter(|(place, record)| {
                claims[*place].is_none()
                    && record.source == source
                    && record.restart_count.is_none()
                    && record.started_at.is_some()
                    && record
                        .ended_at
                        .is_some_and(|end| end <= run.started_at + SLACK)
            });
            if let (Some((place, _)), None) = (possible.next(), possible.next()) {
                claims[place] = Some(run_id);
            }
        }
    }
    claims
}

fn claim(record: &OutcomeRecord, runs: &[RunAt]) -> Option<i64> {
    if let Some(restart_count) = record.restart_count {
        let same = runs.iter().filter(|run| {
            let began = record.started_at.unwrap_or(i64::MIN);
            let ended = record.ended_at.unwrap_or(i64::MAX);
            // Without a start, `started_at` is the time of the report, which may be days later.
            run.restart_count == restart_count
                && run.started_at >= began.saturating_sub(OTHER_LAUNCH)
                && (run.unstarted || run.started_at <= ended.saturating_add(OTHER_LAUNCH))
        });
        let nearest = |run: &&RunAt| match record.started_at {
            Some(began) => (began.abs_diff(run.started_at), 0),
            None => (0, -run.run_id),
        };
        return same.min_by_key(nearest).map(|run| run.run_id);
    }
    let begin = record.started_at?.saturating_sub(SLACK);
    let end = record.ended_at.unwrap_or(i64::MAX).saturating_add(SLACK);
    runs.iter()
        .filter(|run| !run.unstarted && (begin..=end).contains(&run.started_at))
        .min_by_key(|run| distance(record, run))
        .map(|run| run.run_id)
}

fn distance(record: &OutcomeRecord, run: &RunAt) -> u64 {
    match (record.restart_count, record.started_at) {
        (None, Some(begin)) => begin.abs_diff(run.started_at),
        _ => 0,
    }
}

/// What a run's records say together; `None`: there are none.
///
/// A record made at the job's end beats one queried later; any record beats an inferred requeue.
/// Within a source, the record whose begin is nearest to the run's wins, then the latest.
pub(super) fn truth(run: &RunAt, records: &[&OutcomeRecord]) -> Option<Truth> {
    let worth = |record: &&&OutcomeRecord| {
        let inferred = record.source == Source::Squeue && record.state == REQUEUED;
        let nearness = std::cmp::Reverse(distance(record, run));
        (!inferred, record.source, nearness, record.id)
    };
    let best = records.iter().max_by_key(worth)?;
    let limit = |record: &&&OutcomeRecord| record.limit_seconds.is_some();
    Some(Truth {
        outcome: best.state.clone(),
        source: best.source,
        suspended: records.iter().any(|record| record.suspended),
        limit_seconds: records
            .iter()
            .filter(limit)
            .max_by_key(worth)
            .and_then(|record| record.limit_seconds),
    })
}

/// The state of a requeued launch. From squeue it is inferred: squeue lists only the last launch.
const REQUEUED: &str = "REQUEUED";

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn run(restart_count: i32, started_at: i64) -> RunAt {
        RunAt {
            run_id: 100 + i64::from(restart_count),
            restart_count,
            started_at: started_at * SECOND,
            unstarted: false,
        }
    }

    fn reported(restart_count: i32, at: i64) -> RunAt {
        RunAt {
            unstarted: true,
            ..run(restart_count, at)
        }
    }

    fn recorded(source: Source, state: &str, from: i64, to: i64) -> OutcomeRecord {
        OutcomeRecord {
            id: from,
            source,
            state: state.into(),
            restart_count: None,
            started_at: Some(from * SECOND),
            ended_at: Some(to * SECOND),
            suspended: false,
            limit_seconds: None,
        }
    }

    fn counted(state: &str, restart_count: i32) -> OutcomeRecord {
        OutcomeRecord {
            restart_count: Some(restart_count),
            started_at: None,
            ended_at: None,
            ..recorded(Source::Squeue, state, 0, 0)
        }
    }

    #[test]
    fn a_word_speaks_of_the_launch_that_began_in_its_interval() {
        let runs = [run(0, 1000), run(1, 1060), run(2, 1120)];
        let records = [
            recorded(Source::Jobcomp, "REQUEUED", 1000, 1030),
            recorded(Source::Jobcomp, "NODE_FAIL", 1059, 1090),
            recorded(Source::Jobcomp, "COMPLETED", 1121, 1200),
        ];
        assert_eq!(claims(&records, &runs), [Some(100), Some(101), Some(102)]);
        let early = recorded(Source::Jobcomp, "COMPLETED", 1004, 1006);
        let late = recorded(Source::Jobcomp, "COMPLETED", 1007, 1009);
        assert_eq!(claims(&[early, late], &runs), [Some(100), None]);
    }

    #[test]
    fn a_word_without_a_begin_is_the_last_launchs_before_its_end_if_that_has_no_other() {
        let beginless = |state, end: i64| OutcomeRecord {
            started_at: None,
            ..recorded(Source::Sacct, state, 0, end)
        };
        // sacct 22.05.8: preempted two seconds after its start, and launched again.
        let runs = [run(0, 1000), run(1, 1010)];
        let records = [
            beginless("PREEMPTED", 1002),
            recorded(Source::Sacct, "COMPLETED", 1010, 1015),
        ];
        assert_eq!(claims(&records, &runs), [Some(100), Some(101)]);
        let records = [
            recorded(Source::Sacct, "COMPLETED", 1000, 1005),
            beginless("CANCELLED", 1020),
        ];
        assert_eq!(claims(&records, &runs[..1]), [Some(100), None]);
        assert_eq!(claims(&[beginless("CANCELLED", 900)], &runs), [None]);
    }

    #[test]
    fn the_restart_count_says_it_where_it_is_known() {
        let runs = [run(0, 1000), run(1, 1060)];
        assert_eq!(claims(&[counted("COMPLETED", 1)], &runs), [Some(101)]);
        assert_eq!(claims(&[counted("COMPLETED", 2)], &runs), [None]);
    }

    #[test]
    fn a_job_id_that_was_given_again_is_told_apart_by_the_time() {
        const DAY: i64 = 86_400;
        let again = RunAt {
            run_id: 200,
            ..run(0, DAY + 1000)
        };
        let unstarted = RunAt {
            run_id: 300,
            ..reported(0, 3 * DAY)
        };
        let runs = [run(0, 1000), again.clone(), unstarted];
        let record = |from, to| OutcomeRecord {
            restart_count: Some(0),
            ..recorded(Source::Squeue, "COMPLETED", from, to)
        };
        let records = [
            record(1000, 1060),
            record(DAY + 1000, DAY + 1060),
            record(2 * DAY, 2 * DAY + 60),
            record(4 * DAY, 4 * DAY + 60),
        ];
        assert_eq!(
            claims(&records, &runs),
            [Some(100), Some(200), Some(300), None]
        );
        // An inferred requeue has no times: it belongs to the latest run.
        assert_eq!(claims(&[counted("REQUEUED", 0)], &runs), [Some(300)]);
        // The first run with the id still waits: its record never came.
        assert_eq!(claims(&records[1..2], &runs[..1]), [None]);
        assert_eq!(claims(&records[..1], &[again]), [None]);
    }

    #[test]
    fn launches_that_are_close_together_get_the_nearer_word() {
        let runs = [run(0, 1000), run(1, 1004)];
        let records = [
            recorded(Source::Jobcomp, "REQUEUED", 1000, 1002),
            recorded(Source::Jobcomp, "COMPLETED", 1004, 1010),
        ];
        assert_eq!(claims(&records, &runs), [Some(100), Some(101)]);
        // Before the second record, the first may be of a launch without a run.
        let second = &runs[1..];
        assert_eq!(claims(&records, second), [Some(101), Some(101)]);
        let both: Vec<_> = records.iter().collect();
        assert_eq!(truth(&runs[1], &both).unwrap().outcome, "COMPLETED");
    }

    #[test]
    fn a_job_that_never_began_speaks_of_no_run() {
        let never = OutcomeRecord {
            started_at: None,
            ..recorded(Source::Jobcomp, "CANCELLED", 0, 1000)
        };
        let records = [never];
        assert_eq!(claims(&records, &[run(0, 999)]), [None]);
        assert_eq!(claims(&records, &[reported(0, 1001)]), [None]);
    }

    #[test]
    fn a_run_without_a_start_takes_the_only_word_that_ended_before_its_report() {
        let records = [recorded(Source::Jobcomp, "COMPLETED", 1000, 1500)];
        assert_eq!(claims(&records, &[reported(0, 9000)]), [Some(100)]);
        assert_eq!(claims(&records, &[reported(0, 1400)]), [None]);
        let two = [
            records[0].clone(),
            recorded(Source::Jobcomp, "FAILED", 1600, 1700),
        ];
        assert_eq!(claims(&two, &[reported(0, 9000)]), [None, None]);
        let runs = [reported(0, 9000), run(1, 1600)];
        assert_eq!(claims(&two, &runs), [Some(100), Some(101)]);
        let both = [
            records[0].clone(),
            recorded(Source::Sacct, "COMPLETED", 1000, 1500),
        ];
        assert_eq!(claims(&both, &runs[..1]), [Some(100), Some(100)]);
    }

    #[test]
    fn the_better_word_holds() {
        let outcome =
            |records: &[&OutcomeRecord]| truth(&run(0, 1000), records).map(|truth| truth.outcome);
        let requeued = counted("REQUEUED", 0);
        let squeue = counted("COMPLETED", 0);
        let sacct = recorded(Source::Sacct, "NODE_FAIL", 1000, 1010);
        let jobcomp = recorded(Source::Jobcomp, "PREEMPTED", 1000, 1010);
        assert_eq!(outcome(&[]), None);
        assert_eq!(outcome(&[&requeued]).unwrap(), "REQUEUED");
        assert_eq!(outcome(&[&requeued, &squeue]).unwrap(), "COMPLETED");
        assert_eq!(outcome(&[&sacct, &requeued, &squeue]).unwrap(), "NODE_FAIL");
        assert_eq!(outcome(&[&jobcomp, &sacct, &squeue]).unwrap(), "PREEMPTED");
        // A requeue that slurmctld itself reported is not inferred.
        let told = recorded(Source::Jobcomp, "REQUEUED", 1000, 1010);
        assert_eq!(outcome(&[&told, &sacct]).unwrap(), "REQUEUED");
    }

    #[test]
    fn what_one_source_does_not_know_another_may() {
        let jobcomp = recorded(Source::Jobcomp, "COMPLETED", 1000, 1010);
        let squeue = OutcomeRecord {
            suspended: true,
            limit_seconds: Some(60),
            ..counted("COMPLETED", 0)
        };
        let truth = truth(&run(0, 1000), &[&jobcomp, &squeue]).unwrap();
        assert_eq!(truth.source, Source::Jobcomp);
        assert_eq!((truth.suspended, truth.limit_seconds), (true, Some(60)));
    }
}
