//! Many replayed studies in parallel, and their figures.

use std::num::NonZero;

use io_autotune_engine::{MAX_DESIGN_POINTS, ProofSettings, RegretSettings};
use io_autotune_optimize::session::outside_slurm;
use serde::Serialize;

use crate::bootstrap::{Estimate, estimate, mean};
use crate::dataset::Table;
use crate::method::MethodSpec;
use crate::metrics::{
    AFTER, AVERAGE_RUN, Course, GROUPS, LOSS, Metric, NearOptimal, RECOMMENDED, SAYS, SAYS_AFTER,
    SAYS_WRONGLY, Scores, WORST, Weights, near_optimal, scores,
};
use crate::parallel::each;
use crate::replay::{Counted, Outside, Plan, replay};

/// How methods are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The number of runs of each study.
    pub budget: u32,
    /// Which runs these are.
    pub counted: Counted,
    /// True if the studies are those of `optimize` ([`outside_slurm`]) and not of a site.
    pub outside_slurm: bool,
    /// The outcome of runs that a table lacks.
    pub outside: Outside,
    /// True if studies begin with their table's other defaults.
    pub defaults_first: bool,
    /// The number of studies of each method and table; they differ in their seed.
    pub seeds: u32,
    /// The seed of the first study; the others follow one by one.
    pub first_seed: u64,
    /// The number of runs in flight at once.
    pub in_flight: u32,
    /// The number of threads. It affects computing times alone.
    pub threads: NonZero<usize>,
    /// True to keep the single studies, see [`MethodResult::studies`].
    pub keep_studies: bool,
    /// The weights of metrics in the scores.
    pub weights: Weights,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The number of runs of each study.
    pub budget: u32,
    /// The number of studies of each method and table.
    pub seeds: u32,
    /// The number of runs in flight at once.
    pub in_flight: u32,
    /// The methods, as requested.
    pub methods: Vec<String>,
    /// The results by table.
    pub tables: Vec<TableResult>,
    /// The results of all tables together, by method.
    pub overall: Vec<Overall>,
}

/// The result on one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableResult {
    /// The table's name.
    pub name: String,
    /// The number of measured parametrizations.
    pub parametrizations: usize,
    /// The size of the space, as text because it may be large.
    pub space: String,
    /// The elapsed of the true best, seconds.
    pub best: f64,
    /// The elapsed of the default, seconds.
    pub default: f64,
    /// True if the data set's default was not measured and the nearest measured point replaces it.
    pub default_moved: bool,
    /// The results by method.
    pub methods: Vec<MethodResult>,
}

/// The result of one method on one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodResult {
    /// The figures, in the order of [`GROUPS`] and their metrics.
    pub figures: Vec<Figure>,
    /// The scores of the 2020 paper among the compared methods; none for a single method.
    pub scores: Option<Scores>,
    /// By run: the true time over the true best, as the geometric mean over the studies.
    pub over_best_by_run: Vec<f64>,
    /// By run: the share of studies that have tried a near-optimal parametrization.
    pub near_by_run: Vec<f64>,
    /// The seconds until studies tried a near-optimal parametrization, ascending: figure 5 of the
    /// 2018 paper is the share of studies up to each time.
    pub near_times: Vec<f64>,
    /// The single studies, by seed; empty unless [`Setup::keep_studies`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub studies: Vec<StudyResult>,
}

/// One study. With the table and its draws ([`Draw`](crate::dataset::Draw)) it gives every figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyResult {
    /// The study's seed.
    pub seed: u64,
    /// For each counted run, by start, its place in [`Table::configurations`]; none if not there.
    pub runs: Vec<Option<usize>>,
    /// The place of the recommended parametrization.
    pub recommended: usize,
    /// The value of each metric, in the order of [`MethodResult::figures`]; none if the study has none.
    pub figures: Vec<Option<f64>>,
}

/// One metric of one method on one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The metric's group.
    pub group: &'static str,
    /// The metric's name.
    pub metric: &'static str,
    /// The unit of the figure.
    pub unit: &'static str,
    /// The number of studies that have the figure.
    pub studies: usize,
    /// The mean; none if no study has the figure.
    #[serde(flatten)]
    pub estimate: Option<Estimate>,
}

