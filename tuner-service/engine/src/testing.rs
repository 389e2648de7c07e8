//! What tests ask an epoch.

use io_autotune_model::reason::{BestKnownBecause, NoHeadroom, Suggestion};
use io_autotune_model::space::Space;
use io_autotune_search::history::{History, Pending};

use crate::study::epoch::Epoch;
use crate::study::recommend::Recommendation;
use crate::study::settings::{MethodName, Settings};

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
