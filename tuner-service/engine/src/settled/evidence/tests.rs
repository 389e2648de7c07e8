use io_autotune_model::GainVerdict;
use io_autotune_search::math::Portable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::*;
use crate::testing::normal;

const SECOND: i64 = 1_000_000;

mod rules;

/// Runs and what the same rules say of them when nothing is summed on a grid (numpy and scipy, every
/// shift at which the sum of scores changes).
const EXACT: &str = include_str!("exact.json");

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

#[track_caller]
fn near(found: Option<f64>, exact: &Value, tolerance: f64) {
    match (found, exact.as_f64()) {
        (None, None) => {}
        (Some(found), Some(exact)) => assert!(
            (found - exact).abs() <= tolerance * exact.abs().max(1.0),
            "{found} is not {exact}"
        ),
        (found, exact) => panic!("{found:?} is not {exact:?}"),
    }
}

/// Enters a run as the reference has it: ordinal, start, phase, role, choice, effect, elapsed, nodes.
fn enter(evidence: &mut Evidence, row: &Value) {
    let key = format!("{{\"a\":{}}}", row[4]);
    let effect = row[5].as_str().unwrap();
    let counts = (effect != "failure").then(|| Counts {
        key: &key,
        is_default: row[4] == 0,
        elapsed: number(&row[6]).unwrap(),
        cut_short: effect == "censored",
    });
    evidence.record(&JudgedRun {
        ordinal: row[0].as_i64().unwrap(),
        started: row[1].as_i64().unwrap() * SECOND,
        phase: row[2].as_str().unwrap().parse().unwrap(),
        role: row[3].as_str().unwrap().parse().unwrap(),
        counts,
        nodes: u32::try_from(row[7].as_u64().unwrap()).unwrap(),
    });
}

#[test]
fn what_is_kept_says_what_all_the_runs_say() {
    let cases: Vec<Value> = serde_json::from_str(EXACT).unwrap();
    for case in &cases {
        let mut evidence = Evidence::default();
        for row in case["runs"].as_array().unwrap() {
            enter(&mut evidence, row);
        }
        let effects = evidence.effects(1);
        let exact = case["effects"].as_array().unwrap();
        assert_eq!(effects.len(), exact.len());
        for (found, exact) in effects.iter().zip(exact) {
            assert_eq!(found.number, exact["number"].as_u64().unwrap());
            assert_eq!(found.blocks, exact["blocks"].as_u64().unwrap());
            assert_eq!(found.tuned_runs, exact["tuned_runs"].as_u64().unwrap());
            near(found.log_ratio, &exact["log_ratio"], 0.005);
            near(found.standard_error, &exact["standard_error"], 0.005);
            // The spread of the scores is taken at the shift of the grid nearest to the centre.
            near(Some(found.log_evidence), &exact["log_evidence"], 0.06);
            near(found.detectable, &exact["detectable"], 0.02);
            near(Some(found.default_hours), &exact["default_hours"], 1e-5);
            near(Some(found.saved), &exact["saved"], 1e-5);
            near(Some(found.controls), &exact["controls"], 1e-5);
            near(found.net_variance, &exact["net_variance"], 1e-5);
            // Days are counted whole here.
            near(found.a_month, &exact["a_month"], 0.05);
            // The grid only widens the interval; with few blocks the curve is flat over long ways.
            for (end, exact, outwards) in [
                (found.low, &exact["low"], -1.0),
                (found.high, &exact["high"], 1.0),
            ] {
                let wider = end
                    .zip(number(exact))
                    .map(|(end, exact)| outwards * (end - exact));
                assert!(
                    wider.is_none_or(|wider| (-0.003..0.15).contains(&wider)),
                    "{wider:?}"
                );
                assert_eq!(end.is_some(), number(exact).is_some());
            }
        }
        let (gain, exact) = (evidence.gain(1), &case["gain"]);
        assert_eq!(
            serde_json::to_value(gain.verdict).unwrap(),
            exact["verdict"]
        );
        assert_eq!(gain.reason, exact["reason"].as_str().unwrap());
        assert_eq!(gain.control_runs, exact["control_runs"].as_u64().unwrap());
        assert_eq!(gain.tuned_runs, exact["tuned_runs"].as_u64().unwrap());
        near(gain.share, &exact["share"], 0.005);
        near(Some(gain.level), &exact["level"], 1e-6);
        near(Some(gain.evidence.logarithm()), &exact["evidence"], 0.06);
    }
}

