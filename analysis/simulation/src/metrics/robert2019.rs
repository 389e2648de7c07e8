//! Tables 1 to 3 of S. Robert, S. Zertal, G. Goret (2019).

use super::{Course, Group, Metric};

pub(super) const TABLE_1: Group = Group {
    name: "robert2019",
    title: "Robert et al. 2019, tables 1 to 3",
    metrics: &[
        Metric {
            name: "S",
            unit: "%",
            meaning: "how often the recommended parametrization is the true optimum",
            of: success,
        },
        Metric {
            name: "IS",
            unit: "runs",
            meaning: "the number of the first run of the true optimum, where it is recommended in the end",
            of: iterations,
        },
        Metric {
            name: "DistOpt",
            unit: "s",
            meaning: "by how much the recommended parametrization is slower than the true optimum",
            of: dist_opt,
        },
        Metric {
            name: "AvgDist",
            unit: "s",
            meaning: "by how much runs are slower than the true optimum, on average",
            of: avg_dist,
        },
        Metric {
            name: "EC",
            unit: "s",
            meaning: "the sum over the runs of how much each is slower than the one before it",
            of: exploration_cost,
        },
        Metric {
            name: "ECBest",
            unit: "s",
            meaning: "the same against the best run before it, not the last one",
            of: exploration_cost_of_the_best,
        },
        Metric {
            name: "Regressions",
            unit: "runs",
            meaning: "how many runs are slower than the one before them",
            of: regressions,
        },
        Metric {
            name: "ET",
            unit: "s",
            meaning: "what it took to compute all suggestions of a study",
            of: elapsed,
        },
        Metric {
            name: "Gain",
            unit: "%",
            meaning: "by how much runs are faster than the default, on average (table 3)",
            of: gain,
        },
    ],
};

fn success(course: &Course<'_>) -> Option<f64> {
    Some(if course.succeeded() { 100.0 } else { 0.0 })
}

fn iterations(course: &Course<'_>) -> Option<f64> {
    if !course.succeeded() {
        return None;
    }
    course.first_run_within(course.best())
}

fn dist_opt(course: &Course<'_>) -> Option<f64> {
    Some(course.recommended() - course.best())
}

fn avg_dist(course: &Course<'_>) -> Option<f64> {
    course.mean(|truth| truth - course.best())
}

fn exploration_cost(course: &Course<'_>) -> Option<f64> {
    Some(course.regressions().sum())
}

/// "Worse than he has already seen it" (table 1), read as worse than the best so far.
fn exploration_cost_of_the_best(course: &Course<'_>) -> Option<f64> {
    Some(course.above_best_so_far().sum())
}

fn regressions(course: &Course<'_>) -> Option<f64> {
    Some(
        course
            .regressions()
            .filter(|seconds| *seconds > 0.0)
            .count() as f64,
    )
}

fn elapsed(course: &Course<'_>) -> Option<f64> {
    Some(course.trajectory.computing)
}

fn gain(course: &Course<'_>) -> Option<f64> {
    course.mean(|truth| 100.0 * (1.0 - truth / course.default()))
}

#[cfg(test)]
mod tests {
    use crate::metrics::tests::measured;

    #[test]
    fn robert2019_table_1_by_hand() {
        // 120, 200, 100, 110, 200 s; the optimum takes 100 s, the default 120 s.
        let places = [2, 3, 0, 1, 3];
        let of = |name| measured(name, &places, 0).unwrap();
        assert_eq!((of("S"), of("IS"), of("DistOpt")), (100.0, 3.0, 0.0));
        assert_eq!(of("AvgDist"), (20.0 + 100.0 + 0.0 + 10.0 + 100.0) / 5.0);
        assert_eq!((of("EC"), of("Regressions")), (80.0 + 10.0 + 90.0, 3.0));
        assert_eq!(of("ECBest"), 80.0 + 0.0 + 10.0 + 100.0);
        assert_eq!(of("ET"), 0.5);
        let gain = 100.0 * (1.0 - (120.0 + 200.0 + 100.0 + 110.0 + 200.0) / 600.0);
        assert!((of("Gain") - gain).abs() < 1e-9);
        // Run, but not recommended: no success, and no convergence to it.
        assert_eq!(measured("S", &places, 1), Some(0.0));
        assert_eq!(measured("IS", &places, 1), None);
        assert_eq!(measured("DistOpt", &places, 1), Some(10.0));
    }
}
