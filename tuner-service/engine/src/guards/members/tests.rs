use io_autotune_model::{Phase, Point, Role, Space};
use io_autotune_search::history::by_point::View;
use proptest::prelude::*;

use super::*;
use crate::testing::grid;

fn at(space: &Space, place: u32) -> Parametrization {
    space.parametrization(&io_autotune_model::Point(vec![place]))
}

/// A user's history: places, and the seconds of the runs at each.
fn history(space: &Space, runs: &[(u32, &[f64])]) -> History {
    let mut history = History::default();
    for (place, seconds) in runs {
        let mut tested = Tested::new(at(space, *place), i64::from(*place));
        for (ordinal, seconds) in (0..).zip(*seconds) {
            tested.record(ordinal, *seconds).unwrap();
            history.tally += Tally::of(Phase::Search, Role::Search);
        }
        history.tested.push(tested);
    }
    history
}

fn members<'a>(histories: &'a BTreeMap<Member, History>, space: &Space) -> Members<'a> {
    let all = histories.iter().map(|(member, own)| (*member, own));
    Members::new(all.collect(), &space.default())
}

fn of(histories: &BTreeMap<Member, History>, space: &Space, member: Member) -> History {
    members(histories, space).history(member)
}

fn found<'a>(history: &'a History, space: &Space, place: u32) -> &'a Tested {
    let own = at(space, place);
    let mut tested = history.tested.iter();
    tested.find(|one| one.parametrization == own).unwrap()
}

/// A place, and the seconds of its runs.
type Runs<'a> = (u32, &'a [f64]);

/// Five users who all ran the default, and in addition the runs given.
fn five(space: &Space, others: &[(Member, &[Runs<'_>])]) -> BTreeMap<Member, History> {
    let default: (u32, &[f64]) = (0, &[99.0, 100.0, 101.0]);
    (0..5)
        .map(|member| {
            let mut runs = vec![default];
            let own = others.iter().filter(|(one, _)| *one == member);
            runs.extend(own.flat_map(|(_, runs)| runs.iter().copied()));
            (member, history(space, &runs))
        })
        .collect()
}

/// Attack (sharing): One of five users who share has no runs.
/// Outcome: The others are on their own.
#[test]
fn fewer_than_five_have_their_own() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[(1, &[(2, &[50.0, 50.0])])]);
    assert_eq!(of(&histories, &space, 0).tested.len(), 2);
    let own = histories[&0].clone();
    histories.insert(4, History::default());
    assert_eq!(of(&histories, &space, 0), own);
    assert_eq!(of(&BTreeMap::new(), &space, 0), History::default());
}

#[test]
fn what_one_other_user_has_run_is_one_run_and_ones_own_are_all() {
    let space = grid(&[6]);
    let histories = five(&space, &[(1, &[(2, &[50.0; 9])])]);
    let (mine, theirs) = (of(&histories, &space, 1), of(&histories, &space, 0));
    assert_eq!(found(&mine, &space, 2).elapsed.count, 9);
    assert_eq!(found(&theirs, &space, 2).elapsed.count, 1);
    assert_eq!(theirs.tally.total, 3 + 4 * 3);
    assert_eq!(mine.tally.total, 3 + 9 + 4 * 3);
}

/// Attack (sharing): One who shares lies about times, runs one point a thousand times, explores
/// alone, or fails on.
/// Outcome: Beliefs stay between what others said; these runs weigh at most a third, spend little
/// of the budget, and count as one failure.
#[test]
fn one_other_user_alone_neither_spends_the_budget_nor_ends_the_search() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[]);
    let mut settle = |member: Member, explored: u64, settled: u64| {
        let own = &mut histories.get_mut(&member).unwrap().tally;
        (own.explored, own.settled) = (explored, settled);
        [0, member].map(|member| of(&histories, &space, member).tally)
    };
    let [theirs, own] = settle(1, 50, 9);
    assert_eq!((theirs.explored, theirs.has_settled()), (15, false));
    assert_eq!((own.explored, own.has_settled()), (62, true));
    let [theirs, _] = settle(2, 20, 1);
    assert_eq!((theirs.explored, theirs.has_settled()), (49, true));
}

