//! Tests of a user's own rights: orders, exports and warm starts; and of the rights of admins
//! alone.

use serde_json::json;

use super::*;

async fn order(service: &TestService, uid: u32, kind: &str, scope: Value) -> Answer {
    let body = json!({"kind": kind, "scope": scope, "why": "a test"});
    service.user(uid).post("/v1/orders", body).await
}

async fn end(service: &TestService, uid: u32, kind: &str, scope: Value) -> Answer {
    let body = json!({"kind": kind, "scope": scope, "why": "a test"});
    service.user(uid).post("/v1/orders/end", body).await
}

async fn undo(service: &TestService, uid: u32, line: &Value) -> Answer {
    let path = format!("/v1/audit/{line}/undo");
    let body = json!({"why": "it was a mistake"});
    service.user(uid).post(&path, body).await
}

/// The order or pin that holds the study of a user's application, as an admin sees it.
async fn ordered(service: &TestService, uid: u32, app: &str) -> Value {
    let path = format!("/v1/studies?app={app}&uid={uid}");
    let studies = service.user(ADMIN).get(&path).await.ok();
    studies[0]["ordered"].clone()
}

/// Promise: a user steers another user's study
///
/// Attack (others): A user orders for all studies, or for another's.
/// Outcome: An order without a user is about one's own studies.
#[tokio::test]
async fn a_user_orders_for_their_own_studies_alone() {
    let service = TestService::new().await;
    for uid in [ALICE, BOB] {
        service.job(uid, "app=ocean").runs(&service, 10.0).await;
    }
    for (kind, scope) in [
        ("freeze", json!({"uid": ALICE})),
        ("off", json!({"uid": ALICE, "application": "ocean"})),
        ("off", json!({"uid": ALICE, "application": "never"})),
    ] {
        for answer in [
            order(&service, BOB, kind, scope.clone()).await,
            end(&service, BOB, kind, scope).await,
        ] {
            assert_eq!(
                answer.forbidden(),
                "only admins steer the studies of others: leave the user out"
            );
        }
    }
    let pin = json!({"kind": "pin", "scope": {"uid": ALICE}, "values": {}, "why": "mischief"});
    service.user(BOB).post("/v1/orders", pin).await.forbidden();
    for scope in [
        json!({}),
        json!({"application": "ocean"}),
        json!({"uid": BOB}),
    ] {
        let given = order(&service, BOB, "off", scope.clone()).await.ok();
        let owners = ids(&given["studies"], "uid");
        assert_eq!(owners, [i64::from(BOB)], "{scope}");
        assert_eq!(ordered(&service, ALICE, "ocean").await, Value::Null);
        assert_eq!(ordered(&service, BOB, "ocean").await, "off");
        end(&service, BOB, "off", scope).await.ok();
        assert_eq!(ordered(&service, BOB, "ocean").await, Value::Null);
    }
}

/// Promise: a user steers another user's study
///
/// Attack (others): A user or an operator undoes what an admin has ordered for everyone.
/// Outcome: It is told to all, and holds.
#[tokio::test]
async fn what_is_ordered_for_everyone_is_told_to_all_and_taken_back_by_admins() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let given = order(&service, ADMIN, "freeze", json!({})).await.ok();
    for uid in [ALICE, BOB] {
        let orders = service.user(uid).get("/v1/orders").await.ok();
        assert_eq!(orders[0]["kind"], "freeze");
        assert!(orders[0]["may_end"].as_bool() != Some(true), "{orders}");
        assert_eq!(
            undo(&service, uid, &given["line"]).await.forbidden(),
            "only admins undo what is about everyone's studies"
        );
        // For a user the scope without a user is the user's own, which has no such order.
        let told = end(&service, uid, "freeze", json!({})).await;
        let told = told.refused(409, "conflict");
        assert!(
            told.starts_with("no freeze of this scope is in force"),
            "{told}"
        );
    }
    assert_eq!(ordered(&service, ALICE, "ocean").await, "frozen");
    undo(&service, ADMIN, &given["line"]).await.ok();
    assert_eq!(ordered(&service, ALICE, "ocean").await, Value::Null);
}

/// Attack (others): A user undoes what an admin has ordered for their studies, or orders over it.
/// Outcome: It holds, and the refusal names admin and reason; an order about one study its owner
/// may end.
#[tokio::test]
async fn a_user_takes_back_no_order_of_an_admins_but_that_of_one_study() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let of_alice = json!({"uid": ALICE});
    let given = order(&service, ADMIN, "freeze", of_alice.clone())
        .await
        .ok();
    let told = format!("uid {ADMIN} ordered that (a test): they or an admin take it back");
    for answer in [
        undo(&service, ALICE, &given["line"]).await,
        end(&service, ALICE, "freeze", json!({})).await,
        order(&service, ALICE, "freeze", json!({})).await,
    ] {
        assert_eq!(answer.forbidden(), told);
    }
    assert_eq!(ordered(&service, ALICE, "ocean").await, "frozen");
    end(&service, ADMIN, "freeze", of_alice).await.ok();
    let one = json!({"study": study});
    order(&service, ADMIN, "off", one.clone()).await.ok();
    end(&service, ALICE, "off", one).await.ok();
    assert_eq!(ordered(&service, ALICE, "ocean").await, Value::Null);
}

