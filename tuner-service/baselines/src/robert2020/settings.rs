//! The settings of `robert2020`: the rows of the paper's table V.

use serde::{Deserialize, Serialize};

use io_autotune_search::checks::{SettingsError, positive, probability, whole};

/// The settings of the method `robert2020`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Robert2020 {
    /// The selection of a child's parents (section V-B).
    pub selection: Selection,
    /// The crossover of the parents (section V-C).
    pub crossover: Crossover,
    /// The probability that a child mutates, from 0 to 1 (sections V-D and VIII-D).
    pub mutation_rate: f64,
    /// The reduction of noise (section VI); by default standard-error dynamic resampling.
    pub noise: Noise,
    /// The p of `th_se = p * mean of the design` and `n = s^2 / (p^2 m^2)` (section VI-A-c).
    pub resampling_share: f64,
    /// True if design points that are predicted too slow (`loss.design_most`) are dropped. The
    /// paper does not drop any.
    pub drops_design_points: bool,
    /// The weight of a mean in the probabilistic pick (section V-B).
    pub weight: Weight,
    /// The directions of a mutation (section V-D).
    pub mutation: Mutation,
    /// The set of which a neighbourhood is a share (section VI-B).
    pub neighbours_of: NeighboursOf,
    /// The tested points that a child may be (section V says nothing of them).
    pub revisits: ChildRevisits,
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
            revisits: ChildRevisits::default(),
        }
    }
}

/// The selection of parents (robert2020, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Selection {
    /// The best by mean of each of two random pools are the parents.
    Tournament {
        /// The size of a pool; 0: the tested points are divided in two (robert2019, section
        /// III-B-3). This paper gives no number.
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

/// The weight of a mean t in the probabilistic pick. The papers do not give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// `1 / t`.
    #[default]
    Inverse,
    /// `1 / (t - least t + 1 s)`, as in the authors' later program.
    AboveLeast,
}

/// The directions of a mutation, which is a random walk (robert2020, section V-D).
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

/// The set of which a neighbourhood is a share (robert2020, section VI-B: "n the total population
/// size").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighboursOf {
    /// The space (section IV: "its size will be denoted as n"); the neighbours are the tested
    /// points among those.
    #[default]
    Space,
    /// The tested points.
    Tested,
}

/// The tested points that a child may be, which then run once more. A child that may not run is
/// drawn again. The papers say nothing of such children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildRevisits {
    /// None: nothing runs twice, but for resampling.
    Never,
    /// Any but its parents, as in the authors' later program.
    UnlikeParents,
    /// Any: what crossover and mutation make runs, whatever it is.
    #[default]
    Any,
}

/// The crossover of two parents into one child (robert2020, section V-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Crossover {
    /// One cut: the first part of one parent, the rest of the other.
    #[default]
    SinglePoint,
    /// Several cuts: the parts come from the parents in turn.
    NPoint {
        /// The number of cuts. A space of d parameters has d - 1 places to cut; further cuts are
        /// not made.
        points: u32,
    },
}

/// The reduction of noise (robert2020, section VI and the classes of table V).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Noise {
    /// None: each child runs once (class CGA).
    None,
    /// Children run again (class RGA).
    Resampling {
        /// The rule for the number of runs.
        resampling: Resampling,
    },
    /// Parents are selected by the estimates of a regression on their neighbours (class FGA).
    Regression {
        /// The regression.
        regression: Regression,
        /// The share of `neighbours_of` that is a point's neighbourhood, above 0 and at most 1.
        neighbour_share: f64,
    },
    /// Resampling and regression (class FRGA).
    Both {
        /// The rule for the number of runs.
        resampling: Resampling,
        /// The regression.
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

/// The rule for a child's number of runs (robert2020, section VI-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resampling {
    /// Until the standard error of its mean is below a threshold (section VI-A-b).
    Sedr,
    /// The same number of times for every child (section VI-A-a).
    Averaging,
}

/// The estimator of a parametrization from its neighbourhood (robert2020, section VI-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regression {
    /// The mean, weighted by nearness with the tricube weight (section VI-B-a).
    Weighted,
    /// A polynomial of second degree, fitted by least squares (section VI-B-b).
    Quadratic,
}

impl Robert2020 {
    /// Returns an error for the first setting that cannot be used.
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
