//! Tests of a client with TLS, against servers that are the service, or not.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use io_autotune_test_certificates::{Authority, Certified, LONG, OVER, TO_COME};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::signature::sign_answer;
use crate::testing::{Cast, plain};

const USER: u32 = 1000;
const SERVICE: u32 = 7;

/// What is at the address of the service.
enum Serves {
    Tls(Certified),
    /// The service, in clear text.
    Clear,
    /// It takes connections, and says nothing.
    Nothing,
}

/// A server that is asked by a client, and the number of requests that it has been able to read.
struct Asked {
    address: String,
    requests: Arc<AtomicUsize>,
    cast: Arc<Cast>,
}

impl Asked {
    async fn new(serves: Serves) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cast, requests) = (Arc::new(plain()), Arc::new(AtomicUsize::new(0)));
        let (its_cast, counted) = (Arc::clone(&cast), Arc::clone(&requests));
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (cast, requests) = (Arc::clone(&its_cast), Arc::clone(&counted));
                match &serves {
                    Serves::Nothing => held.push(stream),
                    Serves::Clear => drop(tokio::spawn(serve(stream, cast, requests))),
                    Serves::Tls(certified) => {
                        let acceptor = TlsAcceptor::from(certified.server());
                        tokio::spawn(async move {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, cast, requests).await;
                            }
                        });
                    }
                }
            }
        });
        Self {
            address: format!("localhost:{port}"),
            requests,
            cast,
        }
    }

    fn client(&self, authority: &Path) -> Client {
        Client {
            endpoints: [Endpoint::Tls(self.address.clone())].into(),
            preferred: Arc::default(),
            authority: Some(authority.into()),
            service_uid: SERVICE,
            credentials: Arc::clone(&self.cast.user),
            answer_limit: ANSWER_LIMIT,
            reader: None,
        }
    }

    async fn answers(&self, authority: &Path, idempotent: bool) -> Result<String, ClientError> {
        let call = Call {
            idempotent,
            ..Call::post("/v1/x", "question")
        };
        let deadline = Duration::from_secs(30);
        self.client(authority).call(call, deadline).await
    }
}

/// Answers health, and signs what it answers to other requests. Not HTTP is told so, as hyper does.
async fn serve<S>(mut stream: S, cast: Arc<Cast>, requests: Arc<AtomicUsize>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = [0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
        let name = format!("{NONCE_HEADER}: ");
        let nonce = request.lines().find_map(|line| line.strip_prefix(&name));
        let answer = if request.starts_with("GET /v1/health") {
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n".to_owned()
        } else if let Some(nonce) = nonce {
            requests.fetch_add(1, Ordering::Relaxed);
            let nonce = Nonce::parse(nonce).unwrap();
            let signature = sign_answer(&*cast.service, USER, 200, &nonce, b"\"hello\"").unwrap();
            let head = format!("HTTP/1.1 200 OK\r\n{ANSWER_HEADER}: {signature}\r\n");
            format!("{head}content-length: 7\r\n\r\n\"hello\"")
        } else {
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned()
        };
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_answer_of_the_service_that_is_named_is_believed() {
    let authority = Authority::new();
    for names in ["DNS:localhost", "DNS:elsewhere,DNS:localhost"] {
        let asked = Asked::new(Serves::Tls(authority.certify("service", names, LONG))).await;
        for idempotent in [true, false] {
            let answer = asked.answers(&authority.certificate(), idempotent).await;
            assert_eq!(answer.unwrap(), "hello");
        }
    }
}

/// Attack (tls): Another server has a certificate of another authority, for another name, or one
/// that has run out or is not yet valid; or it speaks clear text.
/// Outcome: Nothing is sent to it; it is an outage, which says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_a_server_that_is_not_shown_to_be_the_service() {
    let (authority, other) = (Authority::new(), Authority::new());
    let of = |stem, names, valid| Serves::Tls(authority.certify(stem, names, valid));
    for (serves, expected) in [
        (
            Serves::Tls(other.certify("service", "DNS:localhost", LONG)),
            "no authority of tls_ca",
        ),
        (
            of("elsewhere", "DNS:elsewhere", LONG),
            "name the service in client.toml as its certificate does",
        ),
        (of("any", "DNS:*", LONG), "name the service"),
        (of("above", "DNS:*.localhost", LONG), "name the service"),
        (of("number", "IP:127.0.0.1", LONG), "name the service"),
        (
            of("over", "DNS:localhost", OVER),
            "ran out at 2021-01-01T00:00:00Z: give",
        ),
        (
            of("to_come", "DNS:localhost", TO_COME),
            "not valid before 2098-01-01T00:00:00Z",
        ),
        (Serves::Clear, "speaks no TLS"),
    ] {
        let asked = Asked::new(serves).await;
        for idempotent in [true, false] {
            let error = asked.answers(&authority.certificate(), idempotent).await;
            let error = error.unwrap_err();
            assert!(matches!(error, ClientError::Tls(_)), "{error:?}");
            assert!(error.is_outage() && error.is_transient(), "{error}");
            let endpoint = format!("tls:{}: ", asked.address);
            assert!(error.to_string().contains(&endpoint), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(asked.requests.load(Ordering::Relaxed), 0, "{expected}");
    }
}

/// Attack (tls): The handshake stalls.
/// Outcome: It is an outage within the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_stalls_ends_with_the_deadline() {
    let (authority, asked) = (Authority::new(), Asked::new(Serves::Nothing).await);
    let client = asked.client(&authority.certificate());
    let call = client.call::<(), String>(Call::get("/v1/x"), Duration::from_millis(300));
    let error = call.await.unwrap_err();
    assert!(matches!(error, ClientError::Deadline(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_file_of_authorities_is_an_outage_that_names_it() {
    let authority = Authority::new();
    let certified = authority.certify("service", "DNS:localhost", LONG);
    let key = fs::read(&certified.key).unwrap();
    let asked = Asked::new(Serves::Tls(certified)).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    for (content, expected) in [
        (None, "No such file"),
        (Some(&b""[..]), "no certificate in it"),
        (Some(&key), "no certificate in it"),
        (Some(b"-----BEGIN CERTIFICATE-----\n~\n"), "no PEM"),
    ] {
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let error = asked.answers(&path, true).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        let told = error.to_string();
        assert!(told.contains(expected) && told.contains("ca.pem"), "{told}");
    }
}
