use std::collections::BTreeMap;

use io_autotune_model::{Parametrization, Space, Value};

use crate::{Deliveries, ReadBack};

/// The parameters, delivery and read-back of one catalogue file. A joint accelerator has several
/// parts.
#[derive(Clone, Debug)]
pub struct Part {
    /// The accelerator that the file describes.
    pub of: String,
    /// The parameters, with the names in the file.
    pub space: Space,
    /// The deliveries of the parameters.
    pub deliveries: Deliveries,
    /// The program that reads back the values in force, in addition to the kernel.
    pub read_back: Option<ReadBack>,
    /// The parameters with another name in the joint space: own name to outer name.
    pub(crate) renamed: BTreeMap<String, String>,
}

impl Part {
    pub(crate) fn outer_name<'a>(&'a self, own: &'a str) -> &'a str {
        self.renamed.get(own).map_or(own, String::as_str)
    }

    /// This part's values of an accelerator's parametrization, by their own names.
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
