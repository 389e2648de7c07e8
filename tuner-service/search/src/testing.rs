//! Spaces, histories and contexts for the tests of this crate and of those above it.

#![allow(clippy::unwrap_used)]

use io_autotune_model::reason::Suggestion;
use io_autotune_model::space::{Point, Space};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::history::by_point::View;
use crate::history::{History, Pending, Tally, Tested};
use crate::latin_hypercube::latin_hypercube;
use crate::math::Portable;
use crate::method::{Method, MethodContext};
use crate::regret::settings::RegretSettings;
use crate::surrogate::posterior::Modelled;

pub use io_autotune_model::testing::*;

/// Returns true in the nightly run, in which calibrations are complete.
pub fn is_complete() -> bool {
    std::env::var("IO_AUTOTUNE_CALIBRATION").is_ok_and(|value| value == "complete")
}

/// The number of studies that a calibration runs of `complete`: a tenth by day, all of them
/// nightly.
pub fn trials(complete: u32) -> u32 {
    if is_complete() {
        complete
    } else {
        complete.div_ceil(10)
    }
}

/// The tolerance to add for a share of `trials(complete)` studies instead of all: three standard
/// errors by day, nothing nightly.
pub fn slack(share: f64, complete: u32) -> f64 {
    if is_complete() {
        0.0
    } else {
        3.0 * (share * (1.0 - share) / f64::from(trials(complete))).sqrt()
    }
}

/// All of these cases nightly. By day every sixth, beginning with another one for each `number`.
pub fn some_of<T>(cases: impl IntoIterator<Item = T>, number: usize) -> impl Iterator<Item = T> {
    let cases: Vec<T> = cases.into_iter().collect();
    let step = if is_complete() {
        1
    } else {
        cases.len().clamp(1, 6)
    };
    cases.into_iter().skip(number % step).step_by(step)
}

/// A tested point with these times.
pub fn tested(space: &Space, point: &[u32], times: &[f64], ordinal: i64) -> Tested {
    let mut tested = Tested::new(space.parametrization(&Point(point.to_vec())), ordinal);
    for time in times {
        tested.record(ordinal, *time).unwrap();
    }
    tested
}

/// A history of these entries, with these numbers of exploring runs and of all runs.
pub fn history(tested: Vec<Tested>, explored: u64, total: u64) -> History {
    let tally = Tally {
        explored,
        total,
        ..Tally::default()
    };
    History { tested, tally }
}

/// A run in flight that was given this suggestion.
pub fn started(suggestion: &Suggestion) -> Pending {
    Pending {
        parametrization: suggestion.parametrization.clone(),
        phase: suggestion.phase,
        role: suggestion.role,
        count: 1,
    }
}

/// Ends a run: updates the tally, and the history by the outcome.
pub fn finish(history: &mut History, run: &Pending, outcome: Outcome) {
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

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The run counts, with this many seconds.
    Elapsed(f64),
    /// The time limit cut the run short after this many seconds.
    Censored(f64),
    /// The run failed.
    Failed,
    /// The run does not count.
    Ignored,
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).logarithm()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Calls a closure with a method's context at a site with the usual settings.
pub fn with_context<T>(
    space: &Space,
    history: &History,
    pending: &[Pending],
    method: &dyn Method,
    seed: u64,
    closure: impl FnOnce(&MethodContext<'_>) -> T,
) -> T {
    let design = design(space, method, seed);
    with_design(space, history, pending, &design, closure)
}

/// The method's design at a site with the usual settings.
pub fn design(space: &Space, method: &dyn Method, seed: u64) -> Vec<Point> {
    latin_hypercube(space, method.design_points(space, 15), seed)
}

/// [`with_context`] with a design that is known already.
pub fn with_design<T>(
    space: &Space,
    history: &History,
    pending: &[Pending],
    design: &[Point],
    closure: impl FnOnce(&MethodContext<'_>) -> T,
) -> T {
    let view = Modelled::new(View::new(space, history, pending), None);
    closure(&MethodContext {
        view: &view,
        design,
        known_elsewhere: 0,
        regret: &RegretSettings::default(),
        budget: 50,
        explored: history.tally.explored + view.exploring(),
        held: false,
        regret_left: f64::INFINITY,
    })
}

/// Points of a valley whose bottom is at level 5 of 7, relative to the default at level
/// 0; upside down if `height` is negative.
pub fn valley(space: &Space, height: f64, points: usize) -> History {
    let time =
        |level: u32| 100.0 * (height * 0.05 * (f64::from(level) - 5.0).powi(2)).exponential();
    let all = (0..7).flat_map(|one| [(one, 0), (one, 3)]).take(points);
    let tested = (1..).zip(all).map(|(ordinal, (level, other))| {
        let time = time(level) * (1.0 + 0.01 * f64::from(other));
        tested(space, &[level, other], &[time, 1.02 * time], ordinal)
    });
    history(tested.collect(), 20, 24)
}
