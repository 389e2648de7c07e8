//! Retention: old rows that are not needed are removed in batches, and no study loses knowledge.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use io_autotune_engine::{Epoch, Settings};
use io_autotune_model::{NotCountedBecause, Phase, Removed, Role};
use io_autotune_store::{
    Audit, LEAST_DAYS, Store, StoreError, StudyFilter, Undone, Verdict, WarmStart,
};
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection, Executor};
use tokio::task::JoinSet;

use crate::roles::{self, REFUSED};
use crate::support::{
    CLUSTER, Database, Random, Report, Start, by, counted, decision, launch, other_space, point,
    say,
};
use crate::transfer::{exported, imported};

const BY: Audit<'static> = by(7, "the site keeps a year");

/// The age in days of the starts of the runs of [`long_ago`].
const STARTED: u64 = 100;

async fn execute(database: &Database, statements: &str) {
    let mut connection = database.connect().await;
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// Moves everything that exists this many days into the past, except starts: see [`long_ago`].
async fn age(database: &Database, days: u32) {
    let earlier = format!("- interval '{days} days'");
    let mut statements = String::new();
    for (table, columns) in [
        ("epochs", &["opened_at"][..]),
        ("runs", &["finished_at", "outcome_at", "judged_at"]),
        ("judgements", &["judged_at"]),
        ("reports", &["received_at"]),
        ("outcomes", &["received_at"]),
    ] {
        let set: Vec<String> = columns
            .iter()
            .map(|column| format!("{column} = {column} {earlier}"))
            .collect();
        statements.push_str(&format!("update {table} set {};", set.join(", ")));
    }
    execute(database, &statements).await;
}

/// Makes all later runs start long ago, with the caches agreeing.
async fn long_ago(database: &Database) {
    let earlier = format!("now() - interval '{STARTED} days'");
    let statement = format!("alter table runs alter started_at set default {earlier}");
    execute(database, &statement).await;
}

async fn remove_all(store: &Store) -> Removed {
    let mut sum = Removed::default();
    loop {
        let (removed, more) = store.remove_history(LEAST_DAYS, BY).await.unwrap();
        sum += removed;
        if !more {
            return sum;
        }
    }
}

/// A run with its verdict.
async fn judged(database: &Database, store: &Store, job_id: u32, wide: bool, random: &mut Random) {
    let index = random.below(6);
    let mut start = Start::of(job_id);
    let mut report = Report::of(job_id);
    if wide {
        start.space = other_space();
        report.space = other_space();
    }
    let (phase, role) = *random.of(&[
        (Phase::Baseline, Role::Baseline),
        (Phase::Search, Role::Search),
        (Phase::Settled, Role::Control),
        (Phase::Settled, Role::Settled),
    ]);
    let started = start
        .ask(store, |_| decision(phase, role, point(index)))
        .await
        .unwrap();
    report.elapsed = Some(5.0 + f64::from(random.below(1000)) / 7.0);
    report.applied = Some(point(index));
    report.deliver(store).await.unwrap();
    say(store, job_id, "COMPLETED").await;
    let failed = Verdict::NotCounted {
        because: match random.below(2) {
            0 => NotCountedBecause::OutOfMemory,
            _ => NotCountedBecause::Failed,
        },
        why: "it failed".into(),
        failed: Some(point(index)),
    };
    for _ in 0..=random.below(2) {
        let verdict = match random.below(4) {
            0 => failed.clone(),
            _ => counted(point(index)),
        };
        database
            .judge(store, started.run_id, &verdict)
            .await
            .unwrap();
    }
}

/// A study of several epochs, opened in all the ways that there are, with one run in flight.
async fn life(database: &Database, store: &Store, seed: u64) {
    long_ago(database).await;
    let mut random = Random::new(seed);
    let mut job_id = 0;
    let mut wide = false;
    for epoch in 0..=random.below(4) {
        if epoch > 0 {
            let study_id = database.number("select id from studies").await;
            match random.below(3) {
                0 => assert!(store.reset(study_id, BY).await.unwrap().epoch > 1),
                1 => wide = !wide,
                _ => {
                    let from = WarmStart {
                        study_id,
                        application: "solver",
                        epoch: 1,
                    };
                    let ranks = |_: &_| Ok::<_, ()>(vec![point(1), point(3)]);
                    let opened = store.warm_start(study_id, &from, ranks, BY).await;
                    assert!(opened.unwrap().is_ok());
                }
            }
        }
        for _ in 0..=random.below(7) {
            job_id += 1;
            judged(database, store, job_id, wide, &mut random).await;
        }
    }
    let mut flying = Start::of(job_id + 1);
    if wide {
        flying.space = other_space();
    }
    flying.search(store, point(4)).await;
    execute(
        database,
        "update epochs set evidence = jsonb_build_object(
             'through', (select max(id) from runs), 'before', ordinal)",
    )
    .await;
}

