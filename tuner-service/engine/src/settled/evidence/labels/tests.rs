use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::normal;

/// A run's label, log elapsed (none if cut short) and probability.
fn run() -> impl Strategy<Value = (bool, Option<f64>, f64)> {
    let log = prop_oneof![9 => (-3.0..3.0).prop_map(Some), 1 => Just(None)];
    (any::<bool>(), log, 0.05..0.95)
}

fn known(runs: &[(bool, Option<f64>, f64)]) -> Labels {
    let mut labels = Labels::default();
    for (is_control, log, chance) in runs {
        labels.enter(*is_control, *log, *chance, Before::default());
    }
    labels
}

/// The log factors that a run adds, by shift and test.
fn added(known: &Labels, is_control: bool, log: Option<f64>, chance: f64) -> Vec<f64> {
    let mut with = known.clone();
    with.enter(is_control, log, chance, Before::default());
    let before = known.factors.iter().copied().chain(std::iter::repeat(0));
    let pairs = with.factors.iter().zip(before);
    pairs
        .map(|(with, before)| (with - before) as f64 * UNIT)
        .collect()
}

proptest! {
    /// The theorem: whatever is known, a run changes no evidence on average over the draw of its
    /// label if it would take as long under either label, apart from the effect that is tested.
    ///
    /// Attack (drawn): Jobs are timed, by a user or a workflow's period, to make a gain of nothing.
    /// Outcome: On average over its draw, a run changes no evidence.
    #[test]
    fn a_run_changes_no_evidence_on_average_over_its_own_draw(
        earlier in prop::collection::vec(run(), 1..60),
        log in -4.0..4.0,
        chance in 0.02..0.98,
    ) {
        let known = known(&earlier);
        let price = known.price_of_unequal_noise(chance);
        let tuned = added(&known, false, Some(log), chance);
        for (place, shift) in SHIFTS.iter().enumerate().step_by(9) {
            let control = added(&known, true, Some(log + shift), chance);
            for test in 0..TESTS {
                let factor = |added: &[f64]| added[place * TESTS + test].exponential();
                let mean = chance * factor(&control) + (1.0 - chance) * factor(&tuned);
                let expected = (-price * ETAS[test / 2].powi(2)).exponential();
                prop_assert!((mean - expected).abs() < 1e-3, "{mean}, not {expected}, at {shift}");
            }
        }
    }

    /// The effects that neither direction rejects form an interval, and the ends on the grid
    /// enclose it.
    #[test]
    fn evidence_for_a_gain_falls_with_the_effect_that_is_tested_and_for_a_loss_rises(
        runs in prop::collection::vec(run(), 2..80),
    ) {
        let known = known(&runs);
        let at = |place, direction| known.evidence_at(place, direction);
        for place in 1..SHIFTS.len() {
            prop_assert!(at(place, Direction::Faster) <= at(place - 1, Direction::Faster) + 0.05);
            prop_assert!(at(place, Direction::Slower) >= at(place - 1, Direction::Slower) - 0.05);
        }
        prop_assert!(known.scores.windows(2).all(|pair| pair[1] <= pair[0] + 100));
    }

    #[test]
    fn the_centre_is_the_median_of_both_labels_runs(
        tuned in prop::collection::vec(-3.0..3.0, 0..20),
        control in prop::collection::vec(-3.0..3.0, 1..20),
        shift in -4.0..4.0,
    ) {
        let both = tuned.iter().copied().chain(control.iter().map(|log| log - shift));
        let mut both: Vec<f64> = both.collect();
        both.sort_by(f64::total_cmp);
        let by_label = |mut logs: Vec<f64>| {
            logs.sort_by(f64::total_cmp);
            logs
        };
        let expected = Expected {
            tuned: by_label(tuned),
            control: by_label(control),
            scale: 1.0,
            effect: 0.0,
        };
        prop_assert!((expected.centre(shift) - middle(&mut both).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn what_is_kept_goes_through_the_database_as_it_is(
        runs in prop::collection::vec(run(), 0..120),
    ) {
        let known = known(&runs);
        let read: Labels = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        prop_assert_eq!(read, known);
    }
}

/// A life of drawn runs; the default takes `exp(effect)` times as long.
fn live(
    runs: u32,
    chance: f64,
    effect: f64,
    noise: [f64; 2],
    seed: u64,
    mut look: impl FnMut(u32, &Labels),
) -> Labels {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut labels = Labels::default();
    for run in 1..=runs {
        let is_control = rng.random::<f64>() < chance;
        let own = noise[usize::from(is_control)] * normal(&mut rng);
        let log = own + if is_control { effect } else { 0.0 };
        labels.enter(is_control, Some(log), chance, Before::default());
        look(run, &labels);
    }
    labels
}

#[test]
fn a_gain_of_a_fifth_shows_within_forty_runs_where_every_other_is_a_control_run() {
    let first = |seed| {
        let mut first = u32::MAX;
        live(200, 0.5, 0.223, [0.17; 2], seed, |run, labels| {
            if labels.log_evidence(Direction::Faster) >= 50.0_f64.logarithm() {
                first = first.min(run);
            }
        });
        first
    };
    let mut firsts: Vec<u32> = (0..60).map(first).collect();
    firsts.sort_unstable();
    assert!(firsts[30] <= 40, "{firsts:?}");
    assert!(firsts[48] <= 60, "{firsts:?}");
}

#[test]
fn the_estimate_and_its_error_are_those_of_the_runs() {
    let mut squared = 0.0;
    for seed in 0..60 {
        let labels = live(300, 0.3, 0.2, [0.17; 2], seed, |_, _| {});
        let error = labels.standard_error().unwrap();
        // The error with known variances would be 0.17 / sqrt(300 * 0.3 * 0.7).
        assert!((0.015..0.030).contains(&error), "{error}");
        squared += ((labels.estimate().unwrap() - 0.2) / error).powi(2) / 60.0;
    }
    assert!((0.6..1.6).contains(&squared), "{squared}");
}

#[test]
fn a_noisier_default_costs_evidence_where_control_runs_are_seldom() {
    let noisy = live(400, 0.1, 0.0, [0.1, 0.3], 1, |_, _| {});
    assert!(noisy.price_of_unequal_noise(0.1) > 0.01);
    assert!(noisy.price_of_unequal_noise(0.5).abs() < 1e-12);
    let calm = live(400, 0.1, 0.0, [0.3, 0.1], 1, |_, _| {});
    assert!(calm.price_of_unequal_noise(0.1).abs() < 1e-12);
}

#[test]
fn runs_that_were_cut_short_are_slower_than_all_others() {
    let mut labels = live(60, 0.5, 0.0, [0.1; 2], 7, |_, _| {});
    for run in 0..40 {
        let log = (run % 2 != 0).then_some(0.0);
        labels.enter(run % 2 == 0, log, 0.5, Before::default());
    }
    let evidence = labels.log_evidence(Direction::Faster);
    assert!(evidence > 5.0, "{evidence}");

    let only = [(true, None, 0.5), (false, Some(0.0), 0.5)].repeat(30);
    let labels = known(&only);
    assert_eq!((labels.estimate(), labels.high(3.0)), (None, None));
}

/// The default takes twice as long, and most of its runs are cut short at 1.9 times. They do not
/// show that it takes three or fifty times as long.
#[test]
fn a_control_run_that_was_cut_short_is_a_lower_bound_of_an_effect() {
    let (truth, limit) = (2.0_f64.logarithm(), 1.9_f64.logarithm());
    let lows = |knows_bounds: bool| -> Vec<f64> {
        let lived = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut labels = Labels::default();
            for run in 0..300 {
                let is_control = run % 2 == 0;
                let effect = if is_control { truth } else { 0.0 };
                let log = effect + 0.05 * normal(&mut rng);
                match log < limit {
                    true => labels.enter(is_control, Some(log), 0.5, Before::default()),
                    false if knows_bounds => {
                        labels.enter_cut(is_control, limit, 0.5, Before::default());
                    }
                    false => labels.enter(is_control, None, 0.5, Before::default()),
                }
            }
            labels.low(4.0).unwrap_or(f64::INFINITY)
        };
        (0..20).map(lived).collect()
    };
    let lows_by_bounds = lows(true);
    assert!(
        lows_by_bounds.iter().all(|low| *low > 0.0 && *low <= truth),
        "{lows_by_bounds:?}"
    );
    let without = lows(false);
    assert!(
        without.iter().all(|low| *low > truth),
        "they are not in vain: {without:?}"
    );
}

#[test]
fn the_runs_that_are_needed_are_those_that_would_have_detected_it() {
    let labels = live(100, 0.25, 0.1, [0.17; 2], 3, |_, _| {});
    let noise = labels.noise().unwrap();
    let detectable = labels.detectable(&noise, 4.0, 0.84).unwrap();
    let needed = |effect| labels.runs_needed(&noise, effect, 4.0, 0.84).unwrap();
    let same = needed(detectable);
    assert!((same - 100.0).abs() < 1.0, "{same}");
    assert!(needed(2.0 * detectable) < 26.0);
}

/// The covariates of a run 2 hours after the one before it.
fn before(run: u32, slowness: f64) -> Before {
    Before {
        started: i64::from(run) * 7_200_000_000,
        nodes: 1,
        slowness,
    }
}

proptest! {
    /// The theorem again, if slopes are believed: both labels would have had the same covariates.
    #[test]
    fn what_is_known_before_a_start_changes_no_evidence_on_average(
        earlier in prop::collection::vec((any::<bool>(), -0.05..0.05, -1.0..1.0), 25..60),
        slope in -3.0..3.0,
        (log, slowness) in (-2.0..2.0, -1.0..1.0),
        chance in 0.02..0.98,
    ) {
        let mut known = Labels::default();
        for (run, (is_control, noise, x)) in (0..).zip(&earlier) {
            known.enter(*is_control, Some(noise + slope * x), 0.5, before(run, *x));
        }
        let at = before(earlier.len() as u32, slowness);
        let added = |is_control| {
            let mut with = known.clone();
            with.enter(is_control, Some(log), chance, at);
            with
        };
        let zero = SHIFTS.partition_point(|shift| *shift < 0.0);
        let price = known.price_of_unequal_noise(chance);
        let [tuned, control] = [false, true].map(added);
        for test in 0..TESTS {
            let place = zero * TESTS + test;
            let factor = |with: &Labels| ((with.factors[place] - known.factors[place]) as f64 * UNIT).exponential();
            let mean = chance * factor(&control) + (1.0 - chance) * factor(&tuned);
            let expected = (-price * ETAS[test / 2].powi(2)).exponential();
            prop_assert!((mean - expected).abs() < 1e-3, "{mean}, not {expected}");
        }
    }
}

/// The number of runs until a gain of a tenth is claimed, if other runs explain this share of 17 %
/// noise.
fn first_claim(share: f64, seed: u64) -> u32 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut labels = Labels::default();
    for run in 1..=900 {
        let (is_control, slowness) = (rng.random::<f64>() < 0.5, normal(&mut rng));
        let noise = share.sqrt() * slowness + (1.0 - share).sqrt() * normal(&mut rng);
        let log = 0.17 * noise + if is_control { 0.105 } else { 0.0 };
        labels.enter(is_control, Some(log), 0.5, before(run, slowness));
        if labels.log_evidence(Direction::Faster) >= 50.0_f64.logarithm() {
            return run;
        }
    }
    u32::MAX
}

#[test]
fn what_other_runs_show_brings_a_claim_nearer() {
    let median = |share: f64| {
        let mut firsts: Vec<u32> = (0..41).map(|seed| first_claim(share, seed)).collect();
        firsts.sort_unstable();
        firsts[20]
    };
    let (plain, explained) = (median(0.0), median(0.7));
    assert!(3 * explained < 2 * plain, "{explained} of {plain} runs");
}

#[test]
fn it_is_said_how_much_of_the_noise_is_explained() {
    let mut labels = Labels::default();
    assert!(labels.noise().is_none());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for run in 0..80 {
        let slowness = normal(&mut rng);
        let log = 0.15 * slowness + 0.08 * normal(&mut rng);
        labels.enter(run % 2 == 0, Some(log), 0.5, before(run, slowness));
    }
    let said = labels.noise().unwrap().explained().unwrap();
    assert!(
        said.ends_with(" % of the noise is told by how other runs fared."),
        "{said}"
    );
}

#[test]
fn what_explains_nothing_is_not_believed() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let recent: VecDeque<Seen> = (0..100)
        .map(|run| Seen {
            is_control: run % 2 == 0,
            log: Some(0.17 * normal(&mut rng)),
            before: before(run, normal(&mut rng)),
        })
        .collect();
    assert_eq!(Slopes::of(&recent), Slopes::default());
}

#[test]
fn what_the_label_moves_is_not_explained_away() {
    let recent: VecDeque<Seen> = (0..100)
        .map(|run| Seen {
            is_control: run % 2 == 0,
            log: Some(if run % 2 == 0 { 0.2 } else { 0.0 }),
            before: before(0, if run % 2 == 0 { 1.0 } else { 0.0 }),
        })
        .collect();
    assert_eq!(Slopes::of(&recent), Slopes::default());
}

#[test]
fn runs_from_before_covariates_were_kept_are_read() {
    let seen: Seen = serde_json::from_str(r#"{"is_control": true, "log": 1.5}"#).unwrap();
    assert_eq!(seen.before, Before::default());
}
