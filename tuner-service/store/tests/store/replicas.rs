//! Two services on one database: no decision is made by both.

use std::time::Duration;

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Judged, NewRun, Source, Store, StoreError, StudyState};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{
    CLUSTER, Database, Report, Start, by, counted, decision, in_flight, point, space, study, word,
};

const STUDIES: [&str; 4] = ["one", "two", "three", "four"];

/// The number of points of the design, and of runs of each study.
const POINTS: u32 = 16;

/// The first design point that has not been given to a run. A start that was overtaken by the other
/// store's is decided once more, and its first decision is not used: it may find no point left, and
/// then gets one outside the design.
fn next_point(state: &StudyState) -> u32 {
    let tested = state.history.tested.iter().map(|one| &one.parametrization);
    let pending = state.pending.iter().map(|runs| &runs.parametrization);
    let given: Vec<_> = tested.chain(pending).collect();
    (0..POINTS)
        .find(|index| !given.contains(&&point(*index)))
        .unwrap_or(POINTS)
}

fn job_id(study: usize, run: u32) -> u32 {
    u32::try_from(study).unwrap() * 1000 + run + 1
}

/// The runs of all studies, started through both stores: two nodes ask for every job at the same
/// moment, each through another store.
async fn started(stores: &[Store; 2]) -> Vec<(u32, i64)> {
    let mut starting = JoinSet::new();
    for run in 0..POINTS {
        for (number, application) in STUDIES.iter().enumerate() {
            for store in stores {
                let (store, mut start) = (store.clone(), Start::of(job_id(number, run)));
                start.study = study(1000, application);
                starting.spawn(async move {
                    let design = |state: &StudyState| {
                        decision(Phase::Design, Role::Design, point(next_point(state)))
                    };
                    // On a busy machine a start may be refused because no connection is free.
                    let started = loop {
                        match start.ask(&store, design).await {
                            Err(StoreError::Busy { .. }) => {}
                            started => break started.unwrap(),
                        }
                    };
                    (
                        start.job.job_id,
                        started.run_id,
                        started.parametrization.key(),
                    )
                });
            }
        }
    }
    let mut answers = starting.join_all().await;
    answers.sort();
    let runs: Vec<_> = answers
        .chunks(2)
        .map(|both| {
            assert_eq!(both[0], both[1], "both replicas give one answer");
            (both[0].0, both[0].1)
        })
        .collect();
    runs
}

