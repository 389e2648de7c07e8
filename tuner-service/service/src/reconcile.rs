//! Joins node reports with Slurm's outcomes; gives runs their verdicts and revises them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use io_autotune_engine::{ENGINE_VERSION, Epoch, ObservedValue, PriorFrom, Settings, drift};
use io_autotune_protocol::Outcome;
use io_autotune_protocol::bounds::Bounded;
use io_autotune_store::{AwaitedRun, Inheritance, Judged, Judgement, Store, StoreError, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::assess::{self, Reckoning};
use crate::decide::restricted;
use crate::failed_work::{Apart, Work};
use crate::merge::{MergedRun, Reports};
use crate::metrics::Metrics;
use crate::retention::{Retention, RetentionConfig};
use crate::site_settings;
use crate::slurm::{Answer, Cluster, Launch, Sources};
use crate::surrogates::SurrogateCaches;
use crate::verdict::{Asked, Facts, Next, Timeouts, next};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReconcileConfig {
    /// How often Slurm is queried while a reported run waits for its outcome.
    poll_seconds: f64,
    /// How often Slurm is queried about runs without a report.
    sweep_seconds: f64,
    /// How long a reported run waits for its outcome. What else is waited for is a share of it.
    patience_seconds: u64,
    /// When a run without a report is given up if no source can be queried.
    lost_after_seconds: u64,
}

impl Default for ReconcileConfig {
    fn default() -> Self {
        Self {
            poll_seconds: 5.0,
            sweep_seconds: 60.0,
            patience_seconds: 600,
            lost_after_seconds: 7 * 86_400,
        }
    }
}

/// A run that ended well waits for its reports for this part of the patience: by default for five
/// minutes, longer than a node's timer needs for a launch without an epilog. A later report still
/// revises the verdict.
const REPORT: u32 = 2;
/// After this part of the patience a run that has ended gives its exploring place to another, and a
/// run of which no source knows is given up. It is less than for reports, because a verdict is final
/// for what is explored next and a place is not.
const RELEASE: u32 = 10;

impl ReconcileConfig {
    fn timeouts(&self) -> Timeouts {
        let patience = Duration::from_secs(self.patience_seconds);
        Timeouts {
            outcome: patience,
            report: patience / REPORT,
            release: patience / RELEASE,
            lost: self.lost_after(),
        }
    }

    /// How often to ask about reported runs.
    fn poll(&self) -> Duration {
        Duration::from_secs_f64(self.poll_seconds.clamp(0.1, 3600.0))
    }

    /// How often to look for runs without a report, and at everything else that is not reported.
    pub(crate) fn sweep(&self) -> Duration {
        Duration::from_secs_f64(self.sweep_seconds.clamp(0.1, 86400.0))
    }

    /// Also when a record without a run is deleted.
    pub(crate) fn lost_after(&self) -> Duration {
        Duration::from_secs(self.lost_after_seconds)
    }
}

/// A round that takes longer waits for a server that is gone without closing its connections.
const LONGEST_ROUND: Duration = Duration::from_mins(30);

/// Runs per round. The rest waits for the next.
const RUNS_PER_ROUND: i64 = 5000;

/// Studies per sweep whose verdicts are older than evidence and get assessed.
const STUDIES_PER_SWEEP: i64 = 100;

const RUNS_PER_BATCH: usize = 100;

/// Pieces of an import whose importer is silent for so long are forgotten.
const IMPORTS_KEPT: Duration = Duration::from_hours(1);

/// Far above a credential's life and the skew of clocks.
const NONCES_KEPT: Duration = Duration::from_mins(15);

/// Concurrent batches: commits share a flush, but starts need connections too.
const BATCHES_AT_ONCE: usize = 4;

/// The reconciliation of one cluster: of its runs, and in its sweeps also the work that is done now
/// and then. Each cluster has its own, so that a slow Slurm delays no other cluster.
pub(crate) struct Reconciliation {
    reconciler: Arc<Reconciler>,
    retention: Retention,
    config: ReconcileConfig,
}

impl Reconciliation {
    /// `cleans`: it also does the work of the sweeps that concerns no single cluster.
    pub(crate) fn new(
        store: Store,
        cluster: Arc<Cluster>,
        apart: Arc<Apart>,
        surrogates: Arc<SurrogateCaches>,
        metrics: Arc<Metrics>,
        cleans: bool,
        reconciled: Reconciled,
    ) -> Self {
        let Reconciled {
            settings,
            config,
            retention,
        } = reconciled;
        Self {
            reconciler: Arc::new(Reconciler {
                store,
                cluster,
                apart,
                surrogates,
                metrics,
                cleans,
                settings,
                timeouts: config.timeouts(),
            }),
            retention: Retention::new(retention),
            config,
        }
    }

    /// The same with another configuration.
    pub(crate) fn by(&self, reconciled: Reconciled) -> Self {
        let Reconciler {
            store,
            cluster,
            apart,
            surrogates,
            metrics,
            cleans,
            ..
        } = &*self.reconciler;
        Self::new(
            store.reading_sources(reconciled.settings.prior == PriorFrom::Site),
            Arc::clone(cluster),
            Arc::clone(apart),
            Arc::clone(surrogates),
            Arc::clone(metrics),
            *cleans,
            reconciled,
        )
    }

    /// One round; if `sweeping`, with the work of a sweep. Logs failures.
    pub(crate) async fn round(&mut self, sweeping: bool) {
        let cluster = &self.reconciler.cluster.sources.cluster;
        match timeout(LONGEST_ROUND, self.reconciler.round(sweeping)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(cluster, %error, "reconciliation has to wait"),
            Err(_) => tracing::error!(
                cluster,
                "a round of reconciliation does not end: another one begins"
            ),
        }
        // Last: nothing waits for it.
        let Reconciler {
            store,
            apart,
            cleans,
            ..
        } = &*self.reconciler;
        let work = Work::Step("the removal of what is old");
        if sweeping && *cleans && apart.is_due(&work) {
            let removed = self.retention.sweep(store).await;
            if let Err(error) = apart.note(work, removed) {
                tracing::warn!(%error, "the removal of what is old has to wait");
            }
        }
    }

    /// Repeats the round until it is stopped, each time with the configuration of that time.
    pub(crate) async fn go_on(
        mut self,
        mut reconciled: watch::Receiver<Reconciled>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let mut next_sweep = Instant::now();
        loop {
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                Ok(()) = reconciled.changed() => {
                    self = self.by(reconciled.borrow_and_update().clone());
                    next_sweep = Instant::now();
                }
                () = tokio::time::sleep(self.config.poll()) => {}
            }
            let sweeping = Instant::now() >= next_sweep;
            if sweeping {
                next_sweep = Instant::now() + self.config.sweep();
            }
            self.round(sweeping).await;
        }
    }
}

