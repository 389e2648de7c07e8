//! A region that fails is avoided, and the gain that it might have had does not attract further
//! runs.

use crate::study::proof::settings::ProofSettings;
use crate::study::settings::{MethodName, Settings};
use crate::testing::{Outcome, finish, grid, started, suggest};
use io_autotune_model::space::Point;
use io_autotune_search::history::History;

/// Times fall towards the corner that fails, half of the space.
fn outcome(point: &Point) -> Outcome {
    let steps = point.0.iter().sum::<u32>();
    match point.0[0] + point.0[1] {
        0..=5 => Outcome::Elapsed(100.0 * 0.95_f64.powi(steps as i32)),
        _ => Outcome::Failed,
    }
}

/// The share of failed runs in ten studies of 50 runs.
fn failed(method: MethodName) -> f64 {
    let space = grid(&[6, 6, 4]);
    let settings = Settings {
        method,
        proof: ProofSettings::NEVER,
        ..Settings::default()
    };
    let (mut failed, mut runs) = (0, 0);
    for seed in 0..10 {
        let mut history = History::default();
        for _ in 0..50 {
            let suggestion = suggest(&space, &history, &[], &settings, seed);
            let point = space.validate(&suggestion.parametrization).unwrap();
            finish(&mut history, &started(&suggestion), outcome(&point));
        }
        failed += history
            .tested
            .iter()
            .map(|tested| tested.failed)
            .sum::<u64>();
        runs += history.tally.total;
    }
    failed as f64 / runs as f64
}

#[test]
fn a_region_that_fails_is_left_alone() {
    let (ours, random) = (
        failed(MethodName::SurrogateGenetic),
        failed(MethodName::Random),
    );
    assert!(random > 0.25, "{random}");
    assert!(ours < random / 2.0, "{ours} of ours, {random} of random's");
}
