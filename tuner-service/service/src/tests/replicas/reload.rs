//! A new configuration without a restart: what changes, what waits, and that no start is missed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::*;

/// Returns true if a user may see the service's own checks.
async fn may_examine(service: &TestService, uid: u32) -> bool {
    service.user(uid).get("/v1/doctor").await.status == 200
}

/// The keys that a reload has logged as changed, and those as waiting for a restart.
fn said(log: &Log) -> [String; 2] {
    let lines = log.read();
    ["changed", "waiting"].map(|key| {
        let mut found = lines.iter().filter_map(|line| line[key].as_str());
        found.next().unwrap_or_default().to_owned()
    })
}

/// Returns true if the metrics report that the last reload was refused. A text of the metrics is
/// kept for a second.
async fn is_refused(service: &TestService) -> bool {
    service.advance(Duration::from_secs(2)).await;
    let text = service.metrics().await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("io_autotune_reload_refused "));
    line.unwrap() == "1"
}

/// Writes the service's file anew, with `new` in the place of `old`.
async fn write(service: &TestService, old: &str, new: &str) {
    let path = service.files.path("service.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{text}");
    std::fs::write(&path, text.replace(old, new)).unwrap();
    service.hang_up().await;
}

#[tokio::test]
async fn a_reload_changes_what_it_can_and_names_what_waits() {
    let service = TestService::new().await;
    let log = Log::listen();
    service.hang_up().await;
    let last = log.read().pop().unwrap();
    assert_eq!(
        last,
        json!({"message": "the configuration is reloaded", "changed": ""})
    );
    assert!(!may_examine(&service, ALICE).await);
    let admins = format!("[access]\nadmins = [{ADMIN}, {ALICE}]\n");
    log.read();
    service.reload(&admins).await;
    assert_eq!(said(&log), ["access.admins", ""]);
    assert!(may_examine(&service, ALICE).await);
    assert!(!may_examine(&service, BOB).await);
    // Changes of a listener and of the database wait; the other changes do not.
    let more =
        "[listen]\nhost_connections = 63\n[database]\nconnections = 15\n[users]\nstudies = 5\n";
    log.read();
    service.reload(more).await;
    assert_eq!(
        said(&log),
        [
            "access.admins, users.studies",
            "database.connections, listen.host_connections"
        ]
    );
    assert!(!may_examine(&service, ALICE).await);
}

/// A wrong file changes nothing; the log names the mistake and a likely correction, and the metric
/// stays until it is corrected.
#[tokio::test]
async fn a_file_that_is_wrong_changes_nothing() {
    let service = TestService::new().await;
    let admins = format!("[access]\nadmins = [{ADMIN}, {ALICE}]\n");
    service.reload(&admins).await;
    let log = Log::listen();
    for (right, wrong, told) in [
        ("admins", "adminz", "did you mean `admins`?"),
        (
            "default = \"romio\"",
            "default = \"nothing\"",
            "not in the catalogue",
        ),
        (
            "in_flight = 64",
            "in_flight = 0",
            "in_flight = 0: at least 1 is expected",
        ),
        ("default = \"romio\"", "default = 5", "default"),
        ("[users]", "[[users]", "service.toml"),
        (
            "default = \"romio\"",
            "otherwise = [\"romio\"]\ndefault = \"romio\"",
            "[accelerators] otherwise: \"romio\" cannot be chosen",
        ),
        (
            "[users]",
            "[applications]\nrules = \"/nowhere/rules.toml\"\n[users]",
            "[applications] rules",
        ),
        (
            "[users]",
            "[retention]\ndays = 3\n[users]",
            "[retention] days = 3",
        ),
        ("[users]", "[study]\nbudget = -1\n[users]", "budget"),
    ] {
        log.read();
        write(&service, right, wrong).await;
        let refused = log.read().pop().unwrap();
        assert_eq!(
            refused["message"],
            "the configuration is not reloaded: the one in force stays as it is"
        );
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(told), "{error}");
        assert!(may_examine(&service, ALICE).await);
        assert!(is_refused(&service).await, "{wrong}");
        service.job(BOB, "app=ocean").start(&service).await;
        write(&service, wrong, right).await;
        assert!(!is_refused(&service).await);
        assert!(may_examine(&service, ALICE).await);
    }
    // A file that is missing, as while an editor writes it.
    let path = service.files.path("service.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    log.read();
    service.hang_up().await;
    let refused = log.read().pop().unwrap();
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("cannot read the configuration")
    );
    assert!(may_examine(&service, ALICE).await);
    std::fs::write(&path, text).unwrap();
}