/// Reports runs, lets Slurm report that they completed, and judges them. Returns the numbers of
/// reports, records and first judgements that were this store's.
async fn end(runs: &[(u32, i64)], store: &Store, database: &Database) -> (u64, u64, u64) {
    let counts = counted(point(0));
    let (mut reports, mut said, mut first) = (0, 0, 0);
    for (job_id, run_id) in runs {
        let mut report = Report::of(*job_id);
        report.run_id = Some(*run_id);
        let finished = report.deliver(store).await.unwrap();
        assert_eq!(finished.run_id, *run_id);
        reports += u64::from(!finished.duplicate);
        let words = [word(*job_id, "COMPLETED")];
        let recorded = store
            .record_outcomes(Source::Squeue, CLUSTER, &words)
            .await
            .unwrap();
        said += recorded.stored;
        loop {
            match database.judge(store, *run_id, &counts).await.unwrap() {
                Judged::First => first += 1,
                Judged::Unchanged => {}
                // The other store has stored a change.
                Judged::Outdated => continue,
                Judged::Revised => panic!("the same verdict revises nothing"),
            }
            break;
        }
    }
    (reports, said, first)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_state_of_a_study_never_forks() {
    let database = Database::new().await;
    let stores = [database.store(8), database.store(8)];
    let runs = started(&stores).await;
    let design = "select count(*) from (select distinct epoch_id, parametrization from runs) d";
    let all = i64::from(POINTS) * 4;
    assert_eq!(
        database.number(design).await,
        all,
        "no point is given twice"
    );
    assert_eq!(database.number("select count(*) from runs").await, all);

    // Both stores get all reports and records, and both judge.
    let mut ending = JoinSet::new();
    for part in runs.chunks(runs.len() / 4) {
        for store in &stores {
            let (part, store, database) = (part.to_vec(), store.clone(), database.clone());
            ending.spawn(async move { end(&part, &store, &database).await });
        }
    }
    let ended = ending.join_all().await;
    let all = u64::from(POINTS) * 4;
    let sums = ended.iter().fold((0, 0, 0), |sum, one| {
        (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
    });
    assert_eq!(
        sums,
        (all, all, all),
        "reports, words and judgements: each once"
    );
    let gaps = "select coalesce(sum(e.judgements - j.most) + sum(j.most - j.count), -1)::bigint
                    from epochs e join (select epoch_id, max(ordinal) as most, count(*) from judgements group by 1) j
                        on j.epoch_id = e.id";
    assert_eq!(
        database.number(gaps).await,
        0,
        "judgements are numbered without a gap"
    );
    assert!(stores[1].check_caches().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_start_by_a_state_from_before_a_reset_is_not_made() {
    let database = Database::new().await;
    let [here, there] = [database.store(2), database.store(2)];
    let (key, space) = (study(1000, "solver"), space());
    let by = by(1000, "another compiler");
    let before = here.state_of(&key, &space).await.unwrap();
    let job = Start::of(1).job;
    let new = NewRun {
        job: &job,
        sluid: None,
        node: "n1",
        nodes: 2,
        study: &key,
        request: json!({}),
        space: &space,
        began_at: None,
        budgets: None,
    };
    let best = |_: &StudyState| decision(Phase::Settled, Role::BestKnown, point(1));
    let outdated = |started: Result<_, StoreError>| {
        assert!(
            matches!(started, Err(StoreError::Outdated { .. })),
            "{started:?}"
        );
    };
    there.reset(before.study_id, by).await.unwrap();
    outdated(
        here.start_unlocked(&new, &before, best)
            .await
            .map(|run| run.run_id),
    );
    let reset = here.state_of(&key, &space).await.unwrap();
    there
        .pin(before.study_id, &point(3), None, by)
        .await
        .unwrap();
    outdated(
        here.start_unlocked(&new, &reset, best)
            .await
            .map(|run| run.run_id),
    );
    let pinned = here.state_of(&key, &space).await.unwrap();
    let started = here.start_unlocked(&new, &pinned, best).await.unwrap();
    // A started run gets its answer, whatever was read before.
    let again = here.start_unlocked(&new, &before, best).await.unwrap();
    assert_eq!(again.run_id, started.run_id);
    here.release_run(started.run_id).await.unwrap();
    assert_eq!(database.number("select count(*) from runs").await, 1);
}

/// Asks `here`, which keeps a copy of the study; while it decides for the first time, `there` acts.
/// Returns the states from which it decided.
async fn decided_while(
    [here, there]: &[Store; 2],
    job_id: u32,
    meanwhile: impl AsyncFn(&Store) + Sync,
) -> Vec<StudyState> {
    let mut seen = Vec::new();
    let runtime = tokio::runtime::Handle::current();
    Start::of(job_id)
        .ask(here, |state| {
            if seen.is_empty() {
                tokio::task::block_in_place(|| runtime.block_on(meanwhile(there)));
            }
            seen.push(state.clone());
            decision(Phase::Search, Role::Search, point(job_id))
        })
        .await
        .unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_decides_while_another_has_the_studys_turn_decides_anew() {
    let database = Database::new().await;
    let stores = [database.store(2), database.store(2)];
    Start::of(1).search(&stores[0], point(1)).await;
    let by = by(1000, "another compiler");
    let alone = decided_while(&stores, 2, async |_| {}).await;
    assert_eq!(alone.len(), 1, "nobody else was there");

    let started = decided_while(&stores, 3, async |there| {
        Start::of(4).search(there, point(4)).await;
    });
    let [before, after] = &started.await[..] else {
        panic!("it is decided once more");
    };
    assert_eq!((in_flight(before), in_flight(after)), (2, 3));

    let pinned = decided_while(&stores, 5, async |there| {
        there.pin(1, &point(7), None, by).await.unwrap();
    });
    let pins: Vec<_> = pinned.await.into_iter().map(|state| state.pin).collect();
    assert_eq!(pins, [None, Some(point(7))]);

    let counts = counted(point(0));
    let judged = decided_while(&stores, 6, async |there| {
        Report::of(1).deliver(there).await.unwrap();
        let words = [word(1, "COMPLETED")];
        let source = Source::Squeue;
        there
            .record_outcomes(source, CLUSTER, &words)
            .await
            .unwrap();
        let judged = there.judge_run(1, database.changes(1).await, &counts);
        assert_eq!(judged.await.unwrap(), Judged::First);
    });
    let judged: Vec<_> = judged.await.iter().map(|state| state.judged).collect();
    assert_eq!(judged, [0, 1]);

    let reset = decided_while(&stores, 7, async |there| {
        there.reset(1, by).await.unwrap();
    });
    let epochs: Vec<_> = reset.await.iter().map(|state| state.epoch).collect();
    assert_eq!(epochs, [1, 2]);
    let old = "select count(*) from runs r join epochs e on e.id = r.epoch_id
                   where r.job_id = 7 and e.ordinal = 2";
    assert_eq!(database.number(old).await, 1);
}

#[tokio::test]
async fn a_transaction_that_the_database_ends_is_worth_repeating_and_a_wait_is_not() {
    let database = Database::new().await;
    let store = database.store(2);
    let ended = Start::of(1)
            .ask(&store, |_| {
                let database = database.clone();
                let ended = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(database.number(
                        "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
                         where datname = current_database() and application_name = 'io-autotuned start_run'",
                    ))
                });
                assert_eq!(ended.join().unwrap(), 1);
                decision(Phase::Search, Role::Search, point(2))
            })
            .await
            .unwrap_err();
    assert!(ended.is_transient() && ended.is_outage(), "{ended}");
    Start::of(1).search(&store, point(2)).await;

    let mut waiting = Start::of(2);
    waiting.lock = crate::support::Lock::Wait(Duration::from_millis(10));
    let mut holder = database.connect().await;
    sqlx::raw_sql("begin; select id from studies for update")
        .execute(&mut holder)
        .await
        .unwrap();
    let busy = waiting
        .ask(&store, |_| decision(Phase::Search, Role::Search, point(3)))
        .await
        .unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
    assert!(!busy.is_transient(), "{busy}");
}
