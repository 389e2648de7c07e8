//! The settings of `robert2020`: the rows of the paper's table V.

use serde::{Deserialize, Serialize};

use io_autotune_search::checks::{SettingsError, positive, probability, whole};

/// The settings of the method `robert2020`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Robert2020 {
    /// How the parents of a child are chosen (section V-B).
    pub selection: Selection,
    /// How they are mixed (section V-C).
    pub crossover: Crossover,
    /// The probability that a child mutates, from 0 to 1 (sections V-D and VIII-D).
    pub mutation_rate: f64,
    /// How noise is reduced (section VI); by default standard-error dynamic resampling.
    pub noise: Noise,
    /// The p of `th_se = p * mean of the design` and `n = s^2 / (p^2 m^2)` (section VI-A-c).
    pub resampling_share: f64,
    /// Whether design points predicted too slow (`loss.design_most`) are dropped. The paper's are
    /// not.
    pub drops_design_points: bool,
    /// How the probabilistic pick weighs (section V-B).
    pub weight: Weight,
    /// Where a mutation goes (section V-D).
    pub mutation: Mutation,
    /// Of what a neighbourhood is a share (section VI-B).
    pub neighbours_of: NeighboursOf,
}

impl Default for Robert2020 {
    fn default() -> Self {
        Robert2020 {
            selection: Selection::default(),
            crossover: Crossover::default(),
            mutation_rate: 0.2,
            noise: Noise::default(),
            resampling_share: 0.10,
            drops_design_points: false,
            weight: Weight::default(),
            mutation: Mutation::default(),
            neighbours_of: NeighboursOf::default(),
        }
    }
}

/// How parents are chosen (robert2020, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Selection {
    /// The best by mean of each of two random pools are the parents.
    Tournament {
        /// The size of a pool; 0: the tested are divided in two (robert2019, section III-B-3). This
        /// paper gives no number.
        pool_size: u32,
    },
    /// Parents are drawn with a probability that falls as their mean rises.
    Probabilistic,
}

impl Default for Selection {
    fn default() -> Self {
        Selection::Tournament { pool_size: 0 }
    }
}

/// How the probabilistic pick weighs a mean t. The papers do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// `1 / t`.
    #[default]
    Inverse,
    /// `1 / (t - least t + 1 s)`, as in the authors' later program.
    AboveLeast,
}

/// Where a mutation goes, a random walk (robert2020, section V-D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutation {
    /// "In every direction" (robert2019, section III-B): each parameter goes one level up or down,
    /// or stays.
    #[default]
    Every,
    /// One random parameter goes one level up or down.
    One,
}

/// Of what a neighbourhood is a share (robert2020, section VI-B: "n the total population size").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighboursOf {
    /// Of the space (section IV: "its size will be denoted as n"); those that were tested.
    #[default]
    Space,
    /// Of the tested.
    Tested,
}

/// How two parents become one child (robert2020, section V-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Crossover {
    /// One cut: the first part of one parent, the rest of the other.
    #[default]
    SinglePoint,
    /// Several cuts: the parts come from the parents in turn.
    NPoint {
        /// The number of cuts. A space of d parameters has d - 1 places to cut; more are not made.
        points: u32,
    },
}

/// How noise is reduced (robert2020, section VI and the classes of table V).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Noise {
    /// Not at all: each child runs once (class CGA).
    None,
    /// Children run again (class RGA).
    Resampling {
        /// How often.
        resampling: Resampling,
    },
    /// Parents are selected by what a regression on their neighbours estimates (class FGA).
    Regression {
        /// Which regression.
        regression: Regression,
        /// The share of `neighbours_of` that is a point's neighbourhood, above 0 and at most 1.
        neighbour_share: f64,
    },
    /// Both (class FRGA).
    Both {
        /// How often children run again.
        resampling: Resampling,
        /// Which regression.
        regression: Regression,
        /// The share of `neighbours_of` that is a point's neighbourhood, above 0 and at most 1.
        neighbour_share: f64,
    },
}

impl Default for Noise {
    fn default() -> Self {
        Noise::Resampling {
            resampling: Resampling::Sedr,
        }
    }
}

impl Noise {
    /// The resampling, if any.
    pub(crate) fn resampling(self) -> Option<Resampling> {
        match self {
            Noise::Resampling { resampling } | Noise::Both { resampling, .. } => Some(resampling),
            Noise::None | Noise::Regression { .. } => None,
        }
    }

    /// The regression and the share of its neighbourhood, if any.
    pub(crate) fn regression(self) -> Option<(Regression, f64)> {
        match self {
            Noise::Regression {
                regression,
                neighbour_share,
            }
            | Noise::Both {
                regression,
                neighbour_share,
                ..
            } => Some((regression, neighbour_share)),
            Noise::None | Noise::Resampling { .. } => None,
        }
    }
}

/// How often a child runs (robert2020, section VI-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resampling {
    /// Until the standard error of its mean is below a threshold (section VI-A-b).
    Sedr,
    /// Equally often, whatever it is (section VI-A-a).
    Averaging,
}

/// What estimates a parametrization from its neighbourhood (robert2020, section VI-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regression {
    /// The mean, weighted by nearness with the tricube weight (section VI-B-a).
    Weighted,
    /// A polynomial of second degree, fitted by least squares (section VI-B-b).
    Quadratic,
}

impl Robert2020 {
    /// Errs with the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if let Selection::Tournament { pool_size } = self.selection {
            whole("robert2020.selection.pool_size", pool_size, 0, 100_000)?;
        }
        if let Crossover::NPoint { points } = self.crossover {
            whole("robert2020.crossover.points", points, 1, 100)?;
        }
        probability("robert2020.mutation_rate", self.mutation_rate)?;
        if let Some((_, share)) = self.noise.regression() {
            let unit = ", as a share of the population";
            positive("robert2020.noise.neighbour_share", share, 1.0, unit)?;
        }
        positive(
            "robert2020.resampling_share",
            self.resampling_share,
            10.0,
            ", as a share of the design's mean",
        )
    }
}
