//! Whole studies of an artificial application with a planted optimum.

use io_autotune_search::math::Portable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::settled::mean_interval::elapsed_of;
use crate::study::settings::{MethodName, Settings};
use crate::testing::{
    Outcome, categories, finish, integers, normal, published, recommend, started, suggest,
};
use io_autotune_baselines::robert2020::{Crossover, Selection};
use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::history::{History, Moments, Pending, Phase, Role};

/// Six parameters as ROMIO has them; the defaults are the first values.
fn space() -> Space {
    Space::new(vec![
        integers("workers", 2, 12, 2),
        integers("destagers", 2, 12, 2),
        integers("cache", 40, 60, 10),
        integers("threshold", 50, 90, 10),
        categories("mode", 3),
        integers("idle", 0, 7, 1),
    ])
    .unwrap()
}

/// The true time in seconds: every parameter multiplies it except one without effect, and two
/// interact. The optimum is 60 s; the default takes 104 s.
fn truth(point: &Point) -> f64 {
    let off = |index: usize, best: f64| f64::from(point.0[index]) - best;
    let workers = 1.0 + 0.04 * off(0, 4.0).abs();
    let destagers = 1.0 + 0.06 * off(1, 3.0).abs();
    let cache = 1.0 + 0.05 * (2.0 - f64::from(point.0[2]));
    let threshold = 1.0 + 0.02 * f64::from(point.0[3]);
    let mode = [1.15, 1.0, 1.4][point.0[4] as usize];
    let contention = if point.0[0] + point.0[1] > 8 {
        1.15
    } else {
        1.0
    };
    60.0 * workers * destagers * cache * threshold * mode * contention
}

struct Flight {
    run: Pending,
    elapsed: f64,
    end: f64,
    fails: bool,
}

struct Life {
    recommended: Parametrization,
    tuned: Vec<f64>,
    control: Vec<f64>,
    settled_on_one_run: bool,
}

/// A life of 140 runs, up to `parallel` of them at once, with noise of the given spread; three in a
/// hundred fail. A run ends when its time has passed.
fn live(
    settings: &Settings,
    seed: u64,
    parallel: usize,
    spread: f64,
    truth: fn(&Point) -> f64,
) -> Life {
    let space = space();
    let mut world = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut history = History::default();
    let mut flights: Vec<Flight> = Vec::new();
    let mut now = 0.0;
    let mut life = Life {
        recommended: Parametrization::default(),
        tuned: Vec::new(),
        control: Vec::new(),
        settled_on_one_run: false,
    };
    while history.tally.total < 140 {
        if flights.len() < parallel {
            let pending: Vec<Pending> = flights.iter().map(|flight| flight.run.clone()).collect();
            let suggestion = suggest(&space, &history, &pending, settings, seed);
            if suggestion.role == Role::Settled {
                let entry = history
                    .tested
                    .iter()
                    .find(|tested| tested.parametrization == suggestion.parametrization);
                life.settled_on_one_run |= entry.is_none_or(|tested| tested.elapsed.count < 2);
            }
            let point = space.validate(&suggestion.parametrization).unwrap();
            let elapsed = truth(&point) * (spread * normal(&mut world)).exponential();
            flights.push(Flight {
                run: started(&suggestion),
                elapsed,
                end: now + elapsed,
                fails: world.random_bool(0.03),
            });
            continue;
        }
        let next = (0..flights.len())
            .min_by(|a, b| flights[*a].end.total_cmp(&flights[*b].end))
            .unwrap();
        let flight = flights.swap_remove(next);
        now = flight.end;
        if flight.fails {
            finish(&mut history, &flight.run, Outcome::Failed);
            continue;
        }
        match (flight.run.phase, flight.run.role) {
            (Phase::Settled, Role::Settled) => life.tuned.push(flight.elapsed),
            (Phase::Settled, Role::Control) => life.control.push(flight.elapsed),
            _ => {}
        }
        finish(&mut history, &flight.run, Outcome::Elapsed(flight.elapsed));
    }
    life.recommended = recommend(&space, &history, settings)
        .unwrap()
        .parametrization;
    life
}

