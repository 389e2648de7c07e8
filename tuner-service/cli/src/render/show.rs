//! A study in the terminal: its space, its convergence, what it has tested.

use std::collections::HashMap;

use io_autotune_protocol::{
    ImportanceSummary, RunState, RunSummary, StudyDetail, TestedSummary, shown_lines,
};

use super::columns::{Cell, Column, Columns, Tone};
use super::status::{self, interval, mean};
use super::{context, differing, fold, gain, opening, phase, sharing, units, user};
use crate::screen::Screen;

/// The number of lines of the plot.
const HEIGHT: usize = 10;
/// The number of columns if there is no terminal.
const WIDTH: usize = 80;
/// The number of parametrizations that are listed; `--csv` and `--json` have all.
const LISTED: usize = 20;

pub(crate) fn show(detail: &StudyDetail, runs: &[RunSummary], screen: &Screen) -> String {
    let study = &detail.study;
    let text = shown_lines(&format!(
        "application  {} (user {})\naccelerator  {}\ncontext      {}\nstudy        {}, epoch {}, {}: {}\n{}{}{}gain         {}\n{:<13}{}\nwhy          {}\n{}\nspace, {} parametrizations\n",
        study.application_called(),
        user(study),
        study.accelerator,
        context(study),
        study.study_id,
        study.epoch,
        phase(study),
        study.progress(),
        opening(study, screen),
        status::objective_line(study),
        study.next.as_ref().map_or_else(String::new, |next| {
            format!("next         {} [{}]\n", next.says, next.rule)
        }),
        gain::of_study(study),
        status::chosen_label(study),
        status::chosen(study),
        study.why,
        sharing::lines(study),
        detail.size,
    ));
    let mut text = fold::labelled(&text, screen) + &space(detail).text(screen);
    if let Some(plot) = plot(detail, runs, screen.width.unwrap_or(WIDTH)) {
        text.push_str(&format!("\n{plot}"));
    }
    if let Some(known) = &detail.importance {
        text.push_str(&format!("\n{}", importance(known, screen)));
    }
    let tested = tested(detail, LISTED);
    if !tested.is_empty() {
        text.push_str(
            "\ntested, the quickest first; below them those of one run, which says little\n",
        );
        text.push_str(&tested.text(screen));
    }
    let more = detail.tested.len() - shown(detail, LISTED).count();
    if more > 0 {
        text.push_str(&format!("and {more} more: --csv or --json has all\n"));
    }
    text
}

/// The space, as a list of parameters with their values.
pub(crate) fn space(detail: &StudyDetail) -> Columns {
    let mut list = Columns::new(vec![
        Column::left("Parameter").least(10),
        Column::left("Default").least(8),
        Column::left("Best").least(8),
        Column::left("Values").least(12),
    ]);
    for parameter in detail.space.parameters() {
        let best = detail.study.recommended.as_ref();
        let best = best.and_then(|best| best.0.get(&parameter.name));
        let tone = match best.is_some_and(|best| *best != parameter.default) {
            true => Tone::Good,
            false => Tone::Plain,
        };
        list.row([
            Cell::new(parameter.name.clone()),
            Cell::new(parameter.default.to_string()),
            Cell::toned(
                best.map_or_else(|| "-".to_owned(), ToString::to_string),
                tone,
            ),
            Cell::new(parameter.choices()),
        ]);
    }
    list
}

/// The share of the spread that each parameter explains, or the reason why nothing can be said.
fn importance(known: &ImportanceSummary, screen: &Screen) -> String {
    if let Some(silent) = &known.silent {
        return shown_lines(&format!("what matters: {silent}\n"));
    }
    let mut list = Columns::new(vec![
        Column::left("Parameter").least(10),
        Column::right("Alone"),
        Column::right("In all"),
    ]);
    let percent = |share: f64| match share {
        share if share < 0.01 => "< 1 %".to_owned(),
        share => format!("{:.0} %", 100.0 * share),
    };
    for share in &known.shares {
        list.row([
            Cell::new(share.parameter.clone()),
            Cell::new(percent(share.alone)),
            Cell::new(percent(share.in_all)),
        ]);
    }
    let skill = percent(known.skill.unwrap_or_default());
    format!(
        "what matters: shares of the spread of times, of which the model foretells {skill}\n{}",
        list.text(screen)
    )
}

