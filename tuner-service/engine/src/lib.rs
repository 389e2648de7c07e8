//! The engine of io-autotune: it chooses the parametrization of an application's next run.
//!
//! The engine is pure: no I/O, no clock, no global random numbers. Equal space, history, runs in
//! flight, settings and seed give equal [`Suggestion`]s on any machine, so stored suggestions can
//! be replayed.
//!
//! An epoch has four [`Phase`]s. *Baseline*: the default is measured. *Design*: each point of a
//! Latin hypercube runs once. *Search*: a method proposes parametrizations until the budget is
//! spent, with a pause for a first proof. *Settled*: the best one is used. Control runs of the
//! default are interleaved all along.

#![forbid(unsafe_code)]

mod guards;
mod search;
mod settled;
mod study;
#[cfg(test)]
mod testing;

pub use guards::members::{LEAST_MEMBERS, Member, Members};
pub use guards::mixture::mixture;
pub use guards::restriction::RestrictedSpace;
pub use io_autotune_baselines::{
    alabed2021::{Alabed2021Multitask, Clusters},
    cao2018::{Cao2018Annealing, Cao2018Bayesian, Cao2018Cooling, Cao2018Dqn, Cao2018Genetic},
    robert2019::{Restart, Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate},
    robert2020::{
        ChildRevisits, Crossover, NeighboursOf, Noise, Regression, Resampling, Robert2020,
        Selection, table_v,
    },
};
pub use io_autotune_model::{
    Acquisition, BestKnownBecause, BudgetOf, Candidate, Changed, Choice, Chosen, Comparison,
    Condition, Constraint, DRIFT_RUNS, Domain, Drift, History, IneffectiveParameter, MOST_MEASURES,
    Mixture, Moments, Next, NoHeadroom, ObservedValue, Outlook, OverBudget, Parameter,
    ParameterEffect, ParameterEffects, Parametrization, Pending, Phase, Point, RECENT_RUNS, Reason,
    RecentRun, Recipe, Role, Rule, SampleError, SettledRun, Space, SpaceError, Standing, Stopped,
    Suggestion, Tally, Tested, UnknownWord, UsedIf, Value, carried, carried_parametrization,
};
pub use io_autotune_search::checks::{MAX_DESIGN_POINTS, SettingsError};
pub use io_autotune_search::history::quarantine::{Ends, Quarantine, Quarantined};
pub use io_autotune_search::regret::settings::RegretSettings;
pub use io_autotune_search::surrogate::cache::SurrogateCache;
pub use io_autotune_search::surrogate::common::{InCommon, in_common};
pub use io_autotune_search::surrogate::importance::{Importance, Silence};
pub use io_autotune_search::surrogate::prior::{MOST_SOURCES, Prior};
pub use io_autotune_search::surrogate::source::{SharedSource, Source};
pub use search::surrogate_genetic::SurrogateGenetic;
pub use settled::control_runs::control_chance;
pub use settled::drift::{drift, settings::DriftSettings};
pub use settled::evidence;
pub use settled::mean_interval::elapsed_of;
pub use settled::shared::SharedEvidence;
pub use study::decision::Decided;
pub use study::epoch::Epoch;
pub use study::findings::StudyFacts;
pub use study::next::{next, phase};
pub use study::proof::settings::ProofSettings;
pub use study::recommend::Recommendation;
pub use study::rules::with_rules_table;
pub use study::settings::{MethodName, PriorFrom, Settings, SettingsOfTheMethod, stored_settings};
pub use study::situation::Situation;
pub use study::steering::{KnownLimit, Steering, ToldBy};
pub use study::stopping::other_accelerator::chosen;
pub use study::stopping::settings::Stop;
pub use study::warm_start::MOST_INHERITED;
pub use study::without_noise::Cleaned;

/// The engine's version, which is stored with every suggestion because a replay needs the same one.
/// It changes whenever an answer does; a golden test checks that.
pub const ENGINE_VERSION: &str = "io-autotune-engine 16";
