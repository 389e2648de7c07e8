//! Spaces and histories for the tests.

#[path = "../../model/src/testing.rs"]
mod spaces;

use crate::math::Portable;
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

pub(crate) fn published() -> Settings {
    Settings {
        method: MethodName::Robert2020,
        ..Settings::default()
    }
}

pub(crate) fn is_complete() -> bool {
    std::env::var("IO_AUTOTUNE_CALIBRATION").is_ok_and(|value| value == "complete")
}

/// The studies of a calibration: a tenth of `complete` by day, all nightly.
pub(crate) fn trials(complete: u32) -> u32 {
    if is_complete() {
        complete
    } else {
        complete.div_ceil(10)
    }
}

/// The tolerance of a share over `trials(complete)`: three standard errors by day, 0 nightly.
pub(crate) fn slack(share: f64, complete: u32) -> f64 {
    if is_complete() {
        0.0
    } else {
        3.0 * (share * (1.0 - share) / f64::from(trials(complete))).sqrt()
    }
}

/// All of these cases nightly; by day every sixth, starting at `number`.
pub(crate) fn some_of<T>(
    cases: impl IntoIterator<Item = T>,
    number: usize,
) -> impl Iterator<Item = T> {
    let cases: Vec<T> = cases.into_iter().collect();
    let step = if is_complete() {
        1
    } else {
        cases.len().clamp(1, 6)
    };
    cases.into_iter().skip(number % step).step_by(step)
}

pub(crate) fn tested(space: &Space, point: &[u32], times: &[f64], ordinal: i64) -> Tested {
    let mut tested = Tested::new(space.parametrization(&Point(point.to_vec())), ordinal);
    for time in times {
        tested.record(ordinal, *time).unwrap();
    }
    tested
}

/// A history of these entries, after `explored` exploring runs and `total` runs.
pub(crate) fn history(tested: Vec<Tested>, explored: u64, total: u64) -> History {
    let tally = Tally {
        explored,
        total,
        ..Tally::default()
    };
    History { tested, tally }
}

pub(crate) fn started(suggestion: &Suggestion) -> Pending {
    Pending {
        parametrization: suggestion.parametrization.clone(),
        phase: suggestion.phase,
        role: suggestion.role,
        count: 1,
    }
}

/// Ends a run in the tally, and in the history as `outcome` says.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    Elapsed(f64),
    Censored(f64),
    Failed,
    Ignored,
}

/// A standard normal number (Box and Muller 1958).
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).logarithm()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

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

pub(crate) fn design(space: &Space, settings: &Settings, seed: u64) -> Vec<Point> {
    let points = search::named(settings.method).design_points(space, settings);
    latin_hypercube(space, points, seed)
}

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
