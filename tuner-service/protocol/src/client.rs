//! The client: one signed request, one verified answer, inside one deadline.

#[cfg(test)]
mod encrypted;
mod race;
mod unprivileged_reader;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use self::unprivileged_reader::read_answer;
use self::unprivileged_reader::{Apart, Reader, Secured};
use crate::config::{ClientConfig, ConfigError, Endpoint};
use crate::credentials::{CredentialError, Credentials};
use crate::printable::shown;
use crate::signature::{
    ANSWER_HEADER, NONCE_HEADER, Nonce, REQUEST_HEADER, SignatureError, sign_request, verify_answer,
};
use crate::tls;
use crate::types::ErrorBody;

/// The most that is read of an unsigned answer, in bytes: far above any answer of the service to a
/// node.
const ANSWER_LIMIT: usize = 1024 * 1024;

/// The most that is read of the answer of `/v1/health`, in bytes.
const PROBE_LIMIT: usize = 4096;

/// One request: a POST if it has a body, otherwise a GET.
#[derive(Clone, Debug)]
pub struct Call<'a, B: ?Sized> {
    /// Path and query, percent-encoded.
    pub path: &'a str,
    /// The body, sent as JSON; `None` sends none.
    pub body: Option<&'a B>,
    /// True if it may be sent to another endpoint although one has received it already.
    pub idempotent: bool,
}

impl<'a> Call<'a, ()> {
    /// A request that reads.
    #[must_use]
    pub fn get(path: &'a str) -> Self {
        Self {
            path,
            body: None,
            idempotent: true,
        }
    }
}

impl<'a, B: ?Sized> Call<'a, B> {
    /// A request that writes, and that may be repeated.
    #[must_use]
    pub fn post(path: &'a str, body: &'a B) -> Self {
        Self {
            path,
            body: Some(body),
            idempotent: true,
        }
    }
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The request could not be signed, so nothing was sent.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// No endpoint gave an answer.
    #[error("the tuner service gives no answer: {0}")]
    Unreachable(String),
    /// There is no TLS with whoever answers at the endpoint, so nothing was sent.
    #[error("no TLS with the tuner service: {0}")]
    Tls(String),
    /// The deadline passed.
    #[error("no answer from the tuner service within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The answer's signature is not valid.
    #[error("the answer from {endpoint} is not the tuner service's: {source}")]
    Signature {
        /// The endpoint that answered.
        endpoint: String,
        /// The problem with the signature.
        source: SignatureError,
    },
    /// The answer cannot be parsed.
    #[error("the answer from {endpoint} cannot be read: {problem}")]
    Malformed {
        /// The endpoint that answered.
        endpoint: String,
        /// The problem.
        problem: String,
    },
    /// The service refuses, and says why.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// A stable word for programs, such as `unknown_accelerator`.
        code: String,
        /// A sentence for people.
        message: String,
    },
}

impl ClientError {
    /// Returns true if the same request may be accepted later, so that spooled reports are kept.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500 || *status == 429 || *status == 401,
            _ => true,
        }
    }

    /// Returns true if the service cannot take any request at present.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Credential(_)
            | Self::Unreachable(_)
            | Self::Tls(_)
            | Self::Deadline(_) => true,
            Self::Refused { status, .. } => *status == 503 || *status == 401,
            Self::Signature { .. } | Self::Malformed { .. } => false,
        }
    }
}

/// A request that is ready to be signed for any endpoint.
#[derive(Clone)]
struct Asked {
    method: http::Method,
    path: Arc<str>,
    body: Bytes,
}

/// The signature of one request, which one endpoint can read once.
struct Signed {
    nonce: Nonce,
    credential: String,
}

/// A signature that another thread makes.
type Signing = JoinHandle<Result<Signed, CredentialError>>;

/// A request that is being signed, while the caller has other work before it can be sent.
pub struct Prepared {
    asked: Asked,
    idempotent: bool,
    /// For the first endpoint that is asked; each other one needs another signature.
    signing: Arc<Mutex<Option<Signing>>>,
}

