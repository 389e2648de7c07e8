//! The site's default: what the studies of many users have in common, who makes it the default, what
//! a new study gets, and how it ends.

use std::time::Duration;

use super::super::transfer::priors::{LEARNING, gains, learn, run_one};
use super::*;

const PATH: &str = "/v1/site-defaults/romio";

/// What an admin makes the site's default in these tests, unless it is what studies have in common.
fn eight() -> Value {
    json!({ "cb_nodes": "8" })
}

fn of_romio() -> Value {
    json!({ "accelerator": "romio" })
}

fn making(values: Value) -> Value {
    with(what("site-default", of_romio()), "values", values)
}

/// The site's default as a user sees it.
async fn shown(service: &TestService, uid: u32) -> Value {
    let answer = service.user(uid).get(PATH).await.ok();
    let [one] = answer.as_array().unwrap().as_slice() else {
        panic!("there is one cluster: {answer}");
    };
    one.clone()
}

/// The first run of a new study that is not one of the default, as an admin sees it.
async fn first_explored(service: &TestService, uid: u32, application: &str) -> Value {
    for _ in 0..3 {
        let (_, run) = run_one(service, uid, application, gains).await;
        if run["role"] != "baseline" {
            return run;
        }
    }
    panic!("{application} explores nothing");
}

async fn rule_of(service: &TestService, run: &Value) -> Value {
    let job_id = u32::try_from(run["job_id"].as_u64().unwrap()).unwrap();
    service.run_of(job_id).await["suggestion"]["rule"].clone()
}

#[tokio::test]
async fn what_the_studies_of_four_users_have_in_common_is_found_applied_and_undone() {
    let service = TestService::with(LEARNING).await;
    for (place, uid) in (1..).zip([ALICE, BOB, 71_003]) {
        learn(&service, uid, &format!("app{place}")).await;
    }
    service.sweep().await;
    assert_eq!(shown(&service, ALICE).await["made_at"], Value::Null);
    learn(&service, 71_004, "app4").await;
    service.sweep().await;

    let found = shown(&service, ADMIN).await["in_common"].clone();
    let fastest = json!({ "cb_nodes": 4, "romio_cb_read": "disable" });
    assert_eq!(found["values"], fastest, "{found}");
    assert_eq!((&found["users"], &found["studies"]), (&json!(3), &json!(3)));
    assert_eq!((&found["gain"], &found["lose"]), (&json!(3), &json!(0)));
    assert!(found["ratio"]["high"].as_f64().unwrap() < 0.5, "{found}");

    let given = order(
        &service,
        ADMIN,
        making(json!({ "cb_nodes": "4", "romio_cb_read": "disable" })),
    )
    .await;
    let run = first_explored(&service, 71_005, "new").await;
    assert_eq!(rule_of(&service, &run).await, "site_default", "{run}");
    assert_eq!(run["role"], "design");
    assert_eq!(run["differs"], fastest);
    let reason = run["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("an admin made it the default of this site"),
        "{reason}"
    );
    let in_force = shown(&service, ALICE).await["in_force"].clone();
    assert_eq!(in_force["order_id"], given["order_id"]);
    assert_eq!(
        (&in_force["uid"], &in_force["may_end"]),
        (&json!(ADMIN), &json!(false))
    );

    undo(&service, ADMIN, &given["line"]).await.ok();
    assert_eq!(shown(&service, ALICE).await["in_force"], Value::Null);
    let run = first_explored(&service, 71_005, "newer").await;
    assert_eq!(rule_of(&service, &run).await, "promised", "{run}");
}

/// What a study does not know to be harmless may be slow: it is tried once, and the study's own runs
/// decide from there.
///
/// Attack (sharing): What other studies promise is the slowest here, or disputed.
/// Outcome: At most two such runs are made, and then the study's own decide; no names are told.
#[tokio::test]
async fn a_sites_default_that_is_slow_here_runs_once_and_controls_keep_the_accelerators_own() {
    let service = TestService::with(LEARNING).await;
    order(&service, ADMIN, making(eight())).await;
    let slow = |given: &io_autotune_engine::Parametrization| {
        let eight = io_autotune_engine::Value::Integer(8);
        if given.0.get("cb_nodes") == Some(&eight) {
            1.4
        } else {
            1.0
        }
    };
    let (mut tried, mut runs) = (0, Vec::new());
    for _ in 0..12 {
        let (_, run) = run_one(&service, ALICE, APP, slow).await;
        tried += u32::from(rule_of(&service, &run).await == "site_default");
        runs.push(run);
    }
    assert_eq!(tried, 1);
    let (baseline, rest) = runs.split_at(2);
    assert!(
        baseline
            .iter()
            .all(|run| run["role"] == "baseline" && run["differs"] == json!({}))
    );
    assert_eq!(rest[0]["differs"], eight_as_given());
    let not_explored = rest
        .iter()
        .filter(|run| run["role"] == "best_known" || run["role"] == "control");
    for run in not_explored {
        assert_ne!(run["differs"], eight_as_given(), "{run}");
    }
}

