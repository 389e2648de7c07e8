//! Runs the site's programs with a time limit.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
pub(crate) const OUTPUT_MOST: u64 = 64 * 1024;
/// The time for which the end of a killed program is awaited. Its end is reported first to a
/// process that traces it.
const DYING: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) good: bool,
    pub(crate) how: String,
    pub(crate) output: String,
}

/// Runs a program in its own process group, with `environment` and a fixed PATH, without input.
/// Returns an error if it cannot start, or if it has not exited and closed its output within
/// `limit`; its group is killed then.
pub(crate) fn run<'a>(
    command: &mut Command,
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    limit: Duration,
) -> io::Result<Ended> {
    let end = Instant::now() + limit;
    let mut child = command
        .env_clear()
        .env("PATH", PATH)
        .envs(environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let Some(mut pipe) = child.stdout.take() else {
        return Err(io::Error::other("it has no output"));
    };
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || {
        let mut output = Vec::new();
        let read = pipe.by_ref().take(OUTPUT_MOST).read_to_end(&mut output);
        let _ = done.send(read.map(|_| output));
    });
    let output = match waiting.recv_timeout(limit) {
        Ok(output) => output?,
        Err(_) => return Err(killed(&mut child, limit)),
    };
    // A program that runs as the user may have closed its output and continued.
    let Some(status) = ended_by(&mut child, end)? else {
        return Err(killed(&mut child, limit));
    };
    Ok(Ended {
        good: status.success(),
        how: status.to_string(),
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}

/// How the child has ended, if it has by then.
pub(crate) fn ended_by(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if Instant::now() < end => thread::sleep(LOOK_AGAIN),
            ended => return Ok(ended),
        }
    }
}

/// Kills the child's process group, and does not wait for a child that does not die.
pub(crate) fn kill(child: &mut Child) {
    // The program may just have ended, and its children may have left the group.
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let _ = group.map(|group| killpg(group, Signal::SIGKILL));
    let _ = ended_by(child, Instant::now() + DYING);
}

fn killed(child: &mut Child, limit: Duration) -> io::Error {
    kill(child);
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!(
            "it had not ended after {} ms and was killed",
            limit.as_millis()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_program_is_told_nothing_of_our_environment() {
        let ended = run(&mut Command::new("/usr/bin/env"), [("A", "b c")], LONG).unwrap();
        assert!(ended.good);
        let mut lines: Vec<&str> = ended.output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["A=b c", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        let ended = run(Command::new("/bin/sh").args(["-c", "exit 3"]), [], LONG).unwrap();
        assert!(!ended.good && ended.how.contains('3'), "{}", ended.how);
    }

    /// Attack (second-round): A command's program or its children hang, also with closed output.
    /// Outcome: It is killed at the limit.
    #[test]
    fn one_that_hangs_is_killed() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 600 & sleep 600"]);
        let error = run(&mut command, [], Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut silent = Command::new("/bin/sh");
        silent.args(["-c", "exec >&-; sleep 600"]);
        let error = run(&mut silent, [], Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(run(&mut Command::new("/nonexistent"), [], LONG).is_err());
    }
}
