//! Pins, resets, objectives and what else steers one study, to its next run.

use io_autotune_engine::Role;

use super::*;

#[tokio::test]
async fn a_pin_reaches_the_next_run_and_its_end_goes_on_where_it_was() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let body = json!({
        "values": { "cb_nodes": "4", "romio_cb_read": "disable" }, "why": "a test asks for it",
    });
    let pinned = steer(&service, ALICE, study, "pin", body).await.ok();
    assert_eq!(pinned["pin"]["why"], "a test asks for it");
    assert_eq!(pinned["ordered"], "pinned");
    let job = service.job(ALICE, "app=ocean");
    let given = job.completes(&service, 10.0).await;
    assert_eq!(given.role, Role::Pinned);
    assert_eq!(
        given.delivery.files[0].content,
        "cb_nodes 4\nromio_cb_read disable\n"
    );
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    let differs = json!({ "cb_nodes": 4, "romio_cb_read": "disable" });
    assert_eq!(run["differs"], differs);
    assert_eq!(run["state"], "counted", "{run}");

    let unpinned = steer(&service, ALICE, study, "unpin", why()).await.ok();
    assert_eq!(unpinned["pin"], Value::Null);
    assert_eq!(unpinned["ordered"], Value::Null);
    let job = service.job(ALICE, "app=ocean");
    let given = job.completes(&service, 10.0).await;
    assert_eq!(given.delivery.files[0].content, "", "the default");
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    assert_eq!(
        (&run["role"], &run["epoch"]),
        (&json!("baseline"), &json!(1))
    );
}

#[tokio::test]
async fn who_pinned_a_run_is_told_and_whether_that_is_over() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let job = service.job(ALICE, "app=ocean");
    job.runs(&service, 10.0).await;
    let decided = async || {
        let path = format!("/v1/runs/{}", job.job.job_id);
        service.user(ALICE).get(&path).await.ok()[0]["decided_by"].clone()
    };
    let told = decided().await;
    assert_eq!(
        (&told["kind"], &told["order_id"]),
        (&json!("pin"), &Value::Null)
    );
    assert_eq!(told["scope"], json!({ "study": study }));
    assert_eq!(told["values"], json!({ "cb_nodes": "4" }));
    assert_eq!(
        (&told["uid"], &told["user"]),
        (&json!(ALICE), &json!("user71001"))
    );
    assert_eq!(
        (&told["is_over"], &told["may_end"]),
        (&json!(false), &json!(true))
    );
    steer(&service, ALICE, study, "unpin", why()).await.ok();
    assert_eq!(decided().await["is_over"], true);
}

#[tokio::test]
async fn a_pin_replaces_the_one_before() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let second = pin(&service, ADMIN, study, json!({ "romio_ds_read": "enable" })).await;
    assert_eq!(second["pin"]["uid"], ADMIN);
    let run = next(&service, ALICE, APP).await;
    assert_eq!(run["differs"], json!({ "romio_ds_read": "enable" }));
    let newest = &lines(&service, ALICE, "?limit=1").await[0];
    assert_eq!(newest["detail"]["before"]["uid"], ALICE);
}

#[tokio::test]
async fn a_pin_without_values_is_of_what_is_recommended() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for _ in 0..3 {
        next(&service, ALICE, APP).await;
    }
    let recommended = seen(&service, ALICE, study).await["recommended"].clone();
    assert!(recommended.is_object(), "{recommended}");
    let pinned = steer(&service, ALICE, study, "pin", why()).await.ok();
    assert_eq!(pinned["pin"]["parametrization"], recommended);
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
}

#[tokio::test]
async fn an_admin_steers_everyones_studies() {
    let service = with_root().await;
    let study = begun(&service, BOB, APP).await;
    let pinned = pin(&service, ROOT, study, json!({ "cb_nodes": "2" })).await;
    assert_eq!(pinned["pin"]["uid"], 0);
    assert_eq!(next(&service, BOB, APP).await["role"], "pinned");
    // Bob ends it nevertheless: it is his study's own.
    let told = seen(&service, BOB, study).await;
    assert_eq!(told["decided_by"]["may_end"], true);
    steer(&service, BOB, study, "unpin", why()).await.ok();
    assert_eq!(next(&service, BOB, APP).await["role"], "baseline");
}

