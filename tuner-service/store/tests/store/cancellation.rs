//! A call that is dropped half way (client gone, deadline) leaves the pool as it was: no connection
//! is lost, and none is left inside a transaction for its next borrower.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Store, StoreError};
use sqlx::Connection;

use crate::support::{
    Database, Random, Report, Start, at_least_once_within, by, counted, decision, dropped_after,
    launch, point,
};

/// The number of times that each call is made.
const CALLS: u32 = 60;

/// The next job whose start shows that the pool is intact.
static PROBE: AtomicU32 = AtomicU32::new(1_000_000);

/// Waits until no transaction is left open, because the pool returns connections at its own time.
async fn nothing_is_open(database: &Database) {
    database.all_become_idle().await;
    let locks = "select count(*) from pg_locks l join pg_database d on d.oid = l.database
                 where d.datname = current_database() and l.pid <> pg_backend_pid()";
    at_least_once_within(Duration::from_secs(5), "no lock is held", async || {
        database.number(locks).await == 0
    })
    .await;
}

async fn is_released(database: &Database, run_id: i64) -> bool {
    let mut connection = database.connect().await;
    let released = sqlx::query_scalar("select released from runs where id = $1")
        .bind(run_id)
        .fetch_one(&mut connection)
        .await;
    connection.close().await.unwrap();
    released.unwrap()
}

/// Drops a call after one poll, after two, and so on until it completes first. After each, a
/// statement and a start on the same single connection must be committed and visible to others.
/// Each call gets a number of its own, from 1 to at most [`CALLS`]. There are several such rounds,
/// because a call to a database that answers early has nothing to wait for, and so no place to be
/// dropped.
async fn dropped_everywhere<T>(
    database: &Database,
    store: &Store,
    mut call: impl AsyncFnMut(u32) -> Result<T, StoreError>,
) {
    let mut probe = Start::of(PROBE.fetch_add(1, Ordering::Relaxed))
        .search(store, point(1))
        .await
        .run_id;
    let (mut polls, mut dropped) = (1, 0);
    for number in 1..=CALLS {
        if let Some(done) = dropped_after(polls, call(number)).await {
            assert!(done.is_ok(), "{:?}", done.err());
            polls = 1;
            continue;
        }
        // A single statement first, because in a transaction that was left open it would not be
        // committed.
        store.release_run(probe).await.unwrap();
        assert!(is_released(database, probe).await, "after {polls} polls");
        probe = Start::of(PROBE.fetch_add(1, Ordering::Relaxed))
            .search(store, point(1))
            .await
            .run_id;
        let committed = database.number("select max(id) from runs").await;
        assert_eq!(committed, probe, "after {polls} polls");
        polls += 1;
        dropped += 1;
    }
    assert!(dropped >= 5, "only {dropped} of {CALLS} calls were dropped");
    nothing_is_open(database).await;
}

#[tokio::test]
async fn a_start_can_be_dropped_anywhere() {
    let database = Database::new().await;
    let store = database.store(1);
    dropped_everywhere(&database, &store, async |job_id| {
        Start::of(job_id)
            .ask(&store, |_| decision(Phase::Search, Role::Search, point(2)))
            .await
    })
    .await;
    // A dropped start was stored or not; when it is repeated it exists once.
    for job_id in 1..=CALLS {
        Start::of(job_id).search(&store, point(3)).await;
    }
    let started = "select count(*) from runs where job_id <= 60";
    assert_eq!(database.number(started).await, i64::from(CALLS));
}

#[tokio::test]
async fn a_finish_can_be_dropped_anywhere_and_delivered_again() {
    let database = Database::new().await;
    let store = database.store(1);
    // The even jobs were never started.
    for job_id in (1..=CALLS).step_by(2) {
        Start::of(job_id).search(&store, point(2)).await;
    }
    dropped_everywhere(&database, &store, async |job_id| {
        Report::of(job_id).deliver(&store).await
    })
    .await;
    for job_id in 1..=CALLS {
        Report::of(job_id).deliver(&store).await.unwrap();
    }
    let once = "select count(*) from runs r where job_id <= 60 and elapsed = 10
                    and (select count(*) from reports p where p.run_id = r.id) = 1";
    assert_eq!(database.number(once).await, i64::from(CALLS));
}

#[tokio::test]
async fn a_verdict_can_be_dropped_anywhere_and_counts_once() {
    let database = Database::new().await;
    let store = database.store(1);
    let mut run_ids = Vec::new();
    for job_id in 1..=CALLS {
        run_ids.push(launch(&store, job_id, point(2), 5.0).await);
    }
    let verdict = counted(point(2));
    dropped_everywhere(&database, &store, async |place| {
        store
            .judge_run(run_ids[place as usize - 1], 2, &verdict)
            .await
    })
    .await;
    for run_id in &run_ids {
        store.judge_run(*run_id, 2, &verdict).await.unwrap();
    }
    let cached = "select t.count * 1000 + e.total from tested t join epochs e on e.id = t.epoch_id";
    assert_eq!(database.number(cached).await, 60 * 1000 + 60);
}

#[tokio::test]
async fn what_an_admin_does_can_be_dropped_anywhere() {
    let database = Database::new().await;
    let store = database.store(1);
    Start::of(1).search(&store, point(2)).await;
    let study_id = database.number("select id from studies").await;
    let audit = by(0, "a test");
    dropped_everywhere(&database, &store, async |_| {
        store.pin(study_id, &point(3), None, audit).await
    })
    .await;
    dropped_everywhere(&database, &store, async |_| {
        store.reset(study_id, audit).await
    })
    .await;
    // Each change that was committed has its line.
    let resets = "select (select count(*) from epochs) - 1
                             - (select count(*) from audit where action = 'reset')";
    assert_eq!(database.number(resets).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_deadlines_at_once_do_not_wear_out_the_pool() {
    let database = Database::new().await;
    let store = database.store(4);
    let mut random = Random::new(20_200_602);
    let mut calls = tokio::task::JoinSet::new();
    for job_id in 1..=300 {
        let (store, polls) = (store.clone(), random.below(40) as usize);
        let wait = Duration::from_millis(u64::from(random.below(20)));
        calls.spawn(async move {
            let start = Start::of(job_id);
            let call = start.try_search(&store, point(1));
            // The pool and the study are crowded, so an error of its own is acceptable here.
            let _ = if polls % 2 == 0 {
                dropped_after(polls, call).await
            } else {
                tokio::time::timeout(wait, call).await.ok()
            };
        });
    }
    calls.join_all().await;
    nothing_is_open(&database).await;

    // All four connections still work, at the same time.
    let mut starting = tokio::task::JoinSet::new();
    for job_id in 1001..=1032 {
        let store = store.clone();
        starting.spawn(async move { Start::of(job_id).search(&store, point(1)).await.run_id });
    }
    assert_eq!(starting.join_all().await.len(), 32);
    let committed = "select count(*) from runs where job_id > 1000";
    assert_eq!(database.number(committed).await, 32);
}
