use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::study::proof::settings::ProofSettings;
use crate::study::settings::MethodName;

use crate::testing::{Outcome, finish, grid, history, published, started, suggest, tested};
use io_autotune_model::{Measure, Tested};
use io_autotune_search::checks::MAX_DESIGN_POINTS;

const SEED: u64 = 42;

/// A life of runs, one after the other.
fn live(
    space: &Space,
    settings: &Settings,
    runs: usize,
    outcome: impl Fn(&Suggestion) -> Outcome,
) -> (Vec<Suggestion>, History) {
    let mut history = History::default();
    let mut all = Vec::new();
    for _ in 0..runs {
        let suggestion = suggest(space, &history, &[], settings, SEED);
        finish(&mut history, &started(&suggestion), outcome(&suggestion));
        all.push(suggestion);
    }
    (all, history)
}

fn count(suggestions: &[Suggestion], role: Role) -> usize {
    suggestions.iter().filter(|s| s.role == role).count()
}

#[test]
fn where_io_cannot_matter_a_study_settles_on_the_default_after_its_baseline() {
    let space = grid(&[6, 6]);
    let settings = published();
    let after = |runs: u64, bytes: f64| {
        let mut default = tested(&space, &[0, 0], &vec![40.0; runs as usize], 0);
        let numbers = [
            (Measure::Steps, 1.0),
            (Measure::AskedWritten, bytes),
            (Measure::WriteCalls, 100.0),
        ];
        let numbers = numbers.map(|(one, value)| (one.as_str().to_owned(), value));
        for _ in 0..runs {
            default.record_measures(&BTreeMap::from(numbers.clone()));
        }
        let history = history(vec![default], runs, 0);
        suggest(&space, &history, &[], &settings, SEED)
    };
    assert_eq!(after(3, 2e6).phase, Phase::Baseline, "it is seen through");
    let stopped = after(4, 2e6);
    assert_eq!(stopped.phase, Phase::Settled);
    assert_eq!(stopped.parametrization, space.default());
    let why = stopped.reason.to_string();
    let told = "there is nothing to win: the default reads and writes 2.0 MB in 100 calls and waits, and takes \
                40 s, of which I/O is at most 0.8 %";
    assert!(why.contains(told), "{why}");
    assert_eq!(after(4, 2e9).phase, Phase::Design, "here it can matter");
}

/// Adds the measures of runs: to `given` of them files were delivered, and in `read` of them a file
/// was read.
fn files(tested: &mut Tested, given: u64, read: u64) {
    let one = |measure: Measure| BTreeMap::from([(measure.as_str().to_owned(), 1.0)]);
    for _ in 0..given {
        tested.record_measures(&one(Measure::DeliveredFiles));
    }
    for _ in 0..read {
        tested.record_measures(&one(Measure::DeliveredFilesRead));
    }
}

#[test]
fn where_nothing_reads_what_runs_are_given_a_study_settles_on_the_default() {
    let space = grid(&[6, 6]);
    let after = |runs: u64, given: u64, read: u64, least: u32| {
        let mut settings = published();
        settings.stop.unread_runs = least;
        let default = tested(&space, &[0, 0], &[40.0; 4], 0);
        let mut lucky = tested(&space, &[1, 1], &vec![20.0; runs as usize], 4);
        files(&mut lucky, given, read);
        let history = history(vec![default, lucky], 4 + runs, runs);
        let epoch = Epoch::new(&space, &settings, SEED);
        let suggestion = epoch.suggest(&history, &[]);
        let stopped = suggestion.phase == Phase::Settled;
        assert_eq!(stopped, epoch.recommend(&history).is_none() && runs > 1);
        if stopped {
            assert_eq!(suggestion.parametrization, space.default());
            let why = suggestion.reason.to_string();
            assert!(why.contains("in 3 runs nothing read"), "{why}");
        }
        stopped
    };
    assert!(after(3, 3, 0, 3));
    assert!(!after(2, 2, 0, 3), "too few");
    assert!(!after(3, 3, 1, 3), "one was read");
    assert!(
        !after(3, 2, 0, 3),
        "of one nobody knows, or something else carried it"
    );
    assert!(!after(3, 3, 0, 0), "it is not asked for");
}

