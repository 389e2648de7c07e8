//! A site: applications that tune one accelerator, alike as far as they belong to one family.

use std::collections::BTreeMap;

use io_autotune_engine::{Parametrization, Point, Space};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::Failure;
use crate::surroundings::normal;

pub(crate) const FAMILIES: usize = 3;
/// Applications of each family.
pub(crate) const MEMBERS: usize = 4;
const DEFAULT_SECONDS: f64 = 100.0;
/// The gain of the best point: the log of the default's time over its own is between these.
const LEAST_GAIN: f64 = 0.15;
const MOST_GAIN: f64 = 0.9;
/// How much of an application's response is everyone's, its family's, and its own.
const EVERYONE: f64 = 0.5;
const FAMILY: f64 = 0.6;
const OWN: f64 = 0.4;
const MEASURES: [&str; 4] = ["bytes_read", "bytes_written", "calls", "cpu_seconds"];

/// The space of all.
pub(crate) fn space() -> Result<Space, Failure> {
    let words = ["automatic", "enable", "disable"];
    Ok(serde_json::from_value(json!([
        { "name": "stripes", "kind": "ordered", "values": [1, 2, 4, 8, 16, 32, 64], "default": 2 },
        { "name": "writers", "kind": "integer", "min": 1, "max": 8, "default": 1 },
        { "name": "buffer", "kind": "ordered", "values": [1, 4, 16, 64, 256, 1024], "default": 16 },
        { "name": "buffering", "kind": "categories", "values": words, "default": "automatic" },
        { "name": "collective", "kind": "categories", "values": words, "default": "automatic" },
        { "name": "read_ahead", "kind": "ordered", "values": [64, 128, 256, 512, 1024, 2048],
          "default": 128 },
    ]))?)
}

/// The effects of values on the log of elapsed, before it is scaled.
#[derive(Clone, Debug)]
struct Response {
    /// The effects of each parameter's levels.
    curves: Vec<Vec<f64>>,
    /// The effects of two parameters together, both moved towards their ends.
    pairs: Vec<(usize, usize, f64)>,
}

impl Response {
    fn drawn(levels: &[(usize, bool)], rng: &mut ChaCha8Rng) -> Self {
        let curves = levels.iter().map(|(levels, ordered)| {
            let importance = (0.8 * normal(rng)).exp();
            let (tilt, bend) = (normal(rng), normal(rng));
            let centre: f64 = rng.random();
            (0..*levels)
                .map(|level| {
                    let x = level as f64 / (levels - 1) as f64;
                    let smooth = tilt * (x - 0.5) + 2.0 * bend * ((x - centre).powi(2) - 0.1);
                    importance * if *ordered { smooth } else { 0.6 * normal(rng) }
                })
                .collect()
        });
        let curves = curves.collect();
        let pairs = (0..3).map(|_| {
            let (one, other) = (
                rng.random_range(0..levels.len()),
                rng.random_range(0..levels.len()),
            );
            (one, other, 0.8 * normal(rng))
        });
        Response {
            curves,
            pairs: pairs.collect(),
        }
    }

    fn of(&self, point: &Point, levels: &[(usize, bool)]) -> f64 {
        let share = |place: usize| f64::from(point.0[place]) / (levels[place].0 - 1) as f64 - 0.5;
        let curves = self.curves.iter().zip(&point.0);
        let alone: f64 = curves.map(|(curve, level)| curve[*level as usize]).sum();
        let pairs = self.pairs.iter();
        let together: f64 = pairs
            .map(|(one, other, weight)| weight * share(*one) * share(*other))
            .sum();
        alone + together
    }
}

/// An application: what each point takes, and what its runs do.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    parts: Vec<(f64, Response)>,
    levels: Vec<(usize, bool)>,
    /// The factor of all parts; negative where the best is made the worst.
    pub(crate) scale: f64,
    default: f64,
    /// Log of the best point's elapsed over the default's.
    pub(crate) best: f64,
    pub(crate) measures: BTreeMap<String, f64>,
    /// How much longer or shorter its runs are than others'.
    pub(crate) seconds: f64,
}

