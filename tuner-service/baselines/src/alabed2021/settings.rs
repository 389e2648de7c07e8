//! The settings of the method of Alabed and Yoneki 2021.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use io_autotune_model::reason::Acquisition;
use io_autotune_search::checks::MAX_DESIGN_POINTS;
use io_autotune_search::checks::{SettingsError, whole};

/// The maximum number of measures beside elapsed: work is cubic in their number.
pub(crate) const MOST_TASKS: usize = 3;

/// The settings of the method `alabed2021-multitask`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Alabed2021Multitask {
    /// The number of points of the Latin hypercube. The paper gives no number.
    pub design_points: u32,
    /// The acquisition function. The paper gives none.
    pub acquisition: Acquisition,
    /// The measures, at most 3. If empty, the three varying ones that are known for most
    /// parametrizations, then by name.
    pub measures: Vec<String>,
    /// The parameters that each measure depends on.
    pub clusters: Clusters,
    /// The parameters that elapsed depends on.
    pub objective: Objective,
}

impl Default for Alabed2021Multitask {
    fn default() -> Self {
        Alabed2021Multitask {
            design_points: 15,
            acquisition: Acquisition::default(),
            measures: Vec::new(),
            clusters: Clusters::default(),
            objective: Objective::default(),
        }
    }
}

/// The parameters that elapsed depends on ("reducing the maximum effective dimension").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Elapsed depends on all parameters.
    #[default]
    All,
    /// Elapsed depends by itself on the parameters of no measure that correlates with it; on the
    /// others it depends through these measures. With clusters by covariance a parameter that
    /// explains more of elapsed than of a measure is elapsed's own.
    Own,
}

/// The parameters of each measure ("assigning a subset of parameters to each task").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Clusters {
    /// Each measure depends on all parameters.
    #[default]
    All,
    /// Each parameter goes to the measure that it explains most of: "picking association with the
    /// highest covariance values".
    Covariance,
    /// The parameters are given by hand.
    ByHand {
        /// Parameter names by measure. Unknown names are ignored; other measures depend on all
        /// parameters.
        parameters: BTreeMap<String, Vec<String>>,
    },
}

impl Alabed2021Multitask {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let setting = "alabed2021-multitask.design_points";
        whole(setting, self.design_points, 2, MAX_DESIGN_POINTS)?;
        if self.measures.len() > MOST_TASKS {
            return Err(SettingsError {
                setting: "alabed2021-multitask.measures",
                value: format!("{} names", self.measures.len()),
                allowed: format!("at most {MOST_TASKS} names"),
            });
        }
        let Clusters::ByHand { parameters } = &self.clusters else {
            return Ok(());
        };
        match parameters.iter().find(|(_, names)| names.is_empty()) {
            Some((measure, _)) => Err(SettingsError {
                setting: "alabed2021-multitask.clusters.parameters",
                value: format!("empty for {measure:?}"),
                allowed:
                    "one parameter or more for each measure; leave out a measure that depends \
                          on all"
                        .to_owned(),
            }),
            None => Ok(()),
        }
    }
}
