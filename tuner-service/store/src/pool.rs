//! The store itself, migrations, and named transactions.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use tokio::time::{Instant, timeout_at};

use crate::connections::{Connections, DatabaseUrl, Pooler, Session, Transaction};
use crate::epoch_cache::KeptEpochs;
use crate::error::{Named, StoreError};
use crate::sources::KeptSources;

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../../migrations");
    // Migrations of a newer program: `schema_needs` tells whether this program can work with them.
    migrations.set_ignore_missing(true);
    migrations
});

/// The store.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pool: Connections,
    pub(crate) most_studies: u32,
    pub(crate) reads_sources: bool,
    pub(crate) kept: Arc<KeptEpochs>,
    pub(crate) sources: Arc<KeptSources>,
}

/// The options of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// The most connections at the same time.
    pub connections: u32,
    /// The longest wait for a connection.
    pub acquire_timeout: Duration,
    /// The longest time of a statement: after it the caller has given up.
    pub statement_timeout: Duration,
    /// The most studies of a user.
    pub most_studies: u32,
    /// True if starts read priors from other studies.
    pub reads_sources: bool,
    /// The kind of pooler between this program and the database.
    pub pooler: Pooler,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            connections: 16,
            // A prolog has two seconds for everything.
            acquire_timeout: Duration::from_millis(900),
            statement_timeout: Duration::from_secs(10),
            most_studies: u32::MAX,
            reads_sources: false,
            pooler: Pooler::None,
        }
    }
}

impl Store {
    /// Opens a pool that connects lazily, so that a service can start before its database. Returns
    /// an error if `url` cannot be a database's.
    pub fn open(url: &str, wanted: StoreOptions) -> Result<Self, StoreError> {
        Ok(Self::of(url.parse()?, wanted))
    }

    /// Opens a pool that connects lazily, with a URL that has been checked.
    #[must_use]
    pub fn of(url: DatabaseUrl, wanted: StoreOptions) -> Self {
        let session = Session {
            connections: wanted.connections,
            acquire_timeout: wanted.acquire_timeout,
            statement_timeout: wanted.statement_timeout,
            pooler: wanted.pooler,
        };
        Self {
            pool: Connections::new(url, session),
            most_studies: wanted.most_studies,
            reads_sources: wanted.reads_sources,
            kept: Arc::default(),
            sources: Arc::default(),
        }
    }

    /// The same store with another limit of studies, and with or without priors.
    #[must_use]
    pub fn with(&self, most_studies: u32, reads_sources: bool) -> Self {
        Self {
            most_studies,
            reads_sources,
            ..self.clone()
        }
    }

    /// The same store, which is told what other studies have learnt or not.
    #[must_use]
    pub fn reading_sources(&self, reads_sources: bool) -> Self {
        self.with(self.most_studies, reads_sources)
    }

