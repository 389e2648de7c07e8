//! The spool: reports on local disk until the service has stored them.
//!
//! A report is removed only after the service has acknowledged it, so an outage or a killed helper
//! loses none; delivery is idempotent. A report that the spool cannot take, because it is full,
//! read-only, or not a directory of root's alone, waits in memory: in `.reports` of the run
//! directory. In either place it is named by its launch, so that removing a report never removes
//! another launch's.
//!
//! `CLUSTER.JOBID.RESTARTS.NODE.RUN.json` waits; `.refused` is for an admin; `.new` is a draft.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use io_autotune_protocol::{Call, Client, ClientError, FinishAnswer, FinishRequest, Job, Prepared};

use crate::breaker::{Breaker, since_boot};
use crate::deadline::Deadline;
use crate::files::{
    DirectoryError, check_directory, ensure_directory, ensure_top_directory, read_own,
    replace_durably,
};
use crate::output::say;
use crate::places::Places;

/// The most refused reports that are kept, so that an incompatible service cannot fill the disk.
const REFUSED_KEPT: usize = 100;

const REFUSED_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The age from which a draft belongs to a killed helper.
const DRAFT_AGE: Duration = Duration::from_secs(3600);

/// The directory of reports in the run directory, with a name that no cluster can have.
const IN_MEMORY: &str = ".reports";

#[derive(Debug)]
pub(crate) struct Spool {
    on_disk: PathBuf,
    run_dir: PathBuf,
}

#[derive(Debug)]
pub(crate) enum Delivery {
    Stored,
    /// The service will never accept it, so it is put aside.
    Refused(ClientError),
    Later(ClientError),
}

impl Spool {
    pub(crate) fn of(places: &Places) -> Self {
        Self {
            on_disk: places.spool_dir.clone(),
            run_dir: places.run_dir.clone(),
        }
    }

    /// Makes the directory on disk if there is none. Returns an error if root cannot trust it.
    pub(crate) fn usable(&self) -> Result<(), DirectoryError> {
        ensure_top_directory(&self.on_disk)
    }

    fn in_memory(&self) -> PathBuf {
        self.run_dir.join(IN_MEMORY)
    }

    /// The directories that root can trust.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let on_disk = self.usable().is_ok().then(|| self.on_disk.clone());
        let in_memory = [self.run_dir.clone(), self.in_memory()];
        let is_trusted = in_memory.iter().all(|path| check_directory(path).is_ok());
        let [_, in_memory] = in_memory;
        on_disk
            .into_iter()
            .chain(is_trusted.then_some(in_memory))
            .collect()
    }

    /// The path of a job's waiting report. If Slurm has given the job id again, that of the report
    /// written last.
    pub(crate) fn waits(&self, job: &Job) -> Option<PathBuf> {
        let waiting = self.waiting().into_iter();
        waiting
            .filter(|path| is_of(path, job))
            .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
    }

    /// Keeps a report on disk or, failing that, in memory. When this returns, the report survives
    /// this process.
    pub(crate) fn add(&self, report: &FinishRequest) -> Result<PathBuf, DirectoryError> {
        let on_disk = self.usable().and_then(|()| written(&self.on_disk, report));
        on_disk.or_else(|error| {
            let in_memory = self.in_memory();
            say(&format!(
                "{error}; the report waits in {} instead",
                in_memory.display()
            ));
            ensure_top_directory(&self.run_dir)?;
            ensure_directory(&in_memory)?;
            written(&in_memory, report)
        })
    }

    pub(crate) fn waiting(&self) -> Vec<PathBuf> {
        self.with_extension("json")
    }

    /// The files with an extension. A directory that cannot be read does not hide the files of the
    /// other.
    fn with_extension(&self, wanted: &str) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for directory in self.directories() {
            match in_directory(&directory, wanted) {
                Ok(found) => paths.extend(found),
                Err(error) => say(&format!("{}: {error}", directory.display())),
            }
        }
        paths
    }

    /// Removes surplus refused reports and killed helpers' drafts, never waiting reports.
    pub(crate) fn sweep(&self, now: SystemTime) {
        let surplus = surplus(self.aged("refused", now), REFUSED_AGE, REFUSED_KEPT)
            .into_iter()
            .chain(surplus(self.aged("new", now), DRAFT_AGE, usize::MAX));
        for path in surplus {
            remove(&path);
        }
    }

    fn aged(&self, extension: &str, now: SystemTime) -> Vec<(Duration, PathBuf)> {
        let files = self.with_extension(extension).into_iter();
        // A vanished file needs no removal; a modification time in the future counts as age 0.
        files
            .filter_map(|path| {
                let written = fs::symlink_metadata(&path).and_then(|found| found.modified());
                Some((now.duration_since(written.ok()?).unwrap_or_default(), path))
            })
            .collect()
    }

    /// Sends the report in a file.
    pub(crate) async fn deliver(
        &self,
        client: &Client,
        breaker: &Breaker,
        path: &Path,
        deadline: Deadline,
    ) -> Delivery {
        let report = match read_own(path) {
            // Another flush was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Delivery::Stored,
            Err(error) => {
                let malformed = ClientError::Malformed {
                    endpoint: path.display().to_string(),
                    problem: error.to_string(),
                };
                // A file that can never be read is not tried again.
                if error.kind() == io::ErrorKind::InvalidData {
                    put_aside(path);
                    return Delivery::Refused(malformed);
                }
                return Delivery::Later(malformed);
            }
            Ok(text) => match serde_json::from_str::<FinishRequest>(&text) {
                Ok(report) => report,
                Err(error) => {
                    put_aside(path);
                    return Delivery::Refused(ClientError::Malformed {
                        endpoint: path.display().to_string(),
                        problem: error.to_string(),
                    });
                }
            },
        };
        match prepared(client, &report) {
            Ok(prepared) => self.send(client, breaker, path, prepared, deadline).await,
            Err(error) => Delivery::Later(error),
        }
    }

    /// Sends the report that is in this file.
    pub(crate) async fn send(
        &self,
        client: &Client,
        breaker: &Breaker,
        path: &Path,
        report: Prepared,
        deadline: Deadline,
    ) -> Delivery {
        let asked = since_boot();
        let answer = client.send::<FinishAnswer>(report, deadline.left()).await;
        breaker.learn(asked, &answer);
        match answer {
            Ok(_) => {
                remove(path);
                Delivery::Stored
            }
            Err(error) if error.is_transient() => Delivery::Later(error),
            Err(error) => {
                put_aside(path);
                Delivery::Refused(error)
            }
        }
    }
}

