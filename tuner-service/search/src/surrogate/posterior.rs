//! The surrogate's posterior of an epoch, without and with its runs in flight.

use crate::math::Portable;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::history::by_point::{Known, View};
use crate::surrogate::cache::{Fit, SurrogateCache};
use crate::surrogate::ensemble::Ensemble;
use crate::surrogate::failures::Failures;
use crate::surrogate::importance::{Importance, Silence};
use crate::surrogate::prior::{Mean, Prior};
use crate::surrogate::{Observation, Prediction, Scatter, ranked};
use io_autotune_model::space::Point;

const MOST_POINTS: usize = 96;
/// Of those, the best ones; the others are spread over the rest.
const BEST_POINTS: usize = 64;
/// A point needs this many runs before its slow outliers are pulled in.
const OUTLIERS_FROM: usize = 3;
/// An outlier exceeds the median by this times (median - fastest), but at least by the minimum.
const OUTLIER_REACH: f64 = 2.0;
const OUTLIER_LEAST: f64 = 0.1;
/// With n runs, n / (n + this) of an outlier's excess is believed: one slow run of three is likely
/// bad luck, one of ten is typical of the point.
const OUTLIER_DOUBT: f64 = 4.0;

/// A view with its surrogate, which is fitted on first use.
#[derive(Debug)]
pub struct Modelled<'a> {
    view: View<'a>,
    cache: Option<&'a SurrogateCache>,
    prior: Option<&'a Arc<Prior>>,
    expected: OnceCell<Option<Arc<Mean>>>,
    fitted: OnceCell<Option<Fitted>>,
    posterior: OnceCell<Option<Posterior>>,
    failures: OnceCell<Option<Failures>>,
}

impl<'a> Modelled<'a> {
    /// With surrogates that were fitted before, where there is a cache.
    pub fn new(view: View<'a>, cache: Option<&'a SurrogateCache>) -> Self {
        Modelled {
            view,
            cache,
            prior: None,
            expected: OnceCell::new(),
            fitted: OnceCell::new(),
            posterior: OnceCell::new(),
            failures: OnceCell::new(),
        }
    }

    /// On what other studies lead to expect, once a run of another point than the default counted.
    #[must_use]
    pub fn on(mut self, prior: Option<&'a Arc<Prior>>) -> Self {
        self.prior = prior;
        self
    }

    /// What the prior says by now, whether it is relied on or not.
    pub fn expected(&self) -> Option<&Mean> {
        self.mean().map(AsRef::as_ref)
    }

    fn mean(&self) -> Option<&Arc<Mean>> {
        let mean = || {
            let known: Vec<(&Point, &Known)> = self.view.iter().collect();
            let (observations, scatter) = observe(&known, &self.view.default);
            let mean = self.prior?.mean(&self.view, &observations, scatter);
            Some(Arc::new(mean))
        };
        self.expected.get_or_init(mean).as_ref()
    }

    /// Whether other studies say that a point takes more than this log ratio to the default.
    pub fn is_dreaded(&self, point: &Point, most: f64) -> bool {
        self.expected()
            .is_some_and(|mean| mean.is_terrible(point, most))
    }

    /// None before a run has counted.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted
            .get_or_init(|| Fitted::new(&self.view, self.cache, self.mean()))
            .as_ref()
    }

    /// None before a run has counted.
    pub fn posterior(&self) -> Option<&Posterior> {
        self.posterior
            .get_or_init(|| Posterior::new(&self.view, self.fitted()?))
            .as_ref()
    }
}

impl Modelled<'_> {
    /// The probability that a run of each point is not lost.
    pub fn succeed(&self, points: &[Point]) -> Vec<f64> {
        let failures = self.failures.get_or_init(|| Failures::new(&self.view));
        failures.as_ref().map_or_else(
            || vec![1.0; points.len()],
            |failures| failures.succeed(points),
        )
    }
}

impl<'a> Deref for Modelled<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

/// The posterior of the ended runs. Runs in flight do not lower its variance.
#[derive(Debug)]
pub struct Fitted {
    fit: Arc<Fit>,
    observations: Vec<Observation>,
    scatter: Scatter,
    /// Measured points, the lowest prediction first; at least one.
    pub ranked: Vec<Point>,
    /// The prediction at every point that ran or is in flight.
    pub known: BTreeMap<Point, Prediction>,
}

impl Fitted {
    fn new(
        view: &View<'_>,
        cache: Option<&SurrogateCache>,
        mean: Option<&Arc<Mean>>,
    ) -> Option<Self> {
        let known: Vec<(&Point, &Known)> = view.iter().collect();
        let (observations, scatter) = observe(&known, &view.default);
        // The default alone cannot contradict a prior.
        let mean = mean.filter(|_| observations.iter().any(|one| one.point != view.default));
        let mean = mean.map(Arc::clone);
        let fit = match cache {
            Some(cache) => cache.of(view.space, &observations, scatter, mean)?,
            None => Arc::new(Fit::new(view.space, &observations, scatter, mean)?),
        };
        let points = points(&observations);
        let mut known: BTreeMap<Point, Prediction> = points
            .iter()
            .cloned()
            .zip(fit.predictions.clone())
            .collect();
        let others: Vec<Point> = view
            .iter()
            .map(|(point, _)| point)
            .filter(|point| !known.contains_key(*point))
            .cloned()
            .collect();
        let of_others = fit.surrogate.predict_all(&others);
        known.extend(others.into_iter().zip(of_others));
        let ranked = ranked(points, fit.predictions.clone());
        Some(Fitted {
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            fit,
            observations,
            scatter,
            known,
        })
    }

