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

mod belief;
mod carry;
mod controls;
mod design;
mod drift;
mod estimate;
pub mod evidence;
mod fits;
mod heed;
pub mod history;
mod inherit;
mod loss;
mod methods;
mod mixture;
mod narrowed;
mod quarantine;
pub mod reason;
pub mod recommend;
mod room;
pub mod settings;
pub mod space;
mod standing;
pub mod statistics;
mod stop;
pub mod suggest;
mod surrogate;
#[cfg(test)]
mod testing;
mod view;

pub use carry::{carried, carried_parametrization};
pub use drift::{Changed, DRIFT_RUNS, Drift, SettledRun, drift};
pub use fits::Fits;
pub use heed::{Heard, Heed, Heeds, Unheeded};
pub use history::{History, Moments, Pending, Phase, RecentRun, Role, Tally, Tested};
pub use history::{MOST_MEASURES, RECENT_RUNS, SampleError, UnknownWord};
pub use inherit::{MOST_INHERITED, ranks};
pub use loss::expected_loss;
pub use methods::robert2020::table_v;
pub use mixture::{Mixture, mixture};
pub use narrowed::Narrowed;
pub use quarantine::{Ends, Quarantine, Quarantined, quarantined};
pub use reason::{BestKnownBecause, Reason, Stopped, Suggestion};
pub use recommend::{
    Recommendation, best_known, best_known_of, leader, phase_so_far, recommend, recommend_now,
    recommend_remembering,
};
pub use room::{NoRoom, no_room};
pub use settings::{
    Acquisition, Alabed2021Multitask, Cao2018Annealing, Cao2018Bayesian, Cao2018Cooling,
    Cao2018Dqn, Cao2018Genetic, Clusters, Crossover, DefaultSettings, Distance, Distinct,
    DriftSettings, Improvement, Loss, MethodName, Noise, NothingLeft, Regression, Resampling,
    Restart, Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate, Robert2020, Selection,
    Settings, SettingsError, Stop,
};
pub use space::{Comparison, Condition, Constraint, Domain, Parameter, Parametrization, Point};
pub use space::{Space, SpaceError, Value};
pub use statistics::{Gain, MeanInterval, gain, mean_interval};
pub use suggest::{Epoch, suggest};

/// The version of the engine, stored with every suggestion: a replay needs the same one.
pub const ENGINE_VERSION: &str = concat!("io-autotune-engine ", env!("CARGO_PKG_VERSION"));