impl Application {
    fn new(
        space: &Space,
        parts: Vec<(f64, Response)>,
        measures: &[f64],
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let levels = levels(space);
        let mut application = Application {
            parts,
            levels,
            scale: 1.0,
            default: 0.0,
            best: 0.0,
            measures: MEASURES
                .iter()
                .zip(measures)
                .map(|(name, log)| ((*name).to_owned(), (log + 0.3 * normal(rng)).exp()))
                .collect(),
            seconds: DEFAULT_SECONDS * normal(rng).exp(),
        };
        application.default = application.raw(&space.default_point());
        let lowest = application.lowest();
        let gain = rng.random_range(LEAST_GAIN..MOST_GAIN);
        application.scale = gain / (application.default - lowest).max(0.05);
        application.best = -gain;
        application
    }

    /// The same, but what is fast is slow.
    pub(crate) fn negated(&self) -> Self {
        let mut negated = Application {
            scale: -self.scale,
            ..self.clone()
        };
        negated.best = negated.scale * (negated.lowest() - negated.default);
        negated
    }

    fn raw(&self, point: &Point) -> f64 {
        let parts = self.parts.iter();
        parts
            .map(|(weight, part)| weight * part.of(point, &self.levels))
            .sum()
    }

    /// Returns the effect of the best point before scaling.
    fn lowest(&self) -> f64 {
        let mut point = Point(vec![0; self.levels.len()]);
        let mut lowest = f64::INFINITY;
        loop {
            let raw = self.raw(&point);
            lowest = lowest.min(if self.scale < 0.0 { -raw } else { raw });
            let next = self.levels.iter().enumerate().find(|(place, (levels, _))| {
                point.0[*place] += 1;
                let more = (point.0[*place] as usize) < *levels;
                if !more {
                    point.0[*place] = 0;
                }
                more
            });
            if next.is_none() {
                return if self.scale < 0.0 { -lowest } else { lowest };
            }
        }
    }

    pub(crate) fn log_ratio(&self, space: &Space, given: &Parametrization) -> f64 {
        let point = space
            .validate(given)
            .unwrap_or_else(|_| space.default_point());
        self.scale * (self.raw(&point) - self.default)
    }
}

fn levels(space: &Space) -> Vec<(usize, bool)> {
    let parameters = space.parameters().iter();
    parameters
        .map(|one| (one.levels(), one.is_ordered()))
        .collect()
}

/// The applications of a site, and some that have nothing in common with them.
pub(crate) struct Site {
    pub(crate) applications: Vec<Application>,
    pub(crate) unrelated: Vec<Application>,
}

impl Site {
    pub(crate) fn new(space: &Space, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rng = &mut rng;
        let levels = levels(space);
        let everyone = Response::drawn(&levels, rng);
        let mut applications = Vec::new();
        for _ in 0..FAMILIES {
            let family = Response::drawn(&levels, rng);
            let measures: Vec<f64> = MEASURES.iter().map(|_| 1.5 * normal(rng)).collect();
            for _ in 0..MEMBERS {
                let parts = vec![
                    (EVERYONE, everyone.clone()),
                    (FAMILY, family.clone()),
                    (OWN, Response::drawn(&levels, rng)),
                ];
                applications.push(Application::new(space, parts, &measures, rng));
            }
        }
        let unrelated = (0..8).map(|_| {
            let measures: Vec<f64> = MEASURES.iter().map(|_| 1.5 * normal(rng)).collect();
            let parts = vec![(1.0, Response::drawn(&levels, rng))];
            Application::new(space, parts, &measures, rng)
        });
        let unrelated = unrelated.collect();
        Site {
            applications,
            unrelated,
        }
    }
}