struct Summary {
    /// The number of lives whose recommendation is truly better than the default.
    better: u32,
    /// The mean true time of the recommendations, in seconds.
    time: f64,
    /// The number of lives in which the intervals of the settled runs are apart, the tuned runs
    /// being faster.
    claimed: u32,
}

/// The results of `lives` lives.
fn summarise(
    lives: u32,
    settings: &Settings,
    parallel: usize,
    spread: f64,
    truth: fn(&Point) -> f64,
) -> Summary {
    let space = space();
    let mut summary = Summary {
        better: 0,
        time: 0.0,
        claimed: 0,
    };
    for seed in 0..lives {
        let life = live(settings, u64::from(seed), parallel, spread, truth);
        assert!(!life.settled_on_one_run, "seed {seed} settled on one run");
        assert!(!life.tuned.is_empty(), "seed {seed} never settled");
        let time = truth(&space.validate(&life.recommended).unwrap());
        summary.better += u32::from(time < truth(&space.default_point()));
        summary.time += time / f64::from(lives);
        let [tuned, control] = [&life.tuned, &life.control].map(|runs| {
            let mut moments = Moments::default();
            for run in runs {
                moments.push(*run).unwrap();
            }
            elapsed_of(&moments).and_then(|known| known.interval)
        });
        let apart = tuned
            .zip(control)
            .is_some_and(|(tuned, control)| tuned.1 < control.0);
        summary.claimed += u32::from(apart);
    }
    summary
}

#[test]
fn the_landscape_is_as_described() {
    let space = space();
    let points = space.points(100_000).expect("a small space");
    let best = points
        .into_iter()
        .map(|point| truth(&point))
        .fold(f64::INFINITY, f64::min);
    assert!((best - 60.0).abs() < 1e-9);
    let default = truth(&space.default_point());
    assert!((default - 60.0 * 1.16 * 1.18 * 1.1 * 1.15).abs() < 1e-9);
}

#[test]
fn studies_end_better_than_they_began() {
    let settings = Settings {
        control_every: 3,
        ..published()
    };
    for parallel in [1, 8] {
        let summary = summarise(10, &settings, parallel, 0.1, truth);
        assert!(summary.better >= 9, "{}", summary.better);
        assert!(summary.claimed >= 9, "{}", summary.claimed);
        // The default takes 104 s, a random point 101 s, the optimum 60 s.
        assert!(summary.time < 72.0, "{}", summary.time);
    }
}

#[test]
fn where_nothing_matters_nothing_is_claimed() {
    let settings = Settings {
        control_every: 2,
        ..published()
    };
    let summary = summarise(20, &settings, 4, 0.2, |_| 60.0);
    // The interval is too high in one life of forty.
    assert!(summary.claimed <= 2, "{}", summary.claimed);
}

#[test]
fn every_operator_finds_its_way() {
    for selection in [
        Selection::Tournament { pool_size: 5 },
        Selection::Probabilistic,
    ] {
        for crossover in [Crossover::SinglePoint, Crossover::NPoint { points: 2 }] {
            let mut settings = published();
            settings.robert2020.selection = selection;
            settings.robert2020.crossover = crossover;
            let summary = summarise(6, &settings, 4, 0.2, truth);
            assert!(summary.better >= 5, "{selection:?} {crossover:?}");
            assert!(summary.time < 80.0, "{}", summary.time);
        }
    }
}

#[test]
fn every_published_method_finds_its_way() {
    // A random point takes 101 s, the default 104 s, the optimum 60 s.
    for method in MethodName::ALL {
        let settings = Settings {
            method: *method,
            ..published()
        };
        let summary = summarise(6, &settings, 4, 0.1, truth);
        assert!(summary.better >= 5, "{method}: {}", summary.better);
        assert!(summary.time < 85.0, "{method}: {}", summary.time);
    }
}
