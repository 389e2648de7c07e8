//! Incumbent retention: a settled choice stays until another is surely faster, because only runs of
//! one choice can be compared with the default. The papers' methods recommend as published.

use io_autotune_model::space::Point;
use io_autotune_search::history::by_point::{Known, MIN_RUNS};
use io_autotune_search::surrogate::Prediction;
use io_autotune_search::surrogate::posterior::Modelled;

/// The lead with which another parametrization replaces the incumbent, in standard deviations of
/// the difference (docs/engine.md).
const SURELY: f64 = 1.0;

/// The incumbent that stays although `leader` ranks first: the parametrization of the latest
/// counted run, unless the surrogate predicts that the leader is surely faster. None before a run
/// of the choice has ended, if the incumbent is not eligible, or if the leader is the default.
pub(crate) fn retained(view: &Modelled<'_>, leader: &Point) -> Option<(Point, Known)> {
    if !view.has_run_its_choice() || *leader == view.default {
        return None;
    }
    let latest = view.latest()?;
    let known = view
        .get(latest)
        .filter(|known| known.is_eligible() && known.count() >= MIN_RUNS)?;
    let fitted = view.fitted()?;
    let surely = is_surely_quicker(fitted.predict(leader), fitted.predict(latest));
    (!surely).then(|| (latest.clone(), known.clone()))
}

fn is_surely_quicker(leader: Prediction, standing: Prediction) -> bool {
    let deviation = (leader.variance + standing.variance).sqrt();
    standing.mean - leader.mean > SURELY * deviation
}

#[cfg(test)]
mod tests {
    use crate::study::epoch::Epoch;
    use crate::study::settings::Settings;
    use crate::testing::{grid, history, published, recommend, tested};
    use io_autotune_model::space::{Point, Space};
    use io_autotune_search::history::{History, Phase, Role, Tally, Tested};

    /// A settled epoch whose default takes 100 s, with these further entries.
    fn settled(space: &Space, others: Vec<Tested>) -> History {
        let mut all = others;
        all.push(tested(space, &[0], &[99.0, 100.0, 101.0, 100.0], 0));
        let mut history = history(all, 8, 20);
        history.tally += Tally::of(Phase::Settled, Role::Settled);
        history
    }

    fn recommended(space: &Space, history: &History) -> Point {
        let best = recommend(space, history, &Settings::default()).unwrap();
        space.validate(&best.parametrization).unwrap()
    }

    fn ranked_first(space: &Space, history: &History) -> Point {
        let best = Epoch::new(space, &Settings::default(), 0)
            .leader(history)
            .unwrap();
        space.validate(&best).unwrap()
    }

    #[test]
    fn a_choice_stands_beside_what_is_as_good() {
        let space = grid(&[6]);
        let chosen = tested(&space, &[2], &[50.0, 52.0, 51.0], 19);
        let other = tested(&space, &[4], &[50.5, 50.5], 9);
        let mut history = settled(&space, vec![chosen, other]);
        assert_eq!(ranked_first(&space, &history), Point(vec![4]));
        assert_eq!(recommended(&space, &history), Point(vec![2]));
        // Before anything was chosen, the one that ranks first is recommended.
        history.tally.settled = 0;
        assert_eq!(recommended(&space, &history), Point(vec![4]));
    }

    #[test]
    fn the_published_method_recommends_the_lowest_mean() {
        let space = grid(&[6]);
        let chosen = tested(&space, &[2], &[50.0, 52.0, 51.0], 19);
        let other = tested(&space, &[4], &[50.5, 50.5], 9);
        let history = settled(&space, vec![chosen, other]);
        let best = recommend(&space, &history, &published()).unwrap();
        assert_eq!(space.validate(&best.parametrization), Ok(Point(vec![4])));
    }

    #[test]
    fn it_gives_way_to_what_is_surely_quicker() {
        let space = grid(&[6]);
        let chosen = tested(&space, &[2], &[70.0, 72.0, 71.0], 19);
        let other = tested(&space, &[4], &[50.0, 51.0], 9);
        assert_eq!(
            recommended(&space, &settled(&space, vec![chosen, other])),
            Point(vec![4])
        );
    }

    #[test]
    fn it_gives_way_where_jobs_fail_and_where_the_default_is_better() {
        let space = grid(&[6]);
        let mut chosen = tested(&space, &[2], &[50.0, 52.0, 51.0], 19);
        chosen.record_out_of_memory(20);
        let other = tested(&space, &[4], &[50.5, 51.5], 9);
        let fails = settled(&space, vec![chosen, other]);
        assert_eq!(recommended(&space, &fails), Point(vec![4]));

        let slower = tested(&space, &[2], &[100.5, 101.0, 101.5], 19);
        let slow = settled(&space, vec![slower]);
        assert_eq!(ranked_first(&space, &slow), Point(vec![0]));
        assert_eq!(recommended(&space, &slow), Point(vec![0]));
    }
}
