//! Runs of which Slurm tells no end.

use io_autotune_protocol::EpilogOutcome;

use super::*;

const ALONE: &str = "completed in 2.000 s with the default; Slurm's word could not be had";

/// Has squeue list a job and forget it, reports it, and returns its run once Slurm's word is waited
/// for no longer.
async fn forgotten(
    service: &TestService,
    job: &TestJob,
    edit: impl FnOnce(&mut FinishRequest),
) -> Value {
    let started = job.start(service).await;
    listed_once(service, job).await;
    let mut report = job.reports(Some(&started), 2.0);
    edit(&mut report);
    job.finish(service, &report).await;
    waits(&swept(service, job).await);
    after(service, OUTCOME, job).await
}

#[tokio::test]
async fn a_job_that_is_alive_is_waited_for_however_long() {
    let service = TestService::new().await;
    let silent = service.job(ALICE, "app=ocean");
    silent.start(&service).await;
    let heard = service.job(ALICE, "app=ocean");
    reported(&service, &heard, |_| {}).await;
    for job in [&silent, &heard] {
        job.ends(&service, "RUNNING", 0.0);
    }
    for _ in 0..3 {
        waits(&after(&service, 5 * LOST, &silent).await);
        waits(&run(&service, &heard).await);
    }
    assert!(
        !is_released(&service, &heard).await,
        "its job may still do I/O"
    );
}

/// Attack (nodes): Slurm has forgotten a job that it had listed, as after a long outage.
/// Outcome: Its run counts all the same.
#[tokio::test]
async fn a_job_that_slurm_has_forgotten_counts_if_it_was_listed() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    listed_once(&service, &job).await;
    let report = job.reports(Some(&started), 2.0);
    job.finish(&service, &report).await;
    waits(&swept(&service, &job).await);
    waits(&after(&service, RELEASE, &job).await);
    assert!(is_released(&service, &job).await);
    waits(&after(&service, OUTCOME - RELEASE - 5 * SECOND, &job).await);
    let run = after(&service, 5 * SECOND, &job).await;
    is(&run, "counted", ALONE);
    assert_eq!(run["outcome"], Value::Null);
}

/// Attack (nodes): Root of a node reports a run of a job that no source ever listed.
/// Outcome: It counts only if Slurm says that it completed, or if no source is configured.
#[tokio::test]
async fn a_made_up_job_that_no_source_ever_listed_does_not_count() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    waits(&swept(&service, &job).await);
    is(
        &after(&service, OUTCOME, &job).await,
        "not_counted",
        "Slurm's word could not be had, and no source ever listed the job: a made-up start looks the same",
    );
    assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
}

#[tokio::test]
async fn without_slurms_word_whatever_speaks_against_a_run_is_named() {
    type Edit = fn(&mut FinishRequest);
    let edits: [(Edit, &str); 6] = [
        (
            |report| report.steps[0].step_id = 0,
            "there was no batch step whose wait status could speak for it",
        ),
        (
            |report| report.steps[0].wait_status = 256,
            "the batch step ended with wait status 256",
        ),
        (
            |report| report.epilog = None,
            "the epilog was told no exit code",
        ),
        (
            |report| report.epilog.as_mut().unwrap().exit_code = "1:0".into(),
            "the epilog was told exit code 1:0",
        ),
        (
            |report| report.epilog.as_mut().unwrap().derived_exit_code = "0:9".into(),
            "the epilog was told exit code 0:9",
        ),
        (
            |report| report.steps[0].duration_ns = Some(60_000_000_000),
            "the time limit is not known",
        ),
    ];
    let service = TestService::new().await;
    for (edit, doubt) in edits {
        let job = service.job(ALICE, "app=ocean");
        let run = forgotten(&service, &job, edit).await;
        is(
            &run,
            "not_counted",
            &format!("Slurm's word could not be had, and {doubt}"),
        );
        // Nothing says that it failed, either.
        assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
    }
}

