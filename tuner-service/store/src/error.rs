//! The store's errors.

use std::fmt;

use jiff::Timestamp;

use crate::connections::{Outage, Unavailable, UrlError};

/// SQLSTATE codes of a rollback by concurrency: serialization failure, deadlock.
const ROLLED_BACK: [&str; 2] = ["40001", "40P01"];

/// The reason why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A lock or a connection took too long, and the job must not wait.
    #[error("{transaction}: {scarce} is busy")]
    Busy {
        /// The transaction's name.
        transaction: &'static str,
        /// The scarce resource.
        scarce: Scarce,
    },
    /// An order or a reset has changed the study since its state was read.
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
    /// The user already has the largest allowed number of studies.
    #[error("{transaction}: uid {uid} has {most} studies, the most of a user")]
    TooManyStudies {
        /// The transaction's name.
        transaction: &'static str,
        /// The user.
        uid: u32,
        /// The most studies.
        most: u32,
    },
    /// The user has already made the largest allowed number of changes within a day.
    #[error("{transaction}: uid {uid} has changed {most} things within a day, the most of a user")]
    TooManyChanges {
        /// The transaction's name.
        transaction: &'static str,
        /// The user.
        uid: u32,
        /// The most changes.
        most: u64,
    },
    /// The user already has the largest allowed number of orders in force.
    #[error("{transaction}: uid {uid} has {most} orders in force, the most of a user")]
    TooManyOrders {
        /// The transaction's name.
        transaction: &'static str,
        /// The user.
        uid: u32,
        /// The most orders.
        most: u64,
    },
    /// Studies belong to a cluster that the service does not have.
    #[error("{}", not_served(*.studies, .cluster.as_deref(), .clusters))]
    NotServed {
        /// The number of these studies.
        studies: u64,
        /// Their cluster; `None`: they have none.
        cluster: Option<String>,
        /// The clusters that the service has.
        clusters: Vec<String>,
    },
    /// Two clusters have some of the same studies, which cannot be merged.
    #[error(
        "nothing was changed: cluster {to} has {studies} of these studies itself, with runs of its own; keep both \
         clusters in service.toml, this one with `sources = []` if it is no more"
    )]
    StudiesOfBoth {
        /// The number of these studies.
        studies: u64,
        /// The cluster that has them as well.
        to: String,
    },
    /// Retention has removed the runs that were asked for.
    #[error("{transaction}: runs that started up to {through} were removed by retention")]
    Removed {
        /// The transaction's name.
        transaction: &'static str,
        /// The latest start of a removed run.
        through: Timestamp,
    },
    /// The URL cannot be that of a database.
    #[error("the database's URL: {0}")]
    Url(#[from] UrlError),
    /// No server of the database can be used.
    #[error("{transaction}: {unavailable}")]
    Unavailable {
        /// The transaction's name.
        transaction: &'static str,
        /// The problem of each server.
        unavailable: Unavailable,
    },
    /// PostgreSQL failed.
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
    #[error("{}", older(*.actual, *.known))]
    OlderSchema {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// The database lacks migrations of this program, which its role may not apply.
    #[error(
        "{}, and the role {role:?} may not change the schema: run `io-autotuned --migrate URL` as the schema's owner \
         (docs/install.md, \"Database\")", older(*.actual, *.known)
    )]
    MayNotMigrate {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
        /// The role of the connection.
        role: String,
    },
    /// The database lacks migrations of this program, which cannot be applied through a pooler.
    #[error(
        "{}, and migrations need a session of their own, which a pooler in transaction mode has not: run \
         `io-autotuned --migrate URL` with the URL of PostgreSQL itself (docs/install.md, \"Database\")",
        older(*.actual, *.known)
    )]
    PooledMigration {
        /// The newest migration in the database; 0 if there is none.
        actual: i64,
        /// The newest migration this program carries.
        known: i64,
    },
    /// Rows of a user were to be rewritten by a role that may only add to history.
    #[error(
        "the role {role:?} may not rewrite history: give `--database` the URL of the schema's owner, as `--migrate` \
         gets it (docs/install.md, \"Database\")"
    )]
    MayNotForget {
        /// The role of the connection.
        role: String,
    },
    /// A login name was that of several uids, or is digits that are a uid too.
    #[error("{name:?} was the name of uids {}: name one of them by its number, as +{}", listed(.uids), .uids.first().unwrap_or(&0))]
    SeveralUsers {
        /// The name.
        name: String,
        /// The uids.
        uids: Vec<i64>,
    },
    /// The role's search path does not lead to this program's tables.
    #[error("{}", foreign(.search_path, .schema.as_deref()))]
    ForeignSearchPath {
        /// The role's search path.
        search_path: String,
        /// The schema of the tables; `None`: there are none, and the path names no schema.
        schema: Option<String>,
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

fn older(actual: i64, known: i64) -> String {
    match actual {
        0 => format!(
            "the database has no tables of io-autotune, and this program needs schema version {known}"
        ),
        _ => format!("the database has schema version {actual} and this program needs {known}"),
    }
}

fn listed(uids: &[i64]) -> String {
    let uids: Vec<String> = uids.iter().map(i64::to_string).collect();
    uids.join(" and ")
}

fn foreign(search_path: &str, schema: Option<&str>) -> String {
    match schema {
        Some(schema) => format!(
            "the tables of io-autotune are in schema {schema:?}, which the role's search_path ({search_path}) does not \
             lead to: `alter role ... set search_path = {schema}`, or grant it usage on the schema"
        ),
        None => format!(
            "the role's search_path ({search_path}) names no schema that it may use: `alter role ... reset search_path`, \
             or make the schema"
        ),
    }
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

/// The resource that a request waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// The study or one of its runs: another request holds the lock.
    Study,
    /// A connection: none became free in time, although the database answers.
    Connections,
    /// A budget for exploring: other starts charge runs to it.
    Budget,
}

impl fmt::Display for Scarce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Study => "the study",
            Self::Connections => "every connection to the database",
            Self::Budget => "a budget for exploring",
        })
    }
}

