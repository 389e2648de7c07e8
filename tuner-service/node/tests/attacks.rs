//! Attacks on the helper itself: in the place of each file that it reads, writes or removes there is
//! something else. It ends in time, touches nothing elsewhere, and the job goes on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;

const PRECIOUS: &str = "as it was";

/// The kinds of things that are put where a file is expected.
const KINDS: &[&str] = &[
    "link",
    "dangling",
    "hard link",
    "fifo",
    "directory",
    "socket",
    "sparse",
    "bytes",
    "open",
];

/// A node that has run no hook yet, with files beside it that must not change.
struct Node {
    root: tempfile::TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        unmount_below(self.root.path());
    }
}

/// Unmounts the small file systems of jobs, because a directory with a mount cannot be removed.
fn unmount_below(directory: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    for point in points.filter(|point| Path::new(point).starts_with(directory)) {
        // A mount below another one is detached with it.
        let _ = umount2(point, MntFlags::MNT_DETACH);
    }
}

struct Ended {
    good: bool,
    killed: bool,
    said: String,
}

impl Node {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let node = Self { root };
        fs::write(node.path("precious"), PRECIOUS).unwrap();
        fs::create_dir(node.path("elsewhere")).unwrap();
        fs::write(node.path("elsewhere/kept"), PRECIOUS).unwrap();
        let config = "endpoints = [\"unix:/nonexistent/socket\"]\nservice_user = 0\n";
        fs::write(node.path("client.toml"), config).unwrap();
        fs::set_permissions(node.path("client.toml"), Permissions::from_mode(0o644)).unwrap();
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn job(&self, name: &str) -> PathBuf {
        self.path("run/c/n1/7").join(name)
    }

    /// The hook of job 7 on node n1 of cluster c.
    fn hook(&self, command: &str) -> Ended {
        self.hook_with(command, &[])
    }

    fn hook_with(&self, command: &str, more: &[(&str, &str)]) -> Ended {
        self.hook_under(&[], command, more)
    }

    /// The same, run by other programs, each with its arguments.
    fn hook_under(&self, under: &[&str], command: &str, more: &[(&str, &str)]) -> Ended {
        let words = under.iter().copied();
        let mut words = words.chain([env!("CARGO_BIN_EXE_io-autotune-node")]);
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .arg(command)
            .args(["--config".as_ref(), self.path("client.toml").as_os_str()])
            .args(["--run-dir".as_ref(), self.path("run").as_os_str()])
            .args(["--spool-dir".as_ref(), self.path("spool").as_os_str()])
            .env_clear()
            .envs([
                ("SPANK_IO_AUTOTUNE", "app=ocean,mode=tune"),
                ("SLURM_CLUSTER_NAME", "c"),
                ("SLURMD_NODENAME", "n1"),
                ("SLURM_JOB_ID", "7"),
                ("SLURM_JOB_UID", "1000"),
                ("SLURM_JOB_GID", "1000"),
                ("SLURM_JOB_NUM_NODES", "1"),
                ("SLURM_JOB_PARTITION", "main"),
                ("SLURM_JOB_CPUS_PER_NODE", "8"),
                ("SLURM_JOB_NODELIST", "n1"),
                ("PATH", "/usr/bin:/bin"),
            ])
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stderr(File::create(self.path("said")).unwrap())
            .spawn()
            .unwrap();
        // The plugin would kill it after 2.1 s. A test's machine may be busy, and a helper that
        // hangs does so for ever.
        let end = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{command} hangs");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = child.wait().unwrap();
        Ended {
            good: status.success(),
            killed: status.signal().is_some(),
            said: fs::read_to_string(self.path("said")).unwrap(),
        }
    }

