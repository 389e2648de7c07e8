//! Forgetting a user: nothing says who it was, nothing else changes, and what was learnt stays.

use std::collections::BTreeMap;

use io_autotune_model::{Objective, Outcome};
use io_autotune_store::{
    Budgets, Directive, Forget, Forgetting, Forgot, Forgotten, NewRun, Scope, Source, Store,
    StoreError, StoreOptions, StudyFilter, StudyKey, Undone, Verdict, WarmStart,
    classified_columns,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};

use crate::roles::{self, SERVICE};
use crate::support::{
    CLUSTER, Database, Report, Start, by, counted, decision, not_counted, point, say, space, study,
    word,
};
use crate::transfer::exported;

/// What no other text in a database has: the name of the user, and of all that they named.
const TOKEN: &str = "zqxvjk";
/// A uid that is no other number.
const USER: u32 = 1_234_567_891;
const OTHER: u32 = 1001;
const ADMIN: u32 = 900;

/// Text by an admin about somebody else.
const ELSE: &str = "maintenance";

/// The text of every row, by table.
async fn rows(database: &Database) -> BTreeMap<String, Vec<String>> {
    let mut connection = database.connect().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select tablename::text from pg_tables where schemaname = 'public' order by 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let mut all = BTreeMap::new();
    for table in tables {
        let query = format!("select t::text from {table} t order by 1");
        let rows = sqlx::query_scalar(AssertSqlSafe(query))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        all.insert(table, rows);
    }
    connection.close().await.unwrap();
    all
}

/// The rows that have one of these words.
fn with_any(all: &BTreeMap<String, Vec<String>>, words: &[&str]) -> Vec<String> {
    let rows = all.iter().flat_map(|(table, rows)| {
        rows.iter()
            .filter(|row| words.iter().any(|word| row.contains(word)))
            .map(move |row| format!("{table}: {row}"))
    });
    rows.collect()
}

fn assert_unnamed(all: &BTreeMap<String, Vec<String>>, words: &[&str]) {
    let named = with_any(all, words);
    assert!(named.is_empty(), "{named:#?}");
}

/// The sums that a report is made of: nothing in it says who.
async fn sums(database: &Database) -> String {
    database
        .text(
            "select jsonb_build_object(
                 'judgements', (select jsonb_agg(to_jsonb(j) - 'verdict' - 'account' order by j.epoch_id, j.ordinal)
                                from report.judgements j),
                 'epochs', (select jsonb_agg(to_jsonb(e) - 'opened_why' - 'objective' order by e.epoch_id)
                            from report.epochs e),
                 'not_counted', (select jsonb_agg(to_jsonb(n) order by n.run_id) from report.not_counted n),
                 'tested', (select jsonb_agg(to_jsonb(t) - 'measures' order by t.epoch_id, t.key) from tested t),
                 'accounts', (select jsonb_agg(runs order by runs) from (
                                  select count(*) as runs from report.judgements group by account) a)
             )::text",
        )
        .await
}

fn named(application: &str, uid: u32, name: &str) -> StudyKey {
    StudyKey {
        owner_name: Some(name.to_owned()),
        full_name: (application != "solver").then(|| format!("{application} in full")),
        ..study(uid, application)
    }
}

