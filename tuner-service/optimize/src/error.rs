//! Why the file of a space is refused.

use std::path::{Path, PathBuf};

use io_autotune_catalogue::{Fault, in_file};
use io_autotune_configuration::explained;
use io_autotune_engine::SpaceError;

/// Why a space's file was refused: file, place, problem and cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceFileError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}: check the path and its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file in another encoding than UTF-8.
    #[error("{}: {error}", .path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A space in TOML that is refused.
    #[error("{}", in_file(.path, .faults))]
    Toml {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong in it.
        faults: Vec<Fault>,
    },
    /// Not JSON, or not a space's JSON.
    #[error("{}, line {}, column {}: {}", .path.display(), .error.line(), .error.column(), explained(&.error.to_string()))]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        error: serde_json::Error,
    },
    /// Parameters that make no valid space.
    #[error("{}: {error}", .path.display())]
    Space {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: SpaceError,
    },
    /// A parameter that cannot be read.
    #[error("{}: parameter {parameter:?}: {problem}", .path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The parameter's name.
        parameter: String,
        /// The problem and the cure.
        problem: String,
    },
    /// A constraint that cannot be read.
    #[error("{}: constraint number {number}: {problem}", .path.display())]
    Constraint {
        /// The file.
        path: PathBuf,
        /// The entry's place in the list, from 1.
        number: usize,
        /// The problem and the cure.
        problem: String,
    },
    /// Another default, of `first`, that does not fit the space.
    #[error("{}: first, number {number}: {problem}", .path.display())]
    First {
        /// The file.
        path: PathBuf,
        /// The entry's place in the list, from 1.
        number: usize,
        /// The problem.
        problem: String,
    },
    /// Several things that are wrong in one file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<SpaceFileError>),
    /// A key that is unknown, or looks like a misspelt one.
    #[error("{}, line {line}: {place}unknown key `{key}`: {problem}", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
        /// The table that has it, in words; empty: the file.
        place: String,
        /// The key.
        key: String,
        /// The key that may be meant, or those that are known, in words.
        problem: String,
    },
}

impl SpaceFileError {
    pub(crate) fn unread(path: &Path, error: std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::InvalidData => Self::Encoding { path, error },
            _ => Self::Read { path, error },
        }
    }
}
