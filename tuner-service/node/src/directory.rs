//! The job's directory, `RUN/CLUSTER/NODE/JOBID`, with the helper's files and the plugin's stamps.
//! Directories are root's, mode 0711: a job can open the files whose names it is given, but cannot
//! list the directory. Files are written under a temporary name and renamed, so that readers never
//! see half of one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use io_autotune_protocol::{FinishRequest, Job, Request, StartAnswer};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::{
    self, DirectoryError, at, check_directory, ensure_directory, ensure_top_directory,
    find_directory, read_own, replace,
};
use crate::job::name_on_node;
use crate::settings::Outcome;
use crate::user_files::Left;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// The job, as the prolog saw it. In a requeued launch's epilog Slurm already gives the next
    /// launch's restart count.
    pub(crate) job: Job,
    /// The user's request, for launches without an epilog.
    #[serde(default)]
    pub(crate) request: Request,
    pub(crate) prolog_at: Option<Timestamp>,
    pub(crate) answer: Option<StartAnswer>,
    pub(crate) failure: Option<String>,
    /// True if no answer has yet told this node which of the user's variables to watch.
    #[serde(default)]
    pub(crate) unwatched: bool,
    pub(crate) limit_seconds: Option<u64>,
    pub(crate) settings: Option<Outcome>,
    /// True if a step of the job runs the epilog (`PrologFlags=RunInJob`).
    #[serde(default)]
    pub(crate) in_job: bool,
    /// [The bytes that programs had moved on Lustre](crate::settings::moved_on_lustre) before the
    /// job.
    pub(crate) moved_on_lustre: Option<f64>,
    /// True if the prolog's helper ran to its end: its changes are then all in this record.
    #[serde(default)]
    pub(crate) is_complete: bool,
}

impl StartRecord {
    pub(crate) fn without_answer(job: Job, failure: impl Into<String>) -> Self {
        Self {
            job,
            request: Request::default(),
            prolog_at: None,
            answer: None,
            failure: Some(failure.into()),
            unwatched: false,
            limit_seconds: None,
            settings: None,
            in_job: false,
            moved_on_lustre: None,
            is_complete: false,
        }
    }

    /// Returns true if this launch is surely another one than that of `other`. Slurm's own id tells
    /// it from 25.11 on; before that the restart count does, which an epilog may have of the next
    /// launch.
    pub(crate) fn is_of_another_launch(&self, other: &Job) -> bool {
        match (&self.job.sluid, &other.sluid) {
            (Some(own), Some(other)) => own != other,
            _ => self.job.restart_count != other.restart_count,
        }
    }
}

/// The record that a launch's settings were put back, which is written before that is done: whoever
/// reports the launch afterwards finds nothing of them in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PutBack {
    /// The reason why the launch did not have its settings until its end, if it did not.
    pub(crate) changed: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct JobEnvironment {
    pub(crate) set: Vec<(String, String)>,
    pub(crate) watch: Vec<String>,
    /// A line for the output of a job that asked for it.
    pub(crate) tell: Option<String>,
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
        if let Some(line) = &self.tell {
            text.push_str(&format!("tell {line}\n"));
        }
        text
    }
}

/// The most stamps of a report. The following is the most bytes of them: as JSON half of what the
/// service accepts, and what a spool can hold of many jobs.
const STAMPS_MOST: usize = 20_000;
const STAMPS_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// The texts of the stamps by file name. An unreadable one does not hide the others.
    pub(crate) texts: Vec<(String, io::Result<String>)>,
    pub(crate) left_out: usize,
}

#[derive(Debug)]
pub(crate) struct JobDirectory {
    path: PathBuf,
    /// The directory that was found at the path. While it is held open, nothing else can be taken
    /// for it.
    found: Option<File>,
}

/// The helper's own files in a job's directory. Accelerators' files cannot have these names.
pub(crate) const OURS: [&str; 6] = [
    "job.env",
    JobDirectory::START_RECORD,
    JobDirectory::PUT_BACK,
    JobDirectory::VALUES,
    JobDirectory::MARKS,
    JobDirectory::REPORT,
];

