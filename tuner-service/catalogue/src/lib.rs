//! The catalogue: one TOML file per accelerator describes its parameters and their delivery to a
//! job. [`Accelerator::parse`] and [`Accelerator::render`] are pure; [`Catalogue::load`] and
//! [`LiveCatalogue`] read files.

#![forbid(unsafe_code)]

mod accelerator;
mod catalogue;
mod delivery;
mod fault;
mod joint;
mod live;
mod need;
mod part;
mod read_back;
mod render;
mod template;

pub use accelerator::Accelerator;
pub use catalogue::{Catalogue, CatalogueError, LookupError};
pub use delivery::{
    CommandDelivery, CommandVariable, Deliveries, FileDelivery, SettingDelivery, VariableDelivery,
};
pub use fault::{AcceleratorError, Fault};
pub use joint::{JointError, canonical_name};
pub use live::{Change, LiveCatalogue, Refused};
pub use need::Need;
pub use part::Part;
pub use read_back::{ReadBack, Reader};
pub use template::{Template, TemplateError};
