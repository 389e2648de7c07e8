//! Pin, unpin, reset and warm start, and the lines they leave.

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Audit, AuditFilter, StudyFilter, StudyState, Undone, WarmStart};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Database, Start, by, counted, decision, launch, narrow_space, point};

fn of_study(study_id: i64) -> AuditFilter {
    AuditFilter {
        study_id: Some(study_id),
        limit: 100,
        ..AuditFilter::default()
    }
}

/// The detail of a line, without the pin that it keeps for an undo.
fn without_before(detail: &Value) -> Value {
    let mut detail = detail.clone();
    detail.as_object_mut().unwrap().remove("before");
    detail
}

#[tokio::test]
async fn the_next_start_sees_the_pin_and_the_audit_says_who_what_and_why() {
    let database = Database::new().await;
    let store = database.store(2);
    Start::of(1).search(&store, point(1)).await;
    let study_id = database.number("select id from studies").await;
    let by = Audit::unbounded;

    let nothing = store.unpin(study_id, by(1000, "nothing to unpin"));
    assert_eq!(nothing.await.unwrap(), None);
    store
        .pin(study_id, &point(7), None, by(1000, "paper deadline"))
        .await
        .unwrap();
    store
        .pin(study_id, &point(8), None, by(u32::MAX, "a better one"))
        .await
        .unwrap();
    let pinned = Start::of(2)
        .ask(&store, |state| {
            decision(Phase::Search, Role::Pinned, state.pin.clone().unwrap())
        })
        .await
        .unwrap();
    assert_eq!(pinned.parametrization, point(8));
    let study = store
        .studies(&StudyFilter::default())
        .await
        .unwrap()
        .remove(0);
    let pin = study.pin.unwrap();
    assert_eq!((pin.parametrization, pin.uid), (point(8), u32::MAX));
    assert_eq!(pin.why, "a better one");

    let unpinned = store.unpin(study_id, by(0, "done")).await.unwrap();
    assert!(unpinned.is_some());
    let twice = store.unpin(study_id, by(0, "twice")).await.unwrap();
    assert_eq!(twice, None);
    Start::of(3)
        .ask(&store, |state| {
            assert_eq!(state.pin, None);
            decision(Phase::Search, Role::Search, point(2))
        })
        .await
        .unwrap();

    store
        .pin(study_id, &point(9), None, by(1000, "again"))
        .await
        .unwrap();
    let reset = store.reset(study_id, by(0, "a new disk")).await.unwrap();
    assert_eq!(reset.epoch, 2);
    let state = store.study_state(study_id).await.unwrap();
    assert_eq!((state.epoch, state.pin), (2, None));

    let mut audit = store.audit(&of_study(study_id)).await.unwrap();
    audit.reverse();
    let lines: Vec<_> = audit
        .iter()
        .map(|line| {
            (
                line.uid,
                line.action.as_str(),
                line.why.as_str(),
                without_before(&line.detail),
            )
        })
        .collect();
    let expected = [
        (
            1000,
            "pin",
            "paper deadline",
            json!({ "parametrization": point(7), "until": null }),
        ),
        (
            u32::MAX,
            "pin",
            "a better one",
            json!({ "parametrization": point(8), "until": null }),
        ),
        (0, "unpin", "done", json!({ "parametrization": point(8) })),
        (
            1000,
            "pin",
            "again",
            json!({ "parametrization": point(9), "until": null }),
        ),
        (
            0,
            "reset",
            "a new disk",
            json!({ "opened_epoch": 2, "unpinned": point(9) }),
        ),
    ];
    assert_eq!(lines, expected);
    assert!(audit.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn resets_at_the_same_time_open_one_epoch_each_and_delete_nothing() {
    let database = Database::new().await;
    let store = database.store(8);
    Start::of(1).search(&store, point(1)).await;
    let study_id = database.number("select id from studies").await;
    let mut resetting = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        resetting.spawn(async move { store.reset(study_id, by(0, "drift")).await.unwrap().epoch });
    }
    let mut epochs = resetting.join_all().await;
    epochs.sort_unstable();
    assert_eq!(epochs, [2, 3, 4, 5, 6, 7, 8, 9]);
    let chained = "select count(*) from epochs e join epochs p on p.id = e.parent_id
                       where p.ordinal = e.ordinal - 1 and p.study_id = e.study_id";
    assert_eq!(database.number(chained).await, 8);
    assert_eq!(database.number("select count(*) from runs").await, 1);
    assert_eq!(
        database
            .number("select count(distinct seed) from epochs")
            .await,
        9
    );
}

#[tokio::test]
async fn an_audit_line_is_written_with_its_change_or_neither_is() {
    let database = Database::new().await;
    let store = database.store(1);
    Start::of(1).search(&store, point(1)).await;
    let study_id = database.number("select id from studies").await;
    // PostgreSQL's texts cannot contain a zero character, so each of these fails half way.
    let audit = by(0, "a\0b");
    store
        .pin(study_id, &point(1), None, audit)
        .await
        .unwrap_err();
    store.reset(study_id, audit).await.unwrap_err();
    assert_eq!(database.number("select count(*) from pins").await, 0);
    assert_eq!(database.number("select count(*) from epochs").await, 1);
    store
        .pin(study_id, &point(1), None, Audit::unbounded(0, "ok"))
        .await
        .unwrap();
    store.unpin(study_id, audit).await.unwrap_err();
    assert_eq!(database.number("select count(*) from pins").await, 1);
    assert_eq!(database.number("select count(*) from audit").await, 1);
}

#[tokio::test]
async fn what_is_accepted_as_one_application_stays_so_over_a_reset() {
    let database = Database::new().await;
    let store = database.store(2);
    Start::of(1).search(&store, point(1)).await;
    let study_id = database.number("select id from studies").await;
    assert!(!store.study_state(study_id).await.unwrap().accepts_mixed);
    let audit = by(1000, "its inputs differ");
    store.accept_mixed(study_id, audit).await.unwrap();
    store.reset(study_id, audit).await.unwrap();
    assert!(store.study_state(study_id).await.unwrap().accepts_mixed);
    let lines = store.audit(&of_study(study_id)).await.unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.uid, line.action.as_str(), line.why.as_str()))
        .collect();
    let why = "its inputs differ";
    assert_eq!(told, [(1000, "reset", why), (1000, "accept", why)]);
    store.accept_mixed(404, audit).await.unwrap_err();
}

