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
    /// The number of studies that judge it. Those of the user whose study found it do not.
    pub studies: u64,
    /// The number of these that gain: the whole interval of each is below 1.
    pub gain: u64,
    /// The smallest ratio that one of them expects.
    pub smallest: f64,
    /// The largest ratio that one of them expects.
    pub largest: f64,
    /// The most that any of them may lose: the largest upper end of their intervals.
    pub worst: f64,
    /// Those that are expected to lose, the largest expected loss first.
    pub losers: Vec<Judge>,
}

impl SiteSetting {
    /// A setting as these studies judge it; `None` if there is no judge.
    #[must_use]
    pub fn judged(
        values: Parametrization,
        users: u64,
        ratio: Ratio,
        judges: &[Judge],
    ) -> Option<Self> {
        let means = judges.iter().map(|one| one.ratio.mean);
        let ends = judges.iter().map(|one| one.ratio.high);
        let lose = judges.iter().filter(|one| one.ratio.mean > 1.0);
        let mut losers: Vec<Judge> = lose.copied().collect();
        losers.sort_by(|one, other| other.ratio.mean.total_cmp(&one.ratio.mean));
        Some(SiteSetting {
            values,
            users,
            ratio,
            studies: judges.len() as u64,
            gain: ends.clone().filter(|end| *end < 1.0).count() as u64,
            smallest: means.clone().min_by(f64::total_cmp)?,
            largest: means.max_by(f64::total_cmp)?,
            worst: ends.max_by(f64::total_cmp)?,
            losers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gains_and_who_loses_is_counted_once() {
        let judge = |study_id, mean, high| Judge {
            study_id,
            ratio: Ratio {
                mean,
                low: 0.5 * mean,
                high,
            },
        };
        let judges = [
            judge(1, 0.6, 0.8),
            judge(2, 0.9, 1.1),
            judge(3, 1.05, 1.2),
            judge(4, 1.5, 2.0),
        ];
        let together = judges[1].ratio;
        let judged = |of| SiteSetting::judged(Parametrization::default(), 3, together, of);
        let found = judged(&judges).unwrap();
        assert_eq!((found.studies, found.gain), (4, 1));
        assert_eq!(
            (found.smallest, found.largest, found.worst),
            (0.6, 1.5, 2.0)
        );
        let losers: Vec<i64> = found.losers.iter().map(|one| one.study_id).collect();
        assert_eq!(losers, [4, 3]);
        assert_eq!(judged(&[]), None);
    }
}
