//! A whole comparison on a small table, from files to reports.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use io_autotune_simulation::compare::StudyResult;
use io_autotune_simulation::dataset::Table;
use io_autotune_simulation::metrics::GROUPS;
use io_autotune_simulation::report::{csv, plot, text};
use io_autotune_simulation::{Comparison, Counted, MethodSpec, Outside, Setup, compare};

/// 48 parametrizations with a planted optimum of about 20 s at (3, x); the default takes about 56 s.
fn write(directory: &std::path::Path, name: &str, scale: f64) -> PathBuf {
    let json = directory.join(format!("{name}.json"));
    let space = r#"{"parameters": [
        {"name": "a", "kind": "int", "values": [0, 1, 2, 3]},
        {"name": "b", "kind": "ordinal", "values": ["1K", "4K", "16K", "64K"]},
        {"name": "c", "kind": "categorical", "values": ["x", "y", "z"]}],
        "default": {"a": 0, "b": "64K", "c": "z"}}"#;
    std::fs::write(&json, space).unwrap();
    let mut rows = "a,b,c,rep,time,rel_sd\n".to_owned();
    for a in 0..4 {
        for (level, b) in ["1K", "4K", "16K", "64K"].into_iter().enumerate() {
            for (slower, c) in [("0", "x"), ("4", "y"), ("9", "z")] {
                let truth = 20.0
                    + 6.0 * f64::from(3 - a)
                    + 3.0 * level as f64
                    + slower.parse::<f64>().unwrap();
                for rep in 0..3 {
                    let time = scale * truth * (1.0 + 0.02 * f64::from(rep - 1));
                    rows.push_str(&format!("{a},{b},{c},{rep},{time},0.05\n"));
                }
            }
        }
    }
    std::fs::write(json.with_extension("csv"), rows).unwrap();
    json
}

fn setup(threads: usize) -> Setup {
    Setup {
        budget: 40,
        outside_slurm: false,
        outside: Outside::Fails,
        defaults_first: false,
        counted: Counted::All,
        seeds: 6,
        first_seed: 1,
        in_flight: 2,
        threads: NonZero::new(threads).unwrap(),
        keep_studies: true,
        weights: BTreeMap::new(),
    }
}

/// Without what a clock measured.
fn reproducible(comparison: &Comparison) -> Comparison {
    let mut same = comparison.clone();
    for method in same.tables.iter_mut().flat_map(|table| &mut table.methods) {
        let is_clock = |metric: &str| matches!(metric, "ElTime" | "ET");
        let clocks = method.figures.iter().map(|figure| is_clock(figure.metric));
        let clocks: Vec<bool> = clocks.collect();
        for study in &mut method.studies {
            let mut clocks = clocks.iter();
            study
                .figures
                .retain(|_| !clocks.next().copied().unwrap_or(true));
        }
        method.figures.retain(|figure| !is_clock(figure.metric));
    }
    same
}

fn compared(threads: usize) -> (Comparison, u32) {
    let directory = tempfile::tempdir().unwrap();
    let tables = [("small", 1.0), ("twice", 2.0)]
        .map(|(name, scale)| Table::read(&write(directory.path(), name, scale)).unwrap());
    let methods: Vec<MethodSpec> = ["default", "robert2020", "robert2020:mutation_rate=0.5"]
        .iter()
        .map(|method| method.parse().unwrap())
        .collect();
    let studies = AtomicU32::new(0);
    let comparison = compare(&tables, &methods, &setup(threads), || {
        studies.fetch_add(1, Ordering::Relaxed);
    });
    (comparison, studies.into_inner())
}

#[test]
fn the_figures_do_not_depend_on_the_threads() {
    let (one, studies) = compared(1);
    let (four, _) = compared(4);
    assert_eq!(studies, 2 * 3 * 6);
    assert_eq!(reproducible(&one), reproducible(&four));
}

