//! A PostgreSQL database for each test.
//!
//! `DATABASE_URL` names the server, whose role may create databases; `tests/with-postgres` starts one. The
//! first test of a process makes a template with the schema, and a database is a copy of that. When a test
//! has ended, its database is emptied for another one. The last few stay on the server.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test ends when there is no database"
)]

mod clock;
mod pool;
mod relay;

use std::str::FromStr;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::sync::Mutex;

use pool::{Kind, Lease};
pub use relay::Relay;

type Kept = Option<(ThreadId, PgConnection)>;

/// A database that one test has to itself, until its last clone is dropped, however the test ends.
#[derive(Clone, Debug)]
pub struct Database {
    options: PgConnectOptions,
    connection: Arc<Mutex<Kept>>,
    _lease: Arc<Lease>,
}

impl Database {
    /// A database with the product's schema.
    pub async fn new() -> Self {
        Self::of(Kind::Schema).await
    }

    /// A database with the product's schema, and with a clock that [`advance`](Self::advance) sets.
    ///
    /// In it, `now()` and `clock_timestamp()` are functions of the schema `test_clock`, which stands
    /// before `pg_catalog` in the search path of every session, and stood there when the schema was
    /// made. So defaults of columns, views and functions go by the same clock.
    pub async fn with_clock() -> Self {
        Self::of(Kind::Clock).await
    }

    /// A database without a schema.
    pub async fn empty() -> Self {
        Self::of(Kind::Empty).await
    }

    async fn of(kind: Kind) -> Self {
        let lease = Lease::new(kind).await;
        Self {
            options: server().database(&lease.name),
            connection: Arc::default(),
            _lease: Arc::new(lease),
        }
    }

    /// Sets the clock of a database [with one](Self::with_clock) forward, for every session at once.
    pub async fn advance(&self, by: Duration) {
        self.execute(&format!(
            "update test_clock.clock set ahead = ahead + interval '{} us'",
            by.as_micros()
        ))
        .await;
    }

    /// The URL, as the service's configuration has it.
    #[must_use]
    pub fn url(&self) -> String {
        self.options.to_url_lossy().into()
    }

    /// The URL of another role.
    #[must_use]
    pub fn url_of(&self, role: &str) -> String {
        self.options.clone().username(role).to_url_lossy().into()
    }

    /// A connection of the test's own.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options).await.unwrap()
    }

    /// A connection of another role.
    pub async fn connect_as(&self, role: &str) -> PgConnection {
        let options = self.options.clone().username(role);
        PgConnection::connect_with(&options).await.unwrap()
    }

    /// Carries out statements, separated by semicolons.
    pub async fn execute(&self, statements: &str) {
        let statements = AssertSqlSafe(statements.to_owned());
        let mut kept = self.connection.lock().await;
        let executed = sqlx::raw_sql(statements)
            .execute(self.kept(&mut kept).await)
            .await;
        executed.unwrap();
    }

    /// The connection that a thread's statements share: to make one takes longer than most statements. It
    /// works in the runtime that made it, and another thread may have another runtime.
    async fn kept<'a>(&self, kept: &'a mut Kept) -> &'a mut PgConnection {
        let thread = std::thread::current().id();
        let lives = match kept {
            Some((of, connection)) if *of == thread => connection.ping().await.is_ok(),
            _ => false,
        };
        if !lives {
            *kept = Some((thread, self.connect().await));
        }
        let (_, connection) = kept.as_mut().unwrap();
        connection
    }

    /// Carries out statements in a transaction that keeps what they lock until it is
    /// [released](Held::release).
    pub async fn hold(&self, statements: &str) -> Held {
        let mut connection = self.connect().await;
        let statements = AssertSqlSafe(format!("begin; {statements}"));
        sqlx::raw_sql(statements)
            .execute(&mut connection)
            .await
            .unwrap();
        Held(connection)
    }

    /// Waits until all other sessions are idle, outside of transactions: a pool takes connections back
    /// at its own time. Panics where one stays busy for some five seconds.
    pub async fn all_become_idle(&self) {
        self.execute(
            "do $$
             begin
                 for turn in 1..5000 loop
                     perform pg_stat_clear_snapshot();
                     if not exists (select from pg_stat_activity
                                    where datname = current_database() and pid <> pg_backend_pid()
                                        and state <> 'idle') then
                         return;
                     end if;
                     perform pg_sleep(0.001);
                 end loop;
                 raise 'a session does not become idle';
             end $$",
        )
        .await;
    }

    /// The one number that a query selects.
    pub async fn number(&self, query: &str) -> i64 {
        let mut kept = self.connection.lock().await;
        let number = sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(self.kept(&mut kept).await)
            .await;
        number.unwrap()
    }

    /// The one text that a query selects.
    pub async fn text(&self, query: &str) -> String {
        let mut kept = self.connection.lock().await;
        let text = sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(self.kept(&mut kept).await)
            .await;
        text.unwrap()
    }
}

/// A transaction that holds its locks.
#[derive(Debug)]
pub struct Held(PgConnection);

impl Held {
    /// Takes the transaction back.
    pub async fn release(self) {
        self.0.close().await.unwrap();
    }
}

async fn execute(at: &PgConnectOptions, statements: &'static str) {
    let mut connection = PgConnection::connect_with(at).await.unwrap();
    let executed = sqlx::raw_sql(statements).execute(&mut connection).await;
    connection.close().await.unwrap();
    executed.unwrap();
}

fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").unwrap_or_else(|_| {
        panic!("DATABASE_URL is not set: these tests need a PostgreSQL; run them by `tests/with-postgres`")
    });
    PgConnectOptions::from_str(&url).unwrap()
}