/// All answers about each study, and the engine's next suggestion, as text.
async fn known(store: &Store) -> Vec<String> {
    let mut known = Vec::new();
    for row in store.studies(&StudyFilter::default()).await.unwrap() {
        let study_id = row.study_id;
        known.push(format!("{row:?}"));
        let state = store.study_state(study_id).await.unwrap();
        known.push(format!("{state:?}"));
        known.push(format!("{:?}", store.assessment(study_id).await.unwrap()));
        let compared = store.settled_runs(state.epoch_id, 5000).await.unwrap();
        known.push(format!("{compared:?}"));
        let mut assessing = store.assess(study_id).await.unwrap();
        known.push(format!("{:?}", assessing.evidence().await.unwrap()));
        let runs = assessing.runs_after(state.epoch_id, 0).await.unwrap();
        known.push(format!("{runs:?}"));
        drop(assessing);
        for judged in 0..=state.judged {
            let then = store.history_at(state.epoch_id, judged).await.unwrap();
            known.push(format!("{then:?}"));
        }
        let settings = Settings::default();
        let epoch = Epoch::new(&state.space, &settings, state.seed).inheriting(&state.inherited);
        known.push(format!("{:?}", epoch.recommend(&state.history)));
        known.push(format!(
            "{:?}",
            epoch.suggest(&state.history, &state.pending)
        ));
    }
    known
}

/// Queries the runs of the current epoch and of those that it took runs from.
const NEEDED: &str = "with recursive needed as (
         (select id, parent_id, takes from epochs order by ordinal desc limit 1)
         union all
         select p.id, p.parent_id, p.takes from needed n join epochs p on p.id = n.parent_id
         where n.takes = 'runs')
     select count(*) from runs where epoch_id in (select id from needed)";

#[tokio::test]
async fn whatever_its_life_was_a_study_knows_the_same_before_and_after() {
    let removed_of_all = Arc::new(AtomicU64::new(0));
    for seed in 0..12 {
        let sum = Arc::clone(&removed_of_all);
        let database = Database::new().await;
        let store = database.store(2);
        life(&database, &store, seed).await;
        let untouched = known(&store).await;
        assert!(remove_all(&store).await.is_nothing(), "all of it is young");
        assert_eq!(known(&store).await, untouched);

        age(&database, LEAST_DAYS + 1).await;
        let before = known(&store).await;
        let (runs, needed) = (
            database.number("select count(*) from runs").await,
            database.number(NEEDED).await,
        );
        // A batch passes over a study that is locked, as by an assessment that is being rolled back.
        database.all_become_idle().await;
        let would = store.would_remove(LEAST_DAYS).await.unwrap();
        let removed = remove_all(&store).await;
        assert_eq!(removed, would, "seed {seed}: a dry run tells the truth");
        assert_eq!(known(&store).await, before, "seed {seed}");
        assert_eq!(
            removed.runs,
            u64::try_from(runs - needed).unwrap(),
            "seed {seed}"
        );
        assert_eq!(database.number("select count(*) from runs").await, needed);
        assert_eq!(database.number("select count(*) from reports").await, 0);
        assert_eq!(removed.trimmed, u64::try_from(needed - 1).unwrap());
        assert_eq!(store.check_caches().await.unwrap(), []);
        assert!(remove_all(&store).await.is_nothing(), "nothing is left");

        // The study continues: a new run, whose verdict is revised, is added up with all known
        // runs.
        let wide = database.number(
            "select (space::text like '%16%')::int::bigint from epochs
                 order by ordinal desc limit 1",
        );
        let mut random = Random::new(seed);
        let wide = wide.await == 1;
        for job_id in 500..504 {
            judged(&database, &store, job_id, wide, &mut random).await;
        }
        assert_eq!(store.check_caches().await.unwrap(), []);
        sum.fetch_add(removed.runs, Ordering::Relaxed);
    }
    let removed = removed_of_all.load(Ordering::Relaxed);
    assert!(removed > 50, "{removed} is hardly a test");
}

