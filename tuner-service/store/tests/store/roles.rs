//! The rights of the roles in `deploy/sql`, with the least of which the service can work.

use io_autotune_store::{Source, Store, StoreError, StoreOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::Mutex;

use crate::support::{CLUSTER, Database, by, counted, launch, not_counted, point, word};

/// PostgreSQL's `insufficient_privilege`.
pub(crate) const REFUSED: &str = "42501";

pub(crate) const SERVICE: &str = "io-autotune";

const ROLES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/sql/roles.sql"
));

pub(crate) const REPORT_ROLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/sql/report-role.sql"
));

/// Runs a script of `deploy/sql` as a superuser. Roles belong to the server, so one test at a time
/// makes them.
pub(crate) async fn make(connection: &mut PgConnection, script: &'static str) {
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let mut transaction = connection.begin().await.unwrap();
    transaction.execute(script).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn made(database: &Database) {
    let mut connection = database.connect().await;
    make(&mut connection, ROLES).await;
    connection.close().await.unwrap();
}

/// The service's role and the report's.
pub(crate) async fn make_all(database: &Database) {
    made(database).await;
    let mut connection = database.connect().await;
    make(&mut connection, REPORT_ROLE).await;
    connection.close().await.unwrap();
}

/// The owner's URL as in the guide: a superuser becomes the owner.
fn owners_url(database: &Database) -> String {
    format!("{}&options[role]=io-autotune-migrate", database.url())
}

fn service(database: &Database) -> Store {
    Store::open(&database.url_of(SERVICE), StoreOptions::default()).unwrap()
}

/// A run from its start to its verdict, a pin that is set and removed, and a reset.
async fn works(database: &Database, store: &Store) {
    let run_id = launch(store, 1, point(4), 12.5).await;
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[word(1, "COMPLETED")])
        .await
        .unwrap();
    let verdict = counted(point(4));
    database.judge(store, run_id, &verdict).await.unwrap();
    let revised = not_counted("it was not");
    database.judge(store, run_id, &revised).await.unwrap();
    launch(store, 2, point(1), 3.0).await;
    let study_id = database.number("select id from studies").await;
    let audit = by(1000, "a try");
    store.pin(study_id, &point(4), None, audit).await.unwrap();
    store.unpin(study_id, audit).await.unwrap();
    store
        .forget_unclaimed(std::time::Duration::ZERO)
        .await
        .unwrap();
}

async fn is_refused(connection: &mut PgConnection, statement: &'static str) {
    let error = connection.execute(statement).await.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some(REFUSED), "{statement}: {error}");
}

/// The same of several statements, the last of which is refused, in a transaction that ends with it.
async fn is_refused_in(connection: &mut PgConnection, statements: &str) {
    let error = sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut *connection)
        .await
        .unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some(REFUSED), "{statements}: {error}");
    connection.execute("rollback").await.unwrap();
}

