//! Several clusters in one database, and the migration of a database with one cluster.

use io_autotune_model::{Parametrization, Phase, Role};
use io_autotune_store::{
    Audit, Directive, RunFilter, Scope, Source, Store, StoreError, StudyFilter, StudyState,
};
use sqlx::{Connection, Executor};

use crate::roles::{SERVICE, make_all};
use crate::support::{
    CLUSTER, Database, Report, Start, by, counted, decision, point, space, study, word,
};

const BETA: &str = "beta";
const BY: Audit<'_> = by(0, "a second cluster");

/// The statement of an earlier release's program, which does not know clusters.
const EARLIER_PROGRAM: &str = "insert into studies (application_id, accelerator, context, context_key)
     select id, 'romio', '{\"nodes\": \"2\", \"partition\": \"batch\"}', '{\"nodes\":\"2\",\"partition\":\"batch\"}'
     from applications where name = 'earlier'
     on conflict (application_id, accelerator, context_key) do nothing";

async fn serve(store: &Store, clusters: &[&str]) -> Result<(), StoreError> {
    let clusters: Vec<String> = clusters.iter().map(|one| (*one).to_owned()).collect();
    store.serve_clusters(&clusters).await
}

async fn studies_of(store: &Store, cluster: &str) -> Vec<(i64, String)> {
    let filter = StudyFilter {
        cluster: Some(cluster.to_owned()),
        ..StudyFilter::default()
    };
    let rows = store.studies(&filter).await.unwrap().into_iter();
    rows.map(|row| (row.study_id, row.cluster)).collect()
}

async fn awaited(store: &Store, cluster: &str) -> Vec<(i64, String)> {
    let runs = store
        .awaited_runs(cluster, true, 10, &[])
        .await
        .unwrap()
        .runs;
    let runs = runs.into_iter();
    runs.map(|run| (run.run_id, run.job.cluster)).collect()
}

