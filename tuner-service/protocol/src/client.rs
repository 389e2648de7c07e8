//! The client: one signed request, one verified answer, inside one deadline.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use crate::config::{ClientConfig, ConfigError, Endpoint};
use crate::munge::{Credentials, Munge, MungeError};
use crate::signature::{
    ANSWER_HEADER, NONCE_HEADER, Nonce, REQUEST_HEADER, SignatureError, sign_request, verify_answer,
};
use crate::types::ErrorBody;

/// A larger answer is not read: nothing the service says to a node comes near it.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// The methods that the API uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Writes.
    Post,
}

impl Method {
    fn as_http(self) -> http::Method {
        match self {
            Self::Get => http::Method::GET,
            Self::Post => http::Method::POST,
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call<'a, B: ?Sized> {
    /// The method.
    pub method: Method,
    /// Path and query, percent-encoded.
    pub path: &'a str,
    /// The body, sent as JSON; `None` sends none.
    pub body: Option<&'a B>,
    /// Whether it may be sent to the next endpoint though the first may have carried it out.
    pub idempotent: bool,
}

/// Why no answer was had.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// munged failed before anything was sent.
    #[error(transparent)]
    Munge(#[from] MungeError),
    /// No endpoint gave an answer.
    #[error("the tuner service gives no answer: {0}")]
    Unreachable(String),
    /// The deadline passed.
    #[error("no answer from the tuner service within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// An answer that cannot be believed.
    #[error("the answer from {endpoint} is not the tuner service's: {source}")]
    Signature {
        /// Who answered.
        endpoint: String,
        /// What is wrong with it.
        source: SignatureError,
    },
    /// An answer that cannot be understood.
    #[error("the answer from {endpoint} cannot be read: {problem}")]
    Malformed {
        /// Who answered.
        endpoint: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The service refuses, and says why.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// A stable word for programs, such as `unknown_accelerator`.
        code: String,
        /// For people.
        message: String,
    },
}

impl ClientError {
    /// Whether the same request can be accepted later: spooled reports are kept then.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500 || *status == 429 || *status == 401,
            _ => true,
        }
    }

    /// Whether the service cannot take any request now, whatever is asked of it.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Config(_) | Self::Munge(_) | Self::Unreachable(_) | Self::Deadline(_) => true,
            Self::Refused { status, .. } => *status == 503 || *status == 401,
            Self::Signature { .. } | Self::Malformed { .. } => false,
        }
    }
}

/// A client of the service.
#[derive(Clone)]
pub struct Client {
    endpoints: Vec<Endpoint>,
    service_uid: u32,
    credentials: Arc<dyn Credentials>,
}

