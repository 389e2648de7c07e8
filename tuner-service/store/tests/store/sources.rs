//! What other studies have learnt, for those that begin.

use std::collections::BTreeMap;

use io_autotune_store::{Audit, Learnt, Store, StudyState};
use serde_json::json;

use crate::support::{Database, in_database, other_space, space, study};

async fn state(store: &Store, uid: u32, app: &str) -> StudyState {
    store.state_of(&study(uid, app), &space()).await.unwrap()
}

/// Keeps what a study has learnt from so many judgements.
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

fn expected(of: &StudyState, judged: i64) -> Learnt {
    Learnt {
        epoch_id: of.epoch_id,
        judged,
        learnt: json!({ "of": of.study_id, "judged": judged }),
    }
}

#[tokio::test]
async fn a_study_begins_from_the_others_of_its_space_and_not_from_itself() {
    in_database(|database: Database| async move {
        let store = database.store(2);
        let (one, other) = (
            state(&store, 1001, "a").await,
            state(&store, 1002, "b").await,
        );
        for known in [&one, &other] {
            learn(&store, known, 20).await;
        }
        let third = state(&store, 1003, "c").await;
        assert_eq!(third.sources, [expected(&one, 20), expected(&other, 20)]);
        assert_eq!(
            state(&store, 1001, "a").await.sources,
            [expected(&other, 20)]
        );
        let elsewhere = store
            .state_of(&study(1004, "d"), &other_space())
            .await
            .unwrap();
        assert_eq!(elsewhere.sources, []);
    })
    .await;
}

#[tokio::test]
async fn what_is_learnt_is_renewed_once_a_tenth_more_is_judged_and_goes_with_its_epoch() {
    in_database(|database: Database| async move {
        let store = database.store(2);
        let known = state(&store, 1001, "a").await;
        for (judged, kept) in [(20, 20), (22, 20), (23, 23)] {
            learn(&store, &known, judged).await;
            let begins = state(&store, 1002, "b").await;
            assert_eq!(begins.sources, [expected(&known, kept)], "{judged}");
        }
        let by = Audit {
            uid: 0,
            why: "another file system",
        };
        store.reset(known.study_id, by).await.unwrap();
        assert_eq!(state(&store, 1002, "b").await.sources, []);
        let again = state(&store, 1001, "a").await;
        learn(&store, &again, 8).await;
        assert_eq!(
            state(&store, 1002, "b").await.sources,
            [expected(&again, 8)]
        );
    })
    .await;
}

#[tokio::test]
async fn at_most_eight_are_read_those_that_began_last() {
    in_database(|database: Database| async move {
        let store = database.store(2);
        let mut all = Vec::new();
        for uid in 1001..1012 {
            let known = state(&store, uid, "a").await;
            learn(&store, &known, 20).await;
            all.push(expected(&known, 20));
        }
        assert_eq!(state(&store, 2000, "b").await.sources, all[3..]);
    })
    .await;
}
