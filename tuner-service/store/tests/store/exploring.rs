//! The counters of what exploring takes, and the starts that are charged to them.

use std::time::Duration;

use io_autotune_model::{BudgetOf, Outcome, Phase, Role};
use io_autotune_store::{Budgets, Decision, Source, Spent, StartedRun, Store, StudyState};
use sqlx::Row;
use tokio::task::JoinSet;

use crate::support::{
    CLUSTER, Database, Lock, Report, Start, counted, decision, not_counted, point, study, word,
};

const HOUR: f64 = 3600.0;

/// Starts a job of a user's application under these budgets, as the service does: it explores if all
/// budgets have room for this many node-hours.
async fn start(
    store: &Store,
    job_id: u32,
    (uid, application): (u32, &str),
    budgets: Budgets,
    hours: f64,
) -> StartedRun {
    let cost = hours * HOUR;
    let decide = |state: &StudyState| -> Decision {
        let has_room = |one: &Spent| {
            let budget = budgets.of(one.of);
            budget.is_none_or(|budget| one.node_seconds + cost <= budget)
        };
        match state.spent.iter().all(has_room) {
            true => Decision {
                explores: Some(cost),
                ..decision(Phase::Search, Role::Search, point(1))
            },
            false => decision(Phase::Search, Role::BestKnown, point(0)),
        }
    };
    let start = Start {
        study: study(uid, application),
        lock: Lock::Wait(Duration::from_secs(30)),
        budgets: Some(budgets),
        ..Start::of(job_id)
    };
    match start.ask(store, decide).await {
        // Others were quicker each time: the service starts such a run without exploring.
        Err(io_autotune_store::StoreError::Busy { .. }) => {
            let best = |_: &StudyState| decision(Phase::Search, Role::BestKnown, point(0));
            let start = Start {
                lock: Lock::None,
                ..start
            };
            start.ask(store, best).await.unwrap()
        }
        started => started.unwrap(),
    }
}

fn site(hours: f64) -> Budgets {
    Budgets {
        site: Some(hours * HOUR),
        ..Budgets::default()
    }
}

/// Node-hours in each counter: budget, cluster, name.
async fn counters(database: &Database) -> Vec<(String, String, String, f64)> {
    let mut connection = database.connect().await;
    let rows = sqlx::query(
        "select budget_of, cluster, name, node_seconds from exploring_spent order by day, budget_of, name",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let rows = rows.iter().map(|row| {
        let hours = row.get::<f64, _>(3) / HOUR;
        (row.get(0), row.get(1), row.get(2), hours)
    });
    rows.collect()
}

fn counter(of: &str, cluster: &str, name: &str, hours: f64) -> (String, String, String, f64) {
    (of.into(), cluster.into(), name.into(), hours)
}

#[tokio::test]
async fn a_run_is_charged_to_each_budget_that_there_is_and_to_no_other() {
    let database = Database::new().await;
    let store = database.store(2);
    let ocean = (1000, "ocean");
    start(&store, 1, ocean, Budgets::default(), 3.0).await;
    assert_eq!(counters(&database).await, [], "there is no budget");

    let all = Budgets {
        user: Some(10.0 * HOUR),
        account: Some(10.0 * HOUR),
        partition: Some(10.0 * HOUR),
        site: Some(10.0 * HOUR),
        utc_offset: 0,
    };
    start(&store, 2, ocean, all, 3.0).await;
    let batch = |hours| counter("partition", CLUSTER, "batch", hours);
    assert_eq!(
        counters(&database).await,
        [
            batch(3.0),
            counter("site", "", "", 3.0),
            counter("user", "", "1000", 3.0)
        ],
        "the account is not known yet"
    );
    let told = Outcome {
        account: Some("physics".into()),
        ..word(2, "COMPLETED")
    };
    let squeue = Source::Squeue;
    store
        .record_outcomes(squeue, CLUSTER, &[told])
        .await
        .unwrap();
    start(&store, 3, ocean, all, 3.0).await;
    start(&store, 4, (1001, "ocean"), all, 1.0).await;
    assert_eq!(
        counters(&database).await,
        [
            counter("account", CLUSTER, "physics", 3.0),
            batch(7.0),
            counter("site", "", "", 7.0),
            counter("user", "", "1000", 6.0),
            counter("user", "", "1001", 1.0)
        ]
    );
    let spent = store.exploring_spent(&[1], 0).await.unwrap();
    let of: Vec<BudgetOf> = spent[&1].iter().map(|one| one.of).collect();
    assert_eq!(of, BudgetOf::ALL);

    // What has no room in one budget is charged to none.
    let run = start(&store, 5, ocean, all, 4.5).await;
    assert_eq!(run.role, Role::BestKnown);
    assert_eq!(counters(&database).await[2], counter("site", "", "", 7.0));
    let again = start(&store, 3, ocean, all, 3.0).await;
    assert_eq!(again.role, Role::Search, "another node of the job asks");
    assert_eq!(counters(&database).await[2], counter("site", "", "", 7.0));
}

/// A thousand starts at once, of as many users, by two replicas: no budget is exceeded, and what it
/// has room for is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn starts_at_once_by_two_replicas_never_exceed_a_budget() {
    let database = Database::new().await;
    let stores = [database.store(8), database.store(8)];
    // Nobody waits for a study here: the studies are there.
    for uid in 1000..1010 {
        for application in ["a", "b", "c", "d", "e"] {
            let key = study(uid, application);
            stores[0]
                .state_of(&key, &crate::support::space())
                .await
                .unwrap();
        }
    }
    let budgets = Budgets {
        user: Some(9.0 * HOUR),
        partition: Some(70.0 * HOUR),
        ..site(50.0)
    };
    let mut starting = JoinSet::new();
    for job_id in 1..=1000 {
        let store = stores[job_id as usize % 2].clone();
        starting.spawn(async move {
            let uid = 1000 + job_id % 10;
            let application = ["a", "b", "c", "d", "e"][job_id as usize / 10 % 5];
            start(&store, job_id, (uid, application), budgets, 2.0).await
        });
    }
    let started = starting.join_all().await;
    let exploring = started.iter().filter(|run| run.role.explores()).count();
    assert_eq!(started.len(), 1000);
    // 25 runs of 2 hours are the site's; of each user 4 have room.
    assert_eq!(exploring, 25, "as many as have room");
    let sums = counters(&database).await;
    for (of, _, name, hours) in &sums {
        let most = match of.as_str() {
            "user" => 8.0,
            _ => 50.0,
        };
        assert!(*hours <= most, "{of} {name}: {hours}");
    }
    let charged = "select count(*) from exploring_charges where budget_of = 'site'";
    assert_eq!(database.number(charged).await, 25);
    let of_those = "select count(*) from exploring_charges c join runs r on r.id = c.run_id
                    where r.role = 'search' and c.budget_of = 'site'";
    assert_eq!(database.number(of_those).await, 25);
}

