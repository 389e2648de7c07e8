//! From the store's rows to what the API shows.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_engine::{
    Epoch, History, MeanInterval, MethodName, Parametrization, Phase, Reason, Role, Settings,
    Space, gain, mean_interval,
};
use io_autotune_protocol::{
    Elapsed, GainSummary, OpenedSummary, PinSummary, QuarantineSummary, RunState, RunSummary,
    StudySummary,
};
use io_autotune_store::{ComparedRun, RunRow, StudyFilter, StudyRow, StudyState};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{ApiError, Service};
use crate::decide::{is_observed, mixed, restricted};
use crate::ineffective;

/// Comparisons are made of the newest so many runs.
const COMPARED_RUNS: i64 = 5000;

/// The studies that a filter lets through, each with its standing.
pub(crate) async fn studies(
    service: &Service,
    filter: &StudyFilter,
) -> Result<Vec<StudySummary>, ApiError> {
    let rows = service.store.studies(filter).await?;
    let mut summaries = Vec::with_capacity(rows.len());
    for row in rows {
        summaries.push(study(service, row).await?);
    }
    Ok(summaries)
}

async fn study(service: &Service, row: StudyRow) -> Result<StudySummary, ApiError> {
    let state = service.store.study_state(row.study_id).await?;
    let runs = service
        .store
        .compared_runs(state.epoch_id, COMPARED_RUNS)
        .await?;
    let comparison = Comparison::of(&runs);
    let restricted = restricted(&state);
    let history = restricted.history();
    let surrogates = service.surrogates.of(state.epoch_id);
    let epoch =
        Epoch::restricted(&restricted, &service.settings, state.seed).with_cache(&surrogates);
    let phase = epoch.phase(history, &state.pending);
    let warnings = warnings(&state, history, &service.settings, phase);
    let recommendation = epoch.recommend(history);
    let recommended = recommendation
        .as_ref()
        .map(|best| best.parametrization.clone());
    let why = match &recommendation {
        None => "no parametrization has been run twice yet".to_owned(),
        Some(best) => {
            let default = match best.default_mean {
                Some(mean) => format!("; the default {mean:.3} s over {}", best.default_n),
                None => String::new(),
            };
            let first = match service.settings.method {
                MethodName::SurrogateGenetic => "expected to be the quickest",
                _ => "lowest mean",
            };
            format!(
                "{first} of {} parametrizations tested: {:.3} s over {} runs (standard error {:.3} s){default}",
                history.tested.len(),
                best.mean,
                best.n,
                best.standard_error
            )
        }
    };
    Ok(StudySummary {
        study_id: row.study_id,
        application: row.application,
        uid: row.owner_uid,
        user: row.owner_name,
        accelerator: row.accelerator,
        context: row.context,
        epoch: state.epoch,
        opened: OpenedSummary {
            at: state.opened.at,
            why: state.opened.why.clone(),
            takes: state.opened.takes.clone(),
            drift: state.opened.drift.clone(),
        },
        phase,
        counted: row.counted,
        not_counted: row.not_counted,
        in_flight: row.in_flight,
        explored: (state.history.tally.explored, epoch.settings().budget),
        default: comparison.default,
        control: comparison.control,
        tuned: comparison.tuned,
        gain: comparison.gain,
        differs: recommended
            .as_ref()
            .map(|best| differences(&state.space, best))
            .unwrap_or_default(),
        recommended,
        why,
        pin: row.pin.map(|pin| PinSummary {
            parametrization: pin.parametrization,
            uid: pin.uid,
            at: pin.at,
            why: pin.why,
        }),
        quarantined: epoch
            .quarantined(history)
            .into_iter()
            .map(|one| QuarantineSummary {
                differs: differences(&state.space, &one.parametrization),
                parametrization: one.parametrization,
                why: one.why.to_string(),
            })
            .collect(),
        warnings,
    })
}

/// What is wrong with a study as a whole.
fn warnings(
    state: &StudyState,
    history: &History,
    settings: &Settings,
    phase: Phase,
) -> Vec<String> {
    let mixed = mixed(&state.space, history, settings, state.accepts_mixed).map(|mixture| {
        if state.pin.is_none() && is_observed(&mixture, history, phase) {
            Reason::from(mixture).to_string()
        } else {
            mixture.to_string()
        }
    });
    let explores = state.pin.is_none() && matches!(phase, Phase::Design | Phase::Search);
    let short = explores
        .then(|| too_short(state, history, settings))
        .flatten();
    let ineffective = ineffective::sentences(&state.effects);
    mixed.into_iter().chain(short).chain(ineffective).collect()
}

