//! Tests of the quotas: requests at once and in the long run, and the number of a user's studies.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use serde_json::json;
use tower::ServiceExt;

use super::super::service::Caller;
use super::bodies::Coming;
use super::{ADMIN, ALICE, Answer, BOB, BURST_BUFFER, COLLECTOR, ROOT, TestService, at_once};
use crate::door::Door;

/// Ten requests at once, and one in a hundred seconds: however slow a host is, it brings nothing.
const LITTLE: &str = "[users]\nrequests_per_second = 0.01\n";

/// Checks that the quota is used up; returns the seconds after which to ask again.
#[track_caller]
fn ask_again(answer: &Answer) -> u64 {
    let said = answer.refused(429, "too_many_requests");
    let seconds = answer.headers[RETRY_AFTER].to_str().unwrap();
    let expected = format!("you have asked too much at once; ask again in {seconds} s");
    assert_eq!(said, expected);
    assert!(
        !answer.is_signed,
        "a signature costs more than the refusal saves"
    );
    seconds.parse().unwrap()
}

/// Checks that a request is answered this number of times before the quota is used up; returns the
/// seconds after which to ask again.
async fn is_answered(caller: Caller<'_>, path: &str, times: u32) -> u64 {
    for _ in 0..times {
        caller.get(path).await.ok();
    }
    ask_again(&at_once(caller.get(path)).await)
}

/// Attack (floods): A user asks for lists without a pause, or for too many at once.
/// Outcome: The refusal says when to ask again, and the command does.
#[tokio::test]
async fn who_asks_too_much_is_told_when_to_ask_again() {
    let service = TestService::with(LITTLE).await;
    let bob = service.user(BOB);
    let seconds = is_answered(bob, "/v1/studies", 2).await;
    assert_eq!(seconds, 200, "a list is four requests, and two are left");
    service.advance(Duration::from_secs(seconds)).await;
    bob.get("/v1/studies").await.ok();
}

#[tokio::test]
async fn a_quota_is_one_users_affair() {
    let service = TestService::with(LITTLE).await;
    is_answered(service.user(BOB), "/v1/studies", 2).await;
    service.user(ALICE).get("/v1/studies").await.ok();
    service.job(BOB, "app=ocean").start(&service).await;
}

#[tokio::test]
async fn reading_counts_once_a_list_four_times_and_steering_ten_times() {
    let service = TestService::with(LITTLE).await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let study = service.study_id("ocean").await;
    let why = json!({"why": "a test"});
    let cost = async |path: &str, body: Option<&serde_json::Value>| {
        // A rested user has ten.
        service.advance(Duration::from_secs(1000)).await;
        let alice = service.user(ALICE);
        match body {
            Some(body) => alice.post(path, body).await.ok(),
            None => alice.get(path).await.ok(),
        };
        let mut left = 0;
        while at_once(alice.get("/v1/health")).await.status == 200 {
            left += 1;
        }
        10 - left
    };
    let of_the_study = format!("/v1/studies/{study}");
    assert_eq!(cost("/v1/accelerators", None).await, 1);
    assert_eq!(cost("/v1/orders", None).await, 4);
    assert_eq!(cost("/v1/preview", Some(&json!({"request": {}}))).await, 1);
    assert_eq!(cost("/v1/runs", None).await, 4);
    assert_eq!(cost("/v1/studies", None).await, 4);
    assert_eq!(cost("/v1/audit", None).await, 4);
    assert_eq!(cost(&of_the_study, None).await, 4);
    assert_eq!(cost(&format!("{of_the_study}/export"), None).await, 4);
    assert_eq!(cost(&format!("{of_the_study}/reset"), Some(&why)).await, 10);
    let freeze = json!({"kind": "freeze", "why": "a test", "scope": {}, "dry_run": true});
    assert_eq!(cost("/v1/orders", Some(&freeze)).await, 10);
}

/// Attack (floods): A user asks for lists without a pause, or for too many at once.
/// Outcome: The refusal says when to ask again, and the command does.
#[tokio::test]
async fn lists_of_a_user_are_bounded_in_the_long_run() {
    let service = TestService::with(LITTLE).await;
    is_answered(service.user(ALICE), "/v1/runs", 2).await;
    service.advance(Duration::from_secs(600)).await;
    is_answered(service.user(ALICE), "/v1/runs", 2).await;
}

/// Attack (floods): Users flood the service in every way at once, with endless resets.
/// Outcome: Every start is answered within its deadline, and resets keep to the quota.
#[tokio::test]
async fn steerings_are_bounded_by_their_cost() {
    let service = TestService::with(LITTLE).await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    let reset = format!("/v1/studies/{}/reset", service.study_id("ocean").await);
    let alice = service.user(ALICE);
    let why = json!({"why": "a flood"});
    alice.post(&reset, &why).await.ok();
    ask_again(&at_once(alice.post(&reset, &why)).await);
    let run = service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    assert_eq!(run["state"], "counted", "{run}");
    service.advance(Duration::from_secs(1000)).await;
    alice.post(&reset, &why).await.ok();
    ask_again(&at_once(alice.post(&reset, &why)).await);
    let resets = "select count(*) from audit where action = 'reset'";
    assert_eq!(service.database.number(resets).await, 2);
}

