//! A real job, from its submission to its verdict. The stage at which it gets lost shows what has
//! to be repaired.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use io_autotune_protocol::{Check, ClientConfig, RunState, RunSummary};

use crate::arguments::StudiesOf;
use crate::service::{RunsOf, Service};
use crate::targets::Named;

const NAME: &str = "test job";
const APPLICATION: &str = "io-autotune-doctor";
const OPTION: &str = "--io-autotune=app=io-autotune-doctor,mode=observe";
const EVERY: Duration = Duration::from_millis(250);

/// The number of the user's newest runs among which the job is looked for.
const LOOKED_AT: u32 = 100;

/// The stage that the job has reached.
#[derive(Debug)]
enum Stage {
    /// Slurm has the job, and has not started it.
    Queued,
    /// Slurm has started it, and the service does not know of it.
    Begun,
    /// The prolog has reported it, and no epilog has.
    Started,
    /// The epilog has reported it.
    Reported,
    Judged(String),
}

/// Submits a job of one second and follows it. Other options of sbatch can be given by its
/// variables, such as `SBATCH_PARTITION`.
pub(super) async fn check(config: &ClientConfig, cluster: Option<&str>, within: Duration) -> Check {
    let job_id = match submit() {
        Ok(job_id) => job_id,
        Err(check) => return *check,
    };
    let service = match Service::of(config, cluster) {
        Ok(service) => service,
        Err(error) => return lost(job_id, &Stage::Queued, within, &error.to_string()),
    };
    let mut stage = Stage::Queued;
    let began = Instant::now();
    loop {
        let mut problem = String::new();
        match run_of(&service, job_id).await {
            Ok(Some(run)) => stage = stage_of(&run),
            Ok(None) if has_begun(job_id) => stage = Stage::Begun,
            Ok(None) => {}
            Err(error) => problem = error,
        }
        if let Stage::Judged(verdict) = &stage {
            let detail = format!("job {job_id} was started, reported and judged: {verdict}");
            return Check::ok(NAME, detail);
        }
        if began.elapsed() > within {
            // It may not even have started, and is of no further use.
            let _ = slurm("scancel", &[&job_id.to_string()]);
            return lost(job_id, &stage, within, &problem);
        }
        // Nothing else runs on this thread.
        std::thread::sleep(EVERY);
    }
}

fn slurm(program: &str, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(program).args(arguments).output()
}

fn submit() -> Result<u32, Box<Check>> {
    let arguments = [
        "--parsable",
        "--job-name=io-autotune-doctor",
        "--nodes=1",
        "--ntasks=1",
        "--time=1",
        "--output=/dev/null",
        "--chdir=/",
        OPTION,
        "--wrap=sleep 1",
    ];
    let done = slurm("sbatch", &arguments).map_err(|error| {
        Box::new(Check::failed(
            NAME,
            format!("lost at its submission: sbatch cannot be run: {error}"),
            "run this on a submit host, where sbatch is in PATH",
        ))
    })?;
    // `JOBID` or `JOBID;CLUSTER`.
    let printed = String::from_utf8_lossy(&done.stdout);
    let job_id = printed
        .trim()
        .split(';')
        .next()
        .and_then(|id| id.parse().ok());
    job_id.ok_or_else(|| Box::new(refused(String::from_utf8_lossy(&done.stderr).trim())))
}

fn refused(said: &str) -> Check {
    let fix = if said.contains("unrecognized option") {
        "this host's Slurm has not loaded the plugin: add its line to plugstack.conf (docs/install.md); the check \
         `plugin` says what is wrong with the file"
    } else {
        "submit a job by hand; SBATCH_PARTITION, SBATCH_ACCOUNT and other variables of sbatch hold for this one too"
    };
    let detail = format!("lost at its submission: sbatch refuses it: {said}");
    Check::failed(NAME, detail, fix)
}

async fn run_of(service: &Service, job_id: u32) -> Result<Option<RunSummary>, String> {
    let wanted = RunsOf {
        of: StudiesOf::named(&Named::Application(APPLICATION.to_owned())),
        limit: LOOKED_AT,
        ..RunsOf::default()
    };
    let runs = service.runs(&wanted).await;
    let runs = runs.map_err(|error| error.to_string())?;
    Ok(runs.into_iter().rev().find(|run| run.job_id == job_id))
}

fn has_begun(job_id: u32) -> bool {
    let id = format!("--jobs={job_id}");
    let asked = slurm(
        "squeue",
        &["--noheader", "--states=all", &id, "--format=%T"],
    );
    // A job that slurmctld has forgotten has ended.
    asked.is_ok_and(|done| !String::from_utf8_lossy(&done.stdout).contains("PENDING"))
}

fn stage_of(run: &RunSummary) -> Stage {
    if run.state != RunState::InFlight {
        Stage::Judged(run.verdict.clone().unwrap_or_default())
    } else if run.elapsed.is_some() || run.wait_status.is_some() {
        Stage::Reported
    } else {
        Stage::Started
    }
}

fn lost(job_id: u32, stage: &Stage, within: Duration, problem: &str) -> Check {
    let (place, fix) = match stage {
        Stage::Queued => (
            "in Slurm's queue",
            "see `squeue` for its reason; give more time by --within, or another partition by SBATCH_PARTITION",
        ),
        Stage::Begun => (
            "at its prolog: it has begun, and no node has told the service",
            "on its node: is the plugin's line in plugstack.conf, does `io-autotune doctor` reach the service, and \
             what says slurmd's log of io-autotune? Under PrologFlags=RunInJob Prolog= must be run-in-job",
        ),
        Stage::Started => (
            "at its epilog: no node has told the service of its end",
            "on its node: does the report wait in the spool (`io-autotune doctor` as root), and what says slurmd's \
             log of io-autotune? Under PrologFlags=RunInJob Epilog= must be run-in-job",
        ),
        Stage::Reported | Stage::Judged(_) => (
            "before its verdict: no source has told how it ended",
            "see the checks of outcome sources, and [slurm] sources of service.toml",
        ),
    };
    let problem = match problem {
        "" => String::new(),
        problem => format!("; {problem}"),
    };
    Check::failed(
        NAME,
        format!(
            "job {job_id} was lost {place}, {} s after its submission{problem}",
            within.as_secs()
        ),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    #[test]
    fn where_it_got_lost_is_said_with_what_to_do() {
        let within = Duration::from_secs(9);
        for (stage, place, fix) in [
            (Stage::Queued, "in Slurm's queue", "squeue"),
            (Stage::Begun, "at its prolog", "plugstack.conf"),
            (Stage::Started, "at its epilog", "spool"),
            (Stage::Reported, "before its verdict", "[slurm] sources"),
        ] {
            let check = lost(7, &stage, within, "");
            assert_eq!(check.state, CheckState::Failed);
            assert!(check.detail.contains(place), "{check:?}");
            assert!(check.detail.ends_with("9 s after its submission"));
            assert!(check.fix.unwrap().contains(fix));
        }
        assert!(
            lost(7, &Stage::Begun, within, "refused")
                .detail
                .ends_with("; refused")
        );
    }

    #[test]
    fn a_refused_submission_says_whose_fault_it_is() {
        let check = refused("sbatch: unrecognized option '--io-autotune=app=x'");
        assert!(check.fix.unwrap().contains("has not loaded the plugin"));
        let check = refused("sbatch: error: invalid partition specified: none");
        assert!(check.detail.contains("invalid partition"));
        assert!(check.fix.unwrap().contains("SBATCH_PARTITION"));
    }
}
