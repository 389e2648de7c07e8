//! The way to the database: a pool of connections to the one of its servers that takes writes.
//!
//! sqlx's pool connects to one server. If it gives no connection within a moment, a scout looks at
//! all servers of the URL, in order: it turns the pool to the first that takes writes, or collects
//! what is wrong with each. The pool's own error would only say that it has waited, whatever the
//! cause.

mod connection;
mod outage;
mod route;
mod url;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgConnectOptions, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo,
};
use sqlx::{AssertSqlSafe, Describe, Either, Execute, Executor, PgPool, Postgres, SqlStr};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub(crate) use connection::{Connection, Transaction};
pub use outage::{Outage, ReadOnly, Unavailable};
use route::{Route, Server, Way};
pub use url::{DatabaseUrl, UrlError};

/// The longest wait for a row lock outside of a transaction.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that a returned connection has to show that it is alive.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The additional time for a transaction to begin, beyond that for a connection.
const BEGINNING: Duration = Duration::from_millis(100);

/// A connection that was returned more recently than this is not tested before it is used again.
const UNTESTED: Duration = Duration::from_millis(100);

/// The wait for a connection after which the scout looks at the servers.
const SUSPICIOUS: Duration = Duration::from_millis(100);

/// The time for which the scout's result is used.
const SEEN: Duration = Duration::from_millis(500);

/// The kind of pooler between the service and its database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooler {
    /// None, or a pooler that keeps a server's session for each of its clients.
    #[default]
    None,
    /// A pooler that gives a client a session for one transaction only: settings and prepared
    /// statements of one transaction are missing in the next.
    Transaction,
}

/// The settings that all connections share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) connections: u32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) pooler: Pooler,
}

impl Session {
    /// The settings of every session: time-outs in milliseconds, and no compiling of statements. To
    /// compile one takes PostgreSQL some 50 ms, and the longest of ours, a page of studies, is read
    /// in as much.
    fn settings(self) -> [(&'static str, String); 4] {
        let statement = self.statement_timeout.as_millis().to_string();
        [
            ("statement_timeout", statement.clone()),
            ("lock_timeout", LOCK_TIMEOUT.as_millis().to_string()),
            ("idle_in_transaction_session_timeout", statement),
            ("jit", "off".to_owned()),
        ]
    }

    fn applied(self, options: PgConnectOptions) -> PgConnectOptions {
        let options = options.application_name("io-autotuned");
        match self.pooler {
            Pooler::None => options.options(self.settings()),
            // The pooler accepts no options, and a prepared statement may not exist in the next
            // transaction.
            Pooler::Transaction => options.statement_cache_capacity(0),
        }
    }

    /// The `statement_timeout` in milliseconds that a new connection must report; `None`: it is not
    /// checked.
    fn expected(self) -> Option<i64> {
        match self.pooler {
            Pooler::None => i64::try_from(self.statement_timeout.as_millis()).ok(),
            Pooler::Transaction => None,
        }
    }

    /// The statements that open a transaction: `begin`, and what the transaction must set itself.
    fn opening(self, begin: &str) -> String {
        let mut statements = begin.to_owned();
        if self.pooler == Pooler::Transaction {
            // sqlx names each statement even if it caches none, and another client of the session
            // may have left statements with these names.
            statements.push_str("; deallocate all");
            for (name, value) in self.settings() {
                statements.push_str(&format!("; set local {name} = {value}"));
            }
        }
        statements
    }
}

/// Connections to a database, on which statements can be executed.
#[derive(Clone, Debug)]
pub(crate) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pool: PgPool,
    url: DatabaseUrl,
    session: Session,
    servers: Vec<Server>,
    route: Arc<Route>,
    seen: Mutex<Option<Seen>>,
}

/// The result of the scout's last look.
#[derive(Debug)]
struct Seen {
    ended: Instant,
    found: Result<(), Unavailable>,
}