#[tokio::test]
async fn whoever_speaks_for_jobs_has_no_quota() {
    let sources = format!("{LITTLE}[slurm]\nsources = [\"jobcomp\"]\n");
    let service = TestService::with(&sources).await;
    let upload = format!("/v1/imports/{}", "0a".repeat(16));
    let none = json!({"cluster": "alpha", "outcomes": []});
    let directives = json!({"cluster": "alpha", "job_id": 1, "restart_count": 0, "run_id": 1,
                            "directives": {"kept": []}});
    let over = json!({"runs": []});
    let piece = json!({"place": 1, "text": "x"});
    for (uid, path, body, status) in [
        (ROOT, "/v1/runs/over", &over, 200),
        (ROOT, "/v1/outcomes", &none, 200),
        (COLLECTOR, "/v1/outcomes", &none, 200),
        (BURST_BUFFER, "/v1/runs/directives", &directives, 404),
        (ADMIN, upload.as_str(), &piece, 200),
    ] {
        for _ in 0..12 {
            let answer = service.user(uid).post(path, body).await;
            assert_eq!(answer.status.as_u16(), status, "{answer}");
        }
    }
    for _ in 0..12 {
        service.node().post("/v1/runs/over", &over).await.ok();
        service.user(ROOT).get("/v1/runs").await.ok();
    }
}

#[tokio::test]
async fn who_speaks_for_jobs_has_the_quota_of_a_user_elsewhere() {
    let service = TestService::with(LITTLE).await;
    for uid in [COLLECTOR, BURST_BUFFER, ADMIN] {
        is_answered(service.user(uid), "/v1/accelerators", 10).await;
    }
}

/// Attack (floods): Health, readiness or the API's description are asked for without end.
/// Outcome: They count as the user's or the host's; the database is asked once a second.
#[tokio::test]
async fn what_needs_no_credential_counts_as_its_users() {
    let service = TestService::with(LITTLE).await;
    let alice = service.user(ALICE);
    for path in ["/v1/health", "/v1/ready", "/v1/openapi.json"] {
        for _ in 0..3 {
            assert_eq!(alice.get(path).await.status, 200, "{path}");
        }
    }
    alice.get("/v1/accelerators").await.ok();
    for path in [
        "/v1/health",
        "/v1/ready",
        "/v1/openapi.json",
        "/v1/accelerators",
    ] {
        ask_again(&at_once(alice.get(path)).await);
    }
    assert_eq!(service.user(BOB).get("/v1/health").await.status, 200);
    for _ in 0..12 {
        assert_eq!(service.user(ROOT).get("/v1/health").await.status, 200);
        assert_eq!(service.node().get("/v1/health").await.status, 200);
    }
}

/// Attack (floods): Health, readiness or the API's description are asked for without end.
/// Outcome: They count as the user's or the host's; the database is asked once a second.
#[tokio::test]
async fn what_nobody_signed_counts_as_its_hosts() {
    let service = TestService::with(LITTLE).await;
    let host: IpAddr = "10.0.0.1".parse().unwrap();
    for uid in [ALICE, BOB] {
        for _ in 0..5 {
            let answer = service.user(uid).from(host, false).get("/v1/health").await;
            assert_eq!(answer.status, 200);
        }
    }
    let there = service.user(ALICE).from(host, false);
    ask_again(&at_once(there.get("/v1/health")).await);
    there.get("/v1/accelerators").await.ok();
    let elsewhere = service.user(ALICE).from("10.0.0.2".parse().unwrap(), false);
    assert_eq!(elsewhere.get("/v1/health").await.status, 200);
}

/// Attack (floods): Health, readiness or the API's description are asked for without end.
/// Outcome: They count as the user's or the host's; the database is asked once a second.
#[tokio::test]
async fn what_a_local_user_does_not_sign_counts_as_theirs() {
    let service = TestService::with(LITTLE).await;
    let alice = service.user(ALICE);
    let mut unsigned = alice.signed("GET", "/v1/studies", Vec::new());
    unsigned.credential = None;
    for _ in 0..10 {
        let answer = at_once(alice.send_as_it_is(unsigned.clone())).await;
        answer.refused(401, "unauthorized");
    }
    let signed = alice.signed("GET", "/v1/accelerators", Vec::new());
    ask_again(&at_once(alice.send_as_it_is(signed.clone())).await);
    service.advance(Duration::from_secs(100)).await;
    alice.send_as_it_is(signed).await.ok();
}

