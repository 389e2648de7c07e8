//! What can be wrong with a data set.

use std::path::PathBuf;

use io_autotune_engine::SpaceError;

/// Why a data set was refused: the file, the place in it, what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}: check the path and its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word for it.
        error: std::io::Error,
    },
    /// JSON that is not JSON, or not a data set's.
    #[error("{}, line {}, column {}: {error}", .path.display(), .error.line(), .error.column())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser found.
        error: serde_json::Error,
    },
    /// Parameters that make no valid space.
    #[error("{}: {error}", .path.display())]
    Space {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        error: SpaceError,
    },
    /// Parameters that cannot be read as a data set's.
    #[error("{}: parameter {parameter:?}: {problem}", .path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The parameter's name.
        parameter: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A constraint that cannot be read.
    #[error("{}: constraint number {number}: {problem}", .path.display())]
    Constraint {
        /// The file.
        path: PathBuf,
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A CSV without a column that it needs.
    #[error(
        "{}, line 1: there is no column {column:?}: add it, or correct its spelling; the columns are {found}",
        .path.display()
    )]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The columns that there are.
        found: String,
    },
    /// A row that cannot be split into its fields.
    #[error("{}: {error}: give every row as many fields as the first line has", .path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What the parser found, with the line.
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
        /// What stands there.
        value: String,
        /// What may stand there.
        allowed: String,
    },
    /// A row whose values cannot be together: a parameter that does not exist there, or a constraint.
    #[error("{}, line {line}: {error}; the field of a parameter that does not exist is empty", .path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        error: Box<SpaceError>,
    },
    /// A CSV without rows.
    #[error("{}: there is no row below the first line: add the measurements", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}
