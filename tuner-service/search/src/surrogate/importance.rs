//! Sensitivity of log elapsed to the parameters, by the surrogate: the first-order and the total
//! sensitivity index of each parameter (A. Saltelli and others, "Variance based sensitivity
//! analysis of model output", Computer Physics Communications 181, 2010, equations 2 and 4) for the
//! surrogate's mean, over the levels that ran.
//!
//! Levels that never ran are left out: there the mean returns to the trend, which would look like
//! an effect.

use std::collections::BTreeSet;
use std::fmt;

use io_autotune_model::space::{ABSENT, Point, Space};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Observation;
use super::ensemble::Ensemble;

/// The least number of parametrizations that ran; fewer show nothing. The report uses the same
/// number, in `analyse/understanding`.
pub const LEAST: usize = 10;
/// The least skill at which the surrogate is believed, as in the report. The fewer parametrizations
/// ran per parameter, the more skill is needed: the length scales were chosen by the same runs,
/// which flatters the skill.
const LEAST_SKILL: f64 = 0.3;

/// The largest weight of a parametrization, in runs, as in the report.
const MOST_WEIGHT: f64 = 4.0;
/// The most levels of one parameter that are compared, spread over those that ran.
const MOST_LEVELS: usize = 12;
/// The number of points at which the levels of each parameter are compared.
const PLACES: usize = 256;
/// The number of draws for one of these points.
const DRAWS: usize = 16;

/// The sensitivity of log elapsed to the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Importance {
    /// The share of the spread between parametrizations that the surrogate predicts for each one
    /// from the others: R2 of leaving one out, at most 1.
    pub skill: f64,
    /// The indices of the parameters of which several levels ran, in the space's order.
    pub shares: Vec<Share>,
}

/// The sensitivity indices of one parameter: shares of the variance of expected log elapsed, from 0
/// to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The parameter's place in the space.
    pub place: usize,
    /// The first-order index: the effect of this parameter by itself.
    pub alone: f64,
    /// The total index: with interactions, so at least the first-order one. The total indices of
    /// all parameters may sum to more than 1.
    pub in_all: f64,
}

/// The reason why nothing is said of the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Silence {
    /// This number of parametrizations ran, fewer than [`LEAST`].
    Few(usize),
    /// All parametrizations take the same time.
    Alike,
    /// The number of parametrizations that ran, and the share of their spread that the surrogate
    /// predicts, which is too small: the rest is noise, or is explained by no parameter.
    Unexplained(usize, f64),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The sentences are those of the report.
        match self {
            Self::Few(ran) => write!(f, "{ran} parametrizations ran; it takes {LEAST}."),
            Self::Alike => write!(f, "All parametrizations that ran take the same."),
            Self::Unexplained(ran, _) => write!(
                f,
                "{ran} parametrizations ran, and no parameter explains their times."
            ),
        }
    }
}

/// The sensitivity of these observations to the parameters, by the surrogate that was fitted to
/// them.
pub(super) fn importance(
    space: &Space,
    surrogate: &Ensemble,
    observations: &[Observation],
) -> Result<Importance, Silence> {
    let ran = observations.len();
    if ran < LEAST {
        return Err(Silence::Few(ran));
    }
    let spread = weighted(observations, |_, o| o.log_mean);
    let squares = weighted(observations, |_, o| (o.log_mean - spread).powi(2));
    if squares <= 0.0 {
        return Err(Silence::Alike);
    }
    let surprises = surrogate.surprises(observations);
    let missed = weighted(observations, |place, _| surprises[place].powi(2));
    let skill = 1.0 - missed / squares;
    let levels = levels(space, observations);
    let varied = levels.iter().filter(|levels| levels.len() > 1).count();
    if skill.is_nan() || skill < LEAST_SKILL + varied as f64 / ran as f64 {
        return Err(Silence::Unexplained(ran, skill));
    }
    let places = places(space, observations, &levels);
    let shares = (0..levels.len())
        .filter(|place| levels[*place].len() > 1)
        .map(|place| share(space, surrogate, &places, place, &levels[place]));
    Ok(Importance {
        skill,
        shares: shares.collect(),
    })
}

fn weighted(observations: &[Observation], of: impl Fn(usize, &Observation) -> f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (place, observation) in observations.iter().enumerate() {
        let weight = observation.runs.min(MOST_WEIGHT);
        sum += weight * of(place, observation);
        weights += weight;
    }
    sum / weights
}