#[tokio::test]
async fn a_reset_opens_an_epoch_and_changes_no_history() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    next(&service, ALICE, APP).await;
    steer(&service, ALICE, study, "unpin", why()).await.ok();
    next(&service, ALICE, APP).await;
    let history = async || list(service.user(ALICE).get("/v1/runs?app=ocean").await);
    let before = history().await;
    let reset = steer(&service, ALICE, study, "reset", why()).await.ok();
    assert_eq!(
        (&reset["epoch"], &reset["phase"], &reset["counted"]),
        (&json!(2), &json!("baseline"), &json!(0))
    );
    assert_eq!(reset["opened"]["why"], "reset: a test");
    let run = next(&service, ALICE, APP).await;
    assert_eq!(
        (&run["role"], &run["epoch"], &run["phase"]),
        (&json!("baseline"), &json!(2), &json!("baseline"))
    );
    let after = history().await;
    assert_eq!(after[..3], before, "history has changed");
    assert_eq!(after.len(), 4);
    assert_eq!(each(&before, "role"), ["baseline", "pinned", "baseline"]);
    // What was learnt before the reset does not count.
    assert_eq!(seen(&service, ALICE, study).await["counted"], 1);
}

#[tokio::test]
async fn a_reset_removes_the_pin_and_its_undo_brings_it_back() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let reset = steer(&service, ALICE, study, "reset", why()).await.ok();
    assert_eq!(reset["pin"], Value::Null);
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
    undo(&service, ALICE, &reset["line"]).await.ok();
    let run = next(&service, ALICE, APP).await;
    assert_eq!((&run["role"], &run["epoch"]), (&json!("pinned"), &json!(3)));
    assert_eq!(run["differs"], json!({ "cb_nodes": 4 }));
}

#[tokio::test]
async fn a_run_of_before_a_reset_counts_for_the_epoch_in_which_it_started() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    steer(&service, ALICE, study, "reset", why()).await.ok();
    job.finish(&service, &job.reports(Some(&started), 10.0))
        .await;
    job.ends(&service, "COMPLETED", 10.0);
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    assert_eq!(
        (&run["epoch"], &run["state"]),
        (&json!(1), &json!("counted"))
    );
    let told = seen(&service, ALICE, study).await;
    assert_eq!((&told["epoch"], &told["counted"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn each_steering_leaves_its_line_with_who_and_why() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let changes = [
        (
            "pin",
            json!({ "values": { "cb_nodes": "4" }, "why": "a test asks for it" }),
        ),
        ("unpin", json!({ "why": "enough of it" })),
        ("reset", json!({ "why": "a new file system" })),
        (
            "objective",
            json!({ "objective": "marked", "why": "it marks now" }),
        ),
        ("accept", json!({ "why": "it is one application" })),
    ];
    let mut told = Vec::new();
    for (how, body) in &changes {
        told.push(steer(&service, ALICE, study, how, body.clone()).await.ok());
    }
    let mut of_study = lines(&service, ALICE, &format!("?study={study}")).await;
    of_study.reverse();
    assert_eq!(each(&of_study, "audit_id"), each(&told, "line"));
    for (line, (how, body)) in of_study.iter().zip(&changes) {
        assert_eq!(line["action"], *how, "{line}");
        assert_eq!(line["why"], body["why"], "{line}");
        assert_eq!(
            (&line["uid"], &line["owner_uid"]),
            (&json!(ALICE), &json!(ALICE))
        );
        assert_eq!(
            (&line["study_id"], &line["application"]),
            (&json!(study), &json!(APP))
        );
    }
    assert_eq!(of_study.len(), changes.len());
}

#[tokio::test]
async fn an_objective_is_changed_refused_and_undone() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let objective = |word: &str| json!({ "objective": word, "why": "a test" });
    let marked = objective("marked");
    let changed = steer(&service, ALICE, study, "objective", marked.clone()).await;
    assert_eq!(changed.ok()["objective"], "marked_seconds");
    steer(&service, ALICE, study, "objective", marked)
        .await
        .refused(409, "conflict");
    let elapsed = objective("elapsed");
    steer(&service, BOB, study, "objective", elapsed.clone())
        .await
        .not_found();
    let back = steer(&service, ALICE, study, "objective", elapsed)
        .await
        .ok();
    assert_eq!(
        (&back["objective"], &back["epoch"]),
        (&json!("elapsed"), &json!(3))
    );
    undo(&service, ALICE, &back["line"]).await.ok();
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["objective"], "marked_seconds");
}

#[tokio::test]
async fn another_objective_leaves_a_pin_in_force() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let body = json!({ "objective": "rate", "maximise": true, "why": "a test" });
    let changed = steer(&service, ALICE, study, "objective", body).await.ok();
    assert_eq!(
        (&changed["epoch"], &changed["ordered"]),
        (&json!(2), &json!("pinned"))
    );
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
}
