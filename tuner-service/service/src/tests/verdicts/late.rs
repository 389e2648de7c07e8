//! Tests of reports and outcomes that come late, early, twice, or changed.

use super::*;

#[tokio::test]
async fn a_report_waits_for_slurms_word() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    let run = swept(&service, &job).await;
    waits(&run);
    assert_eq!(
        (&run["outcome"], &run["elapsed"]),
        (&Value::Null, &json!(2.0))
    );
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(run["outcome"], "COMPLETED");
    let query = format!(
        "select node_list from outcomes where run_id = {}",
        run["run_id"]
    );
    assert_eq!(
        service.database.text(&query).await,
        run["node"].as_str().unwrap()
    );
}

#[tokio::test]
async fn slurms_word_waits_for_the_report() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    assert_eq!(
        say(&service, vec![outcome(&job, "COMPLETED")]).await,
        (1, 0)
    );
    service.sweep().await;
    let path = format!("/v1/runs/{}", job.job.job_id);
    service.user(ALICE).get(&path).await.not_found();
    // Nobody has heard of its start.
    let report = job.reports(None, 2.0);
    job.finish(&service, &report).await;
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(
        (&run["outcome"], &run["applied"]["kind"]),
        (&json!("COMPLETED"), &json!("default"))
    );
}

#[tokio::test]
async fn slurms_word_waits_for_the_start() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    reported(&service, &job, |_| {}).await;
    assert_eq!(swept(&service, &job).await["state"], "counted");
}

#[tokio::test]
async fn a_word_that_meets_no_run_is_forgotten_when_no_run_can_come() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    let kept = "select count(*) from outcomes";
    service.advance(LOST - 5 * SECOND).await;
    service.sweep().await;
    assert_eq!(service.database.number(kept).await, 1);
    service.advance(10 * SECOND).await;
    service.sweep().await;
    assert_eq!(service.database.number(kept).await, 0);
}

#[tokio::test]
async fn a_word_that_is_said_again_changes_nothing() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    let said = vec![outcome(&job, "COMPLETED")];
    assert_eq!(say(&service, said.clone()).await, (1, 0));
    let before = swept(&service, &job).await;
    assert_eq!(before["state"], "counted");
    assert_eq!(say(&service, said).await, (0, 1));
    assert_eq!(swept(&service, &job).await, before);
    assert_eq!(judgements(&service, &job).await, 1);
    let words = "select string_agg(state, ' ') from outcomes";
    assert_eq!(service.database.text(words).await, "COMPLETED");
}

/// Promise: a failed run is taken for a fast one
#[tokio::test]
async fn a_run_that_counted_is_corrected_when_the_truth_comes_late() {
    let service = told_by_the_collector().await;
    let good = service.job(ALICE, "app=ocean");
    let good = {
        reported(&service, &good, |_| {}).await;
        say(&service, vec![outcome(&good, "COMPLETED")]).await;
        swept(&service, &good).await
    };
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    job.finish(&service, &job.reports(Some(&started), 1.0))
        .await;
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    assert_eq!(swept(&service, &job).await["state"], "counted");
    let wrong = service.study("ocean").await["default"].clone();
    assert_eq!((&wrong["n"], &wrong["mean"]), (&json!(2), &json!(1.5)));

    say(&service, vec![outcome(&job, "NODE_FAIL")]).await;
    let run = swept(&service, &job).await;
    is(&run, "not_counted", "Slurm says NODE_FAIL");
    assert_eq!(run["outcome"], "NODE_FAIL");
    assert_eq!(
        judgements(&service, &job).await,
        2,
        "the first judgement is to stay on record"
    );
    let study = service.study("ocean").await;
    let right = &study["default"];
    assert_eq!(
        (&right["n"], &right["mean"]),
        (&json!(1), &good["elapsed"]),
        "the cache is not built anew"
    );
    assert_eq!(
        (&study["counted"], &study["not_counted"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_run_that_did_not_count_is_counted_when_the_truth_comes_late() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    say(&service, vec![outcome(&job, "NODE_FAIL")]).await;
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says NODE_FAIL",
    );
    assert_eq!(service.study("ocean").await["default"], Value::Null);
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    is(
        &swept(&service, &job).await,
        "counted",
        "completed in 2.000 s with the default",
    );
    assert_eq!(service.study("ocean").await["default"]["n"], 1);
}

#[tokio::test]
async fn a_finish_after_a_reset_counts_for_the_old_epoch() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let path = format!("/v1/studies/{}/reset", service.study_id("ocean").await);
    let why = json!({ "why": "while a job runs" });
    service.user(ALICE).post(&path, why).await.ok();
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    job.ends(&service, "COMPLETED", 2.0);
    let run = swept(&service, &job).await;
    assert_eq!(run["state"], "counted");
    assert_eq!(run["epoch"], 1, "a run belongs to the epoch at its start");
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["epoch"], &study["counted"]),
        (&json!(2), &json!(0)),
        "it counts in the new epoch"
    );
}

