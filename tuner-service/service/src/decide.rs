//! What a run gets: the engine's suggestion, or what overrides it.

use io_autotune_catalogue::Accelerator;
use io_autotune_engine::{
    BestKnownBecause, ENGINE_VERSION, Reason, Role, Settings, Suggestion, best_known, suggest,
};
use io_autotune_protocol::{Mode, Request};
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
    /// The study's row could not be locked in time: nothing may be explored, because that has to
    /// be serialised.
    pub(crate) busy: bool,
}

impl Occasion<'_> {
    /// Whether the run is only measured.
    fn is_observed(&self) -> bool {
        self.request.mode == Mode::Observe
            || self.request.note.is_some()
            || self.request.app.is_none()
    }

    /// Why this run explores nothing, if it does not.
    fn bar_to_exploring(&self) -> Option<BestKnownBecause> {
        if self.restart_count > 0 {
            Some(BestKnownBecause::Restarted)
        } else if self.busy {
            Some(BestKnownBecause::Busy)
        } else {
            None
        }
    }
}

/// Decides what a run gets.
pub(crate) fn decide(occasion: &Occasion<'_>, state: &StudyState) -> Decision {
    let suggested = match occasion.bar_to_exploring() {
        Some(because) => best_known(&state.space, &state.history, because),
        None => suggest(
            &state.space,
            &state.history,
            &state.pending,
            occasion.settings,
            state.seed,
        ),
    };
    let pin = state
        .pin
        .as_ref()
        .filter(|pin| state.space.validate(pin).is_ok());
    let suggestion = if occasion.is_observed() {
        Suggestion {
            role: Role::Observe,
            parametrization: state.space.default(),
            reason: Reason::Observe,
            ..suggested
        }
    } else if let Some(pin) = pin {
        Suggestion {
            role: Role::Pinned,
            parametrization: pin.clone(),
            reason: Reason::Pinned,
            ..suggested
        }
    } else {
        suggested
    };
    decision(occasion, state, suggestion)
}

fn decision(occasion: &Occasion<'_>, state: &StudyState, suggestion: Suggestion) -> Decision {
    let (suggestion, delivery) = match occasion.accelerator.render(&suggestion.parametrization) {
        Ok(delivery) if suggestion.role != Role::Observe => (suggestion, delivery),
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
            "epoch": state.epoch,
            "judged": state.judged,
            "tally": state.history.tally,
            "pending": state.pending,
        }),
        delivery: json!(delivery),
        parametrization: suggestion.parametrization,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_engine::{History, Parametrization, Value};
    use io_autotune_protocol::Delivery;

    use super::*;

    fn accelerator() -> Accelerator {
        Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4, 8]
            default = 2
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            omit_default = true
            parameters = ["size"]
            "#,
        )
        .unwrap()
    }

    fn point(size: i64) -> Parametrization {
        Parametrization(BTreeMap::from([("size".to_owned(), Value::Integer(size))]))
    }

    /// A study whose next run would be a design point.
    fn state(pin: Option<Parametrization>) -> StudyState {
        let mut history = History::default();
        let mut default = io_autotune_engine::Tested::new(point(2), 1);
        for ordinal in 1..=4 {
            default.record(ordinal, 1.0).unwrap();
        }
        history.tested.push(default);
        history.tally.baseline = 4;
        history.tally.total = 4;
        StudyState {
            study_id: 1,
            epoch_id: 1,
            epoch: 1,
            seed: 7,
            space: accelerator().space,
            judged: 4,
            history,
            pending: Vec::new(),
            pin,
            accepts_mixed: false,
        }
    }

    fn decided(request: &str, restart_count: u32, busy: bool, state: &StudyState) -> Decision {
        let request = request.parse().unwrap();
        let (accelerator, settings) = (accelerator(), Settings::default());
        let occasion = Occasion {
            request: &request,
            restart_count,
            accelerator: &accelerator,
            settings: &settings,
            busy,
        };
        decide(&occasion, state)
    }

    #[test]
    fn a_plain_run_explores_and_is_given_a_file() {
        let decision = decided("app=ocean", 0, false, &state(None));
        assert_eq!(decision.role, Role::Design);
        let delivery: Delivery = serde_json::from_value(decision.delivery).unwrap();
        assert_eq!(delivery.files.len(), 1);
    }

    #[test]
    fn a_restarted_job_or_a_busy_study_never_explores() {
        assert_eq!(
            decided("app=ocean", 1, false, &state(None)).role,
            Role::BestKnown
        );
        assert_eq!(
            decided("app=ocean", 0, true, &state(None)).role,
            Role::BestKnown
        );
    }

    #[test]
    fn an_observed_run_is_given_nothing_whatever_is_pinned_and_is_still_watched() {
        for request in [
            "app=ocean,mode=observe",
            "app=wrap,note=meaningless_name",
            "mode=tune",
        ] {
            let decision = decided(request, 0, false, &state(Some(point(8))));
            assert_eq!(decision.role, Role::Observe, "{request}");
            assert_eq!(decision.parametrization, point(2));
            let delivery: Delivery = serde_json::from_value(decision.delivery).unwrap();
            assert!(delivery.files.is_empty());
            assert_eq!(delivery.watch, ["HINTS"]);
        }
    }

    #[test]
    fn a_pinned_run_gets_the_pin_unless_the_space_has_left_it() {
        let decision = decided("app=ocean", 1, false, &state(Some(point(8))));
        assert_eq!(
            (decision.role, decision.parametrization),
            (Role::Pinned, point(8))
        );
        assert_ne!(
            decided("app=ocean", 0, false, &state(Some(point(3)))).role,
            Role::Pinned
        );
    }
}
