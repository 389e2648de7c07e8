//! A Gaussian process on the logarithms of elapsed and of measures that correlate with it.
//!
//! S. Alabed, E. Yoneki, "High-dimensional Bayesian optimization with multi-task learning for
//! RocksDB" (2021): "replace the kernel function in the GP with an intrinsic coregionalization
//! model", one observation per task, and "assigning a subset of parameters to each task". See
//! [`super::coregionalisation`]. Predictions: Bonilla, Chai and Williams 2008, equation 2, with a
//! constant trend per task (RW section 2.7).
//!
//! Tasks are fitted alone; those over all parameters then share the kernel of highest total
//! likelihood. Each measure's correlation with elapsed is the likeliest of a grid; uncorrelated
//! measures are left out. Elapsed alone gives the [`Surrogate`].

#[cfg(test)]
mod tests;

use super::cholesky::{Cholesky, Symmetric};
use super::coregionalisation::{Cluster, Part, parts};
use super::kernel::{Coordinate, Hyperparameters, Kernel};
use super::{Data, JITTER, LANES, Observation, Prediction, Scatter, Shared, Surrogate, dot, score};
use io_autotune_model::space::{Point, Space};

/// The observations of one task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Means of logarithms, one per point.
    pub observations: Vec<Observation>,
    /// The scatter of the task's runs.
    pub scatter: Scatter,
    /// The parameters that the task depends on. For elapsed these are in addition to the parameters
    /// of measures that correlate with it, through which it depends on theirs.
    pub cluster: Cluster,
}

/// The grid of correlations; each is tried with both signs.
const CORRELATIONS: [f64; 8] = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
/// The standard deviation of their normal prior on Fisher's z scale (R. A. Fisher 1915).
const CORRELATION_SPREAD: f64 = 1.0;
/// The least log likelihood gain: the 5 % level of the likelihood ratio test (S. S. Wilks 1938).
const LEAST_EVIDENCE: f64 = 1.92;

#[derive(Clone, Debug)]
struct Alone {
    hyperparameters: Hyperparameters,
    variance: f64,
    score: f64,
}

#[derive(Clone, Debug)]
struct Row {
    task: usize,
    point: Point,
    value: f64,
    runs: f64,
}

/// A fitted process of elapsed and measures.
#[derive(Debug)]
pub struct MultiTask {
    space: Space,
    prior: Prior,
    rows: Vec<Row>,
    seen: Vec<Vec<Point>>,
    posterior: Posterior,
    /// The correlation of each measure with elapsed; 0 if it is left out.
    correlations: Vec<f64>,
}

#[derive(Debug)]
struct Prior {
    parts: Vec<Part>,
    deviations: Vec<f64>,
    /// For each task, the noise variance of one run relative to the process's variance.
    noises: Vec<f64>,
}

impl Prior {
    /// The covariance of two tasks, given the correlation of their points under each part's kernel.
    fn covariance(&self, task: usize, other: usize, correlation: impl Fn(usize) -> f64) -> f64 {
        let parts = self.parts.iter().enumerate();
        let sum: f64 = parts
            .map(|(index, part)| match part.between(task, other) {
                0.0 => 0.0,
                between => between * correlation(index),
            })
            .sum();
        self.deviations[task] * self.deviations[other] * sum
    }

    fn seen(&self, space: &Space, rows: &[Row]) -> Vec<Vec<Point>> {
        let of = |part: &Part| {
            rows.iter()
                .map(|row| part.cluster.seen(space, &row.point))
                .collect()
        };
        self.parts.iter().map(of).collect()
    }

    fn matrix(&self, rows: &[Row], seen: &[Vec<Point>]) -> Symmetric {
        let mut matrix = Symmetric::from_fn(rows.len(), |row, column| {
            self.covariance(rows[row].task, rows[column].task, |part| {
                let (points, kernel) = (&seen[part], &self.parts[part].kernel);
                kernel.correlation(&points[row], &points[column])
            })
        });
        for (place, row) in rows.iter().enumerate() {
            let variance = self.deviations[row.task].powi(2);
            matrix.add(
                place,
                variance * (self.noises[row.task] / row.runs + JITTER),
            );
        }
        matrix
    }
}

#[derive(Debug)]
struct Posterior {
    factor: Cholesky,
    /// L^-1 H, one column per task; H marks each row's task.
    columns: Vec<Vec<f64>>,
    /// The factor of H' K^-1 H.
    information: Cholesky,
    trends: Vec<f64>,
    /// K^-1 (y - H trends).
    weights: Vec<f64>,
    log_likelihood: f64,
}

