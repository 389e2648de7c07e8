//! Studies that share: with which others, since when, and as they were at each start.

use io_autotune_store::{Audit, Sharer, Store, StudyState};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::{
    CLUSTER, Database, Report, Start, by, counted, other_space, point, say, space, study,
};

const OCEAN: &str = "group ocean";
const BY: Audit<'static> = by(0, "another version of the program");

/// A judged run of a user's application. Each point takes ten seconds less than the one before.
async fn ran(database: &Database, store: &Store, uid: u32, app: &str, job_id: u32, index: u32) {
    let mut start = Start::of(job_id);
    start.study = study(uid, app);
    let run = start.search(store, point(index)).await.run_id;
    let mut report = Report::of(job_id);
    report.study = study(uid, app);
    report.elapsed = Some(100.0 - 10.0 * f64::from(index));
    report.applied = Some(point(index));
    report.deliver(store).await.unwrap();
    say(store, job_id, "COMPLETED").await;
    let verdict = counted(point(index));
    database.judge(store, run, &verdict).await.unwrap();
}

async fn state(store: &Store, uid: u32, app: &str) -> StudyState {
    store.state_of(&study(uid, app), &space()).await.unwrap()
}

/// The uids of the users whose studies a study shares with.
async fn heard(store: &Store, uid: u32, app: &str) -> Vec<u32> {
    let siblings = state(store, uid, app).await.siblings;
    siblings.iter().map(|one| one.uid).collect()
}

async fn share(store: &Store, uid: u32, app: &str, by: Option<&str>) {
    let study_id = state(store, uid, app).await.study_id;
    store.share(study_id, by).await.unwrap();
}

#[tokio::test]
async fn a_study_hears_those_of_its_application_and_share_and_nobody_else() {
    let database = Database::new().await;
    let store = database.store(2);
    for (job_id, uid, app, by) in [
        (1, 1001, "solver", Some(OCEAN)),
        (2, 1002, "solver", Some(OCEAN)),
        (3, 1003, "solver", Some("account ocean")),
        (4, 1004, "solver", None),
        (5, 1002, "another", Some(OCEAN)),
        (6, 1005, "solver", Some(OCEAN)),
    ] {
        ran(&database, &store, uid, app, job_id, 2).await;
        share(&store, uid, app, by).await;
    }
    assert_eq!(heard(&store, 1001, "solver").await, [1002, 1005]);
    assert_eq!(heard(&store, 1003, "solver").await, [0_u32; 0]);
    assert_eq!(heard(&store, 1004, "solver").await, [0_u32; 0]);
    assert_eq!(heard(&store, 1002, "another").await, [0_u32; 0]);
    let own = state(&store, 1001, "solver").await;
    assert_eq!(own.share.as_deref(), Some(OCEAN));
    assert_eq!(own.history.tested.len(), 1, "its own stays its own");
    let other = &own.siblings[0];
    assert_eq!(other.history.tested[0].parametrization, point(2));
    assert_eq!((other.judged, other.history.tally.total), (1, 1));
    // A user who leaves no longer shares in either direction.
    share(&store, 1002, "solver", None).await;
    assert_eq!(heard(&store, 1001, "solver").await, [1005]);
    assert_eq!(heard(&store, 1002, "solver").await, [0_u32; 0]);
}

/// Attack (sharing): One who shares has a history under an old name that another job's name made,
/// too.
/// Outcome: They share by full names alone.
#[tokio::test]
async fn users_share_what_is_called_the_same_in_full() {
    let database = Database::new().await;
    let store = database.store(2);
    for (job_id, uid, app, full_name) in [
        (1, 1001, "calc_____", "calc_мод"),
        (2, 1002, "calc_~0123456789", "calc_мод"),
        (3, 1003, "calc_____", "calc_физ"),
        (4, 1004, "calc_____", ""),
    ] {
        ran(&database, &store, uid, app, job_id, 2).await;
        share(&store, uid, app, Some(OCEAN)).await;
        database
            .execute(&format!(
                "update applications set full_name = nullif('{full_name}', '') where owner_uid = {uid}"
            ))
            .await;
    }
    assert_eq!(heard(&store, 1001, "calc_____").await, [1002]);
    assert_eq!(heard(&store, 1002, "calc_~0123456789").await, [1001]);
    assert_eq!(heard(&store, 1003, "calc_____").await, [0_u32; 0]);
    assert_eq!(heard(&store, 1004, "calc_____").await, [0_u32; 0]);
}

