//! Which parameters the accelerator itself can be asked for while it is in use, and by what.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_model::Parametrization;
use io_autotune_protocol as protocol;
use serde::Deserialize;
use toml::Spanned;

use crate::Part;
use crate::fault::Faults;

/// What reads back what is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// The profiling library of `mpi-in-force/`: what the MPI library tells of files that it opens.
    MpiInForce,
}

/// The `[read_back]` of a catalogue file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBack {
    /// What reads.
    pub by: Reader,
    /// What it calls each parameter that it can tell.
    pub names: BTreeMap<Spanned<String>, String>,
    /// Parameters that are upper limits: a smaller number in force is no other value.
    #[serde(default)]
    pub at_most: Vec<Spanned<String>>,
}

impl ReadBack {
    /// Notes what is wrong.
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

    /// What is to be read back of a run under `parametrization`, which is the part's own. What is at its default was
    /// not given to the job, and is not asked for.
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