/// The configuration of reconciliation, which a reload replaces.
#[derive(Clone, Debug)]
pub(crate) struct Reconciled {
    pub(crate) settings: Settings,
    pub(crate) config: ReconcileConfig,
    pub(crate) retention: RetentionConfig,
}

struct Reconciler {
    store: Store,
    cluster: Arc<Cluster>,
    apart: Arc<Apart>,
    /// The nodes' door has the same: a verdict fits what the next start asks for.
    surrogates: Arc<SurrogateCaches>,
    metrics: Arc<Metrics>,
    cleans: bool,
    settings: Settings,
    timeouts: Timeouts,
}

impl Reconciler {
    async fn round(self: &Arc<Self>, sweeping: bool) -> Result<(), StoreError> {
        if sweeping && self.cleans {
            self.clean().await?;
        }
        let sources = &self.cluster.sources;
        let resting = self.apart.resting_jobs(&sources.cluster);
        let claimed = self
            .store
            .claim_outcomes(&sources.cluster, &resting)
            .await?;
        for (job_id, error) in claimed.failed {
            self.apart.fail(self.job(job_id), error.to_string());
        }
        let runs = self.awaited(sweeping).await?;
        if runs.is_empty() {
            return Ok(());
        }
        let inquiry = self.inquire(&runs).await?;
        self.remember_listed(&runs, &inquiry).await?;
        let runs = if inquiry.changes {
            self.awaited(sweeping).await?
        } else {
            runs
        };
        let awaited = runs.into_iter().map(|run| {
            let asked = inquiry.asked(sources, &run);
            (run, asked)
        });
        self.judge_all(awaited).await;
        self.settle_exploring().await
    }

