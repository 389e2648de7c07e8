//! Lists of studies, and one in full.

use std::fs;
use std::time::Duration;

use io_autotune_engine::Role;
use io_autotune_protocol::Request;
use serde_json::{Value, json};

use super::super::QUICK;
use super::super::{ADMIN, ALICE, BOB, TestService};
use super::{steer, text};

/// The applications in a list.
async fn listed(service: &TestService, uid: u32, query: &str) -> Vec<String> {
    let studies = service.user(uid).get(&format!("/v1/studies{query}")).await;
    let studies = studies.ok();
    let studies = studies.as_array().unwrap().iter();
    studies
        .map(|study| text(&study["application"]).to_owned())
        .collect()
}

/// A service of two clusters, on each of which a job of one application has run.
async fn of_two_clusters() -> TestService {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    for cluster in ["alpha", "beta"] {
        let mut job = service.job(ALICE, "app=listed");
        job.job.cluster = cluster.to_owned();
        job.completes(&service, 5.0).await;
    }
    service.poll().await;
    service
}

#[tokio::test]
async fn a_list_can_be_of_one_cluster() {
    let service = of_two_clusters().await;
    let of = async |query: &str| {
        let path = format!("/v1/studies?{query}");
        let studies = service.user(ALICE).get(&path).await.ok();
        let studies = studies.as_array().unwrap().iter();
        let mut names: Vec<String> = studies
            .map(|study| text(&study["cluster"]).to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(of("app=listed").await, ["alpha", "beta"]);
    assert_eq!(of("app=listed&cluster=alpha").await, ["alpha"]);
    assert_eq!(of("app=listed&cluster=beta").await, ["beta"]);
}

#[tokio::test]
async fn where_there_is_one_cluster_nobody_need_know_of_clusters() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(service.study("ocean").await.get("cluster"), None);
    assert_eq!(listed(&service, ALICE, "?cluster=alpha").await, ["ocean"]);
}

#[tokio::test]
async fn an_unknown_cluster_is_refused_with_those_that_there_are() {
    let service = of_two_clusters().await;
    for path in [
        "/v1/studies?cluster=gamma",
        "/v1/runs?cluster=gamma",
        "/v1/runs/1?cluster=gamma",
    ] {
        let answer = service.user(ALICE).get(path).await;
        assert_eq!(
            answer.refused(422, "unknown_cluster"),
            "the service has no cluster \"gamma\": it has alpha, beta ([slurm] of service.toml)"
        );
    }
}

#[tokio::test]
async fn a_list_is_of_what_was_asked_for() {
    let service = TestService::new().await;
    for (uid, request, account) in [
        (ALICE, "app=climate", "physics"),
        (ALICE, "app=ocean,accelerator=romio+page-cache", "physics"),
        (BOB, "app=climate,accelerator=page-cache", "biology"),
    ] {
        let mut job = service.job(uid, request);
        job.account = account.to_owned();
        job.runs(&service, 5.0).await;
    }
    let ocean = service.study_id("ocean").await;
    let one = format!("?study={ocean}");
    let bobs = format!("?uid={BOB}");
    let both: &[&str] = &["climate", "climate"];
    for (query, expected) in [
        ("", &["climate", "climate", "ocean"][..]),
        ("?app=climate", both),
        ("?app=Climate", &[]),
        (&one, &["ocean"]),
        ("?study=999999", &[]),
        ("?accelerator=romio", &["climate"]),
        ("?accelerator=page-cache%2Bromio", &["ocean"]),
        ("?accelerator=romio%2Bpage-cache", &["ocean"]),
        ("?accelerator=scr", &[]),
        (&bobs, &["climate"]),
        ("?uid=4711", &[]),
        ("?account=physics", &["climate", "ocean"]),
        ("?account=biology", &["climate"]),
        ("?account=Physics", &[]),
        ("?account=physics&app=ocean", &["ocean"]),
        ("?account=biology&app=ocean", &[]),
        ("?cluster=alpha", &["climate", "climate", "ocean"]),
    ] {
        assert_eq!(listed(&service, ADMIN, query).await, expected, "{query}");
    }
    assert_eq!(listed(&service, ALICE, "?app=climate").await, ["climate"]);
    assert!(listed(&service, ALICE, &bobs).await.is_empty());
}

/// Attack (floods): Somebody asks for 10,000 runs or studies at once.
/// Outcome: A page has 100 runs, or 500 studies; the command puts pages together.
#[tokio::test]
async fn a_page_has_500_studies_and_the_next_one_begins_behind_its_last() {
    let service = TestService::new().await;
    service
        .job(ALICE, "app=paged-000")
        .runs(&service, 10.0)
        .await;
    let copies = "with named as (
            insert into applications (owner_uid, name)
            select owner_uid, 'paged-' || lpad(n::text, 3, '0')
            from applications, generate_series(500, 1, -1) n
            returning id
        ), begun as (
            insert into studies (application_id, accelerator, context, context_key, cluster, assessment, assessed_by)
            select named.id, accelerator, context, context_key, cluster, assessment, assessed_by
            from named, studies
            returning id
        )
        insert into epochs (study_id, ordinal, takes, space, seed, opened_why)
        select begun.id, ordinal, takes, space, seed, opened_why from begun, epochs";
    service.database.execute(copies).await;
    let of = async |query: &str| {
        let path = format!("/v1/studies{query}");
        let page: Vec<Value> = service.user(ADMIN).get(&path).await.read();
        page
    };
    for (query, most) in [
        ("", 500),
        ("?limit=10000", 500),
        ("?limit=499", 499),
        ("?limit=1", 1),
        ("?limit=0", 0),
    ] {
        assert_eq!(of(query).await.len(), most, "{query}");
    }
    let first = of("").await;
    let after = format!("?after={}", first[499]["study_id"]);
    let second = of(&after).await;
    assert_eq!(second.len(), 1);
    let all = first.iter().chain(&second);
    let all: Vec<&str> = all.map(|study| text(&study["application"])).collect();
    let expected: Vec<String> = (0..501)
        .map(|number| format!("paged-{number:03}"))
        .collect();
    assert_eq!(all, expected);
    assert_eq!(of("?after=999999").await.len(), 0);

    // What no verdict has stored is computed for 25 studies of a page, which ends before the next one.
    let forgotten = "update studies set assessment = null where id % 2 = 0";
    service.database.execute(forgotten).await;
    let (mut found, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let page = of(&after).await;
        let Some(last) = page.last() else {
            break;
        };
        after = format!("?after={}", last["study_id"]);
        pages += 1;
        found.extend(page);
    }
    let found: Vec<&str> = found.iter().map(|one| text(&one["application"])).collect();
    assert_eq!(found, expected);
    assert!((9..=12).contains(&pages), "{pages} pages");
}

