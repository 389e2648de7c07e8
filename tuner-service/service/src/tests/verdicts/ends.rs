//! How Slurm says that a job ended, and what its node says of it.

use io_autotune_protocol::{Applied, Step};
use serde_json::{Value, json};

use super::*;

/// Promise: a failed run is taken for a fast one
#[tokio::test]
async fn what_ends_early_is_not_counted_as_fast() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    for (state, wait_status) in [("FAILED", 3 << 8), ("FAILED", 11), ("CANCELLED", 15)] {
        let job = service.job(ALICE, "app=ocean");
        reported(&service, &job, |report| {
            report.steps[0].wait_status = wait_status;
            report.steps[0].duration_ns = Some(1_000_000);
        })
        .await;
        job.ends(&service, state, 1.0);
        let run = swept(&service, &job).await;
        is(&run, "not_counted", &format!("Slurm says {state}"));
        assert_eq!(
            (&run["outcome"], &run["wait_status"]),
            (&json!(state), &json!(wait_status))
        );
    }
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["counted"], &study["not_counted"]),
        (&json!(1), &json!(3)),
        "{study}"
    );
    assert_eq!(study["default"]["n"], 1);
    assert_eq!(
        study["default"]["mean"], 1.0,
        "a failed run has lowered the mean"
    );
}

#[tokio::test]
async fn a_run_of_the_default_that_completed_counts_for_it() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, |_| {}).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(
        (&run["outcome"], &run["elapsed"]),
        (&json!("COMPLETED"), &json!(2.0))
    );
    let default = service.default_of("romio");
    assert_eq!(
        effect(&service, &job).await,
        ("sample".into(), Some(default))
    );
}

#[tokio::test]
async fn a_run_that_completed_counts_for_what_was_applied() {
    let service = TestService::new().await;
    let job = tuned(&service, "ocean").await;
    let run = completed(&service, &job, |_| {}).await;
    is(&run, "counted", "completed in 2.000 s");
    assert_eq!(run["differs"]["cb_nodes"], 2, "{run}");
    let (word, given) = effect(&service, &job).await;
    assert_eq!(
        (word.as_str(), json!(given)),
        ("sample", run["parametrization"].clone())
    );
}

#[tokio::test]
async fn a_run_whose_answer_came_too_late_counts_for_the_default() {
    let service = TestService::new().await;
    let job = tuned(&service, "ocean").await;
    let run = completed(&service, &job, |report| report.applied = Applied::Default).await;
    is(
        &run,
        "counted",
        "completed in 2.000 s; our answer came too late, so it counts for the default",
    );
    assert_eq!(
        run["differs"]["cb_nodes"], 2,
        "it was launched with another: {run}"
    );
    let default = service.default_of("romio");
    assert_eq!(
        effect(&service, &job).await,
        ("sample".into(), Some(default))
    );
}

#[tokio::test]
async fn a_run_with_the_users_own_settings_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let variables = vec!["ROMIO_HINTS".to_owned(), "ROMIO_PRINT_HINTS".to_owned()];
    let run = completed(&service, &job, |report| {
        report.applied = Applied::User { variables };
    })
    .await;
    is(
        &run,
        "not_counted",
        "the user's own ROMIO_HINTS, ROMIO_PRINT_HINTS was left alone",
    );
    assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
}

#[tokio::test]
async fn a_run_that_was_not_given_all_of_its_parametrization_does_not_count() {
    let service = TestService::new().await;
    let job = tuned(&service, "ocean").await;
    let run = completed(&service, &job, |report| {
        report.applied = Applied::Incomplete {
            detail: "step 0 has no ROMIO_HINTS".into(),
        };
    })
    .await;
    is(
        &run,
        "not_counted",
        "the parametrization did not reach every step: step 0 has no ROMIO_HINTS",
    );
    assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
}

