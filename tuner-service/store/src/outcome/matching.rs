//! Matching: the run that a record belongs to, and the record that decides for a run. Times are
//! microseconds since 1970.

use super::Source;

/// The microseconds by which the clocks of slurmctld and the database may differ, and after which a
/// prolog begins at the latest.
const SLACK: i64 = 5_000_000;

/// The microseconds beyond which a record belongs to another launch with the same key.
const OTHER_LAUNCH: i64 = 600_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunAt {
    pub(super) run_id: i64,
    pub(super) restart_count: i32,
    pub(super) started_at: i64,
    /// True if the start never arrived: `started_at` is then the time of the report.
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
/// - A record with a restart count belongs to the nearest run with that count, within
///   `OTHER_LAUNCH`.
/// - Any other record belongs to the run that started inside its interval, nearest to its begin.
///   Slurm counts whole seconds, and may launch a job again at once: the records of one source each
///   get a run of their own, in their order, as far as there are enough runs.
/// - A run without a start has no known begin. It takes a record only if no other record is
///   possible.
/// - sacct has no begin for some launches that were requeued early. Such a record belongs to the
///   last run before its end, unless sacct has another record of that run.
pub(super) fn claims(records: &[OutcomeRecord], runs: &[RunAt]) -> Vec<Option<i64>> {
    let mut claims: Vec<_> = records.iter().map(|record| claim(record, runs)).collect();
    for &source in Source::ALL {
        for (place, run_id) in in_order(source, records, runs) {
            claims[place] = Some(run_id);
        }
    }
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
        for &source in Source::ALL {
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
    runs.iter()
        .filter(|run| started_inside(record, run))
        .min_by_key(|run| distance(record, run))
        .map(|run| run.run_id)
}

fn started_inside(record: &OutcomeRecord, run: &RunAt) -> bool {
    let Some(began) = record.started_at else {
        return false;
    };
    let end = record.ended_at.unwrap_or(i64::MAX).saturating_add(SLACK);
    !run.unstarted && (began.saturating_sub(SLACK)..=end).contains(&run.started_at)
}

/// The largest set of pairs of a record and a run, both in order of time, and among those sets the
/// one with the nearest pairs, because launches of one job follow each other. Returns places in
/// `records`, with runs.
fn in_order(source: Source, records: &[OutcomeRecord], runs: &[RunAt]) -> Vec<(usize, i64)> {
    let mut records: Vec<_> = records
        .iter()
        .enumerate()
        .filter(|(_, record)| {
            record.source == source && record.restart_count.is_none() && record.started_at.is_some()
        })
        .collect();
    if records.len() < 2 {
        return Vec::new();
    }
    records.sort_by_key(|(_, record)| (record.started_at, record.ended_at, record.id));
    let mut runs: Vec<_> = runs.iter().filter(|run| !run.unstarted).collect();
    runs.sort_by_key(|run| (run.started_at, run.run_id));
    // For the first n records and m runs: the number of pairs, and the sum of their distances.
    let worse = |(pairs, apart): (usize, u128)| (std::cmp::Reverse(pairs), apart);
    let mut best = vec![vec![(0, 0); runs.len() + 1]; records.len() + 1];
    let paired = |best: &[Vec<(usize, u128)>], i: usize, j: usize| {
        let (record, run) = (records[i - 1].1, runs[j - 1]);
        let (pairs, apart) = best[i - 1][j - 1];
        started_inside(record, run).then(|| (pairs + 1, apart + u128::from(distance(record, run))))
    };
    for i in 1..=records.len() {
        for j in 1..=runs.len() {
            best[i][j] = [
                Some(best[i - 1][j]),
                Some(best[i][j - 1]),
                paired(&best, i, j),
            ]
            .into_iter()
            .flatten()
            .min_by_key(|found| worse(*found))
            .unwrap_or_default();
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (records.len(), runs.len());
    while i > 0 && j > 0 {
        if best[i][j] == best[i - 1][j] {
            i -= 1;
        } else if best[i][j] == best[i][j - 1] {
            j -= 1;
        } else {
            pairs.push((records[i - 1].0, runs[j - 1].run_id));
            (i, j) = (i - 1, j - 1);
        }
    }
    pairs
}

fn distance(record: &OutcomeRecord, run: &RunAt) -> u64 {
    match (record.restart_count, record.started_at) {
        (None, Some(begin)) => begin.abs_diff(run.started_at),
        _ => 0,
    }
}

/// The outcome that a run's records give together; `None`: there are none.
///
/// A record made at the job's end is preferred to one queried later, and any record to an inferred
/// requeue. Within a source, the record whose begin is nearest to the run's is preferred, then the
/// latest.
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

/// The state of a requeued launch. It is inferred if it comes from squeue, which lists only the
/// last launch.
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
        // The first run with the id still waits, because its record never came.
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
        // Before the second record arrives, the first may belong to a launch without a run.
        let second = &runs[1..];
        assert_eq!(claims(&records, second), [Some(101), Some(101)]);
        let both: Vec<_> = records.iter().collect();
        assert_eq!(truth(&runs[1], &both).unwrap().outcome, "COMPLETED");
    }

    /// Slurm 26.05, --requeue=expedite: the second launch begins in the same second in which the
    /// first has begun and ended.
    #[test]
    fn launches_within_one_second_get_each_its_own_word() {
        let at = |restart_count, micros: i64| RunAt {
            started_at: 1000 * SECOND + micros,
            ..run(restart_count, 1000)
        };
        let runs = [at(0, 126_028), at(1, 503_772)];
        let records = [
            recorded(Source::Jobcomp, "FAILED", 1000, 1000),
            recorded(Source::Jobcomp, "COMPLETED", 1000, 1001),
        ];
        assert_eq!(claims(&records, &runs), [Some(100), Some(101)]);
        let [first, second] = records.clone();
        let backwards = [second.clone(), first.clone()];
        assert_eq!(claims(&backwards, &runs), [Some(101), Some(100)]);
        let runs_backwards = [runs[1].clone(), runs[0].clone()];
        assert_eq!(claims(&records, &runs_backwards), [Some(100), Some(101)]);
        // Each source has records of both launches.
        let sacct = |record: &OutcomeRecord| OutcomeRecord {
            source: Source::Sacct,
            ..record.clone()
        };
        let both = [first.clone(), sacct(&first), sacct(&second), second.clone()];
        assert_eq!(
            claims(&both, &runs),
            [Some(100), Some(100), Some(101), Some(101)]
        );
        // While one of the two is missing, the nearest run gets the record.
        assert_eq!(claims(&[first], &runs), [Some(100)]);
        // One of three launches has no run.
        let third = recorded(Source::Jobcomp, "COMPLETED", 1003, 1004);
        let runs = [at(0, 126_028), at(2, 3_100_000)];
        let three = [records[0].clone(), records[1].clone(), third];
        assert_eq!(claims(&three, &runs)[2], Some(102));
        assert_eq!(claims(&three, &runs)[0], Some(100));
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
