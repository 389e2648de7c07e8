//! What one user may learn from the runs of others in a study that several share.
//!
//! Users' inputs differ, and one of them may be wrong on purpose. So, of each point: users' typical
//! logs of elapsed, less their own level of the default; of these the weighted median, nobody else by
//! more than a third of the runs. A point that one other user alone has run counts as one run, which
//! is not enough to recommend it: whoever wants others to run something needs a second user. One's own
//! runs count in full: they deceive only oneself. A user whose runs respond differently from the
//! rest's is an outlier, and has a history of their own.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_model::{History, Moments, Parametrization, RecentRun, Tally, Tested};
use io_autotune_search::history::by_point::MIN_RUNS;
use io_autotune_search::math::Portable;

/// The number of a user.
pub type Member = u32;

/// With fewer users who have counted runs, outliers not among them, everyone has their own: one of
/// four is too much.
pub const LEAST_MEMBERS: usize = 5;
/// A user other than oneself is at most one part in so many of a point's runs.
const PARTS: u64 = 3;
/// So many runs of this standard deviation weigh in with the noise.
const PRIOR_RUNS: f64 = 6.0;
const PRIOR_NOISE: f64 = 0.12;
/// So many others have to have run the same: of two, one could make the other the outlier.
const WITNESSES: usize = 3;
/// An outlier's gains differ from the others' by so many standard errors, and by so much (log).
const SURELY: f64 = 4.0;
const FAR: f64 = 0.1;

/// The users who share an epoch.
#[derive(Debug)]
pub struct Members<'a> {
    all: BTreeMap<Member, &'a History>,
    default: String,
    outliers: BTreeSet<Member>,
    levels: Levels,
}

/// Users' levels: logs of the default's elapsed.
#[derive(Debug, Default)]
struct Levels {
    /// The square of the noise of a log.
    square: f64,
    /// The typical level, and how far users are from it, shrunk as far as noise explains that.
    common: f64,
    apart: BTreeMap<Member, f64>,
    /// What was measured: the level and its runs.
    measured: BTreeMap<Member, (f64, u64)>,
}

impl<'a> Members<'a> {
    /// The users' histories, whose ordinals are the epoch's, and its default.
    pub fn new(all: BTreeMap<Member, &'a History>, default: &Parametrization) -> Self {
        let mut members = Members {
            all,
            default: default.key(),
            outliers: BTreeSet::new(),
            levels: Levels::default(),
        };
        members.levels = members.levels();
        members.outliers = members.far();
        members.levels = members.levels();
        members
    }

    /// The users whose runs respond differently from the rest's: they count for themselves alone.
    pub fn outliers(&self) -> &BTreeSet<Member> {
        &self.outliers
    }

    /// What the epoch knows for a user's next run, as if it had been that user's.
    pub fn history(&self, of: Member) -> History {
        if !self.hears(of) {
            let own = self.all.get(&of).copied();
            return own.cloned().unwrap_or_default();
        }
        let tested = self.points();
        History {
            tested: tested.values().map(|point| self.point(point, of)).collect(),
            tally: self.tally(of),
        }
    }

    /// Whether a user's history has others' runs in it.
    pub fn hears(&self, of: Member) -> bool {
        let is_measured = |(_, runs): &(f64, u64)| *runs >= MIN_RUNS;
        !self.outliers.contains(&of)
            && self.levels.measured.get(&of).is_some_and(is_measured)
            && self.active() >= LEAST_MEMBERS
    }

    /// How many users have a counted run, without outliers.
    pub fn active(&self) -> usize {
        let is_active = |history: &History| history.tested.iter().any(|one| one.elapsed.count > 0);
        let active = self.sharing().filter(|(_, history)| is_active(history));
        active.count()
    }

    /// One's own counts, and of each other user at most what another one has.
    fn tally(&self, of: Member) -> Tally {
        let own = self.all.get(&of).map(|own| own.tally).unwrap_or_default();
        let others = self.sharing().filter(|(member, _)| *member != of);
        let others: Vec<Tally> = others.map(|(_, history)| history.tally).collect();
        let count = |of_tally: fn(&Tally) -> u64| {
            let others: Vec<u64> = others.iter().map(of_tally).collect();
            let most = second(others.clone());
            of_tally(&own) + others.iter().map(|count| *count.min(&most)).sum::<u64>()
        };
        Tally {
            explored: count(|tally| tally.explored),
            baseline: count(|tally| tally.baseline),
            controls: count(|tally| tally.controls),
            settled: count(|tally| tally.settled),
            settled_controls: count(|tally| tally.settled_controls),
            // Everyone proves by their own runs.
            proof: own.proof,
            total: count(|tally| tally.total),
        }
    }

    fn sharing(&self) -> impl Iterator<Item = (Member, &'a History)> {
        let all = self.all.iter().map(|(member, history)| (*member, *history));
        all.filter(|(member, _)| !self.outliers.contains(member))
    }

