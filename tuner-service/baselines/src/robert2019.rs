//! Robert, Zertal and Goret 2019.

mod annealing;
mod settings;
mod surrogate;

pub use crate::annealing::Restart;
pub(crate) use annealing::walk;
pub use settings::{Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate};
