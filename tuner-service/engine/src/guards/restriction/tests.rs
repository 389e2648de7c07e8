//! A frozen parameter stays at its default, and pooled runs count as runs of one parametrization.

use std::borrow::Cow;

use io_autotune_search::math::Portable;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::study::epoch::Epoch;
use crate::study::settings::{MethodName, Settings};
use crate::testing::{
    Outcome, any_constrained, finish, grid, history, normal, started, tested, trials,
};
use io_autotune_model::reason::Suggestion;
use io_autotune_search::history::{Pending, Role};

fn held(space: &Space, places: &[usize], pooled: bool) -> Vec<IneffectiveParameter> {
    let names = places
        .iter()
        .filter_map(|place| space.parameters().get(*place));
    names
        .map(|parameter| IneffectiveParameter {
            parameter: parameter.name.clone(),
            pooled,
        })
        .collect()
}

fn at(space: &Space, levels: &[u32]) -> Parametrization {
    space.parametrization(&Point(levels.to_vec()))
}

fn suggest(
    space: &Space,
    history: &History,
    pending: &[Pending],
    ineffective: &[IneffectiveParameter],
    settings: &Settings,
) -> Suggestion {
    let restricted = RestrictedSpace::new(space, Cow::Borrowed(history), &[], ineffective);
    Epoch::restricted(&restricted, settings, 7).suggest(restricted.history(), pending)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(trials(64)))]

    #[test]
    fn whatever_is_held_is_at_its_default_and_nothing_else_changes(
        seed: u64,
        places in prop::collection::btree_set(0_usize..6, 0..4),
        pooled: bool,
        method in prop::sample::select(MethodName::ALL),
        freeze_after in 0_usize..12,
    ) {
        let space = any_constrained(seed);
        let places: Vec<usize> = places.into_iter().collect();
        let ineffective = held(&space, &places, pooled);
        let settings = Settings { method, ..Settings::default() };
        let mut history = history(Vec::new(), 0, 0);
        for run in 0..24_usize {
            let ineffective = if run < freeze_after { &[][..] } else { &ineffective };
            let suggestion = suggest(&space, &history, &[], ineffective, &settings);
            let point = space.validate(&suggestion.parametrization);
            prop_assert!(point.is_ok(), "{point:?}");
            let default = space.default_point();
            for place in places.iter().filter(|_| run >= freeze_after) {
                let levels = (point.as_ref().unwrap().0.get(*place), default.0.get(*place));
                prop_assert_eq!(levels.0, levels.1, "{}", suggestion.reason);
            }
            if places.is_empty() {
                let plain = Epoch::new(&space, &settings, 7).suggest(&history, &[]);
                prop_assert_eq!(&suggestion, &plain);
            }
            prop_assert_eq!(&suggestion, &suggest(&space, &history, &[], ineffective, &settings));
            let elapsed = 10.0 + (run * 7 % 5) as f64;
            finish(&mut history, &started(&suggestion), Outcome::Elapsed(elapsed));
        }
    }

    #[test]
    fn pooled_runs_are_runs_of_one_parametrization(
        runs in prop::collection::vec((0_u32..3, 0_u32..4, 1.0..100.0_f64, 0_u8..4), 1..60),
    ) {
        let space = grid(&[3, 4]);
        let mut apart = history(Vec::new(), 0, 0);
        let mut as_one = apart.clone();
        for (first, second, elapsed, end) in runs {
            let outcome = match end {
                0 => Outcome::Failed,
                1 => Outcome::Censored(elapsed),
                _ => Outcome::Elapsed(elapsed),
            };
            let run = |levels: [u32; 2]| Pending {
                parametrization: at(&space, &levels),
                phase: io_autotune_search::history::Phase::Search,
                role: Role::Search,
                count: 1,
            };
            finish(&mut apart, &run([first, second]), outcome);
            finish(&mut as_one, &run([first, 0]), outcome);
        }
        let ineffective = held(&space, &[1], true);
        let pooled = RestrictedSpace::new(&space, Cow::Borrowed(&apart), &[], &ineffective);
        let pooled = pooled.history();
        prop_assert_eq!(pooled.tally, as_one.tally);
        prop_assert_eq!(pooled.tested.len(), as_one.tested.len());
        for (mut pooled, mut one) in pooled.tested.iter().cloned().zip(as_one.tested) {
            for (pooled, one) in [(&mut pooled.elapsed, &mut one.elapsed), (&mut pooled.log_elapsed, &mut one.log_elapsed)] {
                prop_assert_eq!(pooled.count, one.count);
                prop_assert!((pooled.mean - one.mean).abs() < 1e-9);
                prop_assert!((pooled.m2 - one.m2).abs() < 1e-6);
                *pooled = *one;
            }
            prop_assert_eq!(pooled, one);
        }
    }
}

#[test]
fn runs_that_may_differ_are_left_out_and_not_pooled() {
    let space = grid(&[3, 4]);
    let known = history(
        vec![
            tested(&space, &[1, 0], &[10.0], 1),
            tested(&space, &[1, 2], &[20.0], 2),
        ],
        2,
        2,
    );
    let count = |pooled| {
        let restricted = RestrictedSpace::new(
            &space,
            Cow::Borrowed(&known),
            &[],
            &held(&space, &[1], pooled),
        );
        let [one] = &restricted.history().tested[..] else {
            panic!("one parametrization is left")
        };
        assert_eq!(one.parametrization, at(&space, &[1, 0]));
        (one.elapsed.count, one.elapsed.mean)
    };
    assert_eq!(count(true), (2, 15.0));
    assert_eq!(count(false), (1, 10.0));
}

