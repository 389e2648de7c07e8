//! The regret budget of a study.

use serde::{Deserialize, Serialize};

use crate::checks::{SettingsError, positive, probability};
use crate::math::Portable;

/// The regret budget in runs of the default: `default_runs`, and `share` of the epoch's runs.
/// Exploration pauses when the expected regret (`regret.rs`) reaches it. It grows with every run, so
/// that a pause after one terrible run is as long as that run was slow, whenever it came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegretSettings {
    /// The budget of an epoch without runs, in runs of the default; above 0.
    pub default_runs: f64,
    /// The growth of the budget with each run of the epoch, in runs of the default, from 0 to 1.
    pub share: f64,
    /// The slowdown allowed to an exploring run, over the default; above 0. A job explores only if
    /// its time limit leaves room for it (`time_limit.rs`). What is predicted to be slower than
    /// [`admitted`](RegretSettings::admitted) is not tried: the papers' methods drop such points of
    /// their design, `surrogate-genetic` all such points.
    pub design_most: f64,
}

impl Default for RegretSettings {
    fn default() -> Self {
        RegretSettings {
            default_runs: 2.0,
            share: 0.1,
            design_most: 2.0,
        }
    }
}

const MOST: f64 = 1e6;
/// The logarithm of what is admitted, as a share of that of `design_most`: 1.5 times the default for
/// 2.0 times.
const ADMITTED: f64 = 0.585;

impl RegretSettings {
    /// A budget without limits: for exploring on request, and for the papers' methods as published.
    pub const UNBOUNDED: RegretSettings = RegretSettings {
        default_runs: MOST,
        share: 1.0,
        design_most: MOST,
    };

    /// The slowest prediction of a point that is tried, in times of the default. It is below
    /// `design_most`, because a prediction may err.
    pub fn admitted(&self) -> f64 {
        self.design_most.power(ADMITTED)
    }

    /// Returns true if every point is tried, also with a slow prediction.
    pub fn drops_nothing(&self) -> bool {
        self.design_most >= MOST
    }

    /// The budget after this number of runs, in runs of the default.
    pub fn bound(&self, runs: u64) -> f64 {
        // A share that is no number adds nothing.
        self.default_runs + f64::max(0.0, self.share * runs as f64)
    }

    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        positive(
            "regret.default_runs",
            self.default_runs,
            MOST,
            " runs of the default",
        )?;
        probability("regret.share", self.share)?;
        positive(
            "regret.design_most",
            self.design_most,
            MOST,
            " times the default",
        )
    }
}
