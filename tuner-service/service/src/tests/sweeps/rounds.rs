//! Rounds of reconciliation: many runs, several clusters, and steps that fail.

use io_autotune_protocol::{Outcome, OutcomesRequest, Step};

use super::*;

/// The message of the log when work is set apart.
const APART: &str = "set apart: it is tried again later, and the rest goes on";

/// Has a job run and Slurm say that it completed, without a round.
async fn ended(service: &TestService, job: &TestJob) -> i64 {
    job.completes(service, 2.0).await.run_id
}

#[tokio::test]
async fn a_thousand_runs_that_end_together_are_each_judged_once() {
    const TASKS: u32 = 450;
    let service = TestService::new().await;
    // Five batches, of which four are judged at once.
    let started = beside(&service, "app=ocean,mode=observe", TASKS, |_, _| 2.0).await;
    assert_eq!(started.len(), TASKS as usize);
    let judged = "select count(*) from (select run_id from judgements group by run_id having count(*) = 1) as once";
    assert_eq!(service.database.number(judged).await, i64::from(TASKS));
    let jobs = "select count(distinct job_id) from runs where state = 'counted'";
    assert_eq!(service.database.number(jobs).await, i64::from(TASKS));
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["counted"], &study["not_counted"]),
        (&json!(TASKS), &json!(0))
    );
    assert_eq!(study["default"]["n"], TASKS);
}

#[tokio::test]
async fn what_a_round_has_no_room_for_waits_for_the_next() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    let copies = "insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                      parametrization, reason, suggestion, delivery, nodes, started_at)
                  select epoch_id, cluster, job_id + 100000 + number, 0, uid, node, request, phase, role,
                      parametrization, reason, suggestion, delivery, nodes, started_at
                  from runs, generate_series(1, 4999) as number";
    service.database.execute(copies).await;
    let newest = service.job(ALICE, "app=ocean");
    ended(&service, &newest).await;
    service.advance(59 * SECOND).await;
    service.sweep().await;
    assert_eq!(run(&service, &newest).await["state"], "in_flight");
    // Nothing is asked about the others before the next sweep.
    service.poll().await;
    assert_eq!(run(&service, &newest).await["state"], "counted");
}

#[tokio::test]
async fn a_cluster_whose_slurm_is_away_holds_up_no_other() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    service.slurm_of("alpha").silence("squeue");
    let here = service.job(ALICE, "app=ocean");
    let mut there = service.job(ALICE, "app=ocean");
    there.job.cluster = "beta".into();
    for job in [&here, &there] {
        let started = job.start(&service).await;
        job.finish(&service, &job.reports(Some(&started), 2.0))
            .await;
    }
    there.ends(&service, "COMPLETED", 2.0);
    service.sweep().await;
    assert_eq!(run(&service, &here).await["state"], "in_flight");
    assert_eq!(run(&service, &there).await["state"], "counted");
}

#[tokio::test]
async fn a_job_of_one_cluster_is_not_had_from_another_clusters_queue() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    service.slurm_of("beta").queue(job.queued("COMPLETED", 2.0));
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "in_flight");
    service
        .slurm_of("alpha")
        .queue(job.queued("COMPLETED", 2.0));
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "counted");
}

#[tokio::test]
async fn what_is_of_no_use_any_more_is_forgotten_and_not_before() {
    let service = TestService::new().await;
    service
        .database
        .execute(
            "insert into nonces (nonce) values (decode('00112233445566778899aabbccddeeff', 'hex'));
             insert into import_chunks (upload, place, uid, body)
                 values ('00112233445566778899aabbccddeeff', 0, 5, 'a piece')",
        )
        .await;
    let left = async || {
        let nonces = "select count(*) from nonces";
        let imports = "select count(*) from import_chunks";
        (
            service.database.number(nonces).await,
            service.database.number(imports).await,
        )
    };
    for (minutes, expected) in [(14, (1, 1)), (2, (0, 1)), (43, (0, 1)), (2, (0, 0))] {
        service.advance(Duration::from_mins(minutes)).await;
        service.sweep().await;
        assert_eq!(left().await, expected, "{minutes} minutes later");
    }
}

