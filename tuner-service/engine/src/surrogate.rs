//! A Gaussian process on the logarithm of elapsed, over points of a space: what a run of an untested
//! parametrization would take, and how sure that is.
//!
//! C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), cited as RW.
//! The logarithm, because noise and effects of I/O parameters are ratios: a run is slower by a third
//! and not by ten seconds. One noise is pooled over all points (in the logarithm it hardly varies), so that
//! a point that ran once is judged by what the others scatter.
//!
//! Everything is deterministic: hyperparameters are searched on a fixed grid from a fixed start in a
//! fixed number of sweeps.

pub(crate) mod cache;
pub(crate) mod cholesky;
pub(crate) mod coregionalisation;
pub(crate) mod ensemble;
mod kernel;
pub(crate) mod multitask;
pub(crate) mod posterior;
#[cfg(test)]
mod tests;

use std::array;
use std::sync::Arc;

use cholesky::{Cholesky, Symmetric};
use kernel::{Correlations, Hyperparameters, Kernel};

use crate::space::{Point, Space};

/// What is known of one point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observation {
    /// The point; no two observations have the same.
    pub(crate) point: Point,
    /// The logarithm of the mean of its elapsed seconds.
    pub(crate) log_mean: f64,
    /// How many runs that mean rests on, at least 1.
    pub(crate) runs: f64,
}

/// How runs of one parametrization scatter: pooled over all that ran more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scatter {
    /// The sum of squared deviations of log elapsed from the mean of its parametrization.
    pub(crate) squares: f64,
    /// Runs less parametrizations.
    pub(crate) degrees: f64,
}

impl Scatter {
    /// Takes in the logarithms of one parametrization's runs, at least one; returns their mean.
    pub(crate) fn add(&mut self, logs: &[f64]) -> f64 {
        let runs = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / runs;
        self.squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        self.degrees += runs - 1.0;
        mean
    }
}

/// What the process says of one point's log elapsed, without the noise of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// Points and what is predicted of them, log seconds, the lowest first.
pub(crate) fn ranked(points: Vec<Point>, predictions: Vec<Prediction>) -> Vec<(f64, Point)> {
    let means = predictions.into_iter().map(|prediction| prediction.mean);
    let mut ranked: Vec<(f64, Point)> = means.zip(points).collect();
    ranked.sort_by(|(a, point), (b, other)| a.total_cmp(b).then_with(|| point.cmp(other)));
    ranked
}

/// The prior of the process's variance: inverse gamma, worth two observations whose spread of log
/// elapsed is a quarter. It keeps the variance off zero where all times are the same.
const PRIOR_SHAPE: f64 = 1.0;
const PRIOR_SCALE: f64 = 0.075;
/// Added to the diagonal, relative to the process's variance, so that rounding does not make the
/// covariance indefinite.
const JITTER: f64 = 1e-8;
/// How many points are predicted at once.
const LANES: usize = 8;
/// How often each hyperparameter is searched.
const SWEEPS: usize = 2;

/// What processes of different hyperparameters on observations of the same points share.
#[derive(Debug)]
struct Shared {
    space: Arc<Space>,
    /// As [`Space::seen`] gives them.
    points: Arc<[Point]>,
    correlations: Correlations,
}

impl Shared {
    fn of(space: &Space, observations: &[Observation]) -> Self {
        Self::new(Arc::new(space.clone()), observations)
    }

    fn new(space: Arc<Space>, observations: &[Observation]) -> Self {
        let points: Arc<[Point]> = observations.iter().map(|o| space.seen(&o.point)).collect();
        Shared {
            correlations: Correlations::new(&space, &points),
            space,
            points,
        }
    }
}

/// A fitted process.
#[derive(Debug)]
pub(crate) struct Surrogate {
    space: Arc<Space>,
    kernel: Kernel,
    /// As [`Space::seen`] gives them.
    points: Arc<[Point]>,
    trend: f64,
    variance: f64,
    factor: Cholesky,
    /// K^-1 (y - trend).
    weights: Vec<f64>,
    /// L^-1 1.
    ones: Vec<f64>,
}

