//! Tells at submission what the service would do with a job.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use io_autotune_catalogue::Resolved;
use io_autotune_engine::{Chosen, Phase, Rule};
use io_autotune_model::text::seconds;
use io_autotune_model::{Finding, FindingKind, Objective};
use io_autotune_protocol::{
    ErrorBody, Mode, Note, PreviewAnswer, PreviewRequest, Request, RunState, StudySummary, called,
};
use io_autotune_store::{RunFilter, RunRow, StudyFilter, StudyRow};

use super::checked::Checked;
use super::deciding::Asker;
use super::summary;
use super::{ApiError, Service};
use crate::access::Caller;
use crate::default_accelerator;
use crate::reader::Reader;
use crate::slurm::hooks::MISSING;

/// The most studies that one line names.
const STUDIES_SHOWN: usize = 2;

/// The newest runs among which one with a verdict is looked for: few more than that are in flight.
const RUNS_LOOKED_AT: i64 = 10;

/// Says what the service would do with a job of the caller's. Asking fixes nothing.
#[utoipa::path(post, path = "/v1/preview", request_body = PreviewRequest, responses(
    (status = 200, body = PreviewAnswer),
    (status = 422, body = ErrorBody, description = "The request is wrong; the message has the valid choices")))]
pub(super) async fn preview(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Checked(Json(PreviewRequest { request })): Checked<Json<PreviewRequest>>,
) -> Result<Json<PreviewAnswer>, ApiError> {
    // The job's cluster is not known yet.
    if service
        .clusters
        .iter()
        .all(|cluster| cluster.hooks.are_missing())
    {
        return Ok(Json(PreviewAnswer {
            line: MISSING.to_owned(),
        }));
    }
    let Resolved { request, full_name } = service.resolved(caller.uid, request).await?;
    let accelerator = service.accelerator(request.accelerator.as_deref())?;
    let filter = StudyFilter {
        owner_uid: Some(caller.uid),
        application: Some(request.application().to_owned()),
        accelerator: Some(accelerator.name.clone()),
        ..StudyFilter::default()
    };
    let mut rows = service.store.studies(&filter).await?;
    let chosen = chosen(&service, &request, &rows).await?;
    let instead = chosen.as_ref().and_then(|chosen| chosen.instead.as_ref());
    if let Some(instead) = instead {
        let filter = StudyFilter {
            accelerator: Some(instead.clone()),
            ..filter
        };
        rows = service.store.studies(&filter).await?;
    }
    if rows.is_empty() && service.store.studies_of(caller.uid).await? >= service.most_studies {
        let line = too_many_studies(request.application(), service.most_studies);
        return Ok(Json(PreviewAnswer { line }));
    }
    let not_shown = rows.len().saturating_sub(STUDIES_SHOWN);
    let asker = Asker {
        reader: Reader::User(caller.uid),
        caller,
    };
    let mut studies = Vec::with_capacity(STUDIES_SHOWN);
    for row in rows.into_iter().take(STUDIES_SHOWN) {
        studies.push(summary::in_brief(&service, asker, row).await?);
    }
    // Nor is the cluster of the study that the job will belong to.
    for study in &mut studies {
        let cluster = study.cluster.clone();
        let cluster = cluster.map(|cluster| ("cluster".to_owned(), cluster));
        study.context.extend(cluster);
    }
    let accelerator = instead.unwrap_or(&accelerator.name);
    let last = match studies.as_slice() {
        [study] if not_shown == 0 => last(&service, study.study_id).await?,
        _ => None,
    };
    let mut line = line(
        &request,
        full_name.as_deref(),
        accelerator,
        &studies,
        not_shown,
        last.as_ref(),
    );
    if let Some(chosen) = chosen {
        line = format!("{line}; {chosen}");
    }
    Ok(Json(PreviewAnswer { line }))
}

/// A study's newest run that has a verdict, if it is among the newest.
async fn last(service: &Service, study_id: i64) -> Result<Option<RunRow>, ApiError> {
    let filter = RunFilter {
        study_id: Some(study_id),
        limit: RUNS_LOOKED_AT,
        ..RunFilter::default()
    };
    let runs = service.store.runs(&filter).await?.into_iter();
    Ok(runs.rev().find(|run| run.verdict.is_some()))
}

/// How a run did, beside the default. What it was drawn for is told nobody before its verdict.
fn did(run: &RunRow, study: &StudySummary) -> String {
    let job = format!("its last job, {},", run.job.job_id);
    let took = run.elapsed.map(seconds).unwrap_or_default();
    match run.state.parse() {
        Ok(RunState::Counted) if run.parametrization == run.space.default() => {
            format!("{job} took {took} with the default")
        }
        Ok(RunState::Counted) => match study.control.or(study.default) {
            Some(default) if study.objective.is_elapsed() => {
                format!(
                    "{job} took {took}, the default takes {}",
                    seconds(default.mean)
                )
            }
            _ => format!("{job} took {took}"),
        },
        Ok(RunState::Censored) => format!("{job} was cut short after {took}"),
        _ => {
            let why = run.verdict.as_deref().unwrap_or_default();
            format!("{job} does not count: {why}")
        }
    }
}