/// A client of the service. Its clones share the knowledge which endpoint answered last.
#[derive(Clone)]
pub struct Client {
    endpoints: Arc<[Endpoint]>,
    preferred: Arc<AtomicUsize>,
    /// The file of the authorities that are believed at an endpoint with TLS.
    authority: Option<Arc<Path>>,
    service_uid: u32,
    credentials: Arc<dyn Credentials>,
    /// The most that is read of a signed answer, in bytes.
    answer_limit: usize,
    /// The process that reads answers; `None`: this one.
    reader: Option<Reader>,
}

impl Client {
    /// A client as configured. Returns an error if the service's account does not exist on this
    /// machine.
    pub fn new(config: &ClientConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoints: config.endpoints.clone().into(),
            preferred: Arc::default(),
            authority: config.tls_ca.as_deref().map(Arc::from),
            service_uid: config.service_uid()?,
            credentials: Arc::new(config.signer()),
            answer_limit: ANSWER_LIMIT,
            reader: None,
        })
    }

    /// Lets another process, which can do nothing else, read each answer, of up to 1 MiB.
    #[must_use]
    pub fn reading_apart(mut self, reader: Reader) -> Self {
        self.reader = Some(reader);
        self
    }

    /// Reads signed answers of up to `answer_limit` bytes instead of 1 MiB, for lists that people
    /// ask for.
    #[must_use]
    pub fn reading(mut self, answer_limit: usize) -> Self {
        self.answer_limit = answer_limit;
        self
    }

    /// The endpoint that answered last, which is asked first; `None`: the first one configured.
    #[must_use]
    pub fn preferred(&self) -> Option<&Endpoint> {
        match self.preferred.load(Ordering::Relaxed) {
            0 => None,
            index => self.endpoints.get(index),
        }
    }

    /// Sets [`Client::preferred`]. Without an endpoint, or with one that is not configured, the
    /// first one configured is preferred.
    pub fn prefer(&self, endpoint: Option<&Endpoint>) {
        let known = |one: &&Endpoint| Some(*one) == endpoint;
        let index = endpoint.and_then(|_| self.endpoints.iter().position(|one| known(&one)));
        self.preferred.store(index.unwrap_or(0), Ordering::Relaxed);
    }

    /// [`Client::prepare`] and [`Client::send`].
    pub async fn call<B, A>(&self, call: Call<'_, B>, deadline: Duration) -> Result<A, ClientError>
    where
        B: Serialize + ?Sized,
        A: DeserializeOwned,
    {
        self.send(self.prepare(&call)?, deadline).await
    }

    /// Begins to sign a request, in a thread of the calling runtime's. A credential is valid for a
    /// minute.
    pub fn prepare<B>(&self, call: &Call<'_, B>) -> Result<Prepared, ClientError>
    where
        B: Serialize + ?Sized,
    {
        let body = match call.body {
            Some(body) => serde_json::to_vec(body).map_err(|error| ClientError::Malformed {
                endpoint: "this program".into(),
                problem: error.to_string(),
            })?,
            None => Vec::new(),
        };
        let asked = Asked {
            method: match call.body {
                Some(_) => http::Method::POST,
                None => http::Method::GET,
            },
            path: call.path.into(),
            body: body.into(),
        };
        let signing = self.sign(asked.clone())?;
        Ok(Prepared {
            asked,
            idempotent: call.idempotent,
            signing: Arc::new(Mutex::new(Some(signing))),
        })
    }

    /// Sends a request and returns the verified answer; `deadline` covers all of it.
    ///
    /// The preferred endpoint is asked first. The next one follows after a short delay unless the
    /// one before is alive, or at once when it fails. The first answer wins. A request that is not
    /// idempotent is sent once, over the first connection on which `/v1/health` answers.
    pub async fn send<A>(&self, prepared: Prepared, deadline: Duration) -> Result<A, ClientError>
    where
        A: DeserializeOwned,
    {
        let end = Instant::now() + deadline;
        let Prepared {
            asked,
            idempotent,
            signing,
        } = prepared;
        let (stagger, sign_of_life) = race::patience(deadline, self.endpoints.len());
        if idempotent {
            let attempts = self.in_order().map(|index| {
                let (client, asked, signing) = (self.clone(), asked.clone(), Arc::clone(&signing));
                let attempt = async move {
                    let endpoint = &client.endpoints[index];
                    let answer = async {
                        let connection = client.connection(endpoint).await?;
                        let signed = client.signed(&asked, &signing).await?;
                        client.ask(endpoint, connection, asked, signed).await
                    };
                    decisive(answer.await)
                };
                (index, attempt)
            });
            let (index, answer) = race::race(
                attempts,
                |index| self.is_alive(index, sign_of_life),
                stagger,
                end,
            )
            .await
            .map_err(|lost| self.lost(lost, deadline))?;
            let answer = answer?;
            self.preferred.store(index, Ordering::Relaxed);
            return decode(&self.endpoints[index], &answer);
        }
        let attempts = self.in_order().map(|index| {
            let client = self.clone();
            let attempt = async move {
                let opened = async {
                    let endpoint = &client.endpoints[index];
                    let mut connection = client.connection(endpoint).await?;
                    connection.probe().await?;
                    Ok(connection)
                };
                decisive(opened.await)
            };
            (index, attempt)
        });
        // Each attempt is itself the health check: an endpoint that does not answer is not alive.
        let (index, connection) = race::race(attempts, |_| async { false }, stagger, end)
            .await
            .map_err(|lost| self.lost(lost, deadline))?;
        let endpoint = &self.endpoints[index];
        let connection = connection?;
        let answer = async {
            let signed = self.signed(&asked, &signing).await?;
            self.ask(endpoint, connection, asked, signed).await
        };
        let answer = tokio::time::timeout_at(end, answer)
            .await
            .map_err(|_| ClientError::Deadline(deadline))??;
        self.preferred.store(index, Ordering::Relaxed);
        decode(endpoint, &answer)
    }

    /// Returns true if the process at an endpoint answers `/v1/health` in time.
    async fn is_alive(&self, index: usize, patience: Duration) -> bool {
        let probed = async {
            let mut connection = self.connection(&self.endpoints[index]).await?;
            connection.probe().await
        };
        matches!(tokio::time::timeout(patience, probed).await, Ok(Ok(())))
    }

    /// The endpoints' indices: the preferred one, then the others as configured.
    fn in_order(&self) -> impl Iterator<Item = usize> + use<> {
        let preferred = self.preferred.load(Ordering::Relaxed);
        let others = (0..self.endpoints.len()).filter(move |index| *index != preferred);
        std::iter::once(preferred).chain(others)
    }

    /// The error if no endpoint gave an answer. It is an outage only if every endpoint is out.
    fn lost(&self, lost: race::Lost<ClientError>, deadline: Duration) -> ClientError {
        if lost.iter().all(|(_, error)| error.is_none()) {
            return ClientError::Deadline(deadline);
        }
        let mut failures: Vec<_> = lost
            .into_iter()
            .map(|(index, error)| (index, error.unwrap_or(ClientError::Deadline(deadline))))
            .collect();
        let answered = failures.iter().position(|(_, error)| !error.is_outage());
        let only = (failures.len() == 1).then_some(0);
        match answered.or(only) {
            Some(place) => match failures.swap_remove(place) {
                (index, ClientError::Unreachable(problem)) => {
                    ClientError::Unreachable(format!("{}: {problem}", self.endpoints[index]))
                }
                (index, ClientError::Tls(problem)) => {
                    ClientError::Tls(format!("{}: {problem}", self.endpoints[index]))
                }
                (_, error) => error,
            },
            None => ClientError::Unreachable(
                failures
                    .iter()
                    .map(|(index, error)| match error {
                        ClientError::Unreachable(problem) | ClientError::Tls(problem) => {
                            format!("{}: {problem}", self.endpoints[*index])
                        }
                        error => format!("{}: {error}", self.endpoints[*index]),
                    })
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
        }
    }

    async fn connection(&self, endpoint: &Endpoint) -> Result<Connection, ClientError> {
        match endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unreachable)?;
                Connection::over(stream, self.reader).await
            }
            Endpoint::Tcp(address) => Connection::over(connect(address).await?, self.reader).await,
            Endpoint::Tls(address) => {
                let authority = self.authority.clone();
                let authority = authority
                    .ok_or_else(|| ClientError::Tls("client.toml has no tls_ca".to_owned()))?;
                let stream = connect(address).await?;
                match self.reader {
                    Some(reader) => {
                        let secured = Secured {
                            address: address.clone(),
                            authority,
                        };
                        Connection::apart(stream, reader, Some(secured))
                    }
                    None => Connection::here(encrypted(stream, address, &authority).await?).await,
                }
            }
        }
    }

    /// Sends the request and returns the verified answer.
    async fn ask(
        &self,
        endpoint: &Endpoint,
        mut connection: Connection,
        asked: Asked,
        Signed { nonce, credential }: Signed,
    ) -> Result<Bytes, ClientError> {
        let Asked { method, path, body } = asked;
        let request = http::Request::builder()
            .method(method)
            .uri(path.as_ref())
            .header(http::header::HOST, "io-autotuned")
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(NONCE_HEADER, nonce.as_str())
            .header(REQUEST_HEADER, credential)
            .body(body)
            .map_err(unreachable)?;
        let Reply {
            status,
            signature,
            body,
        } = connection
            .send(request, self.answer_limit)
            .await
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => ClientError::Malformed {
                    endpoint: endpoint.to_string(),
                    problem: error.to_string(),
                },
                io::ErrorKind::ConnectionAborted => ClientError::Tls(error.to_string()),
                _ => unreachable(error),
            })?;
        let Some(signature) = signature else {
            return Err(unsigned(self.reader, endpoint, status, &body));
        };
        self.verify(endpoint, signature, status.as_u16(), &nonce, body.clone())
            .await?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(refusal(endpoint, status, &body))
        }
    }

    /// The signature that is being made if no other attempt has taken it, or one more.
    async fn signed(
        &self,
        asked: &Asked,
        signing: &Mutex<Option<Signing>>,
    ) -> Result<Signed, ClientError> {
        let first = signing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let signing = first.map_or_else(|| self.sign(asked.clone()), Ok)?;
        Ok(signing.await.map_err(unreachable)??)
    }

    fn sign(&self, asked: Asked) -> Result<Signing, ClientError> {
        let (credentials, service) = (Arc::clone(&self.credentials), self.service_uid);
        let nonce = Nonce::fresh().map_err(unreachable)?;
        let signed = move || {
            let Asked { method, path, body } = asked;
            let method = method.as_str();
            let credential =
                sign_request(credentials.as_ref(), service, method, &path, &nonce, &body)?;
            Ok(Signed { nonce, credential })
        };
        // tokio panics where the host has no room for a thread; the caller has more to do.
        panic::catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(signed)))
            .map_err(|_| unreachable("this host has no room for another thread"))
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