#[test]
fn who_has_not_measured_their_own_default_twice_is_alone() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[(1, &[(2, &[50.0, 50.0])])]);
    for (runs, hears) in [(0, false), (1, false), (2, true)] {
        histories.insert(7, history(&space, &[(0, &[400.0, 410.0][..runs])]));
        let members = members(&histories, &space);
        assert_eq!(members.hears(7), hears, "{runs}");
        assert_eq!(members.history(7) != histories[&7], hears, "{runs}");
        assert!(members.hears(0));
    }
}

#[test]
fn of_two_others_the_slower_is_believed_and_of_three_the_middle_one() {
    let space = grid(&[6]);
    let slow: &[f64] = &[80.0; 3];
    let two = five(&space, &[(1, &[(2, &[50.0; 9])]), (2, &[(2, slow)])]);
    let known = of(&two, &space, 0);
    let known = found(&known, &space, 2);
    assert_eq!(known.elapsed.count, 6);
    assert!((known.elapsed.mean - 80.0).abs() < 1e-6, "{known:?}");
    let three = five(
        &space,
        &[
            (1, &[(2, &[50.0; 9])]),
            (2, &[(2, slow)]),
            (3, &[(2, &[79.0; 3])]),
        ],
    );
    let known = of(&three, &space, 0);
    let known = found(&known, &space, 2);
    assert_eq!(known.elapsed.count, 9);
    assert!((known.elapsed.mean - 79.0).abs() < 1e-6, "{known:?}");
}

#[test]
fn users_with_larger_inputs_are_no_outliers_and_speak_in_ones_own_seconds() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[(1, &[(2, &[80.0; 3])]), (3, &[(2, &[80.0; 3])])]);
    let large = history(&space, &[(0, &[1000.0, 990.0, 1010.0]), (2, &[800.0; 3])]);
    histories.insert(4, large);
    let members = members(&histories, &space);
    assert!(members.outliers().is_empty());
    for (member, seconds) in [(0, 80.0), (4, 800.0)] {
        let known = members.history(member);
        let mean = found(&known, &space, 2).elapsed.mean;
        assert!((mean / seconds - 1.0).abs() < 0.02, "{member}: {mean}");
    }
}

/// Attack (sharing): One who shares slows the default, so that all else looks fast.
/// Outcome: This user becomes an outlier.
#[test]
fn whose_default_is_slow_on_purpose_is_found_and_counts_for_themselves() {
    let space = grid(&[6]);
    let both: &[(u32, &[f64])] = &[(2, &[80.0, 81.0, 79.0]), (3, &[120.0, 121.0])];
    let mut histories = five(&space, &[(0, both), (1, both), (2, both), (3, both)]);
    let liar = history(
        &space,
        &[
            (0, &[200.0, 201.0, 199.0]),
            (2, &[80.0; 3]),
            (3, &[120.0; 2]),
        ],
    );
    histories.insert(5, liar.clone());
    let members = members(&histories, &space);
    assert_eq!(members.outliers(), &BTreeSet::from([5]));
    assert_eq!(members.history(5), liar);
    let known = members.history(0);
    assert!((found(&known, &space, 2).elapsed.mean - 80.0).abs() < 1.0);
    assert_eq!(known.tally.total, 3 * 5 + 4 * 5);
}

/// Attack (sharing): One who shares lies about times, runs one point a thousand times, explores
/// alone, or fails on.
/// Outcome: Beliefs stay between what others said; these runs weigh at most a third, spend little
/// of the budget, and count as one failure.
#[test]
fn what_fails_for_one_other_user_alone_has_failed_once_and_for_oneself_each_time() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[(1, &[(2, &[90.0])]), (2, &[(2, &[90.0])])]);
    let fail_at = |histories: &mut BTreeMap<Member, History>, member, level, times: i64| {
        let own = at(&space, level);
        let tested = &mut histories.get_mut(&member).unwrap().tested;
        let tested = tested.iter_mut().find(|one| one.parametrization == own);
        let tested = tested.unwrap();
        for ordinal in 0..times {
            tested.record_out_of_memory(ordinal);
            tested.record_censored(ordinal, 500.0).unwrap();
        }
    };
    let fail = |histories: &mut BTreeMap<Member, History>, member, times| {
        fail_at(histories, member, 2, times);
    };
    let is_quarantined = |histories: &BTreeMap<Member, History>, member| {
        let known = of(histories, &space, member);
        let view = View::new(&space, &known, &[]);
        view.get(&Point(vec![2])).unwrap().is_quarantined()
    };
    let lost = |histories: &BTreeMap<Member, History>, member| {
        let known = of(histories, &space, member);
        let known = found(&known, &space, 2);
        (known.failed, known.out_of_memory, known.censored.len())
    };
    fail(&mut histories, 1, 8);
    assert_eq!(lost(&histories, 0), (1, 0, 0));
    assert_eq!(lost(&histories, 1), (8, 8, 8));
    assert!(!is_quarantined(&histories, 0) && is_quarantined(&histories, 1));
    fail(&mut histories, 2, 2);
    assert_eq!(lost(&histories, 0), (5, 4, 4));
    assert!(is_quarantined(&histories, 0));
    // Nor do the failures that one user alone has met under the default excuse a parametrization.
    fail_at(&mut histories, 1, 0, 8);
    assert!(is_quarantined(&histories, 0));
}

