//! A settled epoch: its control runs, the evidence of its gain, and the detection of changes.

pub(crate) mod control_runs;
pub(crate) mod drift;
pub mod evidence;
pub(crate) mod incumbent;
pub(crate) mod mean_interval;
pub(crate) mod shared;
