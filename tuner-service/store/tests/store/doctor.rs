//! The queries of `doctor`, and their findings.

use std::time::Duration;

use io_autotune_store::StudyFilter;
use sqlx::Connection;

use crate::support::{Database, Start, counted, launch, point};

#[tokio::test]
async fn a_cache_that_is_not_what_its_judgements_add_up_to_is_found() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = launch(&store, 1, point(3), 1.0 / 3.0).await;
    let counted = counted(point(3));
    store.judge_run(run_id, 2, &counted).await.unwrap();
    assert_eq!(store.check_caches().await.unwrap(), []);

    let mut connection = database.connect().await;
    for (damage, repair, what) in [
        (
            "update tested set mean = mean * (1 + 1e-15)",
            "update tested set mean = 1.0::double precision / 3",
            "what is known of",
        ),
        (
            "update epochs set explored = 2",
            "update epochs set explored = 1",
            "tally",
        ),
        (
            "update epochs set judgements = 2",
            "update epochs set judgements = 1",
            "judgements",
        ),
        (
            "update runs set state = 'not_counted'",
            "update runs set state = 'counted'",
            "state",
        ),
        ("delete from tested", "select 1", "parametrizations"),
    ] {
        sqlx::query(damage).execute(&mut connection).await.unwrap();
        let faults = store.check_caches().await.unwrap();
        assert_eq!(faults.len(), 1, "{damage}");
        assert_eq!(faults[0].epoch, 1);
        assert!(faults[0].problem.contains(what), "{damage}: {faults:?}");
        sqlx::query(repair).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn runs_that_have_been_in_flight_for_long_are_stuck() {
    let database = Database::new().await;
    let store = database.store(2);
    for job_id in 1..=3 {
        Start::of(job_id).search(&store, point(job_id)).await;
    }
    let mut connection = database.connect().await;
    sqlx::query("update runs set started_at = now() - interval '2 days' where job_id <> 3")
        .execute(&mut connection)
        .await
        .unwrap();
    let day = Duration::from_secs(86_400);
    let stuck = store.stuck_runs(day, 10).await.unwrap();
    let jobs: Vec<_> = stuck.iter().map(|run| run.job.job_id).collect();
    assert_eq!(jobs, [1, 2]);
    assert!(stuck[0].age > 2.0 * 86_400.0 && !stuck[0].reported);
    assert_eq!(store.stuck_runs(day, 1).await.unwrap().len(), 1);
    assert_eq!(store.stuck_runs(3 * day, 10).await.unwrap().len(), 0);
    let version = "select max(version) from _sqlx_migrations";
    assert_eq!(
        store.schema_version().await.unwrap(),
        database.number(version).await
    );
    assert_eq!(store.unclaimed_outcomes().await.unwrap(), 0);
    let studies = store.studies(&StudyFilter::default()).await.unwrap();
    assert_eq!(studies[0].in_flight, 3);
}
