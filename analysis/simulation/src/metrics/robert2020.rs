//! Table II of S. Robert, S. Zertal, G. Vaumourin (2020), and the scores of section VII.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Course, Group, Metric};

pub(super) const TABLE_II: Group = Group {
    name: "robert2020",
    title: "Robert et al. 2020, table II",
    metrics: &[
        Metric {
            name: "SuccessRate",
            unit: "%",
            meaning: "how often the recommended parametrization is the true optimum",
            of: success_rate,
        },
        Metric {
            name: "DistOptim",
            unit: "%",
            meaning: "by how much the recommended parametrization is slower than the true optimum",
            of: dist_optim,
        },
        Metric {
            name: "NbrSteps",
            unit: "runs",
            meaning: "the number of the first run of what is recommended in the end",
            of: nbr_steps,
        },
        Metric {
            name: "AvgDistOptim",
            unit: "%",
            meaning: "by how much runs are slower than the true optimum, on average",
            of: avg_dist_optim,
        },
        Metric {
            name: "RegCost",
            unit: "s",
            meaning: "by how much a run is slower than the one before it, 0 if it is not, on average",
            of: reg_cost,
        },
        Metric {
            name: "InferiorDefault",
            unit: "%",
            meaning: "the share of runs whose parametrization is faster than the default",
            of: inferior_default,
        },
        Metric {
            name: "ElTime",
            unit: "s",
            meaning: "what it took to compute all suggestions of a study",
            of: el_time,
        },
    ],
};

fn success_rate(course: &Course<'_>) -> Option<f64> {
    Some(if course.succeeded() { 100.0 } else { 0.0 })
}

fn dist_optim(course: &Course<'_>) -> Option<f64> {
    Some(100.0 * (course.recommended() / course.best() - 1.0))
}

fn nbr_steps(course: &Course<'_>) -> Option<f64> {
    let recommended = Some(course.trajectory.recommended);
    let first = course
        .runs()
        .iter()
        .position(|run| run.place == recommended)?;
    Some(first as f64 + 1.0)
}

fn avg_dist_optim(course: &Course<'_>) -> Option<f64> {
    course.mean(|truth| 100.0 * (truth / course.best() - 1.0))
}

fn reg_cost(course: &Course<'_>) -> Option<f64> {
    let runs = course.truths().count();
    (runs > 0).then(|| course.regressions().sum::<f64>() / runs as f64)
}

fn inferior_default(course: &Course<'_>) -> Option<f64> {
    course.mean(|truth| if truth < course.default() { 100.0 } else { 0.0 })
}

fn el_time(course: &Course<'_>) -> Option<f64> {
    Some(course.trajectory.computing)
}

/// The three scores of section VII for one of several methods; higher is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// `SuccessRate - NbrSteps - DistOptim`.
    pub optim: f64,
    /// `-AvgDistOptim + InferiorDefault - RegCost`.
    pub stability: f64,
    /// Their sum.
    pub score: f64,
}

/// The weights of metrics in the scores, by name: "these can easily be modified by adding weights to give
/// different importance to the heuristics' qualities" (section VII). A metric that is not named weighs 1.
pub type Weights = BTreeMap<String, f64>;

/// The metrics of the scores, and whether more is better.
const SCORED: [&[(&str, f64)]; 2] = [
    &[
        ("SuccessRate", 1.0),
        ("NbrSteps", -1.0),
        ("DistOptim", -1.0),
    ],
    &[
        ("AvgDistOptim", -1.0),
        ("InferiorDefault", 1.0),
        ("RegCost", -1.0),
    ],
];

/// Reads `METRIC=WEIGHT`.
pub fn weight(text: &str) -> Result<(String, f64), String> {
    let known = || SCORED.iter().copied().flatten().map(|(name, _)| *name);
    let expected = || {
        let names: Vec<&str> = known().collect();
        format!(
            "METRIC=WEIGHT is expected, with one of {} and a number from 0 on",
            names.join(", ")
        )
    };
    let (name, weight) = text.split_once('=').ok_or_else(expected)?;
    let weight: f64 = weight.parse().map_err(|_| expected())?;
    match known().any(|one| one == name) && weight.is_finite() && weight >= 0.0 {
        true => Ok((name.to_owned(), weight)),
        false => Err(expected()),
    }
}

