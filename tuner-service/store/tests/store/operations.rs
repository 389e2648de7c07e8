//! Random lists of operations, several at a time, with the store's invariants checked after each
//! round. A seed gives the same list; the order within a round is the database's.

mod invariants;
mod operation;

use std::ops::RangeInclusive;

use futures_util::future::join_all;
use io_autotune_model::{Phase, Role};
use io_autotune_store::{Store, StudyFilter};
use tokio::task::JoinSet;

use crate::support::{Database, Random, Start, decision, study};
use operation::Operation;

/// Checks that starts of each study, from a copy or not, decide from what can be read. Both starts
/// fail, because no job has the number 0.
async fn same_as_read(store: &Store, reader: &Store) -> Result<(), String> {
    for row in reader.studies(&StudyFilter::default()).await.unwrap() {
        let read = reader.study_state(row.study_id).await.unwrap();
        let mut start = Start::of(0);
        start.study = study(row.owner_uid, &row.application);
        start.space = read.space.as_ref().clone();
        for way in ["first", "again"] {
            let mut seen = Vec::new();
            let refused = start.ask(store, |state| {
                seen.push(format!("{state:?}"));
                decision(Phase::Baseline, Role::Observe, read.space.default())
            });
            refused.await.unwrap_err();
            if seen != [format!("{read:?}")] {
                return Err(format!(
                    "{way}: decided from {seen:?}, and there is {read:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The number of rounds in a list.
const ROUNDS: u32 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_at_a_time_the_caches_are_what_the_runs_say() {
    play_all(1..=3, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_at_a_time_the_caches_are_what_the_runs_say() {
    play_all(11..=15, 8).await;
}

/// Plays a list for each seed, side by side, each in a database of its own.
async fn play_all(seeds: RangeInclusive<u64>, at_once: u32) {
    let lists = seeds.map(async |seed| {
        let database = Database::new().await;
        play(&database, seed, at_once).await;
        invariants::happened(&mut database.connect().await).await
    });
    invariants::enough_happened(&join_all(lists).await);
}

async fn play(database: &Database, seed: u64, at_once: u32) {
    // Two replicas of the service.
    let stores = [database.store(8), database.store(8)];
    let mut random = Random::new(seed);
    let mut connection = database.connect().await;
    for round in 0..ROUNDS {
        let mut running = JoinSet::new();
        // One by one, as many operations in all.
        for _ in 0..8 {
            let store: Store = random.of(&stores).clone();
            let operation = Operation::any(&mut random, &store).await;
            running.spawn(async move { operation.run(&store).await });
            if at_once == 1 {
                running.join_next().await.unwrap().unwrap();
            }
        }
        running.join_all().await;
        invariants::check(&mut connection, &stores[0])
            .await
            .unwrap_or_else(|broken| panic!("seed {seed}, round {round}: {broken}"));
        for store in &stores {
            same_as_read(store, &stores[0])
                .await
                .unwrap_or_else(|broken| panic!("seed {seed}, round {round}: {broken}"));
        }
    }
}