#[tokio::test]
async fn a_study_that_is_not_there_cannot_be_changed() {
    let database = Database::new().await;
    let store = database.store(1);
    let audit = by(0, "a slip");
    store.pin(404, &point(1), None, audit).await.unwrap_err();
    store.unpin(404, audit).await.unwrap_err();
    store.reset(404, audit).await.unwrap_err();
    assert!(store.audit(&of_study(404)).await.unwrap().is_empty());
    assert_eq!(database.number("select count(*) from audit").await, 0);
}

#[tokio::test]
async fn a_warm_start_opens_an_epoch_with_anothers_ranks_and_is_undone() {
    let database = Database::new().await;
    let store = database.store(2);
    for job_id in 1..=3 {
        let run = launch(&store, job_id, point(1), 10.0).await;
        let verdict = counted(point(1));
        database.judge(&store, run, &verdict).await.unwrap();
    }
    let study_id = database.number("select id from studies").await;
    let audit = by(7, "the same library");
    let from = WarmStart {
        study_id: 12,
        application: "ocean",
        epoch: 3,
    };
    let nothing = store
        .warm_start(study_id, &from, |_| Err("it has learnt nothing"), audit)
        .await
        .unwrap();
    assert_eq!(nothing, Err("it has learnt nothing"));
    assert_eq!(database.number("select count(*) from epochs").await, 1);
    assert_eq!(database.number("select count(*) from audit").await, 0);

    let ranks = |state: &StudyState| {
        assert_eq!(state.history.tally.total, 3);
        Ok::<_, ()>(vec![point(5), point(0)])
    };
    let opened = store.warm_start(study_id, &from, ranks, audit).await;
    let opened = opened.unwrap().unwrap();
    assert_eq!(opened.epoch, 2);
    let state = store.study_state(study_id).await.unwrap();
    assert_eq!(state.inherited, [point(5), point(0)]);
    assert_eq!(
        (state.opened.takes.as_str(), state.history.tally.total),
        ("ranks", 0)
    );
    assert!(state.is_warm_started());
    assert_eq!(
        state.opened.why,
        "warm start with what study 12 (application ocean) ranked best: the same library"
    );
    let run = Start::of(4).search(&store, point(5)).await;
    let inputs = store.epoch_inputs(run.run_id).await.unwrap().unwrap();
    assert!(inputs.is_warm_started);
    assert_eq!(inputs.inherited, state.inherited);

    let line = store.audit(&of_study(study_id)).await.unwrap().remove(0);
    assert_eq!(line.action, "warm-start");
    assert_eq!(line.audit_id, opened.line);
    assert_eq!(line.detail["from_study"], 12);
    assert_eq!(
        store.undo(line.audit_id, audit).await.unwrap(),
        Undone::Done
    );
    let state = store.study_state(study_id).await.unwrap();
    assert_eq!(
        (state.epoch, state.opened.why.as_str()),
        (3, "a warm start was undone")
    );
    assert_eq!(
        (state.history.tally.total, state.is_warm_started()),
        (3, false)
    );
    assert_eq!(store.check_caches().await.unwrap(), []);
}

#[tokio::test]
async fn a_pin_that_the_accelerator_offers_no_more_is_removed_and_the_audit_says_so() {
    let database = Database::new().await;
    let store = database.store(2);
    Start::of(1).search(&store, point(1)).await;
    let study_id = database.number("select id from studies").await;
    let audit = Audit::unbounded(1000, "paper deadline");
    store.pin(study_id, &point(7), None, audit).await.unwrap();
    let mut start = Start::of(2);
    start.space = narrow_space();
    let ask = |state: &StudyState| {
        assert_eq!(state.pin, None);
        decision(Phase::Search, Role::Search, point(2))
    };
    start.ask(&store, ask).await.unwrap();
    let study = store.studies(&StudyFilter::default()).await.unwrap();
    assert_eq!(study[0].pin, None);
    let line = store.audit(&of_study(study_id)).await.unwrap().remove(0);
    assert_eq!((line.action.as_str(), line.uid), ("unpin", 0));
    assert!(line.why.contains("does not offer"), "{}", line.why);
    let undone = store.undo(line.audit_id, audit).await.unwrap();
    assert!(matches!(undone, Undone::Cannot(_)), "{undone:?}");
}
