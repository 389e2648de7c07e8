//! The setting that the studies of a site have in common, with what each of them expects of it.

use serde::{Deserialize, Serialize};

use crate::space::Parametrization;

/// Elapsed over the default's, as runs let one expect it; below 1 is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// The expected ratio.
    pub mean: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a study expects of a site's setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// The study.
    pub study_id: i64,
    /// The ratio that it expects.
    pub ratio: Ratio,
}

/// The setting that the studies of an accelerator at a site have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SiteSetting {
    /// The values that differ from the accelerator's default.
    pub values: Parametrization,
    /// The number of users whose studies find it harmless, besides the user whose study found it.
    pub users: u64,
    /// The ratio for one more application. The spread between users is part of the interval.
    pub ratio: Ratio,
    /// The studies that judge it, by number. Those of the user whose study found it do not judge.
    pub judges: Vec<Judge>,
}

impl SiteSetting {
    /// The number of studies that gain: the whole interval of each is below 1.
    #[must_use]
    pub fn gain(&self) -> usize {
        let gains = self.judges.iter().filter(|one| one.ratio.high < 1.0);
        gains.count()
    }

    /// The studies that are expected to lose, the largest expected loss first.
    #[must_use]
    pub fn lose(&self) -> Vec<Judge> {
        let lose = self.judges.iter().filter(|one| one.ratio.mean > 1.0);
        let mut lose: Vec<Judge> = lose.copied().collect();
        lose.sort_by(|one, other| other.ratio.mean.total_cmp(&one.ratio.mean));
        lose
    }

    /// The smallest and the largest ratio that a study expects.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        let means = self.judges.iter().map(|one| one.ratio.mean);
        let smallest = means.clone().min_by(f64::total_cmp)?;
        Some((smallest, means.max_by(f64::total_cmp)?))
    }

    /// The most that any study may lose: the largest upper end of their intervals.
    #[must_use]
    pub fn worst(&self) -> Option<f64> {
        let ends = self.judges.iter().map(|one| one.ratio.high);
        ends.max_by(f64::total_cmp)
    }
}
