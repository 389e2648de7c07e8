//! Retention: old runs that no study needs are removed, and no study loses evidence by it.

use io_autotune_protocol::{Outcome, OutcomesRequest};

use super::*;

/// An old study: the runs of its first epoch, and those of its second, before which it was reset and
/// in which it was pinned.
struct Old {
    study: i64,
    first: Vec<u32>,
    second: Vec<u32>,
}

async fn of_two_epochs(service: &TestService, application: &str) -> Old {
    let request = format!("app={application}");
    let run = async || {
        let job = service.job(ALICE, &request);
        let run = job.runs(service, 2.0).await;
        assert_eq!(run["state"], "counted", "{run}");
        job.job.job_id
    };
    let first = vec![run().await, run().await];
    let study = service.study_id(application).await;
    order(
        service,
        study,
        "reset",
        json!({ "why": "a new file system" }),
    )
    .await;
    let mut second = vec![run().await];
    let pin = json!({ "values": { "cb_nodes": "2" }, "why": "a test asks for it" });
    order(service, study, "pin", pin).await;
    second.extend([run().await, run().await]);
    service.advance(40 * DAY).await;
    Old {
        study,
        first,
        second,
    }
}

/// The answers that ALICE gets about an application's study, to the byte.
async fn answers(service: &TestService, application: &str, study: i64) -> [String; 2] {
    let alice = service.user(ALICE);
    let status = alice.get(&format!("/v1/studies?app={application}")).await;
    let show = alice.get(&format!("/v1/studies/{study}")).await;
    [status, show].map(|answer| {
        answer.ok();
        answer.text()
    })
}

/// Asks as an admin for the removal of what is older than 30 days.
async fn remove(service: &TestService, dry_run: bool) -> Value {
    let body = json!({ "older_than_days": 30, "dry_run": dry_run, "why": "a full disk" });
    service.user(ADMIN).post("/v1/retention", body).await.ok()
}

async fn epochs(service: &TestService, application: &str) -> Value {
    let runs = history(service, ALICE, application).await;
    runs.iter().map(|run| run["epoch"].clone()).collect()
}

#[tokio::test]
async fn a_dry_run_of_retention_removes_nothing() {
    let service = TestService::new().await;
    let old = of_two_epochs(&service, "kept").await;
    let before = answers(&service, "kept", old.study).await;
    let would = remove(&service, true).await;
    assert_eq!(
        (&would["runs"], &would["trimmed"]),
        (&json!(2), &json!(3)),
        "{would}"
    );
    assert_eq!(would["more"], false);
    assert_eq!(epochs(&service, "kept").await, json!([1, 1, 2, 2, 2]));
    assert_eq!(remove(&service, true).await, would);
    assert_eq!(answers(&service, "kept", old.study).await, before);
    let audit = service.user(ADMIN).get("/v1/audit").await.text();
    assert!(!audit.contains("retention"), "{audit}");
}

/// Promise: what a study knows is removed
#[tokio::test]
async fn old_runs_go_and_a_study_answers_the_same() {
    let service = TestService::new().await;
    let old = of_two_epochs(&service, "kept").await;
    let before = answers(&service, "kept", old.study).await;
    let would = remove(&service, true).await;
    assert_eq!(remove(&service, false).await, would, "it does what it said");
    assert_eq!(answers(&service, "kept", old.study).await, before);
    assert_eq!(epochs(&service, "kept").await, json!([2, 2, 2]));
    let again = remove(&service, false).await;
    assert_eq!(
        (&again["runs"], &again["trimmed"]),
        (&json!(0), &json!(0)),
        "{again}"
    );
}

#[tokio::test]
async fn what_was_removed_is_said_to_be_and_replays_nothing() {
    let service = TestService::new().await;
    let old = of_two_epochs(&service, "kept").await;
    remove(&service, false).await;
    let alice = service.user(ALICE);
    for job_id in &old.first {
        let gone = alice.get(&format!("/v1/runs/{job_id}")).await.not_found();
        assert!(
            gone.contains("(old ones were removed by retention, none that started after "),
            "{gone}"
        );
        assert!(gone.contains("io-autotune history"), "{gone}");
    }
    let trimmed = old.second.last().unwrap();
    let explained = alice.get(&format!("/v1/runs/{trimmed}")).await.ok();
    assert_eq!(explained[0]["reports"], json!([]), "{explained}");
    assert_eq!(explained[0]["run"]["state"], "counted");
    let replay = alice.get(&format!("/v1/runs/{trimmed}/replay")).await.ok();
    assert_eq!(replay[0]["recomputed"], Value::Null, "{replay}");
    let note = replay[0]["note"].as_str().unwrap();
    assert!(note.contains("nothing to replay"), "{note}");
}

