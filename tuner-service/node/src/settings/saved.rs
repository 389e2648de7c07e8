//! The settings' old values, on disk from before the first change until all are restored, in
//! `SPOOL/saved/CLUSTER/NODE/JOBID.json`, which is root's alone. An empty directory is removed, so
//! that the plugin can see at once whether there is anything to restore.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use serde::{Deserialize, Serialize};

use super::command::Running;
use super::kernel::Target;
use super::online::Agent;
use crate::files::{
    DirectoryError, at, check_directory, ensure_directory, ensure_top_directory, read_own,
    replace_durably,
};
use crate::job::name_on_node;

/// The reason why settings cannot be changed at present.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("another helper is changing settings or putting them back")]
    Busy,
    /// The lock cannot be taken by anybody.
    #[error("settings cannot be kept from other helpers: {0}")]
    Cannot(DirectoryError),
}

/// The time that a hook waits for another helper that changes settings or puts them back.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The lock's file in the spool.
const LOCK: &str = ".lock";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// The id of the boot, from /proc/sys/kernel/random/boot_id: settings do not survive a boot.
    pub(crate) boot_id: String,
    pub(crate) values: Vec<Value>,
    pub(crate) command: Option<Running>,
    /// The agent that moves settings while the job runs.
    pub(crate) agent: Option<Agent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    /// The target to write the value to; for a pair whose other member the kernel zeroes, the one
    /// in force.
    pub(crate) target: Target,
    pub(crate) value: String,
}

#[derive(Clone, Debug)]
pub(crate) struct SavedDirectory {
    spool: PathBuf,
    cluster: String,
    node: String,
}

impl SavedDirectory {
    pub(crate) fn new(spool: &Path, cluster: &str, node: &str) -> Self {
        Self {
            spool: spool.to_owned(),
            cluster: cluster.to_owned(),
            node: node.to_owned(),
        }
    }

    pub(crate) fn spool(&self) -> &Path {
        &self.spool
    }

    /// The cluster and the node whose jobs' values these are.
    pub(crate) fn of_node(&self) -> (&str, &str) {
        (&self.cluster, &self.node)
    }

    /// The name of a job's stop.
    pub(crate) fn name_of(&self, job_id: u32) -> String {
        name_on_node(&self.cluster, &self.node, job_id)
    }

