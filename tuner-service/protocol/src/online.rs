//! Tuning while a job runs: the part of a delivery that orders it, and the record of what a node
//! did.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::setting::SettingKind;

/// The policy that moves levers while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnlinePolicy {
    /// IOPathTune as published: all levers share one direction.
    Iopathtune,
    /// IOPathTune in another reading of the paper: each lever has a direction of its own.
    IopathtuneEach,
    /// IOPathTune as published, where the rate of requests decides about contention too.
    IopathtuneRequests,
    /// The project's own policy: it remembers the result of each setting, and rests where no
    /// setting near by is better.
    Settling,
}

impl OnlinePolicy {
    /// The word in a parametrization for no policy.
    pub const OFF: &str = "off";
}

io_autotune_model::word_enum!(
    OnlinePolicy, "policy",
    Iopathtune => "iopathtune",
    IopathtuneEach => "iopathtune-each",
    IopathtuneRequests => "iopathtune-requests",
    Settling => "settling",
);

/// Tuning inside the job, as one part of a [`Delivery`](crate::Delivery). A node moves a lever only
/// if its own configuration allows that setting, and only within the range that is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredOnline {
    /// The policy that decides.
    pub policy: OnlinePolicy,
    /// The levers that it moves, all of the same kind.
    pub levers: Vec<OnlineLever>,
}

/// A numeric setting that takes effect at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OnlineLever {
    /// The kind of setting, which says where it is.
    pub kind: SettingKind,
    /// The setting's name there. All settings that a pattern matches have the same value.
    pub name: String,
}

/// The record of tuning inside a job on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineRecord {
    /// The policy that decided.
    pub policy: OnlinePolicy,
    /// The length of a period, in milliseconds: the policy decides once in each.
    pub period_ms: u64,
    /// The levers' names, in the order of the values.
    pub levers: Vec<String>,
    /// The levers' values when the job began.
    pub began: Vec<u64>,
    /// The periods, oldest first: at most [`OnlineRecord::ENTRIES`]. In a long job an entry stands for
    /// several periods.
    pub entries: Vec<OnlineEntry>,
}

impl OnlineRecord {
    /// The most entries of a record: as many as a terminal has columns.
    pub const ENTRIES: usize = 120;
    /// The most levers.
    pub const LEVERS: usize = 8;
}

/// One or several successive periods: means over them, the values set at their end, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineEntry {
    /// Milliseconds from the start of the agent to the end of the last period.
    pub at_ms: u64,
    /// The number of periods.
    pub periods: u64,
    /// Data that the path moved, in bytes a second.
    pub bandwidth: u64,
    /// Requests made, per second.
    pub requests: u64,
    /// Data that programs put into the page cache or took from it, in bytes a second.
    pub cached: u64,
    /// Data waiting in the page cache at the end of the periods, in bytes.
    pub dirty: u64,
    /// The values that were set for the time after, one for each lever.
    pub values: Vec<u64>,
    /// The number of moves.
    pub moves: u64,
    /// The reason of the last move; absent if nothing moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<OnlineReason>,
}

/// The reason why levers moved, or no longer move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnlineReason {
    /// Nothing had moved yet.
    First,
    /// The last move increased the bandwidth.
    Faster,
    /// The last move did not increase the bandwidth.
    NotFaster,
    /// Data piled up after the last move, so it was taken back.
    Contention,
    /// The setting is tried to learn its effect.
    Try,
    /// The levers go back to the best known setting.
    Back,
    /// The work has changed to one that was met before: its best setting is used.
    KnownWork,
    /// The work has changed to an unknown one: the default is measured with it.
    OtherWork,
    /// The lever has no effect, so it goes back to its initial value for good.
    Unresponsive,
    /// The device did not take the value.
    Refused,
    /// Another process has changed a lever, so nothing is moved any more.
    Foreign,
}

impl OnlineReason {
    /// The reason in a few words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::First => "a first move",
            Self::Faster => "the last move helped",
            Self::NotFaster => "the last move did not help",
            Self::Contention => "data piled up, taken back",
            Self::Try => "tried",
            Self::Back => "back to the best known",
            Self::KnownWork => "a known work is back",
            Self::OtherWork => "another work",
            Self::Unresponsive => "a lever that does nothing is left alone",
            Self::Refused => "the device refused a value",
            Self::Foreign => "somebody else moved a lever",
        }
    }
}