    /// Puts a thing of this kind where a file is expected.
    fn put(&self, kind: &str, place: &Path) {
        let _ = fs::remove_file(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mode = |mode| fs::set_permissions(place, Permissions::from_mode(mode)).unwrap();
        match kind {
            "link" => symlink(self.path("precious"), place).unwrap(),
            "dangling" => symlink(self.path("elsewhere/made"), place).unwrap(),
            "hard link" => fs::hard_link(self.path("precious"), place).unwrap(),
            "fifo" => nix::unistd::mkfifo(place, Mode::S_IRUSR | Mode::S_IWUSR).unwrap(),
            "directory" => {
                fs::create_dir(place).unwrap();
                symlink(self.path("elsewhere"), place.join("below")).unwrap();
            }
            "socket" => drop(UnixListener::bind(place).unwrap()),
            "sparse" => {
                File::create(place).unwrap().set_len(1 << 40).unwrap();
                mode(0o400);
            }
            "bytes" => {
                fs::write(place, b"\xff\0\n../").unwrap();
                mode(0o400);
            }
            "open" => {
                fs::write(place, "{}").unwrap();
                mode(0o666);
            }
            other => panic!("{other}"),
        }
    }

    /// Checks that nothing elsewhere was written, made or removed.
    fn check(&self, what: &str) {
        assert_eq!(
            fs::read_to_string(self.path("precious")).unwrap(),
            PRECIOUS,
            "{what}"
        );
        let kept: Vec<_> = fs::read_dir(self.path("elsewhere"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(kept, ["kept"], "{what}");
        let kept = fs::read_to_string(self.path("elsewhere/kept")).unwrap();
        assert_eq!(kept, PRECIOUS, "{what}");
    }

    fn reports(&self) -> Vec<serde_json::Value> {
        let places = ["spool", "run/.reports"].map(|name| fs::read_dir(self.path(name)));
        let entries = places.into_iter().flatten().flatten();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
            })
            .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
            .collect()
    }
}

/// A node with its directories, as the first hook makes them.
fn used() -> Node {
    let node = Node::new();
    let start = node.hook("start");
    assert!(start.good, "{}", start.said);
    assert!(node.job("start.json").is_file() && node.job("job.env").is_file());
    node
}

/// Attack (files): A job's files or a spooled report are links, FIFOs, sockets, sparse files of 1
/// TiB, no text, or anybody's.
/// Outcome: Files are made anew at the start; at the end good stamps are reported and bad ones
/// named.
#[test]
fn what_stands_in_the_place_of_a_jobs_files_at_its_start_is_replaced() {
    for kind in KINDS {
        let node = used();
        for name in [
            "job.env",
            "start.json",
            "romio_hints",
            "step-0.stamp",
            "step-0.measures",
            "../watched",
            "../../../.outage",
            "../../../.endpoint",
        ] {
            node.put(kind, &node.job(name));
        }
        let start = node.hook("start");
        node.check(kind);
        assert!(start.good, "{kind}: {}", start.said);
        for name in ["job.env", "start.json"] {
            let file = fs::symlink_metadata(node.job(name)).unwrap();
            assert!(
                file.is_file() && file.permissions().mode() & 0o777 == 0o400,
                "{kind}: {name}"
            );
        }
        for name in ["step-0.stamp", "step-0.measures"] {
            assert!(fs::symlink_metadata(node.job(name)).is_err(), "{kind}");
        }
    }
}

/// Attack (files): A job's files or a spooled report are links, FIFOs, sockets, sparse files of 1
/// TiB, no text, or anybody's.
/// Outcome: Files are made anew at the start; at the end good stamps are reported and bad ones
/// named.
#[test]
fn what_stands_in_the_place_of_a_jobs_files_at_its_end_is_not_believed() {
    for kind in KINDS {
        let node = used();
        for name in [
            "job.env",
            "start.json",
            "romio_hints",
            "step-0.stamp",
            "step-1.measures",
            "../../../.outage",
            "../../../.endpoint",
        ] {
            node.put(kind, &node.job(name));
        }
        let stamp = "io-autotune-stamp 1\nstep 1\nstart_ns 1\nend_ns 9\nnodes 1\nwait_status 0\n";
        fs::write(node.job("step-1.stamp"), stamp).unwrap();
        fs::set_permissions(node.job("step-1.stamp"), Permissions::from_mode(0o400)).unwrap();
        let finish = node.hook("finish");
        node.check(kind);
        assert!(finish.good, "{kind}: {}", finish.said);
        let reports = node.reports();
        assert_eq!(reports.len(), 1, "{kind}: {}", finish.said);
        // Nor does it hide the good stamp.
        assert_eq!(
            reports[0]["steps"].as_array().unwrap().len(),
            1,
            "{kind}: {}",
            reports[0]
        );
        assert_eq!(reports[0]["steps"][0]["step_id"], 1, "{kind}");
        let mut measures = reports[0]["measures"].as_object().unwrap().clone();
        // Measures of mounts are left out, because another user of the host may mount something
        // meanwhile.
        measures.retain(|name, _| !name.ends_with("_mounts"));
        assert!(measures.is_empty(), "{kind}: {measures:?}");
        assert!(
            finish.said.contains("step-0.stamp"),
            "{kind}: {}",
            finish.said
        );
        assert!(!node.job("").exists(), "{kind}: the directory stays");
    }
}

/// Attack (files): A job's files or a spooled report are links, FIFOs, sockets, sparse files of 1
/// TiB, no text, or anybody's.
/// Outcome: Files are made anew at the start; at the end good stamps are reported and bad ones
/// named.
#[test]
fn what_stands_in_the_place_of_a_spools_files_harms_nothing() {
    for kind in KINDS {
        for name in [
            "c.7.0.n1.json",
            "c.1.0.n1.json",
            "saved/c/n1/9.json",
            "saved/c/n1",
            "saved",
        ] {
            let node = used();
            fs::create_dir_all(node.path("spool")).unwrap();
            fs::set_permissions(node.path("spool"), Permissions::from_mode(0o711)).unwrap();
            node.put(kind, &node.path("spool").join(name));
            for command in ["finish", "start", "restore"] {
                node.hook(command);
                node.check(&format!("{kind} as {name} in {command}"));
            }
            // If it is in the way of the report there is none; but it is not in the way of the next
            // launch.
            assert!(node.job("job.env").is_file(), "{kind} as {name}");
        }
    }
}

/// Puts one thing after the other in the place of files, as fast as possible, until it is stopped.
fn swap(node: &Node, places: &[PathBuf], stop: &AtomicBool) -> usize {
    let mut swapped = 0;
    // The things are moved there by a rename, as an attacker in a race would do it.
    let aside = node.path("aside");
    fs::create_dir_all(&aside).unwrap();
    while !stop.load(Ordering::Relaxed) {
        for (number, kind) in KINDS.iter().enumerate() {
            for place in places {
                let new = aside.join(number.to_string());
                if fs::symlink_metadata(&new).is_ok_and(|file| file.is_dir()) {
                    fs::remove_dir_all(&new).unwrap();
                }
                node.put(kind, &new);
                // The directory may be gone by then, or there may be a directory.
                let _ = fs::rename(place, aside.join("was"));
                swapped += usize::from(fs::rename(&new, place).is_ok());
                if aside.join("was").is_dir() {
                    let _ = fs::remove_dir_all(aside.join("was"));
                }
            }
        }
    }
    swapped
}

/// Attack (files): A job's files are swapped for links and FIFOs while the end reads them.
/// Outcome: The untouched stamp is reported, and nothing of another file.
#[test]
fn files_that_are_swapped_while_the_end_reads_them_lead_it_nowhere() {
    let mut swapped = 0;
    for round in 0..30 {
        let node = used();
        let stamp = "io-autotune-stamp 1\nstep 1\nstart_ns 1\nend_ns 9\nnodes 1\nwait_status 0\n";
        for name in ["step-0.stamp", "step-1.stamp"] {
            fs::write(node.job(name), stamp).unwrap();
            fs::set_permissions(node.job(name), Permissions::from_mode(0o400)).unwrap();
        }
        let places = ["start.json", "step-0.stamp", "step-1.measures", "job.env"];
        let places = places.map(|name| node.job(name));
        let stop = AtomicBool::new(false);
        let finish = std::thread::scope(|scope| {
            let swapping = scope.spawn(|| swap(&node, &places, &stop));
            let finish = node.hook("finish");
            stop.store(true, Ordering::Relaxed);
            swapped += swapping.join().unwrap();
            finish
        });
        let what = format!("round {round}: {}", finish.said);
        node.check(&what);
        // A thing that is put there while the directory is removed may stay: the next start makes
        // the directory anew.
        let reports = node.reports();
        assert_eq!(reports.len(), 1, "{what}");
        let steps = reports[0]["steps"].as_array().unwrap();
        assert!(steps.iter().any(|step| step["step_id"] == 1), "{what}");
        assert!(!reports[0].to_string().contains(PRECIOUS), "{what}");
        let start = node.hook("start");
        assert!(start.good, "{what}: {}", start.said);
        node.check(&what);
    }
    assert!(swapped > 30, "only {swapped} were swapped");
}

/// Attack (files): The spool, or a directory of ours, is a link, a file, full, read-only, or
/// writable by others.
/// Outcome: The helper says so and does not use it; whole reports wait in memory.
#[test]
fn a_directory_of_ours_that_is_a_link_or_anybodys_is_not_used() {
    for (place, name) in ["run", "run/c", "run/c/n1", "run/c/n1/7", "spool"]
        .into_iter()
        .enumerate()
    {
        for kind in ["link", "open"] {
            let node = used();
            assert!(node.hook("finish").good && node.hook("start").good);
            let directory = node.path(name);
            if kind == "link" {
                unmount_below(&directory);
                fs::remove_dir_all(&directory).unwrap();
                symlink(node.path("elsewhere"), &directory).unwrap();
            } else {
                fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
            }
            let what = format!("{name} as {kind}");
            let finish = node.hook("finish");
            node.check(&what);
            if kind == "link" && place < 3 {
                // The link leads to a directory without the job, as if no prolog had run.
                assert!(finish.good, "{what}: {}", finish.said);
                assert_eq!(
                    node.reports()[0]["steps"].as_array().unwrap().len(),
                    0,
                    "{what}"
                );
            } else if name == "spool" {
                assert!(finish.good, "{what}: {}", finish.said);
                let in_memory = fs::read_dir(node.path("run/.reports"));
                assert_eq!(in_memory.unwrap().count(), 1, "{what}");
            } else {
                assert!(
                    !finish.good && finish.said.contains("not reported"),
                    "{what}: {}",
                    finish.said
                );
            }
            let start = node.hook("start");
            node.check(&what);
            // The job's own directory is made anew, and the start needs no spool.
            assert_eq!(start.good, place >= 3, "{what}: {}", start.said);
        }
    }
}

/// A way to make a spool unusable.
type Spoil = fn(&Path);

const MARKS: &str = "begin 1000000000\nend 3000000000\nobjective rate 4\n";

/// Writes the marks of a job. Returns `false` if the test does not run as root, because only root
/// can mount.
fn marked(node: &Node) -> bool {
    let marks = node.path("spool/in-force/c.n1.7/marks");
    let written = nix::unistd::geteuid().is_root();
    if written {
        fs::write(marks, MARKS).unwrap();
    }
    written
}

/// The variables by which slurmd tells an epilog how the job ended.
const ENDED: [(&str, &str); 2] = [
    ("SLURM_JOB_EXIT_CODE2", "3:0"),
    ("SLURM_JOB_DERIVED_EC", "768"),
];

/// Attack (files): The spool, or a directory of ours, is a link, a file, full, read-only, or
/// writable by others.
/// Outcome: The helper says so and does not use it; whole reports wait in memory.
///
/// Promise: a report is lost
#[test]
fn a_spool_that_becomes_unusable_loses_nothing_of_a_job() {
    let spoilt: [(&str, Spoil); 4] = [
        ("anybody's", |spool| {
            fs::set_permissions(spool, Permissions::from_mode(0o777)).unwrap();
        }),
        ("a file", |spool| {
            fs::rename(spool, spool.with_extension("was")).unwrap();
            fs::write(spool, "").unwrap();
        }),
        ("a link", |spool| {
            fs::rename(spool, spool.with_extension("was")).unwrap();
            symlink(spool.with_extension("was"), spool).unwrap();
        }),
        ("read-only", |spool| {
            let bind = MsFlags::MS_BIND;
            let none = None::<&str>;
            mount(Some(spool), spool, none, bind | MsFlags::MS_REC, none).unwrap();
            let read_only = bind | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            mount(none, spool, none, read_only, none).unwrap();
        }),
    ];
    for (what, spoil) in spoilt {
        let node = used();
        if !marked(&node) {
            return;
        }
        spoil(&node.path("spool"));
        let finish = node.hook_with("finish", &ENDED);
        assert!(finish.good, "{what}: {}", finish.said);
        let reported = |what: &str| {
            let reports = node.reports();
            assert_eq!(reports.len(), 1, "{what}: {}", finish.said);
            assert_eq!(reports[0]["epilog"]["exit_code"], "3:0", "{what}");
            // A spool that is not a directory has no place for marks either.
            if what != "a file" {
                let measures = &reports[0]["measures"];
                assert_eq!(measures["objective.rate"], 4.0, "{what}: {measures}");
            }
        };
        reported(what);
        node.check(what);
        node.hook_with("start", &[("SLURM_JOB_RESTART_COUNT", "1")]);
        node.hook("flush");
        reported(what);
        assert!(node.job("start.json").is_file(), "{what}");
    }
}

/// Attack (files): The spool, or a directory of ours, is a link, a file, full, read-only, or
/// writable by others.
/// Outcome: The helper says so and does not use it; whole reports wait in memory.
///
/// Promise: a report is lost
#[test]
fn where_the_helper_may_write_no_file_the_launch_waits_with_all_that_it_left() {
    let node = used();
    if !marked(&node) {
        return;
    }
    let limited = ["sh", "-c", "ulimit -f 0; exec \"$0\" \"$@\""];
    let finish = node.hook_under(&limited, "finish", &ENDED);
    assert!(!finish.good && !finish.killed, "{}", finish.said);
    assert!(node.job("start.json").is_file() && node.reports().is_empty());
    let finish = node.hook_with("finish", &ENDED);
    assert!(finish.good, "{}", finish.said);
    let reports = node.reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        reports[0]["measures"]["objective.rate"], 4.0,
        "{}",
        reports[0]
    );
    assert!(!node.path("spool/in-force/c.n1.7").exists());
}

