//! History and runs in flight, seen as points of the space.

use std::collections::BTreeMap;

use crate::history::{History, Moments, Pending, Role};
use crate::space::{Point, Space};

/// What is known of one point.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Moments of the elapsed seconds of the runs that count.
    pub(crate) elapsed: Moments,
    /// How many runs failed.
    pub(crate) failed: u64,
    /// The ordinal of the first run; `i64::MAX` if none has ended.
    pub(crate) first_ordinal: i64,
    /// How many runs are in flight, for whatever reason.
    pub(crate) in_flight: u64,
    /// How many of them are search runs.
    pub(crate) search_in_flight: u64,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            elapsed: Moments::default(),
            failed: 0,
            first_ordinal: i64::MAX,
            in_flight: 0,
            search_in_flight: 0,
        }
    }
}

impl Known {
    /// How many runs count.
    pub(crate) fn count(&self) -> u64 {
        self.elapsed.count
    }

    /// The mean elapsed, seconds (the paper's estimator of f, robert2020 section VI-A); none
    /// without a run that counts.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.elapsed.count > 0).then_some(self.elapsed.mean)
    }

    /// Runs that count, that failed, and that are in flight.
    pub(crate) fn runs(&self) -> u64 {
        self.elapsed
            .count
            .saturating_add(self.failed)
            .saturating_add(self.in_flight)
    }

    /// Whether jobs fail under it more often than not, twice at least: it is given up.
    pub(crate) fn given_up(&self) -> bool {
        self.failed >= 2 && self.failed > self.elapsed.count
    }
}

/// An epoch's history and runs in flight by point.
///
/// Entries whose parametrization does not fit the space (any more) are left out, and so are
/// moments that no series of positive times can have. The order of the history does not matter.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) space: &'a Space,
    pub(crate) default: Point,
    known: BTreeMap<Point, Known>,
    exploring: u64,
}

impl<'a> View<'a> {
    pub(crate) fn new(space: &'a Space, history: &History, pending: &[Pending]) -> Self {
        let mut view = View {
            space,
            default: space.default_point(),
            known: BTreeMap::new(),
            exploring: 0,
        };
        for tested in &history.tested {
            let Ok(point) = space.validate(&tested.parametrization) else {
                continue;
            };
            let known = view.known.entry(point).or_default();
            let mut merged = known.elapsed;
            merged.merge(&tested.elapsed);
            if sound(&tested.elapsed) && sound(&merged) {
                known.elapsed = merged;
            }
            known.failed = known.failed.saturating_add(tested.failed);
            known.first_ordinal = known.first_ordinal.min(tested.first_ordinal);
        }
        for run in pending {
            if run.role.explores() {
                view.exploring = view.exploring.saturating_add(run.count);
            }
            if let Ok(point) = space.validate(&run.parametrization) {
                let known = view.known.entry(point).or_default();
                known.in_flight = known.in_flight.saturating_add(run.count);
                if run.role == Role::Search {
                    known.search_in_flight = known.search_in_flight.saturating_add(run.count);
                }
            }
        }
        view
    }

    /// What is known of a point; none if it never ran.
    pub(crate) fn get(&self, point: &Point) -> Option<&Known> {
        self.known.get(point)
    }

    /// What is known of the default.
    pub(crate) fn default_known(&self) -> Known {
        self.get(&self.default).cloned().unwrap_or_default()
    }

    /// Every point that ever ran or is in flight, in the order of the points.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Point, &Known)> {
        self.known.iter()
    }

    /// How many runs in flight explore.
    pub(crate) fn exploring(&self) -> u64 {
        self.exploring
    }

    /// The point with the lowest mean among those that rest on at least `runs` runs and are not
    /// given up. The default is never given up: it is what the job would have had without us. At
    /// equal means the default wins, then the point that is known better.
    pub(crate) fn lowest(&self, runs: u64) -> Option<(&Point, &Known, f64)> {
        self.iter()
            .filter(|(point, known)| {
                known.count() >= runs && (**point == self.default || !known.given_up())
            })
            .filter_map(|(point, known)| Some((point, known, known.mean()?)))
            .min_by(|(point, known, mean), (other, others, others_mean)| {
                mean.total_cmp(others_mean)
                    .then_with(|| (**point != self.default).cmp(&(**other != self.default)))
                    .then_with(|| others.count().cmp(&known.count()))
                    .then_with(|| point.cmp(other))
            })
    }
}

/// Whether these can be the moments of positive times.
fn sound(moments: &Moments) -> bool {
    moments.count > 0
        && moments.mean.is_finite()
        && moments.mean > 0.0
        && moments.m2.is_finite()
        && moments.m2 >= 0.0
}