#[tokio::test]
async fn between_sweeps_nothing_is_forgotten() {
    let service = TestService::new().await;
    let nonce =
        "insert into nonces (nonce) values (decode('00112233445566778899aabbccddeeff', 'hex'))";
    service.database.execute(nonce).await;
    service.advance(Duration::from_hours(1)).await;
    service.poll().await;
    let nonces = "select count(*) from nonces";
    assert_eq!(service.database.number(nonces).await, 1);
    service.sweep().await;
    assert_eq!(service.database.number(nonces).await, 0);
}

#[tokio::test]
async fn one_of_two_clusters_cleans_and_for_both() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    for cluster in ["alpha", "beta"] {
        service.slurm_of(cluster).silence("squeue");
    }
    let nonce =
        "insert into nonces (nonce) values (decode('00112233445566778899aabbccddeeff', 'hex'))";
    service.database.execute(nonce).await;
    service.advance(Duration::from_hours(1)).await;
    service.sweep().await;
    let nonces = "select count(*) from nonces";
    assert_eq!(service.database.number(nonces).await, 0);
}

#[tokio::test]
async fn a_study_without_evidence_is_assessed_in_a_sweep() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    service
        .database
        .execute("update epochs set evidence = null")
        .await;
    let without = "select count(*) from epochs where evidence is null";
    service.poll().await;
    assert_eq!(service.database.number(without).await, 1);
    service.sweep().await;
    assert_eq!(service.database.number(without).await, 0);
}

#[tokio::test]
async fn a_reload_between_two_sweeps_changes_whom_is_waited_for() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    service.advance(30 * SECOND).await;
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "in_flight");
    service
        .reload("[reconcile]\npatience_seconds = 200\n")
        .await;
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "not_counted");
}

/// Has the database refuse a run's judgements, as if they did not fit.
async fn refuses(service: &TestService, run_id: i64) {
    let trigger = format!(
        "create function refuse() returns trigger language plpgsql as $$
         begin raise exception 'a test refuses it'; end $$;
         create trigger refuse before insert on judgements for each row when (new.run_id = {run_id})
             execute function refuse()"
    );
    service.database.execute(&trigger).await;
}

#[tokio::test]
async fn a_verdict_that_cannot_be_stored_holds_up_no_other_of_its_epoch() {
    let service = TestService::new().await;
    let jobs = [(); 3].map(|()| service.job(ALICE, "app=ocean"));
    let mut run_ids = Vec::new();
    for job in &jobs {
        run_ids.push(ended(&service, job).await);
    }
    refuses(&service, run_ids[1]).await;
    let log = Log::listen();
    service.sweep().await;
    let mut states = Vec::new();
    for job in &jobs {
        states.push(run(&service, job).await["state"].clone());
    }
    assert_eq!(json!(states), json!(["counted", "in_flight", "counted"]));
    let warned = log.warnings(APART);
    assert_eq!(warned.len(), 1, "{warned:?}");
    let named = format!("the verdict of run {}", run_ids[1]);
    assert!(warned[0].contains(&named), "{warned:?}");
    service
        .database
        .execute("drop trigger refuse on judgements")
        .await;
    service.sweep().await;
    assert_eq!(
        run(&service, &jobs[1]).await["state"],
        "in_flight",
        "it rests"
    );
    service.advance(10 * SECOND).await;
    service.sweep().await;
    assert_eq!(run(&service, &jobs[1]).await["state"], "counted");
}

#[tokio::test]
async fn a_verdict_that_cannot_be_stored_holds_up_no_other_epoch() {
    let service = TestService::new().await;
    let bad = service.job(ALICE, "app=ocean");
    let run_id = ended(&service, &bad).await;
    let other = service.job(BOB, "app=ocean");
    ended(&service, &other).await;
    refuses(&service, run_id).await;
    let log = Log::listen();
    service.sweep().await;
    assert_eq!(run(&service, &bad).await["state"], "in_flight");
    assert_eq!(run(&service, &other).await["state"], "counted");
    assert_eq!(log.warnings(APART).len(), 1);
}

