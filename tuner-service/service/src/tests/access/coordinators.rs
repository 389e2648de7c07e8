//! Coordinators of accounts: what they see and steer is what members charge to these.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use super::*;

/// Has the service ask sacctmgr, as an admin does by `io-autotune doctor`; returns the doctor's
/// text about it.
async fn read_anew(service: &TestService) -> String {
    let doctor = service.user(ADMIN).get("/v1/doctor").await.ok();
    let checks = doctor["checks"].as_array().unwrap().iter();
    let mut check = checks.filter(|check| check["name"] == "accounts and coordinators");
    let check = check.next_back().unwrap();
    let fix = check["fix"].as_str().unwrap_or_default();
    format!("{}{fix}", check["detail"].as_str().unwrap())
}

/// A run that a user's job charged to an account.
async fn charged(service: &TestService, uid: u32, application: &str, account: &str) -> Value {
    let mut job = service.job(uid, &format!("app={application}"));
    job.account = account.into();
    job.runs(service, 10.0).await
}

/// The applications that a coordinator sees in all lists: studies, runs, lines of the audit.
async fn told(service: &TestService, uid: u32) -> [BTreeSet<String>; 3] {
    [
        applications(service, uid, "/v1/studies").await,
        applications(service, uid, "/v1/runs").await,
        applications(service, uid, "/v1/audit").await,
    ]
}

async fn reset(service: &TestService, uid: u32, run: &Value) -> Answer {
    let path = format!("/v1/studies/{}/reset", run["study_id"]);
    let user = service.user(uid);
    user.post(&path, json!({"why": "a test"})).await
}

/// Attack (others): A user's job names an account that the user is not in, for its coordinator to
/// see.
/// Outcome: The coordinator is told nothing of it.
#[tokio::test]
async fn an_account_that_its_user_made_up_shows_a_study_to_nobody() {
    let service = TestService::with(COORDINATORS).await;
    let (coordinator, member) = (uid_of(COORDINATOR), uid_of(MEMBER));
    // The member is in another account, and physics has another member.
    let members = [("chemistry", MEMBER), ("physics", "news")];
    associate(&service, &members, &[("physics", COORDINATOR)]);
    let detail = read_anew(&service).await;
    assert_eq!(detail, "2 users in 2 accounts, 1 coordinate");
    let run = charged(&service, member, "ocean", "physics").await;
    assert_eq!(
        service.study("ocean").await["account"],
        "physics",
        "Slurm says so"
    );
    reset(&service, member, &run).await.ok();
    assert_eq!(
        told(&service, coordinator).await,
        [set(&[]), set(&[]), set(&[])]
    );
    let path = format!("/v1/runs/{}", run["job_id"]);
    service.user(coordinator).get(&path).await.not_found();
    reset(&service, coordinator, &run).await.not_found();
}

#[tokio::test]
async fn an_association_shows_a_study_and_its_end_hides_it() {
    let service = TestService::with(COORDINATORS).await;
    let (coordinator, member) = (uid_of(COORDINATOR), uid_of(MEMBER));
    let run = charged(&service, member, "ocean", "physics").await;
    reset(&service, member, &run).await.ok();
    let all = || [set(&["ocean"]), set(&["ocean"]), set(&["ocean"])];
    let none = || [set(&[]), set(&[]), set(&[])];
    for (members, expected) in [
        (&[][..], none()),
        (&[("physics", MEMBER)], all()),
        (&[("chemistry", MEMBER)], none()),
        (&[("physics", MEMBER), ("chemistry", MEMBER)], all()),
        (&[], none()),
    ] {
        associate(&service, members, &[("physics", COORDINATOR)]);
        read_anew(&service).await;
        assert_eq!(told(&service, coordinator).await, expected, "{members:?}");
        assert_eq!(
            told(&service, member).await,
            all(),
            "its owner sees it anyway"
        );
    }
}

