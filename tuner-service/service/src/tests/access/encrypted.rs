//! Tests of TLS at the doors: who is served, what a reload changes, and what admins are told.

use std::fs;
use std::time::Duration;

use io_autotune_protocol::{Check, CheckState, Diagnosis};
use io_autotune_test_certificates::{Authority, Certified, LONG, OVER};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::Log;
use super::super::service::Caller;
use super::*;
use crate::door::Door;
use crate::listen::{self, Listeners};

/// A service with a certificate, and its users' door, open at an address.
struct Encrypted {
    service: TestService,
    authority: Authority,
    address: std::net::SocketAddr,
    _stop: watch::Sender<bool>,
    _serving: JoinHandle<()>,
}

/// What service.toml says of TLS.
fn section(certified: &Certified, more: &str) -> String {
    let Certified { certificate, key } = certified;
    format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n{more}")
}

impl Encrypted {
    async fn new(more: &str) -> Self {
        let authority = Authority::new();
        let certified = authority.certify("service", "DNS:localhost", LONG);
        let service = TestService::with(&section(&certified, more)).await;
        let path = service.files.path("listening.toml");
        let text = fs::read_to_string(service.files.path("service.toml")).unwrap();
        let mut toml: toml::Table = text.parse().unwrap();
        let listen = "tcp = \"127.0.0.1:0\"\n".parse().unwrap();
        toml.insert("listen".into(), toml::Value::Table(listen));
        fs::write(&path, toml.to_string()).unwrap();
        let config = crate::config::Config::load(&path).unwrap();
        let (_, users) = Listeners::open(&config.listen).unwrap();
        let (stop, stopping) = watch::channel(false);
        let router = service.door(Door::Users);
        let certificate = service.certificate.clone();
        Self {
            address: users.tcp_addresses()[0],
            _serving: tokio::spawn(listen::serve(
                Door::Users,
                users,
                router,
                certificate,
                stopping,
            )),
            service,
            authority,
            _stop: stop,
        }
    }

    async fn clear(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection of a client that believes this authority.
    async fn encrypted(&self, authority: &Authority) -> std::io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(authority.client());
        let name = "localhost".try_into().unwrap();
        connector.connect(name, self.clear().await).await
    }

    fn alice(&self) -> Caller<'_> {
        self.service.user(ALICE)
    }
}

