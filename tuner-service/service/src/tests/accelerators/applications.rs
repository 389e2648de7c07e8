//! Tests of the application of a job by its name and the site's rules.

use super::*;

const UUID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// The text that the plugin sends for a job of this name and comment, whose escapes are the
/// caller's.
fn named(name: &str, comment: &str) -> String {
    format!("name={name},comment={comment},mode=tune")
}

/// A service with a file of rules, and where that is.
async fn with_rules(text: &str) -> (TestService, std::path::PathBuf) {
    let service = TestService::new().await;
    let path = service.files.path("applications.toml");
    std::fs::write(&path, text).unwrap();
    service
        .reload(&format!("[applications]\nrules = {path:?}\n"))
        .await;
    (service, path)
}

const MINE: &str = r#"
[[rules]]
name = "mine"
job_name = '^nf-MADE_UP_.(?<sample>.*).$'
application = "sample-{sample}"
"#;

#[tokio::test]
async fn samples_share_a_history_by_the_sites_rules() {
    let service = TestService::new().await;
    let mut runs = Vec::new();
    for sample in ["s1", "s2"] {
        let request = named(&format!("nf-MADE_UP_%28{sample}%29"), "very-private");
        runs.push(service.job(ALICE, &request).runs(&service, 2.0).await);
    }
    assert!(
        runs.iter().all(|run| run["application"] == "nf-MADE_UP"),
        "{runs:?}"
    );
    assert_eq!(runs[0]["study_id"], runs[1]["study_id"]);
    // `explain` says by which rule, from which name.
    let detail = service
        .run_of(u32::try_from(runs[1]["job_id"].as_u64().unwrap()).unwrap())
        .await;
    assert_eq!(detail["request"]["rule"], "nextflow", "{detail}");
    assert_eq!(detail["request"]["job_name"], "nf-MADE_UP_(s2)");
}

#[tokio::test]
async fn a_comment_that_decides_nothing_is_kept_nowhere() {
    let service = TestService::new().await;
    let job = service.job(ALICE, &named("nf-MADE_UP_%28s1%29", "very-private"));
    job.runs(&service, 2.0).await;
    for stored in [
        "select count(*) from runs where request::text like '%very-private%'",
        "select count(*) from reports where body::text like '%very-private%'",
    ] {
        assert_eq!(service.database.number(stored).await, 0, "{stored}");
    }
    assert_eq!(
        service
            .database
            .number("select count(*) from reports")
            .await,
        1
    );
    let detail = service.run_of(job.job.job_id).await;
    assert_eq!(detail["request"].get("comment"), None, "{detail}");
}

#[tokio::test]
async fn a_comment_is_kept_only_if_its_rule_reads_it() {
    let service = TestService::new().await;
    let comment = "rule_made_up_wildcards_s1";
    let job = service.job(ALICE, &named(UUID, comment));
    let run = job.runs(&service, 2.0).await;
    assert_eq!(
        (&run["application"], &run["state"]),
        (&json!("smk-made_up"), &json!("counted"))
    );
    let detail = service.run_of(job.job.job_id).await;
    assert_eq!(detail["request"]["comment"], comment, "{detail}");
    let names = service.user(ALICE).get("/v1/applications/names").await.ok();
    assert_eq!(names["names"][0]["comment"], comment, "{names}");
}

#[tokio::test]
async fn a_name_that_no_rule_knows_and_says_nothing_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, &named(UUID, "mine"));
    let run = job.runs(&service, 2.0).await;
    assert_eq!(
        (&run["application"], &run["state"]),
        (&json!("unnamed"), &json!("not_counted"))
    );
    assert_eq!(run["role"], "observe");
    assert_eq!(
        run["verdict"],
        "the job's name says nothing about the application"
    );
    let detail = service.run_of(job.job.job_id).await;
    assert_eq!(detail["request"].get("comment"), None, "{detail}");
}

#[tokio::test]
async fn an_application_that_the_user_names_is_no_rules_business() {
    let service = TestService::new().await;
    let request = "app=ocean,name=nf-MADE_UP_%28s1%29,comment=private,mode=tune";
    let job = service.job(ALICE, request);
    assert_eq!(job.runs(&service, 2.0).await["application"], "ocean");
    let request = service.run_of(job.job.job_id).await["request"].clone();
    for left_out in ["job_name", "comment", "rule"] {
        assert_eq!(request.get(left_out), None, "{request}");
    }
}

