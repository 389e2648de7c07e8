//! After a drift exactly one new epoch opens, which keeps the ranks.

use io_autotune_engine::{
    BestKnownBecause, Changed, Drift, DriftSettings, Epoch, Phase, Role, Settings, SettledRun,
    drift,
};
use io_autotune_store::{Inheritance, Judged, Store, StoreError, StudyState};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{
    Database, Report, Start, by, counted, decision, not_counted, other_space, point, say,
};

/// A run of the settled phase that counts: every tenth has the default and takes 15 s, the others
/// have the recommendation and take 10 s, all times `factor` and with a little noise.
async fn settled_run(store: &Store, job_id: u32, factor: f64) -> i64 {
    let control = job_id % 10 == 1;
    let (role, given, usual) = if control {
        (Role::Control, point(0), 15.0)
    } else {
        (Role::Settled, point(3), 10.0)
    };
    let started = Start::of(job_id)
        .ask(store, |_| decision(Phase::Settled, role, given.clone()))
        .await
        .unwrap();
    let mut report = Report::of(job_id);
    report.elapsed = Some(usual * factor * (1.0 + 0.01 * f64::from(job_id * 7 % 11)));
    report.applied = Some(given.clone());
    report.deliver(store).await.unwrap();
    say(store, job_id, "COMPLETED").await;
    let verdict = counted(given);
    store.judge_run(started.run_id, 2, &verdict).await.unwrap();
    started.run_id
}

fn detect(runs: &[SettledRun]) -> Option<Drift> {
    drift(runs, &DriftSettings::default())
}

fn inherit(state: &StudyState, drift: &Drift) -> Inheritance {
    Inheritance {
        inherited: Epoch::new(&state.space, &Settings::default(), state.seed)
            .ranks(&state.history, drift),
        drift: json!({ "drift": drift, "judged": state.judged }),
        why: format!("drift: {drift}"),
    }
}

