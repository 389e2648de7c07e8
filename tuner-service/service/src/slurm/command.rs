//! Runs Slurm's commands.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, copy, sink};
use tokio::process::Command;

use super::OutcomeError;

/// Longest wait for a command. The next round asks again.
const DEADLINE: Duration = Duration::from_secs(20);

/// The longest output, in bytes: far above squeue's of as many jobs as Slurm takes by default.
const MOST: u64 = 256 * 1024 * 1024;

/// The most bytes of a command's standard error that are read.
const COMPLAINT: u64 = 4096;

#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// slurm.conf; Slurm's default if `None`.
    pub(super) conf: Option<PathBuf>,
}

impl Program {
    /// The output as text, for callers that split it at separators. Times in it are UTC in the
    /// standard form.
    pub(super) async fn output(&self, arguments: &[String]) -> Result<String, OutcomeError> {
        let bytes = self.bytes(arguments).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The output as bytes. Slurm pads and cuts columns by bytes, and a character that is cut has
    /// another length once it is decoded: columns of fixed widths have to be split before.
    pub(super) async fn bytes(&self, arguments: &[String]) -> Result<Vec<u8>, OutcomeError> {
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .env("TZ", "UTC")
            .env("SLURM_TIME_FORMAT", "standard")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        let program = self.path.clone();
        let (status, stdout, stderr) = match tokio::time::timeout(DEADLINE, ran(command)).await {
            Ok(Ok(output)) => output,
            Ok(Err(source)) => return Err(OutcomeError::Spawn { program, source }),
            Err(_) => {
                return Err(OutcomeError::Timeout {
                    program,
                    after: DEADLINE,
                });
            }
        };
        if stdout.len() as u64 > MOST {
            return Err(OutcomeError::TooLong { program });
        }
        if !status.is_some_and(|status| status.success()) {
            let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
            return Err(OutcomeError::Failed { program, stderr });
        }
        Ok(stdout)
    }
}

/// The exit status and the two outputs of a command. The end of a command with too much output is
/// not waited for: its status is `None`.
async fn ran(mut command: Command) -> io::Result<(Option<ExitStatus>, Vec<u8>, Vec<u8>)> {
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(
        first(stdout, MOST + 1, false),
        first(stderr, COMPLAINT, true)
    )?;
    let status = match stdout.len() as u64 > MOST {
        true => None,
        false => Some(child.wait().await?),
    };
    Ok((status, stdout, stderr))
}

/// The first bytes of what is read; the rest is left, or read and dropped.
async fn first(
    from: Option<impl AsyncRead + Unpin>,
    most: u64,
    drops_rest: bool,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(most).read_to_end(&mut bytes).await?;
        if drops_rest {
            copy(&mut from, &mut sink()).await?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(script: &str) -> Result<String, OutcomeError> {
        let program = Program {
            path: "/bin/sh".into(),
            conf: None,
        };
        program.output(&["-c".to_owned(), script.to_owned()]).await
    }

    #[tokio::test]
    async fn what_a_command_says_is_read_and_what_it_complains_only_in_part() {
        assert_eq!(said("echo $TZ; echo no >&2").await.unwrap(), "UTC\n");
        let error = said("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 3").await;
        let Err(OutcomeError::Failed { stderr, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(stderr.len() as u64, COMPLAINT);
        let error = said("exec head -c 300000000 /dev/zero").await;
        assert!(matches!(error, Err(OutcomeError::TooLong { .. })));
    }
}
