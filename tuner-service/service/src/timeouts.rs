//! A listener with a time limit for each connection, and a limit of connections per user.
//!
//! Any local user can open connections and send nothing. Our clients open one per request and wait at most 15 s.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};

/// Longest life of a connection.
const LIFE: Duration = Duration::from_secs(30);

/// Open connections per local user, except root.
const MOST_OF_A_USER: usize = 256;

/// The connection's user, if known before it sends anything.
pub(crate) trait Peer {
    fn uid(&self) -> Option<u32>;
}

impl Peer for UnixStream {
    fn uid(&self) -> Option<u32> {
        self.peer_cred().ok().map(|credentials| credentials.uid())
    }
}

impl Peer for TcpStream {
    fn uid(&self) -> Option<u32> {
        None
    }
}

type Counts = Arc<Mutex<HashMap<u32, usize>>>;

pub(crate) struct TimedListener<L> {
    listener: L,
    open: Counts,
    most_of_a_user: usize,
}

impl<L> TimedListener<L> {
    pub(crate) fn new(listener: L) -> Self {
        Self {
            listener,
            open: Counts::default(),
            most_of_a_user: MOST_OF_A_USER,
        }
    }

    fn place(&self, uid: Option<u32>) -> Option<Place> {
        let uid = uid.filter(|uid| *uid != 0);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = uid {
            let count = open.entry(uid).or_default();
            if *count >= self.most_of_a_user {
                return None;
            }
            *count += 1;
        }
        Some(Place {
            uid,
            open: Arc::clone(&self.open),
        })
    }
}

impl<L> Listener for TimedListener<L>
where
    L: Listener,
    L::Io: Peer,
{
    type Io = TimedConnection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (io, address) = self.listener.accept().await;
            // One too many is closed at once. Its client takes the service for down.
            if let Some(place) = self.place(io.uid()) {
                let end = Box::pin(sleep(LIFE));
                return (
                    TimedConnection {
                        io,
                        end,
                        _place: place,
                    },
                    address,
                );
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

struct Place {
    uid: Option<u32>,
    open: Counts,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(uid) = self.uid else {
            return;
        };
        if let Some(count) = open.get_mut(&uid) {
            *count -= 1;
            if *count == 0 {
                open.remove(&uid);
            }
        }
    }
}

/// A connection that ends after [`LIFE`], even in the middle of a request.
pub(crate) struct TimedConnection<I> {
    io: I,
    end: Pin<Box<Sleep>>,
    _place: Place,
}

impl<I> TimedConnection<I> {
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready()
    }
}

fn ended<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
}

impl<I: AsyncRead + Unpin> AsyncRead for TimedConnection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_ended(context) {
            return ended();
        }
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for TimedConnection<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.has_ended(context) {
            return ended();
        }
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_ended(context) {
            return ended();
        }
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;

    #[test]
    fn no_user_holds_all_connections_and_root_may() {
        let mut patient = TimedListener::new(());
        patient.most_of_a_user = 2;
        let (first, second) = (patient.place(Some(1000)), patient.place(Some(1000)));
        assert!(first.is_some() && second.is_some());
        assert!(patient.place(Some(1000)).is_none());
        for other in [Some(1001), Some(0), None] {
            let held: Vec<_> = (0..2).map(|_| patient.place(other)).collect();
            assert!(held.iter().all(Option::is_some));
        }
        assert!(
            (0..9)
                .map(|_| patient.place(Some(0)))
                .all(|place| place.is_some())
        );
        drop(first);
        assert!(patient.place(Some(1000)).is_some());
        drop(second);
        assert!(patient.open.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_or_drips_is_let_go_of() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = TimedListener::new(UnixListener::bind(&path).unwrap());
        let router = Router::new().route("/", get(|| async { "here" }));
        let server = tokio::spawn(axum::serve(listener, router).into_future());

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
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        server.abort();
    }
}