/// Attack (others): A present or former coordinator reads or steers what is charged to another
/// account, by a stranger or on another cluster, or orders for all that a member has.
#[tokio::test]
async fn a_coordinator_reads_what_members_charge_to_the_account_and_nothing_else() {
    let service = TestService::with(COORDINATORS).await;
    let (coordinator, member) = (uid_of(COORDINATOR), uid_of(MEMBER));
    // Slurm has who coordinates physics coordinate optics, which is below it.
    associate(
        &service,
        &[
            ("physics", MEMBER),
            ("optics", MEMBER),
            ("chemistry", MEMBER),
            ("chemistry", COORDINATOR),
        ],
        &[("physics", COORDINATOR), ("optics", COORDINATOR)],
    );
    read_anew(&service).await;
    let run = charged(&service, member, "ocean", "physics").await;
    let below = charged(&service, member, "lens", "optics").await;
    let elsewhere = charged(&service, member, "lab", "chemistry").await;
    let own = charged(&service, coordinator, "own", "chemistry").await;
    let seen = async |path: &str| applications(&service, coordinator, path).await;
    for list in ["studies", "runs"] {
        let path = |query: &str| format!("/v1/{list}{query}");
        assert_eq!(seen(&path("")).await, set(&["ocean", "lens", "own"]));
        assert_eq!(seen(&path("?account=physics")).await, set(&["ocean"]));
        assert_eq!(seen(&path("?account=chemistry")).await, set(&["own"]));
        let of_member = path(&format!("?uid={member}"));
        assert_eq!(seen(&of_member).await, set(&["ocean", "lens"]));
        let of_stranger = path(&format!("?uid={ALICE}"));
        assert_eq!(seen(&of_stranger).await, set(&[]));
        assert_eq!(
            applications(&service, member, &path("")).await,
            set(&["ocean", "lens", "lab"])
        );
    }
    let runs = service.user(coordinator).get("/v1/runs").await.ok();
    let runs = ids(&runs, "run_id");
    for (run, is_seen) in [
        (&run, true),
        (&below, true),
        (&own, true),
        (&elsewhere, false),
    ] {
        let id = run["run_id"].as_i64().unwrap();
        assert_eq!(runs.contains(&id), is_seen, "{run}");
        let path = format!("/v1/runs/{}", run["job_id"]);
        let explained = service.user(coordinator).get(&path).await;
        match is_seen {
            true => assert_eq!(explained.ok()[0]["run"]["run_id"], id),
            false => assert!(explained.not_found().starts_with("there is no run")),
        }
    }
    // The owner is shown.
    let listed = service
        .user(coordinator)
        .get("/v1/runs?account=physics")
        .await;
    let listed = listed.ok();
    assert_eq!(ids(&listed, "uid"), [i64::from(member)]);
    assert_eq!(ids(&listed, "run_id"), [run["run_id"].as_i64().unwrap()]);
}

/// Attack (others): A present or former coordinator reads or steers what is charged to another
/// account, by a stranger or on another cluster, or orders for all that a member has.
#[tokio::test]
async fn another_accounts_study_does_not_exist_for_a_coordinator() {
    let service = site().await;
    let coordinator = service.user(uid_of(COORDINATOR));
    let study = service.study_id("lab").await;
    let pin = json!({"values": {"cb_nodes": "2"}, "why": "mischief"});
    let why = json!({"why": "mischief"});
    let off = json!({"kind": "off", "scope": {"study": study}, "why": "mischief"});
    let told = format!(
        "there is no study {study} among those you may see; `io-autotune status` lists them"
    );
    let path = |what: &str| format!("/v1/studies/{study}{what}");
    for answer in [
        coordinator.get(&path("")).await,
        coordinator.get(&path("/export")).await,
        coordinator.post(&path("/pin"), pin).await,
        coordinator.post(&path("/reset"), &why).await,
        coordinator.post(&path("/accept"), &why).await,
        coordinator.post("/v1/orders", &off).await,
        coordinator.post("/v1/orders/end", off).await,
    ] {
        assert_eq!(answer.not_found(), told);
    }
    for scope in [
        json!({"uid": uid_of(MEMBER)}),
        json!({"uid": uid_of(MEMBER), "application": "ocean"}),
        // The study is the member's and not Alice's.
        json!({"uid": ALICE, "study": service.study_id("ocean").await}),
    ] {
        let body = json!({"kind": "freeze", "scope": scope, "why": "mischief"});
        let answer = coordinator.post("/v1/orders", body).await;
        assert_eq!(
            answer.forbidden(),
            "only admins steer the studies of others: leave the user out"
        );
    }
    assert_eq!(
        service.database.number("select count(*) from audit").await,
        0
    );
}

