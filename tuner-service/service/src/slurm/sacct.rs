//! slurmdbd's records, with one `sacct` for many jobs.
//!
//! sacct has no restart count. With `--duplicates` it lists each launch with start and end, and the
//! store joins them to runs by interval. It is not asked for the account: a user may write that
//! text, and without fixed column widths it could forge a record. Nor is it asked for the user: for
//! a user without an association it prints 0 (seen with 22.05).

use std::time::Duration;

use io_autotune_model::is_end;
use io_autotune_protocol::{Outcome, is_hostlist};
use io_autotune_store::Source;

use super::command::Program;
use super::notation::{END_OF_A_LAUNCH_PUT_BACK, seconds, time};
use super::{Answer, Asking, Launch, OutcomeSource};

const JOBS_PER_CALL: usize = 1000;

/// Job ids recur: records that ended this long before the oldest launch are another job's.
const SLACK: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct Sacct {
    program: Program,
}

impl Sacct {
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }
}

impl OutcomeSource for Sacct {
    fn name(&self) -> Source {
        Source::Sacct
    }

    fn ask<'a>(&'a self, launches: &'a [Launch]) -> Asking<'a> {
        Box::pin(async move {
            let mut all = Answer::default();
            for launches in launches.chunks(JOBS_PER_CALL) {
                let text = self.program.output(&arguments(launches)).await?;
                let part = answer(&text);
                all.outcomes.extend(part.outcomes);
                all.alive.extend(part.alive);
            }
            Ok(all)
        })
    }
}

