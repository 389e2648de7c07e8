//! Tuning outside Slurm: of a command that is run and timed here, or by lines of JSON. Needs no
//! service.

mod driver;
mod lines;
mod options;
mod process;
mod progress;
mod signals;
mod storage;
mod template;
mod told;

use std::io;
use std::path::PathBuf;

use io_autotune_simulation::dataset::{DatasetError, SpaceFile};
use io_autotune_simulation::session::{Plan, Session};

pub(crate) use self::options::Optimize;
use self::options::{LONGEST_STUDY, share_of_comparison};
use self::storage::{Begun, Storage};
use self::template::Template;
use crate::say;

/// Why nothing is tuned, or why it ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptimizeError {
    #[error(transparent)]
    Space(#[from] Box<DatasetError>),
    #[error("the exchange ended: {0}")]
    Exchange(#[from] io::Error),
    #[error("{}: {problem}", path.display())]
    Storage { path: PathBuf, problem: String },
    #[error("{0}")]
    Command(String),
    #[error("{0}")]
    Options(String),
    #[error("the answer cannot be printed: {0}")]
    Print(#[from] serde_json::Error),
    #[error("interrupted: {kept}; the same command goes on")]
    Interrupted { kept: String },
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
    let goal = asked.goal()?;
    let plan = Plan {
        runs: asked.runs.min(LONGEST_STUDY),
        compare: asked.compare.unwrap_or(if is_command {
            share_of_comparison(asked.runs)
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
    let told = told::Told {
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
