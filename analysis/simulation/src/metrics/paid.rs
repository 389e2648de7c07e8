//! The price of the search for its user: the time of all runs so far beside always running the default.

use super::{Course, Group, Metric};

/// After how many runs it is looked at, with the names of the two metrics: the time, and the share of
/// studies that lose.
pub const AFTER: [(usize, &str, &str); 6] = [
    (10, "Net10", "Loses10"),
    (25, "Net25", "Loses25"),
    (50, "Net50", "Loses50"),
    (100, "Net100", "Loses100"),
    (150, "Net150", "Loses150"),
    (300, "Net300", "Loses300"),
];

/// A study loses if its runs took this many times as long as runs of the default would have.
const LOST: f64 = 1.01;

pub(super) const PAID: Group = Group {
    name: "paid",
    title: "What a user pays: the first runs, over as many of the default",
    metrics: &[
        metric_net::<0>(),
        metric_net::<1>(),
        metric_net::<2>(),
        metric_net::<3>(),
        metric_net::<4>(),
        metric_net::<5>(),
        metric_loses::<0>(),
        metric_loses::<1>(),
        metric_loses::<2>(),
        metric_loses::<3>(),
        metric_loses::<4>(),
        metric_loses::<5>(),
    ],
};

/// The metric of the time at this place of [`AFTER`].
const fn metric_net<const PLACE: usize>() -> Metric {
    Metric {
        name: AFTER[PLACE].1,
        unit: "x",
        meaning: "the time of so many first runs over that of as many runs of the default",
        of: |course| net(course, AFTER[PLACE].0),
    }
}

/// The metric of the studies that lose at this place of [`AFTER`].
const fn metric_loses<const PLACE: usize>() -> Metric {
    Metric {
        name: AFTER[PLACE].2,
        unit: "%",
        meaning: "how often that time was more than 1 % above the default's",
        of: |course| loses(course, AFTER[PLACE].0),
    }
}

/// The time of the first `runs` runs over that of as many of the default; none for a shorter study.
/// A run outside the table took the default's time for nothing, so it counts as one run of it more.
fn net(course: &Course<'_>, runs: usize) -> Option<f64> {
    let first = course.runs().get(..runs)?;
    let over = first.iter().map(|run| {
        let truth = run.place.map(|place| course.truth(place));
        truth.map_or(FAILED, |truth| truth / course.default())
    });
    Some(over.sum::<f64>() / runs as f64)
}

/// The cost of a run outside the table, in runs of the default: its own time, and the job's repetition.
const FAILED: f64 = 2.0;

fn loses(course: &Course<'_>, runs: usize) -> Option<f64> {
    Some(if net(course, runs)? > LOST {
        100.0
    } else {
        0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::{measured, table, trajectory};

    #[test]
    fn by_hand() {
        // The default takes 120 s, place 0 takes 100 s, place 3 takes 200 s.
        let mut places = vec![2; 4];
        places.extend([3; 3]);
        places.extend([0; 18]);
        let close = |name: &str, expected: f64| {
            let figure = measured(name, &places, 0).unwrap();
            assert!((figure - expected).abs() < 1e-9, "{name}: {figure}");
        };
        close("Net10", (4.0 * 120.0 + 3.0 * 200.0 + 3.0 * 100.0) / 1200.0);
        close("Loses10", 100.0);
        close("Net25", (4.0 * 120.0 + 3.0 * 200.0 + 18.0 * 100.0) / 3000.0);
        close("Loses25", 0.0);
        assert_eq!(measured("Net50", &places, 0), None, "it had 25 runs");
        // Within 1 %, a study does not lose.
        let mut even = vec![2; 10];
        even[0] = 1;
        let of = |name| measured(name, &even, 0);
        assert!(of("Net10").unwrap() < 1.0);
        assert_eq!(of("Loses10"), Some(0.0));
    }

    #[test]
    fn a_failed_run_costs_its_time_and_the_jobs_repetition() {
        let mut places = vec![Some(2); 10];
        places[9] = None;
        let (table, trajectory) = (table(), trajectory(&places, 2));
        let net = net(&Course::new(&table, &trajectory), 10).unwrap();
        assert!((net - 1.1).abs() < 1e-9, "{net}");
    }
}