/// Promise: a report is lost
#[tokio::test]
async fn a_run_that_another_replica_merges_meanwhile_is_not_judged_without_its_reports() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    // Both runs have two reports, which are to be merged.
    let jobs = [(); 2].map(|()| {
        let mut job = service.job(ALICE, "app=ocean");
        job.job.nodes = 2;
        job
    });
    let (mut run_ids, mut outcomes) = (Vec::new(), Vec::new());
    for job in &jobs {
        let started = job.start(&service).await;
        for node in ["n1", "n2"] {
            let mut node_job = job.clone();
            node_job.job.node = node.into();
            let mut report = node_job.reports(Some(&started), 2.0);
            report.steps[0] = Step {
                step_id: 0,
                nodes: 2,
                ..report.steps[0].clone()
            };
            node_job.finish(&service, &report).await;
        }
        run_ids.push(started.run_id);
        outcomes.push(Outcome {
            job_id: job.job.job_id,
            state: "COMPLETED".into(),
            restart_count: Some(0),
            ..Outcome::default()
        });
    }
    let request = OutcomesRequest {
        cluster: CLUSTER.into(),
        outcomes,
    };
    let told = service.user(COLLECTOR).post("/v1/outcomes", request).await;
    assert_eq!(told.ok()["stored"], 2);
    let (first, second) = (run_ids[0], run_ids[1]);
    // The other replica has the first run's reports just as they are to be read here, and has merged
    // them when the second's are.
    let replica = format!(
        "create function body_of(run_id bigint, body jsonb) returns jsonb stable language plpgsql as $$
         begin
             if run_id = {first} then
                 raise exception using errcode = '55P03', message = 'the other replica has it';
             end if;
             return body;
         end $$;
         alter table reports rename to all_reports;
         create view reports as select id, run_id, node, body_of(run_id, body) as body, received_at from all_reports;
         create function merge_first() returns trigger language plpgsql as $$
         begin
             update runs set dirty = false, elapsed = new.elapsed, wait_status = new.wait_status,
                             applied = new.applied, measures = new.measures, missing = new.missing
             where id = {first};
             return new;
         end $$;
         create trigger merge_first before update on runs for each row
             when (new.id = {second} and old.dirty and not new.dirty) execute function merge_first()"
    );
    service.database.execute(&replica).await;
    // Reports of a job that completed are waited for no longer.
    service.advance(Duration::from_mins(10)).await;
    service.sweep().await;
    let merged = "select count(*) from runs where not dirty";
    assert_eq!(service.database.number(merged).await, 2);
    service
        .database
        .execute("drop view reports; alter table all_reports rename to reports")
        .await;
    assert_eq!(run(&service, &jobs[1]).await["state"], "counted");
    let unmerged = run(&service, &jobs[0]).await;
    assert_eq!(unmerged["verdict"], Value::Null, "{unmerged}");
    assert_eq!(unmerged["state"], "in_flight", "{unmerged}");
    service.sweep().await;
    let counted = run(&service, &jobs[0]).await;
    assert_eq!(counted["verdict"], "completed in 2.000 s with the default");
}

#[tokio::test]
async fn removal_that_fails_holds_up_no_verdict() {
    let service = TestService::with("[retention]\ndays = 30\n").await;
    let remove = "drop function remove_history(interval, integer, bigint, text)";
    service.database.execute(remove).await;
    let log = Log::listen();
    let job = service.job(ALICE, "app=ocean");
    ended(&service, &job).await;
    service.sweep().await;
    assert_eq!(run(&service, &job).await["state"], "counted");
    let warned = log.warnings(APART);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(
        warned[0].contains("the removal of what is old"),
        "{warned:?}"
    );
}

/// The check of `doctor` about the work that a service's sweeps have set apart.
async fn apart(service: &TestService) -> Value {
    let told = service.user(ADMIN).get("/v1/doctor").await.ok();
    let checks = told["checks"].as_array().unwrap().iter();
    checks
        .into_iter()
        .find(|check| check["name"] == "set apart")
        .unwrap()
        .clone()
}

/// Attack (values): A study has what nobody can assess.
/// Outcome: It is set apart and named, and no other waits for it.
#[tokio::test]
async fn a_study_that_cannot_be_assessed_holds_up_no_other() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    let refused = format!(
        "create function refuse() returns trigger language plpgsql as $$
         begin raise exception 'a test refuses it'; end $$;
         create trigger refuse before update on epochs for each row
             when (new.study_id = {study} and new.evidence is not null) execute function refuse();
         alter table epochs disable trigger refuse;
         update epochs set evidence = null where study_id = {study};
         alter table epochs enable trigger refuse"
    );
    service.database.execute(&refused).await;
    let bystander = service.job(BOB, "app=ocean");
    ended(&service, &bystander).await;
    service.sweep().await;
    assert_eq!(run(&service, &bystander).await["state"], "counted");
    let told = apart(&service).await;
    assert_eq!(told["state"], "warning", "{told}");
    let detail = told["detail"].as_str().unwrap();
    assert!(
        detail.contains(&format!("the assessment of study {study}")),
        "{told}"
    );
    assert!(detail.contains("a test refuses it"), "{told}");
    let gauge = "io_autotune_set_apart{kind=\"studies\"} 1";
    assert!(service.metrics().await.contains(gauge));
    service
        .database
        .execute("drop trigger refuse on epochs")
        .await;
    service.advance(10 * SECOND).await;
    service.sweep().await;
    assert_eq!(apart(&service).await["state"], "ok");
}