#[tokio::test]
async fn the_rules_in_force_are_shown_to_everyone() {
    let service = TestService::new().await;
    let shipped = include_str!("../../../../../deploy/etc/applications.toml");
    for uid in [ALICE, OPERATOR, ADMIN] {
        let rules = service.user(uid).get("/v1/applications/rules").await.ok();
        assert_eq!(rules["file"], Value::Null);
        assert_eq!(rules["text"], shipped);
    }
    let (service, path) = with_rules(MINE).await;
    let rules = service.user(BOB).get("/v1/applications/rules").await.ok();
    assert_eq!(rules["file"], path.display().to_string());
    assert_eq!(rules["text"], MINE);
}

#[tokio::test]
async fn a_file_of_rules_replaces_those_that_are_built_in() {
    let (service, _) = with_rules(MINE).await;
    let run = service
        .job(ALICE, &named("nf-MADE_UP_%28s1%29", ""))
        .runs(&service, 2.0)
        .await;
    assert_eq!(run["application"], "sample-s1");
    let run = service
        .job(ALICE, &named("nf-OTHER_%28s1%29", ""))
        .runs(&service, 2.0)
        .await;
    assert_eq!(
        run["application"], "nf-OTHER_s1_~48560de5c8",
        "no rule of the site's matches it"
    );
}

#[tokio::test]
async fn rules_change_without_a_restart_for_runs_that_start_then() {
    let (service, path) = with_rules(MINE).await;
    let request = named("nf-MADE_UP_%28s1%29", "");
    let flying = service.job(ALICE, &request);
    let started = flying.start(&service).await;
    std::fs::write(&path, MINE.replace("sample-", "probe-")).unwrap();
    service.look_at_files().await;
    let run = service.job(ALICE, &request).runs(&service, 2.0).await;
    assert_eq!(run["application"], "probe-s1");
    // The report of a run that had started is that run's.
    flying
        .finish(&service, &flying.reports(Some(&started), 2.0))
        .await;
    flying.ends(&service, "COMPLETED", 2.0);
    service.poll().await;
    let run = &service.run_of(flying.job.job_id).await["run"];
    assert_eq!(
        (&run["application"], &run["state"]),
        (&json!("sample-s1"), &json!("counted"))
    );
}

#[tokio::test]
async fn of_a_wrong_file_of_rules_the_last_valid_one_holds_and_the_doctor_tells() {
    let (service, path) = with_rules(MINE).await;
    assert_eq!(service.check("rules for applications").await["state"], "ok");
    std::fs::write(&path, MINE.replace("job_name", "job_nmae")).unwrap();
    service.look_at_files().await;
    let run = service
        .job(ALICE, &named("nf-MADE_UP_%28s1%29", ""))
        .runs(&service, 2.0)
        .await;
    assert_eq!(run["application"], "sample-s1");
    let rules = service.user(ALICE).get("/v1/applications/rules").await.ok();
    assert_eq!(rules["text"], MINE);
    let check = service.check("rules for applications").await;
    assert_eq!(check["state"], "failed", "{check}");
    assert!(
        check["detail"].as_str().unwrap().contains("job_nmae"),
        "{check}"
    );
    std::fs::remove_file(&path).unwrap();
    service.look_at_files().await;
    let run = service
        .job(ALICE, &named("nf-MADE_UP_%28s2%29", ""))
        .runs(&service, 2.0)
        .await;
    assert_eq!(run["application"], "sample-s2");
}

#[tokio::test]
async fn a_reload_that_names_no_readable_rules_changes_nothing() {
    let (service, path) = with_rules(MINE).await;
    let missing = path.with_extension("missing");
    service
        .reload(&format!("[applications]\nrules = {missing:?}\n"))
        .await;
    let rules = service.user(ALICE).get("/v1/applications/rules").await.ok();
    assert_eq!(rules["text"], MINE);
}

/// The job names that a caller is shown, with their runs.
async fn names(service: &TestService, uid: u32) -> Vec<(String, u64)> {
    let answer = service.user(uid).get("/v1/applications/names").await.ok();
    assert_eq!(answer["more"], false);
    let names = answer["names"].as_array().unwrap().iter();
    let name = |one: &Value| one["job_name"].as_str().unwrap_or_default().to_owned();
    names
        .map(|one| (name(one), one["runs"].as_u64().unwrap()))
        .collect()
}

