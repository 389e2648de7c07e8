//! The evidence of the draws: does the elapsed of a run tell whether it was a control run?
//!
//! Run t of a settled epoch is a control run (c = 1) with the recorded probability p, otherwise a
//! tuned one (c = 0). y is its log elapsed. For an effect of eta standard deviations, with the
//! centre m and the scale s of earlier runs,
//!
//! ```text
//! u = eta clip((y - m) / s - eta / 2, -2, 2)
//! E+ = sum over eta of weight(eta) * product over runs of exp(c u) / (p exp(u) + 1 - p)
//! ```
//!
//! If the run would have taken as long under either label, the expectation of its factor over the
//! draw is 1, whatever y, m and s are. The service's own draw is the only randomness that this
//! uses, so it holds under any noise, drift or order of work. E+ is therefore a nonnegative
//! martingale, and ever exceeds `1 / alpha` with probability at most `alpha` (Ville 1939), at any
//! number of looks (Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid
//! inference"). E- uses `-eta`.
//!
//! An effect d is tested in the same way with `y - d` for control runs. E+ falls with d and E-
//! rises, so the effects that neither rejects form an interval.
//!
//! A run that its time limit ended is longer than all others if no effect is tested: it would have
//! been cut short under either label. Under an effect d above zero, a control run might have ended
//! within the limit as a tuned one. There E+ takes its limit for its y, a lower bound, which makes
//! the factor smaller; E- does likewise for a tuned run under an effect below zero.

use std::collections::VecDeque;
use std::sync::LazyLock;

use io_autotune_search::math::Portable;
use serde::{Deserialize, Serialize};

pub(super) use self::covariates::Before;
use self::covariates::Slopes;

mod covariates;

/// The number of effects that are tested in each direction.
pub(in crate::settled) const TESTED: usize = 6;
const ETAS: [f64; TESTED] = [0.1, 0.2, 0.35, 0.65, 1.2, 2.4];
/// The weights of the tested effects. Any weights that are fixed before the first draw are valid.
/// Most weight is on effects of 6 to 20 % at 17 % noise.
const WEIGHTS: [f64; TESTED] = [0.02, 0.03, 0.25, 0.40, 0.27, 0.03];
/// The weights during a proof before the search has ended, which begins only if the effect seems to
/// be large.
const WEIGHTS_OF_A_PROOF: [f64; TESTED] = [0.01, 0.02, 0.07, 0.25, 0.35, 0.30];
/// The number of tests: E+ and E- for each effect.
const TESTS: usize = 2 * TESTED;
/// Scores beyond this are cut off, so that no outlier decides.
const CLIP: f64 = 2.0;
/// The number of earlier runs that give the centre. They share slow drift and episodes with the
/// run.
const NEAR: usize = 30;
/// The number of earlier runs that give the scale.
const RECENT: usize = 100;
/// The number of runs that the scale's prior is worth; their standard deviation follows.
const PRIOR_RUNS: f64 = 6.0;
const PRIOR_SCALE: f64 = 0.12;
/// A normal distribution's standard deviation over its median absolute deviation.
const PER_MAD: f64 = 1.4826;
/// The number of runs that the prior of either label's mean square is worth.
const PRIOR_SQUARES: f64 = 6.0;
const PRIOR_SQUARE: f64 = 0.8;
/// The price of unequal noise: twice its second-order effect on the logarithm of a factor.
const UNEQUAL: f64 = 2.0;
const UNIT: f64 = 1e-5;

/// The tested effects as logarithms: every 0.01 to 0.1, 0.02 to 0.6, 0.05 to 1.5, 0.25 to 4, and
/// the same below zero. A fixed grid bounds the state; in between the log evidence is interpolated.
static SHIFTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let steps = |from: u32, to: u32, step: f64| (from..=to).map(move |i| f64::from(i) * step);
    let above: Vec<f64> = steps(1, 10, 0.01)
        .chain(steps(6, 30, 0.02))
        .chain(steps(13, 30, 0.05))
        .chain(steps(7, 16, 0.25))
        .collect();
    let below = above.iter().rev().map(|shift| -shift);
    below.chain([0.0]).chain(above.iter().copied()).collect()
});

