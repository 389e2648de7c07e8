//! io-autotune: the command line for users and admins.

#![forbid(unsafe_code)]

mod accelerators;
mod arguments;
mod campaign;
mod doctor;
mod format;
mod help;
mod manual;
mod marking;
mod optimize;
mod people;
mod prospect;
mod question;
mod render;
mod report;
mod resolve_target;
mod retention;
mod rules;
mod screen;
mod service;
mod signals;
mod slurm;
mod spelling;
mod steering;
mod targets;
mod times;
mod transfer;
mod watch;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;
use io_autotune_console as console;
use io_autotune_protocol::{OrderKind, RunSummary, WhyRequest, block_on, shown_json, shown_lines};
use serde::Serialize;

use crate::arguments::{
    Accelerators, Admin, Arguments, AuditOf, ColumnsOutput, Command, ListOutput, Rules, Transfer,
};
use crate::format::{Field, LINE_FIELDS, RUN_FIELDS, Wanted};
use crate::render::columns::Columns;
use crate::render::history::How;
use crate::resolve_target::Compared;
use crate::screen::Screen;
use crate::service::{CliError, RunsOf, Service};
use crate::targets::{Target, Thing};

fn main() -> ExitCode {
    console::survive_file_size_limit();
    let (typed, hint) = spelling::of_today(std::env::args_os().collect());
    if let Some(hint) = hint {
        say(&hint);
    }
    let arguments = match arguments(&typed) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    // Done in a job, without a runtime and without the service.
    let marks = match &arguments.command {
        Command::Mark { what } => Some(marking::phase(what)),
        Command::Objective { words, .. } if marking::is_reported(words) => {
            Some(marking::reported(words))
        }
        _ => None,
    };
    if let Some(marks) = marks {
        return marked(marks);
    }
    match block_on(run(&arguments)) {
        Ok(Ok(answer)) => print(&answer),
        Ok(Err(error)) => failed(&told(&error, &typed), error.status()),
        Err(error) => failed(&format!("cannot start: {error}"), 1),
    }
}

/// Reads the command line. The error is the exit status if there is nothing more to do.
fn arguments(words: &[OsString]) -> Result<Arguments, ExitCode> {
    let matches = help::command().try_get_matches_from(words);
    let read = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    read.map_err(|error| {
        let status = console::answer(&error);
        match marking::is_meant_by(words) {
            true => ExitCode::SUCCESS,
            false => status,
        }
    })
}

/// The text of an error, for the user who typed these words.
fn told(error: &CliError, typed: &[OsString]) -> String {
    match error {
        CliError::Ambiguous(ambiguity) => {
            let typed = typed.iter().map(|word| word.to_string_lossy().into_owned());
            ambiguity.told(&typed.collect::<Vec<String>>())
        }
        other => other.to_string(),
    }
}

/// Writes a message to stderr. If that fails, the exit status stays the same.
pub(crate) fn say(message: &str) {
    console::say(&format!("io-autotune: {}", shown_lines(message)));
}

fn failed(message: &str, status: u8) -> ExitCode {
    say(message);
    ExitCode::from(status)
}

/// The exit code of marking, which is always success so that no job is harmed; a failure is only
/// reported.
fn marked(marks: Result<(), marking::NotMarked>) -> ExitCode {
    if let Err(why) = marks {
        say(&why.to_string());
    }
    ExitCode::SUCCESS
}

/// The output, without characters that act on a terminal, and true if the exit status is 0.
struct Answer {
    text: String,
    good: bool,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, good: true }
    }
}

impl Answer {
    fn good_if(self, good: bool) -> Self {
        Self { good, ..self }
    }
}

fn print(answer: &Answer) -> ExitCode {
    match console::print(&answer.text) {
        Err(lost) => failed(&lost.to_string(), 1),
        Ok(()) if answer.good => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
    }
}

