//! Migrations, and schemas this program does not know.

use io_autotune_store::{Store, StoreError};
use sqlx::Connection;
use tokio::task::JoinSet;

use crate::support::{in_database, in_empty_database};

#[tokio::test]
async fn migrating_again_does_nothing() {
    in_database(|database| async move {
        let store = database.store(2);
        let applied = "select (sum(extract(epoch from installed_on)) * 1000000)::bigint + count(*) from _sqlx_migrations";
        let before = database.number(applied).await;
        store.migrate().await.unwrap();
        store.ready().await.unwrap();
        assert_eq!(database.number(applied).await, before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_start_together_migrate_an_empty_database_once() {
    in_empty_database(|database| async move {
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
    })
    .await;
}

#[tokio::test]
async fn a_schema_that_a_newer_program_made_is_refused() {
    in_database(|database| async move {
        let store = database.store(1);
        let known_version = database
            .number("select max(version) from _sqlx_migrations")
            .await;
        let mut connection = database.connect().await;
        sqlx::query(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values ($1, 'from the future', true, '\\x00', 0)",
        )
        .bind(known_version + 1)
        .execute(&mut connection)
        .await
        .unwrap();
        connection.close().await.unwrap();
        for refused in [store.migrate().await, store.ready().await] {
            match refused.unwrap_err() {
                StoreError::NewerSchema { actual, known } => {
                    assert_eq!((actual, known), (known_version + 1, known_version));
                }
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_at_once() {
    for url in ["", "nonsense", "postgres://[::1"] {
        let refused = Store::open(url, 1);
        assert!(
            matches!(
                refused,
                Err(StoreError::Database {
                    transaction: "open",
                    ..
                })
            ),
            "{url}: {refused:?}"
        );
    }
}