    /// Applies missing migrations. If several programs start together, one applies them and the
    /// others wait without a limit. Returns an error if a newer version's schema needs a newer
    /// program, and if there are missing migrations that the role may not apply.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let (actual, known) = (self.refuse_newer_schema().await?, known_schema_version());
        if let Some(role) = self.role_that_may_not_migrate().await? {
            return if actual < known {
                Err(StoreError::MayNotMigrate {
                    actual,
                    known,
                    role,
                })
            } else {
                Ok(())
            };
        }
        if self.pool.are_pooled() {
            // Migrations need a lock that belongs to their session.
            return if actual < known {
                Err(StoreError::PooledMigration { actual, known })
            } else {
                Ok(())
            };
        }
        // A connection of its own: dropping it releases the migration lock. Only its waits have no
        // limit.
        let options = self.pool.options();
        let unlimited = [("statement_timeout", "0"), ("lock_timeout", "0")];
        let own = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.pool.acquire_timeout())
            .connect_lazy_with(options.options(unlimited));
        let migrated = MIGRATIONS.run(&own).await;
        own.close().await;
        Ok(migrated?)
    }

    /// The connection's role if it may not create tables, as the service's own role of
    /// `deploy/sql/roles.sql` may not; otherwise none.
    async fn role_that_may_not_migrate(&self) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar(
            "select case when coalesce(has_schema_privilege(current_schema(), 'create'), false)
                         then null else current_user::text end",
        )
        .fetch_one(&self.pool)
        .await
        .named("schema_version")
    }

    /// The database's schema version. A version newer than this program is accepted if it allows
    /// that.
    async fn refuse_newer_schema(&self) -> Result<i64, StoreError> {
        let (actual, known) = (self.schema_version().await?, known_schema_version());
        if actual > known && self.needed_migration().await? > known {
            Err(StoreError::NewerSchema { actual, known })
        } else {
            Ok(actual)
        }
    }

    async fn needed_migration(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("select migration from schema_needs")
            .fetch_one(&self.pool)
            .await
            .named("schema_version")
    }

    /// The newest migration in the database; 0 if there is none. Returns
    /// [`StoreError::ForeignSearchPath`] if the schema is not in the role's search path.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        const NAME: &str = "schema_version";
        let found: Schema = sqlx::query_as(
            "select to_regclass('_sqlx_migrations') is not null as is_here, current_schema() is null as is_nowhere,
                    current_setting('search_path') as search_path,
                    (select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where c.relname = 'schema_needs' and c.relkind = 'r'
                       and exists (select from pg_class m
                                   where m.relnamespace = n.oid and m.relname = '_sqlx_migrations')
                     order by n.nspname <> 'public', n.nspname limit 1) as elsewhere",
        )
        .fetch_one(&self.pool)
        .await
        .named(NAME)?;
        if !found.is_here && (found.is_nowhere || found.elsewhere.is_some()) {
            return Err(StoreError::ForeignSearchPath {
                search_path: found.search_path,
                schema: found.elsewhere,
            });
        }
        if !found.is_here {
            return Ok(0);
        }
        sqlx::query_scalar("select coalesce(max(version), 0) from _sqlx_migrations")
            .fetch_one(&self.pool)
            .await
            .named(NAME)
    }

    /// Returns an error unless the database answers, takes writes, and has a schema that this
    /// program can work with.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let (actual, known) = (self.refuse_newer_schema().await?, known_schema_version());
        if actual < known {
            return Err(StoreError::OlderSchema { actual, known });
        }
        self.takes_writes().await
    }

    /// The same check, which also fails if the result is not known by `deadline`.
    pub async fn ready_by(&self, deadline: Instant) -> Result<(), StoreError> {
        timeout_at(deadline, self.ready())
            .await
            .unwrap_or_else(|_| Err(StoreError::silent("ready")))
    }

    /// Returns an error unless the database answers and takes writes.
    pub async fn takes_writes(&self) -> Result<(), StoreError> {
        self.pool.take_writes().await.named("takes_writes")
    }

    /// Closes all connections. Waits for those in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) async fn begin(
        &self,
        name: &'static str,
        lock_wait: Duration,
    ) -> Result<Transaction, StoreError> {
        self.begin_with("begin", name, lock_wait).await
    }

    /// A read-only transaction called `name`, whose statements see one snapshot. It ends when
    /// dropped.
    pub(crate) async fn snapshot(&self, name: &'static str) -> Result<Transaction, StoreError> {
        let begin = "begin isolation level repeatable read read only";
        self.begin_with(begin, name, self.pool.acquire_timeout())
            .await
    }

    /// Begins, names and bounds a transaction in one round trip.
    async fn begin_with(
        &self,
        begin: &'static str,
        name: &'static str,
        lock_wait: Duration,
    ) -> Result<Transaction, StoreError> {
        let own = format!(
            "; set local application_name = 'io-autotuned {name}'; set local lock_timeout = {}",
            lock_wait.as_millis().max(1)
        );
        self.pool.begin_with(begin, &own).await.named(name)
    }
}

/// The location of the schema.
#[derive(sqlx::FromRow)]
struct Schema {
    is_here: bool,
    is_nowhere: bool,
    search_path: String,
    elsewhere: Option<String>,
}

fn known_schema_version() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

pub(crate) fn one_row(
    transaction: &'static str,
    result: &sqlx::postgres::PgQueryResult,
) -> Result<(), StoreError> {
    match result.rows_affected() {
        1 => Ok(()),
        rows => Err(StoreError::invariant(
            transaction,
            format!("a write that must touch one row touched {rows}"),
        )),
    }
}
