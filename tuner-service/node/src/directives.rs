//! On slurmctld's host, as SlurmUser, before a job's prologs: completes the directives of the job's
//! burst buffer, for the site's `burst_buffer.lua`.
//!
//! The job's script and environment belong to its user: they are read as bytes, up to a limit, and
//! nothing of them is run or becomes a part of a path. Slurm's data about the job come from squeue,
//! with columns that contain no text of a user.

mod job;
mod lines;
mod slurmctld_files;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use io_autotune_protocol::{
    Call, Client, ClientError, CompletedDirectives, DirectivesAnswer, DirectivesRequest, Job,
    Request, StartAnswer, StartRequest, is_directive_name, is_directive_value,
};

use self::job::{JobError, Listed};
use self::lines::Lines;
use self::slurmctld_files::{Kept, MOST_BYTES};
use crate::deadline::Deadline;
use crate::output::{say, show};
use crate::service_arguments::ServiceArguments;

#[derive(Subcommand)]
pub(crate) enum Directives {
    /// Print the directives of a job's script, completed where a run gets a parametrization.
    Complete(Complete),
    /// Say that the job's buffer was set up with what `complete` had printed.
    Delivered(Delivered),
}

#[derive(Args)]
pub(crate) struct Complete {
    #[command(flatten)]
    service: ServiceArguments,
    /// Slurm's job id.
    #[arg(long)]
    job_id: u32,
    /// The job's script, where slurmctld keeps it, or where a task's of an array would be.
    #[arg(long)]
    script: PathBuf,
    /// The word of the directives, such as BB for `#BB`.
    #[arg(long)]
    directive: String,
    /// Complete only directives whose first word is this one.
    #[arg(long)]
    command: Option<String>,
    /// The program that knows the job.
    #[arg(long, default_value = "squeue")]
    squeue: PathBuf,
}

#[derive(Args)]
pub(crate) struct Delivered {
    #[command(flatten)]
    service: ServiceArguments,
    /// The run, as `complete` has printed it after `run`.
    #[arg(long)]
    run: String,
    /// A name that the user had written.
    #[arg(long)]
    kept: Vec<String>,
}

