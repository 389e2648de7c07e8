//! Reset, and what every change of a study has in common.

use io_autotune_engine::Role;
use serde_json::{Value, json};

use super::super::{ALICE, Course, QUICK, TestService};
use super::{history, steer, undo};

/// A study that has settled on something else than the default.
async fn settled(service: &TestService) -> Value {
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=ocean", 20, |given, number| {
            let noise = 0.01 * f64::from(number % 3);
            if *given == default { 10.0 } else { 7.0 + noise }
        })
        .await;
    let study = service.study("ocean").await;
    assert_eq!(study["phase"], "settled", "{study}");
    study
}

#[tokio::test]
async fn a_reset_begins_anew_and_keeps_history() {
    let service = TestService::with(QUICK).await;
    let study = settled(&service).await;
    let study_id = study["study_id"].as_i64().unwrap();
    let values = json!({ "values": { "cb_nodes": "4" } });
    steer(&service, ALICE, study_id, "pin", values).await.ok();
    let before = history(&service, ALICE, "ocean").await;

    let body = json!({ "why": "another machine" });
    let reset = steer(&service, ALICE, study_id, "reset", body).await.ok();
    for (name, expected) in [
        ("epoch", json!(2)),
        ("counted", json!(0)),
        ("phase", json!("baseline")),
        ("pin", Value::Null),
        ("ordered", Value::Null),
        ("gain", Value::Null),
        ("explored", json!([0, 8])),
    ] {
        assert_eq!(reset[name], expected, "{name}");
    }
    assert_eq!(reset["opened"]["why"], "reset: another machine");
    assert_eq!(history(&service, ALICE, "ocean").await, before);
    let next = service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(next.role, Role::Baseline);
    assert_eq!(next.reason, "baseline run 1 of 2");
}

#[tokio::test]
async fn a_reset_that_is_undone_gives_back_what_was_learnt_and_the_pin() {
    let service = TestService::with(QUICK).await;
    let study = settled(&service).await;
    let study_id = study["study_id"].as_i64().unwrap();
    let values = json!({ "values": { "cb_nodes": "4" } });
    let pinned = steer(&service, ALICE, study_id, "pin", values).await.ok();
    let reset = steer(&service, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    undo(&service, ALICE, &reset).await.ok();
    let back = service.study("ocean").await;
    assert_eq!(back["epoch"], 3);
    assert_eq!(back["opened"]["why"], "a reset was undone");
    assert_eq!(back["default"], study["default"]);
    assert_eq!(back["recommended"], study["recommended"]);
    assert_eq!(
        back["pin"]["parametrization"],
        pinned["pin"]["parametrization"]
    );
    let again = undo(&service, ALICE, &reset).await;
    let refusal = again.refused(409, "conflict");
    assert!(refusal.contains("cannot be undone"), "{refusal}");
}

#[tokio::test]
async fn runs_that_are_in_flight_at_a_reset_stay_with_the_epoch_before() {
    let service = TestService::with(QUICK).await;
    let study = settled(&service).await;
    let study_id = study["study_id"].as_i64().unwrap();
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    steer(&service, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    job.finish(&service, &job.reports(Some(&started), 7.0))
        .await;
    job.ends(&service, "COMPLETED", 7.0);
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    assert_eq!(
        (&run["epoch"], &run["state"]),
        (&json!(1), &json!("counted"))
    );
    let after = service.study("ocean").await;
    assert_eq!((&after["epoch"], &after["counted"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn every_change_reads_its_reason_and_changes_nothing_with_a_bad_one() {
    let service = TestService::with(QUICK).await;
    let run = |_: &_| Course::completed(5.0);
    service.ran(ALICE, "app=ocean", run).await;
    let before = service.study("ocean").await;
    let study_id = before["study_id"].as_i64().unwrap();
    let long = "x".repeat(501);
    for (what, mut body) in [
        ("reset", json!({})),
        ("accept", json!({})),
        ("unpin", json!({})),
        ("pin", json!({ "values": { "cb_nodes": "4" } })),
        ("objective", json!({ "objective": "marked" })),
        ("warm-start", json!({ "from": 1 })),
    ] {
        for why in ["a\nb", "a\u{202e}b", &long] {
            body["why"] = json!(why);
            let refused = steer(&service, ALICE, study_id, what, body.clone()).await;
            let refusal = refused.bad_request();
            assert!(
                refusal.starts_with("say why, in at most 500 characters"),
                "{what}: {refusal}"
            );
            assert!(refusal.ends_with("--why \"...\""), "{what}: {refusal}");
        }
        body["why"] = json!("x");
        body["colour"] = json!("red");
        let refused = steer(&service, ALICE, study_id, what, body).await;
        assert!(refused.bad_request().contains("colour"), "{what}");
    }
    assert_eq!(service.study("ocean").await, before);
    assert_eq!(service.user(ALICE).get("/v1/audit").await.ok(), json!([]));
}

#[tokio::test]
async fn a_change_of_a_study_that_is_not_there_is_refused_as_one_of_anothers_is() {
    let service = TestService::with(QUICK).await;
    for (what, body) in [
        ("reset", json!({})),
        ("accept", json!({})),
        ("unpin", json!({})),
        ("pin", json!({})),
        ("objective", json!({ "objective": "marked" })),
        ("warm-start", json!({ "from": 1 })),
    ] {
        let refused = steer(&service, ALICE, 4711, what, body).await;
        assert_eq!(
            refused.not_found(),
            "there is no study 4711 among those you may see; `io-autotune status` lists them",
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_pin_to_what_is_recommended_needs_a_recommendation() {
    let service = TestService::with(QUICK).await;
    let run = |_: &_| Course::completed(5.0);
    service.ran(ALICE, "app=young", run).await;
    let young = service.study_id("young").await;
    let refused = steer(&service, ALICE, young, "pin", json!({})).await;
    assert_eq!(
        refused.bad_request(),
        format!("study {young} recommends nothing yet: name the values to pin")
    );
    let study = settled(&service).await;
    let study_id = study["study_id"].as_i64().unwrap();
    let pinned = steer(&service, ALICE, study_id, "pin", json!({}))
        .await
        .ok();
    assert_eq!(pinned["pin"]["parametrization"], study["recommended"]);
}