    fn points(&self) -> BTreeMap<String, BTreeMap<Member, &'a Tested>> {
        let mut points: BTreeMap<String, BTreeMap<Member, &Tested>> = BTreeMap::new();
        for (member, history) in self.sharing() {
            for tested in &history.tested {
                let point = points.entry(tested.parametrization.key()).or_default();
                point.insert(member, tested);
            }
        }
        points
    }

    fn levels(&self) -> Levels {
        let points = self.points();
        let (mut squares, mut runs) = (PRIOR_RUNS * PRIOR_NOISE * PRIOR_NOISE, PRIOR_RUNS);
        let counted = points.values().flat_map(BTreeMap::values);
        for tested in counted.filter(|one| one.log_elapsed.count > 1) {
            squares += tested.log_elapsed.m2;
            runs += (tested.log_elapsed.count - 1) as f64;
        }
        let square = squares / runs;
        let measured: BTreeMap<Member, (f64, u64)> = points
            .get(&self.default)
            .into_iter()
            .flatten()
            .filter(|(_, tested)| tested.log_elapsed.count > 0)
            .map(|(member, tested)| (*member, (tested.log_elapsed.mean, tested.log_elapsed.count)))
            .collect();
        let each = measured.values().map(|(level, _)| (*level, 1));
        let common = upper_median(each.collect()).unwrap_or(0.0);
        let users = measured.len().max(1) as f64;
        let beyond_noise = measured
            .values()
            .map(|(level, runs)| (level - common).powi(2) - square / *runs as f64);
        let between = (beyond_noise.sum::<f64>() / users).max(0.0);
        let apart = measured.iter().map(|(member, (level, runs))| {
            let share = between / (between + square / *runs as f64);
            (*member, share * (level - common))
        });
        Levels {
            square,
            common,
            apart: apart.collect(),
            measured,
        }
    }

    /// Those whose gains differ from the others', where enough others ran the same; nobody if
    /// that would be as many as the rest.
    fn far(&self) -> BTreeSet<Member> {
        let points = self.points();
        let measured = &self.levels.measured;
        let default_runs: u64 = measured.values().map(|(_, runs)| runs).sum();
        let is_far = |member: &Member| {
            let (level, runs) = measured[member];
            let (mut sum, mut weights) = (0.0, 0.0);
            for (key, point) in &points {
                let own = point.get(member).filter(|one| one.log_elapsed.count > 0);
                let (Some(own), false) = (own, *key == self.default) else {
                    continue;
                };
                let others: Vec<(f64, u64)> = point
                    .iter()
                    .filter(|(other, one)| *other != member && one.log_elapsed.count > 0)
                    .filter_map(|(other, one)| {
                        let (level, _) = measured.get(other)?;
                        Some((one.log_elapsed.mean - level, one.log_elapsed.count))
                    })
                    .collect();
                if others.len() < WITNESSES {
                    continue;
                }
                let theirs: u64 = others.iter().map(|(_, runs)| runs).sum();
                let weight = 1.0 / (1.0 / own.log_elapsed.count as f64 + 1.0 / theirs as f64);
                let Some(typical) = median(others) else {
                    continue;
                };
                sum += weight * (own.log_elapsed.mean - level - typical);
                weights += weight;
            }
            let others = (default_runs - runs).max(1) as f64;
            let error = self.levels.square * (1.0 / weights + 1.0 / runs as f64 + 1.0 / others);
            weights > 0.0 && (sum / weights).abs() > FAR.max(SURELY * error.sqrt())
        };
        let far: BTreeSet<Member> = measured.keys().copied().filter(is_far).collect();
        if 2 * far.len() < measured.len() {
            far
        } else {
            BTreeSet::new()
        }
    }

    /// A point's runs, in the seconds of a user.
    fn point(&self, point: &BTreeMap<Member, &Tested>, of: Member) -> Tested {
        let apart = |member: Member| self.levels.apart.get(&member).copied().unwrap_or(0.0);
        let own = point.get(&of).map_or(0, |one| one.elapsed.count);
        let others = |count: fn(&Tested) -> u64| {
            let others = point.iter().filter(move |(member, _)| **member != of);
            others.map(move |(_, one)| count(one)).collect::<Vec<_>>()
        };
        let most = most_of_another(own, &others(|one| one.elapsed.count));
        // One loss of one other user counts, as a reason for doubt; more, and running out of memory,
        // which is believed at once, as far as a second one has met them.
        let most_failed = 1 + second(others(|one| one.failed));
        let most_cut = 1 + second(others(cut));
        let most_lost = 1 + second(others(|one| one.failed + cut(one)));
        let most_memory = second(others(|one| one.out_of_memory));
        let first = point.values().map(|one| one.first_ordinal).min();
        let parametrization = point.values().next().map(|one| one.parametrization.clone());
        let mut pooled = Tested::new(parametrization.unwrap_or_default(), first.unwrap_or(0));
        let weight = |member: Member, one: &Tested| match member == of {
            true => one.elapsed.count,
            false => one.elapsed.count.min(most),
        };
        let places = point.iter().filter(|(_, one)| one.elapsed.count > 0);
        let places = places
            .map(|(member, one)| (one.log_elapsed.mean - apart(*member), weight(*member, one)));
        let place = upper_median(places.collect()).unwrap_or(self.levels.common);
        for (member, one) in point {
            let is_own = *member == of;
            let moved = apart(of) - apart(*member);
            let logs = one.recent.iter().map(|run| run.elapsed.logarithm());
            let typical = logs.sum::<f64>() / one.recent.len().max(1) as f64;
            let runs = usize::try_from(weight(*member, one)).unwrap_or(usize::MAX);
            let latest = one.recent.iter().rev().take(runs);
            let runs: Vec<&RecentRun> = latest.collect();
            // So many of them that they are still centred.
            let centre = runs.iter().map(|run| run.elapsed.logarithm() - typical);
            let centre = centre.sum::<f64>() / runs.len().max(1) as f64;
            for run in runs {
                let off = run.elapsed.logarithm() - typical - centre;
                let elapsed = (place + apart(of) + off).exponential();
                // What a positive time becomes is one, unless users are absurdly far apart.
                let _ = pooled.record_run(RecentRun { elapsed, ..*run });
            }
            let most = |most: u64| if is_own { u64::MAX } else { most };
            let failed = one.failed.min(most(most_failed));
            let cut = cut(one).min(most(most_cut.min(most_lost.saturating_sub(failed))));
            pooled.failed += failed;
            pooled.out_of_memory += one.out_of_memory.min(most(most_memory));
            for run in one
                .censored
                .iter()
                .take(usize::try_from(cut).unwrap_or(usize::MAX))
            {
                let bound = run.elapsed * moved.exponential();
                let _ = pooled.record_censored(run.ordinal, bound);
            }
        }
        pooled.measures = measures(point, of, pooled.elapsed.count);
        pooled
    }
}

