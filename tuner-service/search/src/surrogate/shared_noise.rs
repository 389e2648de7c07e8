//! The noise that is explained by how other runs fared at the same time: a busy machine slows
//! whatever runs.
//!
//! Log elapsed is `process + b x + noise`, where x is the logarithm of how long other runs took,
//! over the usual times of their parametrizations. The slope b is normal and integrated out (RW
//! section 2.7). Its effect shows between points and among the runs of one point. A parametrization
//! has no influence on x. What a run itself did is not used as a covariate: explaining that away
//! would explain away the effect of a parametrization. This serves estimates alone; claims have
//! covariates of their own, from before a run's start.

use super::{Observation, Scatter};
use crate::math::Portable;

/// The variance of b, relative to the process's: b has variance 1 if the process has a standard
/// deviation of 1/5.
const SLOPE_VARIANCE: f64 = 25.0;

/// How other runs fared during the runs of a study; by default nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meanwhile {
    /// The mean of x over each observation's runs, in the observations' order; empty if nothing is
    /// known.
    means: Vec<f64>,
    /// Sums over all runs, around the means of their points.
    within: Sums,
    /// The number of runs, the sum of the squares of x around 0 (which means as long as usual), and
    /// the number of points.
    runs: f64,
    squares: f64,
    points: f64,
}

/// The part of the noise that is explained by how other runs fared at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Explained {
    /// The slope b: how strongly log elapsed follows x.
    pub slope: f64,
    /// The share of the variance of runs around their points, from 0 to 1.
    pub share: f64,
    /// The amount by which the explained part raises the log of a mean of times: half its variance.
    pub raises: f64,
}

/// Sums over pairs of x and log elapsed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// The sum of squares of x.
    pub(super) squares: f64,
    /// The sum of products of x and log elapsed.
    pub(super) products: f64,
}

/// The posterior of b, relative to a process with variance 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) slope: f64,
    /// The reduction of the sum of squares.
    pub(super) explains: f64,
    /// The further reduction of the log likelihood, because b is not known.
    pub(super) doubt: f64,
}

impl Meanwhile {
    /// Adds the runs of one more observation: for each, log elapsed and x. Returns the mean of x.
    pub(super) fn enter(&mut self, runs: &[(f64, f64)]) -> f64 {
        let count = runs.len().max(1) as f64;
        self.points += f64::from(u8::from(!runs.is_empty()));
        let log = runs.iter().map(|(log, _)| log).sum::<f64>() / count;
        let others = runs.iter().map(|(_, others)| others).sum::<f64>() / count;
        for (one, beside) in runs {
            self.runs += 1.0;
            self.squares += beside * beside;
            self.within.squares += (beside - others).powi(2);
            self.within.products += (beside - others) * (one - log);
        }
        others
    }

    /// Completes the sums with the mean of x for each observation that is fitted.
    pub(super) fn of(self, means: Vec<f64>) -> Self {
        if self.squares == 0.0 {
            return Self::default();
        }
        Meanwhile { means, ..self }
    }

    /// The mean of x for each observation; none if nothing is known.
    pub(super) fn means(&self) -> Option<&[f64]> {
        (!self.means.is_empty()).then_some(&self.means)
    }

    /// The same with further observations of which nothing is known, up to `observations` in all.
    pub(super) fn of_so_many(&self, observations: usize) -> Self {
        let mut more = self.clone();
        if !more.means.is_empty() {
            more.means.resize(observations, 0.0);
        }
        more
    }

    /// The posterior of b. `points` are sums weighted by the inverse of the covariance; `noise` is
    /// the variance of a run, relative to the process's variance.
    pub(super) fn line(&self, points: Sums, noise: f64) -> Line {
        let squares = points.squares + self.within.squares / noise;
        let products = points.products + self.within.products / noise;
        let precision = squares + 1.0 / SLOPE_VARIANCE;
        Line {
            slope: products / precision,
            explains: products * products / precision,
            doubt: 0.5 * (SLOPE_VARIANCE * precision).logarithm(),
        }
    }

    /// The part that this slope explains; none if nothing is known. `noise` is the remaining
    /// variance of runs around their points.
    pub(super) fn explained(&self, slope: f64, noise: f64) -> Option<Explained> {
        self.means()?;
        let of_runs = slope * slope * self.squares / self.runs;
        let around_points = self.within.squares / (self.runs - self.points).max(1.0);
        Some(Explained {
            slope,
            share: of_runs / (of_runs + noise),
            raises: 0.5 * slope * slope * around_points,
        })
    }

    /// The observations and the scatter without what this slope explains.
    pub(super) fn less(
        &self,
        observations: &[Observation],
        scatter: Scatter,
        slope: f64,
    ) -> (Vec<Observation>, Scatter) {
        let mut observations = observations.to_vec();
        for (observation, others) in observations.iter_mut().zip(&self.means) {
            observation.log_mean -= slope * others;
        }
        let explained = slope * (2.0 * self.within.products - slope * self.within.squares);
        let squares = (scatter.squares - explained).max(0.0);
        (observations, Scatter { squares, ..scatter })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cholesky::{Cholesky, Symmetric};
    use super::super::kernel::{Hyperparameters, Kernel};
    use super::super::{Data, Shared, Surrogate, dot};
    use super::*;
    use crate::history::by_point::View;
    use crate::history::{RecentRun, Tested};
    use crate::surrogate::posterior::Modelled;
    use crate::testing::{grid, history, normal};
    use io_autotune_model::space::Point;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// A point's level and, for each of its runs, log elapsed and x.
    type Runs<'a> = (u32, &'a [(f64, f64)]);

