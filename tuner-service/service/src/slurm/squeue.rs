//! slurmctld's memory, with one `squeue` for all jobs. It lists ended jobs for MinJobAge.
//!
//! Unlike `scontrol show job`, squeue's columns can be chosen, so no user's text (job name,
//! comment) is parsed. The exception is the account, which users may write where associations are
//! not enforced. It is the last column and narrower than the others together: a line forged in it
//! is too short for a job's. The nodes' column is before it: its width is the least, because
//! squeue does not cut it.

use std::collections::HashMap;

use io_autotune_model::is_end;
use io_autotune_protocol::{Outcome, is_account, is_hostlist};
use io_autotune_store::Source;
use jiff::Timestamp;

use super::command::Program;
use super::notation::{END_OF_A_LAUNCH_PUT_BACK, UNLIMITED, seconds, time};
use super::{Answer, Asking, Launch, OutcomeSource};
use crate::limits::TimeLimit;

#[derive(Debug)]
pub(super) struct Squeue {
    program: Program,
}

impl Squeue {
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }
}

impl OutcomeSource for Squeue {
    fn name(&self) -> Source {
        Source::Squeue
    }

    fn ask<'a>(&'a self, launches: &'a [Launch]) -> Asking<'a> {
        Box::pin(async move {
            let arguments = [
                "--all",
                "--array",
                "--noheader",
                "--states=all",
                "--Format=JobID:.20,State:.32,RestartCnt:.12,StartTime:.24,EndTime:.24,TimeUsed:.24,TimeLimit:.24,UserID:.12,NodeList:.100,Account:.66",
            ]
            .map(str::to_owned);
            let listed = self.program.bytes(&arguments).await?;
            Ok(answer(&listed, launches))
        })
    }
}

/// Width of the columns before the nodes.
const BEFORE_NODES: usize = 172;

/// Least width of the nodes.
const NODES: usize = 100;

/// Width of the account.
const ACCOUNT: usize = 66;

#[derive(Debug)]
struct Listed<'a> {
    job_id: u32,
    state: &'a str,
    restart_count: u32,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// Seconds without suspension.
    used: Option<u64>,
    limit: Option<TimeLimit>,
    uid: Option<u32>,
    node_list: Option<&'a str>,
    account: Option<&'a str>,
}

impl<'a> Listed<'a> {
    /// Widths are of bytes: an account is cut, and may be so inside a character.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let (before, rest) = line.split_at_checked(BEFORE_NODES)?;
        // A part that a newline in the account broke off has another width.
        let nodes = rest.len().saturating_sub(ACCOUNT).max(NODES);
        let (nodes, account) = rest.split_at_checked(nodes)?;
        let before = str::from_utf8(before).ok()?;
        let mut columns = before.split_ascii_whitespace();
        Some(Self {
            job_id: columns.next()?.parse().ok()?,
            state: columns.next()?,
            restart_count: columns.next()?.parse().ok()?,
            started_at: time(columns.next()?),
            ended_at: time(columns.next()?),
            used: seconds(columns.next()?),
            limit: limit(columns.next()?),
            uid: columns.next().and_then(|uid| uid.parse().ok()),
            node_list: trimmed(nodes).filter(|nodes| is_hostlist(nodes)),
            account: Some(account)
                .filter(|account| account.len() == ACCOUNT)
                .and_then(trimmed)
                .filter(|account| is_account(account)),
        })
    }

    /// Exact: slurmctld counts whole seconds.
    fn suspended(&self) -> Option<u64> {
        let span = self.ended_at?.as_second() - self.started_at?.as_second();
        Some(u64::try_from(span).ok()?.saturating_sub(self.used?))
    }

    fn outcome_of(&self, restart_count: u32) -> Option<Outcome> {
        if self.restart_count > restart_count {
            return Some(Outcome {
                job_id: self.job_id,
                state: END_OF_A_LAUNCH_PUT_BACK.to_owned(),
                restart_count: Some(restart_count),
                account: self.account.map(str::to_owned),
                uid: self.uid,
                ..Outcome::default()
            });
        }
        let ended = self.restart_count == restart_count && is_end(self.state);
        ended.then(|| Outcome {
            job_id: self.job_id,
            state: self.state.to_owned(),
            exit_code: None,
            restart_count: Some(restart_count),
            started_at: self.started_at,
            ended_at: self.ended_at,
            suspended_seconds: self.suspended(),
            limit_seconds: match self.limit {
                Some(TimeLimit::Seconds(seconds)) => Some(seconds),
                Some(TimeLimit::Unlimited) | None => None,
            },
            account: self.account.map(str::to_owned),
            uid: self.uid,
            node_list: self.node_list.map(str::to_owned),
        })
    }
}

fn trimmed(column: &[u8]) -> Option<&str> {
    str::from_utf8(column).ok().map(str::trim_ascii)
}

