//! Tests of the starts in the course of a study: phases, exploring, time limits, quarantine, mixed
//! work.

use std::collections::BTreeSet;

use io_autotune_engine::{Phase, Role};
use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestService};
use super::{by_default, explores, history, steer, text, undo, warnings};

/// Has the default be measured, by as many runs as [`QUICK`] asks for.
async fn baseline(service: &TestService, request: &str, course: &Course) {
    for number in 1..=2 {
        let run = service.ran(ALICE, request, |_| course.clone()).await;
        assert_eq!(run["role"], "baseline", "run {number} of two: {run}");
        assert_eq!(run["state"], "counted", "{run}");
    }
}

/// The time limit of its job that a run's decision used.
async fn limit_of(service: &TestService, run: &Value) -> Value {
    let job_id = run["job_id"].as_u64().unwrap();
    let detail = service.run_of(u32::try_from(job_id).unwrap()).await;
    detail["suggestion"]["overrides"]["limit"].clone()
}

#[tokio::test]
async fn few_of_the_runs_in_flight_explore_and_none_twice_the_same() {
    let service = TestService::with(QUICK).await;
    baseline(&service, "app=at-once", &Course::completed(5.0)).await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        let job = service.job(ALICE, "app=at-once");
        let started = job.start(&service).await;
        jobs.push((job, started));
    }
    let runs = history(&service, ALICE, "at-once").await.split_off(2);
    assert_eq!(runs.len(), jobs.len());
    let (exploring, others): (Vec<_>, Vec<_>) = runs.iter().partition(|run| explores(run));
    assert_eq!(exploring.len(), 2, "the site allows two at once: {runs:?}");
    assert_ne!(
        exploring[0]["differs"], exploring[1]["differs"],
        "the same experiment twice at once"
    );
    for run in others {
        assert_eq!(run["role"], "best_known");
        assert_eq!(run["differs"], json!({}), "only the default is known");
        let reason = text(&run["reason"]);
        assert!(reason.contains("2 runs explore already"), "{reason}");
    }
    for (job, started) in &jobs {
        let report = job.reports(Some(started), 5.0);
        job.finish(&service, &report).await;
        job.ends(&service, "COMPLETED", 5.0);
    }
    service.poll().await;
    let after = history(&service, ALICE, "at-once").await;
    assert!(
        after.iter().all(|run| run["state"] == "counted"),
        "{after:?}"
    );
}

#[tokio::test]
async fn a_run_that_has_ended_makes_room_for_another_that_explores() {
    let service = TestService::with(QUICK).await;
    baseline(&service, "app=ocean", &Course::completed(5.0)).await;
    let mut exploring = Vec::new();
    for _ in 0..2 {
        let job = service.job(ALICE, "app=ocean");
        exploring.push((job.start(&service).await, job));
    }
    let waiting = service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(waiting.role, Role::BestKnown);
    let (started, job) = &exploring[0];
    job.finish(&service, &job.reports(Some(started), 4.0)).await;
    job.ends(&service, "COMPLETED", 4.0);
    service.poll().await;
    let next = service.job(ALICE, "app=ocean").start(&service).await;
    assert!(matches!(next.role, Role::Design | Role::Search), "{next:?}");
}

/// Promise: a wrong gain is reported
#[tokio::test]
async fn phases_of_an_epoch_never_go_back() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let answers = service
        .tune(ALICE, "app=ocean", 24, |given, number| {
            let noise = 0.05 * f64::from(number % 5);
            if *given == default {
                10.0 + noise
            } else {
                7.0 + noise
            }
        })
        .await;
    let order = |answer: &StartAnswer| match answer.phase {
        Phase::Baseline => 0,
        // What is left of the design may come among the steps of the search.
        Phase::Design | Phase::Search => 1,
        Phase::Settled => 2,
    };
    let phases: Vec<i32> = answers.iter().map(order).collect();
    assert!(phases.is_sorted(), "the phases go back: {phases:?}");
    assert_eq!(
        phases.iter().collect::<BTreeSet<_>>().len(),
        3,
        "{phases:?}"
    );
    let explored = answers.iter().filter(|one| order(one) == 1);
    assert!(
        explored.clone().any(|one| one.parametrization != default),
        "no explored run differed from the default"
    );
    let roles: BTreeSet<String> = answers.iter().map(|one| one.role.to_string()).collect();
    for role in ["baseline", "settled", "control"] {
        assert!(roles.contains(role), "{roles:?}");
    }
}

