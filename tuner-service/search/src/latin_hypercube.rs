//! The Latin hypercube that an epoch starts with: a pure function of space, size and seed.
//!
//! Every point has its own value in every dimension (robert2020, section V-A, after Fang, Li and
//! Sudjianto 2005: "non-collapsing"). A parameter with fewer levels than points has each level
//! equally often, or once more (the paper's table III). Several designs are drawn, and the maximin
//! one is taken: the one whose two nearest points are farthest apart (Morris and Mitchell 1995).

use std::collections::{BTreeSet, HashMap};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::checks::MAX_DESIGN_POINTS;
use io_autotune_model::space::{Point, Space, levels_of};

const CANDIDATES: usize = 64;
/// The least number of designs that are drawn, also if they are large.
const FEWEST_CANDIDATES: usize = 8;
/// The approximate largest number of distances between values that are computed over all
/// candidates.
const WORK: usize = 2_000_000;
/// The number of swaps per point with which a candidate is repaired.
const SWAPS_PER_POINT: usize = 40;
/// The number of draws to replace a point that may not run.
const REPLACEMENTS: u32 = 16;

/// The design, the nearest point to the default first, without repetition. It has `wanted` points;
/// a space of at most one point more is taken whole, without the default if that is one too many.
/// In a larger space the default is left out if balance allows. Conditions and constraints may
/// leave fewer points.
pub fn latin_hypercube(space: &Space, wanted: u32, seed: u64) -> Vec<Point> {
    let wanted = wanted.min(MAX_DESIGN_POINTS) as usize;
    let default = space.default_point();
    let mut points = match space.points(wanted + 1) {
        Some(mut points) => {
            if points.len() > wanted {
                points.retain(|point| *point != default);
            }
            points
        }
        None => best_candidate(space, wanted, &default, seed),
    };
    space.sort_nearest_first(&mut points);
    points.dedup();
    points
}

fn best_candidate(space: &Space, wanted: usize, default: &Point, seed: u64) -> Vec<Point> {
    // Stream 0 is the design's; suggestions use the other streams.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let work = wanted * wanted * space.parameters().len();
    let candidates = if space.is_whole_grid() {
        (WORK / work.max(1)).clamp(FEWEST_CANDIDATES, CANDIDATES)
    } else {
        // Most of the work is the search for admitted points, so few candidates are drawn.
        FEWEST_CANDIDATES
    };
    let mut best: Option<(usize, f64, Vec<Point>)> = None;
    for _ in 0..candidates {
        let (points, faults) = candidate(space, wanted, default, &mut rng);
        let least = match &best {
            Some((fewest, _, _)) if faults > *fewest => continue,
            Some((fewest, widest, _)) if faults == *fewest => *widest,
            _ => f64::NEG_INFINITY,
        };
        if let Some(spread) = spread(space, &points, least) {
            best = Some((faults, spread, points));
        }
    }
    best.map(|(_, _, points)| points).unwrap_or_default()
}

/// The smallest distance between two points; none if it is not above `least`.
fn spread(space: &Space, points: &[Point], least: f64) -> Option<f64> {
    let metric = space.metric();
    let mut smallest = f64::INFINITY;
    for (index, a) in points.iter().enumerate() {
        for b in &points[index + 1..] {
            smallest = smallest.min(metric.distance(a, b));
            if smallest <= least {
                return None;
            }
        }
    }
    (smallest > least).then_some(smallest)
}

fn candidate(
    space: &Space,
    wanted: usize,
    default: &Point,
    rng: &mut ChaCha8Rng,
) -> (Vec<Point>, usize) {
    let mut points = vec![Point(Vec::with_capacity(space.parameters().len())); wanted];
    for parameter in space.parameters() {
        let column = column(levels_of(parameter), wanted, rng);
        for (point, level) in points.iter_mut().zip(column) {
            point.0.push(level);
        }
    }
    let faults = cure(space, &mut points, default, rng);
    if space.is_whole_grid() {
        return (points, faults);
    }
    let points = admitted(space, points, default, rng);
    let faults = wanted - points.len();
    (points, faults)
}

