//! Orders of many studies, the studies that they apply to, and undoing.

use std::collections::BTreeMap;

use io_autotune_model::Parametrization;
use io_autotune_store::{
    Audit, AuditFilter, Directive, Most, Scope, Store, StoreError, Undone, Values, fitting,
};
use jiff::{Span, Timestamp};
use tokio::task::JoinSet;

use crate::support::{CLUSTER, Database, Start, by, counted, launch, point, space, study, word};

const BY: Audit<'_> = by(0, "a test");

async fn state(store: &Store, uid: u32, application: &str) -> io_autotune_store::StudyState {
    let key = study(uid, application);
    store.state_of(&key, &space()).await.unwrap()
}

fn values(pairs: &[(&str, &str)]) -> Values {
    let pairs = pairs.iter();
    pairs
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn pinned(nodes: i64) -> Parametrization {
    let default = space().default();
    Parametrization(BTreeMap::from_iter(
        default
            .0
            .into_iter()
            .chain([("cb_nodes".to_owned(), nodes.into())]),
    ))
}

fn of_user(uid: u32) -> Scope {
    Scope {
        owner_uid: Some(uid),
        ..Scope::default()
    }
}

/// The newest line of the audit.
async fn last(store: &Store) -> i64 {
    let newest = AuditFilter {
        limit: 1,
        ..AuditFilter::default()
    };
    store.audit(&newest).await.unwrap()[0].audit_id
}

/// The number of simultaneous calls that succeed; the others must fail with this error.
async fn taken<T: Send + 'static>(
    calls: impl IntoIterator<Item = impl Future<Output = Result<T, StoreError>> + Send + 'static>,
    is_expected: fn(&StoreError) -> bool,
) -> usize {
    let calls: JoinSet<_> = calls.into_iter().collect();
    let results = calls.join_all().await;
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(is_expected(error), "{error}");
    }
    results.iter().filter(|result| result.is_ok()).count()
}

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test(flavor = "multi_thread")]
async fn no_user_has_more_by_asking_for_much_at_once() {
    const ALICE: u32 = 1000;
    let database = Database::new().await;
    let store = database.store(16);
    let most = Most {
        changes_per_day: Some(7),
        orders: Some(3),
    };
    let alice = Audit {
        most,
        ..Audit::unbounded(ALICE, "a test")
    };
    let of = |application: String| Scope {
        owner_uid: Some(ALICE),
        application: Some(application),
        ..Scope::default()
    };
    let orders = (0..16).map(|number| {
        let (store, scope) = (store.clone(), of(format!("app{number}")));
        async move { store.order(&scope, &Directive::Off, None, alice).await }
    });
    let is_full = |error: &StoreError| matches!(error, StoreError::TooManyOrders { most: 3, .. });
    assert_eq!(taken(orders, is_full).await, 3);
    let in_force = "select count(*) from orders where ended_at is null";
    assert_eq!(database.number(in_force).await, 3);

    // Each order is for another study, so that nothing else makes them wait for one another.
    let mut studies = Vec::new();
    for number in 0..12 {
        let of_the_study = state(&store, ALICE, &format!("app{number}")).await;
        studies.push(of_the_study.study_id);
    }
    let changes = studies.into_iter().map(|study_id| {
        let store = store.clone();
        async move { store.reset(study_id, alice).await }
    });
    let is_full = |error: &StoreError| matches!(error, StoreError::TooManyChanges { most: 7, .. });
    assert_eq!(taken(changes, is_full).await, 4);
    let lines = format!("select count(*) from audit where uid = {ALICE}");
    assert_eq!(database.number(&lines).await, 7);
}

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test(flavor = "multi_thread")]
async fn no_user_has_more_studies_by_beginning_many_at_once() {
    let database = Database::new().await;
    let store = database.store(16).with(3, false);
    let starts = (0..16).map(|number| {
        let store = store.clone();
        let start = Start {
            study: study(1000, &format!("app{number}")),
            ..Start::of(number + 1)
        };
        async move { start.try_search(&store, point(1)).await }
    });
    let is_full = |error: &StoreError| matches!(error, StoreError::TooManyStudies { most: 3, .. });
    assert_eq!(taken(starts, is_full).await, 3);
    assert_eq!(database.number("select count(*) from studies").await, 3);
}