/// The request that carries a report, of which the signature is being made.
pub(crate) fn prepared(client: &Client, report: &FinishRequest) -> Result<Prepared, ClientError> {
    client.prepare(&Call::post("/v1/runs/finish", report))
}

fn written(directory: &Path, report: &FinishRequest) -> Result<PathBuf, DirectoryError> {
    let path = directory.join(file_name(report));
    let text = serde_json::to_vec(report).map_err(|source| DirectoryError::Json {
        path: path.clone(),
        source,
    })?;
    replace_durably(&path, &text, 0o400)?;
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|source| DirectoryError::Io {
        path: directory.to_owned(),
        source,
    })?;
    Ok(path)
}

fn in_directory(directory: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            say(&format!("{}: cannot be removed: {error}", path.display()));
        }
        _ => {}
    }
}

fn put_aside(path: &Path) {
    let aside = path.with_extension("refused");
    if let Err(error) = fs::rename(path, &aside) {
        say(&format!("{}: cannot be put aside: {error}", path.display()));
    }
}

/// The files whose age is at least `limit`, and the oldest beyond `kept` files.
fn surplus(mut files: Vec<(Duration, PathBuf)>, limit: Duration, kept: usize) -> Vec<PathBuf> {
    files.sort();
    files
        .into_iter()
        .enumerate()
        .filter(|(place, (age, _))| *place >= kept || *age >= limit)
        .map(|(_, (_, path))| path)
        .collect()
}

/// The name of a report's file. Slurm may give the job id again while an older report waits, so the
/// name has the run id or the prolog time.
fn file_name(report: &FinishRequest) -> String {
    let launch = match (report.run_id, report.prolog_at) {
        (Some(run_id), _) => format!(".{run_id}"),
        (None, Some(prolog_at)) => format!(".at{}", prolog_at.as_second()),
        (None, None) => String::new(),
    };
    format!("{}{launch}.json", stem(&report.job))
}

fn stem(job: &Job) -> String {
    format!(
        "{}.{}.{}.{}",
        job.cluster, job.job_id, job.restart_count, job.node
    )
}

