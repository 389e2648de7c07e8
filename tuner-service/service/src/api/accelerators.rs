//! What can be tuned.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use io_autotune_protocol::AcceleratorSummary;

use super::Service;

/// The accelerators of this site.
#[utoipa::path(get, path = "/v1/accelerators", responses((status = 200, body = Vec<AcceleratorSummary>)))]
pub(super) async fn list(State(service): State<Arc<Service>>) -> Json<Vec<AcceleratorSummary>> {
    let accelerators = service
        .catalogue
        .iter()
        .map(|accelerator| AcceleratorSummary {
            name: accelerator.name.clone(),
            title: accelerator.title.clone(),
            is_default: accelerator.name == service.default_accelerator,
            parameters: accelerator
                .space
                .parameters()
                .iter()
                .map(|p| p.name.clone())
                .collect(),
        });
    Json(accelerators.collect())
}
