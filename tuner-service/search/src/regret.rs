//! Regret: the expected time that exploring has cost, and its budget.
//!
//! The *expected regret* sums over the runs of other parametrizations, those in flight included:
//!
//! ```text
//! regret = sum of runs(x) * E[max(0, time of x / time of the default - 1)]
//! ```
//!
//! It uses expected times: noise alone would make a sum over measured times grow. The method's
//! [`Estimator`] gives them; later runs revise them. It is not `max(0, E[r] - 1)`: fast runs must
//! not offset slow ones. (A shrunk mean, whose uncertainty is mostly noise, does take the
//! expectation first.)
//!
//! One run may overshoot the budget. That overshoot is *forgiven*: it is reported as regret, but
//! the study is held to the budget as if the run had just reached it.

pub mod settings;

use crate::math::{Portable, normal_cdf};
use std::collections::BTreeMap;

use crate::history::by_point::{Known, View};
use crate::regret::settings::RegretSettings;
use crate::surrogate::observed::TERRIBLE;
use crate::surrogate::posterior::{Modelled, Posterior};
use crate::surrogate::{Prediction, Scatter};
use io_autotune_model::reason::BestKnownBecause;
use io_autotune_model::space::Point;

/// The degrees of freedom of the noise's prior, whose scale is 0.1. The prior matters while only
/// the baseline has run.
const NOISE_DEGREES: f64 = 2.0;
const NOISE_VARIANCE: f64 = 0.01;
/// A margin on the noise while few runs show it: noise that is mistaken for differences would pause
/// studies.
const NOISE_MARGIN: f64 = 8.0;
/// The largest regret of one run, in runs of the default. The cap keeps sums finite.
const MOST_REGRET: f64 = 1e9;
/// The length of a pause, in budgets, beyond which the search ends.
const LONGEST_PAUSE: u64 = 10;
/// The largest regret of a run during a pause, in runs of the default.
const MOST_IN_A_PAUSE: f64 = 0.1;
/// The tolerance for rounding, as a share of the bound.
const ROUNDING: f64 = 1e-9;

/// The estimator of elapsed, for regret and for the incumbent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// The surrogate, capped by the shrunk means: with few runs the surrogate may take noise for a
    /// slope.
    Surrogate,
    /// A parametrization's own mean, shrunk to the mean of all.
    Shrunk,
}

/// The expected regret of an epoch's runs, in runs of the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedRegret {
    /// The expected regret, runs in flight included.
    pub regret: f64,
    /// The forgiven part of the regret.
    pub forgiven: f64,
    /// The budget after the runs so far.
    pub bound: f64,
    /// The budget at the end of the longest pause.
    ceiling: f64,
}

impl ExpectedRegret {
    /// The rest of the budget; negative if it is exceeded.
    pub fn regret_left(&self) -> f64 {
        self.bound - (self.regret - self.forgiven)
    }

    /// Returns true if the budget is used up, so that exploration pauses.
    pub fn is_reached(&self) -> bool {
        self.regret_left() <= ROUNDING * self.bound
    }

    /// Returns true if a pause would last too long, so that the search ends.
    pub fn is_spent(&self) -> bool {
        self.regret - self.forgiven >= self.ceiling * (1.0 - ROUNDING)
    }

    /// The number of runs after `runs` until the budget suffices again, if the regret stays as it
    /// is.
    pub fn runs_to_go(&self, settings: &RegretSettings, runs: u64) -> u64 {
        let spent = self.regret - self.forgiven;
        let beyond = spent * (1.0 + ROUNDING) - settings.default_runs;
        let suffices = (beyond / settings.share).floor() + 1.0;
        if suffices.is_finite() {
            (suffices as u64).saturating_sub(runs)
        } else {
            u64::MAX
        }
    }