/// Replaces points that may not run by points near them or, failing that, by random ones. Points
/// without a replacement are left out.
fn admitted(
    space: &Space,
    points: Vec<Point>,
    default: &Point,
    rng: &mut ChaCha8Rng,
) -> Vec<Point> {
    let mut taken = BTreeSet::from([default.clone()]);
    let mut kept = Vec::with_capacity(points.len());
    for point in points {
        let canonical = space.canonical(point);
        let near = space.approach(default, &canonical, rng);
        let new = |point: &Point| !taken.contains(point);
        let found = Some(near)
            .filter(new)
            .or_else(|| (0..REPLACEMENTS).map(|_| space.draw(rng)).find(new));
        if let Some(point) = found {
            taken.insert(point.clone());
            kept.push(point);
        }
    }
    kept
}

fn column(levels: u32, wanted: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let (count, points) = (u64::from(levels), wanted as u64);
    let mut column: Vec<u32> = if count >= points {
        // Each point has its own stratum, so no two points share a level.
        (0..points)
            .map(|stratum| {
                let (low, high) = (stratum * count / points, (stratum + 1) * count / points);
                rng.random_range(low as u32..high as u32)
            })
            .collect()
    } else {
        let mut extra: Vec<u32> = (0..levels).collect();
        extra.shuffle(rng);
        extra.truncate((points % count) as usize);
        let whole = (0..levels).flat_map(|level| (0..points / count).map(move |_| level));
        whole.chain(extra).collect()
    };
    column.shuffle(rng);
    column
}

/// Removes repeated points and the default by swaps of single values, which keep every column. A
/// swap that is no worse is kept, so that the repair leaves plateaus. Returns the number of faults
/// that are left.
fn cure(space: &Space, points: &mut [Point], default: &Point, rng: &mut ChaCha8Rng) -> usize {
    // Points are identified by grid index. In a huge grid the index may wrap, which only causes
    // swaps that were not needed.
    let strides: Vec<u128> = space
        .parameters()
        .iter()
        .scan(1_u128, |size, parameter| {
            let stride = *size;
            *size = size.wrapping_mul(u128::from(levels_of(parameter)));
            Some(stride)
        })
        .collect();
    let place = |point: &Point| {
        let places = point.0.iter().zip(&strides);
        places.fold(0_u128, |sum, (level, stride)| {
            sum.wrapping_add(u128::from(*level).wrapping_mul(*stride))
        })
    };
    let default_place = place(default);
    let mut places: Vec<u128> = points.iter().map(place).collect();
    let mut counts: HashMap<u128, usize> = HashMap::new();
    for place in &places {
        *counts.entry(*place).or_default() += 1;
    }
    let total = points.len();
    let faults = |counts: &HashMap<u128, usize>| {
        total - counts.len() + usize::from(counts.contains_key(&default_place))
    };
    let mut current = faults(&counts);
    let dimensions = default.0.len();
    if dimensions < 2 || total < 2 {
        return current;
    }
    for _ in 0..SWAPS_PER_POINT * total {
        if current == 0 {
            break;
        }
        let faulty = |place: &u128| *place == default_place || counts.get(place) != Some(&1);
        let Some(one) = places.iter().position(faulty) else {
            break;
        };
        let other = (one + rng.random_range(1..total)) % total;
        let dimension = rng.random_range(0..dimensions);
        let mut swap = |points: &mut [Point], counts: &mut HashMap<u128, usize>| {
            for index in [one, other] {
                remove(counts, places[index]);
            }
            let (a, b) = (points[one].0[dimension], points[other].0[dimension]);
            (points[one].0[dimension], points[other].0[dimension]) = (b, a);
            for index in [one, other] {
                places[index] = place(&points[index]);
                *counts.entry(places[index]).or_default() += 1;
            }
        };
        swap(points, &mut counts);
        let after = faults(&counts);
        if after <= current {
            current = after;
        } else {
            swap(points, &mut counts);
        }
    }
    current
}

