//! Each endpoint by each role.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::json;

use super::*;
use crate::access::table::ENDPOINTS;

/// A path of an endpoint: with numbers that are nobody's.
fn some_path(path: &str) -> String {
    let path = path.replace("{upload}", "0123456789abcdef0123456789abcdef");
    let path = path.replace("{file}", "index.html");
    let path = path.replace("{name}", "romio");
    ["{study_id}", "{job_id}", "{audit_id}"]
        .iter()
        .fold(path, |path, name| path.replace(name, "99999999"))
}

/// Attack (others): Each role asks at each endpoint.
/// Outcome: It may do exactly what the table grants; a refusal comes before the body is read.
#[tokio::test]
async fn each_endpoint_is_for_the_roles_of_its_row_and_looks_at_no_body_before() {
    let service = site().await;
    let mut refused = 0;
    for endpoint in ENDPOINTS {
        for role in Role::ALL {
            let uid = uid_with(role);
            let path = some_path(endpoint.path);
            let body = b"no JSON".to_vec();
            let method = endpoint.method.as_str();
            let answer = service.user(uid).send(method, &path, body).await;
            let mut grants = endpoint.grants.iter().map(|(granted, _)| *granted);
            let is_granted = grants.any(|granted| match granted {
                Role::User => true,
                // Root acts for the others who speak for jobs.
                Role::Collector | Role::BurstBuffer if role == Role::Node => true,
                granted => granted == role,
            });
            assert!(answer.is_signed, "{role:?}: {answer}");
            if !is_granted {
                assert_eq!(answer.forbidden(), endpoint.refusal, "{role:?}: {answer}");
                assert!(!endpoint.refusal.is_empty(), "{role:?}: {answer}");
                refused += 1;
            } else if endpoint.method == Method::POST {
                answer.bad_request();
            } else {
                assert!([200, 404].contains(&answer.status.as_u16()), "{answer}");
            }
        }
    }
    // Ten endpoints are not for every user.
    assert_eq!((ENDPOINTS.len(), refused), (34, 64));
}

#[tokio::test]
async fn the_refusals_say_who_may_and_what_names_them() {
    let service = TestService::new().await;
    for (method, path, told) in [
        (
            "POST",
            "/v1/runs/start",
            "only root of a node starts and finishes runs",
        ),
        (
            "POST",
            "/v1/runs/finish",
            "only root of a node starts and finishes runs",
        ),
        (
            "POST",
            "/v1/runs/over",
            "only root of a node starts and finishes runs",
        ),
        (
            "POST",
            "/v1/runs/directives",
            "only the burst buffer's account completes directives: [access] burst_buffers of service.toml names it",
        ),
        (
            "POST",
            "/v1/outcomes",
            "only a collector delivers outcomes: [access] collectors of service.toml names its account",
        ),
        (
            "GET",
            "/v1/report/index.html",
            "the report is about everyone's jobs: [access] report_readers of service.toml names who may read it",
        ),
        (
            "POST",
            "/v1/imports/0123456789abcdef0123456789abcdef",
            "only admins import studies: [access] admins of service.toml names them",
        ),
        (
            "POST",
            "/v1/retention",
            "only admins remove runs: [access] admins of service.toml names them",
        ),
        (
            "GET",
            "/v1/doctor",
            "only admins and operators ask what the service says of itself: [access] of service.toml names them",
        ),
    ] {
        let answer = service.user(BOB).send(method, path, Vec::new()).await;
        assert_eq!(answer.forbidden(), told, "{path}");
    }
}

