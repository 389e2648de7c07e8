//! Serving the API on a Unix socket and on TCP.

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::watch;

use crate::config::{ListenConfig, StartupError};
use crate::timeouts::TimedListener;

pub(crate) async fn serve(
    router: Router,
    config: &ListenConfig,
    stopping: watch::Receiver<bool>,
    stop: impl Future<Output = ()>,
) -> Result<(), StartupError> {
    let mut servers = tokio::task::JoinSet::new();
    if let Some(path) = &config.unix {
        let listener = unix_listener(path)
            .await
            .map_err(|source| StartupError::Listen {
                address: format!("unix:{}", path.display()),
                source,
            })?;
        let server = axum::serve(TimedListener::new(listener), router.clone())
            .with_graceful_shutdown(stopped(stopping.clone()));
        servers.spawn(server.into_future());
        tracing::info!(address = %path.display(), "listening");
    }
    if let Some(address) = config.tcp {
        let listener = tcp_listener(address).map_err(|source| StartupError::Listen {
            address: format!("tcp:{address}"),
            source,
        })?;
        let server = axum::serve(TimedListener::new(listener), router)
            .with_graceful_shutdown(stopped(stopping));
        servers.spawn(server.into_future());
        tracing::info!(%address, "listening");
    }
    stop.await;
    while let Some(ended) = servers.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a listener ended badly");
        }
    }
    Ok(())
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the sender is gone: stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Queue of connections (system limit: net.core.somaxconn). TCP retries a dropped one after 1 s.
const BACKLOG: u32 = 4096;

fn tcp_listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Binds the socket. Replaces one left by a killed service, but not one that answers.
async fn unix_listener(path: &Path) -> std::io::Result<UnixListener> {
    if tokio::net::UnixStream::connect(path).await.is_ok() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::AddrInUse,
            "another process answers on this socket",
        ));
    }
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    // Open to every user: each request is authenticated.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}
