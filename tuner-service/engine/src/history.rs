//! What is known of an epoch, as the engine sees it.

pub(crate) mod by_point;
pub(crate) mod censoring;
pub(crate) mod quarantine;

pub(crate) use io_autotune_model::history::*;
pub(crate) use io_autotune_model::run::*;