/// A run with its verdict, with texts of the user's wherever there is one.
async fn run(
    database: &Database,
    store: &Store,
    study: &StudyKey,
    job_id: u32,
    texts: &str,
    verdict: Option<&Verdict>,
) -> i64 {
    let job = Start::of(job_id).job;
    let new = NewRun {
        job: &job,
        sluid: None,
        node: "n1",
        nodes: 1,
        study,
        request: json!({ "app": study.application, "job_name": texts, "comment": texts, "mode": "tune" }),
        space: &space(),
        began_at: None,
        budgets: Some(Budgets {
            user: Some(1e9),
            account: Some(1e9),
            partition: Some(1e9),
            site: Some(1e9),
            utc_offset: 0,
        }),
    };
    let started = store
        .start_run(&new, std::time::Duration::from_secs(10), |_| {
            let mut made = decision(
                io_autotune_model::Phase::Search,
                io_autotune_model::Role::Search,
                point(1),
            );
            made.explores = Some(3600.0);
            made.reason = format!("by objective.{texts}");
            made.suggestion = json!({ "control_chance": 0.25, "texts": texts });
            made.delivery = json!({ "files": [{ "text": texts }] });
            made
        })
        .await
        .unwrap();
    let directives = json!({ "kept": [texts] });
    store
        .record_directives(&job, started.run_id, &directives)
        .await
        .unwrap();
    let mut report = Report::of(job_id);
    report.study = study.clone();
    report.node = format!("n1-{texts}");
    report.applied = Some(point(1));
    report.measures = BTreeMap::from([
        (format!("objective.{texts}"), 3.0),
        ("bytes_read".to_owned(), 4096.0),
    ]);
    report.deliver(store).await.unwrap();
    let charged = Outcome {
        account: Some(format!("{texts}_account")),
        uid: Some(study.owner_uid),
        ..word(job_id, "COMPLETED")
    };
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[charged])
        .await
        .unwrap();
    let counts = counted(point(1));
    database
        .judge(store, started.run_id, verdict.unwrap_or(&counts))
        .await
        .unwrap();
    started.run_id
}

/// A database in which a user has written in each place where one can, and so has another.
async fn filled() -> (Database, Store) {
    let database = Database::new().await;
    let store = database.store(2);
    let why: &'static str = "zqxvjk wants it";
    let mine = named(&format!("{TOKEN}_app"), USER, TOKEN);
    let shared = named("solver", USER, TOKEN);
    let others = named("solver", OTHER, "bob");
    run(&database, &store, &mine, 1, TOKEN, None).await;
    run(&database, &store, &mine, 2, TOKEN, Some(&not_counted(why))).await;
    run(&database, &store, &shared, 3, TOKEN, None).await;
    run(&database, &store, &others, 4, "text", None).await;
    run(
        &database,
        &store,
        &others,
        5,
        "text",
        Some(&not_counted("suspended")),
    )
    .await;
    let study_of = async |uid: u32, application: &str| {
        database
            .number(&format!(
                "select s.id from studies s join applications a on a.id = s.application_id
                 where a.owner_uid = {uid} and a.name = '{application}'"
            ))
            .await
    };
    let own = study_of(USER, &format!("{TOKEN}_app")).await;
    let theirs = study_of(OTHER, "solver").await;

    // What the user did to their own study.
    store
        .pin(own, &point(2), None, by(USER, why))
        .await
        .unwrap();
    store.unpin(own, by(ADMIN, why)).await.unwrap();
    store
        .pin(own, &point(3), None, by(USER, why))
        .await
        .unwrap();
    store.reset(own, by(USER, why)).await.unwrap();
    store.accept_mixed(own, by(USER, why)).await.unwrap();
    let objective = Objective::named(TOKEN, true).unwrap();
    store
        .set_objective(own, &objective, by(USER, why))
        .await
        .unwrap();
    run(&database, &store, &mine, 6, TOKEN, None).await;
    store
        .pin(own, &point(4), None, by(USER, why))
        .await
        .unwrap();
    let scope = Scope {
        owner_uid: Some(USER),
        application: Some(format!("{TOKEN}_app")),
        ..Scope::default()
    };
    let values = BTreeMap::from([("cb_nodes".to_owned(), TOKEN.to_owned())]);
    let pin = Directive::Pin(values);
    store
        .order(&scope, &pin, None, by(USER, why))
        .await
        .unwrap();
    store
        .order(&scope, &Directive::Freeze, None, by(ADMIN, why))
        .await
        .unwrap();

    // To another's study, as a coordinator, and what was taken from the user's.
    store
        .pin(theirs, &point(5), None, by(USER, why))
        .await
        .unwrap();
    store.unpin(theirs, by(OTHER, ELSE)).await.unwrap();
    store.reset(theirs, by(USER, why)).await.unwrap();
    store.accept_mixed(theirs, by(USER, why)).await.unwrap();
    let application = format!("{TOKEN}_app");
    let from = WarmStart {
        study_id: own,
        application: &application,
        epoch: 1,
    };
    let ranks = |_: &_| Ok::<_, ()>(vec![point(1), point(3)]);
    let warm = store
        .warm_start(theirs, &from, ranks, by(ADMIN, ELSE))
        .await;
    warm.unwrap().unwrap();
    store
        .pin(theirs, &point(6), None, by(USER, why))
        .await
        .unwrap();

    // What is of nobody's study.
    let everyone = Scope {
        accelerator: Some("romio".to_owned()),
        ..Scope::default()
    };
    store
        .order(&everyone, &Directive::Freeze, None, by(USER, why))
        .await
        .unwrap();
    let upload = "0123456789abcdef0123456789abcdef";
    store.stage_chunk(upload, USER, 0, TOKEN).await.unwrap();
    let unclaimed = Outcome {
        uid: Some(USER),
        account: Some(TOKEN.to_owned()),
        ..word(99, "COMPLETED")
    };
    store
        .record_outcomes(Source::Squeue, CLUSTER, &[unclaimed])
        .await
        .unwrap();
    let assessment = json!({ "overview": {}, "epoch": 3, "says": format!("by objective.{TOKEN}") });
    database
        .execute(&format!(
            "update studies set assessment = '{assessment}', share = 'account {TOKEN}' where id = {own};
             update epochs set evidence = '{assessment}' where study_id = {own};
             insert into sources (study_id, epoch_id, accelerator, space_key, judged, measures, learnt)
             select study_id, id, 'romio', 1, 1, '{{\"objective.{TOKEN}\": 1}}', '{assessment}'
             from epochs where study_id = {own} order by ordinal desc limit 1;
             update runs set applied = '{{\"kind\": \"user\", \"variables\": [\"{TOKEN}\"]}}' where job_id = 2;
             update runs set missing = '{TOKEN}' where uid = {USER}"
        ))
        .await;
    (database, store)
}

