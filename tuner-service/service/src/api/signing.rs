//! The layer that admits only signed requests and signs the answers.
//!
//! Cheap checks come first: headers, credential, the sender's quota, and only then the body. Before
//! the credential is read a sender holds no more than a connection's buffer and, at the nodes' door,
//! a short body.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use io_autotune_protocol::credentials::{Backend, CredentialError};
use io_autotune_protocol::signature::{
    ANSWER_HEADER, NONCE_HEADER, Nonce, REQUEST_HEADER, Sender, sign_answer,
};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::no_such_path;
use crate::access::Caller;
use crate::access::table::{Endpoint, IMPORTERS};
use crate::api::{ApiError, Service};
use crate::door::{Came, Door};
use crate::peers::Peer;
use crate::quota::Cost;
use crate::rate_limited_log::Seldom;
use crate::reader::Reader;
use crate::retry::retried;

/// Bytes of a body from root or a collector: a job with a hundred thousand steps fits.
const REPORT_LIMIT: usize = 16 * 1024 * 1024;

/// Bytes of a user's body: SPEC, values to pin, a reason.
const USER_LIMIT: usize = 64 * 1024;

/// Bytes of a body. Most requests are far smaller.
const USUAL: u64 = 1024 * 1024;

/// Concurrent bodies above [`USUAL`] or of unknown length.
pub(crate) const LONG_BODIES: usize = 8;

/// Places for concurrent calls of the back-end. libmunge fails if munged's socket cannot queue a
/// call.
///
/// Answers have places of their own. Otherwise one that is ready would wait behind all requests that
/// came while it was made, and of a thousand prologs that ask together none would have its answer
/// before the last one was read.
#[derive(Clone, Debug)]
pub(crate) struct CredentialCalls {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl CredentialCalls {
    pub(crate) fn of_nodes() -> Self {
        Self::new(20, 8)
    }

    /// Users' calls must leave munged time for nodes'.
    pub(crate) fn of_users() -> Self {
        Self::new(2, 2)
    }

    fn new(requests: usize, answers: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(requests)),
            answers: Arc::new(Semaphore::new(answers)),
        }
    }
}

/// Nodes' short requests that are worked on at the same time. The others wait in the order in which
/// they came: if ten thousand prologs that ask together were all worked on at once, none would have
/// its answer before all deadlines have passed.
pub(crate) const AT_WORK: usize = 1024;

/// Bytes of a request that waits for its turn with its body. A start has less than a tenth of that.
const SHORT: u64 = 16 * 1024;

static REFUSED: Seldom = Seldom::new();

pub(crate) async fn signed(
    State(service): State<Arc<Service>>,
    OriginalUri(uri): OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let came = parts.extensions.get::<Came>();
    let remote = came.and_then(|came| came.address);
    let local = match came.map(|came| came.peer) {
        Some(user @ Peer::User(uid)) if uid != 0 => Some(user),
        _ => None,
    };
    if let Some(Err(when)) = local.map(|user| service.quotas.look(user)) {
        return later(&service, ApiError::too_many_requests(when)).await;
    }
    let declared = body.size_hint().lower();
    let known = async {
        let (credential, nonce) = claimed(&parts.headers, declared)?;
        let (body, turn) = turn(&service, body).await?;
        let sender = sender(&service, credential).await?;
        Ok::<_, ApiError>((sender, nonce, body, turn))
    };
    let (sender, nonce, body, _turn) = match known.await {
        Ok(known) => known,
        Err(refusal) => {
            // A refused credential has cost a call of the back-end: it counts against its sender's
            // quota. A sender whose quota is used up has been refused already.
            let _ = local.map(|user| service.quotas.count(user));
            return later(&service, refusal).await;
        }
    };
    let caller = Caller {
        uid: sender.uid,
        origin: sender.origin.or(remote),
    };
    let user = Peer::User(caller.uid);
    let is_head = parts.method == Method::HEAD;
    let endpoint = Endpoint::of(&parts.method, uri.path());
    let is_trusted = service.access.is_trusted(caller, endpoint).await;
    let _place = match is_trusted {
        true => None,
        false => match service
            .quotas
            .admit(user, endpoint.map_or(Cost::Reading, Endpoint::cost))
            .await
        {
            Ok(place) => Some(place),
            // Unsigned: a signature costs more than the refusal saves.
            Err(when) => return later(&service, ApiError::too_many_requests(when)).await,
        },
    };
    let is_import = endpoint.is_some_and(|endpoint| endpoint.is_import);
    let read = match is_import && !is_trusted {
        // This sender is told that it may not import, and not that its body is too long for a
        // user's.
        true => Err(ApiError::forbidden(IMPORTERS)),
        false => read(&service, caller, is_trusted, body).await,
    };
    let answer = match read {
        Err(refusal) => refusal.into_response(),
        Ok(body) => {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            if let Err(error) = sender.check(parts.method.as_str(), path, &nonce, &body) {
                return refused(&error).into_response();
            }
            service.quotas.charge(user, body.len());
            match granted(&service, caller, endpoint, &nonce).await {
                Err(refusal) => refusal.into_response(),
                Ok(reader) => {
                    parts.extensions.insert(caller);
                    parts.extensions.insert(reader);
                    parts.extensions.insert(nonce.clone());
                    next.run(Request::from_parts(parts, Body::from(body))).await
                }
            }
        }
    };
    sign(&service, caller.uid, &nonce, answer, is_head).await
}

