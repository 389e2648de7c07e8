//! The promises about a study's gain: docs/measurements/report-guarantees.md with fewer studies.

#![allow(clippy::unwrap_used)]

#[path = "../src/bin/guarantees/measure.rs"]
mod measure;
#[path = "../src/bin/guarantees/sites.rs"]
mod sites;
#[path = "../src/bin/guarantees/world.rs"]
mod world;
#[path = "../src/bin/guarantees/yuen.rs"]
mod yuen;

use io_autotune_search::testing::trials;
use measure::{coverage, detectable, null, until_claim};
use serde_json::Value;
use statrs::distribution::{Binomial, DiscreteCDF};
use world::{WORLDS, World};

const PAGE: &str = include_str!("../../../docs/measurements/report-guarantees.md");

fn named(name: &str) -> World {
    WORLDS.into_iter().find(|one| one.name == name).unwrap()
}

fn studies() -> u64 {
    trials(100).into()
}

/// The share that one in a hundred samples exceeds where the truth is `share`.
fn most(share: f64) -> f64 {
    let hits = Binomial::new(share, studies()).unwrap().inverse_cdf(0.99);
    hits as f64 / studies() as f64
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len() as f64
}

#[test]
fn studies_without_an_effect_are_rarely_claimed_to_have_one() {
    let mut all = Vec::new();
    for world in WORLDS {
        let null = null(&world, studies(), 1);
        assert!(null.ever <= most(0.05), "{}: {null:?}", world.name);
        assert!(
            null.faster.max(null.slower) <= most(0.025),
            "{}: {null:?}",
            world.name
        );
        // The simulation sees what it is there to see.
        assert!(null.lucky > 0.2, "{}: {null:?}", world.name);
        assert!(null.yuen > 0.1, "{}: {null:?}", world.name);
        all.push([null.ever, null.yuen]);
    }
    let shares = |place: usize| all.iter().map(|one| one[place]).collect::<Vec<_>>();
    assert!(mean(&shares(0)) <= 0.05);
    assert!(mean(&shares(1)) > 0.2);
}

#[test]
fn intervals_hold_the_truth_at_each_look_of_a_life() {
    let mut all = Vec::new();
    for world in WORLDS {
        let [end, always] = coverage(&world, studies(), 2);
        assert!(1.0 - end <= most(0.05), "{}: {end}", world.name);
        assert!(1.0 - always <= most(0.07), "{}: {always}", world.name);
        all.push([end, always]);
    }
    let shares = |place: usize| all.iter().map(|one| one[place]).collect::<Vec<_>>();
    assert!(mean(&shares(0)) >= 0.975);
    assert!(mean(&shares(1)) >= 0.975);
}

#[test]
fn what_can_be_detected_is_what_the_docs_say() {
    let world = named("noise 17 %");
    let found = detectable(&world, &[40, 100], 2 * studies(), 3);
    let found: Vec<f64> = found.into_iter().map(Option::unwrap).collect();
    assert!((0.18..=0.28).contains(&found[0]), "{found:?}");
    assert!((0.12..=0.18).contains(&found[1]), "{found:?}");
}

#[test]
fn a_gain_is_claimed_in_half_of_the_runs_where_the_first_control_runs_come_faster() {
    let world = named("noise 17 %");
    let [ours, evenly] = [false, true].map(|is_even| {
        let [median, _] = until_claim(&world, 0.2, is_even, 2 * studies(), 5);
        median.unwrap() as f64
    });
    assert!(
        ours <= 0.5 * evenly && ours <= 45.0,
        "{ours} and {evenly} runs"
    );
}

#[test]
fn sites_are_printed_as_the_report_reads_them() {
    let mut out = Vec::new();
    let worlds = [(0, named("noise 5 %, drift 10 %"))];
    sites::print_claims(&mut out, 2, 30, 5).unwrap();
    sites::print_nights(&mut out, &worlds, 2, 5).unwrap();
    let lines: Vec<Value> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    // Two sites of claims, and two of totals in twelve nights.
    assert_eq!(lines.len(), 2 + 2 * 12);
    assert_eq!(lines[0]["claims"]["studies"].as_array().unwrap().len(), 30);
    let last = &lines.last().unwrap()["night"];
    assert_eq!(
        (last["site"].as_u64(), last["world"].as_str()),
        (Some(1), Some(worlds[0].1.name))
    );
    let effects = last["effects"].as_array().unwrap();
    assert_eq!(effects.len(), 20);
    for weighed in effects {
        // The noise, and what is far from a control run: the hours that are said are about those that are true.
        let (said, hours) = (&weighed["effect"]["default_hours"], &weighed["hours"]);
        let ratio = said.as_f64().unwrap() / hours.as_f64().unwrap();
        assert!((0.9..1.2).contains(&ratio), "{ratio}");
    }
}

#[test]
fn the_page_says_of_each_world_that_the_promise_holds() {
    let shares = |world: &World| {
        let head = format!("| {} |", world.name);
        let row = PAGE
            .lines()
            .find_map(|line| line.strip_prefix(&head))
            .unwrap();
        let first = row.split('%').next().unwrap();
        first.trim().parse::<f64>().unwrap() / 100.0
    };
    for world in WORLDS {
        let ever = shares(&world);
        assert!(ever <= 0.05, "{}: {ever}", world.name);
    }
}
