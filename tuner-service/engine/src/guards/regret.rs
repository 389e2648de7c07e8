//! Regret: the time that exploring is expected to have cost, and its budget.
//!
//! The *expected regret* sums over all runs of other parametrizations than the default, those in flight included:
//!
//! ```text
//! regret = sum of runs(x) * E[max(0, time of x / time of the default - 1)]    in runs of the default
//! ```
//!
//! It uses expected times, not measured ones: of two equal parametrizations each run is slower than the other's mean
//! half the time, so a sum over measured times grows without any harm. The method's [`Estimator`] gives the expected
//! times; later runs revise them.
//!
//! Regret uses E[max(0, r - 1)], not max(0, E[r] - 1): fast runs must not offset slow ones. The two differ where a
//! parametrization is hardly known. A shrunk mean is the exception: its uncertainty is mostly noise, so the expectation
//! comes first.
//!
//! One run may overshoot the budget. That overshoot is *forgiven*: it counts as regret, but the study is held to the
//! budget as if the run had just reached it.

pub(crate) mod settings;

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::guards::regret::settings::RegretSettings;
use crate::history::by_point::{Known, View};
use crate::reason::BestKnownBecause;
use crate::space::Point;
use crate::surrogate::posterior::{Modelled, Posterior};
use crate::surrogate::{Prediction, Scatter};

/// The prior of the noise: 2 degrees of freedom of a spread of a tenth. It matters while only the baseline has run.
const NOISE_DEGREES: f64 = 2.0;
const NOISE_VARIANCE: f64 = 0.01;
/// A margin for noise that few runs show: noise taken for differences would pause healthy studies. It changes nothing
/// where points differ by much more than noise.
const NOISE_MARGIN: f64 = 8.0;
/// The most that one run counts for, in runs of the default: sums stay finite.
const MOST_REGRET: f64 = 1e9;
/// A pause longer than this many budgets ends the search.
const LONGEST_PAUSE: u64 = 10;
/// The most regret of a run that may go on in a pause, in runs of the default.
const MOST_IN_A_PAUSE: f64 = 0.1;
/// A regret this close to the bound, as a share of it, has reached it: sums are rounded.
const ROUNDING: f64 = 1e-9;

/// What estimates the time of a parametrization's runs, for regret and for the incumbent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Estimator {
    /// The surrogate, capped by what the means show: with few runs a surrogate sometimes takes noise for a slope.
    Surrogate,
    /// A parametrization's own mean, shrunk to that of all.
    Shrunk,
}

/// The expected regret of an epoch's runs, in runs of the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpectedRegret {
    /// The expected regret, runs in flight included.
    pub(crate) regret: f64,
    /// How much of it is forgiven.
    forgiven: f64,
    /// The budget by now.
    pub(crate) bound: f64,
    /// The budget at the end of the longest pause.
    ceiling: f64,
}

impl ExpectedRegret {
    /// What is left of the budget; negative where it is exceeded.
    pub(crate) fn regret_left(&self) -> f64 {
        self.bound - (self.regret - self.forgiven)
    }

    /// Whether exploration pauses.
    pub(crate) fn is_reached(&self) -> bool {
        self.regret_left() <= ROUNDING * self.bound
    }

    /// Whether a pause would not end in time, so that the search does.
    pub(crate) fn is_spent(&self) -> bool {
        self.regret - self.forgiven >= self.ceiling * (1.0 - ROUNDING)
    }

    /// After `runs` runs of the epoch, those in flight included; `budget` is the epoch's budget of runs. 0 before a run
    /// of the default has counted.
    pub(crate) fn of(
        view: &Modelled<'_>,
        estimator: Estimator,
        settings: &RegretSettings,
        budget: u32,
        runs: u64,
    ) -> Self {
        let later = LONGEST_PAUSE.saturating_mul(u64::from(budget));
        let RegretSoFar { regret, forgiven } = regret_so_far(view, estimator, settings);
        ExpectedRegret {
            regret,
            forgiven,
            bound: settings.bound(runs),
            ceiling: settings.bound(runs.saturating_add(later)),
        }
    }
}

impl From<ExpectedRegret> for BestKnownBecause {
    fn from(ExpectedRegret { regret, bound, .. }: ExpectedRegret) -> Self {
        BestKnownBecause::RegretBudget { regret, bound }
    }
}

