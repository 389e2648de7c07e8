//! Runs: start, finish, history, explain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use io_autotune_catalogue::{Accelerator, Resolved, canonical_name};
use io_autotune_engine::{Choice, History, Phase};
use io_autotune_model::NotCountedBecause;
use io_autotune_protocol::signature::Nonce;
use io_autotune_protocol::{
    BegunFrom, Delivery, DirectivesAnswer, DirectivesRequest, ErrorBody, FinishAnswer,
    FinishRequest, Job, NamedStudy, OverAnswer, OverRequest, RUNS_PAGE, Replay, Request, RunDetail,
    RunState, RunSummary, StartAnswer, StartRequest,
};
use io_autotune_store::{
    BusyStart, Finish, JobKey, NewRun, RunFilter, RunRow, StartedRun, StartedTogether, StoreError,
    StudyFilter, StudyKey, StudyState,
};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::deciding::{Asker, decided};
use super::summary;
use super::{ApiError, Service};
use crate::access::Caller;
use crate::assess;
use crate::decide::{Occasion, Snapshot, decide};
use crate::default_accelerator;
use crate::merge::merge_stored;
use crate::rate_limited_log::Seldom;
use crate::reader::Reader;
use crate::replay::{self, Kept, Known, NothingToReplay};
use crate::retry::retried;
use crate::slurm::Cluster;
use crate::slurm::nodes::NotThere;

/// A start's longest wait for its study's row, which another replica or a verdict may hold.
const LOCK_WAIT: Duration = Duration::from_millis(400);

/// The most attempts to start a run together with others, before it starts alone.
const TOGETHER: u32 = 2;

/// The most retries of a start whose study is steered in between.
const STEERED_MEANWHILE: u32 = 2;

/// Starts the run of a job. Every request about one launch of one job has the same answer.
#[utoipa::path(post, path = "/v1/runs/start", request_body = StartRequest, responses(
    (status = 200, body = StartAnswer), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn start(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Checked(Json(asked)): Checked<Json<StartRequest>>,
) -> Result<Json<StartAnswer>, ApiError> {
    let StartRequest {
        job,
        request,
        limit_seconds,
        started_at,
        node_state,
    } = asked;
    let cluster = service.cluster(&job.cluster)?;
    // slurmctld's host acts for no node: it asks before the job's nodes do.
    let before_nodes = !caller.is_root();
    if !before_nodes {
        is_there(cluster, caller, &job.node)?;
    }
    if let Some(state) = node_state
        && !before_nodes
    {
        let node = service.node_name(&job);
        service.hosts.hear(&node, state, service.clock.now());
    }
    let Resolved { request, full_name } = service.resolved(job.uid, request).await?;
    let (accelerator, choice) = accelerator(&service, &job, &request).await?;
    if before_nodes && !accelerator.delivers_directives() {
        return Err(ApiError::forbidden(&format!(
            "accelerator {} delivers no directives: the burst buffer's account starts no run of it",
            accelerator.name
        )));
    }
    let key = job_key(&job);
    let study = study_key(&job, &request, full_name, &accelerator.name);
    let budgets = service.budgets();
    let new = NewRun {
        job: &key,
        sluid: job.sluid.as_ref(),
        node: &job.node,
        nodes: job.nodes,
        study: &study,
        request: as_json(&request)?,
        space: &accelerator.space,
        began_at: started_at,
        budgets,
    };
    let occasion = Occasion {
        request: &request,
        restart_count: job.restart_count,
        start_limit: limit_seconds,
        listed_limit: cluster.limits.of(job.job_id),
        accelerator: &accelerator,
        choice: choice.as_ref(),
        settings: &service.settings,
        nodes: job.nodes,
        budgets,
        surrogates: Some(&service.surrogates),
        busy: None,
        draw: (service.draw)(),
    };
    let ask = || async {
        let started = retried(|| started(&service, &new, &occasion)).await?;
        tracing::info!(
            run_id = started.run_id, cluster = job.cluster, job_id = job.job_id,
            restart_count = job.restart_count, phase = %started.phase, role = %started.role, "run started"
        );
        service.metrics.count_start(&started);
        answer(started)
    };
    // The state of the directives is stored between its request and the nodes'.
    let answer = if job.nodes > 1 && !before_nodes {
        service
            .launches
            .answer((key.clone(), job.sluid.clone()), ask)
            .await?
    } else {
        ask().await?
    };
    Ok(Json(answer))
}