impl Client {
    /// A client as configured.
    ///
    /// # Errors
    ///
    /// When the service's account does not exist here.
    pub fn new(config: &ClientConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoints: config.endpoints.clone(),
            service_uid: config.service_uid()?,
            credentials: Arc::new(Munge {
                socket: config.munge_socket.clone(),
            }),
        })
    }

    /// Sends a request and returns the verified answer, all within `deadline`: signing,
    /// connecting, every endpoint, and verifying.
    ///
    /// Endpoints are tried in order, each with an equal share of what is left, so that one that
    /// hangs does not use up the others' time.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub async fn call<B, A>(&self, call: Call<'_, B>, deadline: Duration) -> Result<A, ClientError>
    where
        B: Serialize + ?Sized,
        A: DeserializeOwned,
    {
        let end = Instant::now() + deadline;
        let body = match call.body {
            Some(body) => serde_json::to_vec(body).map_err(|error| ClientError::Malformed {
                endpoint: "this program".into(),
                problem: error.to_string(),
            })?,
            None => Vec::new(),
        };
        let body = Bytes::from(body);
        let mut failures = Vec::new();
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(self.endpoints.len() - index).unwrap_or(u32::MAX);
            let mut sent = false;
            let attempt = self.attempt(endpoint, call.method, call.path, body.clone(), &mut sent);
            let error = match tokio::time::timeout(share, attempt).await {
                Ok(Ok(answer)) => return decode(endpoint, &answer),
                Ok(Err(error)) => error,
                Err(_) => ClientError::Deadline(share),
            };
            if sent && !call.idempotent {
                return Err(error);
            }
            match error {
                error @ ClientError::Munge(_) => return Err(error),
                error @ ClientError::Refused { .. } if !error.is_transient() => return Err(error),
                error => failures.push((endpoint, error)),
            }
        }
        if end <= Instant::now() {
            return Err(ClientError::Deadline(deadline));
        }
        match failures.as_slice() {
            [(_, ClientError::Unreachable(_) | ClientError::Deadline(_))] | [] | [_, _, ..] => {
                Err(ClientError::Unreachable(
                    failures
                        .iter()
                        .map(|(endpoint, error)| match error {
                            ClientError::Unreachable(problem) => format!("{endpoint}: {problem}"),
                            error => format!("{endpoint}: {error}"),
                        })
                        .collect::<Vec<_>>()
                        .join("; "),
                ))
            }
            [_] => Err(failures.remove(0).1),
        }
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        method: Method,
        path: &str,
        body: Bytes,
        sent: &mut bool,
    ) -> Result<Bytes, ClientError> {
        let unreachable =
            |error: &dyn std::fmt::Display| ClientError::Unreachable(error.to_string());
        let method = method.as_http();
        // Connect first: a service that is down must not cost munged two credentials per job.
        let mut connection = Connection::open(endpoint)
            .await
            .map_err(|error| unreachable(&error))?;
        let nonce = Nonce::fresh().map_err(|error| unreachable(&error))?;
        let credential = self
            .sign(method.as_str(), path, &nonce, body.clone())
            .await?;
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::HOST, "io-autotuned")
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(NONCE_HEADER, nonce.as_str())
            .header(REQUEST_HEADER, credential)
            .body(Full::new(body))
            .map_err(|error| unreachable(&error))?;
        *sent = true;
        let answer = connection
            .send(request)
            .await
            .map_err(|error| unreachable(&error))?;
        let status = answer.status();
        let signature = answer
            .headers()
            .get(ANSWER_HEADER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = Limited::new(answer.into_body(), ANSWER_LIMIT)
            .collect()
            .await
            .map_err(|error| ClientError::Malformed {
                endpoint: endpoint.to_string(),
                problem: error.to_string(),
            })?
            .to_bytes();
        let Some(signature) = signature else {
            return Err(unsigned(endpoint, status, &body));
        };
        self.verify(endpoint, signature, status.as_u16(), &nonce, body.clone())
            .await?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(refusal(endpoint, status, &body))
        }
    }

    async fn sign(
        &self,
        method: &str,
        path: &str,
        nonce: &Nonce,
        body: Bytes,
    ) -> Result<String, ClientError> {
        let (credentials, service) = (Arc::clone(&self.credentials), self.service_uid);
        let (method, path, nonce) = (method.to_owned(), path.to_owned(), nonce.clone());
        Ok(blocking(move || {
            sign_request(credentials.as_ref(), service, &method, &path, &nonce, &body)
        })
        .await??)
    }

    async fn verify(
        &self,
        endpoint: &Endpoint,
        signature: String,
        status: u16,
        nonce: &Nonce,
        body: Bytes,
    ) -> Result<(), ClientError> {
        let (credentials, service) = (Arc::clone(&self.credentials), self.service_uid);
        let nonce = nonce.clone();
        blocking(move || {
            verify_answer(
                credentials.as_ref(),
                service,
                &signature,
                status,
                &nonce,
                &body,
            )
        })
        .await?
        .map_err(|source| ClientError::Signature {
            endpoint: endpoint.to_string(),
            source,
        })
    }
}

/// libmunge blocks, so it runs beside the runtime; the deadline abandons it there.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ClientError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ClientError::Unreachable(error.to_string()))
}

/// The service signs refusals too, save those it makes before it knows who asks.
fn unsigned(endpoint: &Endpoint, status: StatusCode, body: &[u8]) -> ClientError {
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::SERVICE_UNAVAILABLE {
        return refusal(endpoint, status, body);
    }
    ClientError::Malformed {
        endpoint: endpoint.to_string(),
        problem: format!("it is not signed (HTTP status {status})"),
    }
}

fn refusal(endpoint: &Endpoint, status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => ClientError::Refused {
            status: status.as_u16(),
            code: body.error.code,
            message: body.error.message,
        },
        Err(_) => ClientError::Malformed {
            endpoint: endpoint.to_string(),
            problem: format!("HTTP status {status} without a reason"),
        },
    }
}

fn decode<A: DeserializeOwned>(endpoint: &Endpoint, body: &[u8]) -> Result<A, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Malformed {
        endpoint: endpoint.to_string(),
        problem: error.to_string(),
    })
}

