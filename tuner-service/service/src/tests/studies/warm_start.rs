//! A study begins with what another has learnt, and says so.

use io_autotune_engine::Role;
use serde_json::{Value, json};

use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestService};
use super::{steer, text, undo};

/// Runs a job of a user's to its verdict.
async fn ran(service: &TestService, uid: u32, request: &str) -> Value {
    let job = service.job(uid, request);
    job.goes(service, |_| Course::completed(5.0)).await
}

/// Makes a study that knows its default and one other parametrization.
pub(in super::super) async fn learnt(service: &TestService, uid: u32, application: &str) -> i64 {
    let request = format!("app={application}");
    ran(service, uid, &request).await;
    let study_id = service.study_id(application).await;
    let values = json!({ "values": { "cb_nodes": "4", "romio_cb_read": "disable" } });
    steer(service, uid, study_id, "pin", values).await.ok();
    for _ in 0..2 {
        let run = ran(service, uid, &request).await;
        assert_eq!(
            (&run["role"], &run["state"]),
            (&json!("pinned"), &json!("counted"))
        );
    }
    study_id
}

/// A study of a user's whose default has run once.
async fn target(service: &TestService, uid: u32, application: &str) -> i64 {
    let run = ran(service, uid, &format!("app={application}")).await;
    run["study_id"].as_i64().unwrap()
}

/// The values that [`learnt`] has pinned.
fn pinned() -> Value {
    json!({ "cb_nodes": 4, "romio_cb_read": "disable" })
}

#[tokio::test]
async fn a_dry_run_of_a_warm_start_changes_nothing() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-source").await;
    let study_id = target(&service, ALICE, "warm-target").await;
    let before = service.study("warm-target").await;
    let body = json!({ "from": source, "dry_run": true });
    let would = steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    let inherited = would["inherited"].as_array().unwrap();
    assert!(inherited.contains(&pinned()), "{would}");
    assert_eq!(would.get("epoch"), None);
    assert_eq!(would["from_application"], "warm-source");
    assert_eq!(would["study"].get("line"), None);
    assert_eq!(service.study("warm-target").await, before);
    assert_eq!(before["epoch"], 1);
}

#[tokio::test]
async fn a_warm_start_begins_with_anothers_ranks() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-source").await;
    let study_id = target(&service, ALICE, "warm-target").await;
    let body = json!({ "from": source, "dry_run": true });
    let would = steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    let body = json!({ "from": source, "why": "the same library" });
    let done = steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    assert_eq!(done["epoch"], 2);
    assert_eq!(done["inherited"], would["inherited"]);
    let study = service.study("warm-target").await;
    assert_eq!((&study["epoch"], &study["counted"]), (&json!(2), &json!(0)));
    let why = format!(
        "warm start with what study {source} (application warm-source) ranked best: the same library"
    );
    assert_eq!(study["opened"]["why"], why);
    assert_eq!(study["opened"]["takes"], "ranks");
    let lines = service.user(ALICE).get("/v1/audit").await.ok();
    assert_eq!(lines[0]["action"], "warm-start");
    assert_eq!(lines[0]["audit_id"], done["study"]["line"]);
    assert_eq!(lines[0]["detail"]["from_study"], source);
}

#[tokio::test]
async fn a_warm_starts_first_points_say_whose_they_are() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-source").await;
    let study_id = target(&service, ALICE, "warm-target").await;
    let body = json!({ "from": source });
    steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    let mut run = ran(&service, ALICE, "app=warm-target").await;
    while run["role"] == "baseline" {
        run = ran(&service, ALICE, "app=warm-target").await;
    }
    assert_eq!(run["role"], "design", "{run}");
    let reason = text(&run["reason"]);
    let expected = "that are run first of those that another study ranked best";
    assert!(reason.ends_with(expected), "{reason}");
    assert_eq!(run["epoch"], 2);
    assert_eq!(run["differs"], pinned());
}

#[tokio::test]
async fn a_warm_start_that_is_undone_gives_back_the_study_s_own_runs() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-source").await;
    let study_id = target(&service, ALICE, "warm-target").await;
    let body = json!({ "from": source });
    let done = steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    undo(&service, ALICE, &done["study"]).await.ok();
    let study = service.study("warm-target").await;
    assert_eq!(study["epoch"], 3);
    assert_eq!(study["opened"]["why"], "a warm start was undone");
    assert_eq!(study["opened"]["takes"], "runs");
    assert_eq!(
        study["counted"], 0,
        "the runs are of the epoch that they were of"
    );
    assert_eq!(study["default"]["n"], 1, "what was learnt before is there");
    let next = service.job(ALICE, "app=warm-target").start(&service).await;
    assert_eq!(next.role, Role::Baseline);
    assert_eq!(next.parametrization, service.default_of("romio"));
}

