//! Whether a study's runs are one application's, or different work under one name.

use crate::history::{History, RECENT_RUNS, RecentRun};
use crate::reason::Reason;
use crate::space::Space;
use crate::study::settings::Settings;

/// The fewest runs of the default that are looked at.
const LEAST_RUNS: usize = 4;
/// Two groups are two works only if their geometric means differ by this factor at least: a run in
/// sixteen that is up to 1.6 times as slow as the others is noise.
const LEAST_RATIO: f64 = 1.7;
/// Runs that lie no further apart than this, in seconds, are never told apart: on a busy node the
/// launching alone of a job takes now a few milliseconds and now some tenths of a second.
const LEAST_SPAN: f64 = 0.5;
/// The smaller of two groups holds at least one run in so many, and never one run alone.
const SMALLEST_SHARE: usize = 5;

/// Runs of the default that are too different to be one application's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture {
    /// Their coefficient of variation: standard deviation over mean.
    pub cv: f64,
    /// How many runs were looked at.
    pub runs: u64,
    /// The geometric means of the two groups that they fall into, seconds, the quicker first; none if
    /// they only vary.
    pub modes: Option<(f64, f64)>,
}

impl From<Mixture> for Reason {
    fn from(mixture: Mixture) -> Self {
        let Mixture { cv, runs, modes } = mixture;
        Reason::Mixed { cv, runs, modes }
    }
}

/// Whether the latest runs of the default, 4 to [`RECENT_RUNS`], are too different to be one
/// application's: their coefficient of variation exceeds `max_baseline_cv`, or they have two modes.
///
/// *Variation.* The coefficient must exceed the setting also without whichever run raises it most, so
/// that one outlier, however slow, decides nothing.
///
/// *Two modes.* The logarithms of the times are cut into the two groups with the least sum of squares
/// (Fisher 1958, "On grouping for maximum homogeneity", JASA 53, 789-798), each with at least two
/// runs and a fifth of all. With `d` the distance of the groups' means and `s` their pooled standard
/// deviation (divisor n - 2) there are two modes if `d >= ln 1.7` and `d >= (2.8 + 32 / n) s`. Ashman,
/// Bird and Zepf (1994, AJ 108, 2348-2361) call groups separate from `d = 2 s` on, when they are known
/// beforehand; groups that were chosen to look separate are held to more, and few runs to the most.
/// The factors were found by simulation, so that log-normal noise of up to 0.25 with an outlier in
/// sixteen is called mixed in less than one study in a hundred, at any number of runs; the test
/// repeats it.
///
/// None under four runs, if they lie within half a second, and if they can be one application's.
pub fn mixture(space: &Space, history: &History, settings: &Settings) -> Option<Mixture> {
    let mut times = recent_times_of_default(space, history);
    let runs = times.len();
    if runs < LEAST_RUNS {
        return None;
    }
    times.sort_by(f64::total_cmp);
    let cv = variation(&times);
    let varies = (0..runs).all(|left_out| {
        let mut others = times.clone();
        others.remove(left_out);
        variation(&others) > settings.max_baseline_cv && span(&others) >= LEAST_SPAN
    });
    let modes = two_modes(&times);
    (modes.is_some() || (varies && cv > settings.max_baseline_cv)).then_some(Mixture {
        cv,
        runs: runs as u64,
        modes,
    })
}

/// The seconds of the latest runs that count for the default.
fn recent_times_of_default(space: &Space, history: &History) -> Vec<f64> {
    let default = space.default_point();
    let mut runs: Vec<RecentRun> = history
        .tested
        .iter()
        .filter(|tested| space.validate(&tested.parametrization).as_ref() == Ok(&default))
        .flat_map(|tested| tested.recent.iter().copied())
        .filter(|run| run.elapsed.is_finite() && run.elapsed > 0.0)
        .collect();
    runs.sort_by_key(|run| run.ordinal);
    let surplus = runs.len().saturating_sub(RECENT_RUNS);
    runs.drain(..surplus);
    runs.into_iter().map(|run| run.elapsed).collect()
}

/// From the shortest to the longest of ascending times, seconds.
fn span(ascending: &[f64]) -> f64 {
    match ascending {
        [shortest, .., longest] => longest - shortest,
        _ => 0.0,
    }
}

/// Standard deviation (divisor n - 1) over mean, of ascending positive numbers.
fn variation(ascending: &[f64]) -> f64 {
    let largest = ascending.last().copied().unwrap_or(1.0);
    // In shares of the largest, so that nothing overflows.
    let shares = || ascending.iter().map(|time| time / largest);
    let mean = shares().sum::<f64>() / ascending.len() as f64;
    let squares: f64 = shares().map(|share| (share - mean).powi(2)).sum();
    (squares / (ascending.len() - 1) as f64).sqrt() / mean
}

