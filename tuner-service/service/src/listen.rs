//! The service's doors: where requests come in, from which clients, and how long they may take.
//!
//! Nodes and users have doors of their own, with runtimes, connections to the database and places
//! at the credentials' back-end of their own: nothing that users send delays a prolog.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use listenfd::ListenFd;
use rustix::io::FdFlags;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{ListenConfig, StartupError};
use crate::door::{Came, Door, UNPRIVILEGED};
use crate::peers::{Peer, Peers, Place};
use crate::rate_limited_log::Seldom;
use crate::tls::{self, Certificate, Opened, Tls};

/// Longest life of a connection. Our clients open one per request and wait at most 15 s.
const LIFE: Duration = Duration::from_secs(30);

/// Longest wait for a request's headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of a connection's buffer, and so of its headers. The longest token of SACK is half of that.
const BUFFER: usize = 32 * 1024;

/// Pause after connections in excess of the limit. To close some 50,000 a second would take a
/// processor.
const AFTER_TOO_MANY: Duration = Duration::from_millis(4);

/// Bytes of a user's connection that the kernel buffers before they are read: as many as a body may
/// have. By default it buffers megabytes of each.
const USERS_BUFFER: usize = 64 * 1024;

/// The most headers of a request: ours have six.
const HEADERS: usize = 32;

/// Queue of connections (system limit: net.core.somaxconn). TCP retries a dropped one after 1 s.
const BACKLOG: i32 = 4096;

/// The sockets of a door.
#[derive(Debug)]
pub(crate) struct Listeners {
    unix: Vec<std::os::unix::net::UnixListener>,
    tcp: Vec<std::net::TcpListener>,
    any_port: bool,
    host_connections: usize,
}

impl Listeners {
    /// Opens the configured addresses, or takes the sockets that systemd passes. Returns an error
    /// if an address cannot be bound, or another process answers there.
    pub(crate) fn open(config: &ListenConfig) -> Result<(Self, Self), StartupError> {
        let mut nodes = Self::none(config.nodes_any_port, config.host_connections);
        let mut users = Self::none(true, config.host_connections);
        let named = inherit(&mut nodes, &mut users).map_err(StartupError::Inherited)?;
        for (listeners, door, unix, tcp, mode) in [
            (
                &mut nodes,
                Door::Nodes,
                &config.nodes_unix,
                config.nodes_tcp,
                0o600,
            ),
            // Open to every user: each request is authenticated.
            (&mut users, Door::Users, &config.unix, config.tcp, 0o666),
        ] {
            if named.contains(&door.name()) {
                continue;
            }
            if let Some(path) = unix {
                let failed = |source| StartupError::Listen {
                    address: format!("unix:{}", path.display()),
                    source,
                };
                listeners
                    .unix
                    .push(unix_listener(path, mode).map_err(failed)?);
                tracing::info!(address = %path.display(), door = door.name(), "listening");
            }
            if let Some(address) = tcp {
                let failed = |source| StartupError::Listen {
                    address: format!("tcp:{address}"),
                    source,
                };
                listeners.tcp.push(tcp_listener(address).map_err(failed)?);
                tracing::info!(%address, door = door.name(), "listening");
            }
        }
        for listener in &users.tcp {
            // A connection inherits its listener's size (tcp(7)).
            if let Err(error) = SockRef::from(listener).set_recv_buffer_size(USERS_BUFFER) {
                tracing::warn!(%error, "users' connections keep the kernel's buffers");
            }
        }
        if users.is_empty() && nodes.is_empty() {
            return Err(StartupError::NoListener);
        }
        Ok((nodes, users))
    }

    /// Opens the address at which Prometheus reads, if there is one.
    pub(crate) fn of_metrics(config: &ListenConfig) -> Result<Self, StartupError> {
        let mut listeners = Self::none(true, config.host_connections);
        if let Some(address) = config.metrics {
            let opened = tcp_listener(address).map_err(|source| StartupError::Listen {
                address: format!("tcp:{address}"),
                source,
            })?;
            listeners.tcp.push(opened);
            tracing::info!(%address, door = "metrics", "listening");
        }
        Ok(listeners)
    }

