//! Spaces and histories for the tests.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::design::latin_hypercube;
use crate::history::{History, Pending, Phase, Role, Tally, Tested};
use crate::methods::MethodContext;
use crate::reason::Suggestion;
use crate::settings::Settings;
use crate::space::{Domain, Parameter, Point, Space, Value};
use crate::view::View;

/// An integer parameter whose default is its smallest value.
pub(crate) fn integers(name: &str, min: i64, max: i64, step: i64) -> Parameter {
    Parameter {
        name: name.to_owned(),
        domain: Domain::Integer { min, max, step },
        default: Value::Integer(min),
        unit: None,
        description: None,
    }
}

/// A parameter of `count` categories, `c0` being the default.
pub(crate) fn categories(name: &str, count: u32) -> Parameter {
    let values: Vec<Value> = (0..count).map(|n| Value::from(format!("c{n}"))).collect();
    Parameter {
        name: name.to_owned(),
        default: values[0].clone(),
        domain: Domain::Categories { values },
        unit: None,
        description: None,
    }
}

/// Integer parameters `p00`, `p01`, ... of so many levels each.
pub(crate) fn grid(levels: &[u32]) -> Space {
    let parameters = levels
        .iter()
        .enumerate()
        .map(|(index, levels)| integers(&format!("p{index:02}"), 0, i64::from(*levels) - 1, 1))
        .collect();
    Space::new(parameters).unwrap()
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
    let tally = &mut history.tally;
    let ordinal = i64::try_from(tally.total).unwrap();
    tally.total += 1;
    match (run.role, run.phase) {
        (Role::Baseline, _) => tally.baseline += 1,
        (Role::Design | Role::Search, _) => tally.explored += 1,
        (Role::Control, Phase::Settled) => tally.settled_controls += 1,
        (Role::Control, _) => tally.controls += 1,
        (Role::Settled, _) => tally.settled += 1,
        _ => {}
    }
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
    let view = View::new(space, history, pending);
    let design = latin_hypercube(space, settings.design_points, seed);
    closure(&MethodContext {
        view: &view,
        design: &design,
        settings,
    })
}
