//! Databases of earlier releases, with runs of their `make demo`, are migrated and continue to
//! work.

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Judged, StudyFilter};
use sqlx::Connection;

use crate::support::{Database, Report, Start, counted, decision, not_counted, say};

/// A database of a release as pg_dump wrote it, and the expected numbers of the demo's one study.
struct Release {
    dump: &'static str,
    counted: u32,
    tested: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_0_1_0_goes_on_with_its_runs() {
    let release = Release {
        dump: include_str!("release-0.1.0.sql"),
        counted: 15,
        tested: 12,
    };
    goes_on(&release).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_0_2_0_goes_on_with_its_runs() {
    let release = Release {
        dump: include_str!("release-0.2.0.sql"),
        counted: 37,
        tested: 29,
    };
    goes_on(&release).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_0_3_0_goes_on_with_its_runs() {
    let release = Release {
        dump: include_str!("release-0.3.0.sql"),
        counted: 30,
        tested: 18,
    };
    goes_on(&release).await;
}

async fn goes_on(release: &Release) {
    let database = Database::empty().await;
    let mut connection = database.connect().await;
    sqlx::raw_sql(release.dump)
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
    assert_eq!(study.counted, i64::from(release.counted));
    let before = store.study_state(study.study_id).await.unwrap();
    assert_eq!(before.history.tally.total, u64::from(release.counted));
    assert_eq!(before.history.tested.len(), release.tested);
    // The inputs of its suggestions can be recovered.
    let again = store
        .history_at(before.epoch_id, before.judged)
        .await
        .unwrap();
    assert_eq!(again, *before.history);
    // Its assessment is older than overviews, or than assessments.
    let unassessed = store.unassessed(10, &[], "test").await.unwrap();
    assert_eq!(unassessed, [study.study_id]);

    // Another application's run, and one more verdict on an old run.
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
