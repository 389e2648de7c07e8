//! Runs, one a line, as sacct lists jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use io_autotune_model::Measure;
use io_autotune_protocol::{RunState, RunSummary, shown_lines};

use super::columns::{Cell, Column, Columns, Tone};
use super::{UNTOLD, counts, differing, fold, job, opened, plain, told, units};
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
    let users = runs.iter().any(|run| run.uid != runs[0].uid);
    let clusters = runs.iter().any(|run| run.cluster != runs[0].cluster);
    let usual = usual(users, clusters);
    let is_usual = wanted.is_none();
    let wanted = wanted.unwrap_or(&usual);
    // Columns that were asked for are shown however narrow the terminal is.
    let column = |one: &Wanted| match (one.field.name, is_usual) {
        ("Start", true) => Column::of(one).spare(2),
        ("State", true) => Column::of(one).spare(3),
        ("Application", true) if runs.iter().all(|run| run.study_id == runs[0].study_id) => {
            Column::of(one).spare(1)
        }
        ("Change", true) => Column::of(one).alike(),
        _ => Column::of(one),
    };
    let mut list = Columns::new(wanted.iter().map(column).collect());
    let spreads = spreads(runs);
    for run in runs {
        let spread = spreads.get(&run.study_id).copied().flatten();
        let cells = wanted.iter();
        list.row(cells.map(|one| cell(one.field.name, run, spread, how)));
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
        "Role" => match (run.role, how.exact) {
            (None, _) => "-".to_owned(),
            (Some(role), true) => role.to_string(),
            (Some(role), false) => plain::role(role, run.phase).to_owned(),
        },
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
    for ((study, _), run) in later {
        let opened = opened(screen.short(run.epoch_opened_at), &run.epoch_opened_why);
        text.push_str(&format!(
            "study {study}: begun anew {}\n",
            plain::plain(&opened)
        ));
    }
    let quarantined: BTreeSet<String> = runs
        .iter()
        .filter_map(|run| {
            let why = run.quarantined.as_ref()?;
            let what = differing(run.differs.as_ref()?);
            Some(format!(
                "not again: study {}: {what}: {why}\n",
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
    let notes = fold::labelled(&shown_lines(&notes(runs, screen)), screen);
    match notes.is_empty() {
        true => list,
        false => format!("{list}\n{notes}"),
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_model::Parametrization;

    use super::super::explain::tests::run;
    use super::super::status;
    use super::*;

    #[test]
    fn what_a_run_changed_can_be_read_on_eighty_columns() {
        let mut changed = run(RunState::Counted);
        changed.application = "an-application-of-a-long-name".to_owned();
        changed.differs = Some(Parametrization(
            [("cb_nodes".to_owned(), 1234.into())].into(),
        ));
        let how = How {
            screen: &Screen::wide(80),
            exact: false,
        };
        let text = columns(&[changed], None, how).text(how.screen);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("cb_nodes=1234"), "{text}");
        assert!(!text.contains("Start"), "{text}");
    }

    #[test]
    fn what_is_quarantined_is_said_once_below_the_runs() {
        let failed = || RunSummary {
            quarantined: Some("2 of 2 jobs failed under it".to_owned()),
            differs: Some(Parametrization([("size".to_owned(), 4.into())].into())),
            ..run(RunState::NotCounted)
        };
        let text = runs(
            &[failed(), failed(), run(RunState::Counted)],
            &Screen::plain(),
        );
        let note = "\nnot again: study 3: size=4: 2 of 2 jobs failed under it\n";
        assert!(text.ends_with(note), "{text}");
        assert_eq!(text.matches("not again").count(), 1);
    }

    #[test]
    fn an_empty_answer_says_what_to_do() {
        assert!(status::studies(&[], &Screen::plain()).contains("sbatch --io-autotune"));
        assert!(runs(&[], &Screen::plain()).contains("sbatch --io-autotune"));
    }
}
