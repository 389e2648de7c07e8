//! docs/measurements/shared.md in small.

#![allow(clippy::unwrap_used)]

#[path = "../examples/time_to_proof/application.rs"]
mod application;
#[path = "../examples/shared/claims.rs"]
mod claims;
#[path = "../examples/shared/lives.rs"]
mod lives;
#[path = "../examples/guarantees/surroundings.rs"]
mod surroundings;

use application::Application;
use claims::{Group, Lie, claims};
use lives::{Deed, Life, Way, live};
use surroundings::{WORLDS, World};

const PAGE: &str = include_str!("../../../docs/measurements/shared.md");

fn usual() -> World {
    let named = |world: &World| world.name == "noise 17 %";
    WORLDS.into_iter().find(named).unwrap()
}

fn group(log_ratio: f64, lie: Lie) -> Group {
    Group {
        world: usual(),
        log_ratio,
        lie,
        inputs: 0.0,
    }
}

#[test]
fn a_liar_makes_all_runs_together_claim_a_gain_and_not_what_is_shared() {
    let group = group(0.0, Lie::For(2.0));
    let all: Vec<_> = (0..10).map(|seed| claims(&group, seed)).collect();
    let pooled = all.iter().filter(|one| one.pooled.is_some()).count();
    let shared = all.iter().filter(|one| one.shared.is_some()).count();
    assert!(pooled >= 8 && shared <= 1, "{pooled} and {shared} of 10");
}

#[test]
fn a_gain_is_claimed_even_against_a_liar_and_never_a_loss() {
    for lie in [Lie::None, Lie::Against(2.0), Lie::Noise(0.7)] {
        let all: Vec<_> = (0..6).map(|seed| claims(&group(0.22, lie), seed)).collect();
        let claimed = all.iter().filter(|one| one.shared.is_some()).count();
        assert!(claimed >= 5, "{lie:?}: {all:?}");
        assert!(all.iter().all(|one| one.shared_loss.is_none()), "{all:?}");
    }
}

#[test]
fn who_ends_slow_runs_early_brings_nobody_else_to_run_them() {
    let application = Application::new(0.2, usize::MAX).unwrap();
    let found = |way| {
        let life = Life {
            application: &application,
            world: usual(),
            way,
            deed: Deed::Shorten,
            inputs: 0.0,
            runs: 120,
        };
        (0..4).map(|seed| live(&life, seed)[0]).sum::<f64>() / 4.0
    };
    let (pooled, shared) = (found(Way::Pooled), found(Way::Shared));
    assert!(shared > pooled && shared > 0.0, "{shared} and {pooled}");
    assert!(found(Way::Alone) > -0.03);
}

#[test]
fn the_page_says_that_the_promise_holds_whatever_one_user_does() {
    let rows: Vec<Vec<f64>> = PAGE
        .split("## False claims")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| noise"))
        .map(|line| {
            let cells = line
                .split('|')
                .filter_map(|cell| cell.trim().strip_suffix(" %"));
            cells.filter_map(|cell| cell.parse().ok()).collect()
        })
        .collect();
    assert_eq!(rows.len(), 12);
    for row in rows {
        let [.., gain, loss] = row[..] else {
            panic!("{row:?}")
        };
        assert!(gain <= 4.0 && loss <= 1.0, "{row:?}");
    }
}
