//! Jobs as nodes and Slurm report them.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_catalogue::Catalogue;
use io_autotune_engine::Parametrization;
use io_autotune_protocol::{
    Applied, EpilogOutcome, FinishAnswer, FinishRequest, Job, ObservedParameter, Request,
    StartAnswer, StartRequest, Step, VariableState,
};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::Answer;
use super::service::{ADMIN, CLUSTER, TestService};
use super::slurm::Queued;

/// One launch of a job. Its fields may be changed where a test needs another job.
#[derive(Clone, Debug)]
pub(crate) struct TestJob {
    pub(crate) job: Job,
    pub(crate) request: Request,
    pub(crate) limit_seconds: Option<u64>,
    pub(crate) started_at: Timestamp,
    /// The account that squeue lists.
    pub(crate) account: String,
}

impl TestService {
    /// A job of one node that is about to start. `request` is what the plugin sends, such as
    /// `app=ocean,accelerator=page-cache`.
    pub(crate) fn job(&self, uid: u32, request: &str) -> TestJob {
        TestJob {
            job: Job {
                cluster: CLUSTER.into(),
                job_id: self.next_job_id(),
                restart_count: 0,
                sluid: None,
                uid,
                gid: uid,
                user: Some(format!("user{uid}")),
                node: "n1".into(),
                nodes: 1,
                partition: "main".into(),
                cpus_per_node: "4".into(),
            },
            request: request.parse().unwrap(),
            limit_seconds: None,
            started_at: self.now(),
            account: "physics".into(),
        }
    }

    /// Runs jobs of an application one after another, each to its verdict; `elapsed` gives the
    /// seconds of a job by its parametrization and its number, from 0. Returns the answers to the
    /// starts.
    pub(crate) async fn tune(
        &self,
        uid: u32,
        request: &str,
        runs: u32,
        mut elapsed: impl FnMut(&Parametrization, u32) -> f64,
    ) -> Vec<StartAnswer> {
        let mut answers = Vec::new();
        for number in 0..runs {
            let job = self.job(uid, request);
            let started = job.start(self).await;
            let seconds = elapsed(&started.parametrization, number);
            let report = job.reports(Some(&started), seconds);
            job.finish(self, &report).await;
            job.ends(self, "COMPLETED", seconds);
            self.poll().await;
            answers.push(started);
        }
        answers
    }

    /// The one run of a job, as `explain` shows it to its owner and admins.
    pub(crate) async fn run_of(&self, job_id: u32) -> Value {
        let answer = self.user(ADMIN).get(&format!("/v1/runs/{job_id}")).await;
        let details = answer.ok();
        let [detail] = details.as_array().unwrap().as_slice() else {
            panic!("one run was expected: {answer}");
        };
        detail.clone()
    }

    /// The one study of an application, as a list shows it to an admin.
    pub(crate) async fn study(&self, application: &str) -> Value {
        let path = format!("/v1/studies?app={application}");
        let studies = self.user(ADMIN).get(&path).await.ok();
        let [study] = studies.as_array().unwrap().as_slice() else {
            panic!("{application} was to have one study: {studies}");
        };
        study.clone()
    }

    /// The default of an accelerator of the shipped catalogue.
    pub(crate) fn default_of(&self, accelerator: &str) -> Parametrization {
        let catalogue = Catalogue::load(&self.catalogue()).unwrap();
        catalogue.find(accelerator).unwrap().space.default()
    }

    /// Fixes the parametrization of a study, as its owner or an admin.
    pub(crate) async fn pin(&self, uid: u32, study_id: i64, values: &[(&str, &str)]) -> Answer {
        let values: BTreeMap<_, _> = values.iter().copied().collect();
        let body = serde_json::json!({ "values": values, "why": "a test asks for it" });
        let path = format!("/v1/studies/{study_id}/pin");
        self.user(uid).post(&path, body).await
    }

