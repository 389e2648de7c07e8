//! A change in a settled epoch.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::seconds;

/// How many of the latest runs of the settled phase are looked at, at most.
pub const DRIFT_RUNS: usize = 1000;

/// A run of the settled phase that counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettledRun {
    /// Its place in the epoch: only the order matters.
    pub ordinal: i64,
    /// Whether it was a control run, and not one of the recommended parametrization.
    pub control: bool,
    /// Seconds.
    pub elapsed: f64,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Tuned runs against control runs.
    Advantage,
    /// Tuned runs, and control runs likewise, as far as they tell.
    Level,
}

/// A change in a settled epoch. `Display` is one plain sentence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// What has changed.
    pub changed: Changed,
    /// The [`SettledRun::ordinal`] of the first run after the change, as near as can be told.
    pub since: i64,
    /// What tuned runs took before, seconds, the median.
    pub tuned_before: f64,
    /// What they take since.
    pub tuned_after: f64,
    /// How many tuned runs there are before.
    pub tuned_runs_before: u64,
    /// How many since.
    pub tuned_runs_after: u64,
    /// What tuned runs took before as a share of what the control runs among them took, the median; none
    /// without control runs.
    pub share_before: Option<f64>,
    /// That share since.
    pub share_after: Option<f64>,
    /// How many control runs there are before.
    pub controls_before: u64,
    /// How many since.
    pub controls_after: u64,
    /// The statistic, max over k of |z(k)|.
    pub statistic: f64,
    /// What it has reached, h.
    pub threshold: f64,
}

impl Drift {
    /// Whether tuned runs are not quicker than control runs since the change.
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