    /// The expected regret after `runs` runs, those in flight included; 0 before a run of the
    /// default has counted.
    pub fn of(
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

/// Returns true if a point's predicted time exceeds what is [admitted](RegretSettings::admitted).
/// False without a fit, and while no run of the default completes, because then its time is unknown.
pub fn is_far(view: &Modelled<'_>, settings: &RegretSettings, point: &Point) -> bool {
    if settings.drops_nothing() || view.default_never_completed() {
        return false;
    }
    let most = settings.admitted().logarithm();
    view.posterior()
        .is_some_and(|posterior| posterior.surrogate.predict(point).mean > posterior.default + most)
}

/// A run's expected regret, in runs of the default.
pub fn cost(posterior: &Posterior, Prediction { mean, variance }: Prediction) -> f64 {
    regret_of(mean - posterior.default, variance)
}

/// Returns true if a run may cost more than [`MOST_IN_A_PAUSE`], or is not expected to beat the
/// default.
pub fn may_regret(posterior: &Posterior, prediction: Prediction) -> bool {
    let Prediction { mean, variance } = prediction;
    on_average(mean, variance) >= posterior.default || cost(posterior, prediction) > MOST_IN_A_PAUSE
}

/// [`may_regret`] for methods without a surrogate. Returns true before a run has counted.
pub fn may_regret_at(view: &Modelled<'_>, point: &Point) -> bool {
    let prediction = view
        .posterior()
        .map(|posterior| (posterior, posterior.surrogate.predict(point)));
    prediction.is_none_or(|(posterior, prediction)| {
        *point == view.default || may_regret(posterior, prediction)
    })
}

/// The longest mean over the default's mean; 1 if none is longer.
pub fn worst_ratio(view: &View<'_>) -> f64 {
    let Some(default) = view.default_known().mean() else {
        return 1.0;
    };
    let means = view.iter().filter_map(|(_, known)| known.mean());
    means.fold(1.0, |worst, mean| worst.max(mean / default))
}

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

/// The expected regret of one run of each point, in runs of the default.
fn regrets<'a>(others: &[(&'a Point, &Known)], times: &Times) -> BTreeMap<&'a Point, f64> {
    let regret = |time: &Prediction| regret_of(time.mean - times.default.mean, time.variance);
    others
        .iter()
        .zip(&times.others)
        .map(|((point, _), time)| (*point, regret(time)))
        .collect()
}

/// The expected overshoot of the first run that passed the bound. The bound is taken after the
/// number of runs that had counted by then, because an ordinal is a place among all runs of a
/// service.
fn forgiven(view: &View<'_>, regrets: &BTreeMap<&Point, f64>, settings: &RegretSettings) -> f64 {
    let mut counted: Vec<i64> = view
        .iter()
        .flat_map(|(_, known)| known.ordinals())
        .collect();
    counted.sort_unstable();
    let mut sum = 0.0;
    for (ordinal, point) in view.sequence() {
        let regret = regrets.get(point).copied().unwrap_or_default();
        sum += regret;
        let runs = counted.partition_point(|one| *one <= ordinal);
        let over = sum - settings.bound(runs as u64);
        if over > 0.0 {
            return over.min(regret);
        }
    }
    0.0
}

/// `E[max(0, e^x - 1)]` for normal x: `e^(m + v/2) N((m + v) / s) - N(m / s)`, a call option's
/// price (F. Black, M. Scholes, Journal of Political Economy 81 (1973), 637-654, equation 13).
fn regret_of(mean: f64, variance: f64) -> f64 {
    let deviation = variance.sqrt();
    let regret = if deviation > 0.0 {
        let above = normal_cdf((mean + variance) / deviation);
        on_average(mean, variance)
            .min(MOST_REGRET.logarithm())
            .exponential()
            * above
            - normal_cdf(mean / deviation)
    } else {
        mean.exponential() - 1.0
    };
    // Unlike `clamp`, this turns NaN into no regret.
    if regret > 0.0 {
        regret.min(MOST_REGRET)
    } else {
        0.0
    }
}

