//! The end of the search, the recommendation, and the settled phase.

use super::*;
use crate::testing::{
    Outcome, best_known, finish, grid, history, published, recommend, started, suggest, tested,
};
use io_autotune_search::history::Tally;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 42;

#[test]
fn a_lucky_single_run_is_confirmed_and_not_recommended() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = Settings {
        budget: 15,
        ..published()
    };
    let lucky = [1, 2, 0, 3];
    let mut history = history(
        vec![
            tested(
                &space,
                &space.default_point().0,
                &[100.0, 102.0, 98.0, 100.0],
                0,
            ),
            tested(&space, &[2, 2, 2, 2], &[90.0, 94.0], 5),
            tested(&space, &lucky, &[50.0], 6),
        ],
        15,
        19,
    );
    let best = recommend(&space, &history, &published()).unwrap();
    assert_eq!((best.mean, best.n, best.default_n), (92.0, 2, 4));
    assert_eq!(best.default_mean, Some(100.0));
    assert!((best.standard_error - 2.0).abs() < 1e-12);

    let confirm = suggest(&space, &history, &[], &settings, SEED);
    assert_eq!((confirm.phase, confirm.role), (Phase::Search, Role::Search));
    assert_eq!(
        confirm.reason,
        Reason::Confirm {
            mean: 50.0,
            default_mean: Some(100.0)
        }
    );
    // Only one confirmation at a time is in flight.
    let waiting = suggest(&space, &history, &[started(&confirm)], &settings, SEED);
    assert!(matches!(
        waiting.reason,
        Reason::BestKnown {
            because: BestKnownBecause::AwaitingResults,
            ..
        }
    ));
    assert_eq!(waiting.parametrization, best.parametrization);

    finish(&mut history, &started(&confirm), Outcome::Elapsed(150.0));
    let drawn = |draw| {
        let epoch = Epoch::new(&space, &settings, SEED).with_draw(draw);
        epoch.suggest(&history, &[])
    };
    let control = drawn(0.4999);
    assert_eq!(
        (control.phase, control.role),
        (Phase::Settled, Role::Control)
    );
    let settled = drawn(0.5);
    assert_eq!(control.control_chance, Some(0.5));
    assert_eq!(settled.control_chance, Some(0.5));
    assert_eq!(settled.role, Role::Settled);
    assert_eq!(settled.parametrization, best.parametrization);
    assert_eq!(
        settled.reason,
        Reason::Settled {
            mean: Some(92.0),
            n: 2,
            default_mean: Some(100.0),
            is_default: false,
            stopped: None,
            vetoed: None,
        }
    );
}

#[test]
fn confirmation_ends_when_it_cannot_be_had() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = Settings {
        budget: 15,
        ..published()
    };
    let lucky = tested(&space, &[1, 2, 0, 3], &[50.0], 6);
    for outcome in [Outcome::Failed, Outcome::Ignored] {
        let mut history = history(
            vec![
                tested(&space, &space.default_point().0, &[100.0; 9], 0),
                lucky.clone(),
            ],
            15,
            24,
        );
        for _ in 0..40 {
            let suggestion = suggest(&space, &history, &[], &settings, SEED);
            finish(&mut history, &started(&suggestion), outcome);
        }
        let epoch = Epoch::new(&space, &settings, SEED).with_draw(0.9);
        let last = epoch.suggest(&history, &[]);
        assert_eq!(
            (last.phase, last.role),
            (Phase::Settled, Role::Settled),
            "{outcome:?}"
        );
        assert_eq!(last.parametrization, space.default());
    }
}

#[test]
fn settled_runs_are_control_runs_as_often_as_set() {
    let space = grid(&[6, 6, 3, 4]);
    for control_every in [2, 3, 10] {
        let settings = Settings {
            controls_at_first: 0,
            control_every,
            budget: 15,
            ..published()
        };
        let mut history = history(
            vec![
                tested(&space, &space.default_point().0, &[100.0; 4], 0),
                tested(&space, &[2, 2, 2, 2], &[90.0, 94.0], 5),
            ],
            15,
            19,
        );
        // Both with all runs in flight at once, and with one after the other.
        let mut pending = Vec::new();
        let is_control = |s: &Suggestion| u32::from(s.role == Role::Control);
        let parallel: u32 = (0..200)
            .map(|_| {
                let suggestion = suggest(&space, &history, &pending, &settings, SEED);
                assert_eq!(suggestion.phase, Phase::Settled);
                pending.push(started(&suggestion));
                is_control(&suggestion)
            })
            .sum();
        let serial: u32 = (0..200)
            .map(|_| {
                let suggestion = suggest(&space, &history, &[], &settings, SEED);
                finish(&mut history, &started(&suggestion), Outcome::Elapsed(95.0));
                is_control(&suggestion)
            })
            .sum();
        for controls in [parallel, serial] {
            let expected = 200 / control_every;
            assert!(
                controls.abs_diff(expected) <= 20,
                "{controls} of {expected}"
            );
        }
    }
}

