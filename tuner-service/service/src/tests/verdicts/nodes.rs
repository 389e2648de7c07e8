//! Tests of the reports of several nodes about one job, together and against each other.

use std::collections::BTreeMap;

use io_autotune_protocol::{Applied, EpilogOutcome, Step};

use super::*;

/// The report of one node of a job of several: the batch step on the first, and its part of step 0.
fn part(job: &TestJob, started: &StartAnswer, elapsed: f64) -> FinishRequest {
    let mut report = job.reports(Some(started), elapsed);
    let step = Step {
        step_id: 0,
        nodes: job.job.nodes,
        ..report.steps[0].clone()
    };
    match job.job.node.as_str() {
        "n1" => report.steps.push(step),
        _ => report.steps = vec![step],
    }
    report
}

#[tokio::test]
async fn a_run_waits_for_its_other_node_without_its_place_and_not_for_ever() {
    let service = TestService::new().await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    job.finish(&service, &part(&job, &started, 2.0)).await;
    job.ends(&service, "COMPLETED", 2.0);
    waits(&swept(&service, &job).await);
    assert!(!is_released(&service, &job).await);
    waits(&after(&service, RELEASE, &job).await);
    assert!(is_released(&service, &job).await);
    waits(&after(&service, REPORTS - RELEASE - 5 * SECOND, &job).await);
    is(
        &after(&service, 5 * SECOND, &job).await,
        "not_counted",
        "step 0 ran on 2 nodes, and 1 of them reported it",
    );
    // It was only late.
    let second = on(&job, "n2");
    second.finish(&service, &part(&second, &started, 2.0)).await;
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(judgements(&service, &job).await, 2);
}

#[tokio::test]
async fn a_run_counts_as_soon_as_all_its_nodes_have_reported() {
    let service = TestService::new().await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    let second = on(&job, "n2");
    assert_eq!(second.start(&service).await.run_id, started.run_id);
    // The last to end is not the first to report.
    second.finish(&service, &part(&second, &started, 1.5)).await;
    job.finish(&service, &part(&job, &started, 2.0)).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "counted",
        "completed in 2.000 s with the default",
    );
}

#[tokio::test]
async fn a_step_without_a_part_does_not_count_at_once_where_every_node_has_reported() {
    let service = TestService::new().await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    job.finish(&service, &part(&job, &started, 2.0)).await;
    let second = on(&job, "n2");
    let mut without = part(&second, &started, 2.0);
    without.steps.clear();
    second.finish(&service, &without).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "step 0 ran on 2 nodes, and 1 of them reported it",
    );
}

#[tokio::test]
async fn a_job_without_a_batch_step_waits_a_short_while_for_steps_elsewhere() {
    let service = TestService::new().await;
    let job = wide(&service, "app=ocean", 2);
    reported(&service, &job, |report| report.steps[0].step_id = 0).await;
    job.ends(&service, "COMPLETED", 2.0);
    waits(&swept(&service, &job).await);
    waits(&after(&service, RELEASE - 5 * SECOND, &job).await);
    is(
        &after(&service, 5 * SECOND, &job).await,
        "counted",
        "completed in 2.000 s with the default",
    );
}

#[tokio::test]
async fn a_step_takes_as_long_as_its_longest_part_and_ends_as_its_worst() {
    let service = TestService::new().await;
    for (wait_status, state) in [(0, "counted"), (9, "not_counted")] {
        let job = wide(&service, "app=ocean", 2);
        let started = job.start(&service).await;
        for (node, seconds, wait_status) in [("n1", 2.0, 0), ("n2", 3.0, wait_status)] {
            let node = on(&job, node);
            let mut report = part(&node, &started, seconds);
            report.steps.retain(|step| step.step_id == 0);
            report.steps[0].wait_status = wait_status;
            node.finish(&service, &report).await;
        }
        job.ends(&service, "COMPLETED", 3.0);
        let run = swept(&service, &job).await;
        assert_eq!(
            (&run["state"], &run["elapsed"], &run["wait_status"]),
            (&json!(state), &json!(3.0), &json!(wait_status)),
            "{run}"
        );
    }
}

