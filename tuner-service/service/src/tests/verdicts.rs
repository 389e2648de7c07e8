//! Verdicts: nodes' reports and Slurm's outcomes come in any order, and the run has the same
//! effect.

mod ends;
mod fallback;
mod late;
mod nodes;
mod sources;

use std::time::Duration;

use io_autotune_engine::Parametrization;
use io_autotune_protocol::{FinishRequest, Outcome, OutcomesRequest, StartAnswer};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answer::Answer;
use super::{ALICE, BOB, CLUSTER, COLLECTOR, TestJob, TestService};

/// The default of service.toml.
const RELEASE: Duration = Duration::from_mins(1);
const REPORTS: Duration = Duration::from_mins(5);
const OUTCOME: Duration = Duration::from_mins(10);
const LOST: Duration = Duration::from_hours(7 * 24);

const SECOND: Duration = Duration::from_secs(1);

/// A service that only the collector informs of how jobs ended.
async fn told_by_the_collector() -> TestService {
    TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await
}

/// A job's one run after a sweep.
async fn swept(service: &TestService, job: &TestJob) -> Value {
    service.sweep().await;
    run(service, job).await
}

/// A job's one run.
async fn run(service: &TestService, job: &TestJob) -> Value {
    service.run_of(job.job.job_id).await["run"].clone()
}

/// A job's one run, after this time.
async fn after(service: &TestService, by: Duration, job: &TestJob) -> Value {
    service.advance(by).await;
    swept(service, job).await
}

/// Checks a run's state and verdict, word for word.
#[track_caller]
fn is(run: &Value, state: &str, why: &str) {
    assert_eq!(run["verdict"], why, "{run}");
    assert_eq!(run["state"], state, "{run}");
}

/// Checks that a run waits for its verdict.
#[track_caller]
fn waits(run: &Value) {
    assert_eq!(
        (&run["state"], &run["verdict"]),
        (&json!("in_flight"), &Value::Null),
        "{run}"
    );
}

/// The effect of the latest judgement of a job's run on its study, and its parametrization.
async fn effect(service: &TestService, job: &TestJob) -> (String, Option<Parametrization>) {
    let of_job = format!(
        "from judgements where run_id in (select id from runs where job_id = {}) order by ordinal desc limit 1",
        job.job.job_id
    );
    let effect = service
        .database
        .text(&format!("select effect {of_job}"))
        .await;
    let parametrization = format!("select coalesce(parametrization, 'null'::jsonb)::text {of_job}");
    let parametrization = service.database.text(&parametrization).await;
    (effect, serde_json::from_str(&parametrization).unwrap())
}

/// How often a job's runs were judged.
async fn judgements(service: &TestService, job: &TestJob) -> i64 {
    let query = format!(
        "select count(*) from judgements where run_id in (select id from runs where job_id = {})",
        job.job.job_id
    );
    service.database.number(&query).await
}

/// Returns true if the exploring place of a job's run is free again.
async fn is_released(service: &TestService, job: &TestJob) -> bool {
    let query = format!(
        "select count(*) from runs where released and job_id = {}",
        job.job.job_id
    );
    service.database.number(&query).await == 1
}

/// Has a job of two seconds run, and reports it as a test would have it.
async fn reported(
    service: &TestService,
    job: &TestJob,
    edit: impl FnOnce(&mut FinishRequest),
) -> StartAnswer {
    let started = job.start(service).await;
    let mut report = job.reports(Some(&started), 2.0);
    edit(&mut report);
    job.finish(service, &report).await;
    started
}

/// The same, and squeue says that it completed; returns its run after a sweep.
async fn completed(
    service: &TestService,
    job: &TestJob,
    edit: impl FnOnce(&mut FinishRequest),
) -> Value {
    reported(service, job, edit).await;
    job.ends(service, "COMPLETED", 2.0);
    swept(service, job).await
}

/// Pins an application's study to a value that is not the default's; a run must have been before.
async fn pinned(service: &TestService, application: &str) {
    let path = format!("/v1/studies/{}/pin", service.study_id(application).await);
    let pin = json!({ "values": { "cb_nodes": "2" }, "why": "a test asks for it" });
    service.user(ALICE).post(&path, pin).await.ok();
}

/// A job whose study is pinned, so that it is launched with another parametrization than the default.
async fn tuned(service: &TestService, application: &str) -> TestJob {
    let request = format!("app={application}");
    service.job(ALICE, &request).runs(service, 2.0).await;
    pinned(service, application).await;
    service.job(ALICE, &request)
}

/// The same job on another of its nodes.
fn on(job: &TestJob, node: &str) -> TestJob {
    let mut other = job.clone();
    other.job.node = node.to_owned();
    other
}

/// A job of `nodes` nodes.
fn wide(service: &TestService, request: &str, nodes: u32) -> TestJob {
    let mut job = service.job(ALICE, request);
    job.job.nodes = nodes;
    job
}

/// The outcome that the job-completion script writes about a job of two seconds.
fn outcome(job: &TestJob, state: &str) -> Outcome {
    Outcome {
        job_id: job.job.job_id,
        state: state.into(),
        exit_code: Some("0:0".into()),
        restart_count: Some(job.job.restart_count),
        started_at: Some(whole(job.started_at)),
        ended_at: Some(whole(job.started_at) + SignedDuration::from_secs(2)),
        suspended_seconds: None,
        limit_seconds: None,
        account: Some(job.account.clone()),
        uid: Some(job.job.uid),
        node_list: Some(job.job.node.clone()),
    }
}

/// slurmctld counts whole seconds.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

/// Delivers outcomes as the collector does.
async fn try_say(service: &TestService, outcomes: Vec<Outcome>) -> Answer {
    let cluster = CLUSTER.to_owned();
    let request = OutcomesRequest { cluster, outcomes };
    service.user(COLLECTOR).post("/v1/outcomes", request).await
}

/// The same; returns how many were new and how many known.
async fn say(service: &TestService, outcomes: Vec<Outcome>) -> (u64, u64) {
    let answer = try_say(service, outcomes).await.ok();
    let number = |name: &str| answer[name].as_u64().unwrap();
    (number("stored"), number("duplicates"))
}

/// Has squeue list a job while it runs, and forget it.
async fn listed_once(service: &TestService, job: &TestJob) {
    job.ends(service, "RUNNING", 0.0);
    service.sweep().await;
    service.slurm().forget(job.job.job_id);
}
