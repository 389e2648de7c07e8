//! Migration of a database of the first release.

use io_autotune_model::{Parametrization, Tally, Tested};
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{Connection, PgConnection};

use crate::support::{CLUSTER, Database, START_EVERY_HOUR, Start, point, space, started, study};

const FIRST: &str = include_str!("../../../../migrations/0001_initial.sql");
const SECOND: &str = include_str!("../../../../migrations/0002_truth.sql");
const THIRD: &str = include_str!("../../../../migrations/0003_measures.sql");
const FIFTH: &str = include_str!("../../../../migrations/0005_drift.sql");
const SIXTH: &str = include_str!("../../../../migrations/0006_room.sql");
const SEVENTH: &str = include_str!("../../../../migrations/0007_taken_runs.sql");
const EIGHTH: &str = include_str!("../../../../migrations/0008_unmerged.sql");
const NINTH: &str = include_str!("../../../../migrations/0009_recurrences.sql");
const TENTH: &str = include_str!("../../../../migrations/0010_heeds.sql");
const ELEVENTH: &str = include_str!("../../../../migrations/0011_assessments.sql");
const TWELFTH: &str = include_str!("../../../../migrations/0012_starts.sql");
const THIRTEENTH: &str = include_str!("../../../../migrations/0013_names.sql");
const FIFTEENTH: &str = include_str!("../../../../migrations/0015_listed.sql");
const SEVENTEENTH: &str = include_str!("../../../../migrations/0017_where_jobs_were.sql");
const NINETEENTH: &str = include_str!("../../../../migrations/0019_directives.sql");
const TWENTY_FIRST: &str = include_str!("../../../../migrations/0021_orders.sql");
const TWENTY_FOURTH: &str = include_str!("../../../../migrations/0024_retention.sql");
const TWENTY_SIXTH: &str = include_str!("../../../../migrations/0026_sharing.sql");
const TWENTY_EIGHTH: &str = include_str!("../../../../migrations/0028_sources.sql");
const THIRTIETH: &str = include_str!("../../../../migrations/0030_clusters.sql");
const THIRTY_FIRST: &str = include_str!("../../../../migrations/0031_proofs.sql");
const THIRTY_THIRD: &str = include_str!("../../../../migrations/0033_others.sql");
const FORTY_SECOND: &str = include_str!("../../../../migrations/0042_site_defaults.sql");

async fn apply(connection: &mut PgConnection, migration: &'static str) {
    let mut transaction = connection.begin().await.unwrap();
    sqlx::raw_sql(migration)
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

/// A run as the first release left it.
struct Old {
    launched: Parametrization,
    applied: Option<Value>,
    elapsed: Option<f64>,
    wait_status: Option<i32>,
    outcome: Option<&'static str>,
    state: &'static str,
    verdict: Option<&'static str>,
    /// The run's place among the judged runs.
    ordinal: Option<i64>,
}

impl Old {
    fn counted(applied: Value, elapsed: f64, ordinal: i64) -> Self {
        Self {
            launched: point(4),
            applied: Some(applied),
            elapsed: Some(elapsed),
            wait_status: Some(0),
            outcome: Some("COMPLETED"),
            state: "counted",
            verdict: Some("completed"),
            ordinal: Some(ordinal),
        }
    }

    fn ended(outcome: &'static str, wait_status: i32, verdict: &'static str, ordinal: i64) -> Self {
        Self {
            wait_status: Some(wait_status),
            outcome: Some(outcome),
            state: "not_counted",
            verdict: Some(verdict),
            ..Self::counted(json!({ "kind": "default" }), 1.0, ordinal)
        }
    }

    async fn insert(&self, connection: &mut PgConnection, job_id: i64) {
        sqlx::query(
            "insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                 parametrization, reason, suggestion, delivery, finished_at, elapsed, wait_status, applied, outcome,
                 outcome_at, state, verdict, judged_at, judged_ordinal)
             values (1, $1, $2, 0, 1000, 'n1', '{}', 'search', 'search', $3, 'a reason', '{}',
                 '{\"files\": [], \"watch\": []}', case when $4::jsonb is not null then now() end, $5, $6, $4, $7,
                 case when $7 is not null then now() end, $8, $9, case when $10 is not null then now() end, $10)",
        )
        .bind(CLUSTER)
        .bind(job_id)
        .bind(Json(&self.launched))
        .bind(&self.applied)
        .bind(self.elapsed)
        .bind(self.wait_status)
        .bind(self.outcome)
        .bind(self.state)
        .bind(self.verdict)
        .bind(self.ordinal)
        .execute(connection)
        .await
        .unwrap();
    }
}

