//! The observations that the surrogate is fitted to: a view's points, each with the logarithm of
//! its mean elapsed.

use crate::history::by_point::Known;
use crate::math::Portable;
use crate::surrogate::shared_noise::Meanwhile;
use crate::surrogate::{Data, Observation, Scatter};
use io_autotune_model::space::Point;

/// The most points of a fit.
pub(super) const MOST_POINTS: usize = 96;
/// The number of those that are the best points; the others are spread over the rest.
const BEST_POINTS: usize = 64;
/// The number of runs that a point needs before its slow outliers are pulled in.
const OUTLIERS_FROM: usize = 3;
/// An outlier exceeds the median by this many times (median - fastest), and at least by the
/// minimum.
const OUTLIER_REACH: f64 = 2.0;
const OUTLIER_LEAST: f64 = 0.1;
/// With n runs, n / (n + this) of an outlier's excess is believed: one slow run of three is likely
/// bad luck, one of ten is typical of the point.
const OUTLIER_DOUBT: f64 = 4.0;

/// A time beyond this many times the default's is terrible, and a fit sees this time instead. How
/// terrible it was says nothing of other points, but would make the process expect such times
/// everywhere: a study whose first trial took five times as long would try nothing any more.
pub(crate) const TERRIBLE: f64 = 2.0;

/// The data that a surrogate is fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// One observation for each point.
    pub observations: Vec<Observation>,
    /// The scatter of all points' runs.
    pub scatter: Scatter,
    /// How other runs fared at the same time.
    pub meanwhile: Meanwhile,
}

impl Observed {
    /// Observations without knowledge of how other runs fared.
    pub(super) fn of(observations: &[Observation], scatter: Scatter) -> Self {
        Observed {
            observations: observations.to_vec(),
            scatter,
            meanwhile: Meanwhile::default(),
        }
    }

    /// The observations without how terrible a point is: none is slower than [`TERRIBLE`] times the
    /// default.
    pub(super) fn capped(mut self, default: &Point) -> Self {
        let of_default = self.observations.iter().find(|one| one.point == *default);
        if let Some(default) = of_default.map(|one| one.log_mean) {
            let most = default + TERRIBLE.logarithm();
            for observation in &mut self.observations {
                observation.log_mean = observation.log_mean.min(most);
            }
        }
        self
    }

    pub(super) fn data(&self) -> Data<'_> {
        Data {
            observations: &self.observations,
            scatter: self.scatter,
            meanwhile: Some(&self.meanwhile),
        }
    }
}

pub(super) fn observe(known: &[(&Point, &Known)], default: &Point) -> Observed {
    let mut scatter = Scatter::default();
    let mut meanwhile = Meanwhile::default();
    let mut observations: Vec<(Observation, f64)> = known
        .iter()
        .filter_map(|(point, known)| {
            let (log_mean, runs) = log_mean(known, &mut scatter)?;
            let observation = Observation {
                point: (*point).clone(),
                log_mean,
                runs: runs.len().max(1) as f64,
            };
            Some((observation, meanwhile.enter(&runs)))
        })
        .collect();
    if observations.len() > MOST_POINTS {
        observations.sort_by(|(a, _), (b, _)| a.log_mean.total_cmp(&b.log_mean));
        let rest = observations.split_off(BEST_POINTS);
        let every = rest.len().div_ceil(MOST_POINTS - BEST_POINTS);
        observations.extend(
            rest.into_iter()
                .enumerate()
                .filter(|(index, (o, _))| index % every == 0 || o.point == *default)
                .map(|(_, o)| o),
        );
        observations.sort_by(|(a, _), (b, _)| a.point.cmp(&b.point));
    }
    let (observations, means) = observations.into_iter().unzip();
    Observed {
        observations,
        scatter,
        meanwhile: meanwhile.of(means),
    }
}

/// The log of a point's mean elapsed and, for each run, log elapsed and how other runs fared at the
/// same time. The mean is one of times and not of logarithms, because users wait for the sum of
/// times. Outliers are pulled in, and censored runs raise the mean. A run that was slow when all
/// others were slow too is not an outlier.
fn log_mean(known: &Known, scatter: &mut Scatter) -> Option<(f64, Vec<(f64, f64)>)> {
    let estimate = known.mean()?;
    if known.logs().is_empty() || known.count() == 0 {
        let is_bound = known.censored() > 0 && known.count() == 0;
        return is_bound.then(|| (estimate.logarithm(), Vec::new()));
    }
    let both = known.logs().iter().zip(known.others());
    let mut runs: Vec<(f64, f64)> = both.map(|(log, others)| (log - others, *others)).collect();
    if runs.len() >= OUTLIERS_FROM {
        runs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (fastest, median) = (runs[0].0, runs[runs.len() / 2].0);
        let fence = median + (OUTLIER_REACH * (median - fastest)).max(OUTLIER_LEAST);
        let believed = runs.len() as f64 / (runs.len() as f64 + OUTLIER_DOUBT);
        for (log, _) in runs.iter_mut().filter(|(log, _)| *log > fence) {
            *log = fence + believed * (*log - fence);
        }
    }
    for (log, others) in &mut runs {
        *log += *others;
    }
    let logs: Vec<f64> = runs.iter().map(|(log, _)| *log).collect();
    scatter.add(&logs);
    // Relative to the largest logarithm, against overflow.
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: f64 = logs.iter().map(|log| (log - largest).exponential()).sum();
    let log_mean = largest + (shares / logs.len() as f64).logarithm();
    Some((log_mean + known.raised(), runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::by_point::View;
    use crate::testing::{grid, history, tested};

    fn believed(times: &[f64]) -> f64 {
        let space = grid(&[3]);
        let history = history(vec![tested(&space, &[1], times, 0)], 0, 0);
        let view = View::new(&space, &history, &[]);
        let known = view.get(&Point(vec![1])).unwrap();
        let (log_mean, logs) = log_mean(known, &mut Scatter::default()).unwrap();
        assert_eq!(logs.len(), times.len());
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
