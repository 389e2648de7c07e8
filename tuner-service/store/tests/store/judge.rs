//! A verdict enters an epoch's caches once, only where it fits the run, and can be revised.

use io_autotune_model::{
    NotCountedBecause, ObservedValue, Parametrization, Phase, RecentRun, Role, Tally, Tested,
};
use io_autotune_store::{Judged, Judgement, Source, StoreError, Verdict};
use tokio::task::JoinSet;

use crate::support::{
    CLUSTER, Database, Report, START_EVERY_HOUR, Start, by, counted, decision, launch,
    merge_reports, not_counted, point, say, started,
};

fn censored(parametrization: Parametrization) -> Verdict {
    Verdict::Censored {
        parametrization,
        why: "Slurm says TIMEOUT".into(),
    }
}

fn failed(parametrization: Parametrization) -> Verdict {
    Verdict::NotCounted {
        because: NotCountedBecause::Failed,
        why: "Slurm says FAILED".into(),
        failed: Some(parametrization),
    }
}

fn out_of_memory(parametrization: Parametrization) -> Verdict {
    Verdict::NotCounted {
        because: NotCountedBecause::OutOfMemory,
        why: "Slurm says OUT_OF_MEMORY".into(),
        failed: Some(parametrization),
    }
}

/// PostgreSQL's `check_violation`.
fn refused_by_the_schema(error: &StoreError) -> bool {
    matches!(error, StoreError::Database { source: sqlx::Error::Database(source), .. }
        if source.code().as_deref() == Some("23514"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_verdicts_one_counts() {
    let database = Database::new().await;
    let store = database.store(8);
    let run_id = launch(&store, 1, point(4), 12.5).await;
    let study_id = database.number("select id from studies").await;
    let mut judging = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        judging.spawn(async move {
            store
                .judge_run(run_id, 2, &counted(point(4)))
                .await
                .unwrap()
        });
    }
    let judged = judging.join_all().await;
    let of = |what| judged.iter().filter(|judged| **judged == what).count();
    assert_eq!((of(Judged::First), of(Judged::Unchanged)), (1, 7));

    let state = store.study_state(study_id).await.unwrap();
    assert_eq!(state.history.tested.len(), 1);
    let tested = &state.history.tested[0];
    assert_eq!(tested.parametrization, point(4));
    assert_eq!((tested.elapsed.count, tested.elapsed.mean), (1, 12.5));
    assert_eq!(
        (tested.log_elapsed.count, tested.log_elapsed.mean),
        (1, 12.5_f64.ln())
    );
    let written = tested.measures["bytes_written"];
    assert_eq!((written.count, written.mean), (1, 4096_f64.ln()));
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
    assert_eq!(state.judged, 1);
    assert_eq!(database.number("select count(*) from judgements").await, 1);
}

#[tokio::test]
async fn a_run_that_ran_out_of_memory_is_told_from_one_that_failed() {
    let database = Database::new().await;
    let store = database.store(2);
    let failing = launch(&store, 1, point(5), 1.0).await;
    let greedy = launch(&store, 2, point(5), 1.0).await;
    let corrected = launch(&store, 3, point(6), 1.0).await;
    for (run_id, verdict) in [
        (failing, failed(point(5))),
        (greedy, out_of_memory(point(5))),
        (corrected, failed(point(6))),
    ] {
        database.judge(&store, run_id, &verdict).await.unwrap();
    }
    // The outcome arrives late, so the caches are built anew.
    let changes = database
        .number("select changes from runs where job_id = 3")
        .await;
    let judged = store
        .judge_run(corrected, changes, &out_of_memory(point(6)))
        .await
        .unwrap();
    assert_eq!(judged, Judged::Revised);
    let study_id = database.number("select id from studies").await;
    let state = store.study_state(study_id).await.unwrap();
    let known: Vec<_> = state
        .history
        .tested
        .iter()
        .map(|tested| (&tested.parametrization, tested.failed, tested.out_of_memory))
        .collect();
    assert_eq!(known, [(&point(5), 2, 1), (&point(6), 1, 1)]);
    let epoch = database.number("select id from epochs").await;
    assert_eq!(
        store.history_at(epoch, state.judged).await.unwrap(),
        *state.history
    );
    let before = store.history_at(epoch, 3).await.unwrap();
    assert_eq!(
        (before.tested[1].failed, before.tested[1].out_of_memory),
        (1, 0)
    );
    assert_eq!(store.check_caches().await.unwrap(), []);
}

#[tokio::test]
async fn a_run_counts_for_what_its_verdict_says() {
    let database = Database::new().await;
    let store = database.store(2);
    let good = launch(&store, 1, point(4), 12.5).await;
    let bad = launch(&store, 2, point(5), 1.0).await;
    let lost = launch(&store, 3, point(6), 1.0).await;
    let cut = launch(&store, 4, point(9), 60.0).await;
    say(&store, 4, "TIMEOUT").await;
    for (run_id, verdict) in [
        (good, counted(point(9))),
        (bad, failed(point(5))),
        (lost, not_counted("Slurm says CANCELLED")),
        (cut, censored(point(9))),
    ] {
        let judged = database.judge(&store, run_id, &verdict).await.unwrap();
        assert_eq!(judged, Judged::First);
    }
    let study_id = database.number("select id from studies").await;
    let history = store.study_state(study_id).await.unwrap().history;
    let tested: Vec<_> = history
        .tested
        .iter()
        .map(|tested| (&tested.parametrization, tested.elapsed.count, tested.failed))
        .collect();
    assert_eq!(tested, [(&point(9), 1, 0), (&point(5), 0, 1)]);
    let bounds: Vec<_> = history.tested[0]
        .censored
        .iter()
        .map(|run| (run.ordinal, run.elapsed))
        .collect();
    assert_eq!(bounds, [(cut, 60.0)]);
    let tally = Tally {
        explored: 4,
        total: 4,
        ..Tally::default()
    };
    assert_eq!(history.tally, tally);
}

#[tokio::test]
async fn the_tally_knows_every_role() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut job_id = 0;
    for phase in Phase::ALL {
        for role in Role::ALL {
            job_id += 1;
            let run = Start::of(job_id)
                .ask(&store, |_| decision(*phase, *role, point(1)))
                .await
                .unwrap();
            let judged = store
                .judge_run(run.run_id, 0, &not_counted("Slurm says CANCELLED"))
                .await;
            assert_eq!(judged.unwrap(), Judged::First);
        }
    }
    let study_id = database.number("select id from studies").await;
    let tally = store.study_state(study_id).await.unwrap().history.tally;
    let expected = Tally {
        baseline: 4,
        explored: 8,
        controls: 3,
        settled: 1,
        settled_controls: 1,
        proof: 3,
        total: 32,
    };
    assert_eq!(tally, expected);
}

#[tokio::test]
async fn the_schema_refuses_a_verdict_that_slurms_word_contradicts() {
    let database = Database::new().await;
    let store = database.store(1);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    let study_id = database.number("select id from studies").await;
    let untouched = async || {
        let state = store.study_state(study_id).await.unwrap();
        assert_eq!(state.history, Default::default());
        assert_eq!((state.pending.len(), state.judged), (1, 0));
    };
    // Without a report there is no elapsed.
    for verdict in [counted(point(1)), censored(point(1))] {
        let error = database.judge(&store, run_id, &verdict).await.unwrap_err();
        assert!(matches!(error, StoreError::Invariant { .. }), "{error:?}");
        untouched().await;
    }
    Report::of(1).deliver(&store).await.unwrap();
    for (outcome, verdicts) in [
        ("FAILED", &[counted(point(1)), censored(point(1))][..]),
        ("CANCELLED", &[counted(point(1)), censored(point(1))]),
        ("completed", &[counted(point(1)), censored(point(1))]),
        ("COMPLETED", &[censored(point(1))]),
        ("TIMEOUT", &[counted(point(1))]),
    ] {
        say(&store, 1, outcome).await;
        for verdict in verdicts {
            let error = database.judge(&store, run_id, verdict).await.unwrap_err();
            assert!(refused_by_the_schema(&error), "{outcome}: {error:?}");
            untouched().await;
        }
    }
    let judged = database.judge(&store, run_id, &censored(point(1))).await;
    assert_eq!(judged.unwrap(), Judged::First);
}

#[tokio::test]
async fn where_slurms_word_cannot_be_had_a_run_can_count_without_it() {
    let database = Database::new().await;
    let store = database.store(1);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    Report::of(1).deliver(&store).await.unwrap();
    let judged = store.judge_run(run_id, 1, &counted(point(1))).await;
    assert_eq!(judged.unwrap(), Judged::First);
    let error = store.judge_run(run_id, 1, &censored(point(1))).await;
    assert!(refused_by_the_schema(&error.unwrap_err()));
}

#[tokio::test]
async fn a_run_without_elapsed_cannot_count() {
    let database = Database::new().await;
    let store = database.store(1);
    let run_id = Start::of(1).search(&store, point(1)).await.run_id;
    let mut report = Report::of(1);
    report.elapsed = None;
    report.deliver(&store).await.unwrap();
    say(&store, 1, "COMPLETED").await;
    let error = store
        .judge_run(run_id, 2, &counted(point(1)))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Invariant { .. }), "{error:?}");
    let judged = store
        .judge_run(run_id, 2, &not_counted("Slurm says CANCELLED"))
        .await;
    assert_eq!(judged.unwrap(), Judged::First);
}

