//! Sources of priors, for studies that begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_autotune_model::{Parametrization, Phase, Role, Space};
use io_autotune_store::{Learnt, Store, StudyState};
use serde_json::json;

use crate::support::{Database, Start, by, decision, other_space, space, study};

async fn state(store: &Store, uid: u32, app: &str) -> StudyState {
    store.state_of(&study(uid, app), &space()).await.unwrap()
}

/// Stores what a study has learnt from this number of judgements.
async fn learn(store: &Store, state: &StudyState, judged: i64) {
    let mut assessing = store.assess(state.study_id).await.unwrap();
    let learnt = json!({ "of": state.study_id, "judged": judged });
    let measures = BTreeMap::from([("bytes".to_owned(), 7.5)]);
    assessing
        .write_learnt(state.epoch_id, judged, &measures, &learnt)
        .await
        .unwrap();
    assessing.commit().await.unwrap();
}

fn expected(of: &StudyState, owner_uid: u32, judged: i64) -> Arc<Learnt> {
    Arc::new(Learnt {
        epoch_id: of.epoch_id,
        owner_uid,
        judged,
        learnt: json!({ "of": of.study_id, "judged": judged }),
    })
}

/// A program that has just started, and so has no copies.
fn program(database: &Database) -> Store {
    database.store(2).with(u32::MAX, true)
}

/// The sources that the start of a user's job gets.
async fn told(store: &Store, job_id: u32, uid: u32, app: &str, space: Space) -> Vec<Arc<Learnt>> {
    let mut start = Start::of(job_id);
    start.study = study(uid, app);
    start.space = space;
    let mut told = Vec::new();
    let decide = |state: &StudyState| {
        told.clone_from(&state.sources);
        decision(Phase::Baseline, Role::Baseline, Parametrization::default())
    };
    start.ask(store, decide).await.unwrap();
    told
}

#[tokio::test]
async fn a_study_begins_from_the_others_of_its_space_and_not_from_itself() {
    let database = Database::new().await;
    let store = database.store(2);
    let (one, other) = (
        state(&store, 1001, "a").await,
        state(&store, 1002, "b").await,
    );
    for known in [&one, &other] {
        learn(&store, known, 20).await;
    }
    let begins = program(&database);
    let third = told(&begins, 1, 1003, "c", space()).await;
    assert_eq!(
        third,
        [expected(&one, 1001, 20), expected(&other, 1002, 20)]
    );
    // Without a list of its own, and from the copy of the first.
    for again in [&program(&database), &begins] {
        let job_id = if std::ptr::eq(again, &begins) { 2 } else { 3 };
        let own = told(again, job_id, 1001, "a", space()).await;
        assert_eq!(own, [expected(&other, 1002, 20)]);
    }
    assert_eq!(told(&begins, 4, 1004, "d", other_space()).await, []);
    let off = begins.with(u32::MAX, false);
    assert_eq!(told(&off, 5, 1003, "c", space()).await, []);
    assert_eq!(state(&begins, 1003, "c").await.sources, third);
}

#[tokio::test]
async fn what_is_learnt_is_renewed_once_a_tenth_more_is_judged_and_goes_with_its_epoch() {
    let database = Database::new().await;
    let store = database.store(2);
    let known = state(&store, 1001, "a").await;
    for (job_id, judged, kept) in [(1, 20, 20), (2, 22, 20), (3, 23, 23)] {
        learn(&store, &known, judged).await;
        let begins = told(&program(&database), job_id, 1002, "b", space()).await;
        assert_eq!(begins, [expected(&known, 1001, kept)], "{judged}");
    }
    let by = by(0, "another file system");
    store.reset(known.study_id, by).await.unwrap();
    let begins = program(&database);
    assert_eq!(told(&begins, 4, 1002, "b", space()).await, []);
    let again = state(&store, 1001, "a").await;
    learn(&store, &again, 8).await;
    // The program that has a list notices it soon.
    let (mut job_id, began) = (5, Instant::now());
    while told(&begins, job_id, 1002, "b", space()).await != [expected(&again, 1001, 8)] {
        assert!(began.elapsed() < Duration::from_secs(20));
        job_id += 1;
    }
}

#[tokio::test]
async fn at_most_eight_are_told_those_that_began_last() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut all = Vec::new();
    for uid in 1001..1012 {
        let known = state(&store, uid, "a").await;
        learn(&store, &known, 20).await;
        all.push(expected(&known, uid, 20));
    }
    let begins = told(&program(&database), 1, 2000, "b", space()).await;
    assert_eq!(begins, all[3..]);
}
