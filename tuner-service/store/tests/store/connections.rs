//! Connections that the database drops, and databases that are not there.

use std::time::{Duration, Instant};

use io_autotune_model::{Phase, Role};
use io_autotune_store::{Audit, Directive, Scope, Store, StoreError, StoreOptions, StudyState};
use io_autotune_test_database::Relay;
use tokio::task::JoinSet;

use crate::support::{Database, Report, Start, at_least_once_within, decision, point};

#[tokio::test]
async fn the_store_goes_on_after_the_database_dropped_its_connections() {
    let database = Database::new().await;
    let store = database.store(4);
    let mut starting = JoinSet::new();
    for job_id in 1..=4 {
        let store = store.clone();
        starting.spawn(async move { Start::of(job_id).search(&store, point(1)).await });
    }
    starting.join_all().await;
    let dropped = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
                       where datname = current_database() and pid <> pg_backend_pid()";
    assert!(database.number(dropped).await >= 1);
    // A request that comes at once may meet one of them, and is repeated.
    while let Err(error) = Report::of(1).deliver(&store).await {
        assert!(error.is_transient() && error.is_outage(), "{error}");
    }
    while let Err(error) = Start::of(5).try_search(&store, point(2)).await {
        assert!(error.is_transient() && error.is_outage(), "{error}");
    }
    store.ready().await.unwrap();
}

/// As at a fail-over, before its replica is promoted: who asks again may be answered.
///
/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn a_database_that_is_read_only_is_an_outage() {
    let database = Database::new().await;
    let read_only = |value: &str| {
        format!(
            "do $$ begin execute format('alter database %I {value}', current_database()); end $$"
        )
    };
    database
        .execute(&read_only("set default_transaction_read_only = on"))
        .await;
    let store = database.store(1);
    let errors = [
        Start::of(1).try_search(&store, point(1)).await.unwrap_err(),
        Report::of(1).deliver(&store).await.unwrap_err(),
        store.is_first_reading(&"0".repeat(32)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_transient() && error.is_outage(), "{error}");
        assert!(error.to_string().contains("takes no writes"), "{error}");
    }
    let error = store.ready().await.unwrap_err();
    assert!(error.is_outage() && error.is_answer(), "{error}");
    let said = "takes no writes: default_transaction_read_only is on";
    assert!(error.to_string().ends_with(said), "{error}");
    assert!(error.remedy().unwrap().contains("alter system reset"));
    assert_eq!(store.studies_of(1000).await.unwrap(), 0);
    database
        .execute(&read_only("reset default_transaction_read_only"))
        .await;
    at_least_once_within(Duration::from_secs(10), "it is ready", async || {
        store.ready().await.is_ok()
    })
    .await;
    Start::of(1).search(&store, point(1)).await;
    assert_eq!(database.number("select count(*) from runs").await, 1);
}

async fn unready(url: &str) -> StoreError {
    let options = StoreOptions {
        connections: 1,
        ..StoreOptions::default()
    };
    let begun = Instant::now();
    let error = Store::open(url, options)
        .unwrap()
        .ready()
        .await
        .unwrap_err();
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(5), "{error}: {taken:?}");
    error
}

/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn what_keeps_the_service_from_its_database_is_called_what_it_is() {
    let database = Database::new().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let limited = format!("limited_{}", std::process::id());
    database
        .execute(&format!("create role {limited} login connection limit 0"))
        .await;
    let named = database.text("select current_database()").await;
    let lost = database.url().replace(&named, "lost_database");
    for (url, expected, remedy) in [
        (
            "postgres:///none?host=/nonexistent&user=none".to_owned(),
            "/nonexistent:5432 is no socket",
            "start PostgreSQL there",
        ),
        (
            format!("postgres://none@127.0.0.1:{port}/none"),
            "refuses the connection: no server listens there",
            "start PostgreSQL there",
        ),
        (
            "postgres://none@host.invalid/none".to_owned(),
            "host.invalid:5432 is an unknown host",
            "name service",
        ),
        (lost, "lacks the database", "make it"),
        (
            database.url_of("nobody_special"),
            "refuses the role",
            "roles.sql",
        ),
        (
            database.url_of(&limited),
            "has no connection left: too many connections for role",
            "connection limit",
        ),
    ] {
        let error = unready(&url).await;
        assert!(
            matches!(error, StoreError::Unavailable { .. }),
            "{url}: {error:?}"
        );
        assert!(error.to_string().contains(expected), "{url}: {error}");
        let said = error.remedy().unwrap();
        assert!(said.contains(remedy), "{url}: {said}");
        assert!(error.is_outage() && !error.is_answer(), "{url}: {error}");
    }
    database.execute(&format!("drop role {limited}")).await;
}

