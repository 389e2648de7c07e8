//! In the prolog, as root: get the job's parametrization and lay out its files.

use std::path::Path;

use io_autotune_protocol::{
    Call, Client, ClientError, ConfigError, Job, Method, StartAnswer, StartRequest,
    is_deliverable_variable,
};

use crate::breaker::{Breaker, Open, since_boot};
use crate::directory::{self, DirectoryError, JobDirectory, JobEnvironment, StartRecord};
use crate::job::{self, JobError};
use crate::{Deadline, Places, say};

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("this job is not tuned: {0}")]
    Job(#[from] JobError),
    #[error("this job is not tuned: {0}")]
    Directory(#[from] DirectoryError),
}

/// The variables that the last answers told to watch: a start that has no answer watches them,
/// so that a run with the user's own settings is not taken for one of the default.
const WATCHED: &str = "watched";

pub(crate) async fn start(
    client: Result<Client, ConfigError>,
    places: &Places,
    deadline: Deadline,
) -> Result<(), StartError> {
    let node_job = job::read(|name| std::env::var(name).ok())?;
    if node_job.is_later_component {
        return Ok(());
    }
    // Every node asks, and gets the same answer: a step may run wholly on another node than the
    // batch script, and its rank 0 reads a file of its own node.
    let limit_seconds = node_job.limit_seconds;
    let request = StartRequest {
        job: node_job.job,
        request: node_job.request,
        limit_seconds,
    };
    let record = |answer: Result<StartAnswer, String>| {
        let (answer, failure) = match answer {
            Ok(answer) => (Some(answer), None),
            Err(failure) => (None, Some(failure)),
        };
        StartRecord {
            job: request.job.clone(),
            answer,
            failure,
            limit_seconds,
        }
    };
    let directory = JobDirectory::create(&places.run_dir, &request.job)?;
    let watched = places
        .run_dir
        .join(&request.job.cluster)
        .join(&request.job.node)
        .join(WATCHED);

    // First what holds if we are killed now: the steps are stamped, and nothing is set.
    let nothing = JobEnvironment {
        set: Vec::new(),
        watch: remembered(&watched),
    };
    directory.write_environment(&request.job, &nothing)?;
    directory.write_start(&record(Err(
        "the node helper did not live to see the answer".into(),
    )))?;

    let breaker = Breaker::of(&places.spool_dir);
    match ask(client, &breaker, &request, deadline).await {
        Ok(answer) => {
            remember(&watched, &answer);
            let environment = lay_out_files(&directory, &request.job, &answer)?;
            directory.write_start(&record(Ok(answer)))?;
            directory.write_environment(&request.job, &environment)?;
        }
        Err(error) => {
            say(&format!(
                "job {} runs with defaults: {error}",
                request.job.job_id
            ));
            directory.write_start(&record(Err(error.to_string())))?;
        }
    }
    Ok(())
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error(transparent)]
    NotAsked(#[from] Open),
    #[error(transparent)]
    Client(#[from] ClientError),
}

async fn ask(
    client: Result<Client, ConfigError>,
    breaker: &Breaker,
    request: &StartRequest,
    deadline: Deadline,
) -> Result<StartAnswer, NoAnswer> {
    let client = client.map_err(ClientError::from)?;
    let call = Call {
        method: Method::Post,
        path: "/v1/runs/start",
        body: Some(request),
        idempotent: true,
    };
    let asked = since_boot();
    breaker.admit(asked)?;
    let answer = client.call(call, deadline.left()).await;
    breaker.learn(asked, &answer);
    Ok(answer?)
}

/// Writes the answer's files, and returns the environment that names them. The caller writes that
/// last: a reader never sees half of an answer.
fn lay_out_files(
    directory: &JobDirectory,
    job: &Job,
    answer: &StartAnswer,
) -> Result<JobEnvironment, DirectoryError> {
    let mut environment = JobEnvironment {
        set: Vec::new(),
        watch: answer.delivery.watch.clone(),
    };
    for file in &answer.delivery.files {
        if !is_plain(&file.name) || !is_deliverable_variable(&file.variable) {
            say(&format!(
                "the answer names a file {:?} as {:?}; it is ignored",
                file.name, file.variable
            ));
            continue;
        }
        directory.write_for_job(&file.name, job.gid, &file.content)?;
        let path = directory.file(&file.name).display().to_string();
        environment.set.push((file.variable.clone(), path));
    }
    environment
        .watch
        .retain(|name| is_deliverable_variable(name));
    Ok(environment)
}

/// One component, and none of our own file names.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && !name.starts_with('.')
        && !name.starts_with("step-")
        && !["job.env", "start.json"].contains(&name)
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn remembered(path: &Path) -> Vec<String> {
    let text = directory::read_limited(path).unwrap_or_default();
    text.lines()
        .filter(|name| is_deliverable_variable(name))
        .map(str::to_owned)
        .collect()
}

fn remember(path: &Path, answer: &StartAnswer) {
    let mut names = remembered(path);
    let known = names.len();
    for name in &answer.delivery.watch {
        if is_deliverable_variable(name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.len() > known
        && let Err(error) =
            directory::replace(path, (names.join("\n") + "\n").as_bytes(), 0o400, None)
    {
        say(&format!(
            "the variables to watch cannot be remembered: {error}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_cannot_name_a_file_elsewhere_or_one_of_ours() {
        for name in ["romio_hints", "a.b-c"] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "",
            "..",
            "../x",
            "a/b",
            ".hidden",
            "job.env",
            "start.json",
            "step-1.stamp",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
