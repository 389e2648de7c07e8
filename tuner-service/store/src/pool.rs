//! The connection pool, migrations, and named transactions.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};

use crate::error::{Named, StoreError};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../../migrations");
    // A newer program's: `schema_needs` says whether this one can work with them.
    migrations.set_ignore_missing(true);
    migrations
});

/// No statement of ours runs longer; a client that needs one has been given up by its caller.
const STATEMENT_TIMEOUT: &str = "10s";

/// A statement outside of a transaction waits for a row no longer.
const LOCK_TIMEOUT: &str = "1s";

/// A free connection is waited for so long: who asks in a prolog has two seconds for everything.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(900);

/// The store.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pool: PgPool,
}

impl Store {
    /// Opens a pool of at most `connections` connections to `url`; connects when first used, so
    /// that a service can start before its database.
    ///
    /// # Errors
    ///
    /// When `url` is not a PostgreSQL URL.
    pub fn open(url: &str, connections: u32) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url)
            .named("open")?
            .application_name("io-autotuned")
            .options([
                ("statement_timeout", STATEMENT_TIMEOUT),
                ("lock_timeout", LOCK_TIMEOUT),
                ("idle_in_transaction_session_timeout", STATEMENT_TIMEOUT),
            ]);
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        Ok(Self { pool })
    }

    /// Applies the migrations that the database does not have yet. Of several programs that start together one
    /// does, and the others wait for it, however long it takes.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached, or a newer version has migrated it to what this one cannot work with.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.refuse_newer_schema().await?;
        // A connection of its own: whoever is cut off here ends it, and the lock with it; and on this one alone
        // waiting for another program is no statement that takes too long.
        let options = self.pool.connect_options();
        let options = options.as_ref().clone();
        let own = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options.options([("statement_timeout", "0")]));
        let migrated = MIGRATIONS.run(&own).await;
        own.close().await;
        Ok(migrated?)
    }

    /// Returns the database's schema version, which may be above the one this program knows as long as it needs
    /// no newer program.
    async fn refuse_newer_schema(&self) -> Result<i64, StoreError> {
        let (actual, known) = (self.schema_version().await?, known_schema_version());
        if actual > known && self.needed_migration().await? > known {
            Err(StoreError::NewerSchema { actual, known })
        } else {
            Ok(actual)
        }
    }

    /// The newest migration that a program must know to work with the schema.
    async fn needed_migration(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("select migration from schema_needs")
            .fetch_one(&self.pool)
            .await
            .named("schema_version")
    }

    /// The newest migration in the database; 0 if there is none.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        const NAME: &str = "schema_version";
        let exists: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
            .fetch_one(&self.pool)
            .await
            .named(NAME)?;
        if !exists {
            return Ok(0);
        }
        sqlx::query_scalar("select coalesce(max(version), 0) from _sqlx_migrations")
            .fetch_one(&self.pool)
            .await
            .named(NAME)
    }

    /// Whether the database answers and has a schema that this program can work with.
    ///
    /// # Errors
    ///
    /// Says what is missing.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let (actual, known) = (self.refuse_newer_schema().await?, known_schema_version());
        if actual < known {
            Err(StoreError::OlderSchema { actual, known })
        } else {
            Ok(())
        }
    }

    /// Ends all connections; waits for those in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction called `name`, in which waiting for a lock ends after `lock_wait`.
    pub(crate) async fn begin(
        &self,
        name: &'static str,
        lock_wait: Duration,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.begin_with("begin", name, lock_wait).await
    }

    /// A transaction called `name` that only reads, and whose statements all see the same moment. It
    /// ends when it is dropped.
    pub(crate) async fn snapshot(
        &self,
        name: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let begin = "begin isolation level repeatable read read only";
        self.begin_with(begin, name, ACQUIRE_TIMEOUT).await
    }

    /// Begins, names and bounds a transaction in one round trip.
    ///
    /// It does so in a task of its own, which nobody drops half way (client gone, deadline): sqlx would give back a
    /// connection that is inside a transaction, and the next borrower would find itself in it.
    async fn begin_with(
        &self,
        begin: &'static str,
        name: &'static str,
        lock_wait: Duration,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let statements = opening(begin, name, lock_wait);
        let pool = self.pool.clone();
        tokio::spawn(async move { pool.begin_with(statements).await })
            .await
            .unwrap_or(Err(sqlx::Error::WorkerCrashed))
            .named(name)
    }
}

fn opening(begin: &str, name: &str, lock_wait: Duration) -> AssertSqlSafe<String> {
    let milliseconds = lock_wait.as_millis().max(1);
    // Safe: words of this program and a number.
    AssertSqlSafe(format!(
        "{begin}; set local application_name = 'io-autotuned {name}'; \
         set local lock_timeout = {milliseconds}"
    ))
}

fn known_schema_version() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

/// Asserts that a write touched exactly one row.
pub(crate) fn one_row(
    transaction: &'static str,
    result: &sqlx::postgres::PgQueryResult,
) -> Result<(), StoreError> {
    match result.rows_affected() {
        1 => Ok(()),
        rows => Err(StoreError::Invariant {
            transaction,
            problem: format!("a write that must touch one row touched {rows}"),
        }),
    }
}