/// One method on all tables: times over the true best, averaged over a table's studies, then as a
/// geometric mean over the tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overall {
    /// The recommended parametrization.
    pub recommended: Option<Estimate>,
    /// The mean over all runs.
    pub average_run: Option<Estimate>,
    /// The recommended parametrization over that of the first method, resampled by pairs of seeds.
    pub recommended_against_first: Option<Estimate>,
    /// The mean over all runs over that of the first method, likewise.
    pub average_run_against_first: Option<Estimate>,
    /// The price that users pay, by the number of runs.
    pub paid: Vec<Paid>,
    /// The loss of a study, in runs of the default.
    pub loss: Option<Percentiles>,
    /// The slowest parametrization that a study ran, over the default.
    pub worst: Option<Percentiles>,
    /// The share of studies that end because nothing can be won, percent.
    pub says: Option<f64>,
    /// The runs after which they do.
    pub says_after: Option<Percentiles>,
    /// The share of studies that do although more can be won than they say, percent.
    pub says_wrongly: Option<f64>,
}

/// The price that the studies of all tables pay for their first runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paid {
    /// The number of runs.
    pub after: usize,
    /// Their time over that of as many runs of the default: a geometric mean over studies and tables.
    pub net: Option<Estimate>,
    /// The share of studies whose runs took more than 1 % longer, percent.
    pub losing: Option<Estimate>,
}

/// How a figure is spread over the studies of all tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of the studies have less.
    pub p50: f64,
    /// 95 of 100 studies have less.
    pub p95: f64,
    /// 99 of 100 studies have less.
    pub p99: f64,
}

struct Outcome {
    figures: Vec<Option<f64>>,
    log_over_best: Vec<Option<f64>>,
    near: Option<NearOptimal>,
    study: Option<StudyResult>,
}

/// Replays every method on every table with every seed, and computes the figures. `progress` is
/// called after each of the tables x methods x seeds studies, from any thread.
pub fn compare(
    tables: &[Table],
    methods: &[MethodSpec],
    setup: &Setup,
    progress: impl Fn() + Sync,
) -> Comparison {
    let plans: Vec<Plan> = methods.iter().map(|method| plan(method, setup)).collect();
    let (seeds, jobs) = (
        setup.seeds as usize,
        tables.len() * methods.len() * setup.seeds as usize,
    );
    let outcomes: Vec<Outcome> = each(jobs, setup.threads, |job| {
        let (pair, seed) = (job / seeds, job % seeds);
        let table = &tables[pair / methods.len()];
        let seed = setup.first_seed.wrapping_add(seed as u64);
        let plan = &plans[pair % methods.len()];
        let outcome = study(table, plan, seed, setup.keep_studies);
        progress();
        outcome
    });
    let of = |table: usize, method: usize| {
        let first = (table * methods.len() + method) * seeds;
        &outcomes[first..first + seeds]
    };
    let methods_of =
        |table| -> Vec<&[Outcome]> { (0..methods.len()).map(|method| of(table, method)).collect() };
    Comparison {
        budget: setup.budget,
        seeds: setup.seeds,
        in_flight: setup.in_flight,
        methods: methods.iter().map(|method| method.label.clone()).collect(),
        tables: tables
            .iter()
            .enumerate()
            .map(|(place, table)| table_result(table, &methods_of(place), setup))
            .collect(),
        overall: (0..methods.len())
            .map(|method| {
                let pairs: Vec<[&[Outcome]; 2]> = (0..tables.len())
                    .map(|table| [of(table, method), of(table, 0)])
                    .collect();
                overall(&pairs)
            })
            .collect(),
    }
}

fn plan(method: &MethodSpec, setup: &Setup) -> Plan {
    let mut settings = method.settings.clone();
    settings.proof = ProofSettings::NEVER;
    if !method.sets_budget {
        // All runs may search; the end cuts off a design that does not fit.
        settings.budget = setup.budget.max(settings.design_points);
    }
    if setup.counted == Counted::Exploring && settings.regret == RegretSettings::default() {
        // The papers have no regret budget.
        settings.regret = RegretSettings::UNBOUNDED;
    }
    if setup.outside_slurm {
        settings = outside_slurm(settings, setup.budget);
    }
    if setup.defaults_first {
        // Only what the design begins with differs.
        settings.drift.budget = settings.budget;
        settings.drift.inherited = MAX_DESIGN_POINTS;
    }
    Plan {
        settings,
        budget: setup.budget,
        counted: setup.counted,
        in_flight: setup.in_flight,
        outside: setup.outside,
        defaults_first: setup.defaults_first,
    }
}