/// The accelerator of a job. For a job that names none it is the default, or another one with the
/// choice that led to it.
async fn accelerator(
    service: &Service,
    job: &Job,
    request: &Request,
) -> Result<(Arc<Accelerator>, Option<Choice>), ApiError> {
    let named = service.accelerator(request.accelerator.as_deref())?;
    if !default_accelerator::leaves_it_open(request) || service.otherwise.is_empty() {
        return Ok((named, None));
    }
    let key = study_key(job, request, None, &named.name);
    let Some(state) = service.store.state_if_any(&key).await? else {
        return Ok((named, None));
    };
    let Some(choice) = service.choice(&state, job.nodes) else {
        return Ok((named, None));
    };
    let chosen = default_accelerator::outlook(&choice, &service.settings);
    let accelerator = match &chosen.instead {
        Some(instead) => service.accelerator(Some(instead))?,
        None => named,
    };
    Ok((accelerator, Some(choice)))
}

/// Waits for a turn. If that takes too long, decides without the lock from a snapshot at most a
/// second old, and explores nothing.
async fn started(
    service: &Service,
    new: &NewRun<'_>,
    occasion: &Occasion<'_>,
) -> Result<StartedRun, StoreError> {
    let admission = service.admissions.of(new.study);
    if let Some(_turn) = admission.turn().await {
        let decide = |state: &StudyState| decide(occasion, state);
        match service.store.start_run(new, LOCK_WAIT, decide).await {
            Err(StoreError::Busy { .. }) => {}
            other => return other,
        }
    }
    let fetch = || async {
        let state = service.store.state_of(new.study, new.space).await?;
        Ok::<_, StoreError>(Snapshot::new(state))
    };
    let mut snapshot = admission.snapshot(fetch()).await?;
    for _ in 0..STEERED_MEANWHILE {
        match unlocked(service, new, occasion, &snapshot).await {
            // It was steered by another replica, or while the snapshot was read.
            Err(StoreError::Outdated { .. }) => {
                admission.forget(&snapshot);
                snapshot = admission.snapshot(fetch()).await?;
            }
            other => return other,
        }
    }
    unlocked(service, new, occasion, &snapshot).await
}

/// Starts the run together with others that are decided from the snapshot.
async fn unlocked(
    service: &Service,
    new: &NewRun<'_>,
    occasion: &Occasion<'_>,
    snapshot: &Snapshot,
) -> Result<StartedRun, StoreError> {
    let busy = Occasion {
        busy: Some(&snapshot.recommended),
        ..*occasion
    };
    let Snapshot { state, starts, .. } = snapshot;
    for _ in 0..TOGETHER {
        let start = BusyStart::new(new, decide(&busy, state));
        let together = |all| service.store.start_together(new.study, state, all);
        match starts.join(start, together).await {
            Ok(Some(StartedTogether::Started(started))) => return Ok(started),
            Ok(Some(StartedTogether::HasRuns)) => break,
            Ok(Some(StartedTogether::Outdated)) => {
                return Err(StoreError::Outdated {
                    transaction: "start_together",
                });
            }
            // Whoever wrote for all has failed or gone away.
            Ok(None) => {}
            // What PostgreSQL refuses may be another's.
            Err(error) if error.is_refusal() => break,
            Err(error) => return Err(error),
        }
    }
    let decide = |state: &StudyState| decide(&busy, state);
    service.store.start_unlocked(new, state, decide).await
}

fn answer(started: StartedRun) -> Result<StartAnswer, ApiError> {
    Ok(StartAnswer {
        run_id: started.run_id,
        phase: match started.is_drawn {
            true => Phase::Settled,
            false => started.phase,
        },
        role: started.role,
        parametrization: started.parametrization,
        reason: started.reason,
        delivery: summary::stored(started.delivery)?,
        directives: started.directives.map(summary::stored).transpose()?,
    })
}