    /// The id of the one study of an application.
    pub(crate) async fn study_id(&self, application: &str) -> i64 {
        self.study(application).await["study_id"].as_i64().unwrap()
    }
}

impl TestJob {
    /// The request of a node in the prolog.
    pub(crate) fn asks(&self) -> StartRequest {
        StartRequest {
            job: self.job.clone(),
            request: self.request.clone(),
            limit_seconds: self.limit_seconds,
            started_at: Some(self.started_at),
            node_state: None,
        }
    }

    /// Starts its run; the answer may be a refusal.
    pub(crate) async fn try_start(&self, service: &TestService) -> Answer {
        service.node().post("/v1/runs/start", self.asks()).await
    }

    /// Starts its run.
    pub(crate) async fn start(&self, service: &TestService) -> StartAnswer {
        self.try_start(service).await.read()
    }

    /// The report of the node in the epilog of a batch job that took `elapsed` seconds, and was
    /// given everything in the start's answer.
    pub(crate) fn reports(&self, started: Option<&StartAnswer>, elapsed: f64) -> FinishRequest {
        let delivery = started.map(|answer| &answer.delivery);
        let delivered = delivery.filter(|delivery| !delivery.is_empty());
        let variables: BTreeMap<String, VariableState> = delivered
            .iter()
            .flat_map(|delivery| delivery.variables())
            .map(|name| (name.to_owned(), VariableState::Set))
            .collect();
        FinishRequest {
            job: self.job.clone(),
            request: self.request.clone(),
            run_id: started.map(|answer| answer.run_id),
            prolog_at: Some(self.started_at),
            start_failure: started.is_none().then(|| "no answer".to_owned()),
            applied: match started.filter(|_| delivered.is_some()) {
                Some(answer) => Applied::Parametrization {
                    parametrization: answer.parametrization.clone(),
                },
                None => Applied::Default,
            },
            steps: vec![Step {
                step_id: Step::BATCH,
                started_at: None,
                duration_ns: Some(
                    u64::try_from(Duration::from_secs_f64(elapsed).as_nanos()).unwrap(),
                ),
                wait_status: 0,
                nodes: 1,
                variables,
            }],
            in_force: BTreeMap::new(),
            observed: Vec::new(),
            online: None,
            epilog: Some(EpilogOutcome {
                exit_code: "0:0".into(),
                derived_exit_code: "0:0".into(),
                limit_seconds: None,
            }),
            measures: BTreeMap::new(),
        }
    }

    /// Delivers a report of its node's.
    pub(crate) async fn finish(
        &self,
        service: &TestService,
        report: &FinishRequest,
    ) -> FinishAnswer {
        service.node().post("/v1/runs/finish", report).await.read()
    }

    /// The job as squeue lists it in this state after `elapsed` seconds.
    pub(crate) fn queued(&self, state: &str, elapsed: f64) -> Queued {
        // slurmctld counts whole seconds.
        #[expect(clippy::cast_possible_truncation, reason = "a job's seconds")]
        let seconds = elapsed.ceil() as i64;
        let ended = jiff::SignedDuration::from_secs(seconds);
        Queued {
            job_id: self.job.job_id,
            state: state.into(),
            restart_count: self.job.restart_count,
            started_at: Some(self.started_at),
            ended_at: Some(self.started_at + ended),
            used: None,
            limit: "UNLIMITED".into(),
            uid: self.job.uid,
            node_list: match self.job.nodes {
                1 => self.job.node.clone(),
                nodes => format!("n[1-{nodes}]"),
            },
            account: self.account.clone(),
        }
    }

    /// Lets squeue list the end of the job in this state.
    pub(crate) fn ends(&self, service: &TestService, state: &str, elapsed: f64) {
        let slurm = service.slurm_of(&self.job.cluster);
        slurm.queue(self.queued(state, elapsed));
    }

