//! The job's directory, `RUN/CLUSTER/NODE/JOBID`: what the helper lays out for the plugin and the
//! job, and where the plugin leaves its stamps.
//!
//! Directories are root's, 0711: a job reaches the files it is told of and lists nothing. Files
//! are made under a new name and renamed, so that a reader sees all of one or none of it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use io_autotune_protocol::{FinishRequest, Job, StartAnswer};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::settings::Outcome;

/// No file that we read is longer: the service takes no longer report.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Why a job's files could not be laid out or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path} must be a directory of uid {uid} that nobody else can write: remove it or repair it"
    )]
    Untrusted { path: PathBuf, uid: u32 },
    #[error("{path}: {source}")]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}

/// What the start left for the finish.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// The launch, as the prolog knew it. In the epilog of a launch that is requeued Slurm already
    /// tells the restart count of the next one.
    pub(crate) job: Job,
    /// When the prolog ran, by the node's clock.
    #[serde(default)]
    pub(crate) prolog_at: Option<Timestamp>,
    /// The service's answer.
    pub(crate) answer: Option<StartAnswer>,
    /// Why there is none.
    pub(crate) failure: Option<String>,
    /// The job's time limit in seconds, where the prolog was told it.
    #[serde(default)]
    pub(crate) limit_seconds: Option<u64>,
    /// What became of the answer's settings; none where it has none.
    #[serde(default)]
    pub(crate) settings: Option<Outcome>,
}

/// What the plugin is told, as `job.env`.
#[derive(Debug, Default)]
pub(crate) struct JobEnvironment {
    /// Variables to set where the user has not.
    pub(crate) set: Vec<(String, String)>,
    /// Variables to watch.
    pub(crate) watch: Vec<String>,
}

impl JobEnvironment {
    fn text(&self, job: &Job) -> String {
        let mut text = format!("io-autotune 1\njob {}\nuid {}\n", job.job_id, job.uid);
        for (name, value) in &self.set {
            text.push_str(&format!("set {name}={value}\n"));
        }
        for name in &self.watch {
            text.push_str(&format!("watch {name}\n"));
        }
        text
    }
}

/// One job's directory.
#[derive(Debug)]
pub(crate) struct JobDirectory {
    path: PathBuf,
}

impl JobDirectory {
    const START_RECORD: &str = "start.json";
    const REPORT: &str = "report.json";

    fn path_of(run_dir: &Path, job: &Job) -> PathBuf {
        run_dir
            .join(&job.cluster)
            .join(&job.node)
            .join(job.job_id.to_string())
    }

    /// Makes the directory anew; what an earlier launch of the job left is cleared away.
    pub(crate) fn create(run_dir: &Path, job: &Job) -> Result<Self, DirectoryError> {
        ensure_directory(run_dir)?;
        let cluster = run_dir.join(&job.cluster);
        ensure_directory(&cluster)?;
        ensure_directory(&cluster.join(&job.node))?;
        let path = Self::path_of(run_dir, job);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        ensure_directory(&path)?;
        Ok(Self { path })
    }

