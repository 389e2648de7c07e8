//! Tests of a coordinator's steering of members' studies, and of its limits.

use nix::unistd::User;

use super::*;

/// Members and coordinators have names, which the host must know: each has these.
fn uid_of(name: &str) -> u32 {
    User::from_name(name).unwrap().unwrap().uid.as_raw()
}

/// Where `daemon` coordinates physics, to which its member `bin` charges all jobs.
struct Account {
    service: TestService,
    coordinator: u32,
    member: u32,
    study: i64,
}

impl Account {
    async fn new() -> Self {
        let more = "[slurm]\nassociations = true\n[access]\ncoordinators = true\n";
        let service = TestService::with(more).await;
        let slurm = service.slurm();
        slurm.say("sacctmgr-cluster=alpha", "physics|\nphysics|bin\n");
        let coordinators = "physics|daemon\nchemistry|\n";
        slurm.say("sacctmgr-format=Account,Coordinators", coordinators);
        service.look_at_slurm().await;
        let member = uid_of("bin");
        let study = begun(&service, member, APP).await;
        Self {
            coordinator: uid_of("daemon"),
            member,
            study,
            service,
        }
    }

    fn frozen(&self) -> Value {
        what("freeze", json!({ "study": self.study }))
    }
}

#[tokio::test]
async fn a_coordinators_pin_is_audited_for_owner_and_coordinator_and_undone_by_either() {
    let Account {
        service,
        coordinator,
        member,
        study,
    } = Account::new().await;
    for undoes in [coordinator, member] {
        let body = json!({ "values": { "cb_nodes": "2" }, "why": "all of physics does" });
        let pinned = steer(&service, coordinator, study, "pin", body).await.ok();
        assert_eq!(
            next(&service, member, APP).await["differs"],
            json!({ "cb_nodes": 2 })
        );
        for reader in [member, coordinator] {
            let newest = &lines(&service, reader, "?limit=1").await[0];
            assert_eq!(newest["audit_id"], pinned["line"]);
            assert_eq!(
                (&newest["action"], &newest["uid"]),
                (&json!("pin"), &json!(coordinator))
            );
            assert_eq!(newest["why"], "all of physics does");
        }
        undo(&service, undoes, &pinned["line"]).await.ok();
        assert_eq!(seen(&service, member, study).await["pin"], Value::Null);
        assert_eq!(next(&service, member, APP).await["role"], "baseline");
    }
}

#[tokio::test]
async fn a_coordinator_resets_and_accepts_a_members_study() {
    let Account {
        service,
        coordinator,
        study,
        ..
    } = Account::new().await;
    for how in ["reset", "accept"] {
        let told = steer(&service, coordinator, study, how, why()).await.ok();
        assert_eq!(told["epoch"], 2);
    }
    assert_eq!(seen(&service, coordinator, study).await["epoch"], 2);
}

#[tokio::test]
async fn a_coordinators_order_of_one_study_is_the_owners_to_end() {
    let account = Account::new().await;
    let frozen = account.frozen();
    let Account {
        service,
        coordinator,
        member,
        study,
    } = account;
    let body = with(frozen.clone(), "why", "production");
    order(&service, coordinator, body).await;
    for reader in [coordinator, member] {
        let told = orders(&service, reader).await;
        assert_eq!(each(&told, "why"), ["production"]);
        let told = seen(&service, reader, study).await;
        assert_eq!(told["ordered"], "frozen");
        assert_eq!(told["decided_by"]["may_end"], true);
    }
    end(&service, member, frozen).await;
    assert_eq!(
        seen(&service, coordinator, study).await["ordered"],
        Value::Null
    );
}

#[tokio::test]
async fn a_coordinator_ends_what_the_owner_ordered_of_one_study() {
    let account = Account::new().await;
    let frozen = account.frozen();
    let Account {
        service,
        coordinator,
        member,
        study,
    } = account;
    order(&service, member, frozen.clone()).await;
    end(&service, coordinator, frozen).await;
    assert_eq!(seen(&service, member, study).await["ordered"], Value::Null);
}

#[tokio::test]
async fn the_owner_undoes_what_a_coordinator_ordered() {
    let account = Account::new().await;
    let frozen = account.frozen();
    let Account {
        service,
        coordinator,
        member,
        study,
    } = account;
    order(&service, coordinator, frozen).await;
    let of_study = lines(&service, member, &format!("?study={study}")).await;
    assert_eq!(of_study[0]["action"], "freeze");
    undo(&service, member, &of_study[0]["audit_id"]).await.ok();
    assert_eq!(
        seen(&service, coordinator, study).await["ordered"],
        Value::Null
    );
}

/// Attack (others): A present or former coordinator reads or steers what is charged to another
/// account, by a stranger or on another cluster, or orders for all that a member has.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn a_coordinator_orders_nothing_for_all_of_a_members_studies() {
    let Account {
        service,
        coordinator,
        member,
        study,
    } = Account::new().await;
    for scope in [
        json!({ "uid": member }),
        json!({ "uid": member, "application": APP }),
        json!({ "uid": coordinator, "study": study }),
    ] {
        for path in ["/v1/orders", "/v1/orders/end"] {
            let body = what("freeze", scope.clone());
            let told = service.user(coordinator).post(path, body).await.forbidden();
            assert_eq!(
                told,
                "only admins steer the studies of others: leave the user out"
            );
        }
    }
    // A scope without a user is the coordinator's own.
    order(&service, coordinator, what("off", json!({}))).await;
    assert_eq!(next(&service, member, APP).await["role"], "baseline");
    let own = order(&service, member, what("off", json!({}))).await;
    undo(&service, coordinator, &own["line"]).await.not_found();
    let told = orders(&service, coordinator).await;
    assert_eq!(each(&told, "uid"), [coordinator]);
}

#[tokio::test]
async fn a_coordinator_names_the_member_whose_study_it_is_or_leaves_them_out() {
    let Account {
        service,
        coordinator,
        member,
        study,
    } = Account::new().await;
    let scope = json!({ "uid": member, "study": study });
    let given = order(&service, coordinator, what("off", scope)).await;
    assert_eq!(given["studies"][0]["uid"], member);
    assert_eq!(next(&service, member, APP).await["role"], "observe");
    // It is the member's, as if they had said so.
    let told = orders(&service, member).await;
    assert_eq!(told[0]["scope"], json!({ "study": study, "uid": member }));
}

#[tokio::test]
async fn a_study_that_is_charged_elsewhere_is_no_coordinators() {
    let Account {
        service,
        coordinator,
        member,
        study,
    } = Account::new().await;
    let mut job = service.job(member, "app=ocean");
    "chemistry".clone_into(&mut job.account);
    job.runs(&service, 10.0).await;
    let body = json!({ "values": {}, "why": "mischief" });
    steer(&service, coordinator, study, "pin", body)
        .await
        .not_found();
    let body = what("off", json!({ "study": study }));
    let answer = service.user(coordinator).post("/v1/orders", body).await;
    answer.not_found();
    assert_eq!(lines(&service, ADMIN, "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn who_coordinates_no_more_steers_no_more() {
    let Account {
        service,
        coordinator,
        study,
        ..
    } = Account::new().await;
    let pinned = pin(&service, coordinator, study, json!({})).await;
    let slurm = service.slurm();
    slurm.say("sacctmgr-format=Account,Coordinators", "physics|\n");
    service.look_at_slurm().await;
    steer(&service, coordinator, study, "unpin", why())
        .await
        .not_found();
    undo(&service, coordinator, &pinned["line"])
        .await
        .not_found();
    assert_eq!(lines(&service, coordinator, "").await, Vec::<Value>::new());
}