fn is_of(path: &Path, job: &Job) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let launch = name.and_then(|name| name.strip_prefix(&stem(job))?.strip_suffix(".json"));
    launch.is_some_and(|launch| {
        // With more dots it belongs to another node, whose name only begins like this one's.
        launch.is_empty() || launch.starts_with('.') && !launch[1..].contains('.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lease, job, places};

    fn report(run_id: Option<i64>, prolog_at: Option<&str>) -> FinishRequest {
        FinishRequest {
            job: job(),
            request: Default::default(),
            run_id,
            prolog_at: prolog_at.map(|at| at.parse().unwrap()),
            start_failure: None,
            applied: io_autotune_protocol::Applied::Default,
            steps: Vec::new(),
            in_force: Default::default(),
            observed: Default::default(),
            online: None,
            epilog: None,
            measures: Default::default(),
        }
    }

    fn seconds(age: u64, name: &str) -> (Duration, PathBuf) {
        (Duration::from_secs(age), name.into())
    }

    #[test]
    fn what_is_too_old_or_too_many_goes_and_the_newest_stay() {
        let files = vec![
            seconds(50, "e"),
            seconds(10, "a"),
            seconds(30, "c"),
            seconds(20, "b"),
        ];
        let gone = |limit, kept| surplus(files.clone(), Duration::from_secs(limit), kept);
        assert_eq!(gone(100, 9), Vec::<PathBuf>::new());
        assert_eq!(gone(100, 2), [PathBuf::from("c"), "e".into()]);
        assert_eq!(gone(50, 9), [PathBuf::from("e")]);
    }

    /// A report in the spool is sent as it was written, or is refused by its line.
    ///
    /// Attack (parsers): A spooled report.
    /// Outcome: It is sent as it was written, or refused.
    #[test]
    fn fuzz_spool() {
        let sample = r#"{"job": {"cluster": "c", "job_id": 7, "restart_count": 0, "uid": 1000, "gid": 1000, "node": "n1",
            "nodes": 1, "partition": "main", "cpus_per_node": "8(x2)"}, "request": {"app": "ocean", "mode": "tune"},
            "run_id": 17, "start_failure": "none", "applied": {"kind": "parametrization", "parametrization": {"a": 2}},
            "steps": [{"step_id": 0, "duration_ns": 1734000000, "wait_status": 0, "nodes": 1, "variables": {"A": "set"}}],
            "epilog": {"exit_code": "0:0", "derived_exit_code": "0:0", "limit_seconds": 60}, "measures": {"bytes": 1.5}}"#;
        io_autotune_fuzzing::Target::new("spool", &[sample]).run(|input| {
            match serde_json::from_slice::<FinishRequest>(input) {
                Ok(report) => {
                    let text = serde_json::to_vec(&report).unwrap();
                    let again: FinishRequest = serde_json::from_slice(&text).unwrap();
                    assert_eq!(serde_json::to_vec(&again).unwrap(), text);
                }
                Err(error) => assert!(error.to_string().contains("line"), "{error}"),
            }
        });
    }

    /// Attack (files): The spool has bytes, JSON that is no report, a directory, a FIFO, and a
    /// link.
    /// Outcome: Each is put aside as refused.
    #[tokio::test]
    async fn what_can_never_be_read_is_put_aside_and_not_tried_for_ever() {
        use std::os::unix::fs::symlink;

        let parent = tempfile::tempdir().unwrap();
        let spool = usable(parent.path());
        let path = |name: &str| spool.on_disk.join(name);
        fs::write(path("bytes.json"), b"\xff\xfe").unwrap();
        fs::write(path("none.json"), "{}").unwrap();
        fs::create_dir(path("directory.json")).unwrap();
        nix::unistd::mkfifo(&path("fifo.json"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "as it was").unwrap();
        symlink(&precious, path("link.json")).unwrap();
        let waiting = spool.waiting();
        assert_eq!(waiting.len(), 5);

        for path in waiting {
            let delivery = spool.sent_to_nobody(&path).await;
            assert!(
                matches!(delivery, Delivery::Refused(_)),
                "{}: {delivery:?}",
                path.display()
            );
            assert!(fs::symlink_metadata(path.with_extension("refused")).is_ok());
        }
        assert!(spool.waiting().is_empty());
        let written = fs::symlink_metadata(path("link.refused"))
            .and_then(|metadata| metadata.modified())
            .unwrap();
        spool.sweep(written + 2 * REFUSED_AGE);
        assert!(fs::symlink_metadata(path("link.refused")).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "as it was");
    }

    impl Spool {
        /// Delivers to an address where nobody listens.
        async fn sent_to_nobody(&self, path: &Path) -> Delivery {
            let client: io_autotune_protocol::ClientConfig =
                toml::from_str("endpoints = [\"unix:/nonexistent\"]\nservice_user = 0\n").unwrap();
            let client = Client::new(&client).unwrap();
            let breaker = Breaker::of(&self.run_dir);
            let end = std::time::Instant::now() + Duration::from_secs(20);
            self.deliver(&client, &breaker, path, Deadline { end })
                .await
        }
    }

    #[tokio::test]
    async fn a_report_that_cannot_be_read_at_the_moment_waits_for_the_next_flush() {
        let parent = tempfile::tempdir().unwrap();
        let spool = usable(parent.path());
        let path = spool.add(&report(Some(7), None)).unwrap();
        // Of the files that cannot be read now but later, a test as root can have this one as well.
        let lease = Lease::of(&path);
        let delivery = spool.sent_to_nobody(&path).await;
        assert!(
            matches!(&delivery, Delivery::Later(ClientError::Malformed { endpoint, .. })
                if *endpoint == path.display().to_string()),
            "{delivery:?}"
        );
        assert_eq!(spool.waiting(), std::slice::from_ref(&path));
        drop(lease);
        let delivery = spool.sent_to_nobody(&path).await;
        assert!(
            matches!(&delivery, Delivery::Later(error) if !matches!(error, ClientError::Malformed { .. })),
            "it would have been sent: {delivery:?}"
        );
        assert_eq!(spool.waiting(), [path]);
    }

    fn usable(parent: &Path) -> Spool {
        let spool = Spool::of(&places(parent));
        spool.usable().unwrap();
        spool
    }

    #[test]
    fn what_waits_in_memory_is_found_swept_and_put_aside_as_what_waits_on_disk() {
        let parent = tempfile::tempdir().unwrap();
        let spool = Spool::of(&places(parent.path()));
        fs::write(&spool.on_disk, "no directory").unwrap();
        let path = spool.add(&report(Some(7), None)).unwrap();
        assert!(path.starts_with(spool.in_memory()));
        assert_eq!(spool.waiting(), std::slice::from_ref(&path));
        assert_eq!(spool.waits(&job()), Some(path.clone()));
        put_aside(&path);
        assert!(spool.waiting().is_empty());
        let aside = path.with_extension("refused");
        let written = fs::metadata(&aside).and_then(|found| found.modified());
        spool.sweep(written.unwrap() + 2 * REFUSED_AGE);
        assert!(!aside.exists());

        // Once the spool can be used again, both are delivered.
        let again = spool.add(&report(Some(8), None)).unwrap();
        fs::remove_file(&spool.on_disk).unwrap();
        let on_disk = spool.add(&report(Some(9), None)).unwrap();
        assert_eq!(spool.waiting(), [on_disk, again.clone()]);
        // A directory that others can write is not looked at.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(spool.in_memory(), open).unwrap();
        assert!(!spool.waiting().contains(&again));
    }

    #[test]
    fn a_report_is_on_disk_before_it_waits() {
        let calls = io_autotune_test_trace::calls(
            "spool::tests::a_report_is_on_disk_before_it_waits",
            |place| {
                let spool = Spool {
                    on_disk: place.to_owned(),
                    run_dir: place.join("run"),
                };
                spool.add(&report(Some(7), None)).unwrap();
            },
        );
        let Some(calls) = calls else { return };
        assert_eq!(
            calls,
            [
                "write draft",
                "fdatasync draft",
                "rename draft c.7.0.n1.7.json",
                "fsync ."
            ]
        );
    }

    #[test]
    fn a_job_id_that_is_given_again_does_not_overwrite_the_report_that_waits() {
        let parent = tempfile::tempdir().unwrap();
        let spool = usable(parent.path());
        let (then, now) = (Some("2026-01-01T00:00:00Z"), Some("2026-11-22T00:00:00Z"));
        for report in [
            report(Some(1), then),
            report(Some(2), now),
            report(None, then),
            report(None, now),
            report(None, now),
        ] {
            spool.add(&report).unwrap();
        }
        assert_eq!(spool.waiting().len(), 4);
        let latest = spool.waits(&job()).unwrap();
        assert!(spool.waiting().contains(&latest));
        let elsewhere = |node: &str| Job {
            node: node.to_owned(),
            ..job()
        };
        assert_eq!(spool.waits(&elsewhere("n")), None);
        assert_eq!(spool.waits(&elsewhere("n11")), None);
    }

    #[test]
    fn a_sweep_removes_no_report_that_waits() {
        let parent = tempfile::tempdir().unwrap();
        let spool = usable(parent.path());
        let names = ["c.1.0.n1.json", "c.2.0.n1.refused", "c.3.0.n1.json.77.new"];
        for name in names {
            fs::write(spool.on_disk.join(name), "{}").unwrap();
        }
        let written = fs::metadata(spool.on_disk.join(names[2]))
            .and_then(|metadata| metadata.modified())
            .unwrap();
        let left = || {
            let mut left: Vec<_> = fs::read_dir(&spool.on_disk)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            left
        };

        spool.sweep(written);
        assert_eq!(left(), names);
        spool.sweep(written + 2 * DRAFT_AGE);
        assert_eq!(left(), names[..2]);
        spool.sweep(written + 2 * REFUSED_AGE);
        assert_eq!(left(), names[..1]);
    }
}
