//! Liveness, readiness and the API's description, for probes without a credential. No answer is
//! computed per request, and each request counts against a quota all the same.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Json;
use axum::body::{Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use io_autotune_protocol::Readiness;
use io_autotune_store::{Store, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Service;
use super::error::ApiError;
use super::signing::later;
use crate::door::Came;
use crate::metrics::ANSWERED_WITHIN;
use crate::peers::Peer;

/// Counts an unsigned request against the quota of its user, or over TCP against that of its host.
pub(super) async fn counted(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    let came = request.extensions().get::<Came>();
    let peer = came.map(|came| came.peer);
    let Some(peer) = peer.filter(|peer| *peer != Peer::User(0)) else {
        return next.run(request).await;
    };
    if let Err(when) = service.quotas.count(peer) {
        return later(&service, ApiError::too_many_requests(when)).await;
    }
    let answer = next.run(request).await;
    let length = answer.body().size_hint().exact().unwrap_or(0);
    service
        .quotas
        .charge(peer, usize::try_from(length).unwrap_or(usize::MAX));
    answer
}

/// The process answers.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, description = "It answers")))]
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// Requests can be served.
#[utoipa::path(get, path = "/v1/ready", responses(
    (status = 200, body = Readiness), (status = 503, body = Readiness)))]
pub(super) async fn ready(State(service): State<Arc<Service>>) -> (StatusCode, Json<Readiness>) {
    let readiness = service.ready.of(&service.store).await;
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(readiness))
}

/// The database's last answer: however many probes come, the database is asked once a second.
#[derive(Debug, Default)]
pub(crate) struct LastReadiness(Mutex<Option<(Instant, Readiness)>>);

impl LastReadiness {
    const AGE: Duration = Duration::from_secs(1);

    async fn of(&self, store: &Store) -> Readiness {
        let deadline = Instant::now() + ANSWERED_WITHIN;
        // All other probes wait for the same answer, which is there by the first one's deadline.
        let mut last = self.0.lock().await;
        if let Some((at, readiness)) = last.as_ref()
            && at.elapsed() < Self::AGE
        {
            return readiness.clone();
        }
        let readiness = readiness(store.ready_by(deadline).await);
        *last = Some((Instant::now(), readiness.clone()));
        readiness
    }
}

fn readiness(asked: Result<(), StoreError>) -> Readiness {
    let problems: Vec<String> = asked.err().iter().map(StoreError::with_remedy).collect();
    Readiness {
        ready: problems.is_empty(),
        problems,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The description of this API.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
pub(super) async fn openapi() -> impl IntoResponse {
    static DESCRIPTION: LazyLock<Bytes> =
        LazyLock::new(|| super::description().to_json().unwrap_or_default().into());
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.clone())
}
