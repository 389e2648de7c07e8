//! Warm start: an epoch inherits the ranking of its parent or of another study. It does not inherit
//! their times, which belong to another machine, file system or input. The ranks come first in the
//! design.

use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::history::Tally;
use io_autotune_search::history::by_point::{Known, MIN_RUNS, View};

/// The maximum number of parametrizations that are inherited.
pub const MOST_INHERITED: usize = 32;

/// The ranks for the next epoch: the recommended parametrization, then the others by the method's
/// ranking, with the default among them. The default is first if the tuned runs are no longer
/// faster.
pub(crate) fn ranks(
    view: &View<'_>,
    recommended: Option<Point>,
    ranking: Vec<Point>,
    has_lost: bool,
) -> Vec<Parametrization> {
    let default = has_lost.then(|| view.default.clone());
    let first = default.into_iter().chain(recommended);
    let mut ranks: Vec<Point> = Vec::new();
    for point in first.chain(ranking) {
        if ranks.len() < MOST_INHERITED && !ranks.contains(&point) {
            ranks.push(point);
        }
    }
    ranks
        .iter()
        .map(|point| view.space.parametrization(point))
        .collect()
}

/// The inherited points that fit the space, the best first.
pub(crate) fn points(space: &Space, inherited: &[Parametrization]) -> Vec<Point> {
    let fitting = inherited.iter().filter_map(|one| space.validate(one).ok());
    let mut points: Vec<Point> = Vec::new();
    for point in fitting {
        if !points.contains(&point) {
            points.push(point);
        }
    }
    points
}

