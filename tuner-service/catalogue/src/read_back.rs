//! The parameters whose values in force only the accelerator can report, and the program that asks
//! it.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_model::Parametrization;
use io_autotune_protocol as protocol;
use serde::Deserialize;
use toml::Spanned;

use crate::Part;
use crate::fault::Faults;

/// The program that reads the values in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// The profiling library of `spank-plugin/mpi-in-force/`: what the MPI library says of files that it opens.
    MpiInForce,
}

/// The `[read_back]` of a catalogue file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBack {
    /// The reader.
    pub by: Reader,
    /// The reader's name for each parameter that it can report.
    pub names: BTreeMap<Spanned<String>, String>,
    /// Parameters that are upper limits: a smaller number in force counts as the given value.
    #[serde(default)]
    pub at_most: Vec<Spanned<String>>,
}

impl ReadBack {
    pub(crate) fn check(&self, known: &BTreeSet<&str>, faults: &mut Faults<'_>) {
        for parameter in self.names.keys().chain(&self.at_most) {
            if !known.contains(parameter.get_ref().as_str()) {
                let problem = format!(
                    "parameter {:?} is not among [[parameters]]: there are {}",
                    parameter.get_ref(),
                    known.iter().copied().collect::<Vec<_>>().join(", ")
                );
                faults.at(&parameter.span(), problem);
            }
        }
        for (parameter, name) in &self.names {
            let is_token =
                (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_token {
                let problem = format!("{name:?} is no name: 1 to 64 visible characters are one");
                faults.at(&parameter.span(), problem);
            }
        }
    }

    /// The parameters to read back. A parameter at its default was not given, so no value is
    /// expected.
    pub(crate) fn of(
        &self,
        part: &Part,
        parametrization: &Parametrization,
    ) -> Vec<protocol::ReadBack> {
        let asked = |parameter: &str| {
            let value = parametrization.0.get(parameter)?;
            (!part.is_default(parameter, value)).then(|| value.to_string())
        };
        self.names
            .iter()
            .map(|(parameter, name)| protocol::ReadBack {
                parameter: part.outer_name(parameter.get_ref()).to_owned(),
                name: name.clone(),
                asked: asked(parameter.get_ref()),
                at_most: self
                    .at_most
                    .iter()
                    .any(|limit| limit.get_ref() == parameter.get_ref()),
            })
            .collect()
    }
}