    /// The prediction at a point if b is one more process over all runs, each an observation by
    /// itself.
    fn expected_one_by_one(known: &[Runs<'_>], kernel: &Kernel, noise: f64, asked: &Point) -> f64 {
        let all: Vec<(Point, f64, f64)> = known
            .iter()
            .flat_map(|(level, runs)| runs.iter().map(|(y, x)| (Point(vec![*level]), *y, *x)))
            .collect();
        let covariance = Symmetric::from_fn(all.len(), |row, column| {
            let ((one, _, x), (other, _, others)) = (&all[row], &all[column]);
            let own = if row == column { noise } else { 0.0 };
            kernel.correlation(one, other) + SLOPE_VARIANCE * x * others + own
        });
        let factor = Cholesky::new(covariance).unwrap();
        let ones = factor.solve(&vec![1.0; all.len()]);
        let times = factor.solve(&all.iter().map(|one| one.1).collect::<Vec<f64>>());
        let trend = dot(&ones, &times) / dot(&ones, &ones);
        let to: Vec<f64> = all
            .iter()
            .map(|one| kernel.correlation(&one.0, asked))
            .collect();
        let rest: Vec<f64> = times
            .iter()
            .zip(&ones)
            .map(|(y, one)| y - trend * one)
            .collect();
        trend + dot(&factor.solve(&to), &rest)
    }

    #[test]
    fn points_and_their_scatter_say_what_all_runs_say_one_by_one() {
        let space = grid(&[9]);
        let known: [Runs<'_>; 4] = [
            (0, &[(2.3, 0.1), (2.1, -0.2), (2.9, 0.6)]),
            (3, &[(2.0, 0.0)]),
            (4, &[(2.6, 0.5), (2.2, 0.2)]),
            (8, &[(3.1, -0.1)]),
        ];
        let observations: Vec<Observation> = known
            .iter()
            .map(|(level, runs)| Observation {
                point: Point(vec![*level]),
                log_mean: runs.iter().map(|(y, _)| y).sum::<f64>() / runs.len() as f64,
                runs: runs.len() as f64,
            })
            .collect();
        let mut scatter = Scatter::default();
        let mut meanwhile = Meanwhile::default();
        let mut means = Vec::new();
        for (_, runs) in known {
            scatter.add(&runs.iter().map(|(y, _)| *y).collect::<Vec<f64>>());
            means.push(meanwhile.enter(runs));
        }
        let meanwhile = meanwhile.of(means);
        let noise = 0.1;
        let hyperparameters = Hyperparameters::of(&[0.4], 0.3, 0.01, noise);
        let shared = &mut Shared::of(&space, &observations);
        let data = Data {
            observations: &observations,
            scatter,
            meanwhile: Some(&meanwhile),
        };
        let ours = Surrogate::with(shared, hyperparameters.clone(), data).unwrap();
        let kernel = Kernel::new(&space, hyperparameters);
        for level in 0..9 {
            let asked = Point(vec![level]);
            let theirs = expected_one_by_one(&known, &kernel, noise, &asked);
            let mean = ours.predict(&asked).mean;
            assert!((mean - theirs).abs() < 1e-6, "{level}: {mean} {theirs}");
        }
    }

    /// A study of ten points with three runs each, in which 80 % of the noise is common to runs of
    /// the same hour.
    fn study(knows: bool, seed: u64) -> (f64, f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let space = grid(&[10]);
        let truth = |level: u32| 3.0 - 0.3 * (f64::from(level) / 9.0);
        let mut entries = Vec::new();
        for level in 0..10 {
            let point = space.parametrization(&Point(vec![level]));
            let mut tested = Tested::new(point, i64::from(level));
            for run in 0..3 {
                let hour = 0.2 * normal(&mut rng);
                let log = truth(level) + hour + 0.1 * normal(&mut rng);
                let run = RecentRun::new(i64::from(100 * level + run), log.exponential());
                let others = knows.then(|| hour.exponential());
                tested.record_run(run.beside(others)).unwrap();
            }
            entries.push(tested);
        }
        let history = history(entries, 30, 30);
        let modelled = Modelled::new(View::new(&space, &history, &[]), None);
        let fitted = modelled.fitted().unwrap();
        let errors = (0..10).map(|level| {
            let error = fitted.predict(&Point(vec![level])).mean - truth(level);
            error * error
        });
        let error = errors.sum::<f64>() / 10.0;
        let Explained { slope, share, .. } = fitted.explained().unwrap_or_default();
        (error.sqrt(), slope, share)
    }

    #[test]
    fn what_others_tell_of_the_noise_is_not_taken_for_the_parametrizations() {
        let (mut errors, mut slopes) = ([0.0; 2], 0.0);
        for seed in 0..16 {
            let (error, slope, share) = study(true, seed);
            assert!((0.3..0.95).contains(&share), "{share}");
            slopes += slope / 16.0;
            errors[0] += error;
            errors[1] += study(false, seed).0;
        }
        assert!((slopes - 1.0).abs() < 0.1, "{slopes}");
        assert!(errors[0] < 0.85 * errors[1], "{errors:?}");
    }

    #[test]
    fn others_who_fare_as_ever_say_nothing() {
        let space = grid(&[3]);
        let mut tested = Tested::new(space.parametrization(&Point(vec![1])), 0);
        for (run, others) in [None, Some(1.0), Some(f64::NAN), Some(0.0)]
            .into_iter()
            .enumerate()
        {
            let run = RecentRun::new(run as i64, 10.0);
            tested.record_run(run.beside(others)).unwrap();
        }
        let history = history(vec![tested], 4, 4);
        let modelled = Modelled::new(View::new(&space, &history, &[]), None);
        assert_eq!(modelled.fitted().unwrap().explained(), None);
    }
}
