//! A Gaussian process on log elapsed over the points of a space. RW is C. E. Rasmussen, C. K. I.
//! Williams, "Gaussian Processes for Machine Learning" (2006). The process uses logarithms because
//! noise and effects of I/O parameters are ratios. One noise variance is pooled over all points.

pub mod cache;
pub mod cholesky;
pub mod common;
pub mod coregionalisation;
pub mod ensemble;
pub mod failures;
pub mod importance;
mod kernel;
pub mod multitask;
pub mod observed;
pub mod posterior;
pub mod prior;
pub mod shared_noise;
pub mod source;
#[cfg(test)]
mod tests;

use crate::math::Portable;
use std::array;
use std::sync::Arc;

use cholesky::{Cholesky, Symmetric};
use kernel::{ByLevel, Correlations, Hyperparameters, Kernel};
use shared_noise::Meanwhile;

use io_autotune_model::space::{Point, Space};

/// The runs of one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The point, unique among the observations.
    pub point: Point,
    /// The logarithm of the mean elapsed, in seconds.
    pub log_mean: f64,
    /// The number of runs, at least 1.
    pub runs: f64,
}

/// The scatter of runs of the same parametrization, pooled over all parametrizations that ran at
/// least twice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scatter {
    /// The sum of squared deviations of log elapsed from the parametrization's mean.
    pub squares: f64,
    /// The degrees of freedom: runs minus parametrizations.
    pub degrees: f64,
}

impl Scatter {
    /// Adds the logarithms of one parametrization's runs, at least one. Returns their mean.
    pub fn add(&mut self, logs: &[f64]) -> f64 {
        let runs = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / runs;
        self.squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        self.degrees += runs - 1.0;
        mean
    }

    /// The variance of a run's log elapsed, as if four more runs had a deviation of 0.12.
    pub fn variance(self) -> f64 {
        const PRIOR_RUNS: f64 = 4.0;
        const PRIOR_DEVIATION: f64 = 0.12;
        let prior = PRIOR_RUNS * PRIOR_DEVIATION * PRIOR_DEVIATION;
        (self.squares + prior) / (self.degrees + PRIOR_RUNS)
    }
}

/// The prediction of log elapsed at one point, without the noise of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The mean of log seconds.
    pub mean: f64,
    /// The variance of that mean.
    pub variance: f64,
}

impl Prediction {
    /// The end of the prediction that lies so many standard deviations above its mean; below it, if
    /// the number is negative.
    pub fn end(self, deviations: f64) -> f64 {
        self.mean + deviations * self.variance.sqrt()
    }
}

/// The mean and variance of a mixture of predictions, whose weights sum to 1.
fn mixture(each: impl Iterator<Item = (f64, Prediction)> + Clone) -> Prediction {
    let average = |of: &dyn Fn(Prediction) -> f64| -> f64 {
        each.clone().map(|(weight, one)| weight * of(one)).sum()
    };
    let mean = average(&|one| one.mean);
    // The variance within members plus the variance between them.
    let variance = average(&|one| one.variance + (one.mean - mean).powi(2));
    Prediction { mean, variance }
}

fn points(observations: &[Observation]) -> Vec<Point> {
    observations.iter().map(|o| o.point.clone()).collect()
}

/// Points with predicted log seconds, the lowest first.
pub fn ranked(points: Vec<Point>, means: Vec<f64>) -> Vec<(f64, Point)> {
    let mut ranked: Vec<(f64, Point)> = means.into_iter().zip(points).collect();
    ranked.sort_by(|(a, point), (b, other)| a.total_cmp(b).then_with(|| point.cmp(other)));
    ranked
}

/// The shape of the variance's inverse gamma prior, which is worth two observations of spread 1/4
/// and keeps the variance above 0.
const PRIOR_SHAPE: f64 = 1.0;
const PRIOR_SCALE: f64 = 0.075;
/// Added to the diagonal, relative to the variance, against rounding errors.
const JITTER: f64 = 1e-8;
const LANES: usize = 8;
const SWEEPS: usize = 2;

/// The data that a process is fitted to.
#[derive(Clone, Copy, Debug)]
struct Data<'a> {
    observations: &'a [Observation],
    scatter: Scatter,
    /// How other runs fared at the same time; none if that is unknown.
    meanwhile: Option<&'a Meanwhile>,
}

impl<'a> Data<'a> {
    /// Data without knowledge of how other runs fared.
    fn of(observations: &'a [Observation], scatter: Scatter) -> Self {
        Data {
            observations,
            scatter,
            meanwhile: None,
        }
    }
}

#[derive(Debug)]
struct Shared {
    space: Arc<Space>,
    by_level: Arc<ByLevel>,
    correlations: Correlations,
}

