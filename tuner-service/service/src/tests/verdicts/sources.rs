//! Tests of the sources of outcomes: which is asked, which is believed, and what the collector
//! delivers.

use super::*;

/// A launch of this number of seconds as sacct lists it.
fn accounted(job: &TestJob, state: &str, seconds: i64, node_list: &str) -> String {
    let at = |second| {
        let at = job.started_at + SignedDuration::from_secs(second);
        at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    };
    format!(
        "{}|{state}|0:0|{}|{}|00:00:00|UNLIMITED|{node_list}\n",
        job.job.job_id,
        at(0),
        at(seconds)
    )
}

#[tokio::test]
async fn sacct_is_asked_only_what_squeue_has_left_open() {
    let service = TestService::with("[slurm]\nsources = [\"squeue\", \"sacct\"]\n").await;
    let (listed, alive, left) = (
        service.job(ALICE, "app=ocean"),
        service.job(ALICE, "app=ocean"),
        service.job(ALICE, "app=ocean"),
    );
    for job in [&listed, &alive, &left] {
        reported(&service, job, |_| {}).await;
    }
    listed.ends(&service, "COMPLETED", 2.0);
    alive.ends(&service, "RUNNING", 0.0);
    // To any other question it has no answer.
    let question = format!("sacct---jobs={}", left.job.job_id);
    service
        .slurm()
        .say(&question, &accounted(&left, "COMPLETED", 2, "n1"));
    is(
        &swept(&service, &listed).await,
        "counted",
        "completed in 2.000 s with the default",
    );
    is(
        &run(&service, &left).await,
        "counted",
        "completed in 2.000 s with the default",
    );
    waits(&run(&service, &alive).await);
}

#[tokio::test]
async fn sacct_is_asked_of_several_jobs_at_once_and_understood() {
    let service = TestService::with("[slurm]\nsources = [\"sacct\"]\n").await;
    let states = [
        "COMPLETED",
        "CANCELLED by 1000",
        "TIMEOUT",
        "RUNNING",
        "REQUEUED",
    ];
    let mut jobs = Vec::new();
    for _ in states {
        let job = service.job(ALICE, "app=ocean");
        reported(&service, &job, |_| {}).await;
        jobs.push(job);
    }
    let ids: Vec<String> = jobs.iter().map(|job| job.job.job_id.to_string()).collect();
    let lines = jobs.iter().zip(states);
    let lines: String = lines
        .map(|(job, state)| accounted(job, state, 2, "n1"))
        .collect();
    let question = format!("sacct---jobs={}", ids.join(","));
    service
        .slurm()
        .say(&question, &lines.replace("REQUEUED|0:0", "REQUEUED|0:15"));
    service.sweep().await;
    let mut became = Vec::new();
    for job in &jobs {
        let run = run(&service, job).await;
        became.push((run["state"].clone(), run["outcome"].clone()));
    }
    let expected = json!([
        ["counted", "COMPLETED"],
        ["not_counted", "CANCELLED"],
        ["censored", "TIMEOUT"],
        ["in_flight", null],
        ["not_counted", "REQUEUED"],
    ]);
    assert_eq!(json!(became), expected);
}

/// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a run
/// was not given.
/// Outcome: The run counts by its own node, waits for it, or does not count.
#[tokio::test]
async fn slurm_says_where_a_job_was_and_whose_it_is() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let elsewhere = on(&job, "n2");
    reported(&service, &elsewhere, |_| {}).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "n2 started it, and Slurm says that it ran on n1 when it ended: it gave up nodes meanwhile, or n2 is not one of its nodes",
    );
    let bobs = service.job(BOB, "app=ocean");
    reported(&service, &bobs, |_| {}).await;
    let mut queued = bobs.queued("COMPLETED", 2.0);
    queued.uid = ALICE;
    service.slurm().queue(queued);
    is(
        &swept(&service, &bobs).await,
        "not_counted",
        &format!("Slurm says that it is a job of uid {ALICE}, and n1 started it for uid {BOB}"),
    );
}

#[tokio::test]
async fn whose_a_job_was_and_where_the_collector_tells_too() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    // Of a made-up failure nothing is believed either.
    for (state, edit, why) in [
        (
            "FAILED",
            (|said| said.node_list = Some("n[2-4]".into())) as fn(&mut Outcome),
            "n1 started it, and Slurm says that it ran on n[2-4] when it ended: it gave up nodes meanwhile, or n1 is not one of its nodes".to_owned(),
        ),
        (
            "COMPLETED",
            |said| said.uid = Some(BOB),
            format!("Slurm says that it is a job of uid {BOB}, and n1 started it for uid {ALICE}"),
        ),
    ] {
        let job = TestJob {
            job: io_autotune_protocol::Job {
                job_id: service.next_job_id(),
                ..job.job.clone()
            },
            ..job.clone()
        };
        reported(&service, &job, |_| {}).await;
        let mut said = outcome(&job, state);
        edit(&mut said);
        say(&service, vec![said]).await;
        is(&swept(&service, &job).await, "not_counted", &why);
        assert_eq!(effect(&service, &job).await, ("nothing".into(), None));
    }
}

