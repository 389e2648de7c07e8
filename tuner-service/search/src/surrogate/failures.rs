//! The probability that a run is lost, by point: a Gaussian process on the shares of lost runs
//! (least-squares classification, RW section 6.5). It has length scales and a noise of its own:
//! what makes runs fail need not make them slow.

use crate::history::by_point::{Known, View};
use crate::surrogate::{Observation, Scatter, Surrogate};
use io_autotune_model::space::Point;

/// The most points that the process is fitted to, those with lost runs first. A fit takes as long
/// as one of elapsed times.
const MOST_POINTS: usize = 64;

/// The process of the shares of lost runs.
#[derive(Debug)]
pub struct Failures(Surrogate);

impl Failures {
    /// Fits the process. None before a run was lost: failed, or cut short by its time limit.
    pub fn new(view: &View<'_>) -> Option<Self> {
        let ran = |(_, known): &(&Point, &Known)| ended(known) > 0;
        let mut known: Vec<(&Point, &Known)> = view.iter().filter(ran).collect();
        known.sort_by_key(|(_, known)| (known.lost() == 0, known.first_ordinal));
        known.first().filter(|(_, known)| known.lost() > 0)?;
        let observations: Vec<Observation> = known
            .into_iter()
            .take(MOST_POINTS)
            .map(|(point, known)| Observation {
                point: point.clone(),
                // The share takes the place of the logarithm.
                log_mean: known.lost() as f64 / ended(known) as f64,
                runs: ended(known) as f64,
            })
            .collect();
        Surrogate::fit(view.space, &observations, Scatter::default()).map(Failures)
    }

    /// The probability, 0 to 1, that a run of each point is not lost.
    pub fn succeed(&self, points: &[Point]) -> Vec<f64> {
        let lost = self.0.predict_all(points).into_iter();
        lost.map(|lost| (1.0 - lost.mean).clamp(0.0, 1.0)).collect()
    }
}

fn ended(known: &Known) -> u64 {
    known.count().saturating_add(known.lost())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{grid, history, tested};

    #[test]
    fn nothing_is_said_before_a_run_was_lost() {
        let space = grid(&[6]);
        let history = history(vec![tested(&space, &[1], &[10.0], 0)], 0, 0);
        assert!(Failures::new(&View::new(&space, &history, &[])).is_none());
    }

    #[test]
    fn what_lies_between_failures_fails_and_what_lies_between_successes_does_not() {
        let space = grid(&[9, 3]);
        let mut entries = Vec::new();
        for level in [0, 2] {
            entries.push(tested(&space, &[level, 1], &[10.0], 0));
        }
        for level in [5, 7] {
            let mut entry = tested(&space, &[level, 1], &[], 0);
            entry.failed = 1;
            entries.push(entry);
        }
        let history = history(entries, 0, 0);
        let failures = Failures::new(&View::new(&space, &history, &[])).unwrap();
        let points = [[1, 1], [6, 1], [8, 0]].map(|levels| Point(levels.to_vec()));
        let succeed = failures.succeed(&points);
        assert!(succeed[0] > 0.9, "{succeed:?}");
        assert!(succeed[1] < 0.1 && succeed[2] < 0.3, "{succeed:?}");
    }
}
