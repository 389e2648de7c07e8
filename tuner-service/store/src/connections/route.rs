//! The server in use, and the state that a connection or a probe finds there.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, Row as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::outage::{Outage, ReadOnly};

/// The time that a server has to accept the scout and to answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(600);

/// The server that the pool connects to, and whether it does so without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    server: String,
    is_plain: bool,
}

impl Way {
    pub(super) fn of(server: &Server, options: &PgConnectOptions) -> Self {
        Self {
            server: server.name.clone(),
            is_plain: matches!(options.get_ssl_mode(), PgSslMode::Disable),
        }
    }
}

/// The server that the pool connects to.
#[derive(Debug)]
pub(super) struct Route {
    state: Mutex<State>,
    suspicion: Notify,
}

#[derive(Debug)]
struct State {
    towards: Way,
    since: Option<Instant>,
    generation: u64,
    /// True if no server takes writes, and this one can be read.
    is_read_only: bool,
    /// The time since which a look at the servers is needed.
    suspected: Option<Instant>,
}

impl Route {
    pub(super) fn new(towards: Way) -> Self {
        let state = State {
            towards,
            since: None,
            generation: 0,
            is_read_only: false,
            suspected: None,
        };
        Self {
            state: Mutex::new(state),
            suspicion: Notify::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that grows whenever the pool is turned to another server.
    pub(super) fn generation(&self) -> u64 {
        self.state().generation
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.state().is_read_only
    }

    /// Returns true if the pool was turned since a connection of this age was made.
    pub(super) fn is_newer_than(&self, age: Duration) -> bool {
        self.state()
            .since
            .is_some_and(|since| since.elapsed() < age)
    }

    /// Returns true if a connection in this state can be used. If not, asks the scout to look.
    pub(super) fn takes(&self, found: &Found) -> bool {
        let takes = found.read_only().is_none() || self.is_read_only();
        if !takes {
            self.suspect();
        }
        takes
    }

    /// Makes callers that wait for a connection ask the scout.
    pub(super) fn suspect(&self) {
        self.state().suspected = Some(Instant::now());
        self.suspicion.notify_waiters();
    }

    /// Asks for a look at the servers if this error of a statement means that another server may be
    /// the right one by now.
    ///
    /// Returns true if the session itself is not to be used again. A session that refuses writes is
    /// one, although the look may find that new sessions of the same server take them: the pool
    /// would hand it to the next request as soon as the look has ended.
    pub(super) fn hears_of(&self, error: &sqlx::Error) -> bool {
        match Outage::of(error) {
            // Not news if no server takes writes, because one that does is looked for all the time.
            Some(Outage::ReadOnly(_)) if self.is_read_only() => false,
            Some(Outage::ReadOnly(_)) => {
                self.suspect();
                true
            }
            Some(outage) if outage.may_be_of_one_connection() => {
                self.suspect();
                false
            }
            _ => false,
        }
    }

    /// Returns true if a problem is suspected, and no look has begun since.
    pub(super) fn is_suspected(&self) -> bool {
        self.state().suspected.is_some()
    }

    /// Waits until a look at the servers is needed.
    pub(super) async fn suspected(&self) {
        let notified = self.suspicion.notified();
        if !self.is_suspected() {
            notified.await;
        }
    }

    /// Records that the servers were looked at, beginning at this time.
    pub(super) fn was_looked_at(&self, began: Instant) {
        self.state()
            .suspected
            .take_if(|suspected| *suspected <= began);
    }

    /// Turns the pool. Returns true if the way differs from the one before.
    pub(super) fn turn(&self, towards: Way, is_read_only: bool) -> bool {
        let mut state = self.state();
        if state.towards == towards && state.is_read_only == is_read_only {
            return false;
        }
        state.towards = towards;
        state.since = Some(Instant::now());
        state.is_read_only = is_read_only;
        state.generation += 1;
        true
    }
}

/// The state that a server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    is_standby: bool,
    is_read_only: bool,
    /// The time-out of statements, in milliseconds.
    statement_timeout: i64,
}

impl Found {
    pub(super) fn read_only(&self) -> Option<ReadOnly> {
        match self {
            Self {
                is_standby: true, ..
            } => Some(ReadOnly::Standby),
            Self {
                is_read_only: true, ..
            } => Some(ReadOnly::Setting),
            _ => None,
        }
    }

    /// The problem of a server in this state; `expected` is the time-out that was requested for
    /// statements.
    pub(super) fn outage(&self, expected: Option<i64>) -> Option<Outage> {
        if expected.is_some_and(|expected| expected != self.statement_timeout) {
            return Some(Outage::Pooler(
                "the time-outs that the service sets for its sessions are not in force".to_owned(),
            ));
        }
        self.read_only().map(Outage::ReadOnly)
    }
}

/// Asks a server for its state, in one message and without preparing a statement.
pub(super) async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let row = sqlx::raw_sql(
        "select pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
                (extract(epoch from current_setting('statement_timeout')::interval) * 1000)::int8",
    )
    .fetch_one(connection)
    .await?;
    Ok(Found {
        is_standby: row.try_get(0)?,
        is_read_only: row.try_get(1)?,
        statement_timeout: row.try_get(2)?,
    })
}

/// A server that the URL names.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) options: PgConnectOptions,
    expected: Option<i64>,
}

impl Server {
    pub(super) fn new(options: PgConnectOptions, expected: Option<i64>) -> Self {
        let host = match options.get_socket() {
            Some(path) => path.display().to_string(),
            None => options.get_host().to_owned(),
        };
        Self {
            name: if host.contains(':') {
                format!("[{host}]:{}", options.get_port())
            } else {
                format!("{host}:{}", options.get_port())
            },
            options,
            expected,
        }
    }

    /// Connects, and returns the options that worked, with the reason if the server takes no
    /// writes.
    pub(super) async fn probe(self) -> Result<(PgConnectOptions, Option<ReadOnly>), Outage> {
        let looked = async {
            match self.ask(&self.options).await {
                // As in libpq, `prefer` goes without TLS if TLS does not work.
                Err(Outage::Tls(_) | Outage::Certificate(_) | Outage::ClientCertificate(_))
                    if matches!(self.options.get_ssl_mode(), PgSslMode::Prefer) =>
                {
                    let plain = self.options.clone().ssl_mode(PgSslMode::Disable);
                    self.ask(&plain).await.map(|why| (plain, why))
                }
                asked => asked.map(|why| (self.options.clone(), why)),
            }
        };
        timeout(PROBE_TIMEOUT, looked)
            .await
            .unwrap_or(Err(Outage::Silent))
    }

    async fn ask(&self, options: &PgConnectOptions) -> Result<Option<ReadOnly>, Outage> {
        let mut connection = options
            .connect()
            .await
            .map_err(|error| Outage::of_connecting(&error))?;
        let found = look(&mut connection)
            .await
            .map_err(|error| Outage::of_connecting(&error))?;
        // It has answered, so it does not matter how the connection ends.
        let _ = connection.close().await;
        match found.outage(self.expected) {
            Some(Outage::ReadOnly(why)) => Ok(Some(why)),
            Some(outage) => Err(outage),
            None => Ok(None),
        }
    }
}
