//! Short ways to start and finish runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use io_autotune_model::{
    NotCountedBecause, Outcome, Parametrization, Phase, Point, Role, Sluid, Space,
};
use io_autotune_store::{
    Audit, Budgets, Decision, Finish, Finished, JobKey, Merged, NewRun, Source, StartedRun, Store,
    StoreError, StudyKey, StudyState, Verdict,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The cluster of every job that names no other.
pub(crate) const CLUSTER: &str = "alpha";

/// Makes every run start an hour after the one before it, and never at a full second.
pub(crate) const START_EVERY_HOUR: &str =
    "update runs set started_at = timestamptz 'epoch' + id * interval '1 hour' + interval '0.9 s'";

/// The start that [`START_EVERY_HOUR`] gives a run, in full seconds since 1970.
pub(crate) fn started(run_id: i64) -> i64 {
    run_id * 3600
}

/// The key of a job's first launch.
pub(crate) fn job(job_id: u32) -> JobKey {
    JobKey {
        cluster: CLUSTER.into(),
        job_id,
        restart_count: 0,
    }
}

/// A study of an owner's application, on two nodes.
pub(crate) fn study(owner_uid: u32, application: &str) -> StudyKey {
    StudyKey {
        cluster: CLUSTER.into(),
        owner_uid,
        owner_name: Some(format!("user{owner_uid}")),
        application: application.into(),
        full_name: None,
        accelerator: "romio".into(),
        context: BTreeMap::from([
            ("nodes".to_owned(), "2".to_owned()),
            ("partition".to_owned(), "batch".to_owned()),
        ]),
    }
}

/// A space of 8 x 3 parametrizations.
pub(crate) fn space() -> Space {
    serde_json::from_value(json!([
        { "name": "cb_nodes", "kind": "integer", "min": 1, "max": 8, "default": 1 },
        { "name": "ds_write", "kind": "categories", "values": ["automatic", "enable", "disable"],
          "default": "automatic" },
    ]))
    .unwrap()
}

/// The space of a changed catalogue file, with one more value.
pub(crate) fn other_space() -> Space {
    serde_json::from_value(json!([
        { "name": "cb_nodes", "kind": "integer", "min": 1, "max": 16, "default": 1 },
        { "name": "ds_write", "kind": "categories", "values": ["automatic", "enable", "disable"],
          "default": "automatic" },
    ]))
    .unwrap()
}

/// The space of a catalogue file from which a value was removed.
pub(crate) fn narrow_space() -> Space {
    serde_json::from_value(json!([
        { "name": "cb_nodes", "kind": "integer", "min": 1, "max": 7, "default": 1 },
        { "name": "ds_write", "kind": "categories", "values": ["automatic", "enable", "disable"],
          "default": "automatic" },
    ]))
    .unwrap()
}

/// The `index`th of the 24 parametrizations of [`space`]; 0 is the default.
pub(crate) fn point(index: u32) -> Parametrization {
    space().parametrization(&Point(vec![index % 8, index / 8 % 3]))
}

/// The decision to launch a run with a parametrization.
pub(crate) fn decision(phase: Phase, role: Role, parametrization: Parametrization) -> Decision {
    Decision {
        phase,
        role,
        reason: format!("{role} under {parametrization}"),
        suggestion: json!({ "role": role }),
        delivery: json!({ "files": [{ "text": parametrization.to_string() }] }),
        parametrization,
        explores: None,
    }
}

/// The start of a run, which tests change as needed.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) job: JobKey,
    pub(crate) sluid: Option<Sluid>,
    pub(crate) study: StudyKey,
    pub(crate) space: Space,
    pub(crate) lock: Lock,
    pub(crate) request: Value,
    /// The begin of the launch by slurmctld's clock.
    pub(crate) began_at: Option<Timestamp>,
    pub(crate) budgets: Option<Budgets>,
}

/// The way in which a start waits for its study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Waits at most this long.
    Wait(Duration),
    /// Does not wait: decides by a slightly older state of the study.
    None,
}

impl Start {
    /// The same start on another cluster.
    pub(crate) fn on(mut self, cluster: &str) -> Self {
        self.job.cluster = cluster.into();
        self.study.cluster = cluster.into();
        self
    }

