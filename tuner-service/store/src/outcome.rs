//! Runs that wait for Slurm's word or for their report.

use serde_json::Value;
use sqlx::types::Json;

use io_autotune_engine::{Parametrization, Space};

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{JobKey, number};

/// A run in flight, with what is known of its end.
#[derive(Clone, Debug)]
pub struct AwaitedRun {
    /// The run.
    pub run_id: i64,
    /// The job.
    pub job: JobKey,
    /// What it was launched under.
    pub launched: Parametrization,
    /// The default of its epoch's space.
    pub default: Parametrization,
    /// What the user asked for, as it was kept.
    pub request: Value,
    /// Whether its report has come.
    pub reported: bool,
    /// Seconds.
    pub elapsed: Option<f64>,
    /// The first wait status of its steps that is not 0, else 0.
    pub wait_status: Option<i32>,
    /// What was really applied, as it was kept.
    pub applied: Option<Value>,
    /// Slurm's word, where it is known.
    pub outcome: Option<String>,
    /// Seconds since its start, by the database's clock.
    pub age: f64,
    /// Seconds since its report, by the database's clock.
    pub reported_age: Option<f64>,
    /// Seconds since Slurm's word, by the database's clock.
    pub outcome_age: Option<f64>,
}

impl Store {
    /// Runs of a cluster in flight, oldest first, at most `limit`: those whose report has come, and, if
    /// `unreported`, those too whose report has not.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn awaited_runs(
        &self,
        cluster: &str,
        unreported: bool,
        limit: i64,
    ) -> Result<Vec<AwaitedRun>, StoreError> {
        const NAME: &str = "awaited_runs";
        let rows = sqlx::query!(
            r#"select r.id, cluster, job_id, restart_count, request, elapsed, wait_status, applied, outcome,
                      e.space as "space: Json<Space>",
                      parametrization as "parametrization: Json<Parametrization>",
                      finished_at is not null as "reported!",
                      extract(epoch from now() - started_at)::double precision as "age!",
                      extract(epoch from now() - finished_at)::double precision as reported_age,
                      extract(epoch from now() - outcome_at)::double precision as outcome_age
               from runs r join epochs e on e.id = r.epoch_id
               where state = 'in_flight' and cluster = $1 and (finished_at is not null or $2)
               order by r.id limit $3"#,
            cluster,
            unreported,
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(AwaitedRun {
                    run_id: row.id,
                    job: JobKey {
                        cluster: row.cluster,
                        job_id: number(NAME, row.job_id)?,
                        restart_count: number(NAME, row.restart_count)?,
                    },
                    launched: row.parametrization.0,
                    default: row.space.0.default(),
                    request: row.request,
                    reported: row.reported,
                    elapsed: row.elapsed,
                    wait_status: row.wait_status,
                    applied: row.applied,
                    outcome: row.outcome,
                    age: row.age,
                    reported_age: row.reported_age,
                    outcome_age: row.outcome_age,
                })
            })
            .collect()
    }
}
