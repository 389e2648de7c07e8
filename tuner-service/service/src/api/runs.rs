//! Runs: start, finish, history, explain.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use io_autotune_protocol::{
    ErrorBody, FinishAnswer, FinishRequest, Job, Request, RunDetail, RunSummary, StartAnswer,
    StartRequest, Step,
};
use io_autotune_store::{
    Finish, JobKey, Merged, NewRun, RunFilter, StartedRun, StoreError, StudyKey,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{ApiError, Service};
use crate::access::Caller;
use crate::decide::{Occasion, application_name, decide};
use crate::summary;

/// How long a start waits for its study: well inside the prolog's deadline of two seconds.
const LOCK_WAIT: Duration = Duration::from_millis(700);

/// Starts the run of a job. Every question about one launch of one job has the same answer.
#[utoipa::path(post, path = "/v1/runs/start", request_body = StartRequest, responses(
    (status = 200, body = StartAnswer), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn start(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<StartRequest>, JsonRejection>,
) -> Result<Json<StartAnswer>, ApiError> {
    let Json(StartRequest { job, request }) = body?;
    only_root(caller)?;
    request.validate()?;
    validate(&job)?;
    let accelerator = service.accelerator(request.accelerator.as_deref())?;
    let key = job_key(&job);
    let study = study_key(&job, &request, &accelerator.name);
    let new = NewRun {
        job: &key,
        node: &job.node,
        study: &study,
        request: as_json(&request)?,
        space: &accelerator.space,
    };
    let occasion = Occasion {
        request: &request,
        restart_count: job.restart_count,
        accelerator,
        settings: &service.settings,
        busy: false,
    };
    let started = match service
        .store
        .start_run(&new, LOCK_WAIT, |state| decide(&occasion, state))
        .await
    {
        Err(StoreError::Busy { .. }) => {
            let busy = Occasion {
                busy: true,
                ..occasion
            };
            let state = service.store.state_of(&study, &accelerator.space).await?;
            service
                .store
                .start_unlocked(&new, &state, |state| decide(&busy, state))
                .await?
        }
        other => other?,
    };
    tracing::info!(
        run_id = started.run_id, cluster = job.cluster, job_id = job.job_id, restart_count = job.restart_count,
        phase = %started.phase, role = %started.role, "run started"
    );
    Ok(Json(answer(started)?))
}

fn answer(started: StartedRun) -> Result<StartAnswer, ApiError> {
    Ok(StartAnswer {
        run_id: started.run_id,
        phase: started.phase,
        role: started.role,
        parametrization: started.parametrization,
        reason: started.reason,
        delivery: summary::stored(started.delivery)?,
    })
}

/// Stores a node's report of how a job went. It applies once, however often it arrives.
#[utoipa::path(post, path = "/v1/runs/finish", request_body = FinishRequest, responses(
    (status = 200, body = FinishAnswer, description = "It is stored durably"),
    (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn finish(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    body: Result<Json<FinishRequest>, JsonRejection>,
) -> Result<Json<FinishAnswer>, ApiError> {
    let Json(finish) = body?;
    only_root(caller)?;
    finish.request.validate()?;
    validate(&finish.job)?;
    for (name, value) in &finish.measures {
        if !(value.is_finite() && *value > 0.0) {
            return Err(ApiError::bad_request(format!(
                "measure {name:?} is {value}: it must be positive"
            )));
        }
    }
    let accelerator = service.accelerator(finish.request.accelerator.as_deref())?;
    let (key, study) = (
        job_key(&finish.job),
        study_key(&finish.job, &finish.request, &accelerator.name),
    );
    let no_start = format!(
        "the start had no answer{}; the job ran with the default",
        finish
            .start_failure
            .as_ref()
            .map(|why| format!(" ({why})"))
            .unwrap_or_default()
    );
    let (known, report) = (merged(&finish)?, as_json(&finish)?);
    let finished = service
        .store
        .finish_run(
            &Finish {
                job: &key,
                node: &finish.job.node,
                study: &study,
                request: as_json(&finish.request)?,
                space: &accelerator.space,
                no_start: &no_start,
                report,
            },
            |reports| first_of(reports).unwrap_or(known),
        )
        .await?;
    tracing::info!(
        run_id = finished.run_id,
        cluster = finish.job.cluster,
        job_id = finish.job.job_id,
        restart_count = finish.job.restart_count,
        duplicate = finished.duplicate,
        "run finished"
    );
    Ok(Json(FinishAnswer {
        run_id: finished.run_id,
        duplicate: finished.duplicate,
    }))
}

/// Which runs to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Only this application's.
    app: Option<String>,
    /// Only this study's.
    study: Option<i64>,
    /// The newest so many (100 unless said, 10,000 at the most).
    limit: Option<u32>,
}

/// The caller's runs, or every user's for an admin; oldest first.
#[utoipa::path(get, path = "/v1/runs", params(HistoryQuery), responses((status = 200, body = Vec<RunSummary>)))]
pub(super) async fn history(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<Vec<RunSummary>>, ApiError> {
    let Query(query) = query?;
    let filter = RunFilter {
        owner_uid: service.access.visible_owner(caller).await,
        study_id: query.study,
        application: query.app,
        job_id: None,
        limit: i64::from(query.limit.unwrap_or(100).min(10_000)),
    };
    let runs = service.store.runs(&filter).await?;
    Ok(Json(
        runs.into_iter()
            .map(summary::run)
            .collect::<Result<_, _>>()?,
    ))
}

/// The launches of one job, with what their suggestions were made from.
#[utoipa::path(get, path = "/v1/runs/{job_id}", params(("job_id" = u32, Path, description = "Slurm's job id")),
    responses((status = 200, body = Vec<RunDetail>), (status = 404, body = ErrorBody)))]