    /// Judges runs, those of an epoch together, and some epochs beside each other.
    async fn judge_all(self: &Arc<Self>, awaited: impl Iterator<Item = (AwaitedRun, Asked)>) {
        // Work that has failed before is tried by itself: it may fail again for all that is judged
        // with it.
        let (failed, others): (Vec<_>, Vec<_>) =
            awaited.partition(|(run, _)| self.apart.has_failed(&Work::Run(run.run_id)));
        let failed = failed.into_iter().map(|run| vec![run]);
        let mut batches = batches(&mut others.into_iter()).into_iter().chain(failed);
        let mut judging = JoinSet::new();
        let mut of_batches = HashMap::new();
        loop {
            while judging.len() < BATCHES_AT_ONCE
                && let Some(batch) = batches.next()
            {
                let runs: Vec<i64> = batch.iter().map(|(run, _)| run.run_id).collect();
                let reconciler = Arc::clone(self);
                let judged = judging.spawn(async move { reconciler.judge(batch).await });
                of_batches.insert(judged.id(), runs);
            }
            match judging.join_next_with_id().await {
                Some(Ok((id, ()))) => drop(of_batches.remove(&id)),
                Some(Err(error)) => {
                    tracing::error!(%error, "judging runs ended badly");
                    for run_id in of_batches.remove(&error.id()).unwrap_or_default() {
                        self.apart.fail(Work::Run(run_id), error.to_string());
                    }
                }
                None => break,
            }
        }
    }

    /// The work of a sweep that concerns no single cluster, each step by itself.
    async fn clean(&self) -> Result<(), StoreError> {
        let Self {
            store,
            apart,
            timeouts,
            ..
        } = self;
        self.step(
            "forgetting what met no run",
            store.forget_unclaimed(timeouts.lost),
        )
        .await?;
        self.step("forgetting what was read", store.forget_nonces(NONCES_KEPT))
            .await?;
        self.step("forgetting imports", store.forget_imports(IMPORTS_KEPT))
            .await?;
        self.settle_exploring().await?;
        self.step("forgetting what exploring took", store.forget_exploring())
            .await?;
        self.step("ending what is over", store.end_overdue_orders())
            .await?;
        self.step("recording how runs fare", store.record_surroundings())
            .await?;
        self.step(
            "making the settings that studies have in common",
            site_settings::renew(store),
        )
        .await?;
        let assessed = assess::overdue(store, self.reckoning(), apart, STUDIES_PER_SWEEP);
        self.step("assessing studies", assessed).await
    }