impl Posterior {
    /// Computes the posterior. None if the covariance is not positive definite.
    fn new(prior: &Prior, rows: &[Row], seen: &[Vec<Point>]) -> Option<Self> {
        let factor = Cholesky::new(prior.matrix(rows, seen))?;
        let columns: Vec<Vec<f64>> = (0..prior.deviations.len())
            .map(|task| {
                let of = |row: &Row| f64::from(u8::from(row.task == task));
                factor.solve(&rows.iter().map(of).collect::<Vec<f64>>())
            })
            .collect();
        let values = factor.solve(&rows.iter().map(|row| row.value).collect::<Vec<f64>>());
        let products = |a: usize, b: usize| dot(&columns[a], &columns[b]);
        let information = Cholesky::new(Symmetric::from_fn(columns.len(), products))?;
        let right: Vec<f64> = columns.iter().map(|column| dot(column, &values)).collect();
        // Generalised least squares (RW section 2.7).
        let trends = information.solve_transposed(&information.solve(&right));
        let mut residuals = values;
        for (column, trend) in columns.iter().zip(&trends) {
            for (residual, one) in residuals.iter_mut().zip(column) {
                *residual -= trend * one;
            }
        }
        // RW equation 2.45, without its constant.
        let log_likelihood = -0.5 * dot(&residuals, &residuals)
            - factor.half_log_determinant()
            - information.half_log_determinant();
        Some(Posterior {
            weights: factor.solve_transposed(&residuals),
            factor,
            columns,
            information,
            trends,
            log_likelihood,
        })
    }
}

impl MultiTask {
    /// Fits elapsed (the first task) and measures, whose logarithms should scatter alike. O(n^3).
    /// None if elapsed has no observations, or one that is not finite; a measure for which that
    /// holds is left out.
    pub fn fit(space: &Space, tasks: &[Task]) -> Option<Self> {
        let (elapsed, measures) = tasks.split_first()?;
        let whole = Task {
            cluster: Cluster::ALL,
            ..elapsed.clone()
        };
        let mut own = elapsed.clone();
        let first = Alone::new(space, &whole)?;
        let mut kept: Vec<(usize, &Task, Alone)> = vec![(0, &whole, first)];
        for (task, measure) in (1..).zip(measures) {
            if let Some(alone) = Alone::new(space, measure) {
                kept.push((task, measure, alone));
            }
        }
        share_kernel(space, &mut kept);
        let mut correlations = vec![0.0; measures.len()];
        let (first, others) = kept.split_first()?;
        for other in others {
            correlations[other.0 - 1] = likeliest_correlation(space, first, other);
        }
        kept.retain(|(task, ..)| *task == 0 || correlations[task - 1] != 0.0);
        own.cluster = own_cluster(space, elapsed.cluster, &kept);
        if own.cluster != Cluster::ALL {
            kept[0] = (0, &own, Alone::new(space, &own)?);
        }
        let of = |task: usize| correlations[task - 1];
        let chosen: Vec<f64> = kept[1..].iter().map(|(task, ..)| of(*task)).collect();
        let members: Vec<&(usize, &Task, Alone)> = kept.iter().collect();
        Self::with(
            space,
            prior(space, &members, &chosen),
            rows(&members),
            correlations,
        )
    }

    fn with(space: &Space, prior: Prior, rows: Vec<Row>, correlations: Vec<f64>) -> Option<Self> {
        let seen = prior.seen(space, &rows);
        Some(MultiTask {
            posterior: Posterior::new(&prior, &rows, &seen)?,
            space: space.clone(),
            prior,
            rows,
            seen,
            correlations,
        })
    }

    /// The same as [`Surrogate::fantasising`]; measures are not fantasised.
    pub fn fantasising(self, flights: &[(Point, f64)]) -> Option<Self> {
        let mut rows = self.rows.clone();
        for (point, runs) in flights {
            let known = |row: &&mut Row| row.task == 0 && row.point == *point;
            match rows.iter_mut().find(known) {
                Some(row) => row.runs += runs,
                None => rows.push(Row {
                    task: 0,
                    point: point.clone(),
                    value: self.predict_lanes(std::slice::from_ref(point))[0].mean,
                    runs: *runs,
                }),
            }
        }
        Self::with(&self.space, self.prior, rows, self.correlations)
    }

    /// The correlation of each measure with elapsed, from -1 to 1; 0 if it is left out.
    pub fn correlations(&self) -> &[f64] {
        &self.correlations
    }

