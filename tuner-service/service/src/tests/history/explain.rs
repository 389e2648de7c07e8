//! Tests of the explanation of each launch of a job.

use std::time::Duration;

use io_autotune_engine::Parametrization;
use io_autotune_protocol::Step;
use serde_json::{Value, json};

use super::super::studies::{
    COMPUTING, learnt, little, overridden, sets_it, steer, text, until_settled,
};
use super::super::{ADMIN, ALICE, BOB, Course, QUICK, TestService};
use super::explained;

#[tokio::test]
async fn each_launch_of_a_job_is_told_the_oldest_first() {
    let service = TestService::new().await;
    let first = service.job(ALICE, "app=ocean");
    first.start(&service).await;
    let mut again = first.clone();
    again.job.restart_count = 1;
    again.started_at = service.now();
    // What no node has reported is asked about in a sweep.
    service.slurm().queue(again.queued("RUNNING", 1.0));
    service.sweep().await;
    again.goes(&service, |_| Course::completed(5.0)).await;
    let launches = explained(&service, ALICE, &json!(first.job.job_id)).await;
    let of = |name: &str| -> Vec<&Value> { launches.iter().map(|one| &one["run"][name]).collect() };
    assert_eq!(of("restart_count"), [&json!(0), &json!(1)]);
    assert_eq!(of("state"), [&json!("not_counted"), &json!("counted")]);
}

#[tokio::test]
async fn a_job_id_that_came_back_is_two_runs() {
    let service = TestService::new().await;
    let first = service.job(ALICE, "app=ocean");
    first.goes(&service, |_| Course::completed(5.0)).await;
    service.slurm().forget(first.job.job_id);
    service.advance(Duration::from_hours(24 * 40)).await;
    let mut second = service.job(BOB, "app=climate");
    second.job.job_id = first.job.job_id;
    second.goes(&service, |_| Course::completed(5.0)).await;
    let job_id = json!(first.job.job_id);
    let launches = explained(&service, ADMIN, &job_id).await;
    let of: Vec<&str> = launches
        .iter()
        .map(|one| text(&one["run"]["application"]))
        .collect();
    assert_eq!(of, ["ocean", "climate"]);
    assert_eq!(explained(&service, ALICE, &job_id).await.len(), 1);
}

#[tokio::test]
async fn a_run_is_explained_with_what_was_asked_given_and_reported() {
    let service = TestService::with(QUICK).await;
    let study_id = learnt(&service, ALICE, "ocean").await;
    let job = service.job(ALICE, "app=ocean");
    let run = job.goes(&service, |_| Course::completed(5.0)).await;
    let launches = explained(&service, ALICE, &run["job_id"]).await;
    let detail = &launches[0];
    assert_eq!(detail["run"], run);
    assert_eq!(detail["request"]["app"], "ocean");
    assert_eq!(detail["request"]["mode"], "tune");
    let given = &run["differs"];
    assert_eq!(*given, json!({ "cb_nodes": 4, "romio_cb_read": "disable" }));
    let file = &detail["delivery"]["files"][0];
    assert_eq!(file["variable"], "ROMIO_HINTS");
    assert_eq!(file["content"], "cb_nodes 4\nromio_cb_read disable\n");
    assert_eq!(detail["reports"].as_array().unwrap().len(), 1);
    assert_eq!(detail["reports"][0]["job"]["node"], "n1");
    assert_eq!(run["applied"]["parametrization"], run["parametrization"]);
    // What was known then, and not what is known now.
    assert_eq!(detail["expected"]["n"], 2);
    assert_eq!(detail["default_then"]["n"], 1);
    assert_eq!(
        detail["suggestion"]["overrides"]["pin"],
        run["parametrization"]
    );
    let decided = &detail["decided_by"];
    assert_eq!(decided["kind"], "pin");
    assert_eq!(decided["scope"]["study"], study_id);
    assert_eq!(decided["uid"], ALICE);
    assert_eq!(decided["is_over"], false);
    steer(&service, ALICE, study_id, "unpin", json!({}))
        .await
        .ok();
    let launches = explained(&service, ALICE, &run["job_id"]).await;
    assert_eq!(launches[0]["decided_by"]["is_over"], true);
}

