//! The audit, that is, the record of who changed what, when and why; and the undoing of changes.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use io_autotune_model::AuditLine;
use io_autotune_protocol::{ErrorBody, WhyRequest};
use io_autotune_store::{Audit, AuditFilter, Most, Undone};
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::deciding::Asker;
use super::orders::{Given, may_end};
use super::reason::{Concerns, reason};
use super::studies::{key_of, one_row, renew};
use super::{ApiError, Service};
use crate::reader::Reader;

/// The most lines of a page.
const PAGE: u32 = 500;

/// The lines of the audit that are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Only the lines about this study.
    study: Option<i64>,
    /// Only the changes by this user, by uid.
    by: Option<u32>,
    /// Only the lines before this one.
    before: Option<i64>,
    /// The number of lines, newest first (100 unless given, 500 at the most).
    limit: Option<u32>,
}

impl Asker {
    /// The audit's view of a change by this user, with the user's limits. Admins have no limits.
    pub(crate) fn audit<'a>(&self, service: &Service, why: &'a str) -> Audit<'a> {
        let unbounded = Audit::unbounded(self.caller.uid, why);
        match self.reader {
            Reader::Admin => unbounded,
            _ => Audit {
                most: Most {
                    changes_per_day: Some(service.quotas.changes_per_day()),
                    orders: Some(service.quotas.orders()),
                },
                ..unbounded
            },
        }
    }
}

/// Lines of the audit, newest first: those about studies that the caller may see, or all for those
/// who may read the whole audit.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery), responses((status = 200, body = Vec<AuditLine>)))]
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Query(query)): Checked<Query<AuditQuery>>,
) -> Result<Json<Vec<AuditLine>>, ApiError> {
    let seen = service.access.seen(reader);
    let filter = AuditFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        study_id: query.study,
        uid: query.by,
        audit_id: None,
        before: query.before,
        limit: i64::from(query.limit.unwrap_or(100).min(PAGE)),
    };
    let lines = service.store.audit(&filter).await?;
    let lines = lines.into_iter();
    Ok(Json(lines.map(|line| told(&service, line)).collect()))
}

/// Undoes the change that a line records, if it is still in force.
#[utoipa::path(post, path = "/v1/audit/{audit_id}/undo", request_body = WhyRequest,
    params(("audit_id" = i64, Path, description = "The line")),
    responses((status = 200, body = AuditLine), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
              (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn undo(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(audit_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<WhyRequest>>,
) -> Result<Json<AuditLine>, ApiError> {
    let entry = one(&service, asker.reader, audit_id).await?;
    // An order for everyone is visible to all, and undone by admins.
    let is_own = entry.owner_uid.is_some() || scope_owner(&entry) == asker.reader.owner();
    if asker.reader.owner().is_some() && !is_own {
        return Err(ApiError::forbidden(
            "only admins undo what is about everyone's studies",
        ));
    }
    if entry.detail.get("scope").is_some() {
        let order = Given {
            uid: entry.uid,
            user: entry.user.as_deref(),
            why: &entry.why,
            owner_uid: scope_owner(&entry),
            study_id: entry.study_id,
        };
        may_end(asker.reader, asker.caller, &order)?;
    }
    let owner = entry.owner_uid.or_else(|| scope_owner(&entry));
    let why = reason(&body.why, Concerns::of(owner, asker.caller))?;
    let audit = asker.audit(&service, why);
    match service.store.undo(audit_id, audit).await? {
        Undone::Done => {}
        Undone::NotFound => return Err(not_found(audit_id)),
        Undone::Cannot(because) => {
            return Err(ApiError::conflict(format!(
                "line {audit_id}, {}, cannot be undone: {because}",
                entry.action
            )));
        }
    }
    tracing::info!(
        audit_id,
        uid = asker.caller.uid,
        action = entry.action,
        "undone"
    );
    if let Some(study_id) = entry.study_id {
        let row = one_row(&service, asker.reader, study_id).await?;
        renew(&service, study_id, &key_of(row)).await;
    }
    let changed = one(&service, asker.reader, audit_id).await?;
    Ok(Json(told(&service, changed)))
}

async fn one(service: &Service, reader: Reader, audit_id: i64) -> Result<AuditLine, ApiError> {
    let seen = service.access.seen(reader);
    let filter = AuditFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        audit_id: Some(audit_id),
        limit: 1,
        ..AuditFilter::default()
    };
    let found = service.store.audit(&filter).await?.pop();
    found.ok_or_else(|| not_found(audit_id))
}

fn not_found(audit_id: i64) -> ApiError {
    ApiError::not_found_in(
        &format!("line {audit_id} of the audit"),
        "io-autotune audit",
    )
}

/// The owner of the studies of an order's scope; `None` if it is for everyone's.
fn scope_owner(entry: &AuditLine) -> Option<u32> {
    let uid = entry.detail.get("scope")?.get("owner_uid")?.as_u64()?;
    u32::try_from(uid).ok()
}

/// A line as it is answered: without the cluster where there is only one.
fn told(service: &Service, line: AuditLine) -> AuditLine {
    AuditLine {
        cluster: line.cluster.and_then(|name| service.shown_cluster(&name)),
        ..line
    }
}
