//! The store's health: the correctness of its caches, and rows that have waited for long.

use std::time::Duration;

use io_autotune_model::Tally;

use crate::error::{Named, StoreError};
use crate::judgements::fold;
use crate::pool::Store;
use crate::records::{JobKey, number};
use crate::tested;

/// An epoch whose cache differs from the sum of its judgements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFault {
    /// The study.
    pub study_id: i64,
    /// The epoch's number.
    pub epoch: i32,
    /// The difference, in one sentence.
    pub problem: String,
}

/// A run that has been in flight for long.
#[derive(Clone, Debug)]
pub struct StuckRun {
    /// The run.
    pub run_id: i64,
    /// The job.
    pub job: JobKey,
    /// Seconds since its start, by the database's clock.
    pub age: f64,
    /// True if a report has arrived.
    pub reported: bool,
    /// Slurm's state, if known.
    pub outcome: Option<String>,
}

/// The database, as the service's role finds it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DatabaseFacts {
    /// PostgreSQL's version, such as 150018.
    pub version: i32,
    /// The role.
    pub role: String,
    /// True if the role is a superuser.
    pub is_superuser: bool,
    /// Tables that the role cannot read or insert into although the service needs that.
    pub closed: Vec<String>,
}

impl Store {
    /// The version of the database, and the rights that the role lacks.
    pub async fn database_facts(&self) -> Result<DatabaseFacts, StoreError> {
        // The tables that only the owner writes are those in `narrow_rights` (migration 14).
        sqlx::query_as(
            "select current_setting('server_version_num')::int as version, current_user::text as role,
                    coalesce((select rolsuper from pg_roles where rolname = current_user), false) as is_superuser,
                    array(select c.relname::text from pg_class c
                          where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
                            and not (has_table_privilege(c.oid, 'select')
                                     and (c.relname in ('schema_needs', '_sqlx_migrations')
                                          or has_table_privilege(c.oid, 'insert')))
                          order by c.relname) as closed",
        )
        .fetch_one(&self.pool)
        .await
        .named("database_facts")
    }

    /// Epochs whose cache differs in any bit from the sum of their judgements, among epochs whose
    /// runs have not been removed. Reads page by page.
    pub async fn check_caches(&self) -> Result<Vec<CacheFault>, StoreError> {
        const NAME: &str = "check_caches";
        let mut faults = Vec::new();
        let epochs =
            sqlx::query_scalar!("select id from epochs where removed_at is null order by id")
                .fetch_all(&self.pool)
                .await
                .named(NAME)?;
        for epoch_id in epochs {
            faults.extend(self.check_cache(epoch_id).await?);
        }
        Ok(faults)
    }

    async fn check_cache(&self, epoch_id: i64) -> Result<Option<CacheFault>, StoreError> {
        const NAME: &str = "check_caches";
        let mut snapshot = self.snapshot(NAME).await?;
        let epoch = sqlx::query!(
            r#"select study_id, ordinal, judgements, baseline, explored, controls, settled, settled_controls, proof, total,
                      (select count(*) from judgements j where j.epoch_id = e.id) as "judged!",
                      (select count(*) from runs r
                       left join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
                       where r.epoch_id = e.id and r.state <> 'in_flight'
                         and (j.run_id is distinct from r.id
                              or r.state <> case j.effect when 'sample' then 'counted' when 'censored' then 'censored'
                                                          else 'not_counted' end)) as "astray!"
               from epochs e where id = $1"#,
            epoch_id
        )
        .fetch_one(&mut *snapshot)
        .await
        .named(NAME)?;
        let fold = fold(&mut snapshot, NAME, epoch_id, i64::MAX).await?;
        let cached = tested::all(&mut snapshot, NAME, epoch_id).await?;
        let tally = Tally {
            baseline: number(NAME, epoch.baseline)?,
            explored: number(NAME, epoch.explored)?,
            controls: number(NAME, epoch.controls)?,
            settled: number(NAME, epoch.settled)?,
            settled_controls: number(NAME, epoch.settled_controls)?,
            proof: number(NAME, epoch.proof)?,
            total: number(NAME, epoch.total)?,
        };
        let differs = cached
            .iter()
            .find(|tested| fold.tested.get(&tested.parametrization.key()) != Some(*tested));
        let problem = if epoch.judgements != epoch.judged {
            Some(format!(
                "it counts {} judgements and has {}",
                epoch.judgements, epoch.judged
            ))
        } else if epoch.astray != 0 {
            Some(format!(
                "{} runs have a state that is not their latest judgement's",
                epoch.astray
            ))
        } else if tally != fold.tally {
            Some(format!(
                "its tally is {tally:?} and should be {:?}",
                fold.tally
            ))
        } else if let Some(tested) = differs {
            Some(format!(
                "what is known of {} is not what its runs add up to",
                tested.parametrization
            ))
        } else if cached.len() != fold.tested.len() {
            Some(format!(
                "it knows {} parametrizations and should know {}",
                cached.len(),
                fold.tested.len()
            ))
        } else {
            None
        };
        Ok(problem.map(|problem| CacheFault {
            study_id: epoch.study_id,
            epoch: epoch.ordinal,
            problem,
        }))
    }

    /// Runs in flight for longer than `older_than`, oldest first, at most `limit`.
    pub async fn stuck_runs(
        &self,
        older_than: Duration,
        limit: i64,
    ) -> Result<Vec<StuckRun>, StoreError> {
        const NAME: &str = "stuck_runs";
        let rows = sqlx::query!(
            r#"select id, cluster, job_id, restart_count, outcome, finished_at is not null as "reported!",
                      extract(epoch from now() - started_at)::double precision as "age!"
               from runs where state = 'in_flight' and started_at < now() - $1 * interval '1 second'
               order by started_at, id limit $2"#,
            older_than.as_secs_f64(),
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(StuckRun {
                    run_id: row.id,
                    job: JobKey {
                        cluster: row.cluster,
                        job_id: number(NAME, row.job_id)?,
                        restart_count: number(NAME, row.restart_count)?,
                    },
                    age: row.age,
                    reported: row.reported,
                    outcome: row.outcome,
                })
            })
            .collect()
    }

    /// The number of outcome records without a run.
    pub async fn unclaimed_outcomes(&self) -> Result<i64, StoreError> {
        const NAME: &str = "unclaimed_outcomes";
        sqlx::query_scalar!(r#"select count(*) as "count!" from outcomes where run_id is null"#)
            .fetch_one(&self.pool)
            .await
            .named(NAME)
    }
}
