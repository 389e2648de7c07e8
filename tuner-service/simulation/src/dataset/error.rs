//! Errors of data sets.

use std::path::PathBuf;

use io_autotune_engine::SpaceError;

/// Why a data set was refused: file, place, problem and cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}: check the path and its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Not JSON, or not a data set's JSON.
    #[error("{}, line {}, column {}: {error}", .path.display(), .error.line(), .error.column())]
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
        /// Its place in the list, from 1.
        number: usize,
        /// The problem and the cure.
        problem: String,
    },
    /// Another default, of `first`, that does not fit the space.
    #[error("{}: first, number {number}: {problem}", .path.display())]
    First {
        /// The file.
        path: PathBuf,
        /// Its place in the list, from 1.
        number: usize,
        /// The problem.
        problem: String,
    },
    /// A CSV file without a required column.
    #[error(
        "{}, line 1: there is no column {column:?}: add it, or correct its spelling; the columns are {found}",
        .path.display()
    )]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The columns of the file.
        found: String,
    },
    /// A column that has two meanings.
    #[error("{}, line 1: column {column:?}: {problem}", .path.display())]
    TwoMeanings {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it would be read as, and the cure.
        problem: &'static str,
    },
    /// Several things that are wrong in one file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<DatasetError>),
    /// A key that is unknown, or looks like a misspelt one.
    #[error("{}, line {line}: {place} the unknown key {key:?}: write {meant}, or remove it", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
        /// What has it, in words.
        place: String,
        /// The key.
        key: String,
        /// The keys that may be meant, in words.
        meant: String,
    },
    /// A row that cannot be split into its fields.
    #[error("{}: {error}: give every row as many fields as the first line has", .path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// The parser's error, with the line.
        error: csv::Error,
    },
    /// A field that cannot be used.
    #[error("{}, line {line}, column {column:?}: {value:?} cannot be used: it must be {allowed}", .path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// The field's text.
        value: String,
        /// The valid texts.
        allowed: String,
    },
    /// Values that exclude each other by a condition or a constraint.
    #[error("{}, line {line}: {error}; the field of a parameter that does not exist is empty", .path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        error: Box<SpaceError>,
    },
    /// A CSV file without rows.
    #[error("{}: there is no row below the first line: add the measurements", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}