#[tokio::test]
async fn job_names_are_ones_own_and_everyones_for_operators_and_admins() {
    let service = TestService::new().await;
    for (uid, name) in [(ALICE, "align"), (ALICE, "align"), (BOB, "sort")] {
        service
            .job(uid, &named(name, "private"))
            .start(&service)
            .await;
    }
    let alices = ("align".to_owned(), 2);
    let bobs = ("sort".to_owned(), 1);
    assert_eq!(names(&service, ALICE).await, std::slice::from_ref(&alices));
    assert_eq!(names(&service, BOB).await, std::slice::from_ref(&bobs));
    let everyones = [alices, bobs];
    assert_eq!(names(&service, OPERATOR).await, everyones);
    assert_eq!(names(&service, ADMIN).await, everyones);
}

#[tokio::test]
async fn job_names_reach_thirty_days_back() {
    let service = TestService::new().await;
    let day = std::time::Duration::from_hours(24);
    service
        .job(ALICE, &named("align", ""))
        .start(&service)
        .await;
    service.advance(29 * day).await;
    assert_eq!(names(&service, ALICE).await.len(), 1);
    service.job(ALICE, &named("sort", "")).start(&service).await;
    service.advance(day + day / 24).await;
    assert_eq!(names(&service, ALICE).await, [("sort".to_owned(), 1)]);
}

#[tokio::test]
async fn of_more_job_names_than_are_shown_that_is_said() {
    let service = TestService::new().await;
    for name in ["align", "sort"] {
        service.job(ALICE, &named(name, "")).start(&service).await;
    }
    let copies = |name: &str, from: u32| {
        format!(
            "insert into runs overriding system value select (jsonb_populate_record(r, jsonb_build_object(
                 'id', r.id + n + 1, 'job_id', r.job_id + 100000 + n,
                 'request', r.request || jsonb_build_object('job_name', '{name}-' || n)))).*
             from runs r, generate_series({from}, 9998) n where r.request ->> 'job_name' = '{name}'"
        )
    };
    service.database.execute(&copies("align", 1)).await;
    let answer = service.user(ALICE).get("/v1/applications/names").await.ok();
    assert_eq!(answer["names"].as_array().unwrap().len(), 10_000);
    assert_eq!(answer["more"], false);
    service.database.execute(&copies("sort", 9_998)).await;
    let answer = service.user(ALICE).get("/v1/applications/names").await.ok();
    assert_eq!(answer["names"].as_array().unwrap().len(), 10_000);
    assert_eq!(answer["more"], true);
}

/// A job's name as the plugin sends it.
fn sent(job_name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    format!(
        "name={},mode=tune",
        job_name.bytes().map(byte).collect::<String>()
    )
}

/// A path with a query of an application.
fn of_application(path: &str, application: &str) -> String {
    let query = sent(application);
    let query = query
        .trim_start_matches("name=")
        .trim_end_matches(",mode=tune");
    format!("{path}?app={query}")
}

const MODEL: &str = "calc_\u{43c}\u{43e}\u{434}\u{435}\u{43b}\u{44c}";
const PHYSICS: &str = "calc_\u{444}\u{438}\u{437}\u{438}\u{43a}\u{430}";

