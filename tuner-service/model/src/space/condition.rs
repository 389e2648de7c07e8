//! Conditional parameters: they exist only under another's values.

use serde::{Deserialize, Serialize};

use super::{Parameter, SpaceError, Value};

/// When a parameter exists: `when = { parameter = "cache", is = ["on"] }`. The named parameter is
/// listed earlier, so there are no cycles. If it does not exist, neither does its dependent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The name of the other parameter.
    pub parameter: String,
    /// The other's values under which this parameter exists; at least one.
    pub is: Vec<Value>,
}

impl Condition {
    /// The condition in words: `cache is on`.
    pub fn words(&self) -> String {
        let values: Vec<String> = self.is.iter().map(Value::to_string).collect();
        format!("{} is {}", self.parameter, values.join(" or "))
    }
}

/// A condition on levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    pub(super) parameter: usize,
    /// The other's levels under which this parameter exists, ascending.
    levels: Vec<u32>,
}

impl Gate {
    /// The condition of `parameter`; `earlier` are the parameters listed before it.
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

    pub(super) fn opens(&self, level: u32) -> bool {
        self.levels.binary_search(&level).is_ok()
    }
}
