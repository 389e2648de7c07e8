//! Changes beside each other, beside starts, and on another replica.

use std::pin::pin;

use io_autotune_engine::Role;
use io_autotune_store::{Audit, Directive, Scope};

use super::*;

#[tokio::test]
async fn two_who_steer_one_study_at_once_each_leave_a_line_and_an_epoch() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let study = begun(&service, ALICE, APP).await;
    let (one, two) = tokio::join!(
        steer(&service, ALICE, study, "reset", why()),
        steer(&other, ADMIN, study, "reset", why()),
    );
    let (one, two) = (one.ok(), two.ok());
    assert_ne!(one["line"], two["line"]);
    let of_study = lines(&service, ALICE, "").await;
    let mut epochs: Vec<i64> = of_study
        .iter()
        .map(|line| line["detail"]["opened_epoch"].as_i64().unwrap())
        .collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [2, 3]);
    assert_eq!(seen(&service, ALICE, study).await["epoch"], 3);
}

#[tokio::test]
async fn of_two_orders_of_a_kind_and_scope_at_once_one_is_in_force() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let (one, two) = tokio::join!(
        order(&service, ALICE, what("off", of(APP))),
        order(&other, ALICE, what("off", of(APP))),
    );
    let in_force = orders(&service, ALICE).await;
    let later = one["order_id"].as_i64().max(two["order_id"].as_i64());
    assert_eq!(each(&in_force, "order_id"), [&json!(later)]);
    assert_eq!(lines(&service, ALICE, "").await.len(), 2);
}

#[tokio::test]
async fn of_two_who_undo_one_line_at_once_one_does() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let study = begun(&service, ALICE, APP).await;
    let pinned = pin(&service, ALICE, study, json!({ "cb_nodes": "2" })).await;
    let (one, two) = tokio::join!(
        undo(&service, ALICE, &pinned["line"]),
        undo(&other, ADMIN, &pinned["line"]),
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one} {two}");
    let undone = "select count(*) from audit where undoes is not null";
    assert_eq!(service.database.number(undone).await, 1);
}

#[tokio::test]
async fn what_one_replica_orders_the_next_start_of_the_other_has() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&other, ALICE, study, json!({ "cb_nodes": "2" })).await;
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
    let off = order(&other, ALICE, what("off", json!({}))).await;
    assert_eq!(next(&service, ALICE, APP).await["role"], "observe");
    undo(&other, ALICE, &off["line"]).await.ok();
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
    steer(&other, ALICE, study, "unpin", why()).await.ok();
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn a_start_of_a_busy_study_has_what_was_ordered_since_its_snapshot() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let locking = format!("select from studies where id = {study} for no key update");
    let busy = service.database.hold(&locking).await;
    // Both wait for the row in vain, one after the other, and share one snapshot.
    let jobs = [(); 2].map(|()| service.job(ALICE, "app=ocean"));
    let (one, two) = (jobs[0].start(&service), jobs[1].start(&service));
    let (mut one, mut two) = (pin!(one), pin!(two));
    let scope = Scope {
        owner_uid: Some(ALICE),
        ..Scope::default()
    };
    let audit = Audit::unbounded(ALICE, "a test");
    // As another replica does, which cannot drop this one's snapshot.
    let ordering = async || {
        let off = service.store.order(&scope, &Directive::Off, None, audit);
        off.await.unwrap();
    };
    let (before, after) = tokio::select! {
        before = &mut one => {
            ordering().await;
            (before, two.await)
        }
        before = &mut two => {
            ordering().await;
            (before, one.await)
        }
    };
    assert_eq!(
        before.role,
        Role::BestKnown,
        "of a snapshot: {}",
        before.reason
    );
    assert_eq!(after.role, Role::Observe, "{}", after.reason);
    busy.release().await;
}