/// Attack (values): A stored report has a prolog in a year that the database cannot count.
/// Outcome: All other jobs get their verdicts.
#[tokio::test]
async fn a_stored_time_that_no_database_can_read_stops_no_verdict() {
    let service = TestService::new().await;
    let jobs = [ALICE, BOB].map(|uid| service.job(uid, "app=ocean"));
    for job in &jobs {
        ended(&service, job).await;
    }
    let stored =
        "update reports set body = jsonb_set(body, '{prolog_at}', '\"-009999-01-02T01:59:59Z\"')
                  where id = (select min(id) from reports)";
    service.database.execute(stored).await;
    service.sweep().await;
    for job in &jobs {
        assert_eq!(run(&service, job).await["state"], "counted");
    }
    assert_eq!(apart(&service).await["state"], "ok");
}

#[tokio::test]
async fn a_run_that_cannot_be_read_holds_up_no_other() {
    let service = TestService::new().await;
    let jobs = [ALICE, BOB].map(|uid| service.job(uid, "app=ocean"));
    let bad = ended(&service, &jobs[0]).await;
    ended(&service, &jobs[1]).await;
    let nonsense = format!("update runs set parametrization = '[1]' where id = {bad}");
    service.database.execute(&nonsense).await;
    service.sweep().await;
    assert_eq!(run(&service, &jobs[1]).await["state"], "counted");
    let told = apart(&service).await;
    let detail = told["detail"].as_str().unwrap();
    assert!(
        detail.contains(&format!("the verdict of run {bad}")),
        "{told}"
    );
}

#[tokio::test]
async fn what_slurm_says_of_a_job_that_cannot_be_joined_holds_up_no_other_job() {
    let service = TestService::new().await;
    let jobs = [ALICE, BOB].map(|uid| service.job(uid, "app=ocean"));
    let bad = ended(&service, &jobs[0]).await;
    ended(&service, &jobs[1]).await;
    let trigger = format!(
        "create function refuse() returns trigger language plpgsql as $$
         begin raise exception 'a test refuses it'; end $$;
         create trigger refuse before update on runs for each row
             when (new.id = {bad} and new.outcome is not null) execute function refuse()"
    );
    service.database.execute(&trigger).await;
    service.sweep().await;
    assert_eq!(run(&service, &jobs[1]).await["state"], "counted");
    assert_eq!(run(&service, &jobs[0]).await["state"], "in_flight");
    service.sweep().await;
    let told = apart(&service).await;
    let detail = told["detail"].as_str().unwrap();
    let job_id = jobs[0].job.job_id;
    assert!(
        detail.contains(&format!("Slurm's word on job {job_id} of alpha")),
        "{told}"
    );
    service
        .database
        .execute("drop trigger refuse on runs")
        .await;
    service.advance(10 * SECOND).await;
    service.sweep().await;
    assert_eq!(run(&service, &jobs[0]).await["state"], "counted");
}

#[tokio::test]
async fn a_step_of_a_sweep_that_fails_holds_up_no_other() {
    let service = TestService::new().await;
    service
        .database
        .execute("alter table nonces rename to gone")
        .await;
    service
        .database
        .execute(
            "insert into import_chunks (upload, place, uid, body)
                  values ('00112233445566778899aabbccddeeff', 0, 5, 'a piece')",
        )
        .await;
    service.advance(Duration::from_hours(2)).await;
    service.sweep().await;
    let imports = "select count(*) from import_chunks";
    assert_eq!(
        service.database.number(imports).await,
        0,
        "forgotten all the same"
    );
    service
        .database
        .execute("alter table gone rename to nonces")
        .await;
    let told = apart(&service).await;
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains("forgetting what was read"),
        "{told}"
    );
}
