//! Lists and pages of runs.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::studies::{history, text};
use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestJob, TestService};

/// The jobs in a list.
async fn listed(service: &TestService, uid: u32, query: &str) -> Vec<u64> {
    let runs: Vec<Value> = service
        .user(uid)
        .get(&format!("/v1/runs{query}"))
        .await
        .read();
    let runs = runs.iter();
    runs.map(|run| run["job_id"].as_u64().unwrap()).collect()
}

/// Attack (floods): Somebody asks for 10,000 runs or studies at once.
/// Outcome: A page has 100 runs, or 500 studies; the command puts pages together.
#[tokio::test]
async fn lists_come_in_pages() {
    let service = TestService::new().await;
    for number in 0..120 {
        let request = format!("app=paged-{}", number % 7);
        service.job(ALICE, &request).start(&service).await;
    }
    let of = async |query: &str| {
        let path = format!("/v1/runs{query}");
        let page: Vec<Value> = service.user(ADMIN).get(&path).await.read();
        let ids = page.iter().map(|run| run["run_id"].as_i64().unwrap());
        ids.collect::<Vec<i64>>()
    };
    for (query, most) in [
        ("", 100),
        ("?limit=10000", 100),
        ("?limit=100", 100),
        ("?limit=99", 99),
        ("?limit=1", 1),
        ("?limit=0", 0),
    ] {
        assert_eq!(of(query).await.len(), most, "{query}");
    }
    let newest = of("").await;
    // What starts meanwhile is on no earlier page.
    service.job(ALICE, "app=paged-0").start(&service).await;
    let before = of(&format!("?before={}", newest[0])).await;
    assert_eq!(before.len(), 20);
    let all: Vec<i64> = before.iter().chain(&newest).copied().collect();
    assert!(
        all.is_sorted_by(|a, b| a < b),
        "each once, the oldest first"
    );
    assert!(of(&format!("?before={}", before[0])).await.is_empty());
}

/// Two jobs of one id, which two clusters have had.
async fn twins(service: &TestService) -> [TestJob; 2] {
    let alpha = service.job(ALICE, "app=twin");
    let mut beta = alpha.clone();
    beta.job.cluster = "beta".to_owned();
    for job in [&alpha, &beta] {
        job.completes(service, 5.0).await;
    }
    service.poll().await;
    [alpha, beta]
}

#[tokio::test]
async fn jobs_of_one_id_on_two_clusters_are_two_runs_of_two_studies() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let [job, _] = twins(&service).await;
    let runs = history(&service, ALICE, "twin").await;
    let of = |name: &str| -> Vec<&str> { runs.iter().map(|run| text(&run[name])).collect() };
    assert_eq!(of("cluster"), ["alpha", "beta"]);
    assert_eq!(of("outcome"), ["COMPLETED", "COMPLETED"]);
    assert_eq!(of("state"), ["counted", "counted"]);
    assert_ne!(runs[0]["study_id"], runs[1]["study_id"]);
    for (place, cluster) in ["alpha", "beta"].into_iter().enumerate() {
        let path = format!("/v1/runs/{}?cluster={cluster}", job.job.job_id);
        let launches: Vec<Value> = service.user(ALICE).get(&path).await.read();
        assert_eq!(launches.len(), 1);
        assert_eq!(launches[0]["run"]["run_id"], runs[place]["run_id"]);
    }
}

#[tokio::test]
async fn a_job_of_several_clusters_is_asked_for_with_its_cluster() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let [job, _] = twins(&service).await;
    let job_id = job.job.job_id;
    for path in [
        format!("/v1/runs/{job_id}"),
        format!("/v1/runs/{job_id}/replay"),
    ] {
        let refused = service.user(ALICE).get(&path).await;
        assert_eq!(
            refused.refused(409, "conflict"),
            format!(
                "job {job_id} is one of each of the clusters alpha, beta: say which, by `--cluster NAME`"
            )
        );
        let named = format!("{path}?cluster=beta");
        service.user(ALICE).get(&named).await.ok();
    }
    // Who sees one of the two need not say which.
    let mut other = service.job(BOB, "app=twin");
    other.job.job_id = 90_001;
    other.start(&service).await;
    let mut own = service.job(ALICE, "app=twin");
    own.job.job_id = 90_001;
    own.job.cluster = "beta".to_owned();
    own.start(&service).await;
    service.user(ALICE).get("/v1/runs/90001").await.ok();
}

#[tokio::test]
async fn a_history_can_be_of_one_cluster() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    twins(&service).await;
    for cluster in ["alpha", "beta"] {
        let path = format!("/v1/runs?app=twin&cluster={cluster}");
        let runs: Vec<Value> = service.user(ALICE).get(&path).await.read();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0]["cluster"], cluster);
    }
}

#[tokio::test]
async fn a_history_is_of_what_was_asked_for() {
    let service = TestService::new().await;
    for (uid, request, account) in [
        (ALICE, "app=climate", "physics"),
        (ALICE, "app=ocean,accelerator=romio+page-cache", "physics"),
        (BOB, "app=climate,accelerator=page-cache", "biology"),
        (ALICE, "app=climate", "physics"),
    ] {
        let mut job = service.job(uid, request);
        job.account = account.to_owned();
        job.runs(&service, 5.0).await;
    }
    let study = format!("?study={}", service.study_id("ocean").await);
    let bobs = format!("?uid={BOB}");
    for (query, expected) in [
        ("", &[1, 2, 3, 4][..]),
        ("?app=climate", &[1, 3, 4]),
        ("?app=climat", &[]),
        (&study, &[2]),
        ("?study=999999", &[]),
        ("?accelerator=romio", &[1, 4]),
        ("?accelerator=page-cache%2Bromio", &[2]),
        ("?accelerator=romio%2Bpage-cache", &[2]),
        (&bobs, &[3]),
        ("?uid=4711", &[]),
        ("?account=physics", &[1, 2, 4]),
        ("?account=biology", &[3]),
        ("?cluster=alpha", &[1, 2, 3, 4]),
        ("?state=counted", &[1, 2, 3, 4]),
        ("?state=censored", &[]),
        ("?app=climate&accelerator=romio&state=counted&limit=1", &[4]),
    ] {
        assert_eq!(listed(&service, ADMIN, query).await, expected, "{query}");
    }
    assert_eq!(listed(&service, ALICE, "?app=climate").await, [1, 4]);
    assert!(listed(&service, ALICE, &bobs).await.is_empty());
}

