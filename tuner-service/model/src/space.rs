//! The space that a study searches: values, parameters, constraints, and the parametrizations
//! within.

mod condition;
mod constraint;
mod error;
mod parameter;
mod parametrization;
mod points;
mod rules;
mod stored;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub use condition::Condition;
pub use constraint::{Comparison, Constraint};
pub use error::SpaceError;
pub use parameter::{Domain, Parameter};
pub use parametrization::{Parametrization, Point};
pub use rules::Existing;
pub use value::Value;

use constraint::Check;
use rules::Rules;

/// The largest number of parameters in a space.
pub const MAX_PARAMETERS: usize = 20;

/// The level of a parameter that does not exist, for comparing points.
pub const ABSENT: u32 = u32::MAX;

/// All parametrizations of an accelerator: the grid of its parameters' values, without those that
/// conditions and constraints exclude.
///
/// A space is always valid: 1 to [`MAX_PARAMETERS`] parameters with distinct names, distinct values
/// and a default among them; conditions name earlier parameters; the default breaks no constraint.
/// In JSON it is the list of parameters, or an object of `parameters` and `constraints` if there
/// are constraints.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    parameters: Vec<Parameter>,
    constraints: Vec<Constraint>,
    rules: Rules,
    levels: Vec<u32>,
    default: Point,
}