#[tokio::test]
async fn what_a_run_took_replaces_what_was_expected_of_it_once() {
    let database = Database::new().await;
    let store = database.store(2);
    let solver = (1000, "solver");
    let budgets = site(100.0);
    let mut runs = Vec::new();
    for job_id in 1..=4 {
        runs.push(start(&store, job_id, solver, budgets, 10.0).await.run_id);
    }
    let sum = async || counters(&database).await[0].3;
    store.settle_exploring().await.unwrap();
    assert_eq!(sum().await, 40.0, "none has a verdict");

    // Two nodes for half an hour; a failed one whose nodes said nothing, for a quarter by Slurm; and one
    // of which nobody knows.
    Report {
        elapsed: Some(1800.0),
        applied: Some(point(1)),
        ..Report::of(1)
    }
    .deliver(&store)
    .await
    .unwrap();
    let begun = database
        .number("select extract(epoch from now())::bigint")
        .await;
    let at = |seconds: i64| jiff::Timestamp::from_second(begun + seconds).ok();
    let failed = Outcome {
        started_at: at(0),
        ended_at: at(900),
        ..word(2, "FAILED")
    };
    let words = [word(1, "COMPLETED"), failed];
    store
        .record_outcomes(Source::Squeue, CLUSTER, &words)
        .await
        .unwrap();
    database
        .judge(&store, runs[0], &counted(point(1)))
        .await
        .unwrap();
    for run_id in &runs[1..3] {
        database
            .judge(&store, *run_id, &not_counted("lost"))
            .await
            .unwrap();
    }
    let (one, two) = tokio::join!(store.settle_exploring(), store.settle_exploring());
    one.unwrap();
    two.unwrap();
    assert_eq!(sum().await, 1.0 + 0.5 + 10.0 + 10.0);
    store.settle_exploring().await.unwrap();
    assert_eq!(sum().await, 21.5);
    let left = "select count(*) from exploring_charges";
    assert_eq!(database.number(left).await, 1);
}

#[tokio::test]
async fn a_day_is_the_sites_and_counters_of_long_ago_are_forgotten() {
    let database = Database::with_clock().await;
    let store = database.store(2);
    // To noon of a day, so that a day of another zone begins before or after it.
    let noon = "select 43200 - extract(epoch from now())::bigint % 86400";
    let to_noon = database.number(noon).await.rem_euclid(86_400);
    database
        .advance(Duration::from_secs(to_noon.unsigned_abs()))
        .await;
    let ahead = |hours: i32| Budgets {
        utc_offset: hours * 3600,
        ..site(10.0)
    };
    let ocean = (1000, "ocean");
    assert!(start(&store, 1, ocean, ahead(0), 6.0).await.role.explores());
    let spent = async |hours: i32| {
        let all = store.exploring_spent(&[1], hours * 3600).await.unwrap();
        all[&1].last().unwrap().node_seconds / HOUR
    };
    assert_eq!(
        [
            spent(0).await,
            spent(11).await,
            spent(13).await,
            spent(-13).await
        ],
        [6.0, 6.0, 0.0, 0.0]
    );
    assert!(
        !start(&store, 2, ocean, ahead(11), 6.0)
            .await
            .role
            .explores()
    );
    assert!(
        start(&store, 3, ocean, ahead(13), 6.0)
            .await
            .role
            .explores()
    );
    assert_eq!(counters(&database).await.len(), 2);

    database.advance(Duration::from_secs(399 * 86_400)).await;
    store.forget_exploring().await.unwrap();
    assert_eq!(counters(&database).await.len(), 2);
    database.advance(Duration::from_secs(2 * 86_400)).await;
    store.forget_exploring().await.unwrap();
    assert_eq!(counters(&database).await.len(), 1);
}

#[tokio::test]
async fn a_run_that_is_charged_is_decided_once() {
    let database = Database::new().await;
    let store = database.store(2);
    // From then on the store has a copy of the study.
    start(&store, 1, (1000, "ocean"), site(100.0), 3.0).await;
    let decided = std::sync::atomic::AtomicU32::new(0);
    let decide = |_: &StudyState| {
        decided.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Decision {
            explores: Some(HOUR),
            ..decision(Phase::Search, Role::Search, point(1))
        }
    };
    let second = Start {
        study: study(1000, "ocean"),
        lock: Lock::Wait(Duration::from_secs(30)),
        budgets: Some(site(100.0)),
        ..Start::of(2)
    };
    second.ask(&store, decide).await.unwrap();
    assert_eq!(decided.into_inner(), 1);
    assert_eq!(counters(&database).await, [counter("site", "", "", 4.0)]);
}
