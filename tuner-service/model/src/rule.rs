//! The names of the rules that decide what a run gets. The rules themselves, in their order and
//! with their conditions, are in the engine (`engine/src/study/rules.rs`).

use serde::{Deserialize, Serialize};

use crate::word_enum;

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
    /// Between two trials, runs get what is known to be faster than the default.
    BestBetween,
    /// As many runs explore as may at the same time.
    ExploringFull,
    /// The job's time limit leaves no room for a slow parametrization.
    NoHeadroom,
    /// A budget for exploring has no room for the run.
    ExploringBudget,
    /// A setting that an admin made the site's default.
    SiteDefault,
    /// The default does not complete: the design runs without it.
    DesignWithoutDefault,
    /// The default does not complete: something new is tried.
    SearchWithoutDefault,
    /// Nothing completes: the default runs again.
    DefaultAgain,
    /// A parametrization that a proof would be of runs a second time.
    ConfirmForProof,
    /// A parametrization that other studies found fast.
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

word_enum!(Rule, "rule",
    Observed => "observed", Off => "off", Pinned => "pinned", MixedWork => "mixed_work",
    Restarted => "restarted", Busy => "busy", Frozen => "frozen", Settled => "settled",
    Baseline => "baseline", LongerLimit => "longer_limit", Proof => "proof",
    BestBetween => "best_between", ExploringFull => "exploring_full", NoHeadroom => "no_headroom",
    ExploringBudget => "exploring_budget", SiteDefault => "site_default",
    DesignWithoutDefault => "design_without_default",
    SearchWithoutDefault => "search_without_default", DefaultAgain => "default_again",
    ConfirmForProof => "confirm_for_proof", Promised => "promised", Design => "design",
    Search => "search", RegretBudget => "regret_budget", AwaitingResults => "awaiting_results",
    NothingToWin => "nothing_to_win", Confirm => "confirm", Concluded => "concluded");

impl Rule {
    /// Returns true if a run that this rule decides explores. Its method may wait for results
    /// instead.
    #[must_use]
    pub fn explores(self) -> bool {
        matches!(
            self,
            Rule::SiteDefault
                | Rule::DesignWithoutDefault
                | Rule::SearchWithoutDefault
                | Rule::ConfirmForProof
                | Rule::Promised
                | Rule::Design
                | Rule::Search
                | Rule::Confirm
        )
    }
}

/// Where a study stands: the conditions of the rules, by its verdicts. It is stored with each
/// verdict, so that a reader can ask the same rules as a start does without fitting a surrogate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Standing {
    /// The rule that would decide if there were no order and no run in flight, and the default were
    /// measured: a proof, the design, the search, or what follows them.
    pub search: Rule,
    /// The runs so far.
    pub progress: Progress,
    /// True if that run would explore. Its method may wait for results instead.
    pub explores: bool,
    /// The pause of exploring while the regret budget is used up. During a pause only
    /// parametrizations that should beat the default are explored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The part of other studies that decides, too.
    #[serde(default, skip_serializing_if = "Others::is_none")]
    pub others: Others,
}

/// The part of other studies that decides on a study's runs, beside the study's own history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// Nothing.
    #[default]
    None,
    /// The search begins from what they have learnt.
    Learnt,
    /// Their runs count as the study's own, by a rule of the site.
    Runs,
}

impl Others {
    /// Returns true if nothing of other studies decides.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Others::None
    }
}

/// The ended runs of an epoch, as the rules count them. Runs in flight are not among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Progress {
    /// True if a run of the settled phase has ended.
    pub settled: bool,
    /// The number of runs that ended.
    pub total: u64,
    /// The number of design and search runs that ended.
    pub explored: u64,
    /// The number of design and search runs that the epoch may have.
    pub budget: u32,
    /// The number of runs that may explore at the same time.
    pub exploring: u32,
    /// True if control runs are interleaved.
    pub controls: bool,
    /// The number of runs of the default that count.
    pub default_counted: u64,
    /// The number of runs of the default that the baseline has.
    pub baseline_runs: u32,
    /// True if the baseline is given up because the default does not complete.
    pub baseline_given_up: bool,
    /// The time limits with which the default is measured again, if shorter ones cut it short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_limit: Option<LongerLimit>,
    /// True if different work alternates under the study's name and the study has not settled.
    pub mixed: bool,
    /// True if a parametrization is known that was faster than the default, and the method has most
    /// runs between its trials get the best known.
    #[serde(default)]
    pub between: bool,
    /// The time limit that a run needs to explore.
    pub headroom: Headroom,
    /// The number of design points that have not run.
    pub design_left: u64,
    /// The number of tuned runs of the proof that ended.
    pub proof: u64,
    /// The number of tuned runs that the proof may have.
    pub proof_most: u64,
}

/// The time limit that a run needs to explore.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// Any limit is enough.
    Any,
    /// The needed limit is unknown until a run has counted, so no limit is enough.
    Unknown,
    /// Limits of at least this many seconds are enough.
    Seconds(f64),
}

impl Headroom {
    /// Returns true if a limit in seconds is too short.
    #[must_use]
    pub fn lacks(self, limit: f64) -> bool {
        match self {
            Headroom::Any => false,
            Headroom::Unknown => true,
            Headroom::Seconds(needed) => limit < needed,
        }
    }

    /// Seconds within which an exploring run of a job with this time limit is expected to end; none
    /// if neither the limit nor the default's elapsed is known.
    #[must_use]
    pub fn expected_within(self, limit: Option<f64>) -> Option<f64> {
        match self {
            Headroom::Any | Headroom::Unknown => limit,
            Headroom::Seconds(needed) => Some(limit.map_or(needed, |limit| limit.min(needed))),
        }
    }
}

/// The time limits with which a job measures a default that shorter limits cut short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LongerLimit {
    /// Seconds that a limit must exceed: somewhat more than the longest run that was cut short.
    pub above: f64,
    /// The number of such runs that are left, at the most.
    pub runs: u64,
}

/// The reason why exploring pauses, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pause {
    /// The expected regret, in runs of the default.
    pub regret: f64,
    /// The regret budget by now, in runs of the default.
    pub bound: f64,
    /// The number of further runs after which the budget suffices again.
    pub runs: u64,
    /// The elapsed of the parametrization that cost most, in multiples of the default's.
    pub worst: f64,
    /// The part of the regret that the budget does not count. Zero from a service before 0.4.
    #[serde(default)]
    pub forgiven: f64,
}

/// The next run of a study: what it will get, by which rule, and until when, as far as that can be
/// known before the run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Next {
    /// The rule that will decide.
    pub rule: Rule,
    /// A sentence: what the run gets, why, and until when.
    pub says: String,
    /// The same in a few words, for a list.
    pub short: String,
    /// The estimated number of further runs of the study until another rule decides, if it can be
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// The unknowns because of which another rule may decide after all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Unknown>,
}

/// A fact on which the next rule depends and which is not known before a run starts.
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
    /// The results of other users' runs and of other studies since the study's last verdict.
    Others,
}