#[tokio::test]
async fn where_a_job_was_sacct_tells_too() {
    let service = TestService::with("[slurm]\nsources = [\"sacct\"]\n").await;
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    service
        .slurm()
        .say("sacct", &accounted(&job, "COMPLETED", 2, "n[3,5]"));
    is(
        &swept(&service, &job).await,
        "not_counted",
        "n1 started it, and Slurm says that it ran on n[3,5] when it ended: it gave up nodes meanwhile, or n1 is not one of its nodes",
    );
}

#[tokio::test]
async fn the_better_source_holds() {
    let service = TestService::with("[slurm]\nsources = [\"squeue\", \"jobcomp\"]\n").await;
    // squeue was asked after the end; the script is called at it.
    let job = service.job(ALICE, "app=ocean");
    let run = completed(&service, &job, |_| {}).await;
    is(&run, "counted", "completed in 2.000 s with the default");
    assert_eq!(
        say(&service, vec![outcome(&job, "NODE_FAIL")]).await,
        (1, 0)
    );
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says NODE_FAIL",
    );
    // Nor is squeue asked about a job whose outcome the script has delivered.
    let job = service.job(ALICE, "app=ocean");
    reported(&service, &job, |_| {}).await;
    say(&service, vec![outcome(&job, "NODE_FAIL")]).await;
    job.ends(&service, "COMPLETED", 2.0);
    is(
        &swept(&service, &job).await,
        "not_counted",
        "Slurm says NODE_FAIL",
    );
}

#[tokio::test]
async fn a_record_without_a_restart_count_is_of_the_launch_in_whose_time_it_is() {
    let service = told_by_the_collector().await;
    let first = service.job(ALICE, "app=ocean");
    reported(&service, &first, |_| {}).await;
    service.advance(100 * SECOND).await;
    let mut second = first.clone();
    second.job.restart_count = 1;
    second.started_at = service.now();
    reported(&service, &second, |_| {}).await;
    let of = |job: &TestJob, state: &str| Outcome {
        restart_count: None,
        ..outcome(job, state)
    };
    say(
        &service,
        vec![of(&second, "COMPLETED"), of(&first, "PREEMPTED")],
    )
    .await;
    service.sweep().await;
    let path = format!("/v1/runs/{}", first.job.job_id);
    let runs = service.user(ALICE).get(&path).await.ok();
    let became: Vec<_> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["run"])
        .collect();
    let became: Vec<_> = became
        .iter()
        .map(|run| (&run["restart_count"], &run["outcome"], &run["state"]))
        .collect();
    let expected = json!([[0, "PREEMPTED", "not_counted"], [1, "COMPLETED", "counted"]]);
    assert_eq!(json!(became), expected);
}

#[tokio::test]
async fn a_restarted_launch_is_a_run_of_its_own_and_no_experiment() {
    let service = TestService::new().await;
    let first = service.job(ALICE, "app=ocean");
    let started = first.start(&service).await;
    let mut second = first.clone();
    second.job.restart_count = 1;
    second.started_at = service.now();
    second.ends(&service, "RUNNING", 0.0);
    service.sweep().await;
    let again = second.start(&service).await;
    assert_ne!(again.run_id, started.run_id);
    let report = second.reports(Some(&again), 2.0);
    second.finish(&service, &report).await;
    second.ends(&service, "COMPLETED", 2.0);
    service.sweep().await;
    let path = format!("/v1/runs/{}", first.job.job_id);
    let runs = service.user(ALICE).get(&path).await.ok();
    let [broken_off, anew] = runs.as_array().unwrap().as_slice() else {
        panic!("two launches: {runs}");
    };
    let (broken_off, anew) = (&broken_off["run"], &anew["run"]);
    is(broken_off, "not_counted", "Slurm says REQUEUED");
    assert_eq!(broken_off["outcome"], "REQUEUED");
    assert_eq!(
        (&anew["state"], &anew["outcome"]),
        (&json!("counted"), &json!("COMPLETED"))
    );
    assert_eq!(
        anew["elapsed"], 2.0,
        "the launch that was broken off counts, as a fast one"
    );
    let role = anew["role"].as_str().unwrap();
    assert!(!["design", "search", "baseline"].contains(&role), "{anew}");
    let reason = anew["reason"].as_str().unwrap();
    assert!(reason.contains("restarted"), "{reason}");
}

/// Attack (nodes): A user's account has a second line, like another job's in squeue's output.
/// Outcome: No job is known by it.
#[tokio::test]
async fn a_forged_account_speaks_of_no_other_job() {
    let service = TestService::new().await;
    let victim = service.job(ALICE, "app=ocean");
    reported(&service, &victim, |_| {}).await;
    let mut forger = service.job(BOB, "app=ocean");
    reported(&service, &forger, |_| {}).await;
    forger.account = format!("x\n{:>20}{:>32}           0 ", victim.job.job_id, "FAILED");
    forger.ends(&service, "COMPLETED", 2.0);
    waits(&swept(&service, &victim).await);
    let account = "select coalesce(max(account), 'none') from outcomes";
    assert_eq!(service.database.text(account).await, "none");
    victim.ends(&service, "COMPLETED", 2.0);
    assert_eq!(swept(&service, &victim).await["state"], "counted");
    assert_eq!(service.database.text(account).await, "physics");
    let study = service.user(ALICE).get("/v1/studies").await.ok();
    assert_eq!(study[0]["account"], "physics", "{study}");
}