#[tokio::test]
async fn a_step_that_failed_without_a_batch_step_is_a_failure_of_what_was_applied() {
    let service = TestService::new().await;
    let job = tuned(&service, "ocean").await;
    let run = completed(&service, &job, |report| {
        report.steps[0].step_id = 0;
        report.steps[0].wait_status = 256;
    })
    .await;
    is(
        &run,
        "not_counted",
        "Slurm says COMPLETED, but a step ended with wait status 256",
    );
    let (word, blamed) = effect(&service, &job).await;
    assert_eq!(
        (word.as_str(), json!(blamed)),
        ("failure", run["parametrization"].clone())
    );
}

#[tokio::test]
async fn a_failing_step_within_a_batch_step_that_ended_well_is_the_scripts_own() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, |report| {
        let failed = Step {
            step_id: 0,
            wait_status: 256,
            started_at: None,
            duration_ns: Some(1_000_000),
            ..report.steps[0].clone()
        };
        report.steps.push(failed);
    })
    .await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(run["wait_status"], 0);
}

#[tokio::test]
async fn without_a_batch_step_the_steps_add_up() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, |report| {
        report.steps[0].step_id = 0;
        let second = Step {
            step_id: 1,
            started_at: None,
            duration_ns: Some(500_000_000),
            ..report.steps[0].clone()
        };
        report.steps.push(second);
    })
    .await;
    is(&run, "counted", "completed in 2.500 s with the default");
}

#[tokio::test]
async fn a_run_that_was_suspended_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    let mut queued = job.queued("COMPLETED", 4.0);
    queued.used = Some(3);
    service.slurm().queue(queued);
    let run = swept(&service, &job).await;
    is(&run, "not_counted", "it was suspended for a while");
}

#[tokio::test]
async fn a_run_of_which_no_step_was_seen_to_end_does_not_count() {
    let service = TestService::new().await;
    for steps in [true, false] {
        let job = service.job(ALICE, "app=ocean");
        let run = completed(&service, &job, |report| match steps {
            true => report.steps[0].duration_ns = None,
            false => report.steps.clear(),
        })
        .await;
        is(&run, "not_counted", "no step was seen to start and end");
        assert_eq!(run["elapsed"], Value::Null);
    }
}

#[tokio::test]
async fn a_completed_job_that_nobody_reports_waits_loses_its_place_and_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    job.ends(&service, "COMPLETED", 2.0);
    let run = swept(&service, &job).await;
    waits(&run);
    assert_eq!(run["outcome"], "COMPLETED");
    waits(&after(&service, RELEASE - 5 * SECOND, &job).await);
    assert!(!is_released(&service, &job).await);
    waits(&after(&service, 5 * SECOND, &job).await);
    assert!(is_released(&service, &job).await, "its job is over");
    waits(&after(&service, REPORTS - RELEASE - 5 * SECOND, &job).await);
    let given_up = after(&service, 5 * SECOND, &job).await;
    is(
        &given_up,
        "not_counted",
        "Slurm says COMPLETED, and no node reported the run",
    );
    // The report was only late.
    let report = job.reports(Some(&started), 2.0);
    job.finish(&service, &report).await;
    let run = swept(&service, &job).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(judgements(&service, &job).await, 2);
}

#[tokio::test]
async fn a_timeout_is_a_lower_bound() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    let mut report = job.reports(Some(&started), 52.0);
    // The batch script died by Slurm's signal.
    report.steps[0].wait_status = 15;
    job.finish(&service, &report).await;
    job.ends(&service, "TIMEOUT", 52.0);
    let run = swept(&service, &job).await;
    is(
        &run,
        "censored",
        "Slurm says TIMEOUT: it would have taken longer than 52.000 s",
    );
    assert_eq!(effect(&service, &job).await.0, "censored");
    let study = service.study("ocean").await;
    assert_eq!(study["counted"], 0, "{study}");
}

