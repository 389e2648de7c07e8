//! The deep Q-network learns over whole lives of studies.

use crate::study::settings::{MethodName, Settings};
use crate::testing::{Outcome, categories, finish, integers, published, started, suggest, trials};
use io_autotune_baselines::Revisits;
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};
use io_autotune_search::history::{History, Role};
use io_autotune_search::math::Portable;

/// A space whose parameters each slow the run by a factor of their own, independent of the others.
fn separable() -> Space {
    let mut parameters: Vec<_> = (0..4)
        .map(|n| integers(&format!("p{n}"), 0, 5, 1))
        .collect();
    parameters.extend([categories("mode", 5), categories("layout", 4)]);
    Space::new(parameters).unwrap()
}

/// Elapsed of a point: 1 s at best; the default is `e^2.9` times as slow.
fn truth(point: &Point) -> f64 {
    let far: u32 = [4, 1, 5, 3]
        .iter()
        .zip(&point.0)
        .map(|(best, level): (&u32, &u32)| best.abs_diff(*level))
        .sum();
    let modes = [0.8, 0.0, 0.5, 0.9, 0.3][point.0[4] as usize];
    let layouts = [0.15, 0.6, 0.0, 0.3][point.0[5] as usize];
    (0.15 * f64::from(far) + modes + layouts).exponential()
}

/// The means over seeds of the search runs' log seconds, and of the logarithm of the quickest run.
fn lives(method: MethodName) -> (f64, f64) {
    let seeds = u64::from(trials(24));
    let space = separable();
    let mut settings = Settings {
        method,
        baseline_runs: 2,
        budget: 50,
        ..published()
    };
    // Otherwise a third of the runs would repeat known points.
    settings.cao2018_dqn.revisits = Revisits::Free;
    let (mut runs, mut quickest) = (0.0, 0.0);
    for seed in 0..seeds {
        let mut history = History::default();
        let mut times = Vec::new();
        while times.len() < settings.budget as usize {
            let suggestion = suggest(&space, &history, &[], &settings, seed);
            let point = space.validate(&suggestion.parametrization).unwrap();
            let elapsed = truth(&point);
            if suggestion.role == Role::Search {
                times.push(elapsed.logarithm());
            }
            finish(
                &mut history,
                &started(&suggestion),
                Outcome::Elapsed(elapsed),
            );
        }
        runs += times.iter().sum::<f64>() / times.len() as f64;
        quickest += times.into_iter().fold(f64::INFINITY, f64::min);
    }
    (runs / seeds as f64, quickest / seeds as f64)
}

#[test]
fn it_learns_what_each_value_is_worth() {
    let (runs, quickest) = lives(MethodName::Cao2018Dqn);
    let (random_runs, random_quickest) = lives(MethodName::Random);
    assert!(runs < random_runs - 0.4, "{runs} and {random_runs}");
    assert!(
        quickest < random_quickest,
        "{quickest} and {random_quickest}"
    );
}

#[test]
fn it_starts_at_the_default_and_says_what_it_changed() {
    let space = separable();
    let settings = Settings {
        method: MethodName::Cao2018Dqn,
        baseline_runs: 2,
        ..Settings::default()
    };
    let mut history = History::default();
    let mut at = space.default();
    for _ in 0..30 {
        let suggestion = suggest(&space, &history, &[], &settings, 3);
        if let Reason::Action { from, changed, .. } = &suggestion.reason {
            assert_eq!(changed.len(), 1);
            if history.tally.explored == 0 {
                assert_eq!(*from, at);
            }
            at = suggestion.parametrization.clone();
        }
        let point = space.validate(&suggestion.parametrization).unwrap();
        let elapsed = truth(&point);
        finish(
            &mut history,
            &started(&suggestion),
            Outcome::Elapsed(elapsed),
        );
    }
    assert_ne!(at, space.default());
}