/// Attack (others): Jobs have names that look alike, are equal in ASCII, or are made of another
/// name.
/// Outcome: Each has a history of its own.
#[tokio::test]
async fn names_that_are_alike_in_ascii_are_other_applications() {
    let service = TestService::new().await;
    let long = "a".repeat(128);
    let names = [
        MODEL.to_owned(),
        PHYSICS.to_owned(),
        "calc_____________".to_owned(),
        "calc (".to_owned(),
        "calc )".to_owned(),
        format!("{long}b"),
        format!("{long}c"),
        long,
    ];
    let mut studies = std::collections::BTreeSet::new();
    for name in &names {
        let run = service.job(ALICE, &sent(name)).runs(&service, 2.0).await;
        assert!(studies.insert(run["study_id"].as_i64()), "{run}");
        assert_eq!(run["state"], "counted", "{run}");
        let application = run["application"].as_str().unwrap();
        let full_name = run.get("full_name").and_then(Value::as_str);
        assert_eq!(full_name.unwrap_or(application), name);
        for asked in [application, name] {
            for path in ["/v1/runs", "/v1/studies"] {
                let path = of_application(path, asked);
                let found = service.user(ALICE).get(&path).await.ok();
                assert_eq!(found.as_array().unwrap().len(), 1, "{path}: {found}");
                assert_eq!(found[0]["study_id"], run["study_id"]);
                assert_eq!(found[0].get("full_name"), run.get("full_name"));
            }
        }
    }
    // What cannot be shown is shown harmlessly, and whole in JSON.
    let mean = "calc\u{1b}[2J\u{202e}";
    let run = service.job(ALICE, &sent(mean)).runs(&service, 2.0).await;
    assert_eq!(run["full_name"], mean);
    let request: io_autotune_protocol::Request = sent(mean).parse().unwrap();
    let line = service
        .user(ALICE)
        .post("/v1/preview", json!({ "request": request }))
        .await
        .ok();
    let line = line["line"].as_str().unwrap();
    assert!(line.contains(" (calc?[2J?), "), "{line:?}");
}

/// Renames an application, as a service before 0.4 has made its name, once the schema is the
/// present one.
async fn renamed(service: &TestService, study: &Value, old: &str, full_name: Option<&str>) {
    let full_name = full_name.map_or("null".to_owned(), |text| format!("'{text}'"));
    let study_id = study["study_id"].as_i64().unwrap();
    service
        .database
        .execute(&format!(
            "update applications set name = '{old}', full_name = {full_name}
             where id = (select application_id from studies where id = {study_id})"
        ))
        .await;
}

#[tokio::test]
async fn a_history_with_an_old_name_goes_on_under_it() {
    let service = TestService::new().await;
    let old = "calc_____________";
    let run = service.job(ALICE, &sent(MODEL)).runs(&service, 2.0).await;
    renamed(&service, &run, old, Some(MODEL)).await;
    let again = service.job(ALICE, &sent(MODEL)).runs(&service, 2.0).await;
    assert_eq!(
        (&again["application"], &again["full_name"]),
        (&json!(old), &json!(MODEL))
    );
    assert_eq!(again["study_id"], run["study_id"]);
    // Nobody else enters it, except by naming it.
    let mut others = vec![run["study_id"].clone()];
    for other in [PHYSICS, old] {
        let run = service.job(ALICE, &sent(other)).runs(&service, 2.0).await;
        assert!(!others.contains(&run["study_id"]), "{other}: {run}");
        let next = service.job(ALICE, &sent(other)).runs(&service, 2.0).await;
        assert_eq!(next["study_id"], run["study_id"], "{other}");
        others.push(run["study_id"].clone());
    }
    let given = service
        .job(ALICE, &format!("app={old}"))
        .runs(&service, 2.0)
        .await;
    assert_eq!(given["study_id"], run["study_id"]);
    let another = service.job(BOB, &sent(MODEL)).runs(&service, 2.0).await;
    assert_ne!(another["application"], old, "bob has no such history");
}

#[tokio::test]
async fn what_several_names_were_mixed_in_stays_as_it_is() {
    let service = TestService::new().await;
    let old = "calc_____________";
    let run = service.job(ALICE, &sent(MODEL)).runs(&service, 2.0).await;
    renamed(&service, &run, old, None).await;
    for name in [MODEL, PHYSICS] {
        let next = service.job(ALICE, &sent(name)).runs(&service, 2.0).await;
        assert_ne!(next["study_id"], run["study_id"], "{name}");
    }
    let path = of_application("/v1/runs", old);
    let kept = service.user(ALICE).get(&path).await.ok();
    assert_eq!(kept.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_order_is_of_the_application_that_is_meant() {
    let service = TestService::new().await;
    let run = service.job(ALICE, &sent(MODEL)).runs(&service, 2.0).await;
    let body = json!({ "kind": "off", "scope": { "application": MODEL }, "why": "a test" });
    service.user(ALICE).post("/v1/orders", body).await.ok();
    let orders = service.user(ALICE).get("/v1/orders").await.ok();
    assert_eq!(
        orders[0]["scope"]["application"], run["application"],
        "{orders}"
    );
}
