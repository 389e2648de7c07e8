//! Recipes: settings that experts publish for an accelerator, as a place to begin.
//!
//! A recipe is tried once, before a study's own design. Whether it helps is decided by its runs, as
//! for any other parametrization: no recipe is believed.

use std::collections::BTreeMap;

use io_autotune_model::{Measure, Moments, Parametrization, Recipe, Space, Value};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::fault::Faults;

/// The most recipes of a file.
const MOST: usize = 8;

/// An entry of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    name: Spanned<String>,
    values: Spanned<BTreeMap<String, Value>>,
    why: String,
    source: Spanned<String>,
    #[serde(default)]
    when: Vec<Spanned<Shown>>,
}

/// What runs of the default must show for a recipe to fit: a measure, or one divided by another,
/// within bounds. Bytes over calls, for example, are the size of a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    #[serde(deserialize_with = "named")]
    measure: Measure,
    #[serde(default, deserialize_with = "perhaps_named")]
    per: Option<Measure>,
    least: Option<f64>,
    most: Option<f64>,
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Measure, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(D::Error::custom)
}

fn perhaps_named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Measure>, D::Error> {
    named(deserializer).map(Some)
}

/// A recipe of a catalogue file, and the jobs that it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The recipe.
    pub recipe: Recipe,
    /// What runs of the default must show, all of it. Empty: it fits every job.
    when: Vec<Shown>,
}

impl Offer {
    /// Returns true if the recipe fits a job whose runs of the default have these measures, the
    /// means of their logarithms. A measure that is not known fits nothing.
    #[must_use]
    pub fn fits(&self, measures: &BTreeMap<String, Moments>) -> bool {
        self.when.iter().all(|one| one.holds(measures))
    }
}

impl Shown {
    fn holds(&self, measures: &BTreeMap<String, Moments>) -> bool {
        let known = |measure: Measure| {
            let known = measures.get(measure.as_str());
            known.filter(|one| one.count > 0).map(|one| one.mean)
        };
        let divisor = self.per.map_or(Some(0.0), known);
        let Some((log, divisor)) = known(self.measure).zip(divisor) else {
            return false;
        };
        let value = (log - divisor).exp();
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }

    fn problem(&self) -> Option<&'static str> {
        let bounds = [self.least, self.most];
        if bounds.iter().all(Option::is_none) {
            return Some("give least, most, or both");
        }
        let is_number = |one: &f64| one.is_finite() && *one >= 0.0;
        let both = self.least.zip(self.most);
        let are_right = bounds.iter().flatten().all(is_number)
            && both.is_none_or(|(least, most)| least <= most);
        (!are_right)
            .then_some("least and most are numbers of at least 0, and least is not above most")
    }
}

/// Checks a file's entries: each names values that the whole space has, and differs from the
/// default.
pub(crate) fn check(entries: &[Entry], whole: &Space, faults: &mut Faults<'_>) {
    if let Some(one) = entries.get(MOST) {
        let problem = format!("there may be at most {MOST} recipes");
        faults.at(&one.name.span(), problem);
    }
    for (place, entry) in entries.iter().enumerate() {
        let name = entry.name.get_ref().trim();
        let is_known = entries[..place]
            .iter()
            .any(|one| one.name.get_ref().trim() == name);
        if name.is_empty() || is_known {
            let problem = format!("name = {name:?}: each recipe needs a name of its own");
            faults.at(&entry.name.span(), problem);
        }
        if entry.source.get_ref().trim().is_empty() {
            let problem = "say where it was published: advice without a source cannot be checked";
            faults.at(&entry.source.span(), problem);
        }
        for shown in &entry.when {
            if let Some(problem) = shown.get_ref().problem() {
                faults.at(&shown.span(), problem);
            }
        }
        match whole.validate(&entry.parametrization(whole)) {
            Ok(point) if point == whole.default_point() => {
                let problem = "these are the defaults, which every job has without a recipe";
                faults.at(&entry.values.span(), problem);
            }
            Ok(_) => {}
            Err(error) => faults.at(&entry.values.span(), error.to_string()),
        }
    }
}

/// The recipes that a space has. One with a value that is left out because of its risk is not
/// among those of the space without risks.
pub(crate) fn offers(entries: &[Entry], space: &Space) -> Vec<Offer> {
    let offers = entries.iter().filter_map(|entry| {
        let point = space.validate(&entry.parametrization(space)).ok()?;
        Some(Offer {
            recipe: Recipe {
                name: entry.name.get_ref().trim().to_owned(),
                parametrization: space.parametrization(&point),
                why: entry.why.trim().to_owned(),
                source: entry.source.get_ref().trim().to_owned(),
            },
            when: entry.when.iter().map(|one| one.get_ref().clone()).collect(),
        })
    });
    offers.collect()
}

impl Entry {
    fn parametrization(&self, space: &Space) -> Parametrization {
        let mut parametrization = space.default();
        let values = self.values.get_ref().iter();
        parametrization
            .0
            .extend(values.map(|(name, value)| (name.clone(), value.clone())));
        parametrization
    }
}
