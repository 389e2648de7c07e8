//! A bound on what can still be won, from a study's own runs: the share of the default's time that
//! the best parametrization takes less, at most, with 95 % confidence.
//!
//! The surrogate's posterior bounds it for each point by the upper end of the difference between
//! the default's log elapsed and the point's, and the highest of these ends is the bound
//! (docs/derivation/guards.md). Two things keep an over-confident surrogate from ending a search. A
//! lever that never moved is not known to be flat, so runs must cover every parameter. And the
//! bound is never below what the noise allows, whatever the surrogate believes: half the width of
//! Student's interval for the difference between the default's runs and all others.

use std::collections::BTreeSet;

use io_autotune_model::reason::Stopped;
use io_autotune_model::space::{Point, levels_of};
use io_autotune_search::math::Portable;
use io_autotune_search::neighbourhood;
use io_autotune_search::regret::Estimator;
use io_autotune_search::surrogate::posterior::{Fitted, Modelled};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::settled::mean_interval::quantile_of;
use crate::study::settings::Settings;

/// The confidence of the bound.
const CONFIDENCE: f64 = 0.95;
/// The number of standard deviations from the mean of a difference to its upper end. The highest of
/// many ends is beyond most of them, so one is enough: chosen on the development tables
/// (docs/engine.md).
const DOUBT: f64 = 1.0;
/// The share of each parameter's values that runs must cover, and how near is covered, as a share of
/// an ordered parameter's range.
const COVERED: f64 = 0.75;
const NEAR: f64 = 0.25;
/// A space of at most this many points is looked at whole.
const SMALL: usize = 512;
/// In a larger one, this many points at random, and the single changes of the default and of so
/// many of the best.
const DRAWN: usize = 128;
const CLIMBED: usize = 3;
/// The seed of the points at random: the bound is the same whoever asks.
const SEED: u64 = 1;

/// The reason to end the search, if less than the least gain can be won.
pub(crate) fn stopped(own: &Modelled<'_>, settings: &Settings) -> Option<Stopped> {
    let least = settings.stop.least_gain;
    let asks = settings.controls && settings.method().estimator() == Estimator::Surrogate;
    if least == 0.0 || !asks || own.default_never_completed() {
        return None;
    }
    let runs = Runs::of(own);
    let by_noise = share(runs.half_width()?);
    if by_noise >= least {
        return None;
    }
    let fitted = own.fitted()?;
    let bounds = fitted.bounds();
    // What has run is among the points: once it may gain as much, the others need not be looked at.
    let measured = || highest(own, fitted, &fitted.ranked);
    if share(*bounds.measured.get_or_init(measured)) >= least {
        return None;
    }
    let points = points(own, fitted);
    if !has_covered_all(own, &points) {
        return None;
    }
    let all = || highest(own, fitted, &points);
    let most = share(*bounds.all.get_or_init(all)).max(by_noise);
    (most < least).then_some(Stopped::LittleToWin {
        most,
        runs: runs.default + runs.others,
    })
}

/// The share of the default's time that is less where its logarithm is so much lower.
fn share(lower: f64) -> f64 {
    1.0 - (-lower).exponential()
}

/// The counted runs that are compared.
struct Runs {
    default: u64,
    others: u64,
    /// The sum of squared deviations of log elapsed from the parametrization's mean, and its degrees
    /// of freedom.
    squares: f64,
    degrees: f64,
}

impl Runs {
    fn of(own: &Modelled<'_>) -> Self {
        let mut runs = Runs {
            default: 0,
            others: 0,
            squares: 0.0,
            degrees: 0.0,
        };
        for (point, known) in own.iter() {
            match *point == own.default {
                true => runs.default += known.count(),
                false => runs.others += known.count(),
            }
            runs.add(known.logs());
        }
        runs
    }

    fn add(&mut self, logs: &[f64]) {
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        self.squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        self.degrees += (logs.len() as f64 - 1.0).max(0.0);
    }

    /// Half the width of the interval for the difference of two means of logarithms:
    /// `t(0.95, f) s sqrt(1 / n + 1 / m)`.
    fn half_width(&self) -> Option<f64> {
        if self.default == 0 || self.others == 0 {
            return None;
        }
        let error = self.squares / self.degrees;
        let spread = 1.0 / self.default as f64 + 1.0 / self.others as f64;
        Some(quantile_of(CONFIDENCE, self.degrees)? * (error * spread).sqrt())
    }
}

/// Returns true if counted runs have covered enough of the values that these points have of every
/// parameter. A run covers its category, and the values of an ordered parameter that are near.
fn has_covered_all(own: &Modelled<'_>, points: &[Point]) -> bool {
    let counted = own.iter().filter(|(_, known)| known.count() > 0);
    let counted: Vec<&Point> = counted.map(|(point, _)| point).collect();
    let mut parameters = own.space.parameters().iter().enumerate();
    parameters.all(|(index, parameter)| {
        let range = f64::from(levels_of(parameter).saturating_sub(1));
        let reach = match parameter.is_ordered() {
            true => NEAR * range,
            false => 0.0,
        };
        let had: BTreeSet<u32> = counted.iter().map(|point| point.0[index]).collect();
        let all: BTreeSet<u32> = points.iter().map(|point| point.0[index]).collect();
        let is_near = |level: &u32| {
            had.iter()
                .any(|one| f64::from(one.abs_diff(*level)) <= reach)
        };
        let covered = all.iter().filter(|level| is_near(level)).count();
        covered as f64 >= COVERED * all.len() as f64
    })
}