impl JobDirectory {
    const START_RECORD: &str = "start.json";
    const PUT_BACK: &str = "put-back.json";
    const VALUES: &str = "left.values";
    const MARKS: &str = "left.marks";
    /// A report that helpers up to 0.3.0 have left here.
    const REPORT: &str = "report.json";
    const TAKEN: &str = ".over";
    const DONE: &str = ".done";
    /// The most launches of a job whose reports are still to be made.
    const TAKEN_MOST: u32 = 1000;

    fn path_of(run_dir: &Path, job: &Job) -> PathBuf {
        run_dir
            .join(&job.cluster)
            .join(&job.node)
            .join(job.job_id.to_string())
    }

    pub(crate) fn create(run_dir: &Path, job: &Job) -> Result<Self, DirectoryError> {
        ensure_top_directory(run_dir)?;
        let cluster = run_dir.join(&job.cluster);
        ensure_directory(&cluster)?;
        ensure_directory(&cluster.join(&job.node))?;
        let path = Self::path_of(run_dir, job);
        Self::make_way(&path)?;
        ensure_directory(&path)?;
        Self::held(path)
    }

    /// Moves an earlier launch's directory out of the way of the next one: it has not been
    /// reported, or it would be gone. A path that is not a launch's directory is removed.
    fn make_way(path: &Path) -> Result<(), DirectoryError> {
        if check_directory(path).is_ok() {
            let earlier = Self::held(path.to_owned())?;
            let is_launch = [Self::START_RECORD, Self::REPORT];
            let is_there = |name| fs::symlink_metadata(earlier.file(name)).is_ok();
            if is_launch.into_iter().any(is_there) {
                return earlier.moved(Self::TAKEN).map(drop);
            }
        }
        remove_all(path)
    }

    fn held(path: PathBuf) -> Result<Self, DirectoryError> {
        let found = find_directory(&path).map_err(at(&path))?;
        Ok(Self {
            path,
            found: Some(found),
        })
    }

    pub(crate) fn open(run_dir: &Path, job: &Job) -> Result<Option<Self>, DirectoryError> {
        Self::open_at(Self::path_of(run_dir, job))
    }