/// That the study's jobs have no room to explore, and what to do.
#[expect(clippy::cast_precision_loss, reason = "no limit is that long")]
fn too_short(state: &StudyState, history: &History, settings: &Settings) -> Option<String> {
    let limit = state.limit_seconds? as f64;
    let lack = Epoch::new(&state.space, settings, state.seed).lacks_headroom(history, limit)?;
    let minutes = (lack.needed? / 60.0).ceil();
    Some(format!(
        "{lack}; jobs like the latest one get the best known parametrization: submit with --time={minutes} (minutes) \
         or more and the study goes on"
    ))
}

/// Runs as `history` shows them; those of few studies with what is quarantined now.
pub(crate) async fn runs(
    service: &Service,
    rows: Vec<RunRow>,
    of_few: bool,
) -> Result<Vec<RunSummary>, ApiError> {
    // Only where a run failed or was cut short something may be quarantined.
    let lost = rows
        .iter()
        .filter(|row| of_few && matches!(row.state.as_str(), "not_counted" | "censored"));
    let studies: BTreeSet<i64> = lost.map(|row| row.study_id).collect();
    let mut why = BTreeMap::new();
    for study_id in studies {
        let state = service.store.study_state(study_id).await?;
        let epoch = Epoch::new(&state.space, &service.settings, state.seed);
        for one in epoch.quarantined(restricted(&state).history()) {
            let key = (study_id, state.epoch, one.parametrization.key());
            why.insert(key, one.why.to_string());
        }
    }
    rows.into_iter()
        .map(|row| {
            let quarantined = why
                .get(&(row.study_id, row.epoch, row.parametrization.key()))
                .cloned();
            Ok(RunSummary {
                quarantined,
                ..run(row)?
            })
        })
        .collect()
}

/// Tuned runs against the control runs interleaved with them.
struct Comparison {
    default: Option<Elapsed>,
    control: Option<Elapsed>,
    tuned: Option<Elapsed>,
    gain: Option<GainSummary>,
}

impl Comparison {
    fn of(runs: &[ComparedRun]) -> Self {
        let seconds = |wanted: &dyn Fn(&ComparedRun) -> bool| -> Vec<f64> {
            runs.iter()
                .filter(|run| wanted(run))
                .map(|run| run.elapsed)
                .collect()
        };
        let default = seconds(&|run| run.role != Role::Settled);
        let control = seconds(&|run| run.role == Role::Control && run.phase == Phase::Settled);
        let tuned = seconds(&|run| run.role == Role::Settled);
        Self {
            default: elapsed(&default),
            control: elapsed(&control),
            tuned: elapsed(&tuned),
            gain: gain(&tuned, &control).map(|gain| GainSummary {
                gain: gain.gain,
                interval: (gain.low, gain.high),
                resolved: gain.low > 0.0 || gain.high < 0.0,
            }),
        }
    }
}

fn elapsed(seconds: &[f64]) -> Option<Elapsed> {
    match (mean_interval(seconds), seconds) {
        (Some(MeanInterval { n, mean, low, high }), _) => Some(Elapsed {
            n,
            mean,
            interval: Some((low, high)),
        }),
        (None, [only]) => Some(Elapsed {
            n: 1,
            mean: *only,
            interval: None,
        }),
        (None, _) => None,
    }
}

/// The values of a parametrization that are not the default's.
fn differences(space: &Space, parametrization: &Parametrization) -> Parametrization {
    let default = space.default();
    let differing = parametrization
        .0
        .iter()
        .filter(|(name, value)| default.0.get(*name) != Some(value));
    Parametrization(
        differing
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// A run, without what its study has come to since.
pub(crate) fn run(row: RunRow) -> Result<RunSummary, ApiError> {
    Ok(RunSummary {
        run_id: row.run_id,
        study_id: row.study_id,
        application: row.application,
        uid: row.uid,
        epoch: row.epoch,
        epoch_opened_at: row.epoch_opened_at,
        epoch_opened_why: row.epoch_opened_why,
        cluster: row.job.cluster,
        job_id: row.job.job_id,
        restart_count: row.job.restart_count,
        node: row.node,
        phase: row.phase,
        role: row.role,
        differs: differences(&row.space, &row.parametrization),
        parametrization: row.parametrization,
        reason: row.reason,
        state: match row.state.as_str() {
            "counted" => RunState::Counted,
            "censored" => RunState::Censored,
            "not_counted" => RunState::NotCounted,
            _ => RunState::InFlight,
        },
        verdict: row.verdict,
        outcome: row.outcome,
        applied: row.applied.map(stored).transpose()?,
        elapsed: row.elapsed,
        wait_status: row.wait_status,
        measures: row.measures,
        started_at: row.started_at,
        finished_at: row.finished_at,
        quarantined: None,
    })
}

/// Reads what an earlier request of ours stored as JSON.
pub(crate) fn stored<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| {
        tracing::error!(%error, "a stored value cannot be read");
        ApiError::unavailable(
            "internal",
            "a stored value cannot be read; the service's log says which",
        )
    })
}
