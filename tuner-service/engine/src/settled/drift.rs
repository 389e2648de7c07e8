//! Drift of a settled epoch: whether its runs are still exchangeable.
//!
//! The *level* is the elapsed of tuned runs. The *advantage* is the elapsed of control runs over
//! that of the tuned runs around them; a change of the whole machine leaves it unchanged. Both
//! series are watched for one change of location by the sequential Mann-Whitney chart (D. M.
//! Hawkins, Q. Deng, "A nonparametric change-point control chart", Journal of Quality Technology 42
//! (2010), 165-173; A. N. Pettitt, "A non-parametric approach to the change-point problem", Applied
//! Statistics 28 (1979), 126-135). With the ranks `r` of n numbers:
//!
//! ```text
//! z(k) = (sum of r(1 .. k) - k (n + 1) / 2) / sqrt(k (n - k) (n + 1) / 12)
//! change if max over k |z(k)| >= h
//! ```
//!
//! (the variance is less for ties). False alarms do not depend on the distribution of runs, and no
//! reference is needed. If successive ranks correlate significantly, by c about the means before
//! and after, z shrinks by `sqrt((1 - c) / (1 + c))`.

pub(crate) mod settings;

use crate::settled::drift::settings::DriftSettings;
use io_autotune_model::drift::{Changed, DRIFT_RUNS, Drift, SettledRun};
use io_autotune_search::math::Portable;

/// The minimum number of numbers on either side of a change.
const LEAST: usize = 3;
/// The number of settled runs before a control run, and after it, with which its advantage is
/// computed.
const AROUND: usize = 8;
/// The false alarm rate per number is this times `exp(-h^2 / 2)`: found by simulation, which the
/// tests repeat, for 35 to 700 numbers and h from 2.3 to 4.5.
const LOOKS: f64 = 0.3;
/// Standard errors that make a change of the advantage significant: two-sided 99 %, one look.
const RESOLVED: f64 = 2.576;
/// Standard errors that make a serial correlation significant: one-sided 95 %.
const BY_CHANCE: f64 = 1.645;
/// A median's standard error over that of a mean, for normal numbers.
const OF_MEDIAN: f64 = 1.2533;
/// A normal standard deviation over the median absolute deviation.
const OF_MAD: f64 = 1.4826;

/// The change that ends a settled epoch; none if there is none.
///
/// `runs` are the counted runs of the settled phase in order: control runs and runs of the
/// parametrization that was recommended at the time. The latest [`DRIFT_RUNS`] positive times are
/// used; there is no drift before `rest` runs. A change is one of the level by `level`, either way,
/// or of the advantage by `advantage`, in its own series or before and after a change of the level.
pub fn drift(runs: &[SettledRun], settings: &DriftSettings) -> Option<Drift> {
    if !settings.enabled {
        return None;
    }
    let usable = |run: &&SettledRun| run.elapsed.is_finite() && run.elapsed > 0.0;
    let runs: Vec<SettledRun> = runs.iter().filter(usable).copied().collect();
    if runs.len() < settings.rest as usize {
        return None;
    }
    let watched = Watched::new(&runs[runs.len().saturating_sub(DRIFT_RUNS)..]);
    // Each series gets half of the false alarms.
    let rate = settings.false_alarms / 1000.0 / 2.0;
    let advantage = settings.advantage.logarithm_1p();
    if let Some(level) = change(&watched.tuned, threshold(rate)) {
        let found = watched.tell(Changed::Level, watched.tuned_places[level.at], level);
        let (before, after) = watched.advantages_around(found.since);
        if resolved(&before, &after).is_some_and(|by| by.abs() >= advantage) {
            return Some(Drift {
                changed: Changed::Advantage,
                ..found
            });
        }
        if (found.tuned_after / found.tuned_before).logarithm().abs()
            >= settings.level.logarithm_1p()
        {
            return Some(found);
        }
    }
    // The advantage's series is shorter by this factor.
    let every = (watched.tuned.len() + watched.advantages.len()) / watched.advantages.len().max(1);
    let seen = change(&watched.advantages, threshold(rate * every as f64))?;
    let (before, after) = watched.advantages.split_at(seen.at);
    let by = median(after)? - median(before)?;
    let found = watched.tell(Changed::Advantage, watched.control_places[seen.at], seen);
    (by.abs() >= advantage).then_some(found)
}

fn threshold(rate: f64) -> f64 {
    (2.0 * (LOOKS / rate).logarithm().max(0.0)).sqrt()
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at: usize,
    statistic: f64,
    threshold: f64,
}

