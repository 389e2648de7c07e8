//! What one catalogue file says of how its parameters reach a job.

use std::collections::BTreeMap;

use io_autotune_model::{Parametrization, Space, Value};

use crate::{Deliveries, ReadBack};

/// The parameters of one catalogue file, and how they are delivered and read back. An accelerator has one part, and
/// several that are tuned together have one each.
#[derive(Clone, Debug)]
pub struct Part {
    /// The accelerator that the file describes.
    pub of: String,
    /// Its own parameters, by the names that the file gives them.
    pub space: Space,
    /// How they are delivered.
    pub deliveries: Deliveries,
    /// What reads back what is in force, besides the kernel.
    pub read_back: Option<ReadBack>,
    /// What parameters are called beside those of other parts, where that is another name than their own.
    pub(crate) renamed: BTreeMap<String, String>,
}

impl Part {
    /// What a parameter of this part is called in the space of the accelerator.
    pub(crate) fn outer_name<'a>(&'a self, own: &'a str) -> &'a str {
        self.renamed.get(own).map_or(own, String::as_str)
    }

    /// This part's values of a parametrization of the accelerator, by their own names.
    pub(crate) fn own(&self, parametrization: &Parametrization) -> Parametrization {
        let own = self.space.parameters().iter().filter_map(|parameter| {
            let value = parametrization.0.get(self.outer_name(&parameter.name))?;
            Some((parameter.name.clone(), value.clone()))
        });
        Parametrization(own.collect())
    }

    pub(crate) fn is_default(&self, own: &str, value: &Value) -> bool {
        let mut parameters = self.space.parameters().iter();
        parameters.any(|parameter| parameter.name == own && parameter.default == *value)
    }
}
