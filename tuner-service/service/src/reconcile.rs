//! Joins what nodes report with what Slurm says, and gives each run its verdict.

use std::collections::HashMap;
use std::time::Duration;

use io_autotune_store::{AwaitedRun, Judged, Source, Store, StoreError, Word};
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
    store.claim_outcomes(source.cluster()).await?;
    let awaited = || store.awaited_runs(source.cluster(), true, RUNS_PER_ROUND);
    let runs = awaited().await?;
    // Of those that nobody has spoken of yet, Slurm is asked on a sweep.
    if !runs.iter().any(|run| sweeping || run.reported) {
        return Ok(());
    }
    let jobs = source.jobs().await?;
    let words: Vec<Word> = runs.iter().filter_map(|run| said(&jobs, run)).collect();
    store
        .record_outcomes(Source::Squeue, source.cluster(), &words)
        .await?;
    for run in awaited().await? {
        if let Err(error) = judge(store, &jobs, &run, patience).await {
            // One study that is busy must not hold up all others.
            tracing::warn!(run_id = run.run_id, %error, "a run has to wait for its verdict");
        }
    }
    Ok(())
}

/// Slurm's word for the end of a run that has none yet.
fn said(jobs: &HashMap<u32, JobState>, run: &AwaitedRun) -> Option<Word> {
    if run.outcome.is_some() {
        return None;
    }
    let state = jobs
        .get(&run.job.job_id)?
        .outcome_of(run.job.restart_count)?;
    Some(Word {
        job_id: run.job.job_id,
        state: state.to_owned(),
        exit_code: None,
        restart_count: Some(run.job.restart_count),
        started_at: None,
        ended_at: None,
        suspended_seconds: None,
        limit_seconds: None,
    })
}

async fn judge(
    store: &Store,
    jobs: &HashMap<u32, JobState>,
    run: &AwaitedRun,
    patience: Patience,
) -> Result<(), StoreError> {
    let known = jobs.contains_key(&run.job.job_id);
    if let Some(verdict) = verdict(run, &run.default, known, patience) {
        match store.judge_run(run.run_id, run.news, &verdict).await? {
            Judged::First | Judged::Revised => tracing::info!(
                run_id = run.run_id,
                job_id = run.job.job_id,
                ?verdict,
                "run judged"
            ),
            Judged::Unchanged | Judged::Outdated => {}
        }
    }
    Ok(())
}
