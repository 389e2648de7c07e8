//! The process that reads answers in root's place: its output, and how little it can do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HEAD: &str = "HTTP/1.1 200 OK\r\nx-io-autotune-signature: MUNGE:abc:\r\n";

/// A reader, and the service's end of the connection. As in a node's helper, the reader's end is
/// non-blocking.
fn reader() -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_io-autotune-node"))
        .arg("read-answer")
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    (child, ours)
}

fn told(mut child: Child) -> (bool, Vec<u8>) {
    let mut told = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut told).unwrap();
    (child.wait().unwrap().success(), told)
}

/// A line of `/proc/PID/status`.
fn status(child: &Child, name: &str) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn it_tells_one_answer_and_ends_well() {
    let (child, mut service) = reader();
    let body = "x".repeat(1024 * 1024);
    let answer = format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len());
    // Its result fills a pipe, so it has to be read at the same time.
    let writing = std::thread::spawn(move || {
        service.write_all(answer.as_bytes()).unwrap();
        service
    });
    let (good, told) = told(child);
    let _service = writing.join().unwrap();
    let expected = format!("200 {} MUNGE:abc:\n{body}", body.len());
    assert!(good);
    assert_eq!(told.len(), expected.len());
    assert!(told == expected.as_bytes());
}

#[test]
fn it_says_why_there_is_none() {
    for (sent, expected) in [
        ("", "!the connection ended before the answer did\n"),
        ("\0 nonsense\r\n\r\n", "!the answer is no HTTP\n"),
        (
            &format!("{HEAD}\r\n{{}}"),
            "?the answer does not say how long it is\n",
        ),
    ] {
        let (child, mut service) = reader();
        service.write_all(sent.as_bytes()).unwrap();
        drop(service);
        let (good, told) = told(child);
        assert!(good, "{sent:?}");
        assert_eq!(String::from_utf8(told).unwrap(), expected);
    }
}

/// Attack (service): An answer takes over the process that parses it.
/// Outcome: That process is nobody, under a filter of system calls; root takes only a whole
/// structure from it.
#[test]
fn while_it_reads_it_is_nobody_and_can_do_nothing_else() {
    let (child, mut service) = reader();
    service.write_all(HEAD.as_bytes()).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    // A container may have filters of its own.
    let filters = |status: &str| -> u32 {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp_filters:"));
        line.unwrap().trim().parse().unwrap()
    };
    let ours = filters(&fs::read_to_string("/proc/self/status").unwrap());
    let of_child = format!("/proc/{}/status", child.id());
    while filters(&fs::read_to_string(&of_child).unwrap()) == ours {
        assert!(Instant::now() < end, "it filters no system call");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status(&child, "NoNewPrivs:"), ["1"]);
    if nix::unistd::geteuid().is_root() {
        for ids in ["Uid:", "Gid:"] {
            assert_eq!(status(&child, ids), ["65534"; 4]);
        }
        assert!(status(&child, "Groups:").is_empty());
        for capabilities in ["CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(status(&child, capabilities), ["0".repeat(16)]);
        }
    }
    service.write_all(b"content-length: 2\r\n\r\n{}").unwrap();
    assert_eq!(told(child), (true, b"200 2 MUNGE:abc:\n{}".to_vec()));
}
