//! A job id that Slurm gives again: another job's launch gets a run of its own, and late messages
//! of the first find the first.

use io_autotune_model::{Outcome, Sluid};
use io_autotune_store::{JobKey, Source, Store};
use jiff::SignedDuration;
use sqlx::Connection;
use tokio::task::JoinSet;

use crate::support::{
    CLUSTER, Database, Lock, Report, Start, launch, not_counted, point, say, study, word,
};

const JOB: u32 = 7;

/// Moves everything known of the existing runs this many hours into the past.
async fn hours_later(database: &Database, hours: i32) {
    let mut connection = database.connect().await;
    for statement in [
        "update runs set started_at = started_at - $1 * interval '1 hour', finished_at = finished_at - $1 * interval '1 hour',
                         outcome_at = outcome_at - $1 * interval '1 hour', judged_at = judged_at - $1 * interval '1 hour'",
        "update outcomes set started_at = started_at - $1 * interval '1 hour', ended_at = ended_at - $1 * interval '1 hour'",
    ] {
        sqlx::query(statement).bind(hours).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

async fn start(store: &Store) -> i64 {
    Start::of(JOB).search(store, point(2)).await.run_id
}

/// A launch that has ended, according to Slurm.
async fn ended(store: &Store) -> i64 {
    launch(store, JOB, point(1), 10.0).await
}

async fn outcome(database: &Database, run_id: i64) -> Option<String> {
    let mut connection = database.connect().await;
    let outcome = sqlx::query_scalar("select outcome from runs where id = $1")
        .bind(run_id)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    outcome
}

#[tokio::test]
async fn who_asks_after_the_end_is_another_launch_and_all_its_nodes_get_one_answer() {
    let database = Database::new().await;
    let store = database.store(8);
    let first = ended(&store).await;
    assert_eq!(
        start(&store).await,
        first,
        "an asking that its job's end overtook"
    );
    hours_later(&database, 1).await;
    let mut asking = JoinSet::new();
    for node in 0..12 {
        let store = store.clone();
        let mut start = Start::of(JOB);
        if node % 3 == 0 {
            start.lock = Lock::None;
        }
        asking.spawn(async move { start.search(&store, point(node % 8)).await });
    }
    let answers = asking.join_all().await;
    assert!(answers[0].run_id != first);
    for answer in &answers {
        assert_eq!(answer.run_id, answers[0].run_id);
        assert_eq!(answer.parametrization, answers[0].parametrization);
    }
    let runs = "select count(*) * 10 + max(generation) from runs";
    assert_eq!(database.number(runs).await, 21);
}

#[tokio::test]
async fn a_launch_that_goes_on_is_the_same_however_late_a_node_asks() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = start(&store).await;
    hours_later(&database, 100).await;
    assert_eq!(start(&store).await, first);
    // It was given up, but is alive after all.
    let lost = not_counted("nobody knows of it");
    database.judge(&store, first, &lost).await.unwrap();
    hours_later(&database, 20).await;
    assert_eq!(start(&store).await, first);
    hours_later(&database, 20).await;
    assert!(start(&store).await != first);
}

#[tokio::test]
async fn another_user_s_job_or_one_that_began_later_is_another_launch_though_the_first_never_ended()
{
    let database = Database::new().await;
    let store = database.store(2);
    let first = start(&store).await;
    let mut other = Start::of(JOB);
    other.study = study(2000, "solver");
    let second = other.search(&store, point(3)).await.run_id;
    assert!(second != first);
    assert_eq!(other.search(&store, point(4)).await.run_id, second);
    let mut again = other.clone();
    again.began_at = Some(store.now().await.unwrap());
    assert_eq!(again.search(&store, point(4)).await.run_id, second);
    hours_later(&database, 1).await;
    let third = again.search(&store, point(4)).await.run_id;
    assert!(third != second);
    assert_eq!(again.search(&store, point(5)).await.run_id, third);
}

#[tokio::test]
async fn a_late_report_finds_its_own_run() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = ended(&store).await;
    hours_later(&database, 2).await;
    let second = start(&store).await;
    let report = |node: &str| Report {
        node: node.into(),
        ..Report::of(JOB)
    };
    // It names its run, which is not the latest; or a number that is not a run of its job.
    for (named, found) in [(first, first), (second, second), (9999, second)] {
        let mut late = report(&format!("of{named}"));
        late.run_id = Some(named);
        assert_eq!(late.deliver(&store).await.unwrap().run_id, found);
    }
    // It names no run and has no prolog time, so it belongs to the latest run.
    assert_eq!(report("n8").deliver(&store).await.unwrap().run_id, second);
}

