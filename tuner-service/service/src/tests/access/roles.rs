//! Roles that a caller has by a group, several at once, or for one thing only.

use io_autotune_engine::Parametrization;
use serde_json::json;

use super::*;

/// Returns, for the doctor, the report and a removal, true if a caller may ask for it.
async fn may(service: &TestService, uid: u32) -> [bool; 3] {
    let user = service.user(uid);
    let removal = json!({"older_than_days": 30, "dry_run": true, "why": "a test"});
    [
        user.get("/v1/doctor").await,
        user.get("/v1/report/mail.txt").await,
        user.post("/v1/retention", removal).await,
    ]
    .map(|answer| answer.status != 403)
}

#[tokio::test]
async fn members_of_groups_have_the_roles_of_their_groups() {
    // Accounts of base-passwd, each in a group of its own name.
    let groups = "[access]\nadmins = [\"@games\", \"@no-such-group\"]\n\
                  operators = [\"@mail\"]\nreport_readers = [\"@news\"]\n";
    let service = TestService::with(groups).await;
    service.job(ALICE, "app=ocean").start(&service).await;
    for (name, expected) in [
        ("games", [true, true, true]),
        ("mail", [true, true, false]),
        ("news", [false, true, false]),
        ("backup", [false, false, false]),
    ] {
        assert_eq!(may(&service, uid_of(name)).await, expected, "{name}");
        let seen = applications(&service, uid_of(name), "/v1/studies").await;
        assert_eq!(
            !seen.is_empty(),
            ["games", "mail"].contains(&name),
            "{name}"
        );
    }
    assert_eq!(may(&service, ADMIN).await, [false; 3], "named no more");
    assert_eq!(
        may(&service, ROOT).await,
        [false; 3],
        "root is in no group of these"
    );
}

#[tokio::test]
async fn root_of_a_node_is_an_admin_only_where_it_is_named() {
    let service = TestService::new().await;
    assert_eq!(may(&service, ROOT).await, [false; 3]);
    let named = TestService::with("[access]\nadmins = [0]\n").await;
    assert_eq!(may(&named, ROOT).await, [true; 3]);
    // It starts runs as before.
    named.job(ALICE, "app=ocean").start(&named).await;
    let seen = applications(&named, ROOT, "/v1/studies").await;
    assert_eq!(seen, set(&["ocean"]));
}

#[tokio::test]
async fn who_has_two_roles_may_what_the_greater_one_may() {
    let coordinator = uid_of(COORDINATOR);
    let more = COORDINATORS.replace(
        "[access]\n",
        &format!("[access]\nadmins = [{ADMIN}, {coordinator}]\n"),
    );
    let service = TestService::with(&more).await;
    associate(
        &service,
        &[("physics", MEMBER)],
        &[("physics", COORDINATOR)],
    );
    service.look_at_slurm().await;
    let run = service.job(ALICE, "app=ice").runs(&service, 10.0).await;
    let (study, user) = (&run["study_id"], service.user(coordinator));
    // Alice is in no account of the coordinator's: it is the admin who sees and steers this.
    assert_eq!(
        applications(&service, coordinator, "/v1/studies").await,
        set(&["ice"])
    );
    let path = format!("/v1/studies/{study}/reset");
    user.post(&path, json!({"why": "a test"})).await.ok();
    let off = json!({"kind": "off", "scope": {"uid": ALICE}, "why": "a test"});
    user.post("/v1/orders", off).await.ok();
    user.get("/v1/doctor").await.ok();
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn an_operator_reads_all_and_steers_their_own() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let own = service
        .job(OPERATOR, "app=tools")
        .runs(&service, 10.0)
        .await;
    let (operator, why) = (service.user(OPERATOR), json!({"why": "a test"}));
    for path in [
        format!("/v1/studies/{}", run["study_id"]),
        format!("/v1/studies/{}/export", run["study_id"]),
        format!("/v1/runs/{}", run["job_id"]),
        format!("/v1/runs/{}/replay", run["job_id"]),
    ] {
        operator.get(&path).await.ok();
    }
    let seen = applications(&service, OPERATOR, "/v1/studies").await;
    assert_eq!(seen, set(&["ocean", "tools"]));
    let reset = |run: &Value| format!("/v1/studies/{}/reset", run["study_id"]);
    operator.post(&reset(&own), &why).await.ok();
    operator.post(&reset(&run), &why).await.not_found();
    service.user(ALICE).post(&reset(&run), &why).await.ok();
    let undo = format!("/v1/audit/{}/undo", newest_line(&service).await);
    operator.post(&undo, &why).await.not_found();
    let off = json!({"kind": "off", "why": "a test"});
    let given = operator.post("/v1/orders", off).await.ok();
    assert_eq!(ids(&given["studies"], "uid"), [i64::from(OPERATOR)]);
}

/// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight is
/// a control run.
#[tokio::test]
async fn whether_a_run_is_a_control_run_only_admins_are_told_before_its_verdict() {
    let more = format!("{COORDINATORS}[study]\nbudget = 15\n");
    let service = TestService::with(&more).await;
    associate(
        &service,
        &[("physics", MEMBER)],
        &[("physics", COORDINATOR)],
    );
    service.look_at_slurm().await;
    let member = uid_of(MEMBER);
    let default = service.default_of("romio");
    let takes = |given: &Parametrization, _| if *given == default { 10.0 } else { 8.0 };
    service.tune(member, "app=ocean", 20, takes).await;
    for _ in 0..20 {
        if service.study("ocean").await["phase"] == "settled" {
            break;
        }
        service.tune(member, "app=ocean", 2, takes).await;
    }
    assert_eq!(service.study("ocean").await["phase"], "settled");
    service.draw(Some(0.0));
    let job = service.job(member, "app=ocean");
    let started = job.start(&service).await;
    let study = service.study_id("ocean").await;
    let (id, listed) = (job.job.job_id, format!("/v1/runs?study={study}&limit=1"));
    let told = async |uid| {
        let user = service.user(uid);
        let list = user.get(&listed).await.ok()[0]["role"].clone();
        let one = user.get(&format!("/v1/runs/{id}")).await.ok()[0]["run"]["role"].clone();
        let export = user.get(&format!("/v1/studies/{study}/export")).await;
        (list, one, export.status.as_u16())
    };
    let coordinator = uid_of(COORDINATOR);
    for uid in [member, coordinator, OPERATOR] {
        assert_eq!(told(uid).await, (Value::Null, Value::Null, 409), "{uid}");
        let text = service
            .user(uid)
            .get(&format!("/v1/runs/{id}/replay"))
            .await
            .text();
        assert!(!text.contains("control"), "{text}");
    }
    let role = serde_json::to_value(started.role).unwrap();
    assert_eq!(role, "control");
    assert_eq!(told(ADMIN).await, (role.clone(), role.clone(), 200));
    let report = job.reports(Some(&started), 10.0);
    job.finish(&service, &report).await;
    job.ends(&service, "COMPLETED", 10.0);
    service.poll().await;
    for uid in [member, coordinator, OPERATOR, ADMIN] {
        assert_eq!(told(uid).await, (role.clone(), role.clone(), 200), "{uid}");
    }
}

/// A directive-delivering accelerator's request.
const DIRECTED: &str = "app=staged,accelerator=smart-burst-buffer";

/// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or completes
/// directives.
#[tokio::test]
async fn only_the_burst_buffers_account_completes_directives() {
    let service = TestService::new().await;
    let job = service.job(ALICE, DIRECTED);
    let asked = service
        .user(BURST_BUFFER)
        .post("/v1/runs/start", job.asks());
    let started = asked.await.ok();
    let run = started["run_id"].clone();
    let id = job.job.job_id;
    let delivered = json!({"cluster": CLUSTER, "job_id": id, "restart_count": 0, "run_id": run,
                           "directives": {"kept": ["flavor"]}});
    let told = async |uid| {
        let user = service.user(uid);
        user.post("/v1/runs/directives", &delivered).await
    };
    for uid in [ALICE, OPERATOR, ADMIN, COLLECTOR] {
        assert_eq!(
            told(uid).await.forbidden(),
            "only the burst buffer's account completes directives: [access] burst_buffers of service.toml names it"
        );
    }
    assert_eq!(told(BURST_BUFFER).await.ok(), json!({"run_id": run}));
    // The nodes' request gets the same run, with the kept directives.
    let answer = job.start(&service).await;
    assert_eq!(json!(answer.run_id), run);
    assert_eq!(json!(answer.directives), json!({"kept": ["flavor"]}));
    let report = job.reports(Some(&answer), 10.0);
    job.finish(&service, &report).await;
    let over = told(BURST_BUFFER).await.not_found();
    assert!(
        over.starts_with(&format!(
            "there is no run {run} in flight of a job {id} that was not reported"
        )),
        "{over}"
    );
    // Nor of another job's run.
    let other = service.job(ALICE, DIRECTED);
    let other = other.start(&service).await.run_id;
    let wrong = json!({"cluster": CLUSTER, "job_id": id, "restart_count": 0, "run_id": other,
                       "directives": {"kept": []}});
    let user = service.user(BURST_BUFFER);
    user.post("/v1/runs/directives", wrong).await.not_found();
}

/// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or completes
/// directives.
#[tokio::test]
async fn the_burst_buffers_account_starts_no_run_without_directives() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let user = service.user(BURST_BUFFER);
    let told = user.post("/v1/runs/start", job.asks()).await.forbidden();
    assert_eq!(
        told,
        "accelerator romio delivers no directives: the burst buffer's account starts no run of it"
    );
    let finish = job.reports(None, 5.0);
    user.post("/v1/runs/finish", finish).await.forbidden();
    let outcomes = json!({"cluster": CLUSTER, "outcomes": []});
    user.post("/v1/outcomes", outcomes).await.forbidden();
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
}

/// Attack (floods): A collector floods what is not for collectors.
/// Outcome: A user's limits hold there.
#[tokio::test]
async fn a_collector_is_spared_users_limits_only_where_it_delivers() {
    let little = "[users]\nrequests_per_second = 0.01\n[slurm]\nsources = [\"jobcomp\"]\n";
    let service = TestService::with(little).await;
    let collector = service.user(COLLECTOR);
    let long = format!(
        "{{\"cluster\": \"alpha\", \"outcomes\": []{}}}",
        " ".repeat(70_000)
    );
    for _ in 0..20 {
        let answer = collector
            .send("POST", "/v1/outcomes", long.clone().into())
            .await;
        assert_eq!(answer.ok(), json!({"stored": 0, "duplicates": 0}));
    }
    let answer = collector
        .send("POST", "/v1/preview", long.clone().into())
        .await;
    answer.refused(413, "too_large");
    for expected in [200, 200, 429] {
        let answer = match expected {
            200 => collector.get("/v1/studies").await,
            _ => at_once(collector.get("/v1/studies")).await,
        };
        assert_eq!(answer.status.as_u16(), expected);
    }
    collector
        .send("POST", "/v1/outcomes", long.into())
        .await
        .ok();
    // Root has no quota anywhere: Slurm bounds the jobs that it speaks for.
    for _ in 0..4 {
        service.user(ROOT).get("/v1/studies").await.ok();
    }
}
