//! The record of a session: its events in their order, from which the session can be made anew.

use std::collections::BTreeMap;

use io_autotune_engine::{Parametrization, Phase, Role};
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A run was asked for, or added.
    Asked(Asked),
    /// It has ended.
    Told(Told),
}

/// A run that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The run's id: its place, from 1.
    pub id: u64,
    /// The parametrization that the run is given.
    pub parametrization: Parametrization,
    /// The phase at its start.
    pub phase: Phase,
    /// The run's role in the session's phase.
    pub role: Role,
    /// The probability with which it was drawn to be one of the default; none if nothing was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_chance: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The run's id.
    pub id: u64,
    /// How.
    pub outcome: Outcome,
    /// The run's measures, beside its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
}

/// The result of a run; seconds, or the values of another goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It completed.
    Value(f64),
    /// It failed.
    Failed,
    /// It was cut short, and would have had a value at least as bad.
    Cut(f64),
}