impl Surrogate {
    /// SurrogateCache the process to what is known: hyperparameters by their posterior mode on a grid,
    /// coordinate by coordinate (RW section 5.4.1); the constant trend and the variance in closed form.
    ///
    /// Work grows with the cube of the number of observations. None without observations, or if one
    /// is not finite.
    pub(crate) fn fit(
        space: &Space,
        observations: &[Observation],
        scatter: Scatter,
    ) -> Option<Self> {
        let shared = &mut Shared::of(space, observations);
        let (_, best) = Self::search(shared, observations, scatter)?
            .into_iter()
            .next()?;
        Self::with(shared, best, observations, scatter)
    }

    /// The hyperparameters that the search for the most probable ones tried, each once, the most
    /// probable first, with the logarithm of their posterior density, apart from a constant.
    fn search(
        shared: &mut Shared,
        observations: &[Observation],
        scatter: Scatter,
    ) -> Option<Vec<(f64, Hyperparameters)>> {
        let sound = |o: &Observation| o.log_mean.is_finite() && o.runs.is_finite() && o.runs > 0.0;
        if observations.is_empty() || !observations.iter().all(sound) {
            return None;
        }
        let correlations = &mut shared.correlations;
        let mut best = Hyperparameters::start(&shared.space);
        let all = correlations.partial(&best, None);
        let covariance = correlations.matrix(&all, &best);
        let mut highest = score(covariance, &best, observations, scatter);
        let mut tried = vec![(highest, best.clone())];
        for _ in 0..SWEEPS {
            for coordinate in best.coordinates() {
                let current = best.clone();
                let others = correlations.partial(&current, Some(coordinate));
                for candidate in current.varied(coordinate) {
                    if tried.iter().any(|(_, tried)| *tried == candidate) {
                        continue;
                    }
                    let covariance = correlations.matrix(&others, &candidate);
                    let score = score(covariance, &candidate, observations, scatter);
                    if score > highest {
                        (highest, best) = (score, candidate.clone());
                    }
                    tried.push((score, candidate));
                }
            }
        }
        // Stable: of equal ones the first that was tried, as the search has it.
        tried.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Some(tried)
    }

    /// The process after the runs in flight have ended as it expects: their points are as well known
    /// as they will be, and what is expected of others stays (Desautels, Krause, Burdick 2014).
    /// `flights` are points with their number of runs.
    pub(crate) fn fantasising(
        &self,
        observations: &[Observation],
        scatter: Scatter,
        flights: &[(Point, f64)],
    ) -> Option<Self> {
        let believed = self.believed(observations, flights);
        let shared = &mut Shared::new(Arc::clone(&self.space), &believed);
        Self::with(shared, self.hyperparameters(), &believed, scatter)
    }

    /// What is known once the runs in flight have ended as it expects.
    fn believed(&self, observations: &[Observation], flights: &[(Point, f64)]) -> Vec<Observation> {
        let mut believed = observations.to_vec();
        for (point, runs) in flights {
            match believed.iter_mut().find(|known| known.point == *point) {
                Some(known) => known.runs += runs,
                None => believed.push(Observation {
                    point: point.clone(),
                    log_mean: self.predict(point).mean,
                    runs: *runs,
                }),
            }
        }
        believed
    }

    fn hyperparameters(&self) -> Hyperparameters {
        self.kernel.hyperparameters().clone()
    }

    fn with(
        shared: &mut Shared,
        hyperparameters: Hyperparameters,
        observations: &[Observation],
        scatter: Scatter,
    ) -> Option<Self> {
        let all = shared.correlations.partial(&hyperparameters, None);
        let covariance = shared.correlations.matrix(&all, &hyperparameters);
        let state = State::new(covariance, &hyperparameters, observations, scatter)?;
        Some(Surrogate {
            weights: state.factor.solve_transposed(&state.residuals),
            kernel: Kernel::new(&shared.space, hyperparameters),
            space: Arc::clone(&shared.space),
            points: Arc::clone(&shared.points),
            trend: state.trend,
            variance: state.variance,
            factor: state.factor,
            ones: state.ones,
        })
    }

    /// The process at a point, the uncertainty of the trend included (RW equations 2.25, 2.26, 2.42).
    pub(crate) fn predict(&self, point: &Point) -> Prediction {
        self.predict_lanes(&[self.space.seen(point)])[0]
    }

    /// [`Surrogate::predict`] of many points, in their order: the same, sooner.
    pub(crate) fn predict_all(&self, points: &[Point]) -> Vec<Prediction> {
        self.predict_seen(&self.seen(points))
    }

