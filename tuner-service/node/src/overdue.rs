//! Launches that no epilog has reported: the helper was stopped, killed or missing, or Slurm ran no
//! epilog. The timer's pass reports those that are over, without slurmd's exit codes.
//!
//! A launch is over when no step of its job runs on this host, nothing was written for [`QUIET`],
//! and its batch step has ended or the service knows Slurm's outcome record. If a step runs the
//! epilog, the launch is over with the last step. If its epilog still comes, the service counts no
//! second report of this node. A launch is also over if the job was launched again: the next prolog
//! has then moved its directory aside.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use io_autotune_protocol::{Call, Client, OverAnswer, OverRequest, Step};
use nix::sys::stat::Mode;

use crate::breaker::{Breaker, since_boot};
use crate::config::NodeConfig;
use crate::deadline::Deadline;
use crate::directory::{self, JobDirectory, StartRecord};
use crate::files::DirectoryError;
use crate::job::NodeJob;
use crate::output::say;
use crate::places::Places;
use crate::report::{self, ReportError};
use crate::service_arguments::ServiceArguments;
use crate::spool::Spool;
use crate::{restore, settings, stamp, user_files};

/// The time without a write after which a launch may be over: longer than KillWait and
/// UnkillableStepTimeout (30 s, 60 s by default), for which epilogs wait.
const QUIET: Duration = Duration::from_secs(120);

struct Overdue {
    directory: JobDirectory,
    start: StartRecord,
}

pub(crate) async fn report(
    service: &ServiceArguments,
    places: &Places,
    spool: &Spool,
    (client, breaker): (&Client, &Breaker),
    deadline: Deadline,
    (now, proc): (SystemTime, &Path),
) {
    keep_older_reports(places, spool);
    let (swept, forgotten) = (
        directory::sweep(&places.run_dir),
        forget_what_is_nobodys(places, now),
    );
    for error in [swept.err(), forgotten.err()].into_iter().flatten() {
        say(&error.to_string());
    }
    let quiet: Vec<_> = directory::unreported(&places.run_dir)
        .into_iter()
        .filter(|directory| {
            directory.is_taken()
                || is_quiet(directory, now)
                || directory.read_start().is_ok_and(|start| start.in_job)
        })
        .collect();
    if quiet.is_empty() {
        return;
    }
    let living = match jobs_with_steps(proc) {
        Ok(living) => living,
        Err(error) => {
            let proc = proc.display();
            return say(&format!("{proc}: {error}; no launch is taken for over"));
        }
    };
    let (mut over, mut doubtful) = (Vec::new(), Vec::new());
    for directory in quiet {
        let has_steps = directory
            .job_id()
            .is_none_or(|job_id| living.contains(&job_id));
        match follower(&directory) {
            Follower::None if has_steps => continue,
            // Both are of one launch, whose prolog has run twice.
            Follower::PerhapsItself => continue,
            Follower::None | Follower::Another => {}
        }
        match directory.read_start() {
            Ok(start) => {
                let overdue = Overdue { directory, start };
                if overdue.directory.is_taken() || overdue.has_seen_its_last_step_end() {
                    over.push(overdue);
                } else {
                    doubtful.push(overdue);
                }
            }
            // The helper was killed before it recorded the launch, so there is nothing to report.
            Err(error) if directory.is_taken() || is_quiet(&directory, now) => {
                cleared(directory, &error);
            }
            // Its epilog has come meanwhile.
            Err(_) => {}
        }
    }
    over.extend(known_to_be_over(client, breaker, doubtful, deadline).await);
    for overdue in over {
        let job_id = overdue.start.job.job_id;
        match overdue.report(service, places, spool) {
            Ok(true) => say(&format!(
                "the epilog of job {job_id} has not reported; what its launch has left is its report"
            )),
            Ok(false) => {}
            Err(error) => say(&format!("job {job_id} has left its directory: {error}")),
        }
    }
}

fn is_quiet(directory: &JobDirectory, now: SystemTime) -> bool {
    was_quiet_since(directory.written(), now)
}

