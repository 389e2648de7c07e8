//! The errors of `optimize` with a command.

use std::io;
use std::path::PathBuf;

use io_autotune_optimize::SpaceFileError;

/// Why nothing is tuned, or why it ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptimizeError {
    #[error(transparent)]
    Space(#[from] Box<SpaceFileError>),
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