/// The inherited best, until two of its runs count, it is quarantined, or the epoch has settled.
pub(crate) fn best(view: &View<'_>, tally: &Tally, inherited: &[Parametrization]) -> Option<Point> {
    if tally.has_settled() {
        return None;
    }
    let best = points(view.space, inherited).into_iter().next()?;
    let open = |known: &Known| {
        known.count() < MIN_RUNS && (best == view.default || !known.is_quarantined())
    };
    view.get(&best).is_none_or(open).then_some(best)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::study::epoch::Epoch;
    use crate::study::settings::MethodName;
    use crate::study::settings::Settings;
    use crate::testing::{Outcome, any_constrained, finish, grid, history, started, tested};
    use io_autotune_model::reason::{BestKnownBecause, Reason};
    use io_autotune_model::{Changed, Drift};
    use io_autotune_search::history::{History, Pending, Phase, Role};

    const SEED: u64 = 11;

    fn drifted(share_after: Option<f64>) -> Drift {
        Drift {
            changed: Changed::Advantage,
            since: 90,
            tuned_before: 50.0,
            tuned_after: 70.0,
            tuned_runs_before: 80,
            tuned_runs_after: 20,
            share_before: Some(0.5),
            share_after,
            controls_before: 8,
            controls_after: 4,
            statistic: 4.5,
            threshold: 4.2,
        }
    }

    fn at(space: &Space, levels: [u32; 2]) -> Parametrization {
        space.parametrization(&Point(levels.to_vec()))
    }

    #[test]
    fn the_recommended_is_the_first_and_one_lucky_run_is_not() {
        let space = grid(&[6, 6]);
        let parent = history(
            vec![
                tested(&space, &[0, 0], &[100.0; 4], 0),
                tested(&space, &[1, 1], &[40.0], 1),
                tested(&space, &[2, 2], &[50.0, 51.0], 2),
                tested(&space, &[3, 3], &[90.0], 3),
            ],
            4,
            8,
        );
        let settings = crate::testing::published();
        let ranks = |share| Epoch::new(&space, &settings, 0).ranks(&parent, &drifted(share));
        let order = [[2, 2], [1, 1], [3, 3], [0, 0]].map(|levels| at(&space, levels));
        assert_eq!(ranks(Some(0.8)), order);
        assert_eq!(ranks(None), order);
        let regret_so_far = [[0, 0], [2, 2], [1, 1], [3, 3]].map(|levels| at(&space, levels));
        assert_eq!(ranks(Some(1.0)), regret_so_far);
    }

    #[test]
    fn the_life_of_an_epoch_that_inherits() {
        let space = grid(&[8, 8]);
        let mut settings = crate::testing::published();
        settings.drift.inherited = 2;
        let mut inherited = vec![Parametrization([("gone".to_owned(), 7.into())].into())];
        inherited.extend([[5, 5], [0, 0], [5, 4], [4, 4]].map(|levels| at(&space, levels)));
        let epoch = Epoch::new(&space, &settings, SEED).inheriting(&inherited);
        assert_eq!(epoch.settings().budget, 30);
        let mut known = History::default();
        let mut seen: Vec<(Role, String)> = Vec::new();
        for _ in 0..60 {
            let next = epoch.suggest(&known, &[]);
            assert_eq!(next, epoch.suggest(&known, &[]));
            let best = epoch.best_known_of(None, &known, BestKnownBecause::Busy);
            let own = known
                .tested
                .iter()
                .find(|t| t.parametrization == inherited[1]);
            if own.is_none_or(|own| own.elapsed.count < 2) && !known.tally.has_settled() {
                assert_eq!(best.parametrization, inherited[1]);
                assert!(best.reason.to_string().contains("of the epoch before"));
            } else {
                assert!(matches!(
                    best.reason,
                    Reason::BestKnown {
                        inherited: false,
                        ..
                    }
                ));
            }
            let levels = space.validate(&next.parametrization).unwrap().0;
            let seconds = 100.0 - f64::from(levels[0] + levels[1]);
            finish(&mut known, &started(&next), Outcome::Elapsed(seconds));
            seen.push((next.role, next.reason.to_string()));
        }
        let baseline = seen.iter().filter(|(role, _)| *role == Role::Baseline);
        assert_eq!(baseline.count(), 4);
        let design: Vec<&str> = seen
            .iter()
            .filter(|(role, _)| *role == Role::Design)
            .map(|(_, reason)| reason.as_str())
            .collect();
        // The default, and entries that do not fit the space, are not run again.
        assert_eq!(design.len(), 5, "{design:?}");
        assert!(design[0].starts_with("number 1 of the 2 that are run again"));
        assert!(design[1].starts_with("number 2 of the 2"));
        assert_eq!(
            design[2..],
            [
                "design point 1 of 3",
                "design point 2 of 3",
                "design point 3 of 3"
            ]
        );
        let exploring = seen.iter().filter(|(role, _)| role.explores()).count();
        assert!((30..=31).contains(&exploring), "{exploring}");
        assert!(seen.iter().any(|(role, _)| *role == Role::Settled));
    }

    #[test]
    fn who_may_not_explore_gets_the_inherited_best_unless_it_fails() {
        let space = grid(&[8, 8]);
        let settings = crate::testing::published();
        let inherited = [at(&space, [5, 5])];
        let epoch = Epoch::new(&space, &settings, SEED).inheriting(&inherited);
        let mut known = history(vec![tested(&space, &[0, 0], &[100.0; 4], 0)], 0, 4);
        let flying = Pending {
            parametrization: at(&space, [1, 1]),
            phase: Phase::Search,
            role: Role::Search,
            count: 8,
        };
        let full = |known: &History| epoch.suggest(known, std::slice::from_ref(&flying));
        let next = full(&known);
        assert_eq!(
            (next.role, &next.parametrization),
            (Role::BestKnown, &inherited[0])
        );
        for _ in 0..2 {
            finish(&mut known, &started(&next), Outcome::Failed);
        }
        assert_eq!(full(&known).parametrization, space.default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// With any inherited ranks, every method's answer fits the space, and is the same each
        /// time.
        #[test]
        fn whatever_is_inherited_gets_a_fitting_answer(
            seed in any::<u64>(),
            method in proptest::sample::select(MethodName::ALL),
            levels in proptest::collection::vec(proptest::collection::vec(0_u32..8, 0..7), 1..12),
            runs in 0_usize..12,
        ) {
            let space = any_constrained(seed);
            let settings = Settings { method, ..Settings::default() };
            let inherited: Vec<Parametrization> = levels
                .into_iter()
                .map(|mut levels| {
                    levels.resize(space.parameters().len(), 0);
                    space.parametrization(&Point(levels))
                })
                .collect();
            let epoch = Epoch::new(&space, &settings, seed).inheriting(&inherited);
            let mut known = History::default();
            for run in 0..runs {
                let next = epoch.suggest(&known, &[]);
                prop_assert!(space.validate(&next.parametrization).is_ok());
                let again = Epoch::new(&space, &settings, seed).inheriting(&inherited);
                prop_assert_eq!(&next, &again.suggest(&known, &[]));
                finish(&mut known, &started(&next), Outcome::Elapsed(10.0 + run as f64));
            }
        }
    }
}