fn was_quiet_since(written: io::Result<SystemTime>, now: SystemTime) -> bool {
    written.is_ok_and(|at| now.duration_since(at).unwrap_or_default() >= QUIET)
}

/// Removes places that belong to no launch. A launch has its directory before it has a place to
/// write in, and keeps it longer, so an old place without a directory is nobody's: the node's
/// memory was lost, or a helper was killed.
fn forget_what_is_nobodys(places: &Places, now: SystemTime) -> Result<(), DirectoryError> {
    user_files::forget_those(&places.spool_dir, |place| {
        let made = fs::symlink_metadata(place).and_then(|metadata| metadata.modified());
        let name = place.file_name().and_then(OsStr::to_str);
        was_quiet_since(made, now)
            && name.is_some_and(|name| {
                // Queried after the place was found, because a launch that has come since has
                // another one.
                !directory::names_on_nodes(&places.run_dir).contains(name)
            })
    })
}

/// The launch that has the job's directory while an earlier launch's directory is aside.
enum Follower {
    None,
    PerhapsItself,
    Another,
}

fn follower(directory: &JobDirectory) -> Follower {
    let Some(next) = directory.successor() else {
        return Follower::None;
    };
    match (directory.read_start(), next.read_start()) {
        (Ok(own), Ok(next)) if own.is_of_another_launch(&next.job) => Follower::Another,
        _ => Follower::PerhapsItself,
    }
}

/// Moves reports into the spool that helpers up to 0.3.0 kept in the job's directory when the spool
/// had no room.
fn keep_older_reports(places: &Places, spool: &Spool) {
    for directory in directory::unreported(&places.run_dir) {
        if let Some(report) = directory.report()
            && let Err(error) = report::keep(spool, Some(directory), &report)
        {
            say(&error.to_string());
        }
    }
}

fn cleared(directory: JobDirectory, why: &DirectoryError) {
    say(&format!("{why}; what the launch has left is cleared away"));
    if let Err(error) = directory.remove() {
        say(&error.to_string());
    }
}

/// The launches whose outcome record the service has had for a while.
async fn known_to_be_over(
    client: &Client,
    breaker: &Breaker,
    doubtful: Vec<Overdue>,
    deadline: Deadline,
) -> Vec<Overdue> {
    let runs: Vec<i64> = doubtful.iter().filter_map(Overdue::run_id).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let request = OverRequest { runs };
    let call = Call::post("/v1/runs/over", &request);
    let asked = since_boot();
    let answer = client.call::<_, OverAnswer>(call, deadline.left()).await;
    breaker.learn(asked, &answer);
    match answer {
        Ok(OverAnswer { over }) => doubtful
            .into_iter()
            .filter(|one| one.run_id().is_some_and(|run_id| over.contains(&run_id)))
            .collect(),
        Err(error) => {
            say(&format!("whether launches are over is not known: {error}"));
            Vec::new()
        }
    }
}

impl Overdue {
    fn run_id(&self) -> Option<i64> {
        self.start.answer.as_ref().map(|answer| answer.run_id)
    }

    /// Returns true if the job's last step has ended. The job ends with its batch script, even if
    /// other steps still run. A step that runs the epilog lives from the prolog on.
    fn has_seen_its_last_step_end(&self) -> bool {
        if self.start.in_job {
            return true;
        }
        let stamps = self.directory.stamps().unwrap_or_default();
        stamps
            .texts
            .into_iter()
            .filter_map(|(_, text)| Some(stamp::parse(&text.ok()?).ok()?.step))
            .any(|step| step.step_id == Step::BATCH && step.duration_ns.is_some())
    }

