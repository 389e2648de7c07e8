//! When a settled epoch runs the default, so that the gain stays measured against the present.

use std::collections::BTreeSet;

use crate::settled::gain::gain;
use crate::study::settings::Settings;
use io_autotune_model::space::{Point, Space};
use io_autotune_search::history::{History, RECENT_RUNS, RecentRun, Tally};

/// The settled phase's runs in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) controls: u64,
    /// Runs of the recommended parametrization.
    pub(crate) settled: u64,
}

/// Whether the next run of a settled epoch is a control run: the first, then one in `control_every`
/// with that many runs in between, or one in `control_every_resolved` (the minimum rate in any
/// case) while `best`'s gain is [resolved](is_resolved).
pub(crate) fn is_due(
    space: &Space,
    history: &History,
    in_flight: InFlight,
    best: &Point,
    settings: &Settings,
) -> bool {
    let Tally {
        settled,
        settled_controls,
        ..
    } = history.tally;
    let controls = settled_controls.saturating_add(in_flight.controls);
    let others = settled.saturating_add(in_flight.settled);
    let all = u128::from(controls) + u128::from(others);
    let at_most = |every: u32| u128::from(controls) * u128::from(every) <= all;
    let often = settings.control_every.max(2);
    let seldom = settings.control_every_resolved.max(often);
    if at_most(seldom) {
        return true;
    }
    if !at_most(often) {
        return false;
    }
    let every = if is_resolved(space, history, best) {
        seldom
    } else {
        often
    };
    // Histories keep only this many.
    let every = u64::from(every).min(RECENT_RUNS as u64);
    let flying = in_flight.controls.saturating_add(in_flight.settled);
    if in_flight.controls > 0 {
        return flying >= every.saturating_mul(in_flight.controls);
    }
    since_default(space, history).saturating_add(flying) >= every
}

/// Whether the gain of the recommended parametrization is resolved by the latest runs: as many as
/// the settled phase had, at most [`RECENT_RUNS`]. It only sets the rate of control runs.
pub(crate) fn is_resolved(space: &Space, history: &History, best: &Point) -> bool {
    let default = space.default_point();
    if *best == default {
        return false;
    }
    let latest = |point: &Point, runs: u64| -> Vec<f64> {
        let mut recent = recent(space, history, point);
        recent.sort_by_key(|run| run.ordinal);
        let runs = usize::try_from(runs).unwrap_or(usize::MAX);
        let from = recent.len().saturating_sub(runs.min(RECENT_RUNS));
        recent[from..].iter().map(|run| run.elapsed).collect()
    };
    let tuned = latest(best, history.tally.settled);
    let control = latest(&default, history.tally.settled_controls);
    gain(&tuned, &control).is_some_and(|gain| gain.low > 0.0 || gain.high < 0.0)
}

fn recent(space: &Space, history: &History, point: &Point) -> Vec<RecentRun> {
    let same = |tested: &&io_autotune_search::history::Tested| {
        space.validate(&tested.parametrization).as_ref() == Ok(point)
    };
    let entries = history.tested.iter().filter(same);
    entries.flat_map(|tested| tested.recent.clone()).collect()
}

/// The counted runs since the default's last one, at most [`RECENT_RUNS`] of each parametrization.
fn since_default(space: &Space, history: &History) -> u64 {
    let default = recent(space, history, &space.default_point());
    let last = default.iter().map(|run| run.ordinal).max();
    let since: BTreeSet<i64> = history
        .tested
        .iter()
        .flat_map(|tested| &tested.recent)
        .map(|run| run.ordinal)
        .filter(|ordinal| last.is_none_or(|last| *ordinal > last))
        .collect();
    // Plus the default's last run.
    since.len() as u64 + 1
}

#[cfg(test)]
mod tests {
    use io_autotune_search::math::Portable;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::testing::{Outcome, finish, grid, normal};
    use io_autotune_search::history::{Pending, Phase, Role};

