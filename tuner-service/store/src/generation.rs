//! Generations of a job id: Slurm gives an id again when ids wrap around, or when slurmctld is set
//! up anew.
//!
//! Slurm's id of a launch (25.11 on) identifies its run. If the launch or the run has none, a
//! launch is not that of the latest run with its key in three cases: it is another user's, it began
//! well after that run's end, or it began (by Slurm) long after that run's start request, because
//! all nodes of one launch ask after its begin.

use io_autotune_model::{Parametrization, Phase, Role, Rule, Sluid};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{JobKey, word};

/// The seconds after a launch's end until no request can come from it: by then requests in transit
/// are answered, and a prolog that was overtaken by the end has run.
const ASKED_AFTER_END: f64 = 60.0;

/// The seconds by which the clocks of slurmctld and the database may differ. With more, MUNGE would
/// fail.
const CLOCKS_DIFFER: f64 = 600.0;

/// The seconds after which a run that was given up is surely over. The end of other runs is their
/// outcome record, or their verdict if they have a report.
const GIVEN_UP: f64 = 86_400.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) job: &'a JobKey,
    pub(crate) sluid: Option<&'a Sluid>,
    pub(crate) uid: u32,
    /// The time when its prolog ran, if not just now.
    pub(crate) prolog_at: Option<Timestamp>,
    /// The launch's begin by slurmctld's clock, if known.
    pub(crate) began_at: Option<Timestamp>,
}

/// A started run.
#[derive(Clone, Debug)]
pub struct StartedRun {
    /// The run.
    pub run_id: i64,
    /// The study's phase at its start.
    pub phase: Phase,
    /// The run's role in the phase.
    pub role: Role,
    /// The rule that decided, unless an earlier version did.
    pub rule: Option<Rule>,
    /// True if its role was drawn, and so must not be shown before the run has ended.
    pub is_drawn: bool,
    /// The parametrization that it is launched with.
    pub parametrization: Parametrization,
    /// The reason, in one sentence.
    pub reason: String,
    /// How the parametrization is delivered.
    pub delivery: Value,
    /// The result of completing its burst buffer's directives, as stored, if it was reported.
    pub directives: Option<Value>,
}

pub(crate) struct Latest {
    pub(crate) run: StartedRun,
    generation_number: i32,
    pub(crate) is_anothers: bool,
}

/// The generation of a launch's new run.
pub(crate) fn next(latest: Option<&Latest>) -> i32 {
    latest.map_or(0, |latest| latest.generation_number.saturating_add(1))
}

impl Store {
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

/// The launch's own run if Slurm's id identifies one, otherwise the latest run with its key.
pub(crate) async fn latest(
    connection: &mut Connection,
    name: &'static str,
    launch: &Launch<'_>,
) -> Result<Option<Latest>, StoreError> {
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
    let row = sqlx::query!(
        r#"select id, phase, role, parametrization as "parametrization: Json<Parametrization>", reason, delivery,
                  directives, generation, suggestion -> 'control_chance' <> 'null' as is_drawn, suggestion ->> 'rule' as rule,
                  uid <> $4
                  or case when sluid is not null and $10::text is not null then sluid <> $10 else
                      coalesce(
                          coalesce(outcome_at,
                                   judged_at
                                   + case when finished_at is null then $9::float8 else 0 end * interval '1 second')
                          < least(timestamptz 'epoch' + $5::bigint * interval '1 microsecond', now())
                            - $7::float8 * interval '1 second', false)
                      or coalesce(
                          started_at < timestamptz 'epoch' + $6::bigint * interval '1 microsecond'
                                       - $8::float8 * interval '1 second', false)
                  end as "is_anothers!"
           from runs where cluster = $1 and job_id = $2 and restart_count = $3
           order by coalesce(sluid = $10 and uid = $4, false) desc, generation desc limit 1"#,
        launch.job.cluster,
        i64::from(launch.job.job_id),
        launch.job.restart_count.cast_signed(),
        i64::from(launch.uid),
        micros(launch.prolog_at),
        micros(launch.began_at),
        ASKED_AFTER_END,
        CLOCKS_DIFFER,
        GIVEN_UP,
        launch.sluid.map(Sluid::as_str)
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
                rule: row.rule.and_then(|rule| rule.parse().ok()),
                is_drawn: row.is_drawn.unwrap_or_default(),
                parametrization: row.parametrization.0,
                reason: row.reason,
                delivery: row.delivery,
                directives: row.directives,
            },
            generation_number: row.generation,
            is_anothers: row.is_anothers,
        })
    })
    .transpose()
}