/// The state of an epoch's drawn runs. Its size does not grow with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::settled) struct Labels {
    /// True if the runs are of a proof before the search has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_proof: bool,
    /// The latest runs, drawn or not.
    recent: VecDeque<Seen>,
    control: Squares,
    tuned: Squares,
    /// The sum of p (1 - p).
    information: f64,
    /// Sums of log factors, by shift and test, in [`UNIT`]s.
    factors: Vec<i64>,
    /// Sums of (c - p) score, and of p (1 - p) score^2, by shift.
    scores: Vec<i64>,
    variances: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Seen {
    is_control: bool,
    /// Log elapsed; none if its time limit ended the run, which makes it longer than all others.
    log: Option<f64>,
    #[serde(default)]
    before: Before,
}

/// Sums of the squared scores of one label's drawn runs around their own centre.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Squares {
    runs: u64,
    sum: f64,
}

/// The direction of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::settled) enum Direction {
    /// Control runs take longer.
    Faster,
    Slower,
}

/// The standard deviation of the latest runs' log elapsed: as it is, and without what covariates
/// explain.
#[derive(Debug)]
pub(super) struct Noise {
    /// The standard deviation without the part that is explained by what was known before the runs.
    scale: f64,
    whole: f64,
    /// The covariates that explain it, in words.
    told_by: Vec<&'static str>,
}

/// The expectation of the next run's log elapsed, from earlier runs.
struct Expected {
    tuned: Vec<f64>,
    control: Vec<f64>,
    scale: f64,
    /// The log of the default's elapsed over the recommended parametrization's, shrunk towards 0
    /// while few runs are known.
    effect: f64,
}

impl Seen {
    fn log(self) -> f64 {
        self.log.unwrap_or(f64::INFINITY)
    }

    fn less(self, slopes: &Slopes) -> Self {
        Seen {
            log: self.log.map(|log| log - slopes.explain(self.before)),
            ..self
        }
    }
}

impl Squares {
    fn mean(self) -> f64 {
        (self.sum + PRIOR_SQUARES * PRIOR_SQUARE) / (self.runs as f64 + PRIOR_SQUARES)
    }
}

impl Labels {
    /// Labels without any draw, which keep how long runs take.
    pub(super) fn begin(&self, is_proof: bool) -> Self {
        Labels {
            is_proof,
            recent: self.recent.clone(),
            ..Labels::default()
        }
    }

    /// The number of drawn control runs.
    pub(in crate::settled) fn controls(&self) -> u64 {
        self.control.runs
    }

    /// The number of drawn tuned runs.
    pub(in crate::settled) fn tuned(&self) -> u64 {
        self.tuned.runs
    }

