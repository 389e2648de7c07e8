//! Runs that wait for a verdict or its revision.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::{Objective, Parametrization};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Named, StoreError};
use crate::outcome::Source;
use crate::pool::{Store, one_row};
use crate::records::{JobKey, number, objective, word};

/// A run, with the records of its end.
#[derive(Clone, Debug)]
pub struct AwaitedRun {
    /// The run.
    pub run_id: i64,
    /// The run's epoch.
    pub epoch_id: i64,
    /// The job.
    pub job: JobKey,
    /// The owner's uid, by the node that started the run.
    pub uid: u32,
    /// That node.
    pub node: String,
    /// The parametrization that it was launched with.
    pub launched: Parametrization,
    /// The objective of its epoch.
    pub objective: Objective,
    /// The default of its epoch's space.
    pub default: Parametrization,
    /// True if a source has listed the job, or reported its end.
    pub listed: bool,
    /// The user's request, as stored.
    pub request: Value,
    /// `in_flight`, `counted`, `censored` or `not_counted`.
    pub state: String,
    /// True if the run is in flight without holding an exploring place.
    pub released: bool,
    /// The number of changes so far. A verdict names the number that it has seen.
    pub changes: i64,
    /// True if a report has arrived.
    pub reported: bool,
    /// True if there are reports that are not merged.
    pub dirty: bool,
    /// The part that the reports still lack, in one sentence; `None`: they are complete.
    pub missing: Option<String>,
    /// Elapsed, in seconds.
    pub elapsed: Option<f64>,
    /// The batch step's wait status; without a batch step the first step's that is not 0, otherwise
    /// 0.
    pub wait_status: Option<i32>,
    /// The settings that were applied, as stored.
    pub applied: Option<Value>,
    /// True if its burst buffer has, or may have, other directives than the default's, which a node
    /// cannot know.
    pub directed: bool,
    /// The end of the job as slurmd told it to the epilog, as stored.
    pub epilog: Option<Value>,
    /// Slurm's state, if known.
    pub outcome: Option<String>,
    /// The source of that state.
    pub outcome_source: Option<Source>,
    /// The owner's uid by Slurm, if a record has it.
    pub owner: Option<u32>,
    /// The nodes by Slurm, as a hostlist, if a record has them.
    pub node_list: Option<String>,
    /// True if the job was suspended, according to Slurm.
    pub suspended: bool,
    /// The job's time limit in seconds, if a record of Slurm's has it.
    pub limit_seconds: Option<u64>,
    /// Seconds since its start, by the database's clock.
    pub age: f64,
    /// Seconds since its first report, by the database's clock.
    pub reported_age: Option<f64>,
    /// Seconds since Slurm's first record, by the database's clock.
    pub outcome_age: Option<f64>,
}

/// The result of [`Store::awaited_runs`].
#[derive(Debug, Default)]
pub struct Awaited {
    /// The runs.
    pub runs: Vec<AwaitedRun>,
    /// Runs whose rows contain invalid values, by number, with the errors. The others do not wait
    /// for them.
    pub unread: Vec<(i64, StoreError)>,
}

