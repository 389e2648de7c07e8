//! The layer that admits only signed requests and signs the answers.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use io_autotune_protocol::credentials::{Backend, CredentialError};
use io_autotune_protocol::signature::{
    ANSWER_HEADER, NONCE_HEADER, Nonce, REQUEST_HEADER, SignatureError, sign_answer, verify_request,
};
use tokio::sync::Semaphore;

use crate::access::Caller;
use crate::api::{ApiError, Service};

/// Bytes: a job with a hundred thousand steps fits.
const REQUEST_LIMIT: usize = 16 * 1024 * 1024;

/// Bytes. Most requests are far smaller.
const USUAL: u64 = 1024 * 1024;

/// Concurrent bodies above [`USUAL`] or of unknown length. Their senders are not yet known.
static LONG_BODIES: Semaphore = Semaphore::const_new(8);

pub(crate) async fn signed(
    State(service): State<Arc<Service>>,
    OriginalUri(uri): OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let (Some(credential), Some(nonce)) = (header(REQUEST_HEADER), header(NONCE_HEADER)) else {
        return unauthorized("the request is not signed: use the io-autotune client")
            .into_response();
    };
    let nonce = match Nonce::parse(&nonce) {
        Ok(nonce) => nonce,
        Err(error) => return unauthorized(&error.to_string()).into_response(),
    };
    if body.size_hint().lower() > REQUEST_LIMIT as u64 {
        return too_long();
    }
    let is_usual = body.size_hint().upper().is_some_and(|most| most <= USUAL);
    let _place = match is_usual {
        true => None,
        false => LONG_BODIES.acquire().await.ok(),
    };
    let Ok(body) = Limited::new(body, REQUEST_LIMIT).collect().await else {
        return too_long();
    };
    let body = body.to_bytes();
    let path = uri
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let method = parts.method.as_str().to_owned();
    let verified = {
        let (credentials, nonce, body) = (
            Arc::clone(&service.credentials),
            nonce.clone(),
            body.clone(),
        );
        blocking(&service.credential_calls, move || {
            verify_request(
                credentials.as_ref(),
                &credential,
                &method,
                &path,
                &nonce,
                &body,
            )
        })
        .await
    };
    let uid = match verified {
        Ok(Ok(uid)) => uid,
        Ok(Err(SignatureError::Credential(
            error @ CredentialError::Unavailable { backend, .. },
        ))) => {
            tracing::error!(%error, "requests cannot be authenticated");
            return unreachable(backend).into_response();
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "a request was refused");
            return unauthorized(&error.to_string()).into_response();
        }
        Err(error) => return error.into_response(),
    };
    parts.extensions.insert(Caller { uid });
    let answer = next.run(Request::from_parts(parts, Body::from(body))).await;
    sign(&service, uid, &nonce, answer).await
}

async fn sign(service: &Service, reader: u32, nonce: &Nonce, answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    let Ok(body) = body.collect().await else {
        return ApiError::unavailable("answer", "the answer could not be made").into_response();
    };
    let body = body.to_bytes();
    let status = parts.status.as_u16();
    let signature = {
        let (credentials, nonce, body) = (
            Arc::clone(&service.credentials),
            nonce.clone(),
            body.clone(),
        );
        blocking(&service.credential_calls, move || {
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

/// Concurrent calls of the back-end. libmunge fails if munged's socket cannot queue a call.
pub(crate) const CREDENTIAL_CALLS: usize = 32;

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

fn too_long() -> Response {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!("a request's body may have {REQUEST_LIMIT} bytes at the most"),
    )
    .into_response()
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message.to_owned())
}
