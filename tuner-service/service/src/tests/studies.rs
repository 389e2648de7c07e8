//! Tests of the answers about studies and of their steering: that they agree with starts and
//! finishes.

mod lists;
mod little_io;
mod lost_default;
mod numbers;
mod objective;
mod observed;
mod phases;
mod steering;
mod warm_start;

use io_autotune_engine::Parametrization;
use io_autotune_protocol::StartAnswer;
use serde_json::{Value, json};

pub(super) use self::little_io::{COMPUTING, little, until_settled};
pub(super) use self::observed::{overridden, sets_it};
pub(super) use self::warm_start::learnt;
use super::{Answer, Course, TestService};

/// Asks for a change of a study.
pub(super) async fn steer(
    service: &TestService,
    uid: u32,
    study_id: i64,
    what: &str,
    mut body: Value,
) -> Answer {
    if body.get("why").is_none() {
        body["why"] = json!("a test asks for it");
    }
    let path = format!("/v1/studies/{study_id}/{what}");
    service.user(uid).post(&path, body).await
}

/// Undoes the change that a line of the audit records.
pub(super) async fn undo(service: &TestService, uid: u32, answer: &Value) -> Answer {
    let path = format!("/v1/audit/{}/undo", answer["line"]);
    let body = json!({ "why": "it was a mistake" });
    service.user(uid).post(&path, body).await
}

/// The runs of an application as a user sees them, the oldest first.
pub(super) async fn history(service: &TestService, uid: u32, application: &str) -> Vec<Value> {
    let path = format!("/v1/runs?app={application}");
    let runs = service.user(uid).get(&path).await.ok();
    runs.as_array().unwrap().clone()
}

/// A course of a job that is quick or slow by whether it has another parametrization than the default.
pub(super) fn by_default(
    default: &Parametrization,
    seconds: f64,
    otherwise: f64,
) -> impl FnOnce(&StartAnswer) -> Course {
    move |started: &StartAnswer| {
        let is_default = started.parametrization == *default;
        Course::completed(if is_default { seconds } else { otherwise })
    }
}

/// The texts of a study's warnings that have these words.
pub(super) fn warnings<'a>(study: &'a Value, words: &str) -> Vec<&'a str> {
    let warnings = study["warnings"].as_array().unwrap().iter();
    let texts = warnings.map(|one| one.as_str().unwrap());
    texts.filter(|text| text.contains(words)).collect()
}

/// Returns true if a run explores.
pub(super) fn explores(run: &Value) -> bool {
    run["role"] == "design" || run["role"] == "search"
}

/// The text of a field of an answer.
#[track_caller]
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
