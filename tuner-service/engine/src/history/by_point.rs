//! History and runs in flight, seen as points of the space.

use crate::math::Portable;
use std::collections::BTreeMap;

use crate::history::censoring::with_bounds;
use crate::history::quarantine::{Ends, Quarantine, Quarantined};
use crate::history::{History, Moments, Pending, Role};
use crate::space::{Point, Space};

/// The fewest runs that a recommendation rests on: one lucky run recommends nothing.
pub(crate) const MIN_RUNS: u64 = 2;

/// What is known of one point.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Moments of the elapsed seconds of the runs that count.
    pub(crate) elapsed: Moments,
    /// The natural logarithms of the latest runs' elapsed seconds.
    logs: Vec<f64>,
    /// The places of the latest runs in the epoch.
    ordinals: Vec<i64>,
    /// After how many seconds runs were cut short by their time limit, the longest first.
    bounds: Vec<f64>,
    /// The mean elapsed, with the bounds.
    mean: Option<f64>,
    /// Moments of the natural logarithms of measures, by name.
    pub(crate) measures: BTreeMap<String, Moments>,
    /// How many runs failed.
    pub(crate) failed: u64,
    /// How many of them ran out of memory.
    out_of_memory: u64,
    /// Why it is quarantined, if it is.
    pub(crate) quarantine: Option<Quarantine>,
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
            logs: Vec::new(),
            ordinals: Vec::new(),
            bounds: Vec::new(),
            mean: None,
            measures: BTreeMap::new(),
            failed: 0,
            out_of_memory: 0,
            quarantine: None,
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

    /// The natural logarithms of the latest runs' elapsed seconds, ascending.
    pub(crate) fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// How many runs were cut short by their time limit, as far as the history keeps them.
    pub(crate) fn censored(&self) -> u64 {
        self.bounds.len() as u64
    }

    /// The mean elapsed, seconds (the paper's estimator of f, robert2020 section VI-A), raised by
    /// the runs that were cut short. Where all were, the longest bound, if that exceeds the mean of
    /// the default: the parametrization is slower, whatever it takes. None where nothing is known.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// By how much runs that were cut short raise the logarithm of the mean; asked where runs count.
    pub(crate) fn raised(&self) -> f64 {
        let ratio = self.mean.map(|mean| mean / self.elapsed.mean);
        ratio.map_or(0.0, |ratio| ratio.logarithm().max(0.0))
    }

    /// Runs that count, that were cut short, that failed, and that are in flight.
    pub(crate) fn runs(&self) -> u64 {
        self.elapsed
            .count
            .saturating_add(self.censored())
            .saturating_add(self.failed)
            .saturating_add(self.in_flight)
    }

    /// Whether it is not run any more, because jobs fail under it; the default never is.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.is_some()
    }

    /// Whether it may be recommended at all.
    pub(crate) fn is_eligible(&self) -> bool {
        self.count() > 0 && !self.is_quarantined()
    }

    /// How its runs ended.
    fn ends(&self) -> Ends {
        Ends {
            counted: self.elapsed.count,
            failed: self.failed,
            cut_short: self.censored(),
            out_of_memory: self.out_of_memory,
        }
    }

    /// Estimates the mean, once all that is known has been taken in.
    fn estimate(&mut self, default: Option<f64>) {
        self.mean = if self.elapsed.count > 0 {
            let Moments { count, mean, .. } = self.elapsed;
            Some(with_bounds(count, mean, &self.bounds))
        } else {
            let longest = self.bounds.first().copied();
            longest.filter(|bound| default.is_some_and(|mean| *bound > mean))
        };
    }
}

