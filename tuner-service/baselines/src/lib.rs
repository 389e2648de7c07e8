//! The methods of the papers, each with its settings, as published. A method *is* its table of
//! settings: it keeps no other state. `docs/papers/methods.md` says what each takes from its
//! paper, and what the paper leaves open.
//!
//! To add one: a folder here, and its lines in `Settings` and `MethodName` of the engine
//! (`study/settings.rs`). The compiler and the tests name the lines that are missing, and
//! docs/architecture.md lists all of them.

#![forbid(unsafe_code)]

pub mod alabed2021;
mod annealing;
pub mod cao2018;
mod revisits;
pub mod robert2019;
pub mod robert2020;

pub use revisits::Revisits;