async fn follow(store: &Store, run_id: i64) -> Option<i32> {
    let opened = store
        .follow_drift(&[run_id], detect, inherit)
        .await
        .unwrap();
    opened.map(|(epoch, _)| epoch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_that_see_a_drift_one_opens_an_epoch_that_keeps_ranks() {
    let database = Database::new().await;
    let store = database.store(8);
    for job_id in 1..=70 {
        let run_id = settled_run(&store, job_id, 1.0).await;
        assert_eq!(follow(&store, run_id).await, None);
    }
    let study_id = database.number("select id from studies").await;
    let mut last = 0;
    for job_id in 71..=90 {
        last = settled_run(&store, job_id, 2.0).await;
    }
    let parent = store.study_state(study_id).await.unwrap();
    let mut looking = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        looking.spawn(async move { follow(&store, last).await });
    }
    let opened = looking.join_all().await;
    let one: Vec<i32> = opened.into_iter().flatten().collect();
    assert_eq!(one, [2]);

    let state = store.study_state(study_id).await.unwrap();
    assert_eq!((state.epoch, state.opened.takes.as_str()), (2, "ranks"));
    assert_eq!(state.inherited, [point(3), point(0)]);
    assert!(state.history.tested.is_empty());
    assert!(
        state.opened.why.starts_with("drift: tuned runs took 10."),
        "{}",
        state.opened.why
    );
    let evidence = state.opened.drift.clone().unwrap();
    let found: Drift = serde_json::from_value(evidence["drift"].clone()).unwrap();
    assert_eq!(
        (found.changed, evidence["judged"].clone()),
        (Changed::Level, json!(90))
    );
    assert_eq!(
        database
            .number("select parent_id from epochs where ordinal = 2")
            .await,
        parent.epoch_id
    );
    // The parent's history stays as it was.
    let kept = store.history_at(parent.epoch_id, 90).await.unwrap();
    assert_eq!(kept, *parent.history);
    assert!(store.check_caches().await.unwrap().is_empty());

    // A late verdict on a run of the old epoch opens nothing.
    assert_eq!(follow(&store, last).await, None);
    // The next start measures the default, and one that may not explore gets the earlier best.
    let settings = Settings::default();
    let epoch = Epoch::new(&state.space, &settings, state.seed).inheriting(&state.inherited);
    let next = epoch.suggest(&state.history, &state.pending);
    assert_eq!(
        (next.role, next.parametrization),
        (Role::Baseline, point(0))
    );
    let busy = epoch.best_known_of(None, &state.history, BestKnownBecause::Busy);
    assert_eq!(busy.parametrization, point(3));
    // The inputs of its decision are stored.
    let started = Start::of(1000).search(&store, point(3)).await;
    let inputs = store.epoch_inputs(started.run_id).await.unwrap().unwrap();
    assert_eq!(inputs.inherited, state.inherited);
    let audit = by(0, "afresh");
    store.reset(study_id, audit).await.unwrap();
    let state = store.study_state(study_id).await.unwrap();
    assert_eq!((state.epoch, state.opened.takes.as_str()), (3, "nothing"));
    assert!(state.inherited.is_empty());
}

/// Gives up runs that nobody has reported, and looks for drift after each. Returns the numbers of
/// first verdicts and of epochs that were this store's.
async fn expire(runs: Vec<i64>, store: Store, database: Database) -> (usize, usize) {
    let verdict = not_counted("nobody has reported it");
    let (mut first, mut opened) = (0, 0);
    for run_id in runs {
        match database.judge(&store, run_id, &verdict).await.unwrap() {
            Judged::First => first += 1,
            Judged::Unchanged => {}
            other => panic!("nothing new was heard of the run: {other:?}"),
        }
        opened += loop {
            match store.follow_drift(&[run_id], detect, inherit).await {
                Ok(epoch) => break usize::from(epoch.is_some()),
                // The service's next judgement looks again.
                Err(StoreError::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
    }
    (first, opened)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_services_that_expire_runs_see_a_drift_and_read_a_new_catalogue_one_does_each() {
    let database = Database::new().await;
    let stores = [database.store(8), database.store(8)];
    for job_id in 1..=90 {
        settled_run(&stores[0], job_id, if job_id > 70 { 2.0 } else { 1.0 }).await;
    }
    let mut unheard = Vec::new();
    for job_id in 201..=216 {
        let settled = |_: &StudyState| decision(Phase::Settled, Role::Settled, point(3));
        let run = Start::of(job_id).ask(&stores[1], settled).await.unwrap();
        unheard.push(run.run_id);
    }
    let (mut expiring, mut starting) = (JoinSet::new(), JoinSet::new());
    for store in &stores {
        expiring.spawn(expire(unheard.clone(), store.clone(), database.clone()));
        for job_id in 301..=308 {
            let (store, mut start) = (store.clone(), Start::of(job_id));
            start.space = other_space();
            starting.spawn(async move {
                let started = start.ask(&store, |state| {
                    decision(Phase::Baseline, Role::Baseline, state.space.default())
                });
                started.await.unwrap().run_id
            });
        }
    }
    let mut started = starting.join_all().await;
    let expired = expiring.join_all().await;
    assert_eq!(
        expired.iter().map(|(first, _)| first).sum::<usize>(),
        unheard.len()
    );
    started.sort_unstable();
    assert!(
        started.chunks(2).all(|both| both[0] == both[1]),
        "{started:?}"
    );

    let drifts = database
        .number("select count(*) from epochs where drift is not null")
        .await;
    let opened: usize = expired.iter().map(|(_, opened)| opened).sum();
    assert_eq!(i64::try_from(opened).unwrap(), drifts);
    assert!(drifts <= 1, "{drifts} epochs for one drift");
    let spaces = "select count(*) from epochs e join epochs p on p.id = e.parent_id where e.space <> p.space";
    assert_eq!(
        database.number(spaces).await,
        1,
        "one epoch for the new catalogue"
    );
    let epochs = database.number("select count(*) from epochs").await;
    assert_eq!(epochs, 2 + drifts, "and none besides");
    assert_eq!(
        database
            .number("select max(ordinal)::bigint from epochs")
            .await,
        epochs
    );
    let of_new = "select count(distinct epoch_id) from runs where job_id between 301 and 308";
    assert_eq!(database.number(of_new).await, 1);
    assert!(stores[0].check_caches().await.unwrap().is_empty());
}

#[tokio::test]
async fn while_it_is_pinned_a_study_is_not_looked_at_and_neither_is_a_run_of_the_search() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut last = 0;
    for job_id in 1..=90 {
        let factor = if job_id > 70 { 2.0 } else { 1.0 };
        last = settled_run(&store, job_id, factor).await;
    }
    let study_id = database.number("select id from studies").await;
    let audit = by(0, "a test");
    store.pin(study_id, &point(3), None, audit).await.unwrap();
    assert_eq!(follow(&store, last).await, None);
    let expire = "update pins set until = now() - interval '1 s' returning study_id";
    assert_eq!(database.number(expire).await, study_id);
    let search = Start::of(91).search(&store, point(5)).await;
    assert_eq!(follow(&store, search.run_id).await, None);
    assert_eq!(follow(&store, last).await, Some(2));
    assert_eq!(database.number("select count(*) from epochs").await, 2);
}

#[tokio::test]
async fn the_schema_knows_which_epochs_have_ranks() {
    let database = Database::new().await;
    let store = database.store(1);
    Start::of(1).search(&store, point(1)).await;
    for change in [
        "update epochs set drift = '{}' returning 1::bigint",
        "update epochs set inherited = '[{}]' returning 1::bigint",
        "update epochs set takes = 'ranks', inherited = '{}' returning 1::bigint",
    ] {
        let mut connection = database.connect().await;
        let refused: Result<i64, sqlx::Error> =
            sqlx::query_scalar(change).fetch_one(&mut connection).await;
        let error = refused.unwrap_err();
        let code = error
            .as_database_error()
            .and_then(|error| error.code().map(String::from));
        assert_eq!(code.as_deref(), Some("23514"), "{change}: {error}");
    }
}
