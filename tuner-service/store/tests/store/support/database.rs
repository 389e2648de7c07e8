//! A database for each test.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use io_autotune_store::{Judged, Store, StoreError, StoreOptions, Verdict};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::runtime::Builder;

/// A database that one test has to itself. It is dropped with its last clone, however the test ends.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    options: PgConnectOptions,
    _dropped: Arc<Dropped>,
}

impl Database {
    /// One with the store's schema.
    ///
    /// # Panics
    /// When there is no server.
    pub(crate) async fn new() -> Self {
        let database = Self::empty().await;
        let store = database.store(1);
        store.migrate().await.unwrap();
        store.close().await;
        database
    }

    /// Like [`Database::new`], without the schema.
    pub(crate) async fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let server = server();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let options = server.clone().database(&name);
        let drop = format!("drop database if exists {name} with (force)");
        // A process that was killed may have left one of this name.
        execute(&server, [drop.clone(), format!("create database {name}")]).await;
        let dropped = Dropped { server, drop };
        Self {
            options,
            _dropped: Arc::new(dropped),
        }
    }

    /// A store with a pool of at most `connections`.
    pub(crate) fn store(&self, connections: u32) -> Store {
        let options = StoreOptions {
            connections,
            ..StoreOptions::default()
        };
        Store::open(self.url().as_str(), options).unwrap()
    }

    /// The URL, as the service's configuration has it.
    pub(crate) fn url(&self) -> String {
        self.options.to_url_lossy().into()
    }

    /// The URL of another role.
    pub(crate) fn url_of(&self, role: &str) -> String {
        self.options.clone().username(role).to_url_lossy().into()
    }

    /// A connection of another role.
    pub(crate) async fn connect_as(&self, role: &str) -> PgConnection {
        let options = self.options.clone().username(role);
        PgConnection::connect_with(&options).await.unwrap()
    }

    /// A connection outside of the store's pool: it sees only what is committed.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options).await.unwrap()
    }

    /// How often something new was heard of a run.
    pub(crate) async fn changes(&self, run_id: i64) -> i64 {
        let mut connection = self.connect().await;
        let changes = sqlx::query_scalar("select changes from runs where id = $1")
            .bind(run_id)
            .fetch_one(&mut connection)
            .await;
        connection.close().await.unwrap();
        changes.unwrap()
    }

    /// Judges a run on all that is known of it now.
    pub(crate) async fn judge(
        &self,
        store: &Store,
        run_id: i64,
        verdict: &Verdict,
    ) -> Result<Judged, StoreError> {
        let changes = self.changes(run_id).await;
        store.judge_run(run_id, changes, verdict).await
    }

    /// Carries out a statement.
    pub(crate) async fn execute(&self, statement: &'static str) {
        let mut connection = self.connect().await;
        let done = sqlx::query(statement).execute(&mut connection).await;
        connection.close().await.unwrap();
        done.unwrap();
    }

    /// The one number that a query selects.
    pub(crate) async fn number(&self, query: &'static str) -> i64 {
        let mut connection = self.connect().await;
        let number = sqlx::query_scalar(query).fetch_one(&mut connection).await;
        connection.close().await.unwrap();
        number.unwrap()
    }
}

/// Drops a database with itself.
#[derive(Debug)]
struct Dropped {
    server: PgConnectOptions,
    drop: String,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let statement = [std::mem::take(&mut self.drop)];
        // The test's own runtime may be about to end.
        let dropped = std::thread::scope(|scope| {
            let dropping = scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(execute(&self.server, statement));
            });
            dropping.join()
        });
        assert!(dropped.is_ok() || std::thread::panicking(), "it stays");
    }
}

async fn execute(server: &PgConnectOptions, statements: impl IntoIterator<Item = String>) {
    let mut connection = PgConnection::connect_with(server).await.unwrap();
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
}

fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").unwrap_or_else(|_| {
        panic!("DATABASE_URL is not set: these tests need a PostgreSQL; run them with `make test-store`")
    });
    PgConnectOptions::from_str(&url).unwrap()
}

/// Asks until the answer is yes; fails when it has not been within `limit`. For what PostgreSQL
/// gives no notice of.
pub(crate) async fn at_least_once_within(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> bool,
) {
    let begun = Instant::now();
    while !ask().await {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