/// The fields that a study has when it is asked for alone, and not in a list, because they need its
/// runs and those of others.
const ALONE: [&str; 1] = ["sharing"];

#[tokio::test]
async fn a_list_says_of_each_study_what_the_study_alone_says() {
    let service = TestService::with(QUICK).await;
    for (application, runs) in [("begun", 1), ("searching", 5), ("settled", 40)] {
        for _ in 0..runs {
            let request = format!("app={application}");
            service.job(ALICE, &request).runs(&service, 10.0).await;
        }
    }
    service.job(ALICE, "app=flying").start(&service).await;
    for (application, action, body) in [
        ("off", "off", json!({"why": "a test"})),
        ("pinned", "pin", json!({"why": "a test"})),
        ("frozen", "freeze", json!({"why": "a test"})),
    ] {
        let request = format!("app={application}");
        for _ in 0..3 {
            service.job(ALICE, &request).runs(&service, 10.0).await;
        }
        let mut order = json!({"kind": action, "scope": {"application": application}});
        order["why"] = body["why"].clone();
        if action == "pin" {
            order["values"] = json!({"romio_cb_read": "disable"});
        }
        service.user(ALICE).post("/v1/orders", &order).await.ok();
    }
    let listed = service.user(ALICE).get("/v1/studies").await.ok();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 7);
    let phases: Vec<&str> = listed.iter().map(|one| text(&one["phase"])).collect();
    assert!(phases.contains(&"settled") && phases.contains(&"baseline"));
    for one in listed {
        let path = format!("/v1/studies?study={}", one["study_id"]);
        let mut alone = service.user(ALICE).get(&path).await.ok()[0].clone();
        let path = format!("/v1/studies/{}", one["study_id"]);
        let detail = service.user(ALICE).get(&path).await.ok();
        assert_eq!(detail["study"], alone);
        for field in ALONE {
            alone[field] = Value::Null;
        }
        assert_eq!(*one, alone);
    }
}

