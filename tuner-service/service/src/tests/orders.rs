//! Orders and steerings: who may give, end and undo them, what is refused, and what the next run gets.

mod audit;
mod bounded;
mod coordinators;
mod deciding;
mod ending;
mod giving;
mod races;
mod refusals;
mod scopes;
mod site_default;
mod steering;
mod time;
mod undoing;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ADMIN, ALICE, Answer, BOB, BURST_BUFFER, CLUSTER, COLLECTOR, OPERATOR, REPORT_READER, ROOT,
    TestService,
};

/// The application of a test that needs one.
const APP: &str = "ocean";

/// A service whose admins are root and [`ADMIN`].
async fn with_root() -> TestService {
    TestService::with(&format!("[access]\nadmins = [{ROOT}, {ADMIN}]\n")).await
}

/// The request that gives this order, or ends it.
fn what(kind: &str, scope: Value) -> Value {
    json!({ "kind": kind, "scope": scope, "why": "a test" })
}

/// The request that pins the studies of a scope.
fn pinning(scope: Value, values: Value) -> Value {
    with(what("pin", scope), "values", values)
}

/// A request with one more field, or with another one.
fn with(mut body: Value, field: &str, value: impl Serialize) -> Value {
    body[field] = json!(value);
    body
}

/// The scope of an application's studies.
fn of(application: &str) -> Value {
    json!({ "application": application })
}

fn why() -> Value {
    json!({ "why": "a test" })
}

async fn order(service: &TestService, uid: u32, body: Value) -> Value {
    service.user(uid).post("/v1/orders", body).await.ok()
}

async fn end(service: &TestService, uid: u32, body: Value) -> Value {
    service.user(uid).post("/v1/orders/end", body).await.ok()
}

/// The orders in force that a user sees.
async fn orders(service: &TestService, uid: u32) -> Vec<Value> {
    list(service.user(uid).get("/v1/orders").await)
}

/// The lines of the audit that a user sees, newest first.
async fn lines(service: &TestService, uid: u32, query: &str) -> Vec<Value> {
    list(service.user(uid).get(&format!("/v1/audit{query}")).await)
}

fn list(answer: Answer) -> Vec<Value> {
    answer.ok().as_array().unwrap().clone()
}

async fn steer(service: &TestService, uid: u32, study: i64, how: &str, body: Value) -> Answer {
    let path = format!("/v1/studies/{study}/{how}");
    service.user(uid).post(&path, body).await
}

async fn pin(service: &TestService, uid: u32, study: i64, values: Value) -> Value {
    let body = json!({ "values": values, "why": "a test" });
    steer(service, uid, study, "pin", body).await.ok()
}

/// Undoes a line of the audit.
async fn undo(service: &TestService, uid: u32, line: &Value) -> Answer {
    let path = format!("/v1/audit/{line}/undo");
    service.user(uid).post(&path, why()).await
}

/// The next run of an application, to its verdict, as an admin sees it.
async fn next(service: &TestService, uid: u32, application: &str) -> Value {
    let job = service.job(uid, &format!("app={application}"));
    job.runs(service, 10.0).await
}

/// A study that a user's run has begun.
async fn begun(service: &TestService, uid: u32, application: &str) -> i64 {
    next(service, uid, application).await["study_id"]
        .as_i64()
        .unwrap()
}

/// A study as a list shows it to this user.
async fn seen(service: &TestService, uid: u32, study: i64) -> Value {
    let path = format!("/v1/studies?study={study}");
    let studies = list(service.user(uid).get(&path).await);
    let [study] = studies.as_slice() else {
        panic!("one study was expected: {studies:?}");
    };
    study.clone()
}

/// The values of one field of many.
fn each<'a>(many: &'a [Value], field: &str) -> Vec<&'a Value> {
    many.iter().map(|one| &one[field]).collect()
}
