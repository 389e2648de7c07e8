//! A source: what a study learnt of its space relative to its own default, from which other studies
//! take their prior, and the process that predicts by it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use io_autotune_model::OTHERS_RATIO;
use io_autotune_model::space::{Parametrization, Point, Space};
use serde::{Deserialize, Serialize};

use super::observed::{Observed, observe};
use super::{Observation, Prediction, Scatter, Surrogate};
use crate::history::History;
use crate::history::by_point::{Known, MIN_RUNS, View};

/// The most points that a source keeps, those with most runs: fitting takes time proportional to
/// the cube of their number.
const MOST_LEARNT: usize = 48;
/// The least number of points that a source must have: fewer do not show a shape.
const LEAST_LEARNT: usize = 6;
/// The spread of measures: a source whose measures differ on average by this much, in logarithms,
/// has the weight exp(-1/2).
const MEASURES_SPREAD: f64 = 0.7;
/// The largest distance of measures, in spreads. The cap keeps a small weight for every source.
const FARTHEST: f64 = 3.0;
/// The distance if there is no measure that both have.
const UNKNOWN: f64 = 1.0;

/// The results of a study about its space, from which another study can take its prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    learnt: Vec<Learnt>,
    squares: f64,
    degrees: f64,
    /// The means of the logarithms of the measures of runs of the default, by name.
    measures: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Learnt {
    parametrization: Parametrization,
    /// The log of the point's mean elapsed over the default's.
    log_ratio: f64,
    runs: f64,
}

impl Source {
    /// A source from a study's history. None if too little is known of the default, or of other
    /// points.
    pub fn of(space: &Space, history: &History) -> Option<Self> {
        let view = View::new(space, history, &[]);
        let known: Vec<(&Point, &Known)> = view.iter().filter(|(_, k)| k.is_eligible()).collect();
        let Observed {
            mut observations,
            scatter,
            ..
        } = observe(&known, &view.default);
        let is_default = |one: &&Observation| one.point == view.default;
        let default = observations.iter().find(is_default)?.clone();
        if default.runs < MIN_RUNS as f64 || observations.len() < LEAST_LEARNT {
            return None;
        }
        // The default is kept or left out like any other point. The sort is stable, so equal ones
        // keep the space's order.
        observations.sort_by(|a, b| b.runs.total_cmp(&a.runs));
        observations.truncate(MOST_LEARNT);
        let learnt = observations.iter().map(|one| Learnt {
            parametrization: space.parametrization(&one.point),
            log_ratio: one.log_mean - default.log_mean,
            runs: one.runs,
        });
        Some(Source {
            learnt: learnt.collect(),
            squares: scatter.squares,
            degrees: scatter.degrees,
            measures: measures(&view),
        })
    }

    /// The means of the logarithms of the measures of runs of the default, by name.
    pub fn measures(&self) -> &BTreeMap<String, f64> {
        &self.measures
    }

    /// The distance of this source's measures from another study's, from 0 to 3.
    pub fn distance(&self, measures: &BTreeMap<String, f64>) -> f64 {
        let squares: Vec<f64> = measures
            .iter()
            .filter_map(|(name, own)| Some((self.measures.get(name)? - own) / MEASURES_SPREAD))
            .map(|difference| difference * difference)
            .collect();
        if squares.is_empty() {
            return UNKNOWN;
        }
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        mean.sqrt().min(FARTHEST)
    }
}

/// The means of the logarithms of the measures of runs of the default, by name.
pub fn measures(view: &View<'_>) -> BTreeMap<String, f64> {
    let default = view.default_known();
    let measures = default.measures.iter();
    // How busy the machine was says nothing about an application.
    let measures = measures.filter(|(name, one)| one.count > 0 && *name != OTHERS_RATIO);
    measures
        .map(|(name, one)| (name.clone(), one.mean))
        .collect()
}

/// A source with its process, which is fitted once for all studies that begin from it.
#[derive(Debug)]
pub struct SharedSource {
    source: Source,
    /// The user whose study it is, as a number that tells users apart and says no more. None if it
    /// is not known; such a source is no witness for what others found.
    user: Option<u32>,
    /// The process in the space of the first study that asked for it. Studies with another space
    /// fit their own.
    process: OnceLock<(Space, Option<Arc<Process>>)>,
}

impl From<Source> for SharedSource {
    fn from(source: Source) -> Self {
        SharedSource {
            source,
            user: None,
            process: OnceLock::new(),
        }
    }
}

impl SharedSource {
    /// A source of this user's study.
    #[must_use]
    pub fn of_user(source: Source, user: u32) -> Self {
        SharedSource {
            user: Some(user),
            ..source.into()
        }
    }

    /// The distance of its measures from another study's, from 0 to 3.
    pub(super) fn distance(&self, measures: &BTreeMap<String, f64>) -> f64 {
        self.source.distance(measures)
    }

    /// The user whose study it is, if known.
    pub(super) fn user(&self) -> Option<u32> {
        self.user
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.user == other.user && self.source == other.source
    }

    pub(super) fn process(&self, space: &Space) -> Option<Arc<Process>> {
        let fit = || Process::new(space, &self.source).map(Arc::new);
        let (of, process) = self.process.get_or_init(|| (space.clone(), fit()));
        match of == space {
            true => process.clone(),
            false => fit(),
        }
    }
}

/// What a source's study predicts.
#[derive(Debug)]
pub(super) struct Process {
    surrogate: Surrogate,
    /// The prediction of the default.
    default: f64,
    /// The points that the source's study ran, in this space.
    pub(super) points: Vec<Point>,
}

impl Process {
    fn new(space: &Space, source: &Source) -> Option<Self> {
        let observations: Vec<Observation> = source
            .learnt
            .iter()
            .filter_map(|one| {
                Some(Observation {
                    point: space.validate(&one.parametrization).ok()?,
                    log_mean: one.log_ratio,
                    runs: one.runs,
                })
            })
            .collect();
        let scatter = Scatter {
            squares: source.squares,
            degrees: source.degrees,
        };
        let surrogate = Surrogate::fit(space, &observations, scatter)?;
        Some(Process {
            default: surrogate.predict(&space.default_point()).mean,
            points: observations.into_iter().map(|one| one.point).collect(),
            surrogate,
        })
    }

    /// The predictions of the log ratio to the default.
    pub(super) fn predict(&self, points: &[Point]) -> Vec<Prediction> {
        let mut predictions = self.surrogate.predict_all(points);
        for one in &mut predictions {
            one.mean -= self.default;
        }
        predictions
    }

    /// The points that the source's study ran and found faster than the default.
    pub(super) fn found_faster(&self) -> impl Iterator<Item = &Point> {
        let means = self.expect(&self.points).into_iter();
        let found = self.points.iter().zip(means);
        found
            .filter(|(_, mean)| *mean < 0.0)
            .map(|(point, _)| point)
    }

    /// The means alone, which are cheaper.
    pub(super) fn expect(&self, points: &[Point]) -> Vec<f64> {
        let mut means = self.surrogate.expect_seen(&self.surrogate.seen(points));
        for mean in &mut means {
            *mean -= self.default;
        }
        means
    }
}