#[tokio::test]
async fn a_refusal_at_the_users_door_is_late_and_at_the_nodes_door_it_is_not() {
    let service = TestService::new().await;
    let late = async |door| {
        let alice = service.user(ALICE).at(door);
        let mut unsigned = alice.signed("POST", "/v1/runs/over", Vec::new());
        unsigned.credential = None;
        let began = tokio::time::Instant::now();
        alice
            .send_as_it_is(unsigned)
            .await
            .refused(401, "unauthorized");
        began.elapsed()
    };
    tokio::time::pause();
    let times = [late(Door::Users).await, late(Door::Users).await];
    let between = Duration::from_millis(500)..=Duration::from_millis(1501);
    assert!(times.iter().all(|time| between.contains(time)), "{times:?}");
    assert_ne!(times[0], times[1], "not all at once");
    assert!(late(Door::Nodes).await < Duration::from_millis(10));
}

#[tokio::test]
async fn who_moved_many_bytes_rests_until_they_are_paid() {
    let service = TestService::with("[users]\nbytes_per_second = 1000.0\n").await;
    let alice = service.user(ALICE);
    let long = format!(r#"{{"request": {{"comment": "{}"}}}}"#, "x".repeat(60_000));
    let answer = alice.send("POST", "/v1/preview", long.into_bytes()).await;
    answer.bad_request();
    let seconds = ask_again(&at_once(alice.get("/v1/accelerators")).await);
    assert!((42..=46).contains(&seconds), "{seconds}");
    service.user(BOB).get("/v1/accelerators").await.ok();
    service.advance(Duration::from_secs(seconds)).await;
    // Answers count too.
    alice.get("/v1/accelerators").await.ok();
    ask_again(&at_once(alice.get("/v1/accelerators")).await);
}

/// Attack (floods): A user asks for lists without a pause, or for too many at once.
/// Outcome: The refusal says when to ask again, and the command does.
#[tokio::test]
async fn so_many_requests_of_a_user_are_worked_on_at_once() {
    let service = TestService::with("[users]\nin_flight = 2\n").await;
    let alice = service.user(ALICE);
    let mut under_way = Vec::new();
    for _ in 0..2 {
        let (body, taken) = Coming::body(1, None);
        let request = alice.request(&alice.signed("POST", "/v1/preview", Vec::new()), body);
        let router = service.door(Door::Users).borrow().clone();
        under_way.push(tokio::spawn(router.oneshot(request)));
        while taken.load(std::sync::atomic::Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    }
    let signed = alice.signed("POST", "/v1/preview", Vec::new());
    let refused = at_once(alice.send_with(signed, Body::empty())).await;
    assert_eq!(ask_again(&refused), 2);
    service.user(BOB).get("/v1/accelerators").await.ok();
    under_way.pop().unwrap().abort();
    alice.get("/v1/accelerators").await.ok();
}

#[tokio::test]
async fn a_quota_is_another_one_after_a_reload() {
    let service = TestService::with(LITTLE).await;
    let seconds = is_answered(service.user(ALICE), "/v1/accelerators", 10).await;
    assert_eq!(seconds, 100);
    service
        .reload("[users]\nrequests_per_second = 0.02\n")
        .await;
    let seconds = is_answered(service.user(ALICE), "/v1/accelerators", 10).await;
    assert_eq!(seconds, 50);
}

const FULL: &str = "the user has 2 studies, the most of a user ([users] studies in service.toml): the \
                    job runs with its defaults and is not recorded";

/// A service in which alice has as many studies as a user may have.
async fn full() -> TestService {
    let service = TestService::with("[users]\nstudies = 2\n").await;
    for request in ["app=ocean", "app=river"] {
        service.job(ALICE, request).start(&service).await;
    }
    service
}

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test]
async fn a_user_has_so_many_studies_and_then_runs_the_default() {
    let service = full().await;
    let more = service.job(ALICE, "app=lake");
    assert_eq!(
        more.try_start(&service)
            .await
            .refused(422, "too_many_studies"),
        FULL
    );
    service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    service.job(BOB, "app=lake").start(&service).await;
    let alices = "select count(*) from studies s join applications a on a.id = s.application_id \
                  where a.owner_uid = 71001";
    assert_eq!(service.database.number(alices).await, 2);
}

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test]
async fn a_report_without_a_start_makes_no_study_too_many() {
    let service = full().await;
    let report = service.job(ALICE, "app=lake").reports(None, 1.0);
    let refused = service.node().post("/v1/runs/finish", &report).await;
    assert_eq!(refused.refused(422, "too_many_studies"), FULL);
    let report = service.job(ALICE, "app=ocean").reports(None, 1.0);
    service.node().post("/v1/runs/finish", &report).await.ok();
}

#[tokio::test]
async fn a_preview_says_that_a_job_would_be_of_a_study_too_many() {
    let service = full().await;
    let preview = async |uid: u32, app: &str| {
        let body = json!({"request": {"app": app}});
        let answer = service.user(uid).post("/v1/preview", body).await.ok();
        answer["line"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        preview(ALICE, "lake").await,
        "application lake: you have 2 studies, the most of a user, so this job runs with its defaults \
         and is not recorded; give jobs that do the same one name: --io-autotune=app=NAME"
    );
    assert!(!preview(ALICE, "ocean").await.contains("the most of a user"));
    assert!(!preview(BOB, "lake").await.contains("the most of a user"));
}
