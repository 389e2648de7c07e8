//! The hook for `PrologFlags=RunInJob`, with which slurmd runs no plugin's prolog and epilog:
//! Slurm's Prolog= and Epilog= run it instead (`deploy/slurm/run-in-job`). Like the plugin
//! elsewhere (`job_hooks.c`), it runs the helper with a deadline and listed variables. It waits
//! neither for a helper that does not die nor for a site's program that holds its output open.

use std::env;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::Signal;
use nix::unistd::{Uid, geteuid};

use crate::output::say;
use crate::places::Places;
use crate::service_arguments::ServiceArguments;
use crate::time_limited::{self, OUTPUT_MOST, PATH};

/// The variables of the job that are passed to the helper. How the job ended is left out, because
/// here Slurm calls every end 0:0.
const TOLD: &[&str] = &[
    REQUEST,
    "SLURM_CLUSTER_NAME",
    "SLURM_CONF",
    "SLURM_HET_JOB_ID",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_END_TIME",
    "SLURM_JOB_GID",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_RESTART_COUNT",
    "SLURM_JOB_SLUID",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_UID",
    "SLURM_JOB_USER",
    "SLURM_NODELIST",
    "SLURMD_NODENAME",
];
const REQUEST: &str = "SPANK_IO_AUTOTUNE";
const CONTEXT: &str = "SLURM_SCRIPT_CONTEXT";

/// The margin after which the helper is killed. It keeps its deadline by itself.
const KILL_AFTER: Duration = Duration::from_millis(100);
/// The least time for which a killed `finish` is run again.
const AGAIN: Duration = Duration::from_millis(100);
/// The time in which the last lines of an ended helper are read.
const LAST_WORDS: Duration = Duration::from_millis(20);

#[derive(Args)]
pub(crate) struct Hook {
    #[command(flatten)]
    service: ServiceArguments,
    #[command(flatten)]
    places: Places,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error(
        "Slurm has run this as uid {0} and not as root, and nothing can be done; if it is a job's end, the timer \
         reports it"
    )]
    NotRoot(Uid),
    #[error("{CONTEXT} is {0:?}: this is for Slurm's Prolog= and Epilog=")]
    Context(String),
    #[error("the node helper cannot be run: {0}")]
    Run(#[from] io::Error),
}

impl Hook {
    pub(crate) fn run(&self) -> Result<(), HookError> {
        // From 24.11 to 25.11.3 an epilog now and then has the uid of the job's user: a thread of
        // slurmstepd's takes it on for a moment, to end X11 forwarding (also if there is none).
        let uid = geteuid();
        if !uid.is_root() {
            return Err(HookError::NotRoot(uid));
        }
        let command = command(|name| env::var(name).ok())?;
        let deadline = Duration::from_millis(self.service.deadline_ms);
        let end = Instant::now() + deadline;
        let status = self.once(command, deadline)?;
        // As in the plugin: an unwritten report is lost, whereas a killed start costs one job's
        // tuning.
        let left = end.saturating_duration_since(Instant::now());
        let killed = status.and_then(|status| status.signal()) == Some(Signal::SIGKILL as i32);
        if command == "finish" && killed && left >= AGAIN {
            self.once(command, left)?;
        }
        Ok(())
    }

    /// Runs the helper once. Returns how it ended, if it did in time.
    fn once(&self, command: &str, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let (said, theirs) = io::pipe()?;
        // The name by which the script has called this program.
        let helper = env::args_os().next().unwrap_or("/proc/self/exe".into());
        let mut child = Command::new(helper)
            .arg(command)
            .args((command == "start").then_some("--in-job"))
            .args(["--config".as_ref(), self.service.config.as_os_str()])
            .args(["--run-dir".as_ref(), self.places.run_dir.as_os_str()])
            .args(["--spool-dir".as_ref(), self.places.spool_dir.as_os_str()])
            .args(["--deadline-ms", &limit.as_millis().to_string()])
            .env_clear()
            .env("PATH", PATH)
            .envs(
                TOLD.iter()
                    .filter_map(|name| Some((name, env::var_os(name)?))),
            )
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(theirs.try_clone()?)
            .stderr(theirs)
            .spawn()?;
        let (done, passed_on) = mpsc::channel();
        thread::spawn(move || {
            let mut said = said.take(OUTPUT_MOST);
            let _ = io::copy(&mut said, &mut io::stderr());
            let _ = done.send(());
            // Surplus output is read as well, so that its writer does not fail.
            let _ = io::copy(&mut said.into_inner(), &mut io::sink());
        });
        let status = time_limited::ended_by(&mut child, Instant::now() + limit + KILL_AFTER)?;
        match status {
            Some(status) => {
                let _ = passed_on.recv_timeout(LAST_WORDS);
                if !status.success() {
                    say(&format!("{command}: {status}; the job goes on"));
                }
            }
            None => {
                time_limited::kill(&mut child);
                say(&format!(
                    "{command} had not ended after {} ms and was killed; the job goes on",
                    (limit + KILL_AFTER).as_millis()
                ));
            }
        }
        Ok(status)
    }
}

fn command(variable: impl Fn(&str) -> Option<String>) -> Result<&'static str, HookError> {
    let context = variable(CONTEXT).unwrap_or_default();
    let is_asked = variable(REQUEST).is_some_and(|request| !request.is_empty());
    match context.as_str() {
        "prolog_slurmd" if is_asked => Ok("start"),
        "epilog_slurmd" if is_asked => Ok("finish"),
        // Restores settings that an earlier job's helper could not put back.
        "prolog_slurmd" | "epilog_slurmd" => Ok("restore"),
        _ => Err(HookError::Context(context)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_says_whether_a_job_starts_or_ends() {
        let of = |context: &str, request: Option<&str>| {
            command(|name| match name {
                CONTEXT => Some(context.to_owned()),
                REQUEST => request.map(str::to_owned),
                _ => None,
            })
        };
        let request = Some("app=ocean,mode=tune");
        assert_eq!(of("prolog_slurmd", request).unwrap(), "start");
        assert_eq!(of("epilog_slurmd", request).unwrap(), "finish");
        assert_eq!(of("prolog_slurmd", None).unwrap(), "restore");
        assert_eq!(of("epilog_slurmd", Some("")).unwrap(), "restore");
        assert!(of("prolog_slurmctld", request).is_err());
        assert!(command(|_| None).is_err());
    }
}