/// The highest upper end of what the default's log elapsed is above that of these points; at least 0.
fn highest(own: &Modelled<'_>, fitted: &Fitted, points: &[Point]) -> f64 {
    let differences = fitted.above(&own.default, points).into_iter();
    let ends = differences.map(|one| one.end(DOUBT));
    ends.fold(0.0, f64::max)
}

/// The points that are looked at.
fn points(own: &Modelled<'_>, fitted: &Fitted) -> Vec<Point> {
    let space = own.space;
    let mut points = space.points(SMALL).unwrap_or_else(|| {
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let mut points: Vec<Point> = (0..DRAWN).map(|_| space.draw(rng)).collect();
        for from in fitted.ranked.iter().take(CLIMBED).chain([&own.default]) {
            let near = neighbourhood::single_changes(space, from, rng);
            points.extend(near.into_iter().map(|(_, point)| point));
        }
        points.extend(fitted.ranked.iter().cloned());
        points
    });
    points.retain(|point| *point != own.default);
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::epoch::Epoch;
    use crate::testing::{grid, history, normal, published, tested};
    use io_autotune_model::space::Space;
    use io_autotune_search::history::History;

    /// A study of a space in which nothing matters, of which runs vary by `noise`: six runs of the
    /// default, and one of each of 18 other points. `other` is the last level that a point has of
    /// the second parameter, and `fastest` how long two runs of a point took.
    fn flat(space: &Space, noise: f64, other: u32, fastest: Option<f64>) -> History {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let mut time = || 100.0 * (noise * normal(rng)).exponential();
        let mut known = vec![tested(space, &[0, 0], &[(); 6].map(|()| time()), 0)];
        for place in 0..18 {
            let point = [place % 6, (1 + place / 6).min(other)];
            if point != [0, 0] && known.iter().all(|one| !is_at(space, one, point)) {
                known.push(tested(space, &point, &[time()], 6 + i64::from(place)));
            }
        }
        known.extend(fastest.map(|fastest| tested(space, &[3, 4], &[fastest; 2], 30)));
        let runs = known.len() as u64;
        history(known, 6 + runs, runs)
    }

    fn is_at(space: &Space, one: &io_autotune_model::Tested, point: [u32; 2]) -> bool {
        one.parametrization == space.parametrization(&Point(point.to_vec()))
    }

    fn most(settings: &Settings, history: &History) -> Option<f64> {
        let space = grid(&[6, 6]);
        match Epoch::new(&space, settings, 1).nothing_to_win(history)? {
            Stopped::LittleToWin { most, runs } => {
                assert_eq!(runs, 24);
                Some(most)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_quiet_study_in_which_nothing_matters_says_so() {
        let (space, settings) = (grid(&[6, 6]), Settings::default());
        let most = |history: &History| most(&settings, history);
        let bound = most(&flat(&space, 0.01, 3, None)).unwrap();
        assert!(bound > 0.005 && bound < 0.05, "{bound}");
        assert_eq!(
            most(&flat(&space, 0.12, 3, None)),
            None,
            "the noise hides 5 %"
        );
        let unmoved = flat(&space, 0.01, 0, None);
        assert_eq!(most(&unmoved), None, "the second parameter never moved");
        assert_eq!(
            most(&flat(&space, 0.01, 3, Some(92.0))),
            None,
            "8 % were won"
        );
        let recommended = |history: &History| Epoch::new(&space, &settings, 1).recommend(history);
        assert_eq!(recommended(&flat(&space, 0.01, 3, None)), None);
        assert!(recommended(&flat(&space, 0.01, 3, Some(92.0))).is_some());
    }

    #[test]
    fn it_is_not_asked_for_outside_slurm_and_by_published_methods() {
        let space = grid(&[6, 6]);
        let quiet = flat(&space, 0.01, 3, None);
        let mut never = Settings::default();
        never.stop.least_gain = 0.0;
        let outside = Settings {
            controls: false,
            ..Settings::default()
        };
        for settings in [never, outside, published()] {
            assert_eq!(most(&settings, &quiet), None);
        }
    }

    /// The least number of runs, half of them of the default, whose half width is below 5 %.
    fn needed(noise: f64) -> u64 {
        let is_enough = |runs: &u64| {
            let degrees = 2.0 * (*runs as f64 - 1.0);
            let of = Runs {
                default: *runs,
                others: *runs,
                squares: degrees * noise * noise,
                degrees,
            };
            share(of.half_width().unwrap()) < 0.05
        };
        2 * (2..).find(is_enough).unwrap()
    }

    #[test]
    fn the_runs_that_a_bound_needs_are_those_of_the_docs() {
        let page = include_str!("../../../../../docs/derivation/guards.md");
        for percent in [2, 5, 8, 12, 20, 30] {
            let row = format!("| {percent} % | {} |", needed(f64::from(percent) / 100.0));
            assert!(page.contains(&row), "{row}");
        }
    }
}
