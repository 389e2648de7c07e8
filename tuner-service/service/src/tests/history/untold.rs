//! Tests that the role of a run in flight is shown to admins alone, until the run has its verdict.

use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

use super::super::studies::{history, text};
use super::super::{ADMIN, ALICE, OPERATOR, QUICK, TestJob, TestService};
use super::{explained, replays};

/// The fields by which a run in flight could be recognised as a control run.
const UNTOLD: [&str; 5] = ["role", "parametrization", "differs", "reason", "applied"];

/// Runs of a settled study, in flight: control runs are among them, and others.
async fn in_flight(service: &TestService) -> Vec<(TestJob, StartAnswer)> {
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=busy", 20, |given, number| {
            let noise = 0.01 * f64::from(number % 3);
            if *given == default { 10.0 } else { 7.0 + noise }
        })
        .await;
    assert_eq!(service.study("busy").await["phase"], "settled");
    let mut jobs = Vec::new();
    for draw in [0.0, 0.999, 0.0, 0.999] {
        service.draw(Some(draw));
        let job = service.job(ALICE, "app=busy");
        jobs.push((job.start(service).await, job));
    }
    let roles = jobs.iter().map(|(started, _)| started.role.to_string());
    assert!(roles.eq(["control", "settled", "control", "settled"]));
    jobs.into_iter()
        .map(|(started, job)| (job, started))
        .collect()
}

/// Has these jobs end, to their verdicts.
async fn end(service: &TestService, jobs: &[(TestJob, StartAnswer)]) {
    for (job, started) in jobs {
        job.finish(service, &job.reports(Some(started), 8.0)).await;
        job.ends(service, "COMPLETED", 8.0);
    }
    service.poll().await;
}

/// The runs of jobs as a user sees them.
async fn of(service: &TestService, uid: u32, jobs: &[(TestJob, StartAnswer)]) -> Vec<Value> {
    let ids: Vec<u32> = jobs.iter().map(|(job, _)| job.job.job_id).collect();
    let runs = history(service, uid, "busy").await.into_iter();
    let runs = runs.filter(|run| ids.iter().any(|id| run["job_id"] == *id));
    runs.collect()
}

/// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight is
/// a control run.
#[tokio::test]
async fn nobody_but_an_admin_is_told_which_run_in_flight_is_a_control_run() {
    let service = TestService::with(QUICK).await;
    let jobs = in_flight(&service).await;
    let drawn = of(&service, ALICE, &jobs).await;
    assert_eq!(drawn.len(), 4);
    for run in &drawn {
        assert_eq!(run["phase"], "settled");
        for name in UNTOLD {
            assert_eq!(run[name], Value::Null, "{name}: {run}");
        }
        assert_eq!(run["measures"], json!({}));
        let launches = explained(&service, ALICE, &run["job_id"]).await;
        let detail = &launches[0];
        for name in [
            "suggestion",
            "delivery",
            "expected",
            "begun_from",
            "cleaned",
            "decided_by",
        ] {
            assert_eq!(detail[name], Value::Null, "{name}: {detail}");
        }
        assert_eq!(detail["reports"], json!([]));
        assert_eq!(detail["run"], *run);
        let replays = replays(&service, ALICE, &run["job_id"]).await;
        let replay = &replays[0];
        assert_eq!(
            (&replay["given"], &replay["recomputed"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(replay["same"], false, "a script would take it for the same");
        assert_eq!(
            replay["note"],
            "what it was given is told once it has ended, and with it the runs that were in flight at \
             its start"
        );
    }
    let of_admin = of(&service, ADMIN, &jobs).await;
    let roles: Vec<&str> = of_admin.iter().map(|run| text(&run["role"])).collect();
    assert_eq!(roles, ["control", "settled", "control", "settled"]);
    for run in &of_admin {
        let replays = replays(&service, ADMIN, &run["job_id"]).await;
        assert_eq!(replays[0]["same"], true, "{}", replays[0]);
    }

    end(&service, &jobs).await;
    let after = of(&service, ALICE, &jobs).await;
    for (run, before) in after.iter().zip(&of_admin) {
        for name in ["role", "reason", "differs", "parametrization"] {
            assert_eq!(run[name], before[name], "{name}");
        }
        let replays = replays(&service, ALICE, &run["job_id"]).await;
        assert_eq!(replays[0]["same"], true, "{}", replays[0]);
    }
}

/// Attack (drawn): A user compares all that the API tells of runs in flight.
/// Outcome: They differ in numbers and times alone.
#[tokio::test]
async fn a_control_run_in_flight_looks_like_any_other() {
    let service = TestService::with(QUICK).await;
    let jobs = in_flight(&service).await;
    let mut seen = Vec::new();
    for (job, _) in &jobs[..2] {
        let mut launches = explained(&service, ALICE, &json!(job.job.job_id)).await;
        let mut detail = launches.remove(0);
        for name in ["run_id", "job_id", "started_at"] {
            detail["run"][name] = Value::Null;
        }
        seen.push(detail);
    }
    assert_eq!(seen[0], seen[1]);
}

/// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight is
/// a control run.
#[tokio::test]
async fn a_report_alone_tells_nothing() {
    let service = TestService::with(QUICK).await;
    let jobs = in_flight(&service).await;
    for (job, started) in &jobs {
        job.finish(&service, &job.reports(Some(started), 8.0)).await;
    }
    for run in of(&service, ALICE, &jobs).await {
        for name in UNTOLD {
            assert_eq!(run[name], Value::Null, "{name}: {run}");
        }
        assert_eq!(run["state"], "in_flight");
        assert_eq!(run["elapsed"], 8.0);
        let launches = explained(&service, ALICE, &run["job_id"]).await;
        assert_eq!(
            launches[0]["reports"],
            json!([]),
            "what was applied is in them"
        );
    }
}

/// Attack (drawn): A user asks what decided an ended run, to learn of one that was in flight then.
/// Outcome: The ended run's label is told, its reason not yet.
#[tokio::test]
async fn a_run_that_ended_beside_them_does_not_tell_of_them() {
    let service = TestService::with(QUICK).await;
    let jobs = in_flight(&service).await;
    let (before, last) = jobs.split_at(3);
    end(&service, last).await;
    let runs = of(&service, ALICE, last).await;
    let run = &runs[0];
    assert_eq!(
        (&run["role"], &run["state"]),
        (&json!("settled"), &json!("counted"))
    );
    assert!(run["parametrization"].is_object() && run["applied"].is_object());
    assert_eq!(run["reason"], Value::Null);
    let launches = explained(&service, ALICE, &run["job_id"]).await;
    let detail = &launches[0];
    assert_eq!(
        (&detail["suggestion"], &detail["expected"]),
        (&Value::Null, &Value::Null)
    );
    assert!(detail["delivery"].is_object());
    let replays = replays(&service, ALICE, &run["job_id"]).await;
    assert_eq!(replays[0]["given"], Value::Null);

    end(&service, before).await;
    let runs = of(&service, ALICE, last).await;
    assert!(runs[0]["reason"].is_string(), "{}", runs[0]);
    let launches = explained(&service, ALICE, &runs[0]["job_id"]).await;
    assert!(launches[0]["suggestion"].is_object());
}

/// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight is
/// a control run.
#[tokio::test]
async fn an_operator_is_told_what_the_user_is_told() {
    let service = TestService::with(QUICK).await;
    let jobs = in_flight(&service).await;
    assert_eq!(
        of(&service, OPERATOR, &jobs).await,
        of(&service, ALICE, &jobs).await
    );
    for (job, _) in &jobs {
        let job_id = json!(job.job.job_id);
        let of_user = explained(&service, ALICE, &job_id).await;
        assert_eq!(explained(&service, OPERATOR, &job_id).await, of_user);
        let of_user = replays(&service, ALICE, &job_id).await;
        assert_eq!(replays(&service, OPERATOR, &job_id).await, of_user);
    }
}

/// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight is
/// a control run.
#[tokio::test]
async fn a_study_does_not_tell_which_of_its_runs_in_flight_is_a_control_run() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=busy", 20, |given, _| {
            if *given == default { 10.0 } else { 7.0 }
        })
        .await;
    let path = format!("/v1/studies/{}", service.study_id("busy").await);
    let mut before = service.user(ALICE).get(&path).await.ok();
    for draw in [0.0, 0.999] {
        service.draw(Some(draw));
        service.job(ALICE, "app=busy").start(&service).await;
        let after = service.user(ALICE).get(&path).await.ok();
        for name in ["in_flight", "lately"] {
            let more = before["study"][name].as_i64().unwrap() + 1;
            before["study"][name] = json!(more);
        }
        assert_eq!(after, before);
    }
}
