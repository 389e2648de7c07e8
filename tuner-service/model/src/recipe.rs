//! A setting that experts publish for an accelerator.

use serde::{Deserialize, Serialize};

use crate::space::Parametrization;

/// A recipe: a setting that was published for an accelerator, as a place to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// A name, unique among the accelerator's.
    pub name: String,
    /// The whole parametrization: what the recipe does not name is at its default.
    pub parametrization: Parametrization,
    /// Why it should help, for people.
    pub why: String,
    /// Where it was published.
    pub source: String,
}