#[tokio::test]
async fn a_study_may_be_warm_started_twice() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-source").await;
    let study_id = target(&service, ALICE, "warm-target").await;
    let body = json!({ "from": source });
    let first = steer(&service, ALICE, study_id, "warm-start", body.clone())
        .await
        .ok();
    let second = steer(&service, ALICE, study_id, "warm-start", body)
        .await
        .ok();
    assert_eq!((&first["epoch"], &second["epoch"]), (&json!(2), &json!(3)));
    assert_eq!(first["inherited"], second["inherited"]);
}

#[tokio::test]
async fn a_warm_start_without_effect_is_refused_with_what_to_do() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-known").await;
    let alices = target(&service, ALICE, "warm-refused").await;
    let bobs = target(&service, BOB, "warm-refused").await;
    let asked = async |uid: u32, study: i64, from: i64| {
        let before = service
            .user(ADMIN)
            .get(&format!("/v1/studies/{study}"))
            .await;
        let answer = steer(&service, uid, study, "warm-start", json!({ "from": from })).await;
        let after = service
            .user(ADMIN)
            .get(&format!("/v1/studies/{study}"))
            .await;
        assert_eq!(before.ok(), after.ok(), "it is refused, and has changed");
        answer
    };
    assert_eq!(
        asked(ALICE, source, source).await.bad_request(),
        format!("study {source} cannot begin with what it has learnt itself: name another study")
    );
    assert_eq!(
        asked(ADMIN, alices, bobs).await.bad_request(),
        format!(
            "study {bobs} has learnt nothing yet: no run of another parametrization than the default \
             counted in its current epoch"
        )
    );
    assert_eq!(
        asked(ADMIN, source, bobs).await.refused(409, "conflict"),
        format!(
            "study {source} is pinned: its runs would not get what they begin with; end that first"
        )
    );
    for (kind, held) in [("freeze", "frozen"), ("off", "turned off")] {
        let mut order = json!({ "kind": kind, "scope": { "study": alices }, "why": "production" });
        service.user(ALICE).post("/v1/orders", &order).await.ok();
        assert_eq!(
            asked(ALICE, alices, source).await.refused(409, "conflict"),
            format!(
                "study {alices} is {held}: its runs would not get what they begin with; end that first"
            )
        );
        order["why"] = json!("over");
        service
            .user(ALICE)
            .post("/v1/orders/end", &order)
            .await
            .ok();
    }
    let run = ran(&service, BOB, "app=warm-refused,accelerator=page-cache").await;
    let other = run["study_id"].as_i64().unwrap();
    assert_eq!(
        asked(ADMIN, other, source).await.bad_request(),
        format!(
            "study {other} is of accelerator page-cache and study {source} of romio: they have no \
             parameter in common"
        )
    );
    let body = json!({ "objective": "marked" });
    steer(&service, ALICE, alices, "objective", body).await.ok();
    assert_eq!(
        asked(ALICE, alices, source).await.bad_request(),
        format!(
            "study {alices} makes marked_seconds small or large, and study {source} elapsed: what one \
             ranks says nothing of the other"
        )
    );
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn nobody_begins_with_anothers_study_or_learns_that_it_is_there() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-known").await;
    let bobs = target(&service, BOB, "warm-bob").await;
    let asked = async |from: i64| {
        let body = json!({ "from": from });
        let answer = steer(&service, BOB, bobs, "warm-start", body).await;
        answer.not_found().replace(&from.to_string(), "N")
    };
    let refusal = asked(source).await;
    assert_eq!(refusal, asked(99_999_999).await);
    let expected = "there is no study N among those you may see; `io-autotune status` lists them";
    assert_eq!(refusal, expected);
    assert_eq!(service.study("warm-bob").await["epoch"], 1);
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn an_admins_warm_start_from_another_user_says_no_users_name() {
    let service = TestService::with(QUICK).await;
    let source = learnt(&service, ALICE, "warm-known").await;
    let bobs = target(&service, BOB, "warm-bob").await;
    let body = json!({ "from": source, "why": "a good start" });
    steer(&service, ADMIN, bobs, "warm-start", body).await.ok();
    let path = format!("/v1/studies?study={bobs}");
    let shown = service.user(BOB).get(&path).await.text();
    assert!(
        shown.contains("(application warm-known) ranked best: a good start"),
        "{shown}"
    );
    for name in [format!("user{ALICE}"), ALICE.to_string()] {
        assert!(!shown.contains(&name), "{shown}");
    }
}