#[test]
fn what_is_in_flight_keeps_the_same_pace() {
    let space = grid(&[6]);
    let settings = Settings {
        controls_at_first: 0,
        ..published()
    };
    let mut history = history(vec![tested(&space, &[3], &[90.0, 94.0], 5)], 0, 0);
    history.tally.settled = 1;
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    for (outlook, controls) in [(Outlook::Resolved, 50), (Outlook::Open, 100)] {
        let epoch = |draw| {
            Epoch::new(&space, &settings, SEED)
                .with_outlook(outlook)
                .with_draw(draw)
        };
        let mut pending = [0.0, 1.0].map(|draw| started(&epoch(draw).suggest(&history, &[])));
        for _ in 0..1000 {
            let next = epoch(draws.random()).suggest(&history, &pending);
            pending[usize::from(next.role == Role::Settled)].count += 1;
        }
        assert!(pending[0].count.abs_diff(controls) <= 25, "{pending:?}");
    }
}

#[test]
fn a_settled_epoch_stays_settled() {
    let space = grid(&[6, 6, 3, 4]);
    let mut history = history(vec![tested(&space, &[2, 2, 2, 2], &[90.0, 94.0], 5)], 0, 0);
    history.tally = Tally {
        explored: 50,
        settled: 3,
        settled_controls: 1,
        total: 60,
        ..Tally::default()
    };
    let settings = Settings {
        budget: 90,
        baseline_runs: 20,
        ..published()
    };
    let suggestion = suggest(&space, &history, &[], &settings, SEED);
    assert_eq!(
        (suggestion.phase, suggestion.role),
        (Phase::Settled, Role::Settled)
    );
}

#[test]
fn mostly_failing_is_not_recommended_and_ties_go_to_the_default() {
    let space = grid(&[6, 6, 3, 4]);
    let mut fast = tested(&space, &[1, 1, 1, 1], &[10.0, 10.0], 3);
    (0..3).for_each(|_| fast.record_failure(9));
    let mut history = history(
        vec![
            tested(&space, &[2, 2, 2, 2], &[50.0; 9], 2),
            tested(&space, &space.default_point().0, &[50.0; 4], 0),
            fast,
        ],
        0,
        0,
    );
    let best = recommend(&space, &history, &published()).unwrap();
    assert_eq!(best.parametrization, space.default());
    history.tested[2].record(20, 10.0).unwrap();
    assert_eq!(
        recommend(&space, &history, &published()).unwrap().mean,
        10.0
    );
    assert_eq!(recommend(&space, &History::default(), &published()), None);
}

#[test]
fn the_best_known_is_the_default_before_there_is_one() {
    let space = grid(&[6, 6]);
    let suggestion = best_known(
        &space,
        &History::default(),
        &published(),
        BestKnownBecause::Busy,
    );
    assert_eq!(
        (suggestion.phase, suggestion.role),
        (Phase::Baseline, Role::BestKnown)
    );
    assert_eq!(suggestion.parametrization, space.default());
    let mut history = history(
        vec![
            tested(&space, &space.default_point().0, &[100.0; 4], 0),
            tested(&space, &[2, 2], &[90.0, 94.0], 5),
            tested(&space, &[3, 2], &[10.0], 6),
        ],
        0,
        0,
    );
    history.tally.explored = 3;
    let suggestion = best_known(&space, &history, &published(), BestKnownBecause::Restarted);
    assert_eq!(suggestion.phase, Phase::Search);
    assert_eq!(
        suggestion.parametrization,
        space.parametrization(&Point(vec![2, 2]))
    );
    let because = BestKnownBecause::Restarted;
    assert_eq!(
        suggestion.reason,
        Reason::BestKnown {
            because,
            mean: Some(92.0),
            n: 2,
            inherited: false,
            another_study: false,
        }
    );
    history.tally.settled = 1;
    assert_eq!(
        best_known(&space, &history, &published(), because).phase,
        Phase::Settled
    );
}
