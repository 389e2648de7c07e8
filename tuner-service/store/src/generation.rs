//! A job id that Slurm gives again: its ids wrap around, or slurmctld is set up anew. Whoever has it now is another
//! job, and what is asked or reported of it is not about the run that had it before.
//!
//! A launch is another one than the key's latest run if it is another user's, if it began when that run had been over
//! for a while, or if Slurm says that it began long after that run was asked for: all nodes of one launch ask after
//! its begin.

use io_autotune_model::{Parametrization, Phase, Role};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{JobKey, word};

/// So many seconds after its end a launch is certainly not asked for any more: what was on its way is answered, and a
/// prolog that its end overtook has run.
const ASKED_AFTER_END: f64 = 60.0;

/// Clocks of slurmctld and of the database differ by less, in seconds: MUNGE would refuse every credential before.
const CLOCKS_DIFFER: f64 = 600.0;

/// Slurm's word for how a launch ended, or a report with a verdict, is its end. A run that was given up may be alive
/// after all: so many seconds later it is not.
const GIVEN_UP: f64 = 86_400.0;

/// A launch that something is asked or reported of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// The key, which other launches may have had before it.
    pub(crate) job: &'a JobKey,
    /// Whose job it is.
    pub(crate) uid: u32,
    /// When a prolog of it ran, where that was not just now.
    pub(crate) prolog_at: Option<Timestamp>,
    /// When it began, by slurmctld's clock, where that is known.
    pub(crate) began_at: Option<Timestamp>,
}

/// A run that was started, now or at an earlier asking.
#[derive(Clone, Debug)]
pub struct StartedRun {
    /// The run.
    pub run_id: i64,
    /// The study's phase at its start.
    pub phase: Phase,
    /// The run's part in it.
    pub role: Role,
    /// What it is launched under.
    pub parametrization: Parametrization,
    /// Why, in one sentence.
    pub reason: String,
    /// How the parametrization is delivered.
    pub delivery: Value,
}

/// The latest run of a key.
pub(crate) struct Latest {
    pub(crate) run: StartedRun,
    generation_number: i32,
    /// It is another launch's: the job id was given again.
    pub(crate) is_anothers: bool,
}

/// The recurrence that a launch's run is to have, if there is none yet.
pub(crate) fn next(latest: Option<&Latest>) -> i32 {
    latest.map_or(0, |latest| latest.generation_number.saturating_add(1))
}

impl Store {
    /// The run of a launch, if it has one.
    pub(crate) async fn run_of(
        &self,
        name: &'static str,
        launch: &Launch<'_>,
    ) -> Result<Option<StartedRun>, StoreError> {
        let mut connection = self.pool.acquire().await.named(name)?;
        let latest = latest(&mut connection, name, launch).await?;
        Ok(latest
            .filter(|latest| !latest.is_anothers)
            .map(|latest| latest.run))
    }
}

/// The latest run of a launch's key, this launch's or another's.
pub(crate) async fn latest(
    connection: &mut PgConnection,
    name: &'static str,
    launch: &Launch<'_>,
) -> Result<Option<Latest>, StoreError> {
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
    let row = sqlx::query!(
        r#"select id, phase, role, parametrization as "parametrization: Json<Parametrization>", reason, delivery,
                  recurrence,
                  uid <> $4
                  or coalesce(
                      coalesce(outcome_at,
                               judged_at + case when finished_at is null then $9::float8 else 0 end * interval '1 second')
                      < least(timestamptz 'epoch' + $5::bigint * interval '1 microsecond', now())
                        - $7::float8 * interval '1 second', false)
                  or coalesce(
                      started_at < timestamptz 'epoch' + $6::bigint * interval '1 microsecond'
                                   - $8::float8 * interval '1 second', false) as "is_anothers!"
           from runs where cluster = $1 and job_id = $2 and restart_count = $3
           order by recurrence desc limit 1"#,
        launch.job.cluster,
        i64::from(launch.job.job_id),
        launch.job.restart_count.cast_signed(),
        i64::from(launch.uid),
        micros(launch.prolog_at),
        micros(launch.began_at),
        ASKED_AFTER_END,
        CLOCKS_DIFFER,
        GIVEN_UP
    )
    .fetch_optional(connection)
    .await
    .named(name)?;
    row.map(|row| {
        Ok(Latest {
            run: StartedRun {
                run_id: row.id,
                phase: word(name, &row.phase)?,
                role: word(name, &row.role)?,
                parametrization: row.parametrization.0,
                reason: row.reason,
                delivery: row.delivery,
            },
            generation_number: row.recurrence,
            is_anothers: row.is_anothers,
        })
    })
    .transpose()
}