#[tokio::test]
async fn a_study_is_assessed_anew_by_other_settings_and_not_by_the_same() {
    let service = TestService::new().await;
    for application in ["ocean", "climate"] {
        let request = format!("app={application}");
        service.job(ALICE, &request).runs(&service, 10.0).await;
    }
    let budgets = async || {
        let listed = service.user(ALICE).get("/v1/studies").await.ok();
        let listed = listed.as_array().unwrap().iter();
        let budgets: Vec<Value> = listed.map(|one| one["explored"][1].clone()).collect();
        budgets
    };
    let stored = "select coalesce(sum((assessment #>> '{overview,standing,progress,budget}')::int), 0) from studies";
    let written = "select sum(xmin::text::bigint)::bigint from studies";
    assert_eq!(budgets().await, [50, 50]);
    assert_eq!(service.database.number(stored).await, 100);
    let before = service.database.number(written).await;
    service.sweep().await;
    assert_eq!(service.database.number(written).await, before);

    service.reload("[study]\nbudget = 20\n").await;
    assert_eq!(budgets().await, [20, 20], "at once");
    service.sweep().await;
    assert_eq!(service.database.number(stored).await, 40);
    let before = service.database.number(written).await;
    service.sweep().await;
    assert_eq!(service.database.number(written).await, before);
}

#[tokio::test]
async fn what_no_list_knows_is_refused_by_its_name() {
    let service = TestService::new().await;
    for (query, word) in [
        ("colour=red", "colour"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("study=ocean", "study"),
        ("uid=alice", "uid"),
        ("after=x", "after"),
    ] {
        let path = format!("/v1/studies?{query}");
        let refusal = service.user(ALICE).get(&path).await.bad_request();
        assert!(refusal.contains(word), "{query}: {refusal}");
    }
    for path in ["/v1/studies/ocean", "/v1/studies/1.5"] {
        service.user(ALICE).get(path).await.bad_request();
    }
}

#[tokio::test]
async fn a_study_that_is_not_there_is_not_shown_and_the_refusal_says_what_lists_them() {
    let service = TestService::new().await;
    assert_eq!(
        service
            .user(ALICE)
            .get("/v1/studies/4711")
            .await
            .not_found(),
        "there is no study 4711 among those you may see; `io-autotune status` lists them"
    );
}

#[tokio::test]
async fn one_application_in_two_contexts_has_two_studies() {
    let service = TestService::new().await;
    let mut wide = service.job(ALICE, "app=ocean");
    wide.job.nodes = 4;
    let mut other = service.job(ALICE, "app=ocean");
    other.job.partition = "long".to_owned();
    for job in [service.job(ALICE, "app=ocean"), wide, other] {
        job.start(&service).await;
    }
    let studies: Vec<Value> = service
        .user(ALICE)
        .get("/v1/studies?app=ocean")
        .await
        .read();
    let contexts: Vec<&Value> = studies.iter().map(|study| &study["context"]).collect();
    let context = |nodes: &str, partition: &str| json!({ "cpus_per_node": "4", "nodes": nodes, "partition": partition });
    assert_eq!(contexts.len(), 3);
    for expected in [
        context("1", "main"),
        context("4", "main"),
        context("1", "long"),
    ] {
        assert!(contexts.contains(&&expected), "{contexts:?}");
    }
}

#[tokio::test]
async fn jobs_whose_name_says_nothing_are_listed_as_nameless_and_none_counts() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, "");
    job.request = Request {
        job_name: Some("wrap".to_owned()),
        ..Request::default()
    };
    let run = job.runs(&service, 5.0).await;
    assert_eq!(run["state"], "not_counted", "{run}");
    assert_eq!(run["role"], "observe", "{run}");
    let studies: Vec<Value> = service.user(ALICE).get("/v1/studies").await.read();
    assert_eq!(studies.len(), 1);
    assert_eq!(studies[0]["nameless"], true, "{}", studies[0]);
    assert_eq!(studies[0]["counted"], 0);
    service.job(ALICE, "app=wrap").runs(&service, 5.0).await;
    let named = service.user(ALICE).get("/v1/studies?app=wrap").await.ok();
    assert_eq!(named[0]["nameless"], false, "what a user names so counts");
}

#[tokio::test]
async fn lately_are_the_runs_of_seven_days() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 5.0).await;
    assert_eq!(service.study("ocean").await["lately"], 1);
    service.advance(Duration::from_hours(6 * 24)).await;
    service.job(ALICE, "app=ocean").runs(&service, 5.0).await;
    assert_eq!(service.study("ocean").await["lately"], 2);
    service.advance(Duration::from_hours(2 * 24)).await;
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["lately"], &study["counted"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test]
async fn a_study_whose_accelerator_has_left_the_catalogue_is_listed_and_shown() {
    let site = tempfile::tempdir().unwrap();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerators.d");
    for name in ["romio.toml", "page-cache.toml"] {
        fs::copy(format!("{shipped}/{name}"), site.path().join(name)).unwrap();
    }
    let place = site.path().display().to_string();
    let more = format!("[accelerators]\ndirectory = {place:?}\n");
    let service = TestService::with(&more).await;
    let request = "app=ocean,accelerator=page-cache";
    service.job(ALICE, request).runs(&service, 5.0).await;
    let before = service.study("ocean").await;

    fs::remove_file(site.path().join("page-cache.toml")).unwrap();
    service.hang_up().await;
    let refused = service.job(ALICE, request).try_start(&service).await;
    let refusal = refused.refused(422, "unknown_accelerator");
    assert!(refusal.contains("page-cache"), "{refusal}");
    assert_eq!(service.study("ocean").await, before);
    let path = format!("/v1/studies/{}", before["study_id"]);
    let shown = service.user(ALICE).get(&path).await.ok();
    assert_eq!(shown["tested"].as_array().unwrap().len(), 1, "{shown}");
}

