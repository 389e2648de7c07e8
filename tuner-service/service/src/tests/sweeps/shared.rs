//! Tests of users of one application who share their runs, by a rule of the site.

use super::*;

/// Five users are the fewest of whom one cannot deceive the others.
const EVERYONE: usize = 5;

/// Users whom the name service of this host knows: sacctmgr names users, and uids are asked for.
fn users() -> Vec<(String, u32)> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let entries = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        Some((name, fields.nth(1)?.parse().ok()?))
    });
    let users: Vec<(String, u32)> = entries
        .filter(|(_, uid)| *uid != 0)
        .take(EVERYONE)
        .collect();
    assert_eq!(users.len(), EVERYONE, "this host has too few users");
    users
}

/// A service whose rule lets the members of an account share what begins with `shared-`.
async fn sharing(more: &str) -> (TestService, Vec<(String, u32)>) {
    let rule = "[[sharing]]\napplications = [\"shared-*\"]\naccount = \"physics\"\n";
    let service = TestService::with(&format!(
        "{QUICK}[slurm]\nassociations = true\n{rule}{more}"
    ))
    .await;
    let users = users();
    follow(&service, &users).await;
    (service, users)
}

/// Lets sacctmgr say that these are in the account, and the service follow it.
async fn follow(service: &TestService, members: &[(String, u32)]) {
    let lines = members.iter().map(|(name, _)| format!("physics|{name}\n"));
    let lines: String = lines.collect();
    service.slurm().say("sacctmgr", "");
    service.slurm().say("sacctmgr-cluster=alpha", &lines);
    service.look_at_slurm().await;
    service.follow_sharing().await;
}

/// A run of each of these users, one after another, to its verdict.
async fn run_of_each(
    service: &TestService,
    application: &str,
    users: &[(String, u32)],
) -> Vec<Value> {
    let mut runs = Vec::new();
    for (number, (_, uid)) in (0..).zip(users) {
        let job = service.job(*uid, &format!("app={application}"));
        let seconds = 1.0 + 0.01 * f64::from(number);
        runs.push(job.runs(service, seconds).await);
    }
    runs
}

/// The studies with which a user's study shares, as the user sees them.
async fn told(service: &TestService, uid: u32, application: &str) -> Value {
    let path = format!("/v1/studies?app={application}");
    let studies = service.user(uid).get(&path).await.ok();
    assert_eq!(studies.as_array().unwrap().len(), 1, "one's own: {studies}");
    studies[0]["sharing"].clone()
}

/// Two runs of the default of each user, and the sweep by which they share.
async fn measured(service: &TestService, application: &str, users: &[(String, u32)]) {
    for _ in 0..2 {
        for run in run_of_each(service, application, users).await {
            assert_eq!(
                json!([run["role"], run["state"]]),
                json!(["baseline", "counted"]),
                "{run}"
            );
        }
    }
    service.follow_sharing().await;
}

