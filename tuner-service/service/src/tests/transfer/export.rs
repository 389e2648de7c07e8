//! Studies read out.

use super::super::TestJob;
use super::*;

/// A study of Alice's that has settled, and a run of it in flight that may be a control run.
async fn with_a_drawn_run(service: &TestService) -> TestJob {
    service
        .tune(ALICE, "app=ocean", 16, |_, number| {
            10.0 + 0.1 * f64::from(number % 7)
        })
        .await;
    assert_eq!(service.study("ocean").await["phase"], "settled");
    let job = service.job(ALICE, "app=ocean");
    job.start(service).await;
    job
}

fn records(lines: &[String]) -> Vec<(String, Value)> {
    let record = |line: &String| {
        let value: Value = serde_json::from_str(line).unwrap();
        let object = value.as_object().unwrap();
        assert_eq!(object.len(), 1, "{line}");
        let (name, inner) = object.iter().next().unwrap();
        (name.clone(), inner.clone())
    };
    lines.iter().map(record).collect()
}

#[tokio::test]
async fn a_study_is_exported_as_lines_of_json_each_of_one_member() {
    let service = TestService::new().await;
    seven_runs(&service).await;
    let lines = service.lines(ALICE, service.study_id("ocean").await).await;
    let records = records(&lines);
    let of = |what: &str| records.iter().filter(|(name, _)| name == what).count();
    assert_eq!(
        (of("study"), of("epoch"), of("run"), of("report")),
        (1, 1, 7, 7)
    );
    assert_eq!(records.len(), 16);
    assert_eq!(
        (records[0].0.as_str(), records[1].0.as_str()),
        ("study", "epoch")
    );
    let study = &records[0].1;
    assert_eq!(
        (&study["application"], &study["owner_uid"]),
        (&json!("ocean"), &json!(ALICE))
    );
    assert_eq!(study["pin"]["parametrization"]["cb_nodes"], 2);
    let text = service.exported(ALICE, "ocean").await;
    assert!(
        !text.contains("study_id") && !text.contains("epoch_id"),
        "{text}"
    );
}

#[tokio::test]
async fn a_long_study_is_exported_page_by_page() {
    const NODES: u32 = 70;
    let service = TestService::new().await;
    for _ in 0..3 {
        let mut job = service.job(ALICE, "app=ocean");
        job.job.nodes = NODES;
        let started = job.start(&service).await;
        for node in 1..=NODES {
            job.job.node = format!("n{node}");
            let report = job.reports(Some(&started), 10.0);
            job.finish(&service, &report).await;
        }
        job.ends(&service, "COMPLETED", 10.0);
        service.poll().await;
    }
    let study = service.study_id("ocean").await;
    let path = format!("/v1/studies/{study}/export");
    let first = service.user(ALICE).get(&path).await.ok();
    let next = first["next"]
        .as_str()
        .expect("200 lines are a page")
        .to_owned();
    let lines = service.lines(ALICE, study).await;
    assert!(lines.len() > first["lines"].as_array().unwrap().len());
    let records = records(&lines);
    assert_eq!(records.iter().filter(|(name, _)| name == "run").count(), 3);
    assert_eq!(
        records.iter().filter(|(name, _)| name == "report").count(),
        210
    );
    // What is judged meanwhile is not in the pages behind the first.
    let rest = service
        .user(ALICE)
        .get(&format!("{path}?after={next}"))
        .await
        .ok();
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let again = service
        .user(ALICE)
        .get(&format!("{path}?after={next}"))
        .await
        .ok();
    assert_eq!(rest, again);
}