/// Checks for each key of service.toml that a reload puts it in force, or that it waits for a
/// restart.
#[tokio::test]
async fn each_key_changes_at_once_or_waits_for_a_restart() {
    let service = TestService::new().await;
    for (key, value) in [
        ("access.admins", "[\"@root\"]"),
        ("access.operators", "[9]"),
        ("access.report_readers", "[9]"),
        ("access.collectors", "[\"root\"]"),
        ("access.burst_buffers", "[9]"),
        ("accelerators.default", "\"page-cache\""),
        ("applications.rules", "\"RULES\""),
        ("report.directory", "\"/nowhere/report\""),
        ("reconcile.poll_seconds", "1.0"),
        ("reconcile.lost_after_seconds", "60"),
        ("retention.days", "40"),
        ("study.budget", "20"),
        ("users.in_flight", "3"),
        ("users.requests_per_second", "5.0"),
        ("users.bytes_per_second", "5e6"),
        ("users.studies", "7"),
    ] {
        let rules = service.files.path("rules.toml");
        std::fs::write(&rules, "").unwrap();
        let value = value.replace("RULES", &rules.display().to_string());
        let (section, name) = key.split_once('.').unwrap();
        // Each has the lines of its own that a log has room for.
        let log = Log::listen();
        service
            .reload(&format!("[{section}]\n{name} = {value}\n"))
            .await;
        assert_eq!(said(&log), [key, ""]);
        service.reload("").await;
        assert_eq!(said(&log), [key, ""], "and back");
    }
    for (key, value) in [
        ("access.check_origins", "true"),
        ("database.connections", "9"),
        ("database.user_connections", "9"),
        ("database.url", "\"postgres://nobody@nowhere/nothing\""),
        ("listen.unix", "\"/elsewhere.sock\""),
        ("listen.nodes_any_port", "true"),
        ("listen.metrics", "\"127.0.0.1:1\""),
        ("munge.socket", "\"/elsewhere.sock\""),
        ("sack.sockets", "[\"/elsewhere.sock\"]"),
        ("slurm.associations", "true"),
        ("slurm.sources", "[]"),
        ("slurm.cluster", "\"beta\""),
    ] {
        let (section, name) = key.split_once('.').unwrap();
        let log = Log::listen();
        service
            .reload(&format!("[{section}]\n{name} = {value}\n"))
            .await;
        assert_eq!(said(&log), ["", key]);
        // The service goes on as before.
        service.job(ALICE, "app=ocean").start(&service).await;
    }
    for (key, value) in [("audience", "\"tests\""), ("auth", "\"slurm\"")] {
        let log = Log::listen();
        service.reload(&format!("{key} = {value}\n")).await;
        let [changed, waiting] = said(&log);
        assert_eq!((changed.as_str(), waiting.as_str()), ("", key));
    }
}

/// A password may be changed in the file and is shown nowhere.
#[tokio::test]
async fn a_database_of_another_password_waits_and_is_named_without_it() {
    let service = TestService::new().await;
    let log = Log::listen();
    let url = service.database.url();
    let other = url.replacen("://", "://someone:hushed@", 1);
    service
        .reload(&format!("[database]\nurl = {other:?}\n"))
        .await;
    let lines = log.read();
    let text = serde_json::to_string(&lines).unwrap();
    assert!(text.contains("database.url"), "{text}");
    assert!(!text.contains("hushed"), "{text}");
    service.job(ALICE, "app=ocean").start(&service).await;
}

#[tokio::test]
async fn what_users_may_have_is_in_force_at_the_next_request() {
    let service = TestService::new().await;
    let start = async |app: &str| {
        let job = service.job(ALICE, &format!("app={app}"));
        job.try_start(&service).await
    };
    start("one").await.ok();
    start("two").await.ok();
    service.reload("[users]\nstudies = 2\n").await;
    let told = start("three").await.refused(422, "too_many_studies");
    assert!(
        told.contains("the user has 2 studies, the most of a user"),
        "{told}"
    );
    start("one").await.ok();
    service.reload("").await;
    start("three").await.ok();
}

#[tokio::test]
async fn another_default_accelerator_is_what_the_next_job_gets() {
    let service = TestService::new().await;
    let accelerator = async || {
        let job = service.job(ALICE, "app=ocean");
        job.start(&service).await;
        let run = service.run_of(job.job.job_id).await;
        run["run"]["accelerator"].clone()
    };
    assert_eq!(accelerator().await, "romio");
    service
        .reload("[accelerators]\ndefault = \"page-cache\"\n")
        .await;
    assert_eq!(accelerator().await, "page-cache");
    service.reload("").await;
    assert_eq!(accelerator().await, "romio");
}

