//! Detection of mixed work: runs of different work under one name. Different works alternate,
//! whereas a busy machine slows all runs for a stretch of time, so the order in time decides.

mod groups;
#[cfg(test)]
mod tests;
mod turns;

use io_autotune_model::Mixture;
use io_autotune_search::math::Portable;

use crate::study::settings::Settings;
use groups::{Groups, smallest_group};
use io_autotune_model::space::{Point, Space};
use io_autotune_search::history::{History, RECENT_RUNS, RecentRun};
use turns::LEAST_RATIO_OF_TURNS;

const LEAST_RUNS: usize = 4;
/// The minimum number of runs of another parametrization: a single run can be shifted anywhere.
const LEAST_TUNED: usize = 2;
/// The minimum ratio of the groups' means: one run in sixteen may take 1.6 times as long (noise).
const LEAST_RATIO: f64 = 1.7;
/// Runs within this span, seconds, are never split: launch times on busy nodes vary by tenths.
const LEAST_SPAN: f64 = 0.5;
/// The step between trial shifts of the tuned runs, in log seconds.
const SHIFT_STEP: f64 = 0.05;

/// Finds mixed work: returns the mixture if the latest runs of the default, 4 to [`RECENT_RUNS`],
/// are too different for one application. That is so if their coefficient of variation exceeds
/// `max_baseline_cv` (also without any one run, so that one outlier decides nothing), or if they
/// have two modes.
///
/// *Two modes.* The latest runs of the most frequent other parametrization are first shifted (in
/// logarithms) to the default's level, by the shift with the least sum of squares in two groups.
/// All logarithms are cut into the two groups with the least sum of squares (Fisher 1958, "On
/// grouping for maximum homogeneity", JASA 53, 789-798), each of at least two runs and a fifth of
/// all. With `d` the distance of the means and `s` the pooled standard deviation, there are two
/// modes if `d >= ln 1.7` and `d >= (2.8 + 32 / n) s`. Ashman, Bird and Zepf (1994, AJ 108,
/// 2348-2361) require `d = 2 s` of groups that are known beforehand; groups chosen from the data
/// need more. By simulation, which the test repeats: log-normal noise of up to 0.25 with an outlier
/// in sixteen gives two modes in less than one study in a hundred, at any number of runs.
///
/// *In turn.* Busy hours satisfy both rules too; [`turns::ratio`] tells them from works that take
/// turns. None under four runs, within half a second, or if one application explains the runs.
pub fn mixture(space: &Space, history: &History, settings: &Settings) -> Option<Mixture> {
    let (default, tuned) = latest_runs(space, history);
    if default.len() < LEAST_RUNS {
        return None;
    }
    let mut times: Vec<f64> = default.iter().map(|run| run.elapsed).collect();
    times.sort_by(f64::total_cmp);
    let cv = variation(&times);
    let varies = (0..times.len()).all(|left_out| {
        let mut others = times.clone();
        others.remove(left_out);
        variation(&others) > settings.max_baseline_cv && span(&others) >= LEAST_SPAN
    });
    let aligned = alignments(&default, &tuned);
    let best = aligned
        .iter()
        .min_by(|a, b| a.any_groups.squares.total_cmp(&b.any_groups.squares))?;
    let modes = two_modes(&best.groups, !tuned.is_empty());
    if modes.is_none() && !(varies && cv > settings.max_baseline_cv) {
        return None;
    }
    let runs: Vec<(RecentRun, bool)> = (default.iter().map(|run| (*run, false)))
        .chain(tuned.iter().map(|run| (*run, true)))
        .collect();
    Some(Mixture {
        cv,
        runs: default.len() as u64,
        tuned: tuned.len() as u64,
        modes,
        in_turn: turns::ratio(&runs, &aligned) >= LEAST_RATIO_OF_TURNS,
    })
}

struct Alignment {
    shift: f64,
    /// The two groups, each large enough to be a work of its own.
    groups: Groups,
    /// The two groups of any size: a short busy hour slows only a few runs.
    any_groups: Groups,
}