#[tokio::test]
async fn an_order_is_in_force_for_its_scope_and_for_studies_that_begin_later() {
    let database = Database::new().await;
    let store = database.store(2);
    state(&store, 1000, "ocean").await;
    let two = Directive::Pin(values(&[("cb_nodes", "2")]));
    let given = store.order(&of_user(1000), &two, None, BY).await.unwrap();
    assert_eq!(given.line, last(&store).await);
    let ocean = state(&store, 1000, "ocean").await;
    assert_eq!(ocean.pin, Some(pinned(2)));
    assert_eq!(ocean.ordered.decides, Some(given.order_id));
    let later = state(&store, 1000, "climate").await;
    assert_eq!((later.pin, later.ordered.frozen), (Some(pinned(2)), false));
    assert_eq!(state(&store, 1001, "ocean").await.pin, None);

    // The more specific order decides, although it is older; the study's own pin comes before all.
    let of_ocean = Scope {
        application: Some("ocean".to_owned()),
        ..of_user(1000)
    };
    let four = Directive::Pin(values(&[("cb_nodes", "4")]));
    store.order(&of_ocean, &four, None, BY).await.unwrap();
    let three = Directive::Pin(values(&[("cb_nodes", "3")]));
    store
        .order(&Scope::default(), &three, None, BY)
        .await
        .unwrap();
    let ocean = state(&store, 1000, "ocean").await;
    assert_eq!(ocean.pin, Some(pinned(4)));
    assert_eq!(state(&store, 1000, "climate").await.pin, Some(pinned(2)));
    assert_eq!(state(&store, 1001, "ocean").await.pin, Some(pinned(3)));
    store
        .pin(ocean.study_id, &point(9), None, BY)
        .await
        .unwrap();
    assert_eq!(state(&store, 1000, "ocean").await.pin, Some(point(9)));

    // Values of another accelerator's space change nothing here.
    let foreign = Directive::Pin(values(&[("stripe_count", "4")]));
    store.order(&of_ocean, &foreign, None, BY).await.unwrap();
    store.unpin(ocean.study_id, BY).await.unwrap();
    assert_eq!(state(&store, 1000, "ocean").await.pin, Some(pinned(2)));
    assert_eq!(fitting(&space(), &values(&[("cb_nodes", "9")])), None);

    // The orders that user 1001 sees: the order for everyone, and not those of user 1000.
    let seen = store.orders(Some(1001), None, 0, 100).await.unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(store.orders(None, None, 0, 100).await.unwrap().len(), 3);

    let ended = store.end_order(&of_user(1000), "pin", BY).await.unwrap();
    let ended = ended.unwrap();
    assert_eq!(ended.line, last(&store).await);
    let over = store.order_of(ended.order_id).await.unwrap();
    assert_eq!(over.map(|order| order.is_over), Some(true));
    assert_eq!(store.order_of(4711).await.unwrap(), None);
    let twice = store.end_order(&of_user(1000), "pin", BY).await.unwrap();
    assert_eq!(twice, None);
    assert_eq!(state(&store, 1000, "climate").await.pin, Some(pinned(3)));
}