impl Directives {
    pub(crate) fn service(&self) -> &ServiceArguments {
        match self {
            Self::Complete(Complete { service, .. })
            | Self::Delivered(Delivered { service, .. }) => service,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum DirectivesError {
    #[error("{0}")]
    Job(#[from] JobError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{path:?} cannot be read: {error}")]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{0:?} is larger than {MOST_BYTES} bytes")]
    TooLarge(PathBuf),
    #[error("its request: {0}")]
    Request(#[from] io_autotune_protocol::RequestError),
    #[error("the answer has a directive {0:?} that is no word")]
    Answer(String),
    #[error("{0:?} is nothing that `directives complete` prints after `run`")]
    Run(String),
}

pub(crate) async fn run(directives: &Directives, deadline: Deadline) -> ExitCode {
    match directives {
        Directives::Complete(arguments) => complete(arguments, deadline).await,
        Directives::Delivered(arguments) => match deliver(arguments, deadline).await {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!(
                    "the run counts for nothing, because the service does not know of its directives: {error}"
                ));
                ExitCode::FAILURE
            }
        },
    }
}

async fn complete(arguments: &Complete, deadline: Deadline) -> ExitCode {
    let (kept, wanted) = look_up(&arguments.script, || {
        job::ask(&arguments.squeue, arguments.job_id, deadline.left())
    });
    let script = match (kept.script(), &wanted) {
        (Ok(script), _) => script,
        // The error of the other lookup says more.
        (Err(_), Err(error)) => return failed(arguments.job_id, error),
        (Err(error), Ok(_)) => return failed(arguments.job_id, &error),
    };
    let lines = Lines::of(&script, &arguments.directive, arguments.command.as_deref());
    let answer = match wanted {
        Ok(None) => Ok(None),
        Ok(Some(wanted)) => ask(arguments, wanted, deadline).await.map(Some),
        Err(error) => Err(error),
    };
    let completed = answer.map(|asked| asked.map(|asked| (asked.complete(&lines), asked)));
    match completed {
        Ok(Some((Ok(completion), asked))) => {
            let run = std::iter::once(format!("run {}", asked.run()));
            let kept = completion.kept.iter().map(|name| format!("kept {name}"));
            let added = completion.added.iter().map(|word| format!("added {word}"));
            show_completed(
                run.chain(kept).chain(added),
                &lines.completed(&completion.added),
            )
        }
        Ok(Some((Err(error), _))) | Err(error) => {
            show_completed([], &lines.completed(&[]));
            failed(arguments.job_id, &error)
        }
        Ok(None) => show_completed([], &lines.completed(&[])),
    }
}

fn failed(job_id: u32, error: &DirectivesError) -> ExitCode {
    say(&format!(
        "the directives of job {job_id} stay as they are: {error}"
    ));
    ExitCode::FAILURE
}

/// A run, with the service's answer.
struct Asked {
    job: Job,
    answer: StartAnswer,
}

/// The words that are added to the directives, and the names that the user had written.
#[derive(Debug, PartialEq)]
struct Completion {
    added: Vec<String>,
    kept: Vec<String>,
}

impl Asked {
    /// The text that [`Delivered::run`] takes.
    fn run(&self) -> String {
        let Job {
            cluster,
            job_id,
            restart_count,
            ..
        } = &self.job;
        format!("{cluster}/{job_id}/{restart_count}/{}", self.answer.run_id)
    }

    fn complete(&self, lines: &Lines) -> Result<Completion, DirectivesError> {
        let delivery = &self.answer.delivery;
        let mut completion = Completion {
            added: Vec::new(),
            kept: Vec::new(),
        };
        for name in &delivery.watch_directives {
            if !is_directive_name(name) {
                return Err(DirectivesError::Answer(name.clone()));
            }
            if lines.name(name) {
                completion.kept.push(name.clone());
            }
        }
        for directive in &delivery.directives {
            let (name, value) = (&directive.name, &directive.value);
            if !is_directive_name(name) || !is_directive_value(value) {
                return Err(DirectivesError::Answer(format!("{name}={value}")));
            }
            if !lines.name(name) {
                completion.added.push(format!("{name}={value}"));
            }
        }
        Ok(completion)
    }
}

/// A job that is to be tuned, with its request.
#[derive(Debug)]
struct Wanted {
    job: Job,
    request: Request,
}

/// The files of a script's job, and the job if it is to be tuned. `None` if nobody asked for that, or
/// if it is a later component, whose run is the first component's.
fn look_up(
    script: &Path,
    ask: impl FnOnce() -> Result<Option<Listed>, JobError>,
) -> (Kept, Result<Option<Wanted>, DirectivesError>) {
    let own = Kept::by_script(script);
    // Most jobs are not tuned, and cost no query of squeue.
    let request = own.request();
    if own.has_environment() && !matches!(request, Ok(Some(_))) {
        return (own, request.map(|_| None));
    }
    let Listed { job, array } = match ask() {
        Ok(Some(listed)) => listed,
        Ok(None) => return (own, Ok(None)),
        Err(error) => return (own, Err(error.into())),
    };
    let kept = array.and_then(|array| own.of_array(array)).unwrap_or(own);
    let wanted = kept
        .request()
        .map(|request| request.map(|request| Wanted { job, request }));
    (kept, wanted)
}

async fn ask(
    arguments: &Complete,
    wanted: Wanted,
    deadline: Deadline,
) -> Result<Asked, DirectivesError> {
    let start = StartRequest {
        job: wanted.job,
        request: wanted.request,
        limit_seconds: None,
        started_at: None,
        node_state: None,
    };
    let client = arguments.service.client().map_err(ClientError::from)?;
    let answer = client
        .call(Call::post("/v1/runs/start", &start), deadline.left())
        .await?;
    Ok(Asked {
        job: start.job,
        answer,
    })
}

async fn deliver(
    arguments: &Delivered,
    deadline: Deadline,
) -> Result<DirectivesAnswer, DirectivesError> {
    let unknown = || DirectivesError::Run(arguments.run.clone());
    let parts: Vec<&str> = arguments.run.split('/').collect();
    let [cluster, job_id, restart_count, run_id] = parts[..] else {
        return Err(unknown());
    };
    let request = DirectivesRequest {
        cluster: cluster.to_owned(),
        job_id: job_id.parse().map_err(|_| unknown())?,
        restart_count: restart_count.parse().map_err(|_| unknown())?,
        run_id: run_id.parse().map_err(|_| unknown())?,
        directives: CompletedDirectives {
            kept: arguments.kept.clone(),
        },
    };
    let client: Client = arguments.service.client().map_err(ClientError::from)?;
    let call = Call::post("/v1/runs/directives", &request);
    Ok(client.call(call, deadline.left()).await?)
}

/// Prints the result of the completion and then the lines, all at once, because a part of the lines
/// must not be used. The last line tells the reader that nothing is missing.
fn show_completed(became: impl IntoIterator<Item = String>, lines: &[String]) -> ExitCode {
    let lines = lines.iter().map(|line| format!("line {line}"));
    let all = became.into_iter().chain(lines).chain(["end".to_owned()]);
    show(&Vec::from_iter(all).join("\n"), ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::{Parametrization, Phase, Role};
    use io_autotune_protocol::{DeliveredDirective, Delivery};

    use super::*;

    fn asked(directives: &[(&str, &str)]) -> Asked {
        let directives = directives
            .iter()
            .map(|(name, value)| DeliveredDirective {
                name: (*name).into(),
                value: (*value).into(),
            })
            .collect();
        Asked {
            job: crate::testing::job(),
            answer: StartAnswer {
                run_id: 17,
                phase: Phase::Design,
                role: Role::Design,
                parametrization: Parametrization(BTreeMap::new()),
                reason: String::new(),
                delivery: Delivery {
                    directives,
                    watch_directives: vec!["workers".into(), "destagers".into()],
                    ..Delivery::default()
                },
                directives: None,
            },
        }
    }

    fn lines(script: &str) -> Lines {
        Lines::of(script.as_bytes(), "BB", None)
    }

    #[test]
    fn what_the_user_wrote_is_kept_and_said() {
        let asked = asked(&[("workers", "8"), ("destagers", "4")]);
        let lines = lines("#!/bin/sh\n#BB target=/fs workers=2\n");
        let completion = asked.complete(&lines).unwrap();
        assert_eq!(completion.kept, ["workers"]);
        assert_eq!(completion.added, ["destagers=4"]);
        assert_eq!(
            lines.completed(&completion.added),
            ["#BB target=/fs workers=2 destagers=4"]
        );
        assert_eq!(asked.run(), "c/7/0/17");
    }

    #[test]
    fn the_default_adds_nothing_and_still_tells_what_is_the_users() {
        let completion = asked(&[])
            .complete(&lines("#BB destagers=2 target=/fs\n"))
            .unwrap();
        assert_eq!(completion.added, [""; 0]);
        assert_eq!(completion.kept, ["destagers"]);
    }

    /// Attack (service): An answer completes a directive by blanks, lines, options or a shell's
    /// words.
    #[test]
    fn an_answer_cannot_add_anything_but_a_word() {
        for (name, value) in [
            ("workers", "8 target=/etc"),
            ("workers", "8\nrun 1"),
            ("workers", "$(id)"),
            ("workers", ""),
            ("a b", "8"),
            ("-x", "8"),
        ] {
            let wrong = asked(&[(name, value)]).complete(&lines("#BB x\n"));
            assert!(
                matches!(wrong, Err(DirectivesError::Answer(_))),
                "{name}={value}"
            );
        }
    }
    /// From Slurm 24.11 on slurmctld names a task's script, but has made neither the file nor its
    /// directory.
    #[test]
    fn a_task_of_an_array_has_its_arrays_script_and_request() {
        let state = tempfile::tempdir().unwrap();
        let of = |job_id: u32| {
            let job = format!("hash.{}/job.{job_id}", job_id % 10);
            state.path().join(job).join("script")
        };
        std::fs::create_dir_all(of(5).parent().unwrap()).unwrap();
        std::fs::write(of(5), "#BB of the array\n").unwrap();
        let environment = b"\x01\0\0\0SLURM_SPANK_IO_AUTOTUNE=app=ocean,mode=tune\0";
        std::fs::write(of(5).with_file_name("environment"), environment).unwrap();
        let listed = |array| {
            let job = crate::testing::job();
            move || Ok(Some(Listed { job, array }))
        };
        let (kept, wanted) = look_up(&of(7), listed(Some(5)));
        assert_eq!(kept.script().unwrap(), b"#BB of the array\n");
        let request = wanted.unwrap().unwrap().request;
        assert_eq!(request.app.as_deref(), Some("ocean"));

        // A script that another program has left there is not the task's.
        std::fs::create_dir_all(of(7).parent().unwrap()).unwrap();
        std::fs::write(of(7), "#!/bin/bash\nexit 0\n").unwrap();
        let (kept, _) = look_up(&of(7), listed(Some(5)));
        assert_eq!(kept.script().unwrap(), b"#BB of the array\n");

        // A job of salloc's has a script of its own and no environment.
        let (kept, wanted) = look_up(&of(7), listed(None));
        assert_eq!(kept.script().unwrap(), b"#!/bin/bash\nexit 0\n");
        assert!(wanted.unwrap().is_none());

        // The array's own job costs no query if nobody asked for it to be tuned.
        std::fs::write(of(5).with_file_name("environment"), b"\x01\0\0\0A=1\0").unwrap();
        let (_, wanted) = look_up(&of(5), || unreachable!("nobody asked"));
        assert!(wanted.unwrap().is_none());
    }
}
