//! Rows that the API shows as the store has them.

use std::ops::AddAssign;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::space::Parametrization;

/// A parametrization that an admin or the study's owner has fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pin {
    /// The parametrization of every run.
    pub parametrization: Parametrization,
    /// The uid that pinned it.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// When it was pinned.
    pub at: Timestamp,
    /// Why.
    pub why: String,
    /// The pin is in force before this time; null: until it is unpinned.
    pub until: Option<Timestamp>,
}

/// A line of the audit: who changed what, when and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// The line's number.
    pub audit_id: i64,
    /// When the action was taken.
    pub at: Timestamp,
    /// The uid of the user who took it.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// `pin`, `unpin`, `reset`, `warm-start`, `accept`, `freeze`, `resume`, `off`, `on`, `undo`,
    /// `export`, `import`, `retention`, `objective`, `map-cluster`, `search-again` or `forget`.
    pub action: String,
    /// The study; null if the action is an order on several studies, or concerns none.
    pub study_id: Option<i64>,
    /// The study's cluster, where the service has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The study's application.
    pub application: Option<String>,
    /// The study's owner.
    pub owner_uid: Option<u32>,
    /// The action's parameters.
    pub detail: Value,
    /// The number of the line that this one has undone.
    pub undoes: Option<i64>,
    /// The number of the line that has undone this one.
    pub undone_by: Option<i64>,
    /// Why.
    pub why: String,
}

/// Runs of one application with the same job name and comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobName {
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The application that these runs have now.
    pub application: String,
    /// The application's full name, if its name does not have all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// The job's name. Absent: the user named the application, or the name is not known.
    pub job_name: Option<String>,
    /// The job's comment, if the rule that named the application has read it.
    pub comment: Option<String>,
    /// The number of these runs.
    pub runs: i64,
}

/// An outcome record: how one launch of a job ended, by Slurm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Slurm's job id.
    pub job_id: u32,
    /// Slurm's job state, such as `COMPLETED`; `REQUEUED` for a requeued launch.
    pub state: String,
    /// The exit code and signal, such as `0:0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// The restart count, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<u32>,
    /// When the launch began, by slurmctld's clock; absent for a job that never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended, by slurmctld's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Seconds for which the launch was suspended, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_seconds: Option<u64>,
    /// The time limit in seconds, if the job has one and the source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// The charged account, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The uid of the job's owner, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The job's nodes, as Slurm lists them, if the source has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_list: Option<String>,
}

/// The rows that retention has removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Removed {
    /// Runs of epochs that are over.
    pub runs: u64,
    /// Judgements of these runs.
    pub judgements: u64,
    /// Reports of these and of the trimmed runs.
    pub reports: u64,
    /// Outcome records of the removed runs.
    pub outcomes: u64,
    /// Runs that stay without their reports and without the inputs of their decisions.
    pub trimmed: u64,
    /// The earliest start of all these runs, if there are any.
    pub from: Option<Timestamp>,
    /// The latest start.
    pub to: Option<Timestamp>,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, more: Self) {
        self.runs += more.runs;
        self.judgements += more.judgements;
        self.reports += more.reports;
        self.outcomes += more.outcomes;
        self.trimmed += more.trimmed;
        self.from = [self.from, more.from].into_iter().flatten().min();
        self.to = self.to.max(more.to);
    }
}

impl Removed {
    /// Returns true if nothing was removed or trimmed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.runs == 0 && self.trimmed == 0
    }
}
