//! The command line, and the actions that end without serving: printing, checking, migrating,
//! mapping.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgMatches, Parser};
use io_autotune_catalogue::{
    Catalogue, LiveCatalogue, LiveRules, RulesFileError, in_file, left_out,
};
use io_autotune_configuration::Origin;
use io_autotune_console as console;
use io_autotune_store::{Audit, DatabaseUrl, Store, StoreOptions};
use jiff::Timestamp;
use nix::unistd::Uid;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::api;
use crate::assembly::{Assembly, SiteFiles};
use crate::assess;
use crate::config::{Config, StartupError};
use crate::forget::{ForgetArguments, forget};
use crate::log;
use crate::serve::{migrated, serve};
use crate::tls::{Holds, TlsConfig};

/// Picks the next parametrization for each run of each application, and remembers how it went.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// The configuration file.
    #[arg(
        long,
        env = "IO_AUTOTUNED_CONFIG",
        default_value = "/etc/io-autotune/service.toml"
    )]
    config: PathBuf,
    /// Print the API's description (OpenAPI 3.1, JSON) and exit.
    #[arg(long)]
    print_openapi: bool,
    /// Print the configuration in force, and where each value is from, and exit.
    #[arg(long)]
    print_config: bool,
    /// Check the configuration, the catalogue and the rules for applications, and exit.
    #[arg(long)]
    check: bool,
    /// Assess all studies without an assessment, from their verdicts alone, and exit. After an upgrade the
    /// running service does so by itself, 100 studies a sweep.
    #[arg(long)]
    assess: bool,
    /// Say which of service.toml's clusters the studies are of that are older than clusters are known, or that were of
    /// another, which has a new name; and exit. The service must not run.
    #[arg(long, value_name = "[OLD=]NAME")]
    map_cluster: Option<String>,
    /// Bring the database's schema up to date as the role in this URL, and exit. The service's own role may not.
    #[arg(long, value_name = "URL")]
    migrate: Option<String>,
    #[command(flatten)]
    forgetting: ForgetArguments,
}

impl Arguments {
    /// True if the reader sits at a terminal: text, and no log.
    fn are_answered_in_text(&self) -> bool {
        self.check || self.forgetting.forget.is_some()
    }
}

/// Reads the command line and carries it out: serves until a signal stops it, or does one thing and
/// ends.
#[must_use]
pub fn run() -> ExitCode {
    console::survive_file_size_limit();
    let (arguments, matches) = match console::arguments::<Arguments>() {
        Ok(read) => read,
        Err(status) => return status,
    };
    if arguments.print_openapi {
        return print_openapi();
    }
    if arguments.print_config {
        return print_config(&arguments, &matches);
    }
    if !arguments.are_answered_in_text() {
        log_as_json();
    }
    allow_open_files();
    match carry_out(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if arguments.are_answered_in_text() => {
            console::say(&error.to_string());
            ExitCode::FAILURE
        }
        Err(error) => {
            tracing::error!(%error, "io-autotuned cannot run");
            ExitCode::FAILURE
        }
    }
}

fn log_as_json() {
    let filter =
        EnvFilter::try_from_env("IO_AUTOTUNED_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    log::subscriber(filter, std::io::stderr).init();
}

/// A connection per request: a job on ten thousand nodes makes as many at once. The soft limit is
/// 1024 only because of select(2).
fn allow_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

fn print_config(arguments: &Arguments, matches: &ArgMatches) -> ExitCode {
    let origin = Origin::of(matches, "config", "IO_AUTOTUNED_CONFIG");
    match Config::shown(&arguments.config, &origin) {
        Ok(text) => console::ended(console::print(&text)),
        Err(error) => console::ended(Err(error)),
    }
}

/// Reads the site's other files, and warns about those that it does not read although they may be
/// meant. Returns an error with everything that is wrong in all of them, one mistake a line.
fn check(config: &Config) -> Result<(), StartupError> {
    let rules = LiveRules::open(config.applications.rules.as_deref());
    let mut problems: Vec<String> = rules
        .err()
        .map(|error| in_lines(&error))
        .into_iter()
        .collect();
    match Catalogue::load(&config.accelerators.directory) {
        Ok(catalogue) => {
            let chosen = [
                config.can_be_chosen(&catalogue),
                config.has_default(&catalogue),
            ];
            problems.extend(
                chosen
                    .into_iter()
                    .filter_map(Result::err)
                    .map(|error| error.to_string()),
            );
        }
        Err(errors) => problems.push(errors.to_string()),
    }
    match config.tls.as_ref().map(TlsConfig::load) {
        Some(Ok(tls)) if tls.holds(Timestamp::now()) == Holds::No => {
            problems.push(tls.has_run_out());
        }
        Some(Err(error)) => problems.push(error.to_string()),
        _ => {}
    }
    if !problems.is_empty() {
        return Err(StartupError::Check(problems.join("\n")));
    }
    for path in left_out(&config.accelerators.directory).unwrap_or_default() {
        let line = format!(
            "{}: not read: name it with letters, digits, '.', '_' and '-' alone, then .toml\n",
            path.display()
        );
        console::print(&line).map_err(|lost| StartupError::Check(lost.to_string()))?;
    }
    Ok(())
}

fn in_lines(error: &RulesFileError) -> String {
    match error {
        RulesFileError::File { path, source } => in_file(path, &source.0),
        other => format!("[applications] rules: {other}"),
    }
}

fn print_openapi() -> ExitCode {
    match api::description().to_pretty_json() {
        Ok(text) => console::ended(console::print(&format!("{text}\n"))),
        Err(error) => console::ended(Err(error)),
    }
}

/// Users' requests may occupy one processor in this many, and at least one: a prolog finds another
/// that is free.
const USERS_SHARE: usize = 4;

/// Carries out the command line. The nodes' door and the service's own work have one runtime, the
/// users' door another.
fn carry_out(arguments: &Arguments) -> Result<(), StartupError> {
    let nodes = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(StartupError::Runtime)?;
    let users = users_runtime().map_err(StartupError::Runtime)?;
    let ran = nodes.block_on(chosen(arguments, users.handle()));
    // Calls of a back-end that hangs are not waited for.
    users.shutdown_background();
    nodes.shutdown_background();
    ran
}

fn users_runtime() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads((processors / USERS_SHARE).max(1))
        .thread_name("users")
        .enable_all()
        .build()
}

