//! Runs Slurm's commands.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::OutcomeError;

/// Longest wait for a command. The next round asks again.
const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// slurm.conf; Slurm's default if `None`.
    pub(super) conf: Option<PathBuf>,
}

impl Program {
    /// The output. Times in it are UTC in the standard form.
    pub(super) async fn output(&self, arguments: &[String]) -> Result<String, OutcomeError> {
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .env("TZ", "UTC")
            .env("SLURM_TIME_FORMAT", "standard")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        let program = self.path.clone();
        let output = match tokio::time::timeout(DEADLINE, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(source)) => return Err(OutcomeError::Spawn { program, source }),
            Err(_) => {
                return Err(OutcomeError::Timeout {
                    program,
                    after: DEADLINE,
                });
            }
        };
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(OutcomeError::Failed { program, stderr });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
