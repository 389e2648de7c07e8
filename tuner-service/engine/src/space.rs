//! What can be tuned: values, parameters, spaces, and the parametrizations in them.

mod error;
mod parameter;
mod parametrization;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use error::SpaceError;
pub use parameter::{Domain, Parameter};
pub use parametrization::{Parametrization, Point};
pub use value::Value;

/// The largest number of parameters in a space.
pub const MAX_PARAMETERS: usize = 20;

/// All parametrizations of an accelerator: the grid over its parameters' values.
///
/// A space that exists is valid: 1 to [`MAX_PARAMETERS`] parameters of distinct names, each with at
/// least one value, all values distinct, and each default one of the values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Parameter>", into = "Vec<Parameter>")]
pub struct Space(Vec<Parameter>);

impl TryFrom<Vec<Parameter>> for Space {
    type Error = SpaceError;

    fn try_from(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        Space::new(parameters)
    }
}

impl From<Space> for Vec<Parameter> {
    fn from(space: Space) -> Self {
        space.0
    }
}

impl Space {
    /// Builds a space.
    ///
    /// # Errors
    /// If the parameters do not make a valid space; the error names the parameter and the cure.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        if parameters.is_empty() {
            return Err(SpaceError::NoParameters);
        }
        if parameters.len() > MAX_PARAMETERS {
            return Err(SpaceError::TooManyParameters {
                count: parameters.len(),
                max: MAX_PARAMETERS,
            });
        }
        let mut names = BTreeSet::new();
        for parameter in &parameters {
            parameter.check()?;
            if !names.insert(parameter.name.as_str()) {
                return Err(SpaceError::DuplicateParameter {
                    name: parameter.name.clone(),
                });
            }
        }
        Ok(Space(parameters))
    }

    /// The parameters, in the order of a [`Point`]'s levels.
    pub fn parameters(&self) -> &[Parameter] {
        &self.0
    }

    /// How many parametrizations there are; `u128::MAX` stands for that many or more.
    pub fn size(&self) -> u128 {
        self.0.iter().fold(1_u128, |size, parameter| {
            size.saturating_mul(parameter.levels() as u128)
        })
    }

    /// The accelerator's own default parametrization.
    pub fn default(&self) -> Parametrization {
        self.parametrization(&self.default_point())
    }

    /// The point of [`Space::default`].
    pub fn default_point(&self) -> Point {
        Point(
            self.0
                .iter()
                .map(|parameter| {
                    parameter
                        .level_of(&parameter.default)
                        .and_then(|level| u32::try_from(level).ok())
                        .unwrap_or(0)
                })
                .collect(),
        )
    }

    /// The point of a parametrization.
    ///
    /// # Errors
    /// If a parameter has no value or one it cannot have, or if there is a name that the space does
    /// not know. The error names the valid choices.
    pub fn validate(&self, parametrization: &Parametrization) -> Result<Point, SpaceError> {
        self.refuse_unknown(&parametrization.0)?;
        let level =
            |parameter: &Parameter| {
                let value = parametrization.0.get(&parameter.name).ok_or_else(|| {
                    SpaceError::MissingValue {
                        name: parameter.name.clone(),
                        choices: parameter.choices(),
                    }
                })?;
                level_of(parameter, value)
            };
        self.0
            .iter()
            .map(level)
            .collect::<Result<_, _>>()
            .map(Point)
    }

    /// The parametrization at a point. A level that a parameter does not have stands for its
    /// default, and so does a level that is missing.
    pub fn parametrization(&self, point: &Point) -> Parametrization {
        let value = |(index, parameter): (usize, &Parameter)| {
            let value = point
                .0
                .get(index)
                .and_then(|level| parameter.value_at(*level as usize))
                .unwrap_or_else(|| parameter.default.clone());
            (parameter.name.clone(), value)
        };
        Parametrization(self.0.iter().enumerate().map(value).collect())
    }

    /// A parametrization from some of its values; the parameters left out take their default.
    ///
    /// # Errors
    /// If a name is unknown or a value is not valid; the error names the valid choices.
    pub fn complete(
        &self,
        partial: &BTreeMap<String, Value>,
    ) -> Result<Parametrization, SpaceError> {
        self.refuse_unknown(partial)?;
        let mut point = self.default_point();
        for (level, parameter) in point.0.iter_mut().zip(&self.0) {
            if let Some(value) = partial.get(&parameter.name) {
                *level = level_of(parameter, value)?;
            }
        }
        Ok(self.parametrization(&point))
    }

    /// The value that a person means by a text: the number, if the parameter can have it, otherwise
    /// the word.
    ///
    /// # Errors
    /// If the name is unknown or no value of the parameter is written so; the error names the valid
    /// choices.
    pub fn parse_value(&self, name: &str, text: &str) -> Result<Value, SpaceError> {
        let parameter = self
            .0
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| self.unknown(name))?;
        let integer = text.parse().ok().map(Value::Integer);
        let real = text.parse().ok().map(Value::Real);
        let word = Value::from(text);
        let level = [integer, real, Some(word.clone())]
            .into_iter()
            .flatten()
            .find_map(|value| parameter.level_of(&value));
        level
            .and_then(|level| parameter.value_at(level))
            .ok_or_else(|| invalid(parameter, &word))
    }

    /// How far apart two points are, from 0 to 1: the root mean square over the parameters of their
    /// distances, each 0 or 1 for categories and the share of the range for ordered values.
    pub fn distance(&self, a: &Point, b: &Point) -> f64 {
        self.metric().distance(a, b)
    }

    /// [`Space::distance`] prepared for many calls.
    pub(crate) fn metric(&self) -> Metric {
        let scale = |parameter: &Parameter| {
            let steps = (parameter.levels().max(2) - 1) as f64;
            parameter.is_ordered().then_some(steps)
        };
        Metric(self.0.iter().map(scale).collect())
    }

    fn refuse_unknown(&self, values: &BTreeMap<String, Value>) -> Result<(), SpaceError> {
        let known = |name: &String| self.0.iter().any(|parameter| parameter.name == *name);
        match values.keys().find(|name| !known(name)) {
            Some(name) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> SpaceError {
        let known: Vec<&str> = self.0.iter().map(|known| known.name.as_str()).collect();
        SpaceError::UnknownParameter {
            name: name.to_owned(),
            known: known.join(", "),
        }
    }
}

/// Distances in one space. For each parameter the number of steps from one end of its range to the
/// other; none for categories.
pub(crate) struct Metric(Vec<Option<f64>>);

impl Metric {
    /// See [`Space::distance`].
    pub(crate) fn distance(&self, a: &Point, b: &Point) -> f64 {
        let mut squares = 0.0;
        for ((scale, a), b) in self.0.iter().zip(&a.0).zip(&b.0) {
            let steps = f64::from(a.abs_diff(*b));
            let share = match scale {
                Some(range) => steps / range,
                None => steps.min(1.0),
            };
            squares += share * share;
        }
        (squares / self.0.len() as f64).sqrt()
    }
}

fn level_of(parameter: &Parameter, value: &Value) -> Result<u32, SpaceError> {
    parameter
        .level_of(value)
        .and_then(|level| u32::try_from(level).ok())
        .ok_or_else(|| invalid(parameter, value))
}

fn invalid(parameter: &Parameter, value: &Value) -> SpaceError {
    SpaceError::InvalidValue {
        name: parameter.name.clone(),
        value: value.clone(),
        choices: parameter.choices(),
    }
}