#[tokio::test]
async fn a_verdict_that_did_not_know_the_latest_news_does_not_stand() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = launch(&store, 1, point(4), 10.0).await;
    let changes = database.changes(run_id).await;
    say(&store, 1, "NODE_FAIL").await;
    let judged = store.judge_run(run_id, changes, &counted(point(4))).await;
    assert_eq!(judged.unwrap(), Judged::Outdated);
    assert_eq!(database.number("select count(*) from judgements").await, 0);
    assert_eq!(
        database
            .number("select count(*) from runs where state = 'in_flight'")
            .await,
        1
    );
    let judged = database
        .judge(&store, run_id, &not_counted("Slurm says CANCELLED"))
        .await;
    assert_eq!(judged.unwrap(), Judged::First);
}

#[tokio::test]
async fn a_revised_verdict_leaves_the_caches_as_if_the_first_had_never_been() {
    let database = Database::new().await;
    let store = database.store(2);
    // Thirds have no finite binary form: taking one out of a mean would leave a rounding error.
    let seconds = |job_id: u32| f64::from(job_id) / 3.0;
    let mut run_ids = Vec::new();
    let mut connection = database.connect().await;
    for job_id in 1..=40 {
        let run_id = launch(&store, job_id, point(job_id % 3), seconds(job_id)).await;
        sqlx::query(START_EVERY_HOUR)
            .execute(&mut connection)
            .await
            .unwrap();
        let judged = store
            .judge_run(run_id, 2, &counted(point(job_id % 3)))
            .await;
        assert_eq!(judged.unwrap(), Judged::First);
        run_ids.push(run_id);
    }
    let study_id = database.number("select id from studies").await;
    let before = store.study_state(study_id).await.unwrap();

    // It becomes known late that job 7 was suspended; job 8 was cut short; job 9 ran with other
    // settings.
    say(&store, 7, "CANCELLED").await;
    say(&store, 8, "TIMEOUT").await;
    say(&store, 9, "FAILED").await;
    let waiting: Vec<_> = store
        .awaited_runs(CLUSTER, false, 10, &[])
        .await
        .unwrap()
        .runs
        .iter()
        .map(|run| (run.job.job_id, run.state.clone()))
        .collect();
    let counted_still = |job_id| (job_id, "counted".to_owned());
    assert_eq!(waiting, [7, 8, 9].map(counted_still));
    for (job_id, verdict) in [
        (7, not_counted("Slurm says CANCELLED")),
        (8, censored(point(2))),
        (9, failed(point(5))),
    ] {
        let run_id = run_ids[job_id - 1];
        let judged = database.judge(&store, run_id, &verdict).await;
        assert_eq!(judged.unwrap(), Judged::Revised);
        let again = database.judge(&store, run_id, &verdict).await;
        assert_eq!(again.unwrap(), Judged::Unchanged);
    }
    assert!(
        store
            .awaited_runs(CLUSTER, true, 10, &[])
            .await
            .unwrap()
            .runs
            .is_empty()
    );

    let mut expected: Vec<Tested> = Vec::new();
    for (job_id, run_id) in (1..).zip(&run_ids) {
        if ![7, 8, 9].contains(&job_id) {
            let point = point(job_id % 3);
            let at = expected
                .iter()
                .position(|tested| tested.parametrization == point)
                .unwrap_or_else(|| {
                    expected.push(Tested::new(point.clone(), *run_id));
                    expected.len() - 1
                });
            let run = RecentRun::new(*run_id, seconds(job_id));
            expected[at]
                .record_run(run.started_at(started(*run_id)))
                .unwrap();
            let written = [("bytes_written".to_owned(), 4096.0)];
            expected[at].record_measures(&written.into());
        }
    }
    expected[1].record_censored(run_ids[7], seconds(8)).unwrap();
    let mut bad = Tested::new(point(5), run_ids[8]);
    bad.record_failure(run_ids[8]);
    expected.push(bad);
    let after = store.study_state(study_id).await.unwrap();
    assert_eq!(after.history.tested, expected);
    assert_eq!(after.history.tally, before.history.tally);
    assert_eq!((before.judged, after.judged), (40, 43));
    assert_eq!(store.check_caches().await.unwrap(), []);

    // The inputs of an earlier suggestion can be recovered.
    let epoch_id = after.epoch_id;
    assert_eq!(
        store.history_at(epoch_id, 40).await.unwrap(),
        *before.history
    );
    assert_eq!(
        store.history_at(epoch_id, 43).await.unwrap(),
        *after.history
    );
    assert_eq!(
        store.history_at(epoch_id, 0).await.unwrap(),
        Default::default()
    );
}

