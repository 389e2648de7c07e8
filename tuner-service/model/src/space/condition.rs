//! A parameter that only exists under another's value.

use serde::{Deserialize, Serialize};

use super::{Parameter, SpaceError, Value};

/// When a parameter exists: `when = { parameter = "cache", is = ["on"] }`.
///
/// The parameter named is listed before the one that has the condition, so that there are chains and
/// no cycles. Where it does not exist itself, neither does what depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The name of the parameter it depends on.
    pub parameter: String,
    /// The values of that parameter under which this one exists, at least one.
    pub is: Vec<Value>,
}

impl Condition {
    /// The condition in words: `cache is on`.
    pub fn words(&self) -> String {
        let values: Vec<String> = self.is.iter().map(Value::to_string).collect();
        format!("{} is {}", self.parameter, values.join(" or "))
    }
}

/// A condition by levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    /// The place of the parameter it depends on.
    pub(super) parameter: usize,
    /// That parameter's levels under which this one exists, ascending.
    levels: Vec<u32>,
}

impl Gate {
    /// The condition of `parameter`, which the parameters of `earlier` are listed before.
    pub(super) fn new(
        parameter: &Parameter,
        condition: &Condition,
        earlier: &[Parameter],
    ) -> Result<Self, SpaceError> {
        let place = earlier
            .iter()
            .position(|known| known.name == condition.parameter)
            .ok_or_else(|| SpaceError::ConditionParameter {
                name: parameter.name.clone(),
                on: condition.parameter.clone(),
                earlier: match earlier {
                    [] => "none".to_owned(),
                    _ => super::names(earlier),
                },
            })?;
        if condition.is.is_empty() {
            return Err(SpaceError::ConditionEmpty {
                name: parameter.name.clone(),
                on: condition.parameter.clone(),
            });
        }
        let mut levels: Vec<u32> = condition
            .is
            .iter()
            .map(|value| super::level_of(&earlier[place], value))
            .collect::<Result<_, _>>()
            .map_err(|problem| SpaceError::ConditionValue {
                name: parameter.name.clone(),
                problem: Box::new(problem),
            })?;
        levels.sort_unstable();
        Ok(Gate {
            parameter: place,
            levels,
        })
    }

    /// Whether the parameter exists under this level of the other.
    pub(super) fn opens(&self, level: u32) -> bool {
        self.levels.binary_search(&level).is_ok()
    }
}
