//! At submission, as the user: checks the accelerator's name and previews the job.

use std::process::ExitCode;

use io_autotune_protocol::{
    Call, Client, ClientError, ConfigError, PreviewAnswer, PreviewRequest, Request,
};
use serde::de::IgnoredAny;

use crate::deadline::Deadline;
use crate::output::show;

/// Exit code of a wrong name; any other lets the job pass.
const REFUSED: u8 = 2;

pub(crate) async fn check(
    client: Result<Client, ConfigError>,
    accelerator: &str,
    deadline: Deadline,
) -> ExitCode {
    let request = Request {
        accelerator: Some(accelerator.to_owned()),
        ..Request::default()
    };
    // A malformed name must not get into a path.
    if let Err(error) = request.validate() {
        show(&error.to_string());
        return ExitCode::from(REFUSED);
    }
    match describe(client, accelerator, deadline).await {
        Ok(IgnoredAny) => ExitCode::SUCCESS,
        Err(error @ ClientError::Refused { .. }) if !error.is_transient() => {
            show(&error.to_string());
            ExitCode::from(REFUSED)
        }
        // An outage is no reason to refuse a job.
        Err(_) => ExitCode::FAILURE,
    }
}

async fn describe(
    client: Result<Client, ConfigError>,
    accelerator: &str,
    deadline: Deadline,
) -> Result<IgnoredAny, ClientError> {
    let path = format!("/v1/accelerators/{accelerator}");
    client?.call(Call::get(&path), deadline.left()).await
}

pub(crate) async fn submit(
    client: Result<Client, ConfigError>,
    request: &str,
    deadline: Deadline,
) -> ExitCode {
    let request = match request.parse() {
        Ok(request) => PreviewRequest { request },
        Err(error) => {
            show(&format!("this job is not tuned: {error}"));
            return ExitCode::SUCCESS;
        }
    };
    let answer: Result<PreviewAnswer, ClientError> = async {
        let call = Call::post("/v1/preview", &request);
        client?.call(call, deadline.left()).await
    }
    .await;
    // The plugin shows the line; only a missing line is a failure.
    match answer {
        Ok(answer) => show(&answer.line),
        Err(error @ ClientError::Refused { .. }) if !error.is_transient() => {
            show(&format!("this job is not tuned: {error}"));
        }
        Err(_) => show(
            "the tuner service gives no answer now; the job runs with defaults unless it does at the start",
        ),
    }
    ExitCode::SUCCESS
}
