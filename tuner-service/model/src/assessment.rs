//! The assessment of a study: its gain with the evidence, and its findings. The engine makes one
//! with each verdict; the API, the command line and the report only show it.

use serde::{Deserialize, Serialize};

use crate::objective::Objective;
use crate::rule::Standing;
use crate::space::Parametrization;

/// The assessment of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Assessment {
    /// The number of the epoch of `gain` and `findings`.
    pub epoch: i32,
    /// The gain of the parametrization that the epoch has chosen.
    pub gain: Gain,
    /// The rest of what screens show of the epoch. Absent if a version before 0.4 made the
    /// assessment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<Overview>,
    /// The largest estimate so far of what exploring has cost the epoch, in runs of the default. A
    /// later estimate may be lower; this number never falls.
    #[serde(default)]
    pub exploring_cost: f64,
    /// The effect of each comparison in the study's life, at most one for an epoch.
    pub effects: Vec<Effect>,
    /// The findings of the epoch.
    pub findings: Vec<Finding>,
    /// The objective whose gain this is.
    #[serde(default, skip_serializing_if = "Objective::is_elapsed")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub objective: Objective,
    /// How elapsed changed, if the objective is another: for the parametrization that is best by
    /// the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<ElapsedBeside>,
    /// The gain that the study's runs show together with those of the studies that it shares with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedGain>,
    /// Estimates without the noise that the study has in common with other runs. Absent while
    /// nothing is known of other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaned: Option<CleanedEstimates>,
}

/// The numbers that screens show of an epoch beside its gain, stored by its last verdict, so that
/// lists of studies load no epoch's runs and fit no surrogate. Means are in the history's numbers, which
/// are reciprocals if the objective is maximised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overview {
    /// The standing of the epoch, which decides on its next run.
    pub standing: Standing,
    /// The number of parametrizations that were tested.
    pub tested: u64,
    /// The counted runs of the default; absent before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Elapsed>,
    /// The recommended parametrization; absent before any ran twice, and where nothing can be won.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended: Option<Recommended>,
    /// The expected regret, in runs of the default.
    pub regret: f64,
    /// The regret budget, in runs of the default.
    pub regret_budget: f64,
}

/// The parametrization that an epoch recommends, with the mean of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recommended {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The number of its counted runs, at least 2.
    pub n: u64,
    /// The mean of these runs, raised by runs that the time limit ended.
    pub mean: f64,
    /// The standard error of their mean.
    pub standard_error: f64,
}

/// The mean of some runs' elapsed, or of another objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Elapsed {
    /// The number of runs.
    pub n: u64,
    /// The mean, in seconds or in the objective's unit.
    pub mean: f64,
    /// The ends of the mean's 95 % interval, symmetric on the log scale, if there are at least two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

impl Elapsed {
    /// The same mean in the objective's own numbers. A maximised objective enters a history as its
    /// reciprocal; this undoes it.
    #[must_use]
    pub fn told(self, objective: &Objective) -> Self {
        Elapsed {
            n: self.n,
            mean: objective.told(self.mean),
            interval: self.interval.map(|(low, high)| {
                let (low, high) = (objective.told(low), objective.told(high));
                (low.min(high), low.max(high))
            }),
        }
    }
}

/// The runs that a gain compares, without those that their time limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Compared {
    /// The control runs, which have the default.
    pub control: Elapsed,
    /// The tuned runs.
    pub tuned: Elapsed,
    /// True if they were made before the search had ended, for its proof: the tuned runs had the
    /// best by then, and not what was chosen in the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_choice: bool,
}

/// Estimates of the objective without the noise that is explained by how other runs fared at the
/// same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CleanedEstimates {
    /// The share of the noise's variance that other runs explain, from 0 to 1.
    pub share: f64,
    /// The estimate for the default.
    pub default: Estimate,
    /// The estimate for the recommended parametrization, if there is one.
    pub recommended: Option<Estimate>,
}

/// An estimate of a typical run, with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Estimate {
    /// The estimate.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// The same estimate in the objective's own numbers. A maximised objective enters a history as
    /// its reciprocal; this undoes it.
    #[must_use]
    pub fn told(self, objective: &Objective) -> Self {
        let [mean, low, high] = [self.mean, self.low, self.high].map(|one| objective.told(one));
        Estimate {
            mean,
            low: low.min(high),
            high: low.max(high),
        }
    }
}

