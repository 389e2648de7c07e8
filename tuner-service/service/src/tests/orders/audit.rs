//! Tests of the lines of the audit that each user reads, and of the filters.

use super::*;

#[tokio::test]
async fn lines_are_newest_first_in_pages_of_what_is_asked() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for _ in 0..3 {
        steer(&service, ALICE, study, "accept", why()).await.ok();
    }
    let all = lines(&service, ALICE, "").await;
    let ids: Vec<i64> = each(&all, "audit_id")
        .into_iter()
        .map(|id| id.as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.is_sorted_by(|one, next| one > next), "{ids:?}");
    assert_eq!(lines(&service, ALICE, "?limit=2").await, all[..2]);
    let before = format!("?before={}&limit=2", ids[1]);
    assert_eq!(lines(&service, ALICE, &before).await, all[2..]);
    assert_eq!(
        lines(&service, ALICE, "?limit=0").await,
        Vec::<Value>::new()
    );
}

#[tokio::test]
async fn a_page_has_100_lines_unless_said_and_500_at_the_most() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    service
        .database
        .execute(&format!(
            "insert into audit (uid, action, study_id, detail, why)
             select {ALICE}, 'accept', {study}, '{{}}', 'a test' from generate_series(1, 520)"
        ))
        .await;
    for (query, count) in [("", 100), ("?limit=501", 500), ("?limit=4294967295", 500)] {
        assert_eq!(lines(&service, ALICE, query).await.len(), count, "{query}");
    }
}

#[tokio::test]
async fn a_question_that_is_none_is_refused_by_its_name() {
    let service = TestService::new().await;
    for query in ["?of=1", "?limit=-1", "?study=ocean"] {
        let path = format!("/v1/audit{query}");
        service.user(ALICE).get(&path).await.bad_request();
    }
    let told = service.user(ALICE).get("/v1/audit?of=1").await;
    assert!(told.bad_request().contains("of"), "{told}");
}

#[tokio::test]
async fn lines_are_of_who_is_asked_for() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    steer(&service, ALICE, study, "accept", why()).await.ok();
    steer(&service, ADMIN, study, "reset", why()).await.ok();
    let by = async |uid: u32| {
        let told = lines(&service, ALICE, &format!("?by={uid}")).await;
        each(&told, "action")
            .into_iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(by(ALICE).await, ["accept"]);
    assert_eq!(by(ADMIN).await, ["reset"]);
    assert_eq!(by(BOB).await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_order_for_many_is_among_the_lines_of_each_study_that_it_is_about() {
    let service = TestService::new().await;
    let ocean = begun(&service, ALICE, APP).await;
    let atmosphere = begun(&service, ALICE, "atmosphere").await;
    let bobs = begun(&service, BOB, APP).await;
    let all = order(&service, ALICE, what("off", json!({}))).await["line"].clone();
    let one = order(&service, ALICE, what("off", of(APP))).await["line"].clone();
    let every = order(&service, ADMIN, what("freeze", json!({}))).await["line"].clone();
    for (study, expected) in [
        (ocean, vec![&every, &one, &all]),
        (atmosphere, vec![&every, &all]),
        (bobs, vec![&every]),
    ] {
        let told = lines(&service, ADMIN, &format!("?study={study}")).await;
        assert_eq!(each(&told, "audit_id"), expected, "study {study}");
    }
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user reads another user's study
#[tokio::test]
async fn lines_about_another_user_are_never_told() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    begun(&service, BOB, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "2" })).await;
    order(&service, ALICE, what("off", json!({}))).await;
    order(&service, ALICE, what("freeze", json!({ "study": study }))).await;
    order(&service, ADMIN, what("freeze", json!({ "uid": ALICE }))).await;
    let queries = [
        String::new(),
        format!("?study={study}"),
        format!("?by={ALICE}"),
        format!("?by={ADMIN}"),
        format!("?study={study}&by={ALICE}&limit=500"),
        "?before=1000000".to_owned(),
    ];
    for uid in [BOB, REPORT_READER, COLLECTOR] {
        for query in &queries {
            let told = lines(&service, uid, query).await;
            assert_eq!(told, Vec::<Value>::new(), "{query} of {uid}");
        }
    }
    for uid in [ALICE, OPERATOR, ADMIN] {
        assert_eq!(lines(&service, uid, "").await.len(), 4, "{uid}");
    }
    order(&service, ADMIN, what("off", json!({}))).await;
    let told = lines(&service, BOB, &format!("?by={ADMIN}")).await;
    assert_eq!(each(&told, "action"), ["off"]);
}

#[tokio::test]
async fn a_line_tells_the_name_of_who_did_it_once_a_job_has_told_it() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    steer(&service, ALICE, study, "accept", why()).await.ok();
    steer(&service, ADMIN, study, "accept", why()).await.ok();
    let told = lines(&service, ALICE, "").await;
    assert_eq!(each(&told, "user"), [&Value::Null, &json!("user71001")]);
    assert_eq!(each(&told, "uid"), [ADMIN, ALICE]);
}

#[tokio::test]
async fn a_line_tells_the_cluster_where_there_are_several() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let study = begun(&service, ALICE, APP).await;
    steer(&service, ALICE, study, "accept", why()).await.ok();
    let told = lines(&service, ALICE, "").await;
    assert_eq!(each(&told, "cluster"), ["alpha"]);
    let alone = TestService::new().await;
    let study = begun(&alone, ALICE, APP).await;
    steer(&alone, ALICE, study, "accept", why()).await.ok();
    assert!(lines(&alone, ALICE, "").await[0].get("cluster").is_none());
}