    /// Log elapsed at these points, in their order, without the noise of a run.
    pub fn predict_all(&self, points: &[Point]) -> Vec<Prediction> {
        let predict = |some: &[Point]| self.predict_lanes(some).into_iter().take(some.len());
        points.chunks(LANES).flat_map(predict).collect()
    }

    fn predict_lanes(&self, points: &[Point]) -> [Prediction; LANES] {
        let (prior, posterior) = (&self.prior, &self.posterior);
        let mut covariances = vec![[0.0; LANES]; self.rows.len()];
        for (lane, point) in points.iter().enumerate() {
            let here: Vec<Point> = prior
                .parts
                .iter()
                .map(|part| part.cluster.seen(&self.space, point))
                .collect();
            for (place, (covariances, row)) in covariances.iter_mut().zip(&self.rows).enumerate() {
                covariances[lane] = prior.covariance(0, row.task, |part| {
                    let kernel = &prior.parts[part].kernel;
                    kernel.correlation(&here[part], &self.seen[part][place])
                });
            }
        }
        let mut means = [posterior.trends[0]; LANES];
        for (covariances, weight) in covariances.iter().zip(&posterior.weights) {
            for (mean, covariance) in means.iter_mut().zip(covariances) {
                *mean += covariance * weight;
            }
        }
        let variance = prior.covariance(0, 0, |_| 1.0);
        let mut unexplained = [variance; LANES];
        // The part of the trends that the observations do not determine: H(x) - H' K^-1 k.
        let mut trends = vec![[0.0; LANES]; posterior.columns.len()];
        trends[0] = [1.0; LANES];
        for (place, solved) in posterior.factor.solve_lanes(covariances).iter().enumerate() {
            for (lane, solved) in solved.iter().enumerate() {
                unexplained[lane] -= solved * solved;
                for (trend, column) in trends.iter_mut().zip(&posterior.columns) {
                    trend[lane] -= solved * column[place];
                }
            }
        }
        for solved in posterior.information.solve_lanes(trends) {
            for (lane, solved) in solved.iter().enumerate() {
                unexplained[lane] += solved * solved;
            }
        }
        std::array::from_fn(|lane| Prediction {
            mean: means[lane],
            variance: unexplained[lane].max(0.0),
        })
    }
}

impl Alone {
    fn new(space: &Space, task: &Task) -> Option<Self> {
        let (observations, scatter) = seen_by(task);
        let data = Data::of(&observations, scatter);
        let fitted = Surrogate::fit(space, &observations, scatter)?;
        let hyperparameters = fitted.hyperparameters();
        let correlations = &mut Shared::of(space, &observations).correlations;
        let all = correlations.partial(&hyperparameters, None);
        let covariance = correlations.matrix(&all, &hyperparameters);
        Some(Alone {
            score: score(covariance, &hyperparameters, data),
            variance: fitted.variance,
            hyperparameters,
        })
    }

    /// A task over all parameters under the kernel of another task, with its own likeliest noise.
    fn under(space: &Space, task: &Task, other: &Hyperparameters) -> Option<Self> {
        let (observations, scatter) = seen_by(task);
        let data = Data::of(&observations, scatter);
        let shared = &mut Shared::of(space, &observations);
        let correlations = &mut shared.correlations;
        let all = correlations.partial(other, None);
        let (score, hyperparameters) = other
            .varied(Coordinate::Noise)
            .into_iter()
            .map(|varied| {
                let covariance = correlations.matrix(&all, &varied);
                (score(covariance, &varied, data), varied)
            })
            .max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let fitted = Surrogate::with(shared, hyperparameters.clone(), data)?;
        Some(Alone {
            hyperparameters,
            variance: fitted.variance,
            score,
        })
    }
}

/// The parameters of elapsed's own part: those of its cluster that no measure's cluster covers; all
/// parameters if that leaves none, or if a measure depends on all.
fn own_cluster(space: &Space, wanted: Cluster, kept: &[(usize, &Task, Alone)]) -> Cluster {
    let measures = || kept[1..].iter().map(|(_, task, _)| task.cluster);
    if wanted == Cluster::ALL || measures().any(|cluster| cluster == Cluster::ALL) {
        return Cluster::ALL;
    }
    let covered = |place: &usize| measures().any(|cluster| cluster.contains(*place));
    let places = 0..space.parameters().len();
    let own = wanted.and(Cluster::of(places.clone().filter(|place| !covered(place))));
    match places.clone().filter(|place| own.contains(*place)).count() {
        count if count == 0 || count == places.len() => Cluster::ALL,
        _ => own,
    }
}

