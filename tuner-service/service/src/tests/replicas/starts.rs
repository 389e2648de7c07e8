//! A start is decided once, whichever replica is asked, however often, and even if a client or a
//! service dies in between.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::http::StatusCode;
use io_autotune_engine::Role;
use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;

/// Runs of a study that explore at the same time.
const EXPLORING: usize = 2;
const FEW: &str = "[study]\nexploring = 2\n[database]\nconnections = 24\n";

fn explores(answer: &StartAnswer) -> bool {
    matches!(answer.role, Role::Design | Role::Search)
}

/// The decision on a job, which asks again while it is told that every connection is busy: a pool
/// waits for less than a second, which is short on a loaded machine, and these tests are about what
/// is decided.
async fn decided(job: &TestJob, service: &TestService) -> StartAnswer {
    loop {
        let answer = job.try_start(service).await;
        if answer.status != StatusCode::SERVICE_UNAVAILABLE {
            return answer.read();
        }
        answer.refused(503, "busy");
    }
}

/// The answers to jobs that all ask at once, each of these services in turn.
async fn storm(services: &[Arc<TestService>], jobs: &[TestJob]) -> BTreeMap<u32, StartAnswer> {
    let mut asking = JoinSet::new();
    for (job, service) in jobs.iter().zip(services.iter().cycle()) {
        let (job, service) = (job.clone(), Arc::clone(service));
        asking.spawn(async move { (job.job.job_id, decided(&job, &service).await) });
    }
    asking.join_all().await.into_iter().collect()
}

async fn stormed(services: &[Arc<TestService>]) {
    let (service, starts) = (&services[0], 100);
    for number in 1..=2 {
        let run = service.job(ALICE, "app=ocean").runs(service, 10.0).await;
        assert_eq!(run["role"], "baseline", "run {number} of two");
    }
    let jobs: Vec<TestJob> = (0..starts)
        .map(|_| service.job(ALICE, "app=ocean"))
        .collect();
    let answers = storm(services, &jobs).await;
    assert_eq!(answers.len(), starts, "each is answered");
    let exploring: Vec<_> = answers.values().filter(|one| explores(one)).collect();
    assert!(exploring.len() <= EXPLORING, "{exploring:?}");
    let explored: std::collections::BTreeSet<_> = exploring
        .iter()
        .map(|one| one.parametrization.key())
        .collect();
    assert_eq!(
        explored.len(),
        exploring.len(),
        "an experiment twice at once"
    );
    let database = &service.database;
    let runs =
        "select count(*) * 1000 + count(distinct job_id) from runs where state = 'in_flight'";
    assert_eq!(
        database.number(runs).await,
        100_100,
        "a job has no run, or two"
    );
    // The answers are the stored ones.
    for answer in answers.values() {
        let role = format!("select role from runs where id = {}", answer.run_id);
        let role = database.text(&role).await;
        assert_eq!(json!(answer.role), role, "{answer:?}");
    }
    // Each service gives the same answer again.
    let turned: Vec<_> = services.iter().rev().cloned().collect();
    let again = storm(&turned, &jobs).await;
    let told = |answers: &BTreeMap<u32, StartAnswer>| -> Vec<_> {
        let answers = answers.iter();
        let told =
            answers.map(|(job, one)| (*job, one.run_id, one.role, one.parametrization.key()));
        told.collect()
    };
    assert_eq!(told(&again), told(&answers));
    assert_eq!(database.number(runs).await, 100_100);
    database.all_become_idle().await;
}

#[tokio::test]
async fn many_starts_at_once_are_each_answered_and_few_explore() {
    stormed(&[Arc::new(TestService::with(FEW).await)]).await;
}

#[tokio::test]
async fn many_starts_at_once_of_two_replicas_are_decided_once() {
    let service = TestService::with(FEW).await;
    let other = service.replica().await;
    stormed(&[Arc::new(service), Arc::new(other)]).await;
}

#[tokio::test]
async fn a_launch_whose_nodes_ask_two_replicas_is_one_run() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let mut first = service.job(ALICE, "app=ocean");
    first.job.nodes = 2;
    let mut second = first.clone();
    second.job.node = "n2".into();
    let (one, two) = tokio::join!(first.try_start(&service), second.try_start(&other));
    let (one, two): (StartAnswer, StartAnswer) = (one.read(), two.read());
    assert_eq!(one.run_id, two.run_id);
    assert_eq!(one.parametrization, two.parametrization);
    assert_eq!(one.delivery, two.delivery);
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        1
    );
}