async fn run(arguments: &Arguments) -> Result<Answer, CliError> {
    let service = || Service::new(&arguments.config, arguments.cluster.as_deref());
    let screen = Screen::of_stdout();
    match &arguments.command {
        Command::Status {
            wanted,
            watch,
            output,
        } => {
            let service = service()?;
            let wanted = &service.wanted(wanted).await?;
            if *watch {
                return watch::studies(&service, wanted).await;
            }
            let studies = service.studies(wanted).await?;
            // For programs an empty list is an answer.
            if studies.is_empty()
                && !(output.json || output.csv)
                && let Some(error) = service.none_of(wanted).await?
            {
                return Err(error);
            }
            listed(output, &studies, render::status::table(&studies), || {
                render::status::studies(&studies, &screen)
            })
        }
        Command::History(wanted) => history(wanted, service, &screen).await,
        Command::Show { target, output } => {
            let service = service()?;
            let detail = service.study(service.resolve(target).await?).await?;
            let wanted = RunsOf::study(detail.study.study_id, PLOTTED);
            let runs = match output.json || output.csv {
                true => Vec::new(),
                false => service.runs(&wanted).await?,
            };
            let table = render::show::tested(&detail, usize::MAX);
            listed(output, &detail, table, || {
                render::show::show(&detail, &runs, &screen)
            })
        }
        Command::Compare {
            a,
            b,
            studies,
            output,
        } => compare(&service()?, [a, b], *studies, output, &screen).await,
        Command::Explain {
            job,
            replay: true,
            output,
            ..
        } => {
            let service = service()?;
            let job_id = service.job_id(*job)?;
            let replays = service.replay(job_id).await?;
            let same = replays.iter().all(|replay| replay.same);
            let answer = output_of(output.json, &replays, |replays| {
                shown_lines(&render::replays(job_id, replays))
            })?;
            Ok(answer.good_if(same))
        }
        Command::Explain {
            job,
            details: is_detailed,
            output,
            ..
        } => {
            let service = service()?;
            let details = service.explain(service.job_id(*job)?).await?;
            output_of(output.json, &details, |details| {
                render::explain(details, *is_detailed, &screen)
            })
        }
        // Done before the service is asked.
        Command::Mark { .. } => Ok(String::new().into()),
        Command::Objective {
            words,
            maximise,
            change,
        } => steering::objective(&service()?, words, *maximise, change, &screen).await,
        Command::Pin { words, how } => steering::pin(&service()?, words, how, &screen).await,
        Command::Freeze(order) => {
            steering::order(&service()?, OrderKind::Freeze, order, &screen).await
        }
        Command::Off(order) => steering::order(&service()?, OrderKind::Off, order, &screen).await,
        Command::Accept { target, change } => {
            let done = "accepted: its runs are one application's, however they differ";
            steering::one_study(&service()?, target, "accept", done, change, &screen).await
        }
        Command::Reset { target, change } => {
            let done = "reset: its search begins anew";
            steering::one_study(&service()?, target, "reset", done, change, &screen).await
        }
        Command::Audit(asked) => audit(asked, service, &screen).await,
        Command::Undo {
            line,
            reason,
            output,
        } => {
            let body = WhyRequest { why: reason.sent() };
            let undone = service()?.undo(*line, &body).await?;
            output_of(output.json, &undone, render::steering::undone)
        }
        Command::Transfer(Transfer::Export { target, output, .. }) => {
            transfer::export(&service()?, target.as_ref(), output.as_deref()).await
        }
        Command::Transfer(Transfer::Import {
            file,
            skip_existing,
            change,
        }) => transfer::import(&service()?, file, *skip_existing, change, &screen).await,
        Command::Transfer(Transfer::WarmStart {
            target,
            from,
            change,
        }) => steering::warm_start(&service()?, target, from, change, &screen).await,
        Command::Admin(Admin::Retention { older_than, change }) => {
            retention::remove(&service()?, *older_than, change, &screen).await
        }
        Command::Admin(Admin::Completion { shell }) => Ok(manual::completion(*shell).into()),
        Command::Admin(Admin::Man { directory }) => Ok(manual::write(directory)?.into()),
        Command::Campaign(asked) => campaign::run(asked, &service()?).await,
        Command::Optimize(asked) => Ok(optimize::run(asked)?.into()),
        Command::Report(report) if report.mine => {
            let page = service()?.own_report().await?;
            Ok(report::show_mine(report, page)?.into())
        }
        Command::Report(report) if report.latest => {
            let file = service()?.report(report.file).await?;
            let text = report::show(report, file)?;
            // A file of the report is written elsewhere unchanged.
            Ok(match std::io::stdout().is_terminal() {
                true => shown_lines(&text).into(),
                false => text.into(),
            })
        }
        Command::Report(report) => Err(report::make(report).into()),
        Command::Accelerators(Accelerators::List { output }) => {
            let list = service()?.accelerators().await?;
            output_of(output.json, &list, |list| {
                render::accelerators(list, &screen)
            })
        }
        Command::Accelerators(Accelerators::Show { name, output }) => {
            let detail = service()?.accelerator(name).await?;
            output_of(output.json, &detail, |detail| {
                render::accelerator(detail, &screen)
            })
        }
        Command::Accelerators(Accelerators::SiteDefault {
            name,
            apply,
            end,
            until,
            change,
        }) => {
            let service = service()?;
            match (apply, end) {
                (None, false) => {
                    let known = service.site_defaults(name).await?;
                    output_of(change.output.json, &known, |known| {
                        render::site_defaults(known, &screen)
                    })
                }
                (Some(values), _) => {
                    steering::make_site_default(&service, name, values, *until, change, &screen)
                        .await
                }
                (None, true) => steering::end_site_default(&service, name, change, &screen).await,
            }
        }
        Command::Accelerators(Accelerators::Check { file }) => {
            let accelerator = accelerators::check(file)?;
            let asked = async { service()?.accelerator(&accelerator.name).await };
            // A user who writes a file elsewhere may have no service to ask.
            let in_use = asked.await.ok().and_then(|known| known.in_use);
            let studies = in_use.map_or_else(String::new, |in_use| {
                accelerators::studies(&accelerator.space, &in_use)
            });
            Ok(shown_lines(&(accelerators::described(&accelerator) + &studies)).into())
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
            output_of(output.json, &checked, |checked| {
                render::checked(checked, &screen)
            })
        }
        Command::Rules(Rules::Try { file, output }) => {
            let rules = rules::read(file)?;
            let trial = rules::trial(&rules, service()?.job_names().await?);
            output_of(output.json, &trial, |trial| render::trial(trial, &screen))
        }
        Command::Prospect {
            file,
            rules,
            limit,
            output,
        } => {
            let found = prospect::of_file(file, rules.as_deref())?;
            let table = render::prospect::studies(&found, usize::MAX);
            listed(output, &found, table, || {
                render::prospect::prospect(&found, *limit, &screen)
            })
        }
        Command::Doctor {
            spool_dir,
            jobcomp_dir,
            collector_dir,
            job,
            within,
            output,
        } => {
            let places = doctor::Places {
                config: &arguments.config,
                cluster: arguments.cluster.as_deref(),
                spool: spool_dir,
                jobcomp: (jobcomp_dir, collector_dir),
                job_within: job.then(|| Duration::from_secs(*within)),
            };
            let report = doctor::examine(&places).await;
            let answer = output_of(output.json, &report, |report| {
                shown_lines(&render::checks(&report.checks))
            })?;
            Ok(answer.good_if(!report.has_failed()))
        }
    }
}