#[test]
fn what_ones_own_runs_did_all_runs_did_and_of_others_points_what_they_did() {
    let space = grid(&[6]);
    let mut histories = five(&space, &[(1, &[(2, &[90.0])]), (2, &[(2, &[90.0])])]);
    for (member, own) in &mut histories {
        for tested in &mut own.tested {
            for run in 0..tested.elapsed.count {
                let calls = if *member == 0 { 10.0 } else { 1000.0 };
                let mut measures = BTreeMap::from([("steps".to_owned(), 1.0)]);
                if run > 0 {
                    measures.insert("calls".to_owned(), calls);
                }
                tested.record_measures(&measures);
            }
        }
    }
    let known = of(&histories, &space, 0);
    let default = found(&known, &space, 0);
    assert_eq!(default.elapsed.count, 15);
    assert_eq!(default.measures["steps"].count, 15, "each run was measured");
    let calls = default.measures["calls"];
    assert_eq!(calls.count, 10, "in two runs of three");
    assert!(
        (calls.mean - 10.0.logarithm()).abs() < 1e-12,
        "as one's own"
    );
    let theirs = found(&known, &space, 2);
    assert_eq!(theirs.measures["steps"].count, theirs.elapsed.count);
}

proptest! {
    /// At a point that three other users have run, one of them can move the estimate no further
    /// than the times of the other two, and weighs no more than a third.
    ///
    /// Attack (sharing): One who shares lies about times, runs one point a thousand times, explores
    /// alone, or fails on.
    /// Outcome: Beliefs stay between what others said; these runs weigh at most a third, spend
    /// little of the budget, and count as one failure.
    #[test]
    fn one_of_three_moves_a_point_no_further_than_the_other_two_said(
        lie in 0.01..10_000.0, times in 1..40_usize, said in (50.0..150.0, 50.0..150.0)
    ) {
        let space = grid(&[6]);
        let lies = vec![lie; times];
        let (one, other) = ([said.0; 4], [said.1; 4]);
        let histories = five(
            &space,
            &[(1, &[(2, &one)]), (2, &[(2, &other)]), (3, &[(2, &lies)])],
        );
        let known = of(&histories, &space, 0);
        let known = found(&known, &space, 2);
        let (low, high) = (said.0.min(said.1), said.0.max(said.1));
        let mean = known.elapsed.mean;
        prop_assert!((low * 0.999..=high * 1.001).contains(&mean), "{mean} of {said:?} and {lie}");
        prop_assert!(known.elapsed.count <= 12);
        let members = members(&histories, &space);
        prop_assert!(members.outliers().is_empty(), "two do not outvote a third");
    }

    /// Attack (sharing): One who shares lies about times, runs one point a thousand times, explores
    /// alone, or fails on.
    /// Outcome: Beliefs stay between what others said; these runs weigh at most a third, spend
    /// little of the budget, and count as one failure.
    #[test]
    fn nobody_else_has_more_than_a_third_where_three_have_run(
        own in 0..40_u64, others in prop::collection::vec(0..1000_u64, 0..12)
    ) {
        let most = most_of_another(own, &others);
        let capped: Vec<u64> = others.iter().map(|runs| *runs.min(&most)).collect();
        let active = capped.iter().filter(|runs| **runs > 0).count() + usize::from(own > 0);
        let all = own + capped.iter().sum::<u64>();
        for runs in capped {
            prop_assert!(active < 3 || 3 * runs <= all, "{runs} of {all}");
        }
        prop_assert!(most >= 1);
    }
}