#[tokio::test]
async fn a_replica_follows_what_another_has_changed_at_once() {
    let service = TestService::with(QUICK).await;
    let other = service.replica().await;
    for _ in 0..2 {
        service.job(ALICE, "app=ocean").runs(&service, 5.0).await;
        other.job(ALICE, "app=ocean").runs(&other, 5.0).await;
    }
    let study_id = service.study_id("ocean").await;
    assert_eq!(other.study("ocean").await["counted"], 4);
    let values = json!({ "values": { "cb_nodes": "4" } });
    steer(&service, ALICE, study_id, "pin", values).await.ok();
    let pinned = other.job(ALICE, "app=ocean").start(&other).await;
    assert_eq!(pinned.role, Role::Pinned);
    steer(&other, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    let begun = service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(begun.reason, "baseline run 1 of 2");
    assert_eq!(service.study("ocean").await, other.study("ocean").await);
}

#[tokio::test]
async fn a_study_is_shown_with_all_that_it_tested_the_best_first() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=ocean", 12, |given, number| {
            let noise = 0.01 * f64::from(number % 3);
            if *given == default { 10.0 } else { 8.0 + noise }
        })
        .await;
    let study = service.study("ocean").await;
    let path = format!("/v1/studies/{}", study["study_id"]);
    let shown = service.user(ALICE).get(&path).await.ok();
    assert_eq!(shown["study"], study);
    let space = shown["space"].as_array().unwrap();
    assert_eq!(space.len(), 9, "ROMIO has nine parameters: {space:?}");
    let size: u64 = [5, 5, 4, 3, 3, 3, 3, 4, 3].iter().product();
    assert_eq!(shown["size"], size);
    let tested = shown["tested"].as_array().unwrap();
    let runs: u64 = tested
        .iter()
        .map(|one| one["elapsed"]["n"].as_u64().unwrap())
        .sum();
    assert_eq!(runs, 12, "each counted run is in the table: {tested:?}");
    let of_default: Vec<_> = tested
        .iter()
        .filter(|one| one["differs"] == json!({}))
        .collect();
    assert_eq!(of_default.len(), 1);
    assert_eq!(of_default[0]["elapsed"]["mean"], 10.0);
    assert_eq!(study["default"], of_default[0]["elapsed"]);
    let ranked: Vec<f64> = tested
        .iter()
        .filter(|one| one["elapsed"]["n"].as_u64() >= Some(2))
        .map(|one| one["elapsed"]["mean"].as_f64().unwrap())
        .collect();
    assert!(ranked.is_sorted(), "{ranked:?}");
    let recommended = tested
        .iter()
        .filter(|one| one["parametrization"] == study["recommended"]);
    assert_eq!(recommended.count(), 1, "the recommended one is among them");
    assert!(shown["importance"].is_object(), "{}", shown["importance"]);
}

#[tokio::test]
async fn a_study_of_which_nothing_has_counted_yet_is_shown() {
    let service = TestService::with(QUICK).await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let study_id = service.study_id("ocean").await;
    let path = format!("/v1/studies/{study_id}");
    let shown = service.user(ALICE).get(&path).await.ok();
    assert_eq!(shown["tested"], json!([]));
    let study = &shown["study"];
    for (name, expected) in [
        ("phase", json!("baseline")),
        ("counted", json!(0)),
        ("not_counted", json!(0)),
        ("in_flight", json!(1)),
        ("explored", json!([0, 8])),
        ("default", Value::Null),
        ("control", Value::Null),
        ("tuned", Value::Null),
        ("gain", Value::Null),
        ("recommended", Value::Null),
        ("differs", json!({})),
        ("why", json!("no parametrization has been run twice yet")),
        ("warnings", json!([])),
        ("objective", json!("elapsed")),
        ("epoch", json!(1)),
    ] {
        assert_eq!(study[name], expected, "{name}");
    }
    assert_eq!(study["opened"]["why"], "first run");
    let silent = text(&shown["importance"]["silent"]);
    assert!(!silent.is_empty());
}