/// How the elapsed time of the parametrization that is best by another objective compares with the
/// default's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ElapsedBeside {
    /// The parametrization that is best by the study's objective.
    pub parametrization: Parametrization,
    /// The share by which its runs take longer: 0.1 is a tenth more time.
    pub longer: f64,
    /// The lower end of the interval of `longer`, which holds for all looks together.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The number of runs of that parametrization.
    pub runs: u64,
    /// The number of runs of the default.
    pub default_runs: u64,
    /// True if its runs surely take longer. It is not recommended then.
    pub vetoed: bool,
}

/// The gain of several users together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedGain {
    /// The site's rule by which they share: `group G` or `account A`.
    pub by: String,
    /// The gain. It holds also without any single one of these users.
    pub gain: Gain,
    /// The number of the comparison, from 1. A new one begins when a study leaves. As with a
    /// study's own comparisons, comparison k gets the share `1 / (k (k + 1))` of the error rate.
    pub number: u64,
    /// The numbers of the studies, including this one.
    pub studies: Vec<i64>,
}

/// The claim that the interval of a gain and the node-hours allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GainVerdict {
    /// The chosen parametrization is faster than the default.
    Faster,
    /// The chosen parametrization is slower than the default.
    Slower,
    /// The difference, if any, is below 3 %.
    NoEffect,
    /// Typical runs and node-hours disagree.
    Unclear,
    /// Nothing can be claimed yet.
    NotYet,
}

impl GainVerdict {
    /// Returns true if a gain or a loss is claimed.
    pub fn is_resolved(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

/// How likely it is that more control runs will show a gain, by the study's evidence so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outlook {
    /// Nothing is known yet, or there is hardly a gain.
    #[default]
    Open,
    /// More control runs would soon show a gain.
    Promising,
    /// A gain or a loss is claimed.
    Resolved,
}

impl Outlook {
    /// The outlook by the gain of the study's own runs and by the gain together with other users'. A
    /// claim from its own runs needs no more control runs, even without a claim together.
    #[must_use]
    pub fn of(own: Option<&Gain>, shared: Option<&Gain>) -> Self {
        let own = own.map(Gain::outlook).unwrap_or_default();
        match shared {
            Some(shared) if own != Outlook::Resolved => shared.outlook_together(),
            _ => own,
        }
    }
}

/// The gain of what is recommended over control runs, as a share of the default's elapsed: 0.2 is a
/// fifth less time. Interval and verdict hold for all looks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Gain {
    /// The claim.
    pub verdict: GainVerdict,
    /// The reason for the claim, in one sentence.
    pub reason: String,
    /// The estimate.
    pub share: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// The confidence level of the interval, over all looks at the study.
    pub level: f64,
    /// The tuned runs that were compared.
    pub tuned_runs: u64,
    /// The control runs that they were compared with.
    pub control_runs: u64,
    /// The smallest gain that these runs would have shown with probability 0.8.
    pub detectable: Option<f64>,
    /// About how many more runs would show a gain of the estimated size.
    pub runs_needed: Option<u64>,
    /// An e-value against no effect: 20 corresponds to a 5 % error rate for one study.
    pub evidence: f64,
    /// The elapsed times of the compared runs, from the history. Absent until both groups have
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

impl Gain {
    /// The least [`evidence`](Gain::evidence) of a promising gain: half of what a study's first
    /// comparison begins with.
    const PROMISING: f64 = 0.2;

    /// The outlook of this gain: whether more control runs are worth their time.
    pub fn outlook(&self) -> Outlook {
        if self.verdict.is_resolved() {
            Outlook::Resolved
        } else if self.share.is_some_and(|share| share > 0.0) && self.evidence >= Self::PROMISING {
            Outlook::Promising
        } else {
            Outlook::Open
        }
    }

