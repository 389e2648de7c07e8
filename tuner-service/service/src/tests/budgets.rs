//! Tests of the site's budgets for exploring: what is charged, what is over them, who learns of it.

use std::sync::Arc;
use std::time::Duration;

use io_autotune_engine::Role;
use io_autotune_protocol::StartAnswer;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::studies::{explores, history, text};
use super::{ADMIN, ALICE, BOB, OPERATOR, QUICK, TestJob, TestService};

/// Seconds that every run takes. One that explores is expected to take up to 253 s by two runs of the
/// default, 0.07 hours of its one node.
const SECONDS: f64 = 100.0;

fn with(budgets: &str) -> String {
    format!("{QUICK}[exploring]\nnode_hours = {{ {budgets} }}\n")
}

/// A service with these budgets, at noon, so that its day does not end in a test.
async fn service(budgets: &str) -> TestService {
    let service = TestService::with(&with(budgets)).await;
    let now = service.now().to_zoned(TimeZone::system());
    let noon = now
        .date()
        .at(12, 0, 0, 0)
        .to_zoned(TimeZone::system())
        .unwrap();
    let to_noon = now.duration_until(&noon).as_secs().rem_euclid(86_400);
    service
        .advance(Duration::from_secs(to_noon.unsigned_abs()))
        .await;
    service
}

/// Has the default of an application be measured.
async fn measured(service: &TestService, uid: u32, request: &str) {
    for _ in 0..2 {
        let run = service.job(uid, request).runs(service, SECONDS).await;
        assert_eq!(
            (&run["role"], &run["state"]),
            (&json!("baseline"), &json!("counted"))
        );
    }
}

/// Starts a job.
async fn start(service: &TestService, uid: u32, request: &str) -> (TestJob, StartAnswer) {
    let job = service.job(uid, request);
    let started = job.start(service).await;
    (job, started)
}

fn tries(started: &StartAnswer) -> bool {
    started.role.explores()
}

/// Ends a job that was started, and judges it.
async fn end(service: &TestService, (job, started): &(TestJob, StartAnswer)) {
    let report = job.reports(Some(started), SECONDS);
    job.finish(service, &report).await;
    job.ends(service, "COMPLETED", SECONDS);
    service.poll().await;
}

/// The one study of an application, as its owner sees it.
async fn seen(service: &TestService, uid: u32, application: &str) -> Value {
    let path = format!("/v1/studies?app={application}");
    service.user(uid).get(&path).await.ok()[0].clone()
}

fn hours(value: &Value) -> f64 {
    (value.as_f64().unwrap() * 1e4).round() / 1e4
}

#[tokio::test]
async fn over_a_users_budget_runs_get_the_best_known_until_there_is_room_or_another_day() {
    let service = service("user = 0.1").await;
    measured(&service, ALICE, "app=ocean").await;
    let study = seen(&service, ALICE, "ocean").await;
    assert_eq!(
        study["budgets"],
        json!([{ "of": "user", "node_hours": 0.1, "spent": 0.0, "has_room": true }])
    );

    let first = start(&service, ALICE, "app=ocean").await;
    assert!(tries(&first.1));
    let (over, waits) = start(&service, ALICE, "app=ocean").await;
    assert_eq!(waits.role, Role::BestKnown, "{waits:?}");
    let said = "because the user has spent 0.07 of 0.1 node-hours for exploring today, and this run may take 0.07";
    assert!(waits.reason.ends_with(said), "{}", waits.reason);
    let study = seen(&service, ALICE, "ocean").await;
    assert_eq!(study["next"]["rule"], "exploring_budget");
    let says = text(&study["next"]["says"]);
    assert!(says.contains(": it explores again tomorrow"), "{says}");
    let request = json!({ "request": { "app": "ocean" } });
    let line = service.user(ALICE).post("/v1/preview", request).await.ok();
    assert!(
        text(&line["line"]).contains("0.07 of 0.1 node-hours"),
        "{line}"
    );
    let path = format!("/v1/runs/{}/replay", over.job.job_id);
    let replay = service.user(ADMIN).get(&path).await.ok();
    assert_eq!(replay[0]["same"], true, "{replay}");

    // It is one user's budget, for all of the user's applications.
    measured(&service, ALICE, "app=river").await;
    assert_eq!(
        start(&service, ALICE, "app=river").await.1.role,
        Role::BestKnown
    );
    measured(&service, BOB, "app=ocean").await;
    assert!(tries(&start(&service, BOB, "app=ocean").await.1));

    // It took less than was expected of it: another one has room, and then none.
    end(&service, &first).await;
    let study = seen(&service, ALICE, "ocean").await;
    assert_eq!(hours(&study["budgets"][0]["spent"]), 0.0278);
    let second = start(&service, ALICE, "app=ocean").await;
    assert!(tries(&second.1));
    end(&service, &second).await;
    assert_eq!(
        start(&service, ALICE, "app=ocean").await.1.role,
        Role::BestKnown
    );

    service.advance(Duration::from_hours(24)).await;
    let study = seen(&service, ALICE, "ocean").await;
    assert_eq!(study["budgets"][0]["spent"], 0.0, "it is another day");
    let next = start(&service, ALICE, "app=ocean").await;
    assert!(tries(&next.1), "{:?}", next.1);
}

