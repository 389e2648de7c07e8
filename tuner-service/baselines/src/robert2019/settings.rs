//! The settings of the methods of Robert, Zertal and Goret 2019 (section III-B).

use crate::Revisits;
use crate::annealing::Restart;
use io_autotune_model::reason::Acquisition;
use serde::{Deserialize, Serialize};

use io_autotune_search::acquisition::{self, Scale};
use io_autotune_search::checks::{MAX_DESIGN_POINTS, SettingsError, positive, probability, whole};

/// The settings of the method `robert2019-surrogate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Robert2019Surrogate {
    /// The number of points of the Latin hypercube. The paper gives no number.
    pub design_points: u32,
    /// The acquisition function (section II-B-1).
    pub acquisition: Acquisition,
    /// The quantity that the process models. The paper says no more than "gaussian process
    /// regression".
    pub scale: Scale,
    /// Says which tested points may run again.
    pub revisits: acquisition::Revisits,
}

impl Default for Robert2019Surrogate {
    fn default() -> Self {
        Robert2019Surrogate {
            design_points: 15,
            acquisition: Acquisition::default(),
            scale: Scale::default(),
            revisits: acquisition::Revisits::default(),
        }
    }
}

/// The settings of the method `robert2019-annealing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Robert2019Annealing {
    /// The number of points of the Latin hypercube, of which the best is the start.
    pub design_points: u32,
    /// The temperature at the start, in seconds: 1000 in the paper.
    pub initial_temperature: f64,
    /// The cooling schedule.
    pub cooling: Robert2019Cooling,
    /// The rule by which the temperature is reset.
    pub restart: Restart,
    /// The cost of revisiting a tested point.
    pub revisits: Revisits,
}

impl Default for Robert2019Annealing {
    fn default() -> Self {
        Robert2019Annealing {
            design_points: 15,
            initial_temperature: 1000.0,
            cooling: Robert2019Cooling::default(),
            restart: Restart::default(),
            revisits: Revisits::default(),
        }
    }
}

/// The cooling schedules (robert2019, section III-B-2), k steps after T0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Robert2019Cooling {
    /// `T0 * factor^k` (Kirkpatrick, Gelatt and Vecchi 1983).
    Exponential {
        /// The factor, above 0 and at most 1.
        factor: f64,
    },
    /// `T0 / (1 + factor * k)`.
    Multiplicative {
        /// The factor, above 0.
        factor: f64,
    },
    /// `T0 / (1 + factor * ln(1 + k))`.
    Logarithmic {
        /// The factor, above 0.
        factor: f64,
    },
}

impl Default for Robert2019Cooling {
    fn default() -> Self {
        Robert2019Cooling::Exponential { factor: 0.9 }
    }
}

impl Robert2019Surrogate {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let setting = "robert2019-surrogate.design_points";
        whole(setting, self.design_points, 2, MAX_DESIGN_POINTS)
    }
}

impl Robert2019Annealing {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let setting = "robert2019-annealing.design_points";
        whole(setting, self.design_points, 0, MAX_DESIGN_POINTS)?;
        let setting = "robert2019-annealing.initial_temperature";
        positive(setting, self.initial_temperature, 1e12, " s")?;
        let (factor, max) = match self.cooling {
            Robert2019Cooling::Exponential { factor } => (factor, 1.0),
            Robert2019Cooling::Multiplicative { factor }
            | Robert2019Cooling::Logarithmic { factor } => (factor, 1e6),
        };
        positive("robert2019-annealing.cooling.factor", factor, max, "")?;
        match self.restart {
            Restart::None => Ok(()),
            Restart::Random { probability: value } => {
                probability("robert2019-annealing.restart.probability", value)
            }
            Restart::Threshold { share } => {
                let unit = ", as a share of the start's mean";
                positive("robert2019-annealing.restart.share", share, 1.0, unit)
            }
        }
    }
}