async fn audit(
    asked: &arguments::Audit,
    service: impl Fn() -> Result<Service, CliError>,
    screen: &Screen,
) -> Result<Answer, CliError> {
    if let Some(AuditOf::Orders { output }) = &asked.of {
        let orders = service()?.orders().await?;
        let table = render::steering::orders(&orders, screen);
        let text = table.text(screen);
        return listed(output, &orders, table, || match orders.is_empty() {
            true => "nothing is ordered\n".to_owned(),
            false => text,
        });
    }
    if asked.output.helpformat {
        return Ok(fields(&LINE_FIELDS));
    }
    let lines = service()?.audit(asked.study, asked.by, asked.limit).await?;
    let format = asked.format.as_deref();
    let table = |exact| render::steering::audit(&lines, format, screen, exact);
    let nothing = lines
        .is_empty()
        .then(|| "nobody has changed anything\n".to_owned());
    listed_in(&asked.output, &lines, table, nothing, screen)
}

/// The most runs in a plot.
const PLOTTED: u32 = 1000;

async fn history(
    asked: &arguments::History,
    service: impl Fn() -> Result<Service, CliError>,
    screen: &Screen,
) -> Result<Answer, CliError> {
    if asked.output.helpformat {
        return Ok(fields(&RUN_FIELDS));
    }
    let service = service()?;
    let of = service.wanted(&asked.of).await?;
    let wanted = RunsOf {
        of: of.clone(),
        state: asked.state.map(Into::into),
        not_counted: asked.not_counted,
        since: asked.starttime,
        until: asked.endtime,
        limit: asked.limit,
    };
    let runs = service.runs(&wanted).await?;
    let is_for_programs = asked.output.parsable2 || asked.output.list.json || asked.output.list.csv;
    let mut some_elsewhere = false;
    if runs.is_empty() && !is_for_programs {
        some_elsewhere = !service.studies(&of).await?.is_empty();
        if !some_elsewhere && let Some(error) = service.none_of(&of).await? {
            return Err(error);
        }
    }
    let format = asked.format.as_deref();
    let all = Wanted::all(&RUN_FIELDS);
    let table = |exact| {
        let wanted = match asked.output.list.csv {
            true => Some(format.unwrap_or(&all)),
            false => format,
        };
        render::history::columns(&runs, wanted, How { screen, exact })
    };
    let usual = format.is_none() && !asked.output.noheader;
    let text = usual.then(|| match some_elsewhere {
        true => "no run is of that time and state; there are others\n".to_owned(),
        false => {
            let cut = (runs.len() as u64 == u64::from(asked.limit)).then(|| {
                format!(
                    "\nat most {} are shown, the newest: --limit N shows others\n",
                    asked.limit
                )
            });
            render::history::runs(&runs, screen) + &cut.unwrap_or_default()
        }
    });
    listed_in(&asked.output, &runs, table, text, screen)
}

