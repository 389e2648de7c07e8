//! Commands that are still to be stopped, one file each, `SPOOL/stops/CLUSTER.NODE.JOBID.PID.json`.
//! They are apart from the saved values, because a stop runs as the job's user, who can make it
//! fail, and must not hold up anybody's settings. The epilog tries once, then the timer, a bounded
//! number of times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::command::Running;
use crate::deadline::Deadline;
use crate::files::{
    DirectoryError, at, check_directory, ensure_directory, read_own, replace_durably,
};
use crate::output::say;

/// The most tries: a third of an hour, one a minute by the timer.
const TRIES: u32 = 20;
/// The age below which a stop may still be a hook's.
const AGE: Duration = Duration::from_secs(10);
/// The directory in the spool with stops that were given up, for an admin; `io-autotune doctor`
/// names it.
const UNSTOPPED: &str = "unstopped";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    /// The id of the boot: no process survives a boot, but directories do.
    pub(super) boot_id: String,
    /// The number of tries that were begun.
    pub(super) tries: u32,
    pub(super) command: Running,
}

#[derive(Clone, Debug)]
pub(super) struct Stops {
    spool: PathBuf,
}

impl Stops {
    pub(super) fn new(spool: &Path) -> Self {
        Self {
            spool: spool.to_owned(),
        }
    }

    fn directory(&self) -> PathBuf {
        self.spool.join("stops")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory().join(format!("{name}.json"))
    }

    /// Records a stop before it is tried for the first time.
    pub(super) fn add(&self, name: &str, stop: &Stop) -> Result<(), DirectoryError> {
        let path = self.file(name);
        let write = || {
            ensure_directory(&self.directory())?;
            self.write(&path, stop)
        };
        // The timer may have just removed an empty directory.
        write().or_else(|_| write())
    }

    fn write(&self, path: &Path, stop: &Stop) -> Result<(), DirectoryError> {
        let text = serde_json::to_vec(stop).map_err(|source| DirectoryError::Json {
            path: path.to_owned(),
            source,
        })?;
        replace_durably(path, &text, 0o400)
    }

    pub(super) fn waiting(&self) -> Result<Vec<PathBuf>, DirectoryError> {
        let directory = self.directory();
        match fs::symlink_metadata(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            _ => check_directory(&directory)?,
        }
        let mut waiting = Vec::new();
        for entry in fs::read_dir(&directory).map_err(at(&directory))? {
            let path = entry.map_err(at(&directory))?.path();
            if path.extension().is_some_and(|end| end == "json") {
                waiting.push(path);
            }
        }
        waiting.sort();
        Ok(waiting)
    }