/// Delays a refusal that costs its sender nothing: together with the limit of connections this
/// bounds the number of refusals a second. The nodes' door has no unknown senders.
pub(super) async fn later(service: &Service, refusal: ApiError) -> Response {
    if service.door == Door::Users {
        tokio::time::sleep(lateness()).await;
    }
    refusal.into_response()
}

/// The delay: a second on average, and never the same, so that connections that ask together are
/// not refused together.
fn lateness() -> Duration {
    static REFUSALS: AtomicU64 = AtomicU64::new(0);
    // Steps of about the golden ratio spread any number of refusals evenly.
    let step = REFUSALS.fetch_add(617, Ordering::Relaxed) % 1000;
    Duration::from_millis(500 + step)
}

/// Waits until a node's short request may be worked on. Its body is read first, so that nobody holds
/// a turn by sending slowly. Long requests, which are few, wait for no turn.
async fn turn(
    service: &Service,
    body: Body,
) -> Result<(Body, Option<SemaphorePermit<'_>>), ApiError> {
    let is_short = body.size_hint().exact().is_some_and(|bytes| bytes <= SHORT);
    if service.door != Door::Nodes || !is_short {
        return Ok((body, None));
    }
    let body = body.collect().await.map_err(|_| {
        ApiError::bad_request("the connection ended before the request's body".to_owned())
    })?;
    let turn = service.at_work.acquire().await.ok();
    Ok((Body::from(body.to_bytes()), turn))
}

