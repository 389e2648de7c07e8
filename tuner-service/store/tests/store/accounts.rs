//! The account that a study is charged to, and what an account's coordinator can see.

use std::collections::BTreeMap;

use io_autotune_model::Outcome;
use io_autotune_store::{
    AuditFilter, Coordinated, Directive, RunFilter, Scope, Source, Store, StudyFilter,
};
use sqlx::Connection;

use crate::support::{CLUSTER, Database, Start, by, point, study, word};

const ALICE: u32 = 1000;
const BOB: u32 = 1001;
const CAROL: u32 = 1002;

/// Starts a job of an owner's application, which Slurm charges to an account. Returns the run.
async fn charged(store: &Store, job_id: u32, owner: u32, app: &str, account: Option<&str>) -> i64 {
    let mut start = Start::of(job_id);
    start.study = study(owner, app);
    let run = start.search(store, point(job_id)).await.run_id;
    said(store, job_id, account, Some(owner)).await;
    run
}

async fn said(store: &Store, job_id: u32, account: Option<&str>, uid: Option<u32>) {
    let outcome = Outcome {
        account: account.map(str::to_owned),
        uid,
        ..word(job_id, "COMPLETED")
    };
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[outcome])
        .await
        .unwrap();
}

fn members(cluster: &str, pairs: &[(u32, &str)]) -> Option<Coordinated> {
    let pairs = pairs.iter();
    let on_cluster =
        |(uid, account): &(u32, &str)| (cluster.to_owned(), *uid, (*account).to_owned());
    Some(Coordinated {
        members: pairs.map(on_cluster).collect(),
    })
}

/// The studies that are visible, by owner and application.
async fn studies(store: &Store, filter: StudyFilter) -> Vec<(u32, String)> {
    let rows = store.studies(&filter).await.unwrap();
    let rows = rows.into_iter();
    rows.map(|row| (row.owner_uid, row.application)).collect()
}

async fn seen(store: &Store, own: Option<u32>, by: Option<Coordinated>) -> Vec<(u32, String)> {
    let filter = StudyFilter {
        owner_uid: own,
        coordinated: by,
        ..StudyFilter::default()
    };
    studies(store, filter).await
}

async fn accounts(store: &Store) -> BTreeMap<(u32, String), Option<String>> {
    let rows = store.studies(&StudyFilter::default()).await.unwrap();
    let rows = rows.into_iter();
    rows.map(|row| ((row.owner_uid, row.application), row.account))
        .collect()
}

fn one(uid: u32, application: &str) -> (u32, String) {
    (uid, application.to_owned())
}

#[tokio::test]
async fn a_study_is_the_accounts_that_its_latest_run_with_one_was_charged_to() {
    let database = Database::new().await;
    let store = database.store(2);
    let account = async || accounts(&store).await[&one(ALICE, "ocean")].clone();
    charged(&store, 1, ALICE, "ocean", None).await;
    assert_eq!(account().await, None);
    charged(&store, 2, ALICE, "ocean", Some("physics")).await;
    assert_eq!(account().await.as_deref(), Some("physics"));
    charged(&store, 3, ALICE, "ocean", Some("chemistry")).await;
    charged(&store, 4, ALICE, "ocean", None).await;
    assert_eq!(account().await.as_deref(), Some("chemistry"));
    // Late records of an earlier run, or of another user's job, change nothing.
    said(&store, 1, Some("late"), Some(ALICE)).await;
    assert_eq!(account().await.as_deref(), Some("chemistry"));
    let mut start = Start::of(5);
    start.study = study(ALICE, "ocean");
    start.search(&store, point(5)).await;
    said(&store, 5, Some("bobs"), Some(BOB)).await;
    assert_eq!(account().await.as_deref(), Some("chemistry"));
    // The record came before its run.
    said(&store, 6, Some("early"), None).await;
    start.job.job_id = 6;
    start.search(&store, point(6)).await;
    assert_eq!(account().await.as_deref(), Some("chemistry"));
    store.claim_outcomes(CLUSTER, &[]).await.unwrap();
    assert_eq!(account().await.as_deref(), Some("early"));
}

