//! A settled epoch: its control runs, what was gained, and whether the application has changed.

pub(crate) mod control_runs;
pub(crate) mod drift;
pub mod evidence;
pub(crate) mod incumbent;
pub(crate) mod mean_interval;
pub(crate) mod shared;
