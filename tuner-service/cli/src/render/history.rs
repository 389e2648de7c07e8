//! Runs, one a line, as sacct lists jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::FromStr;

use io_autotune_model::Measure;
use io_autotune_protocol::{RunState, RunSummary};

use super::columns::{Cell, Column, Columns, Tone};
use super::{UNTOLD, counts, differing, job, opened, told, units};
use crate::screen::Screen;

/// A column that `--format` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: &'static str,
    right: bool,
    least: Option<usize>,
}

const fn field(name: &'static str, right: bool, least: Option<usize>) -> Field {
    Field { name, right, least }
}

const FIELDS: [Field; 26] = [
    field("JobID", false, None),
    field("Restarts", true, None),
    field("Application", false, Some(8)),
    field("User", false, Some(6)),
    field("Accelerator", false, Some(6)),
    field("Study", true, None),
    field("Epoch", true, None),
    field("Cluster", false, Some(6)),
    field("Node", false, Some(6)),
    field("Nodes", true, None),
    field("Start", false, None),
    field("End", false, None),
    field("Phase", false, None),
    field("Role", false, None),
    field("State", false, Some(8)),
    field("Elapsed", true, None),
    field("Counts", false, None),
    field("Why", false, Some(12)),
    field("Change", false, Some(10)),
    field("Given", false, Some(10)),
    field("Reason", false, Some(12)),
    field("Read", true, None),
    field("Written", true, None),
    field("StorageRead", true, None),
    field("StorageWritten", true, None),
    field("Run", true, None),
];

const USUAL: [&str; 8] = [
    "JobID",
    "Application",
    "Start",
    "Role",
    "Elapsed",
    "State",
    "Counts",
    "Change",
];

/// A column of `--format`, with its width if that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    field: Field,
    /// The width, and whether to the right.
    width: Option<(usize, bool)>,
}

impl FromStr for Wanted {
    type Err = String;

    /// `Name`, `Name%20` or `Name%-20`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, width) = match text.split_once('%') {
            None => (text, None),
            Some((name, width)) => (name, Some(width)),
        };
        let mut fields = FIELDS.into_iter();
        let field = fields
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("there is no column {name:?}; there are {}", fields_listed()))?;
        let width = width.map(|width| {
            let (digits, right) = match width.strip_prefix('-') {
                Some(digits) => (digits, false),
                None => (width, true),
            };
            let number = digits.parse::<usize>().ok();
            let number = number.filter(|number| (1..=1000).contains(number));
            let wrong = || format!("{width:?} is no width: write {name}%20, or {name}%-20");
            number.map(|number| (number, right)).ok_or_else(wrong)
        });
        Ok(Self {
            field,
            width: width.transpose()?,
        })
    }
}

/// All names of columns.
pub(crate) fn fields_listed() -> String {
    FIELDS.map(|field| field.name).join(", ")
}

/// Every column, for `--csv`.
pub(crate) fn all_fields() -> Vec<Wanted> {
    let all = FIELDS.into_iter();
    all.map(|field| Wanted { field, width: None }).collect()
}

fn usual() -> Vec<Wanted> {
    let all = all_fields().into_iter();
    all.filter(|wanted| USUAL.contains(&wanted.field.name))
        .collect()
}

/// How the list is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) screen: &'a Screen,
    /// Times to the second and seconds to the millisecond, for programs.
    pub(crate) exact: bool,
}

/// The runs in these columns; the usual ones if `None`.
pub(crate) fn columns(runs: &[RunSummary], wanted: Option<&[Wanted]>, how: How<'_>) -> Columns {
    let usual = usual();
    let wanted = wanted.unwrap_or(&usual);
    let columns = wanted.iter().map(|Wanted { field, width }| {
        let column = match field.right {
            true => Column::right(field.name),
            false => Column::left(field.name),
        };
        match (width, field.least) {
            (Some((width, right)), _) => column.fixed(*width, *right),
            (None, Some(least)) => column.least(least),
            (None, None) => column,
        }
    });
    let mut list = Columns::new(columns.collect());
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
        "Application" => run.application.clone(),
        "User" => run.user.clone().unwrap_or_else(|| run.uid.to_string()),
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

/// What is to be known of the runs of a list, below it.
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
        return "no runs yet: submit a job with `sbatch --io-autotune`\n".to_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_named_as_sacct_does_it() {
        let wanted: Wanted = "jobid".parse().unwrap();
        assert_eq!((wanted.field.name, wanted.width), ("JobID", None));
        let wanted: Wanted = "Change%30".parse().unwrap();
        assert_eq!(wanted.width, Some((30, true)));
        let wanted: Wanted = "Change%-30".parse().unwrap();
        assert_eq!(wanted.width, Some((30, false)));
        assert!(
            "Mood"
                .parse::<Wanted>()
                .unwrap_err()
                .contains("JobID, Restarts")
        );
        for wrong in ["Change%", "Change%x", "Change%0", "Change%5000"] {
            assert!(
                wrong.parse::<Wanted>().unwrap_err().contains("Change%20"),
                "{wrong}"
            );
        }
        assert_eq!(usual().len(), USUAL.len());
    }
}