/// A task's observations as its cluster sees them: points that the cluster cannot distinguish are
/// merged.
fn seen_by(task: &Task) -> (Vec<Observation>, Scatter) {
    if task.cluster == Cluster::ALL {
        return (task.observations.clone(), task.scatter);
    }
    let mut scatter = task.scatter;
    let mut seen: Vec<Observation> = Vec::new();
    for observation in &task.observations {
        // Levels of the original point, not of `Space::seen`: `Surrogate::fit` maps them itself.
        let mut point = observation.point.clone();
        for (place, level) in point.0.iter_mut().enumerate() {
            if !task.cluster.contains(place) {
                *level = 0;
            }
        }
        match seen.iter_mut().find(|known| known.point == point) {
            Some(known) => {
                let runs = known.runs + observation.runs;
                let apart = observation.log_mean - known.log_mean;
                scatter.squares += apart * apart * known.runs * observation.runs / runs;
                scatter.degrees += 1.0;
                known.log_mean += apart * observation.runs / runs;
                known.runs = runs;
            }
            None => seen.push(Observation {
                point,
                ..observation.clone()
            }),
        }
    }
    (seen, scatter)
}

/// Gives all tasks over all parameters the same kernel: the one of a task under which they are
/// likeliest together.
fn share_kernel(space: &Space, tasks: &mut [(usize, &Task, Alone)]) {
    let sharing: Vec<usize> = (0..tasks.len())
        .filter(|place| tasks[*place].1.cluster == Cluster::ALL)
        .collect();
    let under = |place: usize| -> Option<Vec<Alone>> {
        let kernel = &tasks[place].2.hyperparameters;
        let of = |other: &usize| match *other == place {
            true => Some(tasks[place].2.clone()),
            false => Alone::under(space, tasks[*other].1, kernel),
        };
        sharing.iter().map(of).collect()
    };
    let total = |all: &[Alone]| all.iter().map(|alone| alone.score).sum::<f64>();
    let best = sharing
        .iter()
        .filter_map(|place| under(*place))
        .reduce(|best, next| {
            if total(&next) > total(&best) {
                next
            } else {
                best
            }
        });
    for (place, alone) in sharing.into_iter().zip(best.into_iter().flatten()) {
        tasks[place].2 = alone;
    }
}

fn likeliest_correlation(
    space: &Space,
    elapsed: &(usize, &Task, Alone),
    measure: &(usize, &Task, Alone),
) -> f64 {
    let both = [elapsed, measure];
    let rows = rows(&both);
    let score = |correlation: f64| {
        let prior = prior(space, &both, &[correlation]);
        let seen = prior.seen(space, &rows);
        let z = correlation.atanh() / CORRELATION_SPREAD;
        let posterior = Posterior::new(&prior, &rows, &seen)?;
        Some(posterior.log_likelihood - 0.5 * z * z)
    };
    let Some(apart) = score(0.0) else {
        return 0.0;
    };
    let (mut highest, mut likeliest) = (apart + LEAST_EVIDENCE, 0.0);
    for correlation in CORRELATIONS.iter().flat_map(|c| [*c, -c]) {
        match score(correlation) {
            Some(score) if score > highest => (highest, likeliest) = (score, correlation),
            _ => {}
        }
    }
    likeliest
}

fn prior(space: &Space, tasks: &[&(usize, &Task, Alone)], correlations: &[f64]) -> Prior {
    let kernel = |alone: &Alone| Kernel::new(space, alone.hyperparameters.clone());
    let measures = tasks[1..].iter().zip(correlations);
    let measures = measures
        .map(|((_, task, alone), correlation)| {
            let clustered = (task.cluster != Cluster::ALL).then(|| (task.cluster, kernel(alone)));
            (*correlation, clustered)
        })
        .collect();
    Prior {
        parts: parts((tasks[0].1.cluster, kernel(&tasks[0].2)), measures),
        deviations: tasks
            .iter()
            .map(|(.., alone)| alone.variance.sqrt())
            .collect(),
        noises: tasks
            .iter()
            .map(|(.., alone)| alone.hyperparameters.noise)
            .collect(),
    }
}

fn rows(tasks: &[&(usize, &Task, Alone)]) -> Vec<Row> {
    let of = |(place, (_, task, _)): (usize, &&(usize, &Task, Alone))| {
        let row = move |observation: &Observation| Row {
            task: place,
            point: observation.point.clone(),
            value: observation.log_mean,
            runs: observation.runs,
        };
        task.observations.iter().map(row).collect::<Vec<Row>>()
    };
    tasks.iter().enumerate().flat_map(of).collect()
}
