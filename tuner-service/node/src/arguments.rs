//! The command line: which commands there are, and what each takes. Only the crate's entry uses
//! it.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::directives::Directives;
use crate::enter_cgroup::Within;
use crate::hook::Hook;
use crate::places::Places;
use crate::service_arguments::ServiceArguments;

/// The node helper of io-autotune; the SPANK plugin runs it, people rarely do.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
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

/// The commands by which the helper runs itself; they have no runtime.
#[derive(Subcommand)]
pub(crate) enum Part {
    /// Read one answer of the service from standard input.
    #[command(hide = true)]
    ReadAnswer {
        /// With TLS: `host:port` of the service.
        #[arg(requires = "authority")]
        address: Option<String>,
        /// With TLS: the file of the authorities that are believed.
        authority: Option<PathBuf>,
    },
    /// Move levers while a job runs, as standard input says.
    #[command(hide = true)]
    Agent,
    /// Become a site's program inside a control group.
    #[command(hide = true)]
    Within(Within),
}

/// The commands that the plugin, a site's scripts and units, and admins run; they have a runtime.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Say whether an accelerator exists, or several can be tuned together; exits with 2, and why not, if they cannot.
    Check {
        #[command(flatten)]
        service: ServiceArguments,
        /// The accelerator's name, or the names of several with + between them; else standard input
        /// has them, which other users cannot read.
        #[arg(long)]
        accelerator: Option<String>,
    },
    /// Print one line that says what would happen to a job.
    Submit {
        #[command(flatten)]
        service: ServiceArguments,
        /// The user's request, in canonical form; else standard input has it, which other users
        /// cannot read.
        #[arg(long)]
        request: Option<String>,
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
        /// Put back the settings of every node that runs on this host; only while no job runs there.
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
