use io_autotune_search::math::Portable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::{grid, history, normal, slack, tested, trials};
use io_autotune_model::space::Parametrization;
use io_autotune_search::history::Tested;

mod world;
use world::{What, World};

/// The mixture found in runs of the default and of another parametrization. For each run: its start
/// in seconds, its elapsed, and whether it is tuned.
fn of_runs(runs: &[(i64, f64, bool)]) -> Option<Mixture> {
    let space = grid(&[6, 6]);
    let mut default = Tested::new(space.default(), 0);
    let mut tuned = Tested::new(space.parametrization(&Point(vec![2, 2])), 1);
    for (ordinal, (start, elapsed, is_tuned)) in runs.iter().enumerate() {
        let run = RecentRun::new(ordinal as i64, *elapsed).started_at(*start);
        let entry = if *is_tuned { &mut tuned } else { &mut default };
        entry.record_run(run).unwrap();
    }
    let history = history(vec![default, tuned], 0, 0);
    mixture(&space, &history, &Settings::default())
}

/// The mixture found in runs of the default alone that start `seconds` apart.
fn apart(seconds: i64, times: &[f64]) -> Option<Mixture> {
    let starts = (0..).map(|run| run * seconds);
    let runs: Vec<_> = starts
        .zip(times)
        .map(|(start, time)| (start, *time, false))
        .collect();
    of_runs(&runs)
}

/// The mixture found in runs of the default alone whose starts are not known.
fn of_default(times: &[f64]) -> Option<Mixture> {
    let space = grid(&[6, 6]);
    let mut default = Tested::new(space.default(), 0);
    for (ordinal, time) in times.iter().enumerate() {
        default.record(ordinal as i64, *time).unwrap();
    }
    // One run of another parametrization says nothing about the application.
    let other = tested(&space, &[3, 3], &[1000.0], 0);
    mixture(
        &space,
        &history(vec![other, default], 0, 0),
        &Settings::default(),
    )
}

#[test]
fn two_works_under_one_name_are_told_apart() {
    let found = of_default(&[10.0, 20.0, 10.2, 19.8, 10.1, 20.1, 9.9, 20.0]).unwrap();
    let (quick, slow) = found.modes.unwrap();
    assert!((quick - 10.05).abs() < 0.01 && (slow - 19.97).abs() < 0.01);
    assert_eq!((found.runs, found.tuned), (8, 0));
    assert!((found.cv - 0.353).abs() < 0.001, "{}", found.cv);
    assert!(found.in_turn);
    let four = [10.0, 20.0, 10.0, 20.0];
    assert!(of_default(&four).unwrap().modes.is_some());
    // Four runs are enough if they followed one another at once.
    assert!(!of_default(&four).unwrap().in_turn);
    assert!(apart(5, &four).unwrap().in_turn);
    assert_eq!(of_default(&[10.0, 20.0, 10.0]), None);
    assert_eq!(of_default(&[]), None);
}

#[test]
fn a_busy_stretch_is_not_different_work() {
    let (quiet, busy) = (
        [2.5, 2.6, 2.4, 2.5, 2.7, 2.5],
        [8.0, 7.9, 8.3, 8.1, 7.6, 8.0],
    );
    for times in [
        [quiet, busy, quiet].concat(),
        [busy, quiet, quiet].concat(),
        [quiet, quiet, busy].concat(),
    ] {
        for seconds in [5, 1000, 100_000] {
            let found = apart(seconds, &times).unwrap();
            assert!(
                found.modes.is_some() && !found.in_turn,
                "{seconds} s: {found:?}"
            );
        }
        assert!(!of_default(&times).unwrap().in_turn);
    }
    // The order of starts counts, not the order in which the service came to know of the runs.
    let started = |run: i64| if run % 2 == 0 { run } else { 1000 + run };
    let late: Vec<_> = (0..16)
        .map(|run| (60 * started(run), [10.0, 20.0][run as usize % 2], false))
        .collect();
    assert!(!of_runs(&late).unwrap().in_turn);
}

