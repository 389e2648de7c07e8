//! Export and import give the same text and the same study again, and nothing of a refused file.

use std::collections::BTreeSet;
use std::time::Duration;

use io_autotune_store::{
    Cursor, EXPORT_VERSION, Import, ImportError, Imported, Source, Store, StudyFilter, Verdict,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::{
    CLUSTER, Database, Report, Start, by, counted, decision, launch, not_counted, other_space,
    point, say, study, word,
};
use io_autotune_model::{NotCountedBecause, Outcome, Phase, Role};

const UPLOAD: &str = "0123456789abcdef0123456789abcdef";
const ADMIN: u32 = 7;

pub(crate) async fn exported(store: &Store, studies: &[i64]) -> String {
    let mut lines = vec![
        json!({ "header": { "format": "io-autotune-export", "version": EXPORT_VERSION } })
            .to_string(),
    ];
    for study_id in studies {
        let mut from = None;
        loop {
            let page = store.export(*study_id, from).await.unwrap();
            lines.extend(page.lines);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    lines.push(json!({ "end": { "studies": studies.len() } }).to_string());
    lines.join("\n") + "\n"
}

async fn all(store: &Store) -> Vec<i64> {
    let studies = store.studies(&StudyFilter::default()).await.unwrap();
    studies.iter().map(|study| study.study_id).collect()
}

/// Imports a text in pieces of which some are shorter than a line, and some longer.
pub(crate) async fn imported(
    store: &Store,
    text: &str,
    change: impl FnOnce(Import<'static>) -> Import<'static>,
) -> Result<Vec<Imported>, ImportError> {
    let bytes = text.len().div_ceil(7).max(1);
    let pieces: Vec<&str> = text
        .as_bytes()
        .chunks(bytes)
        .map(|piece| std::str::from_utf8(piece).unwrap())
        .collect();
    for (place, piece) in (0..).zip(&pieces) {
        assert!(
            store
                .stage_chunk(UPLOAD, ADMIN, place, piece)
                .await
                .unwrap()
        );
    }
    let import = change(Import {
        upload: UPLOAD,
        chunks: u32::try_from(pieces.len()).unwrap(),
        cluster: CLUSTER,
        skip_existing: false,
        dry_run: false,
    });
    let audit = by(ADMIN, "a new server");
    let done = store.import(import, audit).await;
    store.discard_import(UPLOAD, ADMIN).await.unwrap();
    done
}

fn refused(done: Result<Vec<Imported>, ImportError>) -> String {
    match done {
        Err(ImportError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A study with everything that a study may have: epochs that took runs and that were reset,
/// revised verdicts, failures, evidence, a pin, an accepted mixture; and one run in flight.
async fn eventful(database: &Database, store: &Store) {
    for job_id in 1..=30 {
        let index = job_id % 5;
        let run = launch(store, job_id, point(index), 5.0 + f64::from(job_id) / 7.0).await;
        let verdict = match job_id % 7 {
            3 => Verdict::NotCounted {
                because: match job_id > 20 {
                    true => NotCountedBecause::OutOfMemory,
                    false => NotCountedBecause::Failed,
                },
                why: "it failed".into(),
                failed: Some(point(index)),
            },
            _ => counted(point(index)),
        };
        database.judge(store, run, &verdict).await.unwrap();
    }
    // A verdict that was revised.
    let first = database.number("select min(id) from runs").await;
    let not = not_counted("another word came");
    database.judge(store, first, &not).await.unwrap();
    let study_id = database.number("select id from studies").await;
    // Another space, whose epoch takes the runs.
    let mut wider = Start::of(31);
    wider.space = other_space();
    let run = wider.search(store, point(2)).await.run_id;
    let mut report = Report::of(31);
    report.space = other_space();
    report.elapsed = Some(1.0 / 3.0);
    report.applied = Some(point(2));
    report.deliver(store).await.unwrap();
    let charged = Outcome {
        account: Some("physics".into()),
        ..word(31, "COMPLETED")
    };
    let charged = std::slice::from_ref(&charged);
    let recorded = store.record_outcomes(Source::Squeue, CLUSTER, charged);
    recorded.await.unwrap();
    database
        .judge(store, run, &counted(point(2)))
        .await
        .unwrap();
    let by = by(1000, "as it was");
    store.accept_mixed(study_id, by).await.unwrap();
    execute(
        database,
        "update epochs set evidence = jsonb_build_object('through', (select max(id) from runs), 'since', 3, 'before', 1),
                drift = null where ordinal = 1;
         update studies set assessment = null;
         insert into surroundings (cluster, at, slowness, runs)
             select 'alpha', min(started_at) - interval '1 second', 0.1234567890123456, 4 from runs",
    )
    .await;
    store.reset(study_id, by).await.unwrap();
    store.pin(study_id, &point(3), None, by).await.unwrap();
    let mut flying = Start::of(32);
    flying.space = other_space();
    flying.search(store, point(4)).await;
}

async fn execute(database: &Database, statements: &'static str) {
    let mut connection = database.connect().await;
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn what_was_exported_and_imported_is_exported_the_same() {
    let from = Database::new().await;
    let store = from.store(2);
    eventful(&from, &store).await;
    Start {
        study: study(1001, "other"),
        ..Start::of(90)
    }
    .search(&store, point(1))
    .await;
    let text = exported(&store, &all(&store).await).await;
    assert!(text.lines().count() > 60, "{text}");
    assert!(!text.contains("\"job_id\":32"), "a run in flight is out");
    let state = store.study_state(1).await.unwrap();
    let to = Database::new().await;
    let there = to.store(2);
    // Other studies have the first numbers.
    for job_id in 1..4 {
        let mut start = Start::of(500 + job_id);
        start.study = study(1002, "before");
        start.search(&there, point(1)).await;
    }
    let studies = imported(&there, &text, |import| import).await.unwrap();
    assert_eq!(studies.len(), 2);
    assert_eq!((studies[1].epochs, studies[1].runs), (3, 31));
    let ids: Vec<i64> = studies.iter().map(|one| one.study_id).collect();
    assert_eq!(exported(&there, &ids).await, text);
    let of_the_second = StudyFilter {
        study_id: Some(ids[1]),
        ..StudyFilter::default()
    };
    let second = &there.studies(&of_the_second).await.unwrap()[0];
    assert_eq!(second.account.as_deref(), Some("physics"));
    assert_eq!(there.check_caches().await.unwrap(), []);
    let again = there.study_state(ids[1]).await.unwrap();
    assert_eq!((again.epoch, again.seed), (state.epoch, state.seed));
    assert_eq!(again.pin, state.pin);
    assert_eq!(again.opened, state.opened);
    assert!(again.accepts_mixed);
    assert_eq!(to.number("select count(*) from import_chunks").await, 0);
    assert_eq!(
        to.number("select count(*) from audit where action = 'import' and uid = 7")
            .await,
        2
    );
    let second = to.number("select id from epochs where ordinal = 2").await;
    let first = from.number("select id from epochs where ordinal = 2").await;
    let (mut now, mut then) = (
        there.history_at(second, 1).await.unwrap(),
        store.history_at(first, 1).await.unwrap(),
    );
    // Runs have other numbers here, in the same order.
    for history in [&mut now, &mut then] {
        for tested in &mut history.tested {
            tested.first_ordinal = 0;
            let runs = tested.recent.iter_mut().chain(&mut tested.censored);
            runs.for_each(|run| run.ordinal = 0);
        }
    }
    assert_eq!(now, then);
    // A job that begins continues where the study was.
    let mut next = Start::of(33);
    next.space = other_space();
    let run = next
        .ask(&there, |state| {
            assert_eq!(state.study_id, ids[1]);
            decision(Phase::Search, Role::Search, point(1))
        })
        .await;
    run.unwrap();
}

#[tokio::test]
async fn pages_of_many_runs_are_the_study() {
    let database = Database::new().await;
    let store = database.store(2);
    for job_id in 1..=230 {
        let run = launch(&store, job_id, point(job_id % 24), f64::from(job_id)).await;
        database
            .judge(&store, run, &counted(point(job_id % 24)))
            .await
            .unwrap();
    }
    let text = exported(&store, &[1]).await;
    let count = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("{\"run\""), count("{\"report\"")), (230, 230));
    let to = Database::new().await;
    let there = to.store(2);
    imported(&there, &text, |import| import).await.unwrap();
    assert_eq!(exported(&there, &[1]).await, text);
    assert_eq!(there.check_caches().await.unwrap(), []);
}

#[tokio::test]
async fn no_page_tells_of_a_run_in_flight_whatever_its_cursor_says() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut runs = Vec::new();
    for job_id in 1..=3 {
        runs.push(launch(&store, job_id, point(1), 9.0).await);
    }
    execute(
        &database,
        "update runs set phase = 'settled', role = 'control' where job_id = 2",
    )
    .await;
    database
        .judge(&store, runs[0], &counted(point(1)))
        .await
        .unwrap();
    let judged = database.number("select max(id) from judgements").await;
    let cursor = |judgement: i64| Some(format!("{judgement}.0").parse::<Cursor>().unwrap());
    let has_secrets = async |from| store.has_secrets(1, from).await.unwrap();
    assert!(has_secrets(None).await);
    assert!(!has_secrets(cursor(judged)).await, "it was not there yet");
    database
        .judge(&store, runs[2], &counted(point(1)))
        .await
        .unwrap();
    assert!(!has_secrets(cursor(judged)).await);
    assert!(has_secrets(cursor(i64::MAX)).await, "the third run knew it");
    database
        .judge(&store, runs[1], &counted(point(1)))
        .await
        .unwrap();
    assert!(!has_secrets(None).await);
}

#[tokio::test]
async fn what_is_judged_while_it_is_exported_is_as_at_the_beginning() {
    let database = Database::new().await;
    let store = database.store(2);
    let mut runs = Vec::new();
    for job_id in 1..=205 {
        runs.push(launch(&store, job_id, point(1), 9.0).await);
    }
    for run in [&runs[..203], &runs[204..]].concat() {
        database
            .judge(&store, run, &counted(point(1)))
            .await
            .unwrap();
    }
    let mut page = store.export(1, None).await.unwrap();
    assert!(page.lines.len() < 204, "it is not all of it");
    // A first verdict, and another one.
    database
        .judge(&store, runs[203], &counted(point(1)))
        .await
        .unwrap();
    let not = not_counted("another word came");
    database.judge(&store, runs[204], &not).await.unwrap();
    let mut lines = page.lines;
    while let Some(next) = page.next {
        page = store.export(1, Some(next)).await.unwrap();
        lines.append(&mut page.lines);
    }
    let records = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<_> = records
        .filter(|one| one["run"].is_object())
        .map(|one| {
            let run = &one["run"];
            let judgements = run["judgements"].as_array().unwrap().len();
            let awaits = run["awaits_verdict"].as_bool();
            (run["job_id"].as_u64().unwrap(), judgements, awaits)
        })
        .collect();
    assert_eq!(told.len(), 204);
    assert_eq!(told[202..], [(203, 1, Some(false)), (205, 1, Some(true))]);
}

/// Attack (values): An imported file is cut, malformed, of a newer version, or contradicts itself.
/// Outcome: It is refused with the place.
#[tokio::test]
async fn a_file_that_is_wrong_leaves_nothing_and_says_where() {
    let from = Database::new().await;
    let store = from.store(2);
    eventful(&from, &store).await;
    let text = exported(&store, &[1]).await;
    let to = Database::new().await;
    let there = to.store(2);
    let line_of = |kind: &str| {
        1 + text
            .lines()
            .position(|line| line.starts_with(&format!("{{\"{kind}\"")))
            .unwrap()
    };
    let without_end = text.rsplit_once("{\"end\"").unwrap().0.to_owned();
    let lines: Vec<&str> = text.lines().collect();
    let without = |line: usize| {
        let mut kept = lines.clone();
        kept.remove(line - 1);
        kept.join("\n")
    };
    let twice = |line: usize| {
        let mut kept = lines.clone();
        kept.insert(line, lines[line - 1]);
        kept.join("\n")
    };
    let run = line_of("run");
    for (wrong, said) in [
        (without_end, "file: it ends before its end".to_owned()),
        (text[..text.len() / 2].to_owned(), "line ".to_owned()),
        (
            text.replacen("\"version\":2", "\"version\":3", 1),
            "line 1, header: the file has version 3".to_owned(),
        ),
        (
            text.replacen("\"restart_count\":0", "\"restart_count\":\"x\"", 1),
            format!("line {run}, run.restart_count: "),
        ),
        (
            text.replacen("\"generation\":0", "\"colour\":0", 1),
            format!("line {run}, run"),
        ),
        (
            without(2),
            "line 2, epoch: it comes before its study".to_owned(),
        ),
        (without(3), "line 3, epoch.ordinal: ".to_owned()),
        (
            text.replacen("\"ordinal\":2,\"effect\"", "\"ordinal\":77,\"effect\"", 1),
            "run.judgements: epoch 1 has 31 judgements".to_owned(),
        ),
        (
            without(run),
            "report.launch: the study has no run of job 1".to_owned(),
        ),
        (
            twice(run),
            "run.job_id: this launch is in the file already".to_owned(),
        ),
        (twice(2), "study: the study before has no epoch".to_owned()),
        (
            text.replacen("\"elapsed\":5.", "\"elapsed\":-5.", 1),
            "runs_elapsed_check".to_owned(),
        ),
        (
            text.replacen("\"through\":31", "\"through\":77", 1),
            "epoch.places.through: epoch 1 names run 77".to_owned(),
        ),
        (
            text.replace("{\"studies\":1}", "{\"studies\":2}"),
            "end.studies".to_owned(),
        ),
        (
            format!("{text}{{}}"),
            "nothing comes after the end".to_owned(),
        ),
        (String::from("x"), "line 1, header".to_owned()),
    ] {
        assert_ne!(wrong, text, "{said}");
        let why = refused(imported(&there, &wrong, |import| import).await);
        assert!(why.contains(&said), "{said}: {why}");
        for table in ["applications", "studies", "runs", "audit", "import_chunks"] {
            let query: &'static str =
                Box::leak(format!("select count(*) from {table}").into_boxed_str());
            assert_eq!(to.number(query).await, 0, "{table} after {said}");
        }
    }
    // The study existed in none of these.
    let would = imported(&there, &text, |import| Import {
        dry_run: true,
        ..import
    })
    .await;
    assert_eq!(would.unwrap()[0].runs, 31);
    assert_eq!(to.number("select count(*) from studies").await, 0);
    imported(&there, &text, |import| import).await.unwrap();
}

#[tokio::test]
async fn a_study_that_exists_is_refused_or_left_out() {
    let from = Database::new().await;
    let store = from.store(2);
    eventful(&from, &store).await;
    let mut other = Start::of(90);
    other.study = study(1001, "other");
    let run = other.search(&store, point(1)).await.run_id;
    say(&store, 90, "CANCELLED").await;
    let not = not_counted("cancelled");
    from.judge(&store, run, &not).await.unwrap();
    let text = exported(&store, &all(&store).await).await;
    let to = Database::new().await;
    let there = to.store(2);
    Start::of(700).search(&there, point(1)).await;
    let before = exported(&there, &[1]).await;
    let why = refused(imported(&there, &text, |import| import).await);
    assert!(
        why.contains("solver of uid 1000 with romio (study 1)"),
        "{why}"
    );
    assert!(why.contains("--skip-existing"), "{why}");
    let skipping = |import| Import {
        skip_existing: true,
        ..import
    };
    let studies = imported(&there, &text, skipping).await.unwrap();
    let told: Vec<_> = studies
        .iter()
        .map(|one| (one.key.owner_uid, one.skipped))
        .collect();
    assert_eq!(told, [(1001, false), (1000, true)]);
    assert_eq!(exported(&there, &[1]).await, before);
    assert_eq!(to.number("select count(*) from studies").await, 2);
}

/// Whose runs a decision was made from besides is the service's own, and no number of an epoch means
/// the same elsewhere.
///
/// Attack (sharing): A user looks in an export for whose runs a study used, or writes names into an
/// import.
/// Outcome: The export has numbers alone, and an import names nobody.
#[tokio::test]
async fn whom_a_study_heard_stays_behind_and_a_replay_elsewhere_says_so() {
    let here = Database::new().await;
    let store = here.store(2);
    eventful(&here, &store).await;
    execute(
            &here,
            "update runs set suggestion = suggestion || '{\"others\": [{\"epoch_id\": 7, \"judged\": 4}],
                 \"sources\": [{\"epoch_id\": 8, \"judged\": 3}], \"order\": 9}'
                 where id = (select min(id) from runs);
             update studies set share = 'group ocean', assessment = '{\"epoch\": 1, \"effects\": [], \"findings\": [],
                 \"gain\": {\"verdict\": \"not_yet\", \"reason\": \"x\", \"level\": 0.95, \"tuned_runs\": 0,
                             \"control_runs\": 0, \"evidence\": 1},
                 \"shared\": {\"by\": \"group ocean\", \"number\": 1, \"studies\": [1, 2],
                             \"gain\": {\"verdict\": \"not_yet\", \"reason\": \"x\", \"level\": 0.95, \"tuned_runs\": 0,
                                        \"control_runs\": 0, \"evidence\": 1}}}'",
        )
        .await;
    let text = exported(&store, &all(&store).await).await;
    assert!(text.contains("\"others_elsewhere\":1") && !text.contains("\"epoch_id\""));
    assert!(text.contains("\"sources_elsewhere\":1"));
    assert!(!text.contains("group ocean") && !text.contains("\"order\""));
    let there = Database::new().await;
    let store = there.store(2);
    // Names that somebody wrote into the text identify nobody here.
    let forged = text.replace(
        "\"others_elsewhere\":1",
        "\"order\":9,\"sources\":[],\"others\":[{\"epoch_id\":1,\"judged\":1}]",
    );
    imported(&store, &forged, |import| import).await.unwrap();
    let named = "select count(*) from runs where suggestion ?| '{others,sources,order}'";
    assert_eq!(there.number(named).await, 0);
    let shares = "select count(*) from studies where share is not null or assessment ? 'shared'";
    assert_eq!(there.number(shares).await, 0);
}

/// Attack (others): A user or an operator imports a study, or adds to another's upload.
/// Outcome: It is refused before the body is read; an unended upload is forgotten.
#[tokio::test]
async fn pieces_are_one_users_and_are_forgotten() {
    let database = Database::new().await;
    let store = database.store(2);
    let stage = async |uid, place, text| store.stage_chunk(UPLOAD, uid, place, text).await.unwrap();
    assert!(stage(7, 0, "a").await);
    assert!(stage(7, 0, "a").await, "the same again");
    assert!(!stage(7, 0, "b").await, "another in its place");
    assert!(!stage(8, 1, "b").await, "another's");
    store.discard_import(UPLOAD, 8).await.unwrap();
    assert_eq!(
        store.forget_imports(Duration::from_hours(1)).await.unwrap(),
        0
    );
    execute(
        &database,
        "update import_chunks set received_at = now() - interval '2 hours'",
    )
    .await;
    assert!(stage(7, 1, "b").await);
    assert_eq!(
        store.forget_imports(Duration::from_hours(1)).await.unwrap(),
        0
    );
    execute(
        &database,
        "update import_chunks set received_at = now() - interval '2 hours'",
    )
    .await;
    assert_eq!(
        store.forget_imports(Duration::from_hours(1)).await.unwrap(),
        2
    );
}

/// A column that a later migration adds must be carried, or be listed here.
#[tokio::test]
async fn every_column_is_carried_or_the_installation_s() {
    let database = Database::new().await;
    let store = database.store(2);
    eventful(&database, &store).await;
    let text = exported(&store, &[1]).await;
    let record = |kind: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{{\"{kind}\"")));
        let value: Value = serde_json::from_str(line.unwrap()).unwrap();
        value[kind].clone()
    };
    let run = record("run");
    for (table, record, others) in [
        (
            "runs",
            run.clone(),
            // Identified by place, or by its latest judgement.
            "id epoch_id state verdict judged_at judged_ordinal changes judged_changes",
        ),
        (
            "judgements",
            run["judgements"][0].clone(),
            "id epoch_id run_id",
        ),
        (
            "outcomes",
            run["outcomes"][0].clone(),
            "id cluster job_id run_id",
        ),
        ("reports", record("report"), "id run_id"),
        ("surroundings", run["surroundings"].clone(), "cluster"),
        (
            "epochs",
            record("epoch"),
            // The sums of the judgements, and `removed`.
            "id study_id parent_id baseline explored controls settled settled_controls proof total judgements \
                 removed_at removed_run removed_start",
        ),
        (
            "studies",
            record("study"),
            // A rule of the site decides the share, and the importer the cluster; the importing service
            // assesses by its own engine and settings.
            "id application_id context_key mixed_accepted_at mixed_accepted_by mixed_accepted_why share \
                 cluster assessed_by",
        ),
        ("pins", record("study")["pin"].clone(), "study_id"),
    ] {
        let mut connection = database.connect().await;
        let columns: Vec<String> = sqlx::query_scalar(
            "select column_name::text from information_schema.columns
                 where table_schema = 'public' and table_name = $1",
        )
        .bind(table)
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let others: BTreeSet<&str> = others.split(' ').collect();
        for column in &columns {
            let carried = record.get(column).is_some();
            assert!(
                carried != others.contains(column.as_str()),
                "{table}.{column}: carried {carried}; {record}"
            );
        }
    }
}