/// Attack (others): A present or former coordinator reads or steers what is charged to another
/// account, by a stranger or on another cluster, or orders for all that a member has.
#[tokio::test]
async fn a_coordinator_sees_what_members_charge_to_the_account_and_nothing_else() {
    let database = Database::new().await;
    let store = database.store(2);
    charged(&store, 1, ALICE, "ocean", Some("physics")).await;
    charged(&store, 2, ALICE, "mesher", Some("chemistry")).await;
    charged(&store, 3, BOB, "solver", Some("physics")).await;
    charged(&store, 4, BOB, "untold", None).await;
    charged(&store, 5, CAROL, "own", Some("chemistry")).await;
    let own = one(CAROL, "own");
    let own_alone = std::slice::from_ref(&own);

    assert_eq!(seen(&store, Some(CAROL), None).await, own_alone);
    // Bob is not in any account of Carol's; the account that he names, physics, is a text of his
    // own.
    let physics = members(CLUSTER, &[(ALICE, "physics"), (CAROL, "physics")]);
    assert_eq!(
        seen(&store, Some(CAROL), physics.clone()).await,
        [one(ALICE, "ocean"), own.clone()]
    );
    let both = members(
        CLUSTER,
        &[(ALICE, "physics"), (BOB, "physics"), (BOB, "chemistry")],
    );
    assert_eq!(
        seen(&store, Some(CAROL), both).await,
        [one(ALICE, "ocean"), own.clone(), one(BOB, "solver")]
    );
    // Another cluster's account of the same name is another account.
    let elsewhere = members("beta", &[(ALICE, "physics")]);
    assert_eq!(seen(&store, Some(CAROL), elsewhere).await, own_alone);
    // An empty list of members does not mean everyone.
    assert_eq!(seen(&store, None, members(CLUSTER, &[])).await, []);
    assert_eq!(
        seen(&store, Some(CAROL), members(CLUSTER, &[])).await,
        own_alone
    );
    assert_eq!(
        seen(&store, None, physics.clone()).await,
        [one(ALICE, "ocean")]
    );
    assert_eq!(seen(&store, None, None).await.len(), 5);

    let filter = |account: &str, own, by| StudyFilter {
        owner_uid: own,
        coordinated: by,
        account: Some(account.into()),
        ..StudyFilter::default()
    };
    let asked = studies(&store, filter("physics", None, None)).await;
    assert_eq!(asked, [one(ALICE, "ocean"), one(BOB, "solver")]);
    let asked = studies(&store, filter("physics", Some(CAROL), physics.clone())).await;
    assert_eq!(asked, [one(ALICE, "ocean")]);
    assert_eq!(
        studies(&store, filter("physics", Some(CAROL), None)).await,
        []
    );
    // Each page continues where the one before ended.
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let filter = StudyFilter {
            owner_uid: Some(CAROL),
            coordinated: physics.clone(),
            after,
            limit: Some(1),
            ..StudyFilter::default()
        };
        let Some(row) = store.studies(&filter).await.unwrap().pop() else {
            break;
        };
        after = Some(row.study_id);
        paged.push((row.owner_uid, row.application));
    }
    assert_eq!(paged, [one(ALICE, "ocean"), one(CAROL, "own")]);
}

