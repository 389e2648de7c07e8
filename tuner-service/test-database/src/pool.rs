//! The databases of a process: which are free, and how one that was used becomes free again.
//!
//! To copy a template takes PostgreSQL some 100 ms of a processor, because a database is made and dropped
//! with a checkpoint; to empty one that a test has used takes a tenth of that.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use crate::{clock, execute, server};

/// The content of a database when a test gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Empty,
    /// The product's schema.
    Schema,
    /// The product's schema, and a clock that the test sets.
    Clock,
}

/// A database of this process, by its name. It goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    kind: Kind,
    pub(crate) name: String,
}

impl Lease {
    pub(crate) async fn new(kind: Kind) -> Self {
        let (to, name) = oneshot::channel();
        KEEPER.send(Request::Lease(kind, to)).unwrap();
        let name = name.await;
        let name = name.unwrap_or_else(|_| panic!("no database: the log above says why"));
        Self { kind, name }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        // Where the keeper has panicked, the tests that ask it fail.
        let _ = KEEPER.send(Request::Release(self.kind, name));
    }
}

enum Request {
    Lease(Kind, oneshot::Sender<String>),
    Release(Kind, String),
}

/// The thread that makes, empties and drops databases: with a runtime of its own, because a test's ends
/// with the test.
static KEEPER: LazyLock<mpsc::UnboundedSender<Request>> = LazyLock::new(|| {
    let (requests, mut asked) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut keeper = Keeper::new().await;
            while let Some(request) = asked.recv().await {
                match request {
                    Request::Lease(kind, to) => {
                        let name = keeper.lease(kind).await;
                        if let Err(name) = to.send(name) {
                            keeper.release(kind, name).await;
                        }
                    }
                    Request::Release(kind, name) => keeper.release(kind, name).await,
                }
            }
        });
    });
    requests
});

struct Keeper {
    connection: PgConnection,
    server: PgConnectOptions,
    free: Vec<(Kind, String)>,
    templates: Vec<(Kind, String)>,
}

impl Keeper {
    async fn new() -> Self {
        let server = server();
        let connection = PgConnection::connect_with(&server).await.unwrap();
        Self {
            connection,
            server,
            free: Vec::new(),
            templates: Vec::new(),
        }
    }

    async fn lease(&mut self, kind: Kind) -> String {
        let free = self.free.iter().position(|(of, _)| *of == kind);
        if let Some(free) = free {
            return self.free.swap_remove(free).1;
        }
        if kind == Kind::Empty {
            return self.create("").await;
        }
        let template = self.template(kind).await;
        // A copy block by block through the log takes twice as long.
        let created = self
            .create(&format!("template {template} strategy file_copy"))
            .await;
        self.prepare(kind, &created).await;
        created
    }

