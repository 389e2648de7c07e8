//! Tells works that take turns from slow stretches of the machine.

use super::Alignment;
use super::groups::Groups;
use io_autotune_search::history::RecentRun;
use io_autotune_search::math::Portable;

/// The minimum log likelihood ratio for turns.
pub(super) const LEAST_RATIO_OF_TURNS: f64 = 2.0;
/// The bounds of stretches, in hours. Stretches last from the median gap between starts (within 20
/// s to 1 h) to 64 h, doubling.
const SHORTEST_STRETCH: (f64, f64) = (20.0 / 3600.0, 1.0);
const LONGEST_STRETCH: f64 = 64.0;
/// The largest probability that a run is in the state of the run before it. Simultaneous starts may
/// differ, because another node may be busy.
const MOST_ALIKE: f64 = 0.98;
/// The share of outliers, and their mean and spread in log seconds above the others.
const OUTLIERS: f64 = 1.0 / 16.0;
const OUTLIER: f64 = 0.37;
const OUTLIER_SPREAD: f64 = 0.08;
/// The minimum spread within a group, so that equal times do not make all other times impossible.
const LEAST_SPREAD: f64 = 0.02;
const LEAST_DENSITY: f64 = 1e-12;
/// The hours assumed between runs whose starts are not known.
const UNKNOWN_GAP: f64 = 1.0;

/// The log likelihood ratio of turns over stretches.
///
/// In both explanations a run is fast or slow, with its group's mean and the groups' spread; one
/// run in sixteen is an outlier. With turns, runs are slow independently, with the slow group's
/// share. On a busy machine, a run `dt` hours after another keeps its state with probability `q +
/// (1 - q) share`, `q = exp(-dt / tau)`: a hidden Markov model (Rabiner 1989, Proceedings of the
/// IEEE 77, 257-286, equations 18-21). Each explanation gets its best shift, groups and `tau`.
///
/// Tuned `runs` are marked true. If any start is unknown, all runs count as an hour apart, in
/// order.
pub(super) fn ratio(runs: &[(RecentRun, bool)], aligned: &[Alignment]) -> f64 {
    let runs = in_time(runs);
    let gaps: Vec<f64> = runs
        .windows(2)
        .map(|two| two[1].hour - two[0].hour)
        .collect();
    let stretches = stretches(&gaps);
    let is_shifted = runs.iter().any(|run| run.is_tuned);
    let (mut turns, mut lasting) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for one in aligned {
        for groups in [&one.groups, &one.any_groups] {
            let densities = densities(&runs, one.shift, groups, groups.spread(is_shifted));
            turns = turns.max(log_likelihood(
                &densities,
                groups.high_share,
                gaps.iter().map(|_| 0.0),
            ));
            for tau in &stretches {
                let alike = gaps
                    .iter()
                    .map(|gap| (-gap / tau).exponential().min(MOST_ALIKE));
                lasting = lasting.max(log_likelihood(&densities, groups.high_share, alike));
            }
        }
    }
    turns - lasting
}

struct Timed {
    hour: f64,
    log: f64,
    is_tuned: bool,
}

fn in_time(runs: &[(RecentRun, bool)]) -> Vec<Timed> {
    let mut runs = runs.to_vec();
    let all_known = runs.iter().all(|(run, _)| run.started.is_some());
    runs.sort_by_key(|(run, _)| (run.started.filter(|_| all_known), run.ordinal));
    let first = runs
        .first()
        .and_then(|(run, _)| run.started)
        .unwrap_or_default();
    let hour = |place: usize, run: &RecentRun| match run.started.filter(|_| all_known) {
        Some(started) => started.saturating_sub(first) as f64 / 3600.0,
        None => place as f64 * UNKNOWN_GAP,
    };
    runs.iter()
        .enumerate()
        .map(|(place, (run, is_tuned))| Timed {
            hour: hour(place, run),
            log: run.elapsed.logarithm(),
            is_tuned: *is_tuned,
        })
        .collect()
}

fn stretches(gaps: &[f64]) -> Vec<f64> {
    let mut ascending = gaps.to_vec();
    ascending.sort_by(f64::total_cmp);
    let median = ascending
        .get(ascending.len() / 2)
        .copied()
        .unwrap_or_default();
    let shortest = median.clamp(SHORTEST_STRETCH.0, SHORTEST_STRETCH.1);
    std::iter::successors(Some(shortest), |tau| Some(2.0 * tau))
        .take_while(|tau| *tau <= LONGEST_STRETCH)
        .collect()
}

fn densities(runs: &[Timed], shift: f64, groups: &Groups, spread: f64) -> Vec<[f64; 2]> {
    let spread = spread.max(LEAST_SPREAD);
    // `hypot` would be the C library's, which may give another answer with another glibc.
    let wide = (spread.powi(2) + OUTLIER_SPREAD.powi(2)).sqrt();
    let normal =
        |distance: f64, spread: f64| (-0.5 * (distance / spread).powi(2)).exponential() / spread;
    runs.iter()
        .map(|run| {
            let log = if run.is_tuned {
                run.log + shift
            } else {
                run.log
            };
            [groups.low, groups.high].map(|mean| {
                (1.0 - OUTLIERS) * normal(log - mean, spread)
                    + OUTLIERS * normal(log - mean - OUTLIER, wide)
                    + LEAST_DENSITY
            })
        })
        .collect()
}

/// The log likelihood by the forward algorithm. `alike` says for each run how much of its state it
/// takes from the run before it.
fn log_likelihood(densities: &[[f64; 2]], slow: f64, alike: impl Iterator<Item = f64>) -> f64 {
    let share = [1.0 - slow, slow];
    let mut state = share;
    let mut sum = 0.0;
    for (density, alike) in densities.iter().zip(std::iter::once(0.0).chain(alike)) {
        let each = [0, 1].map(|k| (alike * state[k] + (1.0 - alike) * share[k]) * density[k]);
        let both = each[0] + each[1];
        sum += both.logarithm();
        state = each.map(|one| one / both);
    }
    sum
}
