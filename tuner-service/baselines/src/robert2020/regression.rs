//! Fitness regression (robert2020, section VI-B, after Branke, Schmidt and Schmeck 2001).

use super::settings::Regression;
use io_autotune_model::space::{Metric, Point, Space};
use io_autotune_search::surrogate::cholesky::{Cholesky, Symmetric};

/// The maximum number of neighbours: as many as a study of the paper tests, and more. The work
/// grows with the cube of their number.
const MOST_NEIGHBOURS: usize = 64;
/// A small ridge that keeps the normal equations definite (coordinates are about 1), and so prefers
/// small coefficients.
const RIDGE: f64 = 1e-8;

/// A tested point with its mean elapsed in seconds, or the estimate of it.
#[derive(Clone, Debug)]
pub(super) struct Individual<'a> {
    pub(super) point: &'a Point,
    pub(super) mean: f64,
}

/// The population with regressed means. A mean stays if its estimate is not a positive number.
pub(super) fn regressed<'a>(
    space: &Space,
    population: Vec<Individual<'a>>,
    kind: Regression,
    size: usize,
) -> Vec<Individual<'a>> {
    let metric = space.metric();
    population
        .iter()
        .map(|individual| {
            let neighbours = neighbourhood(&metric, &population, individual.point, size);
            let estimate = match kind {
                Regression::Weighted => weighted(&neighbours),
                Regression::Quadratic => quadratic(space, individual.point, &neighbours),
            };
            let is_time = |estimate: &f64| estimate.is_finite() && *estimate > 0.0;
            Individual {
                point: individual.point,
                mean: estimate.filter(is_time).unwrap_or(individual.mean),
            }
        })
        .collect()
}

pub(super) struct Neighbour<'a> {
    pub(super) point: &'a Point,
    pub(super) mean: f64,
    pub(super) distance: f64,
}

/// "The neighborhood of parametrization x defined as the floor(p n) closest to x according to the
/// Euclidean distance" (section VI-B) in shares of the ranges, nearest first, at least x itself.
/// `size` is floor(p n).
pub(super) fn neighbourhood<'a>(
    metric: &Metric,
    population: &[Individual<'a>],
    point: &Point,
    size: usize,
) -> Vec<Neighbour<'a>> {
    let mut all: Vec<Neighbour<'_>> = population
        .iter()
        .map(|individual| Neighbour {
            point: individual.point,
            mean: individual.mean,
            distance: metric.distance(individual.point, point),
        })
        .collect();
    all.sort_by(|a, b| {
        let near = a.distance.total_cmp(&b.distance);
        near.then_with(|| a.point.cmp(b.point))
    });
    all.truncate(size.clamp(1, MOST_NEIGHBOURS));
    all
}

/// Weighted average (section VI-B-a): `sum of mean(y) w(y) / sum of w(y)` with the tricube weight
/// `w(y) = (1 - (d(x, y) / max d)^3)^3`, 0 for the farthest neighbour.
pub(super) fn weighted(neighbours: &[Neighbour<'_>]) -> Option<f64> {
    let farthest = neighbours.last()?.distance;
    let weight = |neighbour: &Neighbour<'_>| {
        if farthest > 0.0 {
            (1.0 - (neighbour.distance / farthest).powi(3)).powi(3)
        } else {
            1.0
        }
    };
    let total: f64 = neighbours.iter().map(weight).sum();
    // Divided before the sum, against overflow.
    Some(
        neighbours
            .iter()
            .map(|neighbour| neighbour.mean * (weight(neighbour) / total))
            .sum(),
    )
}