    async fn template(&mut self, kind: Kind) -> String {
        if let Some((_, name)) = self.templates.iter().find(|(of, _)| *of == kind) {
            return name.clone();
        }
        let name = self.create("").await;
        let at = self.server.clone().database(&name);
        if kind == Kind::Clock {
            execute(&at, clock::CLOCK).await;
            self.prepare(kind, &name).await;
        }
        let mut connection = PgConnection::connect_with(&at).await.unwrap();
        sqlx::migrate!("../../migrations")
            .run(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        if kind == Kind::Clock {
            execute(&at, clock::CLOCK_OF_CLOSED_FUNCTIONS).await;
        }
        execute(&at, AS_NEW).await;
        self.templates.push((kind, name.clone()));
        name
    }

    /// Sets what belongs to a database, but is not copied with it.
    async fn prepare(&mut self, kind: Kind, name: &str) {
        if kind == Kind::Clock {
            let path = clock::SEARCH_PATH;
            self.run(format!("alter database {name} set search_path = {path}"))
                .await;
        }
    }

    async fn create(&mut self, how: &str) -> String {
        let name = new_name();
        // A process that was killed may have left one of this name.
        self.drop(&name).await;
        self.run(format!("create database {name} {how}")).await;
        name
    }

    async fn release(&mut self, kind: Kind, name: String) {
        if kind == Kind::Empty {
            return self.drop(&name).await;
        }
        // What the test has left running cannot write any more: it knows neither the new name, nor has it
        // a connection.
        let renamed = new_name();
        self.run(format!("alter database {name} allow_connections false"))
            .await;
        self.run(CLOSED.replace("NAME", &name)).await;
        self.run(format!("alter database {name} rename to {renamed}"))
            .await;
        self.run(format!("alter database {renamed} allow_connections true"))
            .await;
        if self.is_as_new(kind, &renamed).await {
            self.free.push((kind, renamed));
        } else {
            self.drop(&renamed).await;
        }
    }

    /// Returns true if the database could be emptied. It cannot if the test has changed more than
    /// rows.
    async fn is_as_new(&mut self, kind: Kind, name: &str) -> bool {
        let settings = sqlx::query_scalar::<_, i64>(
            "select count(*) from pg_db_role_setting s, unnest(s.setconfig) \
             where s.setdatabase = (select oid from pg_database where datname = $1)",
        )
        .bind(name)
        .fetch_one(&mut self.connection)
        .await
        .unwrap();
        if settings != i64::from(kind == Kind::Clock) {
            return false;
        }
        let at = self.server.clone().database(name);
        let mut connection = PgConnection::connect_with(&at).await.unwrap();
        let emptied = sqlx::query_scalar("select as_new.emptied()")
            .fetch_one(&mut connection)
            .await;
        connection.close().await.unwrap();
        emptied.unwrap()
    }

    async fn drop(&mut self, name: &str) {
        self.run(format!("drop database if exists {name} with (force)"))
            .await;
    }

    async fn run(&mut self, statement: String) {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut self.connection)
            .await
            .unwrap();
    }
}

fn new_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{number}", std::process::id())
}

/// Ends the sessions of a database, and waits until they have ended: PostgreSQL's own waiting looks ten
/// times a second only.
const CLOSED: &str = "
    do $$
    declare began timestamptz := clock_timestamp();
    begin
        perform pg_terminate_backend(pid) from pg_stat_activity where datname = 'NAME';
        loop
            perform pg_stat_clear_snapshot();
            exit when not exists (select from pg_stat_activity where datname = 'NAME');
            if clock_timestamp() > began + interval '1 minute' then
                raise 'sessions of NAME do not end';
            end if;
            perform pg_sleep(0.001);
        end loop;
    end $$;
";

/// The schema by which copies of a template can be emptied: the rows that a template begins with, and a
/// witness of every statement that changes more than rows.
///
/// `as_new.emptied()` puts rows and sequences back, and says whether that was enough. It was not if the
/// test has changed the schema or what a role may do, and it is not tried if the test has written a lot.
const AS_NEW: &str = "
    create schema as_new;
    do $$
    declare
        one record;
        has_rows boolean;
    begin
        for one in select oid::regclass as name, relname from pg_class
                   where relnamespace in ('public'::regnamespace, to_regnamespace('test_clock'))
                     and relkind = 'r'
        loop
            execute format('select exists (select from %s)', one.name) into has_rows;
            if has_rows then
                execute format('create table as_new.%I as table %s', one.relname, one.name);
            end if;
        end loop;
    end $$;
    create table as_new.changed ();
    create function as_new.witness() returns event_trigger language plpgsql security definer as $$
    begin
        insert into as_new.changed default values;
    end $$;
    create function as_new.emptied() returns boolean language plpgsql as $$
    declare
        one record;
        has_rows boolean;
    begin
        if exists (select from as_new.changed) or pg_database_size(current_database()) > 32000000 then
            return false;
        end if;
        -- Neither triggers nor foreign keys are asked.
        set local session_replication_role = replica;
        for one in select oid::regclass as name, to_regclass('as_new.' || quote_ident(relname)) as rows
                   from pg_class
                   where relnamespace in ('public'::regnamespace, to_regnamespace('test_clock'))
                     and relkind = 'r' and pg_relation_size(oid) > 0
        loop
            execute format('delete from %s', one.name);
            if one.rows is not null then
                execute format('insert into %s table %s', one.name, one.rows);
            end if;
        end loop;
        perform setval(format('%I.%I', schemaname, sequencename), start_value, false)
            from pg_sequences where last_value is not null;
        return true;
    end $$;
    create event trigger witness_of_changes on ddl_command_end execute function as_new.witness();
    create event trigger witness_of_drops on sql_drop execute function as_new.witness();
";
