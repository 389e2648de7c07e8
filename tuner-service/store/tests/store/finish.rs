//! A finish is durable when it is acknowledged, and applies once.

use std::collections::BTreeMap;

use io_autotune_model::{LARGEST_MEASURE, Measure, Phase, Role};
use io_autotune_store::{AwaitedRun, RunFilter, RunRow, Store, StoreError};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{CLUSTER, Database, Report, Start, merge_reports, point, say};

async fn only_run(store: &Store) -> RunRow {
    let mut runs = store
        .runs(&RunFilter {
            limit: 2,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(runs.len(), 1);
    runs.pop().unwrap()
}

/// All measures that nodes collect, with numbers as small, as odd and as large as possible.
fn collected() -> BTreeMap<String, f64> {
    let values = [1e-6, 0.1 + 0.2, 83_900_653.0, LARGEST_MEASURE];
    let names = Measure::ALL.iter().map(|one| one.as_str().to_owned());
    names.zip(values.into_iter().cycle()).collect()
}

#[tokio::test]
async fn a_finish_that_arrives_again_changes_nothing() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(4)).await.run_id;
    let mut report = Report::of(1);
    report.applied = Some(point(4));
    report.measures = collected();
    let first = report.deliver(&store).await.unwrap();
    assert_eq!((first.run_id, first.duplicate), (run_id, false));
    let before = only_run(&store).await;
    assert_eq!(before.elapsed, Some(10.0));
    assert_eq!(before.measures, report.measures);
    assert_eq!(before.wait_status, Some(0));
    assert!(before.finished_at.unwrap() >= before.started_at);

    report.elapsed = Some(1.0);
    report.measures.clear();
    let second = report.deliver(&store).await.unwrap();
    assert_eq!((second.run_id, second.duplicate), (run_id, true));
    let after = only_run(&store).await;
    assert_eq!(after.elapsed, before.elapsed);
    assert_eq!(after.measures, before.measures);
    assert_eq!(after.finished_at, before.finished_at);
    assert_eq!(store.reports(run_id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_acknowledged_finish_is_there_for_another_connection() {
    let database = Database::new().await;
    let store = database.store(1);
    Start::of(1).search(&store, point(4)).await;
    Report::of(1).deliver(&store).await.unwrap();
    let query = "select count(*) from runs r join reports p on p.run_id = r.id
                     where r.elapsed = 10 and r.finished_at is not null and r.state = 'in_flight'";
    assert_eq!(database.number(query).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixteen_copies_of_a_finish_one_is_applied() {
    let database = Database::new().await;
    let store = database.store(16);
    Start::of(1).search(&store, point(4)).await;
    // The second job's start never arrived.
    for job_id in [1, 2] {
        let mut delivering = JoinSet::new();
        for copy in 0..16 {
            let store = store.clone();
            delivering.spawn(async move {
                let mut report = Report::of(job_id);
                report.elapsed = Some(10.0 + f64::from(copy));
                (report.deliver(&store).await.unwrap(), report.elapsed)
            });
        }
        let done = delivering.join_all().await;
        let applied: Vec<_> = done.iter().filter(|(done, _)| !done.duplicate).collect();
        assert_eq!(applied.len(), 1);
        let (finished, elapsed) = applied[0];
        assert!(done.iter().all(|(done, _)| done.run_id == finished.run_id));
        let runs = store
            .runs(&RunFilter {
                job_id: Some(job_id),
                limit: 10,
                ..RunFilter::default()
            })
            .await
            .unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].elapsed, *elapsed);
        assert_eq!(store.reports(finished.run_id).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_finish_without_a_start_is_an_observed_run_of_the_default() {
    let database = Database::new().await;
    let store = database.store(2);
    let finished = Report::of(7).deliver(&store).await.unwrap();
    assert!(!finished.duplicate);
    let run = only_run(&store).await;
    assert_eq!(run.run_id, finished.run_id);
    assert_eq!((run.role, run.phase), (Role::Observe, Phase::Baseline));
    assert_eq!(run.parametrization, point(0));
    assert_eq!(run.parametrization, run.space.default());
    assert_eq!((run.elapsed, run.state.as_str()), (Some(10.0), "in_flight"));
    assert_eq!((run.epoch, run.uid), (1, 1000));
    assert!(run.reason.contains("did not answer"), "{}", run.reason);

    // The late start, which the node had given up, arrives after all: it is answered that nothing
    // is applied.
    let late = Start::of(7)
        .ask(&store, |_| panic!("a decision for a run that has ended"))
        .await
        .unwrap();
    assert_eq!((late.run_id, late.role), (run.run_id, Role::Observe));
    assert_eq!(late.parametrization, point(0));
}

#[tokio::test]
async fn what_the_nodes_of_a_run_report_is_merged_together() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(4)).await.run_id;
    Report::of(1).deliver(&store).await.unwrap();
    let first = only_run(&store).await;
    let mut other = Report::of(1);
    other.applied = Some(point(9));
    let missing = async || {
        store
            .awaited_runs(CLUSTER, true, 1, &[])
            .await
            .unwrap()
            .runs[0]
            .clone()
    };
    for (node, elapsed, is_missing) in [("n2", 12.0, true), ("n3", 11.0, false)] {
        other.node = node.into();
        other.elapsed = Some(elapsed);
        let finished = other.deliver(&store).await.unwrap();
        assert_eq!((finished.run_id, finished.duplicate), (run_id, false));
        let run = missing().await;
        assert_eq!((run.dirty, run.elapsed), (true, None), "{node}");
        merge_reports(&store, run_id).await;
        let run = missing().await;
        assert_eq!(run.missing.is_some(), is_missing, "{node}");
        assert_eq!((run.dirty, run.elapsed), (false, Some(12.0)));
    }
    // Once the job's nodes are known, reports of other nodes are left out.
    say(&store, 1, "COMPLETED").await;
    assert!(missing().await.dirty);
    merge_reports(&store, run_id).await;
    let run = missing().await;
    assert_eq!((run.changes, run.epilog), (4, Some(json!({ "nodes": 3 }))));
    let after = only_run(&store).await;
    assert_eq!(after.measures["bytes_written"], 3.0 * 4096.0);
    assert_eq!(after.applied, first.applied);
    assert_eq!(after.finished_at, first.finished_at);
    assert_eq!(after.node, "n1");
    let reports = store.reports(run_id).await.unwrap();
    let nodes: Vec<_> = reports.iter().map(|report| &report["node"]).collect();
    assert_eq!(nodes, ["n1", "n2", "n3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_report_at_once_are_all_merged() {
    let database = Database::new().await;
    let store = database.store(16);
    Start::of(1).search(&store, point(4)).await;
    // The second job's start never arrived.
    for job_id in [1, 2] {
        let mut delivering = JoinSet::new();
        for node in 0..16 {
            let store = store.clone();
            delivering.spawn(async move {
                let mut report = Report::of(job_id);
                report.node = format!("node{node}");
                report.elapsed = Some(10.0 + f64::from(node));
                report.deliver(&store).await.unwrap()
            });
        }
        let done = delivering.join_all().await;
        assert!(done.iter().all(|done| !done.duplicate));
        let run = async || {
            let runs = store
                .awaited_runs(CLUSTER, true, 10, &[])
                .await
                .unwrap()
                .runs;
            let of_job = |run: &AwaitedRun| run.job.job_id == job_id;
            runs.into_iter().find(of_job).unwrap()
        };
        let dirty = run().await;
        assert_eq!((dirty.dirty, dirty.elapsed), (true, None));
        assert_eq!(dirty.epilog, Some(json!({ "nodes": 1 })), "the first's");
        merge_reports(&store, dirty.run_id).await;
        let run = run().await;
        assert_eq!((run.dirty, run.elapsed), (false, Some(25.0)));
        assert_eq!(run.epilog, Some(json!({ "nodes": 16 })));
        assert_eq!(run.changes, 16);
    }
}

#[tokio::test]
async fn an_elapsed_that_is_no_positive_number_is_refused_and_leaves_nothing() {
    let database = Database::new().await;
    let store = database.store(1);
    let run_id = Start::of(1).search(&store, point(4)).await.run_id;
    for elapsed in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut report = Report::of(1);
        report.elapsed = Some(elapsed);
        let error = report.deliver(&store).await.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Database {
                    transaction: "finish_run",
                    ..
                }
            ),
            "{elapsed}: {error:?}"
        );
        assert!(store.reports(run_id).await.unwrap().is_empty());
        assert_eq!(only_run(&store).await.finished_at, None);
    }
    // The same node's correct report is still accepted.
    assert!(!Report::of(1).deliver(&store).await.unwrap().duplicate);
    assert_eq!(only_run(&store).await.elapsed, Some(10.0));
}

#[tokio::test]
async fn a_job_without_a_step_finishes_without_elapsed() {
    let database = Database::new().await;
    let store = database.store(1);
    Start::of(1).search(&store, point(4)).await;
    let mut report = Report::of(1);
    report.elapsed = None;
    report.deliver(&store).await.unwrap();
    let run = only_run(&store).await;
    assert_eq!((run.elapsed, run.finished_at.is_some()), (None, true));
}