/// Stores which directives of a job's burst buffer were completed. The job's prologs, which Slurm
/// runs afterwards, get this with the start's answer.
#[utoipa::path(post, path = "/v1/runs/directives", request_body = DirectivesRequest, responses(
    (status = 200, body = DirectivesAnswer, description = "It is stored durably"),
    (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn directives(
    State(service): State<Arc<Service>>,
    Checked(Json(request)): Checked<Json<DirectivesRequest>>,
) -> Result<Json<DirectivesAnswer>, ApiError> {
    let DirectivesRequest {
        cluster,
        job_id,
        restart_count,
        run_id,
        directives,
    } = request;
    service.cluster(&cluster)?;
    let key = JobKey {
        cluster,
        job_id,
        restart_count,
    };
    let body = as_json(&directives)?;
    if !retried(|| service.store.record_directives(&key, run_id, &body)).await? {
        return Err(ApiError::not_found(&format!(
            "run {run_id} in flight of a job {job_id} that was not reported"
        )));
    }
    tracing::info!(run_id, job_id, restart_count, kept = ?directives.kept, "directives completed");
    Ok(Json(DirectivesAnswer { run_id }))
}

/// Stores a node's report of a job. It applies once, however often it arrives.
#[utoipa::path(post, path = "/v1/runs/finish", request_body = FinishRequest, responses(
    (status = 200, body = FinishAnswer, description = "It is stored durably"),
    (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn finish(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Extension(nonce): Extension<Nonce>,
    Checked(Json(mut finish)): Checked<Json<FinishRequest>>,
) -> Result<Json<FinishAnswer>, ApiError> {
    let cluster = service.cluster(&finish.job.cluster)?;
    is_there(cluster, caller, &finish.job.node)?;
    // The request is for a run without a start; and the report is stored, which must not have the
    // comment.
    let Resolved { request, full_name } = service.resolved(finish.job.uid, finish.request).await?;
    finish.request = request;
    let accelerator = finish.request.accelerator.as_deref();
    let (key, study) = (
        job_key(&finish.job),
        study_key(
            &finish.job,
            &finish.request,
            full_name,
            &service.accelerator_name(accelerator),
        ),
    );
    let no_start = format!(
        "the start had no answer{}; the job ran with the default",
        finish
            .start_failure
            .as_ref()
            .map(|why| format!(" ({why})"))
            .unwrap_or_default()
    );
    let reported = Finish {
        nonce: nonce.as_str(),
        job: &key,
        sluid: finish.job.sluid.as_ref(),
        run_id: finish.run_id,
        prolog_at: finish.prolog_at,
        node: &finish.job.node,
        nodes: finish.job.nodes,
        study: &study,
        request: as_json(&finish.request)?,
        space: None,
        delivery: serde_json::Value::Null,
        no_start: &no_start,
        report: as_json(&finish)?,
    };
    // Only a new run needs the space. A known one's accelerator may have left the catalogue.
    let accelerator = match service.accelerator(accelerator) {
        Ok(accelerator) => Some(accelerator),
        Err(_) if retried(|| service.store.has_run(&reported)).await? => None,
        Err(refusal) => return Err(refusal),
    };
    let reported = Finish {
        space: accelerator.as_ref().map(|accelerator| &accelerator.space),
        // The user's own directives are not known.
        delivery: as_json(&Delivery {
            watch: Vec::new(),
            ..accelerator
                .as_ref()
                .map(|accelerator| accelerator.render_nothing())
                .unwrap_or_default()
        })?,
        ..reported
    };
    let finished = retried(|| {
        service
            .store
            .finish_run(&reported, |report| merge_stored(report).into())
    })
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

/// The time for which a launch's outcome has to be known before the launch is over: the outcome may
/// precede the epilog.
const OVER_FOR: Duration = Duration::from_secs(60);

/// Answers which runs are over, so that a node can report the files of launches that had no epilog.
#[utoipa::path(post, path = "/v1/runs/over", request_body = OverRequest, responses(
    (status = 200, body = OverAnswer), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn over(
    State(service): State<Arc<Service>>,
    Checked(Json(OverRequest { runs })): Checked<Json<OverRequest>>,
) -> Result<Json<OverAnswer>, ApiError> {
    let over = retried(|| service.store.over(&runs, OVER_FOR)).await?;
    Ok(Json(OverAnswer { over }))
}

/// The runs that are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Only runs of this application.
    app: Option<String>,
    /// Only runs of this study.
    study: Option<i64>,
    /// Only runs of this accelerator.
    accelerator: Option<String>,
    /// Only runs of this user, by uid.
    uid: Option<u32>,
    /// Only runs of studies whose latest run was charged to this account.
    account: Option<String>,
    /// Only runs on this cluster.
    cluster: Option<String>,
    /// Only runs in this state.
    state: Option<RunState>,
    /// Only runs that do not count for this reason.
    not_counted_because: Option<NotCountedBecause>,
    /// Only runs that started at this time or later.
    since: Option<Timestamp>,
    /// Only runs that started before this time.
    until: Option<Timestamp>,
    /// Only runs before this one, the first of the page after.
    before: Option<i64>,
    /// The number of the newest runs (100 unless given, and at the most).
    limit: Option<u32>,
}

/// The newest page of the caller's runs and those of accounts that the caller coordinates, or of
/// every user's for an admin; oldest first.
#[utoipa::path(get, path = "/v1/runs", params(HistoryQuery), responses((status = 200, body = Vec<RunSummary>)))]
pub(super) async fn history(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Query(query)): Checked<Query<HistoryQuery>>,
) -> Result<Json<Vec<RunSummary>>, ApiError> {
    let of_few = query.app.is_some() || query.study.is_some();
    let Some(seen) = service.access.seen(reader).of(query.uid) else {
        return Ok(Json(Vec::new()));
    };
    let filter = RunFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        account: query.account,
        cluster: service.wanted_cluster(query.cluster)?,
        study_id: query.study,
        application: query.app,
        accelerator: query.accelerator.as_deref().map(canonical_name),
        job_id: None,
        state: query.state.map(|state| state.to_string()),
        not_counted_because: query.not_counted_because,
        since: query.since,
        until: query.until,
        before: query.before,
        in_full: false,
        limit: i64::from(query.limit.unwrap_or(RUNS_PAGE).min(RUNS_PAGE)),
    };
    let rows = service.store.runs(&filter).await?;
    Ok(Json(summary::runs(&service, rows, reader, of_few).await?))
}

