//! The finish of a run: durable before it is acknowledged, and applied once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::TryStreamExt;
use io_autotune_model::{Sluid, Space};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::forget::ERASED_UID;
use crate::generation::{self, Launch};
use crate::pool::{Store, one_row};
use crate::records::{JobKey, StudyKey};
use crate::retention::refuse_report_of_removed;
use crate::{start, state};

/// A node's report at the end of a job.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    /// The request's nonce, 32 hexadecimal digits. All replicas together accept it once.
    pub nonce: &'a str,
    /// The job.
    pub job: &'a JobKey,
    /// Slurm's id of the launch, if it has one.
    pub sluid: Option<&'a Sluid>,
    /// The run, if the start was answered.
    pub run_id: Option<i64>,
    /// The time when the job's prolog ran on this node, by the node's clock, if known.
    pub prolog_at: Option<Timestamp>,
    /// The node that reports.
    pub node: &'a str,
    /// The number of nodes, for a run without a start.
    pub nodes: u32,
    /// The study, for a run without a start.
    pub study: &'a StudyKey,
    /// The user's request, for a run without a start.
    pub request: Value,
    /// The accelerator's space. Required unless the run exists.
    pub space: Option<&'a Space>,
    /// The stored form of an empty delivery, for a run without a start.
    pub delivery: Value,
    /// The reason why there is no start, in one sentence.
    pub no_start: &'a str,
    /// The report as received.
    pub report: Value,
}

impl Finish<'_> {
    fn launch(&self) -> Launch<'_> {
        Launch {
            job: self.job,
            sluid: self.sluid,
            uid: self.study.owner_uid,
            // A report without this time concerns the latest launch.
            prolog_at: Some(self.prolog_at.unwrap_or(Timestamp::UNIX_EPOCH)),
            began_at: None,
        }
    }
}

/// The content of all reports of a run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// Elapsed in seconds; `None`: the end of no step was seen.
    pub elapsed: Option<f64>,
    /// The batch step's wait status; without a batch step the first step's that is not 0, otherwise
    /// 0.
    pub wait_status: i32,
    /// The settings that were applied, as stored.
    pub applied: Value,
    /// Positive numbers by name, over all its nodes.
    pub measures: BTreeMap<String, f64>,
    /// The part that the reports still lack, in one sentence; `None`: they are complete.
    pub missing: Option<String>,
    /// The end of the job as slurmd told it to the epilog, as stored.
    pub epilog: Option<Value>,
}

/// A stored report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The run to which the report belongs.
    pub run_id: i64,
    /// True if it was stored before, so that it changes nothing.
    pub duplicate: bool,
}

impl Store {
    /// Stores a node's report; on an error the caller keeps the report. `merge` gets this report
    /// alone: a run's first report is applied at once, several are merged later by
    /// [`Store::merge_reports`]. A run that never started is recorded as a run of the default,
    /// because its node had no answer and applied nothing. Returns [`StoreError::Replayed`] if the
    /// request was read before, and [`StoreError::Removed`] if its run may have been removed. If
    /// retention has trimmed the run, the report changes nothing.
    pub async fn finish_run(
        &self,
        finish: &Finish<'_>,
        merge: impl FnOnce(&Value) -> Merged,
    ) -> Result<Finished, StoreError> {
        const NAME: &str = "finish_run";
        let merged = merge(&finish.report);
        let nonce = Some(finish.nonce);
        // Also without a run's number, so that the nonce is stored.
        let named = finish.run_id.unwrap_or_default();
        let stored = self.store_report(NAME, named, finish, &merged, nonce);
        if let Some(finished) = stored.await? {
            return Ok(finished);
        }
        let run_id = match self.reported(NAME, finish).await? {
            Some(run_id) => run_id,
            None => {
                self.record_unstarted(finish).await?;
                self.reported(NAME, finish).await?.ok_or_else(|| {
                    StoreError::invariant(NAME, "a run was recorded and cannot be read")
                })?
            }
        };
        self.store_report(NAME, run_id, finish, &merged, None)
            .await?
            .ok_or_else(|| StoreError::invariant(NAME, "a run is there and cannot be reported of"))
    }

