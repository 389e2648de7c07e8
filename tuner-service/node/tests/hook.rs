//! The hook that Slurm's Prolog= and Epilog= run with `PrologFlags=RunInJob`, with scripts in the
//! place of the helper that it runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

struct Ended {
    good: bool,
    said: String,
    took: Duration,
}

/// Runs the hook of an epilog, with this script as the helper; `None` if the test does not run as
/// root.
fn hook(script: &str) -> Option<(tempfile::TempDir, Ended)> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let helper = place.path().join("helper");
    fs::write(
        &helper,
        format!("#!/bin/sh\ncd {}\n{script}\n", place.path().display()),
    )
    .unwrap();
    fs::set_permissions(&helper, Permissions::from_mode(0o755)).unwrap();
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_io-autotune-node"))
        .arg0(&helper)
        .args(["hook", "--deadline-ms", "1000"])
        .env_clear()
        .envs([
            ("SLURM_SCRIPT_CONTEXT", "epilog_slurmd"),
            ("SPANK_IO_AUTOTUNE", "app=ocean,mode=tune"),
            ("SPANK_ANOTHERS", "x"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_EXIT_CODE2", "0:0"),
            ("LD_PRELOAD", ""),
        ])
        .output()
        .unwrap();
    let ended = Ended {
        good: output.status.success(),
        said: String::from_utf8(output.stderr).unwrap(),
        took: began.elapsed(),
    };
    Some((place, ended))
}

#[test]
fn the_helper_is_told_of_the_job_and_of_nothing_else() {
    let Some((_place, ended)) = hook("echo $1 $8 $9 >&2; env | sort >&2") else {
        return;
    };
    assert!(ended.good);
    let lines: Vec<&str> = ended
        .said
        .lines()
        .filter(|line| !line.starts_with("OLDPWD=") && !line.starts_with("PWD="))
        .collect();
    assert_eq!(
        lines,
        [
            "finish --deadline-ms 1000",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "SLURM_JOB_ID=7",
            "SPANK_IO_AUTOTUNE=app=ocean,mode=tune",
        ]
    );
}

/// Attack (second-round): With RunInJob a program that the helper left keeps standard error open.
/// Outcome: The hook waits for the helper alone.
#[test]
fn what_holds_its_output_open_is_not_waited_for() {
    let Some((_place, ended)) = hook("echo said; sleep 30 &") else {
        return;
    };
    assert!(ended.good);
    assert_eq!(ended.said, "said\n");
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
}

#[test]
fn one_that_hangs_is_killed_and_one_that_was_killed_is_run_again() {
    let Some((_place, ended)) = hook("sleep 30") else {
        return;
    };
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    assert!(
        ended.said.contains("had not ended after 1100 ms"),
        "{}",
        ended.said
    );
    let (place, ended) = hook("[ -e once ] || { touch once; kill -9 $$; }; touch twice").unwrap();
    assert!(ended.good);
    assert!(ended.said.contains("signal: 9"), "{}", ended.said);
    assert!(place.path().join("twice").exists());
}

/// Attack (second-round): RunInJob runs the epilog as the job's user, who could mislead the helper.
/// Outcome: It does nothing, and the timer reports the job.
#[test]
fn as_another_than_root_it_does_nothing_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("io-autotune-node");
    fs::copy(env!("CARGO_BIN_EXE_io-autotune-node"), &program).unwrap();
    for path in [place.path(), &program] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.arg("hook").env("SPANK_IO_AUTOTUNE", "app=ocean");
    if nix::unistd::geteuid().is_root() {
        command.uid(65534);
    }
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("and not as root"), "{said}");
}