/// The marks of the chosen parametrization and of the default, which it is compared with.
fn mark(detail: &StudyDetail, one: &TestedSummary) -> String {
    let is_best = detail.study.recommended.as_ref() == Some(&one.parametrization);
    let best = is_best.then(|| status::chosen_label(&detail.study));
    let default = one.differs.0.is_empty().then_some("default");
    let both: Vec<_> = best.into_iter().chain(default).collect();
    both.join(", ")
}

/// The first parametrizations and, wherever they are, the chosen one and the default.
fn shown(detail: &StudyDetail, most: usize) -> impl Iterator<Item = &TestedSummary> {
    let places = detail.tested.iter().enumerate();
    places
        .filter(move |(place, one)| *place < most || !mark(detail, one).is_empty())
        .map(|(_, one)| one)
}

/// The tested parametrizations: at most `most`, and the chosen one and the default.
pub(crate) fn tested(detail: &StudyDetail, most: usize) -> Columns {
    let default = detail.tested.iter().find(|one| one.differs.0.is_empty());
    let default = default.and_then(|one| one.elapsed);
    let against = |one: &TestedSummary| match (one.elapsed, default) {
        (Some(elapsed), Some(default)) if !one.differs.0.is_empty() => {
            format!("{:+.0} %", 100.0 * (elapsed.mean / default.mean - 1.0))
        }
        _ => String::new(),
    };
    let mut list = Columns::new(vec![
        Column::right("Runs"),
        Column::right("Failed").spare(2),
        Column::right("Cut").spare(1),
        Column::right(&status::header(&detail.study)),
        Column::right("95 % interval").spare(3),
        Column::right("Against"),
        Column::left("Is"),
        Column::left("Change").least(12).alike(),
    ]);
    for one in shown(detail, most) {
        let tone = match one.quarantined {
            Some(_) => Tone::Bad,
            None => Tone::Plain,
        };
        list.row([
            Cell::new(one.elapsed.map_or(0, |elapsed| elapsed.n).to_string()),
            Cell::toned(one.failed.to_string(), tone),
            Cell::new(one.censored.to_string()),
            Cell::new(one.elapsed.as_ref().map(mean).unwrap_or_default()),
            Cell::new(one.elapsed.as_ref().map(interval).unwrap_or_default()),
            Cell::new(against(one)),
            Cell::new(mark(detail, one)),
            Cell::new(differing(&one.differs)),
        ]);
    }
    list
}

/// The convergence of a study, by these runs; `None` with fewer than two that count.
pub(crate) fn plot(detail: &StudyDetail, runs: &[RunSummary], width: usize) -> Option<String> {
    let epoch = detail.study.epoch;
    let counted = |run: &&RunSummary| run.epoch == epoch && run.state == RunState::Counted;
    convergence(&runs.iter().filter(counted).collect::<Vec<_>>(), width)
}

