//! Tests of doctor, health, readiness and the metrics.

mod health;
mod hosts;
mod metrics;
mod site;

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_protocol::{Check, CheckState, Diagnosis, NodeState};

use super::{ADMIN, ALICE, BOB, BURST_BUFFER, COLLECTOR, TestJob, TestService};

/// The checks of doctor, by name.
struct Checks(BTreeMap<String, Check>);

impl Checks {
    /// Asks as an admin. Every check that has found something has a remedy, and no other has one.
    async fn of(service: &TestService) -> Self {
        let diagnosis: Diagnosis = service.user(ADMIN).get("/v1/doctor").await.read();
        let checks = diagnosis.checks.into_iter();
        let checks: Vec<_> = checks.map(|check| (check.name.clone(), check)).collect();
        for (_, check) in &checks {
            let is_ok = check.state == CheckState::Ok;
            assert_eq!(is_ok, check.fix.is_none(), "{check:?}");
            assert!(!check.detail.is_empty(), "{check:?}");
        }
        let named: BTreeMap<_, _> = checks.iter().cloned().collect();
        assert_eq!(named.len(), checks.len(), "two of one name: {checks:?}");
        Self(named)
    }

    #[track_caller]
    fn check(&self, name: &str) -> &Check {
        let names = self.0.keys();
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not among {names:?}"))
    }

    /// The detail of a check that is in this state, and its remedy.
    #[track_caller]
    fn found(&self, name: &str, state: CheckState) -> (&str, &str) {
        let check = self.check(name);
        assert_eq!(check.state, state, "{check:?}");
        (&check.detail, check.fix.as_deref().unwrap_or_default())
    }

    #[track_caller]
    fn ok(&self, name: &str) -> &str {
        self.found(name, CheckState::Ok).0
    }

    #[track_caller]
    fn warning(&self, name: &str) -> (&str, &str) {
        self.found(name, CheckState::Warning)
    }

    #[track_caller]
    fn failed(&self, name: &str) -> (&str, &str) {
        self.found(name, CheckState::Failed)
    }
}

impl TestService {
    /// The report of a node that is well.
    fn node_state(&self) -> NodeState {
        NodeState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            told_at: self.now(),
            plugin: Some(vec!["default=off".into()]),
            waiting: 0,
            oldest_seconds: 0,
            refused: 0,
            spool_problem: None,
        }
    }

    /// A node starts a run and sends this report with it.
    async fn hear(&self, node: &str, state: NodeState) {
        let mut job = self.job(ALICE, "app=doctor,mode=observe");
        job.job.node = node.into();
        let mut asks = job.asks();
        asks.node_state = Some(state);
        self.node().post("/v1/runs/start", asks).await.ok();
    }
}

/// Closes a service's database to [its role](TestService::replica_of_its_role): what it has open is
/// cut off, and nothing is opened any more.
async fn lose_database(service: &TestService) {
    service
        .database
        .execute(
            "do $$ begin execute format('revoke connect on database %I from \"io-autotune\"', current_database()); end $$;
             select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where usename = 'io-autotune' and datname = current_database()",
        )
        .await;
}

/// Opens it again.
async fn give_database_back(service: &TestService) {
    service
        .database
        .execute(
            "do $$ begin execute format('grant connect on database %I to \"io-autotune\"', current_database()); end $$",
        )
        .await;
}

/// The names of all checks.
const CHECKS: [&str; 18] = [
    "accelerators",
    "accounts and coordinators",
    "caches",
    "database",
    "database clock",
    "munge on the service's host",
    "nodes",
    "nodes' clocks",
    "nodes' spools",
    "outcome source squeue",
    "outcomes without a run",
    "plugin on nodes",
    "prolog and epilog",
    "rules for applications",
    "runs in flight",
    "schema",
    "set apart",
    "suspended jobs",
];