    /// A settled phase whose tuned runs take `ratio` times the default's, as letters; `outcome` may
    /// set another end for a run.
    fn settled(
        ratio: f64,
        runs: usize,
        settings: &Settings,
        outcome: impl Fn(usize, bool) -> Option<Outcome>,
    ) -> (String, History) {
        let space = grid(&[6]);
        let mut world = ChaCha8Rng::seed_from_u64(4);
        let mut history = History::default();
        let best = Point(vec![3]);
        let mut letters = String::new();
        for number in 0..runs {
            let control = is_due(&space, &history, InFlight::default(), &best, settings);
            let (role, point) = if control {
                (Role::Control, space.default_point())
            } else {
                (Role::Settled, best.clone())
            };
            let run = Pending {
                parametrization: space.parametrization(&point),
                phase: Phase::Settled,
                role,
                count: 1,
            };
            let mean = if control { 100.0 } else { 100.0 * ratio };
            let elapsed = Outcome::Elapsed(mean * (0.05 * normal(&mut world)).exponential());
            finish(
                &mut history,
                &run,
                outcome(number, control).unwrap_or(elapsed),
            );
            letters.push(if control { 'c' } else { 's' });
        }
        (letters, history)
    }

    /// The numbers of runs from each control run to the next.
    fn gaps(letters: &str) -> Vec<usize> {
        let places: Vec<usize> = letters.match_indices('c').map(|(place, _)| place).collect();
        places.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn one_in_ten_until_the_gain_is_resolved_then_one_in_twenty() {
        let settings = Settings::default();
        let space = grid(&[6]);
        let (letters, history) = settled(1.0, 400, &settings, |_, _| None);
        assert!(!is_resolved(&space, &history, &Point(vec![3])));
        let tens = gaps(&letters).iter().filter(|gap| **gap == 10).count();
        assert!(letters.starts_with('c') && tens >= 30, "{letters}");

        let (letters, history) = settled(0.5, 400, &settings, |_, _| None);
        assert!(is_resolved(&space, &history, &Point(vec![3])));
        assert!(!is_resolved(&space, &history, &space.default_point()));
        let gaps = gaps(&letters);
        assert_eq!(gaps[0], 10, "two control runs it takes to resolve a gain");
        assert!(
            gaps.len() > 15 && gaps[2..].iter().all(|gap| *gap == 20),
            "{gaps:?}"
        );
    }

    #[test]
    fn the_default_runs_again_whatever_becomes_of_the_runs() {
        let settings = Settings::default();
        let fails = |controls: bool| {
            let outcome = move |_, control| (control == controls).then_some(Outcome::Failed);
            settled(0.5, 400, &settings, outcome).0
        };
        // Where control runs fail nothing is resolved; they do not follow one another for that.
        assert!(gaps(&fails(true)).iter().all(|gap| *gap == 10));
        assert!(
            gaps(&fails(false))
                .iter()
                .all(|gap| (10..=20).contains(gap))
        );
    }

    #[test]
    fn what_is_in_flight_keeps_the_same_pace() {
        let (space, settings) = (grid(&[6]), Settings::default());
        for (ratio, controls) in [(0.5, 50), (1.0, 100)] {
            let (_, history) = settled(ratio, 60, &settings, |_, _| None);
            let mut flying = InFlight::default();
            for _ in 0..1000 {
                if is_due(&space, &history, flying, &Point(vec![3]), &settings) {
                    flying.controls += 1;
                } else {
                    flying.settled += 1;
                }
            }
            assert!(flying.controls.abs_diff(controls) <= 4, "{flying:?}");
        }
    }

    #[test]
    fn a_gain_that_is_lost_again_brings_no_burst_of_control_runs() {
        let settings = Settings::default();
        let outcome = |number: usize, control: bool| {
            let elapsed = if number.is_multiple_of(2) {
                97.0
            } else {
                103.0
            };
            (number > 300 && !control).then_some(Outcome::Elapsed(elapsed))
        };
        let (letters, _) = settled(0.5, 700, &settings, outcome);
        assert!(gaps(&letters).iter().all(|gap| *gap >= 10), "{letters}");
        assert!(letters[600..].matches('c').count() >= 5, "{letters}");
    }
}