/// The credential and the nonce in the headers of a request whose body says that it is so long.
fn claimed(headers: &HeaderMap, declared: u64) -> Result<(String, Nonce), ApiError> {
    let header = |name| {
        let value = headers.get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let (Some(credential), Some(nonce)) = (header(REQUEST_HEADER), header(NONCE_HEADER)) else {
        return Err(ApiError::unauthorized(
            "the request is not signed: use the io-autotune client",
        ));
    };
    let nonce = Nonce::parse(&nonce).map_err(|error| ApiError::unauthorized(&error.to_string()))?;
    if declared > REPORT_LIMIT as u64 {
        return Err(too_long(REPORT_LIMIT));
    }
    Ok((credential, nonce))
}

/// The sender of a request, by its credential.
async fn sender(service: &Service, credential: String) -> Result<Sender, ApiError> {
    let credentials = Arc::clone(&service.credentials);
    let read = blocking(&service.credential_calls.requests, move || {
        Sender::of(credentials.as_ref(), &credential)
    });
    match read.await? {
        Ok(sender) => Ok(sender),
        Err(error @ CredentialError::Unavailable { backend, .. }) => {
            if let Some(more) = REFUSED.now() {
                tracing::error!(%error, more, "requests cannot be authenticated");
            }
            Err(unreachable(backend))
        }
        Err(error) => Err(refused(&error)),
    }
}

/// The refusal of a credential. It is logged at most a few times a second: anybody can be refused
/// as often as they like.
fn refused(error: &dyn std::error::Error) -> ApiError {
    if let Some(more) = REFUSED.now() {
        tracing::warn!(%error, more, "a request was refused");
    }
    ApiError::unauthorized(&error.to_string())
}

/// The reader that the table of endpoints makes of a caller here; no one is granted a path that it
/// lacks. Returns an error, too, if a request that may be read once has been read before, by
/// another replica or by this one before it was restarted.
async fn granted(
    service: &Service,
    caller: Caller,
    endpoint: Option<&Endpoint>,
    nonce: &Nonce,
) -> Result<Reader, ApiError> {
    let Some(endpoint) = endpoint else {
        return Err(no_such_path().await);
    };
    let reader = service.access.reader(caller, endpoint).await;
    let reader = reader.ok_or_else(|| ApiError::forbidden(endpoint.refusal))?;
    if endpoint.steers() && reader != Reader::Admin {
        // Before any work is done for the request. The number of changes is also bounded where they
        // are written.
        let most = service.quotas.changes_per_day();
        if retried(|| service.store.changes_by(caller.uid)).await? >= most {
            return Err(ApiError::too_many_changes(most));
        }
    }
    let is_looked_up = endpoint.acts_once() && !endpoint.keeps_nonce;
    if !is_looked_up || retried(|| service.store.is_first_reading(nonce.as_str())).await? {
        Ok(reader)
    } else {
        Err(ApiError::replayed())
    }
}

async fn read(
    service: &Service,
    caller: Caller,
    is_trusted: bool,
    body: Body,
) -> Result<Bytes, ApiError> {
    if service.door == Door::Nodes && !caller.is_root() {
        return Err(ApiError::forbidden(
            "this address is for root of the nodes; ask at that of users",
        ));
    }
    let limit = if is_trusted { REPORT_LIMIT } else { USER_LIMIT };
    let said = body.size_hint();
    if said.lower() > limit as u64 {
        return Err(too_long(limit));
    }
    let is_long = is_trusted && said.upper().is_none_or(|most| most > USUAL);
    let _place = match is_long {
        true => service.long_bodies.acquire().await.ok(),
        false => None,
    };
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(_) => Err(too_long(limit)),
    }
}

async fn sign(
    service: &Service,
    reader: u32,
    nonce: &Nonce,
    answer: Response,
    is_head: bool,
) -> Response {
    let (mut parts, body) = answer.into_parts();
    let Ok(body) = body.collect().await else {
        return ApiError::unavailable("answer", "the answer could not be made").into_response();
    };
    let body = body.to_bytes();
    service.quotas.charge(Peer::User(reader), body.len());
    let status = parts.status.as_u16();
    let signature = {
        let (credentials, nonce, body) = (
            Arc::clone(&service.credentials),
            nonce.clone(),
            // The router drops the body of an answer to HEAD on its way out.
            if is_head { Bytes::new() } else { body.clone() },
        );
        blocking(&service.credential_calls.answers, move || {
            sign_answer(credentials.as_ref(), reader, status, &nonce, &body)
        })
        .await
    };
    match signature {
        Ok(Ok(signature)) => match HeaderValue::from_str(&signature) {
            Ok(value) => {
                parts.headers.insert(ANSWER_HEADER, value);
                Response::from_parts(parts, Body::from(body))
            }
            Err(_) => unreachable(service.credentials.backend()).into_response(),
        },
        Ok(Err(error)) => {
            tracing::error!(%error, "an answer cannot be signed");
            unreachable(service.credentials.backend()).into_response()
        }
        Err(error) => error.into_response(),
    }
}

fn unreachable(backend: Backend) -> ApiError {
    let message = match backend {
        Backend::Munge => "the service cannot reach its munged",
        Backend::Sack => "the service cannot reach Slurm's SACK socket on its host",
    };
    ApiError::unavailable(backend.code(), message)
}

/// Runs a call of the back-end, which blocks: libmunge up to ten seconds if munged is down. A
/// dropped request's call goes on and keeps its permit.
async fn blocking<T: Send + 'static>(
    calls: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let stopping = || ApiError::unavailable("stopping", "the service is stopping");
    let place = Arc::clone(calls)
        .acquire_owned()
        .await
        .map_err(|_| stopping())?;
    tokio::task::spawn_blocking(move || {
        let done = work();
        drop(place);
        done
    })
    .await
    .map_err(|_| stopping())
}

fn too_long(limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!("a request's body may have {limit} bytes at the most"),
    )
}
