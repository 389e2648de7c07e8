//! Tests of lists of runs, of the reasons for decisions, and of their replays.

mod explain;
mod lists;
mod replay;
mod untold;

use serde_json::Value;

use super::TestService;

/// The launches of a job as a user is answered.
async fn explained(service: &TestService, uid: u32, job_id: &Value) -> Vec<Value> {
    let path = format!("/v1/runs/{job_id}");
    service.user(uid).get(&path).await.read()
}

/// The replays of the launches of a job.
async fn replays(service: &TestService, uid: u32, job_id: &Value) -> Vec<Value> {
    let path = format!("/v1/runs/{job_id}/replay");
    service.user(uid).get(&path).await.read()
}