#[tokio::test]
async fn nodes_that_had_different_values_do_not_count() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    let second = on(&job, "n2");
    job.finish(&service, &part(&job, &started, 2.0)).await;
    let mut other = part(&second, &started, 2.0);
    other.applied = Applied::Incomplete {
        detail: "no answer".into(),
    };
    second.finish(&service, &other).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "the parametrization did not reach every step: n2: no answer",
    );
}

/// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a run
/// was not given.
/// Outcome: The run counts by its own node, waits for it, or does not count.
#[tokio::test]
async fn a_node_that_the_job_had_not_is_not_heard() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let stranger = on(&job, "n2");
    stranger
        .finish(&service, &stranger.reports(Some(&started), 0.001))
        .await;
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    job.ends(&service, "COMPLETED", 2.0);
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(run["elapsed"], 2.0);
    assert_eq!(service.study("ocean").await["default"]["mean"], 2.0);
}

/// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a run
/// was not given.
/// Outcome: The run counts by its own node, waits for it, or does not count.
#[tokio::test]
async fn a_report_of_a_node_that_the_job_had_not_is_none() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let stranger = on(&job, "n2");
    stranger
        .finish(&service, &stranger.reports(Some(&started), 0.001))
        .await;
    job.ends(&service, "COMPLETED", 2.0);
    waits(&swept(&service, &job).await);
    is(
        &after(&service, REPORTS, &job).await,
        "not_counted",
        "Slurm says COMPLETED, and no node reported the run",
    );
}

/// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a run
/// was not given.
/// Outcome: The run counts by its own node, waits for it, or does not count.
#[tokio::test]
async fn a_report_from_elsewhere_shapes_no_study() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    listed_once(&service, &job).await;
    let stranger = on(&job, "n2");
    let report = stranger.reports(Some(&started), 0.001);
    stranger.finish(&service, &report).await;
    let run = after(&service, OUTCOME, &job).await;
    assert_eq!(
        run["state"], "counted",
        "nobody has contradicted it yet: {run}"
    );
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    is(
        &swept(&service, &job).await,
        "not_counted",
        "n1, n2 reported a job of 1 nodes",
    );
    assert_eq!(service.study("ocean").await["counted"], 0);
}

#[tokio::test]
async fn reports_of_too_many_nodes_are_named_in_part() {
    let service = TestService::with("[slurm]\nsources = []\n").await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    for node in 1..=6 {
        let node = on(&job, &format!("n{node}"));
        node.finish(&service, &node.reports(Some(&started), 2.0))
            .await;
    }
    is(
        &swept(&service, &job).await,
        "not_counted",
        "n1, n2, n3, n4 and 2 more reported a job of 2 nodes",
    );
}

#[tokio::test]
async fn what_nodes_measured_adds_up_if_each_measured_all_its_steps() {
    let service = TestService::new().await;
    for (measured, sum) in [(1.0, json!(3000.0)), (0.5, Value::Null)] {
        let job = wide(&service, "app=ocean", 2);
        let started = job.start(&service).await;
        for (node, read, marked, measured) in
            [("n1", 1000.0, 1.5, 2.0), ("n2", 2000.0, 0.5, measured)]
        {
            let node = on(&job, node);
            let mut report = part(&node, &started, 2.0);
            report.measures = BTreeMap::from([
                ("measured_steps".to_owned(), measured),
                ("asked_read_bytes".to_owned(), read),
                ("marked_seconds".to_owned(), marked),
                ("mpi_io_read_bytes".to_owned(), read),
                ("objective.rate".to_owned(), read),
            ]);
            node.finish(&service, &report).await;
        }
        job.ends(&service, "COMPLETED", 2.0);
        let run = swept(&service, &job).await;
        let measures = &run["measures"];
        assert_eq!(measures["asked_read_bytes"], sum, "{measured}: {run}");
        assert_eq!(measures["marked_seconds"], 1.5, "the longest node's");
        assert_eq!(measures["mpi_io_read_bytes"], 3000.0);
        assert_eq!(
            measures["objective.rate"], 1000.0,
            "the first node's by name"
        );
    }
}

#[tokio::test]
async fn how_others_fared_meanwhile_is_no_measure_of_a_nodes() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, |report| {
        report.measures.insert("others_elapsed_ratio".into(), 7.0);
    })
    .await;
    assert_eq!(run["state"], "counted");
    let kept = "select count(*) from judgements where measures ? 'others_elapsed_ratio'";
    assert_eq!(service.database.number(kept).await, 0);
}