#[tokio::test]
async fn a_removal_is_audited_by_study_and_not_undone() {
    let service = TestService::new().await;
    let old = of_two_epochs(&service, "kept").await;
    let other = of_two_epochs(&service, "kept-too").await;
    remove(&service, false).await;
    let audit = service.user(ADMIN).get("/v1/audit").await.ok();
    let lines = audit.as_array().unwrap().iter();
    let lines: Vec<_> = lines.filter(|line| line["action"] == "retention").collect();
    assert!(
        lines
            .iter()
            .all(|line| line["why"] == "a full disk" && line["uid"] == ADMIN)
    );
    for study in [old.study, other.study] {
        let of_study = lines.iter().filter(|line| line["study_id"] == study);
        let removed: Vec<_> = of_study.map(|line| &line["detail"]["runs"]).collect();
        assert_eq!(removed, [&json!(2)], "{audit}");
    }
    let path = format!("/v1/audit?study={}", old.study);
    let lines = service.user(ALICE).get(&path).await.ok();
    let mut lines = lines.as_array().unwrap().iter();
    let reset = lines.find(|line| line["action"] == "reset").unwrap();
    let path = format!("/v1/audit/{}/undo", reset["audit_id"]);
    let why = json!({ "why": "too late" });
    service
        .user(ALICE)
        .post(&path, why)
        .await
        .refused(409, "conflict");
}

#[tokio::test]
async fn a_study_goes_on_after_its_old_runs_went() {
    let service = TestService::new().await;
    let old = of_two_epochs(&service, "kept").await;
    remove(&service, false).await;
    order(&service, old.study, "unpin", json!({ "why": "go on" })).await;
    let run = service.job(ALICE, "app=kept").runs(&service, 2.0).await;
    assert_eq!(run["state"], "counted", "{run}");
    let study = service.study("kept").await;
    assert_eq!((&study["counted"], &study["epoch"]), (&json!(4), &json!(2)));
}

/// Promise: what a study knows is removed
#[tokio::test]
async fn a_configured_service_removes_in_its_sweeps() {
    let service = TestService::with("[retention]\ndays = 30\n").await;
    let old = of_two_epochs(&service, "kept").await;
    let before = answers(&service, "kept", old.study).await;
    service.poll().await;
    assert_eq!(epochs(&service, "kept").await, json!([1, 1, 2, 2, 2]));
    service.sweep().await;
    assert_eq!(epochs(&service, "kept").await, json!([2, 2, 2]));
    assert_eq!(answers(&service, "kept", old.study).await, before);
    let body = json!({ "dry_run": true, "why": "a full disk" });
    let would = service.user(ADMIN).post("/v1/retention", body).await.ok();
    assert_eq!(
        (&would["older_than_days"], &would["runs"]),
        (&json!(30), &json!(0))
    );
    let audit = service.user(ADMIN).get("/v1/audit").await.ok();
    let mut lines = audit.as_array().unwrap().iter();
    let line = lines.find(|line| line["action"] == "retention").unwrap();
    assert_eq!(line["why"], "[retention] days in service.toml");
}

#[tokio::test]
async fn a_sweep_that_found_nothing_more_looks_again_after_a_day() {
    let service = TestService::with("[retention]\ndays = 30\n").await;
    for _ in 0..2 {
        service.job(ALICE, "app=kept").runs(&service, 2.0).await;
    }
    let study = service.study_id("kept").await;
    order(
        &service,
        study,
        "reset",
        json!({ "why": "a new file system" }),
    )
    .await;
    service.sweep().await;
    // The database's clock alone goes on; the service's stands.
    service.database.advance(40 * DAY).await;
    service.sweep().await;
    assert_eq!(epochs(&service, "kept").await, json!([1, 1]));
    service.advance(DAY).await;
    service.sweep().await;
    assert_eq!(epochs(&service, "kept").await, json!([]));
}