#[tokio::test]
async fn without_slurms_word_a_run_counts_below_its_time_limit_alone() {
    let of = |limit_seconds| {
        move |report: &mut FinishRequest| {
            report.steps[0].duration_ns = Some(100_000_000_000);
            report.epilog = Some(EpilogOutcome {
                exit_code: "0:0".into(),
                derived_exit_code: "0:0".into(),
                limit_seconds: Some(limit_seconds),
            });
        }
    };
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    is(
        &forgotten(&service, &job, of(100)).await,
        "not_counted",
        "Slurm's word could not be had, and 100.000 s are not below the time limit of 100 s",
    );
    let job = service.job(ALICE, "app=ocean");
    let run = forgotten(&service, &job, of(120)).await;
    is(
        &run,
        "counted",
        "completed in 100.000 s with the default; Slurm's word could not be had",
    );
}

#[tokio::test]
async fn what_would_not_count_by_slurms_word_does_not_count_without_it() {
    type Edit = fn(&mut FinishRequest);
    let service = TestService::new().await;
    let edits: [(&str, Edit, &str); 3] = [
        (
            "app=ocean",
            |report| {
                report.applied = io_autotune_protocol::Applied::User {
                    variables: vec!["ROMIO_HINTS".into()],
                };
            },
            "the user's own ROMIO_HINTS was left alone",
        ),
        (
            "name=wrap,mode=observe",
            |_| {},
            "the job's name says nothing about the application",
        ),
        (
            "app=ocean",
            |report| report.steps[0].nodes = 2,
            "step 4294967291 ran on 2 nodes, and 1 of them reported it",
        ),
    ];
    for (request, edit, why) in edits {
        let job = service.job(ALICE, request);
        is(&forgotten(&service, &job, edit).await, "not_counted", why);
    }
}

#[tokio::test]
async fn where_an_admin_has_named_no_source_nodes_are_believed_at_once() {
    let service = TestService::with("[slurm]\nsources = []\n").await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    is(&swept(&service, &job).await, "counted", ALONE);
    let failed = service.job(ALICE, "app=ocean");
    reported(&service, &failed, |report| report.steps[0].wait_status = 9).await;
    is(
        &swept(&service, &failed).await,
        "not_counted",
        "Slurm's word could not be had, and the batch step ended with wait status 9",
    );
    let silent = service.job(ALICE, "app=ocean");
    silent.start(&service).await;
    waits(&after(&service, LOST - 5 * SECOND, &silent).await);
    is(
        &after(&service, 5 * SECOND, &silent).await,
        "not_counted",
        "the job was never heard of again",
    );
}

#[tokio::test]
async fn a_silent_job_that_no_source_knows_is_given_up() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    waits(&swept(&service, &job).await);
    waits(&after(&service, RELEASE - 5 * SECOND, &job).await);
    is(
        &after(&service, 5 * SECOND, &job).await,
        "not_counted",
        "the job was never heard of again",
    );
    // If it is heard of again, it counts as any other.
    let report = job.reports(Some(&started), 2.0);
    job.finish(&service, &report).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "counted",
        "completed in 2.000 s with the default",
    );
}

#[tokio::test]
async fn a_job_of_which_the_collector_alone_could_tell_is_waited_for_a_week() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    waits(&after(&service, LOST - 5 * SECOND, &job).await);
    is(
        &after(&service, 5 * SECOND, &job).await,
        "not_counted",
        "the job was never heard of again",
    );
}

#[tokio::test]
async fn with_the_collector_alone_a_reported_run_counts_by_its_record_only() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    waits(&after(&service, OUTCOME - 5 * SECOND, &job).await);
    is(
        &after(&service, 5 * SECOND, &job).await,
        "not_counted",
        "Slurm's word could not be had, and no source ever listed the job: a made-up start looks the same",
    );
    say(&service, vec![outcome(&job, "COMPLETED")]).await;
    is(
        &swept(&service, &job).await,
        "counted",
        "completed in 2.000 s with the default",
    );
}
