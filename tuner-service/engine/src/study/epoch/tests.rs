//! Tests of whole epochs, in every phase.

mod any_history;
mod cleaned;
mod golden_answers;
mod lost_default;
mod phases;
mod priors;
mod proofs;
mod settled_phase;
mod simulated_studies;
mod time_limited_runs;
mod time_limits;

use io_autotune_search::history::{Phase, Role};

use super::*;