#[tokio::test]
async fn a_run_that_an_order_decided_is_explained_by_the_order() {
    let service = TestService::with(QUICK).await;
    let order = json!({ "kind": "off", "scope": { "application": "ocean" }, "why": "maintenance" });
    let ordered = service.user(ADMIN).post("/v1/orders", &order).await.ok();
    let run = service
        .ran(ALICE, "app=ocean", |_| Course::completed(5.0))
        .await;
    assert_eq!(run["role"], "observe");
    let launches = explained(&service, ALICE, &run["job_id"]).await;
    let decided = &launches[0]["decided_by"];
    assert_eq!(decided["order_id"], ordered["order_id"]);
    assert_eq!(decided["why"], "maintenance");
    assert_eq!(decided["kind"], "off");
    assert_eq!(decided["may_end"], false);
    let launches = explained(&service, ADMIN, &run["job_id"]).await;
    assert_eq!(launches[0]["decided_by"]["may_end"], true);
}

#[tokio::test]
async fn a_run_of_which_the_start_had_no_answer_says_so() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let report = job.reports(None, 5.0);
    job.finish(&service, &report).await;
    job.ends(&service, "COMPLETED", 5.0);
    service.poll().await;
    let launches = explained(&service, ALICE, &json!(job.job.job_id)).await;
    assert_eq!(launches.len(), 1);
    let run = &launches[0]["run"];
    assert_eq!(
        run["reason"],
        "the start had no answer (no answer); the job ran with the default"
    );
    assert_eq!(
        (&run["state"], &run["differs"]),
        (&json!("counted"), &json!({}))
    );
    assert_eq!(launches[0]["expected"], Value::Null);
}

/// Attack (floods): A job has very many steps and nodes.
/// Outcome: 64 reports are explained, and of one with more than 500 steps no steps.
#[tokio::test]
async fn very_long_reports_are_told_in_part() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, "app=wide");
    job.job.nodes = 66;
    let started = job.start(&service).await;
    for node in 1..=66 {
        let mut of_node = job.clone();
        of_node.job.node = format!("n{node}");
        let mut report = of_node.reports(Some(&started), 5.0);
        let step = Step {
            nodes: 66,
            ..report.steps[0].clone()
        };
        let steps: u32 = if node == 2 { 501 } else { 500 };
        report.steps = (0..steps)
            .map(|step_id| Step {
                step_id,
                ..step.clone()
            })
            .collect();
        if node > 3 {
            report.steps.truncate(1);
        }
        of_node.finish(&service, &report).await;
    }
    let launches = explained(&service, ALICE, &json!(job.job.job_id)).await;
    let reports = launches[0]["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 64);
    assert_eq!(reports[0]["steps"].as_array().unwrap().len(), 500);
    assert_eq!(reports[1].get("steps"), None);
    assert_eq!(reports[1]["job"]["node"], "n2");
    assert_eq!(reports[63]["job"]["node"], "n64");
}

#[tokio::test]
async fn a_job_that_has_no_run_is_refused_with_what_lists_them() {
    let service = TestService::new().await;
    service.job(BOB, "app=ocean").start(&service).await;
    // Of another user's job nobody learns that it is there.
    for job_id in [1, 4711] {
        for path in [format!("{job_id}"), format!("{job_id}/replay")] {
            let refused = service.user(ALICE).get(&format!("/v1/runs/{path}")).await;
            assert_eq!(
                refused.not_found(),
                format!(
                    "there is no run of a job {job_id}, which begins when a job that was submitted with --io-autotune starts, among those you \
                     may see; `io-autotune history` lists them"
                )
            );
        }
    }
    for path in ["abc", "-1", "4294967296", "abc/replay"] {
        service
            .user(ALICE)
            .get(&format!("/v1/runs/{path}"))
            .await
            .bad_request();
    }
}