/// The number of counted, censored and in-flight runs. Failed runs are left out, because it is not
/// known how long they would have taken.
fn ran(known: &Known) -> u64 {
    known
        .count()
        .saturating_add(known.censored())
        .saturating_add(known.in_flight)
}

/// Expected log elapsed without the noise of a run, which the default has as well.
struct Times {
    default: Prediction,
    others: Vec<Prediction>,
}

/// The logarithm of the mean of a log-normal number.
fn on_average(mean: f64, variance: f64) -> f64 {
    mean + 0.5 * variance
}

fn by_surrogate(view: &Modelled<'_>, others: &[(&Point, &Known)]) -> Option<Times> {
    let predictions = view.fitted()?.known();
    let most = view.default_known().mean()?.logarithm() + TERRIBLE.logarithm();
    // A fit may not see how terrible a point is, and its regret is of all that its runs took.
    let of = |(point, known): &(&Point, &Known)| {
        let prediction = predictions.get(*point)?;
        let own = known.mean().map(Portable::logarithm);
        let terrible = own.filter(|own| *own > most);
        Some(Prediction {
            mean: terrible.map_or(prediction.mean, |own| own.max(prediction.mean)),
            ..*prediction
        })
    };
    Some(Times {
        default: predictions.get(&view.default).copied()?,
        others: others.iter().map(of).collect::<Option<_>>()?,
    })
}

struct Own {
    mean: f64,
    runs: f64,
}

/// Each point's own mean log elapsed, shrunk to the mean of all points (the default is one): with
/// the variance `t` between points and `s` of a run,
///
/// ```text
/// weight = t / (t + s / n),   estimate = mean of all + weight * (own mean - mean of all),
/// ```
///
/// and variance `t * (1 - weight)`, which goes into the mean. This is the best linear prediction in
/// the one-way random effects model (C. R. Henderson, Biometrics 31 (1975), 423-447); `s` is pooled
/// over points, `t` the unweighted moment estimator (L. V. Hedges, Psychological Bulletin 93
/// (1983), 388-395). If points differ only by noise, `t` is 0 and so is the regret.
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

fn noise(scatter: Scatter) -> f64 {
    let degrees = scatter.degrees + NOISE_DEGREES;
    let variance = (scatter.squares + NOISE_DEGREES * NOISE_VARIANCE) / degrees;
    variance * (1.0 + NOISE_MARGIN / degrees)
}

/// The mean log elapsed of a point's latest runs, raised by its censored runs.
fn own(known: &Known, scatter: &mut Scatter) -> Option<Own> {
    let estimate = known.mean()?;
    let logs = known.logs();
    if known.count() == 0 || logs.is_empty() {
        let mean = estimate.logarithm();
        return Some(Own { mean, runs: 1.0 });
    }
    Some(Own {
        mean: scatter.add(logs) + known.raised(),
        runs: logs.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_excess_is_the_integral() {
        for (mean, variance) in [
            (0.0, 0.01),
            (0.5, 0.25),
            (-0.3, 0.5),
            (-2.0, 1.0),
            (1.5, 1e-6),
        ] {
            let deviation = f64::sqrt(variance);
            let (step, mut integral) = (1e-4, 0.0);
            for place in -80_000..80_000 {
                let z = step * (f64::from(place) + 0.5);
                let density = (-0.5 * z * z).exponential() / std::f64::consts::TAU.sqrt();
                integral += step * density * ((mean + deviation * z).exponential() - 1.0).max(0.0);
            }
            let closed = regret_of(mean, variance);
            assert!(
                (closed - integral).abs() < 1e-6,
                "{mean} {variance}: {closed} {integral}"
            );
        }
        assert_eq!(regret_of(2.0_f64.logarithm(), 0.0), 1.0);
        assert_eq!(regret_of(-1.0, 0.0), 0.0);
        assert!(regret_of(1e6, 0.1) > 0.999 * MOST_REGRET);
        assert_eq!(regret_of(1e6, 0.0), MOST_REGRET);
        assert_eq!(regret_of(f64::NAN, f64::NAN), 0.0);
    }
}