#[tokio::test]
async fn a_reload_raises_a_budget_and_a_budget_of_nothing_forbids_exploring() {
    let service = service("user = 0.0").await;
    measured(&service, ALICE, "app=ocean").await;
    let none = start(&service, ALICE, "app=ocean").await.1;
    let said = "because a run that explores may take 0.07 node-hours, and the user has 0 a day for exploring";
    assert!(none.reason.ends_with(said), "{}", none.reason);
    let says = seen(&service, ALICE, "ocean").await["next"]["says"].clone();
    assert!(!text(&says).contains("tomorrow"), "{says}");

    service.reload(&with("user = 0.1")).await;
    assert!(tries(&start(&service, ALICE, "app=ocean").await.1));
    assert_eq!(
        start(&service, ALICE, "app=ocean").await.1.role,
        Role::BestKnown
    );
    service.reload(&with("user = -1.0")).await;
    assert!(
        service
            .metrics()
            .await
            .contains("io_autotune_reload_refused 1")
    );
    assert_eq!(
        start(&service, ALICE, "app=ocean").await.1.role,
        Role::BestKnown
    );
    service.reload(&with("user = 0.2")).await;
    let raised = start(&service, ALICE, "app=ocean").await.1;
    assert!(tries(&raised), "{raised:?}");

    // Without a budget nothing is charged, and nothing is said of it.
    let charged = "select count(*) from exploring_charges";
    assert_eq!(service.database.number(charged).await, 2);
    service
        .reload(&QUICK.replace("exploring = 2", "exploring = 8"))
        .await;
    let free = start(&service, ALICE, "app=ocean").await.1;
    assert!(tries(&free), "{free:?}");
    assert_eq!(service.database.number(charged).await, 2);
    assert_eq!(seen(&service, ALICE, "ocean").await.get("budgets"), None);
}

/// Attack (others): A user asks what other users' runs that explore take, by a budget that they share.
/// Outcome: It is said only whether there is room.
#[tokio::test]
async fn of_a_shared_budget_a_user_learns_only_whether_it_has_room() {
    let service = service("site = 0.09, partition = 5, account = 5, user = 5").await;
    measured(&service, ALICE, "app=ocean").await;
    measured(&service, BOB, "app=river").await;
    assert!(tries(&start(&service, BOB, "app=river").await.1));

    let (job, waits) = start(&service, ALICE, "app=ocean").await;
    let said = "because what is left today of the site's 0.09 node-hours for exploring is not enough for this run, \
                which may take 0.07";
    assert!(waits.reason.ends_with(said), "{}", waits.reason);
    let budget = |of: &str, name: Option<&str>, hours: f64, spent: Value, room: bool| {
        let mut budget = json!({ "of": of, "node_hours": hours, "spent": spent, "has_room": room });
        if let Some(name) = name {
            budget["name"] = json!(name);
        }
        budget
    };
    let own = seen(&service, ALICE, "ocean").await;
    let expected = [
        budget("user", None, 5.0, json!(0.0), true),
        budget("account", Some("physics"), 5.0, Value::Null, true),
        budget("partition", Some("main"), 5.0, Value::Null, true),
        budget("site", None, 0.09, Value::Null, false),
    ];
    assert_eq!(own["budgets"], json!(expected));
    end(&service, &(job.clone(), waits)).await;
    let path = format!("/v1/runs/{}", job.job.job_id);
    let detail = service.user(ALICE).get(&path).await.ok();
    let overrides = &detail[0]["suggestion"]["overrides"];
    assert_eq!(overrides["over_budget"]["of"], "site");
    assert_eq!(overrides["over_budget"].get("spent"), None, "{overrides}");

    for reader in [OPERATOR, ADMIN] {
        let path = "/v1/studies?app=ocean";
        let all = service.user(reader).get(path).await.ok();
        let spent: Vec<f64> = (all[0]["budgets"].as_array().unwrap().iter())
            .map(|one| (one["spent"].as_f64().unwrap() * 100.0).round() / 100.0)
            .collect();
        assert_eq!(
            spent,
            [0.0, 0.07, 0.07, 0.07],
            "Bob's run is the account's, too"
        );
    }
}