/// The cluster of the job that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct JobQuery {
    /// The job's cluster, needed if several clusters have had a job of this id.
    cluster: Option<String>,
}

/// The launches of one job, with the inputs of their suggestions.
#[utoipa::path(get, path = "/v1/runs/{job_id}", params(("job_id" = u32, Path, description = "Slurm's job id"), JobQuery),
    responses((status = 200, body = Vec<RunDetail>), (status = 404, body = ErrorBody),
              (status = 409, body = ErrorBody, description = "Several clusters had a job of this id: name one")))]
pub(super) async fn explain(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(job_id)): Checked<Path<u32>>,
    Checked(Query(query)): Checked<Query<JobQuery>>,
) -> Result<Json<Vec<RunDetail>>, ApiError> {
    let runs = launches(&service, asker.reader, job_id, query).await?;
    let mut details = Vec::with_capacity(runs.len());
    for row in runs {
        let reports = service.store.reports(row.run_id).await?;
        let state = service.store.study_state(row.study_id).await?;
        let assessment = assess::of(&service.store, service.reckoning(), &state).await?;
        let then = then(&service, &row, asker.reader).await?;
        let decided_by = decided(&service, asker, &row).await?;
        let begun_from = begun_from(&service, &row, asker.reader).await?;
        let cleaned = summary::cleaned(&service, &state, &row, asker.reader);
        let detail = summary::detail(
            row,
            reports,
            assessment.findings,
            then,
            decided_by,
            begun_from,
            asker.reader,
        )?;
        let risks = risks(&service, &detail.run);
        details.push(RunDetail {
            cleaned,
            risks,
            ..detail
        });
    }
    if let Some(last) = details.last_mut() {
        let filter = StudyFilter {
            study_id: Some(last.run.study_id),
            ..StudyFilter::default()
        };
        if let Some(row) = service.store.studies(&filter).await?.pop() {
            let study = summary::in_brief(&service, asker, row).await?;
            last.study = Some(Box::new(study));
        }
    }
    Ok(Json(details))
}

