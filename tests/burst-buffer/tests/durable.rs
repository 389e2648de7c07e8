//! The instrument as its users have it: mounted, unmounted, killed. Needs root and /dev/fuse; where
//! they are missing, nothing is tested, and the test says so.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

const MIB: usize = 1024 * 1024;

struct Buffer {
    daemon: Child,
    place: tempfile::TempDir,
}

impl Buffer {
    /// `None`: this host cannot mount.
    fn mounted(arguments: &[&str]) -> Option<Self> {
        if !geteuid().is_root() || File::open("/dev/fuse").is_err() {
            #[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
            {
                eprintln!("not tested: it needs root and /dev/fuse");
            }
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        for name in ["slow", "mount"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let daemon = Self::daemon(place.path(), arguments);
        Some(Self { daemon, place })
    }

    fn daemon(place: &Path, arguments: &[&str]) -> Child {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_burst-buffer"))
            .arg("--slow")
            .arg(place.join("slow"))
            .arg("--mount")
            .arg(place.join("mount"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = daemon.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        daemon
    }

    fn slow(&self, name: &str) -> PathBuf {
        self.place.path().join("slow").join(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("mount").join(name)
    }

    fn end(&mut self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.daemon.id()).unwrap());
        kill(pid, signal).unwrap();
        let status = self.daemon.wait().unwrap();
        assert_eq!(status.success(), signal == Signal::SIGTERM, "{status}");
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let _ = umount2(&self.place.path().join("mount"), MntFlags::MNT_DETACH);
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at / 7 + at * 31 + seed * 13) % 251).unwrap())
        .collect()
}

#[test]
fn nothing_that_was_written_is_missing_after_the_unmount() {
    // A cache far smaller than what is written, and slow enough that most of it is behind.
    let Some(mut buffer) = Buffer::mounted(&["--cache-mib=2", "--rate=60", "--request-ms=0"])
    else {
        return;
    };
    fs::create_dir(buffer.path("d")).unwrap();
    for file in 0..4 {
        let path = buffer.path(&format!("d/{file}"));
        fs::write(&path, pattern(file, 3 * MIB + file * 1001)).unwrap();
    }
    fs::rename(buffer.path("d/0"), buffer.path("renamed")).unwrap();
    fs::remove_file(buffer.path("d/1")).unwrap();
    let read = fs::read(buffer.path("d/2")).unwrap();
    assert!(read == pattern(2, 3 * MIB + 2002), "through the mount");
    buffer.end(Signal::SIGTERM);
    assert!(fs::read(buffer.slow("renamed")).unwrap() == pattern(0, 3 * MIB));
    assert!(!buffer.slow("d/1").exists());
    for file in 2..4 {
        let found = fs::read(buffer.slow(&format!("d/{file}"))).unwrap();
        assert!(found == pattern(file, 3 * MIB + file * 1001), "{file}");
    }
    assert!(
        fs::read_dir(buffer.path("")).unwrap().next().is_none(),
        "unmounted"
    );
}

#[test]
fn what_was_synced_survives_a_daemon_that_is_killed() {
    // What is written after a sync takes seconds to be carried.
    let arguments = ["--cache-mib=32", "--rate=10", "--destagers=1"];
    let Some(mut buffer) = Buffer::mounted(&arguments) else {
        return;
    };
    let file = File::create(buffer.path("data")).unwrap();
    file.write_all_at(&pattern(1, 2 * MIB), 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(&pattern(2, 16 * MIB), 2 * MIB as u64)
        .unwrap();
    buffer.end(Signal::SIGKILL);
    let found = fs::read(buffer.slow("data")).unwrap();
    assert!(
        found[..2 * MIB] == pattern(1, 2 * MIB),
        "synced data was lost"
    );
    assert!(
        found.len() < 18 * MIB,
        "nothing was behind: this test tests nothing"
    );
    assert!(File::open(buffer.path("data")).is_err(), "nobody answers");
    umount2(&buffer.path(""), MntFlags::MNT_DETACH).unwrap();
    buffer.daemon = Buffer::daemon(buffer.place.path(), &arguments);
    let mut again = vec![0; 2 * MIB];
    File::open(buffer.path("data"))
        .unwrap()
        .read_exact(&mut again)
        .unwrap();
    assert!(again == pattern(1, 2 * MIB), "after a new start");
}

#[test]
fn what_a_job_that_is_killed_had_written_is_carried_at_the_unmount() {
    let Some(mut buffer) = Buffer::mounted(&["--cache-mib=32", "--rate=20"]) else {
        return;
    };
    let path = buffer.path("data");
    // It says when it has written; its file stays open.
    let mut job = Command::new("/bin/bash")
        .args([
            "-c",
            r#"exec 3> "$1"; head -c 4194304 /dev/zero >&3; echo done; sleep 600"#,
            "job",
        ])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(job.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    job.kill().unwrap();
    job.wait().unwrap();
    buffer.end(Signal::SIGTERM);
    assert_eq!(fs::read(buffer.slow("data")).unwrap(), vec![0; 4 * MIB]);
}

#[test]
fn a_sync_takes_as_long_as_the_slow_side_needs() {
    let arguments = [
        "--cache-mib=32",
        "--rate=10",
        "--latency-ms=0",
        "--request-ms=0",
    ];
    let Some(buffer) = Buffer::mounted(&arguments) else {
        return;
    };
    let now = std::time::Instant::now;
    let mut file = File::create(buffer.path("data")).unwrap();
    let begin = now();
    file.write_all(&pattern(1, 4 * MIB)).unwrap();
    let written = begin.elapsed().as_secs_f64();
    file.sync_all().unwrap();
    let synced = begin.elapsed().as_secs_f64();
    assert!(synced > 0.4, "{synced} s for 4 MiB at 10 MB/s");
    assert!(written < synced, "{written} s: the cache took it in");
}
