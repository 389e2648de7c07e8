//! Tests of the answers to orders, and of dry runs.

use io_autotune_engine::Role;

use super::*;

#[tokio::test]
async fn a_dry_run_of_an_order_changes_nothing() {
    let service = with_root().await;
    let body = pinning(of(APP), json!({ "cb_nodes": "2" }));
    let would = order(&service, ROOT, with(body, "dry_run", true)).await;
    assert_eq!(
        would,
        json!({ "order_id": null, "line": null, "studies": [], "more": false })
    );
    assert_eq!(orders(&service, ROOT).await, Vec::<Value>::new());
    assert_eq!(lines(&service, ROOT, "").await, Vec::<Value>::new());
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn a_dry_run_says_in_words_what_each_study_gets_now_and_then() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for (body, then) in [
        (what("off", of(APP)), "off"),
        (what("freeze", of(APP)), "frozen"),
        (
            pinning(of(APP), json!({ "cb_nodes": "2" })),
            "pinned to cb_nodes=2",
        ),
        (pinning(of(APP), json!({})), "pinned to the default"),
    ] {
        let would = order(&service, ALICE, with(body, "dry_run", true)).await;
        let studies = would["studies"].as_array().unwrap();
        assert_eq!(each(studies, "study_id"), [study], "{would}");
        assert_eq!(each(studies, "now"), ["tuned"], "{would}");
        assert_eq!(each(studies, "then"), [then], "{would}");
    }
    assert_eq!(lines(&service, ALICE, "").await, Vec::<Value>::new());
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

#[tokio::test]
async fn a_dry_run_of_an_end_says_what_is_left_and_ends_nothing() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    order(&service, ALICE, what("off", of(APP))).await;
    let ending = with(what("off", of(APP)), "dry_run", true);
    let would = end(&service, ALICE, ending.clone()).await;
    assert_eq!(
        (&would["order_id"], &would["line"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(would["studies"][0]["now"], "off");
    assert_eq!(would["studies"][0]["then"], "tuned");
    // Another order is in force too: what is left is that one's.
    order(&service, ALICE, what("freeze", json!({}))).await;
    let would = end(&service, ALICE, ending).await;
    assert_eq!(would["studies"][0]["then"], "what its other orders say");
    assert_eq!(orders(&service, ALICE).await.len(), 2);
    assert_eq!(next(&service, ALICE, APP).await["role"], "observe");
}

#[tokio::test]
async fn a_pin_of_many_says_that_a_studys_own_pin_stays() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "4" })).await;
    let given = order(
        &service,
        ALICE,
        pinning(of(APP), json!({ "cb_nodes": "2" })),
    )
    .await;
    assert_eq!(given["studies"][0]["now"], "pinned to cb_nodes=4");
    assert_eq!(given["studies"][0]["then"], "pinned to cb_nodes=4");
    assert_eq!(
        next(&service, ALICE, APP).await["differs"],
        json!({ "cb_nodes": 4 })
    );
}

#[tokio::test]
async fn a_freeze_of_what_is_off_says_that_it_stays_off() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    order(&service, ALICE, what("off", json!({}))).await;
    let given = order(&service, ALICE, what("freeze", of(APP))).await;
    assert_eq!(given["studies"][0]["then"], "off");
}

#[tokio::test]
async fn an_order_without_studies_is_given_and_lists_none() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    let given = order(&service, ALICE, what("off", of("atmosphere"))).await;
    assert!(given["order_id"].is_i64(), "{given}");
    assert_eq!(given["studies"], json!([]));
}