#[tokio::test]
async fn a_report_without_a_start_is_of_a_run_of_its_own_if_its_prolog_ran_after_the_end() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = ended(&store).await;
    hours_later(&database, 2).await;
    let now = store.now().await.unwrap();
    let report = |node: &str, minutes_ago: i64| Report {
        node: node.into(),
        prolog_at: Some(now - SignedDuration::from_mins(minutes_ago)),
        ..Report::of(JOB)
    };
    // A node of the first launch, whose report waited in its spool.
    assert_eq!(
        report("n2", 121).deliver(&store).await.unwrap().run_id,
        first
    );
    let own = report("n1", 30).deliver(&store).await.unwrap();
    assert!(own.run_id != first && !own.duplicate);
    let other_node = report("n2", 29).deliver(&store).await.unwrap();
    assert_eq!(
        (other_node.run_id, other_node.duplicate),
        (own.run_id, false)
    );
    assert!(report("n1", 30).deliver(&store).await.unwrap().duplicate);
}

#[tokio::test]
async fn slurm_s_words_are_matched_by_the_time_too() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = start(&store).await;
    hours_later(&database, 48).await;
    let mut other = Start::of(JOB);
    other.study = study(2000, "solver");
    let second = other.search(&store, point(3)).await.run_id;
    let now = store.now().await.unwrap();
    let squeue = |state: &str, hours_ago: i64| Outcome {
        started_at: Some(now - SignedDuration::from_hours(hours_ago)),
        ended_at: Some(now - SignedDuration::from_hours(hours_ago) + SignedDuration::from_secs(60)),
        ..word(JOB, state)
    };
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[squeue("COMPLETED", 0)])
        .await
        .unwrap();
    let outcomes = (
        outcome(&database, first).await,
        outcome(&database, second).await,
    );
    assert_eq!(outcomes, (None, Some("COMPLETED".into())));
    let jobcomp = Outcome {
        restart_count: None,
        ..squeue("FAILED", 48)
    };
    store
        .record_outcomes(Source::Jobcomp, CLUSTER, &[jobcomp])
        .await
        .unwrap();
    let outcomes = (
        outcome(&database, first).await,
        outcome(&database, second).await,
    );
    assert_eq!(outcomes, (Some("FAILED".into()), Some("COMPLETED".into())));
}

#[tokio::test]
async fn a_requeued_job_whose_id_comes_back_has_its_launches_again() {
    let database = Database::new().await;
    let store = database.store(2);
    let first = ended(&store).await;
    let key = JobKey {
        restart_count: 1,
        ..Start::of(JOB).job
    };
    let relaunched = Start {
        job: key,
        ..Start::of(JOB)
    };
    let requeued = relaunched.search(&store, point(1)).await.run_id;
    hours_later(&database, 1).await;
    let again = start(&store).await;
    assert!(again != first);
    say(&store, JOB, "FAILED").await;
    // The launch with another restart count has not ended, and belongs to nobody else.
    assert_eq!(relaunched.search(&store, point(1)).await.run_id, requeued);
}

fn sluid(last: char) -> Option<Sluid> {
    Some(format!("s5TFPJ0K1Q000{last}").parse().unwrap())
}

