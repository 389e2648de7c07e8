//! Table VI and figure 4 of robert2020: the best method of each class.

use std::fmt::Write;

use super::text::{aligned, find, number};
use crate::compare::{Comparison, MethodResult, TableResult};
use crate::metrics::{GROUPS, Scores};

type Score = fn(&Scores) -> f64;

/// The best methods by class: table by table by `Score`, with metrics and scores (table VI); then
/// by each score (figure 4). A method's class is the first word of its name.
pub fn render(comparison: &Comparison) -> String {
    let mut classes: Vec<&str> = Vec::new();
    for class in comparison.methods.iter().map(|name| class(name)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let mut text = String::new();
    for table in &comparison.tables {
        let _ = writeln!(
            text,
            "{}: best {} s, default {} s, {} methods",
            table.name,
            number(table.best),
            number(table.default),
            comparison.methods.len()
        );
        best_of_each(&mut text, comparison, table, &classes);
    }
    let _ = writeln!(
        text,
        "{} runs a study, {} studies of each method and table, {} in flight.\n\
         Means over studies. Scores are normalised over all methods. docs/papers/simulate.md defines each.",
        comparison.budget, comparison.seeds, comparison.in_flight
    );
    text
}

fn class(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

fn best_of_each(text: &mut String, comparison: &Comparison, table: &TableResult, classes: &[&str]) {
    let best = |wanted: &str, score: Score| {
        let methods = comparison.methods.iter().zip(&table.methods);
        methods
            .filter(|(name, _)| class(name) == wanted)
            .filter_map(|(name, method)| Some((name, method, score(method.scores.as_ref()?))))
            .max_by(|(_, _, a), (_, _, b)| a.total_cmp(b))
    };
    let winners: Vec<(&String, &MethodResult, f64)> = classes
        .iter()
        .filter_map(|class| best(class, |scores| scores.score))
        .collect();
    if winners.len() < classes.len() {
        text.push_str(
            "There are no scores: some method has no figures, or there is one alone.\n\n",
        );
        return;
    }
    let row = |head: String, cells: Vec<String>| [vec![head], cells].concat();
    let head = classes.iter().map(|class| (*class).to_owned()).collect();
    let mut rows = vec![row(String::new(), head)];
    let metrics = GROUPS.iter().filter(|group| group.name == "robert2020");
    for metric in metrics.flat_map(|group| group.metrics) {
        let cell = |(_, method, _): &(&String, &MethodResult, f64)| {
            find(method, metric.name).map_or("-".to_owned(), |figure| number(figure.value))
        };
        let name = format!("{} {}", metric.name, metric.unit);
        rows.push(row(name, winners.iter().map(cell).collect()));
    }
    let kinds: [(&str, Score); 3] = [
        ("ScoreOptim", |scores| scores.optim),
        ("ScoreStability", |scores| scores.stability),
        ("Score", |scores| scores.score),
    ];
    for (name, score) in kinds {
        let cell = |(_, method, _): &(&String, &MethodResult, f64)| {
            let scores = method.scores.as_ref();
            scores.map_or("-".to_owned(), |scores| format!("{:.2}", score(scores)))
        };
        rows.push(row(name.to_owned(), winners.iter().map(cell).collect()));
    }
    text.push_str("\nTable VI: the best of each class by Score\n");
    aligned(text, &rows);
    for (name, ..) in &winners {
        let _ = writeln!(text, "  {name}");
    }
    let mut rows = vec![rows.swap_remove(0)];
    let mut names = String::new();
    for (kind, score) in kinds {
        let best: Vec<_> = classes
            .iter()
            .filter_map(|class| best(class, score))
            .collect();
        let cells = best.iter().map(|(_, _, score)| format!("{score:.2}"));
        rows.push(row(kind.to_owned(), cells.collect()));
        let highest = best.iter().max_by(|(_, _, a), (_, _, b)| a.total_cmp(b));
        if let Some((name, ..)) = highest {
            let _ = writeln!(names, "  {kind}: {name}");
        }
    }
    text.push_str("\nFigure 4: the best of each class in each score\n");
    aligned(text, &rows);
    text.push_str(&names);
    text.push('\n');
}