/// Whether a point is predicted to take more than `design_most` times the default. Never before a run
/// has counted, nor where nothing is held back: then nobody needs a surrogate for it.
pub(crate) fn is_far(view: &Modelled<'_>, settings: &RegretSettings, point: &Point) -> bool {
    if settings.drops_nothing() {
        return false;
    }
    let most = settings.design_most.ln();
    view.posterior()
        .is_some_and(|posterior| posterior.surrogate.predict(point).mean > posterior.default + most)
}

/// What a run is expected to take beyond the default, in runs of the default.
pub(crate) fn cost(posterior: &Posterior, Prediction { mean, variance }: Prediction) -> f64 {
    regret_of(mean - posterior.default, variance)
}

/// Whether a run may cost more than [`MOST_IN_A_PAUSE`], or is not expected to be quicker than the default.
pub(crate) fn may_regret(posterior: &Posterior, prediction: Prediction) -> bool {
    let Prediction { mean, variance } = prediction;
    on_average(mean, variance) >= posterior.default || cost(posterior, prediction) > MOST_IN_A_PAUSE
}

/// [`may_regret`] of a point, for methods that know no surrogate. True before a run has counted.
pub(crate) fn may_regret_at(view: &Modelled<'_>, point: &Point) -> bool {
    let prediction = view
        .posterior()
        .map(|posterior| (posterior, posterior.surrogate.predict(point)));
    prediction.is_none_or(|(posterior, prediction)| {
        *point == view.default || may_regret(posterior, prediction)
    })
}

/// See [`ExpectedRegret`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RegretSoFar {
    regret: f64,
    forgiven: f64,
}

fn regret_so_far(
    view: &Modelled<'_>,
    estimator: Estimator,
    settings: &RegretSettings,
) -> RegretSoFar {
    if view.default_known().mean().is_none() {
        return RegretSoFar::default();
    }
    let others: Vec<(&Point, &Known)> = view
        .iter()
        .filter(|(point, known)| **point != view.default && ran(known) > 0)
        .collect();
    let of = |times: Times| {
        let regrets = regrets(&others, &times);
        let runs = others.iter().map(|(_, known)| ran(known) as f64);
        RegretSoFar {
            regret: runs
                .zip(regrets.values())
                .map(|(runs, one)| runs * one)
                .sum(),
            forgiven: forgiven(view, &regrets, settings),
        }
    };
    let shrunk = of(by_shrinking(view, &others));
    match estimator {
        Estimator::Shrunk => shrunk,
        Estimator::Surrogate => by_surrogate(view, &others)
            .map(of)
            .filter(|regret_so_far| regret_so_far.regret < shrunk.regret)
            .unwrap_or(shrunk),
    }
}

/// What a run of each of these points is expected to take beyond the default, in runs of the default; in their order.
fn regrets<'a>(others: &[(&'a Point, &Known)], times: &Times) -> BTreeMap<&'a Point, f64> {
    let regret = |time: &Prediction| regret_of(time.mean - times.default.mean, time.variance);
    others
        .iter()
        .zip(&times.others)
        .map(|((point, _), time)| (*point, regret(time)))
        .collect()
}

/// By how much the first run that passed the bound is expected to have passed it.
fn forgiven(view: &View<'_>, regrets: &BTreeMap<&Point, f64>, settings: &RegretSettings) -> f64 {
    let mut sum = 0.0;
    for (ordinal, point) in view.sequence() {
        let regret = regrets.get(point).copied().unwrap_or_default();
        sum += regret;
        let runs = u64::try_from(ordinal).unwrap_or(0).saturating_add(1);
        let over = sum - settings.bound(runs);
        if over > 0.0 {
            return over.min(regret);
        }
    }
    0.0
}

/// The expectation of `max(0, e^x - 1)`, x normal: `e^(m + v/2) N((m + v) / s) - N(m / s)`, the price of a call
/// (F. Black, M. Scholes, Journal of Political Economy 81 (1973), 637-654, equation 13).
fn regret_of(mean: f64, variance: f64) -> f64 {
    let deviation = variance.sqrt();
    let regret = if deviation > 0.0 {
        let normal = Normal::standard();
        let above = normal.cdf((mean + variance) / deviation);
        on_average(mean, variance).min(MOST_REGRET.ln()).exp() * above
            - normal.cdf(mean / deviation)
    } else {
        mean.exp() - 1.0
    };
    // Not clamp: what is no number is no loss.
    if regret > 0.0 {
        regret.min(MOST_REGRET)
    } else {
        0.0
    }
}