#[tokio::test]
async fn a_job_explores_only_if_its_time_limit_leaves_room() {
    let service = TestService::with(QUICK).await;
    let request = "app=limits-room";
    let limited = Course {
        limit: "1:00",
        ..Course::completed(27.0)
    };
    baseline(&service, request, &limited).await;

    // The latest run's limit stands for a limit that is not known. A run that fails adds no time of
    // the default.
    let failed = |limit| Course {
        limit,
        ..Course::failed(1.0)
    };
    let short = service.job(ALICE, request);
    let short = short.goes(&service, |_| failed("1:00")).await;
    assert_eq!(short["role"], "best_known", "{short}");
    assert_eq!(short["differs"], json!({}));
    let reason = text(&short["reason"]);
    let expected = "the time limit of 60 s leaves no room to explore";
    assert!(reason.contains(expected), "{reason}");
    let limit = json!({ "seconds": 60, "told_by": "latest_run" });
    assert_eq!(limit_of(&service, &short).await, limit);
    let study = service.study("limits-room").await;
    let phase = text(&study["phase"]);
    assert!(
        ["design", "search"].contains(&phase),
        "it waits for a job that has room: {phase}"
    );
    assert_eq!(study["warnings"].as_array().unwrap().len(), 1, "{study}");
    assert_eq!(warnings(&study, "--time=2").len(), 1, "{study}");

    let mut long = service.job(ALICE, request);
    long.limit_seconds = Some(600);
    let run = long.goes(&service, |_| failed("10:00")).await;
    let limit = json!({ "seconds": 600, "told_by": "start" });
    assert_eq!(limit_of(&service, &run).await, limit);
    assert!(explores(&run), "{run}");
    let study = service.study("limits-room").await;
    assert_eq!(study["warnings"], json!([]), "{study}");
}

#[tokio::test]
async fn the_limit_of_a_job_that_squeue_lists_is_known_before_it_starts() {
    let service = TestService::with(QUICK).await;
    let request = "app=limits-listed";
    let limited = Course {
        limit: "1:00",
        ..Course::completed(27.0)
    };
    baseline(&service, request, &limited).await;
    // squeue is asked about runs whose end is unknown, and lists other jobs as well.
    service.job(BOB, "app=other").start(&service).await;
    let [long, unlimited] = ["10:00", "UNLIMITED"].map(|limit| {
        let job = service.job(ALICE, request);
        let mut queued = job.queued("PENDING", 0.0);
        queued.limit = limit.to_owned();
        service.slurm().queue(queued);
        job
    });
    service.sweep().await;
    let run = long.goes(&service, |_| Course::completed(27.0)).await;
    let limit = json!({ "seconds": 600, "told_by": "squeue" });
    assert_eq!(limit_of(&service, &run).await, limit);
    assert!(explores(&run), "{run}");
    let run = unlimited.goes(&service, |_| Course::completed(27.0)).await;
    assert_eq!(limit_of(&service, &run).await, Value::Null);
    assert!(explores(&run), "{run}");
}

#[tokio::test]
async fn what_fails_where_the_default_does_not_is_quarantined() {
    // A design runs whole, and again where its points fail.
    let design = format!("{QUICK}engine.surrogate-genetic.explores_outwards = false\n");
    let service = TestService::with(&design).await;
    let default = service.default_of("romio");
    let fails_otherwise = |started: &StartAnswer| match started.parametrization == default {
        true => Course::completed(5.0),
        false => Course::failed(5.0),
    };
    let request = "app=limits-quarantine";
    let mut failed: Vec<Value> = Vec::new();
    while failed.len() < 2 || failed[failed.len() - 1] != failed[failed.len() - 2] {
        assert!(failed.len() < 4, "nothing is run again: {failed:?}");
        let run = service.ran(ALICE, request, fails_otherwise).await;
        if run["state"] != "counted" {
            assert_eq!(run["outcome"], "FAILED", "{run}");
            failed.push(run["differs"].clone());
        }
    }
    let distinct: Vec<&Value> = failed.iter().filter(|one| **one != failed[0]).collect();
    assert!(
        distinct.is_empty(),
        "another parametrization before the first was quarantined: {failed:?}"
    );
    let study = service.study("limits-quarantine").await;
    let quarantined = study["quarantined"].as_array().unwrap();
    assert_eq!(quarantined.len(), 1, "{study}");
    let one = &quarantined[0];
    assert_eq!(one["differs"], failed[0]);
    let why = text(&one["why"]);
    assert!(
        why.starts_with("2 of 2 jobs failed under it, and 0 of "),
        "{why}"
    );
    let runs = history(&service, ALICE, "limits-quarantine").await;
    let marked = runs.iter().filter(|run| !run["quarantined"].is_null());
    let marked: Vec<&Value> = marked.collect();
    assert_eq!(marked.len(), 2);
    assert!(marked.iter().all(|run| run["differs"] == one["differs"]));
    assert!(marked.iter().all(|run| run["quarantined"] == one["why"]));
    let study_id = service.study_id("limits-quarantine").await;
    let path = format!("/v1/studies/{study_id}");
    let shown = service.user(ALICE).get(&path).await.ok();
    let tested = shown["tested"].as_array().unwrap().iter();
    let marked: Vec<&Value> = tested.filter(|one| !one["quarantined"].is_null()).collect();
    assert_eq!(marked.len(), 1, "{shown}");
    assert_eq!(marked[0]["failed"], 2);
    let following = service.ran(ALICE, request, fails_otherwise);
    assert_ne!(following.await["differs"], one["differs"]);
}

