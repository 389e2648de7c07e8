//! Joins what nodes report with what Slurm says, and gives each run its verdict.

use std::collections::HashMap;
use std::time::Duration;

use io_autotune_store::{AwaitedRun, Store, StoreError};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::slurm::{JobState, OutcomeError, OutcomeSource};
use crate::verdict::{Patience, verdict};

/// `[reconcile]` of the configuration.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReconcileConfig {
    /// How often Slurm is asked while a reported run waits for its outcome.
    poll_seconds: f64,
    /// How often it is asked for runs that nobody has reported.
    sweep_seconds: f64,
    /// How long Slurm's word is waited for once the report has come.
    outcome_patience_seconds: u64,
    /// How long the report is waited for once Slurm has said that the job ended, or knows it no longer.
    report_patience_seconds: u64,
}

impl Default for ReconcileConfig {
    fn default() -> Self {
        Self {
            poll_seconds: 5.0,
            sweep_seconds: 60.0,
            outcome_patience_seconds: 600,
            report_patience_seconds: 3600,
        }
    }
}

/// No round takes more runs; the next one takes the rest.
const RUNS_PER_ROUND: i64 = 5000;

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
}

/// Reconciles until told to stop. A failed round is logged and the next one tries again.
pub(crate) async fn run(
    store: Store,
    source: impl OutcomeSource,
    config: ReconcileConfig,
    mut stopping: watch::Receiver<bool>,
) {
    let poll = Duration::from_secs_f64(config.poll_seconds.clamp(0.1, 3600.0));
    let sweep = Duration::from_secs_f64(config.sweep_seconds.clamp(0.1, 86400.0));
    let patience = Patience {
        outcome: Duration::from_secs(config.outcome_patience_seconds),
        report: Duration::from_secs(config.report_patience_seconds),
    };
    let mut next_sweep = Instant::now();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(poll) => {}
        }
        let sweeping = Instant::now() >= next_sweep;
        if sweeping {
            next_sweep = Instant::now() + sweep;
        }
        if let Err(error) = round(&store, &source, sweeping, patience).await {
            tracing::warn!(%error, "reconciliation has to wait");
        }
    }
}

async fn round(
    store: &Store,
    source: &impl OutcomeSource,
    sweeping: bool,
    patience: Patience,
) -> Result<(), ReconcileError> {
    let runs = store
        .awaited_runs(source.cluster(), sweeping, RUNS_PER_ROUND)
        .await?;
    if runs.is_empty() {
        return Ok(());
    }
    let jobs = source.jobs().await?;
    for mut run in runs {
        if let Err(error) = reconcile(store, &jobs, &mut run, patience).await {
            // One study that is busy must not hold up all others.
            tracing::warn!(run_id = run.run_id, %error, "a run has to wait for its verdict");
        }
    }
    Ok(())
}

async fn reconcile(
    store: &Store,
    jobs: &HashMap<u32, JobState>,
    run: &mut AwaitedRun,
    patience: Patience,
) -> Result<(), StoreError> {
    let job = jobs.get(&run.job.job_id);
    if run.outcome.is_none()
        && let Some(outcome) = job.and_then(|job| job.outcome_of(run.job.restart_count))
    {
        store.record_outcome(run.run_id, outcome).await?;
        run.outcome = Some(outcome.to_owned());
        run.outcome_age = Some(0.0);
    }
    if let Some(verdict) = verdict(run, &run.default, job.is_some(), patience)
        && store.judge_run(run.run_id, &verdict).await?
    {
        tracing::info!(
            run_id = run.run_id,
            job_id = run.job.job_id,
            ?verdict,
            "run judged"
        );
    }
    Ok(())
}
