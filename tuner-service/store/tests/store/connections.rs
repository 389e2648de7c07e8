//! Connections that the database drops, and databases that are not there.

use std::time::{Duration, Instant};

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Store, StoreError, StoreOptions};
use tokio::task::JoinSet;

use crate::support::{Database, Report, Start, decision, point};

#[tokio::test]
async fn the_store_goes_on_after_the_database_dropped_its_connections() {
    let database = Database::new().await;
    let store = database.store(4);
    let mut starting = JoinSet::new();
    for job_id in 1..=4 {
        let store = store.clone();
        starting.spawn(async move { Start::of(job_id).search(&store, point(1)).await });
    }
    starting.join_all().await;
    let dropped = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
                       where datname = current_database() and pid <> pg_backend_pid()";
    assert!(database.number(dropped).await >= 1);
    // Whoever comes at once may meet one of them, and asks again.
    while let Err(error) = Report::of(1).deliver(&store).await {
        assert!(error.is_transient() && error.is_outage(), "{error}");
    }
    while let Err(error) = Start::of(5).try_search(&store, point(2)).await {
        assert!(error.is_transient() && error.is_outage(), "{error}");
    }
    store.ready().await.unwrap();
}

/// As at a fail-over, before its replica is promoted: who asks again may be answered.
#[tokio::test]
async fn a_database_that_is_read_only_is_an_outage() {
    let database = Database::new().await;
    let read_only =
        "do $$ begin execute format('alter database %I set default_transaction_read_only = on',
                                                current_database()); end $$";
    database.execute(read_only).await;
    let store = database.store(1);
    let errors = [
        Start::of(1).try_search(&store, point(1)).await.unwrap_err(),
        Report::of(1).deliver(&store).await.unwrap_err(),
        store.is_first_reading(&"0".repeat(32)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_transient() && error.is_outage(), "{error}");
    }
    store.ready().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_not_there_is_an_error_in_time() {
    let store = {
        let options = StoreOptions {
            connections: 1,
            ..StoreOptions::default()
        };
        Store::open("postgres:///none?host=/nonexistent&user=none", options).unwrap()
    };
    let begun = Instant::now();
    let error = store.ready().await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

/// How many transactions that start a run are open while one decides, looked at from outside.
async fn open_while_deciding(database: &Database, store: &Store, job_id: u32) -> i64 {
    let mut open = None;
    Start::of(job_id)
        .ask(store, |_| {
            let database = database.clone();
            let looked = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(database.number(
                    "select count(*) from pg_stat_activity
                     where datname = current_database() and state = 'idle in transaction'
                         and application_name = 'io-autotuned start_run'",
                ))
            });
            open = Some(looked.join().unwrap());
            decision(Phase::Search, Role::Search, point(2))
        })
        .await
        .unwrap();
    open.unwrap()
}

#[tokio::test]
async fn transactions_show_their_names_to_the_admin_and_a_kept_epoch_needs_none() {
    let database = Database::new().await;
    let [store, other] = [database.store(2), database.store(2)];
    assert_eq!(open_while_deciding(&database, &store, 1).await, 1);
    assert_eq!(open_while_deciding(&database, &store, 2).await, 0);
    assert_eq!(open_while_deciding(&database, &other, 3).await, 1);
    assert_eq!(open_while_deciding(&database, &store, 4).await, 0);
    let left = "select count(*) from pg_stat_activity
                    where datname = current_database() and application_name like 'io-autotuned %'";
    assert_eq!(database.number(left).await, 0);
}
