use io_autotune_model::GainVerdict;
use io_autotune_search::math::Portable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::{drawn, normal};

const SECOND: i64 = 1_000_000;

mod rules;

/// A settled life in which every `every`th run is a control run.
struct Life {
    runs: u32,
    every: u32,
    noise: f64,
    /// The log of the default's elapsed over the tuned runs'.
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
            let chance = 1.0 / f64::from(self.every);
            evidence.record(&drawn(ordinal.into(), Phase::Settled, chance, control, log));
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
    // The bound is 5 %: with 200 studies, 16 would occur in one of 20 samples.
    assert!(claimed <= 10, "{claimed} of 200");
}

/// The number of the proof's run, after four of the default, with which something is claimed; none
/// within 80 runs.
fn first_claim_of_a_proof(log_ratio: f64, noise: f64, rng: &mut ChaCha8Rng) -> Option<u32> {
    let mut evidence = Evidence::default();
    (1..=84).find_map(|ordinal| {
        let control = ordinal <= 4 || rng.random::<f64>() < 0.5;
        let log = noise * normal(rng) + if control { log_ratio } else { 0.0 };
        evidence.record(&match ordinal {
            ..=4 => JudgedRun {
                role: Role::Baseline,
                control_chance: None,
                ..drawn(ordinal.into(), Phase::Baseline, 0.5, true, log)
            },
            _ => drawn(ordinal.into(), Phase::Search, 0.5, control, log),
        });
        let is_claimed = evidence.gain(1).verdict.is_resolved();
        is_claimed.then(|| ordinal - 4)
    })
}

#[test]
fn a_large_gain_is_claimed_by_a_dozen_runs_of_a_proof() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for (share, noise, most) in [(0.5_f64, 0.05, 11), (0.5, 0.17, 13), (0.2, 0.05, 18)] {
        let log_ratio = -(1.0 - share).logarithm();
        let mut runs: Vec<u32> = (0..41)
            .filter_map(|_| first_claim_of_a_proof(log_ratio, noise, &mut rng))
            .collect();
        runs.sort_unstable();
        assert_eq!(runs.len(), 41);
        assert!(runs[20] <= most, "{share} at {noise}: {runs:?}");
    }
}

#[test]
fn without_an_effect_hardly_any_proof_claims_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let proofs = (0..600).filter_map(|_| first_claim_of_a_proof(0.0, 0.17, &mut rng));
    // A proof may use half of a study's 5 %: with 600 studies, 24 would occur in one of 20 samples.
    let claimed = proofs.count();
    assert!(claimed <= 15, "{claimed} of 600");
}

/// A proof during the search in which tuned runs take `proof` less time, as a share, followed by a
/// settled phase in which they take `settled` less.
fn proof_and_settled([proof, settled]: [f64; 2]) -> Evidence {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut evidence = Evidence::default();
    for ordinal in 1..=120 {
        let control = rng.random::<f64>() < 0.5;
        let (phase, gain) = match ordinal {
            ..=40 => (Phase::Search, proof),
            _ => (Phase::Settled, settled),
        };
        let log = 0.05 * normal(&mut rng)
            + if control {
                0.0
            } else {
                (1.0 - gain).logarithm()
            };
        evidence.record(&drawn(ordinal, phase, 0.5, control, log));
        if ordinal == 41 {
            let gain = evidence.gain(1);
            assert_eq!(gain.verdict, GainVerdict::Faster, "what was claimed stays");
            assert!(gain.reason.contains("before the search had ended"));
        }
    }
    evidence
}

#[test]
fn a_proof_in_the_search_is_a_comparison_of_its_own() {
    let evidence = proof_and_settled([0.2, 0.5]);
    let effects: Vec<Effect> = evidence.effects(1).collect();
    let numbers: Vec<u64> = effects.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, 2]);
    let runs = effects.iter().map(|one| one.blocks + one.tuned_runs);
    assert_eq!(runs.collect::<Vec<u64>>(), [40, 80]);
    for (effect, gain) in effects.iter().zip([0.2_f64, 0.5]) {
        let truth = -(1.0 - gain).logarithm();
        let (low, high) = effect.low.zip(effect.high).unwrap();
        assert!(low < truth && truth < high, "{truth} in {effect:?}");
    }
    let gain = evidence.gain(1);
    assert!(gain.low.unwrap() > 0.4, "{gain:?}");
    assert_eq!(evidence.next_epoch().comparisons_before(), 2);
    let kept = serde_json::to_string(&evidence).unwrap();
    assert_eq!(serde_json::from_str::<Evidence>(&kept).unwrap(), evidence);
}

#[test]
fn a_choice_that_is_slower_is_told_whatever_was_claimed_before() {
    let gain = proof_and_settled([0.3, -0.3]).gain(1);
    assert_eq!(gain.verdict, GainVerdict::Slower, "{gain:?}");
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
fn node_hours_are_of_runs_near_a_control_run() {
    let mut evidence = Evidence::default();
    let mut enter = |ordinal: i64, control: bool| {
        let mut run = drawn(ordinal, Phase::Settled, 0.01, control, 0.0);
        run.started = ordinal * SECOND;
        run.counts.as_mut().unwrap().elapsed = 1.0;
        evidence.record(&run);
    };
    for ordinal in 1..=100 {
        enter(ordinal, false);
    }
    enter(101, true);
    for ordinal in 102..=200 {
        enter(ordinal, false);
    }
    let effect = evidence.effect(1).unwrap();
    assert_eq!((effect.blocks, effect.tuned_runs), (1, 199));
    // The forty runs before the control run and the forty after it.
    assert!((effect.default_hours - 80.0 / 3600.0).abs() < 1e-9);
}