fn metrics() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    let of = |group: &'static crate::metrics::Group| {
        group.metrics.iter().map(|metric| (group.name, metric))
    };
    GROUPS.into_iter().flat_map(of)
}

fn study(table: &Table, plan: &Plan, seed: u64, keep: bool) -> Outcome {
    let trajectory = replay(table, plan, seed);
    let course = Course::new(table, &trajectory);
    let best = table.best().truth;
    let over_best = |place: usize| (table.configurations()[place].truth / best).ln();
    let figures: Vec<Option<f64>> = metrics().map(|(_, metric)| (metric.of)(&course)).collect();
    Outcome {
        log_over_best: trajectory
            .runs
            .iter()
            .map(|run| run.place.map(over_best))
            .collect(),
        near: near_optimal(&course),
        study: keep.then(|| StudyResult {
            seed,
            runs: trajectory.runs.iter().map(|run| run.place).collect(),
            recommended: trajectory.recommended,
            figures: figures.clone(),
        }),
        figures,
    }
}

fn table_result(table: &Table, methods: &[&[Outcome]], setup: &Setup) -> TableResult {
    let mut results: Vec<MethodResult> = methods
        .iter()
        .map(|studies| method_result(studies, setup.budget as usize))
        .collect();
    let figure = |name: &str, method: usize| {
        let result: &MethodResult = results.get(method)?;
        let mut figures = result.figures.iter();
        Some(
            figures
                .find(|figure| figure.metric == name)?
                .estimate?
                .value,
        )
    };
    if let Some(scores) = scores(methods.len(), &setup.weights, figure) {
        for (result, scores) in results.iter_mut().zip(scores) {
            result.scores = Some(scores);
        }
    }
    TableResult {
        name: table.file.name.clone(),
        parametrizations: table.configurations().len(),
        space: table.file.space.size().to_string(),
        best: table.best().truth,
        default: table.default().truth,
        default_moved: table.default_moved,
        methods: results,
    }
}

fn method_result(studies: &[Outcome], budget: usize) -> MethodResult {
    let figures = metrics().enumerate().map(|(place, (group, metric))| {
        let numbers: Vec<f64> = studies.iter().filter_map(|s| s.figures[place]).collect();
        Figure {
            group,
            metric: metric.name,
            unit: metric.unit,
            studies: numbers.len(),
            estimate: estimate(&[numbers.len()], |seeds| mean(&numbers, &seeds[0])),
        }
    });
    let over_best_by_run = (0..budget).map_while(|run| {
        let logs: Vec<f64> = studies
            .iter()
            .filter_map(|study| study.log_over_best.get(run).copied().flatten())
            .collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    });
    let near = || studies.iter().filter_map(|study| study.near);
    let near_by_run = (1..=budget).map(|run| {
        let found = near().filter(|near| near.run <= run).count();
        found as f64 / studies.len() as f64
    });
    let mut near_times: Vec<f64> = near().map(|near| near.end).collect();
    near_times.sort_by(f64::total_cmp);
    MethodResult {
        figures: figures.collect(),
        scores: None,
        over_best_by_run: over_best_by_run.collect(),
        near_by_run: near_by_run.collect(),
        near_times,
        studies: studies.iter().filter_map(|s| s.study.clone()).collect(),
    }
}

/// `pairs` holds, for each table, the studies of the method and of the first method.
fn overall(pairs: &[[&[Outcome]; 2]]) -> Overall {
    let figure = |name: &str| -> [Option<Estimate>; 2] {
        let Some(place) = metrics().position(|(_, metric)| metric.name == name) else {
            return [None; 2];
        };
        // A study with all runs outside the table has no average run.
        let numbers = |studies: &[Outcome]| -> Option<Vec<f64>> {
            studies.iter().map(|study| study.figures[place]).collect()
        };
        let tables: Option<Vec<[Vec<f64>; 2]>> = pairs
            .iter()
            .map(|[own, first]| Some([numbers(own)?, numbers(first)?]))
            .collect();
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            return [None; 2];
        };
        let sizes: Vec<usize> = tables.iter().map(|[own, _]| own.len()).collect();
        let geometric = |logs: f64| (logs / tables.len() as f64).exp();
        let each = || tables.iter();
        [
            estimate(&sizes, |seeds| {
                let logs = each()
                    .zip(seeds)
                    .map(|([own, _], seeds)| mean(own, seeds).ln());
                geometric(logs.sum())
            }),
            estimate(&sizes, |seeds| {
                let logs = each()
                    .zip(seeds)
                    .map(|([own, first], seeds)| (mean(own, seeds) / mean(first, seeds)).ln());
                geometric(logs.sum())
            }),
        ]
    };
    let [recommended, recommended_against_first] = figure(RECOMMENDED);
    let [average_run, average_run_against_first] = figure(AVERAGE_RUN);
    let own: Vec<&[Outcome]> = pairs.iter().map(|[own, _]| *own).collect();
    Overall {
        paid: paid(&own),
        loss: percentiles(&own, LOSS),
        worst: percentiles(&own, WORST),
        says: share(&own, SAYS),
        says_after: percentiles(&own, SAYS_AFTER),
        says_wrongly: share(&own, SAYS_WRONGLY),
        recommended,
        average_run,
        recommended_against_first,
        average_run_against_first,
    }
}

