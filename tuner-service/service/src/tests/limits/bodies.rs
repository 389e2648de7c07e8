//! Tests of bodies: how long they may be for each sender, and which part of them is read.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use io_autotune_protocol::{FinishAnswer, FinishRequest, Step};
use serde_json::json;
use tower::ServiceExt;

use super::{ADMIN, ALICE, COLLECTOR, ROOT, TestJob, TestService, at_once, is_short_and_printable};
use crate::api::{AT_WORK, LONG_BODIES};
use crate::door::Door;
use crate::tests::service::Caller;

/// The most bytes of a body of root's.
const OF_ROOT: usize = 16 << 20;
const OF_A_USER: usize = 64 << 10;

/// A body of zeros that comes a piece at a time, and says how much of it was taken.
pub(super) struct Coming {
    taken: Arc<AtomicUsize>,
    /// Bytes after which nothing comes any more, without an end.
    stops_after: usize,
    declared: Option<u64>,
}

const PIECE: usize = 4096;

impl Coming {
    pub(super) fn body(stops_after: usize, declared: Option<u64>) -> (Body, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let body = Self {
            taken: Arc::clone(&taken),
            stops_after,
            declared,
        };
        (Body::new(body), taken)
    }

    /// One that never ends.
    fn without_end() -> (Body, Arc<AtomicUsize>) {
        Self::body(usize::MAX, None)
    }

    /// One that says how long it is before it comes.
    fn declared(length: u64) -> (Body, Arc<AtomicUsize>) {
        Self::body(usize::MAX, Some(length))
    }
}

impl HttpBody for Coming {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let taken = self.taken.fetch_add(PIECE, Ordering::Relaxed);
        match taken >= self.stops_after {
            true => Poll::Pending,
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'0'; PIECE]))))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.declared
            .map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// A report of this number of steps.