#[tokio::test]
async fn what_a_start_had_of_others_is_added_up_again_to_the_last_bit() {
    let database = Database::new().await;
    let store = database.store(2);
    for uid in [1001, 1002] {
        ran(&database, &store, uid, "solver", uid, 1).await;
        share(&store, uid, "solver", Some(OCEAN)).await;
    }
    for job_id in 1..8 {
        ran(&database, &store, 1002, "solver", job_id, job_id % 3).await;
    }
    let then = state(&store, 1001, "solver").await.siblings.remove(0);
    assert_eq!((then.judged, then.history.tested.len()), (8, 3));
    ran(&database, &store, 1002, "solver", 8, 4).await;
    let again = store.history_at(then.epoch_id, then.judged).await.unwrap();
    assert_eq!(again, then.history);
}

#[tokio::test]
async fn after_a_reset_a_study_hears_what_is_as_new() {
    let database = Database::new().await;
    let store = database.store(2);
    for uid in [1001, 1002, 1003] {
        ran(&database, &store, uid, "solver", uid, 1).await;
        share(&store, uid, "solver", Some(OCEAN)).await;
    }
    let reset = async |uid: u32| {
        let study_id = state(&store, uid, "solver").await.study_id;
        store.reset(study_id, BY).await.unwrap();
    };
    reset(1001).await;
    assert_eq!(heard(&store, 1001, "solver").await, [0_u32; 0]);
    ran(&database, &store, 1001, "solver", 1, 1).await;
    assert_eq!(
        heard(&store, 1002, "solver").await,
        [1001, 1003],
        "the others need not forget"
    );
    reset(1003).await;
    ran(&database, &store, 1003, "solver", 3, 1).await;
    assert_eq!(heard(&store, 1001, "solver").await, [1003]);
}

#[tokio::test]
async fn after_a_drift_a_study_hears_who_drifted_lately_too() {
    let database = Database::new().await;
    let store = database.store(2);
    for uid in [1001, 1002, 1003] {
        ran(&database, &store, uid, "solver", uid, 1).await;
        share(&store, uid, "solver", Some(OCEAN)).await;
    }
    // As if verdicts had found the drift `days` ago.
    let drifted = async |uid: u32, days: u32| {
        let statement = format!(
            "update epochs set drift = '{{}}', takes = 'ranks', parent_id = epochs.id,
                        opened_at = now() - interval '{days} days'
                 from studies s join applications a on a.id = s.application_id
                 where s.id = epochs.study_id and a.owner_uid = {uid}"
        );
        let mut connection = database.connect().await;
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    };
    drifted(1001, 0).await;
    for (days, expected) in [(40, vec![]), (20, vec![1002])] {
        drifted(1002, days).await;
        assert_eq!(heard(&store, 1001, "solver").await, expected, "{days}");
    }
    assert_eq!(
        heard(&store, 1002, "solver").await,
        [1001, 1003],
        "they began later"
    );
    assert_eq!(heard(&store, 1003, "solver").await, [1001, 1002]);
}

#[tokio::test]
async fn what_another_catalogue_offers_is_not_heard() {
    let database = Database::new().await;
    let store = database.store(2);
    for uid in [1001, 1002] {
        ran(&database, &store, uid, "solver", uid, 1).await;
        share(&store, uid, "solver", Some(OCEAN)).await;
    }
    let mut wider = Start::of(3);
    wider.study = study(1002, "solver");
    wider.space = other_space();
    wider.search(&store, point(2)).await;
    assert_eq!(heard(&store, 1001, "solver").await, [0_u32; 0]);
    let mut wider = Start::of(4);
    wider.study = study(1001, "solver");
    wider.space = other_space();
    wider.search(&store, point(2)).await;
    assert_eq!(
        heard(&store, 1001, "solver").await,
        [1002],
        "taken runs are heard"
    );
}

#[tokio::test]
async fn who_may_share_is_listed_by_beginnings_of_names_and_by_what_is_shared() {
    let database = Database::new().await;
    let store = database.store(2);
    for (job_id, app) in [(1, "ocean-3d"), (2, "ice"), (3, "wind")] {
        ran(&database, &store, 1001, app, job_id, 1).await;
    }
    share(&store, 1001, "wind", Some(OCEAN)).await;
    let names = async |prefixes: &[&str], after: i64, limit: i64| {
        let prefixes: Vec<String> = prefixes.iter().map(|one| (*one).to_owned()).collect();
        let found = store.sharers(&prefixes, after, limit).await.unwrap();
        found
            .into_iter()
            .map(|one| one.application)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[], 0, 9).await, ["wind"]);
    assert_eq!(names(&["ocean"], 0, 9).await, ["ocean-3d", "wind"]);
    assert_eq!(names(&[""], 0, 2).await, ["ocean-3d", "ice"]);
    let last = store.sharers(&[String::new()], 2, 9).await.unwrap();
    let expected = Sharer {
        study_id: state(&store, 1001, "wind").await.study_id,
        cluster: CLUSTER.into(),
        uid: 1001,
        application: "wind".into(),
        share: Some(OCEAN.into()),
    };
    assert_eq!(last, [expected]);
}