/// An epoch's history and runs in flight by point.
///
/// Entries whose parametrization does not fit the space (any more) are left out, and so are
/// moments and bounds that no series of positive times can have. The order of the history does not matter.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) space: &'a Space,
    pub(crate) default: Point,
    known: BTreeMap<Point, Known>,
    exploring: u64,
    chosen: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(space: &'a Space, history: &History, pending: &[Pending]) -> Self {
        let mut view = View {
            space,
            default: space.default_point(),
            known: BTreeMap::new(),
            exploring: 0,
            chosen: history.tally.settled > 0,
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
            let logs = tested.recent.iter().map(|run| run.elapsed.logarithm());
            known.logs.extend(logs.filter(|log| log.is_finite()));
            let ordinals = tested.recent.iter().map(|run| run.ordinal);
            known.ordinals.extend(ordinals);
            let bounds = tested.censored.iter().map(|run| run.elapsed);
            known
                .bounds
                .extend(bounds.filter(|bound| bound.is_finite() && *bound > 0.0));
            for (name, moments) in &tested.measures {
                if sound_logs(moments) {
                    known
                        .measures
                        .entry(name.clone())
                        .or_default()
                        .merge(moments);
                }
            }
            known.failed = known.failed.saturating_add(tested.failed);
            known.out_of_memory = known.out_of_memory.saturating_add(tested.out_of_memory);
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
        view.estimate();
        view
    }

    fn estimate(&mut self) {
        for known in self.known.values_mut() {
            known.bounds.sort_by(|a, b| b.total_cmp(a));
            known.logs.sort_by(f64::total_cmp);
        }
        let default = self.known.get_mut(&self.default).and_then(|known| {
            known.estimate(None);
            known.mean
        });
        let ends = self.get(&self.default).map(Known::ends).unwrap_or_default();
        for (point, known) in &mut self.known {
            if *point != self.default {
                known.estimate(default);
                known.quarantine = Quarantine::of(known.ends(), ends);
            }
        }
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

    /// Points with runs in flight, at most so many, and the number of these.
    pub(crate) fn flights(&self, most: usize) -> Vec<(Point, f64)> {
        self.iter()
            .filter(|(_, known)| known.in_flight > 0)
            .take(most)
            .map(|(point, known)| (point.clone(), known.in_flight as f64))
            .collect()
    }

    /// The runs that count of parametrizations other than the default, with their places in the epoch,
    /// oldest first; of each parametrization the latest [`crate::history::RECENT_RUNS`].
    pub(crate) fn sequence(&self) -> Vec<(i64, &Point)> {
        let mut sequence: Vec<(i64, &Point)> = self.runs_of_others().collect();
        sequence.sort();
        sequence
    }

    /// What the latest run that counts was given, control runs and others of the default left out.
    pub(crate) fn latest(&self) -> Option<&Point> {
        self.runs_of_others().max().map(|(_, point)| point)
    }

    fn runs_of_others(&self) -> impl Iterator<Item = (i64, &Point)> {
        let others = self
            .known
            .iter()
            .filter(|(point, _)| **point != self.default);
        others
            .flat_map(|(point, known)| known.ordinals.iter().map(move |ordinal| (*ordinal, point)))
    }

    /// Whether a run of what was chosen has ended.
    pub(crate) fn has_run_its_choice(&self) -> bool {
        self.chosen
    }

    /// What is not run any more, in the order of the points.
    pub(crate) fn quarantined(&self) -> Vec<Quarantined> {
        self.iter()
            .filter_map(|(point, known)| {
                Some(Quarantined {
                    parametrization: self.space.parametrization(point),
                    why: known.quarantine?,
                })
            })
            .collect()
    }

    /// How many runs in flight explore.
    pub(crate) fn exploring(&self) -> u64 {
        self.exploring
    }

    /// The points that a run counts for and that are not quarantined, the lowest mean first. At equal means the
    /// default comes first, then the point that is known better.
    pub(crate) fn by_mean(&self) -> Vec<Point> {
        let mut ranked: Vec<(&Point, &Known, f64)> = self
            .iter()
            .filter(|(_, known)| known.is_eligible())
            .filter_map(|(point, known)| Some((point, known, known.mean()?)))
            .collect();
        ranked.sort_by(|(point, known, mean), (other, others, others_mean)| {
            mean.total_cmp(others_mean)
                .then_with(|| (**point != self.default).cmp(&(**other != self.default)))
                .then_with(|| others.count().cmp(&known.count()))
                .then_with(|| point.cmp(other))
        });
        ranked
            .into_iter()
            .map(|(point, ..)| point.clone())
            .collect()
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

/// Whether these can be the moments of logarithms of positive numbers.
fn sound_logs(moments: &Moments) -> bool {
    const FARTHEST: f64 = 746.0;
    let most = moments.count as f64 * FARTHEST * FARTHEST;
    moments.count > 0 && moments.mean.abs() < FARTHEST && moments.m2 >= 0.0 && moments.m2 <= most
}
