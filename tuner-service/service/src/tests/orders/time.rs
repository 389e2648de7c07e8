//! Orders and pins with a date: in force before it, and over at it.

use std::time::Duration;

use jiff::Timestamp;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// So many seconds after now, by the service's clock, in the microseconds that the database keeps.
fn after(service: &TestService, seconds: i64) -> Value {
    let micros = service.now().as_microsecond() + seconds * 1_000_000;
    json!(Timestamp::from_microsecond(micros).unwrap())
}

#[tokio::test]
async fn a_pin_that_would_be_over_already_is_refused() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for seconds in [-1, 0] {
        let until = after(&service, seconds);
        let body = json!({ "values": {}, "until": until, "why": "a test" });
        let told = steer(&service, ALICE, study, "pin", body)
            .await
            .bad_request();
        let until = until.as_str().unwrap();
        assert_eq!(
            told,
            format!("it would be over already: {until} is not later than now")
        );
    }
    assert_eq!(lines(&service, ADMIN, "").await, Vec::<Value>::new());
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn an_order_that_would_be_over_already_is_refused() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    for seconds in [-1, 0] {
        for body in [
            what("off", of(APP)),
            what("freeze", of(APP)),
            pinning(of(APP), json!({})),
            with(what("off", of(APP)), "dry_run", true),
        ] {
            let body = with(body, "until", after(&service, seconds));
            let answer = service.user(ALICE).post("/v1/orders", body).await;
            let told = answer.bad_request();
            assert!(told.starts_with("it would be over already: "), "{told}");
            assert!(told.ends_with(" is not later than now"), "{told}");
        }
    }
    assert_eq!(lines(&service, ADMIN, "").await, Vec::<Value>::new());
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn what_was_to_come_is_over_where_the_time_has_come() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let until = after(&service, 1800);
    service.advance(HOUR).await;
    let body = json!({ "values": {}, "until": until, "why": "a test" });
    steer(&service, ALICE, study, "pin", body)
        .await
        .bad_request();
    let body = with(what("off", of(APP)), "until", until);
    let answer = service.user(ALICE).post("/v1/orders", body).await;
    answer.bad_request();
    assert_eq!(lines(&service, ADMIN, "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn each_kind_of_order_is_in_force_before_its_time_and_not_at_it() {
    let service = TestService::new().await;
    for (kind, role) in [
        ("pin", "pinned"),
        ("freeze", "best_known"),
        ("off", "observe"),
    ] {
        let study = begun(&service, ALICE, kind).await;
        let body = match kind {
            "pin" => pinning(of(kind), json!({ "cb_nodes": "2" })),
            _ => what(kind, of(kind)),
        };
        let until = after(&service, 7200);
        let given = order(&service, ALICE, with(body, "until", &until)).await;
        let line = &lines(&service, ALICE, "?limit=1").await[0];
        assert_eq!(line["detail"]["until"], until, "{line}");
        service.advance(HOUR).await;
        let told = orders(&service, ALICE).await;
        assert_eq!(each(&told, "order_id"), [&given["order_id"]]);
        assert_eq!(told[0]["until"], until);
        assert_eq!(next(&service, ALICE, kind).await["role"], role);
        service.advance(HOUR).await;
        assert_eq!(orders(&service, ALICE).await, Vec::<Value>::new());
        let study = seen(&service, ALICE, study).await;
        assert_eq!(
            (&study["ordered"], &study["decided_by"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            next(&service, ALICE, kind).await["role"],
            "baseline",
            "{role}"
        );
    }
}

#[tokio::test]
async fn a_pin_is_in_force_before_its_time_and_not_at_it() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let until = after(&service, 7200);
    let body = json!({ "values": { "cb_nodes": "2" }, "until": until, "why": "a test" });
    let pinned = steer(&service, ALICE, study, "pin", body).await.ok();
    assert_eq!(pinned["pin"]["until"], until);
    assert_eq!(pinned["decided_by"]["until"], until);
    service.advance(HOUR).await;
    let job = service.job(ALICE, "app=ocean");
    assert_eq!(job.runs(&service, 10.0).await["role"], "pinned");
    service.advance(HOUR).await;
    let told = seen(&service, ALICE, study).await;
    assert_eq!(
        (&told["pin"], &told["ordered"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
    let decided = service.run_of(job.job.job_id).await["decided_by"].clone();
    assert_eq!(
        (&decided["until"], &decided["is_over"]),
        (&until, &json!(true))
    );
    // There is nothing left to end.
    steer(&service, ALICE, study, "unpin", why())
        .await
        .bad_request();
}

#[tokio::test]
async fn what_decided_a_run_is_over_when_its_time_has_come() {
    let service = TestService::new().await;
    let until = after(&service, 3600);
    let body = with(what("off", of(APP)), "until", until);
    order(&service, ADMIN, body).await;
    let job = service.job(ALICE, "app=ocean");
    job.runs(&service, 10.0).await;
    let is_over = async || {
        let detail = service.run_of(job.job.job_id).await;
        detail["decided_by"]["is_over"].clone()
    };
    assert_eq!(is_over().await, false);
    service.advance(HOUR).await;
    assert_eq!(is_over().await, true);
}

#[tokio::test]
async fn an_order_whose_time_has_come_is_not_ended_and_not_in_the_way_of_another() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    let body = with(what("off", of(APP)), "until", after(&service, 3600));
    order(&service, ADMIN, body.clone()).await;
    let other = with(
        what("off", json!({ "uid": ALICE })),
        "until",
        after(&service, 3600),
    );
    order(&service, ADMIN, other).await;
    service.advance(HOUR).await;
    let ended = service
        .user(ADMIN)
        .post("/v1/orders/end", what("off", of(APP)));
    ended.await.refused(409, "conflict");
    // An admin's order about alice held hers; it is over.
    let given = order(&service, ALICE, what("off", json!({}))).await;
    let told = orders(&service, ALICE).await;
    assert_eq!(each(&told, "order_id"), [&given["order_id"]]);
    assert_eq!(next(&service, ALICE, APP).await["role"], "observe");
}

#[tokio::test]
async fn an_own_pin_whose_time_has_come_leaves_the_study_to_a_pin_of_many() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let values = json!({ "cb_nodes": "2" });
    order(&service, ALICE, pinning(of(APP), values)).await;
    let body = json!({
        "values": { "cb_nodes": "8" }, "until": after(&service, 3600), "why": "a test",
    });
    steer(&service, ALICE, study, "pin", body).await.ok();
    assert_eq!(
        next(&service, ALICE, APP).await["differs"],
        json!({ "cb_nodes": 8 })
    );
    service.advance(HOUR).await;
    assert_eq!(
        next(&service, ALICE, APP).await["differs"],
        json!({ "cb_nodes": 2 })
    );
}