#[tokio::test]
async fn a_timeout_says_nothing_where_the_run_would_not_have_counted() {
    type Edit = fn(&mut FinishRequest);
    let edits: [(Edit, &str); 4] = [
        (
            |report| report.steps.clear(),
            "Slurm says TIMEOUT; no step was seen to start and end",
        ),
        (
            |report| {
                report.applied = Applied::User {
                    variables: vec!["ROMIO_HINTS".into()],
                };
            },
            "Slurm says TIMEOUT; the user's own ROMIO_HINTS was left alone",
        ),
        (
            |report| {
                report.applied = Applied::Incomplete {
                    detail: "a part".into(),
                };
            },
            "Slurm says TIMEOUT; the parametrization did not reach every step: a part",
        ),
        (
            |report| report.steps[0].nodes = 2,
            "Slurm says TIMEOUT; step 4294967291 ran on 2 nodes, and 1 of them reported it",
        ),
    ];
    let service = TestService::new().await;
    for (edit, why) in edits {
        let job = service.job(ALICE, "app=ocean");
        reported(&service, &job, edit).await;
        job.ends(&service, "TIMEOUT", 2.0);
        is(&swept(&service, &job).await, "not_counted", why);
    }
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    let mut queued = job.queued("TIMEOUT", 4.0);
    queued.used = Some(2);
    service.slurm().queue(queued);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says TIMEOUT; it was suspended for a while",
    );
}

#[tokio::test]
async fn a_timeout_without_a_report_does_not_count_until_one_comes() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    job.ends(&service, "TIMEOUT", 52.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says TIMEOUT; no node has reported how long the run took",
    );
    let report = job.reports(Some(&started), 52.0);
    job.finish(&service, &report).await;
    assert_eq!(swept(&service, &job).await["state"], "censored");
}

#[tokio::test]
async fn a_failure_speaks_against_what_was_applied_and_needs_no_report() {
    for (state, word) in [("FAILED", "failure"), ("OUT_OF_MEMORY", "out_of_memory")] {
        let service = TestService::new().await;
        let why = format!("Slurm says {state}");
        let silent = tuned(&service, "ocean").await;
        let launched = silent.start(&service).await.parametrization;
        silent.ends(&service, state, 2.0);
        is(&swept(&service, &silent).await, "not_counted", &why);
        assert_eq!(
            effect(&service, &silent).await,
            (word.into(), Some(launched.clone()))
        );

        let default = service.default_of("romio");
        let partial = Applied::Incomplete {
            detail: "a part".into(),
        };
        let users = Applied::User {
            variables: vec!["ROMIO_HINTS".into()],
        };
        let had = Applied::Parametrization {
            parametrization: launched.clone(),
        };
        for (applied, effects) in [
            (had, (word, Some(&launched))),
            (Applied::Default, (word, Some(&default))),
            (partial, (word, Some(&launched))),
            (users, ("nothing", None)),
        ] {
            let job = service.job(ALICE, "app=ocean");
            reported(&service, &job, |report| report.applied = applied.clone()).await;
            job.ends(&service, state, 2.0);
            is(&swept(&service, &job).await, "not_counted", &why);
            let (word, blamed) = effect(&service, &job).await;
            assert_eq!((word.as_str(), blamed.as_ref()), effects, "{applied:?}");
        }
    }
}

#[tokio::test]
async fn any_other_end_says_nothing_with_or_without_a_report() {
    let service = TestService::new().await;
    for state in [
        "CANCELLED",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
    ] {
        for is_reported in [true, false] {
            let job = service.job(ALICE, "app=ocean");
            match is_reported {
                true => drop(reported(&service, &job, |_| {}).await),
                false => drop(job.start(&service).await),
            }
            job.ends(&service, state, 2.0);
            let run = swept(&service, &job).await;
            is(&run, "not_counted", &format!("Slurm says {state}"));
            assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
        }
    }
    assert_eq!(service.study("ocean").await["counted"], 0);
}

#[tokio::test]
async fn a_word_of_a_later_slurm_is_an_end_that_says_nothing() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    say(&service, vec![outcome(&job, "EVAPORATED")]).await;
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says EVAPORATED",
    );
}

