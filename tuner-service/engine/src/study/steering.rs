//! The steering of a run, which decides before the search does: the request, orders, and facts
//! about the job.

use io_autotune_model::space::Parametrization;
use io_autotune_model::{Choice, IneffectiveParameter, OverBudget};
use serde::{Deserialize, Serialize};

/// The steering of a run, which decides before the search does. It is stored with the decision, so
/// that the decision can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steering {
    /// The number of times that Slurm restarted the job.
    pub restart_count: u32,
    /// True if other starts held the study until the deadline: nothing may be explored.
    pub busy: bool,
    /// True if the job asks to be observed, or if its name says nothing about the program.
    pub observed: bool,
    /// The parametrization to which the study is pinned.
    pub pin: Option<Parametrization>,
    /// True if an admin or the owner declared the study's runs to be one application's.
    pub accepts_mixed: bool,
    /// The job's time limit, if known.
    pub limit: Option<KnownLimit>,
    /// Parameters without effect, which are frozen at their defaults.
    #[serde(default, alias = "unheeded")]
    pub ineffective: Vec<IneffectiveParameter>,
    /// True if the catalogue cannot deliver the choice any more, because it has left the epoch's
    /// space.
    pub undeliverable: bool,
    /// True if an order turns tuning off: nothing is applied.
    #[serde(default)]
    pub off: bool,
    /// True if an order freezes the study: nothing is explored.
    #[serde(default)]
    pub frozen: bool,
    /// The budget for exploring that has no room for the run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<OverBudget>,
    /// The setting that an admin made the site's default, unless the epoch began from what it took
    /// from its parent or from another study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_default: Option<Parametrization>,
    /// The choice of the accelerator, which the reason states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
}

impl Steering {
    /// The job's time limit in seconds, if known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no limit is that long")]
    pub fn limit_seconds(&self) -> Option<f64> {
        self.limit.map(|limit| limit.seconds as f64)
    }

    /// Returns true if the job may not explore, whatever the search would do.
    pub(crate) fn bars_exploring(&self) -> bool {
        self.restart_count > 0 || self.busy || self.frozen
    }
}

/// A job's time limit, with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLimit {
    /// The limit in seconds.
    pub seconds: u64,
    /// The source.
    pub told_by: ToldBy,
}

/// The source of a job's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The node, at the start.
    Start,
    /// `squeue`.
    Squeue,
    /// Slurm, about the study's latest run.
    LatestRun,
}