/// What one's own runs of a point did, or where there are none the others': of so many runs in all the
/// share that it was of these, because rules ask whether each run did it.
fn measures(point: &BTreeMap<Member, &Tested>, of: Member, runs: u64) -> BTreeMap<String, Moments> {
    let counted = |member: &Member| point.get(member).filter(|one| one.elapsed.count > 0);
    let whose: Vec<&&Tested> = match counted(&of) {
        Some(own) => vec![own],
        None => point.keys().filter_map(counted).collect(),
    };
    let measured: u64 = whose.iter().map(|one| one.elapsed.count).sum();
    let mut all: BTreeMap<String, Moments> = BTreeMap::new();
    for one in &whose {
        for (name, moments) in &one.measures {
            all.entry(name.clone()).or_default().merge(moments);
        }
    }
    for moments in all.values_mut() {
        let share = moments.count as f64 / measured.max(1) as f64;
        let count = ((runs as f64 * share).round() as u64).max(1);
        moments.m2 *= count as f64 / moments.count.max(1) as f64;
        moments.count = count;
    }
    all
}

/// Of each other user at most so many runs of a point, beside one's own: a third of all, half if only
/// two have run it, and one if only one other has.
pub(crate) fn most_of_another(own: u64, others: &[u64]) -> u64 {
    let active = others.iter().filter(|runs| **runs > 0).count() as u64;
    let parts = (active + u64::from(own > 0)).min(PARTS);
    if parts < 2 {
        return 1;
    }
    let fits = |most: &u64| {
        let all: u64 = others.iter().map(|runs| runs.min(most)).sum();
        most * parts <= own + all
    };
    // Moments count each run, so this is as short as the runs are few; history keeps the latest 32.
    (1..=io_autotune_model::RECENT_RUNS as u64)
        .rev()
        .find(fits)
        .unwrap_or(1)
}

fn cut(one: &Tested) -> u64 {
    one.censored.len() as u64
}

/// The second largest: what two users at least have met.
fn second(mut counts: Vec<u64>) -> u64 {
    counts.sort_unstable();
    counts.iter().rev().nth(1).copied().unwrap_or(0)
}

/// The weighted median of values; between two halves the higher.
pub(crate) fn upper_median(mut values: Vec<(f64, u64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = values.iter().map(|(_, weight)| weight).sum();
    let mut below = 0;
    let found = values.iter().find(|(_, weight)| {
        below += weight;
        2 * below > all
    });
    found.map(|(value, _)| *value)
}

/// The weighted median of values.
pub(crate) fn median(values: Vec<(f64, u64)>) -> Option<f64> {
    let mirrored = values.iter().map(|(value, weight)| (-value, *weight));
    let lower = -upper_median(mirrored.collect())?;
    Some(f64::midpoint(lower, upper_median(values)?))
}

#[cfg(test)]
mod tests;