/// Promise: one user alone decides what others who share run
///
/// Attack (sharing): A user who shares looks for who else does, and what they ran.
/// Outcome: Numbers are told, and no names.
#[tokio::test]
async fn what_five_users_ran_decides_for_each_and_shows_nobodys_name() {
    let (service, users) = sharing("").await;
    let application = "shared-ocean";
    measured(&service, application, &users).await;
    let own = users[0].1;
    let heard = told(&service, own, application).await;
    assert_eq!(
        heard,
        json!({
            "by": "account physics", "others": 4, "runs": 8, "together": true, "why": "", "members": [],
        })
    );
    let mut last = Value::Null;
    for user in &users {
        let runs = run_of_each(&service, application, std::slice::from_ref(user)).await;
        last = runs[0].clone();
        let reason = last["reason"].as_str().unwrap();
        assert!(
            reason.ends_with("by the runs of 5 users who share them"),
            "{reason}"
        );
        let path = format!("/v1/runs/{}/replay", last["job_id"]);
        let replayed = service.user(user.1).get(&path).await.ok();
        assert_eq!(replayed[0]["same"], true, "{replayed}");
        assert_eq!(replayed.as_array().unwrap().len(), 1);
    }
    // A second run of the best is no trial.
    let trials =
        "runs where role in ('design', 'search') and suggestion ->> 'rule' <> 'best_between'";
    let number = |what: &str| format!("select {what} from {trials}");
    let explored = service.database.number(&number("count(*)")).await;
    assert!(explored > 0, "{last}");
    let different = number("count(distinct parametrization)");
    let different = service.database.number(&different).await;
    assert_eq!(
        different, explored,
        "nobody explores what another has explored"
    );

    let alone = service.user(own);
    let study = alone.get(&format!("/v1/studies?app={application}")).await;
    let study_id = study.ok()[0]["study_id"].as_i64().unwrap();
    let shown = alone.get(&format!("/v1/studies/{study_id}")).await;
    shown.ok();
    let runs = history(&service, own, application).await;
    assert!(runs.iter().all(|run| run["uid"] == own), "{runs:?}");
    let path = format!("/v1/runs/{}", runs.last().unwrap()["job_id"]);
    let explained = alone.get(&path).await;
    explained.ok();
    let everything = study.text() + &shown.text() + &explained.text();
    for (name, uid) in &users[1..] {
        for telling in [
            format!("\"user{uid}\""),
            format!("\"{name}\""),
            format!("\"uid\":{uid},"),
        ] {
            assert!(!everything.contains(&telling), "{telling}");
        }
    }
    // Nor is another's run had by its job's id.
    let path = format!("/v1/runs/{}", last["job_id"]);
    alone.get(&path).await.not_found();
}

/// Promise: one user alone decides what others who share run
#[tokio::test]
async fn who_leaves_hears_nobody_and_is_heard_by_nobody() {
    let (service, users) = sharing("").await;
    let application = "shared-ice";
    measured(&service, application, &users).await;
    let (leaver, other) = (users[2].1, users[1].1);
    assert_eq!(told(&service, other, application).await["others"], 4);
    let mut rest = users.clone();
    rest.remove(2);
    follow(&service, &rest).await;
    assert_eq!(told(&service, leaver, application).await, Value::Null);
    let heard = told(&service, other, application).await;
    assert_eq!(
        (&heard["others"], &heard["together"]),
        (&json!(3), &json!(false)),
        "{heard}"
    );
    let why = heard["why"].as_str().unwrap();
    assert!(why.starts_with("4 of the 5 users"), "{why}");
    let runs = run_of_each(&service, application, &users[1..2]).await;
    let reason = runs[0]["reason"].as_str().unwrap();
    assert!(!reason.contains("users who share"), "{reason}");
    follow(&service, &users).await;
    assert_eq!(told(&service, other, application).await["others"], 4);
    assert_eq!(told(&service, leaver, application).await["together"], true);
}

#[tokio::test]
async fn an_application_that_no_rule_names_is_its_users_alone() {
    let (service, users) = sharing("").await;
    measured(&service, "own-ocean", &users).await;
    run_of_each(&service, "shared-later", &users).await;
    service.follow_sharing().await;
    let heard = told(&service, users[0].1, "shared-later").await;
    assert_eq!(heard["others"], 4);
    assert_eq!(told(&service, users[0].1, "own-ocean").await, Value::Null);
}