/// Attack (units): The service's role makes tables and functions, takes rights, or changes history.
#[tokio::test]
async fn the_services_role_works_and_can_do_nothing_else() {
    let database = Database::empty().await;
    made(&database).await;
    let store = service(&database);
    let error = store.migrate().await.unwrap_err();
    assert!(
        matches!(&error, StoreError::MayNotMigrate { actual: 0, role, .. } if role == SERVICE),
        "{error}"
    );
    assert!(error.is_for_the_owner() && error.to_string().contains("--migrate"));

    let owner = Store::open(&owners_url(&database), StoreOptions::default()).unwrap();
    owner.migrate().await.unwrap();
    owner.migrate().await.unwrap();
    owner.close().await;
    store.migrate().await.unwrap();
    store.ready().await.unwrap();
    works(&database, &store).await;

    let mut connection = database.connect_as(SERVICE).await;
    for statement in [
        "create table mine ()",
        "create temporary table mine ()",
        "create schema mine",
        "create function mine() returns int language sql as 'select 1'",
        "drop table runs",
        "drop schema report cascade",
        "alter table runs add column mine int",
        "alter table audit disable trigger all",
        "truncate tested",
        "truncate audit",
        "update audit set why = 'never'",
        "delete from audit",
        "update judgements set elapsed = 1",
        "delete from judgements",
        "update reports set body = '{}'",
        "delete from reports",
        "delete from runs",
        "delete from studies",
        "update schema_needs set migration = 0",
        "delete from _sqlx_migrations",
        "call narrow_rights()",
        "insert into schema_needs values (99, false)",
        "select lo_from_bytea(0, '\\x00')",
        "select lo_create(0)",
        "select lo_creat(-1)",
        r#"set role "io-autotune-migrate""#,
    ] {
        is_refused(&mut connection, statement).await;
    }
    let limit = format!("select rolconnlimit::bigint from pg_roles where rolname = '{SERVICE}'");
    assert_eq!(database.number(&limit).await, 80);
    connection.close().await.unwrap();
}

/// Attack (units): The service's role makes tables and functions, takes rights, or changes history.
#[tokio::test]
async fn a_database_of_one_role_is_taken_over_and_later_tables_are_the_services_too() {
    let database = Database::new().await;
    made(&database).await;
    made(&database).await;
    let store = service(&database);
    store.migrate().await.unwrap();
    works(&database, &store).await;

    let mut owner = database.connect().await;
    for statement in [
        r#"set role "io-autotune-migrate""#,
        "alter table runs add column later int",
        "create table later (one int)",
    ] {
        owner.execute(statement).await.unwrap();
    }
    owner.close().await.unwrap();
    let mut connection = database.connect_as(SERVICE).await;
    for statement in [
        "insert into later values (1)",
        "update later set one = 2",
        "update runs set later = 1",
    ] {
        connection.execute(statement).await.unwrap();
    }
    is_refused(&mut connection, "truncate later").await;
    is_refused(&mut connection, "update audit set why = 'never'").await;
    connection.close().await.unwrap();
}

/// Attack (units): The owner of the tables changes, deletes or empties the audit.
#[tokio::test]
async fn the_owner_too_can_only_add_to_the_audit_and_forget_who_left() {
    let database = Database::new().await;
    let store = database.store(1);
    works(&database, &store).await;
    let mut connection = database.connect().await;
    for statement in [
        "update audit set why = 'never'",
        "delete from audit",
        "truncate audit",
        "truncate studies cascade",
    ] {
        is_refused(&mut connection, statement).await;
    }
    // A line that forgets a person, without the line that says who forgot them, now or in another
    // transaction; and with it whatever is more than that.
    let forgets = |of: &str, set: &str| {
        format!(
            "begin; select set_config('io_autotune.forgets_by', {of}::text, true),
                           set_config('io_autotune.forgets_as', '4000000001', true);
             update audit set {set}"
        )
    };
    let signed =
        "insert into audit (uid, action, detail, why) values (0, 'forget', '{}', 'they left')";
    connection.execute(signed).await.unwrap();
    for (of, set) in [
        ("(select max(id) from audit)", "why = ''"),
        ("(select min(id) from audit)", "why = ''"),
        ("''", "why = ''"),
    ] {
        is_refused_in(&mut connection, &forgets(of, set)).await;
    }
    for set in [
        "why = 'never'",
        "why = '', uid = 7",
        "why = '', at = now()",
        "why = '', action = 'pin'",
        "why = '', study_id = null",
        "why = '', detail = '{}'",
        "why = '', undoes = 1",
    ] {
        let signed = format!(
            "begin; {signed}; {}",
            &forgets("lastval()", set)["begin; ".len()..]
        );
        is_refused_in(&mut connection, &signed).await;
    }
    assert_eq!(database.number("select count(*) from audit").await, 3);
    connection.close().await.unwrap();
}