/// Attack (files): No epilog reports a launch, and the job is launched again.
/// Outcome: The timer reports it, with its steps and marks.
///
/// Promise: a report is lost
#[test]
fn a_launch_without_an_epilog_is_reported_though_the_job_is_launched_again() {
    let node = used();
    if !marked(&node) {
        return;
    }
    let stamp = "io-autotune-stamp 1\nstep 1\nstart_ns 1\nend_ns 9\nnodes 1\nwait_status 0\n";
    fs::write(node.job("step-1.stamp"), stamp).unwrap();
    fs::set_permissions(node.job("step-1.stamp"), Permissions::from_mode(0o400)).unwrap();
    let again = [("SLURM_JOB_RESTART_COUNT", "1")];
    assert!(node.hook_with("start", &again).good);
    assert!(!node.job("step-1.stamp").exists());
    let flush = node.hook("flush");
    let reports = node.reports();
    assert_eq!(reports.len(), 1, "{}", flush.said);
    assert_eq!(reports[0]["job"]["restart_count"], 0);
    assert_eq!(reports[0]["steps"][0]["step_id"], 1);
    assert_eq!(
        reports[0]["measures"]["objective.rate"], 4.0,
        "{}",
        reports[0]
    );
    // The files that the next launch writes are its own.
    assert!(marked(&node));
    assert!(node.hook_with("finish", &again).good);
    let reports = node.reports();
    assert_eq!(reports.len(), 2);
    assert!(
        reports
            .iter()
            .all(|report| report["measures"]["objective.rate"] == 4.0)
    );
    assert!(!node.job("").exists() && !node.path("run/c/n1/7.over").exists());
}

