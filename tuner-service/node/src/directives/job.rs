//! The job as slurmctld knows it before its prologs. squeue's columns can be chosen so that none
//! contains a user's text; `scontrol show job` prints names and comments.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use io_autotune_protocol::{Job, first_host, is_hostlist};
use nix::unistd::{Uid, User};

use crate::time_limited::run;

const FORMAT: &str = "--Format=JobID:.20,HetJobID:.20,RestartCnt:.12,UserID:.12,GroupID:.12,NumNodes:.12,NumCPUs:.12,Partition:.80,Cluster:.80,ArrayJobID:.20,NodeList:.100";

#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("{program:?} cannot be asked: {error}")]
    NotRun {
        program: PathBuf,
        error: std::io::Error,
    },
    #[error("squeue ended with {0}")]
    Failed(String),
    #[error("squeue lists no job {0} that has its nodes")]
    Unknown(u32),
    #[error("its nodes give it unlike numbers of CPUs")]
    UnlikeNodes,
}

/// A job, with the first job of its array if it belongs to one.
#[derive(Debug, PartialEq)]
pub(super) struct Listed {
    pub(super) job: Job,
    pub(super) array: Option<u32>,
}

/// Asks squeue about a job. `None`: it is a later component of a heterogeneous job.
pub(super) fn ask(squeue: &Path, job_id: u32, limit: Duration) -> Result<Option<Listed>, JobError> {
    let number = job_id.to_string();
    let arguments = [
        "--all",
        "--array",
        "--noheader",
        "--states=all",
        "--jobs",
        &number,
        FORMAT,
    ];
    let conf = std::env::var("SLURM_CONF").ok();
    let environment = conf.iter().map(|conf| ("SLURM_CONF", conf.as_str()));
    let ended = run(Command::new(squeue).args(arguments), environment, limit).map_err(|error| {
        JobError::NotRun {
            program: squeue.to_owned(),
            error,
        }
    })?;
    if !ended.good {
        return Err(JobError::Failed(ended.how));
    }
    let mut listed = read(&ended.output, job_id)?;
    if let Some(Listed { job, .. }) = &mut listed {
        let user = User::from_uid(Uid::from_raw(job.uid)).ok().flatten();
        job.user = user.map(|user| user.name);
    }
    Ok(listed)
}

fn read(listed: &str, job_id: u32) -> Result<Option<Listed>, JobError> {
    let unknown = || JobError::Unknown(job_id);
    let number = job_id.to_string();
    let columns = listed
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .find(|columns| columns.first() == Some(&number.as_str()))
        .ok_or_else(unknown)?;
    let [
        _,
        leader,
        restarts,
        uid,
        gid,
        nodes,
        cpus,
        partition,
        cluster,
        array,
        node_list,
    ] = columns[..]
    else {
        return Err(unknown());
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| unknown());
    // Anything but these numbers means that there is none.
    if leader
        .parse::<u32>()
        .is_ok_and(|leader| leader != 0 && leader != job_id)
    {
        return Ok(None);
    }
    let (nodes, cpus) = (number(nodes)?, number(cpus)?);
    if nodes == 0 || !is_hostlist(node_list) {
        return Err(unknown());
    }
    if cpus % nodes != 0 {
        return Err(JobError::UnlikeNodes);
    }
    // In the form in which slurmd tells the prolog.
    let cpus_per_node = match nodes {
        1 => cpus.to_string(),
        _ => format!("{}(x{nodes})", cpus / nodes),
    };
    let job = Job {
        cluster: cluster.to_owned(),
        job_id,
        restart_count: number(restarts)?,
        sluid: None,
        uid: number(uid)?,
        gid: number(gid)?,
        user: None,
        // The node that would be the first to ask for the job.
        node: first_host(node_list).ok_or_else(unknown)?,
        nodes,
        partition: partition.to_owned(),
        cpus_per_node,
    };
    Ok(Some(Listed {
        job,
        array: array.parse().ok().filter(|array| *array != 0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: [&str; 11]) -> String {
        let widths = [20, 20, 12, 12, 12, 12, 12, 80, 80, 20, 100];
        let columns = values.iter().zip(widths);
        columns
            .map(|(value, width)| format!("{value:>width$}"))
            .collect()
    }

    const JOB: [&str; 11] = [
        "7", "N/A", "1", "1000", "100", "2", "8", "main", "dev", "N/A", "n[1-2]",
    ];

    #[test]
    fn a_job_is_as_its_prologs_will_tell_it() {
        let other = line([
            "71", "N/A", "0", "0", "0", "1", "1", "main", "dev", "N/A", "n9",
        ]);
        let listed = read(&format!("{other}\n{}\n", line(JOB)), 7)
            .unwrap()
            .unwrap();
        assert_eq!(listed.array, None);
        assert_eq!(
            listed.job,
            Job {
                cluster: "dev".into(),
                restart_count: 1,
                gid: 100,
                nodes: 2,
                cpus_per_node: "4(x2)".into(),
                ..crate::testing::job()
            }
        );
    }

    #[test]
    fn a_later_component_is_not_asked_about() {
        let with = |place: usize, value: &'static str| {
            let mut columns = JOB;
            columns[place] = value;
            read(&line(columns), 7)
        };
        assert_eq!(with(1, "6").unwrap(), None);
        assert!(with(1, "7").unwrap().is_some(), "the first carries the run");
        assert_eq!(with(9, "5").unwrap().unwrap().array, Some(5));
        assert!(matches!(with(6, "7"), Err(JobError::UnlikeNodes)));
        for (place, value) in [(5, "0"), (10, "n[1"), (10, "")] {
            assert!(with(place, value).is_err(), "{value:?}");
        }
        assert!(matches!(read("", 7), Err(JobError::Unknown(7))));
    }
}