/// The accelerator of a job that names none, if all studies that are shown agree on it.
async fn chosen(
    service: &Service,
    request: &Request,
    rows: &[StudyRow],
) -> Result<Option<Chosen>, ApiError> {
    if !default_accelerator::leaves_it_open(request) || service.otherwise.is_empty() {
        return Ok(None);
    }
    let mut known: Option<Chosen> = None;
    for row in rows.iter().take(STUDIES_SHOWN) {
        let state = service.store.study_state(row.study_id).await?;
        let Some(chosen) = summary::chosen(service, row, &state) else {
            return Ok(None);
        };
        if known.is_some_and(|known| known.instead != chosen.instead) {
            return Ok(None);
        }
        known = Some(chosen);
    }
    Ok(known)
}

fn too_many_studies(application: &str, most: u32) -> String {
    format!(
        "application {application}: you have {most} studies, the most of a user, so this job runs with its defaults and is not recorded; give jobs that do the same one name: --io-autotune=app=NAME"
    )
}

fn line(
    request: &Request,
    full_name: Option<&str>,
    accelerator: &str,
    studies: &[StudySummary],
    not_shown: usize,
    last: Option<&RunRow>,
) -> String {
    let application = called(request.application(), full_name);
    if request.note == Some(Note::MeaninglessName) {
        let name = request.job_name.as_deref().unwrap_or(&application);
        return format!(
            "the job name {name:?} says nothing about the application, so this job is observed and not tuned; name it: --io-autotune=app=NAME"
        );
    }
    if request.mode == Mode::Observe {
        return format!(
            "application {application}, accelerator {accelerator}: observed, nothing is applied"
        );
    }
    if studies.is_empty() {
        return format!(
            "application {application}, accelerator {accelerator}: new; its first runs measure the default"
        );
    }
    let mut shown: Vec<String> = studies.iter().map(standing).collect();
    if not_shown > 0 {
        shown.push(format!("and {not_shown} more contexts"));
    }
    shown.extend(
        last.zip(studies.first())
            .map(|(run, study)| did(run, study)),
    );
    format!(
        "application {application}, accelerator {accelerator}: {}",
        shown.join("; ")
    )
}

fn standing(study: &StudySummary) -> String {
    let context = study
        .context
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>();
    let less = (study.gain.as_ref()).filter(|gain| gain.resolved && gain.gain > 0.0);
    let settled = study.phase == Phase::Settled && study.ordered.is_none();
    let standing = match (less.filter(|_| settled), found(study), &study.next) {
        (_, Some(found), _) => found.what.trim_end_matches('.').to_owned(),
        (Some(gain), ..) => {
            let less = study.objective.less(gain.gain);
            let what = match &study.objective {
                Objective::Elapsed => "time",
                other => other.words(),
            };
            format!(
                "{}, {:.1} % {} {what} than the default",
                study.phase,
                less.abs() * 100.0,
                if less >= 0.0 { "less" } else { "more" },
            )
        }
        (None, None, Some(next)) => next.says.clone(),
        (None, None, None) => format!("{}, {}", study.phase, study.progress()),
    };
    format!("{standing} ({})", context.join(" "))
}

/// The finding that says why the next run is not tuned.
fn found(study: &StudySummary) -> Option<&Finding> {
    let rule = study.next.as_ref()?.rule;
    let of_rule = |found: &&Finding| match found.kind {
        FindingKind::Mixed => rule == Rule::MixedWork,
        FindingKind::NothingToWin => matches!(rule, Rule::NothingToWin | Rule::Settled),
        FindingKind::Unreported => rule == Rule::Baseline,
        _ => false,
    };
    let findings = &study.assessment.as_ref()?.findings;
    findings.iter().find(of_rule)
}

#[cfg(test)]
mod tests {
    use io_autotune_catalogue::{Rules, SHIPPED};

    use super::*;

    #[test]
    fn the_line_has_the_application_that_the_rules_make_of_the_name() {
        let rules = Rules::parse(SHIPPED).unwrap();
        let said = |text: &str| {
            let Resolved { request, full_name } = rules.resolve(text.parse().unwrap());
            line(&request, full_name.as_deref(), "romio", &[], 0, None)
        };
        for (text, expected) in [
            (
                "name=nf-ALIGN_%281%29,mode=tune",
                "application nf-ALIGN, accelerator romio: new;",
            ),
            (
                "app=nf-ALIGN_1,mode=tune",
                "application nf-ALIGN_1, accelerator romio: new;",
            ),
            (
                "name=ocean,mode=observe",
                "application ocean, accelerator romio: observed",
            ),
            (
                "name=a%1B.sh,mode=tune",
                "application a_.sh~b395f515e7 (a?.sh), ",
            ),
            ("name=wrap,mode=tune", "the job name \"wrap\" says nothing"),
            (
                "name=%1B%5B2J,mode=tune",
                "the job name \"\\u{1b}[2J\" says nothing",
            ),
            ("mode=tune", "the job name \"unnamed\" says nothing"),
        ] {
            let line = said(text);
            assert!(line.starts_with(expected), "{line}");
        }
    }
}
