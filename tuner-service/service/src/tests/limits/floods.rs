//! Refusals without end: of no kind do they fill the log.

use std::net::IpAddr;

use serde_json::json;

use super::{ADMIN, ALICE, Answer, BOB, COLLECTOR, Log, TestService, at_once};
use crate::door::Door;

/// Requests of each kind: many times what may be logged of them.
const REQUESTS: usize = 40;

/// Lines of the log in ten seconds that anybody may cause.
const LINES: usize = 10;

/// Sends one request again and again, and looks at what is logged of it.
async fn flood(kind: &str, status: u16, mut ask: impl AsyncFnMut() -> Answer) {
    let log = Log::listen();
    for _ in 0..REQUESTS {
        let answer = ask().await;
        assert_eq!(answer.status.as_u16(), status, "{kind}: {answer}");
    }
    let lines = log.take();
    assert!(
        lines.len() <= LINES,
        "{kind}: {} lines, such as {}",
        lines.len(),
        lines[LINES]
    );
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn refusals_of_nobody_fill_no_log() {
    let service = TestService::new().await;
    let alice = service.user(ALICE);
    let signed = alice.signed("GET", "/v1/accelerators", Vec::new());
    let mut unsigned = signed.clone();
    unsigned.credential = None;
    let mut forged = signed.clone();
    forged.credential = Some("MUNGE:AwQFAAC:".into());
    let mut misnumbered = signed.clone();
    misnumbered.nonce = "x".into();
    alice.send_as_it_is(signed.clone()).await.ok();
    for (kind, request) in [
        ("no credential", unsigned),
        ("made up", forged),
        ("no nonce", misnumbered),
        ("read before", signed),
    ] {
        flood(kind, 401, async || {
            at_once(alice.send_as_it_is(request.clone())).await
        })
        .await;
    }
    let elsewhere = alice.from("10.0.0.1".parse().unwrap(), false);
    flood("another path", 401, async || {
        let mut signed = elsewhere.signed("GET", "/v1/runs", Vec::new());
        signed.path = "/v1/studies".into();
        elsewhere.send_as_it_is(signed).await
    })
    .await;
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn refusals_of_a_user_fill_no_log() {
    let service = TestService::with("[users]\nstudies = 1\n").await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let alice = service.user(ALICE);
    let none = json!({"runs": []});
    flood("for nodes", 403, async || {
        alice.post("/v1/runs/over", &none).await
    })
    .await;
    flood("for admins", 403, async || alice.get("/v1/doctor").await).await;
    flood("no study", 404, async || {
        alice.get("/v1/studies/4711").await
    })
    .await;
    flood("no path", 404, async || alice.get("/v1/nothing").await).await;
    let long = vec![b' '; 70_000];
    flood("too long", 413, async || {
        alice.send("POST", "/v1/preview", long.clone()).await
    })
    .await;
    flood("no body", 422, async || {
        alice.send("POST", "/v1/preview", b"{".to_vec()).await
    })
    .await;
    flood("no number", 422, async || {
        alice.get("/v1/runs?limit=-1").await
    })
    .await;
    flood("a zero byte", 422, async || {
        alice.get("/v1/runs?app=%00").await
    })
    .await;
    let order =
        json!({"kind": "pin", "why": "a flood", "scope": {"application": "\0"}, "values": {}});
    flood("no name", 422, async || {
        alice.post("/v1/orders", &order).await
    })
    .await;
    let job = service.job(ALICE, "app=lake");
    flood("too many studies", 422, async || {
        job.try_start(&service).await
    })
    .await;
    let bob = service.user(BOB).at(Door::Nodes);
    flood("at nodes' door", 403, async || {
        bob.post("/v1/runs/over", &none).await
    })
    .await;
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn refusals_of_who_asks_too_much_fill_no_log() {
    let service = TestService::with("[users]\nrequests_per_second = 0.01\n").await;
    let alice = service.user(ALICE);
    for _ in 0..10 {
        alice.get("/v1/accelerators").await.ok();
    }
    flood("a request", 429, async || {
        at_once(alice.get("/v1/accelerators")).await
    })
    .await;
    flood("health", 429, async || {
        at_once(alice.get("/v1/health")).await
    })
    .await;
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn refusals_of_root_of_another_host_fill_no_log() {
    let service = TestService::with("[access]\ncheck_origins = true\n").await;
    service
        .slurm()
        .say("scontrol-nodes", "NodeName=n1 NodeAddr=10.0.0.1\n");
    service.look_at_slurm().await;
    let elsewhere: IpAddr = "10.0.0.9".parse().unwrap();
    let root = service.node().from(elsewhere, true);
    let mut job = service.job(ALICE, "app=ocean");
    flood("another one's node", 403, async || {
        root.post("/v1/runs/start", job.asks()).await
    })
    .await;
    job.job.node = "n2".into();
    flood("no node", 503, async || {
        root.post("/v1/runs/start", job.asks()).await
    })
    .await;
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn requests_that_cannot_be_authenticated_fill_no_log() {
    let service = TestService::new().await;
    service.credentials.fail(true);
    let alice = service.user(ALICE);
    let signed = alice.signed("GET", "/v1/accelerators", Vec::new());
    flood("munged is away", 503, async || {
        at_once(alice.send_as_it_is(signed.clone())).await
    })
    .await;
}

/// Attack (floods): Requests that are refused are sent without end.
/// Outcome: Of each kind the log has ten lines in ten seconds.
#[tokio::test]
async fn outcomes_that_are_not_wanted_fill_no_log() {
    let service = TestService::new().await;
    let none = json!({"cluster": "alpha", "outcomes": []});
    let collector = service.user(COLLECTOR);
    flood("not wanted", 503, async || {
        collector.post("/v1/outcomes", &none).await
    })
    .await;
    let admin = service.user(ADMIN);
    flood("no report", 404, async || {
        admin.get("/v1/report/index.html").await
    })
    .await;
}
