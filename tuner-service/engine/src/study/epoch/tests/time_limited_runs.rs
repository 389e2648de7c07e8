//! Runs that their time limit cut short are lower bounds, and never make a parametrization look
//! fast.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::testing::{
    Outcome, best_known, finish, grid, history, published, recommend, started, suggest, tested,
};
use io_autotune_search::regret::settings::RegretSettings;

const SEED: u64 = 42;

/// A history with four runs of the default of 100 s each, and one other parametrization.
fn beside_the_default(space: &Space, times: &[f64], bounds: &[f64]) -> History {
    let mut other = tested(space, &[2, 2, 2, 2], times, 5);
    for bound in bounds {
        other.record_censored(6, *bound).unwrap();
    }
    let default = tested(space, &space.default_point().0, &[100.0; 4], 0);
    history(vec![default, other], 15, 19)
}

#[test]
fn runs_cut_short_raise_the_mean_and_are_no_reason_to_recommend() {
    let space = grid(&[6, 6, 3, 4]);
    let chosen = |times: &[f64], bounds: &[f64]| {
        recommend(
            &space,
            &beside_the_default(&space, times, bounds),
            &published(),
        )
        .unwrap()
    };
    let quick = chosen(&[80.0, 80.0], &[]);
    assert_eq!((quick.mean, quick.n, quick.censored), (80.0, 2, 0));
    let raised = chosen(&[80.0, 80.0], &[110.0]);
    assert_eq!((raised.mean, raised.n, raised.censored), (90.0, 2, 1));
    assert_eq!(raised.standard_error, 0.0);
    let short = chosen(&[80.0, 80.0], &[60.0]);
    assert_eq!((short.mean, short.n), (80.0, 2));
    for (times, bounds) in [
        (&[80.0, 80.0][..], &[150.0][..]),
        (&[80.0], &[60.0]),
        (&[], &[60.0, 61.0, 62.0]),
        (&[], &[150.0]),
    ] {
        let default = chosen(times, bounds);
        assert_eq!(
            default.parametrization,
            space.default(),
            "{times:?} {bounds:?}"
        );
    }
}

#[test]
fn the_default_is_raised_by_its_own_bounds() {
    let space = grid(&[6, 6, 3, 4]);
    let mut history = beside_the_default(&space, &[80.0, 80.0], &[110.0]);
    let default = &mut history.tested[0];
    default.record_censored(9, 30.0).unwrap();
    default.record_censored(9, 200.0).unwrap();
    let best = recommend(&space, &history, &published()).unwrap();
    assert_eq!((best.default_n, best.default_censored), (4, 2));
    assert_eq!(best.default_mean, Some(120.0));
}

/// Starts in a world where every parametrization except the default is ended by the time limit.
/// Returns the number of starts of each, and the last suggestion.
fn starts_under_a_limit(limit: f64) -> (BTreeMap<String, u32>, Suggestion) {
    let space = grid(&[6, 6, 3, 4]);
    let mut history = History::default();
    let mut starts = BTreeMap::new();
    let settings = Settings {
        regret: RegretSettings::UNBOUNDED,
        ..published()
    };
    for _ in 0..80 {
        let suggestion = suggest(&space, &history, &[], &settings, SEED);
        let outcome = if suggestion.parametrization == space.default() {
            Outcome::Elapsed(100.0)
        } else {
            *starts.entry(suggestion.parametrization.key()).or_default() += 1;
            Outcome::Censored(limit)
        };
        finish(&mut history, &started(&suggestion), outcome);
    }
    let last = suggest(&space, &history, &[], &settings, SEED);
    assert_eq!(last.parametrization, space.default());
    (starts, last)
}

#[test]
fn what_was_cut_short_is_not_run_again_for_ever() {
    // With a limit above the default's 100 s, one run is enough to know that a parametrization is
    // slower.
    let (starts, last) = starts_under_a_limit(300.0);
    assert!(starts.values().all(|starts| *starts == 1), "{starts:?}");
    assert_eq!((last.phase, starts.len()), (Phase::Settled, 50));
    // A limit below that says nothing about the time, so it is tried twice, like a failure.
    let (starts, last) = starts_under_a_limit(70.0);
    assert!(starts.values().all(|starts| *starts == 2), "{starts:?}");
    assert_eq!((last.phase, starts.len()), (Phase::Settled, 25));
}

#[test]
fn a_child_that_mostly_ends_at_its_limit_is_quarantined() {
    let space = grid(&[6, 6, 3, 4]);
    let mut known = beside_the_default(&space, &[80.0, 81.0], &[82.0, 82.0, 82.0]);
    let best = recommend(&space, &known, &published()).unwrap();
    assert_eq!(best.parametrization, space.default());
    known.tested[1].record(30, 80.0).unwrap();
    let best = recommend(&space, &known, &published()).unwrap();
    assert_eq!((best.n, best.censored), (3, 3));
}

fn any_entry() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, u64)> {
    let seconds = || 1.0..300.0_f64;
    (
        prop::collection::vec(seconds(), 0..5),
        prop::collection::vec(seconds(), 0..5),
        0_u64..3,
    )
}

proptest! {
    #[test]
    fn a_further_bound_never_makes_a_parametrization_look_better(
        entries in prop::collection::vec(any_entry(), 6),
        place in 0_usize..6,
        further in prop::collection::vec(1.0..400.0_f64, 1..40),
    ) {
        let space = grid(&[6]);
        let mut history = History::default();
        for (level, (times, bounds, failed)) in entries.iter().enumerate() {
            let mut entry = tested(&space, &[level as u32], times, 0);
            for bound in bounds {
                entry.record_censored(0, *bound).unwrap();
            }
            entry.failed = *failed;
            history.tested.push(entry);
        }
        let given = history.tested[place].parametrization.clone();
        let point = space.validate(&given).unwrap();
        for bound in further {
            let before = history.clone();
            history.tested[place].record_censored(1, bound).unwrap();
            let mean = |history| View::new(&space, history, &[]).get(&point).and_then(|k| k.mean());
            if let Some(estimate) = mean(&before) {
                prop_assert!(mean(&history).is_some_and(|raised| raised >= estimate));
            }
            let recommended = |history| {
                recommend(&space, history, &published()).is_some_and(|best| best.parametrization == given)
            };
            prop_assert!(recommended(&before) || !recommended(&history));
            if given != space.default() {
                let busy = |history| best_known(&space, history, &published(), BestKnownBecause::Busy);
                prop_assert!(
                    busy(&before).parametrization == given || busy(&history).parametrization != given
                );
            }
        }
    }
}
