//! Runs from their start to their verdict, and what every other test relies on.

use std::time::Duration;

use io_autotune_engine::{Phase, Role};
use serde_json::json;

use super::{ADMIN, ALICE, BOB, TestService};

#[tokio::test]
async fn a_run_that_completed_counts_and_its_study_is_its_users() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 12.5).await;
    assert_eq!(run["state"], "counted", "{run}");
    assert_eq!(run["elapsed"], 12.5);
    let studies = service.user(ALICE).get("/v1/studies").await.ok();
    assert_eq!(studies[0]["application"], "ocean", "{studies}");
    assert_eq!(service.user(BOB).get("/v1/studies").await.ok(), json!([]));
}

#[tokio::test]
async fn a_study_measures_the_default_explores_settles_and_claims_what_it_gains() {
    let service = TestService::with("[study]\nbudget = 15\n").await;
    let default = service.default_of("romio");
    let answers = service
        .tune(ALICE, "app=ocean", 60, |given, number| {
            let noise = 0.01 * f64::from(number % 7);
            if *given == default { 10.0 } else { 8.0 + noise }
        })
        .await;
    let baseline = answers.iter().take(4);
    assert!(baseline.clone().all(|one| one.role == Role::Baseline));
    assert!(baseline.clone().all(|one| one.parametrization == default));
    let study = service.study("ocean").await;
    assert_eq!(study["phase"], json!(Phase::Settled), "{study}");
    let gain = &study["gain"];
    assert_eq!(gain["resolved"], true, "{study}");
    let share = gain["gain"].as_f64().unwrap();
    assert!((0.1..0.3).contains(&share), "two of ten seconds: {gain}");
}

#[tokio::test]
async fn replicas_show_the_same_and_have_the_same_time() {
    let service = TestService::new().await;
    let other = service.replica().await;
    service.job(ALICE, "app=ocean").runs(&service, 12.5).await;
    assert_eq!(other.study("ocean").await, service.study("ocean").await);
    let before = service.store.now().await.unwrap();
    service.advance(Duration::from_hours(5)).await;
    let after = other.store.now().await.unwrap();
    assert!(after.duration_since(before) >= jiff::SignedDuration::from_hours(5));
    assert!(other.now().duration_since(before) >= jiff::SignedDuration::from_hours(5));
}

#[tokio::test]
async fn a_reload_is_in_force_at_both_doors() {
    let service = TestService::new().await;
    service.user(ADMIN).get("/v1/doctor").await.ok();
    service
        .reload("[access]\nadmins = [5]\noperators = []\n")
        .await;
    service.user(5).get("/v1/doctor").await.ok();
    service.user(ADMIN).get("/v1/doctor").await.forbidden();
}
