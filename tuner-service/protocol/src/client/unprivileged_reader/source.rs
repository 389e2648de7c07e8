//! What a reader reads: a connection in clear text, or one with TLS, which it also writes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use tokio_rustls::rustls::ClientConnection;

use super::Unread;
use crate::tls;

/// A connection of which an answer is read.
pub(super) trait Source {
    /// The number of bytes read; 0 at the end. Waits until there are some.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Unread>;
}

pub(super) struct Clear(pub(super) File);

impl Source for Clear {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Unread> {
        loop {
            match self.0.read(into) {
                Ok(length) => return Ok(length),
                Err(error) if is_passing(&error) => drop(wait(&self.0, PollFlags::POLLIN)),
                Err(_) => return Err(Unread::Ended),
            }
        }
    }
}

/// Returns true if the same call may succeed later. The file description is shared with root, which
/// has made it non-blocking.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Waits until one of these can be done, or the connection has failed.
fn wait(connection: &File, events: PollFlags) -> PollFlags {
    let mut waiting = [PollFd::new(connection.as_fd(), events)];
    let _ = ppoll(&mut waiting, None, None);
    waiting[0].revents().unwrap_or(PollFlags::empty())
}

/// A connection with TLS, over which a request is on its way.
pub(super) struct Encrypted {
    session: ClientConnection,
    connection: File,
    /// False once the peer takes nothing more: its answer may be there all the same.
    writes: bool,
}

impl Encrypted {
    /// The system calls that TLS makes besides reading, writing and waiting: records that are
    /// written together, memory, random numbers, and the time against which a certificate is held.
    pub(super) const CALLS: [i64; 6] = [
        libc::SYS_writev,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_mremap,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
    ];

    /// Reads the authorities, and has the request ready. Nothing is sent or received before the
    /// first [`read`](Source::read).
    pub(super) fn begun(
        connection: File,
        address: &str,
        authority: &Path,
        request: &[u8],
    ) -> Result<Self, Unread> {
        let of_tls = |error: &dyn std::fmt::Display| Unread::Tls(error.to_string());
        let config = tls::config(authority).map_err(|error| of_tls(&error))?;
        let name = tls::name(address).ok_or_else(|| of_tls(&"the service has no name"))?;
        let mut session = ClientConnection::new(config, name).map_err(|error| of_tls(&error))?;
        session.set_buffer_limit(None);
        let written = session.writer().write_all(request);
        written.map_err(|error| of_tls(&error))?;
        Ok(Self {
            session,
            connection,
            writes: true,
        })
    }

    /// Writes and reads once, whatever the connection is ready for.
    fn go_on(&mut self) -> Result<(), Unread> {
        let mut events = PollFlags::POLLIN;
        events.set(
            PollFlags::POLLOUT,
            self.writes && self.session.wants_write(),
        );
        let ready = wait(&self.connection, events);
        if ready.contains(PollFlags::POLLOUT) {
            match self.session.write_tls(&mut self.connection) {
                Err(error) if !is_passing(&error) => self.writes = false,
                _ => {}
            }
        }
        if !ready.intersects(!PollFlags::POLLOUT) {
            return Ok(());
        }
        match self.session.read_tls(&mut self.connection) {
            Ok(_) => self
                .session
                .process_new_packets()
                .map(drop)
                .map_err(|error| {
                    // The alert tells the service's log why.
                    let _ = self.session.write_tls(&mut self.connection);
                    Unread::Tls(tls::problem(&error))
                }),
            Err(error) if is_passing(&error) => Ok(()),
            Err(_) => Err(Unread::Ended),
        }
    }
}

impl Source for Encrypted {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Unread> {
        loop {
            match self.session.reader().read(into) {
                Ok(length) => return Ok(length),
                Err(error) if is_passing(&error) => self.go_on()?,
                Err(_) => return Err(Unread::Ended),
            }
        }
    }
}