#[tokio::test]
async fn of_several_servers_each_is_named_until_one_takes_writes() {
    let database = Database::new().await;
    let url = database.url();
    let server = Store::open(&url, StoreOptions::default()).unwrap();
    server.ready().await.unwrap();
    let socket =
        database.text("select split_part(current_setting('unix_socket_directories'), ',', 1)");
    let (socket, port) = (socket.await, database.text("show port").await);
    let named = database.text("select current_database()").await;
    let user = database.text("select current_user::text").await;
    let of = |hosts: &str, ports: &str| {
        format!("postgres:///{named}?user={user}&host={hosts}&port={ports}")
    };
    let error = unready(&of("/nonexistent,host.invalid", "5432,5433")).await;
    let said = error.to_string();
    assert!(said.contains("/nonexistent:5432 is no socket"), "{said}");
    assert!(
        said.contains("host.invalid:5433 is an unknown host"),
        "{said}"
    );
    let both = of(&format!("/nonexistent,{socket}"), &format!("5432,{port}"));
    let store = Store::open(&both, StoreOptions::default()).unwrap();
    store.ready().await.unwrap();
    Start::of(1).search(&store, point(1)).await;

    // One that accepts connections and sends nothing, as behind a firewall.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let error = unready(&of("127.0.0.1", &silent_port.to_string())).await;
    assert!(
        error.to_string().contains("does not answer in time"),
        "{error}"
    );
    let both = of(
        &format!("127.0.0.1,{socket}"),
        &format!("{silent_port},{port}"),
    );
    let store = Store::open(&both, StoreOptions::default()).unwrap();
    let begun = Instant::now();
    let mut starting = JoinSet::new();
    for job_id in 2..22 {
        let store = store.clone();
        starting.spawn(async move { Start::of(job_id).try_search(&store, point(1)).await });
    }
    for started in starting.join_all().await {
        started.unwrap();
    }
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(2), "a prolog's time: {taken:?}");
}

#[tokio::test]
async fn when_all_connections_are_in_use_that_is_what_is_said() {
    let database = Database::new().await;
    let options = StoreOptions {
        connections: 1,
        ..StoreOptions::default()
    };
    let store = Store::open(database.url().as_str(), options).unwrap();
    let asked = store.clone();
    let counted = while_deciding(&store, 1, async move { asked.studies_of(1).await }).await;
    let error = counted.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(error.remedy().unwrap().contains("user_connections"));
}

/// Returns the answer to `asks`, asked while a start of this job decides and so holds its
/// connection.
async fn while_deciding<T: Send + 'static>(
    store: &Store,
    job_id: u32,
    asks: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut asks = Some(asks);
    let mut answer = None;
    Start::of(job_id)
        .ask(store, |_| {
            let asks = asks.take().expect("a start decides once");
            // Whoever decides is not asynchronous, so the other asks from a thread of its own.
            let other = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(asks)
            });
            answer = Some(other.join().unwrap());
            decision(Phase::Search, Role::Search, point(2))
        })
        .await
        .unwrap();
    answer.unwrap()
}

/// The number of transactions that start a run and are open while one decides, as seen from
/// outside.
async fn open_while_deciding(database: &Database, store: &Store, job_id: u32) -> i64 {
    let database = database.clone();
    let open = "select count(*) from pg_stat_activity
                where datname = current_database() and state = 'idle in transaction'
                    and application_name = 'io-autotuned start_run'";
    while_deciding(store, job_id, async move { database.number(open).await }).await
}

#[tokio::test]
async fn transactions_show_their_names_to_the_admin_and_a_kept_epoch_needs_none() {
    let database = Database::new().await;
    let [store, other] = [database.store(2), database.store(2)];
    assert_eq!(open_while_deciding(&database, &store, 1).await, 1);
    assert_eq!(open_while_deciding(&database, &store, 2).await, 0);
    assert_eq!(open_while_deciding(&database, &other, 3).await, 1);
    assert_eq!(open_while_deciding(&database, &store, 4).await, 0);
    let left = "select count(*) from pg_stat_activity
                    where datname = current_database() and application_name like 'io-autotuned %'";
    assert_eq!(database.number(left).await, 0);
}

/// A store whose statements PostgreSQL ends by itself after a moment, over a network that can be
/// cut.
async fn over_a_network(database: &Database, connections: u32) -> (Relay, Store) {
    let relay = Relay::to(database).await;
    let options = StoreOptions {
        connections,
        statement_timeout: Duration::from_millis(500),
        ..StoreOptions::default()
    };
    let store = Store::open(&relay.url(), options).unwrap();
    store.ready().await.unwrap();
    (relay, store)
}

/// The longest that any request waits, whichever of its statements meets the silence.
const NOT_FOR_EVER: Duration = Duration::from_secs(5);

/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn a_database_that_is_gone_without_a_word_is_not_waited_for() {
    let database = Database::new().await;
    let (relay, store) = over_a_network(&database, 1).await;
    let begun = Instant::now();
    let cut = |_: &StudyState| {
        relay.cut();
        decision(Phase::Search, Role::Search, point(1))
    };
    let error = Start::of(1).ask(&store, cut).await.unwrap_err();
    assert!(begun.elapsed() < NOT_FOR_EVER, "{:?}", begun.elapsed());
    assert!(error.is_outage() && !error.is_answer(), "{error}");
    let said = error.to_string();
    assert!(said.ends_with("does not answer in time"), "{said}");
    relay.mend();
    at_least_once_within(NOT_FOR_EVER, "it is ready", async || {
        store.ready().await.is_ok()
    })
    .await;
    Start::of(2).search(&store, point(1)).await;
    assert_eq!(database.number("select count(*) from runs").await, 1);
}

