//! The job, from slurmd's environment for prolog and epilog. slurmd's variables are trusted;
//! `SPANK_IO_AUTOTUNE` comes from the user and is parsed strictly.

use io_autotune_protocol::{EpilogOutcome, Job, Request, RequestError, first_host};
use jiff::Timestamp;

#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("{0} is not set: run this from the SPANK plugin's prolog or epilog hook")]
    Missing(&'static str),
    #[error("{name}={value:?} is not {expected}")]
    Value {
        name: &'static str,
        value: String,
        expected: &'static str,
    },
    #[error("SPANK_IO_AUTOTUNE: {0}")]
    Request(#[from] RequestError),
}

#[derive(Debug)]
pub(crate) struct NodeJob {
    pub(crate) job: Job,
    pub(crate) request: Request,
    /// True if this node reports even without knowing of a start.
    pub(crate) is_first_node: bool,
    /// True for a later component of a heterogeneous job; the first one carries the run.
    pub(crate) is_later_component: bool,
    /// The time limit in seconds. Only known in the prolog (Slurm 23.02 or later), because the end
    /// time in the epilog is the real one.
    pub(crate) limit_seconds: Option<u64>,
    /// The start by slurmctld's clock. Only known in the prolog (Slurm 23.02 or later).
    pub(crate) started_at: Option<Timestamp>,
    /// The end of the job. Only known in the epilog.
    pub(crate) epilog: Option<EpilogOutcome>,
}

/// The name of a job in the spool, which several nodes may share on one host.
pub(crate) fn name_on_node(cluster: &str, node: &str, job_id: u32) -> String {
    format!("{cluster}.{node}.{job_id}")
}

pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<NodeJob, JobError> {
    let any = |names: &[&'static str]| names.iter().find_map(|name| variable(name));
    let text = |name: &'static str| variable(name).ok_or(JobError::Missing(name));
    let component = |name| component(&variable, name);
    let number = |name: &'static str, value: Option<String>| {
        let value = value.ok_or(JobError::Missing(name))?;
        value.parse::<u32>().map_err(|_| JobError::Value {
            name,
            value,
            expected: "a number",
        })
    };
    let request = text("SPANK_IO_AUTOTUNE")?.parse()?;
    let node = component("SLURMD_NODENAME")?;
    let nodes = any(&["SLURM_JOB_NODELIST", "SLURM_NODELIST"]);
    let restarts = any(&["SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT"]);
    let job = Job {
        cluster: component("SLURM_CLUSTER_NAME")?,
        job_id: number("SLURM_JOB_ID", variable("SLURM_JOB_ID"))?,
        restart_count: number(
            "SLURM_JOB_RESTART_COUNT",
            restarts.or_else(|| Some("0".into())),
        )?,
        // An id that a later Slurm writes in another form counts as none: the restart count and
        // times tell launches apart then, as before 25.11.
        sluid: variable("SLURM_JOB_SLUID").and_then(|text| text.parse().ok()),
        uid: number("SLURM_JOB_UID", variable("SLURM_JOB_UID"))?,
        gid: number("SLURM_JOB_GID", variable("SLURM_JOB_GID"))?,
        user: variable("SLURM_JOB_USER"),
        nodes: number(
            "SLURM_JOB_NUM_NODES",
            any(&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"]),
        )?,
        partition: text("SLURM_JOB_PARTITION")?,
        cpus_per_node: text("SLURM_JOB_CPUS_PER_NODE")?,
        node,
    };
    let first = nodes
        .as_deref()
        .and_then(first_host)
        .ok_or(JobError::Missing("SLURM_JOB_NODELIST"))?;
    let leader = variable("SLURM_HET_JOB_ID")
        .map(|id| number("SLURM_HET_JOB_ID", Some(id)))
        .transpose()?;
    Ok(NodeJob {
        is_first_node: first == job.node,
        is_later_component: leader.is_some_and(|leader| leader != job.job_id),
        limit_seconds: limit_seconds(&variable),
        started_at: started_at(&variable),
        epilog: epilog_outcome(&variable),
        job,
        request,
    })
}

pub(crate) fn node(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(String, String), JobError> {
    Ok((
        component(&variable, "SLURM_CLUSTER_NAME")?,
        component(&variable, "SLURMD_NODENAME")?,
    ))
}

/// The value of a variable that must be safe as a path component.
fn component(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<String, JobError> {
    let value = variable(name).ok_or(JobError::Missing(name))?;
    let plain = value.len() <= 255
        && !value.starts_with('.')
        && !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain {
        Ok(value)
    } else {
        Err(JobError::Value {
            name,
            value,
            expected: "a plain name",
        })
    }
}

fn limit_seconds(variable: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let seconds = |name| variable(name)?.parse::<u64>().ok();
    seconds("SLURM_JOB_END_TIME")?
        .checked_sub(seconds("SLURM_JOB_START_TIME")?)
        .filter(|limit| *limit > 0)
}

fn started_at(variable: &impl Fn(&str) -> Option<String>) -> Option<Timestamp> {
    let second = variable("SLURM_JOB_START_TIME")?.parse().ok()?;
    Timestamp::from_second(second).ok()
}

fn epilog_outcome(variable: &impl Fn(&str) -> Option<String>) -> Option<EpilogOutcome> {
    Some(EpilogOutcome {
        exit_code: variable("SLURM_JOB_EXIT_CODE2")?,
        derived_exit_code: exit_code(&variable("SLURM_JOB_DERIVED_EC")?),
        limit_seconds: None,
    })
}

/// Converts a wait status (SLURM_JOB_DERIVED_EC) to code:signal, as in SLURM_JOB_EXIT_CODE2. Any
/// other text is left for the service to refuse.
fn exit_code(text: &str) -> String {
    match text.parse::<u32>() {
        Ok(status) => format!("{}:{}", (status >> 8) & 0xff, status & 0x7f),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn environment() -> HashMap<&'static str, &'static str> {
        HashMap::from([
            ("SPANK_IO_AUTOTUNE", "app=ocean,mode=tune"),
            ("SLURM_CLUSTER_NAME", "dev"),
            ("SLURMD_NODENAME", "n1"),
            ("SLURM_JOB_ID", "12"),
            ("SLURM_JOB_UID", "1000"),
            ("SLURM_JOB_GID", "1000"),
            ("SLURM_JOB_NUM_NODES", "2"),
            ("SLURM_JOB_PARTITION", "main"),
            ("SLURM_JOB_CPUS_PER_NODE", "8(x2)"),
            ("SLURM_JOB_NODELIST", "n[1-2]"),
        ])
    }

    fn read_from(environment: &HashMap<&str, &str>) -> Result<NodeJob, JobError> {
        read(|name| environment.get(name).map(|value| (*value).to_owned()))
    }

    fn read_with(name: &'static str, value: Option<&'static str>) -> Result<NodeJob, JobError> {
        let mut environment = environment();
        match value {
            Some(value) => environment.insert(name, value),
            None => environment.remove(name),
        };
        read_from(&environment)
    }

    #[test]
    fn a_prologs_environment_is_read() {
        let node_job = read_with("SLURM_JOB_USER", Some("alice")).unwrap();
        assert!(node_job.is_first_node);
        assert_eq!(node_job.job.restart_count, 0);
        assert_eq!(node_job.job.user.as_deref(), Some("alice"));
        assert_eq!(node_job.request.app.as_deref(), Some("ocean"));
    }

    /// Attack (environment): A request or SLURM_JOB_SLUID has another launch's id, or a malformed
    /// one.
    /// Outcome: The launch has the id that Slurm gave it.
    #[test]
    fn a_launch_has_slurm_s_id_where_slurmd_tells_one() {
        let sluid = |value| {
            let node_job = read_with("SLURM_JOB_SLUID", value).unwrap();
            node_job.job.sluid.map(|sluid| sluid.to_string())
        };
        assert_eq!(
            sluid(Some("sBR1JB8J1YM400")).as_deref(),
            Some("sBR1JB8J1YM400")
        );
        for none in [
            None,
            Some(""),
            Some("0"),
            Some("../x"),
            Some("sBR1JB8J1YM400000"),
        ] {
            assert_eq!(sluid(none), None, "{none:?}");
        }
    }

    #[test]
    fn the_second_node_is_not_the_first() {
        assert!(
            !read_with("SLURMD_NODENAME", Some("n2"))
                .unwrap()
                .is_first_node
        );
    }

    #[test]
    fn only_the_first_component_of_a_heterogeneous_job_carries_its_run() {
        let is_later = |leader| {
            read_with("SLURM_HET_JOB_ID", leader)
                .unwrap()
                .is_later_component
        };
        assert!(!is_later(None));
        assert!(!is_later(Some("12")));
        assert!(is_later(Some("11")));
    }

    #[test]
    fn the_epilog_has_its_word_and_a_newer_prolog_knows_the_limit() {
        let plain = read_from(&environment()).unwrap();
        assert_eq!((plain.limit_seconds, plain.epilog), (None, None));

        let mut ended = environment();
        ended.insert("SLURM_JOB_EXIT_CODE2", "0:9");
        for (status, code) in [("0", "0:0"), ("768", "3:0"), ("11", "0:11"), ("1:0", "1:0")] {
            ended.insert("SLURM_JOB_DERIVED_EC", status);
            let word = read_from(&ended).unwrap().epilog.unwrap();
            let told = (word.exit_code.as_str(), word.derived_exit_code.as_str());
            assert_eq!(told, ("0:9", code));
        }

        let mut newer = environment();
        newer.insert("SLURM_JOB_START_TIME", "1700000000");
        for (end, limit) in [
            ("1700000060", Some(60)),
            ("1700000000", None),
            ("1", None),
            ("soon", None),
        ] {
            newer.insert("SLURM_JOB_END_TIME", end);
            assert_eq!(read_from(&newer).unwrap().limit_seconds, limit, "{end}");
        }
        let began = read_from(&newer).unwrap().started_at.unwrap();
        assert_eq!(began.as_second(), 1_700_000_000);
        newer.insert("SLURM_JOB_START_TIME", "9999999999999999");
        assert_eq!(read_from(&newer).unwrap().started_at, None);
    }

    /// The environment of a prolog or an epilog, one variable per line, with the user's request
    /// among them.
    ///
    /// Attack (parsers): The environment of prolog and epilog.
    #[test]
    fn fuzz_environment() {
        let mut ended = environment();
        ended.extend([
            ("SLURM_JOB_EXIT_CODE2", "0:9"),
            ("SLURM_JOB_DERIVED_EC", "768"),
            ("SLURM_JOB_START_TIME", "1700000000"),
            ("SLURM_JOB_END_TIME", "1700000060"),
            ("SLURM_HET_JOB_ID", "11"),
            ("SLURM_JOB_RESTART_COUNT", "1"),
            ("SLURM_JOB_SLUID", "sBR1JB8J1YM400"),
        ]);
        let samples = [environment(), ended].map(|environment| {
            let lines = environment
                .iter()
                .map(|(name, value)| format!("{name}={value}\n"));
            let mut lines: Vec<String> = lines.collect();
            lines.sort();
            lines.concat()
        });
        io_autotune_fuzzing::Target::new("environment", &samples).run(|input| {
            let text = String::from_utf8_lossy(input);
            let variables: HashMap<&str, &str> = text
                .lines()
                .filter_map(|line| line.split_once('='))
                .collect();
            match read_from(&variables) {
                Ok(NodeJob { job, .. }) => {
                    for part in [&job.cluster, &job.node] {
                        assert!(!part.contains('/') && !part.starts_with('.') && !part.is_empty());
                    }
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        ["SLURM", "SPANK"].iter().any(|name| message.contains(name)),
                        "{message}"
                    );
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
            }
        });
    }

    #[test]
    fn hostile_and_missing_values_are_refused() {
        for (name, value) in [
            ("SPANK_IO_AUTOTUNE", Some("app=../../etc/passwd")),
            ("SLURM_CLUSTER_NAME", Some("../x")),
            ("SLURMD_NODENAME", Some("..")),
            ("SLURM_JOB_ID", Some("-1")),
            ("SLURM_JOB_UID", None),
            ("SLURM_JOB_NODELIST", Some("n[")),
            ("SLURM_HET_JOB_ID", Some("eleven")),
        ] {
            assert!(read_with(name, value).is_err(), "{name}={value:?}");
        }
    }
}
