//! A PostgreSQL database for each test.
//!
//! `DATABASE_URL` names the server, whose role may create databases; `tests/with-postgres` starts one. The
//! first test of a process makes a template with the schema, and each database is a copy of that: a
//! copy takes some ten milliseconds, the migrations a second.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test ends when there is no database"
)]

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::runtime::Builder;
use tokio::sync::OnceCell;

/// A database that one test has to itself. It is dropped with its last clone, however the test ends.
#[derive(Clone, Debug)]
pub struct Database {
    options: PgConnectOptions,
    _dropped: Arc<Dropped>,
}

impl Database {
    /// A database with the product's schema.
    pub async fn new() -> Self {
        static TEMPLATE: OnceCell<Database> = OnceCell::const_new();
        let template = TEMPLATE
            .get_or_init(async || {
                let template = Self::empty().await;
                template.migrate().await;
                template
            })
            .await;
        Self::copy_of(template).await
    }

    /// A database with the product's schema, and with a clock that [`advance`](Self::advance) sets.
    ///
    /// In it, `now()` and `clock_timestamp()` are functions of the schema `test_clock`, which stands
    /// before `pg_catalog` in the search path of every session, and stood there when the schema was
    /// made. So defaults of columns, views and functions go by the same clock.
    pub async fn with_clock() -> Self {
        static TEMPLATE: OnceCell<Database> = OnceCell::const_new();
        let template = TEMPLATE
            .get_or_init(async || {
                let template = Self::empty().await;
                template.execute(CLOCK).await;
                template.set_search_path().await;
                template.migrate().await;
                template.execute(CLOCK_OF_CLOSED_FUNCTIONS).await;
                template
            })
            .await;
        let database = Self::copy_of(template).await;
        database.set_search_path().await;
        database
    }

    /// A database without a schema.
    pub async fn empty() -> Self {
        Self::create("").await
    }

    /// A copy of a template's files: to copy it block by block through the log takes twice as long.
    async fn copy_of(template: &Self) -> Self {
        Self::create(&format!("template {} strategy file_copy", template.name())).await
    }

    async fn create(how: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let server = server();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let drop = format!("drop database if exists {name} with (force)");
        // A process that was killed may have left one of this name.
        let create = format!("create database {name} {how}");
        execute(&server, [drop.clone(), create]).await;
        Self {
            options: server.clone().database(&name),
            _dropped: Arc::new(Dropped { server, drop }),
        }
    }

    fn name(&self) -> &str {
        self.options.get_database().unwrap()
    }

    async fn migrate(&self) {
        let mut connection = self.connect().await;
        let migrated = sqlx::migrate!("../../migrations")
            .run(&mut connection)
            .await;
        connection.close().await.unwrap();
        migrated.unwrap();
    }

    async fn set_search_path(&self) {
        // New tables go into the first one.
        let path = "public, test_clock, pg_catalog";
        self.execute(&format!(
            "alter database {} set search_path = {path}",
            self.name()
        ))
        .await;
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
        execute(&self.options, [statements.to_owned()]).await;
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

    /// The one number that a query selects.
    pub async fn number(&self, query: &str) -> i64 {
        let mut connection = self.connect().await;
        let number = sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(&mut connection)
            .await;
        connection.close().await.unwrap();
        number.unwrap()
    }

    /// The one text that a query selects.
    pub async fn text(&self, query: &str) -> String {
        let mut connection = self.connect().await;
        let text = sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(&mut connection)
            .await;
        connection.close().await.unwrap();
        text.unwrap()
    }
}

/// What a transaction has locked.
#[derive(Debug)]
pub struct Held(PgConnection);

impl Held {
    /// Takes the transaction back.
    pub async fn release(self) {
        self.0.close().await.unwrap();
    }
}

/// The clock and the two functions that read it.
const CLOCK: &str = "
    create schema test_clock;
    create table test_clock.clock (ahead interval not null);
    insert into test_clock.clock values (interval '0');
    create function test_clock.now() returns timestamptz language sql stable
        as 'select pg_catalog.now() + ahead from test_clock.clock';
    create function test_clock.clock_timestamp() returns timestamptz language sql volatile
        as 'select pg_catalog.clock_timestamp() + ahead from test_clock.clock';
    grant usage on schema test_clock to public;
    grant select on test_clock.clock to public;
";

/// Functions that name `pg_catalog` as their own search path look at the test's clock, too.
const CLOCK_OF_CLOSED_FUNCTIONS: &str = "
    do $$
    declare closed record;
    begin
        for closed in
            select oid::regprocedure as name from pg_proc
            where pronamespace = 'public'::regnamespace
              and exists (select from unnest(proconfig) as one where one like 'search_path=pg_catalog%')
        loop
            execute format('alter function %s set search_path = test_clock, pg_catalog, pg_temp', closed.name);
        end loop;
    end $$;
";

/// Drops a database with itself.
#[derive(Debug)]
struct Dropped {
    server: PgConnectOptions,
    drop: String,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let statement = [std::mem::take(&mut self.drop)];
        // The test's own runtime may be about to end.
        let dropped = std::thread::scope(|scope| {
            let dropping = scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(execute(&self.server, statement));
            });
            dropping.join()
        });
        assert!(dropped.is_ok() || std::thread::panicking(), "it stays");
    }
}

async fn execute(at: &PgConnectOptions, statements: impl IntoIterator<Item = String>) {
    let mut connection = PgConnection::connect_with(at).await.unwrap();
    for statement in statements {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
}

fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").unwrap_or_else(|_| {
        panic!("DATABASE_URL is not set: these tests need a PostgreSQL; run them by `tests/with-postgres`")
    });
    PgConnectOptions::from_str(&url).unwrap()
}