/// The values of a run that are at risk by the present catalogue, as far as the reader learns what
/// it was given.
fn risks(service: &Service, run: &RunSummary) -> Vec<String> {
    let accelerator = service.accelerator(Some(&run.accelerator)).ok();
    let (Some(accelerator), Some(given)) = (accelerator, &run.parametrization) else {
        return Vec::new();
    };
    let taken = accelerator.risks.iter().filter(|risk| risk.is_taken(given));
    taken.map(ToString::to_string).collect()
}

/// The studies that are the sources of a run's prior, if they were stored and the reader may learn
/// them.
async fn begun_from(
    service: &Service,
    row: &RunRow,
    reader: Reader,
) -> Result<Option<BegunFrom>, ApiError> {
    let kept = Kept::read(&row.suggestion).ok();
    let kept = kept.filter(|kept| reader.learns_inputs(row) && !kept.sources.is_empty());
    let Some(kept) = kept else {
        return Ok(None);
    };
    let epochs: Vec<i64> = kept
        .sources
        .iter()
        .map(|source| source.epoch.epoch_id)
        .collect();
    let studies = service.store.studies_of_epochs(&epochs, reader.owner());
    let seen = studies.await?.into_iter();
    let seen = seen.map(|(id, application)| NamedStudy { id, application });
    Ok(Some(BegunFrom {
        studies: epochs.len() as u64,
        seen: seen.collect(),
    }))
}

/// The history that the decision on a run used, if it was stored and the reader may learn it.
async fn then(
    service: &Service,
    row: &RunRow,
    reader: Reader,
) -> Result<Option<History>, ApiError> {
    let kept = Kept::read(&row.suggestion);
    let Some(kept) = kept.ok().filter(|_| reader.learns_inputs(row)) else {
        return Ok(None);
    };
    let Some(epoch) = service.store.epoch_inputs(row.run_id).await? else {
        return Ok(None);
    };
    match Known::read(&service.store, &kept, &epoch).await {
        Err(StoreError::Removed { .. }) => Ok(None),
        known => Ok(Some(
            known?.heard(&epoch.space.default()).history.into_owned(),
        )),
    }
}

/// For each launch of a job, whether the stored inputs still lead to the parametrization that it
/// was given.
#[utoipa::path(get, path = "/v1/runs/{job_id}/replay", params(("job_id" = u32, Path, description = "Slurm's job id"), JobQuery),
    responses((status = 200, body = Vec<Replay>), (status = 404, body = ErrorBody),
              (status = 409, body = ErrorBody, description = "Several clusters had a job of this id: name one")))]
pub(super) async fn replay(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Path(job_id)): Checked<Path<u32>>,
    Checked(Query(query)): Checked<Query<JobQuery>>,
) -> Result<Json<Vec<Replay>>, ApiError> {
    let mut replays = Vec::new();
    for row in launches(&service, reader, job_id, query).await? {
        if !reader.learns_inputs(&row) {
            replays.push(replay::untold(&row));
            continue;
        }
        let kept = match Kept::read(&row.suggestion) {
            Ok(kept) => match service.store.epoch_inputs(row.run_id).await? {
                Some(epoch) => {
                    match Known::read(&service.store, &kept, &epoch).await {
                        // Retention is removing the epoch's other runs just now.
                        Err(StoreError::Removed { through, .. }) => {
                            Err(NothingToReplay::Removed(through.to_string()))
                        }
                        known => Ok((kept, epoch, known?)),
                    }
                }
                None => return Err(no_run(job_id, None)),
            },
            Err(nothing) => Err(nothing),
        };
        replays.push(replay::replay(&row, kept));
    }
    Ok(Json(replays))
}

/// `removed`: the latest start of a run that retention has removed, if it has any.
fn no_run(job_id: u32, removed: Option<Timestamp>) -> ApiError {
    let removed = removed.map_or_else(String::new, |through| {
        format!(" (old ones were removed by retention, none that started after {through})")
    });
    ApiError::not_found_in(
        &format!(
            "run of a job {job_id}, which begins when a job that was submitted with --io-autotune starts{removed},"
        ),
        "io-autotune history",
    )
}

