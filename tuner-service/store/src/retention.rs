//! Retention: old runs that no study needs are removed in batches, by functions of the schema's
//! owner (`migrations/0024_retention.sql`). `docs/store.md` says what is removed and what stays.

use std::time::Duration;

use io_autotune_model::Removed;
use jiff::Timestamp;

use crate::audit::Audit;
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{number, timestamp};

/// The least age in days of what may be removed. The schema's function has the same limit.
pub const LEAST_DAYS: u32 = 30;

/// The number of runs in a batch.
const BATCH: i32 = 500;

/// [`Removed`] in the form that queries return.
struct Row {
    runs: i64,
    judgements: i64,
    reports: i64,
    outcomes: i64,
    trimmed: i64,
    first_start: Option<i64>,
    last_start: Option<i64>,
    more: bool,
}

impl Row {
    fn removed(&self, name: &'static str) -> Result<Removed, StoreError> {
        let at = |microseconds: Option<i64>| microseconds.map(|at| timestamp(name, at)).transpose();
        Ok(Removed {
            runs: number(name, self.runs)?,
            judgements: number(name, self.judgements)?,
            reports: number(name, self.reports)?,
            outcomes: number(name, self.outcomes)?,
            trimmed: number(name, self.trimmed)?,
            from: at(self.first_start)?,
            to: at(self.last_start)?,
        })
    }
}

/// The rows that [`Store::remove_changes`] has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedChanges {
    /// Lines of the audit.
    pub lines: u64,
    /// Orders that had ended.
    pub orders: u64,
}

/// The longest time of a statement that reads or removes history.
const LONGEST: Duration = Duration::from_secs(20);

/// The number of audit lines in a batch.
const CHANGES: i32 = 1000;

impl Store {
    /// The rows older than `days` that would be removed. It reads all of them, and takes up to 20
    /// s.
    pub async fn would_remove(&self, days: u32) -> Result<Removed, StoreError> {
        const NAME: &str = "would_remove";
        let mut snapshot = self.snapshot(NAME).await?;
        snapshot.allow(LONGEST).await.named(NAME)?;
        // Compiling the query would take longer than running it.
        sqlx::query!("set local jit = off")
            .execute(&mut *snapshot)
            .await
            .named(NAME)?;
        let row = sqlx::query_as!(
            Row,
            r#"with cut as materialized (
                   select now() - make_interval(days => $1) as cutoff
               ), going as (
                   select r.id, r.started_at, true as whole
                   from cut, epochs_to_remove(cutoff) over_epoch join runs r on r.epoch_id = over_epoch.epoch_id
                   union all
                   select r.id, r.started_at, true
                   from cut, epochs e join runs_heard r on r.epoch_id = e.id
                   where e.removed_at is not null and r.heard_at < cutoff
               ), trimming as (
                   select r.id, r.started_at, false as whole
                   from cut, runs_heard r
                   where r.trimmed_at is null and r.judged_at < cutoff and not r.is_awaited and r.heard_at < cutoff
                     and not exists (select from going where going.id = r.id)
               ), every as (select * from going union all select * from trimming)
               select count(*) filter (where whole) as "runs!", count(*) filter (where not whole) as "trimmed!",
                      (select count(*) from judgements j join going g on g.id = j.run_id) as "judgements!",
                      (select count(*) from reports p join every g on g.id = p.run_id) as "reports!",
                      (select count(*) from outcomes o join going g on g.id = o.run_id) as "outcomes!",
                      (extract(epoch from min(started_at)) * 1000000)::bigint as first_start,
                      (extract(epoch from max(started_at)) * 1000000)::bigint as last_start, false as "more!"
               from every"#,
            days_of(NAME, days)?
        )
        .fetch_one(&mut *snapshot)
        .await
        .named(NAME)?;
        row.removed(NAME)
    }

    /// Removes one batch of rows older than `days`, with a line in the audit. It holds no study's
    /// lock while it removes. The second result is true if there may be more.
    pub async fn remove_history(
        &self,
        days: u32,
        audit: Audit<'_>,
    ) -> Result<(Removed, bool), StoreError> {
        const NAME: &str = "remove_history";
        let mut transaction = self.begin(NAME, Duration::from_secs(1)).await?;
        transaction.allow(LONGEST).await.named(NAME)?;
        let row = sqlx::query_as!(
            Row,
            r#"select runs as "runs!", judgements as "judgements!", reports as "reports!", outcomes as "outcomes!",
                      trimmed as "trimmed!", more as "more!",
                      (extract(epoch from first_start) * 1000000)::bigint as first_start,
                      (extract(epoch from last_start) * 1000000)::bigint as last_start
               from remove_history(make_interval(days => $1), $2, $3, $4)"#,
            days_of(NAME, days)?,
            BATCH,
            i64::from(audit.uid),
            audit.why
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        transaction.commit().await.named(NAME)?;
        Ok((row.removed(NAME)?, row.more))
    }

    /// Removes one batch of audit lines older than `days`, and ended orders of which no line is
    /// left. The second result is true if there may be more.
    pub async fn remove_changes(&self, days: u32) -> Result<(RemovedChanges, bool), StoreError> {
        const NAME: &str = "remove_changes";
        let row = sqlx::query!(
            r#"select lines as "lines!", orders as "orders!", more as "more!"
               from remove_changes(make_interval(days => $1), $2)"#,
            days_of(NAME, days)?,
            CHANGES
        )
        .fetch_one(&self.pool)
        .await
        .named(NAME)?;
        let removed = RemovedChanges {
            lines: number(NAME, row.lines)?,
            orders: number(NAME, row.orders)?,
        };
        Ok((removed, row.more))
    }

    /// The latest start of a run that was removed, if any was.
    pub async fn removed_through(&self) -> Result<Option<Timestamp>, StoreError> {
        const NAME: &str = "removed_through";
        let at = sqlx::query_scalar!(
            "select (extract(epoch from max(removed_start)) * 1000000)::bigint from epochs"
        )
        .fetch_one(&self.pool)
        .await
        .named(NAME)?;
        at.map(|at| timestamp(NAME, at)).transpose()
    }
}

fn days_of(name: &'static str, days: u32) -> Result<i32, StoreError> {
    number(name, days.max(LEAST_DAYS))
}

/// Returns [`StoreError::Removed`] if the runs of this epoch are being removed, or have been.
pub(crate) async fn refuse_removed(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
) -> Result<(), StoreError> {
    let through = sqlx::query_scalar!(
        "select (extract(epoch from removed_start) * 1000000)::bigint from epochs where id = $1",
        epoch_id
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    refusal(name, through)
}

/// Returns [`StoreError::Removed`] if a report may belong to a run that was removed: it names a run
/// that does not exist and was not the last one, or its launch began before one that was removed. A
/// run that was counted once must not be counted again.
pub(crate) async fn refuse_report_of_removed(
    connection: &mut Connection,
    name: &'static str,
    run_id: Option<i64>,
    prolog_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    let through = sqlx::query_scalar!(
        "select (extract(epoch from max(removed_start)) * 1000000)::bigint from epochs
         where removed_run >= $1 and not exists (select from runs where id = $1)
            or removed_start >= timestamptz 'epoch' + $2::bigint * interval '1 microsecond'",
        run_id,
        prolog_at.map(Timestamp::as_microsecond)
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    refusal(name, through)
}

fn refusal(transaction: &'static str, through: Option<i64>) -> Result<(), StoreError> {
    match through {
        None => Ok(()),
        Some(through) => Err(StoreError::Removed {
            transaction,
            through: timestamp(transaction, through)?,
        }),
    }
}
