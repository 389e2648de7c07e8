//! History and runs in flight by point of the space.

use crate::math::Portable;
use std::collections::BTreeMap;

use crate::history::censoring::with_bounds;
use crate::history::quarantine::{Ends, Quarantine, Quarantined};
use crate::history::{History, Moments, Pending, Role};
use io_autotune_model::space::{Point, Space};

/// The minimum number of runs behind a recommendation: one lucky run is not enough.
pub const MIN_RUNS: u64 = 2;

/// The runs of one point.
#[derive(Clone, Debug)]
pub struct Known {
    /// Moments of the elapsed seconds of counted runs.
    pub elapsed: Moments,
    /// The natural logarithms of the latest counted runs' elapsed seconds, ascending.
    logs: Vec<f64>,
    /// For each of those runs, the natural logarithm of how long other runs took at the same time.
    others: Vec<f64>,
    ordinals: Vec<i64>,
    /// The censored runs' elapsed seconds, the longest first.
    bounds: Vec<f64>,
    mean: Option<f64>,
    /// Moments of the natural logarithms of measures, by name.
    pub measures: BTreeMap<String, Moments>,
    /// The number of runs that failed.
    pub failed: u64,
    out_of_memory: u64,
    /// The quarantine of this point, if any.
    pub quarantine: Option<Quarantine>,
    /// The ordinal of the first run; `i64::MAX` if none has ended.
    pub first_ordinal: i64,
    /// The number of runs in flight.
    pub in_flight: u64,
    /// The number of search runs in flight.
    pub search_in_flight: u64,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            elapsed: Moments::default(),
            logs: Vec::new(),
            others: Vec::new(),
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
    /// The ordinals of the latest counted runs.
    pub fn ordinals(&self) -> impl Iterator<Item = i64> {
        self.ordinals.iter().copied()
    }

    /// The number of runs that count.
    pub fn count(&self) -> u64 {
        self.elapsed.count
    }

    /// The natural logarithms of the latest runs' elapsed seconds, ascending.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// For the same runs, in their order, the natural logarithm of how long other runs took at the
    /// same time, relative to their usual times; 0 (as long as usual) if that is not known.
    pub fn others(&self) -> &[f64] {
        &self.others
    }

    /// The number of censored runs that the history keeps.
    pub fn censored(&self) -> u64 {
        self.bounds.len() as u64
    }

    /// The longest time after which a run was cut short, in seconds: a lower bound.
    pub fn longest_bound(&self) -> Option<f64> {
        self.bounds.first().copied()
    }

    /// The number of runs that failed or were cut short.
    pub fn lost(&self) -> u64 {
        self.failed.saturating_add(self.censored())
    }

    /// The mean elapsed in seconds (the paper's estimator of f, robert2020 section VI-A), raised by
    /// censored runs. If all runs are censored it is the longest bound, provided that it exceeds
    /// the default's mean.
    pub fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// The amount by which censored runs raise the log of the mean.
    pub fn raised(&self) -> f64 {
        let ratio = self.mean.map(|mean| mean / self.elapsed.mean);
        ratio.map_or(0.0, |ratio| ratio.logarithm().max(0.0))
    }

    /// The number of counted, censored, failed and in-flight runs.
    pub fn runs(&self) -> u64 {
        self.elapsed
            .count
            .saturating_add(self.censored())
            .saturating_add(self.failed)
            .saturating_add(self.in_flight)
    }

    /// Returns true if jobs fail at this point, so that it no longer runs. Never true of the
    /// default.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_some()
    }

    /// Returns true if the point may be recommended.
    pub fn is_eligible(&self) -> bool {
        self.count() > 0 && !self.is_quarantined()
    }

    fn ends(&self) -> Ends {
        Ends {
            counted: self.elapsed.count,
            failed: self.failed,
            cut_short: self.censored(),
            out_of_memory: self.out_of_memory,
        }
    }

    /// Estimates the mean from all runs; `default` is the default's mean.
    fn estimate(&mut self, default: Option<f64>) {
        self.mean = if self.elapsed.count > 0 {
            let Moments { count, mean, .. } = self.elapsed;
            Some(with_bounds(count, mean, &self.bounds))
        } else {
            let longest = self.longest_bound();
            longest.filter(|bound| default.is_some_and(|mean| *bound > mean))
        };
    }
}

/// An epoch's history and runs in flight by point. Entries that do not fit the space, and moments
/// and bounds that positive times cannot have, are left out. The history's order does not matter.
#[derive(Debug)]
pub struct View<'a> {
    /// The space.
    pub space: &'a Space,
    /// The default of the space.
    pub default: Point,
    known: BTreeMap<Point, Known>,
    exploring: u64,
    chosen: bool,
    never_completes: bool,
}