/// The number of studies of a database that was migrated and not served since.
async fn of_no_cluster(database: &Database) -> i64 {
    let count = "select count(*) from studies where cluster is null";
    database.number(count).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_0_1_0_becomes_its_one_clusters_at_the_services_start() {
    let database = Database::empty().await;
    let mut connection = database.connect().await;
    let release = include_str!("release-0.1.0.sql");
    sqlx::raw_sql(release)
        .execute(&mut connection)
        .await
        .unwrap();
    let told: String =
        sqlx::query_scalar("select string_agg(distinct cluster, ',') from public.runs")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    let store = database.store(4);
    store.migrate().await.unwrap();
    assert_eq!(of_no_cluster(&database).await, 1);

    // With two clusters it is not known to which the studies belong. The refusal says what to type,
    // and nothing changes.
    let refused = serve(&store, &[&told, BETA]).await.unwrap_err().to_string();
    let typed = format!("of {told}, beta they are of by `io-autotuned --map-cluster NAME`");
    assert!(refused.contains(&typed), "{refused}");
    assert_eq!(of_no_cluster(&database).await, 1);

    serve(&store, &[&told]).await.unwrap();
    serve(&store, &[&told]).await.unwrap();
    let before = studies_of(&store, &told).await;
    assert_eq!(before.len(), 1);
    let state = store.study_state(before[0].0).await.unwrap();
    assert_eq!(state.history.tally.total, 15);
    // A second cluster needs nothing more; from then on neither may be missing.
    serve(&store, &[BETA, &told]).await.unwrap();
    assert_eq!(studies_of(&store, &told).await, before);
    let refused = serve(&store, &[BETA]).await.unwrap_err().to_string();
    for part in [
        format!("1 studies are of cluster {told}, which service.toml does not have"),
        format!("`io-autotuned --map-cluster {told}=NAME`"),
    ] {
        assert!(refused.contains(&part), "{refused}");
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn an_admin_maps_studies_of_before_and_of_a_cluster_with_another_name() {
    let database = Database::new().await;
    make_all(&database).await;
    let store = Store::open(&database.url_of(SERVICE), Default::default()).unwrap();
    let state = store
        .state_of(&study(1000, "ocean"), &space())
        .await
        .unwrap();
    database.execute("update studies set cluster = null").await;
    assert!(serve(&store, &[CLUSTER, BETA]).await.is_err());
    assert_eq!(store.map_cluster(None, CLUSTER, BY).await.unwrap(), 1);
    // With the service's own role, which cannot change tables.
    serve(&store, &[CLUSTER, BETA]).await.unwrap();
    assert_eq!(
        studies_of(&store, CLUSTER).await,
        [(state.study_id, CLUSTER.to_owned())]
    );

    let of_alpha = Scope {
        cluster: Some(CLUSTER.to_owned()),
        ..Scope::default()
    };
    store
        .order(&of_alpha, &Directive::Off, None, BY)
        .await
        .unwrap();
    assert_eq!(
        store.map_cluster(Some(CLUSTER), "gamma", BY).await.unwrap(),
        1
    );
    serve(&store, &["gamma", BETA]).await.unwrap();
    let renamed = store.study_state(state.study_id).await.unwrap();
    assert!(renamed.ordered.off, "its orders go along");
    // Studies that both clusters have cannot be merged.
    let mut other = study(1000, "ocean");
    other.cluster = BETA.into();
    store.state_of(&other, &space()).await.unwrap();
    let refused = store
        .map_cluster(Some("gamma"), BETA, BY)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, StoreError::StudiesOfBoth { studies: 1, .. }),
        "{refused}"
    );
    let lines = "select count(*) from audit where action = 'map-cluster' and study_id is null";
    assert_eq!(database.number(lines).await, 2);
    store.close().await;
}

#[tokio::test]
async fn programs_that_know_no_clusters_go_on_until_there_are_several() {
    let database = Database::new().await;
    let store = database.store(2);
    serve(&store, &[CLUSTER]).await.unwrap();
    let mut start = Start::of(1);
    start.study.application = "earlier".into();
    database
        .execute("insert into applications (owner_uid, name) values (1000, 'earlier')")
        .await;
    database.execute(EARLIER_PROGRAM).await;
    database
            .execute(
                "insert into epochs (study_id, ordinal, takes, space, seed, opened_why)
                 select id, 1, 'nothing', '[{\"name\": \"cb_nodes\", \"kind\": \"integer\", \"min\": 1,
                                          \"max\": 8, \"default\": 1}]', 7, 'first run' from studies",
            )
            .await;
    // Its study belongs to this cluster from the next start on.
    start.search(&store, point(1)).await;
    assert_eq!(database.number("select count(*) from studies").await, 1);
    assert_eq!(of_no_cluster(&database).await, 0);
    // And it finds this cluster's studies.
    database.execute(EARLIER_PROGRAM).await;
    assert_eq!(
        database.number("select migration from schema_needs").await,
        13
    );

    serve(&store, &[CLUSTER, BETA]).await.unwrap();
    assert_eq!(
        database.number("select migration from schema_needs").await,
        30
    );
    let mut connection = database.connect().await;
    assert!(connection.execute(EARLIER_PROGRAM).await.is_err());
    connection.close().await.unwrap();
    store.ready().await.unwrap();
    serve(&store, &[CLUSTER, BETA]).await.unwrap();
}

#[tokio::test]
async fn the_same_job_of_the_same_user_on_two_clusters_is_two_runs_of_two_studies() {
    let database = Database::new().await;
    let store = database.store(2);
    serve(&store, &[CLUSTER, BETA]).await.unwrap();
    let alpha = Start::of(7).search(&store, point(1)).await;
    let beta = Start::of(7).on(BETA).search(&store, point(2)).await;
    assert_ne!(alpha.run_id, beta.run_id);
    assert_eq!(
        Start::of(7).search(&store, point(3)).await.run_id,
        alpha.run_id
    );
    let studies = [
        studies_of(&store, CLUSTER).await,
        studies_of(&store, BETA).await,
    ];
    assert_eq!(studies.each_ref().map(Vec::len), [1, 1]);
    assert_ne!(studies[0][0].0, studies[1][0].0);

    // A report that names the other cluster's run belongs to its own cluster's run, and so does an
    // outcome.
    let mut report = Report::of(7).on(BETA);
    report.run_id = Some(alpha.run_id);
    report.applied = Some(point(2));
    assert_eq!(report.deliver(&store).await.unwrap().run_id, beta.run_id);
    store
        .record_outcomes(Source::Squeue, BETA, &[word(7, "COMPLETED")])
        .await
        .unwrap();
    let heard = "select count(*) from runs where cluster = 'alpha'
                     and (finished_at is not null or outcome is not null)";
    assert_eq!(database.number(heard).await, 0);
    assert_eq!(
        awaited(&store, CLUSTER).await,
        [(alpha.run_id, CLUSTER.to_owned())]
    );
    assert_eq!(
        awaited(&store, BETA).await,
        [(beta.run_id, BETA.to_owned())]
    );
    let runs = async |cluster: Option<&str>| -> Vec<i64> {
        let filter = RunFilter {
            cluster: cluster.map(str::to_owned),
            job_id: Some(7),
            limit: 10,
            ..RunFilter::default()
        };
        let rows = store.runs(&filter).await.unwrap().into_iter();
        rows.map(|row| row.run_id).collect()
    };
    assert_eq!(runs(None).await, [alpha.run_id, beta.run_id]);
    assert_eq!(runs(Some(BETA)).await, [beta.run_id]);
}

/// An earlier service accepted starts of any cluster into its own studies, and judged only its own.
#[tokio::test]
async fn a_run_in_another_clusters_study_counts_nowhere() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut start = Start::of(7);
    start.job.cluster = BETA.into();
    start.search(&store, point(1)).await;
    serve(&store, &[CLUSTER, BETA]).await.unwrap();
    for cluster in [CLUSTER, BETA] {
        assert_eq!(awaited(&store, cluster).await, []);
    }
    // Nor does it hold a place among the runs in flight, for which a search and claims wait.
    let state = store.state_of(&study(1000, "ocean"), &space()).await;
    assert_eq!(state.unwrap().pending, []);
}

