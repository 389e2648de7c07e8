//! Another objective than elapsed: what enters an epoch's caches, what opens an epoch, and which
//! other studies are used.

use std::collections::BTreeMap;

use io_autotune_model::{ELAPSED_BESIDE, MARKED, Objective};
use io_autotune_store::{Audit, ImportError, Store, StoreError, StudyState, Undone};
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::support::{Database, Report, Start, by, counted, point, say, space, study};
use crate::transfer::{exported, imported};

const BY: Audit<'static> = by(1000, "I/O is a tenth of it");

/// A counted run, with its point, elapsed, and measures.
async fn run(
    database: &Database,
    store: &Store,
    (uid, job_id): (u32, u32),
    (index, elapsed): (u32, f64),
    measures: &[(&str, f64)],
) -> Result<i64, StoreError> {
    let mut start = Start::of(job_id);
    start.study = study(uid, "solver");
    let run_id = start.search(store, point(index)).await.run_id;
    let mut report = Report::of(job_id);
    report.study = study(uid, "solver");
    report.elapsed = Some(elapsed);
    report.applied = Some(point(index));
    let measures = measures.iter().copied();
    report.measures = measures
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    report.deliver(store).await?;
    say(store, job_id, "COMPLETED").await;
    database
        .judge(store, run_id, &counted(point(index)))
        .await?;
    Ok(run_id)
}

async fn state(store: &Store, uid: u32) -> StudyState {
    store
        .state_of(&study(uid, "solver"), &space())
        .await
        .unwrap()
}

async fn objective(store: &Store, uid: u32, word: &str, maximised: bool) -> Option<i64> {
    let study_id = state(store, uid).await.study_id;
    let objective = Objective::named(word, maximised).unwrap();
    let set = store.set_objective(study_id, &objective, BY).await;
    set.unwrap().map(|opened| opened.line)
}

#[tokio::test]
async fn what_enters_the_caches_is_the_objective_and_elapsed_is_beside_it() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[(MARKED, 5.0)])
        .await
        .unwrap();
    assert!(objective(&store, 1, "marked", false).await.is_some());
    let opened = state(&store, 1).await;
    assert_eq!((opened.epoch, opened.history.tested.len()), (2, 0));
    assert!(opened.opened.why.contains("marked_seconds"));
    for (job_id, marked) in [(2, 5.0), (3, 7.0)] {
        let told = [(MARKED, marked), (ELAPSED_BESIDE, 1.0)];
        run(&database, &store, (1, job_id), (2, 60.0), &told)
            .await
            .unwrap();
    }
    let state = state(&store, 1).await;
    let tested = &state.history.tested[0];
    assert_eq!((tested.elapsed.count, tested.elapsed.mean), (2, 6.0));
    let beside = tested.measures[ELAPSED_BESIDE];
    assert_eq!((beside.count, beside.mean), (2, 60_f64.ln()));
    assert!((tested.elapsed_seconds() - 60.0).abs() < 1e-9);
    // The judgements add up to the same; they store elapsed.
    let folded = store
        .history_at(state.epoch_id, state.judged)
        .await
        .unwrap();
    assert_eq!(folded, *state.history);
    let kept = database
        .number("select count(*) from judgements where elapsed = 60")
        .await;
    assert_eq!(kept, 2);
}

#[tokio::test]
async fn more_is_better_where_it_is_maximised_and_a_run_without_it_cannot_count() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[])
        .await
        .unwrap();
    objective(&store, 1, "rate", true).await;
    let rate = [("objective.rate", 4.0)];
    run(&database, &store, (1, 2), (2, 60.0), &rate)
        .await
        .unwrap();
    let known = state(&store, 1).await;
    assert_eq!(known.history.tested[0].elapsed.mean, 0.25);
    let refused = run(&database, &store, (1, 3), (2, 60.0), &[]).await;
    assert!(
        matches!(refused, Err(StoreError::Invariant { .. })),
        "{refused:?}"
    );
    assert_eq!(state(&store, 1).await.history, known.history);
    // As if its search had ended: the comparison is by the objective as well.
    let settle = "update runs set phase = 'settled', role = 'settled' where job_id = 2";
    let mut connection = database.connect().await;
    sqlx::query(settle).execute(&mut connection).await.unwrap();
    let runs = store.settled_runs(known.epoch_id, 10).await.unwrap();
    let seconds: Vec<f64> = runs.iter().map(|run| run.elapsed).collect();
    assert_eq!(seconds, [0.25]);
}