/// Polls a future at most `polls` times, then drops it, as if the client had gone or the service
/// had died.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Makes one call again and again, and drops it after one poll, after two, and so on until it is
/// done within that number; in several rounds, as a database that answers early leaves the call
/// nothing to wait for. `call` gets the number of polls.
async fn dropped_everywhere(mut call: impl AsyncFnMut(usize) -> bool) {
    let (mut polls, mut dropped) = (1, 0);
    for _ in 0..30 {
        let is_done = call(polls).await;
        polls = if is_done { 1 } else { polls + 1 };
        dropped += u32::from(!is_done);
    }
    assert!(dropped >= 5, "only {dropped} calls were dropped");
}

/// A service dies between any two of its steps, also after it has decided and before it has
/// answered: the other one gives the stored answer, or decides.
#[tokio::test]
async fn the_other_service_gives_the_answer_of_one_that_is_killed() {
    let service = TestService::new().await;
    let other = service.replica().await;
    dropped_everywhere(async |polls| {
        let job = service.job(ALICE, "app=ocean");
        let done = dropped_after(polls, job.try_start(&service)).await;
        let id = job.job.job_id;
        let run = format!("select coalesce(max(id), 0) from runs where job_id = {id}");
        let kept = service.database.number(&run).await;
        let answer = job.start(&other).await;
        assert!([0, answer.run_id].contains(&kept), "after {polls} polls");
        assert_eq!(service.database.number(&run).await, answer.run_id);
        let told = done.as_ref().map(Answer::read::<StartAnswer>);
        assert!(told.is_none_or(|told| told.run_id == answer.run_id));
        done.is_some()
    })
    .await;
    let twice = "select count(*) - count(distinct job_id) from runs";
    assert_eq!(service.database.number(twice).await, 0);
    // An answer that was lost on its way is given again.
    let job = service.job(ALICE, "app=ocean");
    let lost: StartAnswer = job.start(&service).await;
    assert_eq!(job.start(&other).await.run_id, lost.run_id);
    // Its pool is whole: it takes more requests at once than it has connections.
    let service = Arc::new(service);
    let jobs: Vec<_> = (0..16).map(|_| service.job(ALICE, "app=ocean")).collect();
    let services = [Arc::clone(&service)];
    assert_eq!(storm(&services, &jobs).await.len(), 16);
    service.database.all_become_idle().await;
}

/// The node's report, too, is stored once: the spool sends it again, to another replica.
#[tokio::test]
async fn a_report_whose_service_is_killed_is_stored_once() {
    let service = TestService::new().await;
    let other = service.replica().await;
    dropped_everywhere(async |polls| {
        let job = service.job(ALICE, "app=ocean");
        let started = job.start(&service).await;
        let report = job.reports(Some(&started), 5.0);
        let send = service.node().post("/v1/runs/finish", &report);
        let done = dropped_after(polls, send).await;
        let again = job.finish(&other, &report).await;
        assert_eq!(again.run_id, started.run_id);
        assert!(done.is_none() || again.duplicate);
        let id = started.run_id;
        let reports = format!("select count(*) from reports where run_id = {id}");
        assert_eq!(
            service.database.number(&reports).await,
            1,
            "after {polls} polls"
        );
        done.is_some()
    })
    .await;
}

/// Slurm has used up its job ids and begun anew, or was set up anew.
#[tokio::test]
async fn a_job_id_that_comes_back_is_another_job() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let pin = async |value: &str| {
        let path = format!("/v1/studies/{}/pin", service.study_id("ocean").await);
        let body = json!({"values": {"cb_nodes": value}, "why": "a test"});
        service.user(ALICE).post(&path, body).await.ok();
    };
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    pin("2").await;
    let first = service.job(ALICE, "app=ocean");
    let before = first.runs(&service, 10.0).await;
    service.advance(Duration::from_hours(24)).await;
    service.slurm().forget(first.job.job_id);
    pin("4").await;
    let mut again = service.job(ALICE, "app=ocean");
    again.job.job_id = first.job.job_id;
    let started = again.completes(&other, 10.0).await;
    other.poll().await;
    let path = format!("/v1/runs/{}", first.job.job_id);
    let found = service.user(ALICE).get(&path).await.ok();
    let runs: Vec<&Value> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["run"])
        .collect();
    assert_eq!(runs.len(), 2, "{found}");
    assert!(runs.iter().all(|run| run["state"] == "counted"), "{found}");
    assert_eq!(runs[0]["run_id"], before["run_id"]);
    assert_eq!(runs[1]["run_id"], started.run_id);
    assert_ne!(runs[0]["run_id"], runs[1]["run_id"]);
    let nodes = runs.iter().map(|run| &run["parametrization"]["cb_nodes"]);
    assert_eq!(Vec::from_iter(nodes), [&json!(2), &json!(4)]);
    assert_eq!(json!(started.parametrization)["cb_nodes"], 4);
}