#[tokio::test]
async fn after_a_reset_a_late_finish_counts_in_its_own_epoch_only() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(3)).await.run_id;
    let study_id = database.number("select id from studies").await;
    let first = store.study_state(study_id).await.unwrap();
    let audit = by(0, "a new file system");
    assert_eq!(store.reset(study_id, audit).await.unwrap().epoch, 2);

    let mut report = Report::of(1);
    report.applied = Some(point(3));
    report.deliver(&store).await.unwrap();
    say(&store, 1, "COMPLETED").await;
    let judged = store.judge_run(run_id, 2, &counted(point(3))).await;
    assert_eq!(judged.unwrap(), Judged::First);

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
        store.settled_runs(second.epoch_id, 10).await.unwrap().len(),
        0
    );
}

#[tokio::test]
async fn runs_wait_for_slurms_word_until_they_are_judged() {
    let database = Database::new().await;
    let store = database.store(2);
    let clusters = [CLUSTER, "beta"].map(str::to_owned);
    store.serve_clusters(&clusters).await.unwrap();
    for job_id in 1..=4 {
        Start::of(job_id).search(&store, point(job_id)).await;
    }
    let elsewhere = Start::of(5).on("beta");
    elsewhere.search(&store, point(5)).await;
    for job_id in [3, 2] {
        Report::of(job_id).deliver(&store).await.unwrap();
    }
    let jobs = async |unreported, limit| -> Vec<u32> {
        let runs = store
            .awaited_runs(CLUSTER, unreported, limit, &[])
            .await
            .unwrap()
            .runs;
        runs.iter().map(|run| run.job.job_id).collect()
    };
    assert_eq!(jobs(true, 10).await, [1, 2, 3, 4]);
    assert_eq!(jobs(false, 10).await, [2, 3]);
    assert_eq!(jobs(false, 1).await, [2]);

    let run = store
        .awaited_runs(CLUSTER, false, 1, &[])
        .await
        .unwrap()
        .runs
        .remove(0);
    assert!(run.reported);
    assert_eq!(
        (run.elapsed, run.wait_status, run.outcome),
        (Some(10.0), Some(0), None)
    );
    assert_eq!((run.launched, run.default), (point(2), point(0)));
    assert!(run.age >= run.reported_age.unwrap() && run.reported_age.unwrap() >= 0.0);
    assert_eq!(run.outcome_age, None);

    // The age of Slurm's record is that of the first one.
    say(&store, 2, "NODE_FAIL").await;
    let query =
        "select (extract(epoch from outcome_at) * 1000000)::bigint from runs where job_id = 2";
    let first = database.number(query).await;
    say(&store, 2, "COMPLETED").await;
    assert_eq!(database.number(query).await, first);
    // A run of which only Slurm has a record is returned, too.
    say(&store, 4, "CANCELLED").await;
    assert_eq!(jobs(false, 10).await, [2, 3, 4]);
    let run = store
        .awaited_runs(CLUSTER, false, 1, &[])
        .await
        .unwrap()
        .runs
        .remove(0);
    assert_eq!(run.outcome.as_deref(), Some("COMPLETED"));
    assert_eq!(run.outcome_source, Some(Source::Squeue));
    assert!(run.outcome_age.unwrap() >= 0.0);

    let judged = store
        .judge_run(run.run_id, run.changes, &counted(point(0)))
        .await;
    assert_eq!(judged.unwrap(), Judged::First);
    assert_eq!(jobs(true, 10).await, [1, 3, 4]);
}