#[tokio::test]
async fn what_is_younger_than_the_site_keeps_it_stays() {
    let service = TestService::with("[retention]\ndays = 50\n").await;
    of_two_epochs(&service, "kept").await;
    service.sweep().await;
    assert_eq!(epochs(&service, "kept").await, json!([1, 1, 2, 2, 2]));
    service.advance(11 * DAY).await;
    service.sweep().await;
    assert_eq!(epochs(&service, "kept").await, json!([2, 2, 2]));
}

#[tokio::test]
async fn what_retention_needs_to_know_is_asked_for() {
    let service = TestService::new().await;
    for (body, problem) in [
        (
            json!({ "dry_run": true, "why": "a full disk" }),
            "service.toml has no [retention] days, so all runs are kept: say --older-than DAYS",
        ),
        (
            json!({ "older_than_days": 29, "why": "a full disk" }),
            "29 days: 30 to 36500 are expected; what is younger than 30 days is kept",
        ),
        (
            json!({ "older_than_days": 36_501, "why": "a full disk" }),
            "36501 days: 30 to 36500 are expected; what is younger than 30 days is kept",
        ),
    ] {
        let refused = service.user(ADMIN).post("/v1/retention", body).await;
        assert_eq!(refused.bad_request(), problem);
    }
    for dry_run in [true, false] {
        let unexplained = json!({ "older_than_days": 30, "dry_run": dry_run });
        let refused = service.user(ADMIN).post("/v1/retention", unexplained).await;
        let refused = refused.bad_request();
        assert!(refused.starts_with("say why"), "{refused}");
    }
}

/// Promise: a report is counted twice
#[tokio::test]
async fn a_late_report_of_a_removed_run_is_refused() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=kept");
    let started = job.completes(&service, 2.0).await;
    service.poll().await;
    let study = service.study_id("kept").await;
    order(
        &service,
        study,
        "reset",
        json!({ "why": "a new file system" }),
    )
    .await;
    service.job(ALICE, "app=kept").runs(&service, 2.0).await;
    service.advance(40 * DAY).await;
    remove(&service, false).await;
    for started in [Some(&started), None] {
        let report = job.reports(started, 2.0);
        let refused = service.node().post("/v1/runs/finish", report).await;
        let told = refused.refused(410, "removed");
        assert!(
            told.contains("were removed by retention ([retention] in service.toml)"),
            "{told}"
        );
    }
    assert_eq!(epochs(&service, "kept").await, json!([2]));
}

#[tokio::test]
async fn whatever_is_heard_of_a_trimmed_run_later_changes_nothing() {
    let service = TestService::with("[slurm]\nsources = [\"squeue\", \"jobcomp\"]\n").await;
    let job = service.job(ALICE, "app=kept");
    let started = job.completes(&service, 2.0).await;
    service.poll().await;
    service.advance(40 * DAY).await;
    let removed = remove(&service, false).await;
    assert_eq!(
        (&removed["runs"], &removed["trimmed"]),
        (&json!(0), &json!(1))
    );
    let before = run(&service, &job).await;
    let outcome = Outcome {
        job_id: job.job.job_id,
        state: "NODE_FAIL".into(),
        restart_count: Some(0),
        started_at: Some(job.started_at),
        ..Outcome::default()
    };
    let request = OutcomesRequest {
        cluster: CLUSTER.into(),
        outcomes: vec![outcome],
    };
    service
        .user(COLLECTOR)
        .post("/v1/outcomes", request)
        .await
        .ok();
    let mut other = job.clone();
    other.job.node = "n2".into();
    other
        .finish(&service, &other.reports(Some(&started), 9.0))
        .await;
    service.sweep().await;
    assert_eq!(run(&service, &job).await, before);
    // The answer to a node that asks about its launch is that it is over all the same.
    let over = json!({ "runs": [started.run_id] });
    let over = service.node().post("/v1/runs/over", over).await.ok();
    assert_eq!(over["over"], json!([started.run_id]));
}
