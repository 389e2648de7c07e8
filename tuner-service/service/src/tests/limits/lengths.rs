//! Lengths that lie: over a socket, as hyper reads them.

use std::time::Duration;

use io_autotune_protocol::signature::{NONCE_HEADER, REQUEST_HEADER};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::service::Signed;
use super::{ALICE, ROOT, TestService};
use crate::config::ListenConfig;
use crate::door::Door;
use crate::listen::{Listeners, serve};
use crate::tls;

/// The most bytes that may be in the sockets' and the server's buffers when it closes the
/// connection.
const UNREAD: usize = 8 << 20;

/// The users' door of a service, open on a socket.
struct Listening {
    directory: tempfile::TempDir,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Listening {
    fn to(service: &TestService) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ListenConfig {
            unix: Some(directory.path().join("socket")),
            tcp: None,
            nodes_unix: None,
            nodes_tcp: None,
            nodes_any_port: false,
            metrics: None,
            host_connections: 64,
        };
        let (_, users) = Listeners::open(&config).unwrap();
        let (stop, stopping) = watch::channel(false);
        let router = service.door(Door::Users);
        Self {
            directory,
            stop,
            serving: tokio::spawn(serve(Door::Users, users, router, tls::none(), stopping)),
        }
    }

    /// Begins a request with these headers besides those of its signature.
    async fn begun(&self, signed: &Signed, headers: &[&str]) -> UnixStream {
        let mut stream = UnixStream::connect(self.directory.path().join("socket"))
            .await
            .unwrap();
        let credential = signed.credential.as_deref().unwrap_or_default();
        let mut head = vec![
            format!("{} {} HTTP/1.1", signed.method, signed.path),
            "host: io-autotuned".into(),
            "content-type: application/json".into(),
            format!("{NONCE_HEADER}: {}", signed.nonce),
            format!("{REQUEST_HEADER}: {credential}"),
        ];
        head.extend(headers.iter().map(|header| (*header).to_owned()));
        let head = head.join("\r\n") + "\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Connections end, and with them the service.
    async fn end(self) {
        self.stop.send(true).unwrap();
        self.serving.await.unwrap();
    }
}

/// The status of the answer; `None` if the connection ends without one.
async fn status_of(mut stream: UnixStream) -> Option<u16> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.windows(2).any(|two| two == b"\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_refused_unread() {
    let service = TestService::new().await;
    let listening = Listening::to(&service);
    tokio::time::pause();
    let mut signed = service
        .user(ALICE)
        .signed("POST", "/v1/runs/finish", Vec::new());
    signed.credential = Some("MUNGE:none:".into());
    for length in [(16 << 20) + 1, 10_u64.pow(12), 1 << 63] {
        let header = format!("content-length: {length}");
        let stream = listening.begun(&signed, &[&header]).await;
        assert_eq!(status_of(stream).await, Some(413), "{length}");
    }
    for wrong in ["-1", "0x10", "2**4", "99999999999999999999999"] {
        let header = format!("content-length: {wrong}");
        let stream = listening.begun(&signed, &[&header]).await;
        assert_eq!(status_of(stream).await, Some(400), "{wrong}");
    }
    listening.end().await;
}

/// Attack (floods): Bodies are too long, do not end, drip, or come without a credential.
/// Outcome: No more than the sender's limit is read.
#[tokio::test]
async fn a_chunked_body_that_does_not_end_is_let_go_of() {
    let service = TestService::new().await;
    let listening = Listening::to(&service);
    tokio::time::pause();
    for (uid, limit, status) in [
        (Some(ROOT), 16 << 20, 413),
        (Some(ALICE), 64 << 10, 413),
        (None, 0, 401),
    ] {
        let mut signed =
            service
                .user(uid.unwrap_or(ALICE))
                .signed("POST", "/v1/runs/finish", Vec::new());
        if uid.is_none() {
            signed.credential = Some("MUNGE:none:".into());
        }
        let mut stream = listening
            .begun(&signed, &["transfer-encoding: chunked"])
            .await;
        let chunk = format!("10000\r\n{}\r\n", "0".repeat(1 << 16));
        let mut sent = 0;
        while sent <= limit + UNREAD && stream.write_all(chunk.as_bytes()).await.is_ok() {
            sent += 1 << 16;
        }
        assert!(sent <= limit + UNREAD, "{sent} bytes of {uid:?} were taken");
        let answered = status_of(stream).await;
        assert!(
            answered.is_none_or(|answered| answered == status),
            "{answered:?} of {uid:?}"
        );
    }
    listening.end().await;
}

/// Attack (floods): A report is cut off, or declares less than what was signed.
#[tokio::test]
async fn a_body_of_another_length_than_it_says_is_not_acted_on() {
    let service = TestService::new().await;
    let listening = Listening::to(&service);
    let job = service.job(ALICE, "app=ocean");
    let whole = serde_json::to_vec(&job.reports(None, 1.0)).unwrap();
    let said = async |length: usize| {
        let signed = service
            .user(ROOT)
            .signed("POST", "/v1/runs/finish", whole.clone());
        let mut stream = listening
            .begun(&signed, &[&format!("content-length: {length}")])
            .await;
        stream.write_all(&whole).await.unwrap();
        if length > whole.len() {
            stream.shutdown().await.unwrap();
        }
        status_of(stream).await
    };
    tokio::time::pause();
    let cut_off = said(whole.len() + 1).await;
    assert!(matches!(cut_off, None | Some(413)), "{cut_off:?}");
    assert_eq!(
        said(whole.len() - 1).await,
        Some(401),
        "less than was signed"
    );
    tokio::time::resume();
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
    assert_eq!(
        said(whole.len()).await,
        Some(200),
        "what is as it says is taken"
    );
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        1
    );
    listening.end().await;
}

/// Attack (floods): Connections say nothing, never end a request, or are too many of one user or
/// host.
/// Outcome: Each is closed in time, and each may have so many; local root has no limit.
#[tokio::test]
async fn a_body_that_never_comes_is_waited_for_no_longer_than_a_connection_lives() {
    let service = TestService::new().await;
    let listening = Listening::to(&service);
    let signed = service
        .user(ALICE)
        .signed("POST", "/v1/preview", b"{}".to_vec());
    let headers = ["content-length: 1000", "expect: 100-continue"];
    let mut stream = listening.begun(&signed, &headers).await;
    // Only once the service asks for the body does its limit run for certain: a clock that stood
    // before would be advanced past other timers while the socket is still on its way.
    let mut goes_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut goes_on).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    stream.write_all(b"{").await.unwrap();
    assert_eq!(status_of(stream).await, None);
    assert!(began.elapsed() <= Duration::from_secs(31));
    tokio::time::resume();
    let signed = service
        .user(ROOT)
        .signed("POST", "/v1/runs/over", br#"{"runs":[]}"#.to_vec());
    let mut stream = listening.begun(&signed, &["content-length: 11"]).await;
    stream.write_all(&signed.body).await.unwrap();
    assert_eq!(status_of(stream).await, Some(200));
    listening.end().await;
}