fn arguments(launches: &[Launch]) -> Vec<String> {
    let mut ids: Vec<u32> = launches.iter().map(|launch| launch.job_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    let oldest = launches.iter().map(|launch| launch.age).max();
    let since = oldest.unwrap_or_default() + SLACK;
    let mut arguments = [
        "--allusers",
        "--allocations",
        "--duplicates",
        "--noheader",
        "--parsable2",
        "--format=JobIDRaw,State,ExitCode,Start,End,Suspended,Timelimit,NodeList",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--starttime=now-{}seconds", since.as_secs()));
    arguments.push(format!("--jobs={}", ids.join(",")));
    arguments
}

fn answer(text: &str) -> Answer {
    let mut answer = Answer::default();
    for line in text.lines() {
        match record(line) {
            Some(Record::Ended(outcome)) => answer.outcomes.push(outcome),
            Some(Record::Alive(job_id)) => {
                answer.alive.insert(job_id);
            }
            None => {}
        }
    }
    answer
}

#[derive(Debug, PartialEq)]
enum Record {
    Ended(Outcome),
    Alive(u32),
}

fn record(line: &str) -> Option<Record> {
    let columns: Vec<&str> = line.split('|').collect();
    let [
        job_id,
        state,
        exit_code,
        start,
        end,
        suspended,
        limit,
        node_list,
    ] = columns.as_slice()
    else {
        return None;
    };
    let job_id = job_id.parse().ok()?;
    // `CANCELLED by 1000`
    let state = state.split_ascii_whitespace().next()?;
    let ended_at = time(end);
    // A requeued launch has an end of its own. The job goes on in another record.
    let put_back = state == END_OF_A_LAUNCH_PUT_BACK && ended_at.is_some();
    if !is_end(state) && !put_back {
        return Some(Record::Alive(job_id));
    }
    Some(Record::Ended(Outcome {
        job_id,
        state: state.to_owned(),
        exit_code: Some((*exit_code).to_owned()),
        restart_count: None,
        started_at: time(start),
        ended_at,
        suspended_seconds: seconds(suspended),
        limit_seconds: seconds(limit),
        account: None,
        uid: None,
        // `None assigned` of a job that never began.
        node_list: Some(*node_list)
            .filter(|nodes| is_hostlist(nodes))
            .map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 22.05.8 prints them, with TZ=UTC.
    const TOLD: &str = "\
1|TIMEOUT|0:0|2026-11-21T12:33:14|2026-11-21T12:34:20|00:00:00|00:01:00|n[1-2]
5|FAILED|0:11|2026-11-21T12:33:14|2026-11-21T12:33:14|00:00:00|UNLIMITED|n1
7|CANCELLED by 995|0:0|2026-11-21T12:33:14|2026-11-21T12:33:17|00:00:00|UNLIMITED|n1
8|REQUEUED|0:0|2026-11-21T12:33:14|2026-11-21T12:33:17|00:00:00|UNLIMITED|n1
13|OUT_OF_MEMORY|0:125|2026-11-21T12:33:15|2026-11-21T12:33:15|00:00:00|365-00:00:00|n1
8|COMPLETED|0:0|2026-11-21T12:33:25|2026-11-21T12:33:28|00:00:00|365-00:00:00|n1
16|COMPLETED|0:0|2026-11-21T12:33:41|2026-11-21T12:33:45|00:00:03|365-00:00:00|n1
17|CANCELLED by 995|0:0|None|2026-11-21T12:33:50|00:00:00|Partition_Limit|None assigned
23|PREEMPTED|0:0|None|2026-11-21T12:36:13|00:00:00|Partition_Limit|None assigned
26|NODE_FAIL|0:0|2026-11-21T12:36:11|2026-11-21T12:36:48|00:00:00|UNLIMITED|n1
27|PENDING|0:0|Unknown|Unknown|00:00:00|Partition_Limit|None assigned
26|RUNNING|0:0|2026-11-21T12:37:14|Unknown|00:00:00|UNLIMITED|n1
";

    /// Attack (parsers): The output of sacct or of the job-completion script.
    #[test]
    fn fuzz_sacct() {
        io_autotune_fuzzing::Target::new("sacct", &[TOLD]).run(|input| {
            for outcome in answer(&String::from_utf8_lossy(input)).outcomes {
                assert!(is_end(&outcome.state) || outcome.state == END_OF_A_LAUNCH_PUT_BACK);
            }
        });
    }

    fn told(job_id: u32) -> Vec<Outcome> {
        let mut outcomes = answer(TOLD).outcomes;
        outcomes.retain(|outcome| outcome.job_id == job_id);
        outcomes
    }

    fn states(job_id: u32) -> Vec<String> {
        told(job_id)
            .into_iter()
            .map(|outcome| outcome.state)
            .collect()
    }

    #[test]
    fn a_record_is_told_with_its_times_limit_and_suspension() {
        let timeout = &told(1)[0];
        assert_eq!(timeout.state, "TIMEOUT");
        assert_eq!(timeout.limit_seconds, Some(60));
        assert_eq!(timeout.restart_count, None);
        assert_eq!(
            timeout.ended_at.unwrap().to_string(),
            "2026-11-21T12:34:20Z"
        );
        assert_eq!(timeout.node_list.as_deref(), Some("n[1-2]"));
        assert_eq!(told(5)[0].exit_code.as_deref(), Some("0:11"));
        assert_eq!(told(5)[0].limit_seconds, None);
        assert_eq!(told(13)[0].state, "OUT_OF_MEMORY");
        assert_eq!(told(16)[0].suspended_seconds, Some(3));
    }

    #[test]
    fn who_cancelled_is_no_part_of_the_state_and_a_start_may_be_missing() {
        assert_eq!(states(7), ["CANCELLED"]);
        for job_id in [17, 23] {
            assert_eq!(told(job_id)[0].started_at, None);
            assert_eq!(told(job_id)[0].node_list, None);
            assert!(told(job_id)[0].ended_at.is_some());
        }
    }

    #[test]
    fn each_launch_of_a_job_that_was_put_back_has_a_record() {
        assert_eq!(states(8), ["REQUEUED", "COMPLETED"]);
        assert_eq!(states(26), ["NODE_FAIL"]);
        assert_eq!(answer(TOLD).alive, [26, 27].into());
    }

    #[test]
    fn what_is_no_record_is_left_out() {
        for line in [
            "",
            "17.batch|COMPLETED",
            "x|COMPLETED|0:0|a|b|c|d",
            "17||0:0|a|b|c|d",
        ] {
            assert_eq!(record(line), None, "{line}");
        }
    }

    #[test]
    fn one_call_names_every_job_once_and_reaches_back_beyond_the_oldest_launch() {
        let launch = |job_id, restart_count, age| Launch {
            job_id,
            restart_count,
            age: Duration::from_secs(age),
        };
        let arguments = arguments(&[launch(9, 0, 10), launch(7, 0, 500), launch(9, 1, 5)]);
        assert!(arguments.contains(&"--jobs=7,9".to_owned()));
        assert!(arguments.contains(&"--starttime=now-4100seconds".to_owned()));
    }
}