/// The applications of [`site`] that a role sees.
fn seen_by(role: Role) -> BTreeSet<String> {
    match role {
        Role::Coordinator => set(&["ocean", "own"]),
        Role::Operator | Role::Admin => set(&["ocean", "lab", "ice", "own"]),
        Role::User | Role::ReportReader | Role::Node | Role::Collector | Role::BurstBuffer => {
            set(&[])
        }
    }
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn each_role_is_listed_what_it_may_see_and_nothing_else() {
    let service = site().await;
    for application in ["ocean", "lab", "ice", "own"] {
        let study = service.study_id(application).await;
        let body = json!({"kind": "freeze", "scope": {"study": study}, "why": application});
        service.user(ADMIN).post("/v1/orders", body).await.ok();
    }
    for role in Role::ALL {
        let (uid, seen) = (uid_with(role), seen_by(role));
        for path in ["/v1/studies", "/v1/runs", "/v1/audit"] {
            let found = applications(&service, uid, path).await;
            assert_eq!(found, seen, "{role:?} at {path}");
        }
        let orders = service.user(uid).get("/v1/orders").await.ok();
        let reasons = orders.as_array().unwrap().iter();
        let reasons = reasons.map(|one| one["why"].as_str().unwrap().to_owned());
        assert_eq!(reasons.collect::<BTreeSet<_>>(), seen, "{role:?}'s orders");
    }
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn each_role_reads_in_full_what_it_is_listed_and_nothing_else() {
    let service = site().await;
    for application in ["ocean", "lab", "ice", "own"] {
        let study = service.study(application).await;
        let path = format!("/v1/runs?study={}", study["study_id"]);
        let run = service.user(ADMIN).get(&path).await.ok()[0].clone();
        let (study, job) = (&study["study_id"], &run["job_id"]);
        for path in [
            format!("/v1/studies/{study}"),
            format!("/v1/studies/{study}/export"),
            format!("/v1/runs/{job}"),
            format!("/v1/runs/{job}/replay"),
        ] {
            for role in Role::ALL {
                let answer = service.user(uid_with(role)).get(&path).await;
                match seen_by(role).contains(application) {
                    true => drop(answer.ok()),
                    false => drop(answer.not_found()),
                }
            }
        }
    }
}

/// Promise: a user steers another user's study
#[tokio::test]
async fn each_role_steers_what_it_may_and_an_operator_only_reads() {
    let service = site().await;
    let mut steered = 0;
    for application in ["ocean", "lab", "ice", "own"] {
        let study = service.study_id(application).await;
        for role in Role::ALL {
            let path = format!("/v1/studies/{study}/pin");
            let body = json!({"values": {"cb_nodes": "2"}, "why": "a test"});
            let answer = service.user(uid_with(role)).post(&path, body).await;
            let may = role != Role::Operator && seen_by(role).contains(application);
            match may {
                true => assert_eq!(answer.ok()["pin"]["uid"], uid_with(role), "{answer}"),
                false => drop(answer.not_found()),
            }
            steered += i64::from(may);
        }
    }
    let lines = service
        .database
        .number("select count(*) from audit where action = 'pin'");
    assert_eq!(lines.await, steered);
}

#[tokio::test]
async fn only_admins_order_for_others() {
    let service = site().await;
    for role in Role::ALL {
        for scope in [
            json!({"uid": ALICE}),
            json!({"uid": ALICE, "application": "ice"}),
        ] {
            let body = json!({"kind": "off", "scope": scope, "why": "a test"});
            let answer = service.user(uid_with(role)).post("/v1/orders", body).await;
            if role == Role::Admin {
                assert_eq!(answer.ok()["studies"][0]["application"], "ice");
            } else {
                assert_eq!(
                    answer.forbidden(),
                    "only admins steer the studies of others: leave the user out"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_order_without_a_user_is_about_ones_own_but_for_admins() {
    let service = site().await;
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Admin) {
        let body = json!({"kind": "off", "dry_run": true, "why": "a test"});
        let answer = service.user(uid_with(role)).post("/v1/orders", body).await;
        let own: &[&str] = match role {
            Role::Coordinator => &["own"],
            _ => &[],
        };
        let studies = answer.ok()["studies"].clone();
        let studies = studies.as_array().unwrap().iter();
        let studies = studies.map(|one| one["application"].as_str().unwrap().to_owned());
        assert_eq!(studies.collect::<BTreeSet<_>>(), set(own), "{role:?}");
    }
    let body = json!({"kind": "off", "dry_run": true, "why": "a test"});
    let all = service.user(ADMIN).post("/v1/orders", body).await.ok();
    assert_eq!(all["studies"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn names_of_jobs_are_told_their_owner_operators_and_admins_and_no_coordinator() {
    let service = site().await;
    let mut job = service.job(uid_of(MEMBER), "name=secret-a");
    job.account = "physics".into();
    job.runs(&service, 10.0).await;
    for role in Role::ALL {
        let names = service.user(uid_with(role)).get("/v1/applications/names");
        let names = names.await.text();
        let may = matches!(role, Role::Operator | Role::Admin);
        assert_eq!(names.contains("secret-a"), may, "{role:?}: {names}");
    }
    let own = service.user(uid_of(MEMBER)).get("/v1/applications/names");
    assert!(own.await.text().contains("secret-a"));
}

#[tokio::test]
async fn what_is_open_is_told_unsigned_and_names_no_user() {
    let service = site().await;
    for path in ["/v1/health", "/v1/ready", "/v1/openapi.json"] {
        let mut request = service.user(ALICE).signed("GET", path, Vec::new());
        request.credential = None;
        let answer = service.user(ALICE).send_as_it_is(request).await;
        assert_eq!((answer.status.as_u16(), answer.is_signed), (200, false));
        let text = answer.text();
        for secret in ["ocean", "physics", "user71001", "71001"] {
            assert!(!text.contains(secret), "{path} has {secret}");
        }
    }
}

#[tokio::test]
async fn where_nothing_is_a_signed_request_is_told_so_and_an_unsigned_one_is_refused() {
    let service = TestService::new().await;
    for (method, path) in [
        ("GET", "/v1/nothing"),
        ("GET", "/"),
        ("GET", "/v1/runs/"),
        ("GET", "/v1/studies/1/pin"),
        // What is spelt out is no parameter.
        ("GET", "/v1/runs/start"),
        ("POST", "/v1/runs"),
        ("DELETE", "/v1/studies/1"),
        ("PUT", "/v1/studies/1/pin"),
        ("POST", "/v1/health/x"),
    ] {
        for uid in [ALICE, ADMIN, ROOT] {
            let answer = service.user(uid).send(method, path, Vec::new()).await;
            let told = answer.refused(404, "no_such_path");
            assert_eq!(
                told,
                "there is nothing at this path; /v1/openapi.json describes the API"
            );
        }
        let mut request = service.user(ALICE).signed(method, path, Vec::new());
        request.credential = None;
        let answer = at_once(service.user(ALICE).send_as_it_is(request)).await;
        answer.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn head_asks_as_get_does() {
    let service = site().await;
    let study = service.study_id("ice").await;
    for (uid, status) in [(ALICE, 200), (BOB, 404)] {
        let path = format!("/v1/studies/{study}");
        let answer = service.user(uid).send("HEAD", &path, Vec::new()).await;
        assert_eq!(answer.status.as_u16(), status, "{answer}");
    }
    let answer = service.user(BOB).send("HEAD", "/v1/doctor", Vec::new());
    assert_eq!(answer.await.status.as_u16(), 403);
}