    /// The address of the TCP listener.
    #[cfg(test)]
    pub(crate) fn tcp_addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.tcp.iter();
        addresses.map(|one| one.local_addr().unwrap()).collect()
    }

    fn is_empty(&self) -> bool {
        self.unix.is_empty() && self.tcp.is_empty()
    }

    fn none(any_port: bool, host_connections: usize) -> Self {
        Self {
            unix: Vec::new(),
            tcp: Vec::new(),
            any_port,
            host_connections,
        }
    }
}

/// Takes the sockets that systemd holds for the service, by their names. While the service is down
/// no other process can bind them. Returns the names of the doors that were passed.
fn inherit(nodes: &mut Listeners, users: &mut Listeners) -> io::Result<Vec<&'static str>> {
    let mut passed = ListenFd::from_env();
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut taken = Vec::new();
    for index in 0..passed.len() {
        let (door, listeners) = match names.next() {
            Some("nodes") => (Door::Nodes, &mut *nodes),
            Some("users") => (Door::Users, &mut *users),
            other => {
                return Err(io::Error::other(format!(
                    "the passed socket {index} is named {:?}: FileDescriptorName=nodes or users is expected",
                    other.unwrap_or_default()
                )));
            }
        };
        if let Ok(Some(listener)) = passed.take_unix_listener(index) {
            listener.set_nonblocking(true)?;
            rustix::io::fcntl_setfd(listener.as_fd(), FdFlags::CLOEXEC)?;
            listeners.unix.push(listener);
        } else if let Some(listener) = passed.take_tcp_listener(index)? {
            listener.set_nonblocking(true)?;
            rustix::io::fcntl_setfd(listener.as_fd(), FdFlags::CLOEXEC)?;
            listeners.tcp.push(listener);
        }
        tracing::info!(
            door = door.name(),
            "listening on a socket passed by systemd"
        );
        taken.push(door.name());
    }
    Ok(taken)
}

fn tcp_listener(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Binds the socket. Replaces one left by a killed service, but not one that answers.
fn unix_listener(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process answers on this socket",
        ));
    }
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Serves a door until it is stopped, each request with the router of its time; requests in
/// progress are finished.
pub(crate) async fn serve(
    door: Door,
    listeners: Listeners,
    router: watch::Receiver<Router>,
    certificate: Certificate,
    stopping: watch::Receiver<bool>,
) {
    let mut serving = JoinSet::new();
    let peers = Peers::new(door.most(listeners.host_connections, listeners.any_port));
    let any_port = listeners.any_port;
    let listeners = listeners
        .unix
        .into_iter()
        .map(|listener| UnixListener::from_std(listener).map(Listener::Unix))
        .chain(
            listeners
                .tcp
                .into_iter()
                .map(|listener| TcpListener::from_std(listener).map(Listener::Tcp)),
        );
    for listener in listeners {
        let served = Served {
            door,
            any_port,
            peers: Arc::clone(&peers),
            router: router.clone(),
            certificate: certificate.clone(),
            stopping: stopping.clone(),
        };
        match listener {
            Ok(listener) => drop(serving.spawn(served.accept_all(listener))),
            Err(error) => tracing::error!(%error, "a listener cannot be served"),
        }
    }
    while let Some(ended) = serving.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a listener ended badly");
        }
    }
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<(Stream, Came)> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                let came = Came {
                    peer: Peer::User(uid),
                    address: None,
                    is_privileged: uid == 0,
                };
                Ok((Stream::Unix(stream), came))
            }
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // The client may have gone already.
                let _ = stream.set_nodelay(true);
                let came = Came {
                    peer: Peer::at(address),
                    address: Some(address.ip()),
                    is_privileged: address.port() < UNPRIVILEGED,
                };
                Ok((Stream::Tcp(stream), came))
            }
        }
    }
}

struct Served {
    door: Door,
    any_port: bool,
    peers: Arc<Peers>,
    router: watch::Receiver<Router>,
    certificate: Certificate,
    stopping: watch::Receiver<bool>,
}