/// The shifts that map a tuned run to a run of the default, each with the groups that it gives.
fn alignments(default: &[RecentRun], tuned: &[RecentRun]) -> Vec<Alignment> {
    let logs = |runs: &[RecentRun]| -> Vec<f64> {
        runs.iter().map(|run| run.elapsed.logarithm()).collect()
    };
    let (default, tuned) = (logs(default), logs(tuned));
    let mut shifts: Vec<f64> = default
        .iter()
        .flat_map(|default| tuned.iter().map(move |tuned| default - tuned))
        .collect();
    shifts.sort_by(f64::total_cmp);
    shifts.dedup_by(|next, kept| *next - *kept < SHIFT_STEP);
    if tuned.is_empty() {
        shifts.push(0.0);
    }
    let aligned = |shift: f64| {
        let shifted = tuned.iter().map(|log| log + shift);
        let mut all: Vec<f64> = default.iter().copied().chain(shifted).collect();
        all.sort_by(f64::total_cmp);
        Some(Alignment {
            shift,
            groups: Groups::of(&all, smallest_group(all.len()))?,
            any_groups: Groups::of(&all, 1)?,
        })
    };
    shifts.into_iter().filter_map(aligned).collect()
}

/// The latest counted runs of the default and of the most frequent other parametrization, in order.
fn latest_runs(space: &Space, history: &History) -> (Vec<RecentRun>, Vec<RecentRun>) {
    let default = space.default_point();
    let mut by_point: Vec<(Point, Vec<RecentRun>)> = Vec::new();
    for tested in &history.tested {
        let Ok(point) = space.validate(&tested.parametrization) else {
            continue;
        };
        let place = by_point.iter().position(|(other, _)| *other == point);
        let place = place.unwrap_or_else(|| {
            by_point.push((point, Vec::new()));
            by_point.len() - 1
        });
        let positive = |run: &&RecentRun| run.elapsed.is_finite() && run.elapsed > 0.0;
        by_point[place]
            .1
            .extend(tested.recent.iter().filter(positive));
    }
    for (_, runs) in &mut by_point {
        runs.sort_by_key(|run| run.ordinal);
        let surplus = runs.len().saturating_sub(RECENT_RUNS);
        runs.drain(..surplus);
    }
    let (of_default, others): (Vec<_>, Vec<_>) = by_point
        .into_iter()
        .partition(|(point, _)| *point == default);
    let runs = |one: (Point, Vec<RecentRun>)| one.1;
    let most = others
        .into_iter()
        .map(runs)
        .filter(|runs| runs.len() >= LEAST_TUNED)
        .max_by_key(|runs| (runs.len(), runs.last().map(|run| run.ordinal)));
    let of_default = of_default.into_iter().next().map(runs);
    (of_default.unwrap_or_default(), most.unwrap_or_default())
}

fn span(ascending: &[f64]) -> f64 {
    match ascending {
        [shortest, .., longest] => longest - shortest,
        _ => 0.0,
    }
}

/// Standard deviation (divisor n - 1) over mean.
fn variation(ascending: &[f64]) -> f64 {
    let largest = ascending.last().copied().unwrap_or(1.0);
    // Shares of the largest time, against overflow.
    let shares = || ascending.iter().map(|time| time / largest);
    let mean = shares().sum::<f64>() / ascending.len() as f64;
    let squares: f64 = shares().map(|share| (share - mean).powi(2)).sum();
    (squares / (ascending.len() - 1) as f64).sqrt() / mean
}

/// The geometric means of the groups, if they are far enough apart.
fn two_modes(groups: &Groups, is_shifted: bool) -> Option<(f64, f64)> {
    let distance = groups.high - groups.low;
    let far = (2.8 + 32.0 / groups.runs as f64) * groups.spread(is_shifted);
    let (low, high) = (groups.low.exponential(), groups.high.exponential());
    (distance >= LEAST_RATIO.logarithm() && distance >= far && high - low >= LEAST_SPAN)
        .then_some((low, high))
}
