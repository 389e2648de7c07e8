//! Each decision is replayed from its stored inputs: the result is the same, or the difference is
//! shown.

use std::collections::BTreeSet;
use std::time::Duration;

use io_autotune_engine::{Parametrization, Role};
use io_autotune_protocol::{Request, StartAnswer};
use serde_json::{Value, json};

use super::super::studies::{
    COMPUTING, history, learnt, little, overridden, sets_it, steer, text, until_settled,
};
use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestService};
use super::replays;

/// Replays each run of an application, each of which must come out the same; returns their roles.
async fn replayed(service: &TestService, application: &str) -> BTreeSet<String> {
    let path = format!("/v1/runs?app={application}");
    let runs: Vec<Value> = service.user(ADMIN).get(&path).await.read();
    let mut roles = BTreeSet::new();
    for run in &runs {
        for replay in replays(service, ADMIN, &run["job_id"]).await {
            if replay["run_id"] != run["run_id"] {
                continue;
            }
            assert_eq!(replay["same"], true, "{replay}");
            assert_eq!(replay["note"], Value::Null, "{replay}");
            assert_eq!(replay["given"], replay["recomputed"]);
            for name in ["phase", "role", "parametrization", "reason"] {
                assert_eq!(replay["recomputed"][name], run[name], "{name}: {replay}");
            }
            roles.insert(text(&run["role"]).to_owned());
        }
    }
    roles
}

/// Roles in words.
fn roles<const N: usize>(words: [&str; N]) -> BTreeSet<String> {
    words.map(str::to_owned).into()
}

fn completed(_: &StartAnswer) -> Course {
    Course::completed(5.0)
}

#[tokio::test]
async fn every_decision_is_made_again_from_what_was_kept() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=ocean", 24, |given, number| {
            let noise = 0.05 * f64::from(number % 5);
            if *given == default {
                10.0 + noise
            } else {
                7.0 + noise
            }
        })
        .await;
    let found = replayed(&service, "ocean").await;
    for role in ["baseline", "settled", "control"] {
        assert!(found.contains(role), "{found:?}");
    }
    let explored = found.contains("design") || found.contains("search");
    assert!(explored, "{found:?}");
    // A replica reads the same inputs.
    let other = service.replica().await;
    assert_eq!(replayed(&other, "ocean").await, found);
}

#[tokio::test]
async fn every_suggestion_can_be_made_again_from_what_was_stored() {
    let service = TestService::with(QUICK).await;
    // Several at once: what was in flight is an input as well.
    for together in [1, 1, 10] {
        let mut jobs = Vec::new();
        for _ in 0..together {
            let job = service.job(ALICE, "app=ocean");
            let started = job.start(&service).await;
            jobs.push((job, started));
        }
        for (job, started) in &jobs {
            job.finish(&service, &job.reports(Some(started), 5.0)).await;
            job.ends(&service, "COMPLETED", 5.0);
        }
        service.poll().await;
    }
    let study_id = service.study_id("ocean").await;
    let values = json!({ "values": { "cb_nodes": "4" } });
    steer(&service, ALICE, study_id, "pin", values).await.ok();
    service.ran(ALICE, "app=ocean", completed).await;
    let found = replayed(&service, "ocean").await;
    assert!(
        found.is_superset(&roles(["baseline", "best_known", "pinned"])),
        "{found:?}"
    );
    let explored = found.contains("design") || found.contains("search");
    assert!(explored, "{found:?}");
}

#[tokio::test]
async fn what_orders_decided_is_made_again_after_they_have_ended() {
    let service = TestService::with(QUICK).await;
    for _ in 0..2 {
        service.ran(ALICE, "app=ocean", completed).await;
    }
    for (kind, values) in [
        ("freeze", Value::Null),
        ("off", Value::Null),
        ("pin", json!({ "cb_nodes": "4" })),
    ] {
        let mut order =
            json!({ "kind": kind, "scope": { "application": "ocean" }, "why": "a test" });
        if !values.is_null() {
            order["values"] = values;
        }
        service.user(ADMIN).post("/v1/orders", &order).await.ok();
        service.ran(ALICE, "app=ocean", completed).await;
        order.as_object_mut().unwrap().remove("values");
        service
            .user(ADMIN)
            .post("/v1/orders/end", &order)
            .await
            .ok();
    }
    let expected = roles(["baseline", "best_known", "observe", "pinned"]);
    assert_eq!(replayed(&service, "ocean").await, expected);
}

