//! Spaces and histories for the tests.

#[path = "../../model/src/testing.rs"]
mod spaces;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::history::by_point::View;
use crate::history::{History, Pending, Tally, Tested};
use crate::reason::{BestKnownBecause, NoHeadroom, Suggestion};
use crate::search::latin_hypercube::latin_hypercube;
use crate::search::{self, MethodContext};
use crate::space::{Point, Space};
use crate::study::epoch::Epoch;
use crate::study::recommend::Recommendation;
use crate::study::settings::{MethodName, Settings};
use crate::surrogate::posterior::Modelled;

pub(crate) use spaces::*;

/// The usual settings, with the published method.
pub(crate) fn published() -> Settings {
    Settings {
        method: MethodName::Robert2020,
        ..Settings::default()
    }
}

/// A tested point with these times.
pub(crate) fn tested(space: &Space, point: &[u32], times: &[f64], ordinal: i64) -> Tested {
    let mut tested = Tested::new(space.parametrization(&Point(point.to_vec())), ordinal);
    for time in times {
        tested.record(ordinal, *time).unwrap();
    }
    tested
}

/// A history of these entries, after so many exploring runs and runs in all.
pub(crate) fn history(tested: Vec<Tested>, explored: u64, total: u64) -> History {
    let tally = Tally {
        explored,
        total,
        ..Tally::default()
    };
    History { tested, tally }
}

/// A run in flight that was given this suggestion.
pub(crate) fn started(suggestion: &Suggestion) -> Pending {
    Pending {
        parametrization: suggestion.parametrization.clone(),
        phase: suggestion.phase,
        role: suggestion.role,
        count: 1,
    }
}

/// Ends a run: the tally always, the history with what came of it.
pub(crate) fn finish(history: &mut History, run: &Pending, outcome: Outcome) {
    let ordinal = i64::try_from(history.tally.total).unwrap();
    history.tally += Tally::of(run.phase, run.role);
    if outcome == Outcome::Ignored {
        return;
    }
    let place = history
        .tested
        .iter()
        .position(|tested| tested.parametrization == run.parametrization)
        .unwrap_or_else(|| {
            let new = Tested::new(run.parametrization.clone(), ordinal);
            history.tested.push(new);
            history.tested.len() - 1
        });
    match outcome {
        Outcome::Elapsed(elapsed) => history.tested[place].record(ordinal, elapsed).unwrap(),
        Outcome::Censored(bound) => history.tested[place]
            .record_censored(ordinal, bound)
            .unwrap(),
        _ => history.tested[place].record_failure(ordinal),
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It counts, with so many seconds.
    Elapsed(f64),
    /// Its time limit cut it short after so many seconds.
    Censored(f64),
    /// It failed.
    Failed,
    /// It does not count.
    Ignored,
}

/// A standard normal number (Box and Muller 1958).
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Calls a closure with what a method is told.
pub(crate) fn with_context<T>(
    space: &Space,
    history: &History,
    pending: &[Pending],
    settings: &Settings,
    seed: u64,
    closure: impl FnOnce(&MethodContext<'_>) -> T,
) -> T {
    let design = design(space, settings, seed);
    with_design(space, history, pending, settings, &design, closure)
}

/// The design of the settings' method.
pub(crate) fn design(space: &Space, settings: &Settings, seed: u64) -> Vec<Point> {
    let points = search::named(settings.method).design_points(space, settings);
    latin_hypercube(space, points, seed)
}

/// [`with_context`] where the design is known already.
pub(crate) fn with_design<T>(
    space: &Space,
    history: &History,
    pending: &[Pending],
    settings: &Settings,
    design: &[Point],
    closure: impl FnOnce(&MethodContext<'_>) -> T,
) -> T {
    let view = Modelled::new(View::new(space, history, pending), None);
    closure(&MethodContext {
        view: &view,
        design,
        settings,
        explored: history.tally.explored + view.exploring(),
        held: false,
        regret_left: f64::INFINITY,
    })
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

/// [`Epoch::recommend`].
pub(crate) fn recommend(
    space: &Space,
    history: &History,
    settings: &Settings,
) -> Option<Recommendation> {
    Epoch::new(space, settings, 0).recommend(history)
}

/// [`Epoch::best_known`].
pub(crate) fn best_known(
    space: &Space,
    history: &History,
    settings: &Settings,
    because: BestKnownBecause,
) -> Suggestion {
    Epoch::new(space, settings, 0).best_known(history, because)
}

/// [`Epoch::lacks_headroom`].
pub(crate) fn lacks_headroom(
    space: &Space,
    history: &History,
    settings: &Settings,
    limit: f64,
) -> Option<NoHeadroom> {
    Epoch::new(space, settings, 0).lacks_headroom(history, limit)
}
