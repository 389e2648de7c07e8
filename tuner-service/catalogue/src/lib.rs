//! The catalogue: one TOML file per accelerator says what its parameters are and how a
//! parametrization reaches a job.
//!
//! [`Accelerator::parse`] and [`Accelerator::render`] are pure; [`Catalogue::load`] is the only
//! place that reads files.

#![forbid(unsafe_code)]

mod accelerator;
mod catalogue;
mod render;

pub use accelerator::{Accelerator, AcceleratorError, FileDelivery};
pub use catalogue::{Catalogue, CatalogueError};
