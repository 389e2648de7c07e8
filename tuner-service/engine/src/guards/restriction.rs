//! The space that remains to be tuned while ineffective parameters are frozen.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use io_autotune_model::overridden::IneffectiveParameter;
use io_autotune_model::space::{
    Comparison, Constraint, Domain, Parameter, Parametrization, Point, Space,
};
use io_autotune_search::history::{History, Tested};

/// A space, its history and its epoch's inherited ranks, with
/// [ineffective](crate::ParameterEffects::ineffective) parameters frozen at their defaults.
/// Constraints freeze them, so that methods need no change. Parametrizations that differ only in
/// frozen parameters become one: their runs are pooled if no run ever had the given values in
/// force; otherwise runs with non-default values are left out.
#[derive(Clone, Debug)]
pub struct RestrictedSpace<'a> {
    whole: &'a Space,
    history: Cow<'a, History>,
    inherited: Cow<'a, [Parametrization]>,
    frozen: Option<Frozen<'a>>,
}

#[derive(Clone, Debug)]
struct Frozen<'a> {
    whole: &'a Space,
    narrow: Space,
    /// The places of the frozen parameters, each with true if runs that differ there are pooled.
    parameters: Vec<(usize, bool)>,
}

impl<'a> RestrictedSpace<'a> {
    /// Freezes these parameters. Names that the space does not have are ignored.
    pub fn new(
        space: &'a Space,
        history: Cow<'a, History>,
        inherited: &'a [Parametrization],
        ineffective: &[IneffectiveParameter],
    ) -> Self {
        let frozen = Frozen::new(space, ineffective);
        let (history, inherited) = match &frozen {
            None => (history, Cow::Borrowed(inherited)),
            Some(frozen) => (
                Cow::Owned(frozen.history(&history)),
                Cow::Owned(frozen.inherited(inherited)),
            ),
        };
        RestrictedSpace {
            whole: space,
            history,
            inherited,
            frozen,
        }
    }

    /// The restricted space.
    pub fn space(&self) -> &Space {
        self.frozen
            .as_ref()
            .map_or(self.whole, |frozen| &frozen.narrow)
    }

    /// The history in the restricted space.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The inherited ranks in the restricted space, the best first.
    pub fn inherited(&self) -> &[Parametrization] {
        &self.inherited
    }

    /// The names of the frozen parameters, in the space's order.
    pub fn frozen_parameters(&self) -> Vec<String> {
        let places = self.frozen.iter().flat_map(|frozen| &frozen.parameters);
        places
            .map(|(place, _)| self.whole.parameters()[*place].name.clone())
            .collect()
    }

    pub(crate) fn whole(&self) -> &'a Space {
        self.whole
    }

    /// The whole space's design converted to the restricted space, so that an epoch keeps its
    /// design.
    pub(crate) fn design(&self, whole: Vec<Point>) -> Vec<Point> {
        let Some(frozen) = &self.frozen else {
            return whole;
        };
        let default = frozen.narrow.default_point();
        let mut led: Vec<Point> = Vec::with_capacity(whole.len());
        for point in whole {
            let point = frozen.led(point, true);
            led.extend(point.filter(|point| *point != default && !led.contains(point)));
        }
        frozen.narrow.sort_nearest_first(&mut led);
        led
    }
}

impl<'a> Frozen<'a> {
    fn new(whole: &'a Space, ineffective: &[IneffectiveParameter]) -> Option<Self> {
        let mut constraints = whole.constraints().to_vec();
        let mut parameters = Vec::new();
        for (place, parameter) in whole.parameters().iter().enumerate() {
            let named = |one: &&IneffectiveParameter| one.parameter == parameter.name;
            if let Some(one) = ineffective.iter().find(named)
                && let Some(constraint) = at_default(parameter)
            {
                parameters.push((place, one.pooled));
                constraints.push(constraint);
            }
        }
        let narrow = Space::constrained(whole.parameters().to_vec(), constraints).ok()?;
        (!parameters.is_empty()).then_some(Frozen {
            whole,
            narrow,
            parameters,
        })
    }

    /// The point with the frozen parameters at their defaults. None if its runs are not pooled
    /// (unless `all` is set), or if a constraint forbids the result.
    fn led(&self, mut point: Point, all: bool) -> Option<Point> {
        let default = self.whole.default_point();
        for (place, pooled) in &self.parameters {
            if point.0[*place] != default.0[*place] {
                if !(all || *pooled) {
                    return None;
                }
                point.0[*place] = default.0[*place];
            }
        }
        let point = self.whole.canonical(point);
        self.narrow.admits(&point).then_some(point)
    }

    fn parametrization(&self, whole: &Parametrization, all: bool) -> Option<Parametrization> {
        let point = self.led(self.whole.validate(whole).ok()?, all)?;
        Some(self.narrow.parametrization(&point))
    }

    fn history(&self, whole: &History) -> History {
        let mut tested = BTreeMap::<String, Tested>::new();
        for one in &whole.tested {
            let Some(parametrization) = self.parametrization(&one.parametrization, false) else {
                continue;
            };
            let one = Tested {
                parametrization,
                ..one.clone()
            };
            match tested.entry(one.parametrization.key()) {
                Entry::Vacant(new) => {
                    new.insert(one);
                }
                Entry::Occupied(mut known) => known.get_mut().absorb(&one),
            }
        }
        let mut tested: Vec<Tested> = tested.into_values().collect();
        tested.sort_by_key(|one| one.first_ordinal);
        History {
            tested,
            tally: whole.tally,
        }
    }

    /// Ranks are not times, so they are kept whether runs are pooled or not.
    fn inherited(&self, whole: &[Parametrization]) -> Vec<Parametrization> {
        let mut led: Vec<Parametrization> = Vec::with_capacity(whole.len());
        for one in whole {
            let one = self.parametrization(one, true);
            led.extend(one.filter(|one| !led.contains(one)));
        }
        led
    }
}

/// The constraint that a parameter is at its default; none if it has only one value. `Compare`
/// would read a text as a parameter's name, so texts use `Forbid`.
fn at_default(parameter: &Parameter) -> Option<Constraint> {
    let others = match &parameter.domain {
        Domain::Integer { .. } => {
            return (parameter.levels() > 1).then(|| Constraint::Compare {
                left: parameter.name.clone(),
                op: Comparison::Equal,
                right: parameter.default.clone(),
            });
        }
        Domain::Ordered { values } | Domain::Categories { values } => {
            let others = values.iter().filter(|value| **value != parameter.default);
            others.cloned().collect::<Vec<_>>()
        }
    };
    (!others.is_empty()).then(|| Constraint::Forbid {
        forbid: BTreeMap::from([(parameter.name.clone(), others)]),
    })
}

#[cfg(test)]
mod tests;
