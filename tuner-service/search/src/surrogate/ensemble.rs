//! A mixture of processes: after few runs the hyperparameters are uncertain, and the most probable
//! process alone is overconfident. A fully Bayesian treatment integrates over them (RW section 5.2,
//! equation 5.3; J. Snoek, H. Larochelle, R. P. Adams, "Practical Bayesian optimization of machine
//! learning algorithms", 2012, section 3.2). This mixture sums over the hyperparameters that the
//! search for the mode visited.

use crate::math::Portable;
use std::sync::Arc;

use super::observed::Observed;
use super::prior::Mean;
use super::{Data, Observation, Prediction, Scatter, Shared, Surrogate, Tried, mixture};
use io_autotune_model::space::{Point, Space};

const MOST_MEMBERS: usize = 24;
/// The largest product of members and points: a prediction costs the square of the number of
/// points, and many points need few members.
const MOST_ROWS: usize = 640;
/// The smallest weight of a member, relative to the most probable one.
const LEAST_WEIGHT: f64 = 0.02;
/// Flattens the posterior, because the search follows the axes through the mode and misses mass
/// elsewhere.
const TEMPERATURE: f64 = 1.5;

/// Processes on the same observations, weighted by the posterior of their hyperparameters.
#[derive(Debug)]
pub struct Ensemble {
    /// The members with their weights: at least one member; the weights sum to 1.
    members: Vec<(f64, Surrogate)>,
    /// The prior from other studies, on which members lean.
    prior: Option<Leaning>,
}

#[derive(Clone, Debug)]
struct Leaning {
    mean: Arc<Mean>,
    /// How far each member leans on the mean, in their order.
    leans: Vec<f64>,
}

/// The observations without the part that the prior explains.
fn less(observations: &[Observation], expected: &[f64], lean: f64) -> Vec<Observation> {
    let both = observations.iter().zip(expected);
    both.map(|(observation, expected)| Observation {
        log_mean: observation.log_mean - lean * expected,
        ..observation.clone()
    })
    .collect()
}

impl Ensemble {
    /// Fits without a prior. None where [`Surrogate::fit`] returns none.
    pub fn fit(space: &Space, observations: &[Observation], scatter: Scatter) -> Option<Self> {
        Self::fit_on(space, &Observed::of(observations, scatter), None)
    }

    /// [`Ensemble::fit`] with a prior, on which members lean as far as it explains the
    /// observations. The part of the times that is explained by how other runs fared is taken out.
    pub fn fit_on(space: &Space, observed: &Observed, prior: Option<Arc<Mean>>) -> Option<Self> {
        let data = observed.data();
        let observations = data.observations;
        let mut shared = Shared::of(space, observations);
        let expected = prior.as_ref().map(|mean| mean.at_all(observations));
        let expected = expected.as_deref();
        let tried = Surrogate::search(&mut shared, data, expected)?;
        let highest = tried.first()?.score;
        let most = (MOST_ROWS / observations.len()).clamp(1, MOST_MEMBERS);
        let mut leans = Vec::new();
        let mut members: Vec<(f64, Surrogate)> = tried
            .into_iter()
            .take(most)
            .map(|tried| (((tried.score - highest) / TEMPERATURE).exponential(), tried))
            .take_while(|(weight, _)| *weight >= LEAST_WEIGHT)
            .filter_map(|(weight, tried)| {
                let Tried {
                    hyperparameters,
                    lean,
                    ..
                } = tried;
                let rest = expected.map(|expected| less(observations, expected, lean));
                let observations = rest.as_deref().unwrap_or(observations);
                let rest = Data {
                    observations,
                    ..data
                };
                let member = Surrogate::with(&mut shared, hyperparameters, rest)?;
                leans.push(lean);
                Some((weight, member))
            })
            .collect();
        let sum: f64 = members.iter().map(|(weight, _)| weight).sum();
        for (weight, _) in &mut members {
            *weight /= sum;
        }
        let prior = prior.map(|mean| Leaning { mean, leans });
        (!members.is_empty()).then_some(Ensemble { members, prior })
    }

    /// How far the members lean on the prior on average, from 0 to 1; 0 without a prior.
    pub fn lean(&self) -> f64 {
        let leans = self.prior.iter().flat_map(|prior| &prior.leans);
        let weights = self.members.iter().map(|(weight, _)| weight);
        leans.zip(weights).map(|(lean, weight)| lean * weight).sum()
    }

    /// How strongly log elapsed follows how other runs fared at the same time; 0 if that is not
    /// known.
    pub(super) fn slope(&self) -> f64 {
        self.average(1, |_, member| vec![member.slope])[0]
    }

