//! The spool: reports on local disk until the service has stored them.
//!
//! A report is removed only when the service has acknowledged it, so an outage or a killed helper
//! loses none; delivery is idempotent. A report without room here waits in its job's directory.
//!
//! `CLUSTER.JOBID.RESTARTS.NODE.RUN.json` waits; `.refused` is for an admin; `.new` is a draft.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use io_autotune_protocol::{Call, Client, ClientError, FinishAnswer, FinishRequest, Job};

use crate::breaker::{Breaker, since_boot};
use crate::deadline::Deadline;
use crate::files::{DirectoryError, ensure_top_directory, read_own, replace};
use crate::output::say;

/// Bounded, so that an incompatible service cannot fill the disk.
const REFUSED_KEPT: usize = 100;

const REFUSED_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// An older draft belongs to a killed helper.
const DRAFT_AGE: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
}

#[derive(Debug)]
pub(crate) enum Delivery {
    Stored,
    /// The service will never take it; it is put aside.
    Refused(ClientError),
    Later(ClientError),
}

impl Spool {
    pub(crate) fn open(directory: &Path) -> Result<Self, DirectoryError> {
        ensure_top_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Where a job's report waits. If Slurm has reused the job id, the report written last.
    pub(crate) fn waits(&self, job: &Job) -> Option<PathBuf> {
        let waiting = self.waiting().unwrap_or_default().into_iter();
        waiting
            .filter(|path| is_of(path, job))
            .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
    }

    pub(crate) fn add(&self, report: &FinishRequest) -> Result<PathBuf, DirectoryError> {
        let path = self.directory.join(file_name(report));
        let text = serde_json::to_vec(report).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)?;
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|source| DirectoryError::Io {
            path: self.directory.clone(),
            source,
        })?;
        Ok(path)
    }

    pub(crate) fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        self.with_extension("json")
    }

    fn with_extension(&self, wanted: &str) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == wanted)
            {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Removes surplus refused reports and killed helpers' drafts, never waiting reports.
    pub(crate) fn sweep(&self, now: SystemTime) -> io::Result<()> {
        let surplus = surplus(self.aged("refused", now)?, REFUSED_AGE, REFUSED_KEPT)
            .into_iter()
            .chain(surplus(self.aged("new", now)?, DRAFT_AGE, usize::MAX));
        for path in surplus {
            self.remove(&path);
        }
        Ok(())
    }

    fn aged(&self, extension: &str, now: SystemTime) -> io::Result<Vec<(Duration, PathBuf)>> {
        let mut files = Vec::new();
        for path in self.with_extension(extension)? {
            // A vanished file needs no removal; a modification time in the future counts as age 0.
            if let Ok(written) =
                fs::symlink_metadata(&path).and_then(|metadata| metadata.modified())
            {
                files.push((now.duration_since(written).unwrap_or_default(), path));
            }
        }
        Ok(files)
    }

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
                    self.put_aside(path);
                    return Delivery::Refused(malformed);
                }
                return Delivery::Later(malformed);
            }
            Ok(text) => match serde_json::from_str::<FinishRequest>(&text) {
                Ok(report) => report,
                Err(error) => {
                    self.put_aside(path);
                    return Delivery::Refused(ClientError::Malformed {
                        endpoint: path.display().to_string(),
                        problem: error.to_string(),
                    });
                }
            },
        };
        let call = Call::post("/v1/runs/finish", &report);
        let asked = since_boot();
        let answer = client.call::<_, FinishAnswer>(call, deadline.left()).await;
        breaker.learn(asked, &answer);
        match answer {
            Ok(_) => {
                self.forget(path);
                Delivery::Stored
            }
            Err(error) if error.is_transient() => Delivery::Later(error),
            Err(error) => {
                self.put_aside(path);
                Delivery::Refused(error)
            }
        }
    }

    /// Removes a delivered report, and the job's directory if the report is kept there.
    fn forget(&self, path: &Path) {
        match path.parent() {
            Some(parent) if parent != self.directory => {
                if let Err(error) = fs::remove_dir_all(parent)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    say(&format!("{}: cannot be removed: {error}", parent.display()));
                }
            }
            _ => self.remove(path),
        }
    }

    fn remove(&self, path: &Path) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                say(&format!("{}: cannot be removed: {error}", path.display()));
            }
            _ => {}
        }
    }

    fn put_aside(&self, path: &Path) {
        let aside = path.with_extension("refused");
        if let Err(error) = fs::rename(path, &aside) {
            say(&format!("{}: cannot be put aside: {error}", path.display()));
        }
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

/// Slurm may reuse the job id while an older report waits: the name has the run id or prolog time.
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
        // More dots: another node, whose name only begins like this one's.
        launch.is_empty() || launch.starts_with('.') && !launch[1..].contains('.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{JobDirectory, reports};
    use crate::testing::{Lease, job};

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

    /// What stands in the spool is sent as it was written, or refused by its line.
    ///
    /// Attack (parsers): A spooled report.
    /// Outcome: It is sent as it was written, or refused by its line.
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

    /// Attack (files): In the spool there are bytes, JSON that is no report, a directory, a FIFO,
    /// and a link to another file.
    /// Outcome: Each is put aside as refused, none is tried again or waited for, and what the link
    /// leads to stays as it is.
    #[tokio::test]
    async fn what_can_never_be_read_is_put_aside_and_not_tried_for_ever() {
        use std::os::unix::fs::symlink;

        let parent = tempfile::tempdir().unwrap();
        let spool = Spool::open(&parent.path().join("spool")).unwrap();
        let path = |name: &str| spool.directory.join(name);
        fs::write(path("bytes.json"), b"\xff\xfe").unwrap();
        fs::write(path("none.json"), "{}").unwrap();
        fs::create_dir(path("directory.json")).unwrap();
        nix::unistd::mkfifo(&path("fifo.json"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "as it was").unwrap();
        symlink(&precious, path("link.json")).unwrap();
        let waiting = spool.waiting().unwrap();
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
        assert!(spool.waiting().unwrap().is_empty());
        let written = fs::symlink_metadata(path("link.refused"))
            .and_then(|metadata| metadata.modified())
            .unwrap();
        spool.sweep(written + 2 * REFUSED_AGE).unwrap();
        assert!(fs::symlink_metadata(path("link.refused")).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "as it was");
    }

    impl Spool {
        /// Delivers where there is nobody to send to.
        async fn sent_to_nobody(&self, path: &Path) -> Delivery {
            let client: io_autotune_protocol::ClientConfig =
                toml::from_str("endpoints = [\"unix:/nonexistent\"]\nservice_user = 0\n").unwrap();
            let client = Client::new(&client).unwrap();
            let breaker = Breaker::of(&self.directory.join("run"));
            let end = std::time::Instant::now() + Duration::from_secs(20);
            self.deliver(&client, &breaker, path, Deadline { end })
                .await
        }
    }

    #[tokio::test]
    async fn a_report_that_cannot_be_read_at_the_moment_waits_for_the_next_flush() {
        let parent = tempfile::tempdir().unwrap();
        let spool = Spool::open(&parent.path().join("spool")).unwrap();
        let path = spool.add(&report(Some(7), None)).unwrap();
        // Of what fails to be read and can be read later, this can be had by root as well.
        let lease = Lease::of(&path);
        let delivery = spool.sent_to_nobody(&path).await;
        assert!(
            matches!(&delivery, Delivery::Later(ClientError::Malformed { endpoint, .. })
                if *endpoint == path.display().to_string()),
            "{delivery:?}"
        );
        assert_eq!(spool.waiting().unwrap(), std::slice::from_ref(&path));
        drop(lease);
        let delivery = spool.sent_to_nobody(&path).await;
        assert!(
            matches!(&delivery, Delivery::Later(error) if !matches!(error, ClientError::Malformed { .. })),
            "it would have been sent: {delivery:?}"
        );
        assert_eq!(spool.waiting().unwrap(), [path]);
    }

    #[test]
    fn a_report_kept_in_its_jobs_directory_is_found_and_goes_with_it() {
        let parent = tempfile::tempdir().unwrap();
        let spool = Spool::open(&parent.path().join("spool")).unwrap();
        let run_dir = parent.path().join("run");
        let directory = JobDirectory::create(&run_dir, &job()).unwrap();
        let start = directory.file("start.json");
        fs::write(&start, "{}").unwrap();
        assert_eq!(reports(&run_dir), Vec::<PathBuf>::new());
        let path = directory.file("report.json");
        fs::write(&path, "{}").unwrap();
        assert_eq!(reports(&run_dir), std::slice::from_ref(&path));
        spool.forget(&path);
        assert!(!start.exists() && reports(&run_dir).is_empty());
        assert!(run_dir.join("c/n1").exists());

        // In the spool only the report goes.
        let waiting = spool.add(&report(Some(7), None)).unwrap();
        assert_eq!(spool.waits(&job()), Some(waiting.clone()));
        spool.forget(&waiting);
        assert_eq!(spool.waits(&job()), None);
        assert!(spool.directory.exists());
    }

    #[test]
    fn a_report_is_on_disk_before_it_waits() {
        let calls = io_autotune_test_trace::calls(
            "spool::tests::a_report_is_on_disk_before_it_waits",
            |place| {
                let spool = Spool::open(place).unwrap();
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
        let spool = Spool::open(&parent.path().join("spool")).unwrap();
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
        assert_eq!(spool.waiting().unwrap().len(), 4);
        let latest = spool.waits(&job()).unwrap();
        assert!(spool.waiting().unwrap().contains(&latest));
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
        let spool = Spool::open(&parent.path().join("spool")).unwrap();
        let names = ["c.1.0.n1.json", "c.2.0.n1.refused", "c.3.0.n1.json.77.new"];
        for name in names {
            fs::write(spool.directory.join(name), "{}").unwrap();
        }
        let written = fs::metadata(spool.directory.join(names[2]))
            .and_then(|metadata| metadata.modified())
            .unwrap();
        let left = || {
            let mut left: Vec<_> = fs::read_dir(&spool.directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            left
        };

        spool.sweep(written).unwrap();
        assert_eq!(left(), names);
        spool.sweep(written + 2 * DRAFT_AGE).unwrap();
        assert_eq!(left(), names[..2]);
        spool.sweep(written + 2 * REFUSED_AGE).unwrap();
        assert_eq!(left(), names[..1]);
    }
}
