//! Elapsed beside another objective: a parametrization whose runs surely take longer than the
//! default's is not recommended, however good it is by the objective.
//!
//! With the mean logs of elapsed m and m0 of a point's n and the default's n0 runs, and s^2, with f
//! degrees of freedom, their variance within points,
//!
//! ```text
//! m - m0 -+ sqrt(s^2 v f (k - 1) / (1 - k / (1 + r))),    v = 1 / n + 1 / n0,    r = d^2 / v,
//!                                                         k = (sqrt(1 + r) / a)^(2 / (f + 1))
//! ```
//!
//! holds at every look. It is the set of effects where the Bayes factor of the two-sample t test
//! with a normal prior of the effect, d standard deviations of a run wide (M. Gonen et al.,
//! American Statistician 59 (2005), 252-257), is below 1 / a; that factor is a likelihood ratio of
//! the invariant statistic (A. Hendriksen et al., Bayesian Analysis 16 (2021), 961-989). While k is
//! not below 1 + r there is no bound. s^2 is shrunk as in
//! [`time_limit`](crate::guards::time_limit), since few runs may be alike by chance.

use io_autotune_model::space::Point;
use io_autotune_model::{ELAPSED_BESIDE, ElapsedBeside, Moments};
use io_autotune_search::history::by_point::{Known, MIN_RUNS, View};
use io_autotune_search::math::Portable;

/// The probability of a false veto of a parametrization, over all looks. The other end of the
/// interval has the same probability.
const ERROR: f64 = 0.05;
/// The width of the effect's prior, in standard deviations of a run.
const EFFECT: f64 = 2.0;
/// The degrees of freedom of the scatter's prior; its variance follows.
const PRIOR_DEGREES: f64 = 2.0;
const PRIOR_VARIANCE: f64 = 0.01;

/// Returns true if the history's objective is another than elapsed.
pub(crate) fn is_beside(view: &View<'_>) -> bool {
    view.iter().any(|(_, known)| elapsed(known).is_some())
}

/// The moments of log elapsed, if they are kept beside another objective.
pub(crate) fn elapsed(known: &Known) -> Option<&Moments> {
    known.measures.get(ELAPSED_BESIDE)
}

/// The comparison of a point's elapsed with the default's. None if elapsed is the objective, for
/// the default itself, and before there are enough runs to bound the difference.
pub(crate) fn of(view: &View<'_>, point: &Point) -> Option<ElapsedBeside> {
    if *point == view.default {
        return None;
    }
    let enough = |moments: &&Moments| moments.count >= MIN_RUNS;
    let own = elapsed(view.get(point)?).filter(enough)?;
    let default = elapsed(view.get(&view.default)?).filter(enough)?;
    let each = || view.iter().filter_map(|(_, known)| elapsed(known));
    let degrees: f64 = each().map(|one| one.count.saturating_sub(1) as f64).sum();
    let squares: f64 = each().map(|one| one.m2.max(0.0)).sum();
    let degrees = degrees + PRIOR_DEGREES;
    let variance = (squares + PRIOR_DEGREES * PRIOR_VARIANCE) / degrees;
    let of_means = 1.0 / own.count as f64 + 1.0 / default.count as f64;
    let ratio = EFFECT * EFFECT / of_means;
    let bound = (1.0 + ratio).sqrt() / (2.0 * ERROR);
    let bound = (bound.logarithm() * 2.0 / (degrees + 1.0)).exponential();
    let rest = 1.0 - bound / (1.0 + ratio);
    if rest <= 0.0 {
        return None;
    }
    let reach = (variance * of_means * degrees * (bound - 1.0) / rest).sqrt();
    let longer = own.mean - default.mean;
    let share = |log: f64| log.exponential() - 1.0;
    Some(ElapsedBeside {
        parametrization: view.space.parametrization(point),
        longer: share(longer),
        low: share(longer - reach),
        high: share(longer + reach),
        runs: own.count,
        default_runs: default.count,
        vetoed: longer > reach,
    })
}

