//! Figure 5 of Z. Cao, V. Tarasov, S. Tiwari, E. Zadok (2018): the probability of having found a
//! near-optimal configuration, over time.

use super::{Course, Group, Metric};

/// "A near-optimal configuration [is] one with throughput higher than 99 % of the global optimal
/// value" (section 4.2); times are work over throughput.
const NEAR: f64 = 0.99;

pub(super) const FIGURE_5: Group = Group {
    name: "cao2018",
    title: "Cao et al. 2018, figure 5: a near-optimal (99 %) parametrization was tried",
    metrics: &[
        Metric {
            name: "Near25",
            unit: "%",
            meaning: "how often after a quarter of the runs",
            of: |course| found_after(course, 0.25),
        },
        Metric {
            name: "Near50",
            unit: "%",
            meaning: "how often after half of the runs",
            of: |course| found_after(course, 0.5),
        },
        Metric {
            name: "Near75",
            unit: "%",
            meaning: "how often after three quarters of the runs",
            of: |course| found_after(course, 0.75),
        },
        Metric {
            name: "Near100",
            unit: "%",
            meaning: "how often after all runs",
            of: |course| found_after(course, 1.0),
        },
        Metric {
            name: "NearRun",
            unit: "runs",
            meaning: "the number of the first such run, where there is one",
            of: |course| Some(near_optimal(course)?.run as f64),
        },
        Metric {
            name: "NearTime",
            unit: "s",
            meaning: "when that run ended, since the study's start",
            of: |course| Some(near_optimal(course)?.end),
        },
    ],
};

/// When a study first tried a near-optimal parametrization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearOptimal {
    /// The run's number, from 1.
    pub run: usize,
    /// When it ended, seconds since the study's start.
    pub end: f64,
}

/// The same for one study; none if it never tried one.
pub fn near_optimal(course: &Course<'_>) -> Option<NearOptimal> {
    let mut runs = course.runs().iter().enumerate();
    runs.find_map(|(index, run)| {
        let near = course.best() > NEAR * course.truth(run.place?);
        near.then(|| NearOptimal {
            run: index + 1,
            end: run.start + run.elapsed,
        })
    })
}

fn found_after(course: &Course<'_>, share: f64) -> Option<f64> {
    let runs = course.runs().len() as f64 * share;
    let found = near_optimal(course).is_some_and(|near| near.run as f64 <= runs);
    Some(if found { 100.0 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::{measured, table, trajectory};

    #[test]
    fn cao2018_iv_2_near_optimal_is_above_99_percent() {
        let (table, found) = (table(), trajectory(&[None, Some(3), Some(0), Some(0)], 0));
        let near = near_optimal(&Course::new(&table, &found)).unwrap();
        assert_eq!(near, NearOptimal { run: 3, end: 30.0 });
        assert_eq!(measured("Near50", &[1, 3, 0, 0], 0), Some(0.0));
        assert_eq!(measured("Near75", &[1, 3, 0, 0], 0), Some(100.0));
        assert_eq!(measured("Near100", &[1, 1], 1), Some(0.0));
        assert_eq!(measured("NearRun", &[1, 1], 1), None);
    }
}