fn change(series: &[f64], threshold: f64) -> Option<Change> {
    let n = series.len();
    if n < 2 * LEAST {
        return None;
    }
    let (ranks, tied) = ranks(series);
    let count = n as f64;
    let mut sum: f64 = ranks[..LEAST - 1].iter().sum();
    let mut most: Option<Change> = None;
    for at in LEAST..=n - LEAST {
        sum += ranks[at - 1];
        let (before, after) = (at as f64, (n - at) as f64);
        let variance = before * after * (count + 1.0) / 12.0 * (1.0 - tied);
        let statistic = (sum - before * (count + 1.0) / 2.0).abs() / variance.sqrt();
        if most.is_none_or(|most| statistic > most.statistic) {
            most = Some(Change {
                at,
                statistic,
                threshold,
            });
        }
    }
    let mut most = most?;
    most.statistic *= alone(&ranks, most.at);
    (most.statistic >= threshold).then_some(most)
}

/// The factor from 0 to 1 that remains of a statistic after correction for serial correlation.
fn alone(ranks: &[f64], at: usize) -> f64 {
    let (before, after) = ranks.split_at(at);
    let residuals: Vec<f64> = [before, after]
        .into_iter()
        .flat_map(|part| {
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(move |rank| rank - mean)
        })
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    let products = residuals.windows(2).map(|pair| pair[0] * pair[1]);
    let correlation = products.sum::<f64>() / squares;
    let chance = BY_CHANCE / (ranks.len() as f64).sqrt();
    if correlation > chance {
        ((1.0 - correlation) / (1.0 + correlation)).sqrt()
    } else {
        1.0
    }
}

/// Ranks from 1, ties averaged; and the share `sum of (t^3 - t) / (n^3 - n)` of the variance that
/// ties take.
fn ranks(series: &[f64]) -> (Vec<f64>, f64) {
    let n = series.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| series[*a].total_cmp(&series[*b]));
    let mut ranks = vec![0.0; n];
    let mut tied = 0.0;
    let cube = |count: usize| (count as f64).powi(3) - count as f64;
    for group in order.chunk_by(|a, b| series[*a] == series[*b]) {
        let first = order.partition_point(|place| series[*place] < series[group[0]]);
        for place in group {
            ranks[*place] = first as f64 + (group.len() as f64 + 1.0) / 2.0;
        }
        tied += cube(group.len());
    }
    (ranks, tied / cube(n))
}

fn resolved(before: &[f64], after: &[f64]) -> Option<f64> {
    if before.len() < LEAST || after.len() < LEAST {
        return None;
    }
    let (low, high) = (median(before)?, median(after)?);
    let off = |numbers: &[f64], middle: f64| -> Vec<f64> {
        numbers
            .iter()
            .map(|number| (number - middle).abs())
            .collect()
    };
    let deviations = [off(before, low), off(after, high)].concat();
    let shares = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
    let error = OF_MEDIAN * OF_MAD * median(&deviations)? * shares.sqrt();
    Some(high - low).filter(|by| by.abs() > RESOLVED * error)
}

fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(0.5 * (sorted[low] + sorted[high]))
}

struct Watched {
    tuned: Vec<f64>,
    tuned_places: Vec<i64>,
    /// For each control run, log elapsed less that of the tuned runs around it.
    advantages: Vec<f64>,
    control_places: Vec<i64>,
}

impl Watched {
    fn new(runs: &[SettledRun]) -> Self {
        let mut watched = Watched {
            tuned: Vec::with_capacity(runs.len()),
            tuned_places: Vec::with_capacity(runs.len()),
            advantages: Vec::new(),
            control_places: Vec::new(),
        };
        let mut controls = Vec::new();
        for run in runs {
            if run.control {
                controls.push((watched.tuned.len(), run));
            } else {
                watched.tuned.push(run.elapsed.logarithm());
                watched.tuned_places.push(run.ordinal);
            }
        }
        for (place, run) in controls {
            let last = watched.tuned.len().min(place + AROUND);
            if let Some(around) = median(&watched.tuned[place.saturating_sub(AROUND)..last]) {
                watched.advantages.push(run.elapsed.logarithm() - around);
                watched.control_places.push(run.ordinal);
            }
        }
        watched
    }

    fn advantages_around(&self, since: i64) -> (Vec<f64>, Vec<f64>) {
        let at = self.control_places.partition_point(|place| *place < since);
        let (before, after) = self.advantages.split_at(at);
        (before.to_vec(), after.to_vec())
    }

    fn tell(&self, changed: Changed, since: i64, change: Change) -> Drift {
        let at = self.tuned_places.partition_point(|place| *place < since);
        let (tuned_before, tuned_after) = self.tuned.split_at(at);
        let (before, after) = self.advantages_around(since);
        let middle = |numbers: &[f64]| median(numbers).map_or(f64::NAN, Portable::exponential);
        let share = |numbers: &[f64]| median(numbers).map(|log| (-log).exponential());
        Drift {
            changed,
            since,
            tuned_before: middle(tuned_before),
            tuned_after: middle(tuned_after),
            tuned_runs_before: tuned_before.len() as u64,
            tuned_runs_after: tuned_after.len() as u64,
            share_before: share(&before),
            share_after: share(&after),
            controls_before: before.len() as u64,
            controls_after: after.len() as u64,
            statistic: change.statistic,
            threshold: change.threshold,
        }
    }
}

#[cfg(test)]
mod tests;