    /// Makes the launch's report. Returns `false`, without a change, if its job has just been
    /// launched again, or if the settings of its node are being changed at the moment, perhaps by
    /// that launch's prolog.
    fn report(
        self,
        service: &ServiceArguments,
        places: &Places,
        spool: &Spool,
    ) -> Result<bool, ReportError> {
        let Self { directory, start } = self;
        let node_job = NodeJob {
            job: start.job.clone(),
            request: start.request.clone(),
            is_first_node: false,
            is_later_component: false,
            limit_seconds: None,
            started_at: None,
            epilog: None,
        };
        let config = service
            .node_config()
            .unwrap_or_else(|_| NodeConfig::default());
        // Found before the directory is taken, because anything that comes to its path afterwards
        // is the next launch's.
        let mut place = user_files::find_place(&places.spool_dir, &start.job);
        // A new launch makes its directory before it changes settings, and changes them under this
        // lock. While the lock is held, the values saved for the job are therefore this launch's
        // unless there is a successor.
        let Some(settings) = settings::hold(&start.job, &places.spool_dir) else {
            return Ok(false);
        };
        let Some(directory) = directory.take(&start)? else {
            return Ok(false);
        };
        let is_last = directory.successor().is_none();
        let changed = match is_last {
            true => restore::changed_meanwhile(&start.job, Some(&directory), places, &config),
            false => restore::noted(&directory),
        };
        if is_last {
            // The next prolog on this node would do it too, but may be far away.
            settings::restore_held(&settings, &config);
        }
        drop(settings);
        let kept = directory.left();
        if kept.is_some() || !is_last {
            // The place is the next launch's.
            place = None;
        }
        let left = kept.unwrap_or_else(|| user_files::read(place.as_ref(), &start.job));
        let report = report::report(node_job, Some(&directory), &config, changed, &left)?;
        report::keep(spool, Some(directory), &report)?;
        user_files::remove(place);
        Ok(true)
    }
}

/// The jobs with a step on this host, by the title "slurmstepd: [JOBID.STEP]" that slurmstepd
/// takes. Any process can take that title, so that of other users' processes is not even read.
fn jobs_with_steps(proc: &Path) -> io::Result<BTreeSet<u32>> {
    let mut jobs = BTreeSet::new();
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        if !is_roots(&entry.path()) || !may_be_slurmstepd(&entry.path()) {
            continue;
        }
        let title = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if let Some(rest) = title.strip_prefix(b"slurmstepd: [") {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
            let digits: String = digits.map(|&byte| char::from(byte)).collect();
            jobs.extend(digits.parse::<u32>());
        }
    }
    Ok(jobs)
}

/// Returns true if root has started this process. The owner of its directory does not show that: it
/// is root for each process that cannot be traced; and a program with the set-user-ID bit has root
/// as its owner, but not as its real uid (proc_pid_status(5)).
fn is_roots(process: &Path) -> bool {
    let status = fs::read(process.join("status")).unwrap_or_default();
    // A process can call itself "x\nUid:", but the kernel writes "x\\nUid:".
    status.split(|byte| *byte == b'\n').any(|line| {
        let uids = line.strip_prefix(b"Uid:").unwrap_or_default();
        let real = uids
            .split(u8::is_ascii_whitespace)
            .find(|uid| !uid.is_empty());
        real == Some(b"0")
    })
}

