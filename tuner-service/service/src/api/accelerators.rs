//! What can be tuned.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use io_autotune_catalogue::{Accelerator, Need};
use io_autotune_protocol::{AcceleratorDetail, AcceleratorSummary, ErrorBody};

use super::{ApiError, Service};

/// The accelerators of this site.
#[utoipa::path(get, path = "/v1/accelerators", responses((status = 200, body = Vec<AcceleratorSummary>)))]
pub(super) async fn list(State(service): State<Arc<Service>>) -> Json<Vec<AcceleratorSummary>> {
    let catalogue = service.catalogue.current();
    Json(
        catalogue
            .iter()
            .map(|accelerator| summary(&service, accelerator))
            .collect(),
    )
}

/// One accelerator.
#[utoipa::path(get, path = "/v1/accelerators/{name}", params(("name" = String, Path, description = "What users type")),
    responses((status = 200, body = AcceleratorDetail),
    (status = 422, body = ErrorBody, description = "There is none; the message has the valid choices")))]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<AcceleratorDetail>, ApiError> {
    let Path(name) = path?;
    let accelerator = service.accelerator(Some(&name))?;
    Ok(Json(AcceleratorDetail {
        summary: summary(&service, &accelerator),
        description: accelerator.description.clone(),
        takes_effect: accelerator.takes_effect.clone(),
        space: accelerator.space.clone(),
        delivery: accelerator.deliveries.words(),
    }))
}

fn summary(service: &Service, accelerator: &Accelerator) -> AcceleratorSummary {
    AcceleratorSummary {
        name: accelerator.name.clone(),
        title: accelerator.title.clone(),
        is_default: accelerator.name == service.default_accelerator,
        parameters: accelerator
            .space
            .parameters()
            .iter()
            .map(|p| p.name.clone())
            .collect(),
        needs: accelerator.needs.iter().map(Need::to_string).collect(),
        tried_on: accelerator.tried_on.clone(),
    }
}