    /// Adds a run that was not drawn: it only tells how long runs take. `log` is none if it was cut
    /// short.
    pub(super) fn observe(&mut self, is_control: bool, log: Option<f64>, before: Before) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Seen {
            is_control,
            log,
            before,
        });
    }

    /// Adds a run that was drawn to be a control run with probability `chance`.
    pub(super) fn enter(
        &mut self,
        is_control: bool,
        log: Option<f64>,
        chance: f64,
        before: Before,
    ) {
        self.enter_within(is_control, log, f64::INFINITY, chance, before);
    }

    /// Adds such a run that was cut short at a bound, the log of a time that it exceeds.
    pub(super) fn enter_cut(&mut self, is_control: bool, bound: f64, chance: f64, before: Before) {
        self.enter_within(is_control, None, bound, chance, before);
    }

    fn enter_within(
        &mut self,
        is_control: bool,
        log: Option<f64>,
        bound: f64,
        chance: f64,
        before: Before,
    ) {
        let slopes = Slopes::of(&self.recent);
        if let Some(expected) = self.expected(&slopes) {
            let label = if is_control { 1.0 } else { 0.0 };
            let run = Seen {
                is_control,
                log,
                before,
            };
            let bound = bound - slopes.explain(before);
            let log = run.less(&slopes).log();
            self.add(&expected, label, (log, bound.min(log)), chance);
            let score = score(
                log - expected.effect * label,
                &expected,
                expected.effect,
                0.0,
            );
            let squares = if is_control {
                &mut self.control
            } else {
                &mut self.tuned
            };
            squares.sum += score * score;
        }
        let squares = if is_control {
            &mut self.control
        } else {
            &mut self.tuned
        };
        squares.runs += 1;
        self.information += chance * (1.0 - chance);
        self.observe(is_control, log, before);
    }

    /// The noise of the latest runs; none if there are none.
    pub(super) fn noise(&self) -> Option<Noise> {
        let slopes = Slopes::of(&self.recent);
        let deviation = |slopes| Some(Scale::of(&self.recent_less(slopes))?.deviation);
        Some(Noise {
            scale: deviation(&slopes)?,
            whole: deviation(&Slopes::default())?,
            told_by: slopes.named(),
        })
    }

    /// The expectation of the next run, less what the slopes explain; none without earlier runs.
    fn expected(&self, slopes: &Slopes) -> Option<Expected> {
        Expected::of(&self.recent_less(slopes))
    }

    fn recent_less(&self, slopes: &Slopes) -> VecDeque<Seen> {
        self.recent.iter().map(|run| run.less(slopes)).collect()
    }

    /// Adds a run's factors and scores. `bound` is less than `log` if the run was cut short.
    fn add(&mut self, expected: &Expected, label: f64, (log, bound): (f64, f64), chance: f64) {
        let shifts = &*SHIFTS;
        self.factors.resize(shifts.len() * TESTS, 0);
        self.scores.resize(shifts.len(), 0);
        self.variances.resize(shifts.len(), 0);
        let price = self.price_of_unequal_noise(chance);
        let spread = chance * (1.0 - chance);
        for (place, shift) in shifts.iter().enumerate() {
            let plain = score(log - shift * label, expected, *shift, 0.0);
            self.scores[place] += whole((label - chance) * plain);
            self.variances[place] += whole(spread * plain * plain);
        }
        for (test, eta) in ETAS.iter().flat_map(|eta| [*eta, -eta]).enumerate() {
            let price = price * eta * eta;
            // Where a score is cut off, or no control run changes sides, the next shift gives the
            // same result.
            let mut last = (f64::NAN, 0);
            // The sign of the effects under which a cut run might have ended under the other label.
            let sign = if label > 0.0 { 1.0 } else { -1.0 };
            for (place, shift) in shifts.iter().enumerate() {
                let log = match sign * shift > 0.0 && sign * eta > 0.0 {
                    true => bound,
                    false => log,
                };
                let score = score(log - shift * label, expected, *shift, eta);
                if score.to_bits() != last.0.to_bits() {
                    let factor = at_most(log_factor(label, eta * score, chance) - price);
                    last = (score, factor);
                }
                self.factors[place * TESTS + test] += last.1;
            }
        }
    }

    /// The price of unequal noise. The rarer label could be told by its unequal noise alone: that
    /// is how much the logarithm of a factor grows, to second order, per squared eta.
    fn price_of_unequal_noise(&self, chance: f64) -> f64 {
        let apart = self.control.mean() - self.tuned.mean();
        (UNEQUAL * chance * (1.0 - chance) * (0.5 - chance) * apart).max(0.0)
    }

    /// The log evidence against no effect.
    pub(super) fn log_evidence(&self, direction: Direction) -> f64 {
        self.evidence_at(Labels::no_effect(), direction)
    }

    /// The place of no effect among the effects that are tested.
    pub(in crate::settled) fn no_effect() -> usize {
        SHIFTS.partition_point(|shift| *shift < 0.0)
    }

    fn evidence_at(&self, place: usize, direction: Direction) -> f64 {
        let weights = if self.is_proof {
            WEIGHTS_OF_A_PROOF
        } else {
            WEIGHTS
        };
        self.log_factors(place, direction)
            .map_or(0.0, |logs| mixed(logs, weights))
    }

    /// The logarithms of the products of all runs' factors, by eta; none without any run.
    pub(in crate::settled) fn log_factors(
        &self,
        place: usize,
        direction: Direction,
    ) -> Option<[f64; TESTED]> {
        let factors = self.factors.get(place * TESTS..(place + 1) * TESTS)?;
        let of_eta = |eta: usize| factors[2 * eta + direction as usize] as f64 * UNIT;
        Some(std::array::from_fn(of_eta))
    }

    /// The lowest effect for which the evidence that the true effect is higher stays below a log
    /// bound; none if no effect on the grid has that, or all have.
    pub(super) fn low(&self, log_bound: f64) -> Option<f64> {
        crossing(log_bound, |place| {
            self.evidence_at(place, Direction::Faster)
        })
    }

    /// The highest effect for which the evidence that the true effect is lower stays below a log
    /// bound.
    pub(super) fn high(&self, log_bound: f64) -> Option<f64> {
        crossing(-log_bound, |place| {
            -self.evidence_at(place, Direction::Slower)
        })
    }

    /// The effect whose scores sum to zero; none if it is not on the grid.
    pub(in crate::settled) fn estimate(&self) -> Option<f64> {
        let score = |place: usize| self.scores.get(place).map_or(0.0, |sum| *sum as f64);
        // The sum may be zero over a stretch between two runs.
        let (first, last) = (crossing(0.5, score)?, crossing(-0.5, score)?);
        Some(f64::midpoint(first, last))
    }

    /// The standard error: half the distance of the effects whose scores sum to one standard
    /// deviation, either way.
    pub(super) fn standard_error(&self) -> Option<f64> {
        let estimate = self.estimate()?;
        let place = SHIFTS.partition_point(|shift| *shift < estimate);
        let deviation = (*self.variances.get(place)? as f64 / UNIT).sqrt();
        let score = |place: usize| self.scores.get(place).map_or(0.0, |sum| *sum as f64);
        let (low, high) = (crossing(deviation, score)?, crossing(-deviation, score)?);
        (self.control.runs > 1).then_some((high - low) / 2.0)
    }

    /// The smallest effect for which these runs reach a log bound with the power of a standard
    /// normal `quantile`.
    pub(super) fn detectable(&self, noise: &Noise, log_bound: f64, quantile: f64) -> Option<f64> {
        let wanted = deviations(log_bound, quantile);
        (self.information > 0.0).then(|| wanted / self.information.sqrt() * noise.scale)
    }

    /// The number of runs that reach the bound for the effect, if control runs are as frequent as
    /// so far.
    pub(super) fn runs_needed(
        &self,
        noise: &Noise,
        effect: f64,
        log_bound: f64,
        quantile: f64,
    ) -> Option<f64> {
        let runs = (self.control.runs + self.tuned.runs) as f64;
        let each = self.information / runs * (effect / noise.scale).powi(2);
        let needed = deviations(log_bound, quantile).powi(2) / each;
        needed.is_finite().then_some(needed)
    }
}