    /// Points as [`Space::seen`] gives them.
    fn seen(&self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|point| self.space.seen(point)).collect()
    }

    /// [`Surrogate::predict_all`] of points as [`Space::seen`] gives them.
    fn predict_seen(&self, seen: &[Point]) -> Vec<Prediction> {
        let predict = |some: &[Point]| self.predict_lanes(some).into_iter().take(some.len());
        seen.chunks(LANES).flat_map(predict).collect()
    }

    /// At most so many points as there are lanes, as [`Space::seen`] gives them; what lanes without a point have means
    /// nothing.
    fn predict_lanes(&self, seen: &[Point]) -> [Prediction; LANES] {
        let with_all = self.kernel.with_several(seen);
        let covariances: Vec<[f64; LANES]> = self.points.iter().map(with_all).collect();
        let mut means = [self.trend; LANES];
        for (row, weight) in covariances.iter().zip(&self.weights) {
            for (mean, covariance) in means.iter_mut().zip(row) {
                *mean += covariance * weight;
            }
        }
        let (mut unexplained, mut trends) = ([1.0; LANES], [1.0; LANES]);
        for (row, one) in self.factor.solve_lanes(covariances).iter().zip(&self.ones) {
            for (lane, solved) in row.iter().enumerate() {
                unexplained[lane] -= solved * solved;
                trends[lane] -= solved * one;
            }
        }
        let information = dot(&self.ones, &self.ones);
        array::from_fn(|lane| {
            let relative = unexplained[lane] + trends[lane] * trends[lane] / information;
            Prediction {
                mean: means[lane],
                variance: (relative * self.variance).max(0.0),
            }
        })
    }

    /// The variance of one run's log elapsed around its parametrization's mean.
    pub(crate) fn noise(&self) -> f64 {
        self.kernel.hyperparameters().noise * self.variance
    }
}

/// The covariance of the observations factored, and what follows from it in closed form.
struct State {
    factor: Cholesky,
    ones: Vec<f64>,
    /// L^-1 (y - trend).
    residuals: Vec<f64>,
    trend: f64,
    variance: f64,
    log_likelihood: f64,
}

impl State {
    /// From the correlations, to which the noise is added; none if the covariance is not positive
    /// definite.
    fn new(
        mut covariance: Symmetric,
        hyperparameters: &Hyperparameters,
        observations: &[Observation],
        scatter: Scatter,
    ) -> Option<Self> {
        let noise = hyperparameters.noise;
        for (row, observation) in observations.iter().enumerate() {
            covariance.add(row, noise / observation.runs + JITTER);
        }
        let factor = Cholesky::new(covariance)?;
        let ones = factor.solve(&vec![1.0; observations.len()]);
        let times: Vec<f64> = observations.iter().map(|o| o.log_mean).collect();
        let times = factor.solve(&times);
        let information = dot(&ones, &ones);
        // Generalised least squares (RW section 2.7).
        let trend = dot(&ones, &times) / information;
        let residuals: Vec<f64> = times
            .iter()
            .zip(&ones)
            .map(|(time, one)| time - trend * one)
            .collect();
        let squares = dot(&residuals, &residuals) + scatter.squares / noise + 2.0 * PRIOR_SCALE;
        let degrees = observations.len() as f64 - 1.0 + scatter.degrees + 2.0 * PRIOR_SHAPE;
        let variance = squares / degrees;
        // The variance is integrated out, so its logarithm stands where RW equation 5.8 has the
        // quadratic form; what scatters within points is noise alone.
        let log_likelihood = -0.5 * degrees * variance.ln()
            - factor.half_log_determinant()
            - 0.5 * information.ln()
            - 0.5 * scatter.degrees * noise.ln();
        Some(State {
            factor,
            ones,
            residuals,
            trend,
            variance,
            log_likelihood,
        })
    }
}

fn score(
    correlations: Symmetric,
    hyperparameters: &Hyperparameters,
    observations: &[Observation],
    scatter: Scatter,
) -> f64 {
    State::new(correlations, hyperparameters, observations, scatter)
        .map(|state| state.log_likelihood + hyperparameters.log_prior())
        .filter(|score| !score.is_nan())
        .unwrap_or(f64::NEG_INFINITY)
}

/// The product of two vectors of one length. It is summed in eight parts, always in the same order, because
/// one sum alone waits for itself.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut parts = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for (part, (a, b)) in parts.iter_mut().zip(a.iter().zip(b)) {
            *part += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    parts.iter().sum::<f64>() + rest
}
