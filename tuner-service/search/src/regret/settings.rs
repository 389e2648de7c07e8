//! The regret budget of a study.

use serde::{Deserialize, Serialize};

use crate::checks::{SettingsError, positive, probability};

/// The regret budget in runs of the default: the larger of `default_runs` and `share` of the
/// epoch's runs. Exploration pauses when the expected regret (`regret.rs`) reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegretSettings {
    /// The budget of an epoch with few runs, in runs of the default; above 0.
    pub default_runs: f64,
    /// The budget as a share of the epoch's runs, from 0 to 1.
    pub share: f64,
    /// The slowdown allowed to an exploring run, over the default; above 0. Slower predictions are
    /// not tried, and a job explores only if its time limit leaves room (`time_limit.rs`). The
    /// papers' methods drop such design points; `surrogate-genetic` drops all such points.
    pub design_most: f64,
}

impl Default for RegretSettings {
    fn default() -> Self {
        RegretSettings {
            default_runs: 3.0,
            share: 0.1,
            design_most: 2.0,
        }
    }
}

const MOST: f64 = 1e6;

impl RegretSettings {
    /// A budget without limits: for exploring on request, and for the papers' methods as published.
    pub const UNBOUNDED: RegretSettings = RegretSettings {
        default_runs: MOST,
        share: 1.0,
        design_most: MOST,
    };

    /// Returns true if every point is tried, also with a slow prediction.
    pub fn drops_nothing(&self) -> bool {
        self.design_most >= MOST
    }

    /// The budget after this number of runs, in runs of the default.
    pub fn bound(&self, runs: u64) -> f64 {
        self.default_runs.max(self.share * runs as f64)
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
