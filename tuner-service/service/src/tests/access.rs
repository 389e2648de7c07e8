//! Tests of the rights of access through the service's doors: each role at each endpoint, what each
//! is answered and may change, and the scope of a credential.

mod coordinators;
mod credentials;
mod doors;
mod encrypted;
mod matrix;
mod others;
mod owners;
mod roles;

use std::collections::BTreeSet;

use nix::unistd::User;
use serde_json::Value;

use super::{
    ADMIN, ALICE, Answer, BOB, BURST_BUFFER, CLUSTER, COLLECTOR, OPERATOR, REPORT_READER, ROOT,
    SERVICE, Signed, TestService,
};
use crate::access::table::Role;

/// A service that asks Slurm who coordinates an account.
const COORDINATORS: &str = "[access]\ncoordinators = true\n[slurm]\nassociations = true\n";

/// Accounts of Debian's base-passwd, as sacctmgr names users by their login names.
const COORDINATOR: &str = "games";
const MEMBER: &str = "mail";

/// The uid that the name service has for a login name.
fn uid_of(name: &str) -> u32 {
    let found = User::from_name(name).unwrap();
    found.unwrap_or_else(|| panic!("no {name}")).uid.as_raw()
}

/// Lets sacctmgr list users of accounts, and their coordinators.
fn associate(service: &TestService, members: &[(&str, &str)], coordinators: &[(&str, &str)]) {
    for (what, pairs) in [
        ("sacctmgr-cluster=alpha", members),
        ("sacctmgr-format=Account,Coordinators", coordinators),
    ] {
        let lines = pairs.iter();
        let lines = lines.map(|(account, user)| format!("{account}|{user}\n"));
        service.slurm().say(what, &lines.collect::<String>());
    }
}

/// A service with a caller of each role, and studies of three owners:
///
/// - `ocean` and `lab` of [`MEMBER`], charged to physics and to chemistry. Slurm has the member in both,
///   and [`COORDINATOR`] coordinates physics.
/// - `ice` of Alice, charged to physics, in which Slurm does not have her.
/// - `own` of the coordinator.
async fn site() -> TestService {
    let service = TestService::with(COORDINATORS).await;
    let members = [("physics", MEMBER), ("chemistry", MEMBER)];
    associate(&service, &members, &[("physics", COORDINATOR)]);
    service.look_at_slurm().await;
    let (member, coordinator) = (uid_of(MEMBER), uid_of(COORDINATOR));
    for (uid, application, account) in [
        (member, "ocean", "physics"),
        (member, "lab", "chemistry"),
        (ALICE, "ice", "physics"),
        (coordinator, "own", "chemistry"),
    ] {
        let mut job = service.job(uid, &format!("app={application}"));
        job.account = account.into();
        job.completes(&service, 10.0).await;
    }
    service.poll().await;
    service
}

/// The uid at [`site`] that has this role, and no other but that of a user.
fn uid_with(role: Role) -> u32 {
    match role {
        Role::User => BOB,
        Role::ReportReader => REPORT_READER,
        Role::Coordinator => uid_of(COORDINATOR),
        Role::Operator => OPERATOR,
        Role::Admin => ADMIN,
        Role::Node => ROOT,
        Role::Collector => COLLECTOR,
        Role::BurstBuffer => BURST_BUFFER,
    }
}

/// The applications that a list names.
fn named(answer: &Answer) -> BTreeSet<String> {
    let list = answer.ok();
    let lines = list.as_array().unwrap().iter();
    let names = lines.filter_map(|line| line["application"].as_str());
    names.map(str::to_owned).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The applications of which a user learns from a list, such as `/v1/runs`.
async fn applications(service: &TestService, uid: u32, path: &str) -> BTreeSet<String> {
    named(&service.user(uid).get(path).await)
}

/// A request that is refused late, without waiting for it. It must not ask the database meanwhile.
async fn at_once<T>(asking: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let answer = asking.await;
    tokio::time::resume();
    answer
}

/// The id of the newest line of the audit.
async fn newest_line(service: &TestService) -> i64 {
    let lines = service.user(ADMIN).get("/v1/audit?limit=1").await.ok();
    lines[0]["audit_id"].as_i64().unwrap()
}

/// The ids of what a list has.
fn ids(list: &Value, key: &str) -> Vec<i64> {
    let lines = list.as_array().unwrap().iter();
    lines.map(|line| line[key].as_i64().unwrap()).collect()
}