    fn reckoning(&self) -> Reckoning<'_> {
        Reckoning {
            settings: &self.settings,
            surrogates: &self.surrogates,
        }
    }

    /// Replaces what was expected of exploring runs by what those took that have a verdict.
    async fn settle_exploring(&self) -> Result<(), StoreError> {
        self.step(
            "settling what exploring took",
            self.store.settle_exploring(),
        )
        .await
    }

    /// One step of a sweep, unless it is set apart.
    async fn step<T>(
        &self,
        step: &'static str,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<(), StoreError> {
        let work = Work::Step(step);
        match self.apart.is_due(&work) {
            true => self.apart.note(work, done.await.map(drop)),
            false => Ok(()),
        }
    }

    fn job(&self, job_id: u32) -> Work {
        let cluster = self.cluster.sources.cluster.clone();
        Work::Job { cluster, job_id }
    }

    async fn awaited(&self, unheard: bool) -> Result<Vec<AwaitedRun>, StoreError> {
        let (cluster, resting) = (&self.cluster.sources.cluster, self.apart.resting_runs());
        let awaited = self
            .store
            .awaited_runs(cluster, unheard, RUNS_PER_ROUND, &resting)
            .await?;
        for (run_id, error) in awaited.unread {
            self.apart.fail(Work::Run(run_id), error.to_string());
        }
        Ok(awaited.runs)
    }

    /// Slurm forgets jobs: it is stored that it listed one, for when it has no outcome of it.
    async fn remember_listed(
        &self,
        runs: &[AwaitedRun],
        inquiry: &Inquiry,
    ) -> Result<(), StoreError> {
        let listed: Vec<i64> = runs
            .iter()
            .filter(|run| !run.listed && inquiry.alive.contains(&run.job.job_id))
            .map(|run| run.run_id)
            .collect();
        if listed.is_empty() {
            return Ok(());
        }
        self.store.remember_listed(&listed).await
    }

    /// Queries the sources in order about launches whose end is unknown, and stores the outcomes.
    /// Each is asked only about launches that the earlier ones left open.
    async fn inquire(&self, runs: &[AwaitedRun]) -> Result<Inquiry, StoreError> {
        let mut launches: Vec<Launch> = runs
            .iter()
            .filter(|run| run.outcome.is_none())
            .map(|run| Launch {
                job_id: run.job.job_id,
                restart_count: run.job.restart_count,
                age: seconds(run.age),
            })
            .collect();
        let mut inquiry = Inquiry {
            asked: launches
                .iter()
                .map(|launch| (launch.job_id, launch.restart_count))
                .collect(),
            ..Inquiry::default()
        };
        let sources = &self.cluster.sources;
        for source in &sources.asked {
            if launches.is_empty() {
                break;
            }
            match source.ask(&launches).await {
                Ok(mut answer) => {
                    answer.outcomes.retain_mut(|outcome| {
                        let is_one = self.is_an_end(outcome);
                        if !is_one {
                            inquiry.refused.insert(outcome.job_id);
                        }
                        is_one
                    });
                    if !answer.outcomes.is_empty() {
                        let recorded = self
                            .store
                            .record_outcomes(source.name(), &sources.cluster, &answer.outcomes)
                            .await?;
                        inquiry.changes |= recorded.stored > 0;
                    }
                    launches.retain(|launch| {
                        !answer.alive.contains(&launch.job_id) && !told(&answer, launch)
                    });
                    inquiry.alive.extend(answer.alive);
                    if let Some(limits) = answer.limits {
                        self.cluster.limits.replace(limits);
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        cluster = sources.cluster,
                        source = source.name().as_str(),
                        %error,
                        "Slurm's word has to wait"
                    );
                    inquiry.without_answer = true;
                }
            }
        }
        Ok(inquiry)
    }

    /// Returns true if the outcome that Slurm gives can be stored. Otherwise the job is set apart.
    fn is_an_end(&self, outcome: &mut Outcome) -> bool {
        let work = self.job(outcome.job_id);
        // slurmctld's clock was set back in between: the end is known, the start is not.
        if outcome.started_at > outcome.ended_at && outcome.ended_at.is_some() {
            outcome.started_at = None;
        }
        match outcome.check() {
            Ok(()) => true,
            Err(problem) => {
                if self.apart.is_due(&work) {
                    self.apart.fail(work, problem.to_string());
                }
                false
            }
        }
    }

    /// Judges runs of one epoch. Logs failures: one busy study must not hold up the others.
    async fn judge(&self, batch: Vec<(AwaitedRun, Asked)>) {
        let batch: Vec<_> = batch
            .into_iter()
            .filter(|(run, asked)| {
                !(run.outcome.is_none() && matches!(asked, Asked::Alive | Asked::NoAnswer))
            })
            .collect();
        let node_lists: HashMap<i64, &str> = batch
            .iter()
            .filter_map(|(run, _)| Some((run.run_id, run.node_list.as_deref()?)))
            .collect();
        let mut reports = HashMap::new();
        let mut keep = |run_id, read: Reports| {
            let merged = read.merged();
            if !read.is_empty() {
                reports.insert(run_id, (merged.clone(), read.observed_values()));
            }
            merged
        };
        let add = |run_id, read: &mut Reports, stored: Value| {
            read.add(&stored, node_lists.get(&run_id).copied());
        };
        let mut unread = Vec::new();
        // The reports of these runs could not be read: no verdict may claim that there are none.
        let mut unmerged = HashSet::new();
        for (run, _) in batch.iter().filter(|(run, _)| run.reported) {
            if !run.dirty {
                unread.push(run.run_id);
                continue;
            }
            let merge = |read: Reports| keep(run.run_id, read).into();
            if let Err(error) = self.store.merge_reports(run.run_id, add, merge).await {
                self.waits(run.run_id, error);
                unmerged.insert(run.run_id);
            }
        }
        let mut done = |run_id, read: Reports| drop(keep(run_id, read));
        match self.store.read_reports(&unread, add, &mut done).await {
            Ok(()) => {}
            Err(error) if error.is_of_the_data() => {
                for run_id in unread {
                    if let Err(error) = self.store.read_reports(&[run_id], add, &mut done).await {
                        self.waits(run_id, error);
                        unmerged.insert(run_id);
                    }
                }
            }
            Err(error) => {
                tracing::warn!(runs = batch.len(), %error, "runs have to wait for their verdicts");
                return;
            }
        }
        let mut verdicts = Vec::new();
        for (run, asked) in batch {
            if unmerged.contains(&run.run_id) {
                continue;
            }
            let (reported, observed_values) = reports.remove(&run.run_id).unzip();
            match next(&facts(&run, reported, asked), self.timeouts) {
                Next::Wait => {}
                Next::Release => self.release(&run).await,
                Next::Judge(verdict) => verdicts.push(Judging {
                    observed_values: observed_values.unwrap_or_default(),
                    run,
                    verdict,
                }),
            }
        }
        match self.give(&verdicts).await {
            Ok(()) => {}
            // A verdict that cannot be stored must not hold up the others.
            Err(_) if verdicts.len() > 1 => {
                for verdict in verdicts {
                    let run_id = verdict.run.run_id;
                    match self.give(&[verdict]).await {
                        Ok(()) => self.is_done(run_id),
                        Err(error) => self.waits(run_id, error),
                    }
                }
                return;
            }
            Err(error) => {
                if let Some(verdict) = verdicts.first() {
                    self.waits(verdict.run.run_id, error);
                }
                return;
            }
        }
        for verdict in &verdicts {
            self.is_done(verdict.run.run_id);
        }
    }

    /// Sets a run's verdict apart.
    fn waits(&self, run_id: i64, error: StoreError) {
        if let Err(error) = self.apart.note(Work::Run(run_id), Err(error)) {
            tracing::warn!(run_id, %error, "a run has to wait for its verdict");
        }
    }

    fn is_done(&self, run_id: i64) {
        // Work that succeeded has no error.
        let _ = self.apart.note(Work::Run(run_id), Ok(()));
    }

    async fn release(&self, run: &AwaitedRun) {
        if run.state != "in_flight" || run.released {
            return;
        }
        let (run_id, job_id) = (run.run_id, run.job.job_id);
        match self.store.release_run(run_id).await {
            Ok(()) => tracing::info!(
                run_id,
                job_id,
                "the run's place is free: its job is over, and its verdict has to wait"
            ),
            Err(error) => tracing::warn!(run_id, %error, "a run's place has to wait to be freed"),
        }
    }

    async fn give(&self, verdicts: &[Judging]) -> Result<(), StoreError> {
        let judgements: Vec<Judgement<'_>> = verdicts
            .iter()
            .map(|one| Judgement {
                run_id: one.run.run_id,
                changes: one.run.changes,
                verdict: &one.verdict,
                observed_values: &one.observed_values,
            })
            .collect();
        let (judged, assessing) = self.store.judge_runs(&judgements).await?;
        if let Some(assessing) = assessing {
            assess::renew(assessing, self.reckoning()).await?;
        }
        let mut changed = Vec::new();
        for (Judging { run, verdict, .. }, judged) in verdicts.iter().zip(judged) {
            let (run_id, job_id) = (run.run_id, run.job.job_id);
            match judged {
                Judged::First => tracing::info!(run_id, job_id, ?verdict, "run judged"),
                Judged::Revised => {
                    tracing::info!(run_id, job_id, ?verdict, was = run.state, "verdict revised");
                }
                Judged::Unchanged | Judged::Outdated => continue,
            }
            self.metrics.count_verdict(verdict);
            changed.push(run_id);
        }
        if !changed.is_empty()
            && let Err(error) = self.follow_drift(&changed).await
        {
            tracing::warn!(runs = ?changed, %error, "looking for drift has to wait");
        }
        Ok(())
    }

    async fn follow_drift(&self, run_ids: &[i64]) -> Result<(), StoreError> {
        let settings = &self.settings;
        let opened = self
            .store
            .follow_drift(
                run_ids,
                |runs| drift(runs, &settings.drift),
                |state, drift| Inheritance {
                    inherited: {
                        let restricted = restricted(state);
                        let epoch = Epoch::new(restricted.space(), settings, state.seed);
                        epoch.ranks(restricted.history(), drift)
                    },
                    drift: json!({
                        "drift": drift,
                        "judged": state.judged,
                        "settings": settings.drift,
                        "engine_version": ENGINE_VERSION,
                    }),
                    why: format!("drift: {drift}"),
                },
            )
            .await?;
        if let Some((epoch, drift)) = opened {
            tracing::info!(?run_ids, epoch, %drift, "drift: the study's next epoch begins");
        }
        Ok(())
    }
}

