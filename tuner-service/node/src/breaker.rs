//! A circuit breaker: one helper per node notices an outage, so that other jobs do not wait for it.
//! An outage that took [`SLOW`] or longer to notice opens it; a refused connection costs no time.
//! While it is open, no helper asks and reports wait in the spool. After [`MEMORY`] one helper
//! asks. The first one that reaches the service, the flush timer's included, closes the breaker. An
//! answer to a request older than the last failure does not.
//!
//! The state is the file `.outage` in the run directory (no cluster name begins with a dot): the
//! last failure and its time in CLOCK_BOOTTIME ns, which clock jumps do not move and a boot resets.
//! It is not in the spool, whose disk may be full; if the run directory has no room, a helper asks
//! nobody.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use io_autotune_protocol::ClientError;
use nix::libc;
use nix::time::{ClockId, clock_gettime};

use crate::files::{check_directory, ensure_top_directory};
use crate::output::say;

/// The shortest failure that opens the breaker: a quicker one costs jobs too little.
const SLOW: Duration = Duration::from_millis(200);

const MEMORY: Duration = Duration::from_secs(15);

const MOST_BYTES: u64 = 4096;

#[derive(Debug)]
pub(crate) struct Breaker {
    path: PathBuf,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service did not answer this node {} s ago, and is asked again {} s after that: {failure}", .ago.as_secs(), MEMORY.as_secs())]
pub(crate) struct Open {
    ago: Duration,
    failure: String,
}

pub(crate) fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

impl Breaker {
    pub(crate) fn of(run_dir: &Path) -> Self {
        Self {
            path: run_dir.join(".outage"),
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Lets a helper ask, `now` being the time after boot. An unreadable breaker lets every helper
    /// ask.
    pub(crate) fn admit(&self, now: Duration) -> Result<(), Open> {
        let Ok(mut file) = self.open(File::options().read(true).write(true)) else {
            return Ok(());
        };
        // The helper that asks again holds the lock; the others do not wait.
        let busy = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let text = read(&file).unwrap_or_default();
        let Some((failed, failure)) = parse(&text) else {
            return Ok(());
        };
        // A time in the future belongs to another boot.
        let Some(ago) = now.checked_sub(failed) else {
            return Ok(());
        };
        if busy || ago < MEMORY {
            let failure = failure.to_owned();
            return Err(Open { ago, failure });
        }
        // Written before asking, so that helpers that come meanwhile do not ask too.
        let failure = failure.to_owned();
        let _ = file.rewind().and_then(|()| write(&mut file, now, &failure));
        Ok(())
    }

    /// Opens the file only where no other user can have replaced it.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        if let Some(run_dir) = self.path.parent() {
            check_directory(run_dir).map_err(io::Error::other)?;
        }
        let file = options
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&self.path)?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is no file"))
        }
    }

    pub(crate) fn learn<A>(&self, asked: Duration, answer: &Result<A, ClientError>) {
        match answer {
            Err(error) if error.is_outage() => {
                let now = since_boot();
                self.failed(now.saturating_sub(asked), now, &error.to_string());
            }
            // A refusal is an answer.
            _ => self.answered(asked),
        }
    }

    fn failed(&self, took: Duration, now: Duration, failure: &str) {
        if took < SLOW {
            return;
        }
        // A launch without a prolog may end where no run directory exists yet.
        let run_dir = self.path.parent().unwrap_or(Path::new("/"));
        let opened = ensure_top_directory(run_dir)
            .map_err(io::Error::other)
            .and_then(|()| self.open(File::options().write(true).create(true).mode(0o600)))
            .and_then(|mut file| {
                file.set_len(0)?;
                write(&mut file, now, failure)
            });
        if let Err(error) = opened {
            say(&format!(
                "{}: an outage cannot be remembered: {error}",
                self.path.display()
            ));
        }
    }

    /// Closes the breaker, unless the request was under way when another one gave up.
    fn answered(&self, asked: Duration) {
        let noticed = self.open(File::options().read(true)).and_then(read);
        let later = |text: String| parse(&text).is_some_and(|(failed, _)| failed > asked);
        if !noticed.is_ok_and(later) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn write(file: &mut File, now: Duration, failure: &str) -> std::io::Result<()> {
    let failure: String = failure
        .chars()
        .filter(|c| !c.is_control())
        .take(500)
        .collect();
    let text = format!("{} {failure}\n", now.as_nanos());
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

fn parse(text: &str) -> Option<(Duration, &str)> {
    let (failed, failure) = text.trim_end().split_once(' ')?;
    Some((Duration::from_nanos(failed.parse().ok()?), failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);
    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> (tempfile::TempDir, Breaker) {
        let directory = tempfile::tempdir().unwrap();
        let breaker = Breaker::of(directory.path());
        (directory, breaker)
    }

    #[test]
    fn an_outage_is_noticed_once_and_forgotten_soon() {
        let (_directory, breaker) = breaker();
        assert_eq!(breaker.admit(NOW), Ok(()));
        breaker.failed(2 * SECOND, NOW, "no answer within 2 s");
        let open = breaker.admit(NOW + 3 * SECOND).unwrap_err();
        assert_eq!(open.ago, 3 * SECOND);
        assert!(open.to_string().contains("no answer within 2 s"));
        // One helper asks again; for the others it is as if the service had failed again.
        assert_eq!(breaker.admit(NOW + MEMORY), Ok(()));
        assert!(breaker.admit(NOW + MEMORY + SECOND).is_err());
        // A request made before the last failure says nothing about the present; the one that asked
        // again does.
        breaker.answered(NOW);
        assert!(breaker.admit(NOW + MEMORY + SECOND).is_err());
        breaker.answered(NOW + MEMORY);
        assert_eq!(breaker.admit(NOW + MEMORY + SECOND), Ok(()));
    }

    #[test]
    fn an_outage_that_costs_no_time_is_asked_through() {
        let (_directory, breaker) = breaker();
        breaker.failed(SLOW / 2, NOW, "connection refused");
        assert_eq!(breaker.admit(NOW), Ok(()));
        assert!(!breaker.is_there());
    }

    #[test]
    fn who_finds_another_asking_does_not_ask() {
        let (_directory, breaker) = breaker();
        breaker.failed(SECOND, NOW, "no answer");
        let asking = File::open(&breaker.path).unwrap();
        asking.lock().unwrap();
        assert!(breaker.admit(NOW + 2 * MEMORY).is_err());
        drop(asking);
        assert_eq!(breaker.admit(NOW + 2 * MEMORY), Ok(()));
    }

    #[test]
    fn what_another_boot_or_a_full_disk_left_lets_everyone_ask() {
        let (_directory, breaker) = breaker();
        breaker.failed(SECOND, NOW, "no answer");
        assert_eq!(breaker.admit(NOW - SECOND), Ok(()));
        for left in ["", "x", "12", "99999999999999999999999999 no answer"] {
            fs::write(&breaker.path, left).unwrap();
            assert_eq!(breaker.admit(NOW), Ok(()), "{left:?}");
        }
    }

    /// Attack (files): A link or a FIFO stands where an outage is remembered, or others can write
    /// there.
    /// Outcome: Nothing is remembered there.
    #[test]
    fn what_another_has_put_in_its_place_is_neither_followed_nor_waited_for() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let (directory, breaker) = breaker();
        let precious = directory.path().join("precious");
        fs::write(&precious, "9 as it was").unwrap();
        symlink(&precious, &breaker.path).unwrap();
        breaker.failed(SECOND, NOW, "no answer");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "9 as it was");
        assert_eq!(breaker.admit(NOW), Ok(()));

        fs::remove_file(&breaker.path).unwrap();
        nix::unistd::mkfifo(&breaker.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(breaker.admit(NOW), Ok(()));
        breaker.failed(SECOND, NOW, "no answer");

        // A directory that others can write is no place for the file.
        fs::remove_file(&breaker.path).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        breaker.failed(SECOND, NOW, "no answer");
        assert!(!breaker.is_there());
    }

    #[test]
    fn a_failure_is_one_line_whatever_it_says() {
        let (_directory, breaker) = breaker();
        breaker.failed(SECOND, NOW, &format!("a\nb{}", "c".repeat(5000)));
        let open = breaker.admit(NOW).unwrap_err();
        assert!(open.failure.starts_with("abc") && open.failure.len() == 500);
    }
}