/// Quadratic regression (section VI-B-b): the value at x of the least-squares polynomial of second
/// degree with products of two parameters.
///
/// With coordinates u relative to x this is the constant, from the dual of the normal equations:
/// `1' (K + r)^-1 y / 1' (K + r)^-1 1` with `K_ij = u_i u_j + (u_i u_j)^2` and a small ridge r.
/// With no more neighbours than coefficients it interpolates: the estimate is the mean at x. A
/// category has one coordinate per value.
pub(super) fn quadratic(space: &Space, point: &Point, neighbours: &[Neighbour<'_>]) -> Option<f64> {
    let farthest = neighbours.last()?.distance;
    if farthest <= 0.0 {
        return Some(neighbours[0].mean);
    }
    // The squares of the farthest neighbour's coordinates sum to about 1.
    let scale = 1.0 / (farthest * farthest);
    let ranges: Vec<Option<f64>> = space
        .parameters()
        .iter()
        .map(|parameter| {
            let steps = (parameter.levels().max(2) - 1) as f64;
            parameter.is_ordered().then_some(steps)
        })
        .collect();
    let product = |a: &Point, b: &Point| {
        let terms = ranges.iter().zip(&point.0).zip(a.0.iter().zip(&b.0));
        let sum: f64 = terms
            .map(|((range, here), (a, b))| {
                let here = *here;
                match range {
                    Some(range) => {
                        let offset = |level: u32| (f64::from(level) - f64::from(here)) / range;
                        offset(*a) * offset(*b)
                    }
                    None if *a == here || *b == here => 0.0,
                    None => 1.0 + f64::from(u8::from(a == b)),
                }
            })
            .sum();
        scale * sum / ranges.len() as f64
    };
    let kernel = Symmetric::from_fn(neighbours.len(), |row, column| {
        let product = product(neighbours[row].point, neighbours[column].point);
        let ridge = if row == column { RIDGE } else { 0.0 };
        product + product * product + ridge
    });
    let factor = Cholesky::new(kernel)?;
    let ones = factor.solve(&vec![1.0; neighbours.len()]);
    // Relative to the mean at x, which comes first, so that small differences stay exact.
    let here = neighbours[0].mean;
    let times: Vec<f64> = neighbours.iter().map(|one| one.mean - here).collect();
    let times = factor.solve(&times);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    Some(here + dot(&ones, &times) / dot(&ones, &ones))
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_autotune_model::space::Space;
    use io_autotune_search::testing::{categories, grid, integers};

    fn near<'a>(space: &Space, known: &'a [(Point, f64)], share: f64) -> Vec<Neighbour<'a>> {
        let population: Vec<Individual<'a>> = known
            .iter()
            .map(|(point, mean)| Individual { point, mean: *mean })
            .collect();
        let size = (share * known.len() as f64).floor() as usize;
        neighbourhood(&space.metric(), &population, &known[0].0, size)
    }

    fn line(times: &[f64]) -> Vec<(Point, f64)> {
        let points = (0..).map(|level| Point(vec![level]));
        points.zip(times.iter().copied()).collect()
    }

    #[test]
    fn robert2020_vi_b_a_neighbourhood_is_the_floor_of_its_share() {
        let space = grid(&[100]);
        let known = line(&[1.0; 50]);
        for (share, size) in [(0.01, 1), (0.05, 2), (0.1, 5), (0.5, 25), (1.0, 50)] {
            let neighbours = near(&space, &known, share);
            assert_eq!(neighbours.len(), size);
            assert_eq!(*neighbours[0].point, known[0].0);
            assert!(neighbours.is_sorted_by(|a, b| a.distance <= b.distance));
        }
    }

    #[test]
    fn robert2020_vi_b_the_weighted_average_by_hand() {
        let space = grid(&[5]);
        let known = line(&[10.0, 20.0, 40.0, 1000.0, 7.0]);
        // Distances 0, 1, 2, 3 of 3: weights 1, (26/27)^3, (19/27)^3, 0.
        let (one, two) = ((26.0_f64 / 27.0).powi(3), (19.0_f64 / 27.0).powi(3));
        let expected = (10.0 + 20.0 * one + 40.0 * two) / (1.0 + one + two);
        let estimate = weighted(&near(&space, &known, 0.8)).unwrap();
        assert!((estimate - expected).abs() < 1e-9, "{estimate} {expected}");
        assert_eq!(weighted(&near(&space, &known, 0.2)), Some(10.0));
    }

    #[test]
    fn robert2020_vi_b_a_polynomial_of_second_degree_is_found() {
        let space = Space::new(vec![integers("a", 0, 4, 1), integers("b", 0, 4, 1)]).unwrap();
        let surface = |a: f64, b: f64| 50.0 + 3.0 * a - 7.0 * b + a * a + 2.0 * b * b - 1.5 * a * b;
        // The centre first: it is the point that is estimated.
        let mut points: Vec<Point> = space.points(100).unwrap();
        points.swap(0, 12);
        let known: Vec<(Point, f64)> = points
            .into_iter()
            .map(|point| {
                let time = surface(f64::from(point.0[0]), f64::from(point.0[1]));
                (point, time)
            })
            .collect();
        let at_centre = surface(2.0, 2.0);
        let estimate = quadratic(&space, &known[0].0, &near(&space, &known, 1.0)).unwrap();
        assert!(
            (estimate - at_centre).abs() < 1e-3,
            "{estimate} {at_centre}"
        );
        // An outlier at the centre moves the estimate by its leverage. Orthogonal polynomials of 5
        // levels (2, -1, -2, -1, 2 in the second degree): 1/25 + 2 * (4 / 14) / 5 = 0.154286.
        let mut off = known.clone();
        off[0].1 += 100.0;
        let moved = quadratic(&space, &off[0].0, &near(&space, &off, 1.0)).unwrap() - estimate;
        assert!((moved - 15.4286).abs() < 0.001, "{moved}");
    }

    #[test]
    fn fewer_neighbours_than_coefficients_leave_the_mean() {
        let space = Space::new(vec![integers("a", 0, 9, 1), categories("b", 4)]).unwrap();
        let known: Vec<(Point, f64)> = [(0, 0, 10.0), (1, 1, 90.0), (3, 2, 30.0)]
            .map(|(a, b, time)| (Point(vec![a, b]), time))
            .to_vec();
        let estimate = quadratic(&space, &known[0].0, &near(&space, &known, 1.0)).unwrap();
        assert!((estimate - 10.0).abs() < 1e-3, "{estimate}");
    }

    #[test]
    fn what_cannot_be_computed_with_leaves_the_mean() {
        let space = grid(&[5]);
        let known = line(&[f64::MAX, f64::MIN_POSITIVE, f64::MAX, 1.0, f64::MAX]);
        for kind in [Regression::Weighted, Regression::Quadratic] {
            let population: Vec<Individual<'_>> = known
                .iter()
                .map(|(point, mean)| Individual { point, mean: *mean })
                .collect();
            for estimate in regressed(&space, population, kind, 5) {
                assert!(estimate.mean.is_finite() && estimate.mean > 0.0);
            }
        }
    }
}
