//! A request that does something is read once by all replicas. MUNGE remembers on one host, SACK in one
//! process.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// Rows that a request which is done twice would add to or change.
async fn rows(service: &TestService) -> Vec<i64> {
    let mut rows = Vec::new();
    for count in [
        "select count(*) from audit",
        "select count(*) from orders",
        "select count(*) from epochs",
        "select count(*) from reports",
        "select count(*) from runs",
        "select count(*) from outcomes",
        "select count(*) from import_chunks",
        "select count(*) from pins",
    ] {
        rows.push(service.database.number(count).await);
    }
    rows
}

/// Sends the same bytes to a service, and then to its replica, whose back-end has not read them: the
/// first does it, the other refuses.
async fn read_once(
    [first, other]: [&TestService; 2],
    uid: u32,
    path: &str,
    body: impl serde::Serialize,
) -> Answer {
    let body = serde_json::to_vec(&body).unwrap();
    let signed: Signed = first.user(uid).signed("POST", path, body);
    let done = first.user(uid).send_as_it_is(signed.clone()).await;
    done.ok();
    let before = rows(first).await;
    let again = other.user(uid).send_as_it_is(signed).await;
    let told = again.refused(401, "unauthorized");
    assert_eq!(told, "the request has been read before", "{path}");
    assert_eq!(rows(first).await, before, "{path}");
    done
}

/// Attack (service): A change, a report or an import is read and sent again, to the same or another
/// replica.
/// Outcome: One is accepted.
#[tokio::test]
async fn a_change_that_one_replica_has_read_is_refused_by_another() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=ocean", 6, |given, _| {
            if *given == default { 10.0 } else { 8.0 }
        })
        .await;
    service.job(ALICE, "app=ice").runs(&service, 10.0).await;
    let (ocean, ice) = (
        service.study_id("ocean").await,
        service.study_id("ice").await,
    );
    let why = json!({"why": "replayed"});
    let of = |study: i64, what: &str| format!("/v1/studies/{study}/{what}");
    let pin = json!({"values": {"cb_nodes": "2"}, "why": "replayed"});
    let freeze = json!({"kind": "freeze", "why": "replayed"});
    let both = [&service, &other];
    read_once(
        both,
        ALICE,
        &of(ice, "warm-start"),
        json!({"from": ocean, "why": "replayed"}),
    )
    .await;
    let objective = json!({"objective": "marked", "why": "replayed"});
    read_once(both, ALICE, &of(ice, "objective"), objective).await;
    read_once(both, ALICE, &of(ice, "pin"), pin).await;
    read_once(both, ALICE, &of(ice, "unpin"), &why).await;
    read_once(both, ALICE, &of(ice, "accept"), &why).await;
    let reset = read_once(both, ALICE, &of(ice, "reset"), &why).await.ok();
    let undo = format!("/v1/audit/{}/undo", reset["line"]);
    read_once(both, ALICE, &undo, &why).await;
    read_once(both, ALICE, "/v1/orders", &freeze).await;
    read_once(both, ALICE, "/v1/orders/end", &freeze).await;
    let old = json!({"older_than_days": 30, "why": "replayed"});
    read_once(both, ADMIN, "/v1/retention", old).await;
}

/// Attack (service): A change, a report or an import is read and sent again, to the same or another
/// replica.
/// Outcome: One is accepted.
#[tokio::test]
async fn an_import_that_one_replica_has_read_is_refused_by_another() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let header = io_autotune_protocol::export_header(io_autotune_store::EXPORT_VERSION);
    let upload = "/v1/imports/0123456789abcdef0123456789abcdef";
    let both = [&service, &other];
    let chunk = json!({"place": 0, "text": format!("{header}\n")});
    read_once(both, ADMIN, upload, chunk).await;
    let end = json!({"chunks": 1, "step": "discard", "why": "replayed"});
    read_once(both, ADMIN, &format!("{upload}/end"), end).await;
}