struct Judging {
    run: AwaitedRun,
    verdict: Verdict,
    observed_values: Vec<ObservedValue>,
}

fn facts(run: &AwaitedRun, reported: Option<MergedRun>, asked: Asked) -> Facts<'_> {
    Facts {
        launched: &run.launched,
        default: &run.default,
        objective: &run.objective,
        request: serde_json::from_value(run.request.clone()).ok(),
        reported,
        directed: run.directed,
        uid: run.uid,
        node: &run.node,
        owner: run.owner,
        node_list: run.node_list.as_deref(),
        listed: run.listed,
        outcome: run.outcome.as_deref(),
        suspended: run.suspended,
        limit_seconds: run.limit_seconds,
        age: seconds(run.age),
        reported_age: seconds(run.reported_age.unwrap_or(0.0)),
        outcome_age: seconds(run.outcome_age.unwrap_or(0.0)),
        asked,
    }
}

/// Groups runs by epoch, in order. Batches of one epoch wait for one another at the study's lock.
fn batches<T>(runs: &mut impl Iterator<Item = (AwaitedRun, T)>) -> Vec<Vec<(AwaitedRun, T)>> {
    let mut epochs: BTreeMap<i64, Vec<(AwaitedRun, T)>> = BTreeMap::new();
    for (run, of) in runs {
        epochs.entry(run.epoch_id).or_default().push((run, of));
    }
    let mut batches = Vec::new();
    for mut runs in epochs.into_values() {
        while runs.len() > RUNS_PER_BATCH {
            let rest = runs.split_off(RUNS_PER_BATCH);
            batches.push(std::mem::replace(&mut runs, rest));
        }
        batches.push(runs);
    }
    batches
}

