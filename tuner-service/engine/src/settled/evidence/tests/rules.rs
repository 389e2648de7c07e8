//! Each rule of the evidence, on a history that would break it.

use io_autotune_model::GainVerdict::{Faster, NoEffect, NotYet, Slower, Unclear};
use io_autotune_search::math::Portable;

use super::*;

const DEFAULT: &str = r#"{"a":1}"#;
const CHOSEN: &str = r#"{"a":2}"#;
const OTHER: &str = r#"{"a":3}"#;
const HOUR: i64 = 3600 * SECOND;

/// A run that starts an hour after the one before.
#[derive(Clone)]
struct Run {
    phase: Phase,
    role: Role,
    /// The key of the parametrization that it was given.
    key: &'static str,
    /// The key of the one that was applied; none if that is the same.
    applied: Option<&'static str>,
    elapsed: f64,
    cut_short: bool,
}

/// The probability with which a settled run was drawn to be a control run.
const CHANCE: f64 = 0.1;

fn run(phase: Phase, role: Role, key: &'static str, elapsed: f64) -> Run {
    Run {
        phase,
        role,
        key,
        applied: None,
        elapsed,
        cut_short: false,
    }
}

/// Log-normal noise; every sixteenth run or so is 30 to 60 % slower.
fn noise(seed: u64, cv: f64) -> impl FnMut() -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move || {
        let slow = if rng.random::<f64>() < 1.0 / 16.0 {
            1.3 + 0.3 * rng.random::<f64>()
        } else {
            1.0
        };
        (cv * normal(&mut rng)).exponential() * slow
    }
}

/// A settled life whose first run is a control run, as is one in ten afterwards.
fn settled(
    runs: usize,
    ratio: f64,
    key: &'static str,
    mut factor: impl FnMut() -> f64,
) -> Vec<Run> {
    let of = |place: usize| match place % 10 {
        0 => run(Phase::Settled, Role::Control, DEFAULT, 100.0 * factor()),
        _ => run(Phase::Settled, Role::Settled, key, 100.0 * ratio * factor()),
    };
    (0..runs).map(of).collect()
}

fn live(evidence: &mut Evidence, runs: &[Run]) {
    for one in runs {
        let ordinal = evidence.through + 1;
        evidence.record(&JudgedRun {
            ordinal,
            started: ordinal * HOUR,
            slowness: 0.0,
            phase: one.phase,
            role: one.role,
            control_chance: (one.phase == Phase::Settled).then_some(CHANCE),
            given: one.key,
            default: DEFAULT,
            counts: Some(Counts {
                key: one.applied.unwrap_or(one.key),
                elapsed: one.elapsed,
                beside: None,
                cut_short: one.cut_short,
            }),
            nodes: 4,
        });
    }
}

fn evidence(runs: &[Run]) -> Evidence {
    let mut evidence = Evidence::default();
    live(&mut evidence, runs);
    evidence
}

fn gain(runs: &[Run]) -> Gain {
    evidence(runs).gain(1)
}

#[test]
fn a_loss_is_claimed_too() {
    let said = gain(&settled(300, 1.4, CHOSEN, noise(3, 0.1)));
    assert_eq!(said.verdict, Slower);
    assert!(said.low.unwrap() < -0.4, "{said:?}");
    assert!((-0.4..0.0).contains(&said.high.unwrap()), "{said:?}");
    assert!(said.evidence > 20.0, "{said:?}");
    assert_eq!((said.tuned_runs, said.control_runs), (270, 30));
}

#[test]
fn without_an_effect_what_would_have_been_seen_is_said() {
    let said = gain(&settled(100, 1.0, CHOSEN, noise(4, 0.17)));
    assert_eq!(said.verdict, NotYet);
    assert!(said.low.unwrap() < 0.0, "{said:?}");
    assert!(said.high.unwrap() > 0.0, "{said:?}");
    assert!((0.15..0.45).contains(&said.detectable.unwrap()), "{said:?}");
}

#[test]
fn a_gain_that_shows_too_little_says_how_many_more_runs() {
    let said = gain(&settled(150, 0.88, CHOSEN, noise(5, 0.17)));
    assert_eq!(said.verdict, NotYet);
    assert!((50..2000).contains(&said.runs_needed.unwrap()), "{said:?}");
}

#[test]
fn a_difference_below_what_is_worth_it_is_no_effect() {
    let said = gain(&settled(2000, 1.0, CHOSEN, noise(6, 0.04)));
    assert_eq!(said.verdict, NoEffect);
    assert!((-0.03..0.0).contains(&said.low.unwrap()), "{said:?}");
    assert!((0.0..0.03).contains(&said.high.unwrap()), "{said:?}");
}