#[test]
fn the_tuned_runs_tell_a_busy_hour_from_different_work() {
    // Every other control run is slow: by themselves they look like works that take turns.
    let controls = (0..8).map(|run| (run * 3600, [10.0, 20.0][run as usize % 2], false));
    let found = of_runs(&controls.clone().collect::<Vec<_>>()).unwrap();
    assert!(found.in_turn);
    // Nine tuned runs follow each control run; they are a fifth quicker, and slow when it is slow.
    let hour = |run: i64| (run / 10, run % 10);
    let busy: Vec<_> = (0..80)
        .map(|run| {
            let (hour, place) = hour(run);
            let level = [10.0, 20.0][hour as usize % 2];
            (
                run * 360,
                if place == 0 { level } else { 0.8 * level },
                place != 0,
            )
        })
        .collect();
    let found = of_runs(&busy).unwrap();
    assert!(found.modes.is_some() && !found.in_turn, "{found:?}");
    assert_eq!((found.runs, found.tuned), (8, 32));
    // Tuned runs that change from run to run show that the work changes.
    let works: Vec<_> = busy
        .iter()
        .zip(0_usize..)
        .map(|((start, _, is_tuned), run)| {
            let level = [10.0, 20.0][run * 7 / 5 % 2];
            (
                *start,
                if *is_tuned { 0.8 * level } else { level },
                *is_tuned,
            )
        })
        .collect();
    assert!(of_runs(&works).unwrap().in_turn);
}

#[test]
fn what_tuning_gains_is_no_second_work() {
    for gain in [0.1, 0.5, 0.9, 1.5] {
        let runs: Vec<_> = (0..40)
            .map(|run| {
                let is_tuned = run % 4 != 0;
                let noise = 1.0 + 0.02 * (run % 5) as f64;
                (
                    run * 60,
                    100.0 * noise * if is_tuned { gain } else { 1.0 },
                    is_tuned,
                )
            })
            .collect();
        assert_eq!(of_runs(&runs), None, "{gain}");
    }
}

#[test]
fn runs_that_start_together_are_judged_too() {
    let at_once: Vec<_> = (0..16)
        .map(|run| (7, [10.0, 20.0][run % 2], false))
        .collect();
    assert!(of_runs(&at_once).unwrap().in_turn);
    let ends = [i64::MIN, i64::MAX];
    let anywhen: Vec<_> = (0..16)
        .map(|run| (ends[run % 2], [10.0, 20.0][run % 2], false))
        .collect();
    assert!(!of_runs(&anywhen).unwrap().in_turn);
}

#[test]
fn times_that_vary_beyond_reason_are_a_mixture_without_modes() {
    for (times, in_turn) in [
        ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], false),
        ([1.0, 16.0, 2.0, 32.0, 4.0, 8.0], true),
    ] {
        let found = apart(5, &times).unwrap();
        assert!(found.cv > 1.0 && found.modes.is_none(), "{found:?}");
        assert_eq!(found.in_turn, in_turn);
    }
    assert_eq!(of_default(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), None);
    assert_eq!(of_default(&[5.0; 8]), None);
    let ends = [1e100, 1e-100];
    assert!(of_default(&[ends, ends, ends].concat()).is_some_and(|found| found.in_turn));
}

#[test]
fn one_outlier_decides_nothing_and_two_are_forgotten() {
    let with = |quiet: usize, outliers: &[f64]| {
        let quiet = (0..quiet).map(|run| 10.0 + 0.1 * (run % 3) as f64);
        let times: Vec<f64> = outliers.iter().copied().chain(quiet).collect();
        of_default(&times)
    };
    for quiet in 3..=31 {
        assert_eq!(with(quiet, &[10_000.0]), None, "{quiet}");
        assert_eq!(with(quiet, &[0.001]), None, "{quiet}");
    }
    // Two outliers are found, but they are not different work if they come in a row.
    for quiet in [6, 30] {
        assert!(!with(quiet, &[10_000.0, 9_000.0]).unwrap().in_turn);
    }
    let between = [10.0, 10_000.0, 10.1, 10.0, 10.2, 9_000.0, 10.0, 10.1];
    assert!(apart(5, &between).unwrap().in_turn);
    assert_eq!(with(31, &[10_000.0, 9_000.0]), None);
}

const STUDIES: u32 = 4000;

/// The share of studies in which a mixture is found, with times drawn by `draw`.
fn share(runs: usize, seed: u64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let studies = trials(STUDIES);
    let found = (0..studies).filter(|_| {
        let times: Vec<f64> = (0..runs).map(|_| draw(&mut rng)).collect();
        of_default(&times).is_some()
    });
    found.count() as f64 / f64::from(studies)
}

#[test]
fn noise_is_no_mixture() {
    for spread in [0.02, 0.1, 0.2, 0.25] {
        for runs in 4..=RECENT_RUNS {
            for one_in in [f64::INFINITY, 16.0] {
                let found = share(runs, 1, |rng| {
                    let noise = (spread * normal(rng)).exponential();
                    if rng.random::<f64>() < 1.0 / one_in {
                        noise * rng.random_range(1.3..1.6)
                    } else {
                        noise
                    }
                });
                let most = 0.01 + slack(0.01, STUDIES);
                assert!(found < most, "spread {spread}, {runs} runs: {found}");
            }
        }
    }
}