#[tokio::test]
async fn what_a_pin_decided_is_made_again_after_a_reset() {
    let service = TestService::with(QUICK).await;
    let study_id = learnt(&service, ALICE, "ocean").await;
    steer(&service, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    service.ran(ALICE, "app=ocean", completed).await;
    let expected = roles(["baseline", "pinned"]);
    assert_eq!(replayed(&service, "ocean").await, expected);
}

#[tokio::test]
async fn what_a_time_limit_or_a_restart_decided_is_made_again() {
    let service = TestService::with(QUICK).await;
    let work = |_: &_| Course {
        limit: "1:00",
        ..Course::completed(27.0)
    };
    for _ in 0..3 {
        service.ran(ALICE, "app=ocean", work).await;
    }
    let mut long = service.job(ALICE, "app=ocean");
    long.limit_seconds = Some(600);
    long.goes(&service, work).await;
    let mut again = service.job(ALICE, "app=ocean");
    again.job.restart_count = 2;
    again.start(&service).await;
    let found = replayed(&service, "ocean").await;
    assert!(
        found.is_superset(&roles(["baseline", "best_known"])),
        "{found:?}"
    );
    let reasons = history(&service, ALICE, "ocean").await;
    let reasons: Vec<&str> = reasons.iter().map(|run| text(&run["reason"])).collect();
    for word in [
        "leaves no room to explore",
        "a restarted job never explores",
    ] {
        assert!(
            reasons.iter().any(|reason| reason.contains(word)),
            "{reasons:?}"
        );
    }
}

#[tokio::test]
async fn what_was_only_observed_is_made_again() {
    let service = TestService::with(QUICK).await;
    for seconds in [0.1, 0.1, 2.0, 2.0, 0.1, 2.0] {
        let course = |_: &_| Course::completed(seconds);
        service.ran(ALICE, "app=mixed,mode=observe", course).await;
    }
    let run = service.ran(ALICE, "app=mixed", completed).await;
    assert!(text(&run["reason"]).contains("app="), "{run}");
    assert_eq!(replayed(&service, "mixed").await, roles(["observe"]));
    let study_id = service.study_id("mixed").await;
    steer(&service, ALICE, study_id, "accept", json!({}))
        .await
        .ok();
    service.ran(ALICE, "app=mixed", completed).await;
    assert_eq!(replayed(&service, "mixed").await.len(), 2);

    let mut nameless = service.job(ALICE, "");
    nameless.request = Request {
        job_name: Some("wrap".to_owned()),
        ..Request::default()
    };
    let run = nameless.goes(&service, completed).await;
    let application = text(&run["application"]).to_owned();
    assert_eq!(replayed(&service, &application).await, roles(["observe"]));
}

#[tokio::test]
async fn what_another_study_s_ranks_decided_is_made_again() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "source").await;
    let run = service.ran(ALICE, "app=target", completed).await;
    let target = run["study_id"].as_i64().unwrap();
    let body = json!({ "from": source });
    steer(&service, ALICE, target, "warm-start", body)
        .await
        .ok();
    for _ in 0..5 {
        service.ran(ALICE, "app=target", completed).await;
    }
    let found = replayed(&service, "target").await;
    assert!(
        found.is_superset(&roles(["baseline", "design"])),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_the_site_s_other_studies_decided_is_made_again() {
    let service = TestService::with("[study]\nbaseline_runs = 2\n").await;
    let default = service.default_of("romio");
    let elapsed = |given: &Parametrization, _| {
        if *given == default { 10.0 } else { 6.0 }
    };
    service.tune(BOB, "app=source", 16, elapsed).await;
    // A service asks once a second what others have learnt; this one has not asked yet.
    let service = service.replica().await;
    service.tune(ALICE, "app=ocean", 6, elapsed).await;
    let runs = history(&service, ALICE, "ocean").await;
    let mut reasons = runs.iter().map(|run| text(&run["reason"]));
    assert!(
        reasons.any(|reason| reason.contains("other study of this accelerator")),
        "{runs:?}"
    );
    // What they learn later was not known then.
    service.tune(BOB, "app=source", 4, elapsed).await;
    replayed(&service, "ocean").await;
}

#[tokio::test]
async fn what_several_users_runs_decided_is_made_again() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let users = [ALICE, BOB, 71_003, 71_004, 71_005];
    for uid in users {
        service
            .job(uid, "app=shared")
            .goes(&service, completed)
            .await;
    }
    let studies: Vec<Value> = service
        .user(ADMIN)
        .get("/v1/studies?app=shared")
        .await
        .read();
    for study in &studies {
        let study_id = study["study_id"].as_i64().unwrap();
        service
            .store
            .share(study_id, Some("account physics"))
            .await
            .unwrap();
    }
    for round in 0..3 {
        for uid in users {
            let seconds = 5.0 + 0.01 * f64::from(round);
            let course = |started: &StartAnswer| {
                let is_default = started.parametrization == default;
                Course::completed(if is_default { seconds } else { 0.8 * seconds })
            };
            service.job(uid, "app=shared").goes(&service, course).await;
        }
    }
    let runs = service.user(ADMIN).get("/v1/runs?app=shared").await;
    let runs: Vec<Value> = runs.read();
    let mut reasons = runs.iter().map(|run| text(&run["reason"]));
    assert!(
        reasons.any(|reason| reason.contains("by the runs of 5 users who share them")),
        "{runs:?}"
    );
    replayed(&service, "shared").await;
}

