//! The prolog, as root: gets the job's parametrization and writes its files.

use std::path::Path;
use std::time::Duration;

use io_autotune_protocol::{
    Call, Client, ClientError, Delivery, Job, MARKS_VARIABLE, Prepared, StartAnswer, StartRequest,
    is_deliverable_variable,
};
use jiff::Timestamp;

use crate::agent::journal;
use crate::breaker::{Breaker, Open, since_boot};
use crate::config::{NodeConfig, NodeConfigError};
use crate::deadline::Deadline;
use crate::default_runs::Served;
use crate::directory::{self, JobDirectory, JobEnvironment, StartRecord};
use crate::files::{DirectoryError, is_one_line, read_own, replace};
use crate::job::{self, JobError};
use crate::output::say;
use crate::output_line::{Given, told};
use crate::places::Places;
use crate::route::Route;
use crate::service_arguments::ServiceArguments;
use crate::settings::{self, Asker, Outcome};
use crate::{in_force, restore, state, user_files};

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("this job is not tuned: {0}")]
    Job(#[from] JobError),
    #[error("this job is not tuned: {0}")]
    Directory(#[from] DirectoryError),
}

/// The file with the variables that earlier answers named to watch. A start without an answer
/// watches them, so that a run with the user's own settings does not count as a run of the default.
const WATCHED: &str = "watched";

pub(crate) async fn start(
    service: &ServiceArguments,
    places: &Places,
    in_job: bool,
    deadline: Deadline,
) -> Result<(), StartError> {
    let config = service.node_config();
    // A killed helper may have left an earlier job's settings in force.
    restore::put_back(&config, places);
    let node_job = job::read(|name| std::env::var(name).ok())?;
    if node_job.is_later_component {
        return Ok(());
    }
    // Every node asks and gets the same answer, because a step may run on other nodes than the
    // batch script's, and its rank 0 reads a file of its own node.
    let limit_seconds = node_job.limit_seconds;
    // A job that asked is told once, on the node where it begins.
    let asked = node_job.request.tell && node_job.is_first_node;
    let request = StartRequest {
        job: node_job.job,
        request: node_job.request,
        limit_seconds,
        started_at: node_job.started_at,
        node_state: Some(state::of(places, Timestamp::now())),
    };
    // The request is signed while files are written.
    let client = service.node_client().map_err(ClientError::from);
    let client = client.and_then(|client| {
        let prepared = client.prepare(&Call::post("/v1/runs/start", &request))?;
        Ok((prepared, client))
    });
    // Tells launches with the same job id apart; nothing is measured with it.
    let prolog_at = Timestamp::now();
    keep_what_an_earlier_launch_left(places, &request.job);
    let directory = JobDirectory::create(&places.run_dir, &request.job)?;
    let watched = places
        .run_dir
        .join(&request.job.cluster)
        .join(&request.job.node)
        .join(WATCHED);
    let watch = remembered(&watched);
    let moved_on_lustre = config.as_ref().ok().and_then(settings::moved_on_lustre);
    let accelerator = request.request.accelerator.as_deref();
    let served = config
        .as_ref()
        .ok()
        .and_then(|config| Served::of(config, accelerator));
    let unwatched = watch.is_empty();
    let record = |answer: Result<StartAnswer, String>, settings, is_complete| {
        let (answer, failure) = match answer {
            Ok(answer) => (Some(answer), None),
            Err(failure) => (None, Some(failure)),
        };
        StartRecord {
            job: request.job.clone(),
            request: request.request.clone(),
            prolog_at: Some(prolog_at),
            answer,
            failure,
            unwatched,
            limit_seconds,
            settings,
            in_job,
            moved_on_lustre,
            is_complete,
        }
    };

    let written = user_files::make(&places.spool_dir, &request.job)
        .inspect_err(|error| {
            say(&format!(
                "nothing that the job writes will be read: {error}"
            ))
        })
        .ok();
    let named = |variable: &str, path: &Path| (variable.to_owned(), path.display().to_string());
    let marks = written
        .as_ref()
        .map(|written| named(MARKS_VARIABLE, &written.marks));
    // Written first, in case this process is killed: then steps are stamped and nothing is
    // delivered.
    let mut nothing = JobEnvironment {
        watch,
        set: marks.iter().cloned().collect(),
        ..JobEnvironment::default()
    };
    let otherwise = served.map_or_else(Vec::new, |served| served.otherwise());
    let mut killed = nothing.clone();
    killed.set.extend(otherwise.clone());
    directory.write_environment(&request.job, &killed)?;
    let why = "the node helper did not live to see the answer";
    let not_started = served.map(|_| Outcome::NotApplied { why: why.into() });
    directory.write_start(&record(Err(why.into()), not_started, false))?;

    let left = deadline.left();
    let for_answer = served.map_or(left, |served| served.for_answer(left));
    let answer = ask(client, &places.run_dir, for_answer).await;
    let journal = directory.file(journal::FILE);
    let paths = (places.spool_dir.as_path(), journal.as_path());
    let apply = |delivery: &Delivery| {
        let served = served.map(|served| served.delivery(delivery));
        let delivery = served.as_ref().unwrap_or(delivery);
        let asker = Asker {
            job: &request.job,
            dir: request.request.dir.as_deref(),
            is_first_node: node_job.is_first_node,
        };
        apply_settings(delivery, &asker, &config, paths, deadline)
    };
    // What the job has of a command: what it prints, or what stands for it where it does not run.
    let provided = |settings: &Option<Outcome>| match settings {
        Some(Outcome::InForce { provided, .. }) => provided.clone().into_iter().collect(),
        Some(Outcome::NotApplied { .. }) => otherwise.clone(),
        None => Vec::new(),
    };
    match answer {
        Ok(answer) => {
            remember(&watched, &answer);
            let settings = apply(&answer.delivery);
            let refused = matches!(settings, Some(Outcome::NotApplied { .. }));
            let mut environment = if refused {
                // Either all of a parametrization is applied or nothing.
                nothing_set(&answer)
            } else {
                lay_out_files(&directory, &request.job, &answer)?
            };
            environment.set.extend(provided(&settings));
            environment.set.extend(marks);
            if let Some(written) = &written
                && !refused
                && !answer.delivery.read_back.is_empty()
            {
                let values = named(in_force::VARIABLE, &written.values);
                environment.set.push(values);
            }
            let given = match refused {
                true => Given::Refused,
                false => Given::Answer(&answer),
            };
            environment.tell = asked.then(|| told(request.job.job_id, &given));
            directory.write_start(&record(Ok(answer), settings, true))?;
            directory.write_environment(&request.job, &environment)?;
        }
        Err(error) => {
            say(&format!(
                "job {} runs with defaults: {error}",
                request.job.job_id
            ));
            let settings = apply(&Delivery::default());
            nothing.set.extend(provided(&settings));
            directory.write_start(&record(Err(error.to_string()), settings, true))?;
            nothing.tell = asked.then(|| told(request.job.job_id, &Given::NoAnswer));
            directory.write_environment(&request.job, &nothing)?;
        }
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error(transparent)]
    NotAsked(#[from] Open),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Keeps the files that an unreported earlier launch of the job has written: its place is this
/// launch's from now on, and its directory is set aside until the timer reports it.
fn keep_what_an_earlier_launch_left(places: &Places, job: &Job) {
    let place = user_files::find_place(&places.spool_dir, job);
    if let (Some(place), Ok(Some(earlier))) = (place, JobDirectory::open(&places.run_dir, job))
        && let Err(error) = earlier.keep_left(&user_files::read(Some(&place), job))
    {
        say(&format!(
            "{error}: what an earlier launch of job {} wrote is lost",
            job.job_id
        ));
    }
}

fn apply_settings(
    delivery: &Delivery,
    asker: &Asker<'_>,
    config: &Result<NodeConfig, NodeConfigError>,
    places: (&Path, &Path),
    deadline: Deadline,
) -> Option<Outcome> {
    if !settings::is_privileged(delivery) {
        return None;
    }
    let left = deadline.left();
    let outcome = if left.is_zero() {
        Outcome::NotApplied {
            why: "there was no time left for settings and commands".into(),
        }
    } else {
        let config = config.as_ref().map_err(ToString::to_string);
        settings::apply(delivery, asker, config, places, left)
    };
    if let Outcome::NotApplied { why } = &outcome {
        let job_id = asker.job.job_id;
        say(&format!("job {job_id} runs with defaults: {why}"));
    }
    Some(outcome)
}

fn nothing_set(answer: &StartAnswer) -> JobEnvironment {
    let watch = answer.delivery.watch.iter();
    JobEnvironment {
        watch: watch
            .filter(|name| is_deliverable_variable(name))
            .cloned()
            .collect(),
        ..JobEnvironment::default()
    }
}

async fn ask(
    client: Result<(Prepared, Client), ClientError>,
    run_dir: &Path,
    most: Duration,
) -> Result<StartAnswer, NoAnswer> {
    let (prepared, client) = client?;
    let (breaker, route) = (Breaker::of(run_dir), Route::of(run_dir));
    let asked = since_boot();
    breaker.admit(asked)?;
    route.recall(&client);
    let answer = client.send(prepared, most).await;
    route.keep(&client);
    breaker.learn(asked, &answer);
    Ok(answer?)
}

/// Writes the files of the answer. Returns the environment that names them, which is written last.
fn lay_out_files(
    directory: &JobDirectory,
    job: &Job,
    answer: &StartAnswer,
) -> Result<JobEnvironment, DirectoryError> {
    let mut environment = nothing_set(answer);
    for variable in &answer.delivery.environment {
        if !is_deliverable_variable(&variable.name) || !is_one_line(&variable.value) {
            say(&format!(
                "the answer sets {:?} to {:?}; it is ignored",
                variable.name, variable.value
            ));
            continue;
        }
        let pair = (variable.name.clone(), variable.value.clone());
        environment.set.push(pair);
    }
    for file in &answer.delivery.files {
        if !is_plain(&file.name) || !is_deliverable_variable(&file.variable) {
            say(&format!(
                "the answer names a file {:?} as {:?}; it is ignored",
                file.name, file.variable
            ));
            continue;
        }
        let instead = file.unless_exists.as_deref().map(Path::new);
        if instead.is_some_and(|path| path.symlink_metadata().is_ok()) {
            continue;
        }
        directory.write_for_job(&file.name, job.gid, &file.content)?;
        let path = directory.file(&file.name).display().to_string();
        environment.set.push((file.variable.clone(), path));
    }
    Ok(environment)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && !name.starts_with('.')
        && !name.starts_with("step-")
        && !directory::OURS.contains(&name)
        && name != journal::FILE
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn remembered(path: &Path) -> Vec<String> {
    let text = read_own(path).unwrap_or_default();
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
        && let Err(error) = replace(path, (names.join("\n") + "\n").as_bytes(), 0o400, None)
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
    fn a_value_that_would_be_another_line_is_not_set() {
        assert!(is_one_line("8 -x=y"));
        for value in ["8\nset PATH=/tmp", "\t", "\u{e4}", &"x".repeat(4000)] {
            assert!(!is_one_line(value), "{value:?}");
        }
    }

    /// The answer of a service that is wrong, but signs correctly: whatever it contains, files are
    /// written only in the job's directory, and the plugin gets lines that it accepts.
    ///
    /// Attack (service): The service is wrong, and signs its answer.
    /// Outcome: Files are written in the job's directory alone, and no loader's or Slurm's variable
    /// is set.
    ///
    /// Attack (parsers): The service's answer to a start.
    /// Outcome: It is laid out in the job's directory alone, or refused.
    #[test]
    fn fuzz_answer() {
        let sample = r#"{"run_id": 17, "phase": "design", "role": "design", "parametrization": {"cb_nodes": 2,
            "romio_ds_write": "disable"}, "reason": "design point 3 of 15", "delivery": {"environment":
            [{"name": "OMPI_MCA_x", "value": "8"}], "files": [{"name": "romio_hints", "variable": "ROMIO_HINTS",
            "content": "cb_nodes 2\n"}], "settings": [{"kind": "sysctl", "name": "vm.dirty_bytes", "value": "1048576"}],
            "command": {"name": "vfs", "environment": [], "provides": ["X"]}, "watch": ["ROMIO_HINTS"]}}"#;
        let parent = tempfile::tempdir().unwrap();
        let run_dir = parent.path().join("run");
        let job = crate::testing::job();
        let directory = JobDirectory::create(&run_dir, &job).unwrap();
        io_autotune_fuzzing::Target::new("answer", &[sample])
            .rounds(4000)
            .run(|input| {
                let answer = match serde_json::from_slice::<StartAnswer>(input) {
                    Ok(answer) => answer,
                    Err(error) => return assert!(error.to_string().contains("line")),
                };
                let Ok(environment) = lay_out_files(&directory, &job, &answer) else {
                    return;
                };
                directory.write_environment(&job, &environment).unwrap();
                let text = read_own(&directory.file("job.env")).unwrap();
                for (place, line) in text.lines().enumerate() {
                    let (key, rest) = line.split_once(' ').unwrap();
                    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
                    let known = ["io-autotune", "job", "uid"].get(place) == Some(&key)
                        || place > 2
                            && ["set", "watch"].contains(&key)
                            && is_deliverable_variable(name);
                    assert!(
                        known && line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                        "{line:?}"
                    );
                }
                let written: Vec<_> = std::fs::read_dir(parent.path()).unwrap().collect();
                assert_eq!(written.len(), 1, "something was written elsewhere");
            });
    }

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
            "put-back.json",
            "report.json",
            "left.marks",
            "online.journal",
            "step-1.stamp",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