impl Served {
    async fn accept_all(self, listener: Listener) {
        let mut connections = JoinSet::new();
        let mut stopping = self.stopping.clone();
        let mut too_many: u32 = 0;
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stopping) => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, came)) => {
                        if !self.admit(stream, came, &mut connections) {
                            too_many = too_many.wrapping_add(1);
                            if too_many.is_multiple_of(self.door.closed_at_once()) {
                                tokio::time::sleep(AFTER_TOO_MANY).await;
                            }
                        }
                    }
                    Err(error) => {
                        /// No event reports that file descriptors have become free.
                        const PAUSE: Duration = Duration::from_millis(100);
                        static SAID: Seldom = Seldom::new();
                        if let Some(more) = SAID.now() {
                            tracing::error!(%error, more, "a connection cannot be accepted");
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
        while connections.join_next().await.is_some() {}
    }

    /// A connection in excess of the limit is closed at once: its client takes the service for
    /// down.
    fn admit(&self, stream: Stream, came: Came, connections: &mut JoinSet<()>) -> bool {
        if !self.door.admits(&came, self.any_port) {
            return false;
        }
        let Some(place) = self.peers.place(came.peer) else {
            return false;
        };
        let (router, stopping) = (self.router.clone(), self.stopping.clone());
        match stream {
            Stream::Unix(stream) => {
                connections.spawn(connection(stream, came, router, stopping, place));
            }
            Stream::Tcp(stream) => match self.certificate.borrow().clone() {
                None => drop(connections.spawn(connection(stream, came, router, stopping, place))),
                Some(tls) => {
                    let opened = opened(tls, stream, came, router, stopping, place);
                    connections.spawn(opened);
                }
            },
        }
        true
    }
}