#[test]
fn an_epoch_goes_on_with_its_design_and_its_ranks() {
    let space = grid(&[6, 6, 4]);
    let nothing = history(Vec::new(), 0, 0);
    let settings = crate::testing::published();
    let whole = RestrictedSpace::new(&space, Cow::Borrowed(&nothing), &[], &[]);
    let whole = Epoch::restricted(&whole, &settings, 7);
    let ineffective = held(&space, &[1], true);
    let ranks = [
        at(&space, &[3, 5, 1]),
        at(&space, &[3, 2, 1]),
        at(&space, &[0, 4, 0]),
    ];
    let restricted = RestrictedSpace::new(&space, Cow::Borrowed(&nothing), &ranks, &ineffective);
    let led = [at(&space, &[3, 0, 1]), at(&space, &[0, 0, 0])];
    assert_eq!(restricted.inherited(), led);
    let restricted = RestrictedSpace::new(&space, Cow::Borrowed(&nothing), &[], &ineffective);
    assert_eq!(restricted.frozen_parameters(), ["p01"]);
    let points = |epoch: &Epoch<'_>| {
        let mut history = nothing.clone();
        let mut points = Vec::new();
        loop {
            let suggestion = epoch.suggest(&history, &[]);
            match suggestion.role {
                Role::Design => points.push(space.validate(&suggestion.parametrization).unwrap()),
                Role::Baseline | Role::Control => {}
                _ => return points,
            }
            finish(&mut history, &started(&suggestion), Outcome::Elapsed(10.0));
        }
    };
    let mut expected: Vec<Point> = points(&whole);
    for point in &mut expected {
        point.0[1] = 0;
    }
    expected.sort();
    expected.dedup();
    let mut found = points(&Epoch::restricted(&restricted, &settings, 7));
    found.sort();
    assert_eq!(found, expected);
}

/// A study of 50 runs in which the second of three parameters has no effect, and a run that is
/// given another value of it than the default does not count. Returns the number of runs that did
/// not count, and the time of the parametrization recommended in the end over the best one's.
fn study(seed: u64, settings: &Settings, holds: bool) -> (u32, f64) {
    let space = grid(&[6, 4, 6]);
    let truth = |point: &Point| 10.0 + f64::from(point.0[0].abs_diff(4) + point.0[2].abs_diff(3));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut history = history(Vec::new(), 0, 0);
    let mut regret_so_far = 0;
    for _ in 0..50 {
        let ineffective = match holds && regret_so_far >= 2 {
            true => held(&space, &[1], true),
            false => Vec::new(),
        };
        let restricted = RestrictedSpace::new(&space, Cow::Borrowed(&history), &[], &ineffective);
        let suggestion =
            Epoch::restricted(&restricted, settings, seed).suggest(restricted.history(), &[]);
        let point = space.validate(&suggestion.parametrization).unwrap();
        let outcome = if point.0[1] == 0 {
            Outcome::Elapsed(truth(&point) * (0.1 * normal(&mut rng)).exponential())
        } else {
            regret_so_far += 1;
            Outcome::Ignored
        };
        finish(&mut history, &started(&suggestion), outcome);
    }
    let best = Epoch::new(&space, settings, 0)
        .recommend_now(&history)
        .unwrap();
    (regret_so_far, truth(&space.validate(&best).unwrap()) / 10.0)
}

#[test]
fn a_study_that_holds_it_loses_two_runs_and_ends_better() {
    for settings in [Settings::default(), crate::testing::published()] {
        let studies = |holds| {
            let of_all: Vec<(u32, f64)> =
                (0..20).map(|seed| study(seed, &settings, holds)).collect();
            let regret_so_far: u32 = of_all.iter().map(|(regret_so_far, _)| regret_so_far).sum();
            let over: f64 = of_all.iter().map(|(_, over)| over.logarithm()).sum();
            (f64::from(regret_so_far) / 20.0, (over / 20.0).exponential())
        };
        let (varied, held) = (studies(false), studies(true));
        let found = format!(
            "{}: runs lost and recommended x, varied {varied:?}, held {held:?}",
            settings.method
        );
        assert!(held.0 <= 2.0, "{found}");
        assert!(varied.0 > 10.0 * held.0.max(1.0) / 2.0, "{found}");
        assert!(held.1 < varied.1, "{found}");
    }
}

/// Twelve runs with a noise of a tenth, spread over the four values of a parameter without effect.
#[test]
fn a_pooled_mean_errs_as_twelve_runs_do_and_not_as_three() {
    let space = grid(&[2, 4]);
    let ineffective = held(&space, &[1], true);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut pooled, mut apart) = (0.0, 0.0);
    let studies = 2000;
    for _ in 0..studies {
        let entries = (0..4).map(|level| {
            let times = [(); 3].map(|()| 10.0 + normal(&mut rng));
            tested(&space, &[1, level], &times, i64::from(level))
        });
        let history = history(entries.collect(), 12, 12);
        let restricted = RestrictedSpace::new(&space, Cow::Borrowed(&history), &[], &ineffective);
        pooled += (restricted.history().tested[0].elapsed.mean - 10.0).powi(2);
        apart += (history.tested[0].elapsed.mean - 10.0).powi(2);
    }
    let [pooled, apart] = [pooled, apart].map(|sum: f64| (sum / f64::from(studies)).sqrt());
    // The expected values are 1 / sqrt(12) and 1 / sqrt(3). With 2000 studies an error is known to
    // 1.6 %.
    assert!((pooled - 0.2887).abs() < 0.02, "{pooled}");
    assert!((apart - 0.5774).abs() < 0.04, "{apart}");
}