#[tokio::test]
async fn runs_the_audit_and_orders_are_visible_with_their_study() {
    let database = Database::new().await;
    let store = database.store(2);
    charged(&store, 1, ALICE, "ocean", Some("physics")).await;
    charged(&store, 2, ALICE, "mesher", Some("chemistry")).await;
    charged(&store, 3, BOB, "solver", Some("physics")).await;
    charged(&store, 4, CAROL, "own", None).await;
    let by = by(CAROL, "a test");
    let rows = store.studies(&StudyFilter::default()).await.unwrap();
    for row in &rows {
        let scope = Scope {
            study_id: Some(row.study_id),
            owner_uid: Some(row.owner_uid),
            ..Scope::default()
        };
        let ordered = store.order(&scope, &Directive::Freeze, None, by);
        ordered.await.unwrap();
    }
    let of_alice = Scope {
        owner_uid: Some(ALICE),
        ..Scope::default()
    };
    let everyones = Scope::default();
    for scope in [&of_alice, &everyones] {
        let ordered = store.order(scope, &Directive::Off, None, by);
        ordered.await.unwrap();
    }

    let physics = members(CLUSTER, &[(ALICE, "physics"), (CAROL, "physics")]);
    let jobs = async |own, by: Option<Coordinated>, job_id, account: Option<&str>| {
        let filter = RunFilter {
            owner_uid: own,
            coordinated: by,
            account: account.map(str::to_owned),
            job_id,
            limit: 10,
            ..RunFilter::default()
        };
        let rows = store.runs(&filter).await.unwrap();
        Vec::from_iter(rows.into_iter().map(|row| row.job.job_id))
    };
    assert_eq!(jobs(Some(CAROL), physics.clone(), None, None).await, [1, 4]);
    assert_eq!(jobs(None, physics.clone(), None, None).await, [1]);
    let bobs = jobs(Some(CAROL), physics.clone(), Some(3), None).await;
    assert!(bobs.is_empty(), "{bobs:?}");
    assert_eq!(jobs(Some(CAROL), None, None, None).await, [4]);
    assert_eq!(
        jobs(Some(CAROL), members(CLUSTER, &[]), None, None).await,
        [4]
    );
    assert_eq!(jobs(None, None, None, Some("physics")).await, [1, 3]);
    let account = Some("physics");
    assert_eq!(jobs(Some(CAROL), physics.clone(), None, account).await, [1]);

    let audited = async |own, by| {
        let filter = AuditFilter {
            owner_uid: own,
            coordinated: by,
            limit: 10,
            ..AuditFilter::default()
        };
        let lines = store.audit(&filter).await.unwrap();
        let lines = lines.into_iter();
        Vec::from_iter(lines.map(|line| (line.action, line.application)))
    };
    let line = |action: &str, application: Option<&str>| {
        (action.to_owned(), application.map(str::to_owned))
    };
    // Newest first. An order for all of Alice's studies is visible to her alone.
    let own = [line("off", None), line("freeze", Some("own"))];
    assert_eq!(audited(Some(CAROL), None).await, own);
    let mut with_physics = Vec::from(own);
    with_physics.push(line("freeze", Some("ocean")));
    with_physics.sort();
    let mut found = audited(Some(CAROL), physics.clone()).await;
    found.sort();
    assert_eq!(found, with_physics);
    assert_eq!(audited(None, None).await.len(), 6);

    let ordered = async |own, by: Option<Coordinated>| {
        let orders = store.orders(own, by.as_ref(), 0, 100).await.unwrap();
        let orders = orders.into_iter();
        Vec::from_iter(orders.map(|order| (order.scope.study_id, order.scope.owner_uid)))
    };
    let id = |owner: u32, app: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| (row.owner_uid, row.application.as_str()) == (owner, app));
        row.map(|row| row.study_id)
    };
    let carols = (id(CAROL, "own"), Some(CAROL));
    let mut all = ordered(Some(CAROL), physics).await;
    all.sort();
    let mut expected = vec![(None, None), (id(ALICE, "ocean"), Some(ALICE)), carols];
    expected.sort();
    assert_eq!(all, expected);
    assert_eq!(ordered(Some(CAROL), None).await, [carols, (None, None)]);
    assert_eq!(ordered(None, None).await.len(), 6);
}

/// The table's rows, in order.
async fn remembered(database: &Database) -> Vec<(i64, String, String, i64)> {
    let mut connection = database.connect().await;
    let query = "select study_id, cluster, account, run_id from study_accounts order by study_id";
    let rows = sqlx::query_as(query)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    rows
}

#[tokio::test]
async fn an_older_databases_accounts_are_found_in_its_records() {
    let database = Database::new().await;
    let store = database.store(2);
    charged(&store, 1, ALICE, "ocean", Some("physics")).await;
    charged(&store, 2, ALICE, "ocean", Some("chemistry")).await;
    charged(&store, 3, ALICE, "ocean", None).await;
    charged(&store, 4, BOB, "solver", Some("physics")).await;
    let before = remembered(&database).await;
    assert_eq!(before.len(), 2);
    let migration = include_str!("../../../../migrations/0025_study_accounts.sql");
    let (_, rest) = migration.split_once("insert into").unwrap();
    let (filled, _) = rest.split_once("call").unwrap();
    let mut connection = database.connect().await;
    for statement in [
        "delete from study_accounts".to_owned(),
        format!("insert into{filled}"),
    ] {
        let statement = sqlx::AssertSqlSafe(statement);
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
    assert_eq!(remembered(&database).await, before);
}
