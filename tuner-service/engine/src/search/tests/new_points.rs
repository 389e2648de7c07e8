//! A search goes on to new points if one point is far ahead of all others that ran.

use std::collections::BTreeSet;

use crate::study::settings::Settings;
use crate::testing::{Outcome, finish, grid, started, suggest};
use io_autotune_model::space::Point;
use io_autotune_search::history::History;

/// Elapsed is slow except for a slope along one parameter, and fast at one point.
fn outcome(point: &Point) -> Outcome {
    Outcome::Elapsed(match point.0[..] {
        [3, 3, 2, 3] => 30.0,
        _ => 100.0 + 20.0 * f64::from(point.0[0]),
    })
}

/// The number of parametrizations that a study of 60 runs tried.
fn tried(new_point_every: u32) -> usize {
    let space = grid(&[6, 6, 4, 6]);
    let mut settings = Settings::default();
    settings.surrogate_genetic.design_points = 5;
    settings.surrogate_genetic.new_point_every = new_point_every;
    let mut history = History::default();
    for _ in 0..60 {
        let suggestion = suggest(&space, &history, &[], &settings, 3);
        let point = space.validate(&suggestion.parametrization).unwrap();
        finish(&mut history, &started(&suggestion), outcome(&point));
    }
    let tried = history.tested.into_iter();
    tried
        .map(|tested| tested.parametrization)
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn a_third_of_the_runs_is_of_new_points_once_the_best_is_known() {
    let (with, without) = (tried(3), tried(0));
    assert!(with >= 15 && with >= without, "{with}, without {without}");
}