    /// Keeps other helpers of this host from changing settings and their saved values until the
    /// result is dropped. Of two helpers at the same time, one would put back what the other is
    /// changing, and remove the only record of the old value. Returns an error if another helper
    /// takes longer.
    pub(crate) fn lock(&self) -> Result<File, LockError> {
        let end = Instant::now() + LOCK_PATIENCE;
        let file = self.lock_file().map_err(LockError::Cannot)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(LOOK_AGAIN),
                Err(TryLockError::WouldBlock) => return Err(LockError::Busy),
                Err(TryLockError::Error(error)) => {
                    return Err(LockError::Cannot(at(&self.spool.join(LOCK))(error)));
                }
            }
        }
    }

    /// The lock's file. Anybody who can open a file or a directory for reading can lock it, so it
    /// is neither the spool itself, which a site may let users read, nor a file that is not root's
    /// alone.
    fn lock_file(&self) -> Result<File, DirectoryError> {
        check_directory(&self.spool)?;
        let path = self.spool.join(LOCK);
        let mut options = File::options();
        options
            .read(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                options.write(true).create(true).open(&path)
            }
            opened => opened,
        };
        let file = file.map_err(at(&path))?;
        let metadata = file.metadata().map_err(at(&path))?;
        if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
            let why = io::Error::other("it must be a file that root alone can open: remove it");
            return Err(at(&path)(why));
        }
        Ok(file)
    }

    pub(crate) fn all(spool: &Path) -> Result<Vec<Self>, DirectoryError> {
        let mut all = Vec::new();
        let saved = spool.join("saved");
        for cluster in trusted_names(&[spool, &saved])? {
            for node in trusted_names(&[&saved.join(&cluster)])? {
                all.push(Self::new(spool, &cluster, &node));
            }
        }
        Ok(all)
    }

    fn path(&self) -> PathBuf {
        self.spool
            .join("saved")
            .join(&self.cluster)
            .join(&self.node)
    }

    fn file(&self, job_id: u32) -> PathBuf {
        self.path().join(format!("{job_id}.json"))
    }

    /// The jobs with saved values. Root acts on the content of these files, so each directory above
    /// must be trusted.
    pub(crate) fn jobs(&self) -> Result<Vec<u32>, DirectoryError> {
        let saved = self.spool.join("saved");
        let cluster = saved.join(&self.cluster);
        let names = trusted_names(&[&self.spool, &saved, &cluster, &self.path()])?;
        let mut jobs: Vec<u32> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".json")?.parse().ok())
            .collect();
        jobs.sort_unstable();
        Ok(jobs)
    }

    /// Writes atomically and durably: after a crash all values are there, or none.
    pub(crate) fn write(&self, job_id: u32, saved: &Saved) -> Result<(), DirectoryError> {
        let path = self.file(job_id);
        let text = serde_json::to_vec(saved).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        ensure_top_directory(&self.spool)?;
        let mut directory = self.spool.clone();
        let mut made = vec![directory.clone()];
        for name in ["saved", &self.cluster, &self.node] {
            directory.push(name);
            ensure_directory(&directory)?;
            made.push(directory.clone());
        }
        replace_durably(&path, &text, 0o400)?;
        for directory in made.iter().rev() {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|source| DirectoryError::Io {
                path: directory.clone(),
                source,
            })?;
        }
        Ok(())
    }

    pub(crate) fn read(&self, job_id: u32) -> Result<Saved, DirectoryError> {
        let path = self.file(job_id);
        let text = read_own(&path).map_err(|source| DirectoryError::Io {
            path: path.clone(),
            source,
        })?;
        serde_json::from_str(&text).map_err(|source| DirectoryError::Json { path, source })
    }

    pub(crate) fn remove(&self, job_id: u32) -> io::Result<()> {
        match fs::remove_file(self.file(job_id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns true if there is a directory of saved values, or of what a killed helper has left of
    /// them.
    pub(crate) fn is_there(&self) -> bool {
        self.path().exists()
    }

    /// Removes drafts, and the node's directory if no job has saved values; errors are ignored. The
    /// caller must hold the [lock](Self::lock).
    pub(crate) fn tidy(&self) {
        if !self.jobs().is_ok_and(|jobs| jobs.is_empty()) {
            return;
        }
        for name in trusted_names(&[&self.path()]).unwrap_or_default() {
            if name.ends_with(".new") {
                let _ = fs::remove_file(self.path().join(name));
            }
        }
        let mut directory = self.path();
        while directory != self.spool && fs::remove_dir(&directory).is_ok() {
            directory.pop();
        }
    }
}

/// The names in the last directory; empty if one is missing. Each of the directories must be
/// writable by root alone.
fn trusted_names(directories: &[&Path]) -> Result<Vec<String>, DirectoryError> {
    let mut names = Vec::new();
    let Some(last) = directories.last() else {
        return Ok(names);
    };
    let unreadable = |source| DirectoryError::Io {
        path: (*last).to_owned(),
        source,
    };
    for directory in directories {
        match fs::symlink_metadata(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
            _ => check_directory(directory)?,
        }
    }
    for entry in fs::read_dir(last).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// The values read from a file are those that were written, or the file is refused by its line.
    ///
    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_saved() {
        let sample = r#"{"boot_id": "b", "values": [{"target": {"kind": "sysctl", "name": "vm.dirty_bytes"}, "value": "0"}],
            "command": {"name": "vfs", "start": ["/bin/true"], "stop": ["/bin/true"], "owner": [1000, 1000],
            "environment": {"A": "b"}, "provides": ["X"], "start_ms": 1000, "stop_ms": 1000}}"#;
        io_autotune_fuzzing::Target::new("saved", &[sample]).run(|input| {
            match serde_json::from_slice::<Saved>(input) {
                Ok(saved) => {
                    let text = serde_json::to_vec(&saved).unwrap();
                    assert_eq!(serde_json::from_slice::<Saved>(&text).unwrap(), saved);
                }
                Err(error) => assert!(error.to_string().contains("line"), "{error}"),
            }
        });
    }

    /// Attack (files): Saved settings are forged, for root to write them into the kernel.
    #[test]
    fn what_others_can_have_put_there_is_not_acted_on() {
        let root = tempfile::tempdir().unwrap();
        let spool = root.path().join("spool");
        let saved = SavedDirectory::new(&spool, "c", "n1");
        assert!(saved.jobs().unwrap().is_empty(), "there is nothing yet");
        let nothing = Saved {
            boot_id: "boot".into(),
            values: Vec::new(),
            command: None,
            agent: None,
        };
        saved.write(7, &nothing).unwrap();
        assert_eq!(saved.jobs().unwrap(), [7]);
        assert_eq!(SavedDirectory::all(&spool).unwrap().len(), 1);

        let node = spool.join("saved/c/n1");
        for directory in [&spool, &spool.join("saved"), &spool.join("saved/c"), &node] {
            fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
            assert!(saved.jobs().is_err(), "{}", directory.display());
            fs::set_permissions(directory, Permissions::from_mode(0o711)).unwrap();
        }
        let elsewhere = root.path().join("elsewhere");
        fs::rename(&node, &elsewhere).unwrap();
        symlink(&elsewhere, &node).unwrap();
        assert!(saved.jobs().is_err(), "a link");
    }

    /// Attack (files): A user locks what can be opened of a readable spool.
    /// Outcome: The helper's lock is a file that only root can open.
    #[test]
    fn no_user_can_keep_the_helpers_from_their_lock() {
        let root = tempfile::tempdir().unwrap();
        let spool = root.path().join("spool");
        fs::create_dir(&spool).unwrap();
        fs::set_permissions(&spool, Permissions::from_mode(0o755)).unwrap();
        let saved = SavedDirectory::new(&spool, "c", "n1");
        drop(saved.lock().unwrap());
        let names: Vec<_> = fs::read_dir(&spool).unwrap().map(Result::unwrap).collect();
        let mut held = vec![File::open(&spool).unwrap()];
        for name in &names {
            let mode = name.metadata().unwrap().mode();
            if mode & 0o007 != 0 {
                held.push(File::open(name.path()).unwrap());
            }
        }
        assert_eq!(
            names.len(),
            held.len(),
            "there is one file, of root's alone"
        );
        for file in &held {
            file.lock().unwrap();
        }
        let locked = saved.lock().unwrap();
        let other = SavedDirectory::new(&spool, "c", "n2");
        assert!(matches!(other.lock(), Err(LockError::Busy)));
        drop(locked);

        // A lock's file that others could have opened is not used.
        fs::set_permissions(names[0].path(), Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(saved.lock(), Err(LockError::Cannot(_))));
    }

    #[test]
    fn saved_values_and_the_way_to_them_are_on_disk_when_they_are_written() {
        let calls = io_autotune_test_trace::calls(
            "settings::saved::tests::saved_values_and_the_way_to_them_are_on_disk_when_they_are_written",
            |place| {
                let nothing = Saved {
                    boot_id: "boot".into(),
                    values: Vec::new(),
                    command: None,
                    agent: None,
                };
                SavedDirectory::new(&place.join("spool"), "c", "n1")
                    .write(7, &nothing)
                    .unwrap();
            },
        );
        let Some(calls) = calls else { return };
        assert_eq!(
            calls,
            [
                "write draft",
                "fdatasync draft",
                "rename draft spool/saved/c/n1/7.json",
                "fsync spool/saved/c/n1",
                "fsync spool/saved/c",
                "fsync spool/saved",
                "fsync spool",
            ]
        );
    }
}
