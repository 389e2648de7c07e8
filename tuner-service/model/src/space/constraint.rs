//! Constraints between the values of several parameters.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Domain, Parameter, SpaceError, Value};

/// A constraint on every parametrization. It holds if a parameter that it names does not exist.
///
/// In JSON and TOML `{ left = "aggregators", op = "<=", right = "nodes" }`, where `right` is a
/// parameter or a value, or `{ forbid = { mode = ["direct"], buffer = [1, 2] } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "RawConstraint")]
pub enum Constraint {
    /// A comparison. Numbers and sizes such as `64K` or `1MiB` (powers of 1024) compare by worth,
    /// texts of one ordered list by its order; other texts are only equal or different.
    Compare {
        /// The name of a parameter.
        left: String,
        /// The comparison.
        op: Comparison,
        /// The name of another parameter; otherwise a value.
        right: Value,
    },
    /// A forbidden combination: not all named parameters have one of their listed values.
    Forbid {
        /// The names, each with its values; at least one of both.
        forbid: BTreeMap<String, Vec<Value>>,
    },
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `<=`
    #[serde(rename = "<=")]
    AtMost,
    /// `<`
    #[serde(rename = "<")]
    Below,
    /// `>=`
    #[serde(rename = ">=")]
    AtLeast,
    /// `>`
    #[serde(rename = ">")]
    Above,
    /// `==`
    #[serde(rename = "==")]
    Equal,
    /// `!=`
    #[serde(rename = "!=")]
    Different,
}

impl Comparison {
    fn needs_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::Different)
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::AtMost => ordering.is_le(),
            Comparison::Below => ordering.is_lt(),
            Comparison::AtLeast => ordering.is_ge(),
            Comparison::Above => ordering.is_gt(),
            Comparison::Equal => ordering.is_eq(),
            Comparison::Different => ordering.is_ne(),
        }
    }
}

crate::word_enum!(
    Comparison, "comparison",
    AtMost => "<=",
    Below => "<",
    AtLeast => ">=",
    Above => ">",
    Equal => "==",
    Different => "!=",
);

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::Compare { left, op, right } => write!(f, "{left} {op} {right}"),
            Constraint::Forbid { forbid } => {
                f.write_str("not ")?;
                for (index, (name, values)) in forbid.iter().enumerate() {
                    let values: Vec<String> = values.iter().map(Value::to_string).collect();
                    let gap = if index == 0 { "" } else { " with " };
                    write!(f, "{gap}{name}={}", values.join("|"))?;
                }
                Ok(())
            }
        }
    }
}

/// The flat form of a constraint: the first three fields, or the last.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConstraint {
    left: Option<String>,
    op: Option<Comparison>,
    right: Option<Value>,
    forbid: Option<BTreeMap<String, Vec<Value>>>,
}

impl TryFrom<RawConstraint> for Constraint {
    type Error = SpaceError;

    fn try_from(raw: RawConstraint) -> Result<Self, SpaceError> {
        match raw {
            RawConstraint {
                left: Some(left),
                op: Some(op),
                right: Some(right),
                forbid: None,
            } => Ok(Constraint::Compare { left, op, right }),
            RawConstraint {
                left: None,
                op: None,
                right: None,
                forbid: Some(forbid),
            } => Ok(Constraint::Forbid { forbid }),
            _ => Err(SpaceError::ConstraintForm),
        }
    }
}

