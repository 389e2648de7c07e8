//! A study whose default does not complete: the search goes on, and everything says so.

use serde_json::Value;

use super::super::{ALICE, Course, QUICK, TestService};
use super::{explores, text, warnings};

/// Runs in a row whose default ends so, and which otherwise take 3 s.
async fn lived(service: &TestService, request: &str, runs: usize, lost: &Course) -> Vec<Value> {
    let default = service.default_of("romio");
    let mut all = Vec::new();
    for _ in 0..runs {
        let course = |started: &io_autotune_protocol::StartAnswer| match started.parametrization
            == default
        {
            true => lost.clone(),
            false => Course {
                limit: lost.limit,
                ..Course::completed(3.0)
            },
        };
        all.push(service.ran(ALICE, request, course).await);
    }
    all
}

#[tokio::test]
async fn a_default_that_always_fails_is_given_up_after_three_runs() {
    let service = TestService::with(QUICK).await;
    let runs = lived(&service, "app=broken", 12, &Course::failed(1.0)).await;
    for run in &runs[..3] {
        assert_eq!(
            (text(&run["role"]), text(&run["state"])),
            ("baseline", "not_counted")
        );
    }
    assert!(explores(&runs[3]), "{}", runs[3]);
    let reason = text(&runs[3]["reason"]);
    assert!(
        reason.contains("the default has not completed yet: of its 3 runs 3 failed"),
        "{reason}"
    );
    let completed = runs.iter().filter(|run| run["state"] == "counted").count();
    assert!(completed >= 6, "{runs:?}");
    let study = service.study("broken").await;
    let told = warnings(&study, "The default has not completed yet");
    assert_eq!(told.len(), 1, "{study}");
    assert!(told[0].contains("no gain over it is stated"), "{told:?}");
    let gain = &study["assessment"]["gain"];
    assert!(gain["share"].is_null() && gain["low"].is_null(), "{gain}");
}

#[tokio::test]
async fn a_default_that_always_meets_its_time_limit_is_a_lower_bound() {
    let service = TestService::with(&format!("{QUICK}engine.baseline_lost_runs = 2\n")).await;
    let cut = Course {
        state: "TIMEOUT",
        limit: "1:00",
        ..Course::completed(58.0)
    };
    let runs = lived(&service, "app=slow", 16, &cut).await;
    assert_eq!(text(&runs[0]["state"]), "censored");
    assert_eq!(text(&runs[1]["role"]), "baseline");
    assert!(
        explores(&runs[2]),
        "its limit is no shorter than what lost the default: {}",
        runs[2]
    );
    let study = service.study("slow").await;
    let told = warnings(&study, "so it takes at least 58 s");
    assert_eq!(told.len(), 1, "{study}");
    assert!(
        study["default"].is_null(),
        "it has no measured time: {study}"
    );
    let gain = &study["assessment"]["gain"];
    assert!(gain["share"].is_null(), "{gain}");
}

#[tokio::test]
async fn a_program_that_always_fails_explores_as_much_as_a_design_and_waits() {
    let service = TestService::with(QUICK).await;
    let mut explored = 0;
    for _ in 0..14 {
        let run = service
            .ran(ALICE, "app=hopeless", |_| Course::failed(1.0))
            .await;
        explored += usize::from(explores(&run));
    }
    assert_eq!(explored, 4, "as many as design_points");
    let study = service.study("hopeless").await;
    assert_eq!(study["phase"], "baseline", "{study}");
    // It is mended.
    let run = service
        .ran(ALICE, "app=hopeless", |_| Course::completed(2.0))
        .await;
    assert_eq!(run["state"], "counted", "{run}");
}