#[test]
fn where_nothing_reads_the_baselines_empty_files_a_study_settles_after_it() {
    let space = grid(&[6, 6]);
    let settings = published();
    let after = |given: u64, read: u64| {
        let mut default = tested(&space, &[0, 0], &[40.0; 4], 0);
        files(&mut default, given, read);
        let history = history(vec![default], 4, 0);
        suggest(&space, &history, &[], &settings, SEED)
    };
    let stopped = after(4, 0);
    assert_eq!(stopped.phase, Phase::Settled);
    assert_eq!(stopped.parametrization, space.default());
    let why = stopped.reason.to_string();
    assert!(why.contains("in 4 runs nothing read"), "{why}");
    assert_eq!(after(4, 1).phase, Phase::Design, "one was read");
    assert_eq!(after(2, 0).phase, Phase::Design, "two are too few");
}

#[test]
fn the_phases_come_in_order_with_their_numbers() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = published();
    let (all, history) = live(&space, &settings, 100, |_| Outcome::Elapsed(100.0));
    assert!(all.is_sorted_by_key(|suggestion| suggestion.phase));
    assert_eq!(count(&all, Role::Baseline), 4);
    assert_eq!(count(&all, Role::Design), 15);
    assert_eq!(count(&all, Role::Search), 35);
    assert_eq!(history.tally.explored, 50);
    for (number, suggestion) in all[..4].iter().enumerate() {
        let number = number as u64 + 1;
        assert_eq!(suggestion.reason, Reason::Baseline { number, of: 4 });
        assert_eq!(suggestion.parametrization, space.default());
    }
    let numbers: Vec<u64> = all
        .iter()
        .filter_map(|suggestion| match suggestion.reason {
            Reason::DesignPoint { number, of: 15 } => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, (1..=15).collect::<Vec<_>>());
    let keys: BTreeSet<String> = all
        .iter()
        .filter(|suggestion| suggestion.role == Role::Design)
        .map(|suggestion| suggestion.parametrization.key())
        .collect();
    assert_eq!(keys.len(), 15);
}

/// Two of three runs profit from what is known to be faster, from run 10 on, and what has run only
/// once is confirmed in such a run.
#[test]
fn most_runs_between_trials_get_the_best_known() {
    let space = grid(&[6, 6, 3, 4]);
    let of = |method, best: f64| {
        let settings = Settings {
            method,
            proof: ProofSettings::NEVER,
            ..Settings::default()
        };
        let times = |suggestion: &Suggestion| match suggestion.parametrization == space.default() {
            true => Outcome::Elapsed(100.0),
            false => Outcome::Elapsed(best),
        };
        live(&space, &settings, 40, times).0
    };
    let between = |one: &Suggestion| {
        let because = BestKnownBecause::Between;
        matches!(&one.reason, Reason::BestKnown { because: found, .. } if *found == because)
    };
    let all = of(MethodName::SurrogateGenetic, 70.0);
    for (runs, suggestion) in all.iter().enumerate() {
        let is_trial = runs < 10 || runs.is_multiple_of(3);
        assert!(
            !(is_trial && between(suggestion)),
            "run {runs}: {suggestion:?}"
        );
        let confirms = matches!(suggestion.reason, Reason::Confirm { .. });
        assert!(
            is_trial || confirms || between(suggestion),
            "run {runs}: {suggestion:?}"
        );
        if between(suggestion) && runs > 12 {
            assert_ne!(suggestion.parametrization, space.default(), "run {runs}");
        }
    }
    let count = all.iter().filter(|one| between(one)).count();
    assert!(count >= 10, "{count}");
    // Nothing is faster, or the method is a paper's, which tries something in each run.
    assert!(!of(MethodName::SurrogateGenetic, 101.0).iter().any(between));
    assert!(!of(MethodName::Robert2020, 70.0).iter().any(between));
}

#[test]
fn at_most_so_many_explore_at_once() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = Settings {
        exploring: 3,
        ..published()
    };
    let mut history = History::default();
    let entry = tested(&space, &space.default_point().0, &[100.0; 40], 0);
    history.tested.push(entry);
    history.tally.total = 40;
    let mut pending = Vec::new();
    let mut points = BTreeSet::new();
    for _ in 0..3 {
        let suggestion = suggest(&space, &history, &pending, &settings, SEED);
        assert_eq!(suggestion.role, Role::Design);
        points.insert(suggestion.parametrization.key());
        pending.push(started(&suggestion));
    }
    assert_eq!(points.len(), 3);
    for _ in 0..20 {
        let suggestion = suggest(&space, &history, &pending, &settings, SEED);
        let because = BestKnownBecause::ExploringFull { exploring: 3 };
        assert_eq!(suggestion.role, Role::BestKnown);
        assert_eq!(
            suggestion.reason,
            Reason::BestKnown {
                because,
                mean: Some(100.0),
                n: 40,
                inherited: false,
                another_study: false,
            }
        );
        pending.push(started(&suggestion));
    }
}

