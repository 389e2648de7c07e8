//! The names of the rules that decide what a run gets. The engine has the rules themselves, in
//! their order, with their conditions (`engine/src/study/rules.rs`).

use serde::{Deserialize, Serialize};

use crate::words;

/// The rule that decided what a run gets. The names are stored with runs, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The job asks to be observed, or its name says nothing of the program.
    Observed,
    /// An order turned tuning off.
    Off,
    /// An admin or the user pinned the study.
    Pinned,
    /// Different work runs under one name.
    MixedWork,
    /// The job was restarted.
    Restarted,
    /// Other starts held the study for too long.
    Busy,
    /// An order froze the study.
    Frozen,
    /// The study has settled.
    Settled,
    /// The default is measured first.
    Baseline,
    /// The job's time limit is longer than those that cut the default short.
    LongerLimit,
    /// The best known parametrization is compared with the default.
    Proof,
    /// A control run of the default is due.
    Control,
    /// As many runs explore as may at once.
    ExploringFull,
    /// The job's time limit leaves no room for a slow parametrization.
    NoHeadroom,
    /// The default does not complete: the design runs without it.
    DesignWithoutDefault,
    /// The default does not complete: something new is tried.
    SearchWithoutDefault,
    /// Nothing completes: the default runs again.
    DefaultAgain,
    /// What a proof would be of runs a second time.
    ConfirmForProof,
    /// What other studies found fast.
    Promised,
    /// A point of the design.
    Design,
    /// The method's proposal.
    Search,
    /// Exploring has cost as much as it may by now.
    RegretBudget,
    /// The last exploring runs are in flight.
    AwaitingResults,
    /// No parametrization can make the runs faster.
    NothingToWin,
    /// The best has run once, and runs a second time.
    Confirm,
    /// The search has ended.
    Concluded,
}

words!(Rule, "rule",
    Observed => "observed", Off => "off", Pinned => "pinned", MixedWork => "mixed_work",
    Restarted => "restarted", Busy => "busy", Frozen => "frozen", Settled => "settled",
    Baseline => "baseline", LongerLimit => "longer_limit", Proof => "proof", Control => "control",
    ExploringFull => "exploring_full", NoHeadroom => "no_headroom",
    DesignWithoutDefault => "design_without_default",
    SearchWithoutDefault => "search_without_default", DefaultAgain => "default_again",
    ConfirmForProof => "confirm_for_proof", Promised => "promised", Design => "design",
    Search => "search", RegretBudget => "regret_budget", AwaitingResults => "awaiting_results",
    NothingToWin => "nothing_to_win", Confirm => "confirm", Concluded => "concluded");

impl Rule {
    /// Whether a run that this rule decides explores, unless the method waits for results.
    #[must_use]
    pub fn explores(self) -> bool {
        matches!(
            self,
            Rule::DesignWithoutDefault
                | Rule::SearchWithoutDefault
                | Rule::ConfirmForProof
                | Rule::Promised
                | Rule::Design
                | Rule::Search
                | Rule::Confirm
        )
    }
}

/// Where a study stands: what its verdicts show of the rules' conditions. It is stored with each
/// verdict, so that a reader asks the same rules as a start does, without fitting a surrogate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Standing {
    /// The rule that would decide if nothing were ordered, no run were in flight, and the default
    /// were measured: a proof, the design, the search, or what follows them.
    pub search: Rule,
    /// The runs so far.
    pub progress: Progress,
    /// Whether that run would explore. A method may wait for results instead.
    pub explores: bool,
    /// The regret budget, while it is used up: at most what should beat the default is explored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The runs of other users, or what other studies have learnt, were a part of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_others: bool,
}

/// The runs of an epoch so far, as the rules count them. Runs in flight come on top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Progress {
    /// A run of the settled phase has ended.
    pub settled: bool,
    /// All runs that ended.
    pub total: u64,
    /// Design and search runs that ended.
    pub explored: u64,
    /// How many design and search runs there may be.
    pub budget: u32,
    /// How many runs may explore at once.
    pub exploring: u32,
    /// Control runs are interleaved.
    pub controls: bool,
    /// Runs of the default that count.
    pub default_counted: u64,
    /// Runs of the default that counted, failed or were cut short.
    pub default_runs: u64,
    /// How many runs of the default the baseline has.
    pub baseline_runs: u32,
    /// The baseline is given up, because the default does not complete.
    pub baseline_given_up: bool,
    /// The time limit with which the default is measured again, if shorter ones cut it short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_limit: Option<LongerLimit>,
    /// Works take turns under the study's name, and it has not settled.
    pub mixed: bool,
    /// The time limit that a run needs to explore.
    pub headroom: Headroom,
    /// Points of the design that have not run.
    pub design_left: u64,
    /// Tuned runs of the proof that ended.
    pub proof: u64,
    /// How many tuned runs the proof may have.
    pub proof_most: u64,
}

/// The time limit that a run needs to explore.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// Any limit is enough.
    Any,
    /// It is not known before a run has counted: no limit is enough.
    Unknown,
    /// So many seconds.
    Seconds(f64),
}

impl Headroom {
    /// Whether a limit in seconds is too short.
    #[must_use]
    pub fn lacks(self, limit: f64) -> bool {
        match self {
            Headroom::Any => false,
            Headroom::Unknown => true,
            Headroom::Seconds(needed) => limit < needed,
        }
    }
}

/// With which time limit a job measures a default that shorter limits cut short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LongerLimit {
    /// Limits above so many seconds.
    pub above: f64,
    /// So many more runs at the most.
    pub runs: u64,
}

/// Why exploring pauses, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pause {
    /// The expected regret, in runs of the default.
    pub regret: f64,
    /// The regret budget by now, in runs of the default.
    pub bound: f64,
    /// After how many more runs the budget suffices again.
    pub runs: u64,
    /// How many times as long as the default the parametrization took that cost most.
    pub worst: f64,
}

/// What the next run of a study gets, by which rule, and until when, as far as it can be known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Next {
    /// The rule that will decide.
    pub rule: Rule,
    /// What the run gets, why, and until when.
    pub says: String,
    /// The same in a few words, for a list.
    pub short: String,
    /// About how many more runs of the study it takes until another rule decides, where that can be
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// What another rule may decide by after all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Unknown>,
}

/// What is not known before a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// The number that is drawn at the start: whether the run is a control run.
    Draw,
    /// The time limit of the job.
    Limit,
    /// How the runs in flight end.
    InFlight,
    /// What other users' runs and other studies have shown since the study's last verdict.
    Others,
}
