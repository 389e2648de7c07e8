//! Tables for people, at most 100 columns wide.

use std::fmt::Write;

use crate::bootstrap::Estimate;
use crate::compare::{Comparison, MethodResult, Percentiles, TableResult};
use crate::metrics::{AVERAGE_RUN, GROUPS, RECOMMENDED, SAYS, SAYS_AFTER, SAYS_WRONGLY};

/// The greatest width of a line of figures.
const WIDTH: usize = 100;
/// Longer labels become numbers, with a legend.
const LONGEST_LABEL: usize = 24;

/// The whole comparison: the metrics of each table by source, then all tables together.
pub fn render(comparison: &Comparison) -> String {
    let labels = labels(&comparison.methods);
    let mut text = String::new();
    if labels != comparison.methods {
        for (label, method) in labels.iter().zip(&comparison.methods) {
            let _ = writeln!(text, "{label:>4}  {method}");
        }
        text.push('\n');
    }
    for table in &comparison.tables {
        one_table(&mut text, table, &labels);
    }
    if comparison.tables.len() > 1 {
        overall(&mut text, comparison, &labels);
    }
    paid(&mut text, comparison, &labels);
    let _ = writeln!(
        text,
        "{} runs a study, {} studies of each method and table, {} in flight.\n\
         Means over studies, 95 % intervals by bootstrap over seeds. docs/papers/simulate.md defines each.",
        comparison.budget, comparison.seeds, comparison.in_flight
    );
    text
}

fn labels(methods: &[String]) -> Vec<String> {
    if methods
        .iter()
        .all(|method| method.chars().count() <= LONGEST_LABEL)
    {
        return methods.to_vec();
    }
    (1..=methods.len())
        .map(|number| format!("#{number}"))
        .collect()
}

fn one_table(text: &mut String, table: &TableResult, labels: &[String]) {
    let moved = if table.default_moved {
        ", the measured point nearest to the one that should be it"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "{}: {} of {} parametrizations measured\nbest {} s, default {} s ({} times the best{moved})",
        table.name,
        table.parametrizations,
        table.space,
        number(table.best),
        number(table.default),
        number(table.default / table.best),
    );
    for group in GROUPS {
        let _ = writeln!(text, "\n{}", group.title);
        let rows = if group.name == "quality" {
            quality(table, labels)
        } else {
            let head = group.metrics.iter().map(|metric| {
                let unit = metric.unit;
                let name = metric.name.to_owned();
                if unit.is_empty() {
                    name
                } else {
                    name + " " + unit
                }
            });
            with_labels(head.collect(), labels, |method| {
                let figures = table.methods[method].figures.iter();
                figures
                    .filter(|figure| figure.group == group.name)
                    .map(|figure| figure.estimate.map_or("-".to_owned(), |e| number(e.value)))
                    .collect()
            })
        };
        aligned(text, &rows);
        if group.name == "robert2020" {
            scores(text, table, labels);
        }
    }
    text.push('\n');
}

fn quality(table: &TableResult, labels: &[String]) -> Vec<Vec<String>> {
    let head = [
        "Recommended",
        "geometric",
        "AverageRun",
        "geometric",
        "OverDefault",
    ];
    with_labels(head.map(str::to_owned).to_vec(), labels, |method| {
        let of = |name: &str| find(&table.methods[method], name);
        let geometric = |name: &str| of(name).map_or("-".to_owned(), |e| number(e.value.exp()));
        vec![
            interval(of(RECOMMENDED)),
            geometric("LogRecommended"),
            interval(of(AVERAGE_RUN)),
            geometric("LogAverageRun"),
            of("OverDefault").map_or("-".to_owned(), |e| number(e.value)),
        ]
    })
}

fn scores(text: &mut String, table: &TableResult, labels: &[String]) {
    if table.methods.iter().any(|method| method.scores.is_none()) {
        return;
    }
    let head = ["ScoreOptim", "ScoreStability", "Score"];
    text.push('\n');
    let rows = with_labels(head.map(str::to_owned).to_vec(), labels, |method| {
        let scores = table.methods[method].scores;
        scores.map_or_else(Vec::new, |scores| {
            [scores.optim, scores.stability, scores.score]
                .map(|score| format!("{score:.2}"))
                .to_vec()
        })
    });
    aligned(text, &rows);
}

fn overall(text: &mut String, comparison: &Comparison, labels: &[String]) {
    let _ = writeln!(
        text,
        "All {} tables: time over the true best, geometric mean over tables",
        comparison.tables.len()
    );
    let first = labels.first().map_or("the first", String::as_str);
    let mut head = vec![RECOMMENDED.to_owned(), AVERAGE_RUN.to_owned()];
    if labels.len() > 1 {
        head.push(format!("{RECOMMENDED} / {first}"));
        head.push(format!("{AVERAGE_RUN} / {first}"));
    }
    let columns = head.len();
    let rows = with_labels(head, labels, |method| {
        let overall = &comparison.overall[method];
        let all = [
            overall.recommended,
            overall.average_run,
            overall.recommended_against_first,
            overall.average_run_against_first,
        ];
        all.into_iter().take(columns).map(interval).collect()
    });
    aligned(text, &rows);
    text.push('\n');
}

