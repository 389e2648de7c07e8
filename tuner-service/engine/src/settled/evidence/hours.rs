//! The node-hours that an epoch's chosen runs saved.
//!
//! A chosen run joins the nearest control run, at most [`REACH`] counted runs away. Such a *block*
//! is the unit, so that slow drift cancels out. The control run's elapsed less the mean elapsed of
//! the block's settled runs is what each node of the block saved per run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::settled::mean_interval::quantile;

/// The largest distance of a chosen run from its control run, in counted runs.
const REACH: u64 = 40;
/// The minimum number of days for a monthly saving.
const LEAST_DAYS: f64 = 7.0;
/// The number of days from which the present rate of runs is computed.
const RECENT_DAYS: i64 = 30;
const DAY: i64 = 86_400_000_000;
const HOUR: f64 = 3600.0;

/// Sums over an epoch's blocks. Their size does not grow with the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Hours {
    sums: Sums,
    spread: Spread,
    /// The last control run, with the runs that no later control run can take.
    block: Option<Block>,
    /// Runs that a later control run may still take.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Timed {
    pub(super) place: u64,
    /// The start, in microseconds since 1970.
    pub(super) started: i64,
    /// Elapsed, in seconds; a lower bound if the run was cut short.
    pub(super) seconds: f64,
    pub(super) nodes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Waiting {
    run: Timed,
    /// True if the draw could have made it a control run.
    is_settled: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Block {
    control: Timed,
    settled: u64,
    settled_seconds: f64,
    /// The sum of nodes of all chosen runs in the block.
    nodes: f64,
}

/// Sums over blocks. `apart` is a control run's hours less the mean hours of its block's settled
/// runs. `net` is the number of nodes of the block's chosen runs less that of the control run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    blocks: u64,
    control_hours: f64,
    nodes: f64,
    nodes_apart: f64,
    control_nodes_apart: f64,
    net2: f64,
    net2_apart: f64,
    net2_apart2: f64,
}

/// The distribution of chosen runs in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Spread {
    runs: u64,
    /// The first start, in microseconds since 1970.
    first: i64,
    last: i64,
    /// The nodes of runs by day, for the latest days.
    nodes: BTreeMap<i64, f64>,
}

/// The node-hours of [`Effect`](io_autotune_model::Effect).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) default_hours: f64,
    pub(super) saved: f64,
    pub(super) controls: f64,
    pub(super) net_variance: Option<f64>,
    pub(super) a_month: Option<f64>,
    pub(super) last: i64,
}

impl Hours {
    /// The number of chosen runs.
    pub(super) fn runs(&self) -> u64 {
        self.spread.runs
    }

    /// Adds a run of the chosen parametrization.
    pub(super) fn choose(&mut self, run: Timed, is_settled: bool) {
        self.spread.record(run.started, run.nodes);
        self.waiting.push(Waiting { run, is_settled });
        self.settle(|waiting| run.place - waiting.place >= REACH);
    }

    /// Adds a control run.
    pub(super) fn control(&mut self, control: Timed) {
        let before = self.block.as_ref().map(|block| block.control.place);
        self.settle(|waiting| {
            let behind = before.map_or(u64::MAX, |before| waiting.place - before);
            behind <= control.place - waiting.place
        });
        let mut next = Block {
            control,
            settled: 0,
            settled_seconds: 0.0,
            nodes: 0.0,
        };
        for waiting in self.waiting.drain(..) {
            next.take(&waiting);
        }
        if let Some(block) = self.block.replace(next) {
            self.sums.add(&block);
        }
        if self.spread.runs > 0 {
            self.spread.last = self.spread.last.max(control.started);
        }
    }

    /// The savings so far; none without a block.
    pub(super) fn saved(&self) -> Option<Saved> {
        let mut sums = self.sums;
        if let Some(mut open) = self.block.clone() {
            for waiting in &self.waiting {
                open.take(waiting);
            }
            sums.add(&open);
        }
        let blocks = (sums.blocks > 0).then_some(sums.blocks as f64)?;
        Some(Saved {
            default_hours: sums.nodes * sums.control_hours / blocks,
            saved: sums.nodes_apart,
            controls: sums.control_nodes_apart,
            net_variance: sums.net_variance(blocks),
            a_month: self.spread.a_month(&sums),
            last: self.spread.last,
        })
    }

    /// Gives waiting runs for which `is_settled` holds to the last control run, if it is near.
    fn settle(&mut self, is_settled: impl Fn(&Timed) -> bool) {
        let (settled, waiting): (Vec<Waiting>, Vec<Waiting>) =
            self.waiting.drain(..).partition(|one| is_settled(&one.run));
        self.waiting = waiting;
        if let Some(block) = &mut self.block {
            for waiting in &settled {
                block.take(waiting);
            }
        }
    }
}

impl Block {
    fn take(&mut self, waiting: &Waiting) {
        if waiting.run.place.abs_diff(self.control.place) > REACH {
            return;
        }
        self.nodes += waiting.run.nodes;
        if waiting.is_settled {
            self.settled += 1;
            self.settled_seconds += waiting.run.seconds;
        }
    }
}

impl Sums {
    fn add(&mut self, block: &Block) {
        if block.settled == 0 {
            return;
        }
        let control = block.control.seconds / HOUR;
        let apart = control - block.settled_seconds / block.settled as f64 / HOUR;
        let net2 = (block.nodes - block.control.nodes).powi(2);
        self.blocks += 1;
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
        // Student's t as a wider normal, because few blocks hardly determine the variance.
        let wider = quantile(freedom)? / Normal::standard().inverse_cdf(0.975);
        Some(squares.max(0.0) * blocks / freedom * wider * wider)
    }
}

impl Spread {
    fn record(&mut self, started: i64, nodes: f64) {
        if self.runs == 0 {
            self.first = started;
        }
        self.runs += 1;
        self.last = self.last.max(started);
        *self.nodes.entry(started.div_euclid(DAY)).or_default() += nodes;
        let oldest = self.last.div_euclid(DAY) - RECENT_DAYS;
        self.nodes.retain(|day, _| *day > oldest);
    }

    fn a_month(&self, sums: &Sums) -> Option<f64> {
        let days = (self.last - self.first) as f64 / DAY as f64;
        let recent: f64 = self.nodes.values().sum();
        let month = RECENT_DAYS as f64;
        (days >= LEAST_DAYS)
            .then(|| recent / days.min(month) * month * sums.nodes_apart / sums.nodes)
    }
}
