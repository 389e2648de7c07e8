//! Lives of jobs of all kinds in many studies, about which the nightly report and the service have
//! to agree: `analysis/report/tests/test_agreement.py` compares them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;

use io_autotune_protocol::{Applied, EpilogOutcome, ObservedParameter, Outcome, StartAnswer};
use serde_json::{Value, json};

use super::super::{ADMIN, CLUSTER, COLLECTOR, TestJob, TestService};

/// The directory in which that test wants a directory for each round, and the program that makes a
/// report there: it is given the database's URL and the directory.
const ROUNDS: &str = "AGREEMENT_ROUNDS";
const REPORT: &str = "AGREEMENT_REPORT";

/// So that studies settle, and drift is believed, within a few dozen runs. A run whose outcome comes
/// late is judged before, and again after.
const SETTINGS: &str = "[slurm]\nsources = [\"jobcomp\"]\n[reconcile]\npatience_seconds = 0\n\
    [study]\nbaseline_runs = 2\nbudget = 8\ncontrol_every = 2\n\
    [study.engine.drift]\nrest = 10\nfalse_alarms = 10.0\nbudget = 4\n";

const UID: u32 = 1000;

/// The seed of the hashes that decide everything random.
const SEED: u64 = 3;

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Jobs of a number of applications, a number of each in a round.
struct Lives {
    studies: u32,
    lives: u32,
}

impl Lives {
    fn application(&self, job_id: u32) -> u32 {
        (job_id - 1) % self.studies
    }

    /// Returns true if an application is among the percentage that has a peculiarity.
    fn is_one(&self, of_hundred: u64, peculiarity: &str, job_id: u32) -> bool {
        hash(&(SEED, peculiarity, self.application(job_id))) % 100 < of_hundred
    }

    /// The seconds that a job takes: an application's parametrization has 16 to 24 of its own, and each
    /// run differs by up to 5 %. Some applications do two works in turn, some get slower in the second
    /// round under what was tuned.
    fn elapsed(&self, started: &StartAnswer, job_id: u32) -> f64 {
        let key = started.parametrization.key();
        let level = hash(&(SEED, self.application(job_id), &key)) % 8_000;
        let noise = hash(&(SEED, &key, job_id)) % 11;
        #[expect(clippy::cast_precision_loss, reason = "they are small")]
        let elapsed = (16_000 + level) as f64 / 1e3 * (95 + noise) as f64 / 100.0;
        let is_other_work =
            self.is_one(25, "mixed", job_id) && hash(&(SEED, "work", job_id)).is_multiple_of(2);
        let is_slow = !started.delivery.is_empty()
            && job_id / self.studies >= self.lives
            && self.is_one(50, "drifting", job_id);
        elapsed * if is_other_work { 3.0 } else { 1.0 } * if is_slow { 2.0 } else { 1.0 }
    }

    /// The state in which the job ends according to Slurm.
    fn end(&self, started: &StartAnswer, job_id: u32) -> &'static str {
        if !self.is_one(60, "failing", job_id) {
            return "COMPLETED";
        }
        match hash(&(SEED, "end", job_id)) % 20 {
            0 | 1 => "FAILED",
            2 if !started.delivery.is_empty() => "OUT_OF_MEMORY",
            3 => "TIMEOUT",
            _ => "COMPLETED",
        }
    }

    /// The report of a profiling library in the job: some applications set one of the parameters
    /// themselves.
    fn observed(&self, started: &StartAnswer, job_id: u32) -> Vec<ObservedParameter> {
        let read_back = &started.delivery.read_back;
        if read_back.is_empty() || !self.is_one(20, "overriding", job_id) {
            return Vec::new();
        }
        let place = hash(&(SEED, "overridden", self.application(job_id)));
        let asked = &read_back[usize::try_from(place).unwrap() % read_back.len()];
        vec![ObservedParameter {
            parameter: asked.parameter.clone(),
            name: asked.name.clone(),
            asked: asked.asked.clone(),
            in_force: "own".into(),
            as_asked: asked.asked.is_none(),
        }]
    }

    /// Runs all jobs, of each application one at a time; outcomes come before the reports, or late.
    async fn live(&self, service: &TestService, round: u32) {
        let first = 1 + round * self.studies * self.lives;
        let mut late = Vec::new();
        for turn in 0..self.lives {
            let mut flying = Vec::new();
            for study in 0..self.studies {
                let job = self.job(service, first + turn * self.studies + study);
                flying.push((job.start(service).await, job));
            }
            for (started, job) in flying {
                let job_id = job.job.job_id;
                let state = self.end(&started, job_id);
                let outcome = Outcome {
                    job_id,
                    state: state.into(),
                    restart_count: Some(0),
                    ..Outcome::default()
                };
                let is_late = hash(&(SEED, "late", job_id)).is_multiple_of(2);
                match state != "COMPLETED" && is_late {
                    true => late.push(outcome),
                    false => tell(service, vec![outcome]).await,
                }
                self.report(service, &job, &started, state).await;
            }
            service.poll().await;
        }
        tell(service, late).await;
    }

    fn job(&self, service: &TestService, job_id: u32) -> TestJob {
        let mut job = service.job(UID, &format!("app=load-{}", self.application(job_id)));
        job.job.job_id = job_id;
        job.job.node = format!("n{}", job_id % 4 + 1);
        job
    }

    async fn report(
        &self,
        service: &TestService,
        job: &TestJob,
        started: &StartAnswer,
        state: &str,
    ) {
        let job_id = job.job.job_id;
        let mut report = job.reports(Some(started), self.elapsed(started, job_id));
        report.observed = self.observed(started, job_id);
        if report.observed.iter().any(|one| !one.as_asked) {
            report.applied = Applied::Incomplete {
                detail: "the application has a value of its own in force".into(),
            };
        }
        let has_failed = matches!(state, "FAILED" | "OUT_OF_MEMORY");
        report.steps[0].wait_status = i32::from(has_failed) << 8;
        let exit_code = if has_failed { "1:0" } else { "0:0" };
        report.epilog = Some(EpilogOutcome {
            exit_code: exit_code.into(),
            derived_exit_code: exit_code.into(),
            limit_seconds: Some(3600),
        });
        job.finish(service, &report).await;
    }

    /// Accepts, pins and resets an eighth of the studies each.
    async fn steer(&self, service: &TestService, round: u32) {
        let mut chosen: Vec<u32> = (0..self.studies).collect();
        chosen.sort_by_key(|study| hash(&(SEED, "steered", round, study)));
        let each = usize::try_from(self.studies / 8).unwrap();
        let orders = [
            ("accept", json!({ "why": "one application's" })),
            (
                "pin",
                json!({ "values": { "cb_nodes": "2" }, "why": "it is to be known" }),
            ),
            ("reset", json!({ "why": "other work" })),
        ];
        for (chosen, (order, body)) in chosen.chunks(each.max(1)).zip(orders) {
            for study in chosen.iter().take(each) {
                let study = service.study_id(&format!("load-{study}")).await;
                let path = format!("/v1/studies/{study}/{order}");
                service.user(ADMIN).post(&path, &body).await.ok();
            }
        }
    }
}

