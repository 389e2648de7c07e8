//! Tests of priors: studies that use what others of their accelerator have learnt.

use io_autotune_engine::{Parametrization, Value as Setting};

use super::super::TestJob;
use super::*;

pub(in crate::tests) const LEARNING: &str = "[study]\nbaseline_runs = 2\nbudget = 8\nexploring = 2\n\
                        control_every = 2\n\
                        [study.stop]\nunread_runs = 0\nlittle_io = 0.0\n";

/// With the default, enough for a source.
const POINTS: [&[(&str, &str)]; 6] = [
    &[("romio_cb_read", "disable")],
    &[("romio_cb_read", "disable"), ("cb_nodes", "4")],
    &[("romio_cb_read", "enable")],
    &[("cb_nodes", "4")],
    &[("romio_cb_write", "enable")],
    &[("romio_cb_write", "disable")],
];

fn reads_disabled(given: &Parametrization) -> bool {
    given.0.get("romio_cb_read") == Some(&Setting::Text("disable".into()))
}

pub(in crate::tests) fn gains(given: &Parametrization) -> f64 {
    if reads_disabled(given) { 0.2 } else { 1.0 }
}

fn loses(given: &Parametrization) -> f64 {
    if reads_disabled(given) { 2.0 } else { 1.0 }
}

/// Runs a job; returns it and its run as an admin sees it.
pub(in crate::tests) async fn run_one(
    service: &TestService,
    uid: u32,
    application: &str,
    elapsed: fn(&Parametrization) -> f64,
) -> (TestJob, Value) {
    let job = service.job(uid, &format!("app={application}"));
    let started = job.start(service).await;
    let seconds = elapsed(&started.parametrization);
    job.finish(service, &job.reports(Some(&started), seconds))
        .await;
    job.ends(service, "COMPLETED", seconds);
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    assert_eq!(run["state"], "counted", "{run}");
    (job, run)
}

/// Lets a study of this user's know its default and six other points.
pub(in crate::tests) async fn learn(service: &TestService, uid: u32, application: &str) {
    for _ in 0..2 {
        let (_, run) = run_one(service, uid, application, gains).await;
        assert_eq!(run["role"], "baseline");
    }
    let study = service.study_id(application).await;
    for point in POINTS {
        service.pin(uid, study, point).await.ok();
        let (_, run) = run_one(service, uid, application, gains).await;
        assert_eq!(run["role"], "pinned");
    }
}

/// A site at which two studies of Alice's have learnt, seen through a replica that has just started:
/// a service looks for sources once a second.
async fn learnt() -> TestService {
    let service = TestService::with(LEARNING).await;
    for application in ["prior-one", "prior-two"] {
        learn(&service, ALICE, application).await;
    }
    service.replica().await
}

/// Lets a study of Bob's run; returns its exploring runs.
async fn explored(
    service: &TestService,
    elapsed: fn(&Parametrization) -> f64,
    application: &str,
    runs: u32,
) -> Vec<(TestJob, Value)> {
    let mut explored = Vec::new();
    for _ in 0..runs {
        let (job, run) = run_one(service, BOB, application, elapsed).await;
        if ["design", "search"].contains(&run["role"].as_str().unwrap()) {
            explored.push((job, run));
        }
    }
    explored
}

fn reason(run: &Value) -> &str {
    run["reason"].as_str().unwrap()
}

/// The number of runs that were made because other studies had expected a gain.
fn on_others_word(runs: &[(TestJob, Value)]) -> usize {
    runs.iter()
        .filter(|(_, run)| run["role"] == "design" && reason(run).contains(" expect it "))
        .count()
}

#[tokio::test]
async fn before_anybody_has_learnt_nothing_is_said_of_others() {
    let service = TestService::with(LEARNING).await;
    let runs = explored(&service, gains, "prior-before", 5).await;
    assert!(!reason(&runs[0].1).contains("other stud"), "{}", runs[0].1);
    let next = &service.study("prior-before").await["next"];
    assert!(!next.to_string().contains("others"), "{next}");
}