    fn open_at(path: PathBuf) -> Result<Option<Self>, DirectoryError> {
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
            Ok(_) => {
                let directory = Self::held(path)?;
                directory.check()?;
                Ok(Some(directory))
            }
        }
    }

    /// The directory of a job on a node, of which nothing more is known.
    pub(crate) fn of_node(
        run_dir: &Path,
        (cluster, node): (&str, &str),
        job_id: u32,
    ) -> Result<Option<Self>, DirectoryError> {
        let path = run_dir.join(cluster).join(node).join(job_id.to_string());
        Self::open_at(path)
    }

    fn check(&self) -> Result<(), DirectoryError> {
        self.path.ancestors().take(4).try_for_each(check_directory)
    }

    pub(crate) fn job_id(&self) -> Option<u32> {
        let name = self.path.file_name()?.to_str()?;
        match name.strip_suffix(Self::TAKEN) {
            None => name.parse().ok(),
            Some(taken) => {
                let job_id = taken.split_once('.').map_or(taken, |(job_id, _)| job_id);
                job_id.parse().ok()
            }
        }
    }

    pub(crate) fn written(&self) -> io::Result<SystemTime> {
        fs::symlink_metadata(&self.path)?.modified()
    }

    /// Renames the directory away from its job; `None`, without a change, if the job was launched
    /// again since `start`.
    pub(crate) fn take(self, start: &StartRecord) -> Result<Option<Self>, DirectoryError> {
        if self.is_taken() {
            return Ok(Some(self));
        }
        let taken = self.moved(Self::TAKEN)?;
        if taken.read_start().is_ok_and(|found| found == *start) {
            return Ok(Some(taken));
        }
        fs::rename(&taken.path, &self.path).map_err(at(&self.path))?;
        Ok(None)
    }

    /// Renames it to a name that no other launch has: `JOBID.over`, `JOBID.2.over` and so on.
    fn moved(&self, end: &str) -> Result<Self, DirectoryError> {
        let mut number = 1;
        loop {
            let path = self.named(&match number {
                1 => end.to_owned(),
                _ => format!(".{number}{end}"),
            });
            match fs::rename(&self.path, &path) {
                // There is one, and it is not empty.
                Err(error) if is_in_the_way(&error) && number < Self::TAKEN_MOST => number += 1,
                Err(error) => return Err(at(&self.path)(error)),
                Ok(()) => return Ok(Self { path, found: None }),
            }
        }
    }

    /// The directory of the launch that came after this one, which has the job's path: `None` if
    /// there is none.
    pub(crate) fn successor(&self) -> Option<Self> {
        let job_id = self.job_id()?.to_string();
        let path = self.path.with_file_name(job_id);
        (self.is_taken() && fs::symlink_metadata(&path).is_ok())
            .then_some(Self { path, found: None })
    }

    pub(crate) fn is_taken(&self) -> bool {
        is_named(&self.path, Self::TAKEN)
    }

    fn named(&self, end: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(end);
        self.path.with_file_name(name)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that the job may read: owned by root and the job's group, mode 0440.
    pub(crate) fn write_for_job(
        &self,
        name: &str,
        gid: u32,
        text: &str,
    ) -> Result<(), DirectoryError> {
        let path = self.file(name);
        replace(&path, text.as_bytes(), 0o440, Some(gid))?;
        files::mark_unread(&path).map_err(at(&path))
    }

    /// Returns true if somebody has read a file [written for the job](Self::write_for_job); none if
    /// its file system does not record that.
    pub(crate) fn was_read(&self, name: &str) -> io::Result<Option<bool>> {
        files::was_read(&self.file(name))
    }

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

    pub(crate) fn write_start(&self, record: &StartRecord) -> Result<(), DirectoryError> {
        let path = self.file(Self::START_RECORD);
        let text = serde_json::to_vec(record).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)
    }

    pub(crate) fn read_start(&self) -> Result<StartRecord, DirectoryError> {
        let path = self.file(Self::START_RECORD);
        let text = read_own(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map_err(|source| DirectoryError::Json { path, source })
    }

    /// The record that the launch's settings were put back, if they were.
    pub(crate) fn put_back(&self) -> Option<PutBack> {
        let text = read_own(&self.file(Self::PUT_BACK)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Records that the launch's settings were put back. Only the first record counts, because its
    /// writer has seen them in force.
    pub(crate) fn note_put_back(&self, changed: Option<&str>) -> Result<(), DirectoryError> {
        let path = self.file(Self::PUT_BACK);
        if self.put_back().is_some() {
            return Ok(());
        }
        let note = PutBack {
            changed: changed.map(str::to_owned),
        };
        let text = serde_json::to_vec(&note).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)
    }

    /// Keeps the files that the job has written, because the next launch is about to take their
    /// place.
    pub(crate) fn keep_left(&self, left: &Left) -> Result<(), DirectoryError> {
        replace(&self.file(Self::VALUES), &left.values, 0o400, None)?;
        replace(&self.file(Self::MARKS), &left.marks, 0o400, None)
    }

    /// The files that the job has written, if they are [kept here](Self::keep_left).
    pub(crate) fn left(&self) -> Option<Left> {
        let of = |name| files::read_own_bytes(&self.file(name)).ok();
        Some(Left {
            values: of(Self::VALUES)?,
            marks: of(Self::MARKS)?,
        })
    }

    /// A report that a helper up to 0.3.0 has left here, because its spool was full.
    pub(crate) fn report(&self) -> Option<FinishRequest> {
        let text = read_own(&self.file(Self::REPORT)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Reads a small file of the helper's own.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        read_own(&self.file(name))
    }

    /// The stamps, as many as a report has room for. A job can make as many as it likes.
    pub(crate) fn stamps(&self) -> Result<Stamps, DirectoryError> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.path).map_err(at(&self.path))? {
            let name = entry.map_err(at(&self.path))?.file_name();
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("step-") && name.ends_with(".stamp") {
                names.insert(name);
            }
        }
        let mut stamps = Stamps::default();
        let mut bytes = 0;
        for name in names {
            if stamps.texts.len() == STAMPS_MOST || bytes > STAMPS_BYTES {
                stamps.left_out += 1;
                continue;
            }
            let text = read_own(&self.file(&name));
            bytes += text.as_ref().map_or(0, String::len);
            stamps.texts.push((name, text));
        }
        Ok(stamps)
    }

    /// Removes the directory. It is renamed first, because a half-removed directory must not be
    /// taken for a launch, whose report would replace the complete one. A directory of another
    /// launch that has taken its place stays.
    pub(crate) fn remove(self) -> Result<(), DirectoryError> {
        let done = self.named(Self::DONE);
        remove_all(&done)?;
        match fs::rename(&self.path, &done) {
            // The timer's pass or a late epilog has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Ok(()) if self.is_at(&done) => remove_all(&done),
            Ok(()) => fs::rename(&done, &self.path).map_err(at(&done)),
            Err(error) => Err(at(&self.path)(error)),
        }
    }

    /// Returns true if the directory at a path is the one that was found.
    fn is_at(&self, path: &Path) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        self.found.as_ref().is_none_or(|found| {
            let found = found.metadata().map(identity).ok();
            found.is_some() && fs::symlink_metadata(path).map(identity).ok() == found
        })
    }
}