/// A row of `tested` as the first release wrote it.
async fn cache(connection: &mut PgConnection, tested: &Tested) {
    sqlx::query(
        "insert into tested (epoch_id, key, parametrization, count, mean, m2, log_mean, log_m2, recent, failed,
                             first_run)
         values (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(tested.parametrization.key())
    .bind(Json(&tested.parametrization))
    .bind(i64::try_from(tested.elapsed.count).unwrap())
    .bind(tested.elapsed.mean)
    .bind(tested.elapsed.m2)
    .bind(tested.log_elapsed.mean)
    .bind(tested.log_elapsed.m2)
    .bind(Json(&tested.recent))
    .bind(i64::try_from(tested.failed).unwrap())
    .bind(tested.first_ordinal)
    .execute(connection)
    .await
    .unwrap();
}

#[tokio::test]
async fn judged_runs_of_the_first_release_keep_their_effect_and_the_caches_are_their_sum() {
    let database = Database::empty().await;
    let mut connection = database.connect().await;
    apply(&mut connection, FIRST).await;
    sqlx::query("insert into applications (owner_uid, name) values (1000, 'solver')")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query(
            "insert into studies (application_id, accelerator, context, context_key) values (1, 'romio', '{}', '{}')",
        )
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query(
        "insert into epochs (study_id, ordinal, takes, space, seed, opened_why, explored, total)
             values (1, 1, 'nothing', $1, 7, 'first run', 8, 8)",
    )
    .bind(Json(&space()))
    .execute(&mut connection)
    .await
    .unwrap();

    let default = json!({ "kind": "default" });
    let fourth = json!({ "kind": "parametrization", "parametrization": point(4) });
    let not_reported = "Slurm says FAILED, and no node reported the run";
    let step = "Slurm says COMPLETED, but a step ended with wait status 256";
    let nameless = "the job's name says nothing about the application";
    let runs = [
        // It was judged after the run that started after it.
        Old::counted(fourth.clone(), 10.0 / 3.0, 2),
        Old::counted(fourth.clone(), 20.0 / 3.0, 1),
        Old::counted(default, 7.0, 3),
        Old::ended("TIMEOUT", 0, "Slurm says TIMEOUT", 4),
        Old::ended("CANCELLED", 0, "Slurm says CANCELLED", 5),
        Old::ended("COMPLETED", 256, step, 6),
        Old::ended("COMPLETED", 256, nameless, 7),
        Old {
            applied: None,
            elapsed: None,
            wait_status: None,
            ..Old::ended("FAILED", 0, not_reported, 8)
        },
        // One is reported and not judged; another is in flight.
        Old {
            state: "in_flight",
            verdict: None,
            ordinal: None,
            ..Old::counted(fourth.clone(), 1.0, 0)
        },
        Old {
            applied: None,
            elapsed: None,
            wait_status: None,
            outcome: None,
            state: "in_flight",
            verdict: None,
            ordinal: None,
            ..Old::counted(fourth, 1.0, 0)
        },
    ];
    for (job_id, run) in (1..).zip(&runs) {
        run.insert(&mut connection, job_id).await;
    }
    let mut launched = Tested::new(point(4), 2);
    launched.record(2, 20.0 / 3.0).unwrap();
    launched.record(1, 10.0 / 3.0).unwrap();
    launched.record_failure(4);
    launched.record_failure(6);
    let mut of_default = Tested::new(point(0), 3);
    of_default.record(3, 7.0).unwrap();
    for tested in [&launched, &of_default] {
        cache(&mut connection, tested).await;
    }

    apply(&mut connection, SECOND).await;
    apply(&mut connection, THIRD).await;
    apply(&mut connection, FIFTH).await;
    apply(&mut connection, SIXTH).await;
    apply(&mut connection, SEVENTH).await;
    apply(&mut connection, EIGHTH).await;
    apply(&mut connection, NINTH).await;
    apply(&mut connection, TENTH).await;
    apply(&mut connection, START_EVERY_HOUR).await;
    let (tables, _views) = ELEVENTH.split_once("create view").unwrap();
    apply(&mut connection, tables).await;
    apply(&mut connection, TWELFTH).await;
    apply(&mut connection, THIRTEENTH).await;
    apply(&mut connection, FIFTEENTH).await;
    apply(&mut connection, SEVENTEENTH).await;
    apply(&mut connection, NINETEENTH).await;
    let (tables, _views) = TWENTY_FIRST
        .split_once("create or replace view report")
        .unwrap();
    apply(&mut connection, tables).await;
    apply(&mut connection, TWENTY_FOURTH).await;
    for migration in [TWENTY_SIXTH, TWENTY_EIGHTH] {
        let (tables, _rights) = migration.split_once("call narrow_rights").unwrap();
        apply(&mut connection, tables).await;
    }
    let (tables, _views) = THIRTIETH
        .split_once("create or replace view report")
        .unwrap();
    apply(&mut connection, tables).await;
    apply(&mut connection, THIRTY_FIRST).await;
    apply(&mut connection, THIRTY_THIRD).await;
    // Of this one the view alone: the rest is of tables that the test does without.
    let (_, from_view) =
        FORTY_SECOND.split_at(FORTY_SECOND.find("create or replace view").unwrap());
    let (view, _rest) = from_view.split_once("-- The setting that").unwrap();
    apply(&mut connection, view).await;
    for tested in [&mut launched, &mut of_default] {
        for run in &mut tested.recent {
            assert_eq!(run.started, None);
            run.started = Some(started(run.ordinal));
        }
    }
    let store = database.store(1);
    assert_eq!(store.check_caches().await.unwrap(), []);
    let state = store.study_state(1).await.unwrap();
    assert_eq!(state.history.tested, [launched, of_default]);
    let tally = Tally {
        explored: 8,
        total: 8,
        ..Tally::default()
    };
    assert_eq!((state.history.tally, state.judged), (tally, 8));
    let effects: Vec<String> = sqlx::query_scalar("select effect from judgements order by run_id")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(
        effects,
        [
            "sample", "sample", "sample", "failure", "nothing", "failure", "nothing", "nothing"
        ]
    );
    // Only runs that were not judged wait for it.
    let jobs = async |unheard| -> Vec<u32> {
        let runs = store
            .awaited_runs(CLUSTER, unheard, 10, &[])
            .await
            .unwrap()
            .runs;
        runs.iter().map(|run| run.job.job_id).collect()
    };
    assert_eq!(jobs(false).await, [9]);
    assert_eq!(jobs(true).await, [9, 10]);
    connection.close().await.unwrap();
}

const FULL_NAMES: &str = include_str!("../../../../migrations/0038_full_names.sql");

#[tokio::test]
async fn an_old_name_goes_on_for_the_one_job_that_had_it() {
    let database = Database::new().await;
    let store = database.store(1);
    let named = |job_name: &str| json!({ "app": "?", "job_name": job_name, "mode": "tune" });
    let by_rule = |job_name: &str| json!({ "job_name": job_name, "rule": "nextflow" });
    let given = || json!({ "app": "?", "mode": "tune" });
    let runs = [
        // The name of one job alone, some of whose runs came from a plugin that sent no name.
        ("calc______", named("calc_моде")),
        ("calc______", given()),
        ("calc______", named("calc_моде")),
        // One name of two jobs, and one of a job together with another that is called as the
        // application is.
        ("calc____", named("calc_мо")),
        ("calc____", named("calc_фи")),
        ("a_b", named("a b")),
        ("a_b", named("a_b")),
        // An ASCII name, one that a user gave, and one that a rule made.
        ("ice_sheet", named("ice_sheet")),
        ("my_own", given()),
        ("nf-A_B", by_rule("nf-A$B_(1)")),
    ];
    for (job_id, (application, request)) in (1..).zip(runs) {
        let start = Start {
            study: study(1000, application),
            request,
            ..Start::of(job_id)
        };
        start.search(&store, point(0)).await;
    }
    let (_columns, rest) = FULL_NAMES.split_once("update applications").unwrap();
    let (backfill, _views) = rest.split_once("create or replace view").unwrap();
    let backfill = format!("update applications{backfill}");
    for _ in 0..2 {
        database.execute(&backfill).await;
        let known = database
            .text("select string_agg(name || '=' || full_name, ',') from applications where full_name is not null")
            .await;
        assert_eq!(known, "calc______=calc_моде");
    }
    let called = store
        .applications_called(Some(1000), "calc_~0123456789", "calc_моде")
        .await
        .unwrap();
    assert_eq!(called.len(), 1);
    assert_eq!(called[0].name, "calc______");
    let nobodys = store.applications_called(Some(1001), "calc______", "calc_моде");
    assert_eq!(nobodys.await.unwrap(), []);
}
