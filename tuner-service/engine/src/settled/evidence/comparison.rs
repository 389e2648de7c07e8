//! The effect that the blocks of one chosen parametrization show.

use io_autotune_search::math::Portable;
use std::collections::BTreeMap;

use io_autotune_model::Effect;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::curve::Curve;
use super::ranks::{self, LogMoment, MOST_TUNED};
use crate::settled::mean_interval::quantile;

/// The probability of a false effect over a study's life, half for each direction.
pub(super) const ERROR: f64 = 0.05;
/// The power at the smallest detectable gain.
const POWER: f64 = 0.8;
/// The weight of the scores' known variance, in blocks.
const PRIOR_BLOCKS: f64 = 10.0;
const MOST_BLOCKS: f64 = 20_000.0;
const STEPS: u32 = 80;
/// The minimum number of days for a monthly saving.
const LEAST_DAYS: f64 = 7.0;
/// The days of the present rate of runs.
const RECENT_DAYS: i64 = 30;
const DAY: i64 = 86_400_000_000;
const HOUR: f64 = 3600.0;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) place: u64,
    pub(super) control: Timed,
    /// Tuned runs, each with its distance from the control run.
    pub(super) tuned: Vec<(u64, Timed)>,
    /// The nodes of all chosen runs in the block.
    pub(super) nodes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Timed {
    /// A lower bound if cut short.
    pub(super) seconds: f64,
    pub(super) cut_short: bool,
    pub(super) nodes: f64,
}

