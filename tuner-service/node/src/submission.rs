//! At submission, as the user: checks the accelerator's name and previews the job.

use std::io::{self, Read};
use std::process::ExitCode;

use io_autotune_protocol::{
    Call, Client, ClientError, ConfigError, PreviewAnswer, PreviewRequest, Request,
};
use serde::de::IgnoredAny;

use crate::deadline::Deadline;
use crate::output::show;

/// The exit code for a wrong name. With any other the plugin lets the job pass.
const REFUSED: u8 = 2;

/// The most bytes of a user's request that are read: more than the plugin sends.
const INPUT_MOST: u64 = 64 * 1024;

/// The user's request: an argument, as plugins up to 0.3.0 pass it, or standard input.
pub(crate) fn given(argument: Option<&str>) -> io::Result<String> {
    match argument {
        Some(argument) => Ok(argument.to_owned()),
        None => {
            let mut text = String::new();
            io::stdin().take(INPUT_MOST).read_to_string(&mut text)?;
            Ok(text.trim_end_matches('\n').to_owned())
        }
    }
}

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
        return refused(&error);
    }
    match describe(client, accelerator, deadline).await {
        Ok(IgnoredAny) => ExitCode::SUCCESS,
        Err(error @ ClientError::Refused { .. }) if !error.is_transient() => refused(&error),
        // An outage is no reason to refuse a job.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints why a job cannot be submitted. The plugin refuses the job even if the reason is lost.
fn refused(why: &dyn std::error::Error) -> ExitCode {
    show(&why.to_string(), ExitCode::SUCCESS);
    ExitCode::from(REFUSED)
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
            return show(
                &format!("this job is not tuned: {error}"),
                ExitCode::SUCCESS,
            );
        }
    };
    let answer: Result<PreviewAnswer, ClientError> = async {
        let call = Call::post("/v1/preview", &request);
        client?.call(call, deadline.left()).await
    }
    .await;
    // The plugin shows the line; only a missing line is a failure.
    let line = match answer {
        Ok(answer) => answer.line,
        Err(error @ ClientError::Refused { .. }) if !error.is_transient() => {
            format!("this job is not tuned: {error}")
        }
        Err(_) => "the tuner service gives no answer now; the job runs with defaults unless it does at the start"
            .to_owned(),
    };
    show(&line, ExitCode::SUCCESS)
}
