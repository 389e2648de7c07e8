//! Tests of the metrics that Prometheus reads.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::Course;
use super::super::service::at_once;
use super::{ADMIN, ALICE, BOB, TestService, give_database_back, lose_database};

/// The most series, however many studies there are.
const MOST_SERIES: usize = 500;

/// The series with their values. The numbers from the database are as new as possible.
async fn read(service: &TestService) -> BTreeMap<String, f64> {
    service.advance(Duration::from_secs(61)).await;
    let text = service.metrics().await;
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    series.collect()
}

fn requests(endpoint: &str, outcome: &str) -> String {
    format!("io_autotune_requests_total{{endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}")
}

/// Reads the text format 0.0.4 by its rules, and panics where a strict parser refuses; returns each
/// family's kind.
fn strictly_read(text: &str) -> BTreeMap<&str, &str> {
    assert!(text.ends_with('\n'), "the last line ends, too");
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut kinds = BTreeMap::new();
    let (mut family, mut kind, mut helped) = ("", "", "");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').unwrap().0;
            assert!(is_name(helped) && !kinds.contains_key(helped), "{line}");
        } else if let Some(told) = line.strip_prefix("# TYPE ") {
            (family, kind) = told.split_once(' ').unwrap();
            assert_eq!(family, helped, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(
                kinds.insert(family, kind),
                None,
                "{line}: one group of lines"
            );
        } else {
            // Neither an end nor units, nor exemplars.
            assert!(!line.contains('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let (name, labels) = match series.split_once('{') {
                Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
                None => (series, ""),
            };
            for label in labels.split("\",").filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once("=\"").unwrap();
                let value = value.trim_end_matches('"');
                assert!(is_name(name) && !value.contains(['"', '\\']), "{line}");
            }
            let suffix = name
                .strip_prefix(family)
                .unwrap_or_else(|| panic!("{line}"));
            match kind {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
                _ => assert_eq!(suffix, "", "{line}"),
            }
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        }
    }
    kinds
}

#[tokio::test]
async fn a_parser_of_the_text_format_gets_it_and_whoever_says_nothing_gets_openmetrics() {
    let service = TestService::new().await;
    service.user(ALICE).get("/v1/health").await;
    let (kind, text) = service.metrics_as(Some("text/plain;version=0.0.4")).await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let kinds = strictly_read(&text);
    assert_eq!(kinds["io_autotune_requests_total"], "counter");
    let kinds: std::collections::BTreeSet<_> = kinds.into_values().collect();
    assert!(
        kinds.contains("gauge") && kinds.contains("histogram"),
        "{kinds:?}"
    );
    let samples = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for accept in [None, Some("application/openmetrics-text;version=1.0.0")] {
        let (kind, open) = service.metrics_as(accept).await;
        assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
        assert!(open.ends_with("# EOF\n"));
        assert_eq!(samples(&open).len(), samples(&text).len());
    }
}

/// Attack (others): A user reads the metrics, to learn of others.
/// Outcome: No series names an application, a user or a job.
#[tokio::test]
async fn metrics_say_what_the_service_does_and_no_names() {
    let service = TestService::new().await;
    for number in 0..30_u32 {
        let mut job = service.job(ALICE + number, &format!("app=secret-{number},mode=observe"));
        job.job.job_id += 4_000_000;
        job.account = "hidden".into();
        match number {
            0 => job.completes(&service, 1.0).await,
            _ => job.start(&service).await,
        };
        service.user(ALICE + number).get("/v1/orders").await.ok();
    }
    service.poll().await;
    service.user(ALICE).get("/v1/health").await;
    let read = read(&service).await;
    assert_eq!(read[&requests("/v1/health", "ok")], 1.0);
    assert_eq!(read["io_autotune_database_up"], 1.0);
    let studies = read
        .iter()
        .filter(|(name, _)| name.starts_with("io_autotune_studies{"));
    assert_eq!(studies.map(|(_, count)| count).sum::<f64>(), 30.0);
    assert!(read.len() <= MOST_SERIES, "{}", read.len());
    for name in [
        "secret", "user7", "7100", "hidden", "400000", "n1", "main", "alpha",
    ] {
        let told = read.keys().find(|series| series.contains(name));
        assert_eq!(told, None, "{name}");
    }
}