    /// The outlook of a gain of several users. The product of their evidence scatters more than one
    /// user's, so the gain counts as promising as long as the typical user has a gain and nothing
    /// is claimed.
    pub fn outlook_together(&self) -> Outlook {
        if self.verdict.is_resolved() {
            Outlook::Resolved
        } else if self.share.is_none_or(|share| share > 0.0) {
            Outlook::Promising
        } else {
            Outlook::Open
        }
    }
}

/// The effect of what an epoch recommended, compared with its control runs. Logarithms are of the
/// default's elapsed over the recommended parametrization's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Effect {
    /// The number of its epoch in the study.
    pub epoch: i32,
    /// The parametrization recommended last, as JSON with sorted names.
    pub parametrization: String,
    /// The number of the comparison in the study's life, from 1. Comparison k gets the share
    /// `1 / (k (k + 1))` of the error rate; the shares sum to 1.
    pub number: u64,
    /// The control runs that were compared.
    pub blocks: u64,
    /// The tuned runs that they were compared with.
    pub tuned_runs: u64,
    /// The estimated logarithm of the ratio; none if all runs of one side are censored.
    pub log_ratio: Option<f64>,
    /// The lower end of its interval; none if there are too few runs.
    pub low: Option<f64>,
    /// The upper end of its interval; none if there are too few runs.
    pub high: Option<f64>,
    /// The standard error of `log_ratio`; none if there are too few runs.
    pub standard_error: Option<f64>,
    /// The log e-value against no effect, in the observed direction, corrected for the comparison's
    /// share of the error rate: `ln 20` corresponds to 5 %.
    pub log_evidence: f64,
    /// The smallest gain, as a share of the default's time, shown with probability 0.8.
    pub detectable: Option<f64>,
    /// The control runs, in all, that would show an effect like this one with probability 0.8.
    pub blocks_needed: Option<f64>,
    /// The node-hours of the tuned runs, had they run with the default.
    pub default_hours: f64,
    /// Node-hours saved by the chosen runs.
    pub saved: f64,
    /// The node-hours of the control runs beyond those that the chosen parametrization needs.
    pub controls: f64,
    /// The variance of `saved` less `controls`; none under two control runs.
    pub net_variance: Option<f64>,
    /// The node-hours saved per month, at the rate of the last 30 days; none in the first week.
    pub a_month: Option<f64>,
    /// The start of the last run, in microseconds since 1970.
    pub last: i64,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Mixed work: one name for different work.
    Mixed,
    /// A quarantined parametrization: jobs fail under it.
    Quarantine,
    /// The epoch was opened because of a drift.
    Drift,
    /// A parameter without effect: the application overrides it.
    Ineffective,
    /// No parametrization can make the runs faster.
    NothingToWin,
    /// The parametrization that is best by the study's objective makes elapsed worse, so it is not
    /// recommended.
    ElapsedWorse,
    /// No run of the epoch has reported the study's objective.
    Unreported,
    /// The default does not complete: the search goes on without a baseline.
    DefaultLost,
    /// A kind that this version does not know. The finding's text says what it is.
    #[serde(other)]
    Other,
}

/// A finding: something that a person should know about a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// The finding, with its figures.
    pub what: String,
    /// The action to take, with a command if there is one.
    #[serde(rename = "do")]
    pub action: String,
    /// The parametrization concerned, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parametrization: Option<Parametrization>,
}

impl std::fmt::Display for ElapsedBeside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: f64| 100.0 * share;
        let ends = format!("({:.1} .. {:.1} %)", percent(self.low), percent(self.high));
        let runs = format!("{} and {} runs", self.runs, self.default_runs);
        if self.vetoed {
            let longer = percent(self.longer);
            write!(f, "elapsed would be {longer:.1} % longer {ends} by {runs}")
        } else if self.high < 0.0 {
            let shorter = percent(-self.longer);
            write!(f, "elapsed is {shorter:.1} % shorter {ends} by {runs}")
        } else {
            let longer = percent(self.longer);
            write!(
                f,
                "elapsed is not surely longer: {longer:.1} % {ends} by {runs}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_a_kind_that_only_a_newer_version_knows_is_read_and_keeps_its_text() {
        let newer = r#"{"kind": "of_next_year", "what": "It is so.", "do": "Look at it."}"#;
        let found: Finding = serde_json::from_str(newer).unwrap();
        assert_eq!(
            (found.kind, &*found.what),
            (FindingKind::Other, "It is so.")
        );
    }
}
