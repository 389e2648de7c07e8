//! Another objective than elapsed: a study is tuned by it, and elapsed vetoes what it costs.

use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestService};
use super::{history, steer, text, undo, warnings};

/// Seconds of the I/O phase with the default; a quarter of it with anything else.
const PHASE: f64 = 0.4;

/// Gives an application a study with marked seconds as its objective.
async fn by_marks(service: &TestService, application: &str) -> i64 {
    let job = service.job(ALICE, &format!("app={application}"));
    let marked = |_: &_| Course::completed(5.0).measured(&[("marked_seconds", PHASE)]);
    let run = job.goes(service, marked).await;
    assert_eq!(run["state"], "counted", "{run}");
    let study_id = service.study_id(application).await;
    let body = json!({ "objective": "marked", "why": "I/O is a part of it" });
    let answer = steer(service, ALICE, study_id, "objective", body)
        .await
        .ok();
    assert_eq!(answer["epoch"], 2);
    assert_eq!(answer["objective"], "marked_seconds");
    let why = "the objective is marked_seconds now: I/O is a part of it";
    assert_eq!(answer["opened"]["why"], why);
    study_id
}

/// Runs an application some times. The default and any other parametrization take the given
/// seconds, a part of which is I/O. Returns the last run.
async fn tuned(
    service: &TestService,
    application: &str,
    runs: u32,
    seconds: impl Fn(bool, u32) -> f64,
) -> Value {
    let default = service.default_of("romio");
    let mut last = Value::Null;
    for number in 0..runs {
        let job = service.job(ALICE, &format!("app={application}"));
        last = job
            .goes(service, |started| {
                let is_default = started.parametrization == default;
                let marked = if is_default { PHASE } else { PHASE / 4.0 };
                let noise = 0.001 * f64::from(number % 5);
                let measures = [("marked_seconds", marked + noise)];
                Course::completed(seconds(is_default, number)).measured(&measures)
            })
            .await;
    }
    last
}

#[tokio::test]
async fn a_study_is_tuned_by_its_objective_and_elapsed_stands_beside_it() {
    let service = TestService::with(QUICK).await;
    by_marks(&service, "noisy").await;
    // I/O is a small part of it, and the rest is noise.
    let noise = |number: u32| 1.0 + f64::from(number * 29 % 17) / 10.0;
    tuned(&service, "noisy", 36, |is_default, number| {
        noise(number) + if is_default { PHASE } else { PHASE / 4.0 }
    })
    .await;
    let study = service.study("noisy").await;
    assert_eq!(study["objective"], "marked_seconds");
    assert_eq!(study["phase"], "settled", "{study}");
    let gain = &study["gain"];
    assert_eq!(gain["resolved"], true, "{gain}");
    let share = gain["gain"].as_f64().unwrap();
    assert!((0.5..0.9).contains(&share), "{gain}");
    assert_ne!(
        study["differs"],
        json!({}),
        "the default itself is recommended"
    );
    let mean = |name: &str| study[name]["mean"].as_f64().unwrap();
    assert!(mean("tuned") < PHASE && PHASE < mean("control") + 0.1);
    let beside = &study["assessment"]["elapsed"];
    assert_eq!(beside["vetoed"], false);
    assert!(beside["low"].as_f64().unwrap() < 0.0, "{beside}");
    assert_eq!(beside["parametrization"], study["recommended"]);
    let runs = history(&service, ALICE, "noisy").await;
    let last = runs.last().unwrap();
    let reason = text(&last["reason"]);
    assert!(
        reason.ends_with("[by marked I/O seconds, not elapsed]"),
        "{reason}"
    );
    assert_eq!(runs[0]["objective"], "elapsed");
    assert_eq!(last["objective"], "marked_seconds");
}

#[tokio::test]
async fn what_makes_elapsed_worse_is_vetoed() {
    let service = TestService::with(QUICK).await;
    by_marks(&service, "slower").await;
    tuned(&service, "slower", 30, |is_default, number| {
        let noise = 0.001 * f64::from(number % 7);
        noise + if is_default { 0.6 } else { 1.6 }
    })
    .await;
    let runs = history(&service, ALICE, "slower").await;
    let settled: Vec<&Value> = runs
        .iter()
        .filter(|run| run["phase"] == "settled")
        .collect();
    assert!(settled.len() >= 4, "{runs:?}");
    for run in &settled {
        assert_eq!(
            run["differs"],
            json!({}),
            "a vetoed parametrization ran: {run}"
        );
    }
    let study = service.study("slower").await;
    let beside = &study["assessment"]["elapsed"];
    assert_eq!(beside["vetoed"], true, "{study}");
    let (low, longer) = (&beside["low"], &beside["longer"]);
    assert!(
        0.0 < low.as_f64().unwrap() && low.as_f64() < longer.as_f64(),
        "{beside}"
    );
    assert_eq!(study["differs"], json!({}));
    let told = warnings(&study, "not recommended");
    assert_eq!(told.len(), 1, "{study}");
    assert!(told[0].contains("elapsed would be"), "{told:?}");
    let tuned = settled.iter().rfind(|run| run["role"] == "settled");
    let reason = text(&tuned.unwrap()["reason"]);
    assert!(reason.contains("elapsed would be"), "{reason}");
}

