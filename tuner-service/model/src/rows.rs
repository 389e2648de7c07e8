//! What the API and the store have in common as it is.

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
    /// It is in force before; null: until it is unpinned.
    pub until: Option<Timestamp>,
}

/// A line of the audit: who changed what, when and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// Its number.
    pub audit_id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// `pin`, `unpin`, `reset`, `warm-start`, `accept`, `freeze`, `resume`, `off`, `on`, `undo`,
    /// `export`, `import`, `retention`, `objective`, `map-cluster` or `search-again`.
    pub action: String,
    /// The study; null: those of an order, or none.
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
    /// The line that it has undone.
    pub undoes: Option<i64>,
    /// The line that has undone it.
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
    /// The application that they have now.
    pub application: String,
    /// What the application is called in full, if its name is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// The job's name. Absent: the user named the application, or the name is not known.
    pub job_name: Option<String>,
    /// The job's comment, if the rule that decided has read it.
    pub comment: Option<String>,
    /// How many runs there were.
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
    /// How long it was suspended, in seconds, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_seconds: Option<u64>,
    /// Its time limit in seconds, if it has one and the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// The charged account, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whose job it is, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its nodes, if the source has them, as Slurm lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_list: Option<String>,
}

/// What retention has removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Removed {
    /// Runs of epochs that are over.
    pub runs: u64,
    /// Their judgements.
    pub judgements: u64,
    /// Reports of these and of the trimmed runs.
    pub reports: u64,
    /// Outcome records of the removed runs.
    pub outcomes: u64,
    /// Runs that stay without their reports and without what they were decided from.
    pub trimmed: u64,
    /// The earliest start of all these runs, if there are any.
    pub from: Option<Timestamp>,
    /// The latest.
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
    /// Whether it is nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.runs == 0 && self.trimmed == 0
    }
}