/// A node on which a helper was killed while it changed a setting for job 7, and the file of the
/// setting, which has the job's value.
fn half_changed() -> (Node, PathBuf) {
    let node = used();
    let proc_sys = node.path("proc_sys");
    let setting = proc_sys.join("vm/dirty_expire_centisecs");
    fs::create_dir_all(setting.parent().unwrap()).unwrap();
    fs::write(&setting, "100\n").unwrap();
    let config = format!("[settings]\nproc_sys = {:?}\n", proc_sys);
    fs::write(node.path("node.toml"), config).unwrap();
    let keep = |path: &Path, text: &serde_json::Value| {
        let _ = fs::remove_file(path);
        fs::write(path, text.to_string()).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o400)).unwrap();
    };
    let start = fs::read(node.job("start.json")).unwrap();
    let mut start: serde_json::Value = serde_json::from_slice(&start).unwrap();
    start["is_complete"] = false.into();
    keep(&node.job("start.json"), &start);
    let mut saved = node.path("spool");
    for name in ["saved", "c", "n1"] {
        saved.push(name);
        fs::create_dir(&saved).unwrap();
        fs::set_permissions(&saved, Permissions::from_mode(0o711)).unwrap();
    }
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let value = serde_json::json!({
        "boot_id": boot_id.trim(),
        "values": [{
            "target": {"kind": "sysctl", "name": "vm.dirty_expire_centisecs"},
            "value": "3000",
        }],
        "command": null,
        "agent": null,
    });
    keep(&saved.join("7.json"), &value);
    (node, setting)
}

