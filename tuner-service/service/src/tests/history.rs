//! What is told of runs: lists, why each got what it got, and whether the same comes out again.

mod explain;
mod lists;
mod replay;
mod untold;

use serde_json::Value;

use super::TestService;

/// What a user is told of the launches of a job.
async fn explained(service: &TestService, uid: u32, job_id: &Value) -> Vec<Value> {
    let path = format!("/v1/runs/{job_id}");
    service.user(uid).get(&path).await.read()
}

/// The replays of the launches of a job.
async fn replays(service: &TestService, uid: u32, job_id: &Value) -> Vec<Value> {
    let path = format!("/v1/runs/{job_id}/replay");
    service.user(uid).get(&path).await.read()
}