/// Asks for the studies of a user, over a connection that stays open. Returns the answer's first
/// bytes, which have its head.
async fn ask(caller: Caller<'_>, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    let signed = caller.signed("GET", "/v1/studies", Vec::new());
    let head = format!(
        "GET {} HTTP/1.1\r\nhost: x\r\nx-io-autotune-nonce: {}\r\nx-io-autotune-credential: {}\r\n\r\n",
        signed.path,
        signed.nonce,
        signed.credential.unwrap()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64 * 1024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn with_a_certificate_each_client_is_served_as_it_speaks() {
    let site = Encrypted::new("").await;
    let mut encrypted = site.encrypted(&site.authority).await.unwrap();
    let answer = ask(site.alice(), &mut encrypted).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let answer = ask(site.alice(), &mut site.clear().await).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// Attack (tls): A client speaks clear text where the site requires TLS.
/// Outcome: It is told what to write into client.toml, and nothing else.
#[tokio::test]
async fn where_tls_is_required_clear_text_is_told_so_and_nothing_else() {
    let site = Encrypted::new("required = true\n").await;
    let mut encrypted = site.encrypted(&site.authority).await.unwrap();
    let answer = ask(site.alice(), &mut encrypted).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for _ in 0..2 {
        let answer = ask(site.alice(), &mut site.clear().await).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(
            answer.contains("write tls:HOST:PORT and tls_ca"),
            "{answer}"
        );
    }
    // Who is on the service's host is none of the network's.
    site.alice().get("/v1/studies").await.ok();
}

/// Attack (tls): Clients begin a handshake and never end it.
/// Outcome: Each connection is closed in time; jobs ask at another door.
#[tokio::test]
async fn a_handshake_that_is_not_ended_is_let_go_of() {
    let site = Encrypted::new("").await;
    for begun in [&b""[..], &[22], &[22, 3, 1, 2, 0, 1]] {
        let mut stream = site.clear().await;
        stream.write_all(begun).await.unwrap();
        tokio::time::pause();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        tokio::time::resume();
        assert_eq!(answer, b"");
    }
    let mut encrypted = site.encrypted(&site.authority).await.unwrap();
    let answer = ask(site.alice(), &mut encrypted).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// Attack (tls): A host without a credential begins as many handshakes as there are places.
/// Outcome: They count as its connections do, and take no other's places.
#[tokio::test]
async fn handshakes_that_are_not_ended_take_the_places_of_their_host_alone() {
    let site = Encrypted::new("").await;
    let mut held = Vec::new();
    for _ in 0..64 {
        let mut stream = site.clear().await;
        stream.write_all(&[22, 3, 1]).await.unwrap();
        held.push(stream);
    }
    let mut one_more = site.clear().await;
    let mut answer = Vec::new();
    let _ = one_more.write_all(b"GET /v1/health HTTP/1.0\r\n\r\n").await;
    let _ = one_more.read_to_end(&mut answer).await;
    assert_eq!(String::from_utf8_lossy(&answer), "");
    site.alice().get("/v1/studies").await.ok();
}

#[tokio::test]
async fn a_reload_takes_another_certificate_and_cuts_nobody_off() {
    let site = Encrypted::new("").await;
    let mut before = site.encrypted(&site.authority).await.unwrap();
    ask(site.alice(), &mut before).await;
    let other = Authority::new();
    let certified = other.certify("service", "DNS:localhost", LONG);
    site.service.reload(&section(&certified, "")).await;
    let answer = ask(site.alice(), &mut before).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(site.encrypted(&site.authority).await.is_err());
    let mut after = site.encrypted(&other).await.unwrap();
    ask(site.alice(), &mut after).await;
    // Renewed files have the names of those before them.
    let renewed = site.authority.certify("service", "DNS:localhost", LONG);
    fs::copy(&renewed.certificate, &certified.certificate).unwrap();
    fs::copy(&renewed.key, &certified.key).unwrap();
    site.service.hang_up().await;
    site.encrypted(&site.authority).await.unwrap();
    // A key of another certificate changes nothing.
    let third = other.certify("third", "DNS:localhost", LONG);
    fs::copy(&third.key, &certified.key).unwrap();
    site.service.hang_up().await;
    site.encrypted(&site.authority).await.unwrap();
    assert!(site.encrypted(&other).await.is_err());
    // TLS goes with its section.
    site.service.reload("").await;
    assert!(site.encrypted(&site.authority).await.is_err());
    let answer = ask(site.alice(), &mut site.clear().await).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// What doctor says of the certificate.
async fn examined(service: &TestService) -> Option<Check> {
    let diagnosis: Diagnosis = service.user(ADMIN).get("/v1/doctor").await.read();
    let mut checks = diagnosis.checks.into_iter();
    checks.find(|check| check.name == "certificate")
}

/// The time of the metric.
async fn shown(service: &TestService) -> Option<i64> {
    service.advance(Duration::from_secs(2)).await;
    let text = service.metrics().await;
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("io_autotune_certificate_end_seconds "));
    found.map(|seconds| seconds.parse().unwrap())
}

#[tokio::test]
async fn doctor_and_the_metrics_tell_when_the_certificate_runs_out() {
    const DAY: u64 = 86_400;
    let service = TestService::new().await;
    assert_eq!(examined(&service).await, None);
    assert_eq!(shown(&service).await, None);
    let authority = Authority::new();
    let end = service.now() + Duration::from_secs(30 * DAY);
    let end = end.strftime("%Y%m%d%H%M%SZ").to_string();
    let certified = authority.certify("service", "DNS:localhost", (LONG.0, &end));
    service.reload(&section(&certified, "")).await;
    let check = examined(&service).await.unwrap();
    assert_eq!(check.state, CheckState::Ok, "{check:?}");
    assert!(
        check.detail.contains("clear text is taken too"),
        "{check:?}"
    );
    let left = shown(&service).await.unwrap() - service.now().as_second();
    assert!((29 * 86_400..=30 * 86_400).contains(&left), "{left}");
    for (days, state) in [(17, CheckState::Warning), (14, CheckState::Failed)] {
        service.advance(Duration::from_secs(days * DAY)).await;
        let check = examined(&service).await.unwrap();
        assert_eq!(check.state, state, "{check:?}");
        assert!(check.fix.unwrap().contains("systemctl reload"));
    }
}

#[tokio::test]
async fn a_service_begins_with_a_certificate_that_has_run_out_and_serves_the_others() {
    let log = Log::listen();
    let authority = Authority::new();
    let certified = authority.certify("service", "DNS:localhost", OVER);
    let service = TestService::with(&section(&certified, "")).await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let check = examined(&service).await.unwrap();
    assert_eq!(check.state, CheckState::Failed);
    assert!(
        check.detail.contains("it ran out at 2021-01-01T00:00:00Z"),
        "{check:?}"
    );
    let lines = log.read();
    assert!(
        lines
            .iter()
            .any(|line| line.to_string().contains("it ran out at 2021")),
        "{lines:?}"
    );
}
