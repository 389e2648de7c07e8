//! Outcome records of Slurm: stored once, and joined to their runs, before the report or after it.

use std::time::Duration;

use io_autotune_model::Outcome;
use io_autotune_store::{AwaitedRun, JobKey, Recorded, Source, Store};
use jiff::Timestamp;
use sqlx::Connection;

use crate::support::{CLUSTER, Database, Report, Start, point, say, word};

/// The start of a run, by the database's clock.
async fn started_at(database: &Database, run_id: i64) -> Timestamp {
    let mut connection = database.connect().await;
    let query = "select (extract(epoch from started_at) * 1000000)::bigint from runs where id = $1";
    let micros: i64 = sqlx::query_scalar(query)
        .bind(run_id)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    Timestamp::from_microsecond(micros).unwrap()
}

/// A record of the job-completion script, which has an interval instead of a restart count.
fn interval(job_id: u32, state: &str, from: Timestamp, seconds: i64) -> Outcome {
    Outcome {
        restart_count: None,
        started_at: Some(from),
        ended_at: Some(from + jiff::SignedDuration::from_secs(seconds)),
        limit_seconds: Some(3600),
        ..word(job_id, state)
    }
}

async fn record(store: &Store, source: Source, words: &[Outcome]) -> Recorded {
    store.record_outcomes(source, CLUSTER, words).await.unwrap()
}

async fn awaited(store: &Store, job_id: u32, restart_count: u32) -> AwaitedRun {
    let key = JobKey {
        cluster: CLUSTER.into(),
        job_id,
        restart_count,
    };
    let runs = store
        .awaited_runs(CLUSTER, true, 100, &[])
        .await
        .unwrap()
        .runs;
    runs.into_iter().find(|run| run.job == key).unwrap()
}

#[tokio::test]
async fn whose_a_job_was_and_where_is_known_from_whichever_record_tells_it() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    let from = started_at(&database, run_id).await;
    let told = async || {
        let run = awaited(&store, 1, 0).await;
        (run.owner, run.node_list)
    };
    assert_eq!(told().await, (None, None));
    let nodes = Outcome {
        node_list: Some("n[1-2]".into()),
        ..interval(1, "COMPLETED", from, 10)
    };
    record(&store, Source::Jobcomp, &[nodes]).await;
    assert_eq!(told().await, (None, Some("n[1-2]".into())));
    let owner = Outcome {
        uid: Some(u32::MAX),
        ..interval(1, "COMPLETED", from, 10)
    };
    record(&store, Source::Sacct, &[owner]).await;
    assert_eq!(told().await, (Some(u32::MAX), Some("n[1-2]".into())));
}

#[tokio::test]
async fn a_word_is_stored_once_however_often_it_is_delivered() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    let from = started_at(&database, run_id).await;
    let words = [
        interval(1, "COMPLETED", from, 10),
        interval(2, "FAILED", from, 10),
        word(2, "FAILED"),
        interval(2, "FAILED", from, 10),
    ];
    let first = record(&store, Source::Jobcomp, &words).await;
    assert_eq!((first.stored, first.duplicates), (3, 1));
    let again = record(&store, Source::Jobcomp, &words).await;
    assert_eq!((again.stored, again.duplicates), (0, 4));
    // A record of another source is another record.
    let other = record(&store, Source::Sacct, &words[..1]).await;
    assert_eq!((other.stored, other.duplicates), (1, 0));
    let none = record(&store, Source::Sacct, &[]).await;
    assert_eq!((none.stored, none.duplicates), (0, 0));
    // Only the first of them was a change.
    assert_eq!(database.changes(run_id).await, 1);
    assert_eq!(store.unclaimed_outcomes().await.unwrap(), 2);
}