pub(crate) async fn chosen(arguments: &Arguments, users: &Handle) -> Result<(), StartupError> {
    if let Some(url) = &arguments.migrate {
        return migrate(url).await;
    }
    if let Some(user) = &arguments.forgetting.forget {
        let told = forget(user, &arguments.forgetting).await?;
        return console::print(&told).map_err(|lost| StartupError::Check(lost.to_string()));
    }
    // From the first moment on: without a handler it would end the service.
    let hangup = signal(SignalKind::hangup()).map_err(StartupError::Runtime)?;
    if arguments.check {
        let (config, earlier) = Config::checked(&arguments.config)?;
        for said in earlier {
            let printed = console::print(&format!("{said}\n"));
            printed.map_err(|lost| StartupError::Check(lost.to_string()))?;
        }
        config.database.url.check_files()?;
        return check(&config);
    }
    let config = Config::load(&arguments.config)?;
    config.database.url.check_files()?;
    let rules = Arc::new(LiveRules::open(config.applications.rules.as_deref())?);
    let catalogue = Arc::new(LiveCatalogue::open(&config.accelerators.directory)?);
    for refused in catalogue.refused() {
        tracing::error!(path = %refused.path.display(), problem = refused.problem, "a catalogue file is refused");
    }
    config.has_default(&catalogue.current())?;
    // Its file may be mended while the service runs, as any.
    if let Err(error) = config.can_be_chosen(&catalogue.current()) {
        tracing::error!(%error, "an accelerator is never chosen");
    }
    let store = Assembly::open_store(&config);
    if arguments.assess {
        return Ok(assess::all(&store, &config.study.settings()).await?);
    }
    if let Some(mapping) = &arguments.map_cluster {
        return map_cluster(&store, &config.slurm.names(), mapping).await;
    }
    if !migrated(&store, &config.slurm.names()).await? {
        return Ok(());
    }
    let credentials = Arc::new(config.signer());
    let files = SiteFiles {
        path: arguments.config.clone(),
        catalogue,
        rules,
    };
    let assembly = Assembly::new(config, files, store, credentials)?;
    serve(assembly, hangup, users).await
}

async fn migrate(url: &str) -> Result<(), StartupError> {
    let url: DatabaseUrl = url.parse().map_err(StartupError::MigrateUrl)?;
    url.check_files().map_err(StartupError::MigrateUrl)?;
    Ok(Store::of(url, StoreOptions::default()).migrate().await?)
}

async fn map_cluster(
    store: &Store,
    clusters: &[String],
    mapping: &str,
) -> Result<(), StartupError> {
    let (from, to) = match mapping.split_once('=') {
        Some((from, to)) => (Some(from), to),
        None => (None, mapping),
    };
    if !clusters.iter().any(|name| name == to) {
        let there = clusters.join(", ");
        return Err(StartupError::NoCluster(to.to_owned(), there));
    }
    store.migrate().await?;
    let audit = Audit::unbounded(Uid::current().as_raw(), "io-autotuned --map-cluster");
    let studies = store.map_cluster(from, to, audit).await?;
    tracing::info!(studies, from, to, "studies were given to a cluster");
    Ok(())
}
