//! Warm starts: a study begins with what another study of its accelerator has learnt.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use io_autotune_engine::{Epoch, Parametrization, Settings, Space, carried_parametrization};
use io_autotune_model::Objective;
use io_autotune_protocol::{ErrorBody, StudySummary, WarmStartAnswer, WarmStartRequest};
use io_autotune_store::{StudyState, WarmStart};

use super::checked::Checked;
use super::deciding::Asker;
use super::studies::{Steering, one_row, renew};
use super::{ApiError, Service, summary};
use crate::decide::restricted;

/// Opens an epoch of a study that begins with the parametrizations that another study of its
/// accelerator ranks best. That study's times are not taken over, as they are another
/// application's.
#[utoipa::path(post, path = "/v1/studies/{study_id}/warm-start", request_body = WarmStartRequest,
    params(("study_id" = i64, Path, description = "The study")),
    responses((status = 200, body = WarmStartAnswer), (status = 404, body = ErrorBody),
              (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn begin(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Json(body)): Checked<Json<WarmStartRequest>>,
) -> Result<Json<WarmStartAnswer>, ApiError> {
    let Steering { study, audit, .. } = Steering::of(&service, asker, study_id, &body.why).await?;
    let other = one_row(&service, asker.reader, body.from).await?;
    if body.from == study_id {
        return Err(ApiError::bad_request(format!(
            "study {study_id} cannot begin with what it has learnt itself: name another study"
        )));
    }
    if other.accelerator != study.accelerator {
        return Err(ApiError::bad_request(format!(
            "study {study_id} is of accelerator {} and study {} of {}: they have no parameter in common",
            study.accelerator, body.from, other.accelerator
        )));
    }
    let source = service.store.study_state(body.from).await?;
    let inherit = |target: &StudyState| inherited(&source, target, &service.settings);
    let (opened, inherited, space) = if body.dry_run {
        let target = service.store.study_state(study_id).await?;
        (None, inherit(&target)?, target.space)
    } else {
        let from = WarmStart {
            study_id: body.from,
            application: &other.application,
            epoch: source.epoch,
        };
        let begun = service
            .store
            .warm_start(study_id, &from, inherit, audit)
            .await?;
        let opened = begun?;
        tracing::info!(
            study_id,
            uid = asker.caller.uid,
            from = body.from,
            opened.epoch,
            "study warm-started"
        );
        renew(&service, study_id, &study).await;
        let state = service.store.study_state(study_id).await?;
        (Some(opened), state.inherited, state.space)
    };
    let row = one_row(&service, asker.reader, study_id).await?;
    Ok(Json(WarmStartAnswer {
        study: StudySummary {
            line: opened.map(|opened| opened.line),
            ..summary::study(&service, asker, row).await?
        },
        from: body.from,
        from_application: other.application,
        inherited: inherited.iter().map(|one| space.differences(one)).collect(),
        epoch: opened.map(|opened| opened.epoch),
    }))
}

/// Why a study cannot begin with another's ranks.
#[derive(Debug, PartialEq, thiserror::Error)]
enum NoWarmStart {
    #[error("study {0} is {1}: its runs would not get what they begin with; end that first")]
    Held(i64, &'static str),
    #[error(
        "study {0} has learnt nothing yet: no run of another parametrization than the default counted in its current epoch"
    )]
    NothingLearnt(i64),
    #[error(
        "study {study} makes {objective} small or large, and study {from} {other}: what one ranks says nothing of the other"
    )]
    OtherObjective {
        study: i64,
        from: i64,
        objective: Objective,
        other: Objective,
    },
    #[error("nothing that study {from} ranks fits the parameters of study {study}")]
    NothingFits { study: i64, from: i64 },
}

impl From<NoWarmStart> for ApiError {
    fn from(why: NoWarmStart) -> Self {
        match why {
            NoWarmStart::Held(..) => Self::conflict(why.to_string()),
            _ => Self::bad_request(why.to_string()),
        }
    }
}

/// The parametrizations that `source` ranks and `target` may begin with, the best first. Returns an
/// error if there is a reason against a warm start.
fn inherited(
    source: &StudyState,
    target: &StudyState,
    settings: &Settings,
) -> Result<Vec<Parametrization>, NoWarmStart> {
    let (study, from) = (target.study_id, source.study_id);
    if let Some(held) = target.ordered.word(target.pin.is_some()) {
        let held = match held {
            "off" => "turned off",
            other => other,
        };
        return Err(NoWarmStart::Held(study, held));
    }
    if source.objective != target.objective {
        return Err(NoWarmStart::OtherObjective {
            study,
            from,
            objective: target.objective.clone(),
            other: source.objective.clone(),
        });
    }
    let known = restricted(source);
    let ranks = Epoch::restricted(&known, settings, source.seed).learnt(known.history());
    if ranks.is_empty() {
        return Err(NoWarmStart::NothingLearnt(from));
    }
    let fitting = fitting(&ranks, &source.space, &target.space);
    let default = target.space.default();
    if fitting.iter().all(|one| *one == default) {
        return Err(NoWarmStart::NothingFits { study, from });
    }
    Ok(fitting)
}

