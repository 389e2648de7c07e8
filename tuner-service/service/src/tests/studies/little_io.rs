//! A study that has nothing to win says so and stops: no I/O, or none by the accelerator.

use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

use super::super::{ALICE, Course, QUICK, TestService};
use super::{explores, history, text, warnings};

/// As a site has it whose studies end where I/O cannot matter.
pub(in super::super) fn little() -> String {
    let on = "stop.unread_runs = 2\nstop.little_io = 0.05\nengine.stop.little_io.call_ms = 0.5\n";
    let little = QUICK.replace("stop.unread_runs = 0\nstop.little_io = 0.0\n", on);
    assert_ne!(little, QUICK);
    little
}

/// Two to three seconds in the shell itself.
pub(in super::super) const COMPUTING: &[(&str, f64)] = &[
    ("measured_steps", 1.0),
    ("user_seconds", 2.8),
    ("asked_read_bytes", 20_000.0),
    ("read_calls", 12.0),
    ("voluntary_switches", 30.0),
];

/// Has jobs run until one of them gets what was chosen; returns all runs.
pub(in super::super) async fn until_settled(
    service: &TestService,
    application: &str,
    course: impl Fn(&StartAnswer) -> Course,
) -> Vec<Value> {
    loop {
        let job = service.job(ALICE, &format!("app={application}"));
        let run = job.goes(service, &course).await;
        assert_eq!(run["state"], "counted", "{run}");
        let runs = history(service, ALICE, application).await;
        assert!(runs.len() < 20, "no run of what was chosen: {runs:?}");
        if run["role"] == "settled" {
            return runs;
        }
    }
}

#[tokio::test]
async fn a_job_that_only_computes_has_nothing_to_win() {
    let service = TestService::with(&little()).await;
    let course = |_: &StartAnswer| Course::completed(3.0).measured(COMPUTING);
    let runs = until_settled(&service, "computes", course).await;
    assert_eq!(
        [&runs[0]["role"], &runs[1]["role"]],
        ["baseline", "baseline"]
    );
    for run in &runs[2..] {
        assert_eq!(
            run["phase"], "settled",
            "it explores what cannot matter: {run}"
        );
    }
    assert!(
        runs.iter().all(|run| run["differs"] == json!({})),
        "{runs:?}"
    );
    let told = "there is nothing to win: the default reads and writes 0.0 MB in 42 calls and waits";
    let reason = text(&runs.last().unwrap()["reason"]);
    assert!(reason.contains(told), "{reason}");
    let study = service.study("computes").await;
    let warned = warnings(
        &study,
        "There is nothing to win: the default reads and writes 0.0 MB",
    );
    assert_eq!(warned.len(), 1, "{study}");
    assert!(
        warned[0].contains("sbatch --io-autotune=accelerator=NAME"),
        "{warned:?}"
    );
    assert_eq!(study["gain"], Value::Null);
}

#[tokio::test]
async fn what_nothing_reads_is_not_explored() {
    let service = TestService::with(&little()).await;
    let writing = |started: &StartAnswer| {
        let mut measures = vec![
            ("measured_steps", 1.0),
            ("asked_written_bytes", 4e7),
            ("write_calls", 40.0),
        ];
        if !started.delivery.files.is_empty() {
            measures.push(("delivered_files", 1.0));
        }
        Course::completed(3.0).measured(&measures)
    };
    let runs = until_settled(&service, "no-mpi", writing).await;
    assert_eq!(
        [&runs[0]["role"], &runs[1]["role"]],
        ["baseline", "baseline"]
    );
    assert!(
        !runs.iter().any(explores),
        "it explores what nothing reads: {runs:?}"
    );
    let given: Vec<&Value> = runs
        .iter()
        .map(|run| &run["measures"]["delivered_files"])
        .collect();
    assert_eq!(given[..2], [&json!(1.0), &json!(1.0)]);
    assert!(
        given[2..].iter().all(|one| one.is_null()),
        "once it is known nothing is given"
    );
    let told = "in 2 runs nothing read the accelerator's settings";
    let reason = text(&runs.last().unwrap()["reason"]);
    assert!(reason.contains(told), "{reason}");
    assert_eq!(warnings(&service.study("no-mpi").await, told).len(), 1);
}

#[tokio::test]
async fn what_is_read_is_explored_as_ever() {
    let service = TestService::with(&little()).await;
    let reading = |started: &StartAnswer| {
        let mut measures = vec![
            ("measured_steps", 1.0),
            ("asked_written_bytes", 4e7),
            ("write_calls", 40.0),
        ];
        if !started.delivery.files.is_empty() {
            measures.extend([("delivered_files", 1.0), ("delivered_files_read", 1.0)]);
        }
        Course::completed(3.0).measured(&measures)
    };
    for _ in 0..7 {
        let job = service.job(ALICE, "app=reads");
        assert_eq!(job.goes(&service, reading).await["state"], "counted");
    }
    let runs = history(&service, ALICE, "reads").await;
    assert!(runs.iter().any(explores), "{runs:?}");
    let roles = runs.iter().map(|run| text(&run["role"]));
    let ended = roles.filter(|role| ["settled", "control"].contains(role));
    assert_eq!(ended.count(), 0, "it ended before its eight runs: {runs:?}");
    assert_eq!(service.study("reads").await["warnings"], json!([]));
}

#[tokio::test]
async fn a_job_of_which_a_step_was_not_measured_may_have_something_to_win() {
    let service = TestService::with(&little()).await;
    // Without the number of measured steps nobody knows what the rest did.
    let course = |_: &StartAnswer| Course::completed(3.0).measured(&COMPUTING[1..]);
    for _ in 0..6 {
        service.ran(ALICE, "app=part", course).await;
    }
    let runs = history(&service, ALICE, "part").await;
    assert!(runs.iter().any(explores), "{runs:?}");
}