/// Attack (files): The helper is killed while it changes settings, and in each write that puts them
/// back.
/// Outcome: They are put back, and no report says that the job ran with the default.
///
/// Promise: a setting stays changed after a job
#[test]
fn who_is_killed_wherever_no_run_with_settings_in_force_counts_as_the_default() {
    let traced = |call: &str, number: usize| {
        let inject = format!("inject={call}:signal=SIGKILL:when={number}");
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]
            .map(str::to_owned)
            .into_iter()
            .chain([inject])
            .collect::<Vec<_>>()
    };
    if Command::new("strace").arg("--version").output().is_err() {
        return;
    }
    let (again, other) = ([("SLURM_JOB_RESTART_COUNT", "1")], [("SLURM_JOB_ID", "8")]);
    let mut killed = 0;
    for call in ["write", "rename", "unlink", "unlinkat", "rmdir", "umount2"] {
        for number in 1.. {
            let mut was_killed = false;
            for way in ["end", "another's", "again"] {
                let (node, setting) = half_changed();
                let under = traced(call, number);
                let under: Vec<&str> = under.iter().map(String::as_str).collect();
                was_killed |= match way {
                    "another's" => node.hook_under(&under, "start", &other).killed,
                    _ => node.hook_under(&under, "finish", &[]).killed,
                };
                let said = match way {
                    "again" => {
                        let start = node.hook_with("start", &again);
                        start.said + &node.hook("flush").said
                    }
                    _ => node.hook("finish").said,
                };
                let what = format!("{way}: killed in {call} {number}: {said}");
                let value = fs::read_to_string(&setting).unwrap();
                assert_eq!(value.trim(), "3000", "{what}");
                let reports = node.reports();
                assert!(!reports.is_empty(), "{what}");
                for report in reports {
                    assert_eq!(report["applied"]["kind"], "incomplete", "{what}");
                }
            }
            if !was_killed {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 10, "killed {killed} times alone");
}

/// Attack (environment): A job's name or option has escapes, lines, a path, a shell's words, SQL,
/// zero bytes, or 1,000,000 characters.
/// Outcome: It becomes a short name of letters, digits and few signs, or is refused.
#[test]
fn an_environment_that_slurm_would_not_make_is_refused_by_its_name() {
    let node = used();
    let long = "x".repeat(100_000);
    for (name, value) in [
        ("SLURM_CLUSTER_NAME", "../elsewhere"),
        ("SLURM_CLUSTER_NAME", "."),
        ("SLURM_CLUSTER_NAME", "c/n1"),
        ("SLURMD_NODENAME", "../../elsewhere"),
        ("SLURMD_NODENAME", "n1\n"),
        ("SLURMD_NODENAME", &long),
        ("SLURM_JOB_ID", "7/../../../elsewhere"),
        ("SLURM_JOB_ID", "-7"),
        ("SLURM_JOB_ID", "4294967303"),
        ("SLURM_JOB_UID", "0x0"),
        ("SLURM_JOB_GID", ""),
        ("SLURM_JOB_NUM_NODES", "1e9"),
        ("SLURM_JOB_NODELIST", "n[1-"),
        ("SPANK_IO_AUTOTUNE", "app=../../etc/passwd"),
        ("SPANK_IO_AUTOTUNE", "app=\u{1b}]0;owned\u{7}"),
        ("SPANK_IO_AUTOTUNE", "app=a\nset PATH=/"),
        ("SPANK_IO_AUTOTUNE", &long),
    ] {
        for command in ["start", "finish"] {
            let ended = node.hook_with(command, &[(name, value)]);
            node.check(name);
            assert!(!ended.good, "{command} takes {name}={value:?}");
            assert!(ended.said.contains(name), "{name}: {}", ended.said);
            let said = ended.said.trim_end_matches('\n');
            assert!(
                said.lines().all(|line| !line.contains(char::is_control)),
                "{said:?}"
            );
        }
    }
    assert!(node.job("job.env").is_file(), "job 7's own files are gone");
}

/// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
/// writable by others.
#[test]
fn a_configuration_that_another_can_write_is_not_used() {
    let node = used();
    fs::set_permissions(node.path("client.toml"), Permissions::from_mode(0o666)).unwrap();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let start = node.hook("start");
    assert!(start.good, "the job goes on: {}", start.said);
    assert!(
        start.said.contains("client.toml must be root's"),
        "{}",
        start.said
    );
    node.put("link", &node.path("node.toml"));
    let start = node.hook("start");
    node.check("node.toml");
    assert!(
        start.good && start.said.contains("node.toml"),
        "{}",
        start.said
    );
}

/// A node whose default runs have a mount, which this script starts.
fn with_mount(start: &str) -> Node {
    let node = Node::new();
    let place = node.root.path().display().to_string();
    let config = format!(
        "[exclusive]\ncpus = 8\n[[commands]]\nname = \"mount\"\nrun_as = \"root\"\nstart_ms = 20000\n\
         start = [\"/bin/sh\", \"-c\", {start:?}, \"{place}\"]\n\
         stop = [\"/bin/sh\", \"-c\", \"echo stopped >>$0/stopped\", \"{place}\"]\n\
         default_runs = {{ of = [\"vfs\"], otherwise = {{ VFS_DIR = \"/project\" }} }}\n"
    );
    fs::write(node.path("node.toml"), config).unwrap();
    fs::set_permissions(node.path("node.toml"), Permissions::from_mode(0o644)).unwrap();
    node
}

const WITH_VFS: [(&str, &str); 1] = [("SPANK_IO_AUTOTUNE", "app=ocean,accelerator=vfs,mode=tune")];

/// No service answers here.
///
/// Attack (files): The mount that a job's storage needs in every run does not start, prints
/// something else, or is asked for while no service is there.
/// Outcome: A job has its storage as the node mounts it by default, or else the path that the site
/// names; only the first counts.
#[test]
fn without_a_service_a_job_finds_its_storage_mounted_or_where_the_site_says() {
    for (start, set, counts) in [
        (
            "echo VFS_DIR=/mnt; echo PATH=/evil",
            "set VFS_DIR=/mnt",
            true,
        ),
        ("exit 3", "set VFS_DIR=/project", false),
        ("echo OTHER=/mnt", "set VFS_DIR=/project", false),
    ] {
        let node = with_mount(start);
        let began = node.hook_with("start", &WITH_VFS);
        assert!(began.good, "{}", began.said);
        let text = fs::read_to_string(node.job("job.env")).unwrap();
        assert_eq!(text.matches(set).count(), 1, "{start}: {text}");
        assert!(!text.contains("PATH=/evil"), "{text}");
        let is_stopped = || node.path("stopped").exists();
        assert_eq!(
            is_stopped(),
            !counts,
            "what did not start is stopped at once"
        );
        assert!(node.hook_with("finish", &WITH_VFS).good);
        assert!(is_stopped(), "{start}");
        let applied = node.reports()[0]["applied"].clone();
        let has_failed = applied.to_string().contains("the command mount");
        assert_eq!(has_failed, !counts, "{applied}");
    }
}

/// Attack (files): The helper is killed while it starts the mount that a job's storage needs.
/// Outcome: The job finds the path that the site names, and does not count; the next hook stops
/// what was started.
#[test]
fn a_helper_that_is_killed_while_it_mounts_leaves_the_job_the_sites_path() {
    let node = with_mount("echo begun >$0/begun; kill -KILL $PPID; echo VFS_DIR=/mnt");
    let began = node.hook_with("start", &WITH_VFS);
    assert!(began.killed, "{}", began.said);
    assert!(node.path("begun").exists());
    let text = fs::read_to_string(node.job("job.env")).unwrap();
    assert!(text.contains("set VFS_DIR=/project"), "{text}");
    assert!(node.hook_with("finish", &WITH_VFS).good);
    assert!(node.path("stopped").exists());
    let report = &node.reports()[0];
    assert_eq!(report["applied"]["kind"], "incomplete", "{report}");
}

/// Attack (files): A job asks for another accelerator than the one whose mount the node serves.
/// Outcome: Nothing is started for it.
#[test]
fn a_job_of_another_accelerator_starts_no_mount() {
    let node = with_mount("echo begun >$0/begun; echo VFS_DIR=/mnt");
    assert!(node.hook("start").good);
    assert!(!node.path("begun").exists());
    let text = fs::read_to_string(node.job("job.env")).unwrap();
    assert!(!text.contains("VFS_DIR"), "{text}");
}