#[tokio::test]
async fn outcomes_that_nobody_wants_are_kept_by_the_collector_until_the_service_is_set_up() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let refused = try_say(&service, vec![outcome(&job, "COMPLETED")]).await;
    assert_eq!(
        refused.refused(503, "no_jobcomp"),
        "the outcomes of the job-completion script are not wanted: [slurm] sources of service.toml does not name \
         jobcomp; add it and restart io-autotuned, or stop the collector"
    );
}

#[tokio::test]
async fn a_thousand_outcomes_are_taken_at_once_and_no_more() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    let of = |number: u32| {
        (1..=number).map(|job_id| Outcome {
            job_id,
            ..outcome(&job, "COMPLETED")
        })
    };
    let refused = try_say(&service, of(1001).collect()).await.bad_request();
    assert_eq!(refused, "outcomes has 1001 entries: at most 1000 are taken");
    assert_eq!(say(&service, of(1000).collect()).await, (1000, 0));
    assert_eq!(say(&service, of(1000).collect()).await, (0, 1000));
    assert_eq!(say(&service, Vec::new()).await, (0, 0));
}

#[tokio::test]
async fn what_is_wrong_with_an_outcome_is_named_with_its_job_and_none_of_the_batch_is_stored() {
    type Edit = fn(&mut Outcome);
    let edits: [(Edit, &str); 13] = [
        (
            |said| said.state = "completed".into(),
            "state = \"completed\": a word of 1 to 32 capital letters and _ is expected",
        ),
        (
            |said| said.state = String::new(),
            "state = \"\": a word of 1 to 32 capital letters and _ is expected",
        ),
        (
            |said| said.state = "RUNNING".into(),
            "state RUNNING is no end",
        ),
        (
            |said| said.state = "COMPLETING".into(),
            "state COMPLETING is no end",
        ),
        (
            |said| said.exit_code = Some("0".into()),
            "exit_code = \"0\": an exit code and a signal are expected, such as 0:0",
        ),
        (
            |said| said.restart_count = Some(1 << 31),
            "restart_count = 2147483648: a number below 2^31 is expected",
        ),
        (
            |said| said.started_at = Some("1969-12-31T23:59:59Z".parse().unwrap()),
            "started_at = \"1969-12-31T23:59:59Z\": a time from 1970 on and before the year 3000 is expected",
        ),
        (
            |said| said.ended_at = Some("1969-12-31T23:59:59Z".parse().unwrap()),
            "ended_at = \"1969-12-31T23:59:59Z\": a time from 1970 on and before the year 3000 is expected",
        ),
        (
            |said| said.suspended_seconds = Some(257_698_037_701),
            "suspended_seconds = 257698037701: at most 257698037700 seconds are expected",
        ),
        (
            |said| said.limit_seconds = Some(u64::MAX),
            "limit_seconds = 18446744073709551615: at most 257698037700 seconds are expected",
        ),
        (
            |said| said.account = Some("a\nb".into()),
            "account = \"a\\nb\": a name of 1 to 64 letters, digits and _-.+ is expected",
        ),
        (
            |said| said.node_list = Some("n1 n2".into()),
            "node_list = \"n1 n2\": a hostlist is expected, such as n[1-3,7]",
        ),
        (
            |said| said.job_id = 0,
            "job_id = 0: a positive number is expected",
        ),
    ];
    let service = told_by_the_collector().await;
    let good = service.job(ALICE, "app=ocean");
    for (edit, problem) in edits {
        let mut bad = outcome(&service.job(ALICE, "app=ocean"), "COMPLETED");
        edit(&mut bad);
        let job_id = bad.job_id;
        let refused = try_say(&service, vec![outcome(&good, "COMPLETED"), bad]).await;
        assert_eq!(
            refused.bad_request(),
            format!("the outcome of job {job_id}: {problem}")
        );
    }
    let mut backwards = outcome(&good, "COMPLETED");
    std::mem::swap(&mut backwards.started_at, &mut backwards.ended_at);
    let refused = try_say(&service, vec![backwards]).await.bad_request();
    assert!(refused.contains(" is before started_at = "), "{refused}");
    let stored = "select count(*) from outcomes";
    assert_eq!(service.database.number(stored).await, 0);
}

#[tokio::test]
async fn an_outcome_of_another_cluster_is_refused_by_name() {
    let service = told_by_the_collector().await;
    let job = service.job(ALICE, "app=ocean");
    let request = OutcomesRequest {
        cluster: "beta".into(),
        outcomes: vec![outcome(&job, "COMPLETED")],
    };
    let answer = service.user(COLLECTOR).post("/v1/outcomes", request).await;
    assert!(answer.status.is_client_error(), "{answer}");
    assert!(answer.text().contains("beta"), "{answer}");
}
