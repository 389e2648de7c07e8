//! A database that is away for a moment, or read-only after a fail-over.

use io_autotune_protocol::StartAnswer;
use io_autotune_test_database::Database;
use serde_json::json;
use tokio::runtime::Builder;

use super::*;

/// Makes all sessions but its own read-only, or no longer, as a fail-over does before the replica
/// is promoted (SQLSTATE 25006), and ends those that are open.
async fn set_read_only(database: &Database, to: &str) {
    let statements = format!(
        "begin read write;
         do $$ begin
             execute format('alter database %I set default_transaction_read_only = {to}', current_database());
         end $$;
         commit;
         select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()"
    );
    database.execute(&statements).await;
}

/// Makes a service's database read-only, and lets the nodes' door find that its open sessions have
/// ended.
async fn fails_over(service: &TestService) {
    set_read_only(&service.database, "on").await;
    while service.store.now().await.is_err() {}
}

const RETRIED: &str = "the database is asked again";

/// Makes the database writable again just before the service asks it for the second time.
fn ends_before_the_second_attempt(log: &Log, service: &TestService) {
    let database = service.database.clone();
    log.at(RETRIED, move || {
        // A retry begins within a time, of which this takes nothing.
        tokio::time::pause();
        let ending = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(set_read_only(&database, "off"));
        });
        ending.join().unwrap();
        tokio::time::resume();
    });
}

/// Returns true if the service has asked the database again.
fn has_retried(log: &Log) -> bool {
    log.read().iter().any(|line| line["message"] == RETRIED)
}

#[tokio::test]
async fn a_start_outlasts_a_fail_over() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    fails_over(&service).await;
    let log = Log::listen();
    ends_before_the_second_attempt(&log, &service);
    let answer: StartAnswer = job.try_start(&service).await.read();
    assert!(has_retried(&log));
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        1
    );
    assert_eq!(job.start(&service).await.run_id, answer.run_id);
}

#[tokio::test]
async fn a_report_outlasts_a_fail_over_and_is_stored_once() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let report = job.reports(Some(&started), 5.0);
    fails_over(&service).await;
    let log = Log::listen();
    ends_before_the_second_attempt(&log, &service);
    let told = job.finish(&service, &report).await;
    assert!(has_retried(&log));
    assert_eq!((told.run_id, told.duplicate), (started.run_id, false));
    assert_eq!(
        service
            .database
            .number("select count(*) from reports")
            .await,
        1
    );
}

/// A node then runs its job with the default and keeps the report, and a person gets an error that
/// asks to try later.
#[tokio::test]
async fn a_database_that_stays_read_only_is_an_outage_and_what_is_read_is_told() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let report = job.reports(Some(&started), 5.0);
    let study = service.study_id("ocean").await;
    fails_over(&service).await;
    let reset = format!("/v1/studies/{study}/reset");
    let why = json!({"why": "a test"});
    let told = "the service's database takes no writes now";
    // Those of the users' door find out for themselves.
    service.user(ALICE).get("/v1/runs").await;
    for answer in [
        service.job(ALICE, "app=ocean").try_start(&service).await,
        service.node().post("/v1/runs/finish", &report).await,
        service.user(ALICE).post(&reset, &why).await,
    ] {
        assert_eq!(answer.refused(503, "database"), told);
    }
    let runs = service.user(ALICE).get("/v1/runs").await.ok();
    assert_eq!(runs[0]["run_id"], started.run_id);
    set_read_only(&service.database, "off").await;
    while service.store.now().await.is_err() {}
    service.user(ALICE).get("/v1/runs").await;
    // Nothing was done in part: the same request succeeds now.
    service.user(ALICE).post(&reset, &why).await.ok();
    let told = job.finish(&service, &report).await;
    assert_eq!((told.run_id, told.duplicate), (started.run_id, false));
    assert_eq!(service.study("ocean").await["epoch"], 2);
}
