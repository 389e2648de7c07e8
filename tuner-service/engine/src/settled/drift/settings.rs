//! When a settled epoch no longer holds, and what the next one takes from it.

use serde::{Deserialize, Serialize};

use crate::checks::MAX_DESIGN_POINTS;
use crate::checks::{SettingsError, positive, whole};

/// Which changes end a settled epoch (`drift.rs`), and how the epoch that they open is run
/// (`inherit.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriftSettings {
    /// Whether changes are looked for at all.
    pub enabled: bool,
    /// The smallest change of interest of what tuned runs take against control runs: 0.1 is 10 % more, or as
    /// much less.
    pub advantage: f64,
    /// The smallest change of interest of what tuned runs take, whatever control runs do.
    pub level: f64,
    /// How many false alarms there may be in 1000 runs of the settled phase, on average.
    pub false_alarms: f64,
    /// So many runs of the settled phase have to count before a change is believed, so that epochs do not follow
    /// each other without rest.
    pub rest: u32,
    /// So many of the parametrizations that the parent ranked best are run again first.
    pub inherited: u32,
    /// So many points of a Latin hypercube follow.
    pub design_points: u32,
    /// How many design and search runs there are together, where `budget` of the study is not less.
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