impl Noise {
    /// One sentence on how much of the noise is explained by what was known before the runs; none
    /// if nothing is.
    pub(super) fn explained(&self) -> Option<String> {
        let share = 1.0 - (self.scale / self.whole).powi(2);
        (!self.told_by.is_empty() && share > 0.0).then(|| {
            let percent = 100.0 * share;
            format!(
                "{percent:.0} % of the noise is told by {}.",
                self.told_by.join(" and ")
            )
        })
    }
}

impl Expected {
    fn of(recent: &VecDeque<Seen>) -> Option<Self> {
        let near = recent.iter().rev().take(NEAR).copied();
        let scale = Scale::of(recent)?;
        let sorted = |is_control| {
            let mut logs = logs(near.clone(), is_control);
            logs.sort_by(f64::total_cmp);
            logs
        };
        Some(Expected {
            tuned: sorted(false),
            control: sorted(true),
            scale: scale.deviation,
            effect: scale.effect,
        })
    }

    /// The median of tuned runs and of control runs less `shift`, together.
    fn centre(&self, shift: f64) -> f64 {
        let tuned = |place: usize| self.tuned.get(place).copied();
        let control = |place: usize| self.control.get(place).map(|log| log - shift);
        let runs = self.tuned.len() + self.control.len();
        let half = runs.div_ceil(2);
        // The number of tuned runs in the lower half lies between these bounds.
        let mut few = half.saturating_sub(self.control.len());
        let mut many = half.min(self.tuned.len());
        while few < many {
            let middle = usize::midpoint(few, many);
            if tuned(middle) <= control(half - middle - 1) {
                few = middle + 1;
            } else {
                many = middle;
            }
        }
        let rest = half - few;
        let last = [
            few.checked_sub(1).and_then(tuned),
            rest.checked_sub(1).and_then(control),
        ];
        let lower = last.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
        if runs.is_multiple_of(2) {
            let next = [tuned(few), control(rest)].into_iter().flatten();
            f64::midpoint(lower, next.fold(f64::INFINITY, f64::min))
        } else {
            lower
        }
    }
}

struct Scale {
    deviation: f64,
    effect: f64,
}

