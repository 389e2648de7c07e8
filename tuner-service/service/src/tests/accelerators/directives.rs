//! Directives of burst buffers, which slurmctld's host completes before a job's nodes ask.

use super::*;

const BUFFER: &str = "app=ocean,accelerator=smart-burst-buffer";

impl TestService {
    /// The burst buffer's account reports a run's directives as completed.
    async fn completed(&self, job: &TestJob, run_id: i64, kept: &[&str]) -> Answer {
        self.completed_by(BURST_BUFFER, job, run_id, kept).await
    }

    async fn completed_by(&self, uid: u32, job: &TestJob, run_id: i64, kept: &[&str]) -> Answer {
        let body = json!({
            "cluster": job.job.cluster, "job_id": job.job.job_id, "restart_count": job.job.restart_count,
            "run_id": run_id, "directives": { "kept": kept },
        });
        self.user(uid).post("/v1/runs/directives", body).await
    }

    /// The start of a job as the burst buffer's account asks for it.
    async fn before_nodes(&self, job: &TestJob) -> Answer {
        self.user(BURST_BUFFER)
            .post("/v1/runs/start", job.asks())
            .await
    }
}

#[tokio::test]
async fn the_burst_buffers_account_starts_a_run_and_the_nodes_are_told_what_became_of_it() {
    let service = TestService::new().await;
    service.job(ALICE, BUFFER).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    service.pin(ALICE, study, &[("workers", "4")]).await.ok();
    let job = service.job(ALICE, BUFFER);
    let started = service.before_nodes(&job).await.ok();
    let given = &started["delivery"]["directives"];
    assert_eq!(
        given[0],
        json!({ "name": "worker-threads", "value": "4" }),
        "{started}"
    );
    assert_eq!(given.as_array().unwrap().len(), 4);
    let run_id = started["run_id"].as_i64().unwrap();
    let answer = service.completed(&job, run_id, &["flavor"]).await.ok();
    assert_eq!(answer, json!({ "run_id": run_id }));
    let told = job.try_start(&service).await.ok();
    assert_eq!(told["run_id"], run_id);
    assert_eq!(told["directives"], json!({ "kept": ["flavor"] }), "{told}");
    // Again is no harm.
    service.completed(&job, run_id, &["flavor"]).await.ok();
}

#[tokio::test]
async fn a_job_of_several_nodes_is_told_of_its_directives_on_each() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, BUFFER);
    job.job.nodes = 2;
    let run_id = service.before_nodes(&job).await.ok()["run_id"]
        .as_i64()
        .unwrap();
    service.completed(&job, run_id, &[]).await.ok();
    for node in ["n1", "n2"] {
        job.job.node = node.into();
        let told = job.try_start(&service).await.ok();
        assert_eq!(told["directives"], json!({ "kept": [] }), "{told}");
    }
}

#[tokio::test]
async fn the_burst_buffers_account_starts_no_run_of_another_accelerator() {
    let service = TestService::new().await;
    let answer = service.before_nodes(&service.job(ALICE, "app=ocean")).await;
    assert_eq!(
        answer.forbidden(),
        "accelerator romio delivers no directives: the burst buffer's account starts no run of it"
    );
    let together = service.job(ALICE, "app=ocean,accelerator=romio+smart-burst-buffer");
    assert_eq!(
        service.before_nodes(&together).await.ok()["role"],
        "baseline"
    );
    assert_eq!(
        service.study("ocean").await["accelerator"],
        "romio+smart-burst-buffer"
    );
}

#[tokio::test]
async fn nobody_but_the_burst_buffers_account_and_root_tells_of_directives() {
    let service = TestService::new().await;
    let job = service.job(ALICE, BUFFER);
    let run_id = job.start(&service).await.run_id;
    for uid in [ALICE, BOB, OPERATOR, ADMIN, COLLECTOR] {
        service
            .completed_by(uid, &job, run_id, &[])
            .await
            .forbidden();
    }
    assert_eq!(
        job.try_start(&service).await.ok()["directives"],
        Value::Null
    );
    service.completed_by(ROOT, &job, run_id, &[]).await.ok();
}

#[tokio::test]
async fn names_of_directives_are_few_and_plain() {
    let service = TestService::new().await;
    let job = service.job(ALICE, BUFFER);
    let run_id = job.start(&service).await.run_id;
    let names: Vec<String> = (0..65).map(|number| format!("name-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let refused = service.completed(&job, run_id, &names).await.bad_request();
    assert_eq!(
        refused,
        "directives.kept has 65 names: at most 64 are taken, of letters, digits, '-' and '_'"
    );
    let too_long = "x".repeat(65);
    for bad in [
        "",
        "a=b",
        "a b",
        "a\nb",
        "$(id)",
        "1st",
        "ä",
        too_long.as_str(),
    ] {
        let refused = service.completed(&job, run_id, &[bad]).await.bad_request();
        assert!(refused.contains("has 1 names"), "{refused}");
    }
    assert_eq!(
        job.try_start(&service).await.ok()["directives"],
        Value::Null
    );
    service.completed(&job, run_id, &names[..64]).await.ok();
}

#[tokio::test]
async fn directives_of_a_run_that_is_not_the_jobs_or_was_reported_are_refused() {
    let service = TestService::new().await;
    let (job, other) = (service.job(ALICE, BUFFER), service.job(BOB, BUFFER));
    let started = job.start(&service).await;
    let run_id = started.run_id;
    let others = other.start(&service).await.run_id;
    for run in [others, run_id + 1_000] {
        let refused = service.completed(&job, run, &[]).await.not_found();
        assert!(
            refused.contains(&format!("run {run} in flight of a job {}", job.job.job_id)),
            "{refused}"
        );
    }
    let mut again = job.clone();
    again.job.restart_count = 1;
    service.completed(&again, run_id, &[]).await.not_found();
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    let refused = service.completed(&job, run_id, &[]).await.not_found();
    assert!(refused.contains("that was not reported"), "{refused}");
}

#[tokio::test]
async fn directives_of_a_cluster_that_is_none_of_the_services_are_refused() {
    let service = TestService::new().await;
    let mut job = service.job(ALICE, BUFFER);
    let run_id = job.start(&service).await.run_id;
    job.job.cluster = "gamma".into();
    let refused = service.completed(&job, run_id, &[]).await;
    let refused = refused.refused(422, "unknown_cluster");
    assert!(refused.contains("no cluster \"gamma\""), "{refused}");
}

#[tokio::test]
async fn a_run_whose_directives_were_completed_and_whose_nodes_knew_nothing_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, BUFFER);
    let run_id = service.before_nodes(&job).await.ok()["run_id"]
        .as_i64()
        .unwrap();
    service.completed(&job, run_id, &["flavor"]).await.ok();
    // The node had no answer, and says so in its report.
    job.finish(&service, &job.reports(None, 2.0)).await;
    job.ends(&service, "COMPLETED", 2.0);
    service.poll().await;
    let run = &service.run_of(job.job.job_id).await["run"];
    assert_eq!(run["state"], "not_counted", "{run}");
    assert_eq!(
        run["verdict"],
        "the directives of its burst buffer were completed, or the user's own, or unknown, and no node was told"
    );
}