#[test]
fn what_is_kept_goes_through_the_database_as_it_is() {
    let cases: Vec<Value> = serde_json::from_str(EXACT).unwrap();
    for case in &cases {
        let (mut kept, mut whole) = (Evidence::default(), Evidence::default());
        for row in case["runs"].as_array().unwrap() {
            enter(&mut kept, row);
            enter(&mut whole, row);
            kept = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
        }
        assert_eq!(kept, whole);
    }
}

/// A settled life of which every `every`th run is a control run.
struct Life {
    runs: u32,
    every: u32,
    noise: f64,
    /// Log of the default's elapsed over the tuned runs'.
    log_ratio: f64,
}

impl Life {
    fn lived(&self, rng: &mut ChaCha8Rng, mut look: impl FnMut(&Evidence)) -> Evidence {
        let mut evidence = Evidence::default();
        for ordinal in 1..=self.runs {
            let control = ordinal % self.every == 0;
            let slow = if rng.random::<f64>() < 1.0 / 16.0 {
                0.35
            } else {
                0.0
            };
            let log = self.noise * normal(rng) + slow + if control { self.log_ratio } else { 0.0 };
            let run = JudgedRun {
                ordinal: i64::from(ordinal),
                started: i64::from(ordinal) * 3600 * SECOND,
                phase: Phase::Settled,
                role: if control {
                    Role::Control
                } else {
                    Role::Settled
                },
                counts: Some(Counts {
                    key: if control { "default" } else { "chosen" },
                    is_default: control,
                    elapsed: 100.0 * log.exponential(),
                    cut_short: false,
                }),
                nodes: 2,
            };
            evidence.record(&run);
            if control {
                look(&evidence);
            }
        }
        evidence
    }
}

#[test]
fn a_gain_is_claimed_and_the_interval_holds_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let life = Life {
        runs: 500,
        every: 10,
        noise: 0.1,
        log_ratio: 0.25,
    };
    let (mut claimed, mut covered) = (0, 0);
    for _ in 0..50 {
        let gain = life.lived(&mut rng, |_| {}).gain(1);
        claimed += u32::from(gain.verdict == GainVerdict::Faster);
        let truth = 1.0 - (-0.25_f64).exponential();
        covered += u32::from(gain.low.unwrap() <= truth && truth <= gain.high.unwrap());
    }
    assert_eq!((claimed, covered), (50, 50));
}

#[test]
fn without_an_effect_hardly_any_study_ever_claims_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let life = Life {
        runs: 400,
        every: 10,
        noise: 0.17,
        log_ratio: 0.0,
    };
    let mut claimed = 0;
    for _ in 0..200 {
        let mut ever = false;
        life.lived(&mut rng, |evidence| {
            let verdict = evidence.gain(1).verdict;
            ever |= verdict.is_resolved();
        });
        claimed += u32::from(ever);
    }
    // 5 % are promised: with 200 studies 16 would be one in 20 of such samples.
    assert!(claimed <= 10, "{claimed} of 200");
}

#[test]
fn what_is_kept_does_not_grow_with_the_runs() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let size = |runs, rng: &mut ChaCha8Rng| {
        let life = Life {
            runs,
            every: 20,
            noise: 0.1,
            log_ratio: 0.1,
        };
        serde_json::to_string(&life.lived(rng, |_| {}))
            .unwrap()
            .len()
    };
    let (short, long) = (size(1000, &mut rng), size(20_000, &mut rng));
    assert!(long < short * 2, "{short} and {long} bytes");
}

#[test]
fn a_run_far_from_any_control_run_is_not_compared() {
    let mut evidence = Evidence::default();
    let mut enter = |ordinal: i64, control: bool| {
        evidence.record(&JudgedRun {
            ordinal,
            started: ordinal * SECOND,
            phase: Phase::Settled,
            role: if control {
                Role::Control
            } else {
                Role::Settled
            },
            counts: Some(Counts {
                key: if control { "default" } else { "chosen" },
                is_default: control,
                elapsed: 1.0,
                cut_short: false,
            }),
            nodes: 1,
        });
    };
    // Control runs before a choice are among the choice's reasons.
    enter(1, true);
    for ordinal in 2..=100 {
        enter(ordinal, false);
    }
    enter(101, true);
    for ordinal in 102..=200 {
        enter(ordinal, false);
    }
    let effects = evidence.effects(1);
    assert_eq!(effects.len(), 1);
    assert_eq!(effects[0].blocks, 1);
    // Of the forty before and the forty after, a block takes forty.
    assert_eq!(effects[0].tuned_runs, 40);
    // Node-hours are vouched for by all eighty.
    assert!((effects[0].default_hours - 80.0 / 3600.0).abs() < 1e-9);
}