/// The figures of each table's studies; none for a table in which one has none.
fn numbers(tables: &[&[Outcome]], name: &str) -> Option<Vec<Vec<f64>>> {
    let place = metrics().position(|(_, metric)| metric.name == name)?;
    let of = |studies: &&[Outcome]| studies.iter().map(|study| study.figures[place]).collect();
    let numbers: Option<Vec<Vec<f64>>> = tables.iter().map(of).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

fn paid(tables: &[&[Outcome]]) -> Vec<Paid> {
    let averaged = |name: &str, each: fn(f64) -> f64, back: fn(f64) -> f64| {
        let numbers = numbers(tables, name)?;
        let sizes: Vec<usize> = numbers.iter().map(Vec::len).collect();
        let numbers: Vec<Vec<f64>> = numbers
            .into_iter()
            .map(|table| table.into_iter().map(each).collect())
            .collect();
        estimate(&sizes, |seeds| {
            let means = numbers.iter().zip(seeds);
            let means = means.map(|(table, seeds)| mean(table, seeds));
            back(means.sum::<f64>() / numbers.len() as f64)
        })
    };
    let of = |(after, net, losing)| Paid {
        after,
        net: averaged(net, f64::ln, f64::exp),
        losing: averaged(losing, |share| share, |share| share),
    };
    let all = AFTER.into_iter().map(of);
    all.filter(|paid| paid.net.is_some()).collect()
}

/// The mean over all studies.
fn share(tables: &[&[Outcome]], name: &str) -> Option<f64> {
    let all = numbers(tables, name)?.concat();
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

/// Over the studies that have the figure.
fn percentiles(tables: &[&[Outcome]], name: &str) -> Option<Percentiles> {
    let place = metrics().position(|(_, metric)| metric.name == name)?;
    let all = tables.iter().flat_map(|studies| studies.iter());
    let mut all: Vec<f64> = all.filter_map(|study| study.figures[place]).collect();
    all.sort_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    let at = |share: f64| all[(share * last as f64).round() as usize];
    Some(Percentiles {
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(of: &[(&str, f64)]) -> Outcome {
        let figure = |name: &str| of.iter().find(|(known, _)| *known == name).map(|of| of.1);
        Outcome {
            figures: metrics().map(|(_, metric)| figure(metric.name)).collect(),
            log_over_best: Vec::new(),
            near: None,
            study: None,
        }
    }

    #[test]
    fn what_users_pay_is_a_geometric_mean_and_a_share_of_all_studies() {
        let study =
            |net, loses, loss| outcome(&[("Net10", net), ("Loses10", loses), ("Loss", loss)]);
        let one = [study(0.5, 0.0, 1.0), study(2.0, 100.0, 9.0)];
        let other = [study(0.25, 0.0, 2.0), study(0.25, 0.0, 3.0)];
        let tables = [&one[..], &other[..]];
        let [ten] = &paid(&tables)[..] else {
            panic!("no study has 25 runs")
        };
        assert_eq!(ten.after, 10);
        assert!((ten.net.unwrap().value - 0.5).abs() < 1e-12, "{ten:?}");
        assert_eq!(ten.losing.unwrap().value, 25.0);
        let loss = percentiles(&tables, LOSS).unwrap();
        assert_eq!((loss.p50, loss.p95, loss.p99), (3.0, 9.0, 9.0));
        assert_eq!(percentiles(&tables, WORST), None);
    }
}
