//! The catalogue: one TOML file per accelerator says what its parameters are and how a
//! parametrization reaches a job.
//!
//! [`Accelerator::parse`] and [`Accelerator::render`] are pure; [`Catalogue::load`] and
//! [`LiveCatalogue`] read files.

#![forbid(unsafe_code)]

mod accelerator;
mod catalogue;
mod delivery;
mod fault;
mod live;
mod read_back;
mod render;
mod template;

pub use accelerator::{Accelerator, Need};
pub use catalogue::{Catalogue, CatalogueError};
pub use delivery::{
    CommandDelivery, CommandVariable, Deliveries, FileDelivery, SettingDelivery, VariableDelivery,
};
pub use fault::{AcceleratorError, Fault};
pub use live::{Change, LiveCatalogue, Refused};
pub use read_back::{ReadBack, Reader};
pub use template::{Template, TemplateError};
