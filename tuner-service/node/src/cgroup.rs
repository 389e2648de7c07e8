//! A control group around the processes that a site's command starts for a job. They are killed
//! together, even if the job has stopped or traces some of them.
//!
//! Version 2 is used where it is mounted, otherwise version 1's freezer. The groups are at
//! `io-autotune/` in its root, outside of slurmd's, so that slurmd's end does not end them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::files;

const OURS: &str = "io-autotune";
const KIND: &[u8] = b"cgroup";
/// The most processes of all children of a command, with version 2 and its controller.
const PIDS_MOST: u32 = 4096;
/// The interval at which a group is looked at: a killed process leaves its group a little later,
/// and version 1 gives no notice.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The path of a group with this name; `None` on a host without control groups.
pub(crate) fn place(name: &str) -> Option<PathBuf> {
    let mut groups = String::new();
    for line in files::mounts().ok()? {
        let line = line.ok()?;
        if line.windows(KIND.len()).any(|part| part == KIND) {
            groups.push_str(&String::from_utf8_lossy(&line));
            groups.push('\n');
        }
    }
    Some(root(&groups)?.join(OURS).join(name))
}

fn root(mountinfo: &str) -> Option<PathBuf> {
    // proc_pid_mountinfo(5): the mount point is the fifth field; after " - " come the file
    // system's type, its source and its options.
    let found = |is_it: &dyn Fn(&str, &str) -> bool| {
        mountinfo.lines().find_map(|line| {
            let (mount, system) = line.split_once(" - ")?;
            let mut system = system.split(' ');
            let (kind, options) = (system.next()?, system.nth(1)?);
            let point = mount.split(' ').nth(4)?;
            is_it(kind, options).then(|| PathBuf::from(point))
        })
    };
    found(&|kind, _| kind == "cgroup2").or_else(|| {
        found(&|kind, options| kind == "cgroup" && options.split(',').any(|one| one == "freezer"))
    })
}

