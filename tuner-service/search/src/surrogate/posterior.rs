//! The surrogate's posterior of an epoch, without and with its runs in flight.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::history::by_point::{Known, View};
use crate::surrogate::cache::{Bounds, Fit, SurrogateCache};
use crate::surrogate::ensemble::Ensemble;
use crate::surrogate::failures::Failures;
use crate::surrogate::importance::{Importance, Silence};
use crate::surrogate::observed::{MOST_POINTS, Observed, observe};
use crate::surrogate::prior::{Mean, Prior};
use crate::surrogate::shared_noise::Explained;
use crate::surrogate::{Observation, Prediction, points, ranked};
use io_autotune_model::space::Point;

/// A view with its surrogate, which is fitted on first use.
#[derive(Debug)]
pub struct Modelled<'a> {
    view: View<'a>,
    cache: Option<&'a SurrogateCache>,
    prior: Option<&'a Arc<Prior>>,
    capped: bool,
    expected: OnceCell<Option<Arc<Mean>>>,
    fitted: OnceCell<Option<Fitted>>,
    posterior: OnceCell<Option<Posterior>>,
    failures: OnceCell<Option<Failures>>,
}

impl<'a> Modelled<'a> {
    /// A view whose surrogates come from the cache if equal data were fitted before.
    pub fn new(view: View<'a>, cache: Option<&'a SurrogateCache>) -> Self {
        Modelled {
            view,
            cache,
            prior: None,
            capped: false,
            expected: OnceCell::new(),
            fitted: OnceCell::new(),
            posterior: OnceCell::new(),
            failures: OnceCell::new(),
        }
    }

    /// With `is_careful`, the surrogate sees of a terrible point only that it is
    /// [terrible](Observed::capped), so that a study of users' jobs goes on after one.
    #[must_use]
    pub fn capped(mut self, is_careful: bool) -> Self {
        self.capped = is_careful;
        self
    }

    /// Adds a prior from other studies. It is used once a run of another point than the default has
    /// counted.
    #[must_use]
    pub fn on(mut self, prior: Option<&'a Arc<Prior>>) -> Self {
        self.prior = prior;
        self
    }

    /// The prior's mean, weighted by the runs so far, whether the surrogate leans on it or not.
    pub fn expected(&self) -> Option<&Mean> {
        self.mean().map(AsRef::as_ref)
    }

    fn mean(&self) -> Option<&Arc<Mean>> {
        let mean = || {
            let known: Vec<(&Point, &Known)> = self.view.iter().collect();
            let observed = observe(&known, &self.view.default);
            let Observed {
                observations,
                scatter,
                ..
            } = &observed;
            let mean = self.prior?.mean(&self.view, observations, *scatter);
            Some(Arc::new(mean))
        };
        self.expected.get_or_init(mean).as_ref()
    }

    /// Returns true if other studies show that the log ratio of a point's time to the default's
    /// exceeds `most`.
    pub fn is_dreaded(&self, point: &Point, most: f64) -> bool {
        self.expected()
            .is_some_and(|mean| mean.is_terrible(point, most))
    }

    /// The posterior of the ended runs. None before a run has counted.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted.get_or_init(|| Fitted::new(self)).as_ref()
    }

    /// The posterior with the runs in flight. None before a run has counted.
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
    /// Measured points, the lowest prediction first; at least one.
    pub ranked: Vec<Point>,
    /// Points that ran or are in flight, and were not measured.
    others: Vec<Point>,
    known: OnceCell<BTreeMap<Point, Prediction>>,
}

impl Fitted {
    fn new(of: &Modelled<'_>) -> Option<Self> {
        let (view, cache, mean) = (&of.view, of.cache, of.mean());
        let known: Vec<(&Point, &Known)> = view.iter().collect();
        let observed = observe(&known, &view.default);
        let observed = match of.capped {
            true => observed.capped(&view.default),
            false => observed,
        };
        // Runs of the default alone cannot contradict a prior.
        let is_another = |one: &Observation| one.point != view.default;
        let mean = mean.filter(|_| observed.observations.iter().any(is_another));
        let mean = mean.map(Arc::clone);
        let fit = match cache {
            Some(cache) => cache.of(view.space, &observed, mean)?,
            None => Arc::new(Fit::new(view.space, &observed, mean)?),
        };
        let measured = fit.observations.iter().map(|one| &one.point);
        let measured: BTreeSet<&Point> = measured.collect();
        let others = known.into_iter().map(|(point, _)| point);
        let others = others.filter(|point| !measured.contains(point));
        let ranked = ranked(points(&fit.observations), fit.means.clone());
        Some(Fitted {
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            others: others.cloned().collect(),
            fit,
            known: OnceCell::new(),
        })
    }

    /// The prediction at every point that ran or is in flight.
    pub fn known(&self) -> &BTreeMap<Point, Prediction> {
        self.known.get_or_init(|| {
            let points = points(&self.fit.observations).into_iter();
            let of_others = self.fit.surrogate.predict_all(&self.others);
            points
                .zip(self.fit.predictions().iter().copied())
                .chain(self.others.iter().cloned().zip(of_others))
                .collect()
        })
    }

    /// The prediction at one point.
    pub fn predict(&self, point: &Point) -> Prediction {
        self.fit.surrogate.predict(point)
    }

    /// How much higher log elapsed is at `from` than at each of these points.
    pub fn above(&self, from: &Point, points: &[Point]) -> Vec<Prediction> {
        self.fit.surrogate.above(from, points)
    }

    /// The variance of a run's log elapsed around its parametrization's mean, estimated from
    /// repeated runs.
    pub fn noise(&self) -> f64 {
        self.fit.scatter.variance()
    }

    /// The part of the noise that is explained by how other runs fared at the same time; none if
    /// nothing is known of other runs.
    pub fn explained(&self) -> Option<Explained> {
        let meanwhile = &self.fit.observed.meanwhile;
        meanwhile.explained(self.fit.slope, self.noise())
    }

    /// What has been found of the fit.
    pub fn bounds(&self) -> &Bounds {
        &self.fit.bounds
    }

    /// [`Fit::importance`].
    pub fn importance(&self) -> Result<Importance, Silence> {
        self.fit.importance()
    }
}

/// The posterior as if the runs in flight had ended as predicted (kriging believer), for the
/// search.
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
        let fit = &fitted.fit;
        let flights = view.flights(MOST_POINTS);
        let points = points(&fit.observations);
        let (surrogate, means) = if flights.is_empty() {
            (Arc::clone(&fit.surrogate), fit.means.clone())
        } else {
            let fantasised = fit.surrogate.fantasising(&fit.observed, &flights)?;
            let means = fantasised.expect_all(&points);
            (Arc::new(fantasised), means)
        };
        let ranked = ranked(points, means);
        Some(Posterior {
            incumbent: ranked.first()?.0,
            default: surrogate.predict(&view.default).mean,
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            surrogate,
        })
    }
}