#[tokio::test]
async fn verdicts_given_together_are_what_they_are_one_by_one() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut verdicts = Vec::new();
    for job_id in 1..=12 {
        let applied = point(job_id % 3);
        let run_id = launch(&store, job_id, applied.clone(), f64::from(job_id) / 3.0).await;
        verdicts.push((run_id, 2, counted(applied)));
    }
    let together = async |verdicts: &[(i64, i64, Verdict)]| {
        let judgements: Vec<Judgement<'_>> = verdicts
            .iter()
            .map(|(run_id, changes, verdict)| Judgement {
                run_id: *run_id,
                changes: *changes,
                verdict,
                observed_values: &[],
            })
            .collect();
        let (judged, assessing) = store.judge_runs(&judgements).await?;
        if let Some(assessing) = assessing {
            assessing.commit().await?;
        }
        Ok::<_, StoreError>(judged)
    };
    assert_eq!(together(&[]).await.unwrap(), []);
    let first = together(&verdicts[..8]).await.unwrap();
    assert_eq!(first, [Judged::First; 8]);
    assert_eq!(store.check_caches().await.unwrap(), []);

    // A run whose verdict stays, one whose verdict is revised, one with unseen changes, and the
    // rest.
    say(&store, 2, "FAILED").await;
    say(&store, 3, "FAILED").await;
    let mixed = [
        verdicts[0].clone(),
        (verdicts[1].0, 3, failed(point(2))),
        verdicts[2].clone(),
        verdicts[8].clone(),
        verdicts[9].clone(),
    ];
    let judged = together(&mixed).await.unwrap();
    let expected = [
        Judged::Unchanged,
        Judged::Revised,
        Judged::Outdated,
        Judged::First,
        Judged::First,
    ];
    assert_eq!(judged, expected);
    assert_eq!(store.check_caches().await.unwrap(), []);
    let state = store.study_state(1).await.unwrap();
    assert_eq!((state.judged, state.history.tally.total), (11, 10));

    // One verdict does not fit its run, so none of them is stored.
    let unreported = Start::of(13).search(&store, point(1)).await.run_id;
    let broken = [verdicts[10].clone(), (unreported, 0, counted(point(1)))];
    assert!(matches!(
        together(&broken).await,
        Err(StoreError::Invariant { .. })
    ));
    let after = store.study_state(1).await.unwrap();
    assert_eq!((after.judged, &after.history), (11, &state.history));
}

