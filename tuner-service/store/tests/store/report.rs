//! The views that the nightly report reads, and the rights of its role, which reads nothing else.

use io_autotune_model::Outcome;
use io_autotune_store::Source;
use sqlx::{AssertSqlSafe, Connection, Executor, Row};

use crate::roles::{REFUSED, REPORT_ROLE, make};
use crate::support::{CLUSTER, Database, counted, launch, not_counted, point, word};

/// Attack (units): The nightly report's role reads and changes tables, and makes some.
/// Outcome: It reads the views of its schema and nothing else.
#[tokio::test]
async fn the_reports_role_reads_the_views_and_nothing_else() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = launch(&store, 1, point(4), 12.5).await;
    let charged = Outcome {
        account: Some("physics".into()),
        exit_code: Some("0:0".into()),
        ..word(1, "COMPLETED")
    };
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[charged])
        .await
        .unwrap();
    let verdicts = [not_counted("too early to say"), counted(point(4))];
    for verdict in &verdicts {
        database.judge(&store, run_id, verdict).await.unwrap();
    }
    let mut connection = database.connect().await;
    make(&mut connection, REPORT_ROLE).await;
    make(&mut connection, REPORT_ROLE).await;
    let later = "create view report.later as select 1 as one";
    connection.execute(later).await.unwrap();
    connection
        .execute(r#"set role "io-autotune-report""#)
        .await
        .unwrap();
    let judgements = sqlx::query(
        "select effect, latest, elapsed, nodes, account from report.judgements order by ordinal",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let latest: Vec<(String, bool)> = judgements
        .iter()
        .map(|row| (row.get("effect"), row.get("latest")))
        .collect();
    assert_eq!(
        latest,
        [("nothing".to_owned(), false), ("sample".to_owned(), true)]
    );
    let last = judgements.last().unwrap();
    assert_eq!(last.get::<f64, _>("elapsed"), 12.5);
    assert_eq!(last.get::<i32, _>("nodes"), 2);
    assert_eq!(last.get::<String, _>("account"), "physics");
    for view in ["report.studies", "report.epochs", "report.later"] {
        let rows = sqlx::query(AssertSqlSafe(format!("select * from {view}")))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        assert_eq!(rows.len(), 1, "{view}");
    }
    for statement in [
        "select * from runs",
        "select * from audit",
        "update runs set nodes = 1",
        "insert into audit default values",
        "select * from _sqlx_migrations",
        "create table report.mine ()",
        "create temporary table mine ()",
        "select lo_from_bytea(0, '\\x00')",
    ] {
        let error = connection.execute(statement).await.unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some(REFUSED), "{statement}: {error}");
    }
    connection.close().await.unwrap();
}