fn forget(how: Forgetting) -> Forget<'static> {
    Forget {
        user: TOKEN,
        known_uid: None,
        how,
        is_dry_run: false,
    }
}

async fn done(store: &Store, asked: &Forget<'_>) -> Forgotten {
    match store.forget(asked, by(ADMIN, "they left")).await.unwrap() {
        Forgot::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nothing_names_who_was_forgotten_and_nobody_else_changes() {
    for how in [Forgetting::Pseudonym, Forgetting::Erase] {
        let (database, store) = filled().await;
        let words = [TOKEN, &USER.to_string()];
        let before = rows(&database).await;
        // Wherever one can write, one has written.
        for table in [
            "applications",
            "audit",
            "epochs",
            "exploring_charges",
            "exploring_spent",
            "import_chunks",
            "judgements",
            "orders",
            "outcomes",
            "pins",
            "reports",
            "runs",
            "sources",
            "studies",
            "study_accounts",
            "tested",
        ] {
            let own = BTreeMap::from([(table.to_owned(), before[table].clone())]);
            assert!(!with_any(&own, &words).is_empty(), "{table}");
        }
        let sums_before = sums(&database).await;

        let tried = done(
            &store,
            &Forget {
                is_dry_run: true,
                ..forget(how)
            },
        )
        .await;
        assert_eq!(rows(&database).await, before, "a dry run changes nothing");
        let really = done(&store, &forget(how)).await;
        assert_eq!(really.tables, tried.tables);
        assert_eq!((really.uid, &*really.named), (USER, &[][..]));

        let after = rows(&database).await;
        assert_unnamed(&after, &words);
        assert_eq!(sums(&database).await, sums_before, "{how:?}");
        assert_eq!(store.check_caches().await.unwrap(), []);
        // Of all rows that named them none is left as it was, and of all others each is.
        for (table, rows) in &before {
            for row in rows {
                let is_named = words.iter().any(|word| row.contains(word));
                assert_eq!(
                    !after[table].contains(row),
                    is_named,
                    "{how:?} {table}: {row}"
                );
            }
        }
        let line = "select count(*) from audit where action = 'forget' and uid = 900 and why = 'they left'";
        assert_eq!(database.number(line).await, 1);

        // Once more there is nobody, and who comes back begins anew.
        let again = store.forget(&forget(how), by(ADMIN, "they left")).await;
        assert_eq!(again.unwrap(), Forgot::Nobody);
        assert_eq!(rows(&database).await, after);
        let back = named(&format!("{TOKEN}_app"), USER, TOKEN);
        run(&database, &store, &back, 50, TOKEN, None).await;
        let fresh = "select count(*) from runs where uid = 1234567891";
        assert_eq!(database.number(fresh).await, 1);
        done(&store, &forget(how)).await;
        assert_unnamed(&rows(&database).await, &words);
    }
}

#[tokio::test]
async fn what_is_shared_keeps_its_name_and_an_admins_order_holds() {
    let (database, store) = filled().await;
    let done = done(&store, &forget(Forgetting::Pseudonym)).await;
    // What is listed has to be the engine's.
    database
        .execute("update studies set assessment = null")
        .await;
    let own = StudyFilter {
        owner_uid: Some(done.new_uid),
        ..StudyFilter::default()
    };
    let studies = store.studies(&own).await.unwrap();
    let mut names: Vec<_> = studies
        .iter()
        .map(|study| study.application.as_str())
        .collect();
    names.sort_unstable();
    assert!(names[0].starts_with("forgotten-"), "{names:?}");
    assert_eq!(names[1..], ["solver"]);
    assert!(done.name.starts_with("left-"), "{done:?}");
    let pseudonyms = "select count(distinct uid) from runs where uid >= 4000000000";
    assert_eq!(database.number(pseudonyms).await, 1);
    let in_force = "select count(*) from orders where ended_at is null and accelerator = 'romio'";
    assert_eq!(database.number(in_force).await, 1);
    let ended = "select count(*) from orders where ended_at is null and owner_uid is not null";
    assert_eq!(database.number(ended).await, 0);

    // It can be told, exported and pinned like any other, and what it was is not brought back.
    let study_ids: Vec<i64> = studies.iter().map(|study| study.study_id).collect();
    assert!(!exported(&store, &study_ids).await.contains(TOKEN));
    let line = database
        .number("select max(id) from audit where action = 'reset' and detail ? 'forgotten'")
        .await;
    let undone = store.undo(line, by(ADMIN, "back")).await.unwrap();
    assert_eq!(
        undone,
        Undone::Cannot("its user was forgotten, and with them what it did")
    );
    store
        .pin(study_ids[0], &point(1), None, by(ADMIN, ELSE))
        .await
        .unwrap();

    // A node's report that comes late is not stored.
    let mut late = Report::of(1);
    late.study = named(&format!("{TOKEN}_app"), USER, TOKEN);
    late.node = format!("n2-{TOKEN}");
    late.run_id = Some(
        database
            .number("select id from runs where job_id = 1")
            .await,
    );
    late.deliver(&store).await.unwrap();
    assert_unnamed(&rows(&database).await, &[TOKEN]);
}

#[tokio::test]
async fn who_is_erased_is_nobody_and_led_to_by_no_job() {
    let (database, store) = filled().await;
    done(&store, &forget(Forgetting::Erase)).await;
    let second = named("another", 1002, "carol");
    run(&database, &store, &second, 7, "carol", None).await;
    let asked = Forget {
        user: "carol",
        ..forget(Forgetting::Erase)
    };
    done(&store, &asked).await;
    let erased =
        "select count(distinct owner_name) from applications where forgotten_at is not null";
    assert_eq!(database.number(erased).await, 1);
    for query in [
        "select count(*) from runs where uid = 4294967293 and (cluster <> 'erased' or node <> 'erased' or job_id <> id)",
        "select count(*) from outcomes where uid = 4294967293 and (cluster <> 'erased' or node_list is not null)",
    ] {
        assert_eq!(database.number(query).await, 0, "{query}");
    }
    let all = "select count(*) from runs where cluster = 'erased'";
    assert_eq!(database.number(all).await, 5);
}

#[tokio::test]
async fn nobody_is_forgotten_whose_runs_are_awaited_or_who_is_two() {
    let (database, store) = filled().await;
    let mut start = Start::of(60);
    start.study = named("solver", USER, TOKEN);
    start.search(&store, point(1)).await;
    let before = rows(&database).await;
    let asked = forget(Forgetting::Pseudonym);
    let refused = store.forget(&asked, by(ADMIN, "they left")).await;
    assert_eq!(refused.unwrap(), Forgot::Awaited(1));
    // Another uid had the name as well, as an account that was made anew has.
    let two = Forget {
        known_uid: Some(77),
        ..asked
    };
    let refused = store
        .forget(&two, by(ADMIN, "they left"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, StoreError::SeveralUsers { .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("uids 77 and 1234567891"),
        "{refused}"
    );
    for unknown in ["nobody-of-that-name", "42"] {
        let asked = Forget {
            user: unknown,
            ..forget(Forgetting::Erase)
        };
        let nobody = store.forget(&asked, by(ADMIN, "they left")).await;
        assert_eq!(nobody.unwrap(), Forgot::Nobody);
    }
    assert_eq!(rows(&database).await, before);
}

/// What others write of a user is theirs; where it names one it is told.
#[tokio::test]
async fn what_others_wrote_of_them_stays_and_is_counted() {
    let (database, store) = filled().await;
    let theirs = database
        .number("select s.id from studies s join applications a on a.id = s.application_id where a.owner_uid = 1001")
        .await;
    let why = "as zqxvjk had it";
    store.reset(theirs, by(OTHER, why)).await.unwrap();
    store
        .reset(theirs, by(OTHER, "not zqxvjkable"))
        .await
        .unwrap();
    let done = done(&store, &forget(Forgetting::Pseudonym)).await;
    let named = [
        ("epochs.opened_why".to_owned(), 1),
        ("audit.why".to_owned(), 1),
    ];
    assert_eq!(done.named, named);
}

/// Who is forgotten by uid has a name too, in any case, also where another has an application of
/// that name; and what an earlier account of theirs was charged says no more whose it was.
#[tokio::test]
async fn a_name_is_found_in_any_case_and_an_earlier_account_goes() {
    let (database, store) = filled().await;
    let theirs = named(TOKEN, OTHER, "bob");
    run(&database, &store, &theirs, 7, "text", None).await;
    let reset = "select s.id from studies s join applications a on a.id = s.application_id where a.name = 'solver' and a.owner_uid = 1001";
    let reset = database.number(reset).await;
    store
        .reset(reset, by(OTHER, "like Zqxvjk_2026"))
        .await
        .unwrap();
    database
        .execute("update study_accounts set account = 'physics'")
        .await;
    let uid = USER.to_string();
    let asked = Forget {
        user: &uid,
        ..forget(Forgetting::Pseudonym)
    };
    let named: Vec<_> = done(&store, &asked).await.named;
    let named: Vec<_> = named.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(
        named,
        [
            "runs.request",
            "epochs.opened_why",
            "audit.why",
            "applications.name",
            "applications.full_name"
        ]
    );
    let all = rows(&database).await;
    let spent = BTreeMap::from([("spent".to_owned(), all["exploring_spent"].clone())]);
    assert_unnamed(&spent, &[TOKEN]);
}

/// Attack (units): A report comes from a node that was away while its user was erased.
/// Outcome: It is of the run that it names, and not stored.
#[tokio::test]
async fn a_late_report_brings_nobody_back_who_was_erased() {
    let (database, store) = filled().await;
    let run_id = database
        .number("select id from runs where job_id = 1")
        .await;
    done(&store, &forget(Forgetting::Erase)).await;
    let before = rows(&database).await;
    let mut late = Report::of(1);
    late.study = named(&format!("{TOKEN}_app"), USER, TOKEN);
    late.node = format!("n2-{TOKEN}");
    late.run_id = Some(run_id);
    late.deliver(&store).await.unwrap();
    let mut after = rows(&database).await;
    after.insert("nonces".to_owned(), before["nonces"].clone());
    assert_eq!(after, before);
}

/// Attack (units): A login name is made of digits, and so is another user's uid.
/// Outcome: Nobody is forgotten until it is said which of both is meant.
#[tokio::test]
async fn a_login_name_of_digits_is_not_taken_for_a_uid() {
    let (database, store) = filled().await;
    let student = named("thesis", 1002, "1001");
    run(&database, &store, &student, 7, "text", None).await;
    let before = rows(&database).await;
    let asked = |user| Forget {
        user,
        ..forget(Forgetting::Pseudonym)
    };
    let refused = store.forget(&asked("1001"), by(ADMIN, "they left")).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("uids 1001 and 1002"), "{refused}");
    assert!(refused.contains("+1001"), "{refused}");
    let account = Forget {
        known_uid: Some(1003),
        ..asked("1002")
    };
    let refused = store.forget(&account, by(ADMIN, "they left")).await;
    assert!(matches!(refused, Err(StoreError::SeveralUsers { .. })));
    // All who were erased are not one person.
    let erased = asked("4294967293");
    let erased = store.forget(&erased, by(ADMIN, "they left")).await;
    assert_eq!(erased.unwrap(), Forgot::Nobody);
    assert_eq!(rows(&database).await, before);
    assert_eq!(done(&store, &asked("+1001")).await.uid, OTHER);
    assert_eq!(done(&store, &asked("1002")).await.uid, 1002);
}

/// Attack (units): A user has given thousands of names to applications.
/// Outcome: They are forgotten all the same, and what others wrote of them is found.
#[tokio::test]
async fn thousands_of_names_are_forgotten() {
    let (database, store) = filled().await;
    database
        .execute(&format!(
            "insert into applications (owner_uid, owner_name, name)
             select {USER}, '{TOKEN}', '{TOKEN}-' || md5(n::text) || md5((-n)::text) || '.' || n
             from generate_series(1, 10000) n;
             update runs set measures = (select jsonb_object_agg('objective.{TOKEN}-' || md5(n::text) || '_' || n, 1)
                                         from generate_series(1, 3000) n)
             where id = (select min(id) from runs where uid = {USER})"
        ))
        .await;
    let theirs = database
        .number("select s.id from studies s join applications a on a.id = s.application_id where a.owner_uid = 1001")
        .await;
    let name = database
        .text("select name from applications where name like '%.9999'")
        .await;
    let why = format!("as {name} had it").leak();
    store.reset(theirs, by(OTHER, why)).await.unwrap();
    let done = done(&store, &forget(Forgetting::Pseudonym)).await;
    let named = [
        ("epochs.opened_why".to_owned(), 1),
        ("audit.why".to_owned(), 1),
    ];
    assert_eq!(done.named, named);
    let measures = database
        .number("select count(*) from runs where measures::text like '%objective.forgotten-3000%'")
        .await;
    assert_eq!(measures, 1);
}

/// Attack (units): The service's role forgets a user.
#[tokio::test]
async fn the_services_role_forgets_nobody() {
    let (database, _store) = filled().await;
    roles::make_all(&database).await;
    let service = Store::open(&database.url_of(SERVICE), StoreOptions::default()).unwrap();
    let before = rows(&database).await;
    let refused = service
        .forget(&forget(Forgetting::Erase), by(ADMIN, "they left"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, StoreError::MayNotForget { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("--migrate"), "{refused}");
    assert_eq!(rows(&database).await, before);

    let owner = format!("{}&options[role]=io-autotune-migrate", database.url());
    let owner = Store::open(&owner, StoreOptions::default()).unwrap();
    done(&owner, &forget(Forgetting::Pseudonym)).await;
    service.ready().await.unwrap();
    say(&service, 4, "COMPLETED").await;
}

/// A column that nobody has classified could keep a user for ever.
#[tokio::test]
async fn what_becomes_of_each_column_is_said() {
    let database = Database::new().await;
    let columns = database
        .text(
            "select jsonb_object_agg(table_name, columns)::text from (
                 select table_name, jsonb_agg(column_name order by column_name collate \"C\") as columns
                 from information_schema.columns
                 where table_schema = 'public' and table_name in (select tablename from pg_tables)
                   and table_name <> '_sqlx_migrations'
                 group by table_name) t",
        )
        .await;
    let there: BTreeMap<String, Value> = serde_json::from_str(&columns).unwrap();
    let mut said: BTreeMap<String, Value> = BTreeMap::new();
    for (table, columns, is_emptied) in classified_columns() {
        let columns = match is_emptied {
            true => there[table].clone(),
            false => json!(columns),
        };
        said.insert(table.to_owned(), columns);
    }
    assert_eq!(
        said, there,
        "say in tuner-service/store/src/forget/columns.rs what becomes of each column when a user is forgotten"
    );
}