    /// [`Fit::importance`].
    pub fn importance(&self) -> Result<Importance, Silence> {
        self.fit.importance()
    }
}

/// The posterior with the runs in flight ended as predicted (kriging believer), for the search.
#[derive(Debug)]
pub struct Posterior {
    /// The surrogate.
    pub surrogate: Arc<Ensemble>,
    /// Measured points, the lowest prediction first; at least one.
    pub ranked: Vec<Point>,
    /// The lowest prediction at a measured point, log seconds.
    pub incumbent: f64,
    /// The prediction at the default, log seconds.
    pub default: f64,
}

impl Posterior {
    fn new(view: &View<'_>, fitted: &Fitted) -> Option<Self> {
        let Fitted {
            fit,
            observations,
            scatter,
            ..
        } = fitted;
        let flights = view.flights(MOST_POINTS);
        let points = points(observations);
        let (surrogate, predictions) = if flights.is_empty() {
            (Arc::clone(&fit.surrogate), fit.predictions.clone())
        } else {
            let fantasised = fit
                .surrogate
                .fantasising(observations, *scatter, &flights)?;
            let predictions = fantasised.predict_all(&points);
            (Arc::new(fantasised), predictions)
        };
        let ranked = ranked(points, predictions);
        Some(Posterior {
            incumbent: ranked.first()?.0,
            default: surrogate.predict(&view.default).mean,
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            surrogate,
        })
    }
}

fn points(observations: &[Observation]) -> Vec<Point> {
    observations.iter().map(|o| o.point.clone()).collect()
}

pub(super) fn observe(known: &[(&Point, &Known)], default: &Point) -> (Vec<Observation>, Scatter) {
    let mut scatter = Scatter::default();
    let mut observations: Vec<Observation> = known
        .iter()
        .filter_map(|(point, known)| {
            let (log_mean, runs) = log_mean(known, &mut scatter)?;
            Some(Observation {
                point: (*point).clone(),
                log_mean,
                runs,
            })
        })
        .collect();
    if observations.len() > MOST_POINTS {
        observations.sort_by(|a, b| a.log_mean.total_cmp(&b.log_mean));
        let rest = observations.split_off(BEST_POINTS);
        let every = rest.len().div_ceil(MOST_POINTS - BEST_POINTS);
        observations.extend(
            rest.into_iter()
                .enumerate()
                .filter(|(index, o)| index % every == 0 || o.point == *default)
                .map(|(_, o)| o),
        );
        observations.sort_by(|a, b| a.point.cmp(&b.point));
    }
    (observations, scatter)
}

/// The log of a point's mean elapsed, and its runs. Not the mean of logarithms: users wait for the
/// sum of times. Outliers are pulled in, censored runs raise it.
fn log_mean(known: &Known, scatter: &mut Scatter) -> Option<(f64, f64)> {
    let estimate = known.mean()?;
    let mut logs = known.logs().to_vec();
    if logs.is_empty() || known.count() == 0 {
        return (known.censored() > 0 && known.count() == 0).then_some((estimate.logarithm(), 1.0));
    }
    if logs.len() >= OUTLIERS_FROM {
        let median = logs[logs.len() / 2];
        let fence = median + (OUTLIER_REACH * (median - logs[0])).max(OUTLIER_LEAST);
        let believed = logs.len() as f64 / (logs.len() as f64 + OUTLIER_DOUBT);
        for log in logs.iter_mut().filter(|log| **log > fence) {
            *log = fence + believed * (*log - fence);
        }
    }
    let runs = logs.len() as f64;
    scatter.add(&logs);
    // Relative to the largest, against overflow.
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: f64 = logs.iter().map(|log| (log - largest).exponential()).sum();
    let log_mean = largest + (shares / runs).logarithm();
    Some((log_mean + known.raised(), runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{grid, history, tested};

    fn believed(times: &[f64]) -> f64 {
        let space = grid(&[3]);
        let history = history(vec![tested(&space, &[1], times, 0)], 0, 0);
        let view = View::new(&space, &history, &[]);
        let known = view.get(&Point(vec![1])).unwrap();
        let (log_mean, runs) = log_mean(known, &mut Scatter::default()).unwrap();
        assert_eq!(runs, times.len() as f64);
        log_mean.exponential()
    }

    #[test]
    fn the_mean_is_of_times_and_not_of_their_logarithms() {
        assert!((believed(&[10.0, 40.0]) - 25.0).abs() < 1e-9);
        assert!((believed(&[10.0, 11.0, 12.0]) - 11.0).abs() < 1e-9);
        let largest = believed(&[1e-300, 1e150]);
        assert!(largest.is_finite() && largest > 1e149);
    }

    #[test]
    fn one_slow_run_is_doubted_and_the_same_share_of_many_is_not() {
        let with = |quick: usize, slow: usize| {
            let quick = (0..quick).map(|run| 10.0 + 0.1 * (run % 3) as f64);
            believed(&quick.chain((0..slow).map(|_| 30.0)).collect::<Vec<f64>>())
        };
        let (few, many) = (with(3, 1), with(24, 8));
        assert!(few > 10.1 && few < 12.5, "{few}");
        assert!(many > few + 1.0 && many < 15.1, "{many}");
    }
}