fn report_of(job: &TestJob, steps: u32) -> FinishRequest {
    let report = job.reports(None, 1.0);
    let step = report.steps[0].clone();
    let numbered = |number| Step {
        step_id: number,
        ..step.clone()
    };
    FinishRequest {
        steps: (0..steps).map(numbered).collect(),
        ..report
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_users_body_is_short() {
    let service = TestService::new().await;
    for caller in [service.user(ALICE), service.user(ADMIN)] {
        let longest = caller
            .send("POST", "/v1/preview", vec![b' '; OF_A_USER])
            .await;
        longest.bad_request();
        let long = caller
            .send("POST", "/v1/preview", vec![b' '; OF_A_USER + 1])
            .await;
        assert_eq!(
            long.refused(413, "too_large"),
            "a request's body may have 65536 bytes at the most"
        );
        assert!(long.is_signed, "whoever signed it can trust the refusal");
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_nodes_body_may_be_long() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean,mode=observe");
    let started = job.start(&service).await;
    let report = FinishRequest {
        run_id: Some(started.run_id),
        ..report_of(&job, 40_000)
    };
    assert!(serde_json::to_vec(&report).unwrap().len() > 3_000_000);
    let answer: FinishAnswer = service.node().post("/v1/runs/finish", &report).await.read();
    assert_eq!(answer.run_id, started.run_id);
    let longest = service
        .node()
        .send("POST", "/v1/runs/finish", vec![b' '; OF_ROOT])
        .await;
    longest.bad_request();
}

#[tokio::test]
async fn a_collectors_body_may_be_long_where_it_collects_and_nowhere_else() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    let collector = service.user(COLLECTOR);
    let many: Vec<_> = (1..=1000)
        .map(|job_id| json!({"job_id": job_id, "state": "COMPLETED", "node_list": "n".repeat(100)}))
        .collect();
    let body = serde_json::to_vec(&json!({"cluster": "alpha", "outcomes": many})).unwrap();
    assert!(body.len() > OF_A_USER);
    let stored = collector
        .send("POST", "/v1/outcomes", body.clone())
        .await
        .ok();
    assert_eq!(stored["stored"], 1000);
    collector
        .send("POST", "/v1/preview", body)
        .await
        .refused(413, "too_large");
}

/// Attack (floods): A user sends a long piece of an import.
/// Outcome: The refusal says who may import.
#[tokio::test]
async fn who_may_not_import_is_told_so_and_not_that_the_file_is_long() {
    let service = TestService::new().await;
    let path = format!("/v1/imports/{}", "0a".repeat(16));
    let user = service.user(ALICE);
    let (body, taken) = Coming::without_end();
    let refused = user
        .send_with(user.signed("POST", &path, Vec::new()), body)
        .await;
    assert_eq!(
        refused.forbidden(),
        "only admins import studies: [access] admins of service.toml names them"
    );
    assert_eq!(taken.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_piece_of_an_import_has_a_length_and_a_place() {
    let service = TestService::new().await;
    let admin = service.user(ADMIN);
    let path = format!("/v1/imports/{}", "0a".repeat(16));
    let piece = |place: u32, length: usize| json!({"place": place, "text": "x".repeat(length)});
    for (place, length) in [(1, 512 << 10), (127, 1)] {
        admin.post(&path, piece(place, length)).await.ok();
    }
    for (place, length) in [(1, (512 << 10) + 1), (128, 1), (u32::MAX, 1), (1, 0)] {
        assert_eq!(
            admin.post(&path, piece(place, length)).await.bad_request(),
            "a file has at most 128 pieces of at most 524288 bytes each: import fewer studies at once"
        );
    }
    let taken = service
        .database
        .number("select count(*) from import_chunks")
        .await;
    assert_eq!(taken, 2);
}

#[tokio::test]
async fn an_upload_is_named_by_32_small_hexadecimal_digits() {
    let service = TestService::new().await;
    let admin = service.user(ADMIN);
    let end = json!({"chunks": 1, "step": "look", "why": "a test"});
    for name in [
        "0a".repeat(15) + "0",
        "0A".repeat(16),
        "0a".repeat(17),
        "zz".repeat(16),
        "%2e".repeat(32),
    ] {
        let (laid, ended) = (
            format!("/v1/imports/{name}"),
            format!("/v1/imports/{name}/end"),
        );
        for answer in [
            admin.post(&laid, json!({"place": 1, "text": "x"})).await,
            admin.post(&ended, &end).await,
        ] {
            assert_eq!(
                answer.bad_request(),
                "an upload is named by 32 hexadecimal digits, in small letters"
            );
        }
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_body_of_nobody_is_not_read() {
    let service = TestService::new().await;
    let (user, node) = (service.user(ALICE), service.node());
    let none = [
        (user, None),
        (user, Some("MUNGE:none:")),
        (user, Some("")),
        (node, None),
    ];
    for (nobody, credential) in none {
        let mut request = nobody.signed("POST", "/v1/runs/finish", Vec::new());
        request.credential = credential.map(str::to_owned);
        let short = Coming::declared(PIECE as u64);
        for (body, taken) in [Coming::without_end(), short] {
            let answer = at_once(nobody.send_with(request.clone(), body)).await;
            answer.refused(401, "unauthorized");
            assert!(!answer.is_signed);
            assert_eq!(taken.load(Ordering::Relaxed), 0, "{credential:?}");
        }
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_refused_before_its_credential_is_read() {
    let service = TestService::new().await;
    let root = service.node();
    let signed = root.signed("POST", "/v1/runs/over", br#"{"runs": []}"#.to_vec());
    for length in [OF_ROOT as u64 + 1, 10_u64.pow(12), 1 << 63] {
        let (body, taken) = Coming::declared(length);
        let refused = root.send_with(signed.clone(), body).await;
        assert_eq!(
            refused.refused(413, "too_large"),
            "a request's body may have 16777216 bytes at the most"
        );
        assert_eq!(taken.load(Ordering::Relaxed), 0, "{length}");
    }
    root.send_as_it_is(signed).await.ok();
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_users_body_that_says_it_is_too_long_is_refused_unread() {
    let service = TestService::new().await;
    let user = service.user(ALICE);
    let (body, taken) = Coming::declared(OF_A_USER as u64 + 1);
    let refused = user
        .send_with(user.signed("POST", "/v1/preview", Vec::new()), body)
        .await;
    refused.refused(413, "too_large");
    assert_eq!(taken.load(Ordering::Relaxed), 0);
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_body_that_does_not_end_is_read_no_further_than_the_limit() {
    let service = TestService::new().await;
    for (caller, limit) in [(service.node(), OF_ROOT), (service.user(ALICE), OF_A_USER)] {
        let (body, taken) = Coming::without_end();
        let signed = caller.signed("POST", "/v1/runs/finish", Vec::new());
        let refused = caller.send_with(signed, body).await;
        refused.refused(413, "too_large");
        let taken = taken.load(Ordering::Relaxed);
        assert!(
            (limit..=limit + 2 * PIECE).contains(&taken),
            "{taken} of {limit}"
        );
    }
}

/// Begins bodies that drip: they have come in part, and nothing more comes.
async fn drip(caller: Caller<'_>, path: &str, bodies: usize, declared: Option<u64>) {
    let router = caller.router();
    for _ in 0..bodies {
        let (body, taken) = Coming::body(PIECE, declared);
        let request = caller.request(&caller.signed("POST", path, Vec::new()), body);
        tokio::spawn(router.clone().oneshot(request));
        let begun = async {
            while taken.load(Ordering::Relaxed) <= PIECE {
                tokio::task::yield_now().await;
            }
        };
        // It waits for others only if they keep the places of those that are read.
        let begun = tokio::time::timeout(Duration::from_secs(60), begun).await;
        begun.expect("a body is not read");
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_nodes_long_report_is_read_beside_users_bodies_that_drip() {
    let service = TestService::new().await;
    drip(service.user(ALICE), "/v1/preview", 4 * LONG_BODIES, None).await;
    for caller in [service.node(), service.user(ROOT)] {
        let report = report_of(&service.job(ALICE, "app=ocean,mode=observe"), 13_000);
        assert!(serde_json::to_vec(&report).unwrap().len() > 1_000_000);
        let taken = caller.post("/v1/runs/finish", &report).await;
        assert!(!taken.read::<FinishAnswer>().duplicate);
    }
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_nodes_long_report_is_read_beside_a_collectors_bodies_that_drip() {
    let service = TestService::new().await;
    drip(service.user(COLLECTOR), "/v1/outcomes", LONG_BODIES, None).await;
    let report = report_of(&service.job(ALICE, "app=ocean,mode=observe"), 13_000);
    let taken = service.node().post("/v1/runs/finish", &report).await;
    assert!(!taken.read::<FinishAnswer>().duplicate);
}

/// Attack (floods): Short requests at the nodes' door begin, and their bodies do not come.
/// Outcome: A prolog is answered beside them.
#[tokio::test]
async fn a_prolog_is_answered_beside_short_bodies_that_drip() {
    let service = TestService::new().await;
    let short = Some(2 * PIECE as u64);
    drip(service.node(), "/v1/runs/finish", AT_WORK, short).await;
    let job = service.job(ALICE, "app=ocean");
    let answered = tokio::time::timeout(Duration::from_secs(60), job.start(&service)).await;
    answered.expect("it waits for those that hold the turns");
}

/// Bodies that are none of any request.
fn hostile() -> [(&'static str, Vec<u8>); 7] {
    let deep = format!("{{\"job\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    [
        ("deep", format!("{{\"job\":{}", "[".repeat(100_000)).into()),
        ("deep and closed", deep.into()),
        ("not a number", br#"{"limit_seconds": NaN}"#.to_vec()),
        ("no text", b"{\"job\": \"\xff\xfe\"}".to_vec()),
        ("empty", Vec::new()),
        (
            "long",
            format!("{{\"job\": \"{}\"}}", "x".repeat(1_000_000)).into(),
        ),
        ("many", format!("[{}0]", "0,".repeat(1_000_000)).into()),
    ]
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn a_body_that_is_none_is_refused_and_not_repeated() {
    let service = TestService::new().await;
    let root = service.user(ROOT);
    for (kind, body) in hostile() {
        for path in [
            "/v1/runs/start",
            "/v1/runs/finish",
            "/v1/runs/over",
            "/v1/runs/directives",
            "/v1/preview",
            "/v1/outcomes",
        ] {
            let answer = root.send("POST", path, body.clone()).await;
            let said = answer.bad_request();
            assert!(said.len() <= 4000, "{kind}: {answer}");
            is_short_and_printable(&answer);
        }
    }
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn a_body_that_is_none_steers_nothing() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let study = service.study_id("ocean").await;
    let of_the_study = ["pin", "unpin", "reset", "objective", "accept", "warm-start"];
    let of_the_study = of_the_study.map(|order| format!("/v1/studies/{study}/{order}"));
    let import = format!("/v1/imports/{}", "0a".repeat(16));
    let others = [
        "/v1/orders",
        "/v1/orders/end",
        "/v1/retention",
        "/v1/audit/1/undo",
    ];
    let others = others.map(str::to_owned).into_iter();
    let before = service.study("ocean").await;
    for (kind, body) in hostile() {
        let too_long = body.len() > OF_A_USER;
        for path in others.clone().chain(of_the_study.clone()) {
            let answer = service.user(ADMIN).send("POST", &path, body.clone()).await;
            match too_long {
                true => answer.refused(413, "too_large"),
                false => answer.bad_request(),
            };
            is_short_and_printable(&answer);
        }
        // Whose bodies may be longer.
        for path in [import.clone(), format!("{import}/end")] {
            let answer = service.user(ADMIN).send("POST", &path, body.clone()).await;
            assert!(answer.bad_request().len() <= 4000, "{kind}: {answer}");
        }
    }
    assert_eq!(service.study("ocean").await, before);
    assert_eq!(
        service.database.number("select count(*) from audit").await,
        0
    );
}

#[tokio::test]
async fn a_body_of_another_kind_than_json_is_refused() {
    let service = TestService::new().await;
    let user = service.user(ALICE);
    let signed = user.signed("POST", "/v1/preview", br#"{"request": {}}"#.to_vec());
    let mut request = user.request(&signed, Body::from(signed.body.clone()));
    request.headers_mut().remove("content-type");
    let router = service.door(Door::Users).borrow().clone();
    let answer = router.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 422);
}
