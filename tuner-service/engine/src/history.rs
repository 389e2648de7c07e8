//! An epoch's history, as the engine uses it.

pub(crate) mod by_point;
pub(crate) mod censoring;
pub(crate) mod quarantine;

pub(crate) use io_autotune_model::history::*;
pub(crate) use io_autotune_model::run::*;
