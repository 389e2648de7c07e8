//! Takes the job-completion script's records from the collector.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use io_autotune_protocol::{ErrorBody, OutcomesAnswer, OutcomesRequest};
use io_autotune_store::Source;

use super::checked::Checked;
use super::{ApiError, Service};
use crate::retry::retried;

/// Stores how jobs ended. Each outcome counts once, however often it is delivered.
#[utoipa::path(post, path = "/v1/outcomes", request_body = OutcomesRequest, responses(
    (status = 200, body = OutcomesAnswer, description = "They are stored durably"),
    (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn store(
    State(service): State<Arc<Service>>,
    Checked(Json(OutcomesRequest { cluster, outcomes })): Checked<Json<OutcomesRequest>>,
) -> Result<Json<OutcomesAnswer>, ApiError> {
    if !service
        .cluster(&cluster)?
        .sources
        .names
        .contains(&Source::Jobcomp)
    {
        // A temporary refusal: the collector keeps the outcomes until the configuration is right.
        return Err(ApiError::unavailable(
            "no_jobcomp",
            "the outcomes of the job-completion script are not wanted: [slurm] sources of service.toml does not name \
             jobcomp; add it and restart io-autotuned, or stop the collector",
        ));
    }
    for outcome in &outcomes {
        if crate::slurm::goes_on(&outcome.state) {
            return Err(ApiError::bad_request(format!(
                "the outcome of job {}: state {} is no end",
                outcome.job_id, outcome.state
            )));
        }
    }
    let recorded = retried(|| {
        service
            .store
            .record_outcomes(Source::Jobcomp, &cluster, &outcomes)
    })
    .await?;
    tracing::info!(
        cluster,
        stored = recorded.stored,
        duplicates = recorded.duplicates,
        "outcomes delivered"
    );
    Ok(Json(OutcomesAnswer {
        stored: recorded.stored,
        duplicates: recorded.duplicates,
    }))
}