#[tokio::test]
async fn a_run_of_a_name_that_says_nothing_never_counts() {
    let service = TestService::new().await;
    let why = "the job's name says nothing about the application";
    // `sbatch --wrap`, a script that is called run.sh, and what plugins before 0.3 send.
    for request in [
        "name=wrap,mode=observe",
        "name=run.sh,mode=observe",
        "app=wrap,note=meaningless_name,mode=observe",
    ] {
        let job = service.job(ALICE, request);
        let run = completed(&service, &job, |_| {}).await;
        is(&run, "not_counted", why);
        assert_eq!(run["role"], "observe", "{run}");
        let job = service.job(ALICE, request);
        reported(&service, &job, |_| {}).await;
        job.ends(&service, "TIMEOUT", 2.0);
        is(
            &swept(&service, &job).await,
            "not_counted",
            &format!("Slurm says TIMEOUT; {why}"),
        );
        let job = service.job(ALICE, request);
        reported(&service, &job, |_| {}).await;
        job.ends(&service, "FAILED", 2.0);
        is(
            &swept(&service, &job).await,
            "not_counted",
            "Slurm says FAILED",
        );
        assert_eq!(
            effect(&service, &job).await,
            ("nothing".into(), None),
            "{request}"
        );
    }
}

/// Gives the study of ALICE's application another objective; a run must have been before.
async fn by(service: &TestService, application: &str, objective: &str) {
    let path = format!(
        "/v1/studies/{}/objective",
        service.study_id(application).await
    );
    let body = json!({ "objective": objective, "why": "a test asks for it" });
    service.user(ALICE).post(&path, body).await.ok();
}

#[tokio::test]
async fn a_run_that_does_not_tell_its_objective_does_not_count_and_is_kept() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    by(&service, "ocean", "marked").await;
    for _ in 0..4 {
        let job = service.job(ALICE, "app=ocean");
        let run = completed(&service, &job, |_| {}).await;
        is(
            &run,
            "not_counted",
            "the study's objective is marked I/O seconds, and the job has not told it: it needs \
             `io-autotune mark begin` and `io-autotune mark end` around its I/O",
        );
        assert_eq!(run["elapsed"], 2.0, "{run}");
    }
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["counted"], &study["not_counted"]),
        (&json!(0), &json!(4)),
        "{study}"
    );
}

#[tokio::test]
async fn a_run_that_does_not_tell_its_objective_is_told_what_that_needs() {
    let service = TestService::new().await;
    for (objective, needs) in [
        (
            "mpi-io",
            "the profiling library of its MPI (LD_PRELOAD), and MPI_Finalize at its end",
        ),
        ("rate", "`io-autotune objective rate=VALUE`"),
    ] {
        let application = format!("ocean-{objective}");
        let request = format!("app={application}");
        service.job(ALICE, &request).runs(&service, 2.0).await;
        by(&service, &application, objective).await;
        let run = service.job(ALICE, &request).runs(&service, 2.0).await;
        assert_eq!(run["state"], "not_counted");
        let why = run["verdict"].as_str().unwrap();
        assert!(
            why.ends_with(&format!("the job has not told it: it needs {needs}")),
            "{why}"
        );
    }
}

#[tokio::test]
async fn a_run_counts_by_its_objective_and_a_timeout_tells_nothing_of_it() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    by(&service, "ocean", "rate").await;
    let told = |report: &mut FinishRequest| {
        report.measures.insert("objective.rate".into(), 812.5);
    };
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, told).await;
    is(
        &run,
        "counted",
        "completed in 2.000 s, rate 812.5 with the default",
    );
    assert_eq!(service.study("ocean").await["default"]["mean"], 812.5);
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, told).await;
    job.ends(&service, "TIMEOUT", 2.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says TIMEOUT; of objective.rate, the study's objective, nothing is known then",
    );
    assert_eq!(effect(&service, &job).await.0, "failure", "the job is lost");
}

#[tokio::test]
async fn a_run_whose_burst_buffer_may_have_had_other_directives_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean,accelerator=smart-burst-buffer");
    let run = completed(&service, &job, |report| report.applied = Applied::Default).await;
    is(
        &run,
        "not_counted",
        "the directives of its burst buffer were completed, or the user's own, or unknown, and no node was told",
    );
}