/// Delivers outcomes, as the collector does.
async fn tell(service: &TestService, outcomes: Vec<Outcome>) {
    let body = json!({ "cluster": CLUSTER, "outcomes": outcomes });
    service
        .user(COLLECTOR)
        .post("/v1/outcomes", body)
        .await
        .ok();
}

/// Runs rounds until every run has its verdict and every epoch, also one without runs, is assessed.
async fn is_judged(service: &TestService) {
    let unsettled =
        "select (select count(*) from runs where state = 'in_flight' or changes > judged_changes)
                          + (select count(*) from epochs where evidence is null)";
    for _ in 0..20 {
        service.sweep().await;
        if service.database.number(unsettled).await == 0 {
            return;
        }
    }
    panic!("some runs have no verdict, or some epochs no assessment");
}

/// Jobs end well, fail, run out of memory, are cut short; applications do two works in turn, override
/// what they are given, get slower. After each round some studies are accepted, pinned and reset.
///
/// Alone this is a short one. `test_agreement.py` wants one in which each kind of finding occurs, and
/// a report after each round.
#[tokio::test]
async fn lives_of_all_kinds_are_judged_and_their_studies_assessed() {
    let rounds = std::env::var_os(ROUNDS).map(PathBuf::from);
    let (studies, lives) = if rounds.is_some() { (16, 36) } else { (3, 6) };
    let lives = Lives { studies, lives };
    let service = TestService::with(SETTINGS).await;
    for round in 0..2 {
        lives.live(&service, round).await;
        is_judged(&service).await;
        lives.steer(&service, round).await;
        let served = service.user(ADMIN).get("/v1/studies").await.ok();
        let served_studies = served.as_array().unwrap();
        assert_eq!(
            served_studies.len(),
            usize::try_from(lives.studies).unwrap()
        );
        for study in served_studies {
            assert!(
                study["assessment"]["gain"]["verdict"].is_string(),
                "{study}"
            );
            assert_eq!(study["in_flight"], 0, "{study}");
        }
        if let Some(rounds) = &rounds {
            compare_later(&service, &rounds.join(format!("round-{round}")), &served);
        }
    }
    let counted = "select count(*) from runs where state = 'counted'";
    assert!(service.database.number(counted).await > i64::from(lives.studies * lives.lives));
}

/// Stores the service's answer about all studies, and has the report made of the same database.
fn compare_later(service: &TestService, directory: &std::path::Path, served: &Value) {
    std::fs::create_dir(directory).unwrap();
    std::fs::write(directory.join("served.json"), served.to_string()).unwrap();
    let report = std::env::var_os(REPORT).unwrap();
    let status = Command::new(report)
        .arg(of_libpq(&service.database.url()))
        .arg(directory)
        .status();
    assert!(status.unwrap().success(), "no report was made");
}

/// A URL without the parameter that libpq does not know.
fn of_libpq(url: &str) -> String {
    let (place, parameters) = url.split_once('?').unwrap();
    let parameters = parameters.split('&');
    let known = parameters.filter(|one| !one.starts_with("statement-cache-capacity"));
    format!("{place}?{}", known.collect::<Vec<_>>().join("&"))
}
