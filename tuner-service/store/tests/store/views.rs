//! The queries of status, history, explain and a trial of rules.

use std::time::Duration;

use io_autotune_model::{NotCountedBecause, Phase, Role};
use io_autotune_store::{Overview, RunFilter, RunRow, Store, StudyFilter, StudyState, Verdict};
use serde_json::json;
use sqlx::Connection;

use crate::support::{Database, Report, Start, counted, decision, not_counted, point, say, study};

/// Two users have an application with the same name each, and one of them another one; one run
/// each.
async fn three_studies(store: &Store) {
    for (job_id, owner_uid, application) in [
        (1, 1000, "solver"),
        (2, 1001, "solver"),
        (3, 1000, "mesher"),
    ] {
        let mut start = Start::of(job_id);
        start.study = study(owner_uid, application);
        start.search(store, point(job_id)).await;
    }
}

#[tokio::test]
async fn studies_and_runs_are_only_the_owners() {
    let database = Database::new().await;
    let store = database.store(2);
    three_studies(&store).await;
    let studies = async |filter: StudyFilter| -> Vec<(u32, String)> {
        let rows = store.studies(&filter).await.unwrap();
        rows.into_iter()
            .map(|row| (row.owner_uid, row.application))
            .collect()
    };
    let runs = async |filter: RunFilter| -> Vec<(u32, u32)> {
        let rows = store
            .runs(&RunFilter {
                limit: 10,
                ..filter
            })
            .await
            .unwrap();
        rows.into_iter()
            .map(|row| (row.uid, row.job.job_id))
            .collect()
    };
    let mesher = (1000, "mesher".to_owned());
    let (mine, theirs) = ((1000, "solver".to_owned()), (1001, "solver".to_owned()));

    let all = studies(StudyFilter::default()).await;
    assert_eq!(all, [mesher.clone(), mine.clone(), theirs.clone()]);
    let of = |owner_uid| StudyFilter {
        owner_uid: Some(owner_uid),
        ..StudyFilter::default()
    };
    assert_eq!(studies(of(1000)).await, [mesher.clone(), mine]);
    assert_eq!(studies(of(1001)).await, [theirs]);
    assert_eq!(studies(of(1002)).await, []);
    let filter = StudyFilter {
        application: Some("mesher".into()),
        ..of(1000)
    };
    assert_eq!(studies(filter).await, [mesher]);
    let filter = StudyFilter {
        application: Some("mesher".into()),
        ..of(1001)
    };
    assert_eq!(studies(filter).await, []);
    let filter = StudyFilter {
        accelerator: Some("romio".into()),
        ..StudyFilter::default()
    };
    assert_eq!(studies(filter).await.len(), 3);
    let filter = StudyFilter {
        accelerator: Some("none".into()),
        ..StudyFilter::default()
    };
    assert_eq!(studies(filter).await, []);

    let of = |owner_uid| RunFilter {
        owner_uid: Some(owner_uid),
        ..RunFilter::default()
    };
    assert_eq!(
        runs(RunFilter::default()).await,
        [(1000, 1), (1001, 2), (1000, 3)]
    );
    assert_eq!(runs(of(1000)).await, [(1000, 1), (1000, 3)]);
    assert_eq!(runs(of(1001)).await, [(1001, 2)]);
    assert_eq!(
        runs(RunFilter {
            job_id: Some(2),
            ..of(1001)
        })
        .await,
        [(1001, 2)]
    );
    assert_eq!(
        runs(RunFilter {
            job_id: Some(2),
            ..of(1000)
        })
        .await,
        []
    );
    let filter = RunFilter {
        application: Some("solver".into()),
        ..of(1000)
    };
    assert_eq!(runs(filter).await, [(1000, 1)]);

    // Naming another user's study does not open it.
    let row = store
        .studies(&StudyFilter {
            owner_uid: Some(1001),
            ..StudyFilter::default()
        })
        .await
        .unwrap()
        .remove(0);
    let study_id = Some(row.study_id);
    let filter = StudyFilter {
        owner_uid: Some(1000),
        study_id,
        ..StudyFilter::default()
    };
    assert_eq!(studies(filter).await, []);
    assert_eq!(
        runs(RunFilter {
            study_id,
            ..of(1000)
        })
        .await,
        []
    );
    assert_eq!(
        runs(RunFilter {
            study_id,
            ..of(1001)
        })
        .await,
        [(1001, 2)]
    );
}