/// The parametrizations carried into the other space, without those that it does not offer, each
/// once.
fn fitting(ranks: &[Parametrization], from: &Space, to: &Space) -> Vec<Parametrization> {
    let mut fitting = Vec::new();
    for one in ranks {
        match carried_parametrization(one, from, to) {
            Some(one) if !fitting.contains(&one) => fitting.push(one),
            _ => {}
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_engine::{History, Outlook, ParameterEffects, Tested};
    use io_autotune_store::{EpochOpening, Ordered};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn space(parameters: &[(&str, i64)]) -> Space {
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, max)| {
                json!({ "name": name, "kind": "integer", "min": 1, "max": max, "default": 1 })
            })
            .collect();
        serde_json::from_value(json!(parameters)).unwrap()
    }

    fn at(values: &[(&str, i64)]) -> Parametrization {
        let values = values.iter();
        Parametrization(
            values
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect::<BTreeMap<_, _>>(),
        )
    }

    /// A study whose runs each counted, with their seconds.
    fn study(study_id: i64, space: Space, runs: &[(Parametrization, f64)]) -> StudyState {
        let mut history = History::default();
        let mut ordinal = 0;
        for (parametrization, seconds) in runs {
            let mut tested = Tested::new(parametrization.clone(), ordinal + 1);
            for _ in 0..4 {
                ordinal += 1;
                tested.record(ordinal, *seconds).unwrap();
            }
            history.tested.push(tested);
        }
        history.tally.total = u64::try_from(ordinal).unwrap();
        StudyState {
            study_id,
            epoch_id: study_id,
            epoch: 1,
            seed: 7,
            space: space.into(),
            objective: Objective::Elapsed,
            opened: EpochOpening {
                at: Timestamp::UNIX_EPOCH,
                why: "first run".to_owned(),
                takes: "nothing".to_owned(),
                drift: None,
            },
            inherited: Vec::new(),
            judged: ordinal,
            history: history.into(),
            effects: ParameterEffects::default().into(),
            pending: Vec::new(),
            limit_seconds: None,
            pin: None,
            ordered: Ordered::default(),
            accepts_mixed: false,
            outlook: Outlook::Open,
            share: None,
            siblings: Vec::new(),
            sources: Vec::new(),
            spent: Vec::new(),
        }
    }

    fn two() -> Space {
        space(&[("nodes", 8), ("size", 8)])
    }

    fn source() -> StudyState {
        let (default, good) = (
            at(&[("nodes", 1), ("size", 1)]),
            at(&[("nodes", 8), ("size", 1)]),
        );
        let better = at(&[("nodes", 2), ("size", 4)]);
        study(3, two(), &[(default, 100.0), (good, 70.0), (better, 50.0)])
    }

    #[test]
    fn a_study_begins_with_what_another_ranks_and_its_own_space_offers() {
        let settings = Settings::default();
        let begin = |space| inherited(&source(), &study(12, space, &[]), &settings);
        assert_eq!(
            begin(two()).unwrap(),
            [
                at(&[("nodes", 2), ("size", 4)]),
                at(&[("nodes", 8), ("size", 1)]),
                at(&[("nodes", 1), ("size", 1)]),
            ]
        );
        // Fewer values, and a parameter fewer: what used it is left out; a parameter more has its default.
        assert_eq!(
            begin(space(&[("nodes", 4), ("size", 8)])).unwrap()[..1],
            [at(&[("nodes", 2), ("size", 4)])]
        );
        assert_eq!(
            begin(space(&[("nodes", 8), ("more", 3)])).unwrap()[0],
            at(&[("more", 1), ("nodes", 8)])
        );
        assert_eq!(
            begin(space(&[("other", 4)])),
            Err(NoWarmStart::NothingFits { study: 12, from: 3 })
        );
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let settings = Settings::default();
        let default = at(&[("nodes", 1), ("size", 1)]);
        let only_default = study(3, two(), &[(default.clone(), 100.0)]);
        let target = study(12, two(), &[]);
        assert_eq!(
            inherited(&only_default, &target, &settings),
            Err(NoWarmStart::NothingLearnt(3))
        );
        let by_marks = StudyState {
            objective: Objective::named("marked", false).unwrap(),
            ..study(12, two(), &[])
        };
        let refused = inherited(&source(), &by_marks, &settings).unwrap_err();
        assert!(matches!(refused, NoWarmStart::OtherObjective { .. }));
        let pinned = StudyState {
            pin: Some(default),
            ..study(12, two(), &[])
        };
        let ordered = |off, frozen| {
            let mut held = study(12, two(), &[]);
            (held.ordered.off, held.ordered.frozen) = (off, frozen);
            held
        };
        for (target, word) in [
            (pinned, "pinned"),
            (ordered(true, false), "turned off"),
            (ordered(false, true), "frozen"),
        ] {
            let refused = inherited(&source(), &target, &settings).unwrap_err();
            assert!(refused.to_string().contains(word), "{refused}");
            assert_eq!(
                ApiError::from(refused).status(),
                axum::http::StatusCode::CONFLICT
            );
        }
    }
}