/// A report of the earlier job that only comes now, from a spool, belongs to the earlier run.
#[tokio::test]
async fn a_late_report_of_a_job_id_that_came_back_finds_its_own_run() {
    let service = TestService::new().await;
    let first = service.job(ALICE, "app=ocean");
    let started = first.start(&service).await;
    first.ends(&service, "COMPLETED", 10.0);
    service.advance(Duration::from_hours(24)).await;
    service.sweep().await;
    let mut again = service.job(BOB, "app=ice");
    again.job.job_id = first.job.job_id;
    let other = again.start(&service).await;
    assert_ne!(other.run_id, started.run_id);
    let report = first.reports(Some(&started), 10.0);
    assert_eq!(first.finish(&service, &report).await.run_id, started.run_id);
    let report = again.reports(Some(&other), 20.0);
    let told = again.finish(&service, &report).await;
    assert_eq!((told.run_id, told.duplicate), (other.run_id, false));
}

/// Slurm's id of the launch distinguishes two jobs of one id at once; requests with one id of a
/// launch are one run.
#[tokio::test]
async fn launches_of_one_job_id_are_told_apart_by_what_slurm_calls_them() {
    let service = TestService::new().await;
    let other = service.replica().await;
    let mut first = service.job(ALICE, "app=ocean");
    first.job.sluid = Some("s5TFPJ0K1Q0000".parse().unwrap());
    let mut second = first.clone();
    second.job.sluid = Some("s5TFPJ0K1Q0001".parse().unwrap());
    let one = first.start(&service).await.run_id;
    assert_eq!(first.start(&other).await.run_id, one);
    let two = second.start(&other).await.run_id;
    assert_ne!(one, two);
    assert_eq!(second.start(&service).await.run_id, two);
    assert_eq!(first.start(&other).await.run_id, one);
}

/// A steering by one replica is in force at the next start of the other's.
#[tokio::test]
async fn what_one_replica_steers_holds_at_the_others_next_start() {
    let service = TestService::new().await;
    let other = service.replica().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let why = |more: Value| {
        let mut body = json!({"why": "a test"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let start = async |on: &TestService| service.job(ALICE, "app=ocean").start(on).await;
    start(&other).await;
    let pin = why(json!({"values": {"cb_nodes": "4"}}));
    let path = format!("/v1/studies/{study}/pin");
    service.user(ALICE).post(&path, pin).await.ok();
    let pinned = start(&other).await;
    assert_eq!(pinned.role, Role::Pinned);
    assert_eq!(json!(pinned.parametrization)["cb_nodes"], 4);
    let path = format!("/v1/studies/{study}/unpin");
    other.user(ALICE).post(&path, why(json!({}))).await.ok();
    assert_ne!(start(&service).await.role, Role::Pinned);
    let off = why(json!({"kind": "off"}));
    service.user(ALICE).post("/v1/orders", &off).await.ok();
    let given = start(&other).await;
    assert_eq!(given.parametrization, service.default_of("romio"));
    assert!(given.delivery.is_empty(), "off: nothing is given");
}

/// Both get the same outcomes from Slurm, and both judge: the run counts once.
#[tokio::test]
async fn replicas_that_sweep_at_once_judge_a_run_once() {
    let service = TestService::new().await;
    let other = service.replica().await;
    for _ in 0..8 {
        service
            .job(ALICE, "app=ocean")
            .completes(&service, 10.0)
            .await;
    }
    tokio::join!(service.sweep(), other.sweep());
    tokio::join!(service.sweep(), other.sweep());
    let judged = "select count(*) * 1000 + count(distinct run_id) from judgements";
    assert_eq!(service.database.number(judged).await, 8008);
    let study = other.study("ocean").await;
    assert_eq!(
        (&study["counted"], &study["in_flight"]),
        (&json!(8), &json!(0))
    );
    // The doctor adds up all judgements.
    let doctor = service.user(OPERATOR).get("/v1/doctor").await.ok();
    let checks = doctor["checks"].as_array().unwrap().iter();
    let mut caches = checks.filter(|check| check["name"] == "caches");
    assert_eq!(caches.next_back().unwrap()["state"], "ok");
}