/// Returns true if a directory cannot be renamed because a directory with that name exists and is
/// not empty.
fn is_in_the_way(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty)
}

fn is_named(path: &Path, end: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.ends_with(end))
}

fn remove_all(path: &Path) -> Result<(), DirectoryError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(at(path)),
    }
}

/// Finishes the removals that killed helpers began.
pub(crate) fn sweep(run_dir: &Path) -> Result<(), DirectoryError> {
    let is_done = |path: &PathBuf| is_named(path, JobDirectory::DONE);
    let mut done = below_nodes(run_dir).into_iter().filter(is_done);
    done.try_for_each(|path| remove_all(&path))
}

fn below_nodes(run_dir: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.filter_map(Result::ok).map(|entry| entry.path())
    };
    let mut found: Vec<_> = below(run_dir.to_owned())
        .flat_map(below)
        .flat_map(below)
        .collect();
    found.sort();
    found
}

/// The spool's names of the launches that have a directory.
pub(crate) fn names_on_nodes(run_dir: &Path) -> BTreeSet<String> {
    let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
    let on_node = |path: PathBuf| {
        let directory = JobDirectory {
            path: path.clone(),
            found: None,
        };
        let job_id = directory.job_id()?;
        let node = path.parent()?;
        Some(name_on_node(&name(node.parent()?)?, &name(node)?, job_id))
    };
    below_nodes(run_dir)
        .into_iter()
        .filter_map(on_node)
        .collect()
}