#[tokio::test]
async fn two_siblings_shorten_the_third() {
    let service = learnt().await;
    let runs = explored(&service, gains, "prior-three", 8).await;
    let first = &runs[0].1;
    assert_eq!(first["role"], "design", "{first}");
    let said = "2 other studies of this accelerator at this site expect it";
    assert!(reason(first).starts_with(said), "{first}");
    assert_eq!(first["differs"]["romio_cb_read"], "disable", "{first}");
    assert_eq!(on_others_word(&runs[1..]), 0);
    let next = &service.study("prior-three").await["next"];
    let unless = next["unless"].as_array().unwrap();
    assert!(unless.contains(&Value::from("others")), "{next}");
    let believed = runs[1..].iter();
    let mut believed = believed.map(|(_, run)| reason(run));
    let of_what = "of what 2 other studies of this accelerator";
    assert!(believed.any(|why| why.contains(of_what)), "{runs:?}");
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn what_a_study_begins_from_is_told_without_names_and_replayed() {
    let service = learnt().await;
    let runs = explored(&service, gains, "prior-three", 8).await;
    let of_what = "of what 2 other studies of this accelerator";
    let believed = runs
        .iter()
        .find(|(_, run)| reason(run).contains(of_what))
        .unwrap();
    for (job, _) in [&runs[0], believed] {
        let path = format!("/v1/runs/{}", job.job.job_id);
        let replays = service.user(BOB).get(&format!("{path}/replay")).await.ok();
        assert_eq!(replays.as_array().unwrap().len(), 1);
        assert_eq!(replays[0]["same"], true, "{replays}");
        let told = service.user(BOB).get(&path).await;
        assert_eq!(
            told.ok()[0]["begun_from"],
            json!({ "studies": 2, "seen": [] }),
            "{told}"
        );
        assert!(told.text().contains("2 other studies"), "{told}");
        for name in ["prior-one", "prior-two", "71001"] {
            assert!(!told.text().contains(name), "{name}: {told}");
        }
        for uid in [ADMIN, OPERATOR] {
            let begun = &service.user(uid).get(&path).await.ok()[0]["begun_from"];
            let seen: Vec<&Value> = begun["seen"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| &one["application"])
                .collect();
            assert_eq!(seen, [&json!("prior-one"), &json!("prior-two")], "{begun}");
        }
    }
}

/// Attack (sharing): What other studies promise is the slowest here, or disputed.
/// Outcome: At most two such runs are made, and then the study's own decide; no names are told.
#[tokio::test]
async fn who_is_contrary_to_its_siblings_pays_one_run() {
    let service = learnt().await;
    let runs = explored(&service, loses, "prior-contrary", 10).await;
    assert_eq!(on_others_word(&runs), 1, "{runs:?}");
    let slow = |run: &Value| run["differs"]["romio_cb_read"] == "disable";
    assert!(slow(&runs[0].1), "{}", runs[0].1);
    assert!(
        runs.iter().filter(|(_, run)| slow(run)).count() <= 2,
        "{runs:?}"
    );
    for (job, _) in &runs {
        let told = service
            .user(BOB)
            .get(&format!("/v1/runs/{}", job.job.job_id))
            .await
            .text();
        assert!(
            !told.contains("prior-one") && !told.contains("prior-two"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_site_that_wants_no_priors_has_none() {
    let service = learnt().await;
    service
        .reload(&LEARNING.replace("[study]\n", "[study]\nprior = \"off\"\n"))
        .await;
    let runs = explored(&service, gains, "prior-four", 5).await;
    assert!(!reason(&runs[0].1).contains("other stud"), "{}", runs[0].1);
    let detail = service.run_of(runs[0].0.job.job_id).await;
    assert_eq!(detail["begun_from"], Value::Null, "{detail}");
}

#[tokio::test]
async fn a_study_begins_from_none_of_another_accelerator() {
    let service = learnt().await;
    let mut roles = Vec::new();
    for _ in 0..4 {
        let job = service.job(BOB, "app=other,accelerator=romio+page-cache");
        let run = job.runs(&service, 1.0).await;
        assert!(!reason(&run).contains("other stud"), "{run}");
        roles.push(run["role"].clone());
    }
    assert_ne!(roles[3], "baseline", "it explores");
}

#[tokio::test]
async fn a_study_begins_from_none_of_another_cluster() {
    let service = TestService::of_clusters(&["alpha", "beta"], LEARNING).await;
    for application in ["prior-one", "prior-two"] {
        learn(&service, ALICE, application).await;
    }
    let service = service.replica().await;
    let mut explored = 0;
    for _ in 0..4 {
        let mut job = service.job(BOB, "app=other");
        job.job.cluster = "beta".into();
        let run = job.runs(&service, 1.0).await;
        explored += u32::from(run["role"] != "baseline");
        assert!(!reason(&run).contains("other stud"), "{run}");
    }
    assert!(explored > 0);
    // At home they are sources.
    let runs = self::explored(&service, gains, "prior-three", 3).await;
    assert!(
        reason(&runs[0].1).starts_with("2 other studies"),
        "{}",
        runs[0].1
    );
}

#[tokio::test]
async fn what_began_from_others_is_exported_without_them() {
    let service = learnt().await;
    let runs = explored(&service, gains, "prior-three", 4).await;
    let there = TestService::with(LEARNING).await;
    let text = service.exported(BOB, "prior-three").await;
    assert!(
        !text.contains("prior-one") && text.contains("\"sources_elsewhere\":2"),
        "{text}"
    );
    there.import(&text).await.ok();
    assert_eq!(there.exported(BOB, "prior-three").await, text);
    let path = format!("/v1/runs/{}/replay", runs[0].0.job.job_id);
    let replays = there.user(BOB).get(&path).await.ok();
    assert_eq!(
        (&replays[0]["same"], &replays[0]["recomputed"]),
        (&json!(false), &Value::Null),
        "{replays}"
    );
    let note = replays[0]["note"].as_str().unwrap();
    assert!(
        note.contains("elsewhere") || note.contains("other"),
        "{note}"
    );
}
