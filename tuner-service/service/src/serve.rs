//! The running service: it opens its doors, sweeps, and ends on a signal.

use std::sync::Arc;
use std::time::Duration;

use io_autotune_store::Store;
use sd_notify::NotifyState;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::assembly::Assembly;
use crate::config::StartupError;
use crate::door::Door;
use crate::listen::{self, Listeners};
use crate::metrics;
use crate::supervisor;
use crate::tls;

/// Listens and sweeps until a signal stops it. `hangup` makes it read the configuration again;
/// `users` is the runtime for users' requests.
pub(crate) async fn serve(
    assembly: Assembly,
    hangup: Signal,
    users: &Handle,
) -> Result<(), StartupError> {
    let listen = &assembly.config.listen;
    let (nodes_listeners, users_listeners) = Listeners::open(listen)?;
    let metrics_listeners = Listeners::of_metrics(listen)?;
    let (store, users_store) = (assembly.store.clone(), assembly.users_store.clone());
    let sharing = Arc::clone(&assembly.nodes.sharing);
    let clusters = Arc::clone(&assembly.nodes.clusters);
    let metrics = Arc::clone(&assembly.nodes.metrics);
    let apart = Arc::clone(&assembly.nodes.apart);
    let certificate = assembly.nodes.certificate.clone();
    let reconciliations = assembly.reconciliations(&assembly.config.reconciled());
    let (reloading, routers, reconciled) = assembly.reloading();

    let (stop, stopping) = watch::channel(false);
    let follower = tokio::spawn(reloading.follow(hangup, stopping.clone()));
    let sharer = {
        let (store, stopping) = (store.clone(), stopping.clone());
        let (apart, reconciled) = (Arc::clone(&apart), reconciled.clone());
        tokio::spawn(async move { sharing.watch(store, apart, reconciled, stopping).await })
    };
    let mut of_clusters = Vec::new();
    for (reconciliation, cluster) in reconciliations.into_iter().zip(clusters.iter()) {
        let reconciling = reconciliation.go_on(reconciled.clone(), stopping.clone());
        of_clusters.push((tokio::spawn(reconciling), "a reconciler"));
        let (cluster, stopping) = (Arc::clone(cluster), stopping.clone());
        let watching = async move { cluster.watch(stopping).await };
        of_clusters.push((tokio::spawn(watching), "a watcher of Slurm"));
    }
    let nodes_door = tokio::spawn(listen::serve(
        Door::Nodes,
        nodes_listeners,
        routers.nodes,
        certificate.clone(),
        stopping.clone(),
    ));
    let users_door = users.spawn(listen::serve(
        Door::Users,
        users_listeners,
        routers.users,
        certificate,
        stopping.clone(),
    ));
    let metrics_door = users.spawn(listen::serve(
        Door::Users,
        metrics_listeners,
        watch::channel(metrics::router(metrics, users_store.clone(), apart)).1,
        tls::none(),
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

/// Migrates the schema once the database is up, or waits until its owner has done so, and prepares
/// it for the clusters; returns false if a signal came in between. To end instead would mean a
/// restart every other second.
pub(crate) async fn migrated(store: &Store, clusters: &[String]) -> Result<bool, StartupError> {
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
                let now = error.with_remedy();
                if now != told {
                    tracing::warn!(error = now, "waiting for the database");
                    let status = format!("waiting for the database: {error}");
                    supervisor::tell(&[NotifyState::Status(&status)]);
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