#[tokio::test]
async fn what_is_well_is_said_of_each_part() {
    let site = TestService::with("[slurm]\nassociations = true\n").await;
    let service = site
        .replica_of_its_role("[slurm]\nassociations = true\n")
        .await;
    service
        .slurm()
        .say("sacctmgr-cluster=alpha", "physics|daemon\nphysics|bin\n");
    service
        .slurm()
        .say("sacctmgr-format=Account,Coordinators", "physics|bin\n");
    for node in ["n1", "n2"] {
        service.hear(node, service.node_state()).await;
    }
    service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    let checks = Checks::of(&service).await;
    let names: Vec<&str> = checks.0.keys().map(String::as_str).collect();
    assert_eq!(names, CHECKS);
    for name in CHECKS {
        checks.ok(name);
    }
    let version = env!("CARGO_PKG_VERSION");
    assert!(checks.ok("schema").starts_with("version "));
    assert!(checks.ok("database").ends_with(", as io-autotune"));
    assert_eq!(
        checks.ok("caches"),
        "every epoch's is what its judgements add up to"
    );
    assert_eq!(checks.ok("runs in flight"), "none is older than 7.0 days");
    assert_eq!(checks.ok("outcome source squeue"), "answers");
    assert_eq!(checks.ok("suspended jobs"), "a source tells of them");
    assert_eq!(checks.ok("prolog and epilog"), "slurmd runs the plugin's");
    assert_eq!(
        checks.ok("accounts and coordinators"),
        "2 users in 1 accounts, 1 coordinate"
    );
    assert!(
        checks
            .ok("accelerators")
            .ends_with("; the default is romio")
    );
    assert!(checks.ok("rules for applications").ends_with(", built in"));
    assert_eq!(
        checks.ok("munge on the service's host"),
        "MUNGE: a credential is made and read"
    );
    assert_eq!(
        checks.ok("nodes"),
        format!("2 nodes in the last day, all {version}")
    );
    assert_eq!(checks.ok("nodes' clocks"), "as the service's");
    assert_eq!(
        checks.ok("nodes' spools"),
        "0 reports waited when last heard of"
    );
    assert_eq!(
        checks.ok("plugin on nodes"),
        "the same arguments on 2 nodes"
    );
}

#[tokio::test]
async fn what_is_asked_of_a_clusters_slurm_is_said_of_each_cluster() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    service.slurm_of("beta").silence("squeue");
    let checks = Checks::of(&service).await;
    checks.ok("outcome source squeue of alpha");
    checks.failed("outcome source squeue of beta");
    for name in ["suspended jobs", "prolog and epilog"] {
        checks.ok(&format!("{name} of alpha"));
        checks.ok(&format!("{name} of beta"));
    }
    assert!(!checks.0.contains_key("prolog and epilog"));
    checks.ok("caches");
}

#[tokio::test]
async fn doctor_says_its_version_and_the_services_time() {
    let service = TestService::new().await;
    service.advance(Duration::from_hours(5)).await;
    let before = service.now();
    let diagnosis: Diagnosis = service.user(ADMIN).get("/v1/doctor").await.read();
    assert_eq!(diagnosis.version, env!("CARGO_PKG_VERSION"));
    let time = diagnosis.time.unwrap();
    assert!(before <= time && time <= service.now());
}

#[tokio::test]
async fn a_schema_that_is_older_or_needs_a_newer_program_is_told() {
    let service = TestService::new().await;
    service
        .database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (9999, 'newer', true, '', 0);
             update schema_needs set migration = 9999",
        )
        .await;
    let remedy = "`io-autotuned --migrate URL` as the schema's owner (docs/install.md), and the newest service on all hosts";
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("schema");
    assert!(
        detail.starts_with("the database has schema version 9999, which needs a newer program"),
        "{detail}"
    );
    assert_eq!(fix, remedy);
    // One that needs nothing newer is as good.
    service
        .database
        .execute("update schema_needs set migration = 1")
        .await;
    assert_eq!(Checks::of(&service).await.ok("schema"), "version 9999");
    service
        .database
        .execute(
            "delete from _sqlx_migrations where version = 9999;
             delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)",
        )
        .await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("schema");
    assert!(detail.contains(" and this program needs "), "{detail}");
    assert_eq!(fix, remedy);
}