    /// A job's first start, of the application `solver` of user 1000.
    pub(crate) fn of(job_id: u32) -> Self {
        Self {
            job: job(job_id),
            sluid: None,
            study: study(1000, "solver"),
            space: space(),
            lock: Lock::Wait(Duration::from_secs(10)),
            request: json!({ "mode": "tune" }),
            began_at: None,
            budgets: None,
        }
    }

    /// The run as the store takes it.
    pub(crate) fn as_run(&self) -> NewRun<'_> {
        NewRun {
            job: &self.job,
            sluid: self.sluid.as_ref(),
            node: "n1",
            nodes: 2,
            study: &self.study,
            request: self.request.clone(),
            space: &self.space,
            began_at: self.began_at,
            budgets: self.budgets,
        }
    }

    /// Asks the store once, without the study's lock, and launches with the default.
    pub(crate) async fn try_unlocked(
        &self,
        store: &Store,
        state: &StudyState,
    ) -> Result<StartedRun, StoreError> {
        let default = self.space.default();
        let decide = |_: &StudyState| decision(Phase::Baseline, Role::Baseline, default.clone());
        store.start_unlocked(&self.as_run(), state, decide).await
    }

    /// Asks the store.
    pub(crate) async fn ask(
        &self,
        store: &Store,
        mut decide: impl FnMut(&StudyState) -> Decision,
    ) -> Result<StartedRun, StoreError> {
        let new = self.as_run();
        match self.lock {
            Lock::Wait(wait) => store.start_run(&new, wait, decide).await,
            Lock::None => {
                loop {
                    let state = store.state_of(&self.study, &self.space).await?;
                    match store.start_unlocked(&new, &state, &mut decide).await {
                        // The study was steered meanwhile, so nothing was decided; the service
                        // reads anew as well.
                        Err(StoreError::Outdated { .. }) => {}
                        other => return other,
                    }
                }
            }
        }
    }

    /// Asks the store, and launches a search run with a parametrization.
    pub(crate) async fn search(
        &self,
        store: &Store,
        parametrization: Parametrization,
    ) -> StartedRun {
        self.try_search(store, parametrization).await.unwrap()
    }

    /// The same, if the store may fail.
    pub(crate) async fn try_search(
        &self,
        store: &Store,
        parametrization: Parametrization,
    ) -> Result<StartedRun, StoreError> {
        self.ask(store, |_| {
            decision(Phase::Search, Role::Search, parametrization.clone())
        })
        .await
    }
}

/// A node's report, which tests change as needed.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) job: JobKey,
    pub(crate) sluid: Option<Sluid>,
    pub(crate) study: StudyKey,
    pub(crate) space: Space,
    pub(crate) node: String,
    /// The run in the answer to the start.
    pub(crate) run_id: Option<i64>,
    pub(crate) prolog_at: Option<Timestamp>,
    pub(crate) elapsed: Option<f64>,
    /// The parametrization that was applied; `None`: nothing was, so the run had the default.
    pub(crate) applied: Option<Parametrization>,
    pub(crate) measures: BTreeMap<String, f64>,
    /// The nonce; `None`: one that no request has had.
    pub(crate) nonce: Option<String>,
}

impl Report {
    /// The same report on another cluster.
    pub(crate) fn on(mut self, cluster: &str) -> Self {
        self.job.cluster = cluster.into();
        self.study.cluster = cluster.into();
        self
    }

    /// The report for [`Start::of`] from the node that started it: 10 s with the default.
    pub(crate) fn of(job_id: u32) -> Self {
        Self {
            job: job(job_id),
            sluid: None,
            study: study(1000, "solver"),
            space: space(),
            node: "n1".into(),
            run_id: None,
            prolog_at: None,
            elapsed: Some(10.0),
            applied: None,
            measures: BTreeMap::from([("bytes_written".to_owned(), 4096.0)]),
            nonce: None,
        }
    }

