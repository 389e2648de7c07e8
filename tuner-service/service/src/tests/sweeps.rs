//! Tests of the service's own work: retention, sharing, assessments, drift, lost runs.

mod lost;
mod removal;
mod rounds;
mod settled;
mod shared;

use std::time::Duration;

use io_autotune_engine::Parametrization;
use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

use super::{ADMIN, ALICE, BOB, CLUSTER, COLLECTOR, Log, TestJob, TestService};

/// Settings by which a study settles after a few runs.
const QUICK: &str = "[study]
baseline_runs = 2
budget = 8
exploring = 2
control_every = 2
prior = \"off\"
stop.unread_runs = 0
stop.little_io = 0.0
";

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

/// A job's one run.
async fn run(service: &TestService, job: &TestJob) -> Value {
    service.run_of(job.job.job_id).await["run"].clone()
}

/// A user's runs of an application, oldest first.
async fn history(service: &TestService, uid: u32, application: &str) -> Vec<Value> {
    let path = format!("/v1/runs?app={application}");
    let runs = service.user(uid).get(&path).await.ok();
    runs.as_array().unwrap().clone()
}

/// Runs jobs at the same time, each to its verdict in one round; `elapsed` gives the seconds of
/// each.
async fn beside(
    service: &TestService,
    request: &str,
    jobs: u32,
    mut elapsed: impl FnMut(&Parametrization, u32) -> f64,
) -> Vec<StartAnswer> {
    let jobs: Vec<TestJob> = (0..jobs).map(|_| service.job(ALICE, request)).collect();
    let mut started = Vec::new();
    for job in &jobs {
        started.push(job.start(service).await);
    }
    for ((job, answer), number) in jobs.iter().zip(&started).zip(0..) {
        let seconds = elapsed(&answer.parametrization, number);
        let report = job.reports(Some(answer), seconds);
        job.finish(service, &report).await;
        job.ends(service, "COMPLETED", seconds);
    }
    service.poll().await;
    for job in &jobs {
        service.slurm().forget(job.job.job_id);
    }
    started
}

/// Gives an order about ALICE's study.
async fn order(service: &TestService, study: i64, what: &str, body: Value) -> Value {
    let path = format!("/v1/studies/{study}/{what}");
    service.user(ALICE).post(&path, body).await.ok()
}