#[tokio::test]
async fn slurm_s_id_of_a_launch_tells_it_from_the_one_before_however_close_they_are() {
    let database = Database::new().await;
    let store = database.store(4);
    let of = |last, lock| Start {
        sluid: sluid(last),
        lock,
        ..Start::of(JOB)
    };
    let waiting = Start::of(JOB).lock;
    let mut runs = Vec::new();
    // By the times alone each would be taken for the one before it, because nothing has ended.
    for (place, last) in ['0', '1', '2'].into_iter().enumerate() {
        let lock = if place == 1 { Lock::None } else { waiting };
        let run = of(last, lock).search(&store, point(1)).await;
        runs.push(run.run_id);
    }
    assert!(runs[0] < runs[1] && runs[1] < runs[2], "{runs:?}");
    // However late its other nodes ask, and whichever launch came since then.
    hours_later(&database, 100).await;
    for lock in [waiting, Lock::None] {
        for (last, run_id) in ['0', '1', '2'].into_iter().zip(&runs) {
            let again = of(last, lock)
                .ask(&store, |_| panic!("a second decision for one launch"))
                .await;
            assert_eq!(again.unwrap().run_id, *run_id);
        }
    }
    assert_eq!(database.number("select count(*) from runs").await, 3);
}

#[tokio::test]
async fn a_report_finds_its_run_by_slurm_s_id_and_never_another_launch_s() {
    let database = Database::new().await;
    let store = database.store(4);
    let start = |last| Start {
        sluid: sluid(last),
        ..Start::of(JOB)
    };
    let first = start('0').search(&store, point(1)).await.run_id;
    let second = start('1').search(&store, point(2)).await.run_id;
    let report = |last, node: &str, run_id| Report {
        sluid: sluid(last),
        node: node.into(),
        run_id,
        ..Report::of(JOB)
    };
    for (node, run_id) in [("n1", None), ("n2", Some(first)), ("n3", Some(second))] {
        let finished = report('0', node, run_id).deliver(&store).await.unwrap();
        assert_eq!(finished.run_id, first, "{node} names {run_id:?}");
    }
    assert_eq!(
        database
            .number("select count(*) from runs where finished_at is null")
            .await,
        1,
        "the second launch goes on"
    );
    // A launch whose start never arrived.
    let own = report('2', "n1", None).deliver(&store).await.unwrap();
    assert!(own.run_id > second && !own.duplicate);
    let other_node = report('2', "n2", Some(second))
        .deliver(&store)
        .await
        .unwrap();
    assert_eq!(other_node.run_id, own.run_id);
    assert!(
        report('2', "n1", None)
            .deliver(&store)
            .await
            .unwrap()
            .duplicate
    );
}

#[tokio::test]
async fn where_one_side_has_no_id_of_slurm_s_the_times_decide_as_before() {
    let database = Database::new().await;
    let store = database.store(4);
    // A node with an older helper, or a row from before the column existed.
    let with = Start {
        sluid: sluid('0'),
        ..Start::of(JOB)
    };
    let first = start(&store).await;
    assert_eq!(with.search(&store, point(3)).await.run_id, first);
    say(&store, JOB, "COMPLETED").await;
    hours_later(&database, 1).await;
    let second = with.search(&store, point(3)).await.run_id;
    assert!(second != first);
    assert_eq!(start(&store).await, second);
    say(&store, JOB, "FAILED").await;
    hours_later(&database, 1).await;
    assert!(start(&store).await != second);
    assert_eq!(
        with.search(&store, point(3)).await.run_id,
        second,
        "it has said so"
    );
}

/// Attack (environment): A request or SLURM_JOB_SLUID has another launch's id, or a malformed one.
/// Outcome: The launch has the id that Slurm gave it.
#[tokio::test]
async fn another_user_s_run_is_not_had_by_saying_its_id() {
    let database = Database::new().await;
    let store = database.store(2);
    let own = Start {
        sluid: sluid('0'),
        ..Start::of(JOB)
    };
    let first = own.search(&store, point(1)).await.run_id;
    let forged = Start {
        study: study(2000, "solver"),
        ..own.clone()
    };
    let second = forged.search(&store, point(2)).await.run_id;
    assert!(second != first);
    assert_eq!(forged.search(&store, point(3)).await.run_id, second);
    assert_eq!(own.search(&store, point(3)).await.run_id, first);
}