/// The levels of each parameter that ran.
fn levels(space: &Space, observations: &[Observation]) -> Vec<Vec<u32>> {
    let seen: Vec<Point> = observations.iter().map(|o| space.seen(&o.point)).collect();
    (0..space.parameters().len())
        .map(|place| {
            let ran: BTreeSet<u32> = seen.iter().map(|point| point.0[place]).collect();
            let ran: Vec<u32> = ran.into_iter().filter(|level| *level != ABSENT).collect();
            let kept = ran.len().min(MOST_LEVELS);
            let spread = |nth: usize| ran[nth * (ran.len() - 1) / (kept - 1).max(1)];
            (0..kept).map(spread).collect()
        })
        .collect()
}

/// Points whose levels ran, drawn evenly. If constraints admit hardly any, the points that ran
/// themselves.
fn places(space: &Space, observations: &[Observation], levels: &[Vec<u32>]) -> Vec<Point> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let default = space.default_point();
    let mut draw = || {
        let levels = levels.iter().zip(&default.0);
        let levels = levels.map(|(ran, default)| match ran.len() {
            0 => *default,
            count => ran[rng.random_range(0..count)],
        });
        space.canonical(Point(levels.collect()))
    };
    let drawn: Vec<Point> = (0..PLACES * DRAWS)
        .map(|_| draw())
        .filter(|point| space.admits(point))
        .take(PLACES)
        .collect();
    if drawn.len() == PLACES {
        drawn
    } else {
        observations.iter().map(|o| o.point.clone()).collect()
    }
}