#[tokio::test]
async fn an_objective_that_no_run_tells_is_said() {
    let service = TestService::with(QUICK).await;
    by_marks(&service, "untold").await;
    for _ in 0..4 {
        let job = service.job(ALICE, "app=untold");
        let run = job.goes(&service, |_| Course::completed(5.0)).await;
        assert_eq!(run["state"], "not_counted", "{run}");
        let verdict = text(&run["verdict"]);
        assert!(verdict.contains("the job has not told it"), "{verdict}");
        assert_eq!(run["elapsed"], 5.0, "it is kept");
    }
    let study = service.study("untold").await;
    assert_eq!(
        (&study["counted"], &study["not_counted"]),
        (&json!(0), &json!(4))
    );
    let told = warnings(&study, "none of its 4 runs since then has told it");
    assert_eq!(told.len(), 1, "{study}");
    assert!(told[0].contains("`io-autotune objective "), "{told:?}");
}

#[tokio::test]
async fn an_objective_is_refused_that_no_job_can_have_or_that_the_study_has() {
    let service = TestService::with(QUICK).await;
    let study_id = by_marks(&service, "ocean").await;
    let asked = async |objective: &str, maximise: bool| {
        let body = json!({ "objective": objective, "maximise": maximise });
        steer(&service, ALICE, study_id, "objective", body).await
    };
    for objective in ["", "a b", "1x", "a.b", "\u{e9}t\u{e9}", &"x".repeat(33)] {
        let refusal = asked(objective, false).await.bad_request();
        assert!(
            refusal.contains("is no objective: it must be elapsed, marked, mpi-io, or the NAME"),
            "{refusal}"
        );
    }
    for objective in ["elapsed", "marked", "mpi-io"] {
        assert_eq!(
            asked(objective, true).await.bad_request(),
            format!(
                "{objective} is seconds, which are made few: only a measure of the application's own \
                 can be maximised"
            )
        );
    }
    let again = asked("marked", false).await.refused(409, "conflict");
    assert_eq!(
        again,
        format!("study {study_id} has this objective already: marked_seconds")
    );
    assert_eq!(service.study("ocean").await["epoch"], 2);
}

#[tokio::test]
async fn an_objective_that_is_undone_gives_back_what_was_learnt_by_the_other() {
    let service = TestService::with(QUICK).await;
    let study_id = by_marks(&service, "ocean").await;
    tuned(&service, "ocean", 3, |_, _| 2.0).await;
    let marked = service.study("ocean").await;
    assert_eq!(marked["default"]["n"], 2);
    let body = json!({ "objective": "elapsed", "why": "it marks nothing" });
    let back = steer(&service, ALICE, study_id, "objective", body)
        .await
        .ok();
    assert_eq!(
        (&back["objective"], &back["epoch"]),
        (&json!("elapsed"), &json!(3))
    );
    assert_eq!(
        back["default"],
        Value::Null,
        "ranks by one objective are none by another"
    );
    undo(&service, ALICE, &back).await.ok();
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["objective"], &study["epoch"]),
        (&json!("marked_seconds"), &json!(4))
    );
    assert_eq!(
        study["opened"]["why"],
        "a change of the objective was undone"
    );
    assert_eq!(study["default"], marked["default"]);
}

#[tokio::test]
async fn a_measure_of_the_application_s_own_is_made_large() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let first = |_: &_| Course::completed(5.0);
    service.ran(ALICE, "app=rate", first).await;
    let study_id = service.study_id("rate").await;
    let body = json!({ "objective": "rate", "maximise": true });
    let answer = steer(&service, ALICE, study_id, "objective", body)
        .await
        .ok();
    assert_eq!(answer["objective"], "objective.rate maximised");
    for number in 0..30 {
        let course = |started: &StartAnswer| {
            let rate = if started.parametrization == default {
                100.0
            } else {
                150.0
            };
            let noise = 0.1 * f64::from(number % 5);
            Course::completed(5.0).measured(&[("objective.rate", rate + noise)])
        };
        service.ran(ALICE, "app=rate", course).await;
    }
    let study = service.study("rate").await;
    assert_eq!(study["phase"], "settled", "{study}");
    let mean = |name: &str| study[name]["mean"].as_f64().unwrap();
    assert!((99.0..102.0).contains(&mean("control")), "{study}");
    assert!((149.0..152.0).contains(&mean("tuned")), "{study}");
    let interval = &study["tuned"]["interval"];
    assert!(interval[0].as_f64() < interval[1].as_f64(), "{interval}");
    assert_eq!(study["gain"]["resolved"], true, "{study}");
    let why = text(&study["why"]);
    assert!(
        why.starts_with("expected to be the best by rate of "),
        "{why}"
    );
}

/// Promise: a user steers another user's study
#[tokio::test]
async fn the_objective_of_anothers_study_is_not_changed() {
    let service = TestService::with(QUICK).await;
    let study_id = by_marks(&service, "ocean").await;
    let body = json!({ "objective": "elapsed" });
    steer(&service, BOB, study_id, "objective", body.clone())
        .await
        .not_found();
    assert_eq!(service.study("ocean").await["objective"], "marked_seconds");
    let changed = steer(&service, ADMIN, study_id, "objective", body)
        .await
        .ok();
    assert_eq!(changed["objective"], "elapsed");
}
