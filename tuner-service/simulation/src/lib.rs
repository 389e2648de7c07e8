//! Replays tables of measurements under the engine's methods, and measures what comes of it.
//!
//! A table is a data set: every parametrization of a space with the times of its runs. A study that
//! is replayed gets its times from there instead of from a cluster, so that methods can be compared
//! on thousands of studies whose true optimum is known (robert2020, section VIII-A).
//!
//! [`dataset`] reads tables, [`replay`] runs one study, [`compare`](mod@compare) many of them in parallel,
//! [`metrics`] has what the papers measure, [`report`] prints it. [`session`] is a study of measurements
//! that are still to be made.

#![forbid(unsafe_code)]

mod bootstrap;
pub mod burst_buffer;
pub mod compare;
pub mod dataset;
pub mod method;
pub mod metrics;
pub mod preset;
pub mod replay;
pub mod report;
pub mod session;

pub use bootstrap::Estimate;
pub use compare::{Comparison, Setup, compare};
pub use method::MethodSpec;
pub use replay::{Counted, Plan, Trajectory, replay};