#[tokio::test]
async fn the_better_source_holds_and_what_changes_is_news() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    let from = started_at(&database, run_id).await;

    say(&store, 1, "REQUEUED").await;
    let run = awaited(&store, 1, 0).await;
    assert_eq!(run.outcome.as_deref(), Some("REQUEUED"));
    let mut squeue = word(1, "COMPLETED");
    squeue.suspended_seconds = Some(3);
    record(&store, Source::Squeue, &[squeue]).await;
    let run = awaited(&store, 1, 0).await;
    assert_eq!(run.outcome.as_deref(), Some("COMPLETED"));
    assert_eq!(
        (run.suspended, run.limit_seconds, run.changes),
        (true, None, 2)
    );

    // The same end from a better source: only the limit is new.
    record(
        &store,
        Source::Jobcomp,
        &[interval(1, "COMPLETED", from, 10)],
    )
    .await;
    let run = awaited(&store, 1, 0).await;
    assert_eq!(run.outcome_source, Some(Source::Jobcomp));
    assert_eq!((run.suspended, run.limit_seconds), (true, Some(3600)));
    assert_eq!(run.changes, 3);

    // A less reliable source changes nothing any more.
    record(&store, Source::Sacct, &[interval(1, "FAILED", from, 10)]).await;
    let run = awaited(&store, 1, 0).await;
    assert_eq!(
        (run.outcome.as_deref(), run.changes),
        (Some("COMPLETED"), 3)
    );
}

#[tokio::test]
async fn each_launch_of_a_requeued_job_gets_its_own_word() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = Start::of(1).search(&store, point(1)).await.run_id;
    let mut restarted = Start::of(1);
    restarted.job.restart_count = 1;
    let second = restarted.search(&store, point(2)).await.run_id;
    // The launches were a minute apart.
    let mut connection = database.connect().await;
    sqlx::query("update runs set started_at = started_at - interval '1 minute' where id = $1")
        .bind(first)
        .execute(&mut connection)
        .await
        .unwrap();
    let words = [
        interval(1, "REQUEUED", started_at(&database, first).await, 30),
        interval(1, "COMPLETED", started_at(&database, second).await, 30),
    ];
    record(&store, Source::Jobcomp, &words).await;
    let outcome = async |restart_count| awaited(&store, 1, restart_count).await.outcome;
    assert_eq!(outcome(0).await.as_deref(), Some("REQUEUED"));
    assert_eq!(outcome(1).await.as_deref(), Some("COMPLETED"));
}

#[tokio::test]
async fn a_word_that_meets_no_run_waits_for_one_and_not_for_ever() {
    let database = Database::new().await;
    let store = database.store(2);
    let now = Timestamp::from_second(
        database
            .number("select extract(epoch from now())::bigint")
            .await,
    )
    .unwrap();
    let from = now - jiff::SignedDuration::from_secs(100);
    record(
        &store,
        Source::Jobcomp,
        &[interval(7, "COMPLETED", from, 90)],
    )
    .await;
    record(
        &store,
        Source::Jobcomp,
        &[interval(8, "COMPLETED", from, 90)],
    )
    .await;
    assert_eq!(store.claim_outcomes(CLUSTER, &[]).await.unwrap().jobs, 0);
    assert_eq!(store.unclaimed_outcomes().await.unwrap(), 2);

    // The node could not reach the service before now.
    Report::of(7).deliver(&store).await.unwrap();
    assert_eq!(awaited(&store, 7, 0).await.outcome, None);
    assert_eq!(store.claim_outcomes("beta", &[]).await.unwrap().jobs, 0);
    assert_eq!(store.claim_outcomes(CLUSTER, &[]).await.unwrap().jobs, 1);
    let run = awaited(&store, 7, 0).await;
    assert_eq!(run.outcome.as_deref(), Some("COMPLETED"));
    assert_eq!(run.changes, 2);
    assert_eq!(store.claim_outcomes(CLUSTER, &[]).await.unwrap().jobs, 0);

    let forgotten = store.forget_unclaimed(Duration::from_secs(3600)).await;
    assert_eq!(forgotten.unwrap(), 0);
    let forgotten = store.forget_unclaimed(Duration::ZERO).await;
    assert_eq!(forgotten.unwrap(), 1);
    assert_eq!(database.number("select count(*) from outcomes").await, 1);
}