#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let path = format!("/v1/studies/{}/export", service.study_id("ocean").await);
    for cursor in ["", "7", "a.b", "1.2.3.4", "1.-", "99999999999999999999.1"] {
        let refused = service
            .user(ALICE)
            .get(&format!("{path}?after={cursor}"))
            .await;
        let said = format!("{cursor:?} is not where a page begins: give what the page before said");
        assert_eq!(refused.bad_request(), said);
    }
    let unknown = service.user(ALICE).get(&format!("{path}?before=1.2")).await;
    assert!(unknown.bad_request().contains("before"));
    // Behind the last run are only reports.
    let page = service
        .user(ALICE)
        .get(&format!(
            "{path}?after=9223372036854775807.9223372036854775807"
        ))
        .await;
    let page = page.ok();
    let mut lines = page["lines"].as_array().unwrap().iter();
    assert!(
        lines.all(|line| line.as_str().unwrap().starts_with("{\"report\":")),
        "{page}"
    );
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user reads another user's study
#[tokio::test]
async fn a_user_exports_their_own_studies_only() {
    let service = TestService::new().await;
    let studies = [(ALICE, "ocean"), (BOB, "ice")];
    for (uid, application) in studies {
        service
            .job(uid, &format!("app={application}"))
            .runs(&service, 10.0)
            .await;
    }
    let alices = format!("/v1/studies/{}/export", service.study_id("ocean").await);
    for path in [
        alices.clone(),
        format!("{alices}?after=1.0"),
        format!("{alices}?after=1.0.0"),
    ] {
        service.user(BOB).get(&path).await.not_found();
    }
    for reader in [ALICE, OPERATOR, ADMIN] {
        service.user(reader).get(&alices).await.ok();
    }
    service
        .user(ADMIN)
        .get("/v1/studies/1000000/export")
        .await
        .not_found();
    let own = service.exported_all(BOB).await;
    assert!(
        own.contains(&format!("\"owner_uid\":{BOB}")) && !own.contains(&ALICE.to_string()),
        "{own}"
    );
    for reader in [OPERATOR, ADMIN] {
        let all = service.exported_all(reader).await;
        assert!(all.ends_with("{\"end\":{\"studies\":2}}\n"), "{all}");
    }
}

#[tokio::test]
async fn runs_in_flight_are_left_out_of_an_export() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let before = service.exported(ALICE, "ocean").await;
    let job = service.job(ALICE, "app=ocean");
    job.completes(&service, 10.0).await;
    // `export` says how many, by what `status` has.
    assert_eq!(service.study("ocean").await["in_flight"], 1);
    let text = service.exported(ALICE, "ocean").await;
    assert!(
        !text.contains(&format!("\"job_id\":{}", job.job.job_id)),
        "{text}"
    );
    assert_eq!(text, before);
    service.poll().await;
    let text = service.exported(ALICE, "ocean").await;
    assert!(
        text.contains(&format!("\"job_id\":{}", job.job.job_id)),
        "{text}"
    );
}

/// Attack (drawn): A user exports a study while a possible control run is in flight.
/// Outcome: It is refused until the run has ended; an admin may.
#[tokio::test]
async fn an_export_tells_no_user_which_run_is_a_control_run() {
    for draw in [0.0, 0.999] {
        let service = TestService::with(SHORT).await;
        service.draw(Some(draw));
        let job = with_a_drawn_run(&service).await;
        let study = service.study_id("ocean").await;
        let path = format!("/v1/studies/{study}/export");
        for uid in [ALICE, OPERATOR] {
            let refused = service.user(uid).get(&path).await.refused(409, "conflict");
            assert_eq!(
                refused,
                format!(
                    "study {study} has runs in flight of which is not told yet whether they are control runs: \
                     export it once they have ended, or ask an admin to"
                )
            );
        }
        service.user(ADMIN).get(&path).await.ok();
        let role = service
            .database
            .text("select role from runs where state = 'in_flight'")
            .await;
        assert_eq!(role, if draw < 0.5 { "control" } else { "settled" });
        let report = job.reports(None, 10.0);
        job.finish(&service, &report).await;
        job.ends(&service, "CANCELLED", 10.0);
        service.poll().await;
        service.user(ALICE).get(&path).await.ok();
    }
}

#[tokio::test]
async fn no_page_behind_a_cursor_tells_of_a_run_in_flight() {
    let service = TestService::with(SHORT).await;
    let flying = with_a_drawn_run(&service).await;
    // One that started later is judged, and was made from what flew.
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let path = format!("/v1/studies/{study}/export?after=1000000.0");
    service
        .user(ALICE)
        .get(&path)
        .await
        .refused(409, "conflict");
    flying.ends(&service, "CANCELLED", 10.0);
    flying.finish(&service, &flying.reports(None, 10.0)).await;
    service.poll().await;
    service.user(ALICE).get(&path).await.ok();
}

#[tokio::test]
async fn orders_of_many_studies_stay_behind() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let before = service.exported(ALICE, "ocean").await;
    let order = json!({ "kind": "freeze", "scope": { "application": "ocean" }, "why": "a freeze" });
    let ordered = service.user(ADMIN).post("/v1/orders", &order).await;
    ordered.ok();
    assert_eq!(service.study("ocean").await["ordered"], "frozen");
    assert_eq!(service.exported(ALICE, "ocean").await, before);
}