fn unreachable(error: impl std::fmt::Display) -> ClientError {
    ClientError::Unreachable(error.to_string())
}

/// Returns `Break` if the result of one endpoint ends the race: an answer, a final refusal, or a
/// request that cannot be signed.
fn decisive<T>(said: Result<T, ClientError>) -> ControlFlow<Result<T, ClientError>, ClientError> {
    match said {
        Err(error) if error.is_transient() && !matches!(error, ClientError::Credential(_)) => {
            ControlFlow::Continue(error)
        }
        settled => ControlFlow::Break(settled),
    }
}

/// Runs blocking work, such as calls of back-ends, on a blocking thread. The deadline abandons it
/// there.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ClientError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ClientError::Unreachable(error.to_string()))
}

/// Ports that only root of a host can bind and at which no well-known service listens:
/// bindresvport(3) picks from the same.
const PRIVILEGED: std::ops::Range<u16> = 600..1024;

/// Connects. Root's connections come from a privileged port if one is free, because the service's
/// address for nodes accepts no others.
async fn connect(address: &str) -> Result<TcpStream, ClientError> {
    let stream = connected(address).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(stream)
}

/// TLS on a connection, with a service whose certificate is for this address and by this authority.
async fn encrypted(
    stream: TcpStream,
    address: &str,
    authority: &Path,
) -> Result<TlsStream<TcpStream>, ClientError> {
    let name = tls::name(address).ok_or_else(|| unreachable("it has no name"))?;
    let config = tls::config(authority).map_err(|error| ClientError::Tls(error.to_string()))?;
    let connector = TlsConnector::from(config);
    connector.connect(name, stream).await.map_err(|error| {
        let told = error.get_ref().and_then(|inner| inner.downcast_ref());
        ClientError::Tls(told.map_or_else(|| error.to_string(), tls::problem))
    })
}