impl Shared {
    fn of(space: &Space, observations: &[Observation]) -> Self {
        Self::new(Arc::new(space.clone()), observations)
    }

    fn new(space: Arc<Space>, observations: &[Observation]) -> Self {
        let seen: Vec<Point> = observations.iter().map(|o| space.seen(&o.point)).collect();
        Shared {
            by_level: Arc::new(ByLevel::new(&seen)),
            correlations: Correlations::new(&space, &seen),
            space,
        }
    }
}

/// A fitted process.
#[derive(Debug)]
pub struct Surrogate {
    space: Arc<Space>,
    kernel: Kernel,
    by_level: Arc<ByLevel>,
    trend: f64,
    variance: f64,
    factor: Cholesky,
    /// K^-1 (y - trend).
    weights: Vec<f64>,
    /// L^-1 1.
    ones: Vec<f64>,
    /// How strongly log elapsed follows how other runs fared at the same time; 0 if that is not
    /// known.
    slope: f64,
}

impl Surrogate {
    /// Fits hyperparameters by posterior mode on a grid, one coordinate at a time (RW section
    /// 5.4.1). Trend and variance have closed forms. O(n^3). None if there are no observations, or
    /// if one is not finite.
    pub fn fit(space: &Space, observations: &[Observation], scatter: Scatter) -> Option<Self> {
        let shared = &mut Shared::of(space, observations);
        let data = Data::of(observations, scatter);
        let tried = Self::search(shared, data, None)?;
        let best = tried.into_iter().next()?.hyperparameters;
        Self::with(shared, best, data)
    }

    /// Searches the hyperparameters and returns those that were tried, the most probable first.
    /// `expected` is the prior's mean at the observations.
    fn search(shared: &mut Shared, data: Data<'_>, expected: Option<&[f64]>) -> Option<Vec<Tried>> {
        let observations = data.observations;
        let sound = |o: &Observation| o.log_mean.is_finite() && o.runs.is_finite() && o.runs > 0.0;
        if observations.is_empty() || !observations.iter().all(sound) {
            return None;
        }
        let correlations = &mut shared.correlations;
        let mut best = Hyperparameters::start(&shared.space);
        let all = correlations.partial(&best, None);
        let covariance = correlations.matrix(&all, &best);
        let scores = |covariance, hyperparameters: &Hyperparameters| {
            scores(covariance, hyperparameters, data, expected)
        };
        let mut tried = scores(covariance, &best);
        let mut highest = highest_of(&tried);
        for _ in 0..SWEEPS {
            for coordinate in best.coordinates() {
                let current = best.clone();
                let others = correlations.partial(&current, Some(coordinate));
                for candidate in current.varied(coordinate) {
                    if tried.iter().any(|one| one.hyperparameters == candidate) {
                        continue;
                    }
                    let covariance = correlations.matrix(&others, &candidate);
                    let more = scores(covariance, &candidate);
                    let score = highest_of(&more);
                    if score > highest {
                        (highest, best) = (score, candidate);
                    }
                    tried.extend(more);
                }
            }
        }
        // The sort is stable: of equal scores the one tried first stays first.
        tried.sort_by(|a, b| b.score.total_cmp(&a.score));
        Some(tried)
    }

    /// The process as if the runs in flight, `flights` (points with numbers of runs), had ended as
    /// predicted (kriging believer): variances shrink, means stay (Desautels, Krause, Burdick
    /// 2014).
    pub fn fantasising(
        &self,
        observations: &[Observation],
        scatter: Scatter,
        flights: &[(Point, f64)],
    ) -> Option<Self> {
        let believed = self.believed(observations, flights);
        let shared = &mut Shared::new(Arc::clone(&self.space), &believed);
        Self::with(shared, self.hyperparameters(), Data::of(&believed, scatter))
    }

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

    fn with(shared: &mut Shared, hyperparameters: Hyperparameters, data: Data<'_>) -> Option<Self> {
        let all = shared.correlations.partial(&hyperparameters, None);
        let covariance = shared.correlations.matrix(&all, &hyperparameters);
        let state = State::new(covariance, &hyperparameters, data)?;
        Some(Surrogate {
            weights: state.factor.solve_transposed(&state.explained.residuals),
            kernel: Kernel::new(&shared.space, hyperparameters),
            space: Arc::clone(&shared.space),
            by_level: Arc::clone(&shared.by_level),
            trend: state.explained.trend,
            variance: state.explained.variance,
            slope: state.explained.slope,
            factor: state.factor,
            ones: state.ones,
        })
    }

    /// The prediction with the uncertainty of the trend (RW equations 2.25, 2.26, 2.42).
    pub fn predict(&self, point: &Point) -> Prediction {
        self.predict_lanes(&[self.space.seen(point)])[0]
    }

