//! One tunable and the values it can have.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Condition, SpaceError, Value};

/// The values that a parameter can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Domain {
    /// `min`, `min + step`, ... up to `max`.
    Integer {
        /// The smallest value.
        min: i64,
        /// The upper bound; reached only if the step fits.
        max: i64,
        /// The distance of neighbouring values, at least 1.
        step: i64,
    },
    /// A list in a meaningful order: neighbours behave alike.
    Ordered {
        /// The values in order.
        values: Vec<Value>,
    },
    /// A set without order: any two values are equally far apart.
    Categories {
        /// The values.
        values: Vec<Value>,
    },
}

/// One tunable of an accelerator.
///
/// In JSON and TOML it is flat: `name`, `kind` (`integer`, `ordered` or `categories`), `min`, `max`
/// and `step` (default 1) or `values`, `default`, and optionally `when`, `unit` and `description`.
/// Fields that are unknown or of another kind are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawParameter")]
pub struct Parameter {
    /// The name, unique in its space: letters, digits, `_`, `.` and `-`.
    pub name: String,
    /// The values.
    #[serde(flatten)]
    pub domain: Domain,
    /// The accelerator's own default, which a run without the tuner has. It is one of the values.
    pub default: Value,
    /// The condition under which it exists; none: always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// The unit of the values for people, for example `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The effect of the parameter, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Domain {
    fn kind(&self) -> &'static str {
        match self {
            Domain::Integer { .. } => "integer",
            Domain::Ordered { .. } => "ordered",
            Domain::Categories { .. } => "categories",
        }
    }
}

impl Parameter {
    /// The number of values; 0 for an empty domain, which no [`Space`](super::Space) allows.
    pub fn levels(&self) -> usize {
        usize::try_from(self.level_count()).unwrap_or(usize::MAX)
    }

    fn level_count(&self) -> u128 {
        match &self.domain {
            Domain::Integer { min, max, step } if min <= max && *step >= 1 => {
                u128::from(max.abs_diff(*min) / step.unsigned_abs()) + 1
            }
            Domain::Integer { .. } => 0,
            Domain::Ordered { values } | Domain::Categories { values } => values.len() as u128,
        }
    }

    /// The value at a level (level 0 is the smallest, or the first listed); none beyond the last
    /// level.
    pub fn value_at(&self, level: usize) -> Option<Value> {
        if level as u128 >= self.level_count() {
            return None;
        }
        match &self.domain {
            Domain::Integer { min, step, .. } => {
                let value = i128::from(*min) + i128::from(*step) * level as i128;
                i64::try_from(value).ok().map(Value::Integer)
            }
            Domain::Ordered { values } | Domain::Categories { values } => {
                values.get(level).cloned()
            }
        }
    }

    /// The level of a value; none if the value is not one of the parameter's.
    pub fn level_of(&self, value: &Value) -> Option<usize> {
        match &self.domain {
            Domain::Integer { min, max, step } => {
                // A whole real number equals the integer, see `Value`.
                let number = match value {
                    Value::Integer(number) => *number,
                    Value::Real(real) => {
                        let number = *real as i64;
                        (Value::Integer(number) == *value).then_some(number)?
                    }
                    Value::Text(_) => return None,
                };
                if *step < 1 || number < *min || number > *max {
                    return None;
                }
                let (offset, step) = (number.abs_diff(*min), step.unsigned_abs());
                offset
                    .is_multiple_of(step)
                    .then(|| usize::try_from(offset / step).ok())?
            }
            Domain::Ordered { values } | Domain::Categories { values } => {
                values.iter().position(|known| known == value)
            }
        }
    }

    /// Returns true if neighbouring levels behave alike: for integers and ordered lists, not for
    /// categories.
    pub fn is_ordered(&self) -> bool {
        !matches!(self.domain, Domain::Categories { .. })
    }

