//! Alabed and Yoneki 2021.

mod multitask;
mod settings;

pub use settings::{Alabed2021Multitask, Clusters, Objective};
