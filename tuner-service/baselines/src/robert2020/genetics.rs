//! Selection, crossover and mutation (robert2020, section V).

use rand::RngExt;
use rand::seq::{SliceRandom, index};
use rand_chacha::ChaCha8Rng;

use super::regression::{self, Individual};
use super::settings::{Crossover, Mutation, NeighboursOf, Robert2020, Selection, Weight};
use crate::annealing::changed;
use crate::robert2019::walk;
use io_autotune_model::space::{Point, Space, levels_of};
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::View;
use io_autotune_search::neighbourhood::step;

#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) point: Point,
    pub(super) parents: [Point; 2],
    /// Parents are cut before these parameters; ascending.
    pub(super) cuts: Vec<usize>,
    pub(super) mutated: Vec<String>,
}

/// All points with a known mean, in order, with their regressed means if fitness regression is set.
pub(super) fn population<'a>(view: &'a View<'_>, settings: &Robert2020) -> Vec<Individual<'a>> {
    let known: Vec<Individual<'_>> = view
        .iter()
        .filter_map(|(point, known)| known.mean().map(|mean| Individual { point, mean }))
        .collect();
    match settings.noise.regression() {
        Some((kind, share)) => {
            let of = match settings.neighbours_of {
                NeighboursOf::Space => view.space.size() as f64,
                NeighboursOf::Tested => known.len() as f64,
            };
            // `as` saturates.
            regression::regressed(view.space, known, kind, (share * of).floor() as usize)
        }
        None => known,
    }
}