/// An HTTP/1.1 connection, driven by a task of its own that ends with it.
struct Connection {
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    async fn open(endpoint: &Endpoint) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        match endpoint {
            Endpoint::Unix(path) => Self::over(UnixStream::connect(path).await?).await,
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address.as_str()).await?;
                stream.set_nodelay(true)?;
                Self::over(stream).await
            }
        }
    }

    async fn over<S>(stream: S) -> Result<Self, Box<dyn std::error::Error + Send + Sync>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move {
            // A broken connection shows as the request's own error.
            let _ = connection.await;
        });
        Ok(Self { sender, driver })
    }

    async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<hyper::body::Incoming>, hyper::Error> {
        self.sender.send_request(request).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;
    use crate::signature::sign_answer;
    use crate::testing::{Hanging, Plain};

    const USER: u32 = 1000;
    const SERVICE: u32 = 7;
    const DEADLINE: Duration = Duration::from_millis(300);

    /// What a server does with a connection.
    #[derive(Clone, Copy)]
    enum Behaviour {
        Silent,
        Garbage,
        Unsigned,
        Signed,
        SignedByAnother,
        Dripping,
    }

    fn header<'a>(request: &'a str, name: &str) -> &'a str {
        request
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .unwrap_or_default()
    }

    fn serve(path: &Path, behaviour: Behaviour) {
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = [0; 8192];
                let length = stream.read(&mut buffer).await.unwrap();
                let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let nonce = Nonce::parse(header(&request, NONCE_HEADER)).unwrap();
                let body = b"\"hello\"";
                let signer = match behaviour {
                    Behaviour::SignedByAnother => Plain { uid: 666 },
                    _ => Plain { uid: SERVICE },
                };
                let signature = sign_answer(&signer, USER, 200, &nonce, body).unwrap();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
                let signed = format!("{head}{ANSWER_HEADER}: {signature}\r\n\r\n");
                // The client may have gone by then, which is what some of the tests want.
                let _ = match behaviour {
                    Behaviour::Silent => std::future::pending().await,
                    Behaviour::Garbage => stream.write_all(b"\x00\xff nonsense\r\n\r\n").await,
                    Behaviour::Unsigned => {
                        stream
                            .write_all(format!("{head}\r\n\"hello\"").as_bytes())
                            .await
                    }
                    Behaviour::Signed | Behaviour::SignedByAnother => {
                        stream
                            .write_all(format!("{signed}\"hello\"").as_bytes())
                            .await
                    }
                    Behaviour::Dripping => {
                        for byte in signed.bytes() {
                            if stream.write_all(&[byte]).await.is_err() {
                                break;
                            }
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                        Ok(())
                    }
                };
            }
        });
    }

    async fn answers(
        behaviours: &[Behaviour],
        credentials: Arc<dyn Credentials>,
    ) -> Result<String, ClientError> {
        let directory = tempfile::tempdir().unwrap();
        let mut endpoints = Vec::new();
        for (index, behaviour) in behaviours.iter().enumerate() {
            let path = directory.path().join(index.to_string());
            serve(&path, *behaviour);
            endpoints.push(Endpoint::Unix(path));
        }
        let client = Client {
            endpoints,
            service_uid: SERVICE,
            credentials,
        };
        let call = Call {
            method: Method::Post,
            path: "/v1/x",
            body: Some("question"),
            idempotent: true,
        };
        let began = Instant::now();
        let answer = client.call(call, DEADLINE).await;
        let took = began.elapsed();
        assert!(
            took < DEADLINE + Duration::from_millis(200),
            "the deadline is total: {took:?}"
        );
        answer
    }

    fn plain() -> Arc<dyn Credentials> {
        Arc::new(Plain { uid: USER })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_signed_answer_is_believed() {
        assert_eq!(
            answers(&[Behaviour::Signed], plain()).await.unwrap(),
            "hello"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_else_is() {
        for behaviour in [
            Behaviour::Garbage,
            Behaviour::Unsigned,
            Behaviour::SignedByAnother,
        ] {
            assert!(answers(&[behaviour], plain()).await.is_err());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_deadline_covers_a_server_that_hangs_or_drips_and_a_munged_that_hangs() {
        for behaviour in [Behaviour::Silent, Behaviour::Dripping] {
            let error = answers(&[behaviour], plain()).await.unwrap_err();
            assert!(matches!(error, ClientError::Deadline(_)), "{error}");
        }
        let error = answers(&[Behaviour::Signed], Arc::new(Hanging))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Deadline(_)), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_endpoint_that_hangs_leaves_time_for_the_next() {
        let answer = answers(&[Behaviour::Silent, Behaviour::Signed], plain()).await;
        assert_eq!(answer.unwrap(), "hello");
    }
}
