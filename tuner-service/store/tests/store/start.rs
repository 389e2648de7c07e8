//! Each start is decided once, and starts of one study are decided one after the other.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use io_autotune_model::{Parametrization, Phase, Role, Space};
use io_autotune_store::{
    BusyStart, Decision, Judged, Scarce, StartedRun, StartedTogether, Store, StoreError,
    StudyFilter, StudyState, Verdict,
};
use serde_json::json;
use sqlx::Connection;
use tokio::task::JoinSet;

use crate::support::{
    CLUSTER, Database, Lock, Start, by, decision, in_flight, launch, narrow_space, other_space,
    point, space, study,
};

/// All fields that a caller gets.
fn answer(run: &StartedRun) -> (i64, Phase, Role, Parametrization, String, serde_json::Value) {
    (
        run.run_id,
        run.phase,
        run.role,
        run.parametrization.clone(),
        run.reason.clone(),
        run.delivery.clone(),
    )
}

#[tokio::test]
async fn a_retried_start_gets_the_first_answer_and_decides_nothing() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = Start::of(1).search(&store, point(5)).await;
    let again = Start::of(1)
        .ask(&store, |_| panic!("a second decision for one job"))
        .await
        .unwrap();
    assert_eq!(answer(&again), answer(&first));
    // Without the lock, deciding costs less than looking first; the decision is not used.
    let mut unlocked = Start::of(1);
    unlocked.lock = Lock::None;
    assert_eq!(
        answer(&unlocked.search(&store, point(6)).await),
        answer(&first)
    );
    assert_eq!(first.parametrization, point(5));
    assert_eq!(database.number("select count(*) from runs").await, 1);
}