impl Scale {
    fn of(recent: &VecDeque<Seen>) -> Option<Self> {
        let [tuned, control] = [false, true].map(|is_control| {
            let mut logs = logs(recent.iter().copied(), is_control);
            (middle(&mut logs), logs.len() as f64)
        });
        let effect = match (tuned.0, control.0) {
            (Some(low), Some(high)) if (high - low).is_finite() => {
                let runs = 1.0 / (1.0 / tuned.1 + 1.0 / control.1);
                (high - low) * runs / (runs + 1.0)
            }
            _ => 0.0,
        };
        let mut left: Vec<f64> = recent
            .iter()
            .map(|run| run.log() - if run.is_control { effect } else { 0.0 })
            .collect();
        let centre = middle(&mut left)?;
        for one in &mut left {
            *one = distance(*one, centre).abs();
        }
        // With a deviation beyond a factor of e, most runs were cut short.
        let deviation = (middle(&mut left)? * PER_MAD).min(1.0);
        let runs = left.len() as f64;
        let square = runs * deviation * deviation + PRIOR_RUNS * PRIOR_SCALE * PRIOR_SCALE;
        Some(Scale {
            deviation: (square / (runs + PRIOR_RUNS)).sqrt(),
            effect,
        })
    }
}

fn logs(runs: impl Iterator<Item = Seen>, is_control: bool) -> Vec<f64> {
    let own = runs.filter(|run| run.is_control == is_control);
    own.map(Seen::log).collect()
}

/// The median; none without numbers. The numbers change places.
fn middle(numbers: &mut [f64]) -> Option<f64> {
    let half = numbers.len() / 2;
    let is_even = numbers.len().is_multiple_of(2);
    if numbers.is_empty() {
        return None;
    }
    let (below, upper, _) = numbers.select_nth_unstable_by(half, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    Some(match lower {
        Some(lower) if is_even => f64::midpoint(lower, *upper),
        _ => *upper,
    })
}

/// `one - other`, where two infinite numbers are equal.
fn distance(one: f64, other: f64) -> f64 {
    if one.is_infinite() && other.is_infinite() {
        0.0
    } else {
        one - other
    }
}

/// The score of a log elapsed, less `shift` for a control run, for an effect of `eta` deviations.
fn score(moved: f64, expected: &Expected, shift: f64, eta: f64) -> f64 {
    let centre = expected.centre(shift + eta * expected.scale);
    (distance(moved, centre) / expected.scale - eta / 2.0).clamp(-CLIP, CLIP)
}

/// The logarithm of a run's factor.
fn log_factor(label: f64, u: f64, chance: f64) -> f64 {
    label * u - (chance * u.exponential() + 1.0 - chance).logarithm()
}

/// The distance of an effect from zero, in standard errors of its estimate, with which a log bound
/// is reached with the power of a standard normal `quantile`: x^2 / 2 - quantile x = bound.
fn deviations(log_bound: f64, quantile: f64) -> f64 {
    quantile + (quantile * quantile + 2.0 * log_bound).sqrt()
}

/// The effect at which a falling function of the shifts' places crosses a level; none if it does
/// not.
pub(in crate::settled) fn crossing(level: f64, of: impl Fn(usize) -> f64) -> Option<f64> {
    let shifts = &*SHIFTS;
    let (mut low, mut high) = (0, shifts.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if of(middle) >= level {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let before = low.checked_sub(1)?;
    let (above, below) = (of(before), of(before + 1));
    let after = shifts.get(low)?;
    Some(shifts[before] + (after - shifts[before]) * (above - level) / (above - below))
}

/// The logarithm of the weighted sum over eta, after the search has ended.
pub(in crate::settled) fn weighted(logs: [f64; TESTED]) -> f64 {
    mixed(logs, WEIGHTS)
}

fn mixed(logs: [f64; TESTED], weights: [f64; TESTED]) -> f64 {
    let terms = logs.into_iter().zip(weights);
    log_sum_exp(terms.map(|(log, weight)| log + weight.logarithm()))
}

pub(in crate::settled) fn log_sum_exp(exponents: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = exponents.clone().fold(f64::NEG_INFINITY, f64::max);
    most + exponents
        .map(|exponent| (exponent - most).exponential())
        .sum::<f64>()
        .logarithm()
}

/// Rounds down, so that rounding never adds evidence.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a factor's logarithm is below 10"
)]
fn at_most(number: f64) -> i64 {
    (number / UNIT).floor() as i64
}

#[expect(clippy::cast_possible_truncation, reason = "a score is below 10")]
fn whole(number: f64) -> i64 {
    (number / UNIT).round() as i64
}

#[cfg(test)]
mod tests;