async fn connected(address: &str) -> io::Result<TcpStream> {
    if !nix::unistd::geteuid().is_root() {
        return TcpStream::connect(address).await;
    }
    let mut failure = None;
    for address in tokio::net::lookup_host(address).await? {
        match connect_as_root(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

async fn connect_as_root(address: SocketAddr) -> io::Result<TcpStream> {
    let mut start = [0; 2];
    getrandom::fill(&mut start).map_err(io::Error::other)?;
    let count = PRIVILEGED.end - PRIVILEGED.start;
    let start = u16::from_ne_bytes(start) % count;
    for offset in 0..count {
        let port = PRIVILEGED.start + (start + offset) % count;
        let (socket, any): (_, IpAddr) = match address {
            SocketAddr::V4(_) => (TcpSocket::new_v4()?, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (TcpSocket::new_v6()?, Ipv6Addr::UNSPECIFIED.into()),
        };
        // With this option a port whose last connection is still in TIME_WAIT can be used for
        // another address.
        socket.set_reuseaddr(true)?;
        match socket.bind(SocketAddr::new(any, port)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
            // In a container root may lack this right. A connection from any port is better than
            // none.
            Err(_) => break,
        }
        match socket.connect(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            connected => return connected,
        }
    }
    TcpStream::connect(address).await
}

/// The error for an unsigned refusal. The service signs refusals except for clients that it does
/// not know or that ask too much. Since anybody can send an unsigned one, it is never final: the
/// request may be accepted later.
fn unsigned(
    reader: Option<Reader>,
    endpoint: &Endpoint,
    status: StatusCode,
    body: &[u8],
) -> ClientError {
    const UNSIGNED: [StatusCode; 3] = [
        StatusCode::UNAUTHORIZED,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    if !UNSIGNED.contains(&status) {
        return ClientError::Malformed {
            endpoint: endpoint.to_string(),
            problem: format!("it is not signed (HTTP status {status})"),
        };
    }
    match reader {
        None => refusal(endpoint, status, body),
        // Root does not parse a body from an unknown sender.
        Some(_) => ClientError::Refused {
            status: status.as_u16(),
            code: "unsigned".into(),
            message: shown(&String::from_utf8_lossy(body)),
        },
    }
}

fn refusal(endpoint: &Endpoint, status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorBody>(body) {
        // An impostor can write anything here, and the text reaches terminals, logs and reports.
        Ok(body) => ClientError::Refused {
            status: status.as_u16(),
            code: shown(&body.error.code),
            message: shown(&body.error.message),
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
        problem: shown(&error.to_string()),
    })
}

/// An answer, before its signature is verified.
#[derive(Debug, PartialEq)]
struct Reply {
    status: StatusCode,
    signature: Option<String>,
    body: Bytes,
}

/// An HTTP/1.1 connection.
enum Connection {
    Here(Here),
    Apart(Apart),
}

/// A connection whose answers this process reads. Its task ends with it.
struct Here {
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Here {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    async fn over<S>(stream: S, reader: Option<Reader>) -> Result<Self, ClientError>
    where
        S: AsFd + AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match reader {
            Some(reader) => Self::apart(stream, reader, None),
            None => Self::here(stream).await,
        }
    }

    fn apart<S>(stream: S, reader: Reader, secured: Option<Secured>) -> Result<Self, ClientError>
    where
        S: AsFd + AsyncWrite + Send + Unpin + 'static,
    {
        let apart = Apart::over(stream, reader, secured).map_err(unreachable)?;
        Ok(Self::Apart(apart))
    }

    async fn here<S>(stream: S) -> Result<Self, ClientError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(unreachable)?;
        let driver = tokio::spawn(async move {
            // A broken connection shows as the error of the request itself.
            let _ = connection.await;
        });
        Ok(Self::Here(Here { sender, driver }))
    }

    /// Waits until the peer answers: the kernel also accepts connections for a process that hangs.
    async fn probe(&mut self) -> Result<(), ClientError> {
        let request = http::Request::get("/v1/health")
            .header(http::header::HOST, "io-autotuned")
            .body(Bytes::new())
            .map_err(unreachable)?;
        self.send(request, PROBE_LIMIT).await.map_err(unreachable)?;
        match self {
            Self::Here(here) => here.sender.ready().await.map_err(unreachable),
            Self::Apart(_) => Ok(()),
        }
    }

    /// Sends a request and reads its answer: up to `signed_limit` bytes of a signed one. The error
    /// is `InvalidData` if the answer is too long or malformed.
    async fn send(
        &mut self,
        request: http::Request<Bytes>,
        signed_limit: usize,
    ) -> io::Result<Reply> {
        match self {
            Self::Here(here) => here.send(request, signed_limit).await,
            Self::Apart(apart) => apart.send(request).await,
        }
    }
}

impl Here {
    async fn send(
        &mut self,
        request: http::Request<Bytes>,
        signed_limit: usize,
    ) -> io::Result<Reply> {
        let request = request.map(Full::new);
        let answer = self.sender.send_request(request).await;
        let answer = answer.map_err(io::Error::other)?;
        let status = answer.status();
        let signature = answer
            .headers()
            .get(ANSWER_HEADER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let limit = match signature {
            Some(_) => signed_limit,
            None => signed_limit.min(ANSWER_LIMIT),
        };
        let body = Limited::new(answer.into_body(), limit).collect().await;
        let body = body.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Reply {
            status,
            signature,
            body: body.to_bytes(),
        })
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
    use crate::testing::{Cast, Hanging, casts, plain};

    const USER: u32 = 1000;
    const SERVICE: u32 = 7;
    const DEADLINE: Duration = Duration::from_secs(2);

    /// How late a busy machine may be. Everything that hangs or drips in these tests takes 7 s or
    /// more.
    const LATENESS: Duration = Duration::from_secs(2);

    #[derive(Clone, Copy)]
    enum Behaviour {
        Silent,
        Busy,
        Broken,
        Garbage,
        Unsigned,
        UnsignedLong,
        SignedLong,
        Signed,
        SignedByAnother,
        Dripping,
    }

    /// The length of an answer that is one byte longer than a node reads.
    const BEYOND: usize = ANSWER_LIMIT + 1;

    fn header<'a>(request: &'a str, name: &str) -> &'a str {
        request
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .unwrap_or_default()
    }

    fn serve(path: &Path, behaviour: Behaviour, cast: Arc<Cast>) {
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = [0; 8192];
                let mut length = stream.read(&mut buffer).await.unwrap();
                if buffer.starts_with(b"GET /v1/health") && !matches!(behaviour, Behaviour::Silent)
                {
                    let alive = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n";
                    stream.write_all(alive).await.unwrap();
                    length = stream.read(&mut buffer).await.unwrap();
                }
                let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let Ok(nonce) = Nonce::parse(header(&request, NONCE_HEADER)) else {
                    // The client has gone, or waits for a silent server.
                    held.push(stream);
                    continue;
                };
                let long = format!("\"{}\"", "x".repeat(BEYOND)).into_bytes();
                let body = match behaviour {
                    Behaviour::SignedLong => &long[..],
                    _ => b"\"hello\"",
                };
                let signer = match behaviour {
                    Behaviour::SignedByAnother => &*cast.stranger,
                    _ => &*cast.service,
                };
                let signature = sign_answer(signer, USER, 200, &nonce, body).unwrap();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
                let signed = format!("{head}{ANSWER_HEADER}: {signature}\r\n\r\n");
                // The client may have gone by then, which some tests want.
                let _ = match behaviour {
                    Behaviour::Silent => {
                        held.push(stream);
                        continue;
                    }
                    Behaviour::Busy | Behaviour::Broken => {
                        let status = match behaviour {
                            Behaviour::Busy => 503,
                            _ => 500,
                        };
                        let body = br#"{"error": {"code": "c", "message": "not now"}}"#;
                        let signature = sign_answer(signer, USER, status, &nonce, body).unwrap();
                        let length = body.len();
                        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n");
                        let head = format!("{head}{ANSWER_HEADER}: {signature}\r\n\r\n");
                        stream.write_all(&[head.as_bytes(), body].concat()).await
                    }
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
                    Behaviour::SignedLong => {
                        stream.write_all(&[signed.as_bytes(), body].concat()).await
                    }
                    Behaviour::UnsignedLong => {
                        let body = br#"{"error": {"code": "c", "message": "not now"}}"#;
                        let blanks = vec![b' '; BEYOND];
                        let head = b"HTTP/1.1 503 X\r\n\r\n";
                        let sent = stream.write_all(&[head, &body[..], &blanks].concat()).await;
                        // The end of the connection ends the body.
                        drop(stream);
                        sent
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

    fn client(
        behaviours: &[Behaviour],
        cast: &Arc<Cast>,
        credentials: Arc<dyn Credentials>,
    ) -> (Client, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let endpoints = behaviours.iter().enumerate().map(|(index, behaviour)| {
            let path = directory.path().join(index.to_string());
            serve(&path, *behaviour, Arc::clone(cast));
            Endpoint::Unix(path)
        });
        let client = Client {
            endpoints: endpoints.collect(),
            preferred: Arc::default(),
            authority: None,
            service_uid: SERVICE,
            credentials,
            answer_limit: ANSWER_LIMIT,
            reader: None,
        };
        (client, directory)
    }

    async fn ask(client: &Client, idempotent: bool) -> Result<String, ClientError> {
        let call = Call {
            idempotent,
            ..Call::post("/v1/x", "question")
        };
        let began = Instant::now();
        let answer = client.call(call, DEADLINE).await;
        let took = began.elapsed();
        assert!(
            took < DEADLINE + LATENESS,
            "the deadline is total: {took:?}"
        );
        answer
    }

    async fn answers(behaviours: &[Behaviour], cast: Cast) -> Result<String, ClientError> {
        let (client, _sockets) = known(behaviours, cast);
        ask(&client, true).await
    }

    fn known(behaviours: &[Behaviour], cast: Cast) -> (Client, tempfile::TempDir) {
        let cast = Arc::new(cast);
        client(behaviours, &cast, Arc::clone(&cast.user))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_signed_answer_is_believed() {
        for cast in casts() {
            let answer = answers(&[Behaviour::Signed], cast).await;
            assert_eq!(answer.unwrap(), "hello");
        }
    }

    /// An impostor's unsigned answer.
    ///
    /// Attack (service): Somebody answers in the service's place: garbage, unsigned, dripping, or
    /// 64 MiB.
    /// Outcome: It is an outage within the deadline, and no report is put aside.
    ///
    /// Attack (parsers): An unsigned answer or refusal.
    /// Outcome: It is an outage.
    #[test]
    fn fuzz_refusal() {
        let body = r#"{"error": {"code": "busy", "message": "the study is busy; ask again"}}"#;
        io_autotune_fuzzing::Target::new("refusal", &[body]).run(|input| {
            let endpoint = Endpoint::Tcp("localhost:1".into());
            let roots: Option<Reader> = Some(|| std::process::Command::new("true"));
            for (status, reader) in [
                (StatusCode::SERVICE_UNAVAILABLE, None),
                (StatusCode::SERVICE_UNAVAILABLE, roots),
                (StatusCode::OK, None),
            ] {
                let error = unsigned(reader, &endpoint, status, input);
                assert!(error.is_transient(), "a report would be put aside: {error}");
                let text = error.to_string();
                assert!(
                    !text.contains(char::is_control) && text.len() < 20_000,
                    "{text:?}"
                );
            }
        });
    }

    /// Attack (service): Somebody answers in the service's place: garbage, unsigned, dripping, or
    /// 64 MiB.
    /// Outcome: It is an outage within the deadline, and no report is put aside.
    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_else_is() {
        for behaviour in [
            Behaviour::Garbage,
            Behaviour::Unsigned,
            Behaviour::SignedByAnother,
        ] {
            for cast in casts() {
                assert!(answers(&[behaviour], cast).await.is_err());
            }
        }
    }

    /// Attack (service): Somebody answers in the service's place: garbage, unsigned, dripping, or
    /// 64 MiB.
    /// Outcome: It is an outage within the deadline, and no report is put aside.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_is_too_long_is_not_read_and_an_unsigned_one_never() {
        for behaviour in [Behaviour::UnsignedLong, Behaviour::SignedLong] {
            let (small, _sockets) = known(&[behaviour], plain());
            let error = ask(&small, true).await.unwrap_err();
            assert!(error.to_string().contains("length limit"), "{error}");
            let large = ask(&small.reading(4 * ANSWER_LIMIT), true).await;
            match (behaviour, large) {
                (Behaviour::SignedLong, answer) => assert_eq!(answer.unwrap().len(), BEYOND),
                (_, answer) => {
                    let error = answer.unwrap_err();
                    assert!(error.to_string().contains("length limit"), "{error}");
                }
            }
        }
    }

    /// Attack (service): Somebody answers in the service's place: garbage, unsigned, dripping, or
    /// 64 MiB.
    /// Outcome: It is an outage within the deadline, and no report is put aside.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_deadline_covers_a_server_that_hangs_or_drips_and_a_back_end_that_hangs() {
        for behaviour in [Behaviour::Silent, Behaviour::Dripping] {
            let error = answers(&[behaviour], plain()).await.unwrap_err();
            assert!(matches!(error, ClientError::Deadline(_)), "{error}");
        }
        let hanging = Arc::new(Hanging);
        let (client, _sockets) = client(&[Behaviour::Signed], &Arc::new(plain()), hanging);
        let error = ask(&client, true).await.unwrap_err();
        assert!(matches!(error, ClientError::Deadline(_)), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_endpoint_that_hangs_leaves_time_for_the_next() {
        use Behaviour::{Broken, Busy, Garbage, Signed, Silent};
        for others in [
            &[Silent][..],
            &[Silent, Silent],
            &[Busy, Broken],
            &[Garbage],
        ] {
            let answer = answers(&[others, &[Signed]].concat(), plain()).await;
            assert_eq!(answer.unwrap(), "hello");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_endpoint_that_answered_last_is_asked_first() {
        let (client, _sockets) = known(&[Behaviour::Silent, Behaviour::Signed], plain());
        assert_eq!(client.preferred(), None);
        ask(&client, true).await.unwrap();
        let second = client.endpoints[1].clone();
        assert_eq!(client.preferred(), Some(&second));
        assert_eq!(client.in_order().collect::<Vec<_>>(), [1, 0]);
        // Another process may have another configuration.
        client.prefer(None);
        assert_eq!(client.preferred(), None);
        client.prefer(Some(&second));
        assert_eq!(client.preferred(), Some(&second));
        client.prefer(Some(&Endpoint::Tcp("gone:1".into())));
        assert_eq!(client.preferred(), None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_is_an_outage_when_none_answers() {
        use Behaviour::{Broken, Busy, Silent};
        for all in [
            &[Silent, Silent][..],
            &[Silent, Busy],
            &[Busy, Silent],
            &[Busy],
        ] {
            let error = answers(all, plain()).await.unwrap_err();
            assert!(error.is_outage(), "{error}");
        }
        for one in [&[Silent, Broken][..], &[Broken, Busy], &[Broken]] {
            let error = answers(one, plain()).await.unwrap_err();
            assert!(!error.is_outage() && error.is_transient(), "{error}");
        }
    }

    #[tokio::test]
    async fn each_endpoint_that_is_asked_has_a_signature_of_its_own() {
        let (client, _sockets) = known(&[Behaviour::Signed], plain());
        let prepared = client.prepare(&Call::post("/v1/x", "question")).unwrap();
        let signed = || client.signed(&prepared.asked, &prepared.signing);
        let (first, second) = (signed().await.unwrap(), signed().await.unwrap());
        assert_ne!(first.credential, second.credential);
        assert_ne!(first.nonce, second.nonce);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_must_not_be_done_twice_is_asked_of_one_that_is_alive() {
        use Behaviour::{Broken, Signed, Silent};
        let (client_of, _sockets) = known(&[Silent, Signed], plain());
        assert_eq!(ask(&client_of, false).await.unwrap(), "hello");
        // The request was sent, so the other endpoint is not asked.
        let (client_of, _sockets) = known(&[Broken, Signed], plain());
        let error = ask(&client_of, false).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Refused { status: 500, .. }),
            "{error}"
        );
    }
}
