//! A cache of the last fitted surrogates.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::surrogate::ensemble::Ensemble;
use crate::surrogate::importance::{Importance, Silence, importance};
use crate::surrogate::observed::Observed;
use crate::surrogate::prior::{Mean, Prior};
use crate::surrogate::source::SharedSource;
use crate::surrogate::{Observation, Prediction, Scatter, points};
use io_autotune_model::space::Space;

/// The last fitted surrogates with their data, and the last prior. Equal data give the same fit,
/// whatever is in flight. A decision asks for two: the search leans on a prior, and what may still
/// be won is told from the epoch's runs alone.
#[derive(Debug, Default)]
pub struct SurrogateCache {
    on_a_prior: Mutex<Option<Arc<Fit>>>,
    alone: Mutex<Option<Arc<Fit>>>,
    prior: Mutex<Option<Arc<Prior>>>,
}

/// A surrogate with the data it was fitted to.
#[derive(Debug)]
pub struct Fit {
    space: Space,
    /// The observations as they are in the history.
    pub observed: Observed,
    prior: Option<Arc<Mean>>,
    /// How strongly log elapsed follows how other runs fared at the same time; 0 if that is not
    /// known.
    pub slope: f64,
    /// The observations without what other runs explain.
    pub observations: Vec<Observation>,
    /// The scatter without what other runs explain.
    pub scatter: Scatter,
    /// The surrogate.
    pub surrogate: Arc<Ensemble>,
    /// The predicted log seconds at the observations' points, in their order.
    pub means: Vec<f64>,
    predictions: OnceLock<Vec<Prediction>>,
    importance: OnceLock<Result<Importance, Silence>>,
    /// What its reader has found of it.
    pub bounds: Bounds,
}

/// Upper ends of what the default's log elapsed is above that of other points, the highest of each
/// kind. Whoever finds one keeps it with the fit, of which it is a function.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Of the measured points.
    pub measured: OnceLock<f64>,
    /// Of all points that were looked at.
    pub all: OnceLock<f64>,
}

impl Fit {
    /// Fits a surrogate. None where [`Ensemble::fit_on`] returns none.
    pub fn new(space: &Space, observed: &Observed, prior: Option<Arc<Mean>>) -> Option<Self> {
        let surrogate = Ensemble::fit_on(space, observed, prior.clone())?;
        let slope = surrogate.slope();
        let Observed {
            observations,
            scatter,
            meanwhile,
        } = observed;
        let (observations, scatter) = meanwhile.less(observations, *scatter, slope);
        Some(Fit {
            space: space.clone(),
            observed: observed.clone(),
            prior,
            slope,
            means: surrogate.expect_all(&points(&observations)),
            observations,
            scatter,
            predictions: OnceLock::new(),
            surrogate: Arc::new(surrogate),
            importance: OnceLock::new(),
            bounds: Bounds::default(),
        })
    }

    /// The predictions at the observations' points, in their order.
    pub fn predictions(&self) -> &[Prediction] {
        let predict = || self.surrogate.predict_all(&points(&self.observations));
        self.predictions.get_or_init(predict)
    }

    /// The shares of the spread that the parameters of the space explain, or why nothing can be
    /// said. Computed once; that takes as long as some ten thousand predictions.
    pub fn importance(&self) -> Result<Importance, Silence> {
        let found = || importance(&self.space, &self.surrogate, &self.observations);
        self.importance.get_or_init(found).clone()
    }

    fn is_of(&self, space: &Space, observed: &Observed, prior: Option<&Arc<Mean>>) -> bool {
        self.observed == *observed && self.space == *space && self.prior.as_ref() == prior
    }
}

impl SurrogateCache {
    /// [`Fit::new`], or the cached fit of equal data.
    pub fn of(
        &self,
        space: &Space,
        observed: &Observed,
        prior: Option<Arc<Mean>>,
    ) -> Option<Arc<Fit>> {
        let kept = match prior {
            Some(_) => &self.on_a_prior,
            None => &self.alone,
        };
        let last = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        let is_of = |fit: &Arc<Fit>| fit.is_of(space, observed, prior.as_ref());
        if let Some(fit) = known.filter(is_of) {
            return Some(fit);
        }
        let fit = Arc::new(Fit::new(space, observed, prior)?);
        *last() = Some(Arc::clone(&fit));
        Some(fit)
    }

    /// [`Prior::new`], or the cached prior of the same sources.
    pub fn prior(&self, space: &Space, sources: &[Arc<SharedSource>]) -> Option<Arc<Prior>> {
        let last = || self.prior.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        if let Some(prior) = known.filter(|prior| prior.is_of(space, sources)) {
            return Some(prior);
        }
        let prior = Arc::new(Prior::new(space, sources)?);
        *last() = Some(Arc::clone(&prior));
        Some(prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::shared_noise::Meanwhile;
    use crate::testing::grid;
    use io_autotune_model::space::Point;

    fn observation(level: u32, log_mean: f64) -> Observation {
        Observation {
            point: Point(vec![level]),
            log_mean,
            runs: 2.0,
        }
    }

    #[test]
    fn the_same_question_has_the_same_fit_and_any_other_its_own() {
        let (space, other) = (grid(&[6]), grid(&[7]));
        let observed = Observed {
            observations: vec![observation(1, 1.0), observation(3, 2.0)],
            scatter: Scatter {
                squares: 0.1,
                degrees: 4.0,
            },
            meanwhile: Meanwhile::default(),
        };
        let surrogates = SurrogateCache::default();
        let first = surrogates.of(&space, &observed, None).unwrap();
        let again = surrogates.of(&space, &observed, None).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let but = |change: &dyn Fn(&mut Observed)| {
            let mut other = observed.clone();
            change(&mut other);
            other
        };
        for (space, observed) in [
            (&other, &observed),
            (&space, &but(&|one| one.observations[1].log_mean = 2.5)),
            (&space, &but(&|one| one.scatter = Scatter::default())),
        ] {
            let less = but(&|one| one.observations.truncate(1));
            surrogates.of(&grid(&[6]), &less, None).unwrap();
            let fit = surrogates.of(space, observed, None).unwrap();
            let fresh = Fit::new(space, observed, None).unwrap();
            assert!(!Arc::ptr_eq(&first, &fit));
            assert_eq!(fit.predictions(), fresh.predictions());
            let means = fit.predictions().iter().map(|one| one.mean);
            assert_eq!(fit.means, means.collect::<Vec<_>>());
            assert_eq!(fit.importance(), fresh.importance());
        }
    }
}
