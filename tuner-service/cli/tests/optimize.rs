//! `io-autotune optimize` as a program: no service, no configuration, one answer for each line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const SPACE: &str = r#"{"parameters": [
    {"name": "mode", "kind": "categorical", "values": ["slow", "fast"]},
    {"name": "size", "kind": "ordinal", "values": [1, 2.50, "64K"]},
    {"name": "sync", "kind": "categorical", "values": [true, false]}],
    "default": null, "objective": "seconds"}"#;

fn program(space: &Path, method: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_io-autotune"));
    command
        .args(["optimize", "--budget", "12", "--seed", "3", "--space"])
        .arg(space)
        .args(method)
        .env("IO_AUTOTUNE_CONFIG", "/nowhere/client.toml")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Tunes in a dialogue, each line written after the answer to the one before was read.
fn tune(space: &Path, method: &[&str]) -> Vec<Value> {
    let mut child = program(space, method).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    let mut send = |line: String| -> Value {
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        answers.push(serde_json::from_str(&answer).unwrap());
        answers.last().cloned().unwrap()
    };
    for _ in 0..12 {
        let asked = send(json!({"ask": true}).to_string());
        let values = &asked["parametrization"];
        let slow = values["mode"] == "slow";
        let elapsed = if slow { 20.0 } else { 10.0 } + values["size"].as_f64().unwrap_or(9.0);
        send(json!({"tell": {"id": asked["id"], "elapsed": elapsed}}).to_string());
        send("oops".to_owned());
    }
    send(json!({"ask": true}).to_string());
    send(json!({"recommend": true}).to_string());
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

#[test]
fn a_dialogue_finds_the_best_and_is_reproducible() {
    let directory = tempfile::tempdir().unwrap();
    let space = directory.path().join("space.json");
    std::fs::write(&space, SPACE).unwrap();
    let answers = tune(&space, &[]);
    // Without a default in the file: the first category, the middle of the ordered list.
    let first = json!({"mode": "slow", "size": 2.5, "sync": true});
    assert_eq!(answers[0]["parametrization"], first);
    assert!(answers[2]["error"].is_string());
    assert!(answers[36]["error"].to_string().contains("all 12 runs"));
    let best = &answers[37];
    assert_eq!(best["parametrization"]["mode"], "fast");
    assert_eq!(best["parametrization"]["size"], 1);
    assert_eq!(best["mean"], 11.0);
    assert_eq!(tune(&space, &[]), answers);
    let published = tune(&space, &["--method", "robert2020"]);
    assert_eq!(published.len(), answers.len());
}

/// Outside Slurm an accelerator's file is a space: what it says of jobs is said to be left out.
#[test]
fn an_accelerators_file_is_a_space() {
    let shipped = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/accelerators.d/page-cache.toml"
    );
    let mut child = program(Path::new(shipped), &[])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, r#"{{"ask":true}}"#).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("page-cache.toml: needs, used_if, delivery: left out"),
        "{told}"
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["parametrization"].is_object(), "{answer}");
    assert!(output.status.success());
}

#[test]
fn what_cannot_be_used_is_said_at_once() {
    for (arguments, words) in [
        (vec!["--space", "/nowhere/a.json"], "/nowhere/a.json"),
        (vec!["--space", "a.json", "--method", "magic"], "robert2020"),
        (vec!["--space", "a.json", "--budget", "0"], "1..=100000"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_io-autotune"));
        command.args(["optimize", "--seed", "1"]).args(&arguments);
        if !arguments.contains(&"--budget") {
            command.args(["--budget", "5"]);
        }
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && message.contains(words),
            "{message}"
        );
    }
}