/// A run of a job that squeue does not list.
#[tokio::test]
async fn what_reconciliation_goes_by_is_in_force_at_the_next_sweep() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    service
        .reload("[reconcile]\npatience_seconds = 72000\n")
        .await;
    service.advance(Duration::from_hours(1)).await;
    service.sweep().await;
    let state = async || service.run_of(job.job.job_id).await["run"]["state"].clone();
    assert_eq!(state().await, "in_flight");
    service.reload("").await;
    service.sweep().await;
    assert_ne!(state().await, "in_flight");
}

#[tokio::test]
async fn rules_of_sharing_are_in_force_at_the_next_sweep() {
    let service = TestService::new().await;
    for name in ["games", "mail"] {
        let uid = nix::unistd::User::from_name(name).unwrap().unwrap().uid;
        service
            .job(uid.as_raw(), "app=ocean")
            .runs(&service, 10.0)
            .await;
    }
    let shares = "select count(*) from studies where share is not null";
    service.follow_sharing().await;
    assert_eq!(service.database.number(shares).await, 0);
    // Both are in the group of no account but their own: one of them shares with itself alone.
    service
        .reload("[[sharing]]\napplications = [\"oce*\"]\ngroup = \"games\"\n")
        .await;
    service.follow_sharing().await;
    assert_ne!(service.database.number(shares).await, 0);
    service.reload("").await;
    service.follow_sharing().await;
    assert_eq!(service.database.number(shares).await, 0);
}

/// The catalogue and the rules are read as they change, and a new directory when the configuration says
/// so.
#[tokio::test]
async fn another_directory_of_the_catalogue_is_in_force_at_once() {
    let service = TestService::new().await;
    let names = async || {
        let list = service.user(ALICE).get("/v1/accelerators").await.ok();
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(names().await.contains(&"page-cache".to_owned()));
    let directory = service.files.path("catalogue");
    std::fs::create_dir(&directory).unwrap();
    let shipped = service.catalogue().join("romio.toml");
    std::fs::copy(shipped, directory.join("romio.toml")).unwrap();
    let directory = directory.display().to_string();
    service
        .reload(&format!("[accelerators]\ndirectory = {directory:?}\n"))
        .await;
    assert_eq!(names().await, ["romio"]);
    let gone = service.job(ALICE, "app=ocean,accelerator=page-cache");
    gone.try_start(&service)
        .await
        .refused(422, "unknown_accelerator");
}

/// A request that came before a reload is answered with the configuration of its arrival.
#[tokio::test]
async fn requests_in_flight_keep_the_configuration_that_they_came_to() {
    let service = TestService::new().await;
    let asking = service.user(ADMIN).get("/v1/doctor");
    let mut asking = std::pin::pin!(asking);
    // It has come in, and waits for its credential to be read.
    let pending = polled_once(asking.as_mut()).await;
    assert!(pending.is_none());
    service.reload("[access]\nadmins = []\n").await;
    asking.await.ok();
    service.user(ADMIN).get("/v1/doctor").await.forbidden();
}

/// Polls once.
async fn polled_once<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn no_start_is_missed_while_the_configuration_is_reloaded() {
    const RELOADS: usize = 50;
    // The number of starts at a time, and how many times.
    const STARTS: [usize; 2] = [9, 20];
    let service = Arc::new(TestService::new().await);
    let mut starting = JoinSet::new();
    for number in 0..STARTS[0] {
        let service = Arc::clone(&service);
        starting.spawn(async move {
            for _ in 0..STARTS[1] {
                let job = service.job(ALICE, &format!("app=reloads-{}", number % 3));
                job.start(&service).await;
            }
        });
    }
    let log = Log::listen();
    for number in 0..RELOADS {
        let rate = 1000 + number % 2;
        service
            .reload(&format!("[users]\nrequests_per_second = {rate}.0\n"))
            .await;
        assert_eq!(said(&log)[0], "users.requests_per_second");
    }
    starting.join_all().await;
    let runs = "select count(*) * 1000 + count(distinct job_id) from runs";
    assert_eq!(service.database.number(runs).await, 180_180);
}

#[tokio::test]
async fn how_long_runs_are_kept_is_in_force_at_the_next_request() {
    let service = TestService::new().await;
    let would = json!({"dry_run": true, "why": "a test"});
    let ask = async || service.user(ADMIN).post("/v1/retention", &would).await;
    ask().await.bad_request();
    service.reload("[retention]\ndays = 40\n").await;
    assert_eq!(ask().await.ok()["older_than_days"], 40);
    service.reload("").await;
    ask().await.bad_request();
}

#[tokio::test]
async fn how_studies_search_is_in_force_at_once_for_those_that_are_there() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let budget = async || service.study("ocean").await["explored"][1].clone();
    assert_eq!(budget().await, 50);
    service.reload("[study]\nbudget = 20\n").await;
    assert_eq!(budget().await, 20);
}