#[tokio::test]
async fn a_history_is_of_runs_in_one_state() {
    let service = TestService::with(QUICK).await;
    let course = |state, limit| Course {
        state,
        limit,
        ..Course::completed(60.0)
    };
    for (state, limit) in [
        ("COMPLETED", "UNLIMITED"),
        ("TIMEOUT", "1:00"),
        ("FAILED", "UNLIMITED"),
        ("CANCELLED", "UNLIMITED"),
    ] {
        service
            .ran(ALICE, "app=ocean", |_| course(state, limit))
            .await;
    }
    service.job(ALICE, "app=ocean").start(&service).await;
    for (state, expected) in [
        ("counted", &[1][..]),
        ("censored", &[2]),
        ("not_counted", &[3, 4]),
        ("in_flight", &[5]),
    ] {
        let query = format!("?state={state}");
        assert_eq!(listed(&service, ALICE, &query).await, expected, "{state}");
    }
    for (because, expected) in [
        ("failed", &[3][..]),
        ("cancelled", &[4]),
        ("suspended", &[]),
    ] {
        let query = format!("?not_counted_because={because}");
        assert_eq!(listed(&service, ALICE, &query).await, expected, "{because}");
    }
    let runs = history(&service, ALICE, "ocean").await;
    let told: Vec<_> = runs
        .iter()
        .map(|run| run["not_counted_because"].as_str())
        .collect();
    let expected = [None, None, Some("failed"), Some("cancelled"), None];
    assert_eq!(told, expected);
    let refusal = service
        .user(ALICE)
        .get("/v1/runs?not_counted_because=mood")
        .await;
    assert!(refusal.bad_request().contains("preempted"));
    let refusal = service.user(ALICE).get("/v1/runs?state=running").await;
    let refusal = refusal.bad_request();
    for choice in ["in_flight", "counted", "censored", "not_counted"] {
        assert!(refusal.contains(choice), "{refusal}");
    }
}

#[tokio::test]
async fn a_history_begins_at_a_time_and_ends_before_another() {
    let service = TestService::new().await;
    for _ in 0..3 {
        service.job(ALICE, "app=ocean").start(&service).await;
        service.advance(std::time::Duration::from_hours(1)).await;
    }
    let runs = history(&service, ALICE, "ocean").await;
    let at = |place: usize| text(&runs[place]["started_at"]).to_owned();
    let later = |place: usize, by: SignedDuration| {
        let at: jiff::Timestamp = at(place).parse().unwrap();
        (at + by).to_string()
    };
    let tick = SignedDuration::from_micros(1);
    for (query, expected) in [
        (format!("?since={}", at(1)), &[2, 3][..]),
        (format!("?since={}", later(1, tick)), &[3]),
        (format!("?until={}", at(1)), &[1]),
        (format!("?until={}", later(1, tick)), &[1, 2]),
        (format!("?since={}&until={}", at(1), at(2)), &[2]),
        (format!("?since={}&until={}", at(2), at(1)), &[]),
        ("?since=2020-01-01T00:00:00Z".to_owned(), &[1, 2, 3]),
        ("?until=2020-01-01T00:00:00Z".to_owned(), &[]),
    ] {
        assert_eq!(listed(&service, ALICE, &query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn what_no_history_knows_is_refused_by_its_name() {
    let service = TestService::new().await;
    for (query, word) in [
        ("colour=red", "colour"),
        ("limit=-1", "limit"),
        ("limit=4294967296", "limit"),
        ("study=ocean", "study"),
        ("before=x", "before"),
        ("since=yesterday", "since"),
        ("until=2026-13-01", "until"),
    ] {
        let path = format!("/v1/runs?{query}");
        let refusal = service.user(ALICE).get(&path).await.bad_request();
        assert!(refusal.contains(word), "{query}: {refusal}");
    }
    let path = "/v1/runs/7?colour=red";
    let refusal = service.user(ALICE).get(path).await.bad_request();
    assert!(refusal.contains("colour"), "{refusal}");
}

/// Attack (values): Names and queries have SQL, zero bytes, escapes, or numbers that overflow.
#[tokio::test]
async fn whatever_name_is_asked_for_it_is_a_name() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").start(&service).await;
    for name in [
        "%27%20or%201%3D1%20--",
        "%25",
        "_cean",
        "ocean%3B%20drop%20table%20runs",
        "%F0%9F%8C%8A",
        "..%2F..%2Fetc",
    ] {
        for list in ["runs", "studies"] {
            for field in ["app", "account", "accelerator"] {
                let path = format!("/v1/{list}?{field}={name}");
                let found = service.user(ALICE).get(&path).await.ok();
                assert_eq!(found, json!([]), "{path}");
            }
        }
    }
    for list in ["runs", "studies"] {
        let path = format!("/v1/{list}?app=a%00b");
        service.user(ALICE).get(&path).await.bad_request();
    }
    assert_eq!(listed(&service, ALICE, "?app=ocean").await, [1]);
}