impl Connections {
    /// A pool that does not connect yet, so that a service can start before its database.
    pub(crate) fn new(url: DatabaseUrl, session: Session) -> Self {
        let servers: Vec<Server> = url
            .servers()
            .into_iter()
            .map(|options| Server::new(session.applied(options), session.expected()))
            .collect();
        let way = Way::of(&servers[0], &servers[0].options);
        let route = Arc::new(Route::new(way));
        let (tested, greeted) = (Arc::clone(&route), Arc::clone(&route));
        let expected = session.expected();
        let pool = PgPoolOptions::new()
            .max_connections(session.connections)
            .acquire_timeout(session.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, before| {
                let route = Arc::clone(&tested);
                Box::pin(async move {
                    if route.is_newer_than(before.age) {
                        return Ok(false);
                    }
                    let is_trusted = before.idle_for <= UNTESTED && !route.is_suspected();
                    Ok(is_trusted || route.takes(&route::look(connection).await?))
                })
            })
            .after_connect(move |connection, _| {
                let route = Arc::clone(&greeted);
                Box::pin(async move {
                    let found = route::look(connection).await?;
                    match found.outage(expected) {
                        Some(Outage::ReadOnly(_)) if route.takes(&found) => Ok(()),
                        None => Ok(()),
                        Some(outage) => {
                            route.suspect();
                            Err(Unavailable::met(outage).carried())
                        }
                    }
                })
            })
            .connect_lazy_with(servers[0].options.clone());
        Self(Arc::new(Shared {
            pool,
            url,
            session,
            servers,
            route,
            seen: Mutex::default(),
        }))
    }

    /// The longest wait for a connection.
    pub(crate) fn acquire_timeout(&self) -> Duration {
        self.0.session.acquire_timeout
    }