#[tokio::test]
async fn a_run_whose_reports_are_not_merged_is_not_judged() {
    let database = Database::new().await;
    let store = database.store(2);
    let run_id = Start::of(1).search(&store, point(4)).await.run_id;
    for node in ["n1", "n2"] {
        let mut report = Report::of(1);
        report.node = node.into();
        report.deliver(&store).await.unwrap();
    }
    say(&store, 1, "COMPLETED").await;
    let judge = async || {
        store
            .judge_run(run_id, 3, &counted(point(4)))
            .await
            .unwrap()
    };
    assert_eq!(judge().await, Judged::Outdated);
    merge_reports(&store, run_id).await;
    assert_eq!(judge().await, Judged::First);
}

#[tokio::test]
async fn what_a_run_was_told_enters_its_epoch_once() {
    let database = Database::new().await;
    let store = database.store(2);
    let observed_values = [ObservedValue {
        parameter: "sieve".into(),
        name: "romio_ds_write".into(),
        given: Some("enable".into()),
        in_force: "disable".into(),
        as_given: false,
    }];
    let judged = async |run_id: i64, verdict: &Verdict| {
        let judgement = Judgement {
            run_id,
            changes: database.changes(run_id).await,
            verdict,
            observed_values: &observed_values,
        };
        let (judged, assessing) = store.judge_runs(&[judgement]).await.unwrap();
        assert_eq!(assessing.is_none(), judged == [Judged::Unchanged]);
        if let Some(assessing) = assessing {
            assessing.commit().await.unwrap();
        }
        judged
    };
    let state = async || {
        let start = Start::of(99);
        store.state_of(&start.study, &start.space).await.unwrap()
    };
    let ineffective = async || state().await.effects.ineffective().count();
    let first = launch(&store, 1, point(4), 12.5).await;
    assert_eq!(
        judged(first, &not_counted("Slurm says CANCELLED")).await,
        [Judged::First]
    );
    assert_eq!(
        judged(first, &not_counted("Slurm says CANCELLED")).await,
        [Judged::Unchanged]
    );
    say(&store, 1, "FAILED").await;
    assert_eq!(judged(first, &failed(point(4))).await, [Judged::Revised]);
    assert_eq!(
        ineffective().await,
        0,
        "one run, however often it is judged"
    );
    let second = launch(&store, 2, point(4), 12.5).await;
    judged(second, &not_counted("Slurm says CANCELLED")).await;
    assert_eq!(ineffective().await, 1);
    let audit = by(0, "the program was changed");
    store.reset(state().await.study_id, audit).await.unwrap();
    assert_eq!(ineffective().await, 0, "a new epoch looks anew");
}
