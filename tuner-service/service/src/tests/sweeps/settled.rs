//! Studies that have settled: drift, and stretches in which everything is slow.

use io_autotune_engine::{Phase, Role};

use super::*;

const AT_ONCE: u32 = 10;
const MOST_RUNS: usize = 300;

/// The seconds of a run, with a little noise.
fn noisy(seconds: f64, number: u32) -> f64 {
    seconds * (1.0 + 0.01 * f64::from(number % 7))
}

/// Runs jobs until a study has settled and has this number of settled runs; returns all runs.
async fn until_settled(
    service: &TestService,
    application: &str,
    settled: usize,
    [default, tuned]: [f64; 2],
) -> Vec<StartAnswer> {
    let request = format!("app={application}");
    let mut runs: Vec<StartAnswer> = Vec::new();
    let is_settled = |one: &&StartAnswer| one.phase == Phase::Settled;
    while runs.iter().filter(is_settled).count() < settled {
        assert!(runs.len() < MOST_RUNS, "it does not settle");
        runs.extend(some(service, &request, [default, tuned]).await);
    }
    runs
}

/// Runs some jobs that take `default` seconds with the default, and `tuned` with any other
/// parametrization.
async fn some(
    service: &TestService,
    request: &str,
    [default, tuned]: [f64; 2],
) -> Vec<StartAnswer> {
    let of_default = service.default_of("romio");
    beside(service, request, AT_ONCE, |given, number| {
        let is_default = *given == of_default;
        noisy(if is_default { default } else { tuned }, number)
    })
    .await
}

#[tokio::test]
async fn a_settled_study_goes_on_while_runs_are_slow_for_a_stretch() {
    const GROUP: usize = 4;
    let (quiet, busy) = ([0.5, 0.3], [2.5, 1.5]);
    let service = TestService::with(QUICK).await;
    until_settled(&service, "busy", 1, quiet).await;
    assert_eq!(service.study("busy").await["warnings"], json!([]));
    let mut slow: Vec<StartAnswer> = Vec::new();
    let before = history(&service, ADMIN, "busy").await.len();
    let controls = async || {
        let runs = history(&service, ADMIN, "busy").await;
        let runs = runs.into_iter().skip(before);
        runs.filter(|run| run["role"] == "control").count()
    };
    while controls().await < GROUP || slow.len() < 2 * GROUP {
        assert!(slow.len() < 60);
        slow.extend(some(&service, "app=busy", busy).await);
    }
    // How other runs fare is recorded each half minute: some runs have to differ in it.
    let recorded = "select count(*) from surroundings";
    let known = service.database.number(recorded).await;
    service.advance(31 * SECOND).await;
    service.sweep().await;
    assert_eq!(service.database.number(recorded).await, known + 1);
    some(&service, "app=busy", busy).await;
    some(&service, "app=busy", quiet).await;
    let runs = history(&service, ADMIN, "busy").await;
    for run in &runs[before..] {
        assert!(
            run["role"] == "settled" || run["role"] == "control",
            "{run}"
        );
        assert_eq!(run["state"], "counted", "{run}");
    }
    let study = service.study("busy").await;
    let [warning] = study["warnings"].as_array().unwrap().as_slice() else {
        panic!("one warning: {study}");
    };
    let warning = warning.as_str().unwrap();
    assert!(
        warning.contains("gather around two times") || warning.contains("vary by"),
        "{warning}"
    );
    assert!(warning.contains("the machine was busy"), "{warning}");
    assert!(warning.contains("tuning goes on"), "{warning}");
    assert!(warning.contains("io-autotune accept study:"), "{warning}");
}

#[tokio::test]
async fn how_others_fare_is_recorded_once_in_half_a_minute() {
    let service = TestService::with(QUICK).await;
    for _ in 0..3 {
        service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    }
    let recorded = "select count(*) from surroundings";
    for (seconds, expected) in [(0, 1), (25, 1), (6, 2)] {
        service.advance(seconds * SECOND).await;
        service.sweep().await;
        assert_eq!(
            service.database.number(recorded).await,
            expected,
            "{seconds} s later"
        );
    }
    // Nobody's run ended in the last half hour.
    service.advance(Duration::from_mins(31)).await;
    service.sweep().await;
    assert_eq!(service.database.number(recorded).await, 2);
}

const BEFORE: [f64; 2] = [0.9, 0.3];
const SINCE: [f64; 2] = [0.9, 1.8];

/// A change is not believed before 50 settled runs.
const SETTLED: usize = 60;