fn remove(counts: &mut HashMap<u128, usize>, place: u128) {
    if let Some(count) = counts.get_mut(&place) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{categories, grid, integers};
    use proptest::prelude::*;

    fn appearances(points: &[Point], dimension: usize, levels: u32) -> Vec<usize> {
        (0..levels)
            .map(|level| {
                points
                    .iter()
                    .filter(|point| point.0[dimension] == level)
                    .count()
            })
            .collect()
    }

    fn assert_latin(space: &Space, points: &[Point], wanted: usize) {
        assert_eq!(points.len(), wanted);
        for (dimension, parameter) in space.parameters().iter().enumerate() {
            let levels = levels_of(parameter);
            if levels as usize >= wanted {
                let mut seen: Vec<u32> = points.iter().map(|point| point.0[dimension]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), wanted, "{} collapses", parameter.name);
                assert!(seen.iter().all(|level| *level < levels));
            } else {
                let (few, levels_count) = (wanted / levels as usize, levels as usize);
                let more = few + usize::from(!wanted.is_multiple_of(levels_count));
                for count in appearances(points, dimension, levels) {
                    assert!(
                        (few..=more).contains(&count),
                        "{} unbalanced",
                        parameter.name
                    );
                }
            }
        }
    }

    #[test]
    fn robert2020_v_a_table_three_has_each_level_equally_often() {
        let space = grid(&[6, 6, 3, 4]);
        for seed in 0..50 {
            let points = latin_hypercube(&space, 15, seed);
            assert_latin(&space, &points, 15);
            assert_eq!(appearances(&points, 2, 3), [5, 5, 5]);
            assert!(!points.contains(&space.default_point()));
            let far: Vec<f64> = points
                .iter()
                .map(|point| space.distance(point, &space.default_point()))
                .collect();
            assert!(far.is_sorted(), "nearest to the default first");
        }
        assert_latin(
            &grid(&[6, 6, 3, 5]),
            &latin_hypercube(&grid(&[6, 6, 3, 5]), 15, 1),
            15,
        );
    }

    #[test]
    fn robert2020_v_a_no_value_is_taken_twice() {
        let space = Space::new(vec![
            integers("a", 0, 1_000_000, 1),
            integers("b", 1, 15, 1),
            categories("c", 30),
            integers("d", 0, 15, 1),
        ])
        .unwrap();
        let points = latin_hypercube(&space, 15, 3);
        assert_latin(&space, &points, 15);
        // The column is stratified: one point in each fifteenth of the range.
        let mut strata: Vec<u32> = points.iter().map(|point| point.0[0] / 66_667).collect();
        strata.sort_unstable();
        assert_eq!(strata, (0..15).collect::<Vec<_>>());
    }

    #[test]
    fn a_small_space_is_run_whole() {
        let space = grid(&[2, 3, 2]);
        let points = latin_hypercube(&space, 15, 0);
        assert_eq!(points.len(), 12);
        assert_eq!(points[0], space.default_point());
        assert_eq!(latin_hypercube(&grid(&[1]), 15, 0).len(), 1);
        let space = grid(&[4, 4]);
        let points = latin_hypercube(&space, 15, 0);
        assert_eq!(points.len(), 15);
        assert!(!points.contains(&space.default_point()), "all the others");
    }

    #[test]
    fn spread_out_more_than_one_draw() {
        let space = grid(&[20, 20, 20]);
        let smallest = |points: &[Point]| spread(&space, points, f64::NEG_INFINITY).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let single: f64 = (0..50)
            .map(|_| {
                let (points, _) = candidate(&space, 15, &space.default_point(), &mut rng);
                smallest(&points)
            })
            .sum();
        let chosen: f64 = (0..50)
            .map(|seed| smallest(&latin_hypercube(&space, 15, seed)))
            .sum();
        assert!(chosen > 1.3 * single, "{chosen} against {single}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn balanced_and_distinct(
            levels in prop::collection::vec(1_u32..12, 1..6),
            wanted in 2_u32..40,
            seed: u64,
        ) {
            let space = grid(&levels);
            let points = latin_hypercube(&space, wanted, seed);
            prop_assert_eq!(&points, &latin_hypercube(&space, wanted, seed));
            let mut distinct = points.clone();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), points.len());
            if space.size() <= u128::from(wanted) {
                prop_assert_eq!(points.len() as u128, space.size());
            } else if space.size() >= 2 * u128::from(wanted) {
                assert_latin(&space, &points, wanted as usize);
            }
        }
    }
}
