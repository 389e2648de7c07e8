//! Each kind of order for each scope by each role: what is answered, and its line of the audit.

use super::*;

/// Every kind of order for a scope, each with the line that it must have.
async fn orders_each_kind(service: &TestService, uid: u32, scope: &Value, written: &Value) {
    for kind in ["pin", "freeze", "off"] {
        let mut body = what(kind, scope.clone());
        if kind == "pin" {
            body["values"] = json!({ "cb_nodes": "2" });
        }
        if kind == "pin" && scope.get("study").is_some() {
            continue;
        }
        let before = lines(service, ADMIN, "").await.len();
        let given = order(service, uid, body).await;
        let all = lines(service, ADMIN, "").await;
        assert_eq!(all.len(), before + 1, "{kind} for {scope}");
        assert_eq!(all[0]["audit_id"], given["line"], "{kind} for {scope}");
        assert_eq!(all[0]["action"], kind);
        assert_eq!(
            (&all[0]["uid"], &all[0]["why"]),
            (&json!(uid), &json!("a test"))
        );
        let full = &all[0]["detail"]["scope"];
        for field in [
            "study_id",
            "owner_uid",
            "application",
            "accelerator",
            "cluster",
        ] {
            assert_eq!(full[field], written[field], "{field} of {kind} for {scope}");
        }
        let told = orders(service, uid).await;
        let told = told.iter().find(|one| one["order_id"] == given["order_id"]);
        let told = told.unwrap_or_else(|| panic!("{kind} for {scope} is not listed"));
        assert_eq!(
            (&told["kind"], &told["may_end"]),
            (&json!(kind), &json!(true))
        );
    }
}

#[tokio::test]
async fn users_and_operators_order_each_kind_for_their_own_studies() {
    let service = TestService::new().await;
    for uid in [ALICE, OPERATOR, REPORT_READER, COLLECTOR, BURST_BUFFER] {
        let study = begun(&service, uid, APP).await;
        for (scope, mut written) in [
            (json!({}), json!({})),
            (json!({ "uid": uid }), json!({})),
            (of(APP), of(APP)),
            (json!({ "study": study }), json!({ "study_id": study })),
            (
                json!({ "accelerator": "romio" }),
                json!({ "accelerator": "romio" }),
            ),
            (json!({ "cluster": CLUSTER }), json!({ "cluster": CLUSTER })),
        ] {
            // Whatever a user says, it is about the user's own.
            written["owner_uid"] = json!(uid);
            orders_each_kind(&service, uid, &scope, &written).await;
        }
    }
    // What five users have ordered for all of their own is nothing to another.
    let role = next(&service, BOB, APP).await["role"].clone();
    assert_eq!(role, "baseline");
}

#[tokio::test]
async fn admins_order_each_kind_for_everyone_a_user_and_a_study() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for (scope, written) in [
        (json!({}), json!({})),
        (json!({ "uid": ALICE }), json!({ "owner_uid": ALICE })),
        (of(APP), of(APP)),
        (json!({ "study": study }), json!({ "study_id": study })),
        (
            json!({ "accelerator": "romio", "uid": BOB }),
            json!({ "accelerator": "romio", "owner_uid": BOB }),
        ),
        (json!({ "cluster": CLUSTER }), json!({ "cluster": CLUSTER })),
    ] {
        orders_each_kind(&service, ADMIN, &scope, &written).await;
    }
    assert_eq!(next(&service, BOB, APP).await["role"], "observe");
}

#[tokio::test]
async fn a_users_order_of_a_study_is_about_that_one_and_its_next_run() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    begun(&service, ALICE, "atmosphere").await;
    let given = order(&service, ALICE, what("off", json!({ "study": study }))).await;
    let studies = given["studies"].as_array().unwrap();
    assert_eq!(each(studies, "study_id"), [study]);
    assert_eq!(next(&service, ALICE, APP).await["role"], "observe");
    assert_eq!(
        next(&service, ALICE, "atmosphere").await["role"],
        "baseline"
    );
}

/// Attack (others): A user orders for all studies, or for another's.
/// Outcome: An order without a user is about one's own studies.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn a_users_order_for_all_is_about_their_own_studies() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    begun(&service, BOB, APP).await;
    begun(&service, BOB, "atmosphere").await;
    let given = order(&service, BOB, what("off", json!({}))).await;
    let studies = given["studies"].as_array().unwrap();
    assert_eq!(each(studies, "uid"), [BOB, BOB]);
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
    assert_eq!(next(&service, BOB, APP).await["role"], "observe");
    let ended = end(&service, BOB, what("off", json!({}))).await;
    assert_eq!(ended["studies"].as_array().unwrap().len(), 2);
    assert_eq!(next(&service, BOB, APP).await["role"], "baseline");
}

#[tokio::test]
async fn accelerators_together_are_one_scope_in_whichever_order() {
    let service = TestService::new().await;
    let scope = |name: &str| json!({ "accelerator": name });
    let first = order(&service, ALICE, what("off", scope("romio+page-cache"))).await;
    let ended = end(&service, ALICE, what("off", scope("page-cache+romio"))).await;
    assert_eq!(ended["order_id"], first["order_id"]);
    assert_eq!(orders(&service, ALICE).await, Vec::<Value>::new());
}
