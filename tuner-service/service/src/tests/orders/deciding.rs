//! Tests of precedence among several orders in force.

use super::*;

#[tokio::test]
async fn off_goes_before_a_pin_and_its_end_brings_the_pin_back() {
    let service = with_root().await;
    let pinned = pinning(of(APP), json!({ "cb_nodes": "2" }));
    order(&service, ROOT, pinned).await;
    let study = begun(&service, ALICE, APP).await;
    let off = order(&service, ALICE, what("off", of(APP))).await;
    let [changed] = off["studies"].as_array().unwrap().as_slice() else {
        panic!("one study was expected: {off}");
    };
    assert_eq!(changed["now"], "pinned to cb_nodes=2");
    assert_eq!(changed["then"], "off");
    let run = next(&service, ALICE, APP).await;
    assert_eq!(
        (&run["role"], &run["state"]),
        (&json!("observe"), &json!("counted"))
    );
    assert_eq!(
        run["reason"],
        "its tuning is turned off: nothing is applied"
    );
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["ordered"], "off");
    assert_eq!(told["decided_by"]["order_id"], off["order_id"]);
    assert_eq!(told["decided_by"]["may_end"], true);
    let ended = end(&service, ALICE, what("off", of(APP))).await;
    assert_eq!(ended["order_id"], off["order_id"]);
    assert_eq!(ended["studies"][0]["now"], "off");
    assert_eq!(ended["studies"][0]["then"], "pinned to cb_nodes=2");
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
}

#[tokio::test]
async fn an_admin_ends_what_an_owner_ordered() {
    let service = with_root().await;
    let study = begun(&service, ALICE, APP).await;
    order(&service, ALICE, what("freeze", of(APP))).await;
    let told = seen(&service, ROOT, study).await;
    assert_eq!(told["decided_by"]["may_end"], true, "{told}");
    // As the CLI ends it, by the scope that status tells.
    let scope = told["decided_by"]["scope"].clone();
    end(&service, ROOT, what("freeze", scope)).await;
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn a_frozen_study_runs_what_is_known_best_and_explores_nothing() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    order(&service, ALICE, what("freeze", of(APP))).await;
    for _ in 0..5 {
        let run = next(&service, ALICE, APP).await;
        assert_eq!(run["role"], "best_known", "{run}");
        assert!(run["reason"].as_str().unwrap().contains("frozen"), "{run}");
        assert_eq!(run["differs"], json!({}), "{run}");
    }
}

#[tokio::test]
async fn a_studys_own_pin_goes_before_a_pin_of_many() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    order(
        &service,
        ALICE,
        pinning(of(APP), json!({ "cb_nodes": "2" })),
    )
    .await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let run = next(&service, ALICE, APP).await;
    assert_eq!(run["differs"], json!({ "cb_nodes": 4 }));
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["ordered"], "pinned");
    assert_eq!(told["decided_by"]["order_id"], Value::Null);
    assert_eq!(told["decided_by"]["scope"], json!({ "study": study }));
    assert_eq!(told["decided_by"]["values"], json!({ "cb_nodes": "4" }));
    steer(&service, ALICE, study, "unpin", why()).await.ok();
    let run = next(&service, ALICE, APP).await;
    assert_eq!(run["differs"], json!({ "cb_nodes": 2 }));
}

#[tokio::test]
async fn a_pin_goes_before_a_freeze_and_off_before_both() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let ordered = async || seen(&service, ALICE, study).await["ordered"].clone();
    assert_eq!(ordered().await, Value::Null);
    order(&service, ALICE, what("freeze", of(APP))).await;
    assert_eq!(ordered().await, "frozen");
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    assert_eq!(ordered().await, "pinned");
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
    order(&service, ALICE, what("off", json!({}))).await;
    assert_eq!(ordered().await, "off");
    assert_eq!(next(&service, ALICE, APP).await["role"], "observe");
}

#[tokio::test]
async fn of_several_pins_the_most_specific_decides() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    for (scope, nodes) in [
        (json!({}), "1"),
        (json!({ "cluster": CLUSTER }), "2"),
        (json!({ "accelerator": "romio" }), "4"),
        (json!({ "uid": ALICE }), "8"),
        (json!({ "application": APP }), "1"),
        (json!({ "application": APP, "uid": ALICE }), "2"),
    ] {
        let body = pinning(scope.clone(), json!({ "cb_nodes": nodes }));
        order(&service, ADMIN, body).await;
        let run = next(&service, ALICE, APP).await;
        assert_eq!(
            run["parametrization"]["cb_nodes"].to_string(),
            nodes,
            "{scope}"
        );
    }
    // A less specific one that is newer changes nothing.
    let body = pinning(json!({}), json!({ "cb_nodes": "8" }));
    order(&service, ADMIN, body).await;
    let run = next(&service, ALICE, APP).await;
    assert_eq!(run["differs"], json!({ "cb_nodes": 2 }));
}

#[tokio::test]
async fn a_pin_for_other_accelerators_leaves_a_study_to_its_search() {
    let service = TestService::new().await;
    let body = pinning(json!({}), json!({ "dirty_bytes": "67108864" }));
    order(&service, ADMIN, body).await;
    let study = begun(&service, ALICE, APP).await;
    assert_eq!(seen(&service, ALICE, study).await["ordered"], Value::Null);
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}
