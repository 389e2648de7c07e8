//! A verdict enters an epoch's caches once, and only where it fits the run.

use io_autotune_engine::{Parametrization, Phase, Role, Tally};
use io_autotune_store::{Audit, StoreError, Verdict};
use tokio::task::JoinSet;

use crate::support::{CLUSTER, Report, Start, decision, in_database, launch, point};

fn counted(parametrization: Parametrization) -> Verdict {
    Verdict::Counted {
        parametrization,
        why: "Slurm says COMPLETED".into(),
    }
}

fn not_counted(failed: bool) -> Verdict {
    Verdict::NotCounted {
        why: "Slurm says otherwise".into(),
        failed,
    }
}

/// PostgreSQL's `check_violation`.
fn refused_by_the_schema(error: &StoreError) -> bool {
    matches!(error, StoreError::Database { source: sqlx::Error::Database(source), .. }
        if source.code().as_deref() == Some("23514"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_verdicts_one_counts() {
    in_database(|database| async move {
        let store = database.store(8);
        let run_id = launch(&store, 1, point(4), 12.5).await;
        let study_id = database.number("select id from studies").await;
        let mut judging = JoinSet::new();
        for _ in 0..8 {
            let store = store.clone();
            judging
                .spawn(async move { store.judge_run(run_id, &counted(point(4))).await.unwrap() });
        }
        let news = judging.join_all().await;
        assert_eq!(news.iter().filter(|news| **news).count(), 1);

        let state = store.study_state(study_id).await.unwrap();
        assert_eq!(state.history.tested.len(), 1);
        let tested = &state.history.tested[0];
        assert_eq!(tested.parametrization, point(4));
        assert_eq!((tested.elapsed.count, tested.elapsed.mean), (1, 12.5));
        assert_eq!(
            (tested.log_elapsed.count, tested.log_elapsed.mean),
            (1, 12.5_f64.ln())
        );
        assert_eq!((tested.first_ordinal, tested.failed), (run_id, 0));
        assert_eq!(
            (tested.recent[0].ordinal, tested.recent[0].elapsed),
            (run_id, 12.5)
        );
        assert_eq!(
            (state.history.tally.explored, state.history.tally.total),
            (1, 1)
        );
        assert!(state.pending.is_empty());

        // Not even a contradiction changes a verdict.
        assert!(!store.judge_run(run_id, &not_counted(true)).await.unwrap());
        assert_eq!(
            store.study_state(study_id).await.unwrap().history,
            state.history
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_counts_for_what_was_applied_and_fails_under_what_it_was_launched_with() {
    in_database(|database| async move {
        let store = database.store(2);
        let good = launch(&store, 1, point(4), 12.5).await;
        let failed = launch(&store, 2, point(5), 1.0).await;
        let lost = launch(&store, 3, point(6), 1.0).await;
        assert!(store.judge_run(good, &counted(point(9))).await.unwrap());
        assert!(store.judge_run(failed, &not_counted(true)).await.unwrap());
        assert!(store.judge_run(lost, &not_counted(false)).await.unwrap());
        let study_id = database.number("select id from studies").await;
        let history = store.study_state(study_id).await.unwrap().history;
        let tested: Vec<_> = history
            .tested
            .iter()
            .map(|tested| (&tested.parametrization, tested.elapsed.count, tested.failed))
            .collect();
        assert_eq!(tested, [(&point(9), 1, 0), (&point(5), 0, 1)]);
        let tally = Tally {
            explored: 3,
            total: 3,
            ..Tally::default()
        };
        assert_eq!(history.tally, tally);
    })
    .await;
}

#[tokio::test]
async fn the_tally_knows_every_role() {
    in_database(|database| async move {
        let store = database.store(2);
        let mut job_id = 0;
        for phase in Phase::ALL {
            for role in Role::ALL {
                job_id += 1;
                let run = Start::of(job_id)
                    .ask(&store, |_| decision(*phase, *role, point(1)))
                    .await
                    .unwrap();
                assert!(
                    store
                        .judge_run(run.run_id, &not_counted(false))
                        .await
                        .unwrap()
                );
            }
        }
        let study_id = database.number("select id from studies").await;
        let tally = store.study_state(study_id).await.unwrap().history.tally;
        let expected = Tally {
            baseline: 4,
            explored: 8,
            controls: 3,
            settled: 4,
            settled_controls: 1,
            total: 32,
        };
        assert_eq!(tally, expected);
    })
    .await;
}

#[tokio::test]
async fn the_schema_refuses_to_count_a_run_that_is_not_known_to_have_completed() {
    in_database(|database| async move {
        let store = database.store(1);
        let study_id = {
            Start::of(1).search(&store, point(1)).await;
            database.number("select id from studies").await
        };
        let run_id = database.number("select id from runs").await;
        let untouched = async || {
            let state = store.study_state(study_id).await.unwrap();
            assert_eq!(state.history, Default::default());
            assert_eq!(state.pending.len(), 1);
        };
        // No report and no outcome; then no outcome; then the wrong outcome; then all that is needed.
        let error = store
            .judge_run(run_id, &counted(point(1)))
            .await
            .unwrap_err();
        assert!(refused_by_the_schema(&error), "{error:?}");
        untouched().await;
        Report::of(1).deliver(&store).await.unwrap();
        let error = store
            .judge_run(run_id, &counted(point(1)))
            .await
            .unwrap_err();
        assert!(refused_by_the_schema(&error), "{error:?}");
        untouched().await;
        for outcome in [
            "TIMEOUT",
            "FAILED",
            "CANCELLED",
            "OUT_OF_MEMORY",
            "completed",
            "",
        ] {
            store.record_outcome(run_id, outcome).await.unwrap();
            let error = store
                .judge_run(run_id, &counted(point(1)))
                .await
                .unwrap_err();
            assert!(refused_by_the_schema(&error), "{outcome}: {error:?}");
            untouched().await;
        }
        store.record_outcome(run_id, "COMPLETED").await.unwrap();
        assert!(store.judge_run(run_id, &counted(point(1))).await.unwrap());
        // What has counted stays COMPLETED.
        let error = store.record_outcome(run_id, "FAILED").await.unwrap_err();
        assert!(refused_by_the_schema(&error), "{error:?}");
        assert_eq!(
            database
                .number("select count(*) from runs where outcome = 'COMPLETED'")
                .await,
            1
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_without_elapsed_cannot_count() {
    in_database(|database| async move {
        let store = database.store(1);
        let run_id = Start::of(1).search(&store, point(1)).await.run_id;
        let mut report = Report::of(1);
        report.elapsed = None;
        report.deliver(&store).await.unwrap();
        store.record_outcome(run_id, "COMPLETED").await.unwrap();
        let error = store
            .judge_run(run_id, &counted(point(1)))
            .await
            .unwrap_err();
        assert!(refused_by_the_schema(&error), "{error:?}");
        assert!(store.judge_run(run_id, &not_counted(false)).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn after_a_reset_a_late_finish_counts_in_its_own_epoch_only() {
    in_database(|database| async move {
        let store = database.store(2);
        let run_id = Start::of(1).search(&store, point(3)).await.run_id;
        let study_id = database.number("select id from studies").await;
        let first = store.study_state(study_id).await.unwrap();
        let audit = Audit {
            uid: 0,
            why: "a new file system",
        };
        assert_eq!(store.reset(study_id, audit).await.unwrap(), 2);

        let mut report = Report::of(1);
        report.applied = Some(point(3));
        report.deliver(&store).await.unwrap();
        store.record_outcome(run_id, "COMPLETED").await.unwrap();
        assert!(store.judge_run(run_id, &counted(point(3))).await.unwrap());

        let second = store.study_state(study_id).await.unwrap();
        assert_eq!((first.epoch, second.epoch), (1, 2));
        assert_ne!(first.seed, second.seed);
        assert_eq!(second.history, Default::default());
        assert!(second.pending.is_empty());
        let mut connection = database.connect().await;
        let cached: Vec<(i64, i64)> = sqlx::query_as(
            "select e.id, e.total + t.count from epochs e join tested t on t.epoch_id = e.id",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        assert_eq!(cached, [(first.epoch_id, 2)]);
        assert_eq!(
            store
                .compared_runs(second.epoch_id, 10)
                .await
                .unwrap()
                .len(),
            0
        );
    })
    .await;
}

#[tokio::test]
async fn runs_wait_for_slurms_word_until_they_are_judged() {
    in_database(|database| async move {
        let store = database.store(2);
        for job_id in 1..=4 {
            Start::of(job_id).search(&store, point(job_id)).await;
        }
        let mut elsewhere = Start::of(5);
        elsewhere.job.cluster = "beta".into();
        elsewhere.search(&store, point(5)).await;
        for job_id in [3, 2] {
            Report::of(job_id).deliver(&store).await.unwrap();
        }
        let jobs = async |unreported, limit| -> Vec<u32> {
            let runs = store
                .awaited_runs(CLUSTER, unreported, limit)
                .await
                .unwrap();
            runs.iter().map(|run| run.job.job_id).collect()
        };
        assert_eq!(jobs(true, 10).await, [1, 2, 3, 4]);
        assert_eq!(jobs(false, 10).await, [2, 3]);
        assert_eq!(jobs(false, 1).await, [2]);

        let run = store
            .awaited_runs(CLUSTER, false, 1)
            .await
            .unwrap()
            .remove(0);
        assert!(run.reported);
        assert_eq!(
            (run.elapsed, run.wait_status, run.outcome),
            (Some(10.0), Some(0), None)
        );
        assert_eq!((run.launched, run.default), (point(2), point(0)));
        assert!(run.age >= run.reported_age.unwrap() && run.reported_age.unwrap() >= 0.0);
        assert_eq!(run.outcome_age, None);

        // The age of Slurm's word is that of the first one.
        store
            .record_outcome(run.run_id, "COMPLETING")
            .await
            .unwrap();
        let query =
            "select (extract(epoch from outcome_at) * 1000000)::bigint from runs where job_id = 2";
        let first = database.number(query).await;
        store.record_outcome(run.run_id, "COMPLETED").await.unwrap();
        assert_eq!(database.number(query).await, first);
        let run = store
            .awaited_runs(CLUSTER, false, 1)
            .await
            .unwrap()
            .remove(0);
        assert_eq!(run.outcome.as_deref(), Some("COMPLETED"));
        assert!(run.outcome_age.unwrap() >= 0.0);

        assert!(
            store
                .judge_run(run.run_id, &counted(point(0)))
                .await
                .unwrap()
        );
        assert_eq!(jobs(true, 10).await, [1, 3, 4]);
    })
    .await;
}