/// Serves one connection where there is a certificate, as its client speaks. The handshake has as
/// long as the headers of a request.
async fn opened(
    tls: Arc<Tls>,
    stream: TcpStream,
    came: Came,
    router: watch::Receiver<Router>,
    mut stopping: watch::Receiver<bool>,
    place: Place,
) {
    let opened = tokio::select! {
        opened = tokio::time::timeout(HEADERS_WITHIN, tls.opened(stream)) => opened,
        () = stopped(&mut stopping) => return,
    };
    let problem = match opened {
        Ok(Ok(Opened::Encrypted(stream))) => {
            return connection(*stream, came, router, stopping, place).await;
        }
        Ok(Ok(Opened::Clear(stream))) => {
            return connection(stream, came, router, stopping, place).await;
        }
        Ok(Ok(Opened::Refused(stream))) => {
            let refusing = watch::channel(tls::refusing()).1;
            connection(stream, came, refusing, stopping, place).await;
            "clear text where [tls] required = true".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no handshake, and nothing else, in time".to_owned(),
    };
    static SAID: Seldom = Seldom::new();
    if let Some(more) = SAID.now() {
        let address = came.address.map(|address| address.to_string());
        tracing::warn!(problem, address, more, "no TLS with a client");
    }
}

/// Serves one connection. It ends after [`LIFE`], even in the middle of a request. Each request
/// has [`Came`] as an extension.
async fn connection<I>(
    stream: I,
    came: Came,
    router: watch::Receiver<Router>,
    mut stopping: watch::Receiver<bool>,
    _place: Place,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(came);
        let router = router.borrow().clone();
        TowerToHyperService::new(router).call(request)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let life = tokio::time::sleep(LIFE);
    tokio::pin!(connection, life);
    let mut told = false;
    loop {
        tokio::select! {
            // A broken connection is for its client to deal with.
            _ = connection.as_mut() => return,
            () = life.as_mut() => return,
            () = stopped(&mut stopping), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone: stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn listeners() -> Listeners {
        Listeners::none(false, 256)
    }

    fn router() -> Router {
        Router::new().route("/", get(|| async { "here" }))
    }

    async fn said(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
        let mut answer = String::new();
        // A connection that is closed at once may be closed before it is written to.
        let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    /// Attack (floods): Connections say nothing, never end a request, or are too many of one user
    /// or host.
    /// Outcome: Each is closed in time, and each may have so many; local root has no limit.
    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_or_drips_is_let_go_of() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut listeners = listeners();
        listeners.unix.push(unix_listener(&path, 0o600).unwrap());
        let (stop, stopping) = watch::channel(false);
        let server = tokio::spawn(serve(
            Door::Users,
            listeners,
            watch::channel(router()).1,
            tls::none(),
            stopping,
        ));

        for said in [
            "",
            "GET / HTT",
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n12",
        ] {
            let began = tokio::time::Instant::now();
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(began.elapsed() <= LIFE + Duration::from_secs(1), "{said:?}");
        }
        let answer = said(UnixStream::connect(&path).await.unwrap()).await;
        assert!(answer.ends_with("here"), "{answer}");
        stop.send(true).unwrap();
        server.await.unwrap();
    }

    /// Attack (service): Users, and root for anything but runs, come to the nodes' door.
    /// Outcome: They are cut off, or told to ask at the users' door.
    #[tokio::test]
    async fn the_nodes_door_is_closed_to_whoever_is_not_root_before_the_first_byte() {
        let mut listeners = listeners();
        let listener = tcp_listener("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        listeners.tcp.push(listener);
        let (_stop, stopping) = watch::channel(false);
        tokio::spawn(serve(
            Door::Nodes,
            listeners,
            watch::channel(router()).1,
            tls::none(),
            stopping,
        ));
        assert_eq!(said(TcpStream::connect(address).await.unwrap()).await, "");
        for peer in [Peer::User(1), Peer::User(1000)] {
            let came = Came {
                peer,
                address: None,
                is_privileged: false,
            };
            assert!(!Door::Nodes.admits(&came, false) && Door::Users.admits(&came, false));
        }
        if nix::unistd::geteuid().is_root() {
            let answer = said(privileged(address).await).await;
            assert!(answer.ends_with("here"), "{answer}");
        }
    }

    async fn privileged(address: SocketAddr) -> TcpStream {
        for port in (512..UNPRIVILEGED).rev() {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            if socket
                .bind(SocketAddr::from(([127, 0, 0, 1], port)))
                .is_ok()
            {
                return socket.connect(address).await.unwrap();
            }
        }
        panic!("no privileged port is free");
    }

    /// A configuration that names nothing to listen on.
    fn nothing() -> ListenConfig {
        ListenConfig {
            unix: None,
            tcp: None,
            nodes_unix: None,
            nodes_tcp: None,
            nodes_any_port: false,
            metrics: None,
            host_connections: 64,
        }
    }

    fn any_port() -> Option<SocketAddr> {
        Some("127.0.0.1:0".parse().unwrap())
    }

    #[test]
    fn a_service_without_the_address_has_no_door_for_metrics() {
        assert!(Listeners::of_metrics(&nothing()).unwrap().is_empty());
        let watched = ListenConfig {
            metrics: any_port(),
            ..nothing()
        };
        let opened = Listeners::of_metrics(&watched).unwrap();
        assert_eq!((opened.tcp.len(), opened.unix.len()), (1, 0));
    }

    #[test]
    fn what_is_configured_is_opened_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let metadata = std::fs::metadata(directory.path().join(name)).unwrap();
            metadata.permissions().mode() & 0o777
        };
        let users_alone = ListenConfig {
            unix: Some(directory.path().join("users")),
            metrics: any_port(),
            ..nothing()
        };
        let (nodes, users) = Listeners::open(&users_alone).unwrap();
        assert!(nodes.is_empty());
        assert_eq!((users.unix.len(), users.tcp.len()), (1, 0));
        assert_eq!(mode("users"), 0o666, "open to every user");
        let both = ListenConfig {
            tcp: any_port(),
            nodes_unix: Some(directory.path().join("nodes")),
            nodes_tcp: any_port(),
            ..nothing()
        };
        let (nodes, users) = Listeners::open(&both).unwrap();
        assert_eq!((nodes.unix.len(), nodes.tcp.len()), (1, 1));
        assert_eq!((users.unix.len(), users.tcp.len()), (0, 1));
        assert_eq!(mode("nodes"), 0o600, "root's alone");
    }

    #[test]
    fn a_service_that_listens_nowhere_or_where_it_cannot_does_not_begin() {
        let refused = Listeners::open(&nothing()).unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("systemd passes no socket: name at least one")
        );
        let taken = tcp_listener(any_port().unwrap()).unwrap();
        let address = taken.local_addr().unwrap();
        let twice = ListenConfig {
            tcp: Some(address),
            ..nothing()
        };
        let refused = Listeners::open(&twice).unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with(&format!("cannot listen on tcp:{address}: "))
        );
        let watched = ListenConfig {
            metrics: Some(address),
            ..nothing()
        };
        assert!(Listeners::of_metrics(&watched).is_err());
    }

    #[test]
    fn a_socket_that_answers_is_not_taken_and_one_left_behind_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let first = unix_listener(&path, 0o600).unwrap();
        assert!(unix_listener(&path, 0o600).is_err());
        drop(first);
        unix_listener(&path, 0o600).unwrap();
    }
}
