//! Replays tables of measurements with the engine's methods, and measures the results.
//!
//! A table holds the times of every parametrization of a space (module [`dataset`]). Replayed
//! studies take their times from it and not from a cluster: thousands of studies with a known
//! optimum compare methods (robert2020, section VIII-A). [`replay`] runs one study,
//! [`compare`](mod@compare) many in parallel, [`metrics`] has the papers' figures, [`report`]
//! prints them.

#![forbid(unsafe_code)]

mod bootstrap;
pub mod compare;
pub mod dataset;
pub mod method;
pub mod metrics;
pub mod parallel;
pub mod preset;
pub mod replay;
pub mod report;

pub use bootstrap::Estimate;
pub use compare::{Comparison, Setup, compare};
pub use method::MethodSpec;
pub use replay::{Counted, Outside, Plan, Trajectory, replay};
