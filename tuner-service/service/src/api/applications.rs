//! The application of a job, by its name and the site's rules.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use io_autotune_protocol::{ApplicationRules, JobNames};

use super::{ApiError, Service};
use crate::reader::Reader;

/// The period in which the job names are looked for.
const WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);

const NAMES: usize = 10_000;

/// The site's rules, by which a job's name becomes an application.
#[utoipa::path(get, path = "/v1/applications/rules", responses((status = 200, body = ApplicationRules)))]
pub(super) async fn rules(State(service): State<Arc<Service>>) -> Json<ApplicationRules> {
    let file = service.rules.path().map(|path| path.display().to_string());
    let text = service.rules.current().text().to_owned();
    Json(ApplicationRules { file, text })
}

/// The job names of the caller's runs of the last 30 days, or of every user's for an admin.
#[utoipa::path(get, path = "/v1/applications/names", responses((status = 200, body = JobNames)))]
pub(super) async fn names(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
) -> Result<Json<JobNames>, ApiError> {
    let owner = reader.owner();
    #[expect(clippy::cast_possible_wrap, reason = "it is small")]
    let limit = NAMES as i64 + 1;
    let mut names = service.store.job_names(owner, WITHIN, limit).await?;
    let more = names.len() > NAMES;
    names.truncate(NAMES);
    Ok(Json(JobNames { names, more }))
}
