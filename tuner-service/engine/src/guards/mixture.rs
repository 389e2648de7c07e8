//! Whether a study's runs are one application's, or different work under one name.
//!
//! Two works take turns. A busy machine or file system slows whatever runs in one stretch of time,
//! the tuned runs too. So what looks like two works is called that only if the order in time says
//! so.

mod groups;
#[cfg(test)]
mod tests;
mod turns;

use io_autotune_model::{Mixture, Phase};

use crate::history::{History, RECENT_RUNS, RecentRun};
use crate::space::{Point, Space};
use crate::study::settings::Settings;
use groups::{Groups, smallest_group};
use turns::LEAST_RATIO_OF_TURNS;

/// The fewest runs of the default that are looked at.
const LEAST_RUNS: usize = 4;
/// The fewest runs of another parametrization that are looked at: one can be brought anywhere.
const LEAST_TUNED: usize = 2;
/// Two groups are two works only if their geometric means differ by this factor at least: a run in
/// sixteen that is up to 1.6 times as slow as the others is noise.
const LEAST_RATIO: f64 = 1.7;
/// Runs that lie no further apart than this, in seconds, are never told apart: on a busy node the
/// launching alone of a job takes now a few milliseconds and now some tenths of a second.
const LEAST_SPAN: f64 = 0.5;
/// Shifts of the tuned runs are tried so far apart, in logarithms of seconds.
const SHIFT_STEP: f64 = 0.05;

/// Whether the latest runs of the default, 4 to [`RECENT_RUNS`], are too different to be one
/// application's: their coefficient of variation exceeds `max_baseline_cv`, or they have two modes.
///
/// *Variation.* The coefficient must exceed the setting also without whichever run raises it most,
/// so that one outlier, however slow, decides nothing.
///
/// *Two modes.* The latest runs of the other parametrization that ran most often are brought to the
/// default's level first, by the shift of their logarithms that leaves the least sum of squares in
/// two groups. All logarithms are cut into the two groups with the least sum of squares (Fisher
/// 1958, "On grouping for maximum homogeneity", JASA 53, 789-798), each with at least two runs and
/// a fifth of all. With `d` the distance of the groups' means and `s` their pooled standard
/// deviation there are two modes if `d >= ln 1.7` and `d >= (2.8 + 32 / n) s`. Ashman, Bird and
/// Zepf (1994, AJ 108, 2348-2361) call groups separate from `d = 2 s` on, when they are known
/// beforehand; groups that were chosen to look separate are held to more, and few runs to the most.
/// The factors were found by simulation, so that log-normal noise of up to 0.25 with an outlier in
/// sixteen has two modes in less than one study in a hundred, at any number of runs; the test
/// repeats it.
///
/// *In turn.* See [`turns::ratio`]: both rules find busy hours as well as different work.
///
/// None under four runs, if they lie within half a second, and if they can be one application's.
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

/// Whether a study of such runs is only observed: works that take turns, before it has settled. What
/// was found by then is worth more than the default to either work, and load never takes it away.
pub fn is_observed(mixture: &Mixture, history: &History, phase: Phase) -> bool {
    let is_settled = [phase, history.tally.phase()].contains(&Phase::Settled);
    mixture.in_turn && !is_settled
}

/// The tuned runs, shifted by some way to the default's level.
struct Alignment {
    /// In logarithms of seconds.
    shift: f64,
    /// Two groups that are each large enough to be a work.
    groups: Groups,
    /// Two groups of any size: a short busy hour slows few runs.
    any_groups: Groups,
}

/// The shifts that bring a tuned run upon a run of the default, and the groups that each leaves.
fn alignments(default: &[RecentRun], tuned: &[RecentRun]) -> Vec<Alignment> {
    let logs =
        |runs: &[RecentRun]| -> Vec<f64> { runs.iter().map(|run| run.elapsed.ln()).collect() };
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

/// The latest runs that count of the default, and of the parametrization besides that ran most
/// often of late. Each at most [`RECENT_RUNS`], in the order of their ordinals.
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

/// From the shortest to the longest of ascending times, seconds.
fn span(ascending: &[f64]) -> f64 {
    match ascending {
        [shortest, .., longest] => longest - shortest,
        _ => 0.0,
    }
}

/// Standard deviation (divisor n - 1) over mean, of ascending positive numbers.
fn variation(ascending: &[f64]) -> f64 {
    let largest = ascending.last().copied().unwrap_or(1.0);
    // In shares of the largest, so that nothing overflows.
    let shares = || ascending.iter().map(|time| time / largest);
    let mean = shares().sum::<f64>() / ascending.len() as f64;
    let squares: f64 = shares().map(|share| (share - mean).powi(2)).sum();
    (squares / (ascending.len() - 1) as f64).sqrt() / mean
}

/// The geometric means of two groups, if they are far enough apart.
fn two_modes(groups: &Groups, is_shifted: bool) -> Option<(f64, f64)> {
    let distance = groups.high - groups.low;
    let far = (2.8 + 32.0 / groups.runs as f64) * groups.spread(is_shifted);
    let (low, high) = (groups.low.exp(), groups.high.exp());
    (distance >= LEAST_RATIO.ln() && distance >= far && high - low >= LEAST_SPAN)
        .then_some((low, high))
}