/// Whoever asked has gone before the answer came, which may still come or never.
#[tokio::test]
async fn a_request_that_is_dropped_before_its_answer_gives_its_connection_back() {
    let database = Database::new().await;
    let relay = Relay::to(&database).await;
    let one = StoreOptions {
        connections: 1,
        ..StoreOptions::default()
    };
    let store = Store::open(&relay.url(), one).unwrap();
    let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
    for is_cut in [false, true] {
        let held = database
            .hold("lock table nonces in access exclusive mode")
            .await;
        let nonce = format!("{:032x}", u8::from(is_cut));
        tokio::select! {
            answer = store.is_first_reading(&nonce) => panic!("it had to wait: {answer:?}"),
            () = at_least_once_within(NOT_FOR_EVER, "it waits", async || {
                database.number(waiting).await > 0
            }) => {}
        }
        if is_cut {
            relay.cut();
        }
        held.release().await;
        relay.mend();
        at_least_once_within(NOT_FOR_EVER, "it is ready", async || {
            store.ready().await.is_ok()
        })
        .await;
    }
}

/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn whoever_comes_after_the_database_has_gone_without_a_word_is_told_so() {
    let database = Database::new().await;
    let (relay, store) = over_a_network(&database, 8).await;
    Start::of(1).search(&store, point(1)).await;
    let mut warm = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        warm.spawn(async move { store.studies_of(1000).await });
    }
    assert!(warm.join_all().await.iter().all(Result::is_ok));
    relay.cut();
    let begun = Instant::now();
    let mut asking: JoinSet<Result<(), StoreError>> = JoinSet::new();
    for number in 0..8 {
        let store = store.clone();
        asking.spawn(async move {
            match number % 4 {
                0 => Start::of(number + 2)
                    .try_search(&store, point(1))
                    .await
                    .map(drop),
                1 => Report::of(1).deliver(&store).await.map(drop),
                2 => store.studies_of(1000).await.map(drop),
                _ => store.overview(0).await.map(drop),
            }
        });
    }
    for asked in asking.join_all().await {
        let error = asked.unwrap_err();
        assert!(error.is_outage() && !error.is_answer(), "{error}");
    }
    assert!(begun.elapsed() < NOT_FOR_EVER, "{:?}", begun.elapsed());
    let begun = Instant::now();
    store.ready().await.unwrap_err();
    let taken = begun.elapsed();
    assert!(
        taken < Duration::from_secs(2),
        "it is known by now: {taken:?}"
    );
    relay.mend();
    at_least_once_within(NOT_FOR_EVER, "it is ready", async || {
        store.ready().await.is_ok()
    })
    .await;
    Report::of(1).deliver(&store).await.unwrap();
}

/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn after_a_refused_write_the_next_request_has_a_session_that_takes_it() {
    let database = Database::new().await;
    let store = database.store(1);
    let start = Start::of(1);
    let audit = Audit::unbounded(0, "a test");
    store
        .order(&Scope::default(), &Directive::Freeze, None, audit)
        .await
        .unwrap();
    let state = store.state_of(&start.study, &start.space).await.unwrap();
    // A start reads the orders before it writes its run. Reading them makes the session read-only
    // from then on.
    database
        .execute(
            "create function turned() returns boolean volatile language sql as
             $$ select set_config('default_transaction_read_only', 'on', false) is not null $$;
             do $$ declare orders text := rtrim(pg_get_viewdef('orders_in_force'::regclass), ';'); begin
                 execute 'create or replace view orders_in_force as
                          select * from (' || orders || ') as in_force where turned()';
             end $$",
        )
        .await;
    // The next request looks at the server while the refused session returns to the pool. Which is
    // there first differs from round to round.
    for round in 0..20 {
        let refused = start.try_unlocked(&store, &state).await.unwrap_err();
        assert!(refused.is_outage(), "{refused}");
        assert!(refused.to_string().contains("takes no writes"), "{refused}");
        assert!(
            store
                .is_first_reading(&format!("{round:032}"))
                .await
                .unwrap()
        );
    }
}

/// Removing history may take longer than other statements, and is waited for.
#[tokio::test]
async fn a_statement_that_may_take_longer_is_waited_for() {
    let database = Database::new().await;
    let (_relay, store) = over_a_network(&database, 1).await;
    database
        .execute(
            "alter function remove_history(interval, integer, bigint, text) rename to as_before;
             create function remove_history(older interval, batch integer, by bigint, reason text,
                 out runs bigint, out judgements bigint, out reports bigint, out outcomes bigint, out trimmed bigint,
                 out more boolean, out first_start timestamptz, out last_start timestamptz)
             language plpgsql as $$ begin
                 perform pg_sleep(3);
                 select 0, 0, 0, 0, 0, false into runs, judgements, reports, outcomes, trimmed, more;
             end $$",
        )
        .await;
    let removed = store
        .remove_history(30, Audit::unbounded(0, "a test"))
        .await;
    assert!(!removed.unwrap().1);
}
