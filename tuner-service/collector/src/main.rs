//! io-autotune-collector: delivers the job-completion script's records from slurmctld's host to the
//! tuner service.
//!
//! It has an account of its own, named in `[access] collectors` of the service, and is not root:
//! the service believes root about any run, and this program only needs to be believed about
//! outcomes.

#![forbid(unsafe_code)]

mod delivery;
mod files;
mod line;
mod spool;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use io_autotune_protocol::{
    Call, Client, ClientConfig, ClientError, Method, Outcome, OutcomesAnswer, OutcomesRequest,
    block_on,
};
use jiff::tz::TimeZone;

use delivery::{Collector, NotTaken, PassError, Service};
use files::StateDirectory;

/// Deliver what Slurm's job-completion script has written; run it on slurmctld's host, not as root.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Slurm's ClusterName.
    #[arg(long)]
    cluster: String,
    /// How the service is reached.
    #[arg(
        long,
        env = "IO_AUTOTUNE_CONFIG",
        default_value = "/etc/io-autotune/client.toml"
    )]
    config: PathBuf,
    /// Where the script appends.
    #[arg(long, default_value = "/var/spool/io-autotune-jobcomp")]
    spool_dir: PathBuf,
    /// Where the collector keeps how far it has got.
    #[arg(long, default_value = "/var/lib/io-autotune-collector")]
    state_dir: PathBuf,
    /// Go on, every so many seconds, until told to stop.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Milliseconds for one request, munge and connecting included.
    #[arg(long, default_value_t = 10_000)]
    deadline_ms: u64,
}

struct Remote {
    client: Client,
    cluster: String,
    deadline: Duration,
}

impl Service for Remote {
    async fn deliver(&self, outcomes: Vec<Outcome>) -> Result<(), NotTaken> {
        let body = OutcomesRequest {
            cluster: self.cluster.clone(),
            outcomes,
        };
        let call = Call {
            method: Method::Post,
            path: "/v1/outcomes",
            body: Some(&body),
            idempotent: true,
        };
        match self
            .client
            .call::<_, OutcomesAnswer>(call, self.deadline)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if is_about_content(&error) => Err(NotTaken::Refused(error)),
            Err(error) => Err(NotTaken::Later(error)),
        }
    }
}

/// Whether the service can never take these outcomes, whoever sends them.
fn is_about_content(error: &ClientError) -> bool {
    // Bad request, content too large, unprocessable content.
    matches!(
        error,
        ClientError::Refused {
            status: 400 | 413 | 422,
            ..
        }
    )
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if nix::unistd::geteuid().is_root() {
        say(
            "refusing to run as root: the service believes root about any job's run, and a collector is to be \
             believed about outcomes only; run it as the account that [access] collectors of service.toml names",
        );
        return ExitCode::FAILURE;
    }
    block_on(run(arguments)).unwrap_or_else(|error| {
        say(&format!("cannot start: {error}"));
        ExitCode::FAILURE
    })
}

async fn run(arguments: Arguments) -> ExitCode {
    let client = match ClientConfig::load(&arguments.config).and_then(|config| Client::new(&config))
    {
        Ok(client) => client,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let state = StateDirectory::new(&arguments.state_dir);
    let mut collector = match Collector::open(arguments.spool_dir, state, say) {
        Ok(collector) => collector,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let service = Remote {
        client,
        cluster: arguments.cluster,
        deadline: Duration::from_millis(arguments.deadline_ms),
    };
    match arguments.every {
        None => match pass(&mut collector, &service).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&error.to_string());
                ExitCode::FAILURE
            }
        },
        Some(seconds) => until_told(collector, &service, Duration::from_secs(seconds)).await,
    }
}

/// Passes until SIGTERM. The next start continues an interrupted pass.
async fn until_told(mut collector: Collector, service: &Remote, every: Duration) -> ExitCode {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            say(&format!("cannot wait for SIGTERM: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let passes = async {
        let mut problem = None;
        loop {
            ticks.tick().await;
            let now = pass(&mut collector, service).await.err();
            let now = now.map(|error| error.to_string());
            // Log a problem's begin and end, not every second.
            match (&problem, &now) {
                (None, Some(now)) => say(now),
                (Some(_), None) => say("outcomes are delivered again"),
                _ => {}
            }
            problem = now;
        }
    };
    tokio::select! {
        _ = terminate.recv() => ExitCode::SUCCESS,
        () = passes => ExitCode::FAILURE,
    }
}

async fn pass(collector: &mut Collector, service: &Remote) -> Result<(), PassError> {
    // The script's days are UTC's too.
    let today = jiff::Timestamp::now().to_zoned(TimeZone::UTC).date();
    collector.pass(service, today).await
}

#[expect(clippy::print_stderr, reason = "the collector's way to speak")]
fn say(line: &str) {
    eprintln!("{line}");
}