#[tokio::test]
async fn starts_are_counted_by_phase_role_and_rule() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").start(&service).await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let watched = service
        .job(ALICE, "app=river,mode=observe")
        .start(&service)
        .await;
    let read = read(&service).await;
    let started = |phase: &str, role: &str, rule: &str| {
        let labels = format!("phase=\"{phase}\",role=\"{role}\",rule=\"{rule}\"");
        read[&format!("io_autotune_starts_total{{{labels}}}")]
    };
    assert_eq!(started("baseline", "baseline", "baseline"), 2.0);
    let phase = watched.phase.to_string();
    assert_eq!(started(&phase, "observe", "observed"), 1.0);
    assert_eq!(read[&requests("/v1/runs/start", "ok")], 3.0);
    assert_eq!(
        read["io_autotune_request_seconds_count{kind=\"start\"}"],
        3.0
    );
}

#[tokio::test]
async fn verdicts_are_counted_by_what_they_say() {
    let service = TestService::with("[reconcile]\npoll_seconds = 0.1\n").await;
    for state in ["COMPLETED", "COMPLETED", "CANCELLED"] {
        service
            .ran(ALICE, "app=ocean", |_| Course {
                state,
                ..Course::completed(60.0)
            })
            .await;
    }
    let read = read(&service).await;
    let given = |state: &str, because: &str| {
        let labels = format!("state=\"{state}\",because=\"{because}\"");
        read[&format!("io_autotune_verdicts_total{{{labels}}}")]
    };
    assert_eq!(given("counted", ""), 2.0);
    assert_eq!(given("not_counted", "cancelled"), 1.0);
}

#[tokio::test]
async fn requests_are_counted_by_how_they_went() {
    let service = TestService::with("[users]\nrequests_per_second = 0.01\n").await;
    let alice = service.user(ALICE);
    alice.get("/v1/doctor").await.forbidden();
    alice.get("/v1/studies/4711").await.not_found();
    alice.get("/v1/runs?limit=-1").await.bad_request();
    assert_eq!(at_once(alice.get("/v1/studies")).await.status, 429);
    // What is there instead of the report's file cannot be read.
    let night = service.files.path("night");
    std::fs::create_dir_all(night.join("index.html")).unwrap();
    std::os::unix::fs::symlink("night", service.files.path("latest")).unwrap();
    let directory = night.parent().unwrap();
    service
        .reload(&format!(
            "[users]\nrequests_per_second = 0.01\n[report]\ndirectory = {directory:?}\n"
        ))
        .await;
    let unread = service.user(ADMIN).get("/v1/report/index.html").await;
    unread.refused(500, "unreadable_report");
    let read = read(&service).await;
    assert_eq!(read[&requests("/v1/doctor", "refused")], 1.0);
    assert_eq!(read[&requests("/v1/studies/{study_id}", "refused")], 1.0);
    assert_eq!(read[&requests("/v1/runs", "refused")], 1.0);
    assert_eq!(read[&requests("/v1/studies", "later")], 1.0);
    assert_eq!(read[&requests("/v1/report/{file}", "failed")], 1.0);
}

/// Attack (floods): A user asks for made-up paths, to fill what Prometheus keeps.
/// Outcome: All of them are one series.
#[tokio::test]
async fn a_path_that_is_not_there_makes_no_series() {
    let service = TestService::new().await;
    for number in 0..20 {
        let answer = service
            .user(ALICE)
            .get(&format!("/v1/nothing-{number}"))
            .await;
        answer.refused(404, "no_such_path");
    }
    let read = read(&service).await;
    assert_eq!(read[&requests("other", "refused")], 20.0);
    assert_eq!(read.keys().find(|series| series.contains("nothing")), None);
}