    /// Starts it, reports it after `elapsed` seconds, and lets Slurm say that it completed. It has
    /// no verdict before a round of reconciliation.
    pub(crate) async fn completes(&self, service: &TestService, elapsed: f64) -> StartAnswer {
        let started = self.start(service).await;
        let report = self.reports(Some(&started), elapsed);
        self.finish(service, &report).await;
        self.ends(service, "COMPLETED", elapsed);
        started
    }

    /// The same, to its verdict; returns its run as an admin sees it.
    pub(crate) async fn runs(&self, service: &TestService, elapsed: f64) -> Value {
        self.completes(service, elapsed).await;
        service.poll().await;
        service.run_of(self.job.job_id).await["run"].clone()
    }
}

/// Keys of `[study]` by which a study settles after a dozen runs, and only the times of its own runs
/// decide.
pub(crate) const QUICK: &str = "[study]\nbaseline_runs = 2\nbudget = 8\nexploring = 2\n\
     control_every = 2\nprior = \"off\"\n\
     stop.unread_runs = 0\nstop.little_io = 0.0\n";

/// The course of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// Slurm's state at its end.
    pub(crate) state: &'static str,
    pub(crate) seconds: f64,
    pub(crate) measures: BTreeMap<String, f64>,
    pub(crate) observed: Vec<ObservedParameter>,
    /// The settings that the node reports as applied; if absent, those that were given.
    pub(crate) applied: Option<Applied>,
    /// The time limit as squeue writes it.
    pub(crate) limit: &'static str,
}

impl Course {
    pub(crate) fn completed(seconds: f64) -> Self {
        Self {
            state: "COMPLETED",
            seconds,
            measures: BTreeMap::new(),
            observed: Vec::new(),
            applied: None,
            limit: "UNLIMITED",
        }
    }

    pub(crate) fn failed(seconds: f64) -> Self {
        Self {
            state: "FAILED",
            ..Self::completed(seconds)
        }
    }

    /// The same with these measures.
    pub(crate) fn measured(self, measures: &[(&str, f64)]) -> Self {
        let measures = measures.iter();
        let measures = measures.map(|(name, value)| ((*name).to_owned(), *value));
        Self {
            measures: measures.collect(),
            ..self
        }
    }
}

impl TestService {
    /// Runs a job that takes the course that `course` gives for its start's answer, to its verdict;
    /// returns its run as an admin sees it.
    pub(crate) async fn ran(
        &self,
        uid: u32,
        request: &str,
        course: impl FnOnce(&StartAnswer) -> Course,
    ) -> Value {
        self.job(uid, request).goes(self, course).await
    }
}

impl TestJob {
    /// Starts the job and lets it take the course that `course` gives for the start's answer, to
    /// its verdict; returns its run as an admin sees it.
    pub(crate) async fn goes(
        &self,
        service: &TestService,
        course: impl FnOnce(&StartAnswer) -> Course,
    ) -> Value {
        let started = self.start(service).await;
        let course = course(&started);
        let mut report = self.reports(Some(&started), course.seconds);
        if course.state == "FAILED" {
            let code = "1:0".to_owned();
            report.steps[0].wait_status = 256;
            report.epilog = report.epilog.map(|epilog| EpilogOutcome {
                exit_code: code.clone(),
                derived_exit_code: code,
                ..epilog
            });
        }
        report.measures = course.measures;
        report.observed = course.observed;
        report.applied = course.applied.unwrap_or(report.applied);
        self.finish(service, &report).await;
        let queued = Queued {
            limit: course.limit.to_owned(),
            ..self.queued(course.state, course.seconds)
        };
        service.slurm_of(&self.job.cluster).queue(queued);
        service.poll().await;
        let path = format!("/v1/runs/{}?cluster={}", self.job.job_id, self.job.cluster);
        let launches = service.user(ADMIN).get(&path).await.ok();
        launches.as_array().unwrap().last().unwrap()["run"].clone()
    }
}
