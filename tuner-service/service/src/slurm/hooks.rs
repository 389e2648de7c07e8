//! Checks that Slurm runs the programs that start and end a run. With `PrologFlags=RunInJob` (24.05
//! on) the prolog is slurmstepd's, and SPANK's prolog and epilog, which are slurmd's, never run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::OutcomeError;
use super::command::Program;

/// How often Slurm is asked: its configuration changes rarely.
const PERIOD: Duration = Duration::from_secs(600);

/// Under RunInJob there are scripts, and only the site knows what they run.
pub(crate) const SCRIPTS: &str = "Slurm has PrologFlags=RunInJob: its Prolog= and Epilog= must run io-autotune's run-in-job, or \
     no job is tuned (docs/install.md)";

/// The remedy where they are missing.
pub(crate) const MISSING: &str = "Slurm has PrologFlags=RunInJob and no Prolog= or Epilog=, so no job is tuned: set \
     both to io-autotune's run-in-job (docs/install.md)";

/// The programs that Slurm runs at a job's start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// SPANK's prolog and epilog, by slurmd.
    Plugin,
    /// Prolog= and Epilog= alone.
    Scripts,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Hooks {
    scontrol: Program,
    missing: AtomicBool,
}

impl Hooks {
    pub(super) fn new(scontrol: Program) -> Self {
        Self {
            scontrol,
            missing: AtomicBool::new(false),
        }
    }

    /// Asks Slurm. Returns an error if it does not answer.
    pub(crate) async fn ask(&self) -> Result<Runs, OutcomeError> {
        let command = ["show".into(), "config".into()];
        let runs = runs(&self.scontrol.output(&command).await?);
        self.missing.store(runs == Runs::Nothing, Ordering::Relaxed);
        Ok(runs)
    }

    /// Returns true if they were missing in Slurm's last answer.
    pub(crate) fn are_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    /// Asks now and then until it is stopped.
    pub(crate) async fn watch(&self, mut stopping: watch::Receiver<bool>) {
        loop {
            match self.ask().await {
                Ok(Runs::Nothing) => tracing::error!("{MISSING}"),
                Ok(Runs::Scripts | Runs::Plugin) => {}
                Err(error) => tracing::debug!(%error, "Slurm's configuration is not known"),
            }
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                _ = stopping.changed() => return,
            }
        }
    }
}

/// From `scontrol show config`: `Prolog` is numbered since 24.11.
fn runs(config: &str) -> Runs {
    let values = |name: &'static str| {
        config.lines().filter_map(move |line| {
            let (key, value) = line.split_once('=')?;
            let key = key.trim().split('[').next()?;
            (key == name).then(|| value.trim())
        })
    };
    let is_set = |name| values(name).any(|value| !value.is_empty() && value != "(null)");
    let in_job = values("PrologFlags").any(|flags| flags.split(',').any(|flag| flag == "RunInJob"));
    match in_job {
        false => Runs::Plugin,
        true if is_set("Prolog") && is_set("Epilog") => Runs::Scripts,
        true => Runs::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::{Runs, runs};

    #[test]
    fn hooks_are_missing_only_under_run_in_job_without_scripts() {
        let config = |flags: &str, prolog: &str, epilog: &str| {
            format!(
                "Configuration data as of 2026-11-23T08:00:00\nEpilog{epilog}\nEpilogMsgTime = 10 usec\n\
                 Prolog{prolog}\nPrologFlags             = {flags}\n"
            )
        };
        let none = "                  = (null)";
        assert_eq!(runs(""), Runs::Plugin);
        assert_eq!(runs(&config("Alloc,Contain", none, none)), Runs::Plugin);
        assert_eq!(
            runs(&config("Alloc,Contain,RunInJob", none, none)),
            Runs::Nothing
        );
        assert_eq!(
            runs(&config("RunInJob", "[0] = /etc/slurm/prolog", none)),
            Runs::Nothing
        );
        assert_eq!(
            runs(&config("RunInJob", "[0] = /a", "[0] = /b")),
            Runs::Scripts
        );
        assert_eq!(runs(&config("RunInJob", " = /a", " = /b")), Runs::Scripts);
    }
}