    /// Tries a stop. Afterwards it is deleted, waits for the next try, or is given up.
    pub(super) fn attempt(&self, name: &str, stop: &Stop, boot_id: &str, removal: Duration) {
        let path = &self.file(name);
        let name = &stop.command.name;
        match stop.command.end(stop.boot_id == boot_id, removal) {
            Ok(()) => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    say(&format!("{}: cannot be removed: {error}", path.display()));
                }
                _ => {
                    // The directory stays while another stop waits.
                    let _ = fs::remove_dir(self.directory());
                }
            },
            Err(error) if stop.tries < TRIES => say(&format!(
                "the command {name} has not stopped cleanly: {error}; the timer tries again"
            )),
            Err(error) => self.give_up(
                path,
                &format!("the command {name} has not stopped in {TRIES} tries: {error}"),
            ),
        }
    }

    /// Gives up a stop whose program would stop another launch of the job.
    pub(super) fn supersede(&self, name: &str) {
        let path = self.file(name);
        if fs::symlink_metadata(&path).is_ok() {
            self.give_up(&path, "a command has not stopped before its job began anew");
        }
    }

    fn give_up(&self, path: &Path, why: &str) {
        let aside = path.with_extension(UNSTOPPED);
        let aside = self.spool.join(aside.file_name().unwrap_or_default());
        let moved = fs::rename(path, &aside);
        let _ = fs::remove_dir(self.directory());
        say(&format!(
            "{why}; it is left as it is: see to what it has started, then remove {}",
            aside.display()
        ));
        if let Err(error) = moved {
            say(&format!("{}: cannot be put aside: {error}", path.display()));
        }
    }

    /// The timer's tries, of stops that no hook handles any more; without a time, of all.
    pub(super) fn retry(&self, boot_id: &str, deadline: Deadline, now: Option<SystemTime>) {
        let waiting = self.waiting().unwrap_or_else(|error| {
            say(&error.to_string());
            Vec::new()
        });
        for path in waiting {
            if deadline.left().is_zero() {
                return;
            }
            if now.is_some_and(|now| !is_old(&path, now)) {
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            match self.read(&path) {
                Ok(mut stop) => {
                    // Counted before the try, so that a stop that kills this process is not tried
                    // for ever either.
                    stop.tries += 1;
                    match self.write(&path, &stop) {
                        Ok(()) => self.attempt(&name, &stop, boot_id, deadline.left()),
                        Err(error) => say(&error.to_string()),
                    }
                }
                Err(error) => self.give_up(&path, &error.to_string()),
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Stop, DirectoryError> {
        let text = read_own(path).map_err(at(path))?;
        serde_json::from_str(&text).map_err(|source| DirectoryError::Json {
            path: path.to_owned(),
            source,
        })
    }
}

fn is_old(path: &Path, now: SystemTime) -> bool {
    let written = fs::symlink_metadata(path).and_then(|file| file.modified());
    written.is_ok_and(|at| now.duration_since(at).unwrap_or_default() >= AGE)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::settings::command::{stand_in, stand_in_that_stops_by};

    fn spool() -> (tempfile::TempDir, Stops) {
        let spool = tempfile::tempdir().unwrap();
        let stops = Stops::new(spool.path());
        (spool, stops)
    }

    fn stop(command: Running) -> Stop {
        Stop {
            boot_id: "boot".into(),
            tries: 1,
            command,
        }
    }

    fn deadline() -> Deadline {
        Deadline {
            end: Instant::now() + Duration::from_secs(20),
        }
    }

    const NAME: &str = "c.n1.7.1";

    fn after(path: &Path, age: Duration) -> Option<SystemTime> {
        Some(fs::metadata(path).unwrap().modified().unwrap() + age)
    }

    #[test]
    fn one_that_fails_is_tried_so_often_and_then_an_admins() {
        let (spool, stops) = spool();
        let failing = stop(stand_in_that_stops_by(
            spool.path(),
            "echo x >> stopped; exit 1",
        ));
        stops.add(NAME, &failing).unwrap();
        let path = stops.file(NAME);
        stops.attempt(NAME, &failing, "boot", Duration::from_secs(20));
        let mut tries = 1;
        while path.exists() {
            stops.retry("boot", deadline(), after(&path, AGE / 2));
            assert!(path.exists(), "a hook may be at it");
            stops.retry("boot", deadline(), after(&path, AGE));
            tries += 1;
            assert!(tries <= TRIES, "it is tried for ever");
        }
        assert_eq!(tries, TRIES);
        let stopped = fs::read_to_string(spool.path().join("stopped")).unwrap();
        assert_eq!(stopped.lines().count(), TRIES as usize);
        assert!(spool.path().join("c.n1.7.1.unstopped").is_file());
        assert!(!spool.path().join("stops").exists());
    }

    #[test]
    fn one_that_succeeds_is_forgotten_and_after_a_boot_it_is_not_run() {
        for (boot_id, runs) in [("boot", true), ("another", false)] {
            let (spool, stops) = spool();
            let mark = spool.path().join("started");
            fs::write(&mark, "").unwrap();
            stops.add(NAME, &stop(stand_in(spool.path(), ""))).unwrap();
            let path = stops.file(NAME);
            stops.retry(boot_id, deadline(), after(&path, AGE));
            assert_eq!(!mark.exists(), runs, "{boot_id}");
            assert!(!spool.path().join("stops").exists());
        }
    }

    #[test]
    fn what_cannot_be_read_is_put_aside() {
        let (spool, stops) = spool();
        stops.add(NAME, &stop(stand_in(spool.path(), ""))).unwrap();
        let path = stops.file(NAME);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "{}").unwrap();
        stops.retry("boot", deadline(), after(&path, AGE));
        assert!(spool.path().join("c.n1.7.1.unstopped").is_file());
    }
}
