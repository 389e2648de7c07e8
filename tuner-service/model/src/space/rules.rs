//! Conditions and constraints, prepared for many points.

use super::condition::Gate;
use super::constraint::{Check, Constraint};
use super::{MAX_PARAMETERS, Parameter, SpaceError};

/// The parameters that exist at a point: one bit per place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing(u32);

const _: () = assert!(MAX_PARAMETERS <= u32::BITS as usize);

impl Existing {
    pub(super) const NONE: Existing = Existing(0);

    /// Returns true if the parameter at this place exists.
    pub fn contains(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    pub(super) fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    /// The condition of each parameter.
    gates: Vec<Option<Gate>>,
    /// The constraints, listed by the last parameter that they name: at that parameter they can be
    /// checked.
    checks: Vec<Vec<Check>>,
}

impl Rules {
    pub(super) fn new(
        parameters: &[Parameter],
        constraints: &[Constraint],
    ) -> Result<Self, SpaceError> {
        let gate = |(place, parameter): (usize, &Parameter)| {
            let condition = parameter.when.as_ref();
            condition
                .map(|condition| Gate::new(parameter, condition, &parameters[..place]))
                .transpose()
        };
        let gates = parameters.iter().enumerate().map(gate);
        let mut rules = Rules {
            gates: gates.collect::<Result<_, _>>()?,
            checks: vec![Vec::new(); parameters.len()],
        };
        for constraint in constraints {
            let check = Check::new(constraint, parameters)?;
            let last = check.places().into_iter().max().unwrap_or(0);
            rules.checks[last].push(check);
        }
        Ok(rules)
    }

    pub(super) fn has_conditions(&self) -> bool {
        self.gates.iter().any(Option::is_some)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_conditions() && self.checks.iter().all(Vec::is_empty)
    }

    /// Returns true if the parameter at this place exists, by the levels before it.
    pub(super) fn exists(&self, place: usize, levels: &[u32], earlier: Existing) -> bool {
        self.gates[place].as_ref().is_none_or(|gate| {
            earlier.contains(gate.parameter)
                && levels
                    .get(gate.parameter)
                    .is_some_and(|level| gate.opens(*level))
        })
    }

    pub(super) fn existing(&self, levels: &[u32]) -> Existing {
        let mut existing = Existing::NONE;
        for place in 0..self.gates.len() {
            if self.exists(place, levels, existing) {
                existing.insert(place);
            }
        }
        existing
    }

    /// Returns true if all constraints hold whose last parameter is at this place.
    pub(super) fn hold_at(&self, place: usize, levels: &[u32], existing: Existing) -> bool {
        self.checks[place].iter().all(|check| {
            let all_exist = || {
                check
                    .places()
                    .into_iter()
                    .all(|place| existing.contains(place))
            };
            check.holds(levels) || !all_exist()
        })
    }

    pub(super) fn hold(&self, levels: &[u32]) -> bool {
        let existing = self.existing(levels);
        (0..self.checks.len()).all(|place| self.hold_at(place, levels, existing))
    }
}