#[test]
fn figures_scale_with_the_table_and_agree_with_each_other() {
    let (comparison, _) = compared(2);
    let [small, twice] = &comparison.tables[..] else {
        unreachable!()
    };
    assert_eq!((small.best, twice.best), (20.0, 40.0));
    for (small, twice) in small.methods.iter().zip(&twice.methods) {
        let of = |name: &str| {
            let find = |figures: &[io_autotune_simulation::compare::Figure]| {
                let figure = figures.iter().find(|figure| figure.metric == name).unwrap();
                figure.estimate.unwrap().value
            };
            (find(&small.figures), find(&twice.figures))
        };
        for name in ["Recommended", "AverageRun", "Slower", "NbrSteps"] {
            let (small, twice) = of(name);
            assert!((small - twice).abs() < 1e-9, "{name}: {small} {twice}");
        }
        let (small, twice) = of("EC");
        // Rounding breaks ties of the surrogate, and a scale changes it: then the order of runs differs.
        assert!(
            (2.0 * small - twice).abs() < 0.01 * twice,
            "{small} {twice}"
        );
        let ((dist, _), (recommended, _)) = (of("DistOptim"), of("Recommended"));
        assert!((dist - 100.0 * (recommended - 1.0)).abs() < 1e-9);
        assert_eq!(of("SuccessRate"), of("S"));
    }
    let default = &comparison.overall[0];
    assert_eq!(default.recommended_against_first.unwrap().value, 1.0);
    // The planted effects are large: both methods find their way.
    for overall in &comparison.overall {
        assert!(overall.recommended.unwrap().value < 1.3);
    }
}

#[test]
fn studies_that_are_kept_give_the_figures_again() {
    let directory = tempfile::tempdir().unwrap();
    let table = Table::read(&write(directory.path(), "small", 1.0)).unwrap();
    let methods = ["default".parse().unwrap()];
    let comparison = compare(std::slice::from_ref(&table), &methods, &setup(1), || ());
    let method = &comparison.tables[0].methods[0];
    let seeds: Vec<u64> = method.studies.iter().map(|study| study.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 5, 6]);
    let over_best = |place: usize| table.configurations()[place].truth / table.best().truth;
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let of_studies = |figure: &dyn Fn(&StudyResult) -> f64| {
        mean(&method.studies.iter().map(figure).collect::<Vec<f64>>())
    };
    let average = |study: &StudyResult| {
        assert_eq!(study.runs.len(), 40);
        let inside = study.runs.iter().flatten();
        mean(&inside.map(|place| over_best(*place)).collect::<Vec<f64>>())
    };
    for (name, value) in [
        (
            "Recommended",
            of_studies(&|study| over_best(study.recommended)),
        ),
        ("AverageRun", of_studies(&average)),
    ] {
        let mut figures = method.figures.iter();
        let figure = figures.find(|figure| figure.metric == name).unwrap();
        let difference = figure.estimate.unwrap().value - value;
        assert!(difference.abs() < 1e-9, "{name}: {difference}");
    }
    for (nth, figure) in method.figures.iter().enumerate() {
        let of: Vec<f64> = method
            .studies
            .iter()
            .filter_map(|study| study.figures[nth])
            .collect();
        assert_eq!(of.len(), figure.studies, "{}", figure.metric);
        let difference = figure.estimate.map_or(0.0, |one| one.value - mean(&of));
        assert!(difference.abs() < 1e-9, "{}: {difference}", figure.metric);
    }
}

#[test]
fn reports_hold_what_was_measured() {
    let (comparison, _) = compared(2);
    let text = text::render(&comparison);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for words in [
        "small: 48 of 48 parametrizations",
        "SuccessRate",
        "ScoreStability",
        "Near100",
        "All 2 tables",
        "#3",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let csv = csv::render(&comparison).unwrap();
    let per_method = comparison.tables[0].methods[0].figures.len() + 3;
    // The time and the share of studies that lose, after 10 and after 25 runs.
    let after = comparison.overall[0].paid.iter().map(|paid| paid.after);
    assert_eq!(after.collect::<Vec<_>>(), [10, 25]);
    let paid = 2 * 2;
    assert!(text.contains("What users pay"), "{text}");
    assert_eq!(csv.lines().count(), 1 + 2 * 3 * per_method + 3 * (4 + paid));
    let json = serde_json::to_value(&comparison).unwrap();
    let figure = &json["tables"][0]["methods"][0]["figures"][0];
    assert!(
        figure["value"].is_f64() && figure["low"].is_f64(),
        "{figure}"
    );
    let plots = plot::plots(&comparison);
    assert_eq!(plots.len(), 6);
    for (name, svg) in plots {
        assert!(name.ends_with(".svg") && !name.contains('/'));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(svg.contains("robert2020:mutation_rate=0.5"));
    }
}

#[test]
fn the_documentation_defines_every_figure() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers/simulate.md");
    let text = std::fs::read_to_string(path).unwrap();
    for metric in GROUPS.iter().flat_map(|group| group.metrics) {
        let row = format!(
            "| `{}` | {} | {} |",
            metric.name, metric.unit, metric.meaning
        );
        assert!(text.contains(&row), "docs/papers/simulate.md lacks: {row}");
    }
}
