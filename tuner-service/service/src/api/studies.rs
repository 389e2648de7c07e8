//! Studies: status, one in full, pin, unpin, reset, objective, accept.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use io_autotune_catalogue::canonical_name;
use io_autotune_engine::{Epoch, Parametrization};
use io_autotune_model::Objective;
use io_autotune_protocol::{
    ErrorBody, ObjectiveRequest, PinRequest, STUDIES_PAGE, StudyDetail, StudySummary, WhyRequest,
};
use io_autotune_store::{Audit, Opened, StudyFilter, StudyKey, StudyRow};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::deciding::Asker;
use super::reason::{Concerns, reason};
use super::summary;
use super::{ApiError, Service};
use crate::assess;
use crate::decide::restricted;
use crate::reader::Reader;

/// The studies that are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyQuery {
    /// Only studies of this application.
    app: Option<String>,
    /// Only this study.
    study: Option<i64>,
    /// Only studies of this accelerator.
    accelerator: Option<String>,
    /// Only studies of this user, by uid.
    uid: Option<u32>,
    /// Only studies whose latest run was charged to this account.
    account: Option<String>,
    /// Only studies of this cluster.
    cluster: Option<String>,
    /// The page after this study, the last one of the page before.
    after: Option<i64>,
    /// The number of studies (500 unless given, and at the most).
    limit: Option<u32>,
}

/// A page of the caller's studies and those of accounts that the caller coordinates, or of every
/// user's for an admin. A page that is not full is the last one.
#[utoipa::path(get, path = "/v1/studies", params(StudyQuery), responses((status = 200, body = Vec<StudySummary>)))]
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Query(query)): Checked<Query<StudyQuery>>,
) -> Result<Json<Vec<StudySummary>>, ApiError> {
    let Some(seen) = service.access.seen(asker.reader).of(query.uid) else {
        return Ok(Json(Vec::new()));
    };
    let filter = StudyFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        account: query.account,
        cluster: service.wanted_cluster(query.cluster)?,
        study_id: query.study,
        application: query.app,
        accelerator: query.accelerator.as_deref().map(canonical_name),
        after: query.after,
        limit: Some(query.limit.unwrap_or(STUDIES_PAGE).min(STUDIES_PAGE).into()),
    };
    Ok(Json(summary::studies(&service, asker, &filter).await?))
}

/// A study with its space and all parametrizations that it has tested.
#[utoipa::path(get, path = "/v1/studies/{study_id}",
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudyDetail), (status = 404, body = ErrorBody)))]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
) -> Result<Json<StudyDetail>, ApiError> {
    let row = one_row(&service, asker.reader, study_id).await?;
    Ok(Json(summary::study_detail(&service, asker, row).await?))
}

/// Fixes the parametrization that every later run of a study gets.
#[utoipa::path(post, path = "/v1/studies/{study_id}/pin", request_body = PinRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudySummary), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn pin(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<PinRequest>>,
) -> Result<Json<StudySummary>, ApiError> {
    let steering = Steering::of(&service, asker, study_id, &body.why).await?;
    let parametrization = parametrization(&service, study_id, body.values.as_ref()).await?;
    later(body.until, service.clock.now())?;
    let pinned = service
        .store
        .pin(study_id, &parametrization, body.until, steering.audit);
    let line = pinned.await?;
    tracing::info!(study_id, uid = asker.caller.uid, %parametrization, "study pinned");
    steering.shown(line).await
}

async fn parametrization(
    service: &Service,
    study_id: i64,
    values: Option<&std::collections::BTreeMap<String, String>>,
) -> Result<Parametrization, ApiError> {
    let state = service.store.study_state(study_id).await?;
    match values {
        Some(values) => {
            let values = values
                .iter()
                .map(|(name, text)| Ok((name.clone(), state.space.parse_value(name, text)?)))
                .collect::<Result<_, ApiError>>()?;
            Ok(state.space.complete(&values)?)
        }
        None => {
            let restricted = restricted(&state);
            let epoch = Epoch::new(restricted.space(), &service.settings, state.seed);
            match epoch.recommend(restricted.history()) {
                Some(recommendation) => Ok(recommendation.parametrization),
                None => Err(ApiError::bad_request(format!(
                    "study {study_id} recommends nothing yet: name the values to pin"
                ))),
            }
        }
    }
}

/// Ends a study's pin: the study goes on where it was pinned.
#[utoipa::path(post, path = "/v1/studies/{study_id}/unpin", request_body = WhyRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudySummary), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn unpin(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<WhyRequest>>,
) -> Result<Json<StudySummary>, ApiError> {
    let steering = Steering::of(&service, asker, study_id, &body.why).await?;
    let Some(line) = service.store.unpin(study_id, steering.audit).await? else {
        return Err(ApiError::bad_request(format!(
            "study {study_id} has no pin of its own; `io-autotune status study:{study_id}` says what holds it"
        )));
    };
    tracing::info!(study_id, uid = asker.caller.uid, "study unpinned");
    steering.shown(line).await
}

