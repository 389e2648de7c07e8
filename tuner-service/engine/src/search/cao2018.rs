//! Cao, Tarasov, Tiwari and Zadok 2018.

pub(crate) mod annealing;
pub(crate) mod bayesian;
pub(crate) mod dqn;
pub(crate) mod genetic;
pub(crate) mod settings;