#[tokio::test]
async fn an_order_for_a_name_that_no_study_has_is_given_and_undone_by_its_line() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    assert_eq!(orders(&service, ALICE).await, Vec::<Value>::new());
    let body = with(what("off", of("oecan")), "why", "of later ones");
    let given = order(&service, ALICE, body).await;
    assert_eq!(orders(&service, ALICE).await.len(), 1);
    let undone = undo(&service, ALICE, &given["line"]).await.ok();
    assert_eq!(
        (&undone["action"], &undone["why"]),
        (&json!("off"), &json!("of later ones"))
    );
    assert_eq!(orders(&service, ALICE).await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_admins_order_holds_for_a_study_that_begins_later() {
    let service = with_root().await;
    let body = pinning(of(APP), json!({ "cb_nodes": "2" }));
    let given = order(&service, ROOT, body).await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.completes(&service, 10.0).await;
    assert_eq!(started.role, Role::Pinned);
    assert_eq!(started.delivery.files[0].content, "cb_nodes 2\n");
    service.poll().await;
    let path = format!("/v1/runs/{}", job.job.job_id);
    let told = service.user(ALICE).get(&path).await.ok();
    assert_eq!(told[0]["run"]["differs"], json!({ "cb_nodes": 2 }));
    assert_eq!(told[0]["run"]["state"], "counted");
    // The owner sees who decided, and that the owner may not end it.
    let decided = &told[0]["decided_by"];
    assert_eq!(decided["order_id"], given["order_id"]);
    assert_eq!(decided["scope"], of(APP));
    assert_eq!(decided["values"], json!({ "cb_nodes": "2" }));
    assert_eq!(
        (&decided["uid"], &decided["why"]),
        (&json!(0), &json!("a test"))
    );
    assert_eq!(
        (&decided["may_end"], &decided["is_over"]),
        (&json!(false), &json!(false))
    );
}

#[tokio::test]
async fn what_decided_a_run_is_told_to_be_over_once_it_is() {
    let service = TestService::new().await;
    order(&service, ADMIN, what("off", of(APP))).await;
    let job = service.job(ALICE, "app=ocean");
    job.runs(&service, 10.0).await;
    end(&service, ADMIN, what("off", of(APP))).await;
    let decided = service.run_of(job.job.job_id).await["decided_by"].clone();
    assert_eq!(decided["kind"], "off", "{decided}");
    assert_eq!(decided["is_over"], true, "{decided}");
}

#[tokio::test]
async fn values_that_fit_one_of_several_studies_change_that_one_alone() {
    let service = TestService::new().await;
    let romio = begun(&service, ALICE, APP).await;
    let cache = service.job(ALICE, "app=ocean,accelerator=page-cache");
    let cache = cache.runs(&service, 10.0).await["study_id"].clone();
    let given = order(
        &service,
        ALICE,
        pinning(json!({}), json!({ "cb_nodes": "2" })),
    )
    .await;
    let studies = given["studies"].as_array().unwrap();
    for one in studies {
        let then = if one["study_id"] == romio {
            "pinned to cb_nodes=2"
        } else {
            assert_eq!(one["study_id"], cache);
            "tuned"
        };
        assert_eq!(one["then"], then, "{given}");
    }
    assert_eq!(studies.len(), 2);
    assert_eq!(next(&service, ALICE, APP).await["role"], "pinned");
    let other = service.job(ALICE, "app=ocean,accelerator=page-cache");
    assert_eq!(other.runs(&service, 10.0).await["role"], "baseline");
}

#[tokio::test]
async fn what_is_ordered_for_one_cluster_holds_there_alone() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let job = |cluster: &str| {
        let mut job = service.job(ALICE, "app=ocean");
        cluster.clone_into(&mut job.job.cluster);
        job
    };
    let mut studies = Vec::new();
    for cluster in ["alpha", "beta"] {
        studies.push(job(cluster).runs(&service, 10.0).await["study_id"].clone());
    }
    let of_beta = json!({ "application": APP, "cluster": "beta" });
    let given = order(&service, ALICE, what("off", of_beta.clone())).await;
    assert_eq!(given["studies"].as_array().unwrap().len(), 1);
    assert_eq!(given["studies"][0]["cluster"], "beta");
    let path = format!("/v1/studies?app={APP}");
    let told = list(service.user(ALICE).get(&path).await);
    for one in &told {
        let expected = match one["cluster"].as_str() {
            Some("beta") => json!("off"),
            _ => Value::Null,
        };
        assert_eq!(one["ordered"], expected, "{one}");
    }
    assert_eq!(told.len(), 2);
    assert_eq!(job("alpha").runs(&service, 10.0).await["role"], "baseline");
    assert_eq!(job("beta").runs(&service, 10.0).await["role"], "observe");
    end(&service, ALICE, what("off", of_beta)).await;
    assert_eq!(job("beta").runs(&service, 10.0).await["role"], "baseline");
}

#[tokio::test]
async fn a_second_order_of_a_kind_and_scope_ends_the_first_and_its_undo_brings_it_back() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    let first = order(
        &service,
        ALICE,
        pinning(of(APP), json!({ "cb_nodes": "2" })),
    )
    .await;
    let second = order(
        &service,
        ALICE,
        pinning(of(APP), json!({ "cb_nodes": "8" })),
    )
    .await;
    assert_eq!(second["studies"][0]["now"], "pinned to cb_nodes=2");
    assert_eq!(second["studies"][0]["then"], "pinned to cb_nodes=8");
    let told = orders(&service, ALICE).await;
    assert_eq!(each(&told, "order_id"), [&second["order_id"]]);
    let newest = &lines(&service, ALICE, "?limit=1").await[0];
    assert_eq!(newest["detail"]["replaced"], first["order_id"]);
    undo(&service, ALICE, &second["line"]).await.ok();
    let told = orders(&service, ALICE).await;
    assert_eq!(each(&told, "order_id"), [&first["order_id"]]);
    assert_eq!(
        next(&service, ALICE, APP).await["differs"],
        json!({ "cb_nodes": 2 })
    );
}
