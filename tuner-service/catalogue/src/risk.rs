//! Values that change more than the time of a job: what it writes, or what others see of it.
//!
//! No run shows that by its time. So a study searches among them only if its user asked for it, by
//! the accelerator's name with [`AT_RISK`] after it.

use std::collections::BTreeMap;
use std::fmt;

use io_autotune_model::{Constraint, Domain, Parameter, Parametrization, Space, SpaceError, Value};
use serde::Deserialize;
use toml::Spanned;

use crate::fault::Faults;

/// What a user writes after an accelerator's name to have it with all its values.
pub(crate) const AT_RISK: &str = "@risk";

/// An entry of a file: some values of a parameter, and the reason why they are at risk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    parameter: Spanned<String>,
    values: Vec<Spanned<Value>>,
    why: String,
}

/// A value that changes more than the time of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    /// The parameter.
    pub parameter: String,
    /// The value.
    pub value: Value,
    /// What else it changes, for people.
    pub why: String,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parameter,
            value,
            why,
        } = self;
        write!(f, "{parameter}={value}: {why}")
    }
}

impl Risk {
    /// Returns true if a parametrization has this value.
    #[must_use]
    pub fn is_taken(&self, parametrization: &Parametrization) -> bool {
        parametrization.0.get(&self.parameter) == Some(&self.value)
    }
}

/// The risks of a file's entries. Each names a value of a parameter, and no default.
pub(crate) fn risks(
    entries: &[Entry],
    parameters: &[Spanned<Parameter>],
    faults: &mut Faults<'_>,
) -> Vec<Risk> {
    let mut risks = Vec::new();
    for entry in entries {
        let name = entry.parameter.get_ref();
        let Some(parameter) = parameters.iter().find(|one| one.get_ref().name == *name) else {
            let problem = format!("parameter = {name:?} is none of this file");
            faults.at(&entry.parameter.span(), problem);
            continue;
        };
        let parameter = parameter.get_ref();
        if matches!(parameter.domain, Domain::Integer { .. }) {
            let problem = format!(
                "{name} is an integer, and a range has no single values that could be left out: make it \"ordered\", with values"
            );
            faults.at(&entry.parameter.span(), problem);
            continue;
        }
        for value in &entry.values {
            let (place, value) = (value.span(), value.get_ref());
            if parameter.level_of(value).is_none() {
                let problem = format!("{value} is no value of {name}: {}", parameter.choices());
                faults.at(&place, problem);
            } else if parameter.default == *value {
                let problem = format!(
                    "{value} is the default of {name}, which every job has without the tuner: it cannot be left out"
                );
                faults.at(&place, problem);
            } else {
                risks.push(Risk {
                    parameter: name.clone(),
                    value: value.clone(),
                    why: entry.why.trim().to_owned(),
                });
            }
        }
    }
    risks
}

/// The space without these values, and without what exists only with them. A parameter that is left
/// with its default alone is no parameter any more.
pub(crate) fn space_without(space: &Space, risks: &[Risk]) -> Result<Space, SpaceError> {
    let is_left_out = |parameter: &str, value: &Value| {
        risks
            .iter()
            .any(|risk| risk.parameter == parameter && risk.value == *value)
    };
    let mut kept: Vec<Parameter> = Vec::new();
    // The values that those have which are no choice any more; none if they do not exist.
    let mut fixed: BTreeMap<String, Option<Value>> = BTreeMap::new();
    for parameter in space.parameters() {
        let mut parameter = parameter.clone();
        if let Some(condition) = &mut parameter.when {
            let on = &condition.parameter;
            condition.is.retain(|value| !is_left_out(on, value));
            let exists = match fixed.get(on) {
                Some(Some(value)) if condition.is.contains(value) => {
                    parameter.when = None;
                    true
                }
                Some(_) => false,
                None => !condition.is.is_empty(),
            };
            if !exists {
                fixed.insert(parameter.name, None);
                continue;
            }
        }
        if let Domain::Ordered { values } | Domain::Categories { values } = &mut parameter.domain {
            let before = values.len();
            values.retain(|value| !is_left_out(&parameter.name, value));
            if values.len() == 1 && before > 1 {
                fixed.insert(parameter.name, Some(parameter.default));
                continue;
            }
        }
        kept.push(parameter);
    }
    let constraints = space.constraints().iter();
    let constraints = constraints.filter_map(|one| still_forbidden(one, &is_left_out, &fixed));
    Space::constrained(kept, constraints.collect())
}

/// A constraint without what is left out; none if it can no longer be violated.
fn still_forbidden(
    constraint: &Constraint,
    is_left_out: &dyn Fn(&str, &Value) -> bool,
    fixed: &BTreeMap<String, Option<Value>>,
) -> Option<Constraint> {
    let Constraint::Forbid { forbid } = constraint else {
        return Some(constraint.clone());
    };
    let mut left = BTreeMap::new();
    for (name, values) in forbid {
        let mut values = values.clone();
        values.retain(|value| !is_left_out(name, value));
        match fixed.get(name) {
            Some(Some(value)) if values.contains(value) => {}
            Some(_) => return None,
            None if values.is_empty() => return None,
            None => {
                left.insert(name.clone(), values);
            }
        }
    }
    Some(Constraint::Forbid { forbid: left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Described {
        parameters: Vec<Parameter>,
        constraints: Vec<Constraint>,
    }

    fn space() -> Space {
        let described: Described = toml::from_str(
            r#"
            parameters = [
                { name = "mode", kind = "categories", values = ["plain", "joined"], default = "plain" },
                { name = "threads", kind = "ordered", values = [1, 2], default = 1, when = { parameter = "mode", is = ["joined"] } },
                { name = "buffer", kind = "ordered", values = [1, 2, 4], default = 1, when = { parameter = "mode", is = ["plain"] } },
                { name = "depth", kind = "ordered", values = [1, 2, 4], default = 1 },
            ]
            constraints = [
                { forbid = { buffer = [4], threads = [2] } },
                { forbid = { mode = ["plain"], depth = [4] } },
                { forbid = { buffer = [4], depth = [2, 4] } },
            ]
            "#,
        )
        .unwrap();
        Space::constrained(described.parameters, described.constraints).unwrap()
    }

    fn risk(parameter: &str, value: Value) -> Risk {
        Risk {
            parameter: parameter.into(),
            value,
            why: String::new(),
        }
    }

    #[test]
    fn what_exists_only_with_what_is_left_out_goes_along() {
        let risks = [
            risk("mode", Value::Text("joined".into())),
            risk("depth", Value::Integer(2)),
        ];
        let safe = space_without(&space(), &risks).unwrap();
        let names: Vec<&str> = safe
            .parameters()
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["buffer", "depth"]);
        assert_eq!(
            safe.parameters()[0].when,
            None,
            "the mode is plain for good"
        );
        let constraints: Vec<String> = safe.constraints().iter().map(ToString::to_string).collect();
        assert_eq!(constraints, ["not depth=4", "not buffer=4 with depth=4"]);
    }

    #[test]
    fn a_space_of_which_nothing_is_left_is_refused() {
        let risks = [
            risk("mode", Value::Text("joined".into())),
            risk("depth", Value::Integer(2)),
            risk("depth", Value::Integer(4)),
            risk("buffer", Value::Integer(2)),
            risk("buffer", Value::Integer(4)),
        ];
        assert!(space_without(&space(), &risks).is_err());
    }
}
