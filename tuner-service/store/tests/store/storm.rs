//! Very many simultaneous starts of one study.

use std::time::{Duration, Instant};

use io_autotune_engine::{BestKnownBecause, Epoch, Parametrization, Phase, Role, Settings};
use io_autotune_store::{Decision, StartedRun, Store, StoreError, StudyState};
use tokio::task::JoinSet;

use crate::support::{Database, Lock, Start, counted, decision, launch, point};

/// A start as the service makes it: by the engine under the study's lock, or the best known without
/// it.
async fn start(store: &Store, job_id: u32, settings: &Settings) -> StartedRun {
    let mut start = Start::of(job_id);
    start.lock = Lock::Wait(Duration::from_millis(700));
    let explored = |state: &StudyState| -> Decision {
        let suggestion =
            Epoch::new(&state.space, settings, state.seed).suggest(&state.history, &state.pending);
        decision(
            suggestion.phase,
            suggestion.role,
            suggestion.parametrization,
        )
    };
    match start.ask(store, explored).await {
        Ok(started) => return started,
        Err(StoreError::Busy { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
    start.lock = Lock::None;
    let plain = |state: &StudyState| -> Decision {
        let best = Epoch::new(&state.space, settings, state.seed)
            .best_known(&state.history, BestKnownBecause::Busy);
        decision(best.phase, best.role, best.parametrization)
    };
    loop {
        match start.ask(store, plain).await {
            Ok(started) => return started,
            Err(StoreError::Busy { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_hundred_starts_no_more_explore_than_may_and_none_twice_the_same() {
    let database = Database::new().await;
    let store = database.store(16);
    let settings = Settings::default();
    // The default is known, so that the next runs explore.
    for job_id in 1001..=1008 {
        let run_id = launch(&store, job_id, point(0), 10.0).await;
        let counted = counted(point(0));
        store.judge_run(run_id, 2, &counted).await.unwrap();
    }
    let mut connection = database.connect().await;
    // They were runs of the default, not of the search.
    sqlx::query("update epochs set baseline = total, explored = 0")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut starting = JoinSet::new();
    for job_id in 1..=200 {
        let (store, settings) = (store.clone(), settings.clone());
        starting.spawn(async move { start(&store, job_id, &settings).await });
    }
    let begun = Instant::now();
    let started = starting.join_all().await;
    let took = begun.elapsed();
    assert_eq!(started.len(), 200);
    assert_eq!(database.number("select count(*) from runs").await, 208);

    let mut explored: Vec<&Parametrization> = started
        .iter()
        .filter(|run| run.role.explores())
        .map(|run| &run.parametrization)
        .collect();
    let exploring = explored.len();
    assert!(
        exploring > 0 && exploring <= usize::try_from(settings.exploring).unwrap(),
        "{exploring} explore"
    );
    explored.sort();
    explored.dedup();
    assert_eq!(explored.len(), exploring);
    let others = started.iter().filter(|run| !run.role.explores());
    assert!(
        others
            .clone()
            .all(|run| matches!(run.role, Role::BestKnown | Role::Control | Role::Baseline))
    );
    assert!(others.clone().all(|run| run.phase != Phase::Settled));
    // This does not measure speed, but finds a start that hangs.
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[tokio::test]
async fn a_run_whose_place_is_released_is_in_flight_and_not_pending() {
    let database = Database::new().await;
    let store = database.store(2);
    let kept = Start::of(1).search(&store, point(3)).await;
    let gone = Start::of(2).search(&store, point(4)).await;
    store.release_run(gone.run_id).await.unwrap();
    let study_id = database.number("select id from studies").await;
    let pending = store.study_state(study_id).await.unwrap().pending;
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].parametrization, kept.parametrization);
    let awaited = store
        .awaited_runs("alpha", true, 10, &[])
        .await
        .unwrap()
        .runs;
    let released: Vec<_> = awaited.iter().map(|run| run.released).collect();
    assert_eq!(released, [false, true]);
    store.release_run(404).await.unwrap_err();
}
