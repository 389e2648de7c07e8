//! The process that reads answers in root's place: its output, and how little it can do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use io_autotune_test_certificates::{Authority, LONG, OVER, TO_COME};

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

/// A reader with TLS, the service's end of the connection, and root's end of what it tells.
fn encrypted(authority: &Path, request: &[u8]) -> (Child, UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut roots, readers) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_io-autotune-node"))
        .args(["read-answer", "localhost:8642"])
        .arg(authority)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(readers)))
        .spawn()
        .unwrap();
    roots.write_all(request).unwrap();
    roots.shutdown(Shutdown::Write).unwrap();
    (child, ours, roots)
}

/// What a reader with TLS tells root, and whether it ends well.
fn told_to(mut roots: UnixStream, mut child: Child) -> (bool, String) {
    let mut told = String::new();
    roots.read_to_string(&mut told).unwrap();
    (child.wait().unwrap().success(), told)
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
    is_confined(&child);
    service.write_all(b"content-length: 2\r\n\r\n{}").unwrap();
    assert_eq!(told(child), (true, b"200 2 MUNGE:abc:\n{}".to_vec()));
}

/// Attack (tls): A handshake or a record takes over the process that parses it.
/// Outcome: It is the process that reads answers, which is nobody, under a filter of system calls.
#[test]
fn with_tls_it_speaks_to_the_service_and_is_nobody_from_the_first_byte() {
    let authority = Authority::new();
    let certified = authority.certify("service", "DNS:localhost", LONG);
    let (mut child, service, roots) = encrypted(&authority.certificate(), b"");
    is_confined(&child);
    drop(service);
    drop(roots);
    child.wait().unwrap();
    // Longer than what sockets hold.
    let request = vec![b'r'; 2 * 1024 * 1024];
    let (child, service, roots) = encrypted(&authority.certificate(), &request);
    let body = "x".repeat(1024 * 1024);
    let answer = format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len());
    let answering = std::thread::spawn(move || {
        let mut service = certified.over(service);
        let mut asked = vec![0; request.len()];
        service.read_exact(&mut asked).unwrap();
        service.write_all(answer.as_bytes()).unwrap();
        service.flush().unwrap();
        (asked == request, service)
    });
    let (good, told) = told_to(roots, child);
    assert!(answering.join().unwrap().0);
    assert!(good);
    assert!(told == format!("200 {} MUNGE:abc:\n{body}", body.len()));
}

/// Attack (tls): Another server has a certificate of another authority, for another name, or one
/// that has run out or is not yet valid; or it speaks clear text.
/// Outcome: Nothing is sent to it; it is an outage, which says what to do.
#[test]
fn with_tls_it_says_why_there_is_no_answer_and_sends_no_request() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (certified, expected) in [
        (
            Some(other.certify("other", "DNS:localhost", LONG)),
            "%no authority of tls_ca",
        ),
        (
            Some(authority.certify("name", "DNS:elsewhere", LONG)),
            "%certificate not valid for name \"localhost\"",
        ),
        (
            Some(authority.certify("over", "DNS:localhost", OVER)),
            "%its certificate ran out at 2021-01-01T00:00:00Z",
        ),
        (
            Some(authority.certify("to_come", "DNS:localhost", TO_COME)),
            "%its certificate is not valid before",
        ),
        (None, "%what answers there speaks no TLS"),
    ] {
        let (child, service, roots) = encrypted(&authority.certificate(), b"secret");
        let answering = std::thread::spawn(move || {
            let mut received = Vec::new();
            match certified {
                Some(certified) => drop(certified.over(service).read_to_end(&mut received)),
                None => {
                    let mut service = service;
                    service
                        .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                        .unwrap();
                    let _ = service.read_to_end(&mut received);
                }
            }
            received
        });
        let (good, told) = told_to(roots, child);
        assert!(good, "{expected}");
        assert!(told.starts_with(expected), "{told}");
        let received = answering.join().unwrap();
        assert!(!received.windows(6).any(|part| part == b"secret"));
    }
    let (child, _service, roots) = encrypted(Path::new("/nonexistent/ca.pem"), b"secret");
    let (good, told) = told_to(roots, child);
    assert!(
        good && told.starts_with("%tls_ca: /nonexistent/ca.pem: No such"),
        "{told}"
    );
}

/// Waits until a process has taken its filter, and asserts that it is nobody.
fn is_confined(child: &Child) {
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
    assert_eq!(status(child, "NoNewPrivs:"), ["1"]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    for (limit, most) in [
        ("Max data size", 64 * 1024 * 1024),
        ("Max core file size", 0),
    ] {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit));
        let set: Vec<_> = line.unwrap().split_whitespace().take(2).collect();
        assert_eq!(set, [most.to_string(), most.to_string()], "{limit}");
    }
    if nix::unistd::geteuid().is_root() {
        for ids in ["Uid:", "Gid:"] {
            assert_eq!(status(child, ids), ["65534"; 4]);
        }
        assert!(status(child, "Groups:").is_empty());
        for capabilities in ["CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(status(child, capabilities), ["0".repeat(16)]);
        }
    }
}