/// Writes what users pay, over the studies of all tables.
fn paid(text: &mut String, comparison: &Comparison, labels: &[String]) {
    let after: Vec<usize> = (comparison.overall.first())
        .map(|overall| overall.paid.iter().map(|paid| paid.after).collect())
        .unwrap_or_default();
    if after.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "What users pay: the time of the first runs over as many of the default, and the share of \
         studies\nthat lose more than 1 %"
    );
    let head = after.iter().map(|after| format!("{after} runs"));
    let rows = with_labels(head.collect(), labels, |method| {
        let paid = comparison.overall[method].paid.iter();
        paid.map(|paid| match (paid.net, paid.losing) {
            (Some(net), Some(losing)) => format!("{:.3}, {:.0} %", net.value, losing.value),
            _ => "-".to_owned(),
        })
        .collect()
    });
    aligned(text, &rows);
    let _ = writeln!(
        text,
        "\nOf 100 studies 50, 95 and 99 have at most: loss in runs of the default, slowest run over \
         the default"
    );
    let head = ["Loss", "Worst"].map(str::to_owned).to_vec();
    let rows = with_labels(head, labels, |method| {
        let overall = &comparison.overall[method];
        [overall.loss, overall.worst].map(spread).to_vec()
    });
    aligned(text, &rows);
    let _ = writeln!(
        text,
        "\nNothing to win: studies that end for it, the runs until then (50, 95 and 99 of 100 of \
         these), and\nstudies in which more can be won than they say"
    );
    let rows = with_labels(
        [SAYS, SAYS_AFTER, SAYS_WRONGLY].map(str::to_owned).to_vec(),
        labels,
        |method| {
            let overall = &comparison.overall[method];
            let share =
                |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.1} %"));
            vec![
                share(overall.says),
                spread(overall.says_after),
                share(overall.says_wrongly),
            ]
        },
    );
    aligned(text, &rows);
    text.push('\n');
}

fn spread(of: Option<Percentiles>) -> String {
    of.map_or("-".to_owned(), |p| {
        [p.p50, p.p95, p.p99].map(number).join(" / ")
    })
}

pub(super) fn find(method: &MethodResult, name: &str) -> Option<Estimate> {
    let figure = method.figures.iter().find(|figure| figure.metric == name)?;
    figure.estimate
}

fn with_labels(
    mut head: Vec<String>,
    labels: &[String],
    row: impl Fn(usize) -> Vec<String>,
) -> Vec<Vec<String>> {
    head.insert(0, String::new());
    let mut rows = vec![head];
    for (method, label) in labels.iter().enumerate() {
        let mut cells = row(method);
        cells.insert(0, label.clone());
        rows.push(cells);
    }
    rows
}

/// Aligns the first column left, others right. Columns that do not fit go below, after the first.
pub(super) fn aligned(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.max().unwrap_or_default()
        })
        .collect();
    let Some(first) = widths.first() else { return };
    let mut from = 1;
    while from < columns {
        let mut to = from;
        let mut width = *first;
        while to < columns && (to == from || width + 2 + widths[to] <= WIDTH) {
            width += 2 + widths[to];
            to += 1;
        }
        if from > 1 {
            text.push('\n');
        }
        for row in rows {
            let mut line = row
                .first()
                .map_or_else(String::new, |cell| format!("{cell:<first$}"));
            for (cell, width) in row.iter().zip(&widths).take(to).skip(from) {
                let _ = write!(line, "  {cell:>width$}");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        from = to;
    }
}

fn interval(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".to_owned(), |e| {
        format!("{:.3} [{:.3}, {:.3}]", e.value, e.low, e.high)
    })
}

/// About four significant digits.
pub(super) fn number(number: f64) -> String {
    match number.abs() {
        size if size >= 1000.0 => format!("{number:.0}"),
        size if size >= 100.0 => format!("{number:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["", "a", "long"], ["one", "1.00", "2"], ["two", "-", "33"]];
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.map(str::to_owned).to_vec())
            .collect();
        let mut text = String::new();
        aligned(&mut text, &rows);
        assert_eq!(text, "        a  long\none  1.00     2\ntwo     -    33\n");
    }

    #[test]
    fn what_is_too_wide_goes_below() {
        let rows: Vec<Vec<String>> = ["head", "row"]
            .iter()
            .map(|row| (0..9).map(|n| format!("{row:>12}{n}")).collect())
            .collect();
        let mut text = String::new();
        aligned(&mut text, &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            lines[3].ends_with("head8") && lines[3].contains("head0"),
            "{text}"
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(
            [1234.56, 123.456, 12.345, 0.0123, 0.0, -5.0].map(number),
            ["1235", "123.5", "12.35", "0.012", "0.00", "-5.00"]
        );
    }

    #[test]
    fn long_labels_become_numbers() {
        let long = vec!["default".to_owned(), "x".repeat(25)];
        assert_eq!(labels(&long), ["#1", "#2"]);
        assert_eq!(labels(&long[..1]), ["default"]);
    }
}