impl Timed {
    /// Log seconds; infinite where censored: longer than all others.
    fn log(&self) -> f64 {
        if self.cut_short {
            f64::INFINITY
        } else {
            self.seconds.logarithm()
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sums {
    blocks: u64,
    tuned_runs: u64,
    /// Of scores, without a shift.
    total: f64,
    most: f64,
    variance: f64,
    log_moment: LogMoment,
    curve: Curve,
    hours: Hours,
}

/// Sums for node-hours. `apart`: a control run's hours less its block's mean tuned hours. `net`:
/// the nodes of the block's chosen runs less the control run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Hours {
    control_hours: f64,
    nodes: f64,
    nodes_apart: f64,
    control_nodes_apart: f64,
    net2: f64,
    net2_apart: f64,
    net2_apart2: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Spread {
    pub(super) runs: u64,
    /// The first start, microseconds since 1970.
    pub(super) first: i64,
    pub(super) last: i64,
    /// Nodes of its runs by day, for the latest days.
    nodes: BTreeMap<i64, f64>,
}

impl Spread {
    pub(super) fn record(&mut self, started: i64, nodes: f64) {
        if self.runs == 0 {
            self.first = started;
        }
        self.runs += 1;
        self.last = self.last.max(started);
        *self.nodes.entry(started.div_euclid(DAY)).or_default() += nodes;
        let oldest = self.last.div_euclid(DAY) - RECENT_DAYS;
        self.nodes.retain(|day, _| *day > oldest);
    }

    fn days(&self) -> f64 {
        (self.last - self.first) as f64 / DAY as f64
    }
}

impl Block {
    pub(super) fn has_tuned_runs(&self) -> bool {
        !self.tuned.is_empty()
    }
}

impl Sums {
    pub(super) fn add(&mut self, block: &Block) {
        let mut near: Vec<&(u64, Timed)> = block.tuned.iter().collect();
        near.sort_by_key(|(distance, _)| *distance);
        near.truncate(MOST_TUNED);
        let tuned: Vec<f64> = near.iter().map(|(_, run)| run.log()).collect();
        let control = block.control.log();
        let below = tuned.iter().filter(|run| **run < control).count();
        let not_above = tuned.iter().filter(|run| **run <= control).count();
        self.blocks += 1;
        self.tuned_runs += tuned.len() as u64;
        self.total += super::curve::block_score(tuned.len(), below, not_above);
        self.most += ranks::score(tuned.len(), tuned.len());
        self.variance += ranks::variance(tuned.len());
        for (sum, one) in self
            .log_moment
            .iter_mut()
            .zip(ranks::log_moment(tuned.len()))
        {
            *sum += one;
        }
        self.curve.add(control, &tuned);
        self.hours.add(block);
    }

    pub(super) fn effect(&self, number: u64, spread: &Spread) -> Option<Effect> {
        if self.blocks == 0 {
            return None;
        }
        let bound = log_bound(number);
        let excess = self.inflation().sqrt();
        let critical = ranks::critical(self.most, &self.log_moment, bound)
            .map(|critical| critical * excess)
            .filter(|critical| *critical < self.most);
        let deviation = self.variance.sqrt() * excess;
        let standard_error = self.standard_error(deviation);
        let total = self.total.abs() / excess;
        let evidence = ranks::log_evidence(total, &self.log_moment) - bound - ERROR.logarithm();
        let (mean, blocks) = (total / self.blocks as f64, self.blocks as f64);
        Some(Effect {
            epoch: 0,
            parametrization: String::new(),
            number,
            blocks: self.blocks,
            tuned_runs: self.tuned_runs,
            log_ratio: self.curve.centre(),
            low: critical.and_then(|level| self.curve.crossing(level).before),
            high: critical.and_then(|level| self.curve.crossing(-level).after),
            standard_error,
            log_evidence: evidence,
            detectable: critical.zip(standard_error).map(|(critical, error)| {
                1.0 - (-error * (critical / deviation + power_quantile())).exponential()
            }),
            blocks_needed: self.blocks_needed(mean, bound),
            default_hours: self.hours.nodes * self.hours.control_hours / blocks,
            saved: self.hours.nodes_apart,
            controls: self.hours.control_nodes_apart,
            net_variance: self.hours.net_variance(blocks),
            a_month: self.a_month(spread),
            last: spread.last,
        })
    }

    /// The variance of scores over the known one, at least 1. It is larger if control runs are
    /// noisier than tuned ones: then the ranks are not uniform under no effect.
    fn inflation(&self) -> f64 {
        let blocks = self.blocks as f64;
        let prior = self.variance / blocks * PRIOR_BLOCKS;
        // The centre costs one degree of freedom.
        let squares = self.curve.squares(self.curve.centre().unwrap_or(0.0));
        let seen = squares * blocks / (blocks - 1.0).max(1.0);
        ((seen + prior) / (self.variance + prior)).max(1.0)
    }

    /// Half the distance of the shifts where the sum of scores is one standard deviation from zero.
    fn standard_error(&self, deviation: f64) -> Option<f64> {
        let (low, high) = (
            self.curve.crossing(deviation),
            self.curve.crossing(-deviation),
        );
        let known = self.blocks > 1 && low.before.is_some() && high.after.is_some();
        known.then_some((high.at - low.at) / 2.0)
    }

    /// The number of such blocks, with this mean score, that reach the bound with the power.
    fn blocks_needed(&self, mean: f64, bound: f64) -> Option<f64> {
        let seen = self.blocks as f64;
        let variance = self.variance / seen;
        (0..STEPS)
            .map(|step| {
                MOST_BLOCKS
                    .power(f64::from(step) / f64::from(STEPS - 1))
                    .floor()
            })
            .find(|blocks| {
                let total = blocks * mean - power_quantile() * (blocks * variance).sqrt();
                let log_moment = self.log_moment.map(|sum| sum * blocks / seen);
                ranks::log_evidence(total.max(0.0), &log_moment) >= bound
            })
    }

    fn a_month(&self, spread: &Spread) -> Option<f64> {
        let days = spread.days();
        let recent: f64 = spread.nodes.values().sum();
        let month = RECENT_DAYS as f64;
        (days >= LEAST_DAYS)
            .then(|| recent / days.min(month) * month * self.hours.nodes_apart / self.hours.nodes)
    }
}

impl Hours {
    fn add(&mut self, block: &Block) {
        let tuned = block.tuned.iter().map(|(_, run)| run.seconds).sum::<f64>();
        let control = block.control.seconds / HOUR;
        let apart = control - tuned / block.tuned.len() as f64 / HOUR;
        let net2 = (block.nodes - block.control.nodes).powi(2);
        self.control_hours += control;
        self.nodes += block.nodes;
        self.nodes_apart += block.nodes * apart;
        self.control_nodes_apart += block.control.nodes * apart;
        self.net2 += net2;
        self.net2_apart += net2 * apart;
        self.net2_apart2 += net2 * apart * apart;
    }

    fn net_variance(&self, blocks: f64) -> Option<f64> {
        let mean = self.nodes_apart / self.nodes;
        let squares = self.net2_apart2 - 2.0 * mean * self.net2_apart + mean * mean * self.net2;
        let freedom = (blocks > 1.0).then_some(blocks - 1.0)?;
        // Student's t as a wider normal: few blocks hardly determine the variance.
        let wider = quantile(freedom)? / Normal::standard().inverse_cdf(0.975);
        Some(squares.max(0.0) * blocks / freedom * wider * wider)
    }
}

/// The bound on one direction's log evidence, in a study's comparison `number`.
fn log_bound(number: u64) -> f64 {
    let number = number as f64;
    (2.0 / ERROR * number * (number + 1.0)).logarithm()
}

fn power_quantile() -> f64 {
    Normal::standard().inverse_cdf(POWER)
}