/// The names of the columns that exist.
fn fields(fields: &[Field]) -> Answer {
    format!("{}\n", format::listed(fields)).into()
}

/// A list with columns that may be chosen. `table` has complete times, for programs. People get
/// `text` instead, if there is any.
fn listed_in<T: Serialize + ?Sized>(
    output: &ColumnsOutput,
    value: &T,
    table: impl Fn(bool) -> Columns,
    text: Option<String>,
    screen: &Screen,
) -> Result<Answer, CliError> {
    if output.parsable2 {
        let table = table(true).without_header(output.noheader);
        return Ok(table.parsable().into());
    }
    listed(&output.list, value, table(true), || {
        text.unwrap_or_else(|| table(false).without_header(output.noheader).text(screen))
    })
}

async fn compare(
    service: &Service,
    words: [&Thing; 2],
    studies: bool,
    output: &ListOutput,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let mut things = Vec::with_capacity(words.len());
    for word in words {
        things.push(match (word, studies) {
            (Thing::Either { target, .. }, true) => {
                // With --studies, numbers mean studies.
                let target = match target {
                    Target::Number { study, .. } => &Target::Study(*study),
                    other => other,
                };
                Compared::Study(service.resolve(target).await?)
            }
            (word, _) => service.compared(word).await?,
        });
    }
    match things.as_slice() {
        [Compared::Job(a), Compared::Job(b)] => {
            let a = last_launch(service, *a).await?;
            let b = last_launch(service, *b).await?;
            let table = render::compare::runs(&a, &b);
            let text = table.text(screen);
            listed(output, &[a, b], table, || {
                format!("{text}\nTwo runs differ by chance too: `io-autotune show` has all runs.\n")
            })
        }
        [Compared::Study(a), Compared::Study(b)] => {
            let found = [service.study(*a).await?.study, service.study(*b).await?.study];
            let table = render::compare::studies(&found[0], &found[1]);
            let text = table.text(screen);
            listed(output, &found, table, || text)
        }
        _ => Err(CliError::Usage(
            "one is a job and the other one a study: name two jobs, as job:4711, or two studies, as study:3".to_owned(),
        )),
    }
}

/// A job's last launch.
async fn last_launch(service: &Service, job_id: u32) -> Result<RunSummary, CliError> {
    let launches = service.explain(job_id).await?;
    let last = launches.into_iter().next_back();
    last.map(|detail| detail.run)
        .ok_or_else(|| CliError::Usage(format!("job {job_id} has no run")))
}

/// A list as JSON, as comma-separated values, or for people.
fn listed<T: Serialize + ?Sized>(
    output: &ListOutput,
    value: &T,
    table: Columns,
    text: impl FnOnce() -> String,
) -> Result<Answer, CliError> {
    if output.csv {
        return Ok(table.csv()?.into());
    }
    output_of(output.json, value, |_| text())
}

/// The output for an answer. Text for people is clean already: names, reasons and messages come
/// from other people, and colour from this program.
fn output_of<T: Serialize + ?Sized>(
    json: bool,
    value: &T,
    render: impl FnOnce(&T) -> String,
) -> Result<Answer, CliError> {
    Ok(match json {
        true => shown_json(&(serde_json::to_string_pretty(value)? + "\n")).into(),
        false => render(value).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack (units): A `--why` is too long, of several lines, or has escapes or invisible
    /// characters.
    /// Outcome: It is refused; a stored one is shown with question marks.
    #[test]
    fn what_others_have_written_reaches_no_terminal_as_it_is() {
        let why = "fine\u{1b}[2J \u{202e}gnp.exe\u{200b}\u{2066}".to_owned();
        let order = io_autotune_protocol::OrderSummary {
            order_id: Some(1),
            kind: OrderKind::Off,
            scope: io_autotune_protocol::OrderScope::default(),
            values: None,
            uid: 0,
            user: None,
            why: why.clone(),
            at: jiff::Timestamp::UNIX_EPOCH,
            until: None,
            is_over: false,
            may_end: true,
        };
        let list = render::steering::orders(&[order], &Screen::plain());
        for text in [
            list.text(&Screen::plain()),
            list.parsable(),
            list.csv().unwrap(),
        ] {
            assert!(text.contains("fine?[2J ?gnp.exe??"), "{text}");
        }
        let said = WhyRequest { why };
        let json = output_of(true, &said, |_| String::new()).unwrap().text;
        assert!(json.is_ascii() && json.contains("\\u202e"), "{json}");
        let read: WhyRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(read.why, said.why);
    }
}