/// A job's launches that the caller may see: at least one, and of one cluster.
async fn launches(
    service: &Service,
    reader: Reader,
    job_id: u32,
    query: JobQuery,
) -> Result<Vec<RunRow>, ApiError> {
    let seen = service.access.seen(reader);
    let filter = RunFilter {
        owner_uid: seen.owner_uid,
        coordinated: seen.coordinated,
        cluster: service.wanted_cluster(query.cluster)?,
        job_id: Some(job_id),
        limit: 100,
        in_full: true,
        ..RunFilter::default()
    };
    let runs = service.store.runs(&filter).await?;
    if runs.is_empty() {
        return Err(no_run(job_id, service.store.removed_through().await?));
    }
    let clusters: BTreeSet<&str> = runs.iter().map(|run| &*run.job.cluster).collect();
    if clusters.len() > 1 {
        return Err(ApiError::conflict(format!(
            "job {job_id} is one of each of the clusters {}: say which, by `--cluster NAME`",
            Vec::from_iter(clusters).join(", ")
        )));
    }
    Ok(runs)
}

static REFUSED: Seldom = Seldom::new();

/// Refuses root of a host that acts for another host's node, if origins are checked.
fn is_there(cluster: &Cluster, caller: Caller, node: &str) -> Result<(), ApiError> {
    match (&cluster.nodes, caller.origin) {
        (Some(nodes), Some(origin)) => nodes.check(node, origin).map_err(|not_there| {
            let message = format!("{not_there} ([access] check_origins in service.toml)");
            if let Some(more) = REFUSED.now() {
                tracing::warn!(%not_there, more, "root of another host is refused");
            }
            match not_there {
                // The report is kept by the node: Slurm may not have been asked yet.
                NotThere::Unknown(_) => ApiError::unavailable("unknown_node", &message),
                NotThere::Elsewhere { .. } => ApiError::forbidden(&message),
            }
        }),
        _ => Ok(()),
    }
}

fn job_key(job: &Job) -> JobKey {
    JobKey {
        cluster: job.cluster.clone(),
        job_id: job.job_id,
        restart_count: job.restart_count,
    }
}

