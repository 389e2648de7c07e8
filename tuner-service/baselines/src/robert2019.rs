//! Robert, Zertal and Goret 2019.

mod annealing;
mod settings;
mod surrogate;

pub use io_autotune_search::annealing::Restart;
pub use settings::{Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate};
