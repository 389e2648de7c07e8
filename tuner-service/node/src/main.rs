//! io-autotune-node: the helper that the SPANK plugin runs under a hard deadline. After any failure
//! the job goes on with defaults.

#![forbid(unsafe_code)]

mod agent;
mod applied;
mod breaker;
mod cgroup;
mod config;
mod directives;
mod directory;
mod files;
mod finish;
mod hook;
mod in_force;
mod job;
mod limited;
mod measures;
mod overdue;
mod report;
mod restore;
mod route;
mod settings;
mod spool;
mod stamp;
mod start;
mod state;
mod submission;
#[cfg(test)]
mod testing;
mod told;
mod within;
mod written;

use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use io_autotune_configuration::{Origin, Shown};
use io_autotune_protocol::{Client, ClientConfig, ConfigError, block_on, read_answer};

use crate::config::{NodeConfig, NodeConfigError};
use crate::directives::Directives;
use crate::hook::Hook;
use crate::within::Within;

/// The node helper of io-autotune; the SPANK plugin runs it, people rarely do.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Action(Action),
    #[command(flatten)]
    Part(Part),
    /// As Slurm's Prolog= and Epilog= under PrologFlags=RunInJob: run start, finish or restore.
    Hook(Hook),
    /// Print client.toml and node.toml as they are in force, and where each value is from.
    #[command(long_flag = "print-config")]
    PrintConfig {
        /// How the service is reached; node.toml is beside it.
        #[arg(
            long,
            env = "IO_AUTOTUNE_CONFIG",
            default_value = "/etc/io-autotune/client.toml"
        )]
        config: PathBuf,
    },
}

/// How the helper runs itself, without a runtime.
#[derive(Subcommand)]
enum Part {
    /// Read one answer of the service from standard input.
    #[command(hide = true)]
    ReadAnswer,
    /// Move levers while a job runs, as standard input says.
    #[command(hide = true)]
    Agent,
    /// Become a site's program inside a control group.
    #[command(hide = true)]
    Within(Within),
}

#[derive(Subcommand)]
enum Action {
    /// Say whether an accelerator exists, or several can be tuned together; exits with 2, and why not, if they cannot.
    Check {
        #[command(flatten)]
        service: ServiceArguments,
        /// The accelerator's name, or the names of several with + between them.
        #[arg(long)]
        accelerator: String,
    },
    /// Print one line that says what would happen to a job.
    Submit {
        #[command(flatten)]
        service: ServiceArguments,
        /// What the user asked for, in canonical form.
        #[arg(long)]
        request: String,
    },
    /// In the prolog: get the job's parametrization and lay out its files.
    Start {
        #[command(flatten)]
        service: ServiceArguments,
        #[command(flatten)]
        places: Places,
        /// By a step of the job's, which runs the epilog too.
        #[arg(long, hide = true)]
        in_job: bool,
    },
    /// In the epilog: report how the job went, and clear its files away.
    Finish {
        #[command(flatten)]
        service: ServiceArguments,
        #[command(flatten)]
        places: Places,
    },
    /// Put back the settings that jobs have changed on this node and not put back: in the prolog and the epilog of
    /// other jobs, and at boot.
    Restore {
        #[command(flatten)]
        service: ServiceArguments,
        #[command(flatten)]
        places: Places,
        /// Those of every node that runs on this host, wherever this is run; while no job does.
        #[arg(long)]
        all: bool,
    },
    /// On slurmctld's host, for a burst buffer's script: complete a job's directives.
    #[command(subcommand)]
    Directives(Directives),
    /// Deliver reports that the service could not take when they were made.
    Flush {
        #[command(flatten)]
        service: ServiceArguments,
        #[command(flatten)]
        places: Places,
        /// Go on, every so many seconds, until told to stop.
        #[arg(long)]
        every: Option<u64>,
    },
}

#[derive(Args)]
struct ServiceArguments {
    /// How the service is reached.
    #[arg(
        long,
        env = "IO_AUTOTUNE_CONFIG",
        default_value = "/etc/io-autotune/client.toml"
    )]
    config: PathBuf,
    /// Milliseconds for everything, munge and connecting included.
    #[arg(long, default_value_t = 2000)]
    deadline_ms: u64,
}