impl StoreError {
    const LOCK_NOT_AVAILABLE: &str = "55P03";

    /// Returns true if the schema waits for its owner, or for an admin who corrects the search
    /// path.
    #[must_use]
    pub fn is_for_the_owner(&self) -> bool {
        matches!(
            self,
            Self::MayNotMigrate { .. }
                | Self::PooledMigration { .. }
                | Self::ForeignSearchPath { .. }
        )
    }

    /// Returns true if the database cannot be used at present and may come back.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Busy {
                scarce: Scarce::Connections,
                ..
            }
            | Self::Unavailable { .. } => true,
            Self::Migrate(
                sqlx::migrate::MigrateError::Execute(source)
                | sqlx::migrate::MigrateError::ExecuteMigration(source, _),
            ) => matches!(source, sqlx::Error::PoolTimedOut) || Outage::of(source).is_some(),
            _ => false,
        }
    }

    /// Returns true if the database answered, whatever the answer was.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Unavailable { unavailable, .. } => unavailable.can_be_read(),
            error => !error.is_outage(),
        }
    }

    /// The remedy that an admin has for the database; `None` if the error itself names it, or if
    /// there is none.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Unavailable { unavailable, .. } => Some(unavailable.remedy()),
            Self::Busy {
                scarce: Scarce::Connections,
                ..
            } => Some(
                "raise connections and user_connections in [database] of service.toml, if PostgreSQL has room for them"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The error, with what an admin can do about it.
    #[must_use]
    pub fn with_remedy(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }

    /// Returns true if an immediate retry may succeed: the connection was lost, its server no
    /// longer takes writes, or PostgreSQL rolled this transaction back to end a deadlock. False
    /// where the caller has waited already, for a [`Busy`](Self::Busy) resource or until all
    /// servers had been looked at.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { unavailable, .. } => {
                unavailable.outages().any(Outage::may_be_of_one_connection)
            }
            Self::Database {
                source: sqlx::Error::Database(error),
                ..
            } => error
                .code()
                .is_some_and(|code| ROLLED_BACK.contains(&code.as_ref())),
            _ => false,
        }
    }

    /// Returns true if PostgreSQL refused the data (SQLSTATE classes 22 and 23), so that a retry
    /// cannot help.
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

    /// Returns true if the error concerns only what was asked for: requests about other studies,
    /// runs or jobs may succeed at the same time.
    #[must_use]
    pub fn is_of_the_data(&self) -> bool {
        !self.is_outage()
            && !self.is_transient()
            && !matches!(self, Self::Busy { .. } | Self::Outdated { .. })
    }

    /// The error for a database that has not answered within the caller's time.
    #[must_use]
    pub fn silent(transaction: &'static str) -> Self {
        Self::Unavailable {
            transaction,
            unavailable: Unavailable::met(Outage::Silent),
        }
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
            _ => match unavailable(source) {
                Ok(unavailable) => Self::Unavailable {
                    transaction,
                    unavailable,
                },
                Err(source) => Self::Database {
                    transaction,
                    source,
                },
            },
        }
    }
}

/// The outage in an error, if it is one; otherwise the error itself.
fn unavailable(error: sqlx::Error) -> Result<Unavailable, sqlx::Error> {
    match error {
        sqlx::Error::AnyDriverError(carried) => carried
            .downcast()
            .map(|unavailable| *unavailable)
            .map_err(sqlx::Error::AnyDriverError),
        error => match Outage::of(&error) {
            Some(outage) => Ok(Unavailable::met(outage)),
            None => Err(error),
        },
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
