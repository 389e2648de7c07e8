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
    /// Its place in the epoch; only the order matters.
    pub ordinal: i64,
    /// Whether it was a control run; otherwise it had the recommended parametrization.
    pub control: bool,
    /// Seconds.
    pub elapsed: f64,
}

/// What drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// The tuned runs against the control runs.
    Advantage,
    /// The tuned runs, and the control runs as well if they are enough to tell.
    Level,
}

/// A drift. `Display` is one sentence. The times and shares are medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// What drifted.
    pub changed: Changed,
    /// The [`SettledRun::ordinal`] of the estimated first run after the change.
    pub since: i64,
    /// Seconds of tuned runs before.
    pub tuned_before: f64,
    /// Seconds of tuned runs since.
    pub tuned_after: f64,
    /// The number of tuned runs before.
    pub tuned_runs_before: u64,
    /// The number of tuned runs since.
    pub tuned_runs_after: u64,
    /// Tuned runs' elapsed over that of control runs among them, before; none without control runs.
    pub share_before: Option<f64>,
    /// The same ratio since.
    pub share_after: Option<f64>,
    /// The number of control runs before.
    pub controls_before: u64,
    /// The number of control runs since.
    pub controls_after: u64,
    /// The test statistic, max over k of |z(k)|.
    pub statistic: f64,
    /// The threshold h that it reached.
    pub threshold: f64,
}

impl Drift {
    /// Whether the tuned runs are not faster than the control runs since the change.
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
