//! Tests that another user's data is answered as if it did not exist, and stays as it was.

use serde_json::json;

use super::*;

/// A number that nothing has.
const NOTHING: i64 = 99_999_999;

/// All that is asked or done about a study by its number; `own` is a study of the asker's.
fn about_a_study(study: i64, own: i64) -> Vec<(&'static str, String, Value)> {
    let why = "mischief";
    let of = |what: &str| format!("/v1/studies/{study}{what}");
    vec![
        ("GET", of(""), Value::Null),
        ("GET", of("/export"), Value::Null),
        (
            "POST",
            of("/pin"),
            json!({"values": {"cb_nodes": "2"}, "why": why}),
        ),
        ("POST", of("/pin"), json!({"why": why})),
        ("POST", of("/unpin"), json!({"why": why})),
        ("POST", of("/reset"), json!({"why": why})),
        (
            "POST",
            of("/objective"),
            json!({"objective": "marked", "why": why}),
        ),
        ("POST", of("/accept"), json!({"why": why})),
        ("POST", of("/warm-start"), json!({"from": own, "why": why})),
        (
            "POST",
            format!("/v1/studies/{own}/warm-start"),
            json!({"from": study, "why": why}),
        ),
        (
            "POST",
            format!("/v1/studies/{own}/warm-start"),
            json!({"from": study, "why": why, "dry_run": true}),
        ),
        (
            "POST",
            "/v1/orders".into(),
            json!({"kind": "off", "scope": {"study": study}, "why": why}),
        ),
        (
            "POST",
            "/v1/orders".into(),
            json!({"kind": "freeze", "scope": {"study": study}, "why": why, "dry_run": true}),
        ),
        (
            "POST",
            "/v1/orders/end".into(),
            json!({"kind": "freeze", "scope": {"study": study}, "why": why}),
        ),
    ]
}

