//! Robert, Zertal and Goret 2019.

pub(crate) mod annealing;
pub(crate) mod settings;
pub(crate) mod surrogate;
