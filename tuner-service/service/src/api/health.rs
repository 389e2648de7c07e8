//! Liveness, readiness and the API's description, for probes without a credential: anybody may ask
//! for them as often as they like, so that none is worked out for a request.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use io_autotune_protocol::Readiness;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Service;

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

/// The database's last answer: whoever probes, it is asked once a second.
#[derive(Debug, Default)]
pub(crate) struct LastReadiness(Mutex<Option<(Instant, Readiness)>>);

impl LastReadiness {
    const AGE: Duration = Duration::from_secs(1);

    async fn of(&self, store: &io_autotune_store::Store) -> Readiness {
        let mut last = self.0.lock().await;
        if let Some((at, readiness)) = last.as_ref()
            && at.elapsed() < Self::AGE
        {
            return readiness.clone();
        }
        let problems: Vec<String> = match store.ready().await {
            Ok(()) => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
        let readiness = Readiness {
            ready: problems.is_empty(),
            problems,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        *last = Some((Instant::now(), readiness.clone()));
        readiness
    }
}

/// The description of this API.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
pub(super) async fn openapi() -> impl IntoResponse {
    static DESCRIPTION: LazyLock<Bytes> =
        LazyLock::new(|| super::description().to_json().unwrap_or_default().into());
    /// Nobody is in a hurry for it, and it is long.
    const LATE: Duration = Duration::from_millis(50);
    tokio::time::sleep(LATE).await;
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.clone())
}
