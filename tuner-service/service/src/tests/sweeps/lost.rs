//! Runs that nobody reports, and places that are free again.

use io_autotune_engine::Role;

use super::*;

const RELEASE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn runs_whose_jobs_nobody_knows_are_given_up() {
    let service = TestService::with(QUICK).await;
    service.tune(ALICE, "app=ocean", 2, |_, _| 1.0).await;
    let jobs: Vec<TestJob> = (0..20).map(|_| service.job(ALICE, "app=ocean")).collect();
    for job in &jobs {
        job.start(&service).await;
    }
    let alive = &jobs[7];
    alive.ends(&service, "RUNNING", 0.0);
    service.sweep().await;
    assert_eq!(service.study("ocean").await["in_flight"], 20);
    service.advance(RELEASE).await;
    service.sweep().await;
    assert_eq!(service.study("ocean").await["in_flight"], 1);
    for run in &history(&service, ALICE, "ocean").await[2..] {
        let expected = match run["job_id"] == alive.job.job_id {
            true => json!(["in_flight", null]),
            false => json!(["not_counted", "the job was never heard of again"]),
        };
        assert_eq!(json!([run["state"], run["verdict"]]), expected);
    }
    alive.ends(&service, "CANCELLED", 1.0);
    service.sweep().await;
    assert_eq!(service.study("ocean").await["in_flight"], 0);
}

#[tokio::test]
async fn between_sweeps_nobody_asks_about_runs_without_a_report() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    job.ends(&service, "CANCELLED", 1.0);
    service.poll().await;
    assert_eq!(run(&service, &job).await["state"], "in_flight");
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "not_counted");
}

/// A service with a study whose next runs explore, two at once.
async fn exploring() -> TestService {
    let service = TestService::with(QUICK).await;
    service.tune(ALICE, "app=ocean", 2, |_, _| 1.0).await;
    service
}

/// Starts a run; returns true if it explores.
async fn explores(service: &TestService, job: &TestJob) -> bool {
    let role = job.start(service).await.role;
    matches!(role, Role::Design | Role::Search)
}

/// Has ALICE start some runs, none of which ends; returns for each whether it explores.
async fn explore(service: &TestService, starts: u32) -> Vec<bool> {
    let mut explore = Vec::new();
    for _ in 0..starts {
        let job = service.job(ALICE, "app=ocean");
        job.ends(service, "RUNNING", 0.0);
        explore.push(explores(service, &job).await);
    }
    explore
}

#[tokio::test]
async fn an_ended_run_that_waits_for_its_report_gives_its_exploring_place_free() {
    let service = exploring().await;
    let job = service.job(ALICE, "app=ocean");
    assert!(explores(&service, &job).await);
    assert_eq!(
        explore(&service, 2).await,
        [true, false],
        "two explore at once"
    );
    job.ends(&service, "COMPLETED", 1.0);
    service.sweep().await;
    service.advance(RELEASE - 5 * SECOND).await;
    service.sweep().await;
    assert_eq!(
        explore(&service, 1).await,
        [false],
        "its report may come any moment"
    );
    service.advance(5 * SECOND).await;
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "in_flight");
    assert_eq!(explore(&service, 2).await, [true, false]);
}

#[tokio::test]
async fn a_run_that_was_given_up_gives_its_exploring_place_free() {
    let service = exploring().await;
    let job = service.job(ALICE, "app=ocean");
    assert!(explores(&service, &job).await);
    assert_eq!(explore(&service, 2).await, [true, false]);
    service.advance(RELEASE).await;
    service.sweep().await;
    assert_eq!(explore(&service, 2).await, [true, false]);
}

/// Where squeue fails for long, a silent run and a reported one stay what they are; returns them.
async fn unanswered(service: &TestService) -> (TestJob, TestJob) {
    let silent = service.job(ALICE, "app=ocean");
    silent.start(service).await;
    let reported = service.job(ALICE, "app=ocean");
    let started = reported.start(service).await;
    let report = reported.reports(Some(&started), 2.0);
    reported.finish(service, &report).await;
    service.slurm().silence("squeue");
    for longer in [RELEASE, 10 * RELEASE, 7 * DAY] {
        service.advance(longer).await;
        service.sweep().await;
        for job in [&silent, &reported] {
            let run = run(service, job).await;
            assert_eq!(run["state"], "in_flight", "{run}");
        }
    }
    let released = "select count(*) from runs where released";
    assert_eq!(
        service.database.number(released).await,
        0,
        "their jobs may be alive"
    );
    (silent, reported)
}

#[tokio::test]
async fn a_source_that_does_not_answer_says_nothing_of_any_job() {
    let service = TestService::new().await;
    let log = Log::listen();
    let (silent, reported) = unanswered(&service).await;
    let warned = log.warnings("Slurm's word has to wait");
    assert_eq!(warned.len(), 3, "{warned:?}");
    assert!(
        warned[0].contains("Unable to contact slurm controller"),
        "{warned:?}"
    );
    // Once it answers, what it does not know is given up.
    service.slurm().say("squeue", "");
    service.sweep().await;
    let given_up = run(&service, &silent).await;
    assert_eq!(
        given_up["verdict"], "the job was never heard of again",
        "{given_up}"
    );
    assert_eq!(run(&service, &reported).await["state"], "not_counted");
}

#[tokio::test]
async fn of_two_sources_each_must_have_answered() {
    let service = TestService::with("[slurm]\nsources = [\"squeue\", \"sacct\"]\n").await;
    service.slurm().say("sacct", "");
    let (silent, reported) = unanswered(&service).await;
    service.slurm().say("squeue", "");
    service.slurm().silence("sacct");
    service.sweep().await;
    for job in [&silent, &reported] {
        assert_eq!(run(&service, job).await["state"], "in_flight");
    }
    service.slurm().say("sacct", "");
    service.sweep().await;
    for job in [&silent, &reported] {
        assert_eq!(run(&service, job).await["state"], "not_counted");
    }
}

#[tokio::test]
async fn an_answer_for_one_job_is_taken_though_another_source_fails() {
    let service = TestService::with("[slurm]\nsources = [\"squeue\", \"sacct\"]\n").await;
    let known = service.job(ALICE, "app=ocean");
    let unknown = service.job(ALICE, "app=ocean");
    for job in [&known, &unknown] {
        let started = job.start(&service).await;
        job.finish(&service, &job.reports(Some(&started), 2.0))
            .await;
    }
    known.ends(&service, "COMPLETED", 2.0);
    service.advance(20 * RELEASE).await;
    service.sweep().await;
    assert_eq!(run(&service, &known).await["state"], "counted");
    assert_eq!(run(&service, &unknown).await["state"], "in_flight");
}