#[tokio::test]
async fn a_job_whose_run_was_removed_is_refused_with_what_retention_has_removed() {
    let service = TestService::with(QUICK).await;
    let run = service
        .ran(ALICE, "app=ocean", |_| Course::completed(5.0))
        .await;
    let study_id = service.study_id("ocean").await;
    steer(&service, ALICE, study_id, "reset", json!({}))
        .await
        .ok();
    service.advance(Duration::from_hours(24 * 200)).await;
    let body = json!({ "older_than_days": 30, "why": "the disk is full" });
    let removed = service.user(ADMIN).post("/v1/retention", &body).await.ok();
    assert_eq!(removed["runs"], 1, "{removed}");
    let path = format!("/v1/runs/{}", run["job_id"]);
    assert_eq!(
        service.user(ALICE).get(&path).await.not_found(),
        format!(
            "there is no run of a job {}, which begins when a job that was submitted with --io-autotune starts (old ones were removed by \
             retention, none that started after {}), among those you may see; `io-autotune history` \
             lists them",
            run["job_id"],
            text(&run["started_at"])
        )
    );
}

#[tokio::test]
async fn a_held_parameter_is_named_in_the_reason() {
    let service = TestService::with(QUICK).await;
    let study_id = overridden(&service, "held").await;
    steer(&service, ALICE, study_id, "unpin", json!({}))
        .await
        .ok();
    let mut last = Value::Null;
    while last["role"] != "design" && last["role"] != "search" {
        last = service.ran(ALICE, "app=held", sets_it(true)).await;
    }
    let launches = explained(&service, ALICE, &last["job_id"]).await;
    let reason = text(&launches[0]["run"]["reason"]);
    assert!(
        reason.ends_with("does not heed it: romio_ds_write"),
        "{reason}"
    );
    let findings = launches[0]["findings"].as_array().unwrap();
    let kinds: Vec<&str> = findings.iter().map(|one| text(&one["kind"])).collect();
    assert_eq!(kinds, ["ineffective"]);
}

#[tokio::test]
async fn a_run_says_that_there_is_nothing_to_win() {
    let service = TestService::with(&little()).await;
    let computing = |_: &_| Course::completed(3.0).measured(COMPUTING);
    let runs = until_settled(&service, "computes", computing).await;
    let last = runs.last().unwrap();
    let launches = explained(&service, ALICE, &last["job_id"]).await;
    let reason = text(&launches[0]["run"]["reason"]);
    let told = "there is nothing to win: the default reads and writes 0.";
    assert!(reason.contains(told), "{reason}");
    let kinds: Vec<&str> = launches[0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["kind"]))
        .collect();
    assert_eq!(kinds, ["nothing_to_win"]);
}

/// Promise: a user reads another user's study
#[tokio::test]
async fn whose_runs_a_search_began_from_is_told_of_those_that_one_sees() {
    let service = TestService::new().await;
    let default = service.default_of("romio");
    let elapsed = |given: &Parametrization, _| {
        if *given == default { 10.0 } else { 6.0 }
    };
    service.tune(BOB, "app=source", 24, elapsed).await;
    service.tune(ALICE, "app=own", 24, elapsed).await;
    // A service asks once a second what others have learnt; this one has not asked yet.
    let service = service.replica().await;
    service.tune(ALICE, "app=ocean", 6, elapsed).await;
    let path = "/v1/runs?app=ocean&limit=1";
    let last = service.user(ALICE).get(path).await.ok()[0].clone();
    let own = service.study_id("own").await;
    let source = service.study_id("source").await;
    let launches = explained(&service, ALICE, &last["job_id"]).await;
    let begun = &launches[0]["begun_from"];
    assert_eq!(begun["studies"], 2, "{}", launches[0]);
    let named = |id: i64, application: &str| json!({ "id": id, "application": application });
    assert_eq!(begun["seen"], json!([named(own, "own")]));
    let launches = explained(&service, ADMIN, &last["job_id"]).await;
    let mut all = vec![named(own, "own"), named(source, "source")];
    all.sort_by_key(|one| one["id"].as_i64());
    assert_eq!(launches[0]["begun_from"]["seen"], json!(all));
}

#[tokio::test]
async fn of_a_job_of_many_launches_the_newest_hundred_are_told() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, "app=ocean,mode=observe");
    for restart_count in 0..=100 {
        job.job.restart_count = restart_count;
        job.start(&service).await;
    }
    let path = format!("/v1/runs/{}/replay", job.job.job_id);
    let launches: Vec<Value> = service.user(ALICE).get(&path).await.read();
    assert_eq!(launches.len(), 100);
    assert_eq!(launches[0]["restart_count"], 1);
    assert_eq!(launches[99]["restart_count"], 100);
}
