//! Tuning while a job runs: what a node is to do, and what it has done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::setting::SettingKind;

/// Who moves levers while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnlinePolicy {
    /// IOPathTune as published: all levers share one direction.
    Iopathtune,
    /// IOPathTune's other reading: each lever has a direction of its own.
    IopathtuneEach,
    /// Ours: remembers what each setting brought, and rests where nothing near it is better.
    Settling,
}

impl OnlinePolicy {
    /// What a parametrization says for none of them.
    pub const OFF: &str = "off";
}

io_autotune_model::words!(
    OnlinePolicy, "policy",
    Iopathtune => "iopathtune",
    IopathtuneEach => "iopathtune-each",
    Settling => "settling",
);

/// Tuning inside the job, as one part of a [`Delivery`](crate::Delivery). A node moves a lever only
/// if its own configuration allows that setting, and only within the range that is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredOnline {
    /// Who decides.
    pub policy: OnlinePolicy,
    /// What it moves, all of one kind.
    pub levers: Vec<OnlineLever>,
}

/// A numeric setting that takes effect at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OnlineLever {
    /// Where it is.
    pub kind: SettingKind,
    /// Its name there. All that a pattern meets have one value.
    pub name: String,
}

/// What tuning inside a job did on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineRecord {
    /// Who decided.
    pub policy: OnlinePolicy,
    /// How often it decided, in milliseconds.
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
    /// The most entries of a record: what a terminal is wide.
    pub const ENTRIES: usize = 120;
    /// The most levers.
    pub const LEVERS: usize = 8;
}

/// One or several periods in a row: means over them, what was set at their end, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineEntry {
    /// Milliseconds from the start of the agent to the end of the last period.
    pub at_ms: u64,
    /// How many periods.
    pub periods: u64,
    /// Data moved by the path, bytes a second.
    pub bandwidth: u64,
    /// Requests made, a second.
    pub requests: u64,
    /// Data that programs put into the page cache or took from there, bytes a second.
    pub cached: u64,
    /// Data that waited in the page cache at the periods' ends, bytes.
    pub dirty: u64,
    /// What was set for the time after, a value of each lever.
    pub values: Vec<u64>,
    /// How many moves.
    pub moves: u64,
    /// Why the last one; absent if nothing moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<OnlineReason>,
}

/// Why levers moved, or no longer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnlineReason {
    /// Nothing had moved yet.
    First,
    /// The last move brought bandwidth.
    Faster,
    /// It did not.
    NotFaster,
    /// Data piled up since the last move: it was taken back.
    Contention,
    /// To learn what this does.
    Try,
    /// Back to the best known.
    Back,
    /// The work is another one, which was met before: its best.
    KnownWork,
    /// The work is another one: what the default does with it.
    OtherWork,
    /// The lever changes nothing: back to where it began, for good.
    Unresponsive,
    /// The device did not take the value.
    Refused,
    /// Somebody else has changed a lever: nothing is moved any more.
    Foreign,
}

impl OnlineReason {
    /// In a few words.
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
