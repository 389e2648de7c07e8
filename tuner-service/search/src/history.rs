//! An epoch's history, as the engine uses it.

pub mod by_point;
pub mod censoring;
pub mod quarantine;

pub use io_autotune_model::history::*;
pub use io_autotune_model::run::*;