/// Returns true if the answer certainly has the launch's end. An outcome without a restart count
/// may be another launch's.
fn told(answer: &Answer, launch: &Launch) -> bool {
    answer.outcomes.iter().any(|outcome| {
        outcome.job_id == launch.job_id && outcome.restart_count == Some(launch.restart_count)
    })
}

#[derive(Debug, Default)]
struct Inquiry {
    asked: HashSet<(u32, u32)>,
    alive: HashSet<u32>,
    /// Jobs for which a source has given an impossible outcome.
    refused: HashSet<u32>,
    /// True if a source did not answer.
    without_answer: bool,
    changes: bool,
}

impl Inquiry {
    fn asked(&self, sources: &Sources, run: &AwaitedRun) -> Asked {
        if sources.names.is_empty() {
            Asked::NoSource
        } else if sources.asked.is_empty() {
            Asked::Nobody
        } else if self.alive.contains(&run.job.job_id) {
            Asked::Alive
        } else if self.without_answer
            || self.refused.contains(&run.job.job_id)
            || !self
                .asked
                .contains(&(run.job.job_id, run.job.restart_count))
        {
            Asked::NoAnswer
        } else {
            Asked::Unknown
        }
    }
}

fn seconds(age: f64) -> Duration {
    Duration::try_from_secs_f64(age).unwrap_or_default()
}