#[derive(Args)]
struct Places {
    /// Where jobs' files are laid out.
    #[arg(long, default_value = "/run/io-autotune")]
    run_dir: PathBuf,
    /// Where undelivered reports are kept.
    #[arg(long, default_value = "/var/spool/io-autotune")]
    spool_dir: PathBuf,
}

/// Counted from the process's start.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    end: Instant,
}

impl Deadline {
    /// For writing files and an orderly exit.
    const RESERVE: Duration = Duration::from_millis(50);

    fn left(self) -> Duration {
        self.end
            .saturating_duration_since(Instant::now())
            .saturating_sub(Self::RESERVE)
    }
}

impl ServiceArguments {
    fn node_config(&self) -> Result<NodeConfig, NodeConfigError> {
        NodeConfig::load(&node_toml(&self.config))
    }

    /// For sbatch, root's too: previews are given at the users' door alone.
    fn client(&self) -> Result<Client, ConfigError> {
        Client::new(&ClientConfig::load(&self.config)?)
    }

    /// For root of a node, which reads no answer itself.
    fn node_client(&self) -> Result<Client, ConfigError> {
        let client = Client::new(&ClientConfig::load(&self.config)?.for_node())?;
        Ok(client.reading_apart(|| {
            let mut reader = process::Command::new("/proc/self/exe");
            reader.arg("read-answer");
            reader
        }))
    }
}

fn main() -> ExitCode {
    let began = Instant::now();
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match &arguments.command {
        Command::Part(Part::ReadAnswer) => ended(read_answer()),
        Command::Part(Part::Agent) => ended(agent::run()),
        Command::Part(Part::Within(within)) => ended(Err(within.run())),
        Command::Hook(hook) => ended(hook.run()),
        Command::PrintConfig { config } => {
            let given = matches.subcommand_matches("print-config");
            let origin = given.map_or(Origin::Default, |given| {
                Origin::of(given, "config", "IO_AUTOTUNE_CONFIG")
            });
            ended(print_config(config, &origin))
        }
        Command::Action(action) => block_on(run(action, began)).unwrap_or_else(|error| {
            say(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        }),
    }
}

async fn run(action: &Action, began: Instant) -> ExitCode {
    let deadline = |service: &ServiceArguments| Deadline {
        end: began + Duration::from_millis(service.deadline_ms),
    };
    match action {
        Action::Check {
            service,
            accelerator,
        } => submission::check(service.client(), accelerator, deadline(service)).await,
        Action::Submit { service, request } => {
            submission::submit(service.client(), request, deadline(service)).await
        }
        Action::Start {
            service,
            places,
            in_job,
        } => {
            let result = start::start(service, places, *in_job, deadline(service)).await;
            ended(result)
        }
        Action::Finish { service, places } => {
            let result = finish::finish(service, places, deadline(service)).await;
            ended(result)
        }
        Action::Restore {
            service,
            places,
            all,
        } => ended(restore::restore(service, places, *all)),
        Action::Directives(command) => directives::run(command, deadline(command.service())).await,
        Action::Flush {
            service,
            places,
            every,
        } => finish::flush(service, places, every.map(Duration::from_secs), began).await,
    }
}

/// The files, below `[client]` and `[node]`.
fn print_config(path: &Path, origin: &Origin) -> Result<(), NodeConfigError> {
    let mut shown = Shown::default();
    shown.note(&path.to_string_lossy(), origin);
    ClientConfig::show(path, &mut shown)?;
    NodeConfig::show(&node_toml(path), &mut shown)?;
    show(shown.text().trim_end());
    Ok(())
}

fn node_toml(client_toml: &Path) -> PathBuf {
    client_toml.with_file_name("node.toml")
}

fn ended<E: std::error::Error>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The plugin passes the line to slurmd's log, or to the user at submission.
#[expect(clippy::print_stderr, reason = "the helper's way to speak")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stdout, reason = "what the plugin shows the user")]
fn show(line: &str) {
    println!("{line}");
}