#[tokio::test]
async fn a_restarted_job_is_another_run() {
    let database = Database::new().await;
    let store = database.store(2);
    let clusters = [CLUSTER, "beta"].map(str::to_owned);
    store.serve_clusters(&clusters).await.unwrap();
    let first = Start::of(1).search(&store, point(5)).await;
    let mut start = Start::of(1);
    start.job.restart_count = 1;
    let second = start.search(&store, point(6)).await;
    let third = start.on("beta").search(&store, point(7)).await;
    assert!(first.run_id < second.run_id && second.run_id < third.run_id);
    assert_eq!(second.parametrization, point(6));
    assert_eq!(third.parametrization, point(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_nodes_that_ask_at_once_get_one_run_and_one_answer() {
    let database = Database::new().await;
    let store = database.store(16);
    for (job_id, lock) in [(1, Lock::Wait(Duration::from_secs(10))), (2, Lock::None)] {
        let mut asking = JoinSet::new();
        for node in 0..16 {
            let (store, mut start) = (store.clone(), Start::of(job_id));
            start.lock = lock;
            asking.spawn(async move { start.search(&store, point(node)).await });
        }
        let answers: Vec<_> = asking.join_all().await.iter().map(answer).collect();
        assert_eq!(answers.len(), 16);
        for other in &answers {
            assert_eq!(other, &answers[0], "{lock:?}");
        }
    }
    assert_eq!(database.number("select count(*) from runs").await, 2);
    assert_eq!(database.number("select count(*) from studies").await, 1);
    assert_eq!(database.number("select count(*) from epochs").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_decides_too_late_gets_the_answer_that_was_stored_meanwhile() {
    let database = Database::new().await;
    let store = database.store(4);
    let (deciding, is_deciding) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let late = tokio::spawn({
        let store = store.clone();
        async move {
            let mut start = Start::of(1);
            start.lock = Lock::None;
            start
                .ask(&store, move |_| {
                    deciding.send(()).unwrap();
                    // The worker's other tasks must go on meanwhile.
                    tokio::task::block_in_place(|| may_go_on.recv().unwrap());
                    decision(Phase::Search, Role::Search, point(9))
                })
                .await
                .unwrap()
        }
    });
    tokio::task::spawn_blocking(move || is_deciding.recv().unwrap())
        .await
        .unwrap();
    let early = Start::of(1).search(&store, point(3)).await;
    go_on.send(()).unwrap();
    assert_eq!(answer(&late.await.unwrap()), answer(&early));
    assert_eq!(early.parametrization, point(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_starts_of_a_study_each_see_all_earlier_ones_pending() {
    let database = Database::new().await;
    let store = database.store(32);
    let mut starting = JoinSet::new();
    for job_id in 1..=32 {
        let store = store.clone();
        starting.spawn(async move {
            let mut seen = Vec::new();
            let run = Start::of(job_id)
                .ask(&store, |state| {
                    seen = state.pending.clone();
                    let mine = point(u32::try_from(in_flight(state)).unwrap());
                    decision(Phase::Design, Role::Design, mine)
                })
                .await
                .unwrap();
            (run.run_id, run.parametrization, seen)
        });
    }
    let mut started = starting.join_all().await;
    started.sort_by_key(|(run_id, ..)| *run_id);
    for (place, (_, _, seen)) in started.iter().enumerate() {
        // There are 24 points, so the first eight come again: equal runs are one entry.
        let alike = place.saturating_sub(24);
        let earlier: Vec<_> = started[..place]
            .iter()
            .take(24)
            .enumerate()
            .map(|(nth, (_, mine, _))| (mine, 1 + u64::from(nth < alike)))
            .collect();
        let pending: Vec<_> = seen
            .iter()
            .map(|run| (&run.parametrization, run.count))
            .collect();
        assert_eq!(pending, earlier);
        assert!(seen.iter().all(|run| run.role == Role::Design));
        assert!(seen.iter().all(|run| run.phase == Phase::Design));
    }
}

#[tokio::test]
async fn a_locked_study_is_busy_within_the_wait_and_does_not_hold_up_who_needs_no_lock() {
    let database = Database::new().await;
    let store = database.store(4);
    Start::of(1).search(&store, point(1)).await;
    let mut holder = database.connect().await;
    let mut held = holder.begin().await.unwrap();
    sqlx::query("select id from studies for update")
        .execute(&mut *held)
        .await
        .unwrap();

    let mut start = Start::of(2);
    start.lock = Lock::Wait(Duration::from_millis(300));
    let begun = Instant::now();
    let error = start
        .ask(&store, |_| decision(Phase::Search, Role::Search, point(2)))
        .await
        .unwrap_err();
    let waited = begun.elapsed();
    let runs = "select count(*) from runs where job_id = 2";
    assert_eq!(
        database.number(runs).await,
        0,
        "what was decided is not used"
    );
    assert!(
        matches!(
            error,
            StoreError::Busy {
                transaction: "start_run",
                scarce: Scarce::Study,
            }
        ),
        "{error:?}"
    );
    assert!(waited >= Duration::from_millis(290), "{waited:?}");
    assert!(waited < Duration::from_millis(1500), "{waited:?}");

    start.lock = Lock::None;
    let run = start
        .ask(&store, |state| {
            assert_eq!(state.pending.len(), 1);
            decision(Phase::Search, Role::BestKnown, point(2))
        })
        .await
        .unwrap();
    assert_eq!(run.role, Role::BestKnown);

    // Another study is not held up either.
    let mut other = Start::of(3);
    other.study = study(1000, "another");
    other.search(&store, point(3)).await;

    held.rollback().await.unwrap();
    let mut later = Start::of(4);
    later.lock = Lock::Wait(Duration::from_millis(300));
    later.search(&store, point(4)).await;
}

/// What becomes of jobs that start together, each with a parametrization of its own.
async fn together(store: &Store, state: &StudyState, starts: &[Start]) -> Vec<StartedTogether> {
    let busy = starts.iter().zip(1..).map(|(start, number)| {
        let best = decision(Phase::Search, Role::BestKnown, point(number));
        BusyStart::new(&start.as_run(), best)
    });
    let told = store.start_together(&starts[0].study, state, busy.collect());
    told.await.unwrap()
}

fn run_of(told: &StartedTogether) -> Option<&StartedRun> {
    match told {
        StartedTogether::Started(run) => Some(run),
        StartedTogether::HasRuns => None,
        StartedTogether::Outdated => panic!("nobody has steered the study"),
    }
}

#[tokio::test]
async fn those_that_start_together_each_have_a_run_as_if_they_had_come_alone() {
    let database = Database::new().await;
    let store = database.store(4);
    let has_run = Start::of(1);
    let earlier = has_run.search(&store, point(9)).await;
    let state = store
        .state_of(&has_run.study, &has_run.space)
        .await
        .unwrap();
    let mut restarted = Start::of(1);
    restarted.job.restart_count = 1;
    // In no order, one job twice, and one that has a run.
    let starts = [Start::of(3), has_run, Start::of(2), restarted, Start::of(3)];
    let told = together(&store, &state, &starts).await;
    let runs: Vec<Option<&StartedRun>> = told.iter().map(run_of).collect();
    let given = runs
        .iter()
        .map(|run| run.map(|run| run.parametrization.clone()));
    let of = |number| Some(point(number));
    assert_eq!(given.collect::<Vec<_>>(), [of(1), None, of(3), of(4), None]);
    let own = [runs[0], Some(&earlier), runs[2], runs[3], runs[0]];
    for (mut start, own) in starts.into_iter().zip(own) {
        start.lock = Lock::None;
        let again = start
            .ask(&store, |_| panic!("it is decided"))
            .await
            .unwrap();
        assert_eq!(answer(&again), answer(own.unwrap()));
    }
    assert_eq!(database.number("select count(*) from runs").await, 4);
}

#[tokio::test]
async fn a_launch_whose_job_id_was_anothers_starts_no_run_together_with_others() {
    let database = Database::new().await;
    let store = database.store(4);
    let launch = |sluid: &str| Start {
        sluid: Some(sluid.parse().unwrap()),
        ..Start::of(1)
    };
    let before = launch("s5TFPJ0K1Q0000");
    let earlier = before.search(&store, point(9)).await;
    let state = store.state_of(&before.study, &before.space).await.unwrap();
    let mut starts = [launch("s5TFPJ0K1Q0001"), Start::of(2)];
    let told = together(&store, &state, &starts).await;
    assert!(
        run_of(&told[0]).is_none() && run_of(&told[1]).is_some(),
        "{told:?}"
    );
    // Alone it has a run of its own, the id's second one.
    starts[0].lock = Lock::None;
    let best = |_: &StudyState| decision(Phase::Search, Role::BestKnown, point(1));
    let own = starts[0].ask(&store, best).await.unwrap();
    assert_ne!(own.run_id, earlier.run_id);
    let second = "select count(*) from runs where job_id = 1 and generation = 1";
    assert_eq!(database.number(second).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_that_start_the_same_jobs_in_another_order_do_not_wait_for_each_other() {
    let database = Database::new().await;
    let stores = [database.store(2), database.store(2)];
    let first = Start::of(1);
    let state = stores[0]
        .state_of(&first.study, &first.space)
        .await
        .unwrap();
    for round in 0..20 {
        let jobs = || (1..=100).map(move |job| Start::of(1000 * (round + 1) + job));
        let (up, down): (Vec<_>, Vec<_>) = (jobs().collect(), jobs().rev().collect());
        let (one, two) = tokio::join!(
            together(&stores[0], &state, &up),
            together(&stores[1], &state, &down)
        );
        let started = one.iter().chain(&two).filter_map(run_of).count();
        assert_eq!(started, 100, "each job has one run");
    }
}

#[tokio::test]
async fn none_of_those_that_start_together_starts_once_the_study_is_steered() {
    let database = Database::new().await;
    let store = database.store(4);
    let starts = [Start::of(1), Start::of(2)];
    let state = store
        .state_of(&starts[0].study, &starts[0].space)
        .await
        .unwrap();
    store
        .reset(state.study_id, by(1000, "another compiler"))
        .await
        .unwrap();
    let told = together(&store, &state, &starts).await;
    let is_outdated = |one: &StartedTogether| matches!(one, StartedTogether::Outdated);
    assert!(told.len() == 2 && told.iter().all(is_outdated), "{told:?}");
    assert_eq!(database.number("select count(*) from runs").await, 0);
}

#[tokio::test]
async fn owner_application_accelerator_and_context_each_make_another_study() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut owner = study(1000, "solver");
    owner.owner_uid = 1001;
    let mut accelerator = study(1000, "solver");
    accelerator.accelerator = "burst_buffer".into();
    let mut context = study(1000, "solver");
    context.context.insert("nodes".into(), "4".into());
    let keys = [
        study(1000, "solver"),
        owner,
        study(1000, "another"),
        accelerator,
        context,
    ];
    for (job_id, key) in (1..).zip(keys.iter().chain(&keys)) {
        let mut start = Start::of(job_id);
        start.study = key.clone();
        start.search(&store, point(1)).await;
    }
    let studies = store.studies(&StudyFilter::default()).await.unwrap();
    assert_eq!(studies.len(), keys.len());
    for row in studies {
        let state = store.study_state(row.study_id).await.unwrap();
        assert_eq!(in_flight(&state), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_changed_space_opens_one_new_epoch_that_starts_empty() {
    let database = Database::new().await;
    let store = database.store(8);
    let before = Start::of(1)
        .ask(&store, |state| {
            assert_eq!((state.epoch, &*state.space), (1, &space()));
            decision(Phase::Baseline, Role::Baseline, point(0))
        })
        .await
        .unwrap();

    // A start without the lock opens nothing, and gets the space that its run belongs to.
    let mut unlocked = Start::of(2);
    (unlocked.lock, unlocked.space) = (Lock::None, other_space());
    unlocked
        .ask(&store, |state| {
            assert_eq!((state.epoch, &*state.space), (1, &space()));
            decision(Phase::Baseline, Role::BestKnown, point(0))
        })
        .await
        .unwrap();

    let mut starting = JoinSet::new();
    for job_id in 10..18 {
        let store = store.clone();
        starting.spawn(async move {
            let mut start = Start::of(job_id);
            start.space = other_space();
            let mut seen = None;
            start
                .ask(&store, |state| {
                    seen = Some(state.clone());
                    decision(Phase::Baseline, Role::Baseline, state.space.default())
                })
                .await
                .unwrap();
            seen.unwrap()
        });
    }
    let mut states: Vec<StudyState> = starting.join_all().await;
    states.sort_by_key(in_flight);
    for (earlier, state) in (0..).zip(&states) {
        assert_eq!((state.epoch, &*state.space), (2, &other_space()));
        assert_eq!(in_flight(state), earlier);
        assert_eq!(*state.history, Default::default());
    }
    assert_eq!(database.number("select count(*) from epochs").await, 2);
    let query = "select count(*) from epochs e join epochs p on p.id = e.parent_id
                     where e.ordinal = 2 and p.ordinal = 1 and e.takes = 'runs' and e.taken_judgements = 0 and e.opened_why <> ''";
    assert_eq!(database.number(query).await, 1);
    let first = "select e.ordinal::bigint from runs r join epochs e on e.id = r.epoch_id order by r.id limit 1";
    assert_eq!(database.number(first).await, 1);
    assert!(before.run_id > 0);
}

/// A job from its start to the verdict that it counts.
async fn counted(store: &Store, job_id: u32, parametrization: Parametrization, elapsed: f64) {
    let run_id = launch(store, job_id, parametrization.clone(), elapsed).await;
    let verdict = Verdict::Counted {
        parametrization,
        why: "a test".into(),
    };
    // A report and a record of Slurm's.
    let judged = store.judge_run(run_id, 2, &verdict).await.unwrap();
    assert_eq!(judged, Judged::First);
}

#[tokio::test]
async fn an_epoch_of_another_space_takes_the_runs_that_fit_it() {
    let database = Database::new().await;
    let store = database.store(2);
    let seconds = [(0, 10.0), (5, 7.0), (0, 11.0), (7, 3.0)];
    for (job_id, (index, elapsed)) in (1..).zip(seconds) {
        counted(&store, job_id, point(index), elapsed).await;
    }
    let first = store.study_state(1).await.unwrap();
    store
        .pin(1, &point(5), None, by(0, "a test"))
        .await
        .unwrap();
    // Without the value 8, which the fourth run had.
    let mut narrow = Start::of(10);
    narrow.space = narrow_space();
    narrow.search(&store, point(1)).await;
    let state = store.study_state(1).await.unwrap();
    assert_eq!((state.epoch, &*state.space), (2, &narrow_space()));
    let known = |state: &StudyState| -> Vec<(Parametrization, u64)> {
        let tested = state.history.tested.iter();
        tested
            .map(|t| (t.parametrization.clone(), t.elapsed.count))
            .collect()
    };
    assert_eq!(known(&first), [(point(0), 2), (point(5), 1), (point(7), 1)]);
    assert_eq!(known(&state), [(point(0), 2), (point(5), 1)]);
    assert_eq!(
        state.history.tally, first.history.tally,
        "nothing new is offered"
    );
    assert_eq!(state.pin, Some(point(5)));

    // Later results are added to these, and a replay finds them again.
    counted(&store, 10, point(5), 8.0).await;
    let later = store.study_state(1).await.unwrap();
    assert_eq!(known(&later), [(point(0), 2), (point(5), 2)]);
    assert_eq!(
        store
            .history_at(later.epoch_id, later.judged)
            .await
            .unwrap(),
        *later.history
    );
    assert_eq!(store.check_caches().await.unwrap(), []);

    // And back again: runs that were left behind stay in their epoch.
    Start::of(11).search(&store, point(2)).await;
    let wide = store.study_state(1).await.unwrap();
    assert_eq!((wide.epoch, known(&wide)), (3, known(&later)));
    assert_eq!(
        wide.history.tally.explored, 0,
        "there is something new to find"
    );
    assert_eq!(store.check_caches().await.unwrap(), []);
}

#[tokio::test]
async fn other_words_for_people_open_no_epoch() {
    let database = Database::new().await;
    let store = database.store(2);
    Start::of(1).search(&store, point(1)).await;
    let mut told = Start::of(2);
    let mut parameters = space().parameters().to_vec();
    parameters[0].description = Some("aggregators".into());
    told.space = Space::new(parameters).unwrap();
    told.search(&store, point(2)).await;
    assert_eq!(database.number("select count(*) from epochs").await, 1);
}

#[tokio::test]
async fn a_space_is_the_same_after_it_was_stored() {
    let database = Database::new().await;
    let store = database.store(2);
    // Numbers whose shortest decimal form has 16 or 17 digits are the hard ones to reproduce.
    let values = [
        0.1,
        1.0 / 3.0,
        2.0,
        1.0e-7,
        123_456.789,
        0.1 + 0.2,
        std::f64::consts::PI * 1e15,
        std::f64::consts::E * 1e-12,
    ];
    let space: Space = serde_json::from_value(json!([
            { "name": "ratio", "kind": "ordered", "values": values, "default": values[1] },
            { "name": "whole", "kind": "integer", "min": i64::MIN, "max": i64::MAX, "step": 1_i64 << 40,
              "default": i64::MIN + (1_i64 << 40) },
            { "name": "word", "kind": "categories", "values": ["ö", "\"", "\\", "a b"], "default": "\"" },
        ]))
        .unwrap();
    for job_id in 1..=3 {
        let mut start = Start::of(job_id);
        start.space = space.clone();
        start
            .ask(&store, |state| {
                assert_eq!(*state.space, space);
                let keys: Vec<_> = state
                    .pending
                    .iter()
                    .map(|run| run.parametrization.key())
                    .collect();
                assert!(keys.iter().all(|key| *key == space.default().key()));
                decision(Phase::Baseline, Role::Baseline, space.default())
            })
            .await
            .unwrap();
    }
    assert_eq!(database.number("select count(*) from epochs").await, 1);
}

#[tokio::test]
async fn a_decision_that_the_schema_refuses_leaves_no_run() {
    let database = Database::new().await;
    let store = database.store(1);
    let mut start = Start::of(1);
    start.job.job_id = 0;
    let refused = start
        .ask(&store, |_| -> Decision {
            decision(Phase::Search, Role::Search, point(1))
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Database { .. })));
    assert_eq!(database.number("select count(*) from runs").await, 0);
    start.job.job_id = u32::MAX;
    start.search(&store, point(1)).await;
}