/// Attack (service): A change, a report or an import is read and sent again, to the same or another
/// replica.
/// Outcome: One is accepted.
#[tokio::test]
async fn a_request_that_one_replica_has_read_is_refused_by_another() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\", \"squeue\"]\n").await;
    let other = service.replica().await;
    let both = [&service, &other];
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let reset = format!("/v1/studies/{}/reset", run["study_id"]);
    read_once(both, ALICE, &reset, json!({"why": "replayed"})).await;
    // A report of a run that it names, of one that it does not name, and of one that never started.
    for case in 0..3 {
        let job = service.job(ALICE, "app=ocean");
        let started = match case {
            2 => None,
            _ => Some(job.start(&service).await),
        };
        let mut report = job.reports(started.as_ref(), 5.0);
        report.run_id = report.run_id.filter(|_| case == 0);
        read_once(both, ROOT, "/v1/runs/finish", report).await;
    }
    let outcome = json!({"job_id": 4711, "state": "COMPLETED"});
    let outcomes = json!({"cluster": CLUSTER, "outcomes": [outcome]});
    let told = read_once(both, COLLECTOR, "/v1/outcomes", outcomes).await;
    assert_eq!(told.ok(), json!({"stored": 1, "duplicates": 0}));
}

/// The other way round, too: it is the first reading that counts, whose replica it is.
#[tokio::test]
async fn whichever_replica_reads_first_does_it() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let path = format!("/v1/studies/{}/reset", run["study_id"]);
    read_once([&other, &service], ALICE, &path, json!({"why": "a test"})).await;
    assert_eq!(service.study("ocean").await["epoch"], 2);
}

/// One that was refused with a reason was read, and is not done when the reason is gone.
#[tokio::test]
async fn what_was_refused_is_not_done_later_by_another() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let path = format!("/v1/studies/{}/unpin", run["study_id"]);
    let body = br#"{"why": "a test"}"#.to_vec();
    let signed = service.user(ALICE).signed("POST", &path, body);
    let refused = service.user(ALICE).send_as_it_is(signed.clone()).await;
    refused.bad_request();
    let pin = json!({"values": {"cb_nodes": "2"}, "why": "a test"});
    let pinning = format!("/v1/studies/{}/pin", run["study_id"]);
    service.user(ALICE).post(&pinning, pin).await.ok();
    let again = other.user(ALICE).send_as_it_is(signed).await;
    again.refused(401, "unauthorized");
    assert_ne!(service.study("ocean").await["pin"], Value::Null);
}

/// Requests that have the same answer however often they are sent are not stored: lists,
/// explanations, previews, starts.
#[tokio::test]
async fn what_only_reads_or_starts_may_be_asked_of_each_replica() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let job = service.job(ALICE, "app=ocean");
    let start = serde_json::to_vec(&job.asks()).unwrap();
    let preview = br#"{"request": {"app": "ocean"}}"#.to_vec();
    let over = br#"{"runs": [1]}"#.to_vec();
    for (uid, method, path, body) in [
        (ROOT, "POST", "/v1/runs/start", start),
        (ROOT, "POST", "/v1/runs/over", over),
        (ALICE, "GET", "/v1/studies", Vec::new()),
        (ALICE, "GET", "/v1/runs", Vec::new()),
        (ALICE, "POST", "/v1/preview", preview),
    ] {
        let signed = service.user(uid).signed(method, path, body);
        let first = service.user(uid).send_as_it_is(signed.clone()).await.ok();
        let again = other.user(uid).send_as_it_is(signed).await.ok();
        assert_eq!(first, again, "{path}");
    }
    let kept = "select count(*) from nonces";
    assert_eq!(service.database.number(kept).await, 0);
}

/// A credential is too old after a minute: after a quarter of an hour nobody need remember it.
#[tokio::test]
async fn sweeps_forget_what_was_read_a_quarter_of_an_hour_ago() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let path = format!("/v1/studies/{}/reset", run["study_id"]);
    let why = json!({"why": "a test"});
    service.user(ALICE).post(&path, &why).await.ok();
    // The report's is one, too.
    let kept = async || service.database.number("select count(*) from nonces").await;
    let both = kept().await;
    assert!(both >= 1);
    service.advance(Duration::from_secs(14 * 60)).await;
    other.sweep().await;
    assert_eq!(kept().await, both);
    service.user(ALICE).post(&path, &why).await.ok();
    service.advance(Duration::from_secs(61)).await;
    other.sweep().await;
    assert_eq!(kept().await, 1, "the later one");
}
