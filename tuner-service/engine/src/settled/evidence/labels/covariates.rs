//! Noise that is explained by what is known before a run's start.
//!
//! Log elapsed is compared after `beta x` has been subtracted. Any x that is fixed before the label
//! is drawn, with any beta that follows from earlier runs alone, leaves the evidence valid, however
//! wrong they are: both labels would have had the same x. No measure of the run itself is used,
//! because a parametrization can change what a run does, and with it the comparison.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use io_autotune_search::math::Portable;
use serde::{Deserialize, Serialize};

use super::{PER_MAD, Seen, middle};

const COVARIATES: usize = 6;
/// The least number of runs before a slope is believed.
const LEAST_RUNS: usize = 20;
/// The number of standard errors from which on a slope is believed: a covariate that explains
/// nothing costs runs.
const SURELY: f64 = 3.0;
/// The number of runs without a slope that weigh in with it (a ridge).
const RIDGE: f64 = 3.0;
/// Residuals beyond this many deviations are cut off.
const CLIP: f64 = 2.0;
const DAY: f64 = 86_400.0;

/// The covariates of a run, which are known before its label is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::settled::evidence) struct Before {
    /// The start, in microseconds since 1970.
    pub(in crate::settled::evidence) started: i64,
    pub(in crate::settled::evidence) nodes: u32,
    /// How other runs fared; 0 if that is not known.
    pub(in crate::settled::evidence) slowness: f64,
}

/// The slopes of covariates, by earlier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slopes([f64; COVARIATES]);

impl Before {
    /// The covariates: how other runs fared lately, the number of nodes, and the hour of the day
    /// and of the week.
    fn covariates(self) -> [f64; COVARIATES] {
        let angle = |period: f64| TAU * (self.started as f64 / 1e6 / period).fract();
        let [day, week] = [DAY, 7.0 * DAY].map(|period| angle(period).sine_cosine());
        let nodes = f64::from(self.nodes.max(1)).logarithm();
        [self.slowness, nodes, day.0, day.1, week.0, week.1]
    }
}

impl Slopes {
    pub(super) fn of(recent: &VecDeque<Seen>) -> Self {
        let known: Vec<(&Seen, f64)> = recent
            .iter()
            .filter_map(|run| Some((run, run.log?)))
            .collect();
        let mut slopes = Slopes::default();
        if known.len() < LEAST_RUNS {
            return slopes;
        }
        let labels: Vec<bool> = known.iter().map(|(run, _)| run.is_control).collect();
        let mut residuals: Vec<f64> = known.iter().map(|(_, log)| *log).collect();
        let covariates: Vec<[f64; COVARIATES]> = known
            .iter()
            .map(|(run, _)| run.before.covariates())
            .collect();
        let centred = |residuals: &mut [f64]| {
            centre(&labels, residuals, |own| middle(own).unwrap_or_default());
            let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
            PER_MAD * middle(&mut sizes).unwrap_or_default()
        };
        let mut deviation = centred(&mut residuals);
        for place in 0..COVARIATES {
            let mut x: Vec<f64> = covariates.iter().map(|one| one[place]).collect();
            centre(&labels, &mut x, |own| {
                own.iter().sum::<f64>() / own.len() as f64
            });
            let slope = slope(&x, &residuals, deviation);
            if slope != 0.0 {
                slopes.0[place] = slope;
                for (residual, x) in residuals.iter_mut().zip(&x) {
                    *residual -= slope * x;
                }
                deviation = centred(&mut residuals);
            }
        }
        slopes
    }

    /// The covariates that are believed to explain noise, in words.
    pub(super) fn named(&self) -> Vec<&'static str> {
        let [slowness, nodes, day @ .., week_sine, week_cosine] = self.0.map(|slope| slope != 0.0);
        [
            (slowness, "how other runs fared"),
            (nodes, "the number of nodes"),
            (day.contains(&true), "the hour of the day"),
            (week_sine || week_cosine, "the day of the week"),
        ]
        .into_iter()
        .filter(|(is_believed, _)| *is_believed)
        .map(|(_, what)| what)
        .collect()
    }

    /// The part of a run's log elapsed that the slopes explain.
    pub(super) fn explain(&self, before: Before) -> f64 {
        if *self == Self::default() {
            return 0.0;
        }
        let products = self.0.iter().zip(before.covariates());
        products.map(|(slope, x)| slope * x).sum()
    }
}

/// Subtracts from each label's numbers their centre, so that the difference between labels is not
/// explained away.
fn centre(labels: &[bool], numbers: &mut [f64], of: impl Fn(&mut [f64]) -> f64) {
    for label in [false, true] {
        let own = labels.iter().zip(&*numbers);
        let own = own.filter(|(one, _)| **one == label);
        let mut own: Vec<f64> = own.map(|(_, number)| *number).collect();
        if own.is_empty() {
            continue;
        }
        let centre = of(&mut own);
        for (_, number) in labels
            .iter()
            .zip(&mut *numbers)
            .filter(|one| *one.0 == label)
        {
            *number -= centre;
        }
    }
}

/// The slope of residuals with this deviation on a centred covariate; 0 if it may be chance.
fn slope(x: &[f64], residuals: &[f64], deviation: f64) -> f64 {
    let runs = x.len() as f64;
    let squares = x.iter().map(|x| x * x).sum::<f64>();
    if !(squares > 1e-9 * runs && deviation > 0.0) {
        return 0.0;
    }
    let most = CLIP * deviation;
    let products: f64 = x
        .iter()
        .zip(residuals)
        .map(|(x, residual)| x * residual.clamp(-most, most))
        .sum();
    if products.abs() < SURELY * deviation * squares.sqrt() {
        return 0.0;
    }
    products / (squares * (1.0 + RIDGE / runs))
}