impl<'a> View<'a> {
    /// Groups a history and runs in flight by point. Entries that do not fit the space are left
    /// out.
    pub fn new(space: &'a Space, history: &History, pending: &[Pending]) -> Self {
        let mut view = View {
            space,
            default: space.default_point(),
            known: BTreeMap::new(),
            exploring: 0,
            chosen: history.tally.settled > 0,
            never_completes: false,
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
            let others = |ratio: f64| Some(ratio.logarithm()).filter(|log| log.is_finite());
            for run in &tested.recent {
                let log = run.elapsed.logarithm();
                if log.is_finite() {
                    known.logs.push(log);
                    let others = run.others.and_then(others);
                    known.others.push(others.unwrap_or_default());
                }
            }
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
            let both = known.logs.drain(..).zip(known.others.drain(..));
            let mut both: Vec<(f64, f64)> = both.collect();
            both.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            (known.logs, known.others) = both.into_iter().unzip();
        }
        let default = self.known.get_mut(&self.default).and_then(|known| {
            known.estimate(None);
            known.mean
        });
        let ends = self.get(&self.default).map(Known::ends).unwrap_or_default();
        self.never_completes = ends.never_completed();
        // Compared with a default that never completes, every parametrization would look harmless.
        let most = self
            .never_completes
            .then(|| {
                self.known
                    .values()
                    .map(Known::ends)
                    .max_by(Ends::by_completion)
            })
            .flatten()
            .filter(|most| most.counted > 0);
        for (point, known) in &mut self.known {
            if *point != self.default {
                known.estimate(default);
                known.quarantine = match most {
                    Some(most) => Quarantine::beside(known.ends(), most),
                    None => Quarantine::of(known.ends(), ends),
                };
            }
        }
    }

    /// Returns true if runs of the default failed or were cut short, and none has completed.
    pub fn default_never_completed(&self) -> bool {
        self.never_completes
    }

    /// Returns true if no run of any point has completed.
    pub fn nothing_completed(&self) -> bool {
        self.known.values().all(|known| known.count() == 0)
    }

    /// The runs of a point; none if it never ran.
    pub fn get(&self, point: &Point) -> Option<&Known> {
        self.known.get(point)
    }

    /// The runs of the default, empty if it never ran.
    pub fn default_known(&self) -> Known {
        self.get(&self.default).cloned().unwrap_or_default()
    }

    /// Every point that ever ran or is in flight, in the order of the points.
    pub fn iter(&self) -> impl Iterator<Item = (&Point, &Known)> {
        self.known.iter()
    }

    /// At most `most` points with runs in flight, each with the number of these.
    pub fn flights(&self, most: usize) -> Vec<(Point, f64)> {
        self.iter()
            .filter(|(_, known)| known.in_flight > 0)
            .take(most)
            .map(|(point, known)| (point.clone(), known.in_flight as f64))
            .collect()
    }

    /// Counted runs of non-default points, oldest first; the latest `RECENT_RUNS` of each.
    pub fn sequence(&self) -> Vec<(i64, &Point)> {
        let mut sequence: Vec<(i64, &Point)> = self.runs_of_others().collect();
        sequence.sort();
        sequence
    }

    /// The point of the latest counted run, runs of the default left out.
    pub fn latest(&self) -> Option<&Point> {
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

    /// Returns true if a run of the recommended parametrization has ended.
    pub fn has_run_its_choice(&self) -> bool {
        self.chosen
    }

    /// The quarantined points, in order.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.iter()
            .filter_map(|(point, known)| {
                Some(Quarantined {
                    parametrization: self.space.parametrization(point),
                    why: known.quarantine?,
                })
            })
            .collect()
    }

    /// The number of exploring runs in flight.
    pub fn exploring(&self) -> u64 {
        self.exploring
    }

    /// Eligible points, the lowest mean first. Ties go to the default, then to the point with more
    /// runs.
    pub fn by_mean(&self) -> Vec<Point> {
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

fn sound(moments: &Moments) -> bool {
    moments.count > 0
        && moments.mean.is_finite()
        && moments.mean > 0.0
        && moments.m2.is_finite()
        && moments.m2 >= 0.0
}

fn sound_logs(moments: &Moments) -> bool {
    const FARTHEST: f64 = 746.0;
    let most = moments.count as f64 * FARTHEST * FARTHEST;
    moments.count > 0 && moments.mean.abs() < FARTHEST && moments.m2 >= 0.0 && moments.m2 <= most
}