#[tokio::test]
async fn fewer_than_five_users_decide_each_alone_and_are_told_why() {
    let (service, users) = sharing("").await;
    measured(&service, "shared-ocean", &users[..4]).await;
    let heard = told(&service, users[0].1, "shared-ocean").await;
    assert_eq!(
        (&heard["others"], &heard["together"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(
        heard["why"],
        "4 of the 5 users have run it who are needed, so that no one of them can deceive the others"
    );
    let runs = run_of_each(&service, "shared-ocean", &users[..1]).await;
    let reason = runs[0]["reason"].as_str().unwrap();
    assert!(!reason.contains("users who share"), "{reason}");
}

#[tokio::test]
async fn while_nobody_can_be_asked_who_is_a_member_all_stays_as_it_is() {
    let (service, users) = sharing("").await;
    measured(&service, "shared-ocean", &users).await;
    let heard = told(&service, users[0].1, "shared-ocean").await;
    assert_eq!(heard["others"], 4);
    service.slurm().silence("sacctmgr-cluster=alpha");
    service.slurm().silence("sacctmgr");
    for minutes in [0, 10, 6] {
        service.advance(Duration::from_mins(minutes)).await;
        service.look_at_slurm().await;
        service.follow_sharing().await;
        assert_eq!(told(&service, users[0].1, "shared-ocean").await, heard);
    }
}

#[tokio::test]
async fn names_are_shown_where_the_rule_says_so() {
    let (service, users) = sharing("show_members = true\n").await;
    measured(&service, "shared-ocean", &users).await;
    let heard = told(&service, users[0].1, "shared-ocean").await;
    let mut members: Vec<String> = serde_json::from_value(heard["members"].clone()).unwrap();
    members.sort();
    let mut expected: Vec<String> = users[1..]
        .iter()
        .map(|(_, uid)| format!("user{uid}"))
        .collect();
    expected.sort();
    assert_eq!(members, expected);
}

/// Promise: a user steers another user's study
#[tokio::test]
async fn a_pin_of_one_who_shares_stays_their_own() {
    let (service, users) = sharing("").await;
    measured(&service, "shared-ocean", &users).await;
    let (one, other) = (users[0].1, users[1].1);
    let path = "/v1/studies?app=shared-ocean";
    let study = service.user(one).get(path).await.ok()[0]["study_id"].clone();
    let pin = json!({ "values": { "cb_nodes": "2" }, "why": "a test asks for it" });
    service
        .user(one)
        .post(&format!("/v1/studies/{study}/pin"), pin)
        .await
        .ok();
    let theirs = service.user(other).get(path).await.ok();
    assert_eq!(theirs[0]["pin"], Value::Null, "{theirs}");
    let runs = run_of_each(&service, "shared-ocean", &users[1..2]).await;
    let reason = runs[0]["reason"].as_str().unwrap();
    assert!(
        reason.ends_with("by the runs of 5 users who share them"),
        "{reason}"
    );
}

#[tokio::test]
async fn after_a_reset_a_study_hears_what_others_began_later() {
    let (service, users) = sharing("").await;
    measured(&service, "shared-ocean", &users).await;
    let own = users[0].1;
    let path = "/v1/studies?app=shared-ocean";
    let study = service.user(own).get(path).await.ok()[0]["study_id"].clone();
    let why = json!({ "why": "a new file system" });
    service
        .user(own)
        .post(&format!("/v1/studies/{study}/reset"), why)
        .await
        .ok();
    service.follow_sharing().await;
    let heard = told(&service, own, "shared-ocean").await;
    assert!(heard.is_null() || heard["others"] == 0, "{heard}");
    let others = told(&service, users[1].1, "shared-ocean").await;
    assert_eq!(
        others["others"], 3,
        "whoever began anew has nothing yet: {others}"
    );
}

#[tokio::test]
async fn a_rule_that_goes_with_a_reload_lets_everyone_be_alone() {
    let (service, users) = sharing("").await;
    measured(&service, "shared-ocean", &users).await;
    assert_eq!(
        told(&service, users[0].1, "shared-ocean").await["others"],
        4
    );
    service
        .reload(&format!("{QUICK}[slurm]\nassociations = true\n"))
        .await;
    service.follow_sharing().await;
    for (_, uid) in &users {
        assert_eq!(told(&service, *uid, "shared-ocean").await, Value::Null);
    }
}
