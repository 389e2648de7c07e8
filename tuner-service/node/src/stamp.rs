//! Stamps: the plugin's `stamp.c` records each step in one small text file, written as root in the
//! job's directory.

use std::collections::BTreeMap;

use crate::clock::Clocks;
use io_autotune_protocol::{Step, VariableState};

/// The content of a stamp: a step on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) step: Step,
    /// The start, in nanoseconds of CLOCK_MONOTONIC.
    start: u64,
}

/// The steps in the form that is sent to the service. If there are several and no batch step, each
/// has the time of its start: they may have overlapped, and the time in which two of them ran
/// counts once.
pub(crate) fn steps(stamps: Vec<Stamp>, clocks: Option<Clocks>) -> Vec<Step> {
    let may_overlap =
        stamps.len() > 1 && stamps.iter().all(|stamp| stamp.step.step_id != Step::BATCH);
    let clocks = clocks.filter(|_| may_overlap);
    let stamps = stamps.into_iter();
    stamps
        .map(|Stamp { step, start }| Step {
            started_at: clocks.and_then(|clocks| clocks.at(start)),
            ..step
        })
        .collect()
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StampError {
    #[error("it does not begin with \"io-autotune-stamp 1\"")]
    Header,
    #[error("line {0:?} is not understood")]
    Line(String),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("it ends before it starts")]
    Backwards,
}

pub(crate) fn parse(text: &str) -> Result<Stamp, StampError> {
    let mut lines = text.lines();
    if lines.next() != Some("io-autotune-stamp 1") {
        return Err(StampError::Header);
    }
    let (mut step_id, mut start, mut end, mut wait_status) = (None, None, None, 0);
    let mut nodes = 1;
    let mut variables = BTreeMap::new();
    for line in lines {
        let bad = || StampError::Line(line.chars().take(80).collect());
        let (key, value) = line.split_once(' ').ok_or_else(bad)?;
        match key {
            "step" => step_id = Some(value.parse::<u32>().map_err(|_| bad())?),
            "start_ns" => start = Some(value.parse::<u64>().map_err(|_| bad())?),
            "end_ns" => end = Some(value.parse::<u64>().map_err(|_| bad())?),
            "wait_status" => wait_status = value.parse::<i32>().map_err(|_| bad())?,
            "nodes" => {
                nodes = value
                    .parse::<u32>()
                    .ok()
                    .filter(|&n| n > 0)
                    .ok_or_else(bad)?;
            }
            "tasks" | "exited" => {
                value.parse::<u32>().map_err(|_| bad())?;
            }
            "variable" => {
                let (name, state) = value.split_once(' ').ok_or_else(bad)?;
                let state = match state {
                    "set" => VariableState::Set,
                    "user" => VariableState::User,
                    "absent" => VariableState::Absent,
                    _ => return Err(bad()),
                };
                variables.insert(name.to_owned(), state);
            }
            _ => return Err(bad()),
        }
    }
    let start = start.ok_or(StampError::Missing("start_ns"))?;
    let duration_ns = match end {
        Some(end) => Some(end.checked_sub(start).ok_or(StampError::Backwards)?),
        None => None,
    };
    let step_id = step_id.ok_or(StampError::Missing("step"))?;
    let step = Step {
        step_id,
        started_at: None,
        duration_ns,
        wait_status,
        nodes,
        variables,
    };
    Ok(Stamp { step, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: &str = "io-autotune-stamp 1\nstep 4294967291\nstart_ns 100\nend_ns 350\nnodes 2\ntasks 1\nexited 1\nwait_status 256\nvariable ROMIO_HINTS set\n";

    #[test]
    fn a_stamp_is_read() {
        let step = parse(STAMP).unwrap().step;
        assert_eq!(step.step_id, Step::BATCH);
        assert_eq!(step.duration_ns, Some(250));
        assert_eq!(step.wait_status, 256);
        assert_eq!(step.nodes, 2);
        assert_eq!(step.variables["ROMIO_HINTS"], VariableState::Set);
    }

    #[test]
    fn a_step_that_still_runs_has_no_duration() {
        assert_eq!(
            parse(&STAMP.replace("end_ns 350\n", ""))
                .unwrap()
                .step
                .duration_ns,
            None
        );
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        assert_eq!(parse(""), Err(StampError::Header));
        assert_eq!(
            parse(&STAMP.replace("350", "50")),
            Err(StampError::Backwards)
        );
        assert!(parse(&STAMP.replace("set", "maybe")).is_err());
        assert!(parse(&STAMP.replace("nodes 2", "nodes 0")).is_err());
        assert!(parse(&STAMP.replace("start_ns 100\n", "")).is_err());
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_stamp() {
        io_autotune_fuzzing::Target::new("stamp", &[STAMP]).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match parse(text) {
                Ok(stamp) => assert!(stamp.step.nodes > 0),
                Err(error) => {
                    let message = error.to_string();
                    let named = ["begin", "line", "missing", "ends before"];
                    assert!(named.iter().any(|word| message.contains(word)), "{message}");
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
            }
        });
    }

    #[test]
    fn of_several_steps_without_a_batch_step_it_is_told_when_each_started() {
        let stamp = |step: u32| parse(&STAMP.replace("4294967291", &step.to_string())).unwrap();
        let told = |ids: &[u32]| {
            let stamps = ids.iter().map(|id| stamp(*id)).collect();
            let steps = steps(stamps, Clocks::now()).into_iter();
            steps
                .map(|step| step.started_at.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&[0, 1]), [true, true]);
        assert_eq!(told(&[0]), [false]);
        assert_eq!(told(&[0, 1, Step::BATCH]), [false, false, false]);
    }
}
