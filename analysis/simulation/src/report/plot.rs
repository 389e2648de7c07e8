//! Line plots as SVG, of text and lines only.

use std::fmt::Write;

use crate::compare::{Comparison, TableResult};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 52.0;
/// Colours for all eyes (Okabe and Ito 2008); further methods repeat them dashed.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];
/// The most methods in a readable plot; the title says how many are left out.
const MOST_METHODS: usize = 14;

/// A plot's file name without a directory, and its SVG text.
pub type Plot = (String, String);

/// For each table, times over the true best by run (`NAME-over-best.svg`), and the share of studies
/// that tried a near-optimal parametrization, by run (`NAME-near-optimal.svg`) and by time
/// (`NAME-figure5.svg`: figure 5 of the 2018 paper).
pub fn plots(comparison: &Comparison) -> Vec<Plot> {
    comparison
        .tables
        .iter()
        .flat_map(|table| of_table(comparison, table))
        .collect()
}

fn of_table(comparison: &Comparison, table: &TableResult) -> [Plot; 3] {
    let methods = || {
        comparison
            .methods
            .iter()
            .zip(&table.methods)
            .take(MOST_METHODS)
    };
    let by_number = |figures: &[f64]| -> Vec<(f64, f64)> {
        let numbers = figures.iter().enumerate();
        numbers
            .map(|(index, figure)| (index as f64 + 1.0, *figure))
            .collect()
    };
    let line = |label: &String, points| Line {
        label: label.clone(),
        points,
    };
    let last = methods()
        .filter_map(|(_, method)| method.near_times.last())
        .copied()
        .fold(0.0, f64::max);
    let seeds = f64::from(comparison.seeds.max(1));
    let left_out = comparison.methods.len().saturating_sub(MOST_METHODS);
    let more = match left_out {
        0 => String::new(),
        some => format!(" ({some} methods left out)"),
    };
    let chart = |name: &str, title: &str, x, y, floor, lines| {
        let chart = Chart {
            title: format!("{}: {title}{more}", table.name),
            x,
            y,
            floor,
            lines,
        };
        (
            format!("{}-{name}.svg", file_stem(&table.name)),
            chart.svg(),
        )
    };
    [
        chart(
            "over-best",
            "time over the true best, geometric mean over studies",
            "run",
            "time / true best",
            1.0,
            methods()
                .map(|(label, method)| line(label, by_number(&method.over_best_by_run)))
                .collect(),
        ),
        chart(
            "near-optimal",
            "studies that tried a near-optimal (99 %) parametrization",
            "run",
            "share of studies",
            0.0,
            methods()
                .map(|(label, method)| line(label, by_number(&method.near_by_run)))
                .collect(),
        ),
        chart(
            "figure5",
            "studies that tried a near-optimal (99 %) parametrization",
            "seconds since the study's start",
            "share of studies",
            0.0,
            methods()
                .map(|(label, method)| line(label, steps(&method.near_times, seeds, last)))
                .collect(),
        ),
    ]
}

/// A staircase that rises by one study at each time.
fn steps(times: &[f64], studies: f64, last: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    for (index, time) in times.iter().enumerate() {
        points.push((*time, index as f64 / studies));
        points.push((*time, (index as f64 + 1.0) / studies));
    }
    points.push((last, times.len() as f64 / studies));
    points
}

/// A table's name as a file name that cannot leave the directory.
fn file_stem(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(safe).collect()
}

struct Line {
    label: String,
    points: Vec<(f64, f64)>,
}

struct Chart {
    title: String,
    x: &'static str,
    y: &'static str,
    /// The lowest value on the vertical axis.
    floor: f64,
    lines: Vec<Line>,
}

impl Chart {
    fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let right = points().map(|point| point.0).fold(1.0, f64::max);
        let ticks_y = ticks(
            self.floor,
            points().map(|p| p.1).fold(self.floor + 0.1, f64::max),
        );
        let ticks_x = ticks(0.0, right);
        let (x_end, y_end) = (last(&ticks_x), last(&ticks_y));
        let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * value / x_end;
        let y = |value: f64| {
            let share = (value - self.floor) / (y_end - self.floor);
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
        };
        let legend = 18.0 * self.lines.len() as f64;
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>",
            HEIGHT + legend,
            escaped(&self.title)
        );
        for tick in &ticks_x {
            let (x, low, high) = (x(*tick), y(self.floor), y(y_end));
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {low:.1}V{high:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                low + 16.0,
                short(*tick)
            );
        }
        for tick in &ticks_y {
            let (y, from, to) = (y(*tick), x(0.0), x(x_end));
            let _ = writeln!(
                svg,
                "<path d=\"M{from:.1} {y:.1}H{to:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                from - 6.0,
                y + 4.0,
                short(*tick)
            );
        }
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(16 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - BOTTOM + 36.0,
            self.x,
            self.y
        );
        for (index, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let dashes = if index < COLOURS.len() {
                ""
            } else {
                " stroke-dasharray=\"6 3\""
            };
            let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
            let mut path = String::new();
            for (nth, (a, b)) in line.points.iter().enumerate() {
                let pen = if nth == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{pen}{:.1} {:.1}", x(*a), y(*b));
            }
            let at = HEIGHT + 18.0 * index as f64;
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" {style}/><path d=\"M{LEFT} {:.1}h28\" {style}/>\
                 <text x=\"{:.1}\" y=\"{at:.1}\">{}</text>",
                at - 4.0,
                LEFT + 36.0,
                escaped(&line.label)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// About five round numbers from the lowest to at least the highest.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low).max(f64::MIN_POSITIVE) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let count = ((high - low) / step - 1e-9).ceil().max(1.0) as u32;
    (0..=count).map(|n| low + f64::from(n) * step).collect()
}

fn last(ticks: &[f64]) -> f64 {
    ticks.last().copied().unwrap_or(1.0)
}

/// Without the digits of rounding errors.
fn short(number: f64) -> String {
    ((number * 1e6).round() / 1e6).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_end() {
        assert_eq!(ticks(0.0, 50.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(1.0, 2.4), [1.0, 1.5, 2.0, 2.5]);
        assert!(last(&ticks(0.0, 12_345.0)) >= 12_345.0);
    }

    #[test]
    fn a_staircase_rises_by_studies() {
        assert_eq!(
            steps(&[3.0], 2.0, 9.0),
            [(0.0, 0.0), (3.0, 0.0), (3.0, 0.5), (9.0, 0.5)]
        );
    }

    #[test]
    fn names_are_made_harmless() {
        assert_eq!(file_stem("../a b"), "___a_b");
        assert_eq!(escaped("a<b&c>"), "a&lt;b&amp;c&gt;");
    }
}