/// Runs jobs for which the study's choice is not the best any more, until it has opened an epoch,
/// or this number has run. Returns true if it has.
async fn until_noticed(service: &TestService, runs: usize) -> bool {
    for _ in 0..runs / AT_ONCE as usize {
        some(service, "app=drift", SINCE).await;
        if service.study("drift").await["epoch"] != 1 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn what_got_slower_opens_an_epoch_that_starts_from_the_old_ranks() {
    let service = TestService::with(QUICK).await;
    until_settled(&service, "drift", SETTLED, BEFORE).await;
    let before = service.study("drift").await;
    assert_eq!(before["epoch"], 1, "nothing has changed: {before}");
    assert_ne!(
        before["differs"],
        json!({}),
        "the default is three times as slow"
    );
    assert!(
        until_noticed(&service, 60).await,
        "nothing is noticed within 60 runs"
    );
    // One after another, so that the first run of the epoch is known.
    let in_epoch = async |epoch: u32| {
        let runs = history(&service, ALICE, "drift").await;
        let runs = runs.into_iter().filter(|run| run["epoch"] == epoch);
        runs.collect::<Vec<_>>()
    };
    let of_role = |runs: &[Value], role: &str| {
        let found = runs.iter().find(|run| run["role"] == role);
        found.cloned()
    };
    let mut second = in_epoch(2).await;
    while of_role(&second, "design").is_none() {
        assert!(second.len() < 20, "it does not explore");
        service.job(ALICE, "app=drift").runs(&service, 0.5).await;
        second = in_epoch(2).await;
    }
    let why = second[0]["epoch_opened_why"].as_str().unwrap();
    assert!(why.contains("drift"), "{why}");
    assert_eq!(
        second[0]["role"], "baseline",
        "the default has to be known anew"
    );
    let design = of_role(&second, "design").unwrap();
    let path = "/v1/runs?app=drift&state=counted";
    let mut tried = Vec::new();
    let mut before = String::new();
    loop {
        let page = service
            .user(ALICE)
            .get(&format!("{path}{before}"))
            .await
            .ok();
        let page = page.as_array().unwrap().clone();
        let Some(oldest) = page.first() else {
            break;
        };
        before = format!("&before={}", oldest["run_id"]);
        let first = page.iter().filter(|run| run["epoch"] == 1);
        tried.extend(first.map(|run| run["parametrization"].clone()));
    }
    assert!(
        tried.contains(&design["parametrization"]),
        "what was ranked best before goes first"
    );
}

#[tokio::test]
async fn a_pinned_study_is_not_watched_until_its_pin_is_over() {
    let service = TestService::with(QUICK).await;
    until_settled(&service, "drift", SETTLED, BEFORE).await;
    let study = service.study_id("drift").await;
    let until = service.now() + jiff::SignedDuration::from_hours(1);
    let pin = json!({ "values": null, "until": until, "why": "a test asks for it" });
    order(&service, study, "pin", pin).await;
    assert!(!until_noticed(&service, 40).await, "it is pinned");
    service.advance(Duration::from_hours(2)).await;
    assert!(until_noticed(&service, 80).await, "its pin is over");
}

#[tokio::test]
async fn looking_for_drift_that_fails_takes_no_verdict_back() {
    let service = TestService::with(QUICK).await;
    until_settled(&service, "drift", SETTLED, BEFORE).await;
    let trigger = "create function refuse() returns trigger language plpgsql as $$
         begin raise exception 'a test refuses it'; end $$;
         create trigger refuse before insert on epochs for each row execute function refuse()";
    service.database.execute(trigger).await;
    let log = Log::listen();
    assert!(!until_noticed(&service, 60).await);
    let warned = log.warnings("looking for drift has to wait");
    assert!(!warned.is_empty(), "nothing is noticed within 60 runs");
    let waiting = "select count(*) from runs where state <> 'counted'";
    assert_eq!(service.database.number(waiting).await, 0);
    service
        .database
        .execute("drop trigger refuse on epochs")
        .await;
    assert!(
        until_noticed(&service, 10).await,
        "the next verdict looks again"
    );
}

#[tokio::test]
async fn a_control_run_is_told_when_it_has_ended() {
    let service = TestService::with(QUICK).await;
    until_settled(&service, "ocean", 1, BEFORE).await;
    service.draw(Some(0.0));
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    assert_eq!(started.role, Role::Control);
    let in_flight = history(&service, ALICE, "ocean").await;
    assert_eq!(in_flight.last().unwrap()["role"], Value::Null);
    job.finish(&service, &job.reports(Some(&started), 0.9))
        .await;
    job.ends(&service, "COMPLETED", 0.9);
    service.poll().await;
    let ended = history(&service, ALICE, "ocean").await;
    assert_eq!(ended.last().unwrap()["role"], "control");
}