/// Returns true if its program is not one that users start as root. sudo and su become root in
/// their real uid as well, and keep the title that their user gave them while they ask for a
/// password. A program that cannot be looked at is trusted.
fn may_be_slurmstepd(process: &Path) -> bool {
    // The program's own file, deleted or not (proc_pid_exe(5)).
    match fs::metadata(process.join("exe")) {
        Ok(program) => program.mode() & Mode::S_ISUID.bits() == 0,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::Job;

    use super::*;
    use crate::testing::job;

    const BATCH_ENDED: &str =
        "io-autotune-stamp 1\nstep 4294967291\nstart_ns 100\nend_ns 350\nnodes 1\nwait_status 0\n";

    /// A node on which the launch of one job has left its directory, with the timer's pass.
    struct Node {
        root: tempfile::TempDir,
        places: Places,
        service: ServiceArguments,
    }

    impl Node {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let places = Places {
                run_dir: root.path().join("run"),
                spool_dir: root.path().join("spool"),
            };
            fs::create_dir(root.path().join("proc")).unwrap();
            let config = root.path().join("client.toml");
            let text = "endpoints = [\"unix:/nonexistent\"]\nservice_user = 0\n";
            fs::write(&config, text).unwrap();
            let service = ServiceArguments {
                config,
                deadline_ms: 2000,
            };
            Self {
                root,
                places,
                service,
            }
        }

        fn launched(&self) -> JobDirectory {
            let directory = JobDirectory::create(&self.places.run_dir, &job()).unwrap();
            directory
                .write_start(&StartRecord::without_answer(job(), "no answer"))
                .unwrap();
            directory
        }

        fn stamped(&self, directory: &JobDirectory) {
            fs::write(directory.file("step-4294967291.stamp"), BATCH_ENDED).unwrap();
        }

        /// Makes a pass this long after the directory was written, and returns the waiting reports.
        async fn after(&self, age: Duration) -> Vec<std::path::PathBuf> {
            let spool = Spool::of(&self.places);
            let client = self.service.node_client().unwrap();
            let breaker = Breaker::of(&self.places.run_dir);
            let end = std::time::Instant::now() + Duration::from_secs(20);
            let mut directories = fs::read_dir(self.root.path().join("run/c/n1")).unwrap();
            let directory = directories.next().unwrap().unwrap();
            let now = directory.metadata().unwrap().modified().unwrap() + age;
            report(
                &self.service,
                &self.places,
                &spool,
                (&client, &breaker),
                Deadline { end },
                (now, &self.root.path().join("proc")),
            )
            .await;
            spool.waiting()
        }

        /// Adds a process of slurmstepd that runs this step, as root.
        fn with_step(&self, step: &str) -> std::path::PathBuf {
            let process = self.root.path().join("proc/20");
            fs::create_dir(&process).unwrap();
            fs::write(process.join("exe"), "").unwrap();
            fs::write(process.join("cmdline"), format!("slurmstepd: [{step}]\0")).unwrap();
            fs::write(process.join("status"), "Uid:\t0\t0\t0\t0\n").unwrap();
            process
        }

        fn is_left(&self) -> bool {
            fs::read_dir(self.root.path().join("run/c/n1"))
                .unwrap()
                .count()
                > 0
        }
    }

    #[tokio::test]
    async fn a_launch_whose_batch_step_has_ended_is_reported_once_its_epilog_is_overdue() {
        let node = Node::new();
        node.stamped(&node.launched());
        assert!(node.after(QUIET - Duration::from_secs(1)).await.is_empty());
        // The stamp may be a little younger than its directory.
        let waiting = node.after(2 * QUIET).await;
        assert_eq!(waiting.len(), 1);
        assert!(!node.is_left());
        let report = crate::files::read_own(&waiting[0]).unwrap();
        let report: io_autotune_protocol::FinishRequest = serde_json::from_str(&report).unwrap();
        assert_eq!(report.steps[0].duration_ns, Some(250));
        assert_eq!(report.job, job());
    }

    #[tokio::test]
    async fn where_a_step_runs_the_epilog_it_is_overdue_without_the_step() {
        let node = Node::new();
        let directory = node.launched();
        let start = StartRecord {
            in_job: true,
            ..StartRecord::without_answer(job(), "no answer")
        };
        directory.write_start(&start).unwrap();
        assert_eq!(node.after(Duration::ZERO).await.len(), 1);
        assert!(!node.is_left());
    }

    #[tokio::test]
    async fn a_launch_of_which_a_step_still_runs_is_not_over_however_long_it_is_quiet() {
        // The batch step has ended; the epilog has taken the directory and was killed; a step runs
        // the epilog.
        let ended = |node: &Node| node.stamped(&node.launched());
        let taken = |node: &Node| {
            let directory = node.launched();
            let start = directory.read_start().unwrap();
            directory.take(&start).unwrap().unwrap();
        };
        let in_job = |node: &Node| {
            let start = StartRecord {
                in_job: true,
                ..StartRecord::without_answer(job(), "no answer")
            };
            node.launched().write_start(&start).unwrap();
        };
        let ways: [&dyn Fn(&Node); 3] = [&ended, &taken, &in_job];
        for (way, prepare) in ways.into_iter().enumerate() {
            let node = Node::new();
            prepare(&node);
            let step = node.with_step("7.0");
            assert!(node.after(100 * QUIET).await.is_empty(), "{way}");
            assert!(node.is_left(), "{way}");
            fs::remove_dir_all(step).unwrap();
            // Another job's step keeps nothing.
            node.with_step("8.0");
            assert_eq!(node.after(100 * QUIET).await.len(), 1, "{way}");
            assert!(!node.is_left(), "{way}");
        }
    }

    #[tokio::test]
    async fn where_the_processes_cannot_be_seen_no_launch_is_over() {
        let node = Node::new();
        node.stamped(&node.launched());
        fs::remove_dir(node.root.path().join("proc")).unwrap();
        assert!(node.after(100 * QUIET).await.is_empty());
        assert!(node.is_left());
    }

    #[tokio::test]
    async fn one_of_which_nobody_knows_that_it_is_over_stays() {
        let node = Node::new();
        node.launched();
        assert!(node.after(100 * QUIET).await.is_empty());
        assert!(node.is_left());
    }

    #[tokio::test]
    async fn what_does_not_say_whose_it_is_is_cleared_away() {
        let node = Node::new();
        JobDirectory::create(&node.places.run_dir, &job()).unwrap();
        assert!(node.after(QUIET / 2).await.is_empty());
        assert!(node.is_left());
        assert!(node.after(2 * QUIET).await.is_empty());
        assert!(!node.is_left());
    }

    #[tokio::test]
    async fn a_report_that_an_older_helper_has_left_in_its_jobs_directory_is_kept() {
        let node = Node::new();
        let directory = node.launched();
        let report = report::report(
            crate::testing::node_job(),
            Some(&directory),
            &NodeConfig::default(),
            None,
            &Default::default(),
        );
        let report = serde_json::to_vec(&report.unwrap()).unwrap();
        fs::write(directory.file("report.json"), &report).unwrap();
        // Also if its job has been launched again.
        let next = node.launched();
        let waiting = node.after(Duration::ZERO).await;
        assert_eq!(waiting.len(), 1);
        assert_eq!(fs::read(&waiting[0]).unwrap(), report);
        assert!(next.read_start().is_ok());
    }

    #[tokio::test]
    async fn a_launch_whose_prolog_has_run_twice_is_not_over_before_its_second_directory_is() {
        let node = Node::new();
        node.stamped(&node.launched());
        let second = node.launched();
        assert!(node.after(2 * QUIET).await.is_empty());
        second.remove().unwrap();
        assert_eq!(node.after(2 * QUIET).await.len(), 1);
        assert!(!node.is_left());
    }

    #[test]
    fn a_launch_that_has_come_meanwhile_keeps_its_directory() {
        let node = Node::new();
        let directory = node.launched();
        let another = StartRecord::without_answer(job(), "another");
        assert!(directory.take(&another).unwrap().is_none());
        let directory = JobDirectory::open(&node.places.run_dir, &job())
            .unwrap()
            .unwrap();
        let start = directory.read_start().unwrap();
        assert!(directory.take(&start).unwrap().unwrap().is_taken());
        assert!(
            JobDirectory::open(&node.places.run_dir, &job())
                .unwrap()
                .is_none()
        );
    }

    /// Attack (files): The timer finds a launch over while the job's next launch changes settings.
    /// Outcome: The timer leaves it for its next pass, and touches nothing of the next launch.
    #[tokio::test]
    async fn what_the_next_launch_has_in_force_is_not_put_back() {
        let node = Node::new();
        node.stamped(&node.launched());
        let mut agent = std::process::Command::new("sleep");
        let mut agent = agent.arg("600").spawn().unwrap();
        let prolog = settings::hold(&job(), &node.places.spool_dir).unwrap();
        assert!(node.after(2 * QUIET).await.is_empty());
        assert!(node.is_left());
        let again = Job {
            restart_count: 1,
            ..job()
        };
        let next = JobDirectory::create(&node.places.run_dir, &again).unwrap();
        next.write_start(&StartRecord::without_answer(again, "no answer"))
            .unwrap();
        let saved = settings::save_with_agent(&node.places.spool_dir, &job(), agent.id());
        drop(prolog);
        assert_eq!(node.after(2 * QUIET).await.len(), 1, "the first launch's");
        assert!(saved.exists());
        assert!(agent.try_wait().unwrap().is_none(), "it still runs");
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// The same without a next launch: all settings are put back, and the agent is ended.
    #[tokio::test]
    async fn what_an_overdue_launch_has_in_force_is_put_back() {
        let node = Node::new();
        node.stamped(&node.launched());
        let mut agent = std::process::Command::new("sleep");
        let mut agent = agent.arg("600").spawn().unwrap();
        let saved = settings::save_with_agent(&node.places.spool_dir, &job(), agent.id());
        assert_eq!(node.after(2 * QUIET).await.len(), 1);
        assert!(!saved.exists());
        assert!(!agent.wait().unwrap().success());
    }

    #[tokio::test]
    async fn what_a_job_wrote_goes_once_its_directory_has_gone_without_it() {
        let node = Node::new();
        let in_force = node.places.spool_dir.join("in-force");
        let other = in_force.join("c.n1.8");
        // As if by a mount, which only root can make.
        for place in [&in_force.join("c.n1.7"), &other] {
            crate::files::ensure_directory(&node.places.spool_dir).unwrap();
            crate::files::ensure_directory(&in_force).unwrap();
            fs::create_dir(place).unwrap();
        }
        node.launched();
        // A directory that cannot be swept does not keep others from being swept.
        fs::write(node.places.run_dir.join("c/n1/9.done"), "").unwrap();
        node.after(QUIET / 2).await;
        assert!(other.exists());
        node.after(QUIET * 2).await;
        assert!(!other.exists());
        assert!(in_force.join("c.n1.7").exists(), "it still runs");
    }

    /// Attack (files): A process, also a set-user-ID one, calls itself `slurmstepd: [JOBID.STEP]`.
    /// Outcome: Only root's processes count as steps, and the timer reports the job.
    ///
    /// Attack (second-round): sudo, called `slurmstepd: [JOBID.STEP]`, waits for a password as
    /// root.
    /// Outcome: It does not count as a step.
    #[test]
    fn the_jobs_of_slurms_steps_are_known_by_their_processes() {
        let proc = tempfile::tempdir().unwrap();
        for (program, mode) in [("slurmstepd", 0o755), ("sudo", 0o4755)] {
            let path = proc.path().join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        }
        for (pid, uids, title) in [
            ("1", "0\t0\t0\t0", &b"/sbin/init\0"[..]),
            ("20", "0\t0\t0\t0", b"slurmstepd: [12.batch]\0\0"),
            ("21", "0\t0\t0\t0", b"slurmstepd: [13.extern]\0"),
            // For a moment it acts as the user.
            ("22", "0\t1000\t0\t1000", b"slurmstepd: [14+1.0]\0"),
            ("23", "0\t0\t0\t0", b"/usr/sbin/slurmstepd\0"),
            ("24", "0\t0\t0\t0", b"slurmstepd: [99999999999.0]\0"),
            ("self", "0\t0\t0\t0", b"slurmstepd: [15.0]\0"),
            // A user's process; and a program with the set-user-ID bit.
            ("26", "1000\t1000\t1000\t1000", b"slurmstepd: [16.0]\0"),
            ("27", "1000\t0\t0\t0", b"slurmstepd: [17.0]\0"),
            // sudo waiting for a password.
            ("28", "0\t0\t0\t0", b"slurmstepd: [18.0]\0"),
        ] {
            let process = proc.path().join(pid);
            fs::create_dir(&process).unwrap();
            let program = proc
                .path()
                .join(if pid == "28" { "sudo" } else { "slurmstepd" });
            std::os::unix::fs::symlink(program, process.join("exe")).unwrap();
            fs::write(process.join("cmdline"), title).unwrap();
            let status = format!("Name:\tx\\nUid:\t0\nUmask:\t0022\nUid:\t{uids}\nGid:\t0\n");
            fs::write(process.join("status"), status).unwrap();
        }
        fs::create_dir(proc.path().join("25")).unwrap();
        assert_eq!(
            jobs_with_steps(proc.path()).unwrap(),
            BTreeSet::from([12, 13, 14])
        );
    }
}