/// The geometric means of the two groups that ascending times fall into, if they do.
fn two_modes(ascending: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> = ascending.iter().map(|time| time.ln()).collect();
    let runs = logs.len();
    let smallest = runs.div_ceil(SMALLEST_SHARE).max(2);
    let (low, high, squares) = (smallest..=runs - smallest)
        .map(|cut| {
            let (low, high) = logs.split_at(cut);
            let (low, low_squares) = mean_and_squares(low);
            let (high, high_squares) = mean_and_squares(high);
            (low, high, low_squares + high_squares)
        })
        .min_by(|a, b| a.2.total_cmp(&b.2))?;
    let distance = high - low;
    let spread = (squares / (runs - 2) as f64).sqrt();
    let far = (2.8 + 32.0 / runs as f64) * spread;
    let (low, high) = (low.exp(), high.exp());
    (distance >= LEAST_RATIO.ln() && distance >= far && high - low >= LEAST_SPAN)
        .then_some((low, high))
}

fn mean_and_squares(numbers: &[f64]) -> (f64, f64) {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, squares)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::history::Tested;
    use crate::testing::{grid, history, normal, tested};

    fn of_default(times: &[f64]) -> Option<Mixture> {
        let space = grid(&[6, 6]);
        let mut default = Tested::new(space.default(), 0);
        for (ordinal, time) in times.iter().enumerate() {
            default.record(ordinal as i64, *time).unwrap();
        }
        // What other parametrizations take says nothing of the application.
        let other = tested(&space, &[3, 3], &[1.0, 1000.0, 1.0, 1000.0], 0);
        mixture(
            &space,
            &history(vec![other, default], 0, 0),
            &Settings::default(),
        )
    }

    #[test]
    fn two_works_under_one_name_are_told_apart() {
        let found = of_default(&[10.0, 20.0, 10.2, 19.8, 10.1, 20.1, 9.9, 20.0]).unwrap();
        let (quick, slow) = found.modes.unwrap();
        assert!((quick - 10.05).abs() < 0.01 && (slow - 19.97).abs() < 0.01);
        assert_eq!(found.runs, 8);
        assert!((found.cv - 0.353).abs() < 0.001, "{}", found.cv);
        assert!(
            of_default(&[10.0, 20.0, 10.0, 20.0])
                .unwrap()
                .modes
                .is_some()
        );
        assert_eq!(of_default(&[10.0, 20.0, 10.0]), None);
        assert_eq!(of_default(&[]), None);
    }

    #[test]
    fn times_that_vary_beyond_reason_are_a_mixture_without_modes() {
        let found = of_default(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]).unwrap();
        assert!(found.cv > 1.0 && found.modes.is_none(), "{found:?}");
        assert_eq!(of_default(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), None);
        assert_eq!(of_default(&[5.0; 8]), None);
        let ends = [1e100, 1e-100];
        assert!(of_default(&[ends, ends, ends].concat()).is_some());
    }

    #[test]
    fn one_outlier_decides_nothing_and_two_are_forgotten() {
        let with = |quiet: usize, outliers: &[f64]| {
            let quiet = (0..quiet).map(|run| 10.0 + 0.1 * (run % 3) as f64);
            let times: Vec<f64> = outliers.iter().copied().chain(quiet).collect();
            of_default(&times).is_some()
        };
        for quiet in 3..=31 {
            assert!(!with(quiet, &[10_000.0]), "{quiet}");
            assert!(!with(quiet, &[0.001]), "{quiet}");
        }
        assert!(with(6, &[10_000.0, 9_000.0]));
        assert!(with(30, &[10_000.0, 9_000.0]));
        assert!(!with(31, &[10_000.0, 9_000.0]));
    }

    /// In how many of so many studies these times are called a mixture.
    fn share(runs: usize, seed: u64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> f64 {
        const STUDIES: u32 = 4000;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let found = (0..STUDIES).filter(|_| {
            let times: Vec<f64> = (0..runs).map(|_| draw(&mut rng)).collect();
            of_default(&times).is_some()
        });
        found.count() as f64 / f64::from(STUDIES)
    }

    #[test]
    fn noise_is_no_mixture() {
        for spread in [0.02, 0.1, 0.2, 0.25] {
            for runs in 4..=RECENT_RUNS {
                for one_in in [f64::INFINITY, 16.0] {
                    let found = share(runs, 1, |rng| {
                        let noise = (spread * normal(rng)).exp();
                        if rng.random::<f64>() < 1.0 / one_in {
                            noise * rng.random_range(1.3..1.6)
                        } else {
                            noise
                        }
                    });
                    assert!(found < 0.01, "spread {spread}, {runs} runs: {found}");
                }
            }
        }
    }

    #[test]
    fn the_power_is_as_documented() {
        // Two works in turn at random, the second so many times as long: runs, ratio, noise, and the
        // share of studies that are told apart.
        for (runs, ratio, spread, expected) in [
            (4, 2.0, 0.05, 0.30),
            (8, 2.0, 0.05, 0.92),
            (8, 2.0, 0.10, 0.55),
            (8, 3.0, 0.10, 0.91),
            (16, 2.0, 0.10, 0.96),
            (16, 2.0, 0.20, 0.14),
            (32, 2.0, 0.10, 1.0),
            (32, 2.0, 0.20, 0.52),
            (32, 3.0, 0.25, 0.98),
        ] {
            let found = share(runs, 2, |rng| {
                let work = if rng.random::<bool>() { ratio } else { 1.0 };
                work * (spread * normal(rng)).exp()
            });
            assert!(
                (found - expected).abs() < 0.03,
                "{runs} runs, 1:{ratio}, noise {spread}: {found}"
            );
        }
    }
}
