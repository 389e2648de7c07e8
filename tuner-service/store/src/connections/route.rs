//! Which server is in use, and what a connection or a probe finds there.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, Row as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::outage::{Outage, ReadOnly};

/// How long a server has to let the scout in and to answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(600);

/// How the pool connects: to which server, and whether without TLS.
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
    /// No server takes writes, and this one can be read.
    is_read_only: bool,
    /// Since when a look is called for.
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

    /// A number that grows whenever the pool is turned.
    pub(super) fn generation(&self) -> u64 {
        self.state().generation
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.state().is_read_only
    }

    /// Whether the pool was turned since a connection of this age was made.
    pub(super) fn is_newer_than(&self, age: Duration) -> bool {
        self.state()
            .since
            .is_some_and(|since| since.elapsed() < age)
    }

    /// Whether a connection can be used that finds this. If not, the scout should look.
    pub(super) fn takes(&self, found: &Found) -> bool {
        let takes = found.read_only().is_none() || self.is_read_only();
        if !takes {
            self.suspect();
        }
        takes
    }

    /// Lets whoever waits for a connection ask the scout.
    pub(super) fn suspect(&self) {
        self.state().suspected = Some(Instant::now());
        self.suspicion.notify_waiters();
    }

    /// Has the servers looked at if this error of a statement says that another one may be right by now.
    pub(super) fn hears_of(&self, error: &sqlx::Error) {
        let is_suspicious = match Outage::of(error) {
            // No news where no server takes writes: it is looked for one all the time.
            Some(Outage::ReadOnly(_)) => !self.is_read_only(),
            Some(outage) => outage.may_be_of_one_connection(),
            None => false,
        };
        if is_suspicious {
            self.suspect();
        }
    }

    /// Whether something seems wrong that no look has begun after.
    pub(super) fn is_suspected(&self) -> bool {
        self.state().suspected.is_some()
    }

    /// Returns while a look is called for.
    pub(super) async fn suspected(&self) {
        let notified = self.suspicion.notified();
        if !self.is_suspected() {
            notified.await;
        }
    }

    /// The servers were looked at, from then on.
    pub(super) fn was_looked_at(&self, began: Instant) {
        self.state()
            .suspected
            .take_if(|suspected| *suspected <= began);
    }

    /// Whether it is another way than before.
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

/// What a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    is_standby: bool,
    is_read_only: bool,
    /// In milliseconds.
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

    /// What is wrong with it; `expected`: the statement's time-out that was asked for.
    pub(super) fn outage(&self, expected: Option<i64>) -> Option<Outage> {
        if expected.is_some_and(|expected| expected != self.statement_timeout) {
            return Some(Outage::Pooler(
                "the time-outs that the service sets for its sessions are not in force".to_owned(),
            ));
        }
        self.read_only().map(Outage::ReadOnly)
    }
}

/// Asks a server what it is, in one message: no statement is prepared for it.
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

    /// Connects, and says why it takes no writes, if it takes none. The options are those by which it was
    /// connected to.
    pub(super) async fn probe(self) -> Result<(PgConnectOptions, Option<ReadOnly>), Outage> {
        let looked = async {
            match self.ask(&self.options).await {
                // As with libpq: `prefer` does without what does not work.
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
        // It has said what was asked; how it ends is no matter.
        let _ = connection.close().await;
        match found.outage(self.expected) {
            Some(Outage::ReadOnly(why)) => Ok(Some(why)),
            Some(outage) => Err(outage),
            None => Ok(None),
        }
    }
}
