//! docs/measurements/shared.md in small.

#![allow(clippy::unwrap_used)]

#[path = "../src/bin/time_to_proof/application.rs"]
#[expect(dead_code, reason = "its runs are not asked what they did")]
mod application;
#[path = "../src/bin/shared/claims.rs"]
mod claims;
#[path = "../src/bin/shared/lives.rs"]
mod lives;
#[path = "../src/bin/guarantees/surroundings.rs"]
mod surroundings;

use application::Made;
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
    assert!(pooled >= 2 && shared == 0, "{pooled} and {shared} of 10");
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
fn honest_users_are_recommended_what_gains_whoever_lies() {
    let application = Made::new(0.2, usize::MAX).unwrap();
    let life = |way, deed, seed| {
        let life = Life {
            application: &application,
            world: usual(),
            way,
            deed,
            inputs: 0.0,
            runs: 120,
        };
        live(&life, seed)
    };
    for deed in [Deed::Lie(Lie::None), Deed::Shorten] {
        let found = (0..4).map(|seed| life(Way::Shared, deed, seed)[0]);
        let found = found.sum::<f64>() / 4.0;
        assert!(found > 0.02 && found < 0.2, "{deed:?}: {found}");
    }
    for way in [Way::Alone, Way::Pooled, Way::Shared] {
        let [mean, least] = life(way, Deed::Shorten, 1);
        assert!(least <= mean && mean < 0.2, "{way:?}: {least} and {mean}");
        let again = life(way, Deed::Shorten, 1);
        assert!(
            (again[0] - mean).abs() < 1e-12,
            "a seed's life is always the same"
        );
    }
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