fn limit(text: &str) -> Option<TimeLimit> {
    match text {
        UNLIMITED => Some(TimeLimit::Unlimited),
        other => seconds(other).map(TimeLimit::Seconds),
    }
}

fn answer(listed: &[u8], launches: &[Launch]) -> Answer {
    let jobs: HashMap<u32, Listed<'_>> = listed
        .split(|byte| *byte == b'\n')
        .filter_map(Listed::parse)
        .map(|job| (job.job_id, job))
        .collect();
    let going_on = jobs.values().filter(|job| !is_end(job.state));
    let mut answer = Answer {
        limits: Some(
            going_on
                .filter_map(|job| Some((job.job_id, job.limit?)))
                .collect(),
        ),
        ..Answer::default()
    };
    for launch in launches {
        let Some(job) = jobs.get(&launch.job_id) else {
            continue;
        };
        match job.outcome_of(launch.restart_count) {
            Some(outcome) => answer.outcomes.push(outcome),
            None => {
                answer.alive.insert(job.job_id);
            }
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn launch(job_id: u32, restart_count: u32) -> Launch {
        Launch {
            job_id,
            restart_count,
            age: Duration::from_secs(60),
        }
    }

    /// As 22.05.8 prints them, with TZ=UTC; 27 and 26 were requeued, 16 was suspended, 17 never began.
    const LISTED: &str = "
                   1                         TIMEOUT           0     2026-11-21T12:33:14     2026-11-21T12:34:20                    1:06                    1:00        1001                                                                                                  n1                                                           physics
                   3                       COMPLETED           0     2026-11-21T12:33:14     2026-11-21T12:33:15                    0:01                    5:00        1001                                                                                              n[1-2]                                                            (null)
                  13                   OUT_OF_MEMORY           0     2026-11-21T12:33:15     2026-11-21T12:33:15                    0:00            365-00:00:00        1001                                                                                                  n2                                                               a b
                  16                       COMPLETED           0     2026-11-21T12:33:41     2026-11-21T12:33:45                    0:01            365-00:00:00        1001                                                                                                  n1                                                              root
                  17                       CANCELLED           0     2026-11-21T12:33:50     2026-11-21T12:33:50                    0:00               UNLIMITED        1002                                                                                                                                                                   two
                  26                         RUNNING           1     2026-11-21T12:37:14                    NONE                    0:10               UNLIMITED        1001                                                                                              n[1-3]                                                                 x
                  27                         PENDING           1     2027-11-21T12:37:14                    NONE                    0:00               UNLIMITED        1001                                                                                                                                                                    yz
                  28                      COMPLETING           0     2026-11-21T12:37:14     2026-11-21T12:37:19                    0:05               UNLIMITED        1001                                                                                                  n1                                                           physics
noise
";

    /// Attack (parsers): The output of squeue.
    /// Outcome: It tells only of jobs that were asked for.
    #[test]
    fn fuzz_squeue() {
        let launches = [launch(1, 0), launch(26, 0), launch(27, 0)];
        io_autotune_fuzzing::Target::new("squeue", &[LISTED]).run(|input| {
            let answer = answer(input, &launches);
            for outcome in &answer.outcomes {
                assert!([1, 26, 27].contains(&outcome.job_id), "nobody asked for it");
                assert!(is_end(&outcome.state) || outcome.state == END_OF_A_LAUNCH_PUT_BACK);
                assert!(outcome.account.as_deref().is_none_or(is_account));
            }
        });
    }

    fn told(job_id: u32, restart_count: u32) -> Outcome {
        let answer = answer(LISTED.as_bytes(), &[launch(job_id, restart_count)]);
        assert!(answer.alive.is_empty());
        answer.outcomes.into_iter().next().unwrap()
    }

    #[test]
    fn an_ended_job_is_told_with_its_times_and_limit() {
        let outcome = told(1, 0);
        assert_eq!(
            (outcome.state.as_str(), outcome.restart_count),
            ("TIMEOUT", Some(0))
        );
        assert_eq!(
            outcome.started_at.unwrap().to_string(),
            "2026-11-21T12:33:14Z"
        );
        assert_eq!(
            outcome.ended_at.unwrap().to_string(),
            "2026-11-21T12:34:20Z"
        );
        assert_eq!(outcome.suspended_seconds, Some(0));
        assert_eq!(outcome.limit_seconds, Some(60));
        assert_eq!(told(3, 0).limit_seconds, Some(300));
        assert_eq!(
            (told(17, 0).state.as_str(), told(17, 0).limit_seconds),
            ("CANCELLED", None)
        );
        assert_eq!(told(13, 0).state, "OUT_OF_MEMORY");
    }

    #[test]
    fn an_account_is_told_where_it_is_one() {
        assert_eq!(told(1, 0).account.as_deref(), Some("physics"));
        assert_eq!(told(3, 0).account, None);
        assert_eq!(told(13, 0).account, None);
        assert_eq!(told(26, 0).account.as_deref(), Some("x"));
    }

    #[test]
    fn whose_it_is_and_where_it_was_is_told() {
        let where_it_was = |job_id, restart_count| {
            let outcome = told(job_id, restart_count);
            (outcome.uid, outcome.node_list)
        };
        assert_eq!(where_it_was(3, 0), (Some(1001), Some("n[1-2]".into())));
        assert_eq!(where_it_was(17, 0), (Some(1002), None), "it never began");
        assert_eq!(
            where_it_was(26, 0),
            (Some(1001), None),
            "these are its next launch's"
        );
        // squeue does not cut the nodes of a job that has many.
        let many = format!("{}{}n999", "n111,".repeat(40), "n222,".repeat(2));
        let line = LISTED.lines().nth(2).unwrap();
        let (before, account) = line.split_at(BEFORE_NODES + NODES);
        let listed = format!("{}{many}{account}\n", &before[..BEFORE_NODES]);
        let answer = answer(listed.as_bytes(), &[launch(3, 0)]);
        assert_eq!(answer.outcomes[0].node_list.as_ref(), Some(&many));
    }

    /// An account of 65 ASCII bytes and an e with an accent, whose column has 66: half of the e.
    #[test]
    fn an_account_that_is_cut_inside_a_character_leaves_the_nodes_as_they_are() {
        let before = &LISTED.lines().nth(2).unwrap()[..BEFORE_NODES + NODES];
        for cut in ["é", "€", "😀"] {
            for kept in 1..cut.len() {
                let mut listed = before.as_bytes().to_vec();
                listed.extend("a".repeat(ACCOUNT - kept).bytes());
                listed.extend(&cut.as_bytes()[..kept]);
                listed.extend(b"\n");
                let answer = answer(&listed, &[launch(3, 0)]);
                let [outcome] = &answer.outcomes[..] else {
                    panic!("{cut} {kept}: one job")
                };
                assert_eq!(outcome.node_list.as_deref(), Some("n[1-2]"), "{cut} {kept}");
                assert_eq!(outcome.account, None, "{cut} {kept}");
            }
        }
        // A whole one keeps its column's width too.
        let mut listed = before.as_bytes().to_vec();
        listed.extend(format!("{:>width$}\n", "é", width = ACCOUNT - 1).bytes());
        let answer = answer(&listed, &[launch(3, 0)]);
        assert_eq!(answer.outcomes[0].node_list.as_deref(), Some("n[1-2]"));
    }

    #[test]
    fn an_account_with_a_newline_cannot_speak_of_another_job() {
        let job = &LISTED.lines().nth(1).unwrap()[..BEFORE_NODES + NODES];
        let forged = "4711 COMPLETED 0 2026-11-21T12:33:14 2026-11-21T12:33:15 0:01 5:00";
        let listed = format!("{job}{}\n", &format!("x\n{forged}")[..ACCOUNT]);
        let answer = answer(listed.as_bytes(), &[launch(4711, 0), launch(1, 0)]);
        let told: Vec<_> = answer
            .outcomes
            .iter()
            .map(|told| (told.job_id, told.account.as_deref()))
            .collect();
        assert_eq!(told, [(1, None)]);
    }

    #[test]
    fn time_that_was_not_used_was_spent_suspended() {
        assert_eq!(told(16, 0).suspended_seconds, Some(3));
    }

    #[test]
    fn a_running_or_completing_job_has_not_ended_and_an_earlier_launch_was_put_back() {
        let now = answer(
            LISTED.as_bytes(),
            &[launch(26, 1), launch(27, 1), launch(28, 0)],
        );
        assert!(now.outcomes.is_empty());
        assert_eq!(now.alive, [26, 27, 28].into());
        for job_id in [26, 27] {
            let earlier = told(job_id, 0);
            assert_eq!(
                (earlier.state.as_str(), earlier.restart_count),
                ("REQUEUED", Some(0))
            );
        }
    }

    #[test]
    fn nothing_is_said_of_a_job_that_is_not_listed_or_was_not_asked_for() {
        for launches in [&[launch(99, 0)][..], &[]] {
            let answer = answer(LISTED.as_bytes(), launches);
            assert!(answer.outcomes.is_empty() && answer.alive.is_empty());
        }
    }

    #[test]
    fn limits_are_told_of_every_job_that_goes_on() {
        let listed = LISTED.replace("2027-11-21T12:37:14                    NONE                    0:00               UNLIMITED", "2027-11-21T12:37:14 NONE 0:00 1:30:00");
        let limits = answer(listed.as_bytes(), &[]).limits.unwrap();
        let expected = [
            (26, TimeLimit::Unlimited),
            (27, TimeLimit::Seconds(5400)),
            (28, TimeLimit::Unlimited),
        ];
        assert_eq!(limits, expected.into());
        assert_eq!(limit("Partition_Limit"), None);
    }
}
