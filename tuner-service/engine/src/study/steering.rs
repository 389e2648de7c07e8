//! What decides on a run before the search does: the request, orders, and what is known of the job.

use io_autotune_model::space::Parametrization;
use io_autotune_model::{Choice, IneffectiveParameter};
use serde::{Deserialize, Serialize};

/// What decides on a run before the search does. It is stored with the decision, so that it can be
/// replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steering {
    /// How often Slurm restarted the job.
    pub restart_count: u32,
    /// Other starts held the study until the deadline: nothing may be explored.
    pub busy: bool,
    /// The job asks to be observed, or its name says nothing of the program.
    pub observed: bool,
    /// The study is pinned to this parametrization.
    pub pin: Option<Parametrization>,
    /// An admin or the owner declared its runs to be one application's.
    pub accepts_mixed: bool,
    /// The job's time limit, if known.
    pub limit: Option<KnownLimit>,
    /// Parameters without effect: they are held at their defaults.
    #[serde(default, alias = "unheeded")]
    pub ineffective: Vec<IneffectiveParameter>,
    /// The catalogue cannot deliver the choice: it has left the epoch's space.
    pub undeliverable: bool,
    /// An order: nothing is applied.
    #[serde(default)]
    pub off: bool,
    /// An order: nothing is explored.
    #[serde(default)]
    pub frozen: bool,
    /// What decided on the accelerator, which the reason tells.
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

    /// Whether the job may not explore, whatever the search would do.
    pub(crate) fn bars_exploring(&self) -> bool {
        self.restart_count > 0 || self.busy || self.frozen
    }
}

/// A job's time limit, and who told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLimit {
    /// The limit in seconds.
    pub seconds: u64,
    /// Who told it.
    pub told_by: ToldBy,
}

/// Who told a job's time limit.
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