/// The scores of several methods.
///
/// "Each metric is normalized between 0 and 1" over the compared methods, and so are the scores, as
/// table VI shows (random sampler 0, best method 1). The sum is of scores before normalisation.
/// Metrics and scores that are equal for all methods are 0. `figures` gives a metric, by name, of a
/// method, by place. None with a single method or a missing metric.
pub fn scores(
    methods: usize,
    weights: &Weights,
    figures: impl Fn(&str, usize) -> Option<f64>,
) -> Option<Vec<Scores>> {
    if methods < 2 {
        return None;
    }
    let normal = |name: &str| -> Option<Vec<f64>> {
        let column: Option<Vec<f64>> = (0..methods).map(|method| figures(name, method)).collect();
        Some(normalised(&column?))
    };
    let sum = |signed: &[(&str, f64)]| -> Option<Vec<f64>> {
        let mut sums = vec![0.0; methods];
        for (name, sign) in signed {
            let weight = sign * weights.get(*name).unwrap_or(&1.0);
            for (sum, figure) in sums.iter_mut().zip(normal(name)?) {
                *sum += weight * figure;
            }
        }
        Some(sums)
    };
    let (optim, stability) = (sum(SCORED[0])?, sum(SCORED[1])?);
    let both: Vec<f64> = optim.iter().zip(&stability).map(|(a, b)| a + b).collect();
    let (optim, stability, both) = (
        normalised(&optim),
        normalised(&stability),
        normalised(&both),
    );
    let rows = optim.into_iter().zip(stability).zip(both);
    Some(
        rows.map(|((optim, stability), score)| Scores {
            optim,
            stability,
            score,
        })
        .collect(),
    )
}

fn normalised(column: &[f64]) -> Vec<f64> {
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let range = column.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    let scale = |figure: &f64| {
        if range > 0.0 {
            (figure - least) / range
        } else {
            0.0
        }
    };
    column.iter().map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::measured;

    #[test]
    fn robert2020_table_ii_by_hand() {
        // 120, 200, 110, 110, 200 s; the optimum takes 100 s, the default 120 s.
        let places = [2, 3, 1, 1, 3];
        let close = |name: &str, recommended, expected: f64| {
            let figure = measured(name, &places, recommended).unwrap();
            assert!((figure - expected).abs() < 1e-9, "{name}: {figure}");
        };
        close("SuccessRate", 1, 0.0);
        close("SuccessRate", 0, 100.0);
        close("DistOptim", 1, 10.0);
        close("NbrSteps", 1, 3.0);
        close(
            "AvgDistOptim",
            1,
            (20.0 + 100.0 + 10.0 + 10.0 + 100.0) / 5.0,
        );
        close("RegCost", 1, (80.0 + 90.0) / 5.0);
        close("InferiorDefault", 1, 40.0);
        close("ElTime", 1, 0.5);
        assert_eq!(measured("NbrSteps", &places, 0), None);
    }

    #[test]
    fn robert2020_vii_scores_by_hand() {
        let rows = [
            ("SuccessRate", [100.0, 50.0, 0.0]),
            ("NbrSteps", [20.0, 30.0, 40.0]),
            ("DistOptim", [0.0, 1.0, 2.0]),
            ("AvgDistOptim", [10.0, 5.0, 20.0]),
            ("InferiorDefault", [50.0, 50.0, 50.0]),
            ("RegCost", [1.0, 3.0, 3.0]),
        ];
        let figures = |name: &str, method: usize| {
            let row = rows.iter().find(|(known, _)| *known == name)?;
            row.1.get(method).copied()
        };
        let scores = scores(3, &Weights::new(), figures).unwrap();
        let optim: Vec<f64> = scores.iter().map(|scores| scores.optim).collect();
        // Sums 1, -0.5, -2.
        assert_eq!(optim, [1.0, 0.5, 0.0]);
        // Sums -1/3, -1, -2: of the range 5/3 the shares 1, 3/5 and 0.
        assert!((scores[1].stability - 0.6).abs() < 1e-12);
        assert_eq!((scores[0].score, scores[2].score), (1.0, 0.0));
        assert_eq!(super::scores(1, &Weights::new(), figures), None);
        assert_eq!(super::scores(2, &Weights::new(), |_, _| None), None);
    }
}