/// Computes the indices of one parameter: at each place, the parameter takes each of its levels in
/// turn.
fn share(
    space: &Space,
    surrogate: &Ensemble,
    places: &[Point],
    place: usize,
    levels: &[u32],
) -> Share {
    let (mut points, mut of) = (Vec::new(), Vec::new());
    for (row, point) in places.iter().enumerate() {
        for (column, level) in levels.iter().enumerate() {
            let mut point = point.clone();
            point.0[place] = *level;
            let point = space.canonical(point);
            if space.admits(&point) {
                points.push(point);
                of.push((row, column));
            }
        }
    }
    let expected = surrogate.expect_all(&points);
    let mean = expected.iter().sum::<f64>() / expected.len() as f64;
    let (mut by_place, mut by_level) = (
        vec![(0.0, 0.0); places.len()],
        vec![(0.0, 0.0); levels.len()],
    );
    let mut whole = 0.0;
    for (value, (row, column)) in expected.iter().map(|value| value - mean).zip(&of) {
        for (count, sum) in [&mut by_place[*row], &mut by_level[*column]] {
            *count += 1.0;
            *sum += value;
        }
        whole += value * value;
    }
    let between = |groups: &[(f64, f64)]| -> f64 {
        let groups = groups.iter().filter(|(count, _)| *count > 0.0);
        groups.map(|(count, sum)| sum * sum / count).sum()
    };
    let of_whole = |squares: f64| match whole > 0.0 {
        true => (squares / whole).clamp(0.0, 1.0),
        false => 0.0,
    };
    let in_all = of_whole(whole - between(&by_place));
    Share {
        place,
        alone: of_whole(between(&by_level)).min(in_all),
        in_all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latin_hypercube::latin_hypercube;
    use crate::surrogate::Scatter;
    use crate::testing::{any_constrained, categories, grid, normal, storage};

    /// Runs a design, and returns the indices found: `log elapsed` is a function of the levels,
    /// with the noise of a run.
    fn found(
        space: &Space,
        runs: u32,
        seed: u64,
        noise: f64,
        log: impl Fn(&[f64]) -> f64,
    ) -> Result<Importance, Silence> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let observations: Vec<Observation> = latin_hypercube(space, runs, seed)
            .into_iter()
            .map(|point| {
                let levels: Vec<f64> = point.0.iter().map(|level| f64::from(*level)).collect();
                Observation {
                    log_mean: log(&levels) + noise * normal(&mut rng),
                    point,
                    runs: 1.0,
                }
            })
            .collect();
        let surrogate = Ensemble::fit(space, &observations, Scatter::default()).unwrap();
        importance(space, &surrogate, &observations)
    }

    fn shares(found: &Importance) -> Vec<(f64, f64)> {
        let shares = found.shares.iter();
        shares.map(|share| (share.alone, share.in_all)).collect()
    }

    fn near(found: &Importance, expected: &[(f64, f64)], within: f64) {
        let shares = shares(found);
        assert_eq!(shares.len(), expected.len(), "{found:?}");
        for ((alone, in_all), (expected, with_others)) in shares.iter().zip(expected) {
            assert!((alone - expected).abs() < within, "{found:?}");
            assert!((in_all - with_others).abs() < within, "{found:?}");
        }
    }

    /// Slopes of 2 and 1 over the same levels: the variances are as 4 to 1, and the third parameter
    /// has no effect.
    #[test]
    fn effects_that_add_up_explain_as_their_variances_do() {
        let found = found(&grid(&[5, 5, 5]), 40, 3, 0.01, |x| 0.2 * x[0] + 0.1 * x[1]).unwrap();
        near(&found, &[(0.8, 0.8), (0.2, 0.2), (0.0, 0.0)], 0.03);
        assert!(found.skill > 0.95, "{found:?}");
    }

    /// The product of centred levels: neither parameter explains anything alone, and together they
    /// explain all.
    #[test]
    fn what_only_interacts_explains_nothing_alone() {
        let space = grid(&[5, 5]);
        let found = found(&space, 25, 1, 0.01, |x| 0.3 * (x[0] - 2.0) * (x[1] - 2.0)).unwrap();
        near(&found, &[(0.0, 1.0), (0.0, 1.0)], 0.04);
    }

    #[test]
    fn categories_explain_too() {
        let mut parameters = grid(&[4]).parameters().to_vec();
        parameters.push(categories("kind", 3));
        let space = Space::new(parameters).unwrap();
        let found = found(&space, 12, 1, 0.01, |x| if x[1] == 1.0 { 0.5 } else { 0.0 }).unwrap();
        near(&found, &[(0.0, 0.0), (1.0, 1.0)], 0.06);
    }

    /// A level that never ran would return to the trend, and so would seem to matter.
    #[test]
    fn a_parameter_of_which_one_level_ran_has_no_share() {
        let space = grid(&[12, 9]);
        let observations: Vec<Observation> = (0..12)
            .map(|level| Observation {
                point: Point(vec![level, 4]),
                log_mean: f64::from(level),
                runs: 1.0,
            })
            .collect();
        let surrogate = Ensemble::fit(&space, &observations, Scatter::default()).unwrap();
        let found = importance(&space, &surrogate, &observations).unwrap();
        assert_eq!(found.shares.len(), 1);
        assert!(found.shares[0].place == 0 && found.shares[0].alone > 0.99);
    }

    #[test]
    fn nothing_is_said_of_few_runs_equal_ones_or_noise() {
        let space = grid(&[6, 6, 6]);
        let few = found(&space, 9, 1, 0.0, |x| x[0]);
        assert_eq!(few, Err(Silence::Few(9)));
        let alike = found(&space, 20, 1, 0.0, |_| 3.0);
        assert_eq!(alike, Err(Silence::Alike));
    }

    /// If nothing explains the times, shares are reported about one time in twenty.
    #[test]
    fn noise_is_hardly_ever_explained() {
        for (levels, runs) in [
            (&[12, 12][..], 10),
            (&[6, 6, 6], 10),
            (&[6, 6, 6], 20),
            (&[6, 6, 6], 40),
            (&[4; 6], 12),
            (&[4; 6], 40),
        ] {
            let space = grid(levels);
            let said = (0..200).filter(|seed| found(&space, runs, *seed, 0.2, |_| 3.0).is_ok());
            let said = said.count();
            assert!(said <= 20, "{levels:?} {runs}: {said} of 200");
        }
    }

    #[test]
    fn conditions_and_constraints_are_kept() {
        let effect = |x: &[f64]| if x[2] == 0.0 { 0.5 } else { 0.2 * x[3] };
        let found = found(&storage(), 40, 1, 0.01, effect).unwrap();
        let in_all = |place| found.shares.iter().find(|one| one.place == place);
        let [cache, buffer, flush] = [2, 3, 4].map(|place| in_all(place).unwrap().in_all);
        assert!(cache > 0.3 && buffer > 0.1 && flush < 0.05, "{found:?}");
    }

    #[test]
    fn shares_are_shares_whatever_the_space_is() {
        let mut said = 0;
        for seed in 0..40 {
            let space = any_constrained(seed);
            let slope = |x: &[f64]| x.iter().sum::<f64>() / 5.0;
            let Ok(found) = found(&space, 20, seed, 0.01, slope) else {
                continue;
            };
            said += 1;
            for (alone, in_all) in shares(&found) {
                assert!(
                    0.0 <= alone && alone <= in_all && in_all <= 1.0,
                    "{found:?}"
                );
            }
        }
        assert!(said >= 10, "{said}");
    }
}
