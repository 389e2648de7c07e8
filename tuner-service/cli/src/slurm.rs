//! A task of an array by Slurm: the store has no arrays. Slurm is asked on the user's host, from
//! which the task's name was copied.

use std::process::Command;

/// The job id of a task, from squeue while it runs and a while after, otherwise from sacct.
pub(crate) fn id_of_task(array: u32, task: u32, cluster: Option<&str>) -> Option<u32> {
    let jobs = format!("--jobs={array}_{task}");
    let squeue = ["--noheader", "--array", "--states=all", "--format=%A|%T"];
    let sacct = [
        "--noheader",
        "--allusers",
        "--allocations",
        "--parsable2",
        "--format=JobIDRaw,State",
    ];
    let asked = [("squeue", &squeue[..]), ("sacct", &sacct[..])];
    asked.into_iter().find_map(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&jobs);
        if let Some(cluster) = cluster {
            command.arg(format!("--clusters={cluster}"));
        }
        let done = command.output().ok()?;
        id_in(&String::from_utf8_lossy(&done.stdout))
    })
}

/// The last id in a list of ids and states. A waiting task has the id of its array, which another
/// task gets in the end.
fn id_in(listed: &str) -> Option<u32> {
    let lines = listed.lines().filter_map(|line| line.split_once('|'));
    let begun = lines.filter(|(_, state)| state.trim() != "PENDING");
    begun
        .filter_map(|(id, _)| id.trim().parse().ok())
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_has_begun_has_an_id_of_its_own() {
        assert_eq!(id_in("12|RUNNING\n"), Some(12));
        assert_eq!(id_in("12|NODE_FAIL\n12|COMPLETED\n"), Some(12));
        // With --clusters squeue prints the cluster first.
        assert_eq!(id_in("CLUSTER: beta\n13|COMPLETED\n"), Some(13));
        for none in ["", "11|PENDING\n", "slurm_load_jobs error\n"] {
            assert_eq!(id_in(none), None, "{none}");
        }
    }
}
