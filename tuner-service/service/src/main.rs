//! io-autotuned: the tuner service. This crate is wiring: the engine decides, the store remembers.

#![forbid(unsafe_code)]

mod access;
mod admission;
mod api;
mod assess;
mod config;
mod decide;
mod ineffective;
mod launches;
mod limits;
mod listen;
mod merge;
mod reconcile;
mod replay;
mod retry;
mod slurm;
mod surrogates;
mod timeouts;
mod verdict;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use io_autotune_catalogue::{Catalogue, Change, LiveCatalogue, LiveRules, canonical_name};
use io_autotune_store::Store;
use tokio::sync::{Semaphore, watch};
use tracing_subscriber::EnvFilter;

use crate::access::Access;
use crate::admission::Admissions;
use crate::api::Service;
use crate::config::{Config, StartupError};
use crate::launches::Launches;
use crate::limits::Limits;
use crate::surrogates::SurrogateCaches;

/// Picks the next parametrization for each run of each application, and remembers how it went.
#[derive(Parser)]
#[command(version)]
struct Arguments {
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
    /// Check the configuration, the catalogue and the rules for applications, and exit.
    #[arg(long)]
    check: bool,
    /// Assess all studies without an assessment, from their verdicts alone, and exit. After an upgrade the
    /// running service does so by itself, 100 studies a sweep.
    #[arg(long)]
    assess: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.print_openapi {
        return print_openapi();
    }
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_env("IO_AUTOTUNED_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .json()
        .init();
    allow_open_files();
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "io-autotuned cannot run");
            ExitCode::FAILURE
        }
    }
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

fn print_openapi() -> ExitCode {
    match api::description().to_pretty_json() {
        Ok(text) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

async fn run(arguments: &Arguments) -> Result<(), StartupError> {
    let config = Config::load(&arguments.config)?;
    let rules = Arc::new(LiveRules::open(config.applications.rules.as_deref())?);
    if arguments.check {
        let catalogue = Catalogue::load(&config.accelerators.directory)?;
        return has_default(&catalogue, &config.accelerators.default);
    }
    let catalogue = Arc::new(LiveCatalogue::open(&config.accelerators.directory)?);
    for refused in catalogue.refused() {
        tracing::error!(path = %refused.path.display(), problem = refused.problem, "a catalogue file is refused");
    }
    has_default(&catalogue.current(), &config.accelerators.default)?;
    let store = Store::open(&config.database.url, config.database.connections)?;
    if arguments.assess {
        return Ok(assess::all(&store, &config.study).await?);
    }
    if !migrated(&store).await? {
        return Ok(());
    }

    let credentials = Arc::new(config.signer());
    let hooks = Arc::new(config.slurm.hooks());
    let sources = Arc::new(config.slurm.into_sources());
    let limits = Arc::new(Limits::default());
    let settings = config.study.clone();
    let service = Arc::new(Service {
        store: store.clone(),
        catalogue: Arc::clone(&catalogue),
        rules: Arc::clone(&rules),
        report: config.report,
        default_accelerator: canonical_name(&config.accelerators.default),
        settings: config.study,
        access: Access::new(config.access),
        credentials,
        credential_calls: Arc::new(Semaphore::new(api::CREDENTIAL_CALLS)),
        sources: Arc::clone(&sources),
        hooks: Arc::clone(&hooks),
        limits: Arc::clone(&limits),
        stuck_after: config.reconcile.lost_after(),
        admissions: Admissions::default(),
        surrogates: SurrogateCaches::default(),
        launches: Launches::default(),
    });
    let (stop, stopping) = watch::channel(false);
    let follower = tokio::spawn(follow(catalogue, rules, stopping.clone()));
    let watcher = {
        let stopping = stopping.clone();
        tokio::spawn(async move { hooks.watch(stopping).await })
    };
    let reconciler = tokio::spawn(reconcile::run(
        store.clone(),
        sources,
        limits,
        settings,
        config.reconcile,
        stopping.clone(),
    ));
    let served = listen::serve(api::router(service), &config.listen, stopping, async {
        wait_for_signal().await;
        tracing::info!("stopping: no new requests are taken, those under way are finished");
        // An error means that everything has stopped already.
        let _ = stop.send(true);
    })
    .await;
    for (task, name) in [
        (reconciler, "the reconciler"),
        (follower, "the follower of catalogue and rules"),
        (watcher, "the watcher of Slurm's configuration"),
    ] {
        if let Err(error) = task.await {
            tracing::error!(%error, "{name} ended badly");
        }
    }
    store.close().await;
    served
}

fn has_default(catalogue: &Catalogue, name: &str) -> Result<(), StartupError> {
    catalogue
        .find(name)
        .map(drop)
        .map_err(|problem| StartupError::DefaultAccelerator {
            name: name.to_owned(),
            problem,
        })
}

/// Polls names and times of the files, which works on network file systems too.
async fn follow(
    catalogue: Arc<LiveCatalogue>,
    rules: Arc<LiveRules>,
    mut stopping: watch::Receiver<bool>,
) {
    const EVERY: Duration = Duration::from_secs(1);
    loop {
        tokio::select! {
            _ = stopping.changed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let (catalogue, rules) = (Arc::clone(&catalogue), Arc::clone(&rules));
        let looked = tokio::task::spawn_blocking(move || (catalogue.refresh(), rules.refresh()));
        let Ok((changes, rules)) = looked.await else {
            continue;
        };
        match rules {
            None => {}
            Some(Ok(rules)) => tracing::info!(rules, "rules for applications loaded"),
            Some(Err(refused)) => tracing::error!(
                path = %refused.path.display(), problem = refused.problem,
                "the rules for applications are refused: the last valid ones stay"
            ),
        }
        for change in changes {
            match change {
                Change::Loaded(accelerator) => tracing::info!(accelerator, "accelerator loaded"),
                Change::Gone(accelerator) => tracing::info!(accelerator, "accelerator gone"),
                Change::Refused(refused) => tracing::error!(
                    path = %refused.path.display(), problem = refused.problem,
                    "a catalogue file is refused: what it last described rightly stays"
                ),
            }
        }
    }
}

/// Migrates the schema once the database is up; `false` if told to stop meanwhile.
async fn migrated(store: &Store) -> Result<bool, StartupError> {
    const PAUSE: Duration = Duration::from_secs(1);
    loop {
        match store.migrate().await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_outage() => {
                tracing::warn!(%error, "waiting for the database");
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = wait_for_signal() => return Ok(false),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}
