//! The helper at submission: the user's request comes by standard input, and a message that cannot
//! be written is a failure.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the helper without a service, with this input.
fn submitted(arguments: &[&str], input: &str, stdout: Stdio) -> Output {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("client.toml");
    fs::write(
        &config,
        "endpoints = [\"unix:/nonexistent\"]\nservice_user = 0\n",
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_io-autotune-node"))
        .args(arguments)
        .args(["--config".as_ref(), config.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_the_user_asked_for_comes_by_input_or_from_older_plugins_as_an_argument() {
    let said = |arguments: &[&str], input: &str| {
        let output = submitted(arguments, input, Stdio::piped());
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text)
    };
    let request = "name=a%20name,mode=tune";
    let (status, line) = said(&["submit"], request);
    assert_eq!(status, 0);
    assert!(line.contains("gives no answer now"), "{line}");
    assert_eq!(said(&["submit", "--request", request], ""), (0, line));
    let (status, line) = said(&["submit"], "mode=loudly");
    assert_eq!(status, 0);
    assert!(line.contains("this job is not tuned"), "{line}");
    // A wrong name is refused, but a missing answer refuses nothing.
    let wrong = said(&["check"], "../romio");
    assert_eq!((wrong.0, wrong.1.is_empty()), (2, false));
    assert_eq!(said(&["check", "--accelerator", "../romio"], ""), wrong);
    assert_eq!(said(&["check"], "romio\n"), (1, String::new()));
}

#[test]
fn a_line_that_cannot_be_shown_is_a_failure_and_a_refusal_stays_one() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let submit = submitted(&["submit"], "mode=tune", full().into());
    assert_eq!(submit.status.code(), Some(1));
    let said = String::from_utf8(submit.stderr).unwrap();
    assert!(said.contains("the answer cannot be written"), "{said}");
    let check = submitted(&["check"], "../romio", full().into());
    assert_eq!(check.status.code(), Some(2));
}
