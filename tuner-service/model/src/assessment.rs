//! What is to be said of a study: its gain, with the evidence for it, and its findings. The engine
//! decides it when a verdict is given; everything else renders it.

use serde::{Deserialize, Serialize};

use crate::space::Parametrization;

/// What is to be said of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Assessment {
    /// The number of the epoch that `gain` and `findings` are about.
    pub epoch: i32,
    /// The gain of what the epoch has chosen.
    pub gain: Gain,
    /// The effect of each parametrization that was ever chosen and compared.
    pub effects: Vec<Effect>,
    /// What a person should know of the epoch.
    pub findings: Vec<Finding>,
}

/// What the interval and the node-hours leave to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GainVerdict {
    /// The chosen parametrization is faster than the default.
    Faster,
    /// It is slower.
    Slower,
    /// The difference, if any, is less than 3 %.
    NoEffect,
    /// Typical runs and node-hours disagree.
    Unclear,
    /// Nothing can be claimed yet.
    NotYet,
}

/// The gain of the chosen parametrization against the control runs near its runs, as a share of the
/// default's elapsed: 0.2 is a run that takes a fifth less. Interval and claim hold for all looks at
/// the study together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Gain {
    /// What may be claimed.
    pub verdict: GainVerdict,
    /// The verdict's ground, in one sentence.
    pub reason: String,
    /// The estimate.
    pub share: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The level of the interval over all looks of the study's life.
    pub level: f64,
    /// Tuned runs that were compared.
    pub tuned_runs: u64,
    /// Control runs that they were compared with.
    pub control_runs: u64,
    /// The smallest gain that so many runs would have shown, with probability 0.8.
    pub detectable: Option<f64>,
    /// About so many more runs show a gain of the size of the estimate.
    pub runs_needed: Option<u64>,
    /// An e-value against no effect: 20 is what a 5 % error rate asks of one study.
    pub evidence: f64,
}

/// The effect that the runs of one chosen parametrization show against the control runs near them.
/// Logarithms are of the default's elapsed over the chosen parametrization's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Effect {
    /// The number of its epoch in the study.
    pub epoch: i32,
    /// The chosen parametrization, as JSON with sorted names.
    pub parametrization: String,
    /// Which comparison of the study's life this is, from 1. Comparison k has `1 / (k (k + 1))` of the
    /// error rate, which sums to 1.
    pub number: u64,
    /// Control runs with tuned runs near them.
    pub blocks: u64,
    /// Those tuned runs.
    pub tuned_runs: u64,
    /// None where all runs of one side were cut short.
    pub log_ratio: Option<f64>,
    /// The lower end of `log_ratio`'s interval; none where so few blocks bound nothing.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Of `log_ratio`; none where so few blocks tell none.
    pub standard_error: Option<f64>,
    /// Against no effect, in the direction that the runs show. Its share of the study's error rate is
    /// taken off: `ln 20` is what the error rate asks for.
    pub log_evidence: f64,
    /// The share of the default's time that would have been claimed with probability 0.8.
    pub detectable: Option<f64>,
    /// So many blocks in all show an effect like this one with probability 0.8.
    pub blocks_needed: Option<f64>,
    /// Node-hours that the default would have taken for the chosen runs.
    pub default_hours: f64,
    /// Node-hours saved by the chosen runs.
    pub saved: f64,
    /// Node-hours of the control runs beyond what the chosen parametrization would have taken.
    pub controls: f64,
    /// The variance of `saved` less `controls`.
    pub net_variance: Option<f64>,
    /// Node-hours a month at the rate of the last 30 days; none before a week has passed.
    pub a_month: Option<f64>,
    /// The start of the last run, microseconds since 1970.
    pub last: i64,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Different work under one name.
    Mixed,
    /// A parametrization under which jobs fail.
    Quarantine,
    /// The epoch was opened because the one before no longer held.
    Drift,
    /// The application has another value in force than runs are given.
    Ineffective,
}

/// What a person should know of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// What is so, with its figures.
    pub what: String,
    /// What to do, with a command where there is one.
    #[serde(rename = "do")]
    pub action: String,
    /// The parametrization it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::BTreeMap<String, Object>>))]
    pub parametrization: Option<Parametrization>,
}