    /// [`Surrogate::predict`] for many points, but faster.
    pub fn predict_all(&self, points: &[Point]) -> Vec<Prediction> {
        self.predict_seen(&self.seen(points))
    }

    fn seen(&self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|point| self.space.seen(point)).collect()
    }

    fn predict_seen(&self, seen: &[Point]) -> Vec<Prediction> {
        let predict = |some: &[Point]| self.predict_lanes(some).into_iter().take(some.len());
        seen.chunks(LANES).flat_map(predict).collect()
    }

    /// At most [`LANES`] points in the form of [`Space::seen`]. Unused lanes are meaningless.
    fn predict_lanes(&self, seen: &[Point]) -> [Prediction; LANES] {
        let covariances = self.covariances(seen);
        let means = self.means(&covariances);
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

    /// How much higher log elapsed is at `from` than at each of these points: the difference of the
    /// predictions, with its variance. All points are in the form of [`Space::seen`].
    fn above(&self, from: &Point, seen: &[Point]) -> Vec<Prediction> {
        let information = dot(&self.ones, &self.ones);
        let covariances = self.covariances(std::slice::from_ref(from));
        let high = self.means(&covariances)[0];
        let of_from = self.factor.solve_lanes(covariances);
        let above = |some: &[Point]| {
            let covariances = self.covariances(some);
            let means = self.means(&covariances);
            let (mut explained, mut trends) = ([0.0; LANES], [0.0; LANES]);
            let solved = self.factor.solve_lanes(covariances);
            for ((row, from), one) in solved.iter().zip(&of_from).zip(&self.ones) {
                for (lane, solved) in row.iter().enumerate() {
                    let apart = from[0] - solved;
                    explained[lane] += apart * apart;
                    trends[lane] += apart * one;
                }
            }
            let of = |(lane, point): (usize, &Point)| {
                let apart = 2.0 * (1.0 - self.kernel.correlation(from, point));
                let trend = trends[lane] * trends[lane] / information;
                let relative = apart - explained[lane] + trend;
                Prediction {
                    mean: high - means[lane],
                    variance: (relative * self.variance).max(0.0),
                }
            };
            some.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        seen.chunks(LANES).flat_map(above).collect()
    }

    fn covariances(&self, seen: &[Point]) -> Vec<[f64; LANES]> {
        self.kernel.with_several(&self.by_level, seen)
    }

    fn means(&self, covariances: &[[f64; LANES]]) -> [f64; LANES] {
        let mut means = [self.trend; LANES];
        for (row, weight) in covariances.iter().zip(&self.weights) {
            for (mean, covariance) in means.iter_mut().zip(row) {
                *mean += covariance * weight;
            }
        }
        means
    }

    /// The means of [`Surrogate::predict`] alone, which take far less than the variances.
    fn expect_seen(&self, seen: &[Point]) -> Vec<f64> {
        let expect = |some: &[Point]| {
            self.means(&self.covariances(some))
                .into_iter()
                .take(some.len())
        };
        seen.chunks(LANES).flat_map(expect).collect()
    }

    /// The difference of each observation from what the process predicts from the other
    /// observations, with the same hyperparameters (RW equation 5.12, where the trend is estimated
    /// from the other observations, too).
    fn surprises(&self) -> Vec<f64> {
        let information = dot(&self.ones, &self.ones);
        let of_trend = self.factor.solve_transposed(&self.ones);
        let size = self.weights.len();
        (0..size)
            .map(|row| {
                let mut unit = vec![0.0; size];
                unit[row] = 1.0;
                let column = self.factor.solve(&unit);
                let precision = dot(&column, &column) - of_trend[row].powi(2) / information;
                self.weights[row] / precision.max(f64::MIN_POSITIVE)
            })
            .collect()
    }

    /// The variance of one run's log elapsed around its parametrization's mean.
    pub fn noise(&self) -> f64 {
        self.kernel.hyperparameters().noise * self.variance
    }
}

struct State {
    factor: Cholesky,
    ones: Vec<f64>,
    /// L^-1 x, where x says how other runs fared at the same time; none if that is not known.
    others: Option<Vec<f64>>,
    /// L^-1 y.
    times: Vec<f64>,
    explained: Explained,
}

impl State {
    /// Adds the noise to the correlations. None if the covariance is not positive definite.
    fn new(
        mut covariance: Symmetric,
        hyperparameters: &Hyperparameters,
        data: Data<'_>,
    ) -> Option<Self> {
        let (noise, observations) = (hyperparameters.noise, data.observations);
        for (row, observation) in observations.iter().enumerate() {
            covariance.add(row, noise / observation.runs + JITTER);
        }
        let factor = Cholesky::new(covariance)?;
        let ones = factor.solve(&vec![1.0; observations.len()]);
        let times: Vec<f64> = observations.iter().map(|o| o.log_mean).collect();
        let times = factor.solve(&times);
        let others = data.meanwhile.and_then(Meanwhile::means);
        let mut state = State {
            others: others.map(|means| factor.solve(means)),
            explained: Explained::default(),
            times,
            factor,
            ones,
        };
        state.explained = state.explain(&state.times, noise, data);
        Some(state)
    }

    /// Estimates trend, slope and variance from `times`, which are L^-1 y.
    fn explain(&self, times: &[f64], noise: f64, data: Data<'_>) -> Explained {
        let ones = &self.ones;
        let information = dot(ones, ones);
        // Generalised least squares (RW section 2.7).
        let mut trend = dot(ones, times) / information;
        let less = |trend: f64| -> Vec<f64> {
            let both = times.iter().zip(ones);
            both.map(|(time, one)| time - trend * one).collect()
        };
        let mut residuals = less(trend);
        let scatter = data.scatter;
        let mut squares = dot(&residuals, &residuals) + scatter.squares / noise;
        let (mut slope, mut doubt) = (0.0, 0.0);
        if let (Some(others), Some(meanwhile)) = (&self.others, data.meanwhile) {
            let along = dot(others, ones) / information;
            let points = shared_noise::Sums {
                squares: dot(others, others) - along * along * information,
                products: dot(others, &residuals),
            };
            let line = meanwhile.line(points, noise);
            slope = line.slope;
            squares -= line.explains;
            doubt = line.doubt;
            trend -= slope * along;
            residuals = less(trend);
            for (residual, other) in residuals.iter_mut().zip(others) {
                *residual -= slope * other;
            }
        }
        squares += 2.0 * PRIOR_SCALE;
        let degrees = times.len() as f64 - 1.0 + scatter.degrees + 2.0 * PRIOR_SHAPE;
        let variance = squares / degrees;
        // The variance is integrated out: its logarithm replaces the quadratic form of RW equation
        // 5.8. The scatter within points is pure noise.
        let log_likelihood = -0.5 * degrees * variance.logarithm()
            - self.factor.half_log_determinant()
            - 0.5 * information.logarithm()
            - 0.5 * scatter.degrees * noise.logarithm()
            - doubt;
        Explained {
            residuals,
            trend,
            slope,
            variance,
            log_likelihood,
        }
    }
}

/// The estimates that a factored covariance gives for times.
#[derive(Debug, Default)]
struct Explained {
    /// L^-1 (y - trend - slope x).
    residuals: Vec<f64>,
    trend: f64,
    slope: f64,
    variance: f64,
    log_likelihood: f64,
}

/// Hyperparameters with their unnormalised log posterior.
#[derive(Debug)]
struct Tried {
    score: f64,
    hyperparameters: Hyperparameters,
    /// How far the process leans on a prior's mean, from 0 to 1.
    lean: f64,
}

/// The log posterior of these hyperparameters without a prior, or with each [lean](prior::LEANS) on
/// it. All share one factor of the covariance.
fn scores(
    correlations: Symmetric,
    hyperparameters: &Hyperparameters,
    data: Data<'_>,
    expected: Option<&[f64]>,
) -> Vec<Tried> {
    let state = State::new(correlations, hyperparameters, data);
    let tried = |lean: f64, log_likelihood: Option<f64>, log_prior: f64| Tried {
        score: log_likelihood
            .map(|log_likelihood| log_likelihood + hyperparameters.log_prior() + log_prior)
            .filter(|score| !score.is_nan())
            .unwrap_or(f64::NEG_INFINITY),
        hyperparameters: hyperparameters.clone(),
        lean,
    };
    let (Some(expected), Some(state)) = (expected, &state) else {
        let log_likelihood = state.map(|state| state.explained.log_likelihood);
        return vec![tried(0.0, log_likelihood, 0.0)];
    };
    let expected = state.factor.solve(expected);
    let leaning = |(lean, weight): (f64, f64)| {
        let rest = state.times.iter().zip(&expected);
        let rest: Vec<f64> = rest.map(|(time, mean)| time - lean * mean).collect();
        let explained = state.explain(&rest, hyperparameters.noise, data);
        tried(lean, Some(explained.log_likelihood), weight.logarithm())
    };
    prior::LEANS.into_iter().map(leaning).collect()
}

fn score(correlations: Symmetric, hyperparameters: &Hyperparameters, data: Data<'_>) -> f64 {
    highest_of(&scores(correlations, hyperparameters, data, None))
}

fn highest_of(tried: &[Tried]) -> f64 {
    let scores = tried.iter().map(|one| one.score);
    scores.fold(f64::NEG_INFINITY, f64::max)
}

/// The dot product. Eight partial sums in a fixed order let the processor work in parallel.
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