/// Promise: a user steers another user's study
///
/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn a_user_steers_and_undoes_nothing_of_another() {
    let service = TestService::new().await;
    for uid in [ALICE, BOB] {
        service.job(uid, "app=ocean").runs(&service, 10.0).await;
    }
    let studies = service.user(ALICE).get("/v1/studies").await.ok();
    let study = studies[0]["study_id"].clone();
    let path = format!("/v1/studies/{study}/pin");
    let pin = json!({"values": {"cb_nodes": "2"}, "why": "a test"});
    let pinned = service.user(ALICE).post(&path, pin).await.ok();
    let line = &pinned["line"];
    let lines = service.user(ALICE).get("/v1/audit").await.ok();
    assert_eq!(lines[0]["application"], "ocean");
    assert_eq!(lines[0]["audit_id"], *line);
    assert_eq!(service.user(BOB).get("/v1/audit").await.ok(), json!([]));
    let told = undo(&service, BOB, line).await.not_found();
    assert!(
        told.starts_with(&format!("there is no line {line}")),
        "{told}"
    );
    let shown = service.user(BOB).get(&format!("/v1/studies/{study}")).await;
    let told = shown.not_found();
    assert!(
        told.starts_with(&format!("there is no study {study}")),
        "{told}"
    );
    let orders = order(&service, BOB, "off", json!({"study": study})).await;
    orders.not_found();
    undo(&service, ALICE, line).await.ok();
    let studies = service.user(ALICE).get("/v1/studies").await.ok();
    assert_eq!(studies[0]["pin"], Value::Null);
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn a_user_exports_their_own_and_imports_nothing() {
    let service = TestService::new().await;
    let of_alice = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let of_bob = service.job(BOB, "app=ocean").runs(&service, 10.0).await;
    let export = async |uid, run: &Value| {
        let path = format!("/v1/studies/{}/export", run["study_id"]);
        service.user(uid).get(&path).await
    };
    let told = export(BOB, &of_alice).await.not_found();
    assert!(told.contains("there is no study"), "{told}");
    let own = export(BOB, &of_bob).await.ok();
    let lines = own["lines"].as_array().unwrap().iter();
    let records: Vec<Value> = lines
        .map(|line| match line {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            line => line.clone(),
        })
        .collect();
    let owners = records
        .iter()
        .filter_map(|one| one["study"]["owner_uid"].as_u64());
    assert_eq!(Vec::from_iter(owners), [u64::from(BOB)]);
    let upload = "/v1/imports/0123456789abcdef0123456789abcdef";
    let chunk = json!({"place": 0, "text": "x".repeat(400_000)});
    let end = json!({"chunks": 1, "step": "import", "why": "mischief"});
    let told = "only admins import studies: [access] admins of service.toml names them";
    for uid in [BOB, OPERATOR, ROOT, COLLECTOR] {
        let user = service.user(uid);
        // Longer than a user's body may be, and told all the same who may.
        assert_eq!(user.post(upload, &chunk).await.forbidden(), told);
        let end = user.post(&format!("{upload}/end"), &end).await;
        assert_eq!(end.forbidden(), told);
    }
    let chunks = "select count(*) from import_chunks";
    assert_eq!(service.database.number(chunks).await, 0);
}

#[tokio::test]
async fn only_admins_remove_runs() {
    let service = TestService::new().await;
    let would = json!({"dry_run": true, "older_than_days": 30, "why": "a test"});
    let does = json!({"older_than_days": 30, "why": "a test"});
    for uid in [
        ALICE,
        OPERATOR,
        REPORT_READER,
        ROOT,
        COLLECTOR,
        BURST_BUFFER,
    ] {
        for body in [&would, &does] {
            let told = service.user(uid).post("/v1/retention", body).await;
            assert_eq!(
                told.forbidden(),
                "only admins remove runs: [access] admins of service.toml names them"
            );
        }
    }
    let unsaid = json!({"dry_run": true, "why": "a test"});
    let told = service.user(ADMIN).post("/v1/retention", unsaid).await;
    assert_eq!(
        told.bad_request(),
        "service.toml has no [retention] days, so all runs are kept: say --older-than DAYS"
    );
    service.user(ADMIN).post("/v1/retention", does).await.ok();
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn nobody_learns_by_a_warm_start_that_anothers_study_exists() {
    let service = TestService::new().await;
    // Runs of another parametrization than the default: something is learnt.
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=warm-known", 8, |given, _| {
            if *given == default { 10.0 } else { 8.0 }
        })
        .await;
    let bobs = service.job(BOB, "app=mine").runs(&service, 10.0).await;
    let (known, own) = (service.study_id("warm-known").await, &bobs["study_id"]);
    let path = format!("/v1/studies/{own}/warm-start");
    let from = async |uid, study: i64| {
        let body = json!({"from": study, "why": "a try"});
        service.user(uid).post(&path, body).await
    };
    let told = from(BOB, known).await.not_found();
    let nothing = from(BOB, 99_999_999).await.not_found();
    assert_eq!(told, nothing.replace("99999999", &known.to_string()));
    from(ADMIN, known).await.ok();
    let study = service.user(BOB).get("/v1/studies?app=mine").await;
    let text = study.text();
    assert!(text.contains("warm-known"), "{text}");
    assert!(!text.contains(&format!("user{ALICE}")), "{text}");
    assert!(!text.contains(&ALICE.to_string()), "{text}");
}