impl Space {
    /// A space without constraints. Returns an error that names the parameter and the cure if it is
    /// not valid.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        Space::constrained(parameters, Vec::new())
    }

    /// A space with constraints. Returns an error that names the parameter or constraint and the
    /// cure if it is not valid.
    pub fn constrained(
        parameters: Vec<Parameter>,
        constraints: Vec<Constraint>,
    ) -> Result<Self, SpaceError> {
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
        let default = parameters
            .iter()
            .map(|parameter| level_of(parameter, &parameter.default));
        let space = Space {
            rules: Rules::new(&parameters, &constraints)?,
            levels: parameters.iter().map(levels_of).collect(),
            default: Point(default.collect::<Result<_, _>>()?),
            parameters,
            constraints,
        };
        match space.broken(&space.default) {
            Some(problem) => Err(SpaceError::DefaultForbidden {
                problem: Box::new(problem),
            }),
            None => Ok(space),
        }
    }

    /// Returns true if another space differs at most in texts for people: units and descriptions.
    pub fn offers_the_same(&self, other: &Space) -> bool {
        let plain = |parameter: &Parameter| Parameter {
            unit: None,
            description: None,
            ..parameter.clone()
        };
        self.constraints == other.constraints
            && self.parameters.len() == other.parameters.len()
            && self
                .parameters
                .iter()
                .zip(&other.parameters)
                .all(|(a, b)| plain(a) == plain(b))
    }

    /// The parameters, in the order of a [`Point`]'s levels.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The constraints that every parametrization satisfies.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Returns true if every point of the grid may run: there are no conditions and no constraints.
    pub fn is_whole_grid(&self) -> bool {
        self.rules.is_empty()
    }

    /// The number of grid points, which is at least the number of parametrizations; `u128::MAX` if
    /// it is larger.
    pub fn size(&self) -> u128 {
        self.levels.iter().fold(1_u128, |size, levels| {
            size.saturating_mul(u128::from(*levels))
        })
    }

    /// The accelerator's own default parametrization.
    pub fn default(&self) -> Parametrization {
        self.parametrization(&self.default)
    }

    /// The values of a parametrization that differ from the default.
    #[must_use]
    pub fn differences(&self, parametrization: &Parametrization) -> Parametrization {
        let default = self.default();
        let values = parametrization.0.iter();
        let differing = values.filter(|(name, value)| default.0.get(*name) != Some(value));
        Parametrization(
            differing
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// The point of [`Space::default`].
    pub fn default_point(&self) -> Point {
        self.default.clone()
    }

    /// The parameters that exist at a point.
    pub fn existing(&self, point: &Point) -> Existing {
        self.rules.existing(&point.0)
    }

    /// The representative of equal points: parameters that do not exist have their default's level.
    pub fn canonical(&self, mut point: Point) -> Point {
        if self.rules.has_conditions() {
            let existing = self.existing(&point);
            for (place, level) in point.0.iter_mut().enumerate().take(self.levels.len()) {
                if !existing.contains(place) {
                    *level = self.default.0[place];
                }
            }
        }
        point
    }

    /// Returns true if a canonical point may run: its levels are in range and all constraints hold.
    pub fn admits(&self, point: &Point) -> bool {
        self.fits(point) && self.rules.hold(&point.0)
    }

    fn fits(&self, point: &Point) -> bool {
        let mut levels = point.0.iter().zip(&self.levels);
        point.0.len() == self.levels.len() && levels.all(|(level, count)| level < count)
    }

    /// The point with [`ABSENT`] as the level of parameters that do not exist.
    pub fn seen(&self, point: &Point) -> Point {
        let mut seen = point.clone();
        if self.rules.has_conditions() {
            let existing = self.existing(point);
            for (place, level) in seen.0.iter_mut().enumerate().take(self.levels.len()) {
                if !existing.contains(place) {
                    *level = ABSENT;
                }
            }
        }
        seen
    }

    fn broken(&self, point: &Point) -> Option<SpaceError> {
        if self.admits(point) {
            return None;
        }
        let existing = self.existing(point);
        let broken = |constraint: &&Constraint| {
            Check::new(constraint, &self.parameters).is_ok_and(|check| {
                let named = check.places();
                named.into_iter().all(|place| existing.contains(place)) && !check.holds(&point.0)
            })
        };
        let constraint = self.constraints.iter().find(broken)?;
        let named = Check::new(constraint, &self.parameters).ok()?.places();
        let values = self.parametrization(point);
        let values: Vec<String> = named
            .into_iter()
            .filter_map(|place| {
                let name = &self.parameters[place].name;
                Some(format!("{name}={}", values.0.get(name)?))
            })
            .collect();
        Some(SpaceError::Forbidden {
            values: values.join(" "),
            constraint: constraint.to_string(),
        })
    }

    /// The point of a parametrization. Returns an error with the valid choices if a value is
    /// missing, surplus, unknown or invalid, or if a constraint is broken.
    pub fn validate(&self, parametrization: &Parametrization) -> Result<Point, SpaceError> {
        self.point_of(&parametrization.0, |parameter| {
            Err(SpaceError::MissingValue {
                name: parameter.name.clone(),
                choices: parameter.choices(),
            })
        })
    }

    /// The parametrization at a point, without parameters that do not exist. A missing or invalid
    /// level stands for the default.
    pub fn parametrization(&self, point: &Point) -> Parametrization {
        let levels = self.default.0.iter().enumerate().map(|(place, default)| {
            let level = point.0.get(place);
            let level = level.filter(|level| **level < self.levels[place]);
            *level.unwrap_or(default)
        });
        let point = Point(levels.collect());
        let existing = self.existing(&point);
        let value = |(place, parameter): (usize, &Parameter)| {
            let value = parameter.value_at(point.0[place] as usize)?;
            existing
                .contains(place)
                .then(|| (parameter.name.clone(), value))
        };
        Parametrization(
            self.parameters
                .iter()
                .enumerate()
                .filter_map(value)
                .collect(),
        )
    }

    /// A parametrization from some of its values; the other parameters, if they exist, get their
    /// defaults. Returns an error with the valid choices if a name is unknown, a value is wrong, or
    /// a constraint is broken.
    pub fn complete(
        &self,
        partial: &BTreeMap<String, Value>,
    ) -> Result<Parametrization, SpaceError> {
        let point = self.point_of(partial, |parameter| Ok(parameter.default.clone()))?;
        Ok(self.parametrization(&point))
    }

    /// The point of these values; `missing` gives the value of an existing parameter without one.
    fn point_of(
        &self,
        values: &BTreeMap<String, Value>,
        missing: impl Fn(&Parameter) -> Result<Value, SpaceError>,
    ) -> Result<Point, SpaceError> {
        if let Some(name) = values
            .keys()
            .find(|name| self.parameters.iter().all(|known| known.name != **name))
        {
            return Err(unknown(name, &self.parameters));
        }
        let mut point = self.default.clone();
        let mut existing = Existing::NONE;
        for (place, parameter) in self.parameters.iter().enumerate() {
            let value = values.get(&parameter.name);
            if self.rules.exists(place, &point.0, existing) {
                existing.insert(place);
                point.0[place] = match value {
                    Some(value) => level_of(parameter, value)?,
                    None => level_of(parameter, &missing(parameter)?)?,
                };
            } else if value.is_some() {
                return Err(SpaceError::DoesNotExist {
                    name: parameter.name.clone(),
                    condition: self.condition_of(parameter),
                });
            }
        }
        match self.broken(&point) {
            Some(problem) => Err(problem),
            None => Ok(point),
        }
    }

    /// The condition under which a parameter exists, in words, with the conditions of the
    /// parameters that it depends on.
    fn condition_of(&self, parameter: &Parameter) -> String {
        let conditions = std::iter::successors(parameter.when.as_ref(), |condition| {
            let on = |known: &&Parameter| known.name == condition.parameter;
            self.parameters.iter().find(on)?.when.as_ref()
        });
        let words: Vec<String> = conditions.map(Condition::words).collect();
        words.join(" and ")
    }

    /// The value that a text stands for: a number if the parameter can have it, otherwise a word.
    /// Returns an error with the valid choices if the name or the value is unknown.
    pub fn parse_value(&self, name: &str, text: &str) -> Result<Value, SpaceError> {
        let parameter = self
            .parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| unknown(name, &self.parameters))?;
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

    /// The distance of two canonical points, from 0 to 1: the root mean square over the parameters
    /// of 0 or 1 for categories, the share of the range for ordered values, and 1 (0) for a
    /// parameter that exists at one point only (at neither).
    pub fn distance(&self, a: &Point, b: &Point) -> f64 {
        self.metric().distance(a, b)
    }

    /// Sorts points by their distance from the default.
    pub fn sort_nearest_first(&self, points: &mut [Point]) {
        let (metric, default) = (self.metric(), self.default_point());
        points.sort_by(|a, b| {
            let (near, far) = (metric.distance(a, &default), metric.distance(b, &default));
            near.total_cmp(&far).then_with(|| a.cmp(b))
        });
    }

    /// [`Space::distance`] prepared for many calls.
    pub fn metric(&self) -> Metric<'_> {
        let scale = |(parameter, levels): (&Parameter, &u32)| {
            let steps = f64::from((*levels).max(2) - 1);
            parameter.is_ordered().then_some(steps)
        };
        Metric {
            scales: self
                .parameters
                .iter()
                .zip(&self.levels)
                .map(scale)
                .collect(),
            conditions: self.rules.has_conditions().then_some(self),
        }
    }
}