#[test]
fn the_power_is_as_documented() {
    // Two works alternate at random, the second taking `ratio` times as long. Columns: runs, ratio,
    // noise, and the share of studies whose times look like two works.
    for (runs, ratio, spread, expected) in [
        (4, 2.0, 0.05, 0.30),
        (8, 2.0, 0.05, 0.92),
        (8, 2.0, 0.10, 0.55),
        (8, 3.0, 0.10, 0.91),
        (16, 2.0, 0.10, 0.96),
        (16, 2.0, 0.20, 0.14),
        (32, 2.0, 0.10, 1.0),
        (32, 2.0, 0.20, 0.52),
        (32, 3.0, 0.25, 0.98),
    ] {
        let found = share(runs, 2, |rng| {
            let work = if rng.random::<bool>() { ratio } else { 1.0 };
            work * (spread * normal(rng)).exponential()
        });
        assert!(
            (found - expected).abs() < 0.03 + slack(expected, STUDIES),
            "{runs} runs, 1:{ratio}, noise {spread}: {found}"
        );
    }
}

/// Repeats a tenth of the studies of docs/measurements/mixture.md. Columns: the kind of study,
/// hours between starts, whether these are even, runs, and the percentages of studies that look
/// like two works and that are called different work, followed by the default's share of the runs.
/// The noise is 0.10.
#[test]
fn the_measured_rates_hold() {
    const STUDIES: u64 = 100;
    const SECONDS: f64 = 1.0 / 3600.0;
    for (what, gap, is_even, runs, default_share, looks, in_turn) in [
        (What::Nothing, 2.0, false, 32, 0.3, 1.0, 0.0),
        (What::Episodes(10.0, 2.0), 2.0, false, 16, 1.0, 37.0, 0.1),
        (What::Episodes(10.0, 2.0), 2.0, false, 16, 0.3, 44.0, 0.3),
        (What::Episodes(4.0, 2.0), 2.0, false, 32, 1.0, 82.0, 0.1),
        (What::Episodes(4.0, 2.0), 2.0, false, 32, 0.3, 84.0, 0.1),
        (What::Episodes(4.0, 2.0), 6.0, false, 16, 0.3, 61.0, 0.1),
        (What::Episodes(4.0, 2.0), 24.0, false, 32, 1.0, 97.0, 0.1),
        (What::Episodes(2.0, 2.0), 2.0, false, 16, 0.3, 55.0, 1.0),
        (
            What::Once(180.0 * SECONDS, 3.0),
            30.0 * SECONDS,
            true,
            16,
            0.3,
            97.0,
            0.0,
        ),
        (
            What::Episodes(60.0 * SECONDS, 3.0),
            5.0 * SECONDS,
            true,
            32,
            0.3,
            63.0,
            1.0,
        ),
        (What::Memory(0.9), 2.0, false, 32, 1.0, 0.0, 0.0),
        (What::Weekly, 2.0, false, 32, 0.3, 1.0, 0.0),
        (What::Alternating(2.0), 1.0 / 3.0, true, 16, 1.0, 77.0, 76.9),
        (What::Random(2.0), 5.0 * SECONDS, true, 16, 0.3, 75.0, 68.3),
        (What::Random(2.0), 2.0, false, 32, 1.0, 100.0, 74.7),
        (What::Random(3.0), 2.0, false, 8, 1.0, 79.0, 21.5),
        (What::Random(3.0), 2.0, false, 16, 0.3, 97.0, 52.9),
        (What::Random(3.0), 24.0, false, 32, 1.0, 100.0, 12.3),
    ] {
        let world = World {
            what,
            gap,
            is_even,
            noise: 0.1,
            default_share,
        };
        let found = world.found(runs, STUDIES).unwrap();
        for (count, percent) in [(found.0, looks), (found.1, in_turn)] {
            let expected = percent / 100.0 * STUDIES as f64;
            // The tolerance is three times the binomial error of a rate that the page rounds.
            let rate: f64 = (percent / 100.0_f64).clamp(0.005, 0.995);
            let error = 3.0 * (STUDIES as f64 * rate * (1.0 - rate)).sqrt();
            assert!(
                (count as f64 - expected).abs() <= error,
                "{world:?}, {runs} runs: {found:?}"
            );
        }
    }
}