#[tokio::test]
async fn job_names_are_the_owners_of_these_days_and_most_frequent_first() {
    let database = Database::new().await;
    let store = database.store(2);
    let named = |name: &str| json!({ "mode": "tune", "app": "solver", "job_name": name });
    let mut commented = named("b");
    commented["comment"] = json!("rule_b");
    let explicit = json!({ "mode": "tune", "app": "solver" });
    for (job_id, owner_uid, request) in [
        (1, 1000, &named("a")),
        (2, 1000, &commented),
        (3, 1000, &named("a")),
        (4, 1001, &named("a")),
        (5, 1000, &explicit),
        (6, 1000, &named("old")),
    ] {
        let mut start = Start::of(job_id);
        start.study = study(owner_uid, "solver");
        start.request = request.clone();
        start.search(&store, point(job_id)).await;
    }
    sqlx::query("update runs set started_at = now() - interval '31 days' where job_id = 6")
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    let days = Duration::from_secs(30 * 24 * 3600);
    let names = async |owner, limit| -> Vec<_> {
        let rows = store.job_names(owner, days, limit).await.unwrap();
        rows.into_iter()
            .map(|row| (row.uid, row.job_name, row.comment, row.runs))
            .collect()
    };
    let text = |text: &str| Some(text.to_owned());
    let (a, b) = (text("a"), (1000, text("b"), text("rule_b"), 1));
    let mine = [(1000, a.clone(), None, 2), b, (1000, None, None, 1)];
    assert_eq!(names(Some(1000), 10).await, mine);
    assert_eq!(names(Some(1000), 1).await, mine[..1]);
    assert_eq!(names(Some(1001), 10).await, [(1001, a, None, 1)]);
    assert_eq!(names(None, 10).await.len(), 4);
    assert_eq!(names(Some(1002), 10).await, []);
    let row = store
        .job_names(Some(1001), days, 1)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (row.application.as_str(), row.user.as_deref()),
        ("solver", Some("user1001"))
    );
    let second = RunFilter {
        job_id: Some(2),
        limit: 1,
        in_full: true,
        ..RunFilter::default()
    };
    assert_eq!(store.runs(&second).await.unwrap()[0].request, commented);
}