/// The runs of a point that took time: those that ended, were cut short, or are in flight. What a run
/// that failed would have taken is not known; points that fail are quarantined instead.
fn ran(known: &Known) -> u64 {
    known
        .count()
        .saturating_add(known.censored())
        .saturating_add(known.in_flight)
}

/// What is expected of log elapsed. Noise is left out, because it is the same for the default.
struct Times {
    default: Prediction,
    others: Vec<Prediction>,
}

/// A logarithm that is known with a variance: the logarithm of what it is the logarithm of on average
/// (the mean of a log-normal number).
fn on_average(mean: f64, variance: f64) -> f64 {
    mean + 0.5 * variance
}

/// What the surrogate says of each point; none where it says nothing.
fn by_surrogate(view: &Modelled<'_>, others: &[(&Point, &Known)]) -> Option<Times> {
    let known = &view.fitted()?.known;
    let others = others.iter().map(|(point, _)| known.get(*point).copied());
    Some(Times {
        default: known.get(&view.default).copied()?,
        others: others.collect::<Option<_>>()?,
    })
}

/// What a point's own runs say of it.
struct Own {
    mean: f64,
    runs: f64,
}

/// Each point's own mean log elapsed, weighed against the mean of all points by how well it is known:
/// with the variance `t` between points and `s` of a run,
///
/// ```text
/// weight = t / (t + s / n),   estimate = mean of all + weight * (own mean - mean of all),
/// ```
///
/// and variance `t * (1 - weight)`, with which it is taken on average; the default is one of the points. That is the best linear
/// prediction in the one-way random effects model (C. R. Henderson, Biometrics 31 (1975), 423-447);
/// `s` is pooled over points, `t` the unweighted moment estimator (L. V. Hedges, Psychological Bulletin
/// 93 (1983), 388-395). Where points differ by no more than runs do, `t` is 0, and nothing is lost.
fn by_shrinking(view: &View<'_>, others: &[(&Point, &Known)]) -> Times {
    let default = view.default_known();
    let mut scatter = Scatter::default();
    let default = own(&default, &mut scatter);
    let others: Vec<Option<Own>> = others
        .iter()
        .map(|(_, known)| own(known, &mut scatter))
        .collect();
    let noise = noise(scatter);
    let seen = || default.iter().chain(others.iter().flatten());
    let points = seen().count() as f64;
    let middle = seen().map(|own| own.mean).sum::<f64>() / points;
    let squares: f64 = seen().map(|own| (own.mean - middle).powi(2)).sum();
    let of_noise = seen().map(|own| noise / own.runs).sum::<f64>() / points;
    let between = if points > 1.0 {
        (squares / (points - 1.0) - of_noise).max(0.0)
    } else {
        0.0
    };
    let precision = |own: &Own| 1.0 / (between + noise / own.runs);
    let precisions: f64 = seen().map(precision).sum();
    let mean = seen().map(|own| precision(own) * own.mean).sum::<f64>() / precisions;
    let estimate = |own: &Option<Own>| {
        let weight = own.as_ref().map_or(0.0, |own| between * precision(own));
        let own = own.as_ref().map_or(mean, |own| own.mean);
        let estimate = mean + weight * (own - mean);
        Prediction {
            mean: on_average(estimate, between * (1.0 - weight)),
            variance: 0.0,
        }
    };
    Times {
        default: estimate(&default),
        others: others.iter().map(estimate).collect(),
    }
}

/// The variance of a run, as far as it is known.
fn noise(scatter: Scatter) -> f64 {
    let degrees = scatter.degrees + NOISE_DEGREES;
    let variance = (scatter.squares + NOISE_DEGREES * NOISE_VARIANCE) / degrees;
    variance * (1.0 + NOISE_MARGIN / degrees)
}

/// The mean log elapsed of a point's latest runs, raised by as much as runs cut short raise its mean;
/// none where nothing is known.
fn own(known: &Known, scatter: &mut Scatter) -> Option<Own> {
    let estimate = known.mean()?;
    let logs = known.logs();
    if known.count() == 0 || logs.is_empty() {
        let mean = estimate.ln();
        return Some(Own { mean, runs: 1.0 });
    }
    Some(Own {
        mean: scatter.add(logs) + known.raised(),
        runs: logs.len() as f64,
    })
}

#[cfg(test)]
mod tests;
