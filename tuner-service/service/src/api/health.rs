//! Liveness, readiness and the API's description, for probes without a credential.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use io_autotune_protocol::Readiness;

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
    let problems: Vec<String> = match service.store.ready().await {
        Ok(()) => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    let ready = problems.is_empty();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    (
        status,
        Json(Readiness {
            ready,
            problems,
            version,
        }),
    )
}

/// The description of this API.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
pub(super) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(super::description())
}
