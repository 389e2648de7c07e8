//! Removes runs that are older than a number of days.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use io_autotune_model::Removed;
use io_autotune_protocol::{ErrorBody, RetentionAnswer, RetentionRequest};
use io_autotune_store::{Audit, LEAST_DAYS};
use tokio::time::Instant;

use super::checked::Checked;
use super::reason::{Concerns, reason};
use super::{ApiError, Service};
use crate::access::Caller;
use crate::retention::MOST_DAYS;

/// How long one request removes runs. The rest is left for the next request, as the asker waits for
/// each.
const FOR: Duration = Duration::from_secs(5);

/// Removes runs that no study needs and that are older than the given number of days, a bounded
/// share of them; a dry run answers how many there are.
#[utoipa::path(post, path = "/v1/retention", request_body = RetentionRequest, responses(
    (status = 200, body = RetentionAnswer), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn remove(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Checked(Json(body)): Checked<Json<RetentionRequest>>,
) -> Result<Json<RetentionAnswer>, ApiError> {
    let audit = Audit::unbounded(caller.uid, reason(&body.why, Concerns::Others)?);
    let days = match body.older_than_days.or(service.retention.days) {
        Some(days) if (LEAST_DAYS..=MOST_DAYS).contains(&days) => days,
        Some(days) => {
            return Err(ApiError::bad_request(format!(
                "{days} days: {LEAST_DAYS} to {MOST_DAYS} are expected; what is younger than {LEAST_DAYS} days is kept"
            )));
        }
        None => {
            return Err(ApiError::bad_request(
                "service.toml has no [retention] days, so all runs are kept: say --older-than DAYS"
                    .into(),
            ));
        }
    };
    if body.dry_run {
        let removed = service.store.would_remove(days).await?;
        return Ok(Json(RetentionAnswer {
            older_than_days: days,
            removed,
            more: false,
        }));
    }
    let begun = Instant::now();
    let mut sum = Removed::default();
    let more = loop {
        let (removed, more) = service.store.remove_history(days, audit).await?;
        sum += removed;
        if !more || begun.elapsed() >= FOR {
            break more;
        }
    };
    tracing::info!(
        days,
        uid = caller.uid,
        runs = sum.runs,
        trimmed = sum.trimmed,
        reports = sum.reports,
        "old runs removed"
    );
    Ok(Json(RetentionAnswer {
        older_than_days: days,
        removed: sum,
        more,
    }))
}