#[test]
fn runs_from_before_the_choice_are_not_compared() {
    let since = settled(300, 1.0, CHOSEN, noise(8, 0.1));
    let with = |slower: f64| {
        let baseline = run(Phase::Baseline, Role::Baseline, DEFAULT, 100.0 * slower);
        let searched = run(Phase::Search, Role::Search, CHOSEN, 100.0);
        gain(&[vec![baseline; 4], vec![searched; 16], since.clone()].concat())
    };
    // They only give the centre and the scale for the first ones.
    for said in [with(2.0), with(1.0)] {
        assert_eq!((said.verdict, said.tuned_runs), (NotYet, 270));
        assert!(said.share.unwrap().abs() < 0.06, "{said:?}");
    }
}

#[test]
fn exploring_runs_of_the_chosen_parametrization_do_not_count() {
    let runs = settled(300, 1.0, CHOSEN, noise(9, 0.1));
    let lucky = vec![run(Phase::Search, Role::Search, CHOSEN, 10.0); 100];
    let with = gain(&[runs.clone(), lucky].concat());
    assert_eq!(with.tuned_runs, gain(&runs).tuned_runs);
}

#[test]
fn a_step_in_time_cancels_within_blocks() {
    let early = settled(200, 0.9, CHOSEN, noise(10, 0.03));
    let mut late = settled(200, 0.9, CHOSEN, noise(11, 0.03));
    for one in &mut late {
        one.elapsed *= 3.0;
    }
    let said = gain(&[early, late].concat());
    assert!((said.share.unwrap() - 0.1).abs() < 0.02, "{said:?}");
    assert!(said.high.unwrap() - said.low.unwrap() < 0.1, "{said:?}");
}

#[test]
fn another_choice_goes_on_with_the_evidence() {
    let first = settled(200, 0.7, CHOSEN, noise(13, 0.1));
    let second = settled(50, 0.72, OTHER, noise(14, 0.1));
    let (alone, known) = (
        evidence(&first),
        evidence(&[first.clone(), second].concat()),
    );
    let (alone, said) = (alone.gain(1), known.gain(1));
    assert_eq!((said.verdict, said.control_runs), (Faster, 25));
    assert!(said.evidence > alone.evidence, "{said:?}");
    assert_eq!(known.effect(1).unwrap().parametrization, OTHER);
    assert!((said.level - 0.975).abs() < 1e-12, "{said:?}");

    // The next epoch claims nothing until it has chosen; its comparison has a smaller part of the
    // error rate.
    let mut next = known.next_epoch();
    let said = next.gain(2);
    assert_eq!((said.verdict, said.share), (NotYet, None));
    assert!(said.reason.contains("Epoch 2"), "{said:?}");
    live(&mut next, &first);
    assert_eq!(next.effect(2).unwrap().number, 2);
    assert!((next.gain(2).level - (1.0 - 0.05 / 6.0)).abs() < 1e-12);
}

#[test]
fn a_claim_by_ranks_stays_until_the_draws_claim_something_or_another_is_chosen() {
    let ranked = evidence(&settled(200, 0.7, CHOSEN, noise(13, 0.1)));
    let (effect, gain) = (ranked.effect(1).unwrap(), ranked.gain(1));
    let begun = Evidence::after_ranks(200, 1, Some((&effect, &gain)));
    assert_eq!(begun.gain(1).verdict, Faster);

    let mut same = begun.clone();
    live(&mut same, &settled(12, 0.7, CHOSEN, noise(14, 0.1)));
    let said = same.gain(1);
    assert_eq!((said.verdict, said.share), (Faster, gain.share));
    assert!(said.reason.contains("ranks"), "{said:?}");
    assert_eq!(same.effect(1).unwrap().number, 2);
    live(&mut same, &settled(300, 0.7, CHOSEN, noise(15, 0.1)));
    assert!(!same.gain(1).reason.contains("ranks"));

    let mut other = begun.clone();
    live(&mut other, &settled(12, 0.7, OTHER, noise(14, 0.1)));
    assert_eq!(other.gain(1).verdict, NotYet);

    let mut anew = other.anew();
    assert_eq!(anew, begun);
    live(&mut anew, &settled(12, 0.7, CHOSEN, noise(14, 0.1)));
    assert_eq!(anew.gain(1).verdict, Faster);
}

#[test]
fn runs_that_were_not_drawn_are_no_evidence() {
    let mut evidence = Evidence::default();
    for one in settled(300, 0.7, CHOSEN, noise(13, 0.1)) {
        let ordinal = evidence.through + 1;
        evidence.record(&JudgedRun {
            ordinal,
            started: ordinal * HOUR,
            slowness: 0.0,
            phase: one.phase,
            role: one.role,
            control_chance: None,
            given: one.key,
            default: DEFAULT,
            counts: Some(Counts {
                key: one.key,
                elapsed: one.elapsed,
                beside: None,
                cut_short: false,
            }),
            nodes: 1,
        });
    }
    assert_eq!(evidence.gain(1).verdict, NotYet);
    assert_eq!(evidence.effect(1), None);
}

#[test]
fn where_the_default_is_chosen_there_is_nothing_to_gain() {
    let said = gain(&settled(100, 1.0, DEFAULT, noise(17, 0.1)));
    assert_eq!((said.verdict, said.share), (NoEffect, Some(0.0)));
    assert_eq!((said.low, said.high), (None, None), "nothing was compared");
}

