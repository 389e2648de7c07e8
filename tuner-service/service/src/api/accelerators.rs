//! The accelerators that can be tuned.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use io_autotune_catalogue::{Accelerator, Need};
use io_autotune_protocol::{AcceleratorDetail, AcceleratorSummary, ErrorBody, SpaceInUse};

use super::checked::Checked;
use super::{ApiError, Service};
use crate::reader::Reader;

/// The accelerators of this site.
#[utoipa::path(get, path = "/v1/accelerators", responses((status = 200, body = Vec<AcceleratorSummary>)))]
pub(super) async fn list(State(service): State<Arc<Service>>) -> Json<Vec<AcceleratorSummary>> {
    let catalogue = service.catalogue.current();
    let mut list: Vec<_> = catalogue
        .iter()
        .map(|accelerator| summary(&service, accelerator))
        .collect();
    // The default may be a combination, which no file describes.
    if list.iter().all(|one| !one.is_default)
        && let Ok(default) = service.accelerator(None)
    {
        list.push(summary(&service, &default));
    }
    Json(list)
}

/// One accelerator, or several that are tuned together.
#[utoipa::path(get, path = "/v1/accelerators/{name}", params(("name" = String, Path, description = "What users type; of several that are tuned together the names with + between them")),
    responses((status = 200, body = AcceleratorDetail),
    (status = 422, body = ErrorBody, description = "There is none, and the message has the valid choices; or they cannot be tuned together")))]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Path(name)): Checked<Path<String>>,
) -> Result<Json<AcceleratorDetail>, ApiError> {
    let accelerator = service.accelerator(Some(&name))?;
    let in_use = match reader {
        Reader::Admin => Some(service.store.spaces_in_use(&accelerator.name).await?),
        _ => None,
    };
    Ok(Json(AcceleratorDetail {
        summary: summary(&service, &accelerator),
        description: accelerator.description.clone(),
        takes_effect: accelerator.takes_effect.clone(),
        space: accelerator.space.clone(),
        delivery: accelerator.ways(),
        recipes: accelerator.recipes_told(),
        risks: accelerator.risks_told(),
        at_risk: accelerator.at_risk.as_ref().map(|other| other.name.clone()),
        in_use: in_use.map(|spaces| {
            let spaces = spaces.into_iter();
            spaces
                .map(|(space, settled, studies)| SpaceInUse {
                    space,
                    settled,
                    studies,
                })
                .collect()
        }),
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
