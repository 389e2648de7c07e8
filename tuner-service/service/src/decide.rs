//! What a run gets: the engine's suggestion, or what overrides it.

use io_autotune_catalogue::{Accelerator, Rendering};
use io_autotune_engine::{
    BestKnownBecause, ENGINE_VERSION, Reason, Role, Settings, Suggestion, best_known, suggest,
};
use io_autotune_protocol::{DeliveredFile, Delivery, Mode, Request};
use io_autotune_store::{Decision, StudyState};
use serde_json::json;

/// Jobs without any name share this application; they are never tuned.
const UNNAMED: &str = "unnamed";

/// The application that a request names.
pub(crate) fn application_name(request: &Request) -> &str {
    request.app.as_deref().unwrap_or(UNNAMED)
}

/// What is known of a start besides its study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) request: &'a Request,
    pub(crate) restart_count: u32,
    pub(crate) accelerator: &'a Accelerator,
    pub(crate) settings: &'a Settings,
}

/// Decides what a run gets, with the study's row locked.
pub(crate) fn decide(occasion: &Occasion<'_>, state: &StudyState) -> Decision {
    let suggested = || {
        suggest(
            &state.space,
            &state.history,
            &state.pending,
            occasion.settings,
            state.seed,
        )
    };
    let observed = occasion.request.mode == Mode::Observe
        || occasion.request.note.is_some()
        || occasion.request.app.is_none();
    let pin = state
        .pin
        .as_ref()
        .filter(|pin| state.space.validate(pin).is_ok());
    let suggestion = if observed {
        Suggestion {
            role: Role::Observe,
            parametrization: state.space.default(),
            reason: Reason::Observe,
            ..suggested()
        }
    } else if let Some(pin) = pin {
        Suggestion {
            role: Role::Pinned,
            parametrization: pin.clone(),
            reason: Reason::Pinned,
            ..suggested()
        }
    } else if occasion.restart_count > 0 {
        best_known(&state.space, &state.history, BestKnownBecause::Restarted)
    } else {
        suggested()
    };
    decision(occasion, state, suggestion)
}

/// Decides what a run gets when the study's row could not be locked in time: nothing is explored,
/// so nothing has to be serialised.
pub(crate) fn decide_busy(occasion: &Occasion<'_>, state: &StudyState) -> Decision {
    let suggestion = best_known(&state.space, &state.history, BestKnownBecause::Busy);
    let explores_or_applies = occasion.request.mode == Mode::Tune
        && occasion.request.note.is_none()
        && occasion.request.app.is_some()
        && state.pin.is_none();
    if explores_or_applies {
        decision(occasion, state, suggestion)
    } else {
        decide(occasion, state)
    }
}

fn decision(occasion: &Occasion<'_>, state: &StudyState, suggestion: Suggestion) -> Decision {
    let (suggestion, rendering) = match occasion.accelerator.render(&suggestion.parametrization) {
        Ok(rendering) if suggestion.role != Role::Observe => (suggestion, rendering),
        Ok(_) => (suggestion, occasion.accelerator.render_nothing()),
        // Only without the lock can the epoch still have a space that the catalogue has left.
        Err(_) => (
            Suggestion {
                parametrization: occasion.accelerator.space.default(),
                ..suggestion
            },
            occasion.accelerator.render_nothing(),
        ),
    };
    Decision {
        phase: suggestion.phase,
        role: suggestion.role,
        reason: suggestion.reason.to_string(),
        suggestion: json!({
            "reason": suggestion.reason,
            "engine_version": ENGINE_VERSION,
            "seed": state.seed.to_string(),
            "settings": occasion.settings,
            "last_judged_run": state.last_judged_run,
            "tally": state.history.tally,
            "pending": state.pending,
        }),
        delivery: json!(delivery(rendering)),
        parametrization: suggestion.parametrization,
    }
}

fn delivery(rendering: Rendering) -> Delivery {
    Delivery {
        files: rendering
            .files
            .into_iter()
            .map(|file| DeliveredFile {
                name: file.name,
                variable: file.variable,
                content: file.content,
            })
            .collect(),
        watch: rendering.watch,
    }
}