    /// Delivers it to the store.
    pub(crate) async fn deliver(&self, store: &Store) -> Result<Finished, StoreError> {
        let nonce = self.nonce.clone().unwrap_or_else(nonce);
        let finish = Finish {
            nonce: &nonce,
            job: &self.job,
            sluid: self.sluid.as_ref(),
            run_id: self.run_id,
            prolog_at: self.prolog_at,
            node: &self.node,
            nodes: 2,
            study: &self.study,
            request: json!({ "mode": "tune" }),
            space: Some(&self.space),
            delivery: json!({ "files": [], "watch": [] }),
            no_start: "the service did not answer in the prolog",
            report: json!({
                "node": self.node,
                "elapsed": self.elapsed.filter(|elapsed| elapsed.is_finite()),
                "applied": self.applied,
                "measures": self.measures,
            }),
        };
        // JSON cannot contain such numbers, and merging is up to the caller.
        let unusual = self.elapsed.filter(|elapsed| !elapsed.is_finite());
        let merge = |report: &Value| {
            let merged = merged(std::slice::from_ref(report));
            Merged {
                elapsed: unusual.or(merged.elapsed),
                ..merged
            }
        };
        store.finish_run(&finish, merge).await
    }
}

/// A nonce that no request has had before in this process.
fn nonce() -> String {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    format!("{:032x}", REQUESTS.fetch_add(1, Ordering::Relaxed))
}

/// The merged content of reports: the longest of their elapsed, the settings that the first says
/// were applied, and the sum of each measure. If `n2` has reported, `n3` is waited for.
fn merged(reports: &[Value]) -> Merged {
    let elapsed = reports
        .iter()
        .filter_map(|report| report["elapsed"].as_f64());
    let applied = match &reports[0]["applied"] {
        Value::Null => json!({ "kind": "default" }),
        applied => json!({ "kind": "parametrization", "parametrization": applied }),
    };
    let mut measures = BTreeMap::new();
    for report in reports {
        for (name, value) in report["measures"].as_object().unwrap() {
            *measures.entry(name.clone()).or_insert(0.0) += value.as_f64().unwrap();
        }
    }
    let from = |node: &str| reports.iter().any(|report| report["node"] == node);
    Merged {
        elapsed: elapsed.reduce(f64::max),
        wait_status: 0,
        applied,
        measures,
        missing: (from("n2") && !from("n3")).then(|| "n3 has not reported".to_owned()),
        epilog: Some(json!({ "nodes": reports.len() })),
    }
}

/// The author of a change, and the reason.
pub(crate) const fn by(uid: u32, why: &'static str) -> Audit<'static> {
    Audit::unbounded(uid, why)
}

/// The verdict that a run counts.
pub(crate) fn counted(parametrization: Parametrization) -> Verdict {
    Verdict::Counted {
        parametrization,
        why: "Slurm says COMPLETED".into(),
    }
}

/// The verdict that a run does not count, and does not concern its parametrization.
pub(crate) fn not_counted(why: &str) -> Verdict {
    Verdict::NotCounted {
        because: NotCountedBecause::Suspended,
        why: why.into(),
        failed: None,
    }
}

/// squeue's record of the end of a job's first launch.
pub(crate) fn word(job_id: u32, state: &str) -> Outcome {
    Outcome {
        job_id,
        state: state.into(),
        restart_count: Some(0),
        ..Outcome::default()
    }
}

/// Stores squeue's record of how a job's first launch ended.
pub(crate) async fn say(store: &Store, job_id: u32, state: &str) {
    let words = [word(job_id, state)];
    store
        .record_outcomes(Source::Squeue, CLUSTER, &words)
        .await
        .unwrap();
}

/// A job from its start to Slurm's record, not yet judged: a search run with `parametrization` that
/// took `elapsed` seconds and COMPLETED. Returns the run.
pub(crate) async fn launch(
    store: &Store,
    job_id: u32,
    parametrization: Parametrization,
    elapsed: f64,
) -> i64 {
    let run_id = Start::of(job_id)
        .search(store, parametrization.clone())
        .await
        .run_id;
    let mut report = Report::of(job_id);
    report.elapsed = Some(elapsed);
    report.applied = Some(parametrization);
    report.deliver(store).await.unwrap();
    say(store, job_id, "COMPLETED").await;
    run_id
}

/// The number of runs in flight in a state.
pub(crate) fn in_flight(state: &StudyState) -> u64 {
    state.pending.iter().map(|runs| runs.count).sum()
}

/// Merges the stored reports of a run.
pub(crate) async fn merge_reports(store: &Store, run_id: i64) {
    let merge = |reports: Vec<Value>| merged(&reports);
    let add = |_, reports: &mut Vec<Value>, report| reports.push(report);
    store.merge_reports(run_id, add, merge).await.unwrap();
}
