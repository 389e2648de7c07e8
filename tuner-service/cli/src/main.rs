//! io-autotune: the command line for users and admins.

#![forbid(unsafe_code)]

mod accelerators;
mod arguments;
mod doctor;
mod optimize;
mod render;
mod report;
mod rules;
mod service;
mod simulate;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use io_autotune_protocol::{PinRequest, WhyRequest, block_on, shown_json, shown_lines};
use io_autotune_simulation::dataset::SpaceFile;
use io_autotune_simulation::session::Session;
use serde::Serialize;

use crate::arguments::{Accelerators, Arguments, Command, Rules, Target};
use crate::service::{CliError, Service};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match block_on(run(&arguments)) {
        Ok(Ok(answer)) => print(&answer),
        Ok(Err(error)) => failed(&error.to_string()),
        Err(error) => failed(&format!("cannot start: {error}")),
    }
}

#[expect(clippy::print_stderr, reason = "the program's way to fail")]
fn failed(message: &str) -> ExitCode {
    eprintln!("io-autotune: {}", shown_lines(message));
    ExitCode::FAILURE
}

/// The output, and whether the exit status is 0.
struct Answer {
    text: String,
    good: bool,
}

impl Answer {
    fn good_if(self, good: bool) -> Self {
        Self { good, ..self }
    }
}

fn print(answer: &Answer) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    // A file of the report goes elsewhere as it is, to a terminal cleaned as all else.
    let cleaned = stdout.is_terminal().then(|| shown_lines(&answer.text));
    let text = cleaned.as_ref().unwrap_or(&answer.text);
    // A pager that was closed early is no failure.
    let _ = stdout.write_all(text.as_bytes());
    if answer.good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn run(arguments: &Arguments) -> Result<Answer, CliError> {
    let service = || Service::new(&arguments.config);
    match &arguments.command {
        Command::Status {
            application,
            study,
            accelerator,
            output,
        } => {
            let studies = service()?
                .studies(application.as_deref(), *study, accelerator.as_deref())
                .await?;
            output_of(output.json, &studies, |studies| render::studies(studies))
        }
        Command::History {
            application,
            study,
            limit,
            output,
        } => {
            let runs = service()?
                .runs(application.as_deref(), *study, *limit)
                .await?;
            output_of(output.json, &runs, |runs| render::runs(runs))
        }
        Command::Explain {
            job_id,
            replay: true,
            output,
        } => {
            let replays = service()?.replay(*job_id).await?;
            let same = replays.iter().all(|replay| replay.same);
            let answer = output_of(output.json, &replays, |replays| {
                render::replays(*job_id, replays)
            })?;
            Ok(answer.good_if(same))
        }
        Command::Explain { job_id, output, .. } => {
            let details = service()?.explain(*job_id).await?;
            output_of(output.json, &details, |details| render::explain(details))
        }
        Command::Pin {
            target,
            values,
            why,
            output,
        } => {
            let values = (!values.is_empty()).then(|| values.iter().cloned().collect());
            let body = PinRequest {
                values,
                why: why.clone(),
            };
            steer(&service()?, target, "pin", &body, output.json, "pinned").await
        }
        Command::Unpin {
            target,
            why,
            output,
        } => {
            let body = WhyRequest { why: why.clone() };
            steer(&service()?, target, "unpin", &body, output.json, "unpinned").await
        }
        Command::Accept {
            target,
            why,
            output,
        } => {
            let body = WhyRequest { why: why.clone() };
            let done = "accepted: its runs are one application's, however they differ";
            steer(&service()?, target, "accept", &body, output.json, done).await
        }
        Command::Optimize {
            space,
            budget,
            seed,
            method,
        } => {
            let file = SpaceFile::read(space).map_err(Box::new)?;
            let mut session = Session::new(file, *budget, *seed, *method);
            optimize::exchange(
                &mut session,
                std::io::stdin().lock(),
                std::io::stdout().lock(),
            )?;
            Ok(Answer {
                text: String::new(),
                good: true,
            })
        }
        Command::Simulate(simulate) => {
            let text = simulate::run(simulate)?;
            Ok(Answer { text, good: true })
        }
        Command::Report(report) if report.latest => {
            let file = service()?.report(report.file).await?;
            let text = report::show(report, file)?;
            Ok(Answer { text, good: true })
        }
        Command::Report(report) => Err(report::make(report).into()),
        Command::Accelerators(Accelerators::List { output }) => {
            let list = service()?.accelerators().await?;
            output_of(output.json, &list, |list| render::accelerators(list))
        }
        Command::Accelerators(Accelerators::Show { name, output }) => {
            let detail = service()?.accelerator(name).await?;
            output_of(output.json, &detail, render::accelerator)
        }
        Command::Accelerators(Accelerators::Check { file }) => {
            let text = accelerators::check(file)?;
            Ok(Answer { text, good: true })
        }
        Command::Rules(Rules::Check {
            job_names,
            comment,
            file,
            output,
        }) => {
            let rules = match file {
                Some(file) => rules::read(file)?,
                None => rules::of_site(&service()?.rules().await?)?,
            };
            let checked = rules::check(&rules, job_names, comment.as_deref());
            output_of(output.json, &checked, |checked| render::checked(checked))
        }
        Command::Rules(Rules::Try { file, output }) => {
            let rules = rules::read(file)?;
            let trial = rules::trial(&rules, service()?.job_names().await?);
            output_of(output.json, &trial, render::trial)
        }
        Command::Doctor { spool_dir, output } => {
            let report = doctor::examine(&arguments.config, spool_dir).await;
            let answer = output_of(output.json, &report, |report| {
                render::checks(&report.checks)
            })?;
            Ok(answer.good_if(!report.has_failed()))
        }
        Command::Reset {
            target,
            why,
            output,
        } => {
            let body = WhyRequest { why: why.clone() };
            steer(
                &service()?,
                target,
                "reset",
                &body,
                output.json,
                "reset: a new epoch is open",
            )
            .await
        }
    }
}

async fn steer<B: Serialize>(
    service: &Service,
    target: &Target,
    action: &str,
    body: &B,
    json: bool,
    done: &str,
) -> Result<Answer, CliError> {
    let study_id = service.resolve(target).await?;
    let study = service.steer(study_id, action, body).await?;
    output_of(json, &study, |study| {
        format!("study {study_id}: {done}\n\n{}", render::study(study))
    })
}

/// The one way from an answer to text: names, reasons and messages are of other people.
fn output_of<T: Serialize>(
    json: bool,
    value: &T,
    render: impl FnOnce(&T) -> String,
) -> Result<Answer, CliError> {
    let text = if json {
        shown_json(&(serde_json::to_string_pretty(value)? + "\n"))
    } else {
        shown_lines(&render(value))
    };
    Ok(Answer { text, good: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_reaches_no_terminal_as_it_is() {
        let why = "fine\u{1b}[2J \u{202e}gnp.exe\u{200b}\u{2066}".to_owned();
        let said = WhyRequest { why };
        let text = output_of(false, &said, |said| format!("why  {}\n", said.why));
        assert_eq!(text.unwrap().text, "why  fine?[2J ?gnp.exe??\n");
        let json = output_of(true, &said, |_| String::new()).unwrap().text;
        assert!(json.is_ascii() && json.contains("\\u202e"), "{json}");
        let read: WhyRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(read.why, said.why);
    }
}
