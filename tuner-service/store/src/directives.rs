//! The result of completing the directives of a job's burst buffer.

use serde_json::Value;

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::JobKey;

impl Store {
    /// Stores the result with a run in flight that no node has reported. A later result replaces
    /// it, because slurmctld sets the buffer up anew when it is restarted. Returns false if there
    /// is no such run.
    pub async fn record_directives(
        &self,
        job: &JobKey,
        run_id: i64,
        directives: &Value,
    ) -> Result<bool, StoreError> {
        let result = sqlx::query!(
            "update runs set directives = $5
             where id = $1 and cluster = $2 and job_id = $3 and restart_count = $4
               and state = 'in_flight' and finished_at is null",
            run_id,
            job.cluster,
            i64::from(job.job_id),
            job.restart_count.cast_signed(),
            directives,
        )
        .execute(&self.pool)
        .await
        .named("record_directives")?;
        Ok(result.rows_affected() == 1)
    }
}
