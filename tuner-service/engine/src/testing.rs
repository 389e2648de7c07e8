//! The questions that tests ask an epoch.

use io_autotune_model::reason::{BestKnownBecause, NoHeadroom, Suggestion};
use io_autotune_model::space::Space;
use io_autotune_search::history::{History, Pending, Phase, Role};
use io_autotune_search::math::Portable;

use crate::settled::evidence::{Counts, JudgedRun};
use crate::study::epoch::Epoch;
use crate::study::recommend::Recommendation;
use crate::study::settings::{MethodName, Settings};
use crate::study::steering::{KnownLimit, Steering, ToldBy};

pub(crate) use io_autotune_search::testing::*;

pub(crate) fn published() -> Settings {
    Settings {
        method: MethodName::Robert2020,
        ..Settings::default()
    }
}

/// [`Epoch::suggest`].
pub(crate) fn suggest(
    space: &Space,
    history: &History,
    pending: &[Pending],
    settings: &Settings,
    seed: u64,
) -> Suggestion {
    Epoch::new(space, settings, seed).suggest(history, pending)
}

impl Epoch<'_> {
    /// [`Epoch::suggest`] for a job with this time limit in seconds, if it has one.
    pub(crate) fn suggest_within(
        &self,
        history: &History,
        pending: &[Pending],
        limit: Option<f64>,
    ) -> Suggestion {
        let limit = limit.map(|limit| KnownLimit {
            seconds: limit as u64,
            told_by: ToldBy::Start,
        });
        let steering = Steering {
            limit,
            ..Steering::default()
        };
        let situation = self.situation(history, pending, &steering);
        situation.decide().suggestion
    }
}

pub(crate) fn recommend(
    space: &Space,
    history: &History,
    settings: &Settings,
) -> Option<Recommendation> {
    Epoch::new(space, settings, 0).recommend(history)
}

pub(crate) fn best_known(
    space: &Space,
    history: &History,
    settings: &Settings,
    because: BestKnownBecause,
) -> Suggestion {
    Epoch::new(space, settings, 0).best_known(history, because)
}

pub(crate) fn lacks_headroom(
    space: &Space,
    history: &History,
    settings: &Settings,
    limit: f64,
) -> Option<NoHeadroom> {
    Epoch::new(space, settings, 0).lacks_headroom(history, limit)
}

/// A run that was drawn to be a control run with probability `chance`; `log` is the log of its
/// elapsed over 100 s.
pub(crate) fn drawn(
    ordinal: i64,
    phase: Phase,
    chance: f64,
    control: bool,
    log: f64,
) -> JudgedRun<'static> {
    let key = if control { "default" } else { "chosen" };
    JudgedRun {
        ordinal,
        started: ordinal * 3_600_000_000,
        slowness: 0.0,
        phase,
        role: if control {
            Role::Control
        } else {
            Role::Settled
        },
        control_chance: Some(chance),
        given: key,
        default: "default",
        counts: Some(Counts {
            key,
            elapsed: 100.0 * log.exponential(),
            beside: None,
            cut_short: false,
        }),
        nodes: 1,
    }
}
