//! The cost of revisiting a tested point, for a program that is replayed.
//!
//! The papers' programs run every point that they come to; here a known point can take its mean
//! from the history instead. With [`Revisits::Run`] the n-th point that the program evaluates is
//! paid for by the n-th search run: the first point that is not paid for runs, tested or not.

use serde::{Deserialize, Serialize};

use io_autotune_model::space::Point;
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;

/// The cost of revisiting a tested point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revisits {
    /// A run, as in the papers. Only the default is known from its own runs.
    #[default]
    Run,
    /// Nothing: the point's mean is taken from the history.
    Free,
}

/// The search runs that pay for a program's evaluations.
#[derive(Debug)]
pub(crate) struct Purse {
    revisits: Revisits,
    left: u64,
}

impl Purse {
    pub(crate) fn new(revisits: Revisits, context: &MethodContext<'_>) -> Self {
        let design = context.design.iter();
        let ran = design.filter(|point| !context.is_untested(point)).count();
        Purse {
            revisits,
            left: context.explored.saturating_sub(ran as u64),
        }
    }

    /// Takes a run for the evaluation of a tested point. Returns true if there was none left, and
    /// the point can run now.
    pub(crate) fn must_pay(&mut self, context: &MethodContext<'_>, point: &Point) -> bool {
        if self.revisits == Revisits::Free || *point == context.view.default {
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        runs_again(self.revisits, context, point)
    }
}

/// Returns true if a program that comes to a tested point runs it once more.
pub(crate) fn runs_again(revisits: Revisits, context: &MethodContext<'_>, point: &Point) -> bool {
    let open = |known: &Known| known.in_flight == 0 && !known.is_quarantined();
    revisits == Revisits::Run
        && *point != context.view.default
        && context.view.get(point).is_some_and(open)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::cao2018::{Cao2018Annealing, Cao2018Dqn, Cao2018Genetic};
    use io_autotune_search::testing::{grid, history, tested, with_context};
    use io_autotune_search::{Method, Proposal};

    /// The next point of a method after all of nine points have run, the last `beyond` of them in
    /// addition to the design.
    fn next(method: &dyn Method, beyond: u64) -> Option<Point> {
        let space = grid(&[3, 3]);
        let points = space.points(100).unwrap();
        let runs = points.iter().enumerate();
        let entries =
            runs.map(|(nth, point)| tested(&space, &point.0, &[100.0 + nth as f64], nth as i64));
        let design = method.design_points(&space, 50).min(8);
        let history = history(entries.collect(), u64::from(design) + beyond, 9);
        with_context(&space, &history, &[], method, 1, |context| {
            match method.propose(context, &mut ChaCha8Rng::seed_from_u64(1)) {
                Proposal::Run { point, .. } => Some(point),
                _ => None,
            }
        })
    }

    /// Cao 2018, section 4.2: each configuration that a method comes to is evaluated.
    #[test]
    fn cao2018_iv_2_coming_back_to_a_point_costs_a_run() {
        let genetic = |revisits| Cao2018Genetic {
            revisits,
            ..Cao2018Genetic::default()
        };
        let annealing = |revisits| Cao2018Annealing {
            revisits,
            ..Cao2018Annealing::default()
        };
        let dqn = |revisits| Cao2018Dqn {
            revisits,
            ..Cao2018Dqn::default()
        };
        let default = grid(&[3, 3]).default_point();
        let paying: [&dyn Method; 2] = [&genetic(Revisits::Run), &annealing(Revisits::Run)];
        for method in paying {
            let first = next(method, 0).unwrap();
            assert_ne!(first, default, "it is known from its own runs");
            // A point that is paid for is passed: at some place another one follows.
            assert!((1..20).any(|paid| next(method, paid).is_some_and(|point| point != first)));
        }
        let again = next(&dqn(Revisits::Run), 1).unwrap();
        assert_ne!(again, default);
        let free: [&dyn Method; 3] = [
            &genetic(Revisits::Free),
            &annealing(Revisits::Free),
            &dqn(Revisits::Free),
        ];
        for method in free {
            assert_eq!(next(method, 0), None, "nothing is left to run");
        }
    }
}