/// A child, which the space may not admit; none if the population is empty.
pub(super) fn breed(
    settings: &Robert2020,
    context: &MethodContext<'_>,
    population: &[Individual<'_>],
    rng: &mut ChaCha8Rng,
) -> Option<Child> {
    let (first, second) = match settings.selection {
        Selection::Tournament { pool_size } => tournament(population, pool_size as usize, rng)?,
        Selection::Probabilistic => probabilistic(population, settings.weight, rng)?,
    };
    let (first, second) = (population[first].point, population[second].point);
    let (point, cuts) = cross(first, second, settings.crossover, rng);
    let crossed = context.space().canonical(point);
    let mut point = crossed.clone();
    if rng.random::<f64>() < settings.mutation_rate {
        point = mutate(context.space(), &crossed, settings.mutation, rng);
    }
    Some(Child {
        parents: [first.clone(), second.clone()],
        cuts,
        mutated: changed(context.space(), &crossed, &point),
        point,
    })
}

/// A step of a random walk (section V-D), which changes something if the space has a second point.
fn mutate(space: &Space, from: &Point, mutation: Mutation, rng: &mut ChaCha8Rng) -> Point {
    let mut point = from.clone();
    if mutation == Mutation::One {
        step(space, &mut point, rng);
        return space.canonical(point);
    }
    let existing = space.existing(from);
    let mobile = |(place, parameter)| existing.contains(place) && levels_of(parameter) > 1;
    if space.parameters().iter().enumerate().any(mobile) {
        while point == *from {
            point = space.canonical(walk(space, from, rng));
        }
    }
    point
}

/// Tournament pick (section V-B): "randomly drawing two pools of parametrization of a given size
/// and selecting the candidates with the best execution time in each pool". The pools share no
/// member, as in the predecessor (Robert, Zertal and Goret 2019), which "randomly divides the already
/// tested parametrizations in two": so is a small population, and each with a size of 0.
/// Returns the parents' indices, twice the same for a population of one.
pub(super) fn tournament(
    population: &[Individual<'_>],
    pool_size: usize,
    rng: &mut ChaCha8Rng,
) -> Option<(usize, usize)> {
    if population.len() < 2 {
        return (!population.is_empty()).then_some((0, 0));
    }
    let half = population.len() / 2;
    let size = if pool_size == 0 {
        half
    } else {
        pool_size.min(half)
    };
    let mut drawn: Vec<usize> = index::sample(rng, population.len(), 2 * size).into_vec();
    // The order of a sample is not random enough to split it.
    drawn.shuffle(rng);
    let (one, other) = drawn.split_at(size);
    let best = |pool: &[usize]| {
        pool.iter()
            .copied()
            .min_by(|a, b| population[*a].mean.total_cmp(&population[*b].mean))
    };
    Some((best(one)?, best(other)?))
}

/// Probabilistic pick (section V-B), which "consists in picking out the best parametrization"; the
/// predecessor "randomly picks the fittest parametrizations according to their execution time".
/// Read as the roulette wheel of the review that the paper cites; the second parent is drawn from
/// the others. Returns indices.
pub(super) fn probabilistic(
    population: &[Individual<'_>],
    weight: Weight,
    rng: &mut ChaCha8Rng,
) -> Option<(usize, usize)> {
    let first = roulette(population, weight, None, rng)?;
    let second = roulette(population, weight, Some(first), rng).unwrap_or(first);
    Some((first, second))
}

fn roulette(
    population: &[Individual<'_>],
    weight: Weight,
    without: Option<usize>,
    rng: &mut ChaCha8Rng,
) -> Option<usize> {
    let candidates = || (0..population.len()).filter(|index| Some(*index) != without);
    let best = candidates()
        .map(|index| population[index].mean)
        .min_by(f64::total_cmp)?;
    // The best has weight 1: weights in (0, 1] have a finite sum.
    let weight = |index: usize| match weight {
        Weight::Inverse => best / population[index].mean,
        Weight::AboveLeast => 1.0 / (population[index].mean - best + 1.0),
    };
    let mut left = rng.random::<f64>() * candidates().map(weight).sum::<f64>();
    candidates()
        .find(|index| {
            left -= weight(*index);
            left < 0.0
        })
        .or_else(|| candidates().next_back())
}

/// Crossover (section V-C): parts between cuts come from the parents in turn. Of d levels there are
/// at most d - 1 cuts; with d = 1 the child is its first parent. Returns the child and its cuts.
pub(super) fn cross(
    first: &Point,
    second: &Point,
    crossover: Crossover,
    rng: &mut ChaCha8Rng,
) -> (Point, Vec<usize>) {
    let places = first.0.len().saturating_sub(1);
    let wanted = match crossover {
        Crossover::SinglePoint => 1,
        Crossover::NPoint { points } => points as usize,
    };
    let mut cuts: Vec<usize> = index::sample(rng, places, wanted.min(places))
        .into_iter()
        .map(|place| place + 1)
        .collect();
    cuts.sort_unstable();
    let level = |index: usize| {
        let from_first = cuts.partition_point(|cut| *cut <= index).is_multiple_of(2);
        if from_first {
            first.0[index]
        } else {
            second.0[index]
        }
    };
    (Point((0..first.0.len()).map(level).collect()), cuts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;
    use io_autotune_model::space::Space;
    use io_autotune_search::testing::{categories, grid, integers};

    fn rng(stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        rng.set_stream(stream);
        rng
    }

    fn individuals<'a>(points: &'a [Point], means: &[f64]) -> Vec<Individual<'a>> {
        points
            .iter()
            .zip(means)
            .map(|(point, mean)| Individual { point, mean: *mean })
            .collect()
    }

    #[test]
    fn robert2020_v_b_a_tournament_is_won_by_the_lowest_mean() {
        let points: Vec<Point> = (0..10).map(|level| Point(vec![level])).collect();
        let means = [9.0, 3.0, 7.0, 1.0, 8.0, 2.0, 6.0, 5.0, 4.0, 10.0];
        let population = individuals(&points, &means);
        let mut rng = rng(1);
        let mut second_best = 0;
        for _ in 0..400 {
            // The pools contain everything: the best is in one of them and wins it.
            let (one, other) = tournament(&population, 100, &mut rng).unwrap();
            assert!((one == 3) != (other == 3));
            second_best += u32::from(one == 5 || other == 5);
            // The worst of all can only win a pool of its own.
            let (one, other) = tournament(&population, 2, &mut rng).unwrap();
            assert!(one != 9 && other != 9 && one != other);
        }
        // The second best is in the other pool with probability 5/9: 222 of 400, sd 10.
        assert!((180..265).contains(&second_best), "{second_best}");
        let mut ever: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..400 {
            let (one, other) = tournament(&population, 1, &mut rng).unwrap();
            ever.extend([one, other]);
        }
        assert_eq!(ever.len(), 10, "pools of one are a plain draw");
        assert_eq!(tournament(&population[..1], 5, &mut rng), Some((0, 0)));
        assert_eq!(tournament(&[], 5, &mut rng), None);
    }

    #[test]
    fn robert2019_iii_b_3_a_probabilistic_pick_follows_the_time() {
        let points: Vec<Point> = (0..3).map(|level| Point(vec![level])).collect();
        let population = individuals(&points, &[1.0, 2.0, 4.0]);
        let mut rng = rng(2);
        let mut firsts = [0_u32; 3];
        for _ in 0..7000 {
            let (first, second) = probabilistic(&population, Weight::Inverse, &mut rng).unwrap();
            assert_ne!(first, second);
            firsts[first] += 1;
        }
        // 4/7, 2/7, 1/7; the standard deviations are below 42.
        for (count, expected) in firsts.into_iter().zip([4000_u32, 2000, 1000]) {
            assert!(count.abs_diff(expected) < 200, "{firsts:?}");
        }
        assert_eq!(
            probabilistic(&population[..1], Weight::Inverse, &mut rng),
            Some((0, 0))
        );
        assert_eq!(probabilistic(&[], Weight::Inverse, &mut rng), None);
        let extreme = individuals(&points, &[f64::MIN_POSITIVE, 1.0, f64::MAX]);
        assert!(probabilistic(&extreme, Weight::Inverse, &mut rng).is_some());
    }

    #[test]
    fn the_weight_of_the_authors_program_tells_close_times_apart() {
        let points: Vec<Point> = (0..2).map(|level| Point(vec![level])).collect();
        let population = individuals(&points, &[100.0, 103.0]);
        let mut rng = rng(5);
        let mut firsts = |weight| {
            let drawn = (0..1000).map(|_| probabilistic(&population, weight, &mut rng).unwrap());
            drawn.filter(|(first, _)| *first == 0).count()
        };
        // 103/203 and 4/5; the standard deviations are below 16.
        assert!(firsts(Weight::Inverse).abs_diff(507) < 65);
        assert!(firsts(Weight::AboveLeast).abs_diff(800) < 52);
    }

    /// Robert 2019, section III-B-3: "randomly divides the already tested parametrizations in two".
    #[test]
    fn robert2019_iii_b_3_a_tournament_divides_the_tested_in_two() {
        let points: Vec<Point> = (0..10).map(|level| Point(vec![level])).collect();
        let means: Vec<f64> = (1..=10).map(f64::from).collect();
        let population = individuals(&points, &means);
        let mut rng = rng(6);
        let mut last = 0;
        for _ in 0..400 {
            let (one, other) = tournament(&population, 0, &mut rng).unwrap();
            assert!(
                (one == 0) != (other == 0),
                "the best is in one half, and wins it"
            );
            last = last.max(one.max(other));
        }
        assert!(last <= 5, "a half has five: its best is at worst the sixth");
    }

    /// Robert 2020, section V-D: "a random walk"; robert2019, section III-B: "in every direction of
    /// the parametric space", each parameter up or down "by one unit".
    #[test]
    fn robert2020_v_d_a_mutation_walks_in_every_direction() {
        let space = grid(&[5, 5, 1]);
        let from = Point(vec![2, 2, 0]);
        let mut rng = rng(7);
        let mut reached = BTreeSet::new();
        for _ in 0..400 {
            let to = mutate(&space, &from, Mutation::Every, &mut rng);
            assert!(from.0.iter().zip(&to.0).all(|(a, b)| a.abs_diff(*b) <= 1));
            reached.insert(to);
        }
        assert_eq!(reached.len(), 8, "all around, and never where it was");
        let still = grid(&[1, 1]);
        let from = Point(vec![0, 0]);
        assert_eq!(mutate(&still, &from, Mutation::Every, &mut rng), from);
    }

    #[test]
    fn robert2020_v_c_a_crossover_cuts_at_every_place() {
        let (zeros, ones) = (Point(vec![0; 5]), Point(vec![1; 5]));
        let mut rng = rng(3);
        let mut single = BTreeSet::new();
        let mut double = BTreeSet::new();
        for _ in 0..500 {
            let (child, cuts) = cross(&zeros, &ones, Crossover::SinglePoint, &mut rng);
            assert_eq!(cuts.len(), 1);
            let expected: Vec<u32> = (0..5).map(|index| u32::from(index >= cuts[0])).collect();
            assert_eq!(child.0, expected);
            single.insert(cuts);
            let (child, cuts) = cross(&zeros, &ones, Crossover::NPoint { points: 2 }, &mut rng);
            let inside = |index: &usize| (cuts[0]..cuts[1]).contains(index);
            let expected: Vec<u32> = (0..5).map(|index| u32::from(inside(&index))).collect();
            assert_eq!(child.0, expected);
            double.insert(cuts);
        }
        let places: Vec<usize> = single.into_iter().flatten().collect();
        assert_eq!(places, [1, 2, 3, 4], "before the last parameter too");
        assert_eq!(double.len(), 6, "all pairs of four places");
        let many = Crossover::NPoint { points: 100 };
        let (child, cuts) = cross(&zeros, &ones, many, &mut rng);
        assert_eq!((child.0, cuts), (vec![0, 1, 0, 1, 0], vec![1, 2, 3, 4]));
        let (a, b) = (Point(vec![3]), Point(vec![8]));
        assert_eq!(cross(&a, &b, Crossover::SinglePoint, &mut rng), (a, vec![]));
    }

    #[test]
    fn mutation_is_one_step_inside_the_bounds() {
        let space = Space::new(vec![
            integers("a", 0, 4, 1),
            categories("b", 5),
            integers("c", 7, 7, 1),
        ])
        .unwrap();
        let mut rng = rng(4);
        let mut reached = BTreeSet::new();
        for round in 0..2000_u32 {
            let before = Point(vec![round % 5, round % 5, 0]);
            let mut after = before.clone();
            let index = step(&space, &mut after, &mut rng).unwrap();
            let changed: Vec<usize> = (0..3).filter(|i| before.0[*i] != after.0[*i]).collect();
            assert_eq!(changed, [index]);
            assert!(after.0[index] < 5);
            if index == 0 {
                assert_eq!(before.0[0].abs_diff(after.0[0]), 1);
            }
            reached.insert((index, before.0[index], after.0[index]));
        }
        // Of a: two directions but for the ends. Of b: any other category from any.
        let count = |parameter| {
            reached
                .iter()
                .filter(|(index, ..)| *index == parameter)
                .count()
        };
        assert_eq!((count(0), count(1), count(2)), (8, 20, 0));
        assert_eq!(step(&grid(&[1, 1]), &mut Point(vec![0, 0]), &mut rng), None);
    }
}