#[tokio::test]
async fn while_the_database_is_away_it_is_down_and_the_numbers_of_before_stay() {
    let site = TestService::new().await;
    let service = site.replica_of_its_role("").await;
    service.job(ALICE, "app=ocean").start(&service).await;
    let before = read(&service).await;
    assert_eq!(before["io_autotune_database_up"], 1.0);
    assert_eq!(before["io_autotune_database_writable"], 1.0);
    assert_eq!(before["io_autotune_runs_in_flight"], 1.0);
    lose_database(&service).await;
    let away = read(&service).await;
    assert_eq!(away["io_autotune_database_up"], 0.0);
    assert_eq!(away["io_autotune_database_writable"], 0.0);
    assert_eq!(away["io_autotune_runs_in_flight"], 1.0);
    give_database_back(&service).await;
    assert_eq!(read(&service).await["io_autotune_database_up"], 1.0);
}

#[tokio::test]
async fn a_reload_that_was_refused_is_told_until_the_next_one() {
    let service = TestService::new().await;
    let refused = "io_autotune_reload_refused";
    assert_eq!(read(&service).await[refused], 0.0);
    let path = service.files.path("service.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, "nonsense").unwrap();
    service.hang_up().await;
    let wrong = read(&service).await;
    assert_eq!(wrong[refused], 1.0);
    assert_eq!(wrong["io_autotune_reloads_total{outcome=\"refused\"}"], 1.0);
    std::fs::write(&path, good).unwrap();
    service.hang_up().await;
    let right = read(&service).await;
    assert_eq!(right[refused], 0.0);
    assert_eq!(right["io_autotune_reloads_total{outcome=\"ok\"}"], 1.0);
}

#[tokio::test]
async fn how_long_the_oldest_report_waits_for_its_verdict_is_told() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    service.job(BOB, "app=ocean").start(&service).await;
    let longest = "io_autotune_longest_wait_for_a_verdict_seconds";
    assert_eq!(read(&service).await[longest], 0.0, "no report waits");
    job.finish(&service, &job.reports(Some(&started), 1.0))
        .await;
    service.advance(Duration::from_secs(300)).await;
    let waiting = read(&service).await;
    assert_eq!(waiting["io_autotune_runs_in_flight"], 2.0);
    assert!(
        (361.0..400.0).contains(&waiting[longest]),
        "{}",
        waiting[longest]
    );
    job.ends(&service, "COMPLETED", 1.0);
    service.poll().await;
    let judged = read(&service).await;
    assert_eq!(judged["io_autotune_runs_in_flight"], 1.0);
    assert_eq!(judged[longest], 0.0);
}

#[tokio::test]
async fn studies_are_counted_where_they_are_now() {
    let service = TestService::with("[study]\nbaseline_runs = 2\n").await;
    let of = |read: &BTreeMap<String, f64>, phase: &str| {
        let prefix = format!("io_autotune_studies{{phase=\"{phase}\"");
        let studies = read.iter().filter(|(name, _)| name.starts_with(&prefix));
        studies.map(|(_, count)| count).sum::<f64>()
    };
    service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(of(&read(&service).await, "baseline"), 1.0);
    service.tune(ALICE, "app=ocean", 8, |_, _| 2.0).await;
    let later = read(&service).await;
    assert_eq!(of(&later, "baseline"), 0.0, "{later:?}");
    let studies = later
        .keys()
        .filter(|name| name.starts_with("io_autotune_studies{"));
    assert_eq!(studies.count(), 1);
}

#[tokio::test]
async fn nothing_but_the_metrics_is_at_their_door_and_they_are_at_no_other() {
    let service = TestService::new().await;
    service.metrics().await;
    service
        .user(ALICE)
        .get("/metrics")
        .await
        .refused(404, "no_such_path");
}