/// A plot with each counted run's time at its place, `.` for the default and `*` for others, and
/// `_` for the least mean of a parametrization by then. `None` with fewer than two runs.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in a plot of a terminal's size"
)]
fn convergence(runs: &[&RunSummary], width: usize) -> Option<String> {
    let objective = &runs.first()?.objective;
    let value = |run: &&RunSummary| objective.value(run.elapsed?, &run.measures);
    let times: Vec<f64> = runs.iter().filter_map(value).collect();
    // For a maximised objective a history has reciprocals, which nobody wants to see.
    if times.len() < 2 || times.len() != runs.len() || objective.is_maximised() {
        return None;
    }
    let low = times.iter().copied().fold(f64::INFINITY, f64::min);
    let high = times.iter().copied().fold(0.0, f64::max);
    let spread = units::spread(&times);
    let labels = [high, low].map(|value| units::seconds(value, spread));
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let room = width.saturating_sub(margin + 3).clamp(10, 160);
    let columns = room.min(runs.len().max(20));
    let place = |index: usize| index * (columns - 1) / (runs.len() - 1).max(1);
    let line = |value: f64| {
        let share = (high - value) / (high - low).max(f64::MIN_POSITIVE);
        ((share * (HEIGHT - 1) as f64).round() as usize).min(HEIGHT - 1)
    };
    let mut plot = vec![vec![' '; columns]; HEIGHT];
    let mut means: HashMap<String, (f64, f64)> = HashMap::new();
    for (index, (run, seconds)) in runs.iter().zip(&times).enumerate() {
        let key = run.parametrization.as_ref().map(|one| one.key());
        let mean = means.entry(key.unwrap_or_default()).or_default();
        *mean = (mean.0 + 1.0, mean.1 + seconds);
        let means = means.values().map(|(n, sum)| sum / n);
        let below = &mut plot[line(means.fold(f64::INFINITY, f64::min))][place(index)];
        if *below == ' ' {
            *below = '_';
        }
        let differs = run.differs.as_ref();
        let is_default = differs.is_some_and(|differs| differs.0.is_empty());
        plot[line(*seconds)][place(index)] = if is_default { '.' } else { '*' };
    }
    let of = match objective.is_elapsed() {
        true => "elapsed (s)",
        false => objective.words(),
    };
    let mut text = format!("{of} by run: . default, * other, _ least mean so far\n");
    for (number, row) in plot.iter().enumerate() {
        let label = match number {
            0 => labels[0].as_str(),
            last if last == HEIGHT - 1 => labels[1].as_str(),
            _ => "",
        };
        let row: String = row.iter().collect();
        text.push_str(format!("{label:>margin$} |{row}").trim_end());
        text.push('\n');
    }
    let (rule, last, room) = ("-".repeat(columns), runs.len(), columns - 1);
    let below = format!("{0:>margin$} +{rule}\n{0:>margin$}  1{last:>room$}\n", "");
    Some(text + &below)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_chosen_one_and_the_default_are_shown_and_marked_wherever_they_are() {
        let tested = |nodes: i64, runs: u64| {
            json!({
                "parametrization": { "cb_nodes": nodes },
                "differs": if nodes == 1 { json!({}) } else { json!({ "cb_nodes": nodes }) },
                "elapsed": { "n": runs, "mean": 123_456.7, "interval": [123_456.6, 123_456.8] }, "censored": 0, "failed": 0, "quarantined": null
            })
        };
        let mut all: Vec<_> = (2..40).map(|nodes| tested(nodes, 2)).collect();
        all.push(tested(1, 9));
        let detail: StudyDetail = serde_json::from_value(json!({
            "study": {
                "study_id": 7, "application": "ocean", "uid": 1000, "user": "io-alice",
                "accelerator": "romio", "context": {}, "epoch": 1,
                "opened": { "at": "2026-11-24T08:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
                "phase": "search", "counted": 90, "not_counted": 0, "in_flight": 0, "explored": [80, 80],
                "default": null, "control": null, "tuned": null, "gain": null,
                "recommended": { "cb_nodes": 33 }, "differs": { "cb_nodes": 33 },
                "why": "", "pin": null, "warnings": []
            },
            "space": [{ "name": "cb_nodes", "kind": "integer", "min": 1, "max": 64, "default": 1 }],
            "size": 64, "tested": all
        }))
        .unwrap();
        let text = show(&detail, &[], &Screen::plain());
        let tested_list = super::tested(&detail, LISTED);
        let row = |mark: &str| {
            text.lines()
                .find(|line| line.contains(&format!("  {mark}  ")))
        };
        assert!(
            row("best so far").is_some_and(|line| line.ends_with("cb_nodes=33")),
            "{text}"
        );
        assert!(
            row("default").is_some_and(|line| line.ends_with("the default")),
            "{text}"
        );
        let narrow = tested_list.text(&Screen::wide(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        assert!(narrow.contains("cb_nodes=33"), "{narrow}");
        assert!(
            text.ends_with("and 17 more: --csv or --json has all\n"),
            "{text}"
        );
    }
}