#[tokio::test]
async fn a_change_is_audited_and_its_undo_goes_on_with_what_was_learnt() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[(MARKED, 5.0)])
        .await
        .unwrap();
    let before = state(&store, 1).await;
    let pinned = store.pin(before.study_id, &point(3), None, BY).await;
    pinned.unwrap();
    let line = objective(&store, 1, "marked", false).await.unwrap();
    assert_eq!(objective(&store, 1, "marked", false).await, None, "twice");
    assert_eq!(state(&store, 1).await.pin, Some(point(3)), "a pin stays");
    // A reset, and a changed space, keep it.
    store.reset(before.study_id, BY).await.unwrap();
    assert_eq!(
        state(&store, 1).await.objective.to_string(),
        "marked_seconds"
    );
    let late = store.undo(line, BY).await.unwrap();
    assert!(matches!(late, Undone::Cannot(_)), "{late:?}");
    objective(&store, 1, "elapsed", false).await.unwrap();
    let line = objective(&store, 1, "rate", true).await.unwrap();
    assert_eq!(store.undo(line, BY).await.unwrap(), Undone::Done);
    let after = state(&store, 1).await;
    assert!(after.objective.is_elapsed());
    assert_eq!(after.opened.takes, "runs");
    let audit = database
        .number("select count(*) from audit where action = 'objective'")
        .await;
    assert_eq!(audit, 3);
}

#[tokio::test]
async fn an_undo_has_the_runs_by_the_objective_that_they_counted_by() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[(MARKED, 5.0)])
        .await
        .unwrap();
    let line = objective(&store, 1, "marked", false).await.unwrap();
    assert_eq!(store.undo(line, BY).await.unwrap(), Undone::Done);
    let after = state(&store, 1).await;
    assert!(after.objective.is_elapsed());
    assert_eq!(after.history.tested[0].elapsed.mean, 50.0);
    let folded = store
        .history_at(after.epoch_id, after.judged)
        .await
        .unwrap();
    assert_eq!(folded, *after.history);
}

#[tokio::test]
async fn studies_hear_those_of_the_same_objective() {
    let database = Database::new().await;
    let store = database.store(2);
    let marked = [(MARKED, 5.0)];
    for (uid, job_id) in [(1, 1), (2, 2), (3, 3)] {
        run(&database, &store, (uid, job_id), (2, 50.0), &marked)
            .await
            .unwrap();
        let study_id = state(&store, uid).await.study_id;
        store.share(study_id, Some("group ocean")).await.unwrap();
    }
    let heard = |state: StudyState| -> Vec<(u32, f64)> {
        let siblings = state.siblings.iter();
        siblings
            .map(|one| (one.uid, one.history.tested[0].elapsed.mean))
            .collect()
    };
    for (uid, job_id) in [(1, 4), (2, 5)] {
        objective(&store, uid, "marked", false).await.unwrap();
        run(&database, &store, (uid, job_id), (2, 50.0), &marked)
            .await
            .unwrap();
    }
    assert_eq!(heard(state(&store, 1).await), [(2, 5.0)]);
    assert_eq!(heard(state(&store, 2).await), [(1, 5.0)]);
    assert_eq!(heard(state(&store, 3).await), []);
}

#[tokio::test]
async fn the_schema_takes_no_other_text_for_an_objective() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[])
        .await
        .unwrap();
    let mut connection = database.connect().await;
    let texts = BTreeMap::from([
        ("marked_seconds", true),
        ("objective.a maximised", true),
        ("marked_seconds maximised", false),
        ("user_seconds", false),
        ("objective.", false),
    ]);
    for (text, is_taken) in texts {
        let set = format!("update epochs set objective = '{text}'");
        let done = sqlx::query(AssertSqlSafe(set)).execute(&mut connection);
        let taken = done.await.is_ok();
        assert_eq!(taken, is_taken, "{text}");
        assert_eq!(text.parse::<Objective>().is_ok(), is_taken, "{text}");
    }
}

#[tokio::test]
async fn an_export_carries_the_objective_and_an_import_checks_what_counts_by_it() {
    let database = Database::new().await;
    let store = database.store(2);
    run(&database, &store, (1, 1), (2, 50.0), &[(MARKED, 5.0)])
        .await
        .unwrap();
    objective(&store, 1, "marked", false).await.unwrap();
    run(&database, &store, (1, 2), (2, 60.0), &[(MARKED, 7.0)])
        .await
        .unwrap();
    let before = state(&store, 1).await;
    let text = exported(&store, &[before.study_id]).await;
    let elsewhere = Database::new().await;
    let other = elsewhere.store(2);
    // The judgement of the second run loses the measure by which it counts.
    let lost: String = text
        .lines()
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            if let Some(judgements) = record.pointer_mut("/run/judgements") {
                for judgement in judgements.as_array_mut().unwrap() {
                    judgement["measures"]
                        .as_object_mut()
                        .unwrap()
                        .remove(MARKED);
                }
            }
            format!("{record}\n")
        })
        .collect();
    match imported(&other, &lost, |one| one).await {
        Err(ImportError::Refused(refusal)) => {
            let said = refusal.to_string();
            assert!(said.contains("no marked_seconds"), "{said}");
        }
        other => panic!("{other:?}"),
    }
    imported(&other, &text, |one| one).await.unwrap();
    let after = state(&other, 1).await;
    assert_eq!(after.objective, before.objective);
    let mean = |state: &StudyState| state.history.tested[0].elapsed.mean;
    assert_eq!(mean(&after), mean(&before));
}