/// Distances in one space.
pub struct Metric<'a> {
    /// The number of steps from one end of each range to the other; none for categories.
    scales: Vec<Option<f64>>,
    /// The space, if it has conditions.
    conditions: Option<&'a Space>,
}

impl Metric<'_> {
    /// See [`Space::distance`].
    pub fn distance(&self, a: &Point, b: &Point) -> f64 {
        match self.conditions {
            Some(space) => self.of_levels(&space.seen(a), &space.seen(b)),
            None => self.of_levels(a, b),
        }
    }

    fn of_levels(&self, a: &Point, b: &Point) -> f64 {
        let mut squares = 0.0;
        for ((scale, a), b) in self.scales.iter().zip(&a.0).zip(&b.0) {
            let steps = f64::from(a.abs_diff(*b));
            let share = match scale {
                Some(range) => (steps / range).min(1.0),
                None => steps.min(1.0),
            };
            squares += share * share;
        }
        (squares / self.scales.len() as f64).sqrt()
    }
}

/// The number of levels of a parameter, from 1 to `u32::MAX`.
pub fn levels_of(parameter: &Parameter) -> u32 {
    u32::try_from(parameter.levels()).unwrap_or(u32::MAX).max(1)
}

/// A level other than `level`, drawn uniformly from `levels` levels (at least 2).
pub fn other_level(level: u32, levels: u32, rng: &mut ChaCha8Rng) -> u32 {
    let other = rng.random_range(0..levels - 1);
    if other < level { other } else { other + 1 }
}

fn names(parameters: &[Parameter]) -> String {
    let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
    names.join(", ")
}

fn unknown(name: &str, parameters: &[Parameter]) -> SpaceError {
    SpaceError::UnknownParameter {
        name: name.to_owned(),
        known: names(parameters),
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