impl Store {
    /// At most `limit` runs of a cluster in its own studies that have changes since their verdict,
    /// oldest first, without those in `except`. With `unheard` also runs in flight without any
    /// change.
    pub async fn awaited_runs(
        &self,
        cluster: &str,
        unheard: bool,
        limit: i64,
        except: &[i64],
    ) -> Result<Awaited, StoreError> {
        const NAME: &str = "awaited_runs";
        let rows = sqlx::query!(
            r#"select id, epoch_id, cluster, job_id, restart_count, uid, node, request, state, released, changes, dirty, missing,
                      elapsed, wait_status, applied, epilog, outcome, outcome_source, suspended, limit_seconds,
                      parametrization,
                      (select e.objective from epochs e where e.id = runs.epoch_id) as "objective!",
                      finished_at is not null as "reported!",
                      (listed_at is not null or outcome is not null) as "listed!",
                      (jsonb_path_exists(delivery, '$.watch_directives[*]')
                       and (directives is null or jsonb_path_exists(delivery, '$.directives[*]')
                            or jsonb_path_exists(directives, '$.kept[*]'))) as "directed!",
                      (select max(o.uid) from outcomes o where o.run_id = runs.id) as owner,
                      (select max(o.node_list) from outcomes o where o.run_id = runs.id) as node_list,
                      extract(epoch from now() - started_at)::double precision as "age!",
                      extract(epoch from now() - finished_at)::double precision as reported_age,
                      extract(epoch from now() - outcome_at)::double precision as outcome_age
               from runs
               where cluster = $1 and (changes > judged_changes or (state = 'in_flight' and $2))
                 and trimmed_at is null and id <> all($4)
                 -- A service that knew one cluster put another's runs into its studies. They count nowhere.
                 and exists (select from epochs e join studies s on s.id = e.study_id
                             where e.id = runs.epoch_id and e.removed_at is null and coalesce(s.cluster, $1) = $1)
               order by id limit $3"#,
            cluster,
            unheard,
            limit,
            except
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        let epochs: Vec<i64> = rows.iter().map(|row| row.epoch_id).collect();
        let defaults = self.defaults(NAME, &epochs).await?;
        let mut awaited = Awaited::default();
        for row in rows {
            let run_id = row.id;
            let read = || {
                Ok(AwaitedRun {
                    run_id: row.id,
                    epoch_id: row.epoch_id,
                    job: JobKey {
                        cluster: row.cluster,
                        job_id: number(NAME, row.job_id)?,
                        restart_count: number(NAME, row.restart_count)?,
                    },
                    uid: number(NAME, row.uid)?,
                    node: row.node,
                    launched: Parametrization::deserialize(&row.parametrization).map_err(
                        |error| StoreError::invariant(NAME, format!("a parametrization: {error}")),
                    )?,
                    objective: objective(NAME, &row.objective)?,
                    default: defaults.get(&row.epoch_id).cloned().unwrap_or_default(),
                    listed: row.listed,
                    request: row.request,
                    state: row.state,
                    released: row.released,
                    changes: row.changes,
                    reported: row.reported,
                    dirty: row.dirty,
                    missing: row.missing,
                    elapsed: row.elapsed,
                    wait_status: row.wait_status,
                    applied: row.applied,
                    directed: row.directed,
                    epilog: row.epilog,
                    outcome: row.outcome,
                    outcome_source: row
                        .outcome_source
                        .map(|source| word(NAME, &source))
                        .transpose()?,
                    owner: row.owner.map(|uid| number(NAME, uid)).transpose()?,
                    node_list: row.node_list,
                    suspended: row.suspended,
                    limit_seconds: row
                        .limit_seconds
                        .map(|seconds| number(NAME, seconds))
                        .transpose()?,
                    age: row.age,
                    reported_age: row.reported_age,
                    outcome_age: row.outcome_age,
                })
            };
            match read() {
                Ok(run) => awaited.runs.push(run),
                Err(error) => awaited.unread.push((run_id, error)),
            }
        }
        Ok(awaited)
    }

    /// The default of each epoch's space, read once per epoch because many runs share one.
    async fn defaults(
        &self,
        name: &'static str,
        epochs: &[i64],
    ) -> Result<BTreeMap<i64, Parametrization>, StoreError> {
        let spaces = self.spaces(name, epochs).await?;
        let defaults = spaces.into_iter().map(|(id, space)| (id, space.default()));
        Ok(defaults.collect())
    }

    /// The runs among these that are over: their outcome has been known for `known_for`, or they
    /// have a verdict but no outcome.
    pub async fn over(&self, runs: &[i64], known_for: Duration) -> Result<Vec<i64>, StoreError> {
        sqlx::query_scalar!(
            "select id from runs
             where id = any($1) and (outcome_at <= now() - make_interval(secs => $2)
                                     or outcome_at is null and state <> 'in_flight')
             order by id",
            runs,
            known_for.as_secs_f64()
        )
        .fetch_all(&self.pool)
        .await
        .named("over")
    }

    /// Stores that a source lists the jobs of these runs. Only the first time is kept.
    pub async fn remember_listed(&self, run_ids: &[i64]) -> Result<(), StoreError> {
        sqlx::query!(
            "update runs set listed_at = now() where id = any($1) and listed_at is null",
            run_ids
        )
        .execute(&self.pool)
        .await
        .named("remember_listed")
        .map(drop)
    }

    /// Frees a run's exploring place: its job is over, although the verdict has to wait.
    pub async fn release_run(&self, run_id: i64) -> Result<(), StoreError> {
        const NAME: &str = "release_run";
        let result = sqlx::query!("update runs set released = true where id = $1", run_id)
            .execute(&self.pool)
            .await
            .named(NAME)?;
        one_row(NAME, &result)
    }
}