#[tokio::test]
async fn an_outcome_from_before_words_were_kept_stands_until_there_is_one() {
    let database = Database::new().await;
    let store = database.store(2);
    Start::of(1).search(&store, point(1)).await;
    let mut connection = database.connect().await;
    sqlx::query(
        "update runs set outcome = 'COMPLETED', outcome_source = 'squeue', outcome_at = now()",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    // A record of another launch.
    let mut other = word(1, "FAILED");
    other.restart_count = Some(1);
    record(&store, Source::Squeue, &[other]).await;
    let outcome = async || {
        let runs = store
            .awaited_runs(CLUSTER, true, 1, &[])
            .await
            .unwrap()
            .runs;
        runs[0].outcome.clone().unwrap()
    };
    assert_eq!(outcome().await, "COMPLETED");
    say(&store, 1, "NODE_FAIL").await;
    assert_eq!(outcome().await, "NODE_FAIL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_words_delivered_at_once_are_stored_once() {
    let database = Database::new().await;
    let store = database.store(8);
    let mut words = Vec::new();
    for job_id in 1..=50 {
        if job_id % 2 == 0 {
            Start::of(job_id).search(&store, point(1)).await;
        }
        words.push(word(job_id, "COMPLETED"));
    }
    let mut delivering = tokio::task::JoinSet::new();
    for copy in 0..8 {
        let (store, mut words) = (store.clone(), words.clone());
        words.rotate_left(copy * 5);
        delivering.spawn(async move { record(&store, Source::Jobcomp, &words).await.stored });
    }
    assert_eq!(delivering.join_all().await.iter().sum::<u64>(), 50);
    assert_eq!(store.unclaimed_outcomes().await.unwrap(), 25);
    let told = "select count(*) from runs where outcome = 'COMPLETED' and changes = 1";
    assert_eq!(database.number(told).await, 25);
}

#[tokio::test]
async fn the_latest_run_that_slurm_spoke_of_tells_the_time_limit() {
    let database = Database::new().await;
    let store = database.store(2);
    for job_id in 1..=4 {
        Start::of(job_id).search(&store, point(1)).await;
    }
    let study_id = database.number("select id from studies").await;
    let limit = async || store.study_state(study_id).await.unwrap().limit_seconds;
    let told = async |job_id, state, limit_seconds| {
        let words = [Outcome {
            limit_seconds,
            ..word(job_id, state)
        }];
        record(&store, Source::Squeue, &words).await;
    };
    assert_eq!(limit().await, None);
    told(2, "COMPLETED", Some(600)).await;
    assert_eq!(limit().await, Some(600));
    told(1, "COMPLETED", Some(60)).await;
    assert_eq!(limit().await, Some(600), "an earlier run says nothing");
    told(3, "REQUEUED", None).await;
    assert_eq!(limit().await, Some(600));
    told(4, "COMPLETED", None).await;
    assert_eq!(limit().await, None, "the latest has no limit");
}

#[tokio::test]
async fn a_run_is_over_once_slurms_word_has_been_known_for_a_while() {
    let database = Database::new().await;
    let store = database.store(2);
    let told = Start::of(1).search(&store, point(3)).await.run_id;
    let silent = Start::of(2).search(&store, point(4)).await.run_id;
    say(&store, 1, "COMPLETED").await;
    let runs = [silent, told, 404];
    let over = |seconds| store.over(&runs, Duration::from_secs(seconds));
    assert_eq!(over(0).await.unwrap(), [told]);
    assert_eq!(over(3600).await.unwrap(), [] as [i64; 0]);
}

#[tokio::test]
async fn that_a_job_was_listed_is_remembered() {
    let database = Database::new().await;
    let store = database.store(2);
    let runs = [1, 2, 3].map(Start::of);
    let mut run_ids = Vec::new();
    for run in runs {
        run_ids.push(run.search(&store, point(4)).await.run_id);
    }
    let listed = async || {
        let awaited = store
            .awaited_runs(CLUSTER, true, 10, &[])
            .await
            .unwrap()
            .runs;
        awaited.iter().map(|run| run.listed).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [false, false, false]);
    store.remember_listed(&run_ids[1..2]).await.unwrap();
    let first =
        "select (extract(epoch from listed_at) * 1000000)::bigint from runs where job_id = 2";
    let at = database.number(first).await;
    store.remember_listed(&run_ids[1..2]).await.unwrap();
    assert_eq!(database.number(first).await, at, "the first time holds");
    // A source that reports the end has listed the job.
    say(&store, 3, "COMPLETED").await;
    assert_eq!(listed().await, [false, true, true]);
}
