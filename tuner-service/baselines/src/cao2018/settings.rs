//! The settings of the methods of Cao, Tarasov, Tiwari and Zadok 2018 (section 4.2).

use serde::{Deserialize, Serialize};

use crate::Revisits;

use io_autotune_search::checks::MAX_DESIGN_POINTS;
use io_autotune_search::checks::{SettingsError, positive, probability, whole};

/// The settings of the method `cao2018-annealing`. It starts with the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cao2018Annealing {
    /// The temperature at the start, as a share of the default's mean. The paper gives no number.
    pub initial_share: f64,
    /// The cooling schedule.
    pub cooling: Cao2018Cooling,
    /// The cost of revisiting a tested point.
    pub revisits: Revisits,
}

impl Default for Cao2018Annealing {
    fn default() -> Self {
        Cao2018Annealing {
            initial_share: 0.5,
            cooling: Cao2018Cooling::default(),
            revisits: Revisits::default(),
        }
    }
}

/// The cooling schedules (cao2018, section 3), k steps after T0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Cao2018Cooling {
    /// `T0 * (1 - k / budget)`, and 0 from then on.
    #[default]
    Linear,
    /// `T0 * factor^k`.
    Geometric {
        /// The factor, above 0 and at most 1.
        factor: f64,
    },
}

/// The settings of the method `cao2018-genetic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cao2018Genetic {
    /// The number of parametrizations in a generation: 8 in the paper.
    pub population: u32,
    /// The probability that a value mutates, from 0 to 1: 2 % in the paper, whose figure 7 goes up
    /// to 64 %.
    pub mutation_rate: f64,
    /// The cost of revisiting a tested point.
    pub revisits: Revisits,
    /// The selection of parents.
    pub selection: Cao2018Selection,
    /// The probability that two parents are crossed, from 0 to 1; otherwise their children are
    /// copies of them. The paper gives no number: 0.9 is Pyevolve's.
    pub crossover_rate: f64,
}

/// The selection of parents among a generation. The paper: "configurations with low throughput
/// values have a lower chance to be picked as parents" (section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cao2018Selection {
    /// The best, or one of those that are equally good: Pyevolve's default, `GRankSelector`.
    Best,
    /// By throughput: the reciprocal of the mean.
    #[default]
    Proportional,
    /// By rank: of n members the first is drawn n times as often as the last.
    Ranks,
}

impl Default for Cao2018Genetic {
    fn default() -> Self {
        Cao2018Genetic {
            population: 8,
            mutation_rate: 0.02,
            revisits: Revisits::default(),
            selection: Cao2018Selection::default(),
            crossover_rate: 0.9,
        }
    }
}

/// The settings of the method `cao2018-bayesian`: expected improvement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cao2018Bayesian {
    /// The number of initial points: seven in the paper, the default of each file system.
    pub design_points: u32,
}

impl Default for Cao2018Bayesian {
    fn default() -> Self {
        Cao2018Bayesian { design_points: 7 }
    }
}

/// The settings of the method `cao2018-dqn`. It starts with the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cao2018Dqn {
    /// The probability of a random action, from 0 to 1: the paper's epsilon, 0.2.
    pub exploration: f64,
    /// The discount factor per action, from 0 to 1. The paper gives no number.
    pub discount: f64,
    /// The cost of revisiting a tested point.
    pub revisits: Revisits,
}

impl Default for Cao2018Dqn {
    fn default() -> Self {
        Cao2018Dqn {
            exploration: 0.2,
            discount: 0.9,
            revisits: Revisits::default(),
        }
    }
}

impl Cao2018Annealing {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let unit = ", as a share of the default's mean";
        positive(
            "cao2018-annealing.initial_share",
            self.initial_share,
            1e6,
            unit,
        )?;
        match self.cooling {
            Cao2018Cooling::Linear => Ok(()),
            Cao2018Cooling::Geometric { factor } => {
                positive("cao2018-annealing.cooling.factor", factor, 1.0, "")
            }
        }
    }
}

impl Cao2018Genetic {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let setting = "cao2018-genetic.population";
        whole(setting, self.population, 2, MAX_DESIGN_POINTS)?;
        probability("cao2018-genetic.mutation_rate", self.mutation_rate)?;
        probability("cao2018-genetic.crossover_rate", self.crossover_rate)
    }
}

impl Cao2018Bayesian {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let setting = "cao2018-bayesian.design_points";
        whole(setting, self.design_points, 1, MAX_DESIGN_POINTS)
    }
}

impl Cao2018Dqn {
    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        probability("cao2018-dqn.exploration", self.exploration)?;
        probability("cao2018-dqn.discount", self.discount)
    }
}
