//! A run's verdict enters the study's caches, once.

use std::time::Duration;

use io_autotune_engine::{Parametrization, Phase, RecentRun, Role, Tested};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::pool::{Store, one_row};
use crate::records::{number, word};
use crate::start::lock_study;
use crate::state::TestedRow;

/// Whether a run counts, and for what.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It counts, with its elapsed, for the parametrization that was really applied.
    Counted {
        /// What was really applied.
        parametrization: Parametrization,
        /// Why, in one sentence.
        why: String,
    },
    /// It does not count.
    NotCounted {
        /// Why, in one sentence.
        why: String,
        /// Whether the job failed under the parametrization it was launched with.
        failed: bool,
    },
}

struct Judged {
    epoch_id: i64,
    phase: Phase,
    role: Role,
    launched: Parametrization,
    elapsed: Option<f64>,
}

impl Store {
    /// Gives a run its verdict and adds it to the caches of its epoch. `false`: it has one already.
    ///
    /// # Errors
    ///
    /// When the database fails or the verdict does not fit the run.
    pub async fn judge_run(&self, run_id: i64, verdict: &Verdict) -> Result<bool, StoreError> {
        const NAME: &str = "judge_run";
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        let study_id = sqlx::query_scalar!(
            "select e.study_id from runs r join epochs e on e.id = r.epoch_id where r.id = $1",
            run_id
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let row = sqlx::query!(
            r#"select epoch_id, phase, role, elapsed,
                      parametrization as "parametrization: Json<Parametrization>"
               from runs where id = $1 and state = 'in_flight'"#,
            run_id
        )
        .fetch_optional(&mut *transaction)
        .await
        .named(NAME)?;
        let Some(row) = row else { return Ok(false) };
        let judged = Judged {
            epoch_id: row.epoch_id,
            phase: word(NAME, &row.phase)?,
            role: word(NAME, &row.role)?,
            launched: row.parametrization.0,
            elapsed: row.elapsed,
        };
        let ordinal = add_to_tally(&mut transaction, NAME, &judged).await?;
        let (state, why) = match verdict {
            Verdict::Counted { why, .. } => ("counted", why),
            Verdict::NotCounted { why, .. } => ("not_counted", why),
        };
        let result = sqlx::query!(
            "update runs set state = $2, verdict = $3, judged_at = now(), judged_ordinal = $4
             where id = $1 and state = 'in_flight'",
            run_id,
            state,
            why,
            ordinal
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        match verdict {
            Verdict::Counted {
                parametrization, ..
            } => {
                let elapsed = judged.elapsed.ok_or(StoreError::Invariant {
                    transaction: NAME,
                    problem: "a run without elapsed cannot count".into(),
                })?;
                add_run(
                    &mut transaction,
                    NAME,
                    judged.epoch_id,
                    run_id,
                    parametrization,
                    Some(elapsed),
                )
                .await?;
            }
            Verdict::NotCounted { failed: true, .. } => {
                add_run(
                    &mut transaction,
                    NAME,
                    judged.epoch_id,
                    run_id,
                    &judged.launched,
                    None,
                )
                .await?;
            }
            Verdict::NotCounted { failed: false, .. } => {}
        }
        transaction.commit().await.named(NAME)?;
        Ok(true)
    }
}

/// Adds a run to its epoch's tally and returns its place among the judged runs, from 1.
async fn add_to_tally(
    connection: &mut PgConnection,
    name: &'static str,
    judged: &Judged,
) -> Result<i64, StoreError> {
    let settled = judged.phase == Phase::Settled;
    let one = |condition: bool| i64::from(condition);
    sqlx::query_scalar!(
        "update epochs set baseline = baseline + $2, explored = explored + $3, controls = controls + $4,
                settled = settled + $5, settled_controls = settled_controls + $6, total = total + 1
         where id = $1 returning total",
        judged.epoch_id,
        one(judged.role == Role::Baseline),
        one(judged.role.explores()),
        one(judged.role == Role::Control && !settled),
        one(judged.role == Role::Settled),
        one(judged.role == Role::Control && settled)
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// Adds a run of `elapsed` seconds to a parametrization's cache, or a failure where there is none.
async fn add_run(
    connection: &mut PgConnection,
    name: &'static str,
    epoch_id: i64,
    run_id: i64,
    parametrization: &Parametrization,
    elapsed: Option<f64>,
) -> Result<(), StoreError> {
    let key = parametrization.key();
    let known = sqlx::query_as!(
        TestedRow,
        r#"select parametrization as "parametrization: Json<Parametrization>", count, mean, m2,
                  log_mean, log_m2, recent as "recent: Json<Vec<RecentRun>>", failed, first_run
           from tested where epoch_id = $1 and key = $2"#,
        epoch_id,
        key
    )
    .fetch_optional(&mut *connection)
    .await
    .named(name)?;
    let mut tested = match known {
        Some(row) => row.tested(name)?,
        None => Tested::new(parametrization.clone(), run_id),
    };
    match elapsed {
        Some(elapsed) => tested
            .record(run_id, elapsed)
            .map_err(|error| StoreError::Invariant {
                transaction: name,
                problem: error.to_string(),
            })?,
        None => tested.record_failure(run_id),
    }
    let result = sqlx::query!(
        "insert into tested (epoch_id, key, parametrization, count, mean, m2, log_mean, log_m2, recent, failed,
                             first_run)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (epoch_id, key) do update
             set count = excluded.count, mean = excluded.mean, m2 = excluded.m2, log_mean = excluded.log_mean,
                 log_m2 = excluded.log_m2, recent = excluded.recent, failed = excluded.failed,
                 first_run = excluded.first_run",
        epoch_id,
        key,
        Json(&tested.parametrization) as _,
        number::<u64, i64>(name, tested.elapsed.count)?,
        tested.elapsed.mean,
        tested.elapsed.m2,
        tested.log_elapsed.mean,
        tested.log_elapsed.m2,
        Json(&tested.recent) as _,
        number::<u64, i64>(name, tested.failed)?,
        tested.first_ordinal
    )
    .execute(connection)
    .await
    .named(name)?;
    one_row(name, &result)
}