#[tokio::test]
async fn what_a_coordinator_does_is_told_the_owner_who_undoes_it() {
    let service = site().await;
    let (coordinator, member) = (uid_of(COORDINATOR), uid_of(MEMBER));
    let study = service.study_id("ocean").await;
    let path = |what: &str| format!("/v1/studies/{study}{what}");
    let user = service.user(coordinator);
    let pin = json!({"values": {"cb_nodes": "2"}, "why": "all of physics does"});
    let line = user.post(&path("/pin"), pin).await.ok()["line"].clone();
    for uid in [coordinator, member] {
        let lines = service.user(uid).get("/v1/audit").await.ok();
        let told = (&lines[0]["action"], &lines[0]["uid"], &lines[0]["why"]);
        assert_eq!(
            json!(told),
            json!(["pin", coordinator, "all of physics does"])
        );
    }
    let undo = format!("/v1/audit/{line}/undo");
    let why = json!({"why": "enough"});
    service.user(member).post(&undo, &why).await.ok();
    assert_eq!(service.study("ocean").await["pin"], Value::Null);
    // An order of one study is its owner's, as if the owner had given it.
    let off = json!({"kind": "off", "scope": {"study": study}, "why": "production"});
    user.post("/v1/orders", &off).await.ok();
    let orders = service.user(member).get("/v1/orders").await.ok();
    assert_eq!(orders[0]["scope"]["uid"], member);
    service.user(member).post("/v1/orders/end", &off).await.ok();
    // And what the owner has ordered, the coordinator undoes.
    let given = service.user(member).post("/v1/orders", &off).await.ok();
    let undo = format!("/v1/audit/{}/undo", given["line"]);
    user.post(&undo, &why).await.ok();
    assert_eq!(service.study("ocean").await["ordered"], Value::Null);
}

/// Attack (others): A present or former coordinator reads or steers what is charged to another
/// account, by a stranger or on another cluster, or orders for all that a member has.
#[tokio::test]
async fn who_coordinates_no_more_sees_no_more() {
    let service = site().await;
    let coordinator = uid_of(COORDINATOR);
    let study = service.study("ocean").await;
    reset(&service, coordinator, &study).await.ok();
    let seen = set(&["ocean", "own"]);
    assert_eq!(
        told(&service, coordinator).await,
        [seen.clone(), seen, set(&["ocean"])]
    );
    associate(&service, &[("physics", MEMBER)], &[]);
    assert!(read_anew(&service).await.ends_with(" 0 coordinate"));
    let own = set(&["own"]);
    assert_eq!(
        told(&service, coordinator).await,
        [own.clone(), own, set(&[])]
    );
    let path = format!("/v1/studies/{}", study["study_id"]);
    let user = service.user(coordinator);
    for answer in [
        user.get(&path).await,
        user.get(&format!("{path}/export")).await,
        reset(&service, coordinator, &study).await,
    ] {
        assert!(answer.not_found().starts_with("there is no study"));
    }
    // What they have done stays done, and theirs in the audit.
    let lines = service.user(ADMIN).get("/v1/audit").await.ok();
    assert_eq!(ids(&lines, "uid"), [i64::from(coordinator)]);
}

/// Attack (others): sacctmgr is silent while somebody stops coordinating an account.
/// Outcome: What was read holds for a quarter of an hour; then nobody coordinates.
#[tokio::test]
async fn what_was_read_of_accounts_holds_a_quarter_of_an_hour_and_no_longer() {
    let service = site().await;
    let coordinator = uid_of(COORDINATOR);
    service.slurm().silence("sacctmgr-cluster=alpha");
    let detail = read_anew(&service).await;
    for part in [
        "sacctmgr",
        "nobody is a coordinator",
        "slurmdbd",
        "PrivateData",
    ] {
        assert!(detail.contains(part), "{detail}");
    }
    let seen = async || applications(&service, coordinator, "/v1/studies").await;
    service.advance(Duration::from_secs(14 * 60)).await;
    service.look_at_slurm().await;
    assert_eq!(seen().await, set(&["ocean", "own"]));
    service.advance(Duration::from_secs(61)).await;
    assert_eq!(seen().await, set(&["own"]));
    associate(
        &service,
        &[("physics", MEMBER)],
        &[("physics", COORDINATOR)],
    );
    assert_eq!(
        read_anew(&service).await,
        "1 users in 1 accounts, 1 coordinate"
    );
    assert_eq!(seen().await, set(&["ocean", "own"]));
}

