//! What can be tuned: values, parameters, spaces, and the parametrizations in them.

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

/// The level of a parameter that does not exist, where points are compared.
pub const ABSENT: u32 = u32::MAX;

/// All parametrizations of an accelerator: of the grid over its parameters' values what conditions
/// and constraints leave.
///
/// A space that exists is valid: 1 to [`MAX_PARAMETERS`] parameters of distinct names, each with at
/// least one value, all values distinct, and each default one of the values; conditions name
/// parameters listed before, and the default breaks no constraint.
///
/// In JSON it is the list of its parameters, or, where there are constraints, an object of
/// `parameters` and `constraints`.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    parameters: Vec<Parameter>,
    constraints: Vec<Constraint>,
    rules: Rules,
    /// How many levels each parameter has.
    levels: Vec<u32>,
    default: Point,
}

impl Space {
    /// Builds a space without constraints.
    ///
    /// # Errors
    /// If the parameters do not make a valid space; the error names the parameter and the cure.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        Space::constrained(parameters, Vec::new())
    }

    /// Builds a space whose parametrizations all satisfy the constraints.
    ///
    /// # Errors
    /// If the parameters do not make a valid space, a constraint names what there is not, or the
    /// default breaks one; the error names the parameter or the constraint, and the cure.
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

    /// Whether another space is the same but for what it tells people: units and descriptions.
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

    /// What must hold of every parametrization.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Whether every point of the grid may be run: there are neither conditions nor constraints.
    pub fn is_whole_grid(&self) -> bool {
        self.rules.is_empty()
    }

    /// How many points the grid has, and so the most parametrizations that there can be: conditions
    /// and constraints leave fewer. `u128::MAX` stands for that many or more.
    pub fn size(&self) -> u128 {
        self.levels.iter().fold(1_u128, |size, levels| {
            size.saturating_mul(u128::from(*levels))
        })
    }

    /// The accelerator's own default parametrization.
    pub fn default(&self) -> Parametrization {
        self.parametrization(&self.default)
    }

    /// The point of [`Space::default`].
    pub fn default_point(&self) -> Point {
        self.default.clone()
    }

    /// Which parameters exist at a point.
    pub fn existing(&self, point: &Point) -> Existing {
        self.rules.existing(&point.0)
    }

    /// The point that stands for this one: a parameter that does not exist there has its default's
    /// level, so that equal parametrizations are equal points.
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

    /// Whether a canonical point may be run: each level is one of its parameter's, and all
    /// constraints hold.
    pub fn admits(&self, point: &Point) -> bool {
        self.fits(point) && self.rules.hold(&point.0)
    }

    fn fits(&self, point: &Point) -> bool {
        let mut levels = point.0.iter().zip(&self.levels);
        point.0.len() == self.levels.len() && levels.all(|(level, count)| level < count)
    }

    /// The point with [`ABSENT`] for the level of each parameter that does not exist.
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

    /// The first constraint that a point breaks.
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

    /// The point of a parametrization.
    ///
    /// # Errors
    /// If a parameter that exists has no value or one it cannot have, if there is a value for one
    /// that does not exist, if a constraint is broken, or if there is a name that the space does not
    /// know. The error names the valid choices.
    pub fn validate(&self, parametrization: &Parametrization) -> Result<Point, SpaceError> {
        self.point_of(&parametrization.0, |parameter| {
            Err(SpaceError::MissingValue {
                name: parameter.name.clone(),
                choices: parameter.choices(),
            })
        })
    }

    /// The parametrization at a point, without the parameters that do not exist there. A level that
    /// a parameter does not have stands for its default, and so does a level that is missing.
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

    /// A parametrization from some of its values; the parameters left out take their default, or
    /// stay out where they do not exist.
    ///
    /// # Errors
    /// If a name is unknown, a value is not valid or for a parameter that does not exist beside the
    /// others, or a constraint is broken; the error names the valid choices.
    pub fn complete(
        &self,
        partial: &BTreeMap<String, Value>,
    ) -> Result<Parametrization, SpaceError> {
        let point = self.point_of(partial, |parameter| Ok(parameter.default.clone()))?;
        Ok(self.parametrization(&point))
    }

    /// The point of these values; `missing` gives that of a parameter that exists and is not among
    /// them.
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

    /// When a parameter exists, in words, with what its condition itself depends on.
    fn condition_of(&self, parameter: &Parameter) -> String {
        let conditions = std::iter::successors(parameter.when.as_ref(), |condition| {
            let on = |known: &&Parameter| known.name == condition.parameter;
            self.parameters.iter().find(on)?.when.as_ref()
        });
        let words: Vec<String> = conditions.map(Condition::words).collect();
        words.join(" and ")
    }

    /// The value that a person means by a text: the number, if the parameter can have it, otherwise
    /// the word.
    ///
    /// # Errors
    /// If the name is unknown or no value of the parameter is written so; the error names the valid
    /// choices.
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

    /// How far apart two canonical points are, from 0 to 1: the root mean square over the parameters
    /// of their distances, each 0 or 1 for categories and the share of the range for ordered values.
    /// A parameter that exists at one point only is 1 apart, one that exists at neither 0.
    pub fn distance(&self, a: &Point, b: &Point) -> f64 {
        self.metric().distance(a, b)
    }

    /// Sorts points by how far they are from the default.
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
    /// For each parameter the number of steps from one end of its range to the other; none for
    /// categories.
    scales: Vec<Option<f64>>,
    /// The space, if parameters may not exist.
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

/// The number of levels of a parameter; one of a space has at least 1, and no more than `u32` holds.
pub fn levels_of(parameter: &Parameter) -> u32 {
    u32::try_from(parameter.levels()).unwrap_or(u32::MAX).max(1)
}

/// Any other of so many levels, at least 2, each as likely.
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
