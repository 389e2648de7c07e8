//! The metrics of a replayed study, one module per source.
//!
//! Except for computing times they use the table's means, not the drawn times: they judge the
//! choice, not the noise. So does table VI of the 2020 paper: its random sampler's RegCost of 20.2
//! s fits draws from the averaged times (standard deviation 34.6 s), not from raw ones (49.5 s).

mod cao2018;
mod harm;
mod paid;
mod robert2019;
mod robert2020;
mod said;

use crate::dataset::Table;
use crate::replay::{Run, Trajectory};

pub use cao2018::{NearOptimal, near_optimal};
pub use paid::AFTER;
pub use robert2020::{Scores, Weights, scores, weight};
pub use said::{SAYS, SAYS_AFTER, SAYS_WRONGLY};

/// A replayed study and its table.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    table: &'a Table,
    trajectory: &'a Trajectory,
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// The metric's name; a paper's own if there is one.
    pub name: &'static str,
    /// The unit; empty for a bare number.
    pub unit: &'static str,
    /// The meaning, for people.
    pub meaning: &'static str,
    /// The value; none if the study has none. Averaged over studies.
    pub of: fn(&Course<'_>) -> Option<f64>,
}

/// The metrics of one source.
#[derive(Debug)]
pub struct Group {
    /// The group's name in files.
    pub name: &'static str,
    /// The source, for people.
    pub title: &'static str,
    /// The metrics.
    pub metrics: &'static [Metric],
}

/// Every metric, by source.
pub const GROUPS: [&Group; 7] = [
    &harm::QUALITY,
    &harm::HARM,
    &paid::PAID,
    &said::SAID,
    &robert2020::TABLE_II,
    &robert2019::TABLE_1,
    &cao2018::FIGURE_5,
];

/// The metrics compared over tables, in times over the true best: the recommendation.
pub const RECOMMENDED: &str = "Recommended";
/// The average run, see [`RECOMMENDED`].
pub const AVERAGE_RUN: &str = "AverageRun";
/// The cost of slow parametrizations to a study.
pub const LOSS: &str = "Loss";
/// The slowest parametrization of a study.
pub const WORST: &str = "Worst";

impl<'a> Course<'a> {
    /// A study on its table.
    pub fn new(table: &'a Table, trajectory: &'a Trajectory) -> Self {
        Course { table, trajectory }
    }

    fn runs(&self) -> &'a [Run] {
        &self.trajectory.runs
    }

    fn truth(&self, place: usize) -> f64 {
        self.table.configurations()[place].truth
    }

    /// The mean seconds of each run's parametrization, without runs outside the table.
    fn truths(&self) -> impl Iterator<Item = f64> + Clone + 'a {
        let configurations = self.table.configurations();
        let places = self.runs().iter().filter_map(|run| run.place);
        places.map(|place| configurations[place].truth)
    }

    fn best(&self) -> f64 {
        self.table.best().truth
    }

    fn default(&self) -> f64 {
        self.table.default().truth
    }

    fn recommended(&self) -> f64 {
        self.truth(self.trajectory.recommended)
    }

    fn succeeded(&self) -> bool {
        self.recommended() <= self.best()
    }

    /// The number, from 1, of the first run that is as fast as `truth`.
    fn first_run_within(&self, truth: f64) -> Option<f64> {
        let reached = |run: &Run| run.place.is_some_and(|place| self.truth(place) <= truth);
        Some(self.runs().iter().position(reached)? as f64 + 1.0)
    }

    fn mean(&self, figure: impl Fn(f64) -> f64) -> Option<f64> {
        let (count, sum) = self.truths().fold((0.0, 0.0), |(count, sum), truth| {
            (count + 1.0, sum + figure(truth))
        });
        (count > 0.0).then(|| sum / count)
    }

    /// How much slower each run was than the previous one, seconds.
    fn regressions(&self) -> impl Iterator<Item = f64> + 'a {
        let truths = self.truths();
        let next = truths.clone().skip(1);
        truths
            .zip(next)
            .map(|(before, after)| (after - before).max(0.0))
    }

    /// How much slower each run was than the fastest one before it, seconds.
    fn above_best_so_far(&self) -> impl Iterator<Item = f64> + 'a {
        let mut best = f64::INFINITY;
        self.truths().map(move |truth| {
            let above = (truth - best).max(0.0);
            best = best.min(truth);
            above
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use io_autotune_engine::Role;
    use io_autotune_optimize::SpaceFile;

    use super::*;

    /// Times 100, 110, 120, 200 s at places 0 to 3; the default is place 2.
    pub(crate) fn table() -> Table {
        let space = r#"{"parameters": [{"name": "a", "kind": "int", "values": [0, 1, 2, 3]}],
                        "default": {"a": 2}}"#;
        let csv = "a,time\n0,90\n0,110\n1,110\n2,120\n3,200\n";
        let file = SpaceFile::parse(space, Path::new("t.json")).unwrap();
        Table::parse(file, csv, Path::new("t.csv")).unwrap()
    }

    /// Runs at these places one after the other, 10 s each; those without a place failed.
    pub(crate) fn trajectory(places: &[Option<usize>], recommended: usize) -> Trajectory {
        let runs = places.iter().enumerate().map(|(nth, place)| Run {
            place: *place,
            role: Role::Search,
            start: 10.0 * nth as f64,
            elapsed: 10.0,
        });
        Trajectory {
            runs: runs.collect(),
            recommended,
            said: None,
            expected_loss: 0.0,
            computing: 0.5,
        }
    }

    pub(crate) fn measured(name: &str, places: &[usize], recommended: usize) -> Option<f64> {
        let places: Vec<Option<usize>> = places.iter().map(|place| Some(*place)).collect();
        let (table, trajectory) = (table(), trajectory(&places, recommended));
        let mut metrics = GROUPS.iter().flat_map(|group| group.metrics);
        let metric = metrics.find(|metric| metric.name == name).unwrap();
        (metric.of)(&Course::new(&table, &trajectory))
    }

    #[test]
    fn names_are_distinct_and_every_metric_stands_a_study_without_runs() {
        let (table, trajectory) = (table(), trajectory(&[None], 2));
        let course = Course::new(&table, &trajectory);
        let mut names = std::collections::BTreeSet::new();
        for group in GROUPS {
            for metric in group.metrics {
                assert!(names.insert(metric.name), "{}", metric.name);
                let figure = (metric.of)(&course);
                assert!(figure.is_none_or(f64::is_finite), "{}", metric.name);
            }
        }
        assert!(names.contains(RECOMMENDED) && names.contains(AVERAGE_RUN));
    }
}
