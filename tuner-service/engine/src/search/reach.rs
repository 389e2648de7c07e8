//! Points within reach of harmless runs: a study explores outwards from what did no harm.
//!
//! A surrogate predicts an average time for unknown regions, however bad they are. So a value that
//! no harmless run has had is tried alone, and one step beyond the known values; where the first
//! such run was terrible, exploring in that direction ends (Y. Sui, A. Gotovos, J. Burdick, A.
//! Krause, "Safe exploration for optimization with Gaussian processes", 2015, who grow a safe set
//! in the same way).

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_model::space::{Point, Space, levels_of};
use io_autotune_search::history::by_point::View;
use io_autotune_search::math::Portable;

/// The step of an ordered parameter as a share of its range; at least one level.
const STEP: f64 = 0.25;

/// The values of each parameter that harmless runs have had.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    space: &'a Space,
    harmless: Vec<BTreeSet<u32>>,
    /// New values under which a run was terrible, as places and levels of parameters.
    terrible: BTreeSet<(usize, u32)>,
}

impl<'a> Reach<'a> {
    /// Collects the values by a view. A point is terrible if its mean elapsed exceeds `exp(most)`
    /// seconds, otherwise harmless. The default is always harmless.
    pub(crate) fn new(view: &View<'a>, most: f64) -> Self {
        let mut reach = Reach {
            space: view.space,
            harmless: view
                .default
                .0
                .iter()
                .map(|l| BTreeSet::from([*l]))
                .collect(),
            terrible: BTreeSet::new(),
        };
        let (mut terrible, mut harmless) = (Vec::new(), Vec::new());
        for (point, known) in view.iter() {
            if let Some(mean) = known.mean() {
                let harms = mean.logarithm() > most;
                if harms { &mut terrible } else { &mut harmless }.push(point);
            }
        }
        for point in harmless {
            for (known, level) in reach.harmless.iter_mut().zip(&point.0) {
                known.insert(*level);
            }
        }
        for point in terrible {
            // With several new values it is not known which is the cause.
            if let [parameter] = reach.new_values(point)[..] {
                reach.terrible.insert((parameter, point.0[parameter]));
            }
        }
        reach
    }

    /// The parameters whose value no harmless run has had; for an ordered parameter, whose value is
    /// outside the range of harmless ones.
    fn new_values(&self, point: &Point) -> Vec<usize> {
        (0..point.0.len())
            .filter(|parameter| self.beyond(*parameter, point.0[*parameter]) != 0)
            .collect()
    }

    /// Returns true if a point has at most one new value, one step away.
    pub(crate) fn contains(&self, point: &Point) -> bool {
        let new_values = self.new_values(point);
        new_values.len() <= 1 && self.are_near(point, &new_values)
    }

    /// Keeps the points within reach. If constraints bind parameters so that none changes alone,
    /// those with the fewest new values are kept.
    pub(crate) fn retain<T>(&self, points: &mut BTreeMap<Point, T>) {
        let counts = points.keys().map(|point| self.new_values(point).len());
        let fewest = counts.filter(|count| *count > 0).min().unwrap_or(0);
        points.retain(|point, _| {
            let new_values = self.new_values(point);
            new_values.len() <= fewest && self.are_near(point, &new_values)
        });
    }

    /// Returns true if each of these new values is one step away, and not in a direction that was
    /// terrible.
    fn are_near(&self, point: &Point, new_values: &[usize]) -> bool {
        new_values.iter().all(|parameter| {
            let beyond = self.beyond(*parameter, point.0[*parameter]);
            let range = f64::from(levels_of(&self.space.parameters()[*parameter]) - 1);
            let step = (STEP * range).max(1.0);
            let ends = |terrible: i64| {
                terrible.signum() == beyond.signum() && terrible.abs() <= beyond.abs()
            };
            let mut terrible = self.terrible.iter().filter(|(of, _)| of == parameter);
            match self.space.parameters()[*parameter].is_ordered() {
                true => {
                    beyond.unsigned_abs() as f64 <= step
                        && !terrible.any(|(_, level)| ends(self.beyond(*parameter, *level)))
                }
                false => !terrible.any(|(_, level)| *level == point.0[*parameter]),
            }
        })
    }

    /// The number of levels by which a value lies beyond the harmless ones; 1 for a new category.
    fn beyond(&self, parameter: usize, level: u32) -> i64 {
        let harmless = &self.harmless[parameter];
        if !self.space.parameters()[parameter].is_ordered() {
            return i64::from(!harmless.contains(&level));
        }
        let (low, high) = (harmless.first(), harmless.last());
        let above = high.map_or(0, |high| i64::from(level) - i64::from(*high));
        let below = low.map_or(0, |low| i64::from(level) - i64::from(*low));
        above.max(0) + below.min(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{categories, history, integers, tested};
    use io_autotune_search::history::Tested;

    fn space() -> Space {
        Space::new(vec![
            integers("size", 0, 15, 1),
            categories("mode", 3),
            integers("threads", 0, 3, 1),
        ])
        .unwrap()
    }

    fn reached(space: &Space, entries: Vec<Tested>, point: [u32; 3]) -> bool {
        let history = history(entries, 0, 0);
        let view = View::new(space, &history, &[]);
        let reach = Reach::new(&view, 200_f64.logarithm());
        reach.contains(&Point(point.to_vec()))
    }

    #[test]
    fn one_value_is_new_and_a_step_away() {
        let space = space();
        let default = space.default_point().0;
        assert_eq!(default, [0, 0, 0]);
        for (point, expected) in [
            ([0, 0, 0], true),
            ([3, 0, 0], true),
            ([4, 0, 0], false),
            ([0, 2, 0], true),
            ([0, 0, 1], true),
            ([0, 0, 2], false),
            ([1, 1, 0], false),
        ] {
            assert_eq!(reached(&space, Vec::new(), point), expected, "{point:?}");
        }
        let harmless = || vec![tested(&space, &[4, 1, 0], &[150.0], 0)];
        assert!(reached(&space, harmless(), [7, 1, 0]));
        assert!(reached(&space, harmless(), [3, 0, 1]));
        assert!(!reached(&space, harmless(), [8, 2, 0]));
    }

    #[test]
    fn a_direction_that_was_terrible_ends() {
        let space = space();
        let terrible = || vec![tested(&space, &[3, 0, 0], &[5000.0], 0)];
        assert!(reached(&space, terrible(), [2, 0, 0]));
        assert!(!reached(&space, terrible(), [3, 0, 0]));
        assert!(!reached(&space, terrible(), [4, 0, 0]));
        assert!(reached(&space, terrible(), [0, 0, 1]));
        let category = vec![tested(&space, &[0, 2, 0], &[5000.0], 0)];
        assert!(!reached(&space, category, [0, 2, 0]));
    }
}