pub(super) async fn explain(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<u32>, PathRejection>,
) -> Result<Json<Vec<RunDetail>>, ApiError> {
    let Path(job_id) = path?;
    let filter = RunFilter {
        owner_uid: service.access.visible_owner(caller).await,
        job_id: Some(job_id),
        limit: 100,
        ..RunFilter::default()
    };
    let runs = service.store.runs(&filter).await?;
    if runs.is_empty() {
        return Err(ApiError::not_found(&format!("run of a job {job_id}")));
    }
    let mut details = Vec::with_capacity(runs.len());
    for row in runs {
        let reports = service.store.reports(row.run_id).await?;
        details.push(RunDetail {
            suggestion: row.suggestion.clone(),
            delivery: summary::stored(row.delivery.clone())?,
            run: summary::run(row)?,
            reports,
        });
    }
    Ok(Json(details))
}

fn only_root(caller: Caller) -> Result<(), ApiError> {
    if caller.is_root() {
        Ok(())
    } else {
        Err(ApiError::forbidden(
            "only root of a node starts and finishes runs",
        ))
    }
}

/// Root speaks, but of a job whose name and environment are its user's.
fn validate(job: &Job) -> Result<(), ApiError> {
    for (name, value) in [
        ("cluster", &job.cluster),
        ("node", &job.node),
        ("partition", &job.partition),
        ("cpus_per_node", &job.cpus_per_node),
    ] {
        let plain =
            !value.is_empty() && value.len() <= 256 && value.chars().all(|c| c.is_ascii_graphic());
        if !plain {
            return Err(ApiError::bad_request(format!(
                "job.{name} = {value:?}: 1 to 256 printable ASCII characters are expected"
            )));
        }
    }
    if job.job_id == 0 || job.nodes == 0 || job.restart_count > i32::MAX.cast_unsigned() {
        return Err(ApiError::bad_request(
            "job.job_id and job.nodes must be positive, job.restart_count below 2^31".into(),
        ));
    }
    Ok(())
}

fn job_key(job: &Job) -> JobKey {
    JobKey {
        cluster: job.cluster.clone(),
        job_id: job.job_id,
        restart_count: job.restart_count,
    }
}

/// The context is what root is told and nobody can forge: nodes, partition, CPUs per node.
fn study_key(job: &Job, request: &Request, accelerator: &str) -> StudyKey {
    StudyKey {
        owner_uid: job.uid,
        owner_name: job.user.clone(),
        application: application_name(request).to_owned(),
        accelerator: accelerator.to_owned(),
        context: [
            ("nodes", job.nodes.to_string()),
            ("partition", job.partition.clone()),
            ("cpus_per_node", job.cpus_per_node.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect(),
    }
}

fn as_json<T: serde::Serialize>(value: &T) -> Result<serde_json::Value, ApiError> {
    serde_json::to_value(value).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// The first report decides: the node that was given the parametrization is the only one that
/// reports.
fn first_of(reports: &[serde_json::Value]) -> Option<Merged> {
    let first: FinishRequest = serde_json::from_value(reports.first()?.clone()).ok()?;
    merged(&first).ok()
}

fn merged(finish: &FinishRequest) -> Result<Merged, ApiError> {
    Ok(Merged {
        elapsed: elapsed(&finish.steps),
        wait_status: wait_status(&finish.steps),
        applied: as_json(&finish.applied)?,
        measures: finish.measures.clone(),
        missing: None,
        epilog: finish.epilog.as_ref().map(as_json).transpose()?,
    })
}

/// A batch job: its batch step's duration, as inner steps run inside it. A job without one: the
/// sum of its steps' durations, because a person's thinking time does not count.
fn elapsed(steps: &[Step]) -> Option<f64> {
    let nanoseconds = match steps.iter().find(|step| step.step_id == Step::BATCH) {
        Some(batch) => batch.duration_ns?,
        None => steps
            .iter()
            .map(|step| step.duration_ns)
            .sum::<Option<u64>>()?,
    };
    #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
    let seconds = nanoseconds as f64 / 1e9;
    (nanoseconds > 0).then_some(seconds)
}

fn wait_status(steps: &[Step]) -> i32 {
    match steps.iter().find(|step| step.step_id == Step::BATCH) {
        Some(batch) => batch.wait_status,
        None => steps
            .iter()
            .map(|step| step.wait_status)
            .find(|status| *status != 0)
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step_id: u32, seconds: Option<u64>, wait_status: i32) -> Step {
        let duration_ns = seconds.map(|seconds| seconds * 1_000_000_000);
        Step {
            step_id,
            duration_ns,
            wait_status,
            nodes: 1,
            variables: Default::default(),
        }
    }

    #[test]
    fn inner_steps_of_a_batch_job_do_not_count_twice() {
        let steps = [step(0, Some(3), 256), step(Step::BATCH, Some(5), 0)];
        assert_eq!(elapsed(&steps), Some(5.0));
        assert_eq!(wait_status(&steps), 0);
    }

    #[test]
    fn without_a_batch_step_the_steps_are_added() {
        let steps = [step(0, Some(3), 0), step(1, Some(4), 9)];
        assert_eq!(elapsed(&steps), Some(7.0));
        assert_eq!(wait_status(&steps), 9);
    }

    #[test]
    fn a_step_whose_end_was_not_seen_leaves_no_elapsed() {
        assert_eq!(elapsed(&[step(Step::BATCH, None, 0)]), None);
        assert_eq!(elapsed(&[step(0, Some(3), 0), step(1, None, 0)]), None);
        assert_eq!(elapsed(&[]), None);
    }
}