    /// The directory that the start made, or `None` where there was no start on this node.
    pub(crate) fn open(run_dir: &Path, job: &Job) -> Result<Option<Self>, DirectoryError> {
        let path = Self::path_of(run_dir, job);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
            Ok(_) => {
                check_directory(&path)?;
                Ok(Some(Self { path }))
            }
        }
    }

    /// The path a file of this directory has.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that the job may read: root's, the job's group's, 0440.
    pub(crate) fn write_for_job(
        &self,
        name: &str,
        gid: u32,
        text: &str,
    ) -> Result<(), DirectoryError> {
        replace(&self.file(name), text.as_bytes(), 0o440, Some(gid))
    }

    /// Tells the plugin what to set and to watch.
    pub(crate) fn write_environment(
        &self,
        job: &Job,
        environment: &JobEnvironment,
    ) -> Result<(), DirectoryError> {
        replace(
            &self.file("job.env"),
            environment.text(job).as_bytes(),
            0o400,
            None,
        )
    }

    /// Keeps what the finish needs to know of the start.
    pub(crate) fn write_start(&self, record: &StartRecord) -> Result<(), DirectoryError> {
        let path = self.file(Self::START_RECORD);
        let text = serde_json::to_vec(record).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)
    }

    /// What the start kept.
    pub(crate) fn read_start(&self) -> Result<StartRecord, DirectoryError> {
        let path = self.file(Self::START_RECORD);
        let text = read_limited(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map_err(|source| DirectoryError::Json { path, source })
    }

    /// Keeps the report here, where the spool has no room for it, and returns where.
    pub(crate) fn write_report(&self, report: &FinishRequest) -> Result<PathBuf, DirectoryError> {
        let path = self.file(Self::REPORT);
        let text = serde_json::to_vec(report).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)?;
        Ok(path)
    }

    /// The texts of all stamps, by file name.
    pub(crate) fn stamps(&self) -> Result<Vec<(String, String)>, DirectoryError> {
        let mut stamps = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(at(&self.path))? {
            let entry = entry.map_err(at(&self.path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("step-") && name.ends_with(".stamp") {
                let path = entry.path();
                stamps.push((name, read_limited(&path).map_err(at(&path))?));
            }
        }
        stamps.sort();
        Ok(stamps)
    }

    /// Clears the directory away.
    pub(crate) fn remove(self) -> Result<(), DirectoryError> {
        fs::remove_dir_all(&self.path).map_err(at(&self.path))
    }
}

/// The reports that are kept in jobs' directories, of every node that runs on this host.
pub(crate) fn reports(run_dir: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.filter_map(Result::ok).map(|entry| entry.path())
    };
    let mut found: Vec<_> = below(run_dir.to_owned())
        .flat_map(below)
        .flat_map(below)
        .map(|directory| directory.join(JobDirectory::REPORT))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

/// Reads a whole small file.
pub(crate) fn read_limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

/// Makes a directory, or checks that the one that is there can be trusted.
pub(crate) fn ensure_directory(path: &Path) -> Result<(), DirectoryError> {
    match DirBuilder::new().mode(0o711).create(path) {
        // The mode asked for is lessened by the umask.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o711)).map_err(at(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_directory(path),
        Err(error) => Err(at(path)(error)),
    }
}

/// Root works only in directories that no user can have prepared.
pub(crate) fn check_directory(path: &Path) -> Result<(), DirectoryError> {
    let metadata = fs::symlink_metadata(path).map_err(at(path))?;
    let uid = effective_uid().map_err(at(path))?;
    let trusted = metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o022 == 0;
    if trusted {
        Ok(())
    } else {
        Err(DirectoryError::Untrusted {
            path: path.to_owned(),
            uid,
        })
    }
}

fn effective_uid() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// Replaces a file in one step: readers see the old one or the new one. The caller has made sure
/// of the directory.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    mode: u32,
    gid: Option<u32>,
) -> Result<(), DirectoryError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(content)?;
        if gid.is_some() {
            fchown(&file, None, gid)?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|error| {
        // The error that counts is the first one.
        let _ = fs::remove_file(&temporary);
        at(path)(error)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::job;

    #[test]
    fn a_second_launch_finds_nothing_of_the_first() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        let first = JobDirectory::create(&run_dir, &job()).unwrap();
        first
            .write_start(&StartRecord {
                job: job(),
                prolog_at: None,
                failure: Some("x".into()),
                answer: None,
                limit_seconds: None,
                settings: None,
            })
            .unwrap();
        let second = JobDirectory::create(&run_dir, &job()).unwrap();
        assert!(second.read_start().is_err());
        second.remove().unwrap();
        assert!(JobDirectory::open(&run_dir, &job()).unwrap().is_none());
    }

    #[test]
    fn the_plugin_is_told_in_its_own_format() {
        let run = tempfile::tempdir().unwrap();
        let directory = JobDirectory::create(&run.path().join("run"), &job()).unwrap();
        let environment = JobEnvironment {
            set: vec![("ROMIO_HINTS".into(), "/run/x".into())],
            watch: vec!["ROMIO_HINTS".into()],
        };
        directory.write_environment(&job(), &environment).unwrap();
        let text = read_limited(&directory.file("job.env")).unwrap();
        assert_eq!(
            text,
            "io-autotune 1\njob 7\nuid 1000\nset ROMIO_HINTS=/run/x\nwatch ROMIO_HINTS\n"
        );
        assert_eq!(fs::metadata(&directory.path).unwrap().mode() & 0o777, 0o711);
        assert_eq!(
            fs::metadata(directory.file("job.env")).unwrap().mode() & 0o777,
            0o400
        );
    }

    #[test]
    fn a_directory_that_others_prepared_is_not_used() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        fs::create_dir(&run_dir).unwrap();
        fs::set_permissions(&run_dir, Permissions::from_mode(0o777)).unwrap();
        let error = JobDirectory::create(&run_dir, &job()).unwrap_err();
        assert!(matches!(error, DirectoryError::Untrusted { .. }), "{error}");

        fs::set_permissions(&run_dir, Permissions::from_mode(0o711)).unwrap();
        symlink("/etc", run_dir.join("c")).unwrap();
        let error = JobDirectory::create(&run_dir, &job()).unwrap_err();
        assert!(matches!(error, DirectoryError::Untrusted { .. }), "{error}");
    }
}
