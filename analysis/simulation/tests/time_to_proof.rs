//! docs/measurements/time-to-proof.md in small.

#![allow(clippy::unwrap_used)]

#[path = "../src/bin/time_to_proof/application.rs"]
mod application;
#[path = "../src/bin/time_to_proof/engine.rs"]
mod engine;
#[path = "../src/bin/time_to_proof/figures.rs"]
mod figures;
#[path = "../src/bin/time_to_proof/life.rs"]
mod life;
#[path = "../src/bin/guarantees/surroundings.rs"]
mod surroundings;

use std::collections::BTreeMap;

use application::{Application, Made};
use engine::hot;
use figures::{Figures, Quantile, Share};
use io_autotune_engine::Settings;
use life::{Outcome, Study, live};
use surroundings::{WORLDS, World};

type Failure = Box<dyn std::error::Error>;

/// Enough for a search and a proof of a large gain.
const HORIZON: u32 = 130;

fn quiet() -> World {
    let named = |world: &World| world.name == "noise 5 %";
    WORLDS.into_iter().find(named).unwrap()
}

fn lives(
    application: &dyn Application,
    prior: Option<&engine::Prior>,
    at_once: usize,
    seed: u64,
) -> Outcome {
    let study = Study {
        application,
        settings: &Settings::default(),
        prior,
        at_once,
        hourly: 0.0,
        others: false,
        horizon: HORIZON,
    };
    live(&study, &quiet(), seed)
}

#[test]
fn the_best_point_takes_the_gain_less_than_the_default() {
    let application = Made::new(0.2, usize::MAX).unwrap();
    let default = application.space().default();
    assert!(application.log_gain(&default).abs() < 1e-12);
    let mut best = default;
    let values: BTreeMap<_, _> = [("stripes", 16), ("writers", 4)]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into();
    best.0.extend(values);
    best.0.insert("buffering".to_owned(), "enable".into());
    best.0.insert("collective".to_owned(), "disable".into());
    application.space().validate(&best).unwrap();
    let share = application.seconds(&best) / application.seconds(&application.space().default());
    assert!((share - 0.8).abs() < 1e-12, "{share}");
    // Without a buffer the writers bring nothing, and it costs.
    best.0.insert("buffering".to_owned(), "disable".into());
    let log_gain = application.log_gain(&best);
    assert!(
        (log_gain / -(0.8_f64.ln()) - 0.25).abs() < 1e-12,
        "{log_gain}"
    );
}

#[test]
fn of_the_most_important_parameters_some_are_tuned_alone() {
    let application = Made::new(0.2, 2).unwrap();
    let mut best = application.space().default();
    assert_eq!(best.0.len(), 2);
    assert!(application.log_gain(&best).abs() < 1e-12);
    best.0.insert("stripes".to_owned(), 16.into());
    best.0.insert("writers".to_owned(), 4.into());
    application.space().validate(&best).unwrap();
    let log_gain = application.log_gain(&best);
    assert!((log_gain / -(0.8_f64.ln()) - 0.75).abs() < 1e-12);
}

#[test]
fn a_large_gain_is_found_and_claimed_alone_or_beside_other_runs() {
    let application = Made::new(0.5, usize::MAX).unwrap();
    for at_once in [1, 8] {
        let life = |seed| lives(&application, None, at_once, seed);
        let two = [1, 2].map(life);
        for one in &two {
            let (settled, faster) = (one.settled.unwrap(), one.faster.unwrap());
            assert!(
                settled > 12 && settled < faster && faster <= HORIZON,
                "{one:?}"
            );
            assert!(one.slower.is_none() && one.found > 0.3, "{one:?}");
            // Between its trials most runs get the best known: a search may gain while it lasts.
            assert!(one.regret != 0.0 && one.regret < 1.0, "{one:?}");
        }
        // A seed's life is always the same.
        assert_eq!(format!("{:?}", life(1)), format!("{:?}", two[0]));
    }
}

#[test]
fn where_nothing_is_to_win_nothing_is_lost_or_found() {
    let application = Made::new(0.0, usize::MAX).unwrap();
    let one = lives(&application, None, 1, 1);
    assert!(one.settled.is_some(), "{one:?}");
    assert!(
        one.found.abs() < 1e-12 && one.regret.abs() < 1e-12,
        "{one:?}"
    );
}

#[test]
fn an_application_of_a_site_gains_what_it_is_to_and_begins_from_those_it_is_said_to() {
    let space = hot::space().unwrap();
    let all: Vec<_> = space.points(space.size() as usize).unwrap();
    for (gain, begun) in hot::CELLS {
        for (from, _) in begun.iter().take(2) {
            let (application, prior) = hot::begin(&space, *from, gain, 0.17, 3);
            assert_eq!(prior.is_some(), *from != hot::From::Nobody, "{from:?}");
            let all = all.iter().map(|point| space.parametrization(point));
            let most = all.map(|one| application.log_gain(&one));
            let most = most.fold(f64::NEG_INFINITY, f64::max);
            assert!((most + (-gain).ln_1p()).abs() < 1e-9, "{most} for {gain}");
        }
    }
}

#[test]
fn who_never_claimed_is_behind_everybody_in_a_quantile() {
    let of = |numbers: &[u32]| Quantile::of(numbers, 0.5);
    let all = of(&(1..=101).collect::<Vec<_>>());
    // The 41st to the 62nd of 101, by the binomial distribution about 95 %.
    assert_eq!(
        (all.value, all.low, all.high),
        (Some(51), Some(40), Some(62))
    );
    let half = of(&[7, 8, u32::MAX, u32::MAX]);
    assert_eq!((half.value, half.high), (Some(8), None));
    let outcomes = [Some(90), None, None].map(|faster| Outcome {
        settled: Some(50),
        faster,
        ..Outcome::default()
    });
    let figures = Figures::of(engine::NAME, "c", 1, &outcomes, 0.0);
    assert_eq!(figures.runs.map(|one| one.value), [None, None]);
    assert_eq!(figures.search.value, Some(50));
    assert!((figures.faster.value - 1.0 / 3.0).abs() < 1e-12);
    // Wilson's interval of 1 in 20, as in the literature.
    let share = Share::of(1, 20);
    assert!(
        (share.low - 0.0089).abs() < 1e-3 && (share.high - 0.2361).abs() < 1e-3,
        "{share:?}"
    );
    let together = Share::together([(&share, 20), (&Share::of(3, 20), 20)].into_iter());
    assert!((together.value - 0.1).abs() < 1e-12);
}