/// Runs an application of very different work until it is only observed.
async fn mixed(service: &TestService) -> i64 {
    for seconds in [0.1, 0.1, 2.0, 2.0, 0.1, 2.0] {
        let job = service.job(ALICE, "app=mixed,mode=observe");
        let run = job.goes(service, |_| Course::completed(seconds)).await;
        assert_eq!(run["role"], "observe");
        assert_eq!(run["state"], "counted");
    }
    service.study_id("mixed").await
}

/// Promise: a wrong gain is reported
#[tokio::test]
async fn different_work_under_one_name_is_observed_until_it_is_accepted() {
    let service = TestService::with(QUICK).await;
    let study_id = mixed(&service).await;
    let quick = |_: &StartAnswer| Course::completed(0.1);
    let run = service.ran(ALICE, "app=mixed", quick).await;
    assert_eq!(run["role"], "observe", "{run}");
    let reason = text(&run["reason"]);
    assert!(
        reason.contains("app="),
        "it does not say what to do: {reason}"
    );
    let study = service.study("mixed").await;
    assert_eq!(study["warnings"].as_array().unwrap().len(), 1, "{study}");
    assert_eq!(warnings(&study, "app=").len(), 1, "{study}");

    let accepted = steer(&service, ALICE, study_id, "accept", json!({}))
        .await
        .ok();
    assert_eq!(accepted["warnings"], json!([]));
    assert_eq!(service.study("mixed").await["warnings"], json!([]));
    let run = service.ran(ALICE, "app=mixed", quick).await;
    assert_ne!(run["role"], "observe", "{run}");
    let lines = service.user(ALICE).get("/v1/audit").await.ok();
    assert_eq!(lines[0]["action"], "accept", "{lines}");
    assert_eq!(lines[0]["audit_id"], accepted["line"]);
    assert_eq!(lines[0]["study_id"], study_id);
    assert_eq!(lines[0]["why"], "a test asks for it");
}

#[tokio::test]
async fn what_was_accepted_stays_accepted_after_a_reset_until_that_is_undone() {
    let service = TestService::with(QUICK).await;
    let study_id = mixed(&service).await;
    let accepted = steer(&service, ALICE, study_id, "accept", json!({}))
        .await
        .ok();
    steer(&service, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    mixed(&service).await;
    let quick = |_: &StartAnswer| Course::completed(0.1);
    let run = service.ran(ALICE, "app=mixed", quick).await;
    assert_ne!(run["role"], "observe", "{run}");
    assert_eq!(service.study("mixed").await["warnings"], json!([]));

    undo(&service, ALICE, &accepted).await.ok();
    let run = service.ran(ALICE, "app=mixed", quick).await;
    assert_eq!(run["role"], "observe", "{run}");
}

#[tokio::test]
async fn accepting_a_study_that_is_not_mixed_changes_nothing_but_the_audit() {
    let service = TestService::with(QUICK).await;
    baseline(&service, "app=ocean", &Course::completed(5.0)).await;
    let before = service.study("ocean").await;
    let study_id = before["study_id"].as_i64().unwrap();
    let accepted = steer(&service, ALICE, study_id, "accept", json!({}))
        .await
        .ok();
    assert!(accepted["line"].is_i64(), "{accepted}");
    assert_eq!(service.study("ocean").await, before);
    let lines = service.user(ADMIN).get("/v1/audit").await.ok();
    assert_eq!(lines.as_array().unwrap().len(), 1, "{lines}");
}

#[tokio::test]
async fn a_job_that_was_put_back_does_not_explore() {
    let service = TestService::with(QUICK).await;
    baseline(&service, "app=ocean", &Course::completed(5.0)).await;
    let mut job = service.job(ALICE, "app=ocean");
    job.job.restart_count = 1;
    let started = job.start(&service).await;
    assert_eq!(started.role, Role::BestKnown);
    assert!(
        started.reason.contains("a restarted job never explores"),
        "{}",
        started.reason
    );
}

#[tokio::test]
async fn a_settled_study_whose_runs_slow_down_for_a_while_is_tuned_on() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let mut roles = BTreeSet::new();
    for number in 0..40 {
        // Busy for a stretch of runs after it has settled.
        let factor = if (24..34).contains(&number) { 5.0 } else { 1.0 };
        let course = by_default(&default, 0.5 * factor, 0.3 * factor);
        let run = service.ran(ALICE, "app=busy", course).await;
        assert_eq!(run["state"], "counted", "{run}");
        if number >= 24 {
            roles.insert(text(&run["role"]).to_owned());
        }
    }
    let drawn = BTreeSet::from(["settled".to_owned(), "control".to_owned()]);
    assert!(roles.is_subset(&drawn), "{roles:?}");
}
