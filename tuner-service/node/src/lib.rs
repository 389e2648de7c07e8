//! The node helper, which the SPANK plugin runs under a hard deadline as the program
//! io-autotune-node. After any failure the job runs with defaults.

#![forbid(unsafe_code)]

mod agent;
mod applied;
mod arguments;
mod breaker;
mod cgroup;
mod clock;
mod config;
mod deadline;
mod default_runs;
mod directives;
mod directory;
mod enter_cgroup;
mod files;
mod finish;
mod hook;
mod in_force;
mod job;
mod measures;
mod output;
mod output_line;
mod overdue;
mod places;
mod print_config;
mod report;
mod restore;
mod route;
mod service_arguments;
mod settings;
mod spool;
mod stamp;
mod start;
mod state;
mod submission;
#[cfg(test)]
mod testing;
mod time_limited;
mod user_files;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use io_autotune_configuration::Origin;
use io_autotune_console as console;
use io_autotune_protocol::{block_on, read_answer};

use crate::arguments::{Action, Arguments, Command, Part};
use crate::output::{say, show};
use crate::print_config::print_config;

/// Executes the process's command line. Returns the exit code; everything else has been written to
/// standard error.
pub fn run() -> ExitCode {
    let began = Instant::now();
    console::survive_file_size_limit();
    let (arguments, matches) = match console::arguments::<Arguments>() {
        Ok(read) => read,
        Err(status) => return status,
    };
    match &arguments.command {
        Command::Part(Part::ReadAnswer { address, authority }) => {
            console::ended(read_answer(address.as_deref().zip(authority.as_deref())))
        }
        Command::Part(Part::Agent) => console::ended(agent::run()),
        Command::Part(Part::Within(within)) => console::ended(Err(within.run())),
        Command::Hook(hook) => console::ended(hook.run()),
        Command::PrintConfig { config } => {
            let given = matches.subcommand_matches("print-config");
            let origin = given.map_or(Origin::Default, |given| {
                Origin::of(given, "config", "IO_AUTOTUNE_CONFIG")
            });
            match print_config(config, &origin) {
                Ok(text) => show(&text, ExitCode::SUCCESS),
                Err(error) => console::ended(Err(error)),
            }
        }
        Command::Action(action) => block_on(act(action, began)).unwrap_or_else(|error| {
            say(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        }),
    }
}

async fn act(action: &Action, began: Instant) -> ExitCode {
    match action {
        Action::Check {
            service,
            accelerator,
        } => match submission::given(accelerator.as_deref()) {
            Ok(accelerator) => {
                submission::check(service.client(), &accelerator, service.deadline(began)).await
            }
            Err(error) => console::ended(Err(error)),
        },
        Action::Submit { service, request } => match submission::given(request.as_deref()) {
            Ok(request) => {
                submission::submit(service.client(), &request, service.deadline(began)).await
            }
            Err(error) => console::ended(Err(error)),
        },
        Action::Start {
            service,
            places,
            in_job,
        } => {
            let result = start::start(service, places, *in_job, service.deadline(began)).await;
            console::ended(result)
        }
        Action::Finish { service, places } => {
            let result = finish::finish(service, places, service.deadline(began)).await;
            console::ended(result)
        }
        Action::Restore {
            service,
            places,
            all,
        } => console::ended(restore::restore(service, places, *all)),
        Action::Directives(command) => {
            directives::run(command, command.service().deadline(began)).await
        }
        Action::Flush {
            service,
            places,
            every,
        } => finish::flush(service, places, every.map(Duration::from_secs), began).await,
    }
}