#[tokio::test]
async fn what_is_over_is_not_in_force() {
    let database = Database::new().await;
    let store = database.store(2);
    let study_id = state(&store, 1000, "ocean").await.study_id;
    let tomorrow = Timestamp::now() + Span::new().hours(24);
    let everyone = Scope::default();
    store
        .order(&everyone, &Directive::Freeze, Some(tomorrow), BY)
        .await
        .unwrap();
    store
        .order(&everyone, &Directive::Off, Some(tomorrow), BY)
        .await
        .unwrap();
    store
        .pin(study_id, &point(3), Some(tomorrow), BY)
        .await
        .unwrap();
    let now = state(&store, 1000, "ocean").await;
    assert!(now.ordered.frozen && now.ordered.off && now.pin == Some(point(3)));

    let mut connection = database.connect().await;
    for table in ["orders", "pins"] {
        let over = format!("update {table} set until = now() - interval '1 second'");
        sqlx::query(sqlx::AssertSqlSafe(over))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let then = state(&store, 1000, "ocean").await;
    assert!(!then.ordered.frozen && !then.ordered.off && then.pin.is_none());
    assert!(store.orders(None, None, 0, 100).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_another_cluster_has_ordered_keeps_nothing_from_being_undone() {
    let database = Database::new().await;
    let store = database.store(2);
    let [one, other] = ["one", "other"].map(|cluster| Scope {
        cluster: Some(cluster.to_owned()),
        ..Scope::default()
    });
    for scope in [&one, &other] {
        store
            .order(scope, &Directive::Freeze, None, BY)
            .await
            .unwrap();
    }
    store.end_order(&one, "freeze", BY).await.unwrap();
    let ended = last(&store).await;
    assert_eq!(store.undo(ended, BY).await.unwrap(), Undone::Done);
    assert_eq!(store.orders(None, None, 0, 100).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_pin_an_unpin_and_an_order_are_undone_once_and_only_as_they_were_left() {
    let database = Database::new().await;
    let store = database.store(2);
    let study_id = state(&store, 1000, "ocean").await.study_id;
    let pin = async || store.study_state(study_id).await.unwrap().pin;
    store.pin(study_id, &point(1), None, BY).await.unwrap();
    let first = last(&store).await;
    store.pin(study_id, &point(2), None, BY).await.unwrap();
    let second = last(&store).await;

    let changed = store.undo(first, BY).await.unwrap();
    assert!(
        matches!(changed, Undone::Cannot(why) if why.contains("later")),
        "{changed:?}"
    );
    assert_eq!(store.undo(second, BY).await.unwrap(), Undone::Done);
    assert_eq!(pin().await, Some(point(1)));
    let twice = store.undo(second, BY).await.unwrap();
    assert!(
        matches!(twice, Undone::Cannot(why) if why.contains("already")),
        "{twice:?}"
    );
    assert_eq!(store.undo(first, BY).await.unwrap(), Undone::Done);
    assert_eq!(pin().await, None);
    assert_eq!(store.undo(4711, BY).await.unwrap(), Undone::NotFound);

    store.pin(study_id, &point(5), None, BY).await.unwrap();
    store.unpin(study_id, BY).await.unwrap();
    assert_eq!(
        store.undo(last(&store).await, BY).await.unwrap(),
        Undone::Done
    );
    assert_eq!(pin().await, Some(point(5)));
    store.unpin(study_id, BY).await.unwrap();

    let everyone = Scope::default();
    store
        .order(&everyone, &Directive::Freeze, None, BY)
        .await
        .unwrap();
    let tomorrow = Some(Timestamp::now() + Span::new().hours(24));
    store
        .order(&everyone, &Directive::Freeze, tomorrow, BY)
        .await
        .unwrap();
    assert_eq!(
        store.orders(None, None, 0, 100).await.unwrap().len(),
        1,
        "one replaces the other"
    );
    assert_eq!(
        store.undo(last(&store).await, BY).await.unwrap(),
        Undone::Done
    );
    let left = store.orders(None, None, 0, 100).await.unwrap();
    assert_eq!((left.len(), left[0].until), (1, None));
    store.end_order(&everyone, "freeze", BY).await.unwrap();
    let ended = last(&store).await;
    assert!(!store.study_state(study_id).await.unwrap().ordered.frozen);
    assert_eq!(store.undo(ended, BY).await.unwrap(), Undone::Done);
    assert!(store.study_state(study_id).await.unwrap().ordered.frozen);
    let line = store
        .audit(&AuditFilter {
            audit_id: Some(ended),
            limit: 1,
            ..AuditFilter::default()
        })
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (line.action.as_str(), line.undone_by),
        ("resume", Some(last(&store).await))
    );
}

#[tokio::test]
async fn of_several_orders_and_a_pin_one_decides() {
    let database = Database::new().await;
    let store = database.store(2);
    let study_id = state(&store, 1000, "ocean").await.study_id;
    let decides = async || store.study_state(study_id).await.unwrap().ordered.decides;
    let everyone = Scope::default();
    assert_eq!(decides().await, None);
    let freeze = store.order(&everyone, &Directive::Freeze, None, BY);
    let freeze = freeze.await.unwrap().order_id;
    assert_eq!(decides().await, Some(freeze));
    let three = Directive::Pin(values(&[("cb_nodes", "3")]));
    let pin = store.order(&of_user(1000), &three, None, BY).await.unwrap();
    assert_eq!(decides().await, Some(pin.order_id));
    store.pin(study_id, &point(2), None, BY).await.unwrap();
    assert_eq!(decides().await, None, "the study's own pin does");
    let off = store
        .order(&everyone, &Directive::Off, None, BY)
        .await
        .unwrap();
    assert_eq!(decides().await, Some(off.order_id));
    let named = store.order_of(off.order_id).await.unwrap().unwrap();
    assert_eq!(named.user, None, "BY has no application");
}

async fn judged(database: &Database, store: &Store, job_id: u32, index: u32, seconds: f64) {
    let run_id = launch(store, job_id, point(index), seconds).await;
    let source = io_autotune_store::Source::Squeue;
    store
        .record_outcomes(source, CLUSTER, &[word(job_id, "COMPLETED")])
        .await
        .unwrap();
    let verdict = counted(point(index));
    database.judge(store, run_id, &verdict).await.unwrap();
}

#[tokio::test]
async fn after_an_undone_reset_the_study_goes_on_with_what_it_had_learnt() {
    let database = Database::new().await;
    let store = database.store(2);
    for (job_id, index) in [(1, 0), (2, 3), (3, 3)] {
        judged(&database, &store, job_id, index, 2.0).await;
    }
    let study_id = database.number("select id from studies").await;
    store.pin(study_id, &point(3), None, BY).await.unwrap();
    let before = store.study_state(study_id).await.unwrap();
    store.reset(study_id, BY).await.unwrap();
    let reset = last(&store).await;
    judged(&database, &store, 4, 5, 9.0).await;
    let after = store.study_state(study_id).await.unwrap();
    assert_eq!((after.epoch, after.history.tested.len()), (2, 1));

    assert_eq!(store.undo(reset, BY).await.unwrap(), Undone::Done);
    let undone = store.study_state(study_id).await.unwrap();
    assert_eq!((undone.epoch, &undone.pin), (3, &Some(point(3))));
    assert_eq!(undone.history.tally, before.history.tally);
    let learnt = |state: &io_autotune_store::StudyState| {
        let tested = state.history.tested.iter();
        let mut all: Vec<_> = tested
            .map(|one| {
                (
                    one.parametrization.key(),
                    one.elapsed.count,
                    one.elapsed.mean.to_bits(),
                )
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(learnt(&undone), learnt(&before));
    assert_eq!(undone.opened.why, "a reset was undone");
    assert!(store.check_caches().await.unwrap().is_empty());

    // The run after the reset stays with its epoch; a second undo is refused.
    judged(&database, &store, 5, 3, 2.0).await;
    assert!(store.check_caches().await.unwrap().is_empty());
    assert!(matches!(
        store.undo(reset, BY).await.unwrap(),
        Undone::Cannot(_)
    ));
    // After another reset, an older one can no longer be undone.
    store.reset(study_id, BY).await.unwrap();
    let second = last(&store).await;
    store.reset(study_id, BY).await.unwrap();
    assert!(matches!(
        store.undo(second, BY).await.unwrap(),
        Undone::Cannot(_)
    ));
}