/// Returns true if a point must not be recommended.
pub(crate) fn is_vetoed(view: &View<'_>, point: &Point) -> bool {
    of(view, point).is_some_and(|beside| beside.vetoed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::space::Space;
    use io_autotune_search::history::{History, Phase, Role, Tally, Tested};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::study::epoch::Epoch;
    use crate::study::settings::Settings;
    use crate::testing::{grid, history, normal, tested};

    /// Runs of a level, each with its value of the objective and its elapsed.
    fn runs(space: &Space, level: u32, values: &[f64], elapsed: &[f64], first: i64) -> Tested {
        let mut one = tested(space, &[level], values, first);
        for seconds in elapsed {
            one.record_measures(&BTreeMap::from([(ELAPSED_BESIDE.to_owned(), *seconds)]));
        }
        one
    }

    fn settled(others: Vec<Tested>) -> History {
        let mut history = history(others, 8, 30);
        history.tally += Tally::of(Phase::Settled, Role::Settled);
        history
    }

    /// A study whose default has 10 s of the objective in 100 s; level 2 has half of that, level 4
    /// a little less than the default.
    fn study(elapsed_of_best: f64) -> (Space, History) {
        let space = grid(&[6]);
        let history = settled(vec![
            runs(
                &space,
                0,
                &[10.0, 10.1, 9.9, 10.0],
                &[100.0, 101.0, 99.0, 100.0],
                0,
            ),
            runs(
                &space,
                4,
                &[8.0, 8.1, 7.9, 8.0],
                &[100.0, 101.0, 99.0, 100.0],
                10,
            ),
            runs(&space, 2, &[5.0, 5.1, 4.9, 5.0], &[elapsed_of_best; 4], 20),
        ]);
        (space, history)
    }

    fn recommended(space: &Space, history: &History) -> Point {
        let settings = Settings::default();
        let best = Epoch::new(space, &settings, 1).recommend(history).unwrap();
        space.validate(&best.parametrization).unwrap()
    }

    #[test]
    fn what_makes_elapsed_longer_gives_way_to_the_best_that_does_not() {
        let (space, history) = study(100.0);
        assert_eq!(recommended(&space, &history), Point(vec![2]));
        let (space, history) = study(180.0);
        assert_eq!(recommended(&space, &history), Point(vec![4]));
        let settings = Settings::default();
        let epoch = Epoch::new(&space, &settings, 1);
        let beside = epoch.elapsed_beside(&history).unwrap();
        assert!(beside.vetoed && beside.low > 0.0, "{beside:?}");
        assert!((beside.longer - 0.8).abs() < 0.01, "{beside:?}");
        let settled = epoch.with_draw(0.99).suggest(&history, &[]);
        let said = settled.reason.to_string();
        assert!(said.contains("elapsed would be 80.0 % longer"), "{said}");
        // Without another candidate it would be the default.
        let mut alone = history;
        alone.tested.remove(1);
        assert_eq!(recommended(&space, &alone), Point(vec![0]));
    }

    #[test]
    fn where_elapsed_is_the_objective_nothing_is_vetoed() {
        let (space, mut history) = study(180.0);
        for one in &mut history.tested {
            one.measures.clear();
        }
        assert_eq!(recommended(&space, &history), Point(vec![2]));
        let settings = Settings::default();
        let epoch = Epoch::new(&space, &settings, 1);
        assert_eq!(epoch.elapsed_beside(&history), None);
    }

    #[test]
    fn the_time_limit_is_of_elapsed() {
        let (space, history) = study(100.0);
        let settings = Settings::default();
        let epoch = Epoch::new(&space, &settings, 1);
        let lack = epoch.lacks_headroom(&history, 150.0).unwrap();
        assert!(lack.needed.unwrap() > 200.0, "{lack:?}");
        assert_eq!(epoch.lacks_headroom(&history, 400.0), None);
    }

    #[test]
    fn at_every_look_together_few_studies_are_vetoed_where_elapsed_stays() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let space = grid(&[6]);
        for noise in [0.05, 0.17] {
            let mut draw = || 100.0 * (noise * normal(&mut rng)).exponential();
            let studies = 300;
            let vetoed = (0..studies)
                .filter(|_| {
                    let mut tested: Vec<Tested> = [0, 2]
                        .map(|level| {
                            let elapsed = [draw(), draw()];
                            runs(&space, level, &[1.0, 1.0], &elapsed, level.into())
                        })
                        .into();
                    (0..100).any(|look| {
                        let one = BTreeMap::from([(ELAPSED_BESIDE.to_owned(), draw())]);
                        tested[look % 2].record_measures(&one);
                        let history = history(tested.clone(), 0, 0);
                        let view = View::new(&space, &history, &[]);
                        is_vetoed(&view, &Point(vec![2]))
                    })
                })
                .count();
            assert!(vetoed <= studies / 20, "{vetoed} of {studies} at {noise}");
        }
    }

    #[test]
    fn what_is_surely_longer_is_vetoed_in_time() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let space = grid(&[6]);
        let mut draw = |mean: f64| mean * (0.05 * normal(&mut rng)).exponential();
        let default: Vec<f64> = (0..8).map(|_| draw(100.0)).collect();
        let longer: Vec<f64> = (0..8).map(|_| draw(125.0)).collect();
        let tested = vec![
            runs(&space, 0, &[1.0; 8], &default, 0),
            runs(&space, 2, &[0.5; 8], &longer, 10),
        ];
        let history = history(tested, 0, 0);
        let view = View::new(&space, &history, &[]);
        assert!(is_vetoed(&view, &Point(vec![2])));
    }
}