#[tokio::test]
async fn sixty_four_measures_of_any_size_are_taken_and_what_is_no_number_is_named() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let of = |number: u32, value: f64| {
        let mut report = job.reports(Some(&started), 2.0);
        let measures = (0..number).map(|one| (format!("m{one}"), value));
        report.measures = measures.collect();
        report
    };
    for (report, problem) in [
        (of(65, 1.0), "measures has 65 entries: at most 64 are taken"),
        (
            of(1, 0.0),
            "measures.m0 = 0.0: it must be positive, and at most 2^63",
        ),
        (
            of(1, -1.0),
            "measures.m0 = -1.0: it must be positive, and at most 2^63",
        ),
        (
            of(1, 1.9e19),
            "measures.m0 = 1.9e19: it must be positive, and at most 2^63",
        ),
    ] {
        let refused = service.node().post("/v1/runs/finish", report).await;
        assert_eq!(refused.bad_request(), problem);
    }
    waits(&swept(&service, &job).await);
    let largest = 9_223_372_036_854_775_808.0;
    job.finish(&service, &of(64, largest)).await;
    job.ends(&service, "COMPLETED", 2.0);
    let run = swept(&service, &job).await;
    assert_eq!(run["state"], "counted");
    assert_eq!(run["measures"]["m63"], largest);
}

#[tokio::test]
async fn the_worst_that_an_epilog_was_told_speaks_for_the_run() {
    let service = TestService::with("[slurm]\nsources = []\n").await;
    let job = wide(&service, "app=ocean", 2);
    let started = job.start(&service).await;
    for (node, code) in [("n1", "0:0"), ("n2", "0:15")] {
        let node = on(&job, node);
        let mut report = part(&node, &started, 2.0);
        report.epilog = Some(EpilogOutcome {
            exit_code: code.into(),
            derived_exit_code: "0:0".into(),
            limit_seconds: None,
        });
        node.finish(&service, &report).await;
    }
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm's word could not be had, and the epilog was told exit code 0:15",
    );
}

#[tokio::test]
async fn many_long_reports_of_a_run_are_merged_one_by_one() {
    let service = TestService::with("[slurm]\nsources = []\n").await;
    let job = wide(&service, "app=ocean", 8);
    let started = job.start(&service).await;
    for node in 0..8 {
        let node = on(&job, &format!("n{node}"));
        let mut report = node.reports(Some(&started), 2.0);
        let step = report.steps[0].clone();
        report.steps = (0..2000)
            .map(|step_id| Step {
                step_id,
                nodes: 8,
                started_at: None,
                duration_ns: Some(1_000_000),
                ..step.clone()
            })
            .collect();
        node.finish(&service, &report).await;
    }
    let run = swept(&service, &job).await;
    assert_eq!(
        run["elapsed"], 2.0,
        "2,000 steps of a millisecond: {}",
        run["verdict"]
    );
    let merged = "select count(*) from runs where not dirty and missing is null";
    assert_eq!(service.database.number(merged).await, 1);
}

/// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a run
/// was not given.
/// Outcome: The run counts by its own node, waits for it, or does not count.
#[tokio::test]
async fn a_parametrization_that_was_not_given_does_not_count() {
    let service = TestService::new().await;
    for (state, seconds) in [("COMPLETED", 1.0), ("FAILED", 1.0), ("TIMEOUT", 60.0)] {
        let job = service.job(ALICE, "app=ocean");
        let started = job.start(&service).await;
        let mut report = serde_json::to_value(job.reports(Some(&started), seconds)).unwrap();
        report["applied"] =
            serde_json::json!({"kind": "parametrization", "parametrization": {"nonsense": 1}});
        service.node().post("/v1/runs/finish", report).await.ok();
        job.ends(&service, state, seconds);
        service.poll().await;
        let run = service.run_of(job.job.job_id).await["run"].clone();
        assert_eq!(run["state"], "not_counted", "{run}");
    }
    let known = "select count(*) from tested where parametrization ? 'nonsense'";
    assert_eq!(service.database.number(known).await, 0);
}
