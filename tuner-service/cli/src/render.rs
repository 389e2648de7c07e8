//! The API's answers as text.

mod accelerators;
mod checks;
pub(crate) mod columns;
pub(crate) mod compare;
mod explain;
mod fold;
pub(crate) mod gain;
pub(crate) mod history;
mod measures;
mod online;
pub(crate) mod order;
pub(crate) mod plain;
pub(crate) mod prospect;
mod replay;
mod rules;
mod sharing;
pub(crate) mod show;
mod site_default;
pub(crate) mod status;
pub(crate) mod steering;
pub(crate) mod units;

use std::fmt::Display;

use io_autotune_model::Parametrization;
use io_autotune_protocol::{RunState, RunSummary, StudySummary};

pub(crate) use accelerators::{accelerator, accelerators};
pub(crate) use checks::checks;
pub(crate) use explain::explain;
pub(crate) use replay::replays;
pub(crate) use rules::{checked, trial};
pub(crate) use site_default::site_defaults;

use crate::people::called;
use crate::screen::Screen;

/// The text in the place of values that would reveal a run's label before the run has ended.
const UNTOLD: &str = "told once it has ended";

fn told(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNTOLD.to_owned())
}

fn opened(at: impl Display, why: &str) -> String {
    format!("{at}: {why}")
}

/// The line that says when and why a study's search began anew; empty if it did not.
fn opening(study: &StudySummary, screen: &Screen) -> String {
    match study.epoch {
        1 => String::new(),
        _ => format!(
            "begun anew   {}\n",
            plain::plain(&opened(screen.short(study.opened.at), &study.opened.why))
        ),
    }
}

fn user(study: &StudySummary) -> String {
    called(study.user.as_deref(), study.uid)
}

/// The study's context, with its cluster if there are several.
fn context(study: &StudySummary) -> String {
    let cluster = study.cluster.iter();
    let cluster = cluster.map(|cluster| format!("cluster={cluster}"));
    let facets = study.context.iter();
    let facets = facets.map(|(name, value)| format!("{name}={value}"));
    cluster.chain(facets).collect::<Vec<_>>().join(" ")
}

fn phase(study: &StudySummary) -> String {
    let phase = plain::phase(study.phase);
    match &study.ordered {
        Some(ordered) => format!("{phase}, {ordered}"),
        None => phase.to_owned(),
    }
}

fn job(run: &RunSummary) -> String {
    launch(run.job_id, run.restart_count)
}

fn launch(job_id: u32, restart_count: u32) -> String {
    match restart_count {
        0 => job_id.to_string(),
        restarts => format!("{job_id} (restart {restarts})"),
    }
}

fn counts(run: &RunSummary) -> String {
    match run.state {
        RunState::InFlight => "in flight".to_owned(),
        RunState::Counted => "yes".to_owned(),
        RunState::Censored => "lower bound".to_owned(),
        RunState::NotCounted => "no".to_owned(),
    }
}

pub(crate) fn differing(differs: &Parametrization) -> String {
    match differs.0.is_empty() {
        true => "the default".to_owned(),
        false => differs.to_string(),
    }
}