#[test]
fn a_thousand_at_once_are_not_a_thousand_experiments() {
    let space = grid(&[6, 6, 3, 4]);
    let mut pending = Vec::new();
    for _ in 0..1000 {
        let suggestion = suggest(&space, &History::default(), &pending, &published(), SEED);
        pending.push(started(&suggestion));
    }
    let of = |role| {
        pending
            .iter()
            .filter(|run: &&Pending| run.role == role)
            .count()
    };
    assert_eq!(
        (of(Role::Baseline), of(Role::Design), of(Role::Search)),
        (4, 8, 0)
    );
    assert_eq!(of(Role::Control) + of(Role::BestKnown), 988);
    let exploring: BTreeSet<String> = pending
        .iter()
        .filter(|run| run.role.explores())
        .map(|run| run.parametrization.key())
        .collect();
    assert_eq!(exploring.len(), 8);
}

#[test]
fn failing_design_points_are_quarantined_after_two() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = published();
    let (all, _) = live(&space, &settings, 60, |suggestion| {
        if suggestion.parametrization == space.default() {
            Outcome::Elapsed(100.0)
        } else {
            Outcome::Failed
        }
    });
    let mut starts: BTreeMap<String, usize> = BTreeMap::new();
    for suggestion in all.iter().filter(|s| s.role.explores()) {
        *starts.entry(suggestion.parametrization.key()).or_default() += 1;
    }
    assert!(starts.values().all(|starts| *starts == 2), "{starts:?}");
    assert_eq!(starts.len(), 25);
    let last = all.iter().rfind(|s| s.role == Role::Settled).unwrap();
    assert_eq!(last.phase, Phase::Settled);
    assert_eq!(last.parametrization, space.default());
    assert!(matches!(
        last.reason,
        Reason::Settled {
            is_default: true,
            ..
        }
    ));
}

#[test]
fn an_application_that_always_fails_is_left_alone() {
    let space = grid(&[6, 6, 3, 4]);
    let (all, _) = live(&space, &published(), 200, |_| Outcome::Failed);
    assert!(count(&all, Role::Design) <= 30);
    assert_eq!(count(&all, Role::Search), 0);
    assert!(
        all[60..]
            .iter()
            .all(|s| s.parametrization == space.default())
    );
}

#[test]
fn runs_that_do_not_count_teach_nothing() {
    let space = grid(&[6, 6, 3, 4]);
    let (all, _) = live(&space, &published(), 50, |_| Outcome::Ignored);
    assert_eq!(count(&all, Role::Baseline), 50);
}

#[test]
fn one_point_is_a_whole_life() {
    let space = grid(&[1]);
    let (all, _) = live(&space, &published(), 30, |_| Outcome::Elapsed(3.0));
    assert_eq!(count(&all, Role::Baseline), 4);
    assert!(all[4..].iter().all(|s| s.phase == Phase::Settled));
}

#[test]
fn a_huge_space_is_searched_in_no_time() {
    let space = grid(&[1000; 20]);
    let settings = Settings {
        design_points: MAX_DESIGN_POINTS,
        budget: 300,
        ..published()
    };
    let (all, _) = live(&space, &published(), 80, |_| Outcome::Elapsed(3.0));
    assert_eq!(count(&all, Role::Design), 15);
    assert_eq!(count(&all, Role::Search), 35);
    let mut history = History::default();
    history.tested.push(tested(&space, &[0; 20], &[3.0; 4], 0));
    assert_eq!(
        suggest(&space, &history, &[], &settings, SEED).role,
        Role::Design
    );
}

#[test]
fn seeds_and_ordinals_matter() {
    let space = grid(&[60, 60, 60, 60]);
    let (one, history) = live(&space, &published(), 25, |_| Outcome::Elapsed(100.0));
    let other = suggest(&space, &history, &[], &published(), SEED + 1);
    assert_ne!(one.last().unwrap().parametrization, other.parametrization);
    let designs: BTreeSet<Vec<Point>> = (0..20)
        .map(|seed| latin_hypercube(&space, 15, seed))
        .collect();
    assert_eq!(designs.len(), 20);
}
