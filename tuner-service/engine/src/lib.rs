//! The engine of io-autotune: decides which parametrization the next run of an application gets.
//!
//! Everything here is pure. There is no I/O, no clock and no global random number generator: the
//! same space, history, runs in flight, settings and seed give the same [`Suggestion`] on any
//! machine, so that a suggestion can be replayed from what was stored with it.
//!
//! A study's epoch goes through four [`Phase`]s. In the *baseline* the default is measured. In the
//! *design* the points of a Latin hypercube are run once each, the nearest to the default first. In
//! the *search* a method proposes parametrizations and runs them again until their means are known
//! well enough. When the budget is spent the epoch is *settled*: the parametrization with the lowest
//! mean is used. Control runs of the default are interleaved all along.

#![forbid(unsafe_code)]

mod checks;
mod guards;
mod history;
mod search;
mod settled;
mod study;
mod surrogate;
#[cfg(test)]
mod testing;

use io_autotune_model::{reason, space};

pub use checks::{MAX_DESIGN_POINTS, SettingsError};
pub use guards::mixture::mixture;
pub use guards::regret::settings::RegretSettings;
pub use guards::restriction::RestrictedSpace;
pub use history::quarantine::{Ends, Quarantine, Quarantined};
pub use io_autotune_model::{
    Acquisition, BestKnownBecause, Changed, Comparison, Condition, Constraint, DRIFT_RUNS, Domain,
    Drift, History, IneffectiveParameter, MOST_MEASURES, Mixture, Moments, NoHeadroom,
    ObservedValue, Parameter, ParameterEffect, ParameterEffects, Parametrization, Pending, Phase,
    Point, RECENT_RUNS, Reason, RecentRun, Role, SampleError, SettledRun, Space, SpaceError,
    Stopped, Suggestion, Tally, Tested, UnknownWord, Value, carried, carried_parametrization,
};
pub use search::alabed2021::settings::{Alabed2021Multitask, Clusters};
pub use search::cao2018::settings::{
    Cao2018Annealing, Cao2018Bayesian, Cao2018Cooling, Cao2018Dqn, Cao2018Genetic,
};
pub use search::robert2019::settings::{
    Restart, Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate,
};
pub use search::robert2020::settings::{
    Crossover, Noise, Regression, Resampling, Robert2020, Selection,
};
pub use search::robert2020::table_v::table_v;
pub use settled::drift::{drift, settings::DriftSettings};
pub use settled::gain::{Gain, MeanInterval, gain, mean_interval};
pub use study::epoch::Epoch;
pub use study::recommend::Recommendation;
pub use study::settings::{MethodName, Settings, SurrogateGeneticSettings};
pub use study::stopping::settings::{Distance, Distinct, Improvement, NothingLeft, Stop};
pub use study::warm_start::MOST_INHERITED;
pub use surrogate::cache::SurrogateCache;

/// The version of the engine, stored with every suggestion: a replay needs the same one.
pub const ENGINE_VERSION: &str = concat!("io-autotune-engine ", env!("CARGO_PKG_VERSION"));
