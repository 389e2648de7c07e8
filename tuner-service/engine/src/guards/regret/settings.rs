//! How much a study may cost its users.

use serde::{Deserialize, Serialize};

use crate::checks::{SettingsError, positive, probability};

/// How much a study may lose to parametrizations that are slower than the default, in runs of the
/// default: the larger of `default_runs` and `share` of the epoch's runs. Exploration pauses while
/// the expected regret (`regret.rs`) has reached it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegretSettings {
    /// So many runs of the default may be lost however few runs there are; above 0.
    pub default_runs: f64,
    /// The share of the epoch's runs that may be lost, from 0 to 1.
    pub share: f64,
    /// The slowdown allowed to an exploring run: what is predicted to take more than so many times the default
    /// is not tried, and a job explores only if its time limit leaves room for it (`room.rs`); above 0.
    /// The papers' methods drop points of their design for it, `default` whatever it finds.
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

/// The largest number of default runs, and of times the default.
const MOST: f64 = 1e6;

impl RegretSettings {
    /// Nothing is held back: for whoever asks to explore, and for the papers' methods as published.
    pub const UNBOUNDED: RegretSettings = RegretSettings {
        default_runs: MOST,
        share: 1.0,
        design_most: MOST,
    };

    /// Whether everything is tried, however slow it is predicted to be.
    pub(crate) fn drops_nothing(&self) -> bool {
        self.design_most >= MOST
    }

    /// What may be lost in an epoch of so many runs, in runs of the default.
    pub fn bound(&self, runs: u64) -> f64 {
        self.default_runs.max(self.share * runs as f64)
    }

    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        positive(
            "loss.default_runs",
            self.default_runs,
            MOST,
            " runs of the default",
        )?;
        probability("loss.share", self.share)?;
        positive(
            "loss.design_most",
            self.design_most,
            MOST,
            " times the default",
        )
    }
}