    /// The options with which the server in use is connected to.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.0.pool.connect_options().as_ref().clone()
    }

    /// Returns true if a pooler owns the sessions, so that nothing of a session outlives a
    /// transaction.
    pub(crate) fn are_pooled(&self) -> bool {
        self.0.session.pooler == Pooler::Transaction
    }

    /// Closes all connections. Waits for those in use.
    pub(crate) async fn close(&self) {
        self.0.pool.close().await;
    }

    /// A connection for several statements, which are one transaction or each their own. A caller
    /// that has written must end with [`Connection::finish`].
    pub(crate) async fn acquire(&self) -> Result<Connection, sqlx::Error> {
        match self.0.session.pooler {
            Pooler::None => self.session().await,
            Pooler::Transaction => Ok(self.begin_with("begin", "").await?.into_connection()),
        }
    }

    /// Begins a transaction, and applies the settings in `more`, in one round trip.
    ///
    /// It runs in a task of its own, which cannot be dropped half way (when the client has gone, or
    /// at a deadline). Otherwise a connection that is still inside a transaction would return to
    /// the pool.
    pub(crate) async fn begin_with(
        &self,
        begin: &str,
        more: &str,
    ) -> Result<Transaction, sqlx::Error> {
        let statements = self.0.session.opening(begin) + more;
        let own = self.clone();
        let began = tokio::spawn(async move {
            // Safe, because only this program's names and numbers are in it.
            let statements = AssertSqlSafe(statements);
            own.session().await?.begin(statements).await
        });
        // A pooler lets a transaction wait for a session, by default for two minutes.
        match timeout(self.0.session.acquire_timeout + BEGINNING, began).await {
            Ok(began) => began.unwrap_or(Err(sqlx::Error::WorkerCrashed)),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Returns an error with what is wrong with each server, unless the server in use takes writes.
    pub(crate) async fn take_writes(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.session().await?;
        let found = connection.look().await?;
        drop(connection);
        if found.read_only().is_none() {
            return Ok(());
        }
        // Another server may take writes by now, or the same one from new sessions.
        self.0.route.suspect();
        self.scout().await.map_err(Unavailable::carried)
    }

    async fn session(&self) -> Result<Connection, sqlx::Error> {
        let held = self.held().await?;
        let shared = &self.0;
        let route = Arc::clone(&shared.route);
        Ok(Connection::new(
            held,
            shared.session.statement_timeout,
            route,
        ))
    }

    async fn held(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        let deadline = Instant::now() + self.0.session.acquire_timeout;
        self.look_for_a_writer();
        let mut is_second = false;
        loop {
            let generation = self.0.route.generation();
            let mut acquiring = pin!(self.0.pool.acquire());
            let mut answered = self.soon(acquiring.as_mut()).await;
            let seen = {
                // A caller that waits for another one's look has no more time than one that looks
                // itself.
                let mut looking = pin!(timeout_at(deadline, self.scout()));
                loop {
                    match answered {
                        Some(Ok(connection)) => return Ok(connection),
                        Some(Err(sqlx::Error::PoolClosed)) => return Err(sqlx::Error::PoolClosed),
                        Some(Err(_)) => break looking.await,
                        // A connection may become free meanwhile.
                        None => tokio::select! {
                            biased;
                            now = acquiring.as_mut() => answered = Some(now),
                            seen = looking.as_mut() => break seen,
                        },
                    }
                }
            };
            let seen = seen.unwrap_or(Ok(()));
            if self.0.route.generation() != generation && Instant::now() < deadline {
                continue;
            }
            let cause = seen.err().filter(|seen| !seen.can_be_read());
            let error = match answered {
                None => match timeout_at(deadline, acquiring).await {
                    Ok(Ok(connection)) => return Ok(connection),
                    Ok(Err(error)) => error,
                    Err(_) => sqlx::Error::PoolTimedOut,
                },
                Some(_) if cause.is_none() && !is_second && Instant::now() < deadline => {
                    is_second = true;
                    continue;
                }
                Some(Ok(connection)) => return Ok(connection),
                Some(Err(error)) => error,
            };
            return Err(match (cause, error) {
                (_, error @ sqlx::Error::PoolClosed) => error,
                (Some(cause), _) => cause.carried(),
                (None, error) => error,
            });
        }
    }

    /// The pool's answer, if it comes before there is a reason to suspect a problem.
    async fn soon<T>(&self, acquiring: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        tokio::select! {
            biased;
            answered = acquiring => Some(answered),
            () = self.0.route.suspected() => None,
            () = sleep(SUSPICIOUS) => None,
        }
    }

    /// While the only servers that answer take no writes, looks in the background for one that
    /// does.
    fn look_for_a_writer(&self) {
        if self.0.route.is_read_only()
            && self
                .0
                .seen
                .try_lock()
                .is_ok_and(|seen| !self.is_fresh(&seen))
        {
            let own = self.clone();
            tokio::spawn(async move { own.scout().await });
        }
    }

    fn is_fresh(&self, seen: &Option<Seen>) -> bool {
        seen.as_ref()
            .is_some_and(|seen| seen.ended.elapsed() < SEEN && !self.0.route.is_suspected())
    }

    /// Looks at the servers, and turns the pool to the first that takes writes. Callers that come
    /// meanwhile wait for the same result.
    async fn scout(&self) -> Result<(), Unavailable> {
        let shared = &self.0;
        let mut seen = shared.seen.lock().await;
        if let Some(seen) = seen.as_ref().filter(|_| self.is_fresh(&seen)) {
            return seen.found.clone();
        }
        let began = Instant::now();
        let found = shared.search().await;
        shared.route.was_looked_at(began);
        *seen = Some(Seen {
            ended: Instant::now(),
            found: found.clone(),
        });
        found
    }
}

impl Shared {
    async fn search(&self) -> Result<(), Unavailable> {
        // All probes run at once and are awaited in order, so that a silent server does not use up
        // the time of the others.
        let probes: Vec<_> = self
            .servers
            .iter()
            .map(|server| tokio::spawn(server.clone().probe()))
            .collect();
        let (mut failed, mut readable) = (Vec::new(), None);
        for (server, probe) in self.servers.iter().zip(probes) {
            let outage = match probe.await.unwrap_or(Err(Outage::Silent)) {
                Ok((options, None)) => {
                    self.turn_to(server, options, false);
                    return Ok(());
                }
                Ok((options, Some(why))) => {
                    readable.get_or_insert((server, options));
                    Outage::ReadOnly(why)
                }
                Err(outage) => outage,
            };
            failed.push((server.name.clone(), outage));
        }
        if let Some((server, options)) = readable {
            self.turn_to(server, options, true);
        } else if let Err(error) = self.url.check_files() {
            for (_, outage) in &mut failed {
                *outage = Outage::Files(error.to_string());
            }
        }
        Err(Unavailable::of(failed))
    }

    fn turn_to(&self, server: &Server, options: PgConnectOptions, is_read_only: bool) {
        if self.route.turn(Way::of(server, &options), is_read_only) {
            self.pool.set_connect_options(options);
            tracing::info!(
                server = server.name,
                is_read_only,
                "the database is this server"
            );
        }
    }
}

/// Executes a single statement, as with sqlx's pool.
impl<'p> Executor<'p> for &'p Connections {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let rows = async move {
            let mut connection = self.acquire().await?;
            let rows: Vec<_> = connection.fetch_many(query).try_collect().await?;
            connection.finish().await?;
            Ok::<_, sqlx::Error>(stream::iter(rows).map(Ok))
        };
        stream::once(rows).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut connection = self.acquire().await?;
            let row = connection.fetch_optional(query).await?;
            connection.finish().await?;
            Ok(row)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.acquire().await?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.acquire().await?.describe(sql).await })
    }
}

#[cfg(test)]
mod tests;
