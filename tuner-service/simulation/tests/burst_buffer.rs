//! What is said of the burst-buffer stand-in holds of the committed files.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use io_autotune_engine::{Parametrization, Point};
use io_autotune_simulation::burst_buffer::{SEED, csv, json};
use io_autotune_simulation::dataset::Table;
use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../analysis/data/burst-buffer.json")
}

fn table() -> Table {
    Table::read(&path()).unwrap()
}

/// The runs of each parametrization.
fn groups(table: &Table) -> Vec<Vec<f64>> {
    let times = |c: &io_autotune_simulation::dataset::Configuration| {
        c.samples.iter().map(|sample| sample.elapsed).collect()
    };
    table.configurations().iter().map(times).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn variance(numbers: &[f64]) -> f64 {
    let mean = mean(numbers);
    let squares = numbers.iter().map(|number| (number - mean).powi(2));
    squares.sum::<f64>() / (numbers.len() as f64 - 1.0)
}

/// By linear interpolation between the sorted numbers.
fn quantile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

fn within_2_percent(what: &str, figure: f64, paper: f64) {
    let off = figure / paper - 1.0;
    assert!(off.abs() <= 0.02, "{what}: {figure}, in the paper {paper}");
}

#[test]
fn the_committed_files_are_what_the_generator_writes() {
    assert_eq!(std::fs::read_to_string(path()).unwrap(), json());
    let committed = std::fs::read_to_string(path().with_extension("csv")).unwrap();
    assert!(committed == csv(SEED), "run the example burst_buffer again");
    assert!(committed != csv(SEED + 1));
}

#[test]
fn the_statistics_are_those_of_table_iv() {
    let groups = groups(&table());
    let raw: Vec<f64> = groups.iter().flatten().copied().collect();
    let averaged: Vec<f64> = groups.iter().map(|group| mean(group)).collect();
    assert_eq!((raw.len(), averaged.len()), (8640, 540));
    for (numbers, [average, deviation, least, greatest, median]) in [
        (&raw, [197.33, 49.49, 136.00, 625.00, 185.00]),
        (&averaged, [197.33, 34.60, 151.75, 327.37, 188.81]),
    ] {
        within_2_percent("mean", mean(numbers), average);
        within_2_percent("standard deviation", variance(numbers).sqrt(), deviation);
        within_2_percent("minimum", quantile(numbers, 0.0), least);
        within_2_percent("maximum", quantile(numbers, 1.0), greatest);
        within_2_percent("median", quantile(numbers, 0.5), median);
    }
}

#[test]
fn the_optimum_and_the_default_are_where_they_should_be() {
    let table = table();
    let words = |point: &Point| -> Parametrization { table.file.space.parametrization(point) };
    assert_eq!(
        words(&table.best().point).to_string(),
        "cache_gb=60 destagers=8 threshold=50 workers=10"
    );
    assert_eq!(
        words(&table.default().point).to_string(),
        "cache_gb=60 destagers=10 threshold=90 workers=10"
    );
    let over = table.default().truth / table.best().truth - 1.0;
    assert!((0.115..0.125).contains(&over), "{over}");
    within_2_percent("default", table.default().truth, 172.69);
}

#[test]
fn about_one_run_in_sixteen_is_an_outlier_everywhere_alike() {
    let groups = groups(&table());
    let mut slower_by = Vec::new();
    let mut counts = Vec::new();
    for group in &groups {
        let (q1, q3) = (quantile(group, 0.25), quantile(group, 0.75));
        let fence = q3 + 1.5 * (q3 - q1);
        let median = quantile(group, 0.5);
        let beyond = group.iter().filter(|time| **time > fence);
        let before = slower_by.len();
        slower_by.extend(beyond.map(|time| time / median - 1.0));
        counts.push((slower_by.len() - before) as f64);
    }
    let share = slower_by.len() as f64 / 8640.0;
    assert!((0.8 / 16.0..1.2 / 16.0).contains(&share), "{share}");
    // Typically: the middle half.
    assert!(quantile(&slower_by, 0.25) >= 0.30);
    assert!(quantile(&slower_by, 0.75) <= 0.60);
    // "The distribution of the outliers [is] even across each parametrization": no half of the space,
    // the rows being in the order of the workers, has many more.
    let (few, many) = (mean(&counts[..270]), mean(&counts[270..]));
    assert!((few / many - 1.0).abs() < 0.25, "{few} {many}");
}

/// The one-way F test of equal means, and the probability of as much under the hypothesis.
fn anova(groups: &[Vec<f64>]) -> f64 {
    let all: Vec<f64> = groups.iter().flatten().copied().collect();
    let (k, n) = (groups.len() as f64, all.len() as f64);
    let grand = mean(&all);
    let between: f64 = groups
        .iter()
        .map(|group| group.len() as f64 * (mean(group) - grand).powi(2))
        .sum();
    let within: f64 = groups
        .iter()
        .map(|group| variance(group) * (group.len() as f64 - 1.0))
        .sum();
    let f = (between / (k - 1.0)) / (within / (n - k));
    FisherSnedecor::new(k - 1.0, n - k).unwrap().sf(f)
}

#[test]
fn the_noise_varies_over_the_space() {
    let groups = groups(&table());
    // Levene's test, about the medians (Brown and Forsythe 1974, as the paper cites it).
    let deviations: Vec<Vec<f64>> = groups
        .iter()
        .map(|group| {
            let median = quantile(group, 0.5);
            group.iter().map(|time| (time - median).abs()).collect()
        })
        .collect();
    let levene = anova(&deviations);
    assert!(levene < 1e-5, "{levene}");
    // Bartlett's test.
    let (k, n) = (groups.len() as f64, 8640.0);
    let pooled = groups
        .iter()
        .map(|group| 15.0 * variance(group))
        .sum::<f64>()
        / (n - k);
    let logs: f64 = groups.iter().map(|group| 15.0 * variance(group).ln()).sum();
    let correction = 1.0 + (k / 15.0 - 1.0 / (n - k)) / (3.0 * (k - 1.0));
    let statistic = ((n - k) * pooled.ln() - logs) / correction;
    let bartlett = ChiSquared::new(k - 1.0).unwrap().sf(statistic);
    assert!(bartlett < 1e-5, "{bartlett}");
    // The test can fail: the same noise everywhere is not significant.
    let alike: Vec<Vec<f64>> = deviations.iter().map(|_| deviations[0].clone()).collect();
    assert!(anova(&alike) > 0.5);
}