/// Attack (others): Slurm has root coordinate an account, and root of any node asks.
#[tokio::test]
async fn root_of_a_node_coordinates_nothing() {
    let service = site().await;
    associate(&service, &[("physics", MEMBER)], &[("physics", "root")]);
    read_anew(&service).await;
    assert_eq!(told(&service, ROOT).await, [set(&[]), set(&[]), set(&[])]);
    let study = service.study("ocean").await;
    reset(&service, ROOT, &study).await.not_found();
}

/// Attack (others): One user coordinates too many members.
/// Outcome: With more than 10,000 pairs of member and account they coordinate nobody; `doctor`
/// names them.
#[tokio::test]
async fn who_would_coordinate_too_many_coordinates_nobody() {
    let service = site().await;
    let coordinator = uid_of(COORDINATOR);
    let (mut members, mut coordinators) = (String::new(), String::new());
    for number in 0..10_001 {
        writeln!(members, "a{number}|{MEMBER}").unwrap();
        writeln!(coordinators, "a{number}|{COORDINATOR}").unwrap();
    }
    writeln!(members, "physics|{MEMBER}").unwrap();
    writeln!(coordinators, "physics|{COORDINATOR},news").unwrap();
    let slurm = service.slurm();
    slurm.say("sacctmgr-cluster=alpha", &members);
    slurm.say("sacctmgr-format=Account,Coordinators", &coordinators);
    let detail = read_anew(&service).await;
    let expected = format!(
        "these coordinate more than can be asked about, and so nothing: uid {coordinator}\
         make them operators ([access] of service.toml)"
    );
    assert_eq!(detail, expected);
    let seen = async |uid| applications(&service, uid, "/v1/studies").await;
    assert_eq!(seen(coordinator).await, set(&["own"]));
    assert_eq!(
        seen(uid_of("news")).await,
        set(&["ocean"]),
        "others as before"
    );
}

/// A site that does not want it asks sacctmgr for nothing of this.
#[tokio::test]
async fn nobody_coordinates_unless_the_site_says_so() {
    let service = TestService::with("[slurm]\nassociations = true\n").await;
    associate(
        &service,
        &[("physics", MEMBER)],
        &[("physics", COORDINATOR)],
    );
    read_anew(&service).await;
    charged(&service, uid_of(MEMBER), "ocean", "physics").await;
    let coordinator = uid_of(COORDINATOR);
    assert_eq!(
        told(&service, coordinator).await,
        [set(&[]), set(&[]), set(&[])]
    );
    // A reload gives the role, and takes it.
    service.reload(COORDINATORS).await;
    let seen = applications(&service, coordinator, "/v1/studies").await;
    assert_eq!(seen, set(&["ocean"]));
    service.reload("[slurm]\nassociations = true\n").await;
    let seen = applications(&service, coordinator, "/v1/studies").await;
    assert_eq!(seen, set(&[]));
}

/// On one cluster an association says nothing of the other's accounts.
#[tokio::test]
async fn an_account_of_one_cluster_is_not_the_others() {
    let service = TestService::of_clusters(&["alpha", "beta"], COORDINATORS).await;
    let (member, coordinator) = (uid_of(MEMBER), uid_of(COORDINATOR));
    let beta = service.slurm_of("beta");
    associate(
        &service,
        &[("physics", MEMBER)],
        &[("physics", COORDINATOR)],
    );
    beta.say("sacctmgr-cluster=beta", "");
    beta.say(
        "sacctmgr-format=Account,Coordinators",
        &format!("physics|{COORDINATOR}\n"),
    );
    service.look_at_slurm().await;
    for (cluster, app) in [("alpha", "here"), ("beta", "there")] {
        let mut job = service.job(member, &format!("app={app}"));
        job.job.cluster = cluster.into();
        job.completes(&service, 10.0).await;
    }
    service.poll().await;
    let seen = applications(&service, coordinator, "/v1/studies").await;
    assert_eq!(seen, set(&["here"]));
}
