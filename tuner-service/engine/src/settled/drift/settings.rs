//! The settings of drift: when a settled epoch ends, and how the next one begins.

use serde::{Deserialize, Serialize};

use io_autotune_search::checks::MAX_DESIGN_POINTS;
use io_autotune_search::checks::{SettingsError, positive, whole};

/// The changes that end a settled epoch (`drift.rs`), and the runs of the next one
/// (`warm_start.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriftSettings {
    /// True if changes are looked for.
    pub enabled: bool,
    /// The smallest relevant change of tuned against control runs: 0.1 is 10 % more or less.
    pub advantage: f64,
    /// The smallest relevant change of the elapsed of tuned runs: 0.1 is 10 % more or less.
    pub level: f64,
    /// The mean number of false alarms in 1000 settled runs.
    pub false_alarms: f64,
    /// The number of settled runs that must count before a change is believed.
    pub rest: u32,
    /// The number of the parent epoch's best parametrizations that are run again first.
    pub inherited: u32,
    /// The number of points of the Latin hypercube that follows.
    pub design_points: u32,
    /// The maximum number of design and search runs together, if the study's `budget` is not less.
    pub budget: u32,
}

impl Default for DriftSettings {
    fn default() -> Self {
        DriftSettings {
            enabled: true,
            advantage: 0.1,
            level: 0.3,
            false_alarms: 0.1,
            rest: 50,
            inherited: 5,
            design_points: 3,
            budget: 30,
        }
    }
}

impl DriftSettings {
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        positive("drift.advantage", self.advantage, 10.0, ", as a share")?;
        positive("drift.level", self.level, 10.0, ", as a share")?;
        positive(
            "drift.false_alarms",
            self.false_alarms,
            100.0,
            " in 1000 settled runs",
        )?;
        whole("drift.rest", self.rest, 2, 1_000_000)?;
        whole("drift.inherited", self.inherited, 1, MAX_DESIGN_POINTS)?;
        whole(
            "drift.design_points",
            self.design_points,
            2,
            MAX_DESIGN_POINTS,
        )?;
        whole("drift.budget", self.budget, 2, 100_000)
    }
}
