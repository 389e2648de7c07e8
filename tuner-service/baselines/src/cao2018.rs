//! Cao, Tarasov, Tiwari and Zadok 2018.

mod annealing;
mod bayesian;
mod dqn;
mod genetic;
mod settings;

pub use settings::{
    Cao2018Annealing, Cao2018Bayesian, Cao2018Cooling, Cao2018Dqn, Cao2018Genetic, Cao2018Selection,
};
