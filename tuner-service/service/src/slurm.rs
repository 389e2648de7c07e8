//! Slurm's word for how jobs ended.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

/// `[slurm]` of the configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlurmConfig {
    /// ClusterName: only runs of this cluster are asked for.
    cluster: String,
    /// The squeue to run.
    #[serde(default = "SlurmConfig::default_squeue")]
    squeue: PathBuf,
    /// slurm.conf, where it is not Slurm's default.
    #[serde(default)]
    conf: Option<PathBuf>,
}

impl SlurmConfig {
    fn default_squeue() -> PathBuf {
        "/usr/bin/squeue".into()
    }

    pub(crate) fn into_source(self) -> Squeue {
        Squeue { config: self }
    }
}

/// Where outcomes come from.
pub(crate) trait OutcomeSource {
    /// The cluster it speaks for.
    fn cluster(&self) -> &str;

    /// What it knows of all jobs now, by job id, in one call.
    async fn jobs(&self) -> Result<HashMap<u32, JobState>, OutcomeError>;
}

/// What Slurm says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobState {
    /// How often it was restarted.
    pub(crate) restart_count: u32,
    /// Its state, such as `RUNNING` or `COMPLETED`.
    pub(crate) state: String,
}

impl JobState {
    /// The outcome of the launch with this restart count, if it has ended.
    pub(crate) fn outcome_of(&self, restart_count: u32) -> Option<&str> {
        /// The states of slurm.h's `enum job_states` in which a job stays.
        const ENDS: [&str; 9] = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "TIMEOUT",
        ];
        if self.restart_count > restart_count {
            return Some("REQUEUED");
        }
        (self.restart_count == restart_count && ENDS.contains(&self.state.as_str()))
            .then_some(self.state.as_str())
    }
}

/// Why Slurm's word could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutcomeError {
    #[error("cannot run {program}: {source}")]
    Spawn {
        program: PathBuf,
        source: std::io::Error,
    },
    #[error("{program} did not answer within {} s", .after.as_secs())]
    Timeout { program: PathBuf, after: Duration },
    #[error("{program} failed: {stderr}")]
    Failed { program: PathBuf, stderr: String },
}

/// slurmctld's memory, by one `squeue` for all jobs: within MinJobAge it still lists jobs that
/// ended. squeue and not `scontrol show job`, because its columns can be chosen: no text that a
/// user wrote (a job's name or comment) stands in what is parsed.
#[derive(Debug)]
pub(crate) struct Squeue {
    config: SlurmConfig,
}

impl Squeue {
    const DEADLINE: Duration = Duration::from_secs(20);
}

impl OutcomeSource for Squeue {
    fn cluster(&self) -> &str {
        &self.config.cluster
    }

    async fn jobs(&self) -> Result<HashMap<u32, JobState>, OutcomeError> {
        let program = self.config.squeue.clone();
        let mut command = Command::new(&program);
        command
            .args(["--all", "--array", "--noheader", "--states=all"])
            .arg("--Format=JobID:.20,State:.20,RestartCnt:.12")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(conf) = &self.config.conf {
            command.env("SLURM_CONF", conf);
        }
        let output = match tokio::time::timeout(Self::DEADLINE, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(source)) => return Err(OutcomeError::Spawn { program, source }),
            Err(_) => {
                return Err(OutcomeError::Timeout {
                    program,
                    after: Self::DEADLINE,
                });
            }
        };
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(OutcomeError::Failed { program, stderr });
        }
        Ok(parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn parse(text: &str) -> HashMap<u32, JobState> {
    text.lines()
        .filter_map(|line| {
            let mut columns = line.split_ascii_whitespace();
            let job_id = columns.next()?.parse().ok()?;
            let state = columns.next()?.to_owned();
            let restart_count = columns.next()?.parse().ok()?;
            Some((
                job_id,
                JobState {
                    restart_count,
                    state,
                },
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squeues_columns_are_read() {
        let jobs =
            parse("                  12           COMPLETED           0\n 13 RUNNING 2\nnoise\n");
        assert_eq!(jobs[&12].outcome_of(0), Some("COMPLETED"));
        assert_eq!(jobs.len(), 2);
    }

    #[test]
    fn a_running_or_completing_job_has_no_outcome_and_an_earlier_launch_was_requeued() {
        let job = |state: &str| JobState {
            restart_count: 2,
            state: state.into(),
        };
        assert_eq!(job("RUNNING").outcome_of(2), None);
        assert_eq!(job("COMPLETING").outcome_of(2), None);
        assert_eq!(job("RUNNING").outcome_of(1), Some("REQUEUED"));
        assert_eq!(job("FAILED").outcome_of(3), None);
    }
}