    /// The valid choices in words: `an integer from 2 to 12 in steps of 2`, `one of on, off`.
    pub fn choices(&self) -> String {
        const SHOWN: usize = 24;
        match &self.domain {
            Domain::Integer { min, max, step } if *step == 1 => {
                format!("an integer from {min} to {max}")
            }
            Domain::Integer { min, max, step } => {
                format!("an integer from {min} to {max} in steps of {step}")
            }
            Domain::Ordered { values } | Domain::Categories { values } => {
                let mut words: Vec<String> =
                    values.iter().take(SHOWN).map(Value::to_string).collect();
                if values.len() > SHOWN {
                    words.push(format!("... ({} in all)", values.len()));
                }
                match words.as_slice() {
                    [only] => only.clone(),
                    _ => format!("one of {}", words.join(", ")),
                }
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), SpaceError> {
        let name = || self.name.clone();
        if !valid_name(&self.name) {
            return Err(SpaceError::BadName { name: name() });
        }
        match &self.domain {
            Domain::Integer { step, .. } if *step < 1 => {
                return Err(SpaceError::BadStep {
                    name: name(),
                    step: *step,
                });
            }
            Domain::Integer { min, max, .. } if min > max => {
                return Err(SpaceError::BadRange {
                    name: name(),
                    min: *min,
                    max: *max,
                });
            }
            Domain::Integer { .. } => {}
            Domain::Ordered { values } | Domain::Categories { values } => {
                check_values(&self.name, values)?;
            }
        }
        let levels = self.level_count();
        if levels > u128::from(u32::MAX) {
            return Err(SpaceError::TooManyLevels {
                name: name(),
                levels,
                max: u32::MAX,
            });
        }
        if self.level_of(&self.default).is_none() {
            return Err(SpaceError::BadDefault {
                name: name(),
                default: self.default.clone(),
                choices: self.choices(),
            });
        }
        Ok(())
    }
}

fn check_values(name: &str, values: &[Value]) -> Result<(), SpaceError> {
    if values.is_empty() {
        return Err(SpaceError::NoValues {
            name: name.to_owned(),
        });
    }
    let mut seen = BTreeSet::new();
    for value in values {
        if !valid_value(value) {
            return Err(SpaceError::BadValue {
                name: name.to_owned(),
                value: value.clone(),
            });
        }
        if !seen.insert(value) {
            return Err(SpaceError::RepeatedValue {
                name: name.to_owned(),
                value: value.clone(),
            });
        }
    }
    Ok(())
}

fn valid_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

fn valid_value(value: &Value) -> bool {
    match value {
        Value::Integer(_) => true,
        Value::Real(number) => number.is_finite(),
        Value::Text(text) => (1..=256).contains(&text.len()) && !text.chars().any(char::is_control),
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Integer,
    Ordered,
    Categories,
}

/// The flat form of a parameter in files and messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    name: String,
    kind: Kind,
    min: Option<i64>,
    max: Option<i64>,
    step: Option<i64>,
    values: Option<Vec<Value>>,
    default: Value,
    when: Option<Condition>,
    unit: Option<String>,
    description: Option<String>,
}

impl RawParameter {
    fn domain(&self) -> Result<Domain, SpaceError> {
        let needed = |kind, field| SpaceError::MissingField {
            name: self.name.clone(),
            kind,
            field,
        };
        let list = |kind| self.values.clone().ok_or_else(|| needed(kind, "values"));
        match self.kind {
            Kind::Integer => Ok(Domain::Integer {
                min: self.min.ok_or_else(|| needed("integer", "min"))?,
                max: self.max.ok_or_else(|| needed("integer", "max"))?,
                step: self.step.unwrap_or(1),
            }),
            Kind::Ordered => Ok(Domain::Ordered {
                values: list("ordered")?,
            }),
            Kind::Categories => Ok(Domain::Categories {
                values: list("categories")?,
            }),
        }
    }
}

impl TryFrom<RawParameter> for Parameter {
    type Error = SpaceError;

    fn try_from(raw: RawParameter) -> Result<Self, SpaceError> {
        let domain = raw.domain()?;
        let is_integer = matches!(domain, Domain::Integer { .. });
        let fields = [
            ("min", raw.min.is_some(), is_integer),
            ("max", raw.max.is_some(), is_integer),
            ("step", raw.step.is_some(), is_integer),
            ("values", raw.values.is_some(), !is_integer),
        ];
        if let Some((field, ..)) = fields
            .into_iter()
            .find(|(_, given, allowed)| *given && !*allowed)
        {
            return Err(SpaceError::SurplusField {
                name: raw.name,
                kind: domain.kind(),
                field,
            });
        }
        let parameter = Parameter {
            name: raw.name,
            domain,
            default: raw.default,
            when: raw.when,
            unit: raw.unit,
            description: raw.description,
        };
        parameter.check()?;
        Ok(parameter)
    }
}
