//! Liveness, readiness and the API's description.

use std::time::{Duration, Instant};

use io_autotune_protocol::Readiness;
use io_autotune_test_database::Relay;
use serde_json::Value;
use tokio::runtime::Builder;

use super::{ALICE, TestService, give_database_back, lose_database};
use crate::metrics::ANSWERED_WITHIN;

async fn ready(service: &TestService) -> (u16, Readiness) {
    let answer = service.user(ALICE).get("/v1/ready").await;
    let readiness = serde_json::from_slice(&answer.body).unwrap();
    (answer.status.as_u16(), readiness)
}

/// Lets the service's last readiness expire.
async fn later(service: &TestService) {
    service.advance(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_service_that_can_serve_is_ready_and_says_its_version() {
    let service = TestService::new().await;
    let (status, readiness) = ready(&service).await;
    assert_eq!(status, 200);
    assert_eq!(
        readiness,
        Readiness {
            ready: true,
            problems: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned()
        }
    );
}

#[tokio::test]
async fn a_service_without_its_database_lives_and_is_not_ready() {
    let site = TestService::new().await;
    let service = site.replica_of_its_role("").await;
    assert_eq!(ready(&service).await.0, 200);
    lose_database(&service).await;
    later(&service).await;
    for caller in [service.user(ALICE), service.node()] {
        let health = caller.get("/v1/health").await;
        assert_eq!(
            (health.status.as_u16(), health.text().as_str()),
            (200, "ok\n")
        );
    }
    let (status, readiness) = ready(&service).await;
    assert_eq!(status, 503);
    assert!(!readiness.ready);
    assert_eq!(readiness.problems.len(), 1, "{readiness:?}");
    assert_eq!(readiness.version, env!("CARGO_PKG_VERSION"));
    give_database_back(&service).await;
    later(&service).await;
    assert_eq!(ready(&service).await.0, 200);
}

/// Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
/// connection left.
/// Outcome: It is named within seconds; histories can be read, and reports count once later.
#[tokio::test]
async fn whoever_watches_the_service_is_told_in_time_of_a_silent_database() {
    let site = TestService::new().await;
    let relay = Relay::to(&site.database).await;
    let service = site
        .replica_with(&format!("[database]\nurl = {:?}\n", relay.url()))
        .await;
    assert!(service.metrics().await.contains("database_up 1"));
    assert_eq!(ready(&service).await.0, 200);
    relay.cut();
    service.advance(Duration::from_secs(61)).await;
    let begun = Instant::now();
    let ask = async || tokio::join!(ready(&service), service.metrics());
    let (first, second) = tokio::join!(ask(), ask());
    let taken = begun.elapsed();
    assert!(
        taken < ANSWERED_WITHIN + Duration::from_secs(1),
        "{taken:?}"
    );
    for ((status, readiness), text) in [first, second] {
        assert_eq!(status, 503);
        let [problem] = &readiness.problems[..] else {
            panic!("{readiness:?}")
        };
        assert!(problem.contains("does not answer in time"), "{problem}");
        assert!(text.contains("database_up 0\n"), "{text}");
        assert!(text.contains("database_writable 0\n"), "{text}");
    }
}

#[tokio::test]
async fn a_schema_that_is_older_or_newer_is_what_is_missing() {
    let service = TestService::new().await;
    service
        .database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (9999, 'newer', true, '', 0);
             update schema_needs set migration = 9999",
        )
        .await;
    let (status, readiness) = ready(&service).await;
    assert_eq!(status, 503);
    let [problem] = &readiness.problems[..] else {
        panic!("{readiness:?}")
    };
    assert!(problem.ends_with("upgrade this program"), "{problem}");
    service
        .database
        .execute(
            "delete from _sqlx_migrations where version = 9999; update schema_needs set migration = 1;
             delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)",
        )
        .await;
    later(&service).await;
    let (status, readiness) = ready(&service).await;
    assert_eq!(status, 503);
    let [problem] = &readiness.problems[..] else {
        panic!("{readiness:?}")
    };
    assert!(problem.contains(" and this program needs "), "{problem}");
}

/// Attack (floods): Health, readiness or the API's description are asked for without end.
/// Outcome: They count as the user's or the host's; the database is asked once a second.
#[tokio::test]
async fn the_database_is_asked_once_a_second_whether_it_is_ready() {
    let service = TestService::new().await;
    assert_eq!(ready(&service).await.0, 200);
    tokio::time::pause();
    // By another runtime: while this one waited, its time would go on.
    let database = service.database.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let change = "update schema_needs set migration = 9999;
                          update _sqlx_migrations set version = 9999 where version = 1";
            runtime.block_on(database.execute(change));
        });
    });
    assert_eq!(ready(&service).await.0, 200, "as it was a moment ago");
    tokio::time::resume();
    later(&service).await;
    assert_eq!(ready(&service).await.0, 503);
}

#[tokio::test]
async fn the_api_is_described_as_it_is_committed() {
    let service = TestService::new().await;
    let answer = service.user(ALICE).get("/v1/openapi.json").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let committed: Value =
        serde_json::from_str(include_str!("../../../../../docs/openapi.json")).unwrap();
    assert_eq!(answer.ok(), committed);
}

#[tokio::test]
async fn probes_need_no_credential() {
    let service = TestService::new().await;
    for path in ["/v1/health", "/v1/ready", "/v1/openapi.json"] {
        let user = service.user(ALICE);
        let mut request = user.signed("GET", path, Vec::new());
        request.credential = None;
        let answer = user.send_as_it_is(request).await;
        assert_eq!(answer.status, 200, "{answer}");
        assert!(!answer.is_signed);
    }
}