    /// The ensemble as if the runs in flight had ended as each process expects:
    /// [`Surrogate::fantasising`].
    pub fn fantasising(&self, observed: &Observed, flights: &[(Point, f64)]) -> Option<Self> {
        let data = observed.data();
        let observations = data.observations;
        let mut shared = None;
        let expected = self.prior.as_ref();
        let expected = expected.map(|prior| (prior.mean.at_all(observations), &prior.leans));
        let fantasising = |(place, (weight, member)): (usize, &(f64, Surrogate))| {
            let rest = expected.as_ref();
            let rest = rest.map(|(expected, leans)| less(observations, expected, leans[place]));
            let believed = member.believed(rest.as_deref().unwrap_or(observations), flights);
            let shared =
                shared.get_or_insert_with(|| Shared::new(Arc::clone(&member.space), &believed));
            let believed = Data {
                observations: &believed,
                meanwhile: Some(&observed.meanwhile.of_so_many(believed.len())),
                ..data
            };
            let member = Surrogate::with(shared, member.hyperparameters(), believed)?;
            Some((*weight, member))
        };
        let members = self
            .members
            .iter()
            .enumerate()
            .map(fantasising)
            .collect::<Option<_>>()?;
        Some(Ensemble {
            members,
            prior: self.prior.clone(),
        })
    }

    /// The mean and variance of the mixture of the processes' predictions at a point.
    pub fn predict(&self, point: &Point) -> Prediction {
        self.predict_all(std::slice::from_ref(point))[0]
    }

    /// [`Ensemble::predict`] for many points, in their order.
    pub fn predict_all(&self, points: &[Point]) -> Vec<Prediction> {
        let Some((_, first)) = self.members.first() else {
            return Vec::new();
        };
        let seen = first.seen(points);
        let told = self.told(points);
        self.mixed(points.len(), |place, member| {
            let mut predictions = member.predict_seen(&seen);
            for (point, one) in predictions.iter_mut().enumerate() {
                one.mean += told(place, point);
            }
            predictions
        })
    }

    /// How much higher log elapsed is at `from` than at each of these points: the mean and variance
    /// of the mixture of the processes' predictions of the difference. It varies less than both
    /// predictions together, because they share what is unknown.
    pub fn above(&self, from: &Point, points: &[Point]) -> Vec<Prediction> {
        let Some((_, first)) = self.members.first() else {
            return Vec::new();
        };
        let (seen, of) = (first.seen(points), first.space.seen(from));
        let told = self.told(points);
        let told_of = self.told(std::slice::from_ref(from));
        self.mixed(points.len(), |place, member| {
            let mut differences = member.above(&of, &seen);
            for (point, one) in differences.iter_mut().enumerate() {
                one.mean += told_of(place, 0) - told(place, point);
            }
            differences
        })
    }

    /// The mixture of the members' predictions of `values` quantities.
    fn mixed(
        &self,
        values: usize,
        of: impl Fn(usize, &Surrogate) -> Vec<Prediction>,
    ) -> Vec<Prediction> {
        let members = self.members.iter().enumerate();
        let each: Vec<(f64, Vec<Prediction>)> = members
            .map(|(place, (weight, member))| (*weight, of(place, member)))
            .collect();
        (0..values)
            .map(|place| mixture(each.iter().map(|(weight, all)| (*weight, all[place]))))
            .collect()
    }

    /// Only the means of [`Ensemble::predict_all`], bit for bit the same. They take far less time
    /// than the variances.
    pub(super) fn expect_all(&self, points: &[Point]) -> Vec<f64> {
        let Some((_, first)) = self.members.first() else {
            return Vec::new();
        };
        let seen = first.seen(points);
        let told = self.told(points);
        self.average(points.len(), |place, member| {
            let mut means = member.expect_seen(&seen);
            for (point, mean) in means.iter_mut().enumerate() {
                *mean += told(place, point);
            }
            means
        })
    }

    /// A function of a member's place and a point's place: the amount that the prior adds to the
    /// member's mean at the point; 0 without a prior.
    fn told(&self, points: &[Point]) -> impl Fn(usize, usize) -> f64 {
        let prior = self.prior.as_ref();
        let prior = prior.map(|prior| (prior.mean.at(points), &prior.leans));
        move |member, point| {
            let prior = prior.as_ref();
            prior.map_or(0.0, |(expected, leans)| leans[member] * expected[point])
        }
    }

    /// The difference of each observation from what the processes predict from the other
    /// observations.
    pub(super) fn surprises(&self, observations: &[Observation]) -> Vec<f64> {
        self.average(observations.len(), |_, member| member.surprises())
    }

    /// The weighted averages over the members of `values` numbers, which `of` computes for a
    /// member.
    fn average(&self, values: usize, of: impl Fn(usize, &Surrogate) -> Vec<f64>) -> Vec<f64> {
        let mut means = vec![0.0; values];
        for (place, (weight, member)) in self.members.iter().enumerate() {
            for (mean, value) in means.iter_mut().zip(of(place, member)) {
                *mean += weight * value;
            }
        }
        means
    }

    /// The variance of one run's log elapsed around its parametrization's mean.
    pub fn noise(&self) -> f64 {
        let members = self.members.iter();
        members
            .map(|(weight, member)| weight * member.noise())
            .sum()
    }
}
