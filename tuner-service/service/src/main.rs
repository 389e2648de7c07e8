//! io-autotuned: the tuner service. This crate is wiring: the engine decides, the store remembers.

#![forbid(unsafe_code)]

mod access;
mod admission;
mod api;
mod assess;
mod config;
mod decide;
mod door;
mod heard;
mod hosts;
mod launches;
mod limits;
mod listen;
mod merge;
mod metrics;
mod peers;
mod plain;
mod quota;
mod reader;
mod reconcile;
mod reload;
mod replay;
mod retention;
mod retry;
mod seldom;
mod sharing;
mod slurm;
mod supervisor;
mod surrogates;
mod verdict;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use io_autotune_catalogue::{Catalogue, LiveCatalogue, LiveRules, canonical_name};
use io_autotune_configuration::Origin;
use io_autotune_store::{Audit, Store, StoreOptions};
use nix::unistd::Uid;
use sd_notify::NotifyState;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tracing_subscriber::EnvFilter;

use crate::access::Access;
use crate::api::Service;
use crate::config::{Config, StartupError};
use crate::door::Door;
use crate::listen::Listeners;
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::reload::{Doorway, Reloading};
use crate::sharing::Sharing;

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
}

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if arguments.print_openapi {
        return print_openapi();
    }
    if arguments.print_config {
        return print_config(&arguments, &matches);
    }
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_env("IO_AUTOTUNED_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .json()
        .init();
    allow_open_files();
    match run_both(&arguments) {
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

fn print_config(arguments: &Arguments, matches: &ArgMatches) -> ExitCode {
    let origin = Origin::of(matches, "config", "IO_AUTOTUNED_CONFIG");
    match Config::shown(&arguments.config, &origin) {
        Ok(text) => {
            let _ = write!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
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

/// The share of the processors that what users ask may keep busy, and one at least: a prolog finds
/// another that is free.
const USERS_SHARE: usize = 4;

/// Nodes' door and the service's own work have one runtime, users' door another.
fn run_both(arguments: &Arguments) -> Result<(), StartupError> {
    let nodes = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(StartupError::Runtime)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let users = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((processors / USERS_SHARE).max(1))
        .thread_name("users")
        .enable_all()
        .build()
        .map_err(StartupError::Runtime)?;
    let ran = nodes.block_on(run(arguments, users.handle()));
    // Calls of a back-end that hangs are not waited for.
    users.shutdown_background();
    nodes.shutdown_background();
    ran
}

async fn run(arguments: &Arguments, users: &Handle) -> Result<(), StartupError> {
    if let Some(url) = &arguments.migrate {
        return Ok(Store::open(url, StoreOptions::default())?.migrate().await?);
    }
    // From the first moment on: without a handler it would end the service.
    let hangup = signal(SignalKind::hangup()).map_err(StartupError::Runtime)?;
    let config = Config::load(&arguments.config)?;
    let rules = Arc::new(LiveRules::open(config.applications.rules.as_deref())?);
    if arguments.check {
        let catalogue = Catalogue::load(&config.accelerators.directory)?;
        config.can_be_chosen(&catalogue)?;
        return config.has_default(&catalogue);
    }
    let catalogue = Arc::new(LiveCatalogue::open(&config.accelerators.directory)?);
    for refused in catalogue.refused() {
        tracing::error!(path = %refused.path.display(), problem = refused.problem, "a catalogue file is refused");
    }
    config.has_default(&catalogue.current())?;
    // Its file may be mended while the service runs, as any.
    if let Err(error) = config.can_be_chosen(&catalogue.current()) {
        tracing::error!(%error, "an accelerator is never chosen");
    }
    let options = StoreOptions {
        connections: config.database.connections,
        most_studies: config.users.studies,
        reads_sources: config.reads_sources(),
        ..StoreOptions::default()
    };
    let store = Store::open(&config.database.url, options)?;
    if arguments.assess {
        return Ok(assess::all(&store, &config.study).await?);
    }
    if let Some(mapping) = &arguments.map_cluster {
        return map_cluster(&store, &config.slurm.names(), mapping).await;
    }
    if !migrated(&store, &config.slurm.names()).await? {
        return Ok(());
    }

    let (nodes_listeners, users_listeners) = Listeners::open(&config.listen)?;
    let metrics_listeners = Listeners::of_metrics(&config.listen)?;
    let metrics = Arc::new(Metrics::default());
    let credentials = Arc::new(config.signer());
    let clusters = config.slurm.clusters(config.access.check_origins);
    let associations = clusters.iter();
    let associations = associations.filter_map(|cluster| cluster.associations.clone());
    let associations: Arc<[_]> = associations.collect();
    let sharing = Arc::new(Sharing::new(
        config.sharing.clone(),
        Arc::clone(&associations),
    ));
    let nodes_service = Service {
        door: Door::Nodes,
        store: store.clone(),
        credential_calls: Arc::new(Semaphore::new(api::CREDENTIAL_CALLS)),
        long_bodies: Arc::new(Semaphore::new(api::LONG_BODIES)),
        surrogates: Arc::default(),
        ready: Arc::default(),
        quotas: Arc::new(Quotas::new(config.users)),
        most_studies: config.users.studies,
        catalogue: Arc::clone(&catalogue),
        rules: Arc::clone(&rules),
        report: config.report.clone(),
        default_accelerator: canonical_name(&config.accelerators.default),
        otherwise: config.accelerators.otherwise.clone().into(),
        settings: config.study.clone(),
        access: Arc::new(Access::new(
            config.access.clone(),
            Arc::clone(&associations),
        )),
        credentials,
        clusters: Arc::clone(&clusters),
        associations,
        sharing: Arc::clone(&sharing),
        stuck_after: config.reconcile.lost_after(),
        retention: config.retention,
        admissions: Arc::default(),
        launches: Arc::default(),
        hosts: Arc::default(),
        metrics: Arc::clone(&metrics),
    };
    let users_store = Store::open(
        &config.database.url,
        StoreOptions {
            connections: config.database.user_connections,
            statement_timeout: USERS_STATEMENT_TIMEOUT,
            ..options
        },
    )?;
    let users_service = Service {
        door: Door::Users,
        store: users_store.clone(),
        credential_calls: Arc::new(Semaphore::new(api::USERS_CREDENTIAL_CALLS)),
        long_bodies: Arc::new(Semaphore::new(api::LONG_BODIES)),
        surrogates: Arc::default(),
        ..nodes_service.clone()
    };
    let (stop, stopping) = watch::channel(false);
    let (nodes_doorway, nodes_router) = Doorway::new(nodes_service);
    let (users_doorway, users_router) = Doorway::new(users_service);
    let (reconciled, as_reconciled) = watch::channel(config.reconciled());
    let reloading = Reloading {
        path: arguments.config.clone(),
        in_force: config,
        catalogue,
        rules,
        doorways: [nodes_doorway, users_doorway],
        reconciled,
        metrics: Arc::clone(&metrics),
    };
    let follower = tokio::spawn(reloading.follow(hangup, stopping.clone()));
    let sharer = {
        let (store, stopping) = (store.clone(), stopping.clone());
        let reconciled = as_reconciled.clone();
        tokio::spawn(async move { sharing.watch(store, reconciled, stopping).await })
    };
    let mut of_clusters = Vec::new();
    for (place, cluster) in clusters.iter().enumerate() {
        let reconciling = reconcile::run(
            store.clone(),
            Arc::clone(cluster),
            place == 0,
            as_reconciled.clone(),
            stopping.clone(),
        );
        of_clusters.push((tokio::spawn(reconciling), "a reconciler"));
        let (cluster, stopping) = (Arc::clone(cluster), stopping.clone());
        let watching = async move { cluster.watch(stopping).await };
        of_clusters.push((tokio::spawn(watching), "a watcher of Slurm"));
    }
    let nodes_door = tokio::spawn(listen::serve(
        Door::Nodes,
        nodes_listeners,
        nodes_router,
        stopping.clone(),
    ));
    let users_door = users.spawn(listen::serve(
        Door::Users,
        users_listeners,
        users_router,
        stopping.clone(),
    ));
    let metrics_door = users.spawn(listen::serve(
        Door::Users,
        metrics_listeners,
        watch::channel(metrics::router(metrics, users_store.clone())).1,
        stopping.clone(),
    ));
    let watched = tokio::spawn(supervisor::watched(users.clone(), stopping));
    supervisor::tell(&[NotifyState::Ready]);
    wait_for_signal().await;
    supervisor::tell(&[NotifyState::Stopping]);
    tracing::info!("stopping: no new requests are taken, those under way are finished");
    // An error means that everything has stopped already.
    let _ = stop.send(true);
    for (task, name) in [
        (nodes_door, "nodes' door"),
        (users_door, "users' door"),
        (metrics_door, "the metrics' door"),
        (watched, "the watchdog"),
        (follower, "the follower of the site's files"),
        (sharer, "the watcher of who shares studies"),
    ]
    .into_iter()
    .chain(of_clusters)
    {
        if let Err(error) = task.await {
            tracing::error!(%error, "{name} ended badly");
        }
    }
    users_store.close().await;
    store.close().await;
    Ok(())
}

/// Users' reads are bounded by pages; what takes longer is given up before its asker gives up.
const USERS_STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Migrates the schema once the database is up, or waits until its owner has, and prepares it for the
/// clusters; `false` if told to stop meanwhile. To end instead would be to start again every other second.
async fn migrated(store: &Store, clusters: &[String]) -> Result<bool, StartupError> {
    const PAUSE: Duration = Duration::from_secs(1);
    let mut told = String::new();
    let prepare = async || {
        store.migrate().await?;
        store.serve_clusters(clusters).await
    };
    loop {
        match prepare().await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_outage() || error.is_for_the_owner() => {
                let now = error.to_string();
                if now != told {
                    tracing::warn!(%error, "waiting for the database");
                    supervisor::tell(&[NotifyState::Status("waiting for the database")]);
                }
                told = now;
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = wait_for_signal() => return Ok(false),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
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
    let audit = Audit {
        uid: Uid::current().as_raw(),
        why: "io-autotuned --map-cluster",
    };
    let studies = store.map_cluster(from, to, audit).await?;
    tracing::info!(studies, from, to, "studies were given to a cluster");
    Ok(())
}

async fn wait_for_signal() {
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