fn eight_as_given() -> Value {
    json!({ "cb_nodes": 8 })
}

#[tokio::test]
async fn the_next_run_says_so_and_what_is_pinned_or_has_explored_is_left_alone() {
    let service = TestService::with(LEARNING).await;
    let new = begun(&service, ALICE, "new").await;
    let pinned = begun(&service, ALICE, "pinned").await;
    pin(&service, ALICE, pinned, json!({ "cb_nodes": "2" })).await;
    let explored = begun(&service, ALICE, "explored").await;
    for _ in 0..2 {
        next(&service, ALICE, "explored").await;
    }
    next(&service, ALICE, "new").await;

    let told = order(&service, ADMIN, making(eight())).await;
    let of = |study: i64| {
        let studies = told["studies"].as_array().unwrap();
        let one = studies.iter().find(|one| one["study_id"] == study).unwrap();
        (one["now"].clone(), one["then"].clone())
    };
    assert_eq!(
        of(new),
        (json!("tuned"), json!("tuned, beginning with cb_nodes=8"))
    );
    let same = json!("pinned to cb_nodes=2");
    assert_eq!(of(pinned), (same.clone(), same));
    assert_eq!(of(explored), (json!("tuned"), json!("tuned")));

    let said = &seen(&service, ALICE, new).await["next"];
    assert_eq!(said["rule"], "site_default", "{said}");
    assert!(
        said["says"]
            .as_str()
            .unwrap()
            .starts_with("what an admin made this site's default")
    );
    let run = next(&service, ALICE, "new").await;
    assert_eq!(rule_of(&service, &run).await, "site_default");
    assert_eq!(next(&service, ALICE, "pinned").await["role"], "pinned");

    let ended = end(&service, ADMIN, what("site-default", of_romio())).await;
    assert_eq!(ended["order_id"], told["order_id"]);
    let [line] = &lines(&service, ADMIN, "?limit=1").await[..] else {
        panic!("a line was expected");
    };
    assert_eq!(line["action"], "end-site-default");
    undo(&service, ADMIN, &line["audit_id"]).await.ok();
    assert_eq!(
        shown(&service, ALICE).await["in_force"]["order_id"],
        told["order_id"]
    );
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn only_admins_make_a_sites_default_and_only_of_an_accelerator() {
    let service = TestService::with(LEARNING).await;
    for uid in [ALICE, OPERATOR, REPORT_READER] {
        for path in ["/v1/orders", "/v1/orders/end"] {
            let body = match path {
                "/v1/orders" => making(eight()),
                _ => what("site-default", of_romio()),
            };
            service.user(uid).post(path, body).await.forbidden();
        }
        assert_eq!(shown(&service, uid).await["in_common"], Value::Null);
    }
    for scope in [
        json!({}),
        of(APP),
        json!({ "accelerator": "romio", "application": APP }),
        json!({ "accelerator": "romio", "uid": ALICE }),
    ] {
        let body = with(what("site-default", scope.clone()), "values", eight());
        let said = service
            .user(ADMIN)
            .post("/v1/orders", body)
            .await
            .bad_request();
        assert!(
            said.starts_with("a site's default is of an accelerator"),
            "{scope}: {said}"
        );
    }
    for values in [Value::Null, json!({})] {
        let said = service
            .user(ADMIN)
            .post("/v1/orders", making(values))
            .await
            .bad_request();
        assert_eq!(said, "name the values of the site's default");
    }
    begun(&service, ALICE, APP).await;
    let unknown = making(json!({ "cb_nodes": "9999999" }));
    service
        .user(ADMIN)
        .post("/v1/orders", unknown)
        .await
        .bad_request();
    assert_eq!(
        service.database.number("select count(*) from orders").await,
        0
    );
}

#[tokio::test]
async fn it_is_made_anew_when_studies_have_learnt_and_not_more_often_than_every_ten_minutes() {
    let service = TestService::with(LEARNING).await;
    for (place, uid) in (1..).zip([ALICE, BOB, 71_003, 71_004]) {
        learn(&service, uid, &format!("app{place}")).await;
    }
    service.sweep().await;
    let first = shown(&service, ADMIN).await;
    learn(&service, 71_005, "app5").await;
    service.sweep().await;
    assert_eq!(shown(&service, ADMIN).await, first);
    service.advance(Duration::from_mins(11)).await;
    service.sweep().await;
    let later = shown(&service, ADMIN).await;
    assert_eq!(later["in_common"]["studies"], 4, "{later}");
    service.advance(Duration::from_mins(11)).await;
    service.sweep().await;
    assert_eq!(
        shown(&service, ADMIN).await,
        later,
        "nothing has been learnt since"
    );
}
