//! What can go wrong in the store.

use std::fmt;

/// SQLSTATE classes and codes of a database that cannot be reached: connection exceptions, too many connections,
/// starting up or shutting down, and one that only reads because another took its place.
const OUTAGE: [&str; 4] = ["08", "53300", "57P", "25006"];

/// SQLSTATE codes of a transaction that was rolled back for another's sake: serialization failure, deadlock.
const ROLLED_BACK: [&str; 2] = ["40001", "40P01"];

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Waiting any longer would cost the job.
    #[error("{transaction}: {scarce} is busy")]
    Busy {
        /// The transaction's name.
        transaction: &'static str,
        /// What was waited for.
        scarce: Scarce,
    },
    /// The study was steered since its state was read.
    #[error("{transaction}: the study was steered since its state was read")]
    Outdated {
        /// The transaction's name.
        transaction: &'static str,
    },
    /// PostgreSQL failed or could not be reached.
    #[error("{transaction}: {source}")]
    Database {
        /// The transaction's name.
        transaction: &'static str,
        /// The driver's word.
        source: sqlx::Error,
    },
    /// Migrations could not be applied.
    #[error("the schema cannot be brought up to date: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The database was migrated by a newer version, to what this one cannot work with.
    #[error(
        "the database has schema version {actual}, which needs a newer program than this one, which knows {known}: upgrade this program"
    )]
    NewerSchema {
        /// The newest migration in the database.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// The database has not been migrated to this program's schema.
    #[error("the database has schema version {actual} and this program needs {known}")]
    OlderSchema {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// A row does not hold what it must: corruption or a bug, never a user's mistake.
    #[error("{transaction}: {problem}")]
    Invariant {
        /// The transaction's name.
        transaction: &'static str,
        /// What does not hold.
        problem: String,
    },
}

/// What there was not enough of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// The study, or one of its runs, is locked by another request.
    Study,
    /// No connection came free, or none could be made: the database may be down.
    Connections,
}

impl fmt::Display for Scarce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Study => "the study",
            Self::Connections => "every connection to the database",
        })
    }
}

impl StoreError {
    /// PostgreSQL's `lock_not_available`, raised when `lock_timeout` passes.
    const LOCK_NOT_AVAILABLE: &str = "55P03";

    /// Whether the database cannot be reached now, and may be later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        let source = match self {
            Self::Busy {
                scarce: Scarce::Connections,
                ..
            } => return true,
            Self::Database { source, .. } => source,
            Self::Migrate(sqlx::migrate::MigrateError::Execute(source)) => source,
            _ => return false,
        };
        match source {
            // It went away in the middle of something.
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Database(error) => error
                .code()
                .is_some_and(|code| OUTAGE.iter().any(|class| code.starts_with(class))),
            _ => false,
        }
    }

    /// Whether the same may succeed when it is asked again at once: the database was restarted or another took its
    /// place, or it chose this transaction to end a deadlock. Not when there was too little of something: whoever
    /// waited for that has waited.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } => false,
            Self::Database {
                source: sqlx::Error::Database(error),
                ..
            } if error
                .code()
                .is_some_and(|code| ROLLED_BACK.contains(&code.as_ref())) =>
            {
                true
            }
            error => error.is_outage(),
        }
    }

    /// Whether PostgreSQL refused the data itself (SQLSTATE classes 22 and 23), so that the same
    /// request can never be stored.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Database {
                source: sqlx::Error::Database(error),
                ..
            } => error
                .code()
                .is_some_and(|code| code.starts_with("22") || code.starts_with("23")),
            _ => false,
        }
    }

    pub(crate) fn database(transaction: &'static str, source: sqlx::Error) -> Self {
        match &source {
            sqlx::Error::Database(error)
                if error.code().as_deref() == Some(Self::LOCK_NOT_AVAILABLE) =>
            {
                Self::Busy {
                    transaction,
                    scarce: Scarce::Study,
                }
            }
            sqlx::Error::PoolTimedOut => Self::Busy {
                transaction,
                scarce: Scarce::Connections,
            },
            _ => Self::Database {
                transaction,
                source,
            },
        }
    }
}

/// Names the transaction in which a database error came up.
pub(crate) trait Named<T> {
    fn named(self, transaction: &'static str) -> Result<T, StoreError>;
}

impl<T> Named<T> for Result<T, sqlx::Error> {
    fn named(self, transaction: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::database(transaction, source))
    }
}