/// A constraint on places and levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check {
    Compare {
        left: (usize, Scale),
        op: Comparison,
        right: Operand,
    },
    /// The places, each with its forbidden levels.
    Forbid(Vec<(usize, Vec<u32>)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Parameter(usize, Scale),
    Constant(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    Steps {
        min: i64,
        step: i64,
    },
    Listed(Vec<Value>),
    /// The level itself, for an ordered list of words.
    Level,
}

impl Scale {
    /// By worth, sizes as numbers; none if a value is only a word.
    fn of_numbers(parameter: &Parameter) -> Option<Self> {
        match &parameter.domain {
            Domain::Integer { min, step, .. } => Some(Scale::Steps {
                min: *min,
                step: *step,
            }),
            Domain::Ordered { values } | Domain::Categories { values } => values
                .iter()
                .map(number)
                .collect::<Option<_>>()
                .map(Scale::Listed),
        }
    }

    fn of_values(parameter: &Parameter) -> Self {
        match &parameter.domain {
            Domain::Integer { min, step, .. } => Scale::Steps {
                min: *min,
                step: *step,
            },
            Domain::Ordered { values } | Domain::Categories { values } => {
                Scale::Listed(values.clone())
            }
        }
    }

    fn at(&self, level: u32) -> Cow<'_, Value> {
        let integer = |number: i128| {
            // A valid level is within the range.
            Cow::Owned(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
        };
        match self {
            Scale::Steps { min, step } => {
                integer(i128::from(*min) + i128::from(*step) * i128::from(level))
            }
            Scale::Listed(values) => values
                .get(level as usize)
                .map_or_else(|| integer(i128::from(level)), Cow::Borrowed),
            Scale::Level => integer(i128::from(level)),
        }
    }
}

/// The worth of a value: a number itself; a text such as `64K` or `1MiB` in bytes.
fn number(value: &Value) -> Option<Value> {
    let Value::Text(text) = value else {
        return Some(value.clone());
    };
    let unit = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(unit.unwrap_or(text.len()));
    let unit = unit.strip_suffix("iB").unwrap_or(unit);
    let power = match unit {
        "" => 0,
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    let worth = digits.parse::<i64>().ok()?.checked_mul(1 << (10 * power))?;
    Some(Value::Integer(worth))
}

impl Check {
    pub(super) fn new(
        constraint: &Constraint,
        parameters: &[Parameter],
    ) -> Result<Self, SpaceError> {
        let refused = |problem: SpaceError| SpaceError::BadConstraint {
            constraint: constraint.to_string(),
            problem: Box::new(problem),
        };
        match constraint {
            Constraint::Compare { left, op, right } => {
                compare(left, *op, right, parameters).map_err(refused)
            }
            Constraint::Forbid { forbid } => forbidden(forbid, parameters).map_err(refused),
        }
    }

    pub(super) fn places(&self) -> Vec<usize> {
        match self {
            Check::Compare { left, right, .. } => match right {
                Operand::Parameter(right, _) => vec![left.0, *right],
                Operand::Constant(_) => vec![left.0],
            },
            Check::Forbid(lists) => lists.iter().map(|(place, _)| *place).collect(),
        }
    }

    /// Returns true if the check holds for these levels, provided that all its parameters exist.
    pub(super) fn holds(&self, levels: &[u32]) -> bool {
        match self {
            Check::Compare { left, op, right } => {
                let left = left.1.at(levels[left.0]);
                let right = match right {
                    Operand::Parameter(place, scale) => scale.at(levels[*place]),
                    Operand::Constant(value) => Cow::Borrowed(value),
                };
                op.holds(left.cmp(&right))
            }
            Check::Forbid(lists) => lists
                .iter()
                .any(|(place, forbidden)| !forbidden.contains(&levels[*place])),
        }
    }
}

fn place_of(name: &str, parameters: &[Parameter]) -> Result<usize, SpaceError> {
    parameters
        .iter()
        .position(|parameter| parameter.name == name)
        .ok_or_else(|| super::unknown(name, parameters))
}

fn compare(
    left: &str,
    op: Comparison,
    right: &Value,
    parameters: &[Parameter],
) -> Result<Check, SpaceError> {
    let place = place_of(left, parameters)?;
    let left = &parameters[place];
    let check = |scale, right| Check::Compare {
        left: (place, scale),
        op,
        right,
    };
    let unordered = || SpaceError::NoOrder {
        name: left.name.clone(),
        right: right.clone(),
    };
    let other = match right {
        Value::Text(name) => place_of(name, parameters).ok(),
        _ => None,
    };
    if let Some(other) = other {
        let right = &parameters[other];
        if let (Some(a), Some(b)) = (Scale::of_numbers(left), Scale::of_numbers(right)) {
            return Ok(check(a, Operand::Parameter(other, b)));
        }
        if !op.needs_order() {
            let b = Scale::of_values(right);
            return Ok(check(Scale::of_values(left), Operand::Parameter(other, b)));
        }
        if left.is_ordered() && left.domain == right.domain {
            return Ok(check(Scale::Level, Operand::Parameter(other, Scale::Level)));
        }
        return Err(unordered());
    }
    if let (Some(scale), Some(right)) = (Scale::of_numbers(left), number(right)) {
        return Ok(check(scale, Operand::Constant(right)));
    }
    if matches!(right, Value::Text(_)) && left.level_of(right).is_none() {
        return Err(SpaceError::NeitherParameterNorValue {
            name: left.name.clone(),
            right: right.clone(),
            known: super::names(parameters),
            choices: left.choices(),
        });
    }
    let level = super::level_of(left, right)?;
    if op.needs_order() && !left.is_ordered() {
        return Err(unordered());
    }
    let right = Value::Integer(i64::from(level));
    Ok(check(Scale::Level, Operand::Constant(right)))
}

fn forbidden(
    forbid: &BTreeMap<String, Vec<Value>>,
    parameters: &[Parameter],
) -> Result<Check, SpaceError> {
    if forbid.is_empty() || forbid.values().any(Vec::is_empty) {
        return Err(SpaceError::ForbidsNothing);
    }
    let list = |(name, values): (&String, &Vec<Value>)| {
        let place = place_of(name, parameters)?;
        let levels = values
            .iter()
            .map(|value| super::level_of(&parameters[place], value))
            .collect::<Result<_, _>>()?;
        Ok((place, levels))
    };
    forbid
        .iter()
        .map(list)
        .collect::<Result<_, _>>()
        .map(Check::Forbid)
}
