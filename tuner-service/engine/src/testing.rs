//! Spaces and histories for the tests.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::history::by_point::View;
use crate::history::{History, Pending, Tally, Tested};
use crate::search::latin_hypercube::latin_hypercube;
use crate::search::{self, MethodContext};
use crate::space::{Comparison, Condition, Constraint, Domain, Parameter, Point, Space, Value};
use crate::study::reason::Suggestion;
use crate::study::settings::{MethodName, Settings};

/// An integer parameter whose default is its smallest value.
pub(crate) fn integers(name: &str, min: i64, max: i64, step: i64) -> Parameter {
    Parameter {
        name: name.to_owned(),
        domain: Domain::Integer { min, max, step },
        default: Value::Integer(min),
        when: None,
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
        when: None,
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

/// Parameters that only exist under another's value, two deep, and constraints of both kinds.
pub(crate) fn storage() -> Space {
    let json = r#"{"parameters": [
        {"name": "nodes", "kind": "integer", "min": 1, "max": 8, "default": 4},
        {"name": "aggregators", "kind": "integer", "min": 1, "max": 8, "default": 2},
        {"name": "cache", "kind": "categories", "values": ["off", "on", "auto"], "default": "off"},
        {"name": "buffer", "kind": "ordered", "values": ["64K", "1M", "16M"], "default": "1M",
         "when": {"parameter": "cache", "is": ["on", "auto"]}},
        {"name": "flush", "kind": "integer", "min": 0, "max": 3, "default": 0,
         "when": {"parameter": "buffer", "is": ["16M"]}}],
        "constraints": [
        {"left": "aggregators", "op": "<=", "right": "nodes"},
        {"forbid": {"cache": ["auto"], "nodes": [7, 8]}},
        {"left": "flush", "op": "!=", "right": "aggregators"}]}"#;
    serde_json::from_str(json).unwrap()
}

/// A space of 20 parameters of 1000 levels with conditions, of whose grid the constraints leave less
/// than one point in a billion.
pub(crate) fn huge() -> Space {
    let mut parameters = grid(&[1000; 20]).parameters().to_vec();
    for place in 1..5 {
        parameters[place].when = Some(Condition {
            parameter: parameters[place - 1].name.clone(),
            is: (0..900).map(Value::Integer).collect(),
        });
    }
    let compare = |left: usize, op, right: usize| Constraint::Compare {
        left: parameters[left].name.clone(),
        op,
        right: Value::from(parameters[right].name.as_str()),
    };
    let mut constraints: Vec<Constraint> = (5..15)
        .map(|place| compare(place, Comparison::AtMost, place + 1))
        .collect();
    constraints.push(compare(17, Comparison::Equal, 18));
    constraints.push(compare(2, Comparison::AtLeast, 19));
    Space::constrained(parameters, constraints).unwrap()
}

/// Some space of 1 to 6 parameters, with conditions and constraints among them.
pub(crate) fn any_constrained(seed: u64) -> Space {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut parameters: Vec<Parameter> = Vec::new();
    for place in 0..rng.random_range(1..=6) {
        let name = format!("p{place:02}");
        let levels = rng.random_range(1..=6_u32);
        let mut parameter = if rng.random_bool(0.4) {
            categories(&name, levels)
        } else {
            integers(&name, 0, i64::from(levels) - 1, 1)
        };
        let any = |parameter: &Parameter, rng: &mut ChaCha8Rng| {
            let level = rng.random_range(0..parameter.levels());
            parameter.value_at(level).unwrap()
        };
        parameter.default = any(&parameter, &mut rng);
        if place > 0 && rng.random_bool(0.5) {
            let on = &parameters[rng.random_range(0..place)];
            let mut is: Vec<Value> = (0..2).map(|_| any(on, &mut rng)).collect();
            is.dedup();
            let parameter_name = on.name.clone();
            parameter.when = Some(Condition {
                parameter: parameter_name,
                is,
            });
        }
        parameters.push(parameter);
    }
    let mut space = Space::new(parameters.clone()).unwrap();
    let ops = [
        Comparison::AtMost,
        Comparison::Below,
        Comparison::AtLeast,
        Comparison::Above,
        Comparison::Equal,
        Comparison::Different,
    ];
    for _ in 0..rng.random_range(0..5) {
        let [one, other] = [(); 2].map(|()| &parameters[rng.random_range(0..parameters.len())]);
        let mut some = |parameter: &Parameter| {
            let level = rng.random_range(0..parameter.levels());
            parameter.value_at(level).unwrap()
        };
        let (a, b) = (some(one), some(other));
        let constraint = if rng.random_bool(0.3) {
            Constraint::Forbid {
                forbid: [(one.name.clone(), vec![a]), (other.name.clone(), vec![b])].into(),
            }
        } else {
            Constraint::Compare {
                left: one.name.clone(),
                op: ops[rng.random_range(0..ops.len())],
                right: if rng.random() {
                    Value::from(other.name.as_str())
                } else {
                    a
                },
            }
        };
        // One that the default breaks, or that compares words with numbers, is left out.
        let mut constraints = space.constraints().to_vec();
        constraints.push(constraint);
        if let Ok(constrained) = Space::constrained(parameters.clone(), constraints) {
            space = constrained;
        }
    }
    space
}

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
    let view = View::new(space, history, pending);
    closure(&MethodContext {
        view: &view,
        design,
        settings,
        explored: history.tally.explored + view.exploring(),
        held: false,
        room: f64::INFINITY,
    })
}
