//! One row per table, method and metric.

use crate::bootstrap::Estimate;
use crate::compare::Comparison;
use crate::metrics::AFTER;

/// The comparison as CSV: `table,method,group,metric,unit,studies,value,low,high`. Missing figures
/// are empty, and so is the table of figures of all tables. Scores have no interval. Errs when the
/// writer fails, which a buffer in memory does not.
pub fn render(comparison: &Comparison) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "table", "method", "group", "metric", "unit", "studies", "value", "low", "high",
    ])?;
    let mut row = |names: [&str; 5], studies: usize, figures: [Option<f64>; 3]| {
        let cell = |figure: Option<f64>| figure.map_or_else(String::new, |f| f.to_string());
        let mut cells = names.map(str::to_owned).to_vec();
        cells.push(studies.to_string());
        cells.extend(figures.map(cell));
        writer.write_record(cells)
    };
    let all = |estimate: Option<Estimate>| {
        estimate.map_or([None; 3], |e| [Some(e.value), Some(e.low), Some(e.high)])
    };
    let seeds = comparison.seeds as usize;
    for table in &comparison.tables {
        for (label, method) in comparison.methods.iter().zip(&table.methods) {
            for figure in &method.figures {
                let names = [&table.name, label, figure.group, figure.metric, figure.unit];
                row(names, figure.studies, all(figure.estimate))?;
            }
            let Some(scores) = method.scores else {
                continue;
            };
            for (name, score) in [
                ("ScoreOptim", scores.optim),
                ("ScoreStability", scores.stability),
                ("Score", scores.score),
            ] {
                row(
                    [&table.name, label, "robert2020", name, ""],
                    seeds,
                    [Some(score), None, None],
                )?;
            }
        }
    }
    for (label, overall) in comparison.methods.iter().zip(&comparison.overall) {
        for (name, estimate) in [
            ("Recommended", overall.recommended),
            ("AverageRun", overall.average_run),
            ("RecommendedAgainstFirst", overall.recommended_against_first),
            ("AverageRunAgainstFirst", overall.average_run_against_first),
        ] {
            row(["", label, "overall", name, "x"], seeds, all(estimate))?;
        }
        for (paid, (_, net, losing)) in overall.paid.iter().zip(AFTER) {
            row(["", label, "overall", net, "x"], seeds, all(paid.net))?;
            row(["", label, "overall", losing, "%"], seeds, all(paid.losing))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
