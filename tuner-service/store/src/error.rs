//! The store's errors.

use std::fmt;

use jiff::Timestamp;

/// SQLSTATE classes and codes of an unreachable database: connection exceptions, too many
/// connections, starting or shutting down, read-only after a failover.
const OUTAGE: [&str; 4] = ["08", "53300", "57P", "25006"];

/// SQLSTATE codes of a rollback by concurrency: serialization failure, deadlock.
const ROLLED_BACK: [&str; 2] = ["40001", "40P01"];

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A lock or a connection took too long: the job must not wait.
    #[error("{transaction}: {scarce} is busy")]
    Busy {
        /// The transaction's name.
        transaction: &'static str,
        /// The scarce resource.
        scarce: Scarce,
    },
    /// The study was steered since its state was read.
    #[error("{transaction}: the study was steered since its state was read")]
    Outdated {
        /// The transaction's name.
        transaction: &'static str,
    },
    /// The request was read before, by this replica or another.
    #[error("{transaction}: the request has been read before")]
    Replayed {
        /// The transaction's name.
        transaction: &'static str,
    },
    /// A study would be the user's first one too many.
    #[error("{transaction}: uid {uid} has {most} studies, the most of a user")]
    TooManyStudies {
        /// The transaction's name.
        transaction: &'static str,
        /// The user.
        uid: u32,
        /// The most studies.
        most: u32,
    },
    /// Studies are of a cluster that the service does not have.
    #[error("{}", not_served(*.studies, .cluster.as_deref(), .clusters))]
    NotServed {
        /// How many.
        studies: u64,
        /// Theirs; `None`: they are of none.
        cluster: Option<String>,
        /// Those that the service has.
        clusters: Vec<String>,
    },
    /// Two clusters have some of the same studies, which cannot be one's.
    #[error(
        "nothing was changed: cluster {to} has {studies} of these studies itself, with runs of its own; keep both \
         clusters in service.toml, this one with `sources = []` if it is no more"
    )]
    StudiesOfBoth {
        /// How many.
        studies: u64,
        /// The cluster that has them too.
        to: String,
    },
    /// Retention has removed what is asked for or spoken of.
    #[error("{transaction}: runs that started up to {through} were removed by retention")]
    Removed {
        /// The transaction's name.
        transaction: &'static str,
        /// The latest start of a removed run.
        through: Timestamp,
    },
    /// PostgreSQL failed or could not be reached.
    #[error("{transaction}: {source}")]
    Database {
        /// The transaction's name.
        transaction: &'static str,
        /// sqlx's error.
        source: sqlx::Error,
    },
    /// The migrations failed.
    #[error("the schema cannot be brought up to date: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A newer version migrated the database to a schema that needs a newer program.
    #[error(
        "the database has schema version {actual}, which needs a newer program than this one, which knows {known}: upgrade this program"
    )]
    NewerSchema {
        /// The newest migration in the database.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// The database lacks migrations of this program.
    #[error("the database has schema version {actual} and this program needs {known}")]
    OlderSchema {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// The database lacks migrations of this program, which its role may not apply.
    #[error(
        "the database has schema version {actual}, this program needs {known}, and the role {role:?} may not change the \
         schema: run `io-autotuned --migrate URL` as the schema's owner (docs/install.md, \"Database\")"
    )]
    MayNotMigrate {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
        /// Who is connected.
        role: String,
    },
    /// A row breaks an invariant: corruption or a bug, never a user's mistake.
    #[error("{transaction}: {problem}")]
    Invariant {
        /// The transaction's name.
        transaction: &'static str,
        /// The broken invariant.
        problem: String,
    },
}

fn not_served(studies: u64, cluster: Option<&str>, clusters: &[String]) -> String {
    match cluster {
        None => format!(
            "{studies} studies are from before the service had several clusters: say which of {} they are of by \
             `io-autotuned --map-cluster NAME`, as the service's account, and start again",
            clusters.join(", ")
        ),
        Some(cluster) => format!(
            "{studies} studies are of cluster {cluster}, which service.toml does not have: name it in a [[slurm]], \
             with `sources = []` if it is no more; or if it has another name now, \
             `io-autotuned --map-cluster {cluster}=NAME`, as the service's account, and start again"
        ),
    }
}

/// What a request waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// The study or one of its runs: another request holds the lock.
    Study,
    /// A connection: none came free, or the database is down.
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
    const LOCK_NOT_AVAILABLE: &str = "55P03";

    /// Whether the schema waits for its owner's migrations.
    #[must_use]
    pub fn is_for_the_owner(&self) -> bool {
        matches!(self, Self::MayNotMigrate { .. })
    }

    /// Whether the database is unreachable now and may come back.
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
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Database(error) => error
                .code()
                .is_some_and(|code| OUTAGE.iter().any(|class| code.starts_with(class))),
            _ => false,
        }
    }

    /// Whether an immediate retry may succeed: the database restarted or failed over, or it rolled
    /// this transaction back to end a deadlock. False for [`Busy`](Self::Busy): that caller has
    /// waited already.
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

    /// Whether PostgreSQL refused the data (SQLSTATE classes 22 and 23): a retry cannot help.
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

    /// Whether it is an affair of what was asked for, and of nothing else: another study, run or job
    /// may go well just now.
    #[must_use]
    pub fn is_of_the_data(&self) -> bool {
        !self.is_outage()
            && !self.is_transient()
            && !matches!(self, Self::Busy { .. } | Self::Outdated { .. })
    }

    pub(crate) fn invariant(transaction: &'static str, problem: impl Into<String>) -> Self {
        Self::Invariant {
            transaction,
            problem: problem.into(),
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

pub(crate) trait Named<T> {
    fn named(self, transaction: &'static str) -> Result<T, StoreError>;
}

impl<T> Named<T> for Result<T, sqlx::Error> {
    fn named(self, transaction: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::database(transaction, source))
    }
}