pub(crate) fn unreported(run_dir: &Path) -> Vec<JobDirectory> {
    let directories = below_nodes(run_dir).into_iter();
    directories
        // Each is held as it is found now, because another launch's may take its place while it is
        // reported.
        .filter_map(|path| JobDirectory::held(path).ok())
        .filter(|directory| directory.job_id().is_some() && directory.check().is_ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::testing::job;

    #[test]
    fn a_second_launch_finds_nothing_of_the_first() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        let first = JobDirectory::create(&run_dir, &job()).unwrap();
        first
            .write_start(&StartRecord::without_answer(job(), "x"))
            .unwrap();
        let second = JobDirectory::create(&run_dir, &job()).unwrap();
        assert!(second.read_start().is_err());
        second.remove().unwrap();
        assert!(JobDirectory::open(&run_dir, &job()).unwrap().is_none());
    }

    #[test]
    fn launches_that_nobody_has_reported_are_put_by_each_under_a_name_of_its_own() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        for restart_count in 0..3 {
            let job = Job {
                restart_count,
                ..job()
            };
            let directory = JobDirectory::create(&run_dir, &job).unwrap();
            let start = StartRecord::without_answer(job, "x");
            directory.write_start(&start).unwrap();
        }
        let mut found: Vec<_> = unreported(&run_dir)
            .iter()
            .map(|directory| {
                let restarts = directory.read_start().unwrap().job.restart_count;
                assert_eq!(directory.job_id(), Some(7));
                (restarts, directory.is_taken())
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(0, true), (1, true), (2, false)]);
        assert_eq!(names_on_nodes(&run_dir).len(), 1);
    }

    /// Attack (files): A job is launched again while a delayed helper removes its old directory.
    /// Outcome: The new launch keeps its directory.
    #[test]
    fn what_has_come_to_its_place_meanwhile_is_not_removed() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        let create = || JobDirectory::create(&run_dir, &job()).unwrap();
        let held_up = create();
        held_up
            .write_start(&StartRecord::without_answer(job(), "first"))
            .unwrap();
        let next = create();
        let start = StartRecord::without_answer(job(), "next");
        next.write_start(&start).unwrap();
        held_up.remove().unwrap();
        assert_eq!(next.read_start().unwrap(), start);
        next.remove().unwrap();
        assert!(JobDirectory::open(&run_dir, &job()).unwrap().is_none());
    }

    #[test]
    fn what_is_cleared_away_is_out_of_the_way_first() {
        let run = tempfile::tempdir().unwrap();
        let run_dir = run.path().join("run");
        let directory = JobDirectory::create(&run_dir, &job()).unwrap();
        let start = directory.file("start.json");
        let in_its_way = run_dir.join("c/n1/7.done");
        fs::write(&start, "{}").unwrap();
        fs::write(&in_its_way, "").unwrap();
        assert!(directory.remove().is_err());
        assert!(start.exists(), "half of it is gone");
        fs::remove_file(&in_its_way).unwrap();

        // A helper was killed here once before.
        fs::create_dir(&in_its_way).unwrap();
        fs::write(in_its_way.join("start.json"), "{}").unwrap();
        assert_eq!(unreported(&run_dir).len(), 1);
        let directory = JobDirectory::open(&run_dir, &job()).unwrap().unwrap();
        directory.remove().unwrap();
        assert!(!in_its_way.exists() && !start.exists());
        fs::create_dir(&in_its_way).unwrap();
        sweep(&run_dir).unwrap();
        assert!(!in_its_way.exists());
    }

    #[test]
    fn the_plugin_is_told_in_its_own_format() {
        let run = tempfile::tempdir().unwrap();
        let directory = JobDirectory::create(&run.path().join("run"), &job()).unwrap();
        let environment = JobEnvironment {
            set: vec![("ROMIO_HINTS".into(), "/run/x".into())],
            watch: vec!["ROMIO_HINTS".into()],
            tell: Some("job 7 runs".into()),
        };
        directory.write_environment(&job(), &environment).unwrap();
        let text = read_own(&directory.file("job.env")).unwrap();
        assert_eq!(
            text,
            "io-autotune 1\njob 7\nuid 1000\nset ROMIO_HINTS=/run/x\nwatch ROMIO_HINTS\ntell job 7 runs\n"
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

    /// Attack (files): Others can make or swap directories where ours are to be.
    /// Outcome: None is used, unless the one above has the sticky bit.
    #[test]
    fn a_directory_that_can_be_swapped_for_another_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let (open, run_dir) = (parent.path().join("open"), parent.path().join("open/run"));
        fs::create_dir(&open).unwrap();
        for (mode, refused) in [
            (0o777, true),
            (0o775, true),
            (0o1777, false),
            (0o755, false),
        ] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            let made = JobDirectory::create(&run_dir, &job());
            let above = matches!(made, Err(DirectoryError::Above { .. }));
            assert_eq!(
                (above, made.is_err()),
                (refused, refused),
                "{mode:o}: {made:?}"
            );
        }
        // Nor are files that were laid out before somebody opened the directory to others.
        let cluster = run_dir.join("c");
        fs::set_permissions(&cluster, Permissions::from_mode(0o777)).unwrap();
        assert!(JobDirectory::open(&run_dir, &job()).is_err());
        fs::set_permissions(&cluster, Permissions::from_mode(0o711)).unwrap();
        assert!(JobDirectory::open(&run_dir, &job()).unwrap().is_some());
    }
}
