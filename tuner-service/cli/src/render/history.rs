//! Runs, one a line, as sacct lists jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use io_autotune_model::Measure;
use io_autotune_protocol::{RunState, RunSummary};

use super::columns::{Cell, Column, Columns, Tone};
use super::{UNTOLD, counts, differing, job, opened, told, units};
use crate::format::{Wanted, usual};
use crate::people::called;
use crate::screen::Screen;

/// The way in which the list is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) screen: &'a Screen,
    /// Times to the second and seconds to the millisecond, for programs.
    pub(crate) exact: bool,
}

/// The runs in these columns, by default the usual ones, with the user's if there are several.
pub(crate) fn columns(runs: &[RunSummary], wanted: Option<&[Wanted]>, how: How<'_>) -> Columns {
    let first = runs.first().map(|run| run.uid);
    let cluster = runs.first().map(|run| &run.cluster);
    let usual = usual(
        runs.iter().any(|run| Some(run.uid) != first),
        runs.iter().any(|run| Some(&run.cluster) != cluster),
    );
    let is_usual = wanted.is_none();
    let wanted = wanted.unwrap_or(&usual);
    // Columns that were asked for are shown however narrow the terminal is.
    let column = |one: &Wanted| match (one.field.name, is_usual) {
        ("Start", true) => Column::of(one).spare(1),
        ("State", true) => Column::of(one).spare(2),
        _ => Column::of(one),
    };
    let mut list = Columns::new(wanted.iter().map(column).collect());
    let spreads = spreads(runs);
    for run in runs {
        let spread = spreads.get(&run.study_id).copied().flatten();
        list.row(
            wanted
                .iter()
                .map(|one| cell(one.field.name, run, spread, how)),
        );
    }
    list
}

/// The spread of each study's times, so that all of its runs have as many decimals.
fn spreads(runs: &[RunSummary]) -> HashMap<i64, Option<f64>> {
    let mut times: HashMap<i64, Vec<f64>> = HashMap::new();
    for run in runs {
        let times = times.entry(run.study_id).or_default();
        times.extend(run.elapsed);
    }
    let times = times.into_iter();
    times
        .map(|(study, times)| (study, units::spread(&times).map(|spread| spread / 10.0)))
        .collect()
}

fn cell(name: &str, run: &RunSummary, spread: Option<f64>, how: How<'_>) -> Cell {
    let screen = how.screen;
    let time = |at| match how.exact {
        true => screen.exact(at),
        false => screen.short(at),
    };
    let bytes = |measure: Measure| match Measure::Steps.of(&run.measures) {
        0.0 => String::new(),
        _ if how.exact => format!("{:.0}", measure.of(&run.measures)),
        _ => super::measures::amount(measure.of(&run.measures)),
    };
    Cell::new(match name {
        "JobID" => match how.exact {
            true => run.job_id.to_string(),
            false => job(run),
        },
        "Restarts" => run.restart_count.to_string(),
        "Application" => match how.exact {
            true => run.application.clone(),
            false => run.application_called(),
        },
        "User" => called(run.user.as_deref(), run.uid),
        "Accelerator" => run.accelerator.clone(),
        "Study" => run.study_id.to_string(),
        "Epoch" => run.epoch.to_string(),
        "Cluster" => run.cluster.clone(),
        "Node" => run.node.clone(),
        "Nodes" => run.nodes.map(|nodes| nodes.to_string()).unwrap_or_default(),
        "Start" => time(run.started_at),
        "End" => run.finished_at.map(time).unwrap_or_default(),
        "Phase" => run.phase.to_string(),
        "Role" => run
            .role
            .map_or_else(|| "-".to_owned(), |role| role.to_string()),
        "State" => {
            let state = run.outcome.clone().unwrap_or_else(|| "-".to_owned());
            let tone = match state.as_str() {
                "FAILED" | "OUT_OF_MEMORY" | "NODE_FAIL" => Tone::Bad,
                "TIMEOUT" | "CANCELLED" | "PREEMPTED" => Tone::Notable,
                _ => Tone::Plain,
            };
            return Cell::toned(state, tone);
        }
        "Elapsed" => match (run.elapsed, run.state) {
            (None, _) => String::new(),
            (Some(seconds), _) if how.exact => seconds.to_string(),
            (Some(seconds), RunState::Censored) => {
                format!("at least {}", units::seconds(seconds, spread))
            }
            (Some(seconds), _) => units::seconds(seconds, spread),
        },
        "Counts" => {
            let tone = match run.state {
                RunState::NotCounted => Tone::Notable,
                _ => Tone::Plain,
            };
            return Cell::toned(counts(run), tone);
        }
        "Because" => run
            .not_counted_because
            .map(|because| because.to_string())
            .unwrap_or_default(),
        "Why" => run.verdict.clone().unwrap_or_default(),
        "Change" => told(run.differs.as_ref().map(differing)),
        "Given" => told(run.parametrization.as_ref().map(ToString::to_string)),
        "Reason" => run.reason.clone().unwrap_or_else(|| UNTOLD.to_owned()),
        "Read" => bytes(Measure::AskedRead),
        "Written" => bytes(Measure::AskedWritten),
        "StorageRead" => bytes(Measure::StorageRead),
        "StorageWritten" => bytes(Measure::StorageWritten),
        _ => run.run_id.to_string(),
    })
}

/// Notes on the runs of a list, which are printed below it.
pub(crate) fn notes(runs: &[RunSummary], screen: &Screen) -> String {
    let mut text = String::new();
    let later: BTreeMap<(i64, i32), &RunSummary> = runs
        .iter()
        .filter(|run| run.epoch > 1)
        .map(|run| ((run.study_id, run.epoch), run))
        .collect();
    for ((study, epoch), run) in later {
        let opened = opened(screen.short(run.epoch_opened_at), &run.epoch_opened_why);
        text.push_str(&format!("study {study}, epoch {epoch}: opened {opened}\n"));
    }
    let quarantined: BTreeSet<String> = runs
        .iter()
        .filter_map(|run| {
            let why = run.quarantined.as_ref()?;
            let what = differing(run.differs.as_ref()?);
            Some(format!(
                "quarantined: study {}: {what}: {why}\n",
                run.study_id
            ))
        })
        .collect();
    text.extend(quarantined);
    text
}

/// Runs for people.
pub(crate) fn runs(runs: &[RunSummary], screen: &Screen) -> String {
    if runs.is_empty() {
        return "no run yet: one begins when a job that was submitted with `sbatch --io-autotune` starts\n".to_owned();
    }
    let how = How {
        screen,
        exact: false,
    };
    let list = columns(runs, None, how).text(screen);
    let notes = io_autotune_protocol::shown_lines(&notes(runs, screen));
    match notes.is_empty() {
        true => list,
        false => format!("{list}\n{notes}"),
    }
}
