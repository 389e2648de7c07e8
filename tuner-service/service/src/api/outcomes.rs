//! Takes the job-completion script's records from the collector.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use io_autotune_protocol::{
    ErrorBody, Outcome, OutcomesAnswer, OutcomesRequest, is_account, is_hostlist,
};
use io_autotune_store::Source;
use jiff::Timestamp;

use super::checked::Checked;
use super::runs::is_exit_code;
use super::{ApiError, Service};
use crate::retry::retried;

/// A hundred years.
const MOST_SECONDS: u64 = 100 * 366 * 86_400;

/// Stores how jobs ended. Each outcome counts once however often it is delivered.
#[utoipa::path(post, path = "/v1/outcomes", request_body = OutcomesRequest, responses(
    (status = 200, body = OutcomesAnswer, description = "They are stored durably"),
    (status = 403, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn store(
    State(service): State<Arc<Service>>,
    Checked(Json(OutcomesRequest { cluster, outcomes })): Checked<Json<OutcomesRequest>>,
) -> Result<Json<OutcomesAnswer>, ApiError> {
    if !service
        .cluster(&cluster)?
        .sources
        .names
        .contains(&Source::Jobcomp)
    {
        // A temporary refusal: the collector keeps the outcomes until the configuration is right.
        return Err(ApiError::unavailable(
            "no_jobcomp",
            "the outcomes of the job-completion script are not wanted: [slurm] sources of service.toml does not name \
             jobcomp; add it and restart io-autotuned, or stop the collector",
        ));
    }
    if outcomes.len() > OutcomesRequest::MOST {
        return Err(ApiError::bad_request(format!(
            "{} outcomes in one request: at most {} are taken",
            outcomes.len(),
            OutcomesRequest::MOST
        )));
    }
    for outcome in &outcomes {
        validate(outcome).map_err(|problem| {
            ApiError::bad_request(format!("the outcome of job {}: {problem}", outcome.job_id))
        })?;
    }
    let recorded = retried(|| {
        service
            .store
            .record_outcomes(Source::Jobcomp, &cluster, &outcomes)
    })
    .await?;
    tracing::info!(
        cluster,
        stored = recorded.stored,
        duplicates = recorded.duplicates,
        "outcomes delivered"
    );
    Ok(Json(OutcomesAnswer {
        stored: recorded.stored,
        duplicates: recorded.duplicates,
    }))
}

pub(super) fn validate(outcome: &Outcome) -> Result<(), String> {
    if outcome.job_id == 0 {
        return Err("job_id must be positive".into());
    }
    let state = &outcome.state;
    let is_word = (1..=32).contains(&state.len())
        && state.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    if !is_word {
        return Err(format!(
            "state {state:?} is not a word of 1 to 32 capital letters and _"
        ));
    }
    if crate::slurm::goes_on(state) {
        return Err(format!("state {state} is no end"));
    }
    if let Some(code) = &outcome.exit_code
        && !is_exit_code(code)
    {
        return Err(format!(
            "exit_code {code:?} is not an exit code and a signal, such as 0:0"
        ));
    }
    if outcome
        .restart_count
        .is_some_and(|count| count > i32::MAX.cast_unsigned())
    {
        return Err("restart_count must be below 2^31".into());
    }
    for (name, at) in [
        ("started_at", outcome.started_at),
        ("ended_at", outcome.ended_at),
    ] {
        if at.is_some_and(|at| at < Timestamp::UNIX_EPOCH) {
            return Err(format!("{name} is before 1970"));
        }
    }
    if let (Some(started_at), Some(ended_at)) = (outcome.started_at, outcome.ended_at)
        && ended_at < started_at
    {
        return Err(format!(
            "it ended at {ended_at}, before it started at {started_at}"
        ));
    }
    for (name, seconds) in [
        ("suspended_seconds", outcome.suspended_seconds),
        ("limit_seconds", outcome.limit_seconds),
    ] {
        if seconds.is_some_and(|seconds| seconds > MOST_SECONDS) {
            return Err(format!("{name} is above {MOST_SECONDS}"));
        }
    }
    if let Some(account) = &outcome.account
        && !is_account(account)
    {
        return Err(format!(
            "account {account:?} is not a name of 1 to 64 letters, digits and _-.+"
        ));
    }
    if let Some(node_list) = &outcome.node_list
        && !is_hostlist(node_list)
    {
        return Err("node_list is not a hostlist, such as n[1-3,7]".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            job_id: 7,
            state: "COMPLETED".into(),
            exit_code: Some("0:0".into()),
            restart_count: None,
            started_at: Some("2026-11-21T12:00:00Z".parse().unwrap()),
            ended_at: Some("2026-11-21T12:00:05Z".parse().unwrap()),
            suspended_seconds: None,
            limit_seconds: Some(60),
            account: Some("physics".into()),
            uid: Some(1000),
            node_list: Some("n[1-2]".into()),
        }
    }

    #[test]
    fn what_slurm_says_is_taken() {
        validate(&outcome()).unwrap();
        for state in ["REQUEUED", "OUT_OF_MEMORY", "A_WORD_OF_SOME_LATER_SLURM"] {
            let outcome = Outcome {
                job_id: 7,
                state: state.into(),
                ..Outcome::default()
            };
            validate(&outcome).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        type Edit = fn(&mut Outcome);
        let edits: [(&str, Edit); 12] = [
            ("job_id", |o| o.job_id = 0),
            ("not a word", |o| o.state = "completed".into()),
            ("not a word", |o| o.state = String::new()),
            ("not a word", |o| o.state = "A".repeat(33)),
            ("RUNNING is no end", |o| o.state = "RUNNING".into()),
            ("exit_code", |o| o.exit_code = Some("0:0; drop".into())),
            ("restart_count", |o| o.restart_count = Some(u32::MAX)),
            ("before it started", |o| {
                o.ended_at = Some("2026-11-21T11:00:00Z".parse().unwrap())
            }),
            ("before 1970", |o| {
                o.started_at = Some("1969-11-21T11:00:00Z".parse().unwrap())
            }),
            ("limit_seconds", |o| o.limit_seconds = Some(u64::MAX)),
            ("account", |o| o.account = Some("a b".into())),
            ("node_list", |o| o.node_list = Some("n1 n2".into())),
        ];
        for (expected, edit) in edits {
            let mut outcome = outcome();
            edit(&mut outcome);
            let problem = validate(&outcome).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
