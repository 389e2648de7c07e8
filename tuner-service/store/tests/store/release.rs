//! A database of 0.1.0, with the runs of its `make demo`, is migrated and goes on.

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Judged, StudyFilter};
use sqlx::Connection;

use crate::support::{Database, Report, Start, counted, decision, not_counted, say};

/// What pg_dump wrote of it.
const RELEASE: &str = include_str!("release-0.1.0.sql");

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_0_1_0_goes_on_with_its_runs() {
    let database = Database::empty().await;
    let mut connection = database.connect().await;
    sqlx::raw_sql(RELEASE)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let store = database.store(4);
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(store.check_caches().await.unwrap(), []);

    let studies = store.studies(&StudyFilter::default()).await.unwrap();
    let [study] = &studies[..] else {
        panic!("the demo has one study")
    };
    assert_eq!(study.counted, 15);
    let before = store.study_state(study.study_id).await.unwrap();
    assert_eq!(before.history.tally.total, 15);
    assert_eq!(before.history.tested.len(), 12);
    // What its suggestions were made from can be had again.
    let again = store
        .history_at(before.epoch_id, before.judged)
        .await
        .unwrap();
    assert_eq!(again, *before.history);
    // Its verdicts are older than assessments.
    assert_eq!(store.unassessed(10).await.unwrap().len(), 1);

    // Another application's run, and one more verdict on a run of before.
    let given = before.space.default();
    let mut start = Start::of(100);
    start.space = before.space.as_ref().clone();
    let started = start
        .ask(&store, |_| {
            decision(Phase::Baseline, Role::Baseline, given.clone())
        })
        .await
        .unwrap();
    let mut report = Report::of(100);
    report.applied = Some(given.clone());
    report.deliver(&store).await.unwrap();
    say(&store, 100, "COMPLETED").await;
    let verdict = counted(given);
    let judged = store.judge_run(started.run_id, 2, &verdict).await.unwrap();
    assert_eq!(judged, Judged::First);
    let old = not_counted("the truth came late");
    let run_id = before.history.tested[0].recent[0].ordinal;
    assert_eq!(
        database.judge(&store, run_id, &old).await.unwrap(),
        Judged::Revised
    );
    assert_eq!(store.check_caches().await.unwrap(), []);
}
