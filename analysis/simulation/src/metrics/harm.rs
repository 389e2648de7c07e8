//! Metrics that users notice: the quality of the result and of the runs, and the harm.

use super::{AVERAGE_RUN, Course, Group, LOSS, Metric, RECOMMENDED, WORST};

use io_autotune_engine::RegretSettings;

pub(super) const QUALITY: Group = Group {
    name: "quality",
    title: "Time over the true best",
    metrics: &[
        Metric {
            name: RECOMMENDED,
            unit: "x",
            meaning: "of the recommended parametrization",
            of: |course| Some(course.recommended() / course.best()),
        },
        Metric {
            name: "LogRecommended",
            unit: "ln",
            meaning: "its natural logarithm: exp of the mean is the geometric mean over studies",
            of: |course| Some((course.recommended() / course.best()).ln()),
        },
        Metric {
            name: AVERAGE_RUN,
            unit: "x",
            meaning: "of a run, on average",
            of: |course| course.mean(|truth| truth / course.best()),
        },
        Metric {
            name: "LogAverageRun",
            unit: "ln",
            meaning: "of a run, its natural logarithm, on average",
            of: |course| course.mean(|truth| (truth / course.best()).ln()),
        },
        Metric {
            name: "OverDefault",
            unit: "x",
            meaning: "the recommended parametrization over the default",
            of: |course| Some(course.recommended() / course.default()),
        },
    ],
};

pub(super) const HARM: Group = Group {
    name: "harm",
    title: "Harm, against the default",
    metrics: &[
        Metric {
            name: "Slower",
            unit: "%",
            meaning: "the share of runs whose parametrization is slower than the default",
            of: |course| course.mean(|truth| if truth > course.default() { 100.0 } else { 0.0 }),
        },
        Metric {
            name: "SlowerBy",
            unit: "%",
            meaning: "by how much those are slower, on average",
            of: slower_by,
        },
        Metric {
            name: WORST,
            unit: "x",
            meaning: "the slowest parametrization that was run, over the default",
            of: |course| Some(course.truths().reduce(f64::max)? / course.default()),
        },
        Metric {
            name: LOSS,
            unit: "runs",
            meaning: "the sum over the runs of what each takes beyond the default, 0 if it does not, in runs of the default",
            of: |course| Some(losses(course).sum()),
        },
        Metric {
            name: "ExpectedLoss",
            unit: "runs",
            meaning: "the loss as the engine expects it in the end, which its bound is about",
            of: |course| Some(course.trajectory.expected_loss),
        },
        Metric {
            name: "OverBound",
            unit: "%",
            meaning: "how often the loss was at some time above 2 runs of the default and a tenth of the runs so far",
            of: |course| over_bound(course, false),
        },
        Metric {
            name: "OverByMore",
            unit: "%",
            meaning: "how often it was even without the run that had lost most, which may overshoot",
            of: |course| over_bound(course, true),
        },
        Metric {
            name: "Outside",
            unit: "%",
            meaning: "the share of runs that the table could not answer, which failed therefore",
            of: outside,
        },
    ],
};

fn slower_by(course: &Course<'_>) -> Option<f64> {
    let slower: Vec<f64> = losses(course).filter(|loss| *loss > 0.0).collect();
    (!slower.is_empty()).then(|| 100.0 * slower.iter().sum::<f64>() / slower.len() as f64)
}

fn losses<'a>(course: &Course<'a>) -> impl Iterator<Item = f64> + 'a {
    let default = course.default();
    course.truths().map(move |truth| loss(truth, default))
}

fn loss(truth: f64, default: f64) -> f64 {
    (truth / default - 1.0).max(0.0)
}

/// Returns 100 % if the regret ever exceeded the default budget; the run with the largest regret so far may
/// be forgiven. Runs outside the table count, without regret.
fn over_bound(course: &Course<'_>, one_is_forgiven: bool) -> Option<f64> {
    let (mut sum, mut worst) = (0.0, 0.0_f64);
    let mut over = false;
    for (runs, run) in (1..).zip(course.runs()) {
        let truth = run.place.map(|place| course.truth(place));
        let lost = truth.map_or(0.0, |truth| loss(truth, course.default()));
        sum += lost;
        worst = worst.max(lost);
        let forgiven = if one_is_forgiven { worst } else { 0.0 };
        over |= sum - forgiven > RegretSettings::default().bound(runs);
    }
    Some(if over { 100.0 } else { 0.0 })
}

fn outside(course: &Course<'_>) -> Option<f64> {
    let runs = course.runs();
    let outside = runs.iter().filter(|run| run.place.is_none()).count();
    (!runs.is_empty()).then(|| 100.0 * outside as f64 / runs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::{measured, table, trajectory};

    #[test]
    fn by_hand() {
        // 120, 200, 100, 110, 200 s; the optimum takes 100 s, the default 120 s.
        let places = [2, 3, 0, 1, 3];
        let close = |name: &str, expected: f64| {
            let figure = measured(name, &places, 1).unwrap();
            assert!((figure - expected).abs() < 1e-9, "{name}: {figure}");
        };
        close("Recommended", 1.1);
        close("LogRecommended", 1.1_f64.ln());
        close("AverageRun", 1.46);
        close(
            "LogAverageRun",
            (1.2_f64 * 2.0 * 1.0 * 1.1 * 2.0).ln() / 5.0,
        );
        close("OverDefault", 110.0 / 120.0);
        close("Slower", 40.0);
        close("SlowerBy", 200.0 / 3.0);
        close("Worst", 200.0 / 120.0);
        close("Loss", 4.0 / 3.0);
        close("OverBound", 0.0);
        assert_eq!(measured("SlowerBy", &[0, 2], 0), None);
    }

    #[test]
    fn the_bound_grows_with_the_runs_and_one_run_may_overshoot() {
        let over = |runs_of_worst: usize, runs: usize| {
            let mut places = vec![3; runs_of_worst];
            places.resize(runs, 0);
            let of = |name| measured(name, &places, 0).unwrap();
            (of("OverBound"), of("OverByMore"))
        };
        // Each run of the worst loses two thirds; 3 runs have a budget of 2.3, 5 runs of 2.5.
        assert_eq!(over(3, 10), (0.0, 0.0));
        assert_eq!(over(4, 10), (100.0, 0.0));
        assert_eq!(over(5, 10), (100.0, 100.0));
        // The regret by then counts, not that at the end.
        assert_eq!(over(6, 60), (100.0, 100.0));
        let mut late = vec![0; 54];
        late.resize(60, 3);
        let of = |name| measured(name, &late, 0).unwrap();
        assert_eq!((of("OverBound"), of("OverByMore")), (0.0, 0.0));
    }

    #[test]
    fn runs_outside_the_table_are_told() {
        let (table, trajectory) = (table(), trajectory(&[None, Some(0), Some(0), None], 0));
        assert_eq!(outside(&Course::new(&table, &trajectory)), Some(50.0));
    }
}
