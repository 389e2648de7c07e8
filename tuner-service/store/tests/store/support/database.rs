//! A database for each test.

use std::ops::Deref;
use std::time::{Duration, Instant};

use io_autotune_store::{Judged, Store, StoreError, StoreOptions, Verdict};
use sqlx::Connection;

/// A [`Database`](io_autotune_test_database::Database), with the queries of the store's tests.
#[derive(Clone, Debug)]
pub(crate) struct Database(io_autotune_test_database::Database);

impl Deref for Database {
    type Target = io_autotune_test_database::Database;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Database {
    /// A database with the store's schema.
    pub(crate) async fn new() -> Self {
        Self(io_autotune_test_database::Database::new().await)
    }

    /// The same with a clock that the test sets.
    pub(crate) async fn with_clock() -> Self {
        Self(io_autotune_test_database::Database::with_clock().await)
    }

    /// A database without a schema.
    pub(crate) async fn empty() -> Self {
        Self(io_autotune_test_database::Database::empty().await)
    }

    /// A store with a pool of at most `connections`, for which it waits as long as a busy machine takes.
    pub(crate) fn store(&self, connections: u32) -> Store {
        let options = StoreOptions {
            connections,
            acquire_timeout: Duration::from_secs(30),
            ..StoreOptions::default()
        };
        Store::open(self.url().as_str(), options).unwrap()
    }

    /// The number of changes of a run.
    pub(crate) async fn changes(&self, run_id: i64) -> i64 {
        let mut connection = self.connect().await;
        let changes = sqlx::query_scalar("select changes from runs where id = $1")
            .bind(run_id)
            .fetch_one(&mut connection)
            .await;
        connection.close().await.unwrap();
        changes.unwrap()
    }

    /// Judges a run by all that is known of it at present.
    pub(crate) async fn judge(
        &self,
        store: &Store,
        run_id: i64,
        verdict: &Verdict,
    ) -> Result<Judged, StoreError> {
        let changes = self.changes(run_id).await;
        store.judge_run(run_id, changes, verdict).await
    }
}

/// Repeats a query until it returns true; fails if it has not within `limit`. For events that
/// PostgreSQL does not announce.
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
