//! The site's default of an accelerator: what its studies have in common, and the order that is in
//! force.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use io_autotune_model::SiteSetting;
use io_autotune_protocol::{ErrorBody, InCommon, Loser, OrderSummary, SiteDefault};
use io_autotune_store::{Scope, StudyFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::deciding::told;
use super::{ApiError, Service};
use crate::reader::Reader;

/// The most studies that are named as losing.
const NAMED: usize = 20;

/// The cluster that is asked about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterAsked {
    /// Only this cluster.
    cluster: Option<String>,
}

/// The site's default of an accelerator on each cluster. Admins and operators are told which studies
/// would lose.
#[utoipa::path(get, path = "/v1/site-defaults/{name}",
    params(("name" = String, Path, description = "What users type; of several that are tuned together the names with + between them"), ClusterAsked),
    responses((status = 200, body = Vec<SiteDefault>), (status = 422, body = ErrorBody)))]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Path(name)): Checked<Path<String>>,
    Checked(Query(ClusterAsked { cluster })): Checked<Query<ClusterAsked>>,
) -> Result<Json<Vec<SiteDefault>>, ApiError> {
    let accelerator = service.accelerator(Some(&name))?.name.clone();
    let wanted = service.wanted_cluster(cluster)?;
    let clusters = service.clusters.iter().map(|one| &one.sources.cluster);
    let mut answer = Vec::new();
    for cluster in clusters.filter(|one| wanted.as_ref().is_none_or(|wanted| wanted == *one)) {
        let made = service.store.site_setting(cluster, &accelerator).await?;
        let (made_at, found) = match made {
            Some(made) => (Some(made.made_at), made.found),
            None => (None, None),
        };
        let in_common = match found {
            Some(found) => Some(in_common(&service, reader, &found).await?),
            None => None,
        };
        answer.push(SiteDefault {
            cluster: service.shown_cluster(cluster),
            accelerator: accelerator.clone(),
            made_at,
            in_common,
            in_force: in_force(&service, reader, cluster, &accelerator).await?,
        });
    }
    Ok(Json(answer))
}

async fn in_common(
    service: &Service,
    reader: Reader,
    found: &SiteSetting,
) -> Result<InCommon, ApiError> {
    let mut losers = Vec::new();
    let is_told = matches!(reader, Reader::Admin | Reader::Operator);
    for judge in found.losers.iter().take(NAMED).filter(|_| is_told) {
        let filter = StudyFilter {
            study_id: Some(judge.study_id),
            ..StudyFilter::default()
        };
        if let Some(row) = service.store.studies(&filter).await?.pop() {
            losers.push(Loser {
                study_id: row.study_id,
                application: row.application,
                uid: row.owner_uid,
                user: row.owner_name,
                ratio: judge.ratio,
            });
        }
    }
    Ok(InCommon {
        values: found.values.clone(),
        users: found.users,
        ratio: found.ratio,
        studies: found.studies,
        gain: found.gain,
        lose: found.losers.len() as u64,
        smallest: found.smallest,
        largest: found.largest,
        worst: found.worst,
        losers,
    })
}

/// The order of this cluster, or else that of all clusters.
async fn in_force(
    service: &Service,
    reader: Reader,
    cluster: &str,
    accelerator: &str,
) -> Result<Option<OrderSummary>, ApiError> {
    for cluster in [Some(cluster.to_owned()), None] {
        let scope = Scope {
            accelerator: Some(accelerator.to_owned()),
            cluster,
            ..Scope::default()
        };
        let order = service.store.order_in_force(&scope, "site-default").await?;
        if let Some(order) = order {
            return Ok(Some(OrderSummary {
                may_end: reader == Reader::Admin,
                ..told(order)
            }));
        }
    }
    Ok(None)
}
