//! A cache of the last fitted surrogate.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::surrogate::ensemble::Ensemble;
use crate::surrogate::importance::{Importance, Silence, importance};
use crate::surrogate::prior::{Mean, Prior, SharedSource};
use crate::surrogate::{Observation, Prediction, Scatter, points};
use io_autotune_model::space::Space;

/// The last fitted surrogate with its data. Equal data give the same fit, whatever is in flight.
/// Likewise the last prior.
#[derive(Debug, Default)]
pub struct SurrogateCache {
    fit: Mutex<Option<Arc<Fit>>>,
    prior: Mutex<Option<Arc<Prior>>>,
}

/// A surrogate with what it was fitted to.
#[derive(Debug)]
pub struct Fit {
    space: Space,
    observations: Vec<Observation>,
    scatter: Scatter,
    prior: Option<Arc<Mean>>,
    /// The surrogate.
    pub surrogate: Arc<Ensemble>,
    /// What is expected at the observations' points, in their order: log seconds.
    pub means: Vec<f64>,
    predictions: OnceLock<Vec<Prediction>>,
    importance: OnceLock<Result<Importance, Silence>>,
}

impl Fit {
    /// None where [`Ensemble::fit_on`] returns none.
    pub fn new(
        space: &Space,
        observations: &[Observation],
        scatter: Scatter,
        prior: Option<Arc<Mean>>,
    ) -> Option<Self> {
        let surrogate = Ensemble::fit_on(space, observations, scatter, prior.clone())?;
        Some(Fit {
            space: space.clone(),
            observations: observations.to_vec(),
            scatter,
            prior,
            means: surrogate.expect_all(&points(observations)),
            predictions: OnceLock::new(),
            surrogate: Arc::new(surrogate),
            importance: OnceLock::new(),
        })
    }

    /// At the observations' points, in their order.
    pub fn predictions(&self) -> &[Prediction] {
        let predict = || self.surrogate.predict_all(&points(&self.observations));
        self.predictions.get_or_init(predict)
    }

    /// What the parameters of the space explain, or why nothing is said of them. It takes as long as
    /// some ten thousand predictions, once.
    pub fn importance(&self) -> Result<Importance, Silence> {
        let found = || importance(&self.space, &self.surrogate, &self.observations);
        self.importance.get_or_init(found).clone()
    }

    fn is_of(
        &self,
        space: &Space,
        observations: &[Observation],
        scatter: Scatter,
        prior: Option<&Arc<Mean>>,
    ) -> bool {
        self.observations == observations
            && self.scatter == scatter
            && self.space == *space
            && self.prior.as_ref() == prior
    }
}

impl SurrogateCache {
    /// [`Fit::new`], or the cached fit of equal data.
    pub fn of(
        &self,
        space: &Space,
        observations: &[Observation],
        scatter: Scatter,
        prior: Option<Arc<Mean>>,
    ) -> Option<Arc<Fit>> {
        let last = || self.fit.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        let is_of = |fit: &Arc<Fit>| fit.is_of(space, observations, scatter, prior.as_ref());
        if let Some(fit) = known.filter(is_of) {
            return Some(fit);
        }
        let fit = Arc::new(Fit::new(space, observations, scatter, prior)?);
        *last() = Some(Arc::clone(&fit));
        Some(fit)
    }

    /// [`Prior::new`], or the cached one of the same sources.
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
        let scatter = Scatter {
            squares: 0.1,
            degrees: 4.0,
        };
        let surrogates = SurrogateCache::default();
        let observations = vec![observation(1, 1.0), observation(3, 2.0)];
        let first = surrogates.of(&space, &observations, scatter, None).unwrap();
        let again = surrogates.of(&space, &observations, scatter, None).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let mut slower = observations.clone();
        slower[1].log_mean = 2.5;
        for (space, observations, scatter) in [
            (&other, &observations, scatter),
            (&space, &slower, scatter),
            (&space, &observations, Scatter::default()),
        ] {
            surrogates
                .of(&grid(&[6]), &observations[..1], scatter, None)
                .unwrap();
            let fit = surrogates.of(space, observations, scatter, None).unwrap();
            let fresh = Fit::new(space, observations, scatter, None).unwrap();
            assert!(!Arc::ptr_eq(&first, &fit));
            assert_eq!(fit.predictions(), fresh.predictions());
            let means = fit.predictions().iter().map(|one| one.mean);
            assert_eq!(fit.means, means.collect::<Vec<_>>());
            assert_eq!(fit.importance(), fresh.importance());
        }
    }
}