#[test]
fn a_run_of_the_default_that_was_no_choice_says_nothing_of_the_gain() {
    let searching = run(Phase::Search, Role::BestKnown, DEFAULT, 10.0);
    let said = gain(&[searching]);
    assert_eq!((said.verdict, said.share), (NotYet, None));

    let mut runs = settled(200, 0.6, CHOSEN, noise(17, 0.05));
    let before = gain(&runs);
    assert_eq!(before.verdict, Faster);
    runs.push(run(Phase::Settled, Role::Pinned, DEFAULT, 10.0));
    assert_eq!(gain(&runs), before);
}

#[test]
fn typical_runs_and_node_hours_that_disagree_claim_nothing() {
    let mut rng = ChaCha8Rng::seed_from_u64(18);
    let mut runs = settled(400, 0.9, CHOSEN, || (0.03 * normal(&mut rng)).exponential());
    let tuned = runs.iter_mut().filter(|one| one.role == Role::Settled);
    for slow in tuned.step_by(5) {
        slow.elapsed *= 3.0;
    }
    let said = gain(&runs);
    assert!(said.low.unwrap() > 0.0, "{said:?}");
    assert_eq!(said.verdict, Unclear);
}

#[test]
fn runs_that_were_cut_short_are_slow_runs() {
    let mut rng = ChaCha8Rng::seed_from_u64(19);
    let mut runs = settled(400, 0.95, CHOSEN, || {
        (0.02 * normal(&mut rng)).exponential()
    });
    let tuned = runs.iter_mut().filter(|one| one.role == Role::Settled);
    for cut in tuned.step_by(3) {
        (cut.cut_short, cut.elapsed) = (true, 120.0);
    }
    assert_ne!(gain(&runs).verdict, Faster);
    runs.retain(|one| !one.cut_short);
    assert_eq!(gain(&runs).verdict, Faster);
}

#[test]
fn where_all_runs_of_one_side_were_cut_short_nothing_is_bounded() {
    for role in [Role::Settled, Role::Control] {
        let mut runs = settled(100, 1.0, CHOSEN, noise(44, 0.1));
        for cut in runs.iter_mut().filter(|one| one.role == role) {
            (cut.cut_short, cut.elapsed) = (true, 50.0);
        }
        let known = evidence(&runs);
        let said = known.gain(1);
        assert_eq!((said.verdict, said.share, said.low), (NotYet, None, None));
        assert_eq!(known.effect(1).unwrap().standard_error, None);
    }
}

#[test]
fn restarted_jobs_do_not_make_a_gain() {
    let runs = settled(300, 0.8, CHOSEN, noise(20, 0.1));
    let resumed = vec![run(Phase::Settled, Role::BestKnown, CHOSEN, 20.0); 29];
    let (alone, with) = (evidence(&runs), evidence(&[runs, resumed].concat()));
    assert_eq!(alone.gain(1), with.gain(1));
    // By their own elapsed the ratio would be 1.4; counted like the settled runs near them, they
    // are a tenth.
    let share = with.effect(1).unwrap().saved / alone.effect(1).unwrap().saved;
    assert!((0.95..1.25).contains(&share), "{share}");
}

#[test]
fn pinned_runs_without_control_runs_near_are_not_compared() {
    let runs = settled(100, 0.8, CHOSEN, noise(21, 0.05));
    let pinned = vec![run(Phase::Settled, Role::Pinned, CHOSEN, 80.0); 399];
    let (alone, with) = (evidence(&runs), evidence(&[runs, pinned].concat()));
    assert!(with.effect(1).unwrap().saved < alone.effect(1).unwrap().saved * 1.6);
}

#[test]
fn node_hours_are_arithmetic() {
    let only = evidence(&settled(201, 0.5, CHOSEN, || 1.0))
        .effect(1)
        .unwrap();
    // 180 tuned runs that take 50 s less on 4 nodes, and 21 control runs that take 50 s more.
    let node_hours = 50.0 * 4.0 / 3600.0;
    assert!((only.saved - 180.0 * node_hours).abs() < 1e-9, "{only:?}");
    assert!((only.controls - 21.0 * node_hours).abs() < 1e-9, "{only:?}");
    assert!(only.net_variance.unwrap() < 1e-9, "{only:?}");
    let month = 180.0 * node_hours / (200.0 / 24.0) * 30.0;
    let ratio = only.a_month.unwrap() / month;
    assert!((0.95..1.05).contains(&ratio), "{only:?}");
}

#[test]
fn an_answer_that_came_too_late_is_no_choice_of_the_default() {
    let mut runs = settled(200, 0.7, CHOSEN, noise(13, 0.1));
    let late = runs.last_mut().unwrap();
    late.applied = Some(DEFAULT);
    let said = gain(&runs);
    assert_eq!((said.verdict, said.tuned_runs), (Faster, 180));
}
