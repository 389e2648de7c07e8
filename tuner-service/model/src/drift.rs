//! Drift: a change in a settled epoch.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::seconds;

/// The most runs of the settled phase, the latest, that are tested for drift.
pub const DRIFT_RUNS: usize = 1000;

/// A counted run of the settled phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettledRun {
    /// The run's place in the epoch. Only the order matters.
    pub ordinal: i64,
    /// True for a control run. Other runs had the recommended parametrization.
    pub control: bool,
    /// Elapsed, in seconds.
    pub elapsed: f64,
}

/// The quantity that drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// The tuned runs against the control runs.
    Advantage,
    /// The tuned runs, and also the control runs if there are enough of them to tell.
    Level,
}

/// A drift. `Display` is one sentence. The times and shares are medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The quantity that drifted.
    pub changed: Changed,
    /// The [`SettledRun::ordinal`] of the estimated first run after the change.
    pub since: i64,
    /// The elapsed of tuned runs before the change, in seconds.
    pub tuned_before: f64,
    /// The elapsed of tuned runs since the change, in seconds.
    pub tuned_after: f64,
    /// The number of tuned runs before the change.
    pub tuned_runs_before: u64,
    /// The number of tuned runs since the change.
    pub tuned_runs_after: u64,
    /// The elapsed of tuned runs over that of the control runs among them, before the change; none
    /// without control runs.
    pub share_before: Option<f64>,
    /// The same ratio since the change.
    pub share_after: Option<f64>,
    /// The number of control runs before the change.
    pub controls_before: u64,
    /// The number of control runs since the change.
    pub controls_after: u64,
    /// The test statistic, max over k of |z(k)|.
    pub statistic: f64,
    /// The threshold h that the statistic reached.
    pub threshold: f64,
}

impl Drift {
    /// Returns true if the tuned runs have not been faster than the control runs since the change.
    pub fn has_lost(&self) -> bool {
        self.share_after.is_some_and(|share| share >= 1.0)
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |share: Option<f64>| {
            share.map_or_else(|| "unknown".to_owned(), |share| format!("{share:.2}"))
        };
        let tuned = |f: &mut fmt::Formatter<'_>| {
            write!(
                f,
                "tuned runs took {} and take {} since (medians of {} and {} runs)",
                seconds(self.tuned_before),
                seconds(self.tuned_after),
                self.tuned_runs_before,
                self.tuned_runs_after
            )
        };
        let controls = (self.controls_before, self.controls_after);
        let against = |f: &mut fmt::Formatter<'_>| {
            write!(
                f,
                "{} of the default's time before and {} since (medians of {} and {} control runs)",
                share(self.share_before),
                share(self.share_after),
                controls.0,
                controls.1
            )
        };
        match self.changed {
            Changed::Advantage => {
                f.write_str("tuned runs took ")?;
                against(f)?;
                f.write_str("; ")?;
                tuned(f)
            }
            Changed::Level => {
                tuned(f)?;
                match controls {
                    (_, 0) | (0, _) => f.write_str("; no control run tells of the default yet"),
                    _ => {
                        f.write_str("; that was ")?;
                        against(f)
                    }
                }
            }
        }
    }
}
