//! The agent as a process: its rights, the levers it moves, and its end. Its levers and statistics
//! are files here; `tests/cluster/test_online.py` gives it a real device's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const PERIOD_MS: u64 = 50;
const BEGAN: u64 = 8;

/// An agent that is ready, and its files.
struct Ready {
    root: tempfile::TempDir,
    child: Child,
    input: ChildStdin,
}

impl Ready {
    fn new(policy: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("lever"), format!("{BEGAN}\n")).unwrap();
        fs::write(root.path().join("other"), "5\n").unwrap();
        let (child, input, said) = started(root.path(), policy);
        assert_eq!(said, "ready\n");
        Self { root, child, input }
    }

    fn go(&mut self) {
        told(&self.path("statistics"), 0);
        self.input.write_all(b"go\n").unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn lever(&self) -> u64 {
        let text = fs::read_to_string(self.path("lever")).unwrap();
        text.trim().parse().unwrap_or(0)
    }

    /// A line of `/proc/PID/status`.
    fn status(&self, name: &str) -> Vec<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.unwrap().split_whitespace();
        words.map(str::to_owned).collect()
    }

    fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("journal")).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn told(statistics: &Path, moved: u64) {
    // The agent reads at any time, so the file is never empty.
    let draft = statistics.with_extension("new");
    fs::write(&draft, format!("moved_bytes {moved:020}\n")).unwrap();
    let text = fs::read(&draft).unwrap();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(statistics)
        .unwrap();
    file.write_all(&text).unwrap();
}

fn started(root: &Path, policy: &str) -> (Child, ChildStdin, String) {
    told(&root.join("statistics"), 0);
    let of = |name: &str| root.join(name).display().to_string();
    let order = format!(
        "{{\"policy\":\"{policy}\",\"period_ms\":{PERIOD_MS},\"levers\":[{{\"name\":\"lever\",\"least\":1,\
         \"most\":64,\"began\":{BEGAN},\"files\":[\"{}\"],\"kept\":[]}}],\"sources\":[{{\"path\":\"{}\",\
         \"format\":\"named\"}}],\"journal\":\"{}\",\"group\":null}}\n",
        of("lever"),
        of("statistics"),
        of("journal")
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_io-autotune-node"))
        .arg("agent")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(order.as_bytes()).unwrap();
    let mut said = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut said).unwrap();
    (child, input, said)
}

fn await_true(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_climbs_where_twice_the_value_brings_more_and_leaves_all_else_alone() {
    for policy in [
        "iopathtune",
        "iopathtune-each",
        "iopathtune-requests",
        "settling",
    ] {
        let mut agent = Ready::new(policy);
        agent.go();
        let (mut moved, mut last) = (0.0, Instant::now());
        await_true("the lever to be at its best", || {
            let lever = agent.lever();
            let now = Instant::now();
            moved += 1e6 * lever as f64 * (now - last).as_secs_f64();
            last = now;
            told(&agent.path("statistics"), moved as u64);
            lever == 64
        });
        assert_eq!(fs::read_to_string(agent.path("other")).unwrap(), "5\n");
        let journal = agent.journal();
        // The journal's head, and at least a move from 8 to 32 and on to 64.
        assert!(journal.len() > 2, "{journal:?}");
        assert!(
            journal[0].contains(policy) && journal[1].contains("at_ms"),
            "{journal:?}"
        );
        // As a hook ends it.
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(agent.child.id().cast_signed()),
            nix::sys::signal::Signal::SIGTERM,
        )
        .unwrap();
        assert_eq!(agent.child.wait().unwrap().signal(), Some(15));
    }
}

/// Attack (files): An agent is taken over by what it reads.
/// Outcome: It is nobody, under a filter of system calls, with only its own files open.
#[test]
fn it_is_nobody_in_a_session_of_its_own_with_no_more_than_it_needs() {
    let mut agent = Ready::new("settling");
    assert_eq!(agent.status("NoNewPrivs:"), ["1"]);
    assert_eq!(agent.status("Seccomp:"), ["2"]);
    assert_eq!(agent.status("Threads:"), ["1"]);
    if nix::unistd::geteuid().is_root() {
        for ids in ["Uid:", "Gid:"] {
            assert_eq!(agent.status(ids), ["65534"; 4]);
        }
        assert!(agent.status("Groups:").is_empty());
        for capabilities in ["CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(agent.status(capabilities), ["0".repeat(16)]);
        }
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.child.id())).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3);
    assert_eq!(session, Some(agent.child.id().to_string().as_str()));
    // Cargo passes pipes of its own to tests; the plugin passes nothing.
    let open = fs::read_dir(format!("/proc/{}/fd", agent.child.id())).unwrap();
    let open = open.map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = open
        .filter(|to| to.starts_with(agent.root.path()))
        .collect();
    files.sort();
    let own = ["journal", "lever", "statistics"].map(|name| agent.path(name));
    assert_eq!(files, own);
    agent.go();
    await_true("some turns", || agent.journal().len() > 20);
    let resident: u64 = agent.status("VmRSS:")[0].parse().unwrap();
    assert!(resident <= 8 * 1024, "{resident} KiB");
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
}

#[test]
fn it_moves_nothing_before_it_is_let_go_and_ends_if_its_helper_does() {
    let Ready {
        root,
        mut child,
        input,
    } = Ready::new("iopathtune");
    drop(input);
    assert!(child.wait().unwrap().success());
    let lever = fs::read_to_string(root.path().join("lever")).unwrap();
    assert_eq!(lever, format!("{BEGAN}\n"));
}

#[test]
fn a_lever_that_somebody_else_moves_is_left_to_them() {
    let mut agent = Ready::new("iopathtune");
    agent.go();
    fs::write(agent.path("lever"), "33\n").unwrap();
    await_true("it to notice", || {
        agent.journal().iter().any(|line| line.contains("foreign"))
    });
    let seen = agent.journal().len();
    let mut moved = 0;
    await_true("more turns", || {
        moved += 1_000_000;
        told(&agent.path("statistics"), moved);
        agent.journal().len() > seen + 5
    });
    assert_eq!(agent.lever(), 33);
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
}

#[test]
fn without_its_files_it_does_not_come_up() {
    let root = tempfile::tempdir().unwrap();
    let (mut child, _input, said) = started(root.path(), "settling");
    assert!(
        said.contains("lever") && said.contains("No such file"),
        "{said}"
    );
    assert!(!child.wait().unwrap().success());
}
