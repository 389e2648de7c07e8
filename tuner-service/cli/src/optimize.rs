//! Tuning outside Slurm: of a command that is run and timed here, or by lines of JSON. Needs no
//! service.

mod driver;
mod error;
mod guard;
mod lines;
mod process;
mod progress;
mod result;
mod storage;
mod template;

use std::io;

use io_autotune_optimize::SpaceFile;
use io_autotune_optimize::session::{Outcome, Plan, Session, usual_comparison};

pub(crate) use self::error::OptimizeError;
use self::storage::{Begun, Storage};
use self::template::Template;
use crate::arguments::optimize::{LONGEST_STUDY, Optimize};
use crate::say;
use crate::service::CliError;

impl From<OptimizeError> for CliError {
    fn from(error: OptimizeError) -> Self {
        match error {
            OptimizeError::Options(problem) => Self::Usage(problem),
            other => Self::Optimize(other.to_string()),
        }
    }
}

/// Does what the command line asks for; the text for standard output.
pub(crate) fn run(asked: &Optimize) -> Result<String, OptimizeError> {
    let file = SpaceFile::read(&asked.space).map_err(Box::new)?;
    let text = io_autotune_configuration::read_text(&asked.space)?;
    if let Some(left_out) = file.left_out() {
        say(&format!("{}: {left_out}", asked.space.display()));
    }
    let is_command = !asked.command.is_empty();
    let template = is_command
        .then(|| Template::parse(&asked.command, &file.space))
        .transpose()?;
    let goal = asked.goal().map_err(OptimizeError::Options)?;
    let plan = Plan {
        runs: asked.runs.min(LONGEST_STUDY),
        compare: asked.compare.unwrap_or(if is_command {
            usual_comparison(asked.runs)
        } else {
            0
        }),
        goal,
        method: asked.method,
        seed: asked.seed,
    };
    let begun = Begun {
        format: storage::FORMAT,
        space: text,
        space_file: asked.space.to_string_lossy().into_owned(),
        goal,
        command: asked.command.clone(),
        measure: asked
            .measure
            .as_ref()
            .map(|regex| regex.as_str().to_owned()),
    };
    let name = asked.study();
    let (mut storage, records) = match asked.storage() {
        Some(path) => Storage::open(&path, &name, &begun)?,
        None => (Storage::nowhere(), Vec::new()),
    };
    let mut session = Session::planned(file, plan);
    session
        .restore(records)
        .map_err(|error| storage.error(&format!("study {name:?}: {error}")))?;
    let Some(template) = template else {
        let (input, output) = (io::stdin().lock(), io::stdout().lock());
        lines::exchange(&mut session, &mut storage, input, output)?;
        return Ok(String::new());
    };
    let ended = driver::Driver::new(&mut session, &mut storage, &template, asked, &name)?.run()?;
    let is_complete = |outcome: &Outcome| matches!(outcome, Outcome::Value(_));
    if !session.outcomes().any(|(_, outcome)| is_complete(&outcome)) {
        return Err(OptimizeError::Command(format!(
            "no run completed: {} of {} runs failed or were cut short, so nothing was chosen; mend the command, and give the study another --name",
            session.outcomes().count(),
            session.plan().runs
        )));
    }
    let told = result::Told {
        session: &session,
        template: &template,
        name: &name,
        storage: &storage,
        because: ended,
    };
    match asked.json {
        true => Ok(serde_json::to_string_pretty(&told.json())? + "\n"),
        false => Ok(told.text()),
    }
}