/// Promise: a report is counted twice
#[tokio::test]
async fn a_nodes_second_report_changes_nothing_whatever_it_says() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let report = job.reports(Some(&started), 2.0);
    assert!(!job.finish(&service, &report).await.duplicate);
    let again = job.finish(&service, &report).await;
    assert!(again.duplicate);
    assert_eq!(again.run_id, started.run_id);
    assert!(
        job.finish(&service, &job.reports(Some(&started), 0.001))
            .await
            .duplicate
    );
    job.ends(&service, "COMPLETED", 2.0);
    let before = swept(&service, &job).await;
    is(&before, "counted", "completed in 2.000 s with the default");
    assert!(
        job.finish(&service, &job.reports(Some(&started), 9.0))
            .await
            .duplicate
    );
    assert_eq!(swept(&service, &job).await, before);
    assert_eq!(judgements(&service, &job).await, 1);
}

#[tokio::test]
async fn a_finish_without_a_start_is_a_run_of_the_default_that_says_why() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let report = job.reports(None, 2.0);
    job.finish(&service, &report).await;
    job.ends(&service, "COMPLETED", 2.0);
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(
        run["reason"],
        "the start had no answer (no answer); the job ran with the default"
    );
    assert_eq!(run["differs"], json!({}));
    assert_eq!(run["role"], "observe");
    let mut silent = job.reports(None, 2.0);
    silent.job.job_id = service.next_job_id();
    silent.start_failure = None;
    job.finish(&service, &silent).await;
    let run = service.run_of(silent.job.job_id).await["run"].clone();
    assert_eq!(
        run["reason"],
        "the start had no answer; the job ran with the default"
    );
}

#[tokio::test]
async fn a_launch_is_over_once_its_end_has_been_known_for_a_minute() {
    let service = TestService::new().await;
    let ended = service.job(ALICE, "app=ocean");
    let alive = service.job(ALICE, "app=ocean");
    let (over, going_on) = (ended.start(&service).await, alive.start(&service).await);
    ended.ends(&service, "COMPLETED", 2.0);
    alive.ends(&service, "RUNNING", 0.0);
    service.sweep().await;
    let runs = [over.run_id, going_on.run_id, 4_000_000_000];
    let which = async || {
        let answer = service
            .node()
            .post("/v1/runs/over", json!({ "runs": runs }))
            .await;
        answer.ok()["over"].clone()
    };
    assert_eq!(which().await, json!([]));
    service.advance(55 * SECOND).await;
    assert_eq!(
        which().await,
        json!([]),
        "the outcome may precede the epilog"
    );
    service.advance(5 * SECOND).await;
    assert_eq!(which().await, json!([over.run_id]));
    alive.ends(&service, "TIMEOUT", 2.0);
    service.sweep().await;
    assert_eq!(which().await, json!([over.run_id]));
}

#[tokio::test]
async fn a_run_that_was_given_up_is_over_and_of_too_many_nobody_is_told() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    service.sweep().await;
    after(&service, RELEASE, &job).await;
    let over = |runs: Vec<i64>| {
        service
            .node()
            .post("/v1/runs/over", json!({ "runs": runs }))
    };
    assert_eq!(
        over(vec![started.run_id]).await.ok()["over"],
        json!([started.run_id])
    );
    assert_eq!(
        over((0..10_001).collect()).await.bad_request(),
        "runs has 10001 entries: at most 10000 are taken"
    );
    over((0..10_000).collect()).await.ok();
}

#[tokio::test]
async fn a_job_id_that_comes_back_is_another_launch_and_a_late_report_is_of_the_old_one() {
    let service = TestService::new().await;
    let old = service.job(ALICE, "app=ocean");
    let first = old.start(&service).await;
    old.ends(&service, "COMPLETED", 2.0);
    service.sweep().await;
    service.advance(Duration::from_hours(1)).await;
    let new = TestJob {
        started_at: service.now(),
        ..old.clone()
    };
    service.slurm().forget(old.job.job_id);
    let second = new.start(&service).await;
    assert_ne!(second.run_id, first.run_id);
    // The old launch's report was in a spool.
    let report = old.reports(Some(&first), 7.0);
    assert_eq!(old.finish(&service, &report).await.run_id, first.run_id);
    new.finish(&service, &new.reports(Some(&second), 2.0)).await;
    new.ends(&service, "COMPLETED", 2.0);
    service.sweep().await;
    let path = format!("/v1/runs/{}", old.job.job_id);
    let runs = service.user(ALICE).get(&path).await.ok();
    let became: Vec<_> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["run"])
        .collect();
    let became: Vec<_> = became
        .iter()
        .map(|run| (&run["run_id"], &run["elapsed"], &run["state"]))
        .collect();
    let expected = json!([
        [first.run_id, 7.0, "counted"],
        [second.run_id, 2.0, "counted"]
    ]);
    assert_eq!(json!(became), expected);
}

#[tokio::test]
async fn slurms_id_of_a_launch_tells_it_from_the_one_before_however_close_they_are() {
    let service = TestService::new().await;
    let mut old = service.job(ALICE, "app=ocean");
    old.job.sluid = Some("sBR1JB8J1YM400".parse().unwrap());
    let first = old.start(&service).await;
    let mut new = old.clone();
    new.job.sluid = Some("sBR1JB8J1YM401".parse().unwrap());
    let second = new.start(&service).await;
    assert_ne!(second.run_id, first.run_id);
    // Neither had an answer, and says so.
    for (job, run_id) in [(&old, first.run_id), (&new, second.run_id)] {
        let report = job.reports(None, 2.0);
        assert_eq!(job.finish(&service, &report).await.run_id, run_id);
    }
}