    /// Stores a report in one statement, unless the nonce is known. It locks the run first, so that
    /// only one of two reports is the first. `None`: the job has no such run.
    async fn store_report(
        &self,
        name: &'static str,
        run_id: i64,
        finish: &Finish<'_>,
        merged: &Merged,
        nonce: Option<&str>,
    ) -> Result<Option<Finished>, StoreError> {
        let row = sqlx::query!(
            r#"with reading as (
                   insert into nonces (nonce) select decode($14, 'hex') where $14 is not null
                   on conflict do nothing returning nonce
               ), run as (
                   select id, finished_at is null as first, trimmed_at from runs
                   where id = $12 and (cluster = $1 and job_id = $2 and restart_count = $3 or uid = $15)
                     and coalesce(sluid = $13, true) and ($14 is null or exists (select from reading))
                   for no key update
               ), stored as (
                   insert into reports (run_id, node, body) select id, $4, $5 from run where trimmed_at is null
                   on conflict (run_id, node) do nothing returning run_id
               ), told as (
                   update runs set finished_at = coalesce(finished_at, now()), changes = changes + 1,
                          -- Until they are merged, nobody takes the first one's elapsed for the run's.
                          dirty = not run.first,
                          elapsed = case when run.first then $6 when state <> 'in_flight' then elapsed end,
                          wait_status = case when run.first then $7 else wait_status end,
                          applied = case when run.first then $8 else applied end,
                          measures = case when run.first then $9 else measures end,
                          missing = case when run.first then $10 else missing end,
                          epilog = case when run.first then $11 else epilog end
                   from run join stored on stored.run_id = run.id where runs.id = run.id returning runs.id
               )
               select (select id from run) as id, (select count(*) from told) as "told!",
                      ($14 is null or exists (select from reading)) as "is_first_reading!""#,
            finish.job.cluster,
            i64::from(finish.job.job_id),
            finish.job.restart_count.cast_signed(),
            finish.node,
            finish.report,
            merged.elapsed,
            merged.wait_status,
            merged.applied,
            Json(&merged.measures) as _,
            merged.missing,
            merged.epilog,
            run_id,
            finish.sluid.map(Sluid::as_str),
            nonce,
            ERASED_UID
        )
        .fetch_one(&self.pool)
        .await
        .named(name)?;
        if !row.is_first_reading {
            return Err(StoreError::Replayed { transaction: name });
        }
        Ok(row.id.map(|run_id| Finished {
            run_id,
            duplicate: row.told == 0,
        }))
    }

    /// Merges a run's reports: `add` gets them one by one, in order of arrival, because together
    /// they may be larger than memory. Returns an error if there is no such run.
    pub async fn merge_reports<R: Default>(
        &self,
        run_id: i64,
        mut add: impl FnMut(i64, &mut R, Value),
        merge: impl FnOnce(R) -> Merged,
    ) -> Result<(), StoreError> {
        const NAME: &str = "merge_reports";
        let mut transaction = self.begin(NAME, Duration::from_secs(1)).await?;
        sqlx::query_scalar!(
            "select id from runs where id = $1 for no key update",
            run_id
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        let mut reports = R::default();
        let mut bodies = sqlx::query_scalar!(
            "select body from reports where run_id = $1 order by id",
            run_id
        )
        .fetch(&mut *transaction);
        while let Some(body) = bodies.try_next().await.named(NAME)? {
            add(run_id, &mut reports, body);
        }
        drop(bodies);
        let merged = merge(reports);
        let result = sqlx::query!(
            "update runs set elapsed = $2, wait_status = $3, applied = $4, measures = $5, missing = $6, epilog = $7,
                             dirty = false
             where id = $1",
            run_id,
            merged.elapsed,
            merged.wait_status,
            merged.applied,
            Json(&merged.measures) as _,
            merged.missing,
            merged.epilog
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        transaction.commit().await.named(NAME)
    }

    /// Returns true if the report's run exists.
    pub async fn has_run(&self, finish: &Finish<'_>) -> Result<bool, StoreError> {
        Ok(self.reported("has_run", finish).await?.is_some())
    }

    async fn reported(
        &self,
        name: &'static str,
        finish: &Finish<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let mut connection = self.pool.acquire().await.named(name)?;
        Ok(match reported(&mut connection, name, finish).await? {
            Reported::Run(run_id) => Some(run_id),
            Reported::Nothing { .. } => None,
        })
    }

    async fn record_unstarted(&self, finish: &Finish<'_>) -> Result<(), StoreError> {
        const NAME: &str = "record_unstarted";
        let space = finish.space.ok_or_else(|| {
            StoreError::invariant(
                NAME,
                "a run that does not exist was reported without its space",
            )
        })?;
        let study_id = self.ensure_study(finish.study, space).await?;
        let mut transaction = self.begin(NAME, Duration::from_secs(1)).await?;
        let generation_number = match reported(&mut transaction, NAME, finish).await? {
            Reported::Run(_) => return Ok(()),
            Reported::Nothing { generation_number } => generation_number,
        };
        let state = state::load(&mut transaction, NAME, study_id).await?;
        // If another node's report came first, its run serves this report too.
        sqlx::query!(
            "insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                               parametrization, reason, suggestion, delivery, nodes, unstarted, generation, sluid)
             values ($1, $2, $3, $4, $5, $6, $7, 'baseline', 'observe', $8, $9, $10, $11, $12, true, $13, $14)
             on conflict (cluster, job_id, restart_count, generation) do nothing",
            state.epoch_id,
            finish.job.cluster,
            i64::from(finish.job.job_id),
            finish.job.restart_count.cast_signed(),
            i64::from(finish.study.owner_uid),
            finish.node,
            finish.request,
            Json(state.space.default()) as _,
            finish.no_start,
            serde_json::json!({ "no_start": finish.no_start }),
            finish.delivery,
            start::nodes(finish.nodes),
            generation_number,
            finish.sluid.map(Sluid::as_str),
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        transaction.commit().await.named(NAME)
    }
}

enum Reported {
    Run(i64),
    /// The launch has no run; a new one gets this generation.
    Nothing {
        generation_number: i32,
    },
}

/// The run that a report names, if it is a run of this launch, otherwise the run of the launch. A
/// report with neither a run nor a prolog time belongs to the latest run of its key.
async fn reported(
    connection: &mut Connection,
    name: &'static str,
    finish: &Finish<'_>,
) -> Result<Reported, StoreError> {
    if let Some(run_id) = finish.run_id {
        let named = sqlx::query_scalar!(
            "select id from runs
             where id = $1 and (cluster = $2 and job_id = $3 and restart_count = $4 or uid = $6)
               and coalesce(sluid = $5, true)",
            run_id,
            finish.job.cluster,
            i64::from(finish.job.job_id),
            finish.job.restart_count.cast_signed(),
            finish.sluid.map(Sluid::as_str),
            // Its job is not known any more, and it is trimmed: the report changes nothing.
            ERASED_UID
        )
        .fetch_optional(&mut *connection)
        .await
        .named(name)?;
        if let Some(run_id) = named {
            return Ok(Reported::Run(run_id));
        }
        refuse_report_of_removed(&mut *connection, name, Some(run_id), None).await?;
    }
    let latest = generation::latest(&mut *connection, name, &finish.launch()).await?;
    let generation_number = generation::next(latest.as_ref());
    Ok(match latest {
        Some(latest) if !latest.is_anothers => Reported::Run(latest.run.run_id),
        _ => {
            refuse_report_of_removed(connection, name, None, finish.prolog_at).await?;
            Reported::Nothing { generation_number }
        }
    })
}