/// Two epochs of a study: two runs, a reset, and two runs.
async fn two_epochs(database: &Database, store: &Store) -> (i64, Vec<i64>) {
    long_ago(database).await;
    let mut runs = Vec::new();
    for job_id in 1..=4 {
        let run = launch(store, job_id, point(job_id), 10.0 + f64::from(job_id)).await;
        database
            .judge(store, run, &counted(point(job_id)))
            .await
            .unwrap();
        runs.push(run);
        if job_id == 2 {
            let study_id = database.number("select id from studies").await;
            store.reset(study_id, BY).await.unwrap();
        }
    }
    execute(database, r#"update epochs set evidence = '{"through": 0}'"#).await;
    (database.number("select id from studies").await, runs)
}

#[tokio::test]
async fn a_late_report_of_a_removed_run_is_refused_and_counts_no_second_time() {
    let database = Database::new().await;
    let store = database.store(2);
    let (_, runs) = two_epochs(&database, &store).await;
    age(&database, 100).await;
    assert_eq!(remove_all(&store).await.runs, 2);
    let before = known(&store).await;
    let begun = Timestamp::now() - Duration::from_secs((STARTED + 1) * 86_400);
    for (run_id, prolog_at) in [
        (Some(runs[0]), None),
        (Some(runs[0]), Some(begun)),
        (None, Some(begun)),
    ] {
        let report = Report {
            run_id,
            prolog_at,
            ..Report::of(1)
        };
        let refused = report.deliver(&store).await.unwrap_err();
        assert!(matches!(refused, StoreError::Removed { .. }), "{refused}");
        assert!(refused.to_string().contains("removed by retention"));
    }
    say(&store, 1, "COMPLETED").await;
    assert_eq!(store.claim_outcomes(CLUSTER, &[]).await.unwrap().jobs, 0);
    assert_eq!(known(&store).await, before);
    assert_eq!(database.number("select count(*) from runs").await, 2);

    // The same job id today is another launch, whose start was not answered.
    let again = Report {
        prolog_at: Some(Timestamp::now()),
        ..Report::of(1)
    };
    assert!(!again.deliver(&store).await.unwrap().duplicate);
    assert_eq!(database.number("select count(*) from runs").await, 3);
}

#[tokio::test]
async fn whatever_is_heard_of_a_trimmed_run_later_changes_nothing() {
    let database = Database::new().await;
    let store = database.store(2);
    let (_, runs) = two_epochs(&database, &store).await;
    age(&database, 100).await;
    assert_eq!(remove_all(&store).await.trimmed, 2);
    let before = known(&store).await;
    let changes = database.changes(runs[2]).await;
    for node in ["n1", "n2"] {
        let late = Report {
            run_id: Some(runs[2]),
            node: node.into(),
            elapsed: Some(1000.0),
            ..Report::of(3)
        };
        assert!(late.deliver(&store).await.unwrap().duplicate, "{node}");
    }
    say(&store, 3, "FAILED").await;
    assert_eq!(database.changes(runs[2]).await, changes);
    assert!(
        store
            .awaited_runs(CLUSTER, true, 10, &[])
            .await
            .unwrap()
            .runs
            .is_empty()
    );
    assert_eq!(known(&store).await, before);
    let chance =
        "select count(*) from runs where suggestion ? 'removed_at' and trimmed_at is not null";
    assert_eq!(database.number(chance).await, 2);
}

#[tokio::test]
async fn what_is_awaited_young_or_needed_stays() {
    let database = Database::new().await;
    let store = database.store(2);
    let (study_id, runs) = two_epochs(&database, &store).await;
    age(&database, 100).await;
    let of_epoch = "where id = (select epoch_id from runs where id = $1)";
    let lost = format!("update epochs set evidence = null {of_epoch}");
    let found = format!("update epochs set evidence = '{{}}' {of_epoch}");
    for (harm, heal) in [
        (
            "update runs set changes = changes + 1 where id = $1",
            "update runs set changes = judged_changes where id = $1",
        ),
        (
            "update runs set dirty = true where id = $1",
            "update runs set dirty = false where id = $1",
        ),
        (
            "update judgements set judged_at = now() - interval '29 days' where run_id = $1",
            "update judgements set judged_at = now() - interval '31 days' where run_id = $1",
        ),
        (
            "update reports set received_at = now() where run_id = $1",
            "update reports set received_at = now() - interval '31 days' where run_id = $1",
        ),
        (lost.as_str(), found.as_str()),
    ] {
        let mut connection = database.connect().await;
        sqlx::query(AssertSqlSafe(harm.to_owned()))
            .bind(runs[0])
            .execute(&mut connection)
            .await
            .unwrap();
        let would = store.would_remove(LEAST_DAYS).await.unwrap();
        assert_eq!(would.runs, 0, "{harm}");
        sqlx::query(AssertSqlSafe(heal.to_owned()))
            .bind(runs[0])
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    }
    // After an undo of the reset, the runs of the epoch before are needed.
    let line = database
        .number("select max(id) from audit where action = 'reset'")
        .await;
    assert_eq!(store.undo(line, BY).await.unwrap(), Undone::Done);
    age(&database, 100).await;
    execute(&database, "update epochs set evidence = '{}'").await;
    // Of the three epochs, only the one that the undo has left behind.
    let before = known(&store).await;
    assert_eq!(remove_all(&store).await.runs, 2);
    assert_eq!(known(&store).await, before);
    assert_eq!(
        store
            .study_state(study_id)
            .await
            .unwrap()
            .history
            .tally
            .total,
        2
    );
}

#[tokio::test]
async fn what_would_be_added_up_from_removed_runs_says_so() {
    let database = Database::new().await;
    let store = database.store(2);
    let (study_id, runs) = two_epochs(&database, &store).await;
    let first = database.number("select min(id) from epochs").await;
    age(&database, 100).await;
    // The epoch is marked, and its runs have not been removed yet.
    let (marked, more) = store.remove_history(LEAST_DAYS, BY).await.unwrap();
    assert!(marked.is_nothing() && more);
    let gone = |error: &StoreError| matches!(error, StoreError::Removed { .. });
    assert!(gone(&store.history_at(first, 2).await.unwrap_err()));
    let revised = database.judge(&store, runs[0], &counted(point(5))).await;
    assert!(gone(&revised.unwrap_err()));
    remove_all(&store).await;
    assert!(gone(&store.history_at(first, 2).await.unwrap_err()));
    let line = database
        .number("select max(id) from audit where action = 'reset'")
        .await;
    match store.undo(line, BY).await.unwrap() {
        Undone::Cannot(why) => assert!(why.contains("removed by retention"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.study_state(study_id).await.unwrap().epoch, 2);
    assert!(store.removed_through().await.unwrap().is_some());
}

#[tokio::test]
async fn a_study_with_removed_runs_is_exported_and_imported_the_same() {
    let from = Database::new().await;
    let store = from.store(2);
    let (study_id, _) = two_epochs(&from, &store).await;
    age(&from, 100).await;
    remove_all(&store).await;
    let text = exported(&store, &[study_id]).await;
    let to = Database::new().await;
    let other = to.store(2);
    imported(&other, &text, |import| import).await.unwrap();
    let here = to.number("select id from studies").await;
    assert_eq!(exported(&other, &[here]).await, text);
    assert_eq!(other.check_caches().await.unwrap(), []);
    assert!(remove_all(&other).await.is_nothing());
    let lacks = text.replacen(
        "\"ordinal\":2,\"parent\":1,\"takes\":\"nothing\",\"taken_judgements\":null",
        "\"ordinal\":2,\"parent\":1,\"takes\":\"runs\",\"taken_judgements\":2",
        1,
    );
    assert_ne!(lacks, text);
    let third = Database::new().await;
    let error = imported(&third.store(2), &lacks, |import| import)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("said to be removed"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_several_replicas_each_run_is_removed_by_one_with_its_line_of_the_audit() {
    let database = Database::new().await;
    let store = database.store(8);
    long_ago(&database).await;
    for job_id in 1..=40 {
        let run = launch(&store, job_id, point(1), 10.0).await;
        database
            .judge(&store, run, &counted(point(1)))
            .await
            .unwrap();
    }
    let study_id = database.number("select id from studies").await;
    store.reset(study_id, BY).await.unwrap();
    execute(&database, "update epochs set evidence = '{}'").await;
    age(&database, 100).await;
    let mut removing = JoinSet::new();
    for _ in 0..4 {
        let store = store.clone();
        removing.spawn(async move { remove_all(&store).await.runs });
    }
    let removed: u64 = removing.join_all().await.into_iter().sum();
    assert_eq!(removed, 40);
    assert_eq!(database.number("select count(*) from runs").await, 0);
    let told = "select sum((detail ->> 'runs')::bigint)::bigint from audit
                    where action = 'retention' and uid = 7 and why = 'the site keeps a year'";
    assert_eq!(database.number(told).await, 40);
}

/// Attack (units): A taken service makes times old and calls the function that removes history.
/// Outcome: Nothing of the last 30 days is removed.
#[tokio::test]
async fn a_taken_service_cannot_erase_the_last_month_and_the_reports_role_nothing() {
    let database = Database::new().await;
    let owner = database.store(2);
    let (_, runs) = two_epochs(&database, &owner).await;
    roles::make_all(&database).await;
    let mut service = database.connect_as(roles::SERVICE).await;
    // The service makes everything old that it may write: starts, verdicts, epochs, outcome
    // records, the mark itself.
    for statement in [
        "update runs set started_at = started_at - interval '1 year',
                             judged_at = judged_at - interval '1 year'",
        "update outcomes set received_at = received_at - interval '1 year'",
        "update epochs set opened_at = opened_at - interval '1 year', evidence = '{}'",
        "insert into epochs (study_id, ordinal, takes, space, seed, opened_why, opened_at)
             select study_id, 9, 'nothing', space, 1, 'mine', now() - interval '1 year'
             from epochs limit 1",
        "update epochs set removed_at = now(), removed_run = 0, removed_start = now()
             where ordinal = 2",
    ] {
        service.execute(statement).await.unwrap();
    }
    let call =
        "select runs + trimmed from public.remove_history(interval '30 days', 1000, 0, 'mine')";
    for _ in 0..5 {
        let removed: i64 = sqlx::query_scalar(call)
            .fetch_one(&mut service)
            .await
            .unwrap();
        assert_eq!(removed, 0);
    }
    for too_much in [
        "select * from remove_history(interval '29 days', 1, 0, 'mine')",
        "select * from remove_history(interval '-1 year', 1, 0, 'mine')",
        "select * from remove_history(null, 1, 0, 'mine')",
        "select * from remove_history(interval '1 year', 1001, 0, 'mine')",
        "select * from remove_history(interval '1 year', null, 0, 'mine')",
    ] {
        let error = service.execute(too_much).await.unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("22023"), "{too_much}: {error}");
    }
    assert_eq!(
        database.number("select count(*) from runs").await,
        runs.len() as i64
    );
    assert_eq!(
        database.number("select count(*) from reports").await,
        runs.len() as i64
    );
    service.close().await.unwrap();

    let mut report = database.connect_as("io-autotune-report").await;
    let error = report.execute(call).await.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some(REFUSED), "{error}");
    report.close().await.unwrap();

    // With the rights of the service alone, old rows are removed.
    age(&database, 400).await;
    let own = Store::open(&database.url_of(roles::SERVICE), Default::default()).unwrap();
    assert!(!remove_all(&own).await.is_nothing());
}
