//! Tests of the ending of orders, and of their visibility.

use super::*;

#[tokio::test]
async fn an_order_of_one_study_is_ended_by_its_owner_whoever_gave_it() {
    let service = with_root().await;
    let study = begun(&service, ALICE, APP).await;
    let scope = json!({ "study": study });
    for kind in ["off", "freeze"] {
        order(&service, ROOT, what(kind, scope.clone())).await;
        let told = seen(&service, ALICE, study).await;
        assert_eq!(told["decided_by"]["may_end"], true, "{told}");
        end(&service, ALICE, what(kind, scope.clone())).await;
        assert_eq!(seen(&service, ALICE, study).await["ordered"], Value::Null);
    }
}

#[tokio::test]
async fn an_owners_order_of_a_study_replaces_an_admins_of_it() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let frozen = what("freeze", json!({ "study": study }));
    order(&service, ADMIN, frozen.clone()).await;
    let own = order(&service, ALICE, frozen).await;
    let told = orders(&service, ALICE).await;
    assert_eq!(each(&told, "order_id"), [&own["order_id"]]);
    assert_eq!(orders(&service, ADMIN).await.len(), 1);
}

/// Attack (others): A user undoes what an admin has ordered for their studies, or orders over it.
/// Outcome: It holds, and the refusal names admin and reason; an order about one study its owner
/// may end.
#[tokio::test]
async fn an_admins_order_about_a_user_holds_and_is_told_to_them() {
    let service = with_root().await;
    let study = begun(&service, BOB, APP).await;
    let frozen = with(what("freeze", json!({ "uid": BOB })), "why", "maintenance");
    order(&service, ROOT, frozen).await;
    let told = orders(&service, BOB).await;
    assert_eq!(each(&told, "why"), ["maintenance"]);
    assert_eq!(each(&told, "may_end"), [false]);
    let line = lines(&service, BOB, "?limit=1").await[0]["audit_id"].clone();
    let refused = "root ordered that (maintenance): they or an admin take it back";
    let bob = service.user(BOB);
    let mine = what("freeze", json!({}));
    let ended = bob.post("/v1/orders/end", &mine).await;
    assert_eq!(ended.forbidden(), refused);
    let replaced = with(mine.clone(), "until", "2100-01-01T00:00:00Z");
    assert_eq!(bob.post("/v1/orders", replaced).await.forbidden(), refused);
    assert_eq!(undo(&service, BOB, &line).await.forbidden(), refused);
    // Whether it would be ended is refused alike.
    let dry = bob
        .post("/v1/orders/end", with(mine, "dry_run", true))
        .await;
    assert_eq!(dry.forbidden(), refused);
    let of_study = lines(&service, BOB, &format!("?study={study}")).await;
    assert_eq!(each(&of_study, "why"), ["maintenance"]);
    undo(&service, ROOT, &line).await.ok();
    assert_eq!(orders(&service, BOB).await, Vec::<Value>::new());
}

#[tokio::test]
async fn who_ordered_it_is_told_by_uid_where_no_name_is_known() {
    let service = TestService::new().await;
    order(&service, ADMIN, what("off", json!({ "uid": BOB }))).await;
    let refused = async || {
        let mine = what("off", json!({}));
        service.user(BOB).post("/v1/orders/end", mine).await
    };
    assert_eq!(
        refused().await.forbidden(),
        format!("uid {ADMIN} ordered that (a test): they or an admin take it back")
    );
    // A job of theirs has brought their name.
    next(&service, ADMIN, "own").await;
    assert_eq!(
        refused().await.forbidden(),
        format!("user{ADMIN} ordered that (a test): they or an admin take it back")
    );
}

/// Attack (others): A user or an operator undoes what an admin has ordered for everyone.
/// Outcome: It is told to all, and holds.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn an_order_for_everyone_is_told_to_all_and_taken_back_by_admins() {
    let service = with_root().await;
    let frozen = with(what("freeze", json!({})), "why", "maintenance");
    order(&service, ROOT, frozen).await;
    for uid in [ALICE, BOB, OPERATOR, REPORT_READER] {
        let told = orders(&service, uid).await;
        assert_eq!(each(&told, "why"), ["maintenance"]);
        assert_eq!(each(&told, "may_end"), [false], "{uid}");
    }
    assert_eq!(each(&orders(&service, ADMIN).await, "may_end"), [true]);
    let line = lines(&service, BOB, "?limit=1").await[0]["audit_id"].clone();
    for uid in [BOB, OPERATOR] {
        let refused = undo(&service, uid, &line).await.forbidden();
        assert_eq!(refused, "only admins undo what is about everyone's studies");
        // To them a scope without a user is their own, in which there is no freeze.
        let mine = what("freeze", json!({}));
        let answer = service.user(uid).post("/v1/orders/end", mine).await;
        answer.refused(409, "conflict");
    }
    assert_eq!(orders(&service, BOB).await.len(), 1);
    // Any admin takes it back, not only who gave it.
    undo(&service, ADMIN, &line).await.ok();
    assert_eq!(orders(&service, BOB).await, Vec::<Value>::new());
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn orders_of_others_are_told_to_operators_and_admins_alone() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for scope in [json!({}), of(APP), json!({ "study": study })] {
        order(&service, ALICE, what("off", scope)).await;
    }
    let theirs = json!({ "uid": ALICE });
    order(&service, ADMIN, what("freeze", theirs)).await;
    for (uid, count, may_end) in [
        (ALICE, 4, vec![true, true, true, false]),
        (BOB, 0, vec![]),
        (REPORT_READER, 0, vec![]),
        (OPERATOR, 4, vec![false; 4]),
        (ADMIN, 4, vec![true; 4]),
    ] {
        let told = orders(&service, uid).await;
        assert_eq!(told.len(), count, "{uid}");
        assert_eq!(each(&told, "may_end"), may_end, "{uid}");
    }
}

#[tokio::test]
async fn a_user_ends_their_own_orders_one_by_one() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    let values = json!({ "cb_nodes": "2" });
    order(&service, ALICE, pinning(of(APP), values)).await;
    order(&service, ALICE, what("freeze", of(APP))).await;
    order(&service, ALICE, what("off", of(APP))).await;
    for (kind, action, left, role) in [
        ("off", "on", 2, "pinned"),
        ("pin", "unpin", 1, "best_known"),
        ("freeze", "resume", 0, "baseline"),
    ] {
        let ended = end(&service, ALICE, what(kind, of(APP))).await;
        let newest = &lines(&service, ALICE, "?limit=1").await[0];
        assert_eq!(newest["action"], action);
        assert_eq!(newest["audit_id"], ended["line"]);
        assert_eq!(newest["detail"]["ended"], ended["order_id"]);
        assert_eq!(orders(&service, ALICE).await.len(), left);
        assert_eq!(next(&service, ALICE, APP).await["role"], role);
    }
}
