//! A command that is run, timed, and ended with all that it started.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::template::Invocation;

/// The most bytes of an output that are read, from its end.
const MOST_OUTPUT: u64 = 1 << 20;

/// A process that runs, with all that it starts.
#[derive(Debug)]
pub(super) struct Running {
    /// The process's number stays its own until [`Over::waited`].
    pub(super) group: Pid,
    pub(super) started: Instant,
}

/// A process that is over, with all that it started; its number is still its own.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) slot: u32,
    took: Duration,
    child: Child,
    output: Output,
}

/// A process that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) took: Duration,
    pub(super) status: io::Result<ExitStatus>,
    pub(super) output: Output,
}

impl Over {
    /// Gives its number back: from now on it may be another's.
    pub(super) fn waited(mut self) -> Ended {
        Ended {
            took: self.took,
            status: self.child.wait(),
            output: self.output,
        }
    }
}

/// The output of a process.
#[derive(Debug)]
pub(super) struct Output {
    stdout: Option<File>,
    stderr: Option<File>,
}

impl Running {
    /// Starts a command; `over` hears of its end. `keeps_output`: what it writes is read, else only
    /// what it writes of errors. Errs when it cannot be started.
    pub(super) fn start(
        invocation: &Invocation,
        run: u64,
        slot: u32,
        keeps_output: bool,
        over: Sender<Over>,
    ) -> io::Result<Self> {
        let Some((program, arguments)) = invocation.words.split_first() else {
            return Err(io::Error::other("there is no program"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("IO_AUTOTUNE_RUN", run.to_string())
            .env("IO_AUTOTUNE_SLOT", slot.to_string())
            .stdin(Stdio::null())
            // Its own group, so that all that it starts ends with it.
            .process_group(0);
        for (name, value) in &invocation.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // Files, and no pipes: nothing waits for who reads, and none is held open by what stays behind.
        let stderr = tempfile::tempfile()?;
        command.stderr(stderr.try_clone()?);
        let stdout = keeps_output.then(tempfile::tempfile).transpose()?;
        command.stdout(match &stdout {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        });
        let started = Instant::now();
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let group = Pid::from_raw(pid);
        std::thread::spawn(move || {
            let took = wait(group, started);
            // Who is not there any more does not want to know.
            let _ = over.send(Over {
                slot,
                took,
                child,
                output: Output {
                    stdout,
                    stderr: Some(stderr),
                },
            });
        });
        Ok(Running { group, started })
    }

    /// Sends a signal to it and to all that it started.
    pub(super) fn signal(&self, signal: Signal) {
        // What has ended needs no signal.
        let _ = killpg(self.group, signal);
    }
}

/// How long it took until it ended. What it started is killed then.
fn wait(group: Pid, started: Instant) -> Duration {
    // Not waited for yet, it keeps its number.
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(group), flags) == Err(nix::errno::Errno::EINTR) {}
    let took = started.elapsed();
    let _ = killpg(group, Signal::SIGKILL);
    took
}

impl Output {
    /// The ends of what was written, output before errors. Each is by itself: what one of them ends
    /// with goes on in no other.
    pub(super) fn streams(&mut self) -> Vec<String> {
        let files = [self.stdout.take(), self.stderr.take()];
        files.into_iter().flatten().map(end_of).collect()
    }
}

fn end_of(mut file: File) -> String {
    let mut bytes = Vec::new();
    let read = || {
        let before = file.metadata()?.len().saturating_sub(MOST_OUTPUT);
        file.seek(SeekFrom::Start(before))?;
        file.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
        if before > 0 {
            // Of a line, and of a number, the end alone is another one.
            let line = bytes.iter().position(|byte| *byte == b'\n');
            bytes.drain(..line.map_or(bytes.len(), |end| end + 1));
        }
        Ok::<_, io::Error>(())
    };
    match read() {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("its output cannot be read: {error}"),
    }
}

/// The last lines of what was written, on one.
pub(super) fn last_words(streams: &[String]) -> String {
    const LINES: usize = 3;
    const BYTES: usize = 400;
    let lines: Vec<&str> = streams
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
    let from = last.floor_char_boundary(last.len().saturating_sub(BYTES));
    last[from..].to_owned()
}

/// How a process ended badly, in words; none if it ended well.
pub(super) fn failure(status: &io::Result<ExitStatus>) -> Option<String> {
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        }),
        Err(error) => Some(format!("its end is not known: {error}")),
    }
}