#[tokio::test]
async fn an_order_of_a_cluster_is_about_its_studies_alone() {
    let database = Database::new().await;
    let store = database.store(2);
    serve(&store, &[CLUSTER, BETA]).await.unwrap();
    let state = async |cluster: &str| -> StudyState {
        let mut key = study(1000, "ocean");
        key.cluster = cluster.into();
        store.state_of(&key, &space()).await.unwrap()
    };
    let of_beta = Scope {
        cluster: Some(BETA.to_owned()),
        ..Scope::default()
    };
    let given = store
        .order(&of_beta, &Directive::Off, None, BY)
        .await
        .unwrap();
    store
        .order(&Scope::default(), &Directive::Freeze, None, BY)
        .await
        .unwrap();
    let (alpha, beta) = (state(CLUSTER).await.ordered, state(BETA).await.ordered);
    assert_eq!((alpha.off, alpha.frozen), (false, true));
    assert_eq!((beta.off, beta.frozen), (true, true));
    assert_eq!(
        store.orders(None, None, 0, 100).await.unwrap()[0].scope,
        of_beta
    );
    assert!(
        store
            .end_order(&Scope::default(), "off", BY)
            .await
            .unwrap()
            .is_none()
    );
    let ended = store.end_order(&of_beta, "off", BY).await.unwrap().unwrap();
    assert_eq!(ended.order_id, given.order_id);
    assert!(!state(BETA).await.ordered.off);
}

#[tokio::test]
async fn a_study_hears_and_begins_from_its_own_clusters_alone() {
    let database = Database::new().await;
    let store = database.store(2).with(u32::MAX, true);
    let key = |cluster: &str, uid| {
        let mut key = study(uid, "ocean");
        key.cluster = cluster.into();
        key
    };
    let mut begun = Vec::new();
    for (job_id, cluster, uid) in [(1, CLUSTER, 1001), (2, BETA, 1002), (3, CLUSTER, 1003)] {
        let mut start = Start::of(job_id).on(cluster);
        start.study = key(cluster, uid);
        let run_id = start.search(&store, point(2)).await.run_id;
        let mut report = Report::of(job_id).on(cluster);
        (report.study, report.applied) = (key(cluster, uid), Some(point(2)));
        report.deliver(&store).await.unwrap();
        let words = [word(job_id, "COMPLETED")];
        store
            .record_outcomes(Source::Squeue, cluster, &words)
            .await
            .unwrap();
        let verdict = counted(point(2));
        database.judge(&store, run_id, &verdict).await.unwrap();
        let state = store.state_of(&key(cluster, uid), &space()).await.unwrap();
        store
            .share(state.study_id, Some("group ocean"))
            .await
            .unwrap();
        let mut assessing = store.assess(state.study_id).await.unwrap();
        let (measures, learnt) = (Default::default(), serde_json::json!({}));
        let learns = assessing.write_learnt(state.epoch_id, 20, &measures, &learnt);
        learns.await.unwrap();
        assessing.commit().await.unwrap();
        begun.push(state);
    }
    let first = store.state_of(&key(CLUSTER, 1001), &space()).await.unwrap();
    let heard: Vec<u32> = first.siblings.iter().map(|one| one.uid).collect();
    assert_eq!(heard, [1003]);
    let mut told = Vec::new();
    let mut start = Start::of(4).on(BETA);
    start.study = key(BETA, 1004);
    // A program without copies.
    let program = database.store(2).with(u32::MAX, true);
    let decide = |state: &StudyState| {
        told.extend(state.sources.iter().map(|one| one.epoch_id));
        decision(Phase::Baseline, Role::Baseline, Parametrization::default())
    };
    start.ask(&program, decide).await.unwrap();
    assert_eq!(told, [begun[1].epoch_id]);
}