/// The context has only what root reports and no user can forge.
fn study_key(
    job: &Job,
    request: &Request,
    full_name: Option<String>,
    accelerator: &str,
) -> StudyKey {
    StudyKey {
        cluster: job.cluster.clone(),
        owner_uid: job.uid,
        owner_name: job.user.clone(),
        application: request.application().to_owned(),
        full_name,
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use io_autotune_catalogue::{Rules, SHIPPED};
    use io_autotune_protocol::bounds::Bounded;
    use io_autotune_protocol::{OutcomesRequest, PinRequest, PreviewRequest, WhyRequest};

    use super::*;

    const JOB: &str = r#"{"cluster": "c", "job_id": 4711, "restart_count": 0, "sluid": "sBR1JB8J1YM400", "uid": 1000, "gid": 1000,
        "user": "alice", "node": "n1", "nodes": 1, "partition": "main", "cpus_per_node": "8"}"#;

    /// Attack (parsers): A request's body, query or text.
    #[test]
    fn fuzz_body() {
        let samples = [
            format!(r#"{{"job": {JOB}, "request": {{"app": "ocean", "mode": "tune"}}, "limit_seconds": 3600}}"#),
            format!(r#"{{"job": {JOB}, "request": {{"job_name": "nf-ALIGN_(1)", "comment": "rule_a"}}}}"#),
            format!(
                r#"{{"job": {JOB}, "request": {{"app": "ocean"}}, "run_id": 17, "start_failure": "none",
                "applied": {{"kind": "parametrization", "parametrization": {{"a": 2, "b": "x"}}}}, "steps": [
                {{"step_id": 0, "duration_ns": 1734000000, "wait_status": 0, "nodes": 1, "variables": {{"A": "set"}}}},
                {{"step_id": 1, "duration_ns": 9, "wait_status": 9, "nodes": 2, "variables": {{}}}}],
                "in_force": {{"vm.dirty_bytes": "1"}}, "measures": {{"bytes": 1.5}},
                "epilog": {{"exit_code": "0:0", "derived_exit_code": "0:0", "limit_seconds": 60}}}}"#
            ),
            r#"{"request": {"accelerator": "romio", "mode": "observe", "note": "meaningless_name"}}"#.to_owned(),
            r#"{"values": {"cb_nodes": "2"}, "why": "because"}"#.to_owned(),
            r#"{"cluster": "c", "outcomes": [{"job_id": 7, "state": "COMPLETED", "exit_code": "0:0",
                "started_at": "2026-11-21T12:33:14Z", "ended_at": "2026-11-21T12:34:14Z", "limit_seconds": 60,
                "account": "physics"}]}"#
                .to_owned(),
        ];
        io_autotune_fuzzing::Target::new("body", &samples)
            .rounds(8000)
            .run(body);
    }

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::parse(SHIPPED).unwrap());

    fn body(input: &[u8]) {
        let named = |error: ApiError| {
            let text = error.text().to_owned();
            assert!(
                text.contains(['=', ':', '"', '.'])
                    || text.contains("must")
                    || text.contains("step"),
                "{text}"
            );
        };
        if let Ok(start) = serde_json::from_slice::<StartRequest>(input) {
            match start.check().map_err(ApiError::from) {
                Ok(()) => {
                    let Resolved { request, full_name } = RULES.resolve(start.request);
                    let study = study_key(&start.job, &request, full_name, "romio");
                    assert!(
                        study
                            .application
                            .bytes()
                            .all(|byte| byte.is_ascii_graphic())
                    );
                }
                Err(error) => named(error),
            }
        }
        if let Ok(finish) = serde_json::from_slice::<FinishRequest>(input) {
            match finish.check().map_err(ApiError::from) {
                Ok(()) => {
                    let run = merge_stored(&as_json(&finish).unwrap());
                    assert!(
                        run.elapsed
                            .is_none_or(|elapsed| elapsed.is_finite() && elapsed > 0.0)
                    );
                    assert!(
                        run.measures
                            .values()
                            .all(|value| value.is_finite() && *value > 0.0)
                    );
                }
                Err(error) => named(error),
            }
        }
        if let Ok(outcomes) = serde_json::from_slice::<OutcomesRequest>(input) {
            for outcome in &outcomes.outcomes {
                if let Err(problem) = outcome.check() {
                    assert!(!problem.to_string().is_empty());
                }
            }
        }
        let _ = serde_json::from_slice::<PreviewRequest>(input);
        let _ = serde_json::from_slice::<DirectivesRequest>(input);
        let _ = serde_json::from_slice::<PinRequest>(input);
        let _ = serde_json::from_slice::<WhyRequest>(input);
        if let Err(error) = serde_json::from_slice::<StartRequest>(input) {
            assert!(error.to_string().contains("line"), "{error}");
        }
    }

    /// Attack (environment): A request or SLURM_JOB_SLUID has another launch's id, or a malformed
    /// one.
    /// Outcome: The launch has the id that Slurm gave it.
    #[test]
    fn slurm_s_id_of_a_launch_may_be_missing_and_is_nothing_else() {
        let read = |job: &str| serde_json::from_str::<Job>(job);
        assert!(read(JOB).unwrap().sluid.is_some());
        let older = JOB.replace(r#""sluid": "sBR1JB8J1YM400","#, "");
        assert_eq!(read(&older).unwrap().sluid, None);
        for forged in ["", "s", "sbr1jb8j1ym400", "4711", "sBR1JB8J1YM400'; --"] {
            let error = read(&JOB.replace("sBR1JB8J1YM400", forged)).unwrap_err();
            assert!(error.to_string().contains("is no SLUID"), "{error}");
        }
    }

    /// Attack (parsers): A request's body, query or text.
    #[test]
    fn fuzz_query() {
        let samples = [
            "app=ocean&study=17&limit=100",
            "limit=10000",
            "app=%00%1b%2e%2e%2f",
        ];
        io_autotune_fuzzing::Target::new("query", &samples).run(|input| {
            let Ok(uri) = format!("/v1/runs?{}", String::from_utf8_lossy(input)).parse() else {
                return;
            };
            if let Err(rejection) = Query::<HistoryQuery>::try_from_uri(&uri) {
                let error = ApiError::from(rejection);
                assert!(error.text().len() > 10, "{}", error.text());
            }
        });
    }
}