async fn refusal(
    service: &TestService,
    uid: u32,
    (method, path, body): &(&'static str, String, Value),
) -> String {
    let body = match body {
        Value::Null => Vec::new(),
        body => serde_json::to_vec(body).unwrap(),
    };
    service.user(uid).send(method, path, body).await.not_found()
}

/// Everything that an admin sees about a study and the audit.
async fn known(service: &TestService, study: i64) -> [Value; 3] {
    let admin = service.user(ADMIN);
    [
        admin.get(&format!("/v1/studies/{study}")).await.ok(),
        admin.get("/v1/audit").await.ok(),
        admin.get("/v1/orders").await.ok(),
    ]
}

/// Promise: a user steers another user's study
/// Promise: a user reads another user's study
///
/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn anothers_study_is_answered_as_one_that_does_not_exist() {
    let service = TestService::new().await;
    let alices = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let bobs = service.job(BOB, "app=ice").runs(&service, 10.0).await;
    let (study, own) = (
        alices["study_id"].as_i64().unwrap(),
        bobs["study_id"].as_i64().unwrap(),
    );
    // So that there is something to end, to replace and to unpin.
    let owner = service.user(ALICE);
    let freeze = json!({"kind": "freeze", "scope": {"study": study}, "why": "production"});
    owner.post("/v1/orders", freeze).await.ok();
    let pin = json!({"values": {"cb_nodes": "4"}, "why": "production"});
    owner
        .post(&format!("/v1/studies/{study}/pin"), pin)
        .await
        .ok();
    let before = known(&service, study).await;
    let nothing = about_a_study(NOTHING, own);
    for (theirs, nothing) in about_a_study(study, own).iter().zip(&nothing) {
        let told = refusal(&service, BOB, theirs).await;
        let expected = refusal(&service, BOB, nothing).await;
        let expected = expected.replace(&NOTHING.to_string(), &study.to_string());
        assert_eq!(told, expected, "{} {}", theirs.0, theirs.1);
        assert!(told.starts_with(&format!("there is no study {study} among")));
    }
    assert_eq!(known(&service, study).await, before);
    let lines = format!("select count(*) from audit where study_id = {study}");
    assert_eq!(service.database.number(&lines).await, 2);
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn lists_by_what_is_anothers_are_empty() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = run["study_id"].as_i64().unwrap();
    let reset = format!("/v1/studies/{study}/reset");
    let reset = service.user(ALICE).post(&reset, json!({"why": "a test"}));
    reset.await.ok();
    for query in [
        String::new(),
        format!("?study={study}"),
        format!("?uid={ALICE}"),
        "?app=ocean".to_owned(),
        "?account=physics".to_owned(),
        format!("?app=ocean&uid={ALICE}&account=physics&study={study}"),
    ] {
        for list in ["studies", "runs"] {
            let path = format!("/v1/{list}{query}");
            assert_eq!(service.user(BOB).get(&path).await.ok(), json!([]), "{path}");
            for uid in [ALICE, OPERATOR, ADMIN] {
                let seen = applications(&service, uid, &path).await;
                assert_eq!(seen, set(&["ocean"]), "{path} of {uid}");
            }
        }
    }
    for query in [
        String::new(),
        format!("?study={study}"),
        format!("?by={ALICE}"),
    ] {
        let path = format!("/v1/audit{query}");
        assert_eq!(service.user(BOB).get(&path).await.ok(), json!([]), "{path}");
        assert_eq!(applications(&service, ALICE, &path).await, set(&["ocean"]));
    }
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn anothers_job_is_answered_as_one_that_was_never_tuned() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let job = run["job_id"].to_string();
    for what in ["", "/replay"] {
        let ask = async |uid, job: &str| {
            let path = format!("/v1/runs/{job}{what}");
            service.user(uid).get(&path).await
        };
        let told = ask(BOB, &job).await.not_found();
        let expected = ask(BOB, "99999999").await.not_found();
        assert_eq!(told, expected.replace("99999999", &job));
        assert!(
            told.starts_with(&format!("there is no run of a job {job}, ")),
            "{told}"
        );
        for uid in [ALICE, OPERATOR, ADMIN] {
            let found = ask(uid, &job).await.ok();
            assert_eq!(found.as_array().unwrap().len(), 1);
        }
    }
    let found = service.user(ALICE).get(&format!("/v1/runs/{job}")).await;
    assert_eq!(found.ok()[0]["run"]["run_id"], run["run_id"]);
}

/// Promise: a user steers another user's study
///
/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn anothers_line_of_the_audit_is_answered_as_one_that_does_not_exist() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    for by in [ALICE, ADMIN] {
        let path = format!("/v1/studies/{study}/pin");
        let pin = json!({"values": {"cb_nodes": "2"}, "why": "a test"});
        service.user(by).post(&path, pin).await.ok();
        let line = newest_line(&service).await;
        let before = known(&service, study).await;
        let undo = async |line| {
            let path = format!("/v1/audit/{line}/undo");
            service
                .user(BOB)
                .post(&path, json!({"why": "mischief"}))
                .await
        };
        let told = undo(line).await.not_found();
        let expected = undo(NOTHING).await.not_found();
        assert_eq!(
            told,
            expected.replace(&NOTHING.to_string(), &line.to_string())
        );
        assert!(
            told.starts_with(&format!("there is no line {line} of the audit")),
            "{told}"
        );
        assert_eq!(known(&service, study).await, before);
        let listed = service.user(BOB).get("/v1/audit").await.ok();
        assert!(!ids(&listed, "audit_id").contains(&line));
    }
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn a_preview_tells_nothing_of_anothers_study() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let preview = async |uid, app: &str| {
        let body = json!({"request": {"app": app}});
        let answer = service.user(uid).post("/v1/preview", body).await;
        answer.ok()["line"].as_str().unwrap().replace(app, "APP")
    };
    assert_eq!(preview(BOB, "ocean").await, preview(BOB, "never").await);
    assert_ne!(preview(ALICE, "ocean").await, preview(ALICE, "never").await);
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn the_same_name_of_two_users_is_two_applications() {
    let service = TestService::new().await;
    let of_alice = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let of_bob = service.job(BOB, "app=ocean").runs(&service, 20.0).await;
    assert_ne!(of_alice["study_id"], of_bob["study_id"]);
    for (uid, run) in [(ALICE, of_alice), (BOB, of_bob)] {
        for path in ["/v1/runs", "/v1/runs?app=ocean"] {
            let runs = service.user(uid).get(path).await.ok();
            assert_eq!(ids(&runs, "run_id"), [run["run_id"].as_i64().unwrap()]);
        }
        let studies = service.user(uid).get("/v1/studies?app=ocean").await.ok();
        assert_eq!(
            ids(&studies, "study_id"),
            [run["study_id"].as_i64().unwrap()]
        );
    }
}

/// Promise: a user steers another user's study
///
/// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or completes
/// directives.
#[tokio::test]
async fn a_user_posts_nothing_in_another_name() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let bob = service.user(BOB);
    let root_alone = "only root of a node starts and finishes runs";
    let started = bob.post("/v1/runs/start", job.asks()).await;
    assert_eq!(started.forbidden(), root_alone);
    let finished = bob.post("/v1/runs/finish", job.reports(None, 5.0)).await;
    assert_eq!(finished.forbidden(), root_alone);
    let over = bob.post("/v1/runs/over", json!({"runs": [1]})).await;
    assert_eq!(over.forbidden(), root_alone);
    let outcomes = json!({"cluster": CLUSTER, "outcomes": []});
    let told = bob.post("/v1/outcomes", outcomes).await.forbidden();
    assert!(
        told.starts_with("only a collector delivers outcomes"),
        "{told}"
    );
    // Nor is one's own job for oneself to speak of.
    let own = service.job(BOB, "app=ocean").asks();
    assert_eq!(
        bob.post("/v1/runs/start", own).await.forbidden(),
        root_alone
    );
    for table in ["runs", "studies", "outcomes"] {
        let count = format!("select count(*) from {table}");
        assert_eq!(service.database.number(&count).await, 0, "{table}");
    }
}

/// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or completes
/// directives.
#[tokio::test]
async fn only_root_is_told_which_runs_are_over() {
    let service = TestService::new().await;
    let body = json!({"runs": [1, -1, i64::MAX]});
    for door in [service.node(), service.user(ROOT)] {
        let over = door.post("/v1/runs/over", &body).await.ok();
        assert_eq!(over, json!({"over": []}));
    }
    for uid in [ALICE, OPERATOR, ADMIN, COLLECTOR, BURST_BUFFER] {
        let answer = service.user(uid).post("/v1/runs/over", &body).await;
        answer.forbidden();
    }
}

/// A run is of the uid that root names, whatever login name and comment come along.
#[tokio::test]
async fn a_run_is_its_uids_whatever_its_user_is_called() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, "app=ocean");
    job.job.user = Some(format!("user{BOB}"));
    job.runs(&service, 10.0).await;
    assert_eq!(
        applications(&service, ALICE, "/v1/runs").await,
        set(&["ocean"])
    );
    assert_eq!(applications(&service, BOB, "/v1/runs").await, set(&[]));
}

/// Two jobs of one id, one on each cluster, are each its user's.
#[tokio::test]
async fn a_user_of_one_cluster_sees_nothing_of_anothers_on_the_other() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let mut job = service.job(ALICE, "app=private");
    job.job.cluster = "beta".into();
    let run = job.runs(&service, 10.0).await;
    let id = job.job.job_id;
    for path in [
        format!("/v1/runs/{id}?cluster=beta"),
        format!("/v1/runs/{id}"),
    ] {
        let told = service.user(BOB).get(&path).await.not_found();
        assert!(told.starts_with("there is no run of a job"), "{told}");
    }
    for list in ["studies", "runs"] {
        let path = format!("/v1/{list}?cluster=beta");
        assert_eq!(applications(&service, BOB, &path).await, set(&[]));
        assert_eq!(
            applications(&service, ALICE, &path).await,
            set(&["private"])
        );
        let path = format!("/v1/{list}?cluster=alpha");
        assert_eq!(applications(&service, ALICE, &path).await, set(&[]));
    }
    // Bob's job of the same id on the other cluster makes neither's ambiguous.
    let mut bobs = service.job(BOB, "app=private");
    bobs.job.job_id = id;
    bobs.completes(&service, 10.0).await;
    service.poll().await;
    for (uid, cluster) in [(ALICE, "beta"), (BOB, "alpha")] {
        let found = service.user(uid).get(&format!("/v1/runs/{id}")).await.ok();
        assert_eq!(found.as_array().unwrap().len(), 1);
        assert_eq!(found[0]["run"]["cluster"], cluster);
        assert_eq!(found[0]["run"]["uid"], uid);
    }
    let found = service
        .user(ALICE)
        .get(&format!("/v1/runs/{id}"))
        .await
        .ok();
    assert_eq!(found[0]["run"]["run_id"], run["run_id"]);
    // An admin sees both, and has to say which.
    let told = service.user(ADMIN).get(&format!("/v1/runs/{id}")).await;
    let told = told.refused(409, "conflict");
    assert!(
        told.contains("alpha, beta") && told.contains("--cluster NAME"),
        "{told}"
    );
    let told = service.user(BOB).get("/v1/runs?cluster=gamma").await;
    let told = told.refused(422, "unknown_cluster");
    assert!(told.contains("it has alpha, beta"), "{told}");
}