/// Control runs and what was chosen are not exploring, however a study goes on.
#[tokio::test]
async fn only_runs_that_explore_are_charged_with_what_they_took() {
    let service = service("user = 100, site = 100").await;
    let default = service.default_of("romio");
    let seconds = |given: &_, number: u32| {
        let noise = 0.2 * f64::from(number % 5);
        if *given == default {
            100.0 + noise
        } else {
            80.0 + noise
        }
    };
    service.tune(ALICE, "app=ocean", 40, seconds).await;
    let runs = history(&service, ALICE, "ocean").await;
    let sum = |of: &dyn Fn(&Value) -> bool| -> f64 {
        let runs = runs.iter().filter(|run| of(run));
        runs.map(|run| run["elapsed"].as_f64().unwrap()).sum()
    };
    assert!(sum(&|run| run["role"] == "control") > 0.0, "{runs:?}");
    let exploring = sum(&|run| explores(run));
    assert!(exploring > 0.0);
    for budget in ["user", "site"] {
        let spent = format!(
            "select round(node_seconds * 1000)::bigint from exploring_spent where budget_of = '{budget}'"
        );
        #[expect(clippy::cast_possible_truncation, reason = "some thousand seconds")]
        let expected = (exploring * 1000.0).round() as i64;
        assert_eq!(service.database.number(&spent).await, expected, "{budget}");
    }
    let metrics = service.metrics().await;
    let line = "io_autotune_exploring_node_hours_today{budget=\"site\"} 0.";
    assert!(metrics.contains(line), "{metrics}");
}

/// Attack (floods): Jobs of many studies start at once, by two replicas, each before the others are
/// counted.
/// Outcome: No budget for exploring is exceeded.
#[tokio::test]
async fn starts_at_once_by_two_replicas_stay_within_a_budget() {
    let one = Arc::new(service("site = 0.6").await);
    let two = Arc::new(one.replica().await);
    let mut jobs = Vec::new();
    for number in 0..24 {
        let (uid, request) = ([ALICE, BOB][number % 2], format!("app=a{number}"));
        measured(&one, uid, &request).await;
        jobs.push(one.job(uid, &request));
    }
    let mut starting = JoinSet::new();
    for (job, service) in jobs.into_iter().zip([&one, &two].into_iter().cycle()) {
        let service = Arc::clone(service);
        starting.spawn(async move {
            loop {
                let answer = job.try_start(&service).await;
                // Every connection is busy: a node asks again.
                if answer.status != 503 {
                    return answer.read::<StartAnswer>();
                }
            }
        });
    }
    let started = starting.join_all().await;
    let exploring = started.iter().filter(|one| tries(one)).count();
    // 0.6 hours are 8 times 253 s. A start that cannot wait for others explores nothing.
    assert!((1..=8).contains(&exploring), "{exploring}");
    let spent = "select sum(node_seconds)::bigint from exploring_spent";
    assert!(one.database.number(spent).await <= 2160);
    let charged = "select count(*) from exploring_charges";
    assert_eq!(
        one.database.number(charged).await,
        i64::try_from(exploring).unwrap()
    );
}