#[tokio::test]
async fn what_was_held_at_its_default_is_made_again() {
    let service = TestService::with(QUICK).await;
    let study_id = overridden(&service, "held").await;
    steer(&service, ALICE, study_id, "unpin", json!({}))
        .await
        .ok();
    for _ in 0..5 {
        service.ran(ALICE, "app=held", sets_it(true)).await;
    }
    let found = replayed(&service, "held").await;
    assert!(
        found.contains("design") || found.contains("search"),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_has_nothing_to_win_is_made_again() {
    let service = TestService::with(&little()).await;
    let computing = |_: &_| Course::completed(3.0).measured(COMPUTING);
    until_settled(&service, "computes", computing).await;
    let found = replayed(&service, "computes").await;
    assert!(
        found.is_superset(&roles(["baseline", "settled"])),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_another_objective_decided_is_made_again() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let course = |started: &StartAnswer| {
        let is_default = started.parametrization == default;
        let marked = if is_default { 0.4 } else { 0.1 };
        let elapsed = if is_default { 0.6 } else { 1.6 };
        Course::completed(elapsed).measured(&[("marked_seconds", marked)])
    };
    service.ran(ALICE, "app=ocean", course).await;
    let study_id = service.study_id("ocean").await;
    let body = json!({ "objective": "marked" });
    steer(&service, ALICE, study_id, "objective", body)
        .await
        .ok();
    for _ in 0..20 {
        service.ran(ALICE, "app=ocean", course).await;
    }
    let found = replayed(&service, "ocean").await;
    assert!(
        found.is_superset(&roles(["baseline", "control", "settled"])),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_was_chosen_in_the_place_of_the_default_accelerator_is_made_again() {
    let otherwise = format!("{}[accelerators]\notherwise = [\"page-cache\"]\n", little());
    let service = TestService::with(&otherwise).await;
    let writing = |started: &StartAnswer| {
        let mut measures = vec![
            ("measured_steps", 1.0),
            ("asked_written_bytes", 4e7),
            ("storage_written_bytes", 4e7),
            ("changeable_nodes", 1.0),
        ];
        if !started.delivery.files.is_empty() {
            measures.push(("delivered_files", 1.0));
        }
        Course::completed(3.0).measured(&measures)
    };
    let mut accelerators = Vec::new();
    for _ in 0..4 {
        let run = service.ran(ALICE, "app=writes", writing).await;
        accelerators.push(text(&run["accelerator"]).to_owned());
    }
    assert_eq!(accelerators, ["romio", "romio", "page-cache", "page-cache"]);
    replayed(&service, "writes").await;
    let runs = history(&service, ALICE, "writes").await;
    let reason = text(&runs[3]["reason"]);
    assert!(
        reason.contains("page-cache, because a run writes 40.0 MB"),
        "{reason}"
    );
}

#[tokio::test]
async fn what_a_start_decided_that_could_not_wait_is_made_again() {
    let service = TestService::with(QUICK).await;
    for _ in 0..2 {
        service.ran(ALICE, "app=ocean", completed).await;
    }
    let study_id = service.study_id("ocean").await;
    // An assessment holds the study's row.
    let held = service.store.assess(study_id).await.unwrap();
    let started = service.job(ALICE, "app=ocean").start(&service).await;
    drop(held);
    assert_eq!(started.role, Role::BestKnown);
    let busy = "the study was busy with other starts";
    assert!(started.reason.contains(busy), "{}", started.reason);
    let found = replayed(&service, "ocean").await;
    assert_eq!(found, roles(["baseline", "best_known"]));
}

/// A run of the user's own study, and its replay as the user sees it after the store was changed.
async fn replay_after(service: &TestService, change: &str) -> Value {
    let run = service.ran(ALICE, "app=ocean", completed).await;
    let change = format!("update runs set {change} where id = {}", run["run_id"]);
    service.database.execute(&change).await;
    let mut replays = replays(service, ALICE, &run["job_id"]).await;
    assert_eq!(replays.len(), 1);
    replays.remove(0)
}

/// Attack (database): A run's parametrization or reason is changed in the database.
/// Outcome: Its replay does not come out the same.
#[tokio::test]
async fn a_suggestion_that_was_changed_afterwards_is_told() {
    let service = TestService::with(QUICK).await;
    for change in [
        "parametrization = jsonb_set(parametrization, '{cb_nodes}', '8')",
        "reason = 'baseline run 7 of 2'",
        "role = 'pinned'",
        "suggestion = jsonb_set(suggestion, '{overrides,observed}', 'true')",
    ] {
        let replay = replay_after(&service, change).await;
        assert_eq!(replay["same"], false, "{change}: {replay}");
        assert!(replay["recomputed"].is_object(), "{change}: {replay}");
        assert_ne!(replay["given"], replay["recomputed"], "{change}");
    }
}

#[tokio::test]
async fn what_cannot_be_replayed_says_why() {
    let service = TestService::with(QUICK).await;
    for (change, note) in [
        (
            "suggestion = jsonb_build_object('no_start', 'x')",
            "the run had no start: there was nothing to decide",
        ),
        (
            "suggestion = suggestion || '{\"others_elsewhere\": 4}'",
            "it was made from the runs of other studies too, which the service that it was exported from \
             has: nothing to replay",
        ),
        (
            "suggestion = suggestion || '{\"sources_elsewhere\": 4}'",
            "it was made from the runs of other studies too, which the service that it was exported from \
             has: nothing to replay",
        ),
        (
            "suggestion = suggestion - 'overrides'",
            "it was decided by an earlier version, which did not keep all that it was made from",
        ),
        (
            "suggestion = suggestion || '{\"judged\": \"x\"}'",
            "what it was made from cannot be read: invalid type: string \"x\", expected i64",
        ),
    ] {
        let replay = replay_after(&service, change).await;
        assert_eq!(replay["note"], note, "{change}");
        assert_eq!(replay["same"], false, "{change}");
        assert_eq!(replay["recomputed"], Value::Null, "{change}");
        assert!(replay["given"]["reason"].is_string(), "{change}");
    }
}

#[tokio::test]
async fn another_version_or_another_seed_is_named() {
    let service = TestService::with(QUICK).await;
    let change = "suggestion = suggestion || '{\"engine_version\": \"0.1\"}'";
    let replay = replay_after(&service, change).await;
    let note = text(&replay["note"]);
    assert!(
        note.starts_with("it was decided by 0.1 and recomputed by "),
        "{note}"
    );
    assert!(
        note.ends_with(": another version may answer otherwise"),
        "{note}"
    );
    assert_eq!(replay["same"], true, "this one has answered the same");
    let change = "suggestion = suggestion || '{\"seed\": \"7\"}'";
    let replay = replay_after(&service, change).await;
    let note = text(&replay["note"]);
    assert!(
        note.starts_with("it was made from the seed 7 and its epoch's is "),
        "{note}"
    );
}

#[tokio::test]
async fn a_run_without_a_start_has_nothing_to_replay() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.finish(&service, &job.reports(None, 5.0)).await;
    let replays = replays(&service, ALICE, &json!(job.job.job_id)).await;
    let note = "the run had no start: there was nothing to decide";
    assert_eq!(replays[0]["note"], note);
    assert_eq!(replays[0]["same"], false);
}

#[tokio::test]
async fn a_run_whose_inputs_retention_has_removed_says_when() {
    let service = TestService::with(QUICK).await;
    for _ in 0..3 {
        service.ran(ALICE, "app=ocean", completed).await;
    }
    service.advance(Duration::from_hours(24 * 200)).await;
    let body = json!({ "older_than_days": 30, "why": "the disk is full" });
    let removed = service.user(ADMIN).post("/v1/retention", &body).await.ok();
    assert_eq!(removed["trimmed"], 3, "{removed}");
    let today = service.now().to_string();
    let runs = history(&service, ALICE, "ocean").await;
    assert_eq!(runs.len(), 3, "what the study needs is kept");
    let replays = replays(&service, ALICE, &runs[2]["job_id"]).await;
    let note = text(&replays[0]["note"]);
    let expected = format!(
        "what it was made from was removed by retention on {}: nothing to replay",
        &today[..10]
    );
    assert_eq!(note, expected);
    let path = format!("/v1/runs/{}", runs[2]["job_id"]);
    let detail = service.user(ALICE).get(&path).await.ok()[0].clone();
    assert_eq!(detail["reports"], json!([]));
    assert_eq!(detail["expected"], Value::Null);
    assert_eq!(detail["run"], runs[2]);
}