#[tokio::test]
async fn a_database_role_without_a_right_is_named_with_its_table() {
    let site = TestService::new().await;
    let service = site.replica_of_its_role("").await;
    Checks::of(&service).await.ok("database");
    service
        .database
        .execute("revoke insert on audit from \"io-autotune\"")
        .await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("database");
    assert!(
        detail.ends_with(", as io-autotune, which may not work with audit"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "run deploy/sql/roles.sql as a superuser in the service's database; it may be run again at will"
    );
    service
        .database
        .execute("grant insert on audit to \"io-autotune\"")
        .await;
    Checks::of(&service).await.ok("database");
}

#[tokio::test]
async fn a_superuser_is_warned_of() {
    let service = TestService::new().await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("database");
    assert!(
        detail.ends_with("a superuser: a mistake of the service could change history"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "run deploy/sql/roles.sql, and let [database] url name its role io-autotune"
    );
}

#[tokio::test]
async fn a_database_that_is_away_is_told_by_each_check_that_needs_it() {
    let site = TestService::new().await;
    let service = site.replica_of_its_role("").await;
    Checks::of(&service).await;
    lose_database(&service).await;
    let checks = Checks::of(&service).await;
    for name in [
        "database",
        "database clock",
        "caches",
        "runs in flight",
        "outcomes without a run",
    ] {
        let (detail, fix) = checks.failed(name);
        assert!(detail.contains("refuses the role"), "{name}: {detail}");
        assert_eq!(
            fix,
            "run deploy/sql/roles.sql in the database, and let pg_hba.conf admit the role from this host",
            "{name}"
        );
    }
    checks.failed("schema");
    checks.ok("accelerators");
    give_database_back(&service).await;
    Checks::of(&service).await.ok("database");
}

#[tokio::test]
async fn a_databases_clock_that_is_off_is_told() {
    let service = TestService::new().await;
    service.database.advance(Duration::from_secs(30)).await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("database clock");
    assert!(detail.ends_with(" s off the service's host's"), "{detail}");
    let off: f64 = detail.split(' ').next().unwrap().parse().unwrap();
    assert!((29.0..=30.0).contains(&off), "{detail}");
    assert_eq!(
        fix,
        "let chrony or ntpd set the clocks of both hosts: `chronyc tracking`"
    );
}

#[tokio::test]
async fn clocks_that_jump_together_are_not_off() {
    let service = TestService::new().await;
    service.advance(Duration::from_secs(30)).await;
    let off = Checks::of(&service).await;
    assert!(
        off.ok("database clock")
            .ends_with(" s off the service's host's")
    );
}

#[tokio::test]
async fn a_cache_that_its_judgements_do_not_add_up_to_is_found_and_named() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    Checks::of(&service).await.ok("caches");
    service
        .database
        .execute("update tested set mean = mean * 2")
        .await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("caches");
    let study = service.study_id("ocean").await;
    assert!(
        detail.starts_with(&format!("study {study}, epoch 1: what is known of ")),
        "{detail}"
    );
    assert!(
        detail.ends_with(" is not what its runs add up to"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "`io-autotune reset` lets such a study begin anew; please report it with the service's log"
    );
    service
        .database
        .execute("update tested set mean = mean / 2")
        .await;
    Checks::of(&service).await.ok("caches");
}

#[tokio::test]
async fn each_difference_of_a_cache_is_told_as_what_it_is() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    for (change, back, said) in [
        (
            "update epochs set judgements = 7",
            "update epochs set judgements = 1",
            "it counts 7 judgements and has 1",
        ),
        (
            "update epochs set baseline = baseline + 1",
            "update epochs set baseline = baseline - 1",
            "its tally is ",
        ),
        (
            "update runs set state = 'not_counted'",
            "update runs set state = 'counted'",
            "1 runs have a state that is not their latest judgement's",
        ),
    ] {
        service.database.execute(change).await;
        let checks = Checks::of(&service).await;
        let (detail, _) = checks.failed("caches");
        assert!(detail.contains(said), "{detail}");
        service.database.execute(back).await;
        Checks::of(&service).await.ok("caches");
    }
}

#[tokio::test]
async fn of_many_wrong_caches_five_are_named() {
    let service = TestService::new().await;
    for number in 0..6 {
        let request = format!("app=ocean-{number}");
        service.job(ALICE, &request).completes(&service, 2.0).await;
    }
    service.poll().await;
    service
        .database
        .execute("update tested set mean = mean * 2")
        .await;
    let checks = Checks::of(&service).await;
    let (detail, _) = checks.failed("caches");
    assert_eq!(detail.matches("study ").count(), 5, "{detail}");
    assert!(detail.ends_with("; and 1 more"), "{detail}");
}

#[tokio::test]
async fn a_run_that_waits_for_weeks_is_named_with_what_is_known_of_it() {
    let service = TestService::new().await;
    let silent = service.job(ALICE, "app=ocean,mode=observe");
    silent.start(&service).await;
    let reported = service.job(ALICE, "app=ocean,mode=observe");
    let started = reported.start(&service).await;
    reported
        .finish(&service, &reported.reports(Some(&started), 1.0))
        .await;
    let ended = service.job(ALICE, "app=ocean,mode=observe");
    ended.start(&service).await;
    ended.ends(&service, "COMPLETED", 1.0);
    service.sweep().await;
    assert_eq!(
        Checks::of(&service).await.ok("runs in flight"),
        "none is older than 7.0 days"
    );
    service.advance(Duration::from_hours(31 * 24)).await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("runs in flight");
    assert_eq!(
        detail,
        "job 1 of alpha (run 1), 31 days: not heard of; \
         job 2 of alpha (run 2), 31 days: reported, without Slurm's word; \
         job 3 of alpha (run 3), 31 days: Slurm says COMPLETED"
    );
    assert_eq!(
        fix,
        "let a source of [slurm] sources tell of these jobs: `sacct`, or the job-completion script"
    );
    assert_eq!(
        service
            .database
            .number("select count(*) from runs where state = 'in_flight'")
            .await,
        3
    );
}

#[tokio::test]
async fn how_long_a_run_may_wait_is_what_reconciliation_goes_by() {
    let service = TestService::with("[reconcile]\nlost_after_seconds = 86400\n").await;
    service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(
        Checks::of(&service).await.ok("runs in flight"),
        "none is older than 1.0 days"
    );
    service.advance(Duration::from_hours(25)).await;
    let checks = Checks::of(&service).await;
    assert!(
        checks
            .warning("runs in flight")
            .0
            .contains("job 1 of alpha")
    );
}

#[tokio::test]
async fn outcomes_without_a_run_are_counted() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    let told = "jobs that are not tuned, or whose report is still to come";
    assert_eq!(
        Checks::of(&service).await.ok("outcomes without a run"),
        format!("0: {told}")
    );
    let outcomes = [7, 8].map(|job_id| serde_json::json!({"job_id": job_id, "state": "COMPLETED"}));
    let body = serde_json::json!({"cluster": "alpha", "outcomes": outcomes});
    service
        .user(COLLECTOR)
        .post("/v1/outcomes", body)
        .await
        .ok();
    assert_eq!(
        Checks::of(&service).await.ok("outcomes without a run"),
        format!("2: {told}")
    );
}

#[tokio::test]
async fn a_back_end_that_makes_nothing_for_the_service_is_told() {
    let service = TestService::new().await;
    service.credentials.fail_when_tried(true);
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("munge on the service's host");
    assert!(detail.contains("Invalid credential"), "{detail}");
    assert_eq!(
        fix,
        "start what answers for MUNGE there; its socket may be read and written by the service's account \
         ([munge] or [sack] socket of service.toml)"
    );
    service.credentials.fail_when_tried(false);
    Checks::of(&service).await.ok("munge on the service's host");
}
