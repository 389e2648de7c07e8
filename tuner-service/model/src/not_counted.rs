//! The reasons why a run does not count: a closed list, so that runs can be selected, summed up and
//! watched by reason.

use serde::{Deserialize, Serialize};

use crate::text::with_table;
use crate::word_enum;

/// Why a run that has ended does not count for any parametrization.
///
/// The sentence of its verdict has the particulars, such as which step was missing on which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotCountedBecause {
    /// The job failed, or one of its steps did.
    Failed,
    /// The job ran out of memory.
    OutOfMemory,
    /// The job was cancelled.
    Cancelled,
    /// The job was preempted.
    Preempted,
    /// A node of the job failed.
    NodeFailed,
    /// The job ended in another state of Slurm's, such as `REQUEUED` or `DEADLINE`.
    EndedOtherwise,
    /// The time limit ended the job, and its study's objective is not the elapsed time.
    TimedOut,
    /// The job was suspended for a while.
    Suspended,
    /// The job gave up nodes or got more while it ran.
    Resized,
    /// No node reported the run.
    NotReported,
    /// Some of a step's nodes did not report it.
    PartlyReported,
    /// No step was seen to start and end.
    NoStep,
    /// The job was never heard of again.
    Lost,
    /// Slurm could not be asked about the job, and the nodes' reports alone do not show that it went well.
    Unconfirmed,
    /// The job's name says nothing about its application.
    NoName,
    /// The job did not report the objective of its study.
    NoObjective,
    /// The user's own settings were left alone.
    OwnSettings,
    /// The parametrization did not reach every step.
    Incomplete,
    /// A node reports a parametrization that the run was not given.
    GivenOtherwise,
    /// It is not known what the job asked its burst buffer for.
    UnknownDirectives,
    /// The node that started the run is not one of those that Slurm names.
    OtherNodes,
    /// Slurm names another owner.
    OtherOwner,
    /// More nodes reported the run than its job had.
    TooManyNodes,
}

word_enum!(NotCountedBecause, "reason why a run does not count",
    Failed => "failed",
    OutOfMemory => "out_of_memory",
    Cancelled => "cancelled",
    Preempted => "preempted",
    NodeFailed => "node_failed",
    EndedOtherwise => "ended_otherwise",
    TimedOut => "timed_out",
    Suspended => "suspended",
    Resized => "resized",
    NotReported => "not_reported",
    PartlyReported => "partly_reported",
    NoStep => "no_step",
    Lost => "lost",
    Unconfirmed => "unconfirmed",
    NoName => "no_name",
    NoObjective => "no_objective",
    OwnSettings => "own_settings",
    Incomplete => "incomplete",
    GivenOtherwise => "given_otherwise",
    UnknownDirectives => "unknown_directives",
    OtherNodes => "other_nodes",
    OtherOwner => "other_owner",
    TooManyNodes => "too_many_nodes");

impl NotCountedBecause {
    /// The reason by the state in which Slurm says that a job ended, if that alone keeps its run
    /// from counting.
    #[must_use]
    pub fn of_state(state: &str) -> Option<Self> {
        Some(match state {
            "COMPLETED" | "TIMEOUT" => return None,
            "FAILED" => Self::Failed,
            "OUT_OF_MEMORY" => Self::OutOfMemory,
            "CANCELLED" => Self::Cancelled,
            "PREEMPTED" => Self::Preempted,
            "NODE_FAIL" => Self::NodeFailed,
            _ => Self::EndedOtherwise,
        })
    }

    /// The meaning in one sentence, for the documentation.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Failed => "The job failed, or one of its steps did.",
            Self::OutOfMemory => "The job ran out of memory.",
            Self::Cancelled => "The job was cancelled.",
            Self::Preempted => "The job was preempted.",
            Self::NodeFailed => "A node of the job failed.",
            Self::EndedOtherwise => {
                "The job ended in another state of Slurm's, such as REQUEUED or DEADLINE."
            }
            Self::TimedOut => {
                "The time limit ended the job, and its study's objective is not the elapsed time, so nothing is known \
                 of the objective. Where elapsed is the objective, such a run is kept as a lower bound."
            }
            Self::Suspended => {
                "The job was suspended for a while, and the time that its nodes measured includes the pause."
            }
            Self::Resized => {
                "The job gave up nodes or got more while it ran, so that its elapsed time is of neither size."
            }
            Self::NotReported => "No node reported the run.",
            Self::PartlyReported => "Some nodes of a step did not report it.",
            Self::NoStep => "No step was seen to start and end.",
            Self::Lost => "The job was never heard of again.",
            Self::Unconfirmed => {
                "Slurm could not be asked about the job, and what its nodes reported does not show that it went well."
            }
            Self::NoName => "The job's name says nothing about its application.",
            Self::NoObjective => "The job did not report the objective of its study.",
            Self::OwnSettings => {
                "The user had set a variable that would have been delivered, and it was left alone."
            }
            Self::Incomplete => {
                "The parametrization did not reach every step, or something else was in force."
            }
            Self::GivenOtherwise => "A node reports a parametrization that the run was not given.",
            Self::UnknownDirectives => {
                "The job has a burst buffer, and its nodes were not told with which directives the buffer was set up: \
                 the user's own, or those with the parametrization."
            }
            Self::OtherNodes => {
                "Slurm does not list the node that started the run among the job's nodes: the job gave the node up \
                 while it ran, or the node reported a job that it never had."
            }
            Self::OtherOwner => "Slurm says that the job is another user's.",
            Self::TooManyNodes => "More nodes reported the run than its job had.",
        }
    }

    /// The text of docs/run.md with this list as the table between its marks; none if the page has
    /// no marks.
    #[must_use]
    pub fn with_table(page: &str) -> Option<String> {
        with_table(page, &Self::table())
    }

    fn table() -> String {
        let mut table =
            "| `--not-counted` | why the run does not count |\n| --- | --- |\n".to_owned();
        for each in Self::ALL {
            table.push_str(&format!("| `{each}` | {} |\n", each.meaning()));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_serde_words() {
        for each in NotCountedBecause::ALL {
            let json = serde_json::to_string(each).unwrap();
            assert_eq!(json, format!("\"{each}\""));
            assert_eq!(each.as_str().parse(), Ok(*each));
        }
    }

    #[test]
    fn the_table_in_the_docs_is_this_list() {
        let page = include_str!("../../../docs/run.md");
        let renewed = NotCountedBecause::with_table(page).expect("docs/run.md marks the table");
        assert_eq!(page, renewed, "docs/run.md is stale: run `make rules`");
    }

    #[test]
    fn only_a_job_that_completed_or_met_its_limit_may_count() {
        for state in ["COMPLETED", "TIMEOUT"] {
            assert_eq!(NotCountedBecause::of_state(state), None);
        }
        for state in ["BOOT_FAIL", "REVOKED", "what a later Slurm says"] {
            let why = NotCountedBecause::of_state(state);
            assert_eq!(why, Some(NotCountedBecause::EndedOtherwise));
        }
    }
}
