//! Migrations, and schemas this program does not know.

use std::time::Duration;

use io_autotune_store::{Store, StoreError, StoreOptions};
use sqlx::Connection;
use tokio::task::JoinSet;

use crate::support::{Database, Report, Start, at_least_once_within, launch, point};

#[tokio::test]
async fn migrating_again_does_nothing() {
    let database = Database::new().await;
    let store = database.store(2);
    let applied = "select (sum(extract(epoch from installed_on)) * 1000000)::bigint + count(*) from _sqlx_migrations";
    let before = database.number(applied).await;
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(database.number(applied).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_start_together_migrate_an_empty_database_once() {
    let database = Database::empty().await;
    let mut migrating = JoinSet::new();
    for _ in 0..6 {
        let store = database.store(1);
        migrating.spawn(async move { store.migrate().await });
    }
    for done in migrating.join_all().await {
        done.unwrap();
    }
    let versions = "select count(*) - count(distinct version) from _sqlx_migrations";
    assert_eq!(database.number(versions).await, 0);
    database.store(1).ready().await.unwrap();
}

/// Changes the database as a newer program's next migration would: with a table that this program
/// does not know, and with `contract` one that programs must know. Returns the numbers of the new
/// migration and of the newest that this program knows.
async fn migrate_beyond(database: &Database, contract: bool) -> (i64, i64) {
    let known = database
        .number("select max(version) from _sqlx_migrations")
        .await;
    let (next, needed) = (known + 1, if contract { known + 1 } else { known });
    let mut connection = database.connect().await;
    for (statement, number) in [
        (
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values ($1, 'from the future', true, '\\x00', 0)",
            next,
        ),
        ("update schema_needs set migration = $1", needed),
    ] {
        sqlx::query(statement)
            .bind(number)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    sqlx::raw_sql("alter table runs add column future text not null default ''; create table future (id bigint)")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    (next, known)
}

#[tokio::test]
async fn a_schema_that_a_newer_program_has_expanded_is_worked_with() {
    let database = Database::new().await;
    let store = database.store(2);
    // It was running when the other program migrated, and it is restarted.
    let started = Start::of(1).search(&store, point(1)).await;
    let (next, _) = migrate_beyond(&database, false).await;
    assert_eq!(store.schema_version().await.unwrap(), next);
    store.ready().await.unwrap();
    let restarted = database.store(2);
    restarted.migrate().await.unwrap();
    restarted.ready().await.unwrap();
    for store in [&store, &restarted] {
        assert_eq!(
            Start::of(1).search(store, point(2)).await.run_id,
            started.run_id
        );
    }
    Report::of(1).deliver(&restarted).await.unwrap();
    let run_id = launch(&store, 2, point(1), 10.0).await;
    assert!(run_id > started.run_id);
}

#[tokio::test]
async fn a_schema_that_needs_a_newer_program_is_refused() {
    let database = Database::new().await;
    let store = database.store(1);
    let (next, known_version) = migrate_beyond(&database, true).await;
    for refused in [store.migrate().await, store.ready().await] {
        match refused.unwrap_err() {
            StoreError::NewerSchema { actual, known } => {
                assert_eq!((actual, known), (next, known_version));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_program_waits_for_the_one_that_migrates_and_is_not_ready_before() {
    let database = Database::empty().await;
    let store = database.store(2);
    let error = store.ready().await.unwrap_err();
    assert!(
        matches!(error, StoreError::OlderSchema { actual: 0, .. }),
        "{error}"
    );
    // Another program holds the lock under which sqlx migrates this database.
    let mut other = database.connect().await;
    sqlx::migrate::Migrate::lock(&mut other).await.unwrap();
    let mut migrating = tokio::spawn({
        let store = store.clone();
        async move { store.migrate().await }
    });
    // For longer than any other statement may wait for a lock: migrations may take minutes.
    let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event = 'advisory'
                           and clock_timestamp() - query_start > interval '1500 ms'";
    at_least_once_within(Duration::from_secs(30), "it waits", async || {
        database.number(waiting).await == 1
    })
    .await;
    assert!(!migrating.is_finished());
    // A migration that is aborted meanwhile leaves no lock behind.
    migrating.abort();
    assert!((&mut migrating).await.unwrap_err().is_cancelled());
    other.close().await.unwrap();
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_at_once() {
    for url in ["", "nonsense", "postgres://[::1"] {
        let refused = Store::open(url, StoreOptions::default());
        assert!(
            matches!(refused, Err(StoreError::Url(_))),
            "{url}: {refused:?}"
        );
    }
}

/// Attack (database): The role's search path leads elsewhere, or there are no tables.
/// Outcome: It is named, and no second schema is made.
#[tokio::test]
async fn tables_that_are_elsewhere_or_nowhere_are_not_an_older_schema() {
    let database = Database::new().await;
    let path = |path: &str| format!("{}&options[search_path]={path}", database.url());
    database.execute("create schema other").await;
    for (search_path, expected) in [
        (
            "other",
            "the tables of io-autotune are in schema \"public\"",
        ),
        (
            "nowhere",
            "the tables of io-autotune are in schema \"public\"",
        ),
    ] {
        let store = Store::open(&path(search_path), StoreOptions::default()).unwrap();
        for refused in [store.ready().await, store.migrate().await] {
            let error = refused.unwrap_err();
            assert!(
                matches!(error, StoreError::ForeignSearchPath { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.to_string().contains(search_path), "{error}");
            assert!(error.is_for_the_owner() && error.is_answer(), "{error}");
        }
    }
    let second = "select count(*) from pg_tables where schemaname = 'other'";
    assert_eq!(database.number(second).await, 0);

    let database = Database::empty().await;
    let error = database.store(1).ready().await.unwrap_err();
    let said = "the database has no tables of io-autotune";
    assert!(error.to_string().starts_with(said), "{error}");
    let url = format!("{}&options[search_path]=nowhere", database.url());
    let error = Store::open(&url, StoreOptions::default()).unwrap();
    let error = error.ready().await.unwrap_err();
    assert!(error.to_string().contains("names no schema"), "{error}");
}
