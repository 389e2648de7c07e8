//! What the parameters explain of log elapsed, by the surrogate: the first-order and the total
//! sensitivity index of each (A. Saltelli and others, "Variance based sensitivity analysis of model
//! output", Computer Physics Communications 181, 2010, equations 2 and 4) of its mean, over the
//! levels that ran.
//!
//! Levels that never ran are left out: there the mean returns to the trend, which would look like an
//! effect.

use std::collections::BTreeSet;
use std::fmt;

use io_autotune_model::space::{ABSENT, Point, Space};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Observation;
use super::ensemble::Ensemble;

/// Parametrizations that ran; fewer say nothing. As in the report, `analyse/understanding`.
pub const LEAST: usize = 10;
/// The surrogate is not believed if it foretells less of the spread than this share, as in the
/// report, and the more the fewer parametrizations ran of each parameter: its length scales were
/// chosen by the same runs, which flatters it.
const LEAST_SKILL: f64 = 0.3;

/// A parametrization's runs beyond these weigh no more. As in the report.
const MOST_WEIGHT: f64 = 4.0;
/// Levels of one parameter that are compared, spread over those that ran.
const MOST_LEVELS: usize = 12;
/// Points at which the levels of each parameter are compared.
const PLACES: usize = 256;
/// Draws for one of them.
const DRAWS: usize = 16;

/// What the parameters explain.
#[derive(Clone, Debug, PartialEq)]
pub struct Importance {
    /// The share of the spread between parametrizations that is foretold of one from the others: R2
    /// of leaving one out, at most 1.
    pub skill: f64,
    /// Of the parameters of which several levels ran, in the space's order.
    pub shares: Vec<Share>,
}

/// What a parameter explains of the variance of expected log elapsed, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The parameter's place in the space.
    pub place: usize,
    /// By itself, whatever the others are.
    pub alone: f64,
    /// With its interactions, so at least as much; those of all parameters may exceed 1 together.
    pub in_all: f64,
}

/// Why nothing is said of the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Silence {
    /// So many parametrizations ran, fewer than [`LEAST`].
    Few(usize),
    /// All parametrizations take the same.
    Alike,
    /// So many parametrizations ran, and the surrogate foretells this share of their spread, too
    /// little: noise, or what no parameter explains.
    Unexplained(usize, f64),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The report's words.
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

/// What the parameters explain of these observations, to which the surrogate is fitted.
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

/// Points of levels that ran, drawn evenly; where constraints admit hardly any, those that ran.
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

/// Each place has each level of the parameter in turn.
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

    /// Runs of a design and what is found in them: log elapsed of levels, and noise of a run.
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

    /// Slopes of 2 and 1 over the same levels: variances as 4 to 1, and nothing of the third.
    #[test]
    fn effects_that_add_up_explain_as_their_variances_do() {
        let found = found(&grid(&[5, 5, 5]), 40, 3, 0.01, |x| 0.2 * x[0] + 0.1 * x[1]).unwrap();
        near(&found, &[(0.8, 0.8), (0.2, 0.2), (0.0, 0.0)], 0.03);
        assert!(found.skill > 0.95, "{found:?}");
    }

    /// Centred levels multiplied: neither explains anything alone, and together they explain all.
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

    /// A level that never ran would return to the trend, and so seem to matter.
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

    /// Where nothing explains the times, something is said to about one time in twenty.
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