/// Starts a study afresh in a new epoch, and removes a pin. History is kept.
#[utoipa::path(post, path = "/v1/studies/{study_id}/reset", request_body = WhyRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudySummary), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn reset(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<WhyRequest>>,
) -> Result<Json<StudySummary>, ApiError> {
    let steering = Steering::of(&service, asker, study_id, &body.why).await?;
    let Opened { epoch, line } = service.store.reset(study_id, steering.audit).await?;
    tracing::info!(study_id, uid = asker.caller.uid, epoch, "study reset");
    steering.shown(line).await
}

/// Gives a study another objective, in a new epoch. History and a pin are kept.
#[utoipa::path(post, path = "/v1/studies/{study_id}/objective", request_body = ObjectiveRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudySummary), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
              (status = 422, body = ErrorBody)))]
pub(super) async fn objective(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<ObjectiveRequest>>,
) -> Result<Json<StudySummary>, ApiError> {
    let steering = Steering::of(&service, asker, study_id, &body.why).await?;
    let objective = Objective::named(&body.objective, body.maximise)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let set = service
        .store
        .set_objective(study_id, &objective, steering.audit);
    let Some(Opened { epoch, line }) = set.await? else {
        return Err(ApiError::conflict(format!(
            "study {study_id} has this objective already: {objective}"
        )));
    };
    tracing::info!(study_id, uid = asker.caller.uid, epoch, %objective, "the study's objective is changed");
    steering.shown(line).await
}

/// Accepts that a study's runs are one application's, however much they differ: it is tuned again.
#[utoipa::path(post, path = "/v1/studies/{study_id}/accept", request_body = WhyRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = StudySummary), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn accept(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<WhyRequest>>,
) -> Result<Json<StudySummary>, ApiError> {
    let steering = Steering::of(&service, asker, study_id, &body.why).await?;
    let line = service.store.accept_mixed(study_id, steering.audit).await?;
    let uid = asker.caller.uid;
    tracing::info!(study_id, uid, "study accepted as one application's");
    steering.shown(line).await
}

/// A study that the caller may steer.
pub(super) struct Steering<'a> {
    service: &'a Service,
    asker: Asker,
    study_id: i64,
    pub(super) study: StudyKey,
    pub(super) audit: Audit<'a>,
}

impl<'a> Steering<'a> {
    pub(super) async fn of(
        service: &'a Service,
        asker: Asker,
        study_id: i64,
        why: &'a str,
    ) -> Result<Self, ApiError> {
        let study = key_of(one_row(service, asker.reader, study_id).await?);
        let why = reason(why, Concerns::of(Some(study.owner_uid), asker.caller))?;
        Ok(Self {
            service,
            asker,
            study_id,
            study,
            audit: asker.audit(service, why),
        })
    }

    /// The study as it is afterwards, with the line of the audit. Its snapshot is dropped and its
    /// findings are renewed.
    async fn shown(self, line: i64) -> Result<Json<StudySummary>, ApiError> {
        let Self {
            service,
            asker,
            study_id,
            ..
        } = self;
        renew(service, study_id, &self.study).await;
        let row = one_row(service, asker.reader, study_id).await?;
        Ok(Json(StudySummary {
            line: Some(line),
            ..summary::study(service, asker, row).await?
        }))
    }
}

pub(super) fn key_of(row: StudyRow) -> StudyKey {
    StudyKey {
        cluster: row.cluster,
        owner_uid: row.owner_uid,
        owner_name: row.owner_name,
        application: row.application,
        full_name: row.full_name,
        accelerator: row.accelerator,
        context: row.context,
    }
}

pub(super) async fn renew(service: &Service, study_id: i64, study: &StudyKey) {
    service.admissions.of(study).forget_snapshot();
    let renewed = match service.store.assess(study_id).await {
        Ok(assessing) => assess::renew(assessing, service.reckoning()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = renewed {
        // The steering stands; the study's next verdict renews its findings.
        tracing::warn!(study_id, %error, "the study's assessment has to wait");
    }
}

pub(super) async fn one_row(
    service: &Service,
    reader: Reader,
    study_id: i64,
) -> Result<StudyRow, ApiError> {
    let seen = service.access.seen(reader);
    let filter = StudyFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        study_id: Some(study_id),
        ..StudyFilter::default()
    };
    let found = service.store.studies(&filter).await?.pop();
    found.ok_or_else(|| ApiError::not_found(&format!("study {study_id}")))
}

/// Refuses a time that is over already.
pub(super) fn later(until: Option<Timestamp>, now: Timestamp) -> Result<(), ApiError> {
    match until {
        Some(until) if until <= now => Err(ApiError::bad_request(format!(
            "it would be over already: {until} is not later than now"
        ))),
        _ => Ok(()),
    }
}
