//! Spaces for the tests of this crate and of its dependents.

#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::space::{Comparison, Condition, Constraint, Domain, Parameter, Space, Value};

/// An integer parameter whose default is its smallest value.
pub fn integers(name: &str, min: i64, max: i64, step: i64) -> Parameter {
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
pub fn categories(name: &str, count: u32) -> Parameter {
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

/// A space of integer parameters `p00`, `p01`, ... with these numbers of levels.
pub fn grid(levels: &[u32]) -> Space {
    let parameters = levels
        .iter()
        .enumerate()
        .map(|(index, levels)| integers(&format!("p{index:02}"), 0, i64::from(*levels) - 1, 1))
        .collect();
    Space::new(parameters).unwrap()
}

/// Parameters that only exist under another's value, two deep, and constraints of both kinds.
pub fn storage() -> Space {
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

/// A space of 20 conditional parameters of 1000 levels each; its constraints leave less than one
/// point in a billion of the grid.
pub fn huge() -> Space {
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

/// A random space of 1 to 6 parameters, with conditions and constraints among them.
pub fn any_constrained(seed: u64) -> Space {
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
        // Constraints that the default breaks, or that compare words with numbers, are left out.
        let mut constraints = space.constraints().to_vec();
        constraints.push(constraint);
        if let Ok(constrained) = Space::constrained(parameters.clone(), constraints) {
            space = constrained;
        }
    }
    space
}
