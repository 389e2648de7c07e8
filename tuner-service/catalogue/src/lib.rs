//! The site's files. The catalogue has one TOML file per accelerator, which describes its
//! parameters and their delivery to a job. [`Rules`] make applications of job names.
//! [`Accelerator::parse`], [`Accelerator::render`] and [`Rules`] are pure; [`Catalogue::load`],
//! [`LiveCatalogue`] and [`LiveRules`] read files.

#![forbid(unsafe_code)]

mod accelerator;
mod applications;
mod catalogue;
mod delivery;
mod fault;
mod followed;
mod joint;
mod live;
mod live_rules;
mod need;
mod part;
mod read_back;
mod recipe;
mod render;
mod risk;
mod space;
mod template;

pub use accelerator::Accelerator;
pub use applications::{Named, Resolved, Rules, RulesError, SHIPPED};
pub use catalogue::{
    Catalogue, CatalogueError, CatalogueErrors, LookupError, in_file, is_read, left_out,
};
pub use delivery::{
    CommandDelivery, CommandVariable, Deliveries, FileDelivery, SettingDelivery, VariableDelivery,
};
pub use fault::{AcceleratorError, Fault};
pub use followed::Refused;
pub use joint::{JointError, canonical_name};
pub use live::{Change, LiveCatalogue};
pub use live_rules::{LiveRules, RulesFileError};
pub use need::Need;
pub use part::Part;
pub use read_back::{ReadBack, Reader};
pub use recipe::Offer;
pub use risk::Risk;
pub use space::OwnSpace;
pub use template::{Template, TemplateError};
