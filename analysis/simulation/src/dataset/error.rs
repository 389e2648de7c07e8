//! Errors of data sets.

use std::path::{Path, PathBuf};

use io_autotune_engine::SpaceError;
use io_autotune_optimize::SpaceFileError;

/// Why a data set was refused: file, place, problem and cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The file of its space.
    #[error(transparent)]
    SpaceFile(#[from] Box<SpaceFileError>),
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
        /// The encoding that it is in, and the cure.
        error: std::io::Error,
    },
    /// A measured default that makes no valid space.
    #[error("{}: {error}", .path.display())]
    Space {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: SpaceError,
    },
    /// A table that is named by its measurements.
    #[error(
        "{} has the measurements: name the file of the space beside it, {} or {}",
        .path.display(),
        .path.with_extension("toml").display(),
        .path.with_extension("json").display()
    )]
    NotTheSpace {
        /// The file.
        path: PathBuf,
    },
    /// A CSV file whose columns are not separated by commas.
    #[error(
        "{}, line 1: the columns are separated by {}: separate them by commas, and write numbers with a decimal \
         point (in R with write.csv, not write.csv2)",
        .path.display(),
        match .separator { '\t' => "tabs".to_owned(), one => format!("{one:?}") }
    )]
    Separator {
        /// The file.
        path: PathBuf,
        /// The character between the columns.
        separator: char,
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
        /// The number that it would be read as, and the cure.
        problem: &'static str,
    },
    /// A row that cannot be split into its fields.
    #[error(
        "{}: {error}: give every row as many fields as the first line has, and numbers a decimal point, not a comma",
        .path.display()
    )]
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

impl DatasetError {
    pub(super) fn unread(path: &Path, error: std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::InvalidData => Self::Encoding { path, error },
            _ => Self::Read { path, error },
        }
    }
}
