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

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Parser};
use io_autotune_configuration::{Origin, Shown};
use io_autotune_console::{self as console, say};
use io_autotune_protocol::{
    Call, Client, ClientConfig, ClientError, ConfigError, Outcome, OutcomesAnswer, OutcomesRequest,
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
    /// Print the configuration in force, and where each value is from, and exit.
    #[arg(long)]
    print_config: bool,
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
        let call = Call::post("/v1/outcomes", &body);
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

/// Returns true if the service can never accept these outcomes, whoever sends them.
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
    console::survive_file_size_limit();
    let (arguments, matches) = match console::arguments::<Arguments>() {
        Ok(read) => read,
        Err(status) => return status,
    };
    if arguments.print_config {
        return match shown(&arguments, &matches) {
            Ok(text) => console::ended(console::print(&text)),
            Err(error) => console::ended(Err(error)),
        };
    }
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

/// The configuration of the file, below `[client]`, and the options, below `[collector]`.
fn shown(arguments: &Arguments, matches: &ArgMatches) -> Result<String, ConfigError> {
    let origin = |option| Origin::of(matches, option, "IO_AUTOTUNE_CONFIG");
    let mut shown = Shown::default();
    shown.note(&arguments.config.to_string_lossy(), &origin("config"));
    let path = |path: &Path| path.to_string_lossy().into_owned().into();
    let number = |number| i64::try_from(number).unwrap_or(i64::MAX).into();
    let mut options = vec![
        (
            "cluster",
            arguments.cluster.clone().into(),
            origin("cluster"),
        ),
        (
            "deadline_ms",
            number(arguments.deadline_ms),
            origin("deadline_ms"),
        ),
        ("spool_dir", path(&arguments.spool_dir), origin("spool_dir")),
        ("state_dir", path(&arguments.state_dir), origin("state_dir")),
    ];
    if let Some(every) = arguments.every {
        options.push(("every", number(every), origin("every")));
    }
    shown.options("collector", &options);
    ClientConfig::show(&arguments.config, &mut shown)?;
    Ok(shown.text())
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
            // Only the begin and the end of a problem are logged, not every second of it.
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
    // The script's days are days of UTC too.
    let today = jiff::Timestamp::now().to_zoned(TimeZone::UTC).date();
    collector.pass(service, today).await
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;

    #[test]
    fn what_is_in_force_says_where_it_is_from() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("client.toml");
        let sample = include_str!("../../../deploy/etc/client.toml");
        std::fs::write(&config, sample).unwrap();
        let path = config.to_str().unwrap();
        let matches = Arguments::command().get_matches_from([
            "io-autotune-collector",
            "--cluster=c",
            "--every=10",
            "--config",
            path,
        ]);
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        let text = shown(&arguments, &matches).unwrap();
        for line in [
            "cluster = \"c\" # command line: --cluster",
            "every = 10 # command line: --every",
            "deadline_ms = 10000 # default",
            &format!("# {path} (command line: --config)"),
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
        let client = toml::from_str::<toml::Table>(&text).unwrap()["client"].clone();
        assert_eq!(
            client.try_into::<ClientConfig>().unwrap(),
            ClientConfig::load(&config).unwrap()
        );
    }
}