#[tokio::test]
async fn history_is_the_newest_runs_oldest_first() {
    let database = Database::new().await;
    let store = database.store(2);
    for job_id in 1..=5 {
        Start::of(job_id).search(&store, point(job_id)).await;
    }
    let runs = store
        .runs(&RunFilter {
            limit: 3,
            in_full: true,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    let jobs: Vec<_> = runs.iter().map(|run| run.job.job_id).collect();
    assert_eq!(jobs, [3, 4, 5]);
    let run = &runs[2];
    assert_eq!(run.parametrization, point(5));
    assert_eq!(run.delivery["files"][0]["text"], point(5).to_string());
    assert_eq!(run.suggestion["role"], "search");
    let before = RunFilter {
        before: Some(run.run_id),
        limit: 1,
        ..RunFilter::default()
    };
    let fourth = store.runs(&before).await.unwrap().remove(0);
    assert_eq!(fourth.job.job_id, 4);
    assert!(fourth.suggestion.is_null() && fourth.delivery.is_null());
    assert_eq!(
        (run.state.as_str(), run.finished_at, run.elapsed),
        ("in_flight", None, None)
    );
    assert!(
        runs.windows(2)
            .all(|pair| pair[0].started_at <= pair[1].started_at)
    );
}

/// Attack (drawn): A user asks what decided an ended run, to learn of one that was in flight then.
/// Outcome: The ended run's label is told, its reason not yet.
#[tokio::test]
async fn the_label_of_a_run_pends_until_its_verdict_and_what_counts_it_until_then() {
    let database = Database::new().await;
    let store = database.store(2);
    let started = async |job_id, phase, role| {
        Start::of(job_id)
            .ask(&store, |_| decision(phase, role, point(1)))
            .await
            .unwrap()
            .run_id
    };
    // The jobs whose label pends, and those whose inputs pend.
    let pend = async || -> (Vec<u32>, Vec<u32>) {
        let filter = RunFilter {
            limit: 100,
            ..RunFilter::default()
        };
        let rows = store.runs(&filter).await.unwrap();
        let jobs = |pends: &dyn Fn(&RunRow) -> bool| {
            let rows = rows.iter().filter(|row| pends(row));
            rows.map(|row| row.job.job_id).collect()
        };
        (jobs(&|row| row.label_pends), jobs(&|row| row.inputs_pend))
    };
    let end = async |job_id, run_id| {
        Report::of(job_id).deliver(&store).await.unwrap();
        // A report alone is no verdict: the job may be requeued.
        assert!(pend().await.0.contains(&job_id));
        say(&store, job_id, "COMPLETED").await;
        let verdict = not_counted("for the test");
        store.judge_run(run_id, 2, &verdict).await.unwrap();
    };
    // A run of a proof before the search has ended.
    let proof = Start::of(9);
    let drawn = |_: &StudyState| {
        let mut drawn = decision(Phase::Search, Role::Control, point(1));
        drawn.suggestion["control_chance"] = json!(0.5);
        drawn
    };
    let first = proof.ask(&store, drawn).await.unwrap();
    assert!(first.is_drawn);
    assert!(proof.ask(&store, drawn).await.unwrap().is_drawn, "again");
    assert_eq!(pend().await, (vec![9], vec![9]));
    end(9, first.run_id).await;
    // Nothing else is drawn in a search, nor for a run that may not explore.
    started(1, Phase::Search, Role::Control).await;
    started(2, Phase::Search, Role::Search).await;
    started(3, Phase::Settled, Role::BestKnown).await;
    assert_eq!(pend().await, (vec![], vec![]));
    let control = started(4, Phase::Settled, Role::Control).await;
    let tuned = started(5, Phase::Settled, Role::Settled).await;
    started(6, Phase::Settled, Role::BestKnown).await;
    assert_eq!(pend().await, (vec![4, 5], vec![4, 5, 6]));
    end(5, tuned).await;
    assert_eq!(pend().await, (vec![4], vec![4, 5, 6]));
    end(4, control).await;
    assert_eq!(pend().await, (vec![], vec![]));
    // Runs of another epoch are not counted in this epoch.
    started(7, Phase::Settled, Role::Settled).await;
    let mut other = Start::of(8);
    other.study = study(1000, "mesher");
    other.search(&store, point(1)).await;
    assert_eq!(pend().await, (vec![7], vec![7]));
}

#[tokio::test]
async fn a_study_shows_its_present_epoch_and_compares_only_what_counts() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut job_id = 0;
    for role in Role::ALL {
        for counts in [true, false] {
            job_id += 1;
            let run_id = Start::of(job_id)
                .ask(&store, |_| decision(Phase::Settled, *role, point(1)))
                .await
                .unwrap()
                .run_id;
            let mut report = Report::of(job_id);
            report.elapsed = Some(f64::from(job_id));
            report.applied = Some(point(1));
            report.deliver(&store).await.unwrap();
            say(&store, job_id, "COMPLETED").await;
            let why = "for the test".to_owned();
            let verdict = if counts {
                Verdict::Counted {
                    parametrization: point(1),
                    why,
                }
            } else {
                Verdict::NotCounted {
                    because: NotCountedBecause::Cancelled,
                    why,
                    failed: None,
                }
            };
            store.judge_run(run_id, 2, &verdict).await.unwrap();
        }
    }
    let study = store
        .studies(&StudyFilter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!((study.counted, study.not_counted), (8, 8));
    let epoch_id = store.study_state(study.study_id).await.unwrap().epoch_id;
    let compared = async |most| {
        let runs = store.settled_runs(epoch_id, most).await.unwrap();
        let runs = runs.iter().map(|run| (run.control, run.elapsed));
        runs.collect::<Vec<_>>()
    };
    // The counted run of the nth role, from 0, took 2 n + 1 seconds: only those two roles are
    // compared.
    assert_eq!(compared(100).await, [(true, 7.0), (false, 9.0)]);
    assert_eq!(compared(1).await, [(false, 9.0)], "the latest");
    assert_eq!(study.context, crate::support::study(1000, "solver").context);
    assert_eq!(study.owner_name.as_deref(), Some("user1000"));
}

#[tokio::test]
async fn a_run_that_did_not_get_what_it_was_meant_to_get_is_not_compared() {
    let database = Database::new().await;
    let store = database.store(2);
    // A settled run that had the default because the service's answer came too late; one that had
    // what it was given; and a control run, for which nothing had to be delivered.
    for (job_id, role, index, applied) in [
        (1, Role::Settled, 4, None),
        (2, Role::Settled, 4, Some(point(4))),
        (3, Role::Control, 0, None),
    ] {
        let run_id = Start::of(job_id)
            .ask(&store, |_| {
                let mut decision = decision(Phase::Settled, role, point(index));
                if index == 0 {
                    decision.delivery = json!({ "files": [], "watch": [] });
                }
                decision
            })
            .await
            .unwrap()
            .run_id;
        let mut report = Report::of(job_id);
        report.elapsed = Some(f64::from(job_id));
        report.applied = applied.clone();
        report.deliver(&store).await.unwrap();
        say(&store, job_id, "COMPLETED").await;
        let verdict = counted(applied.unwrap_or(point(0)));
        store.judge_run(run_id, 2, &verdict).await.unwrap();
    }
    let study = store
        .studies(&StudyFilter::default())
        .await
        .unwrap()
        .remove(0);
    let epoch_id = store.study_state(study.study_id).await.unwrap().epoch_id;
    let compared = store.settled_runs(epoch_id, 10).await.unwrap();
    let elapsed: Vec<_> = compared.iter().map(|run| run.elapsed).collect();
    assert_eq!(elapsed, [2.0, 3.0]);
}

#[tokio::test]
async fn the_overview_counts_each_study_once_by_its_last_run() {
    let database = Database::new().await;
    let store = database.store(2);
    assert_eq!(store.overview(0).await.unwrap(), Overview::default());
    three_studies(&store).await;
    let mut connection = database.connect().await;
    let settled =
        "update runs set phase = 'settled', finished_at = now() - interval '5 s' where job_id = 3";
    let assessed = r#"update studies set assessment =
            '{"gain": {"verdict": "faster"}, "findings": [{"kind": "drift"}, {"kind": "mixed"}]}'
            where id = (select e.study_id from epochs e join runs r on r.epoch_id = e.id where r.job_id = 3)"#;
    for change in [settled, assessed] {
        sqlx::query(change).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    let overview = store.overview(0).await.unwrap();
    let studies = [
        ("search".to_owned(), "not_yet".to_owned(), 2),
        ("settled".to_owned(), "faster".to_owned(), 1),
    ];
    assert_eq!(overview.studies, studies);
    let findings = [("drift".to_owned(), 1), ("mixed".to_owned(), 1)];
    assert_eq!(overview.findings, findings);
    assert_eq!(overview.in_flight, 3);
    assert!(overview.longest_wait >= 5.0, "{overview:?}");
}