/// Makes a group, with the limits that the host supports.
pub(crate) fn make(group: &Path, memory_most: u64) -> io::Result<()> {
    let ours = group.parent().ok_or(io::ErrorKind::InvalidInput)?;
    for directory in [ours, group] {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    // Only controllers that the root delegates. There are none if version 1 has them.
    for controller in ["+memory", "+pids"] {
        let _ = fs::write(ours.join("cgroup.subtree_control"), controller);
    }
    for (limit, most) in [
        ("memory.max", memory_most.to_string()),
        ("memory.swap.max", "0".to_owned()),
        ("pids.max", PIDS_MOST.to_string()),
    ] {
        if group.join(limit).exists() {
            fs::write(group.join(limit), most)?;
        }
    }
    Ok(())
}

/// Moves this process into a group.
pub(crate) fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Kills all processes of a group and removes it. A missing group is no error. Returns an error if
/// a process has not died within `limit`, because it is in an uninterruptible call.
pub(crate) fn end(group: &Path, limit: Duration) -> io::Result<()> {
    let until = Instant::now() + limit;
    loop {
        if !group.exists() {
            return Ok(());
        }
        let living = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        // From Linux 5.14 on all processes are killed at once, including those that are being made;
        // before, one by one, until there are none.
        if fs::write(group.join("cgroup.kill"), "1").is_err() {
            let pids = living.lines().filter_map(|pid| pid.parse().ok());
            for pid in pids.filter(|pid| *pid > 1) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        match fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= until => {
                let why = format!(
                    "{}: processes {} do not die: {error}",
                    group.display(),
                    living.split_whitespace().collect::<Vec<_>>().join(", ")
                );
                return Err(io::Error::other(why));
            }
            Err(_) => thread::sleep(LOOK_AGAIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn version_2_is_used_where_it_is_mounted_else_the_freezer() {
        let one = "25 20 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                   26 20 0:23 / /sys/fs/cgroup/freezer rw,nosuid shared:9 - cgroup cgroup rw,freezer\n";
        let two = "27 20 0:24 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n";
        assert_eq!(root(one).unwrap(), Path::new("/sys/fs/cgroup/freezer"));
        let both = [one, two].concat();
        assert_eq!(root(&both).unwrap(), Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(root("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"), None);
        assert_eq!(root("nonsense - \n - cgroup2\n"), None);
    }

    #[test]
    fn the_limits_that_the_host_has_are_set() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("io-autotune/c.n1.7.1");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("memory.max"), "max").unwrap();
        make(&group, 1 << 30).unwrap();
        let read = |name: &str| fs::read_to_string(group.join(name)).unwrap();
        assert_eq!(read("memory.max"), "1073741824");
        assert!(!group.join("pids.max").exists(), "no such controller");
    }

    /// The mounts of systemd 252 with version 2 alone (Debian 12), and of a host with both
    /// versions, as in systemd's hybrid mode.
    const VERSION_2: &str = "24 29 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw\n\
        29 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n\
        30 24 0:27 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore rw\n";
    const HYBRID: &str = "31 24 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate\n\
        32 24 0:28 / /sys/fs/cgroup/freezer rw,nosuid shared:11 - cgroup cgroup rw,freezer\n";

    /// The groups that Slurm's cgroup/v2 makes, below the root: by job id, and by SLUID from 26.05
    /// on (unless CgroupJobIdPaths= in cgroup.conf says otherwise).
    const SLURMS: [&str; 2] = [
        "system.slice/slurmstepd.scope/job_1234/step_batch/user/task_0",
        "system.slice/slurmstepd.scope/sBR1JB8J1YM400/step_extern/user/task_special",
    ];

    /// Makes the files of version 2 that are read and written here, as the kernel has them in each
    /// group.
    fn of_version_2(group: &Path, controllers: &str) {
        fs::create_dir_all(group).unwrap();
        for (name, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", ""),
            ("cgroup.procs", ""),
            ("cgroup.kill", ""),
            ("memory.max", "max\n"),
            ("memory.swap.max", "max\n"),
            ("pids.max", "max\n"),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
    }

    /// Every file below a directory, with its text.
    fn texts(directory: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(texts(&path));
            } else {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn recorded_mounts_of_version_2_are_found() {
        assert_eq!(root(VERSION_2).unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!(root(HYBRID).unwrap(), Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn a_group_of_version_2_has_its_limits_and_slurm_s_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        for job in SLURMS {
            of_version_2(&root.path().join(job), "cpuset cpu memory pids");
        }
        let slurms = root.path().join("system.slice");
        let before = texts(&slurms);
        assert_eq!(before.len(), 14);
        let group = root.path().join("io-autotune/c.n1.1234.1");
        // The kernel makes the files of a group together with the group.
        of_version_2(group.parent().unwrap(), "cpuset cpu io memory pids");
        of_version_2(&group, "memory pids");
        make(&group, 1 << 30).unwrap();
        enter(&group).unwrap();
        let read = |name: &str| fs::read_to_string(group.join(name)).unwrap();
        assert_eq!(read("memory.max"), "1073741824");
        assert_eq!(read("memory.swap.max"), "0");
        assert_eq!(read("pids.max"), "4096");
        assert_eq!(read("cgroup.procs"), "0", "its own process");
        let handed_down = group.with_file_name("cgroup.subtree_control");
        // The kernel adds up what is written one by one; a file keeps the last.
        assert_eq!(fs::read_to_string(handed_down).unwrap(), "+pids");
        assert!(
            super::end(&group, Duration::ZERO).is_err(),
            "a directory with files stays"
        );
        assert_eq!(texts(&slurms), before);
    }

    #[test]
    fn the_kernel_kills_a_group_of_version_2_and_before_5_14_each_of_its_processes_is_killed() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("io-autotune/c.n1.1234.1");
        of_version_2(&group, "memory pids");
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = sleeper.id().to_string();
        fs::write(group.join("cgroup.procs"), format!("{pid}\n")).unwrap();
        // The kernel would kill it; the recorded files do nothing.
        let error = super::end(&group, Duration::ZERO).unwrap_err().to_string();
        assert!(
            error.contains(&format!("processes {pid} do not die")),
            "{error}"
        );
        assert_eq!(fs::read_to_string(group.join("cgroup.kill")).unwrap(), "1");
        assert!(
            sleeper.try_wait().unwrap().is_none(),
            "it was killed by its number"
        );
        // If there is no such file, the kernel refuses to make one.
        fs::remove_file(group.join("cgroup.kill")).unwrap();
        fs::create_dir(group.join("cgroup.kill")).unwrap();
        assert!(super::end(&group, Duration::ZERO).is_err());
        assert_eq!(
            sleeper.wait().unwrap().signal(),
            Some(Signal::SIGKILL as i32)
        );
    }

    /// Attack (files): A user stops or traces what a command started, or a stop always fails.
    /// Outcome: It is killed with its control group; a stop is tried twenty times, and then
    /// `doctor` tells an admin.
    #[test]
    fn a_group_is_killed_with_those_that_are_stopped() {
        let name = format!("test.{}", std::process::id());
        let Some(group) = place(&name) else { return };
        if make(&group, 1 << 30).is_err() {
            // Only root can make groups.
            return;
        }
        let script = "echo 0 > $0/cgroup.procs; setsid sleep 600 & kill -STOP $!; kill -STOP $$";
        let mut shell = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(&group)
            .spawn()
            .unwrap();
        let inside = || fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while inside().lines().count() < 2 {
            assert!(Instant::now() < end, "{}", inside());
            thread::sleep(LOOK_AGAIN);
        }
        // Its parent has to wait for it; otherwise it stays in its group.
        let ended = thread::spawn(move || shell.wait());
        super::end(&group, Duration::from_secs(20)).unwrap();
        assert!(!ended.join().unwrap().unwrap().success());
        assert!(!group.exists());
        super::end(&group, Duration::ZERO).unwrap();
    }
}
