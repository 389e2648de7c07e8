//! Outcome records (Slurm's records of how jobs ended), and the runs they belong to.

mod matching;

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::{Outcome, word_enum};
use jiff::Timestamp;

use crate::accounts;
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{number, word};
use matching::{OutcomeRecord, RunAt, Truth, claims, truth};

/// The source of an outcome record, the least reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// slurmctld's memory, queried after the end.
    Squeue,
    /// Slurm's accounting, queried after the end.
    Sacct,
    /// The job-completion script, called at the end.
    Jobcomp,
}

word_enum!(Source, "source", Squeue => "squeue", Sacct => "sacct", Jobcomp => "jobcomp");

/// The result of [`Store::claim_outcomes`].
#[derive(Debug, Default)]
pub struct Claimed {
    /// The number of jobs with records to join.
    pub jobs: usize,
    /// The jobs whose records cannot be joined, with the errors.
    pub failed: Vec<(u32, StoreError)>,
}

/// The result of [`Store::record_outcomes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// New records.
    pub stored: u64,
    /// Records that were stored before.
    pub duplicates: u64,
}

/// The most jobs per call of [`Store::claim_outcomes`].
const JOBS_AT_ONCE: i64 = 1000;

impl Store {
    /// Stores records, each once, and joins them to their runs. A record without a run waits for
    /// it. If the records of some job cannot be joined, those of other jobs are, and the job's wait
    /// like records without a run.
    pub async fn record_outcomes(
        &self,
        source: Source,
        cluster: &str,
        records: &[Outcome],
    ) -> Result<Recorded, StoreError> {
        // A fixed lock order, so that two deliveries of the same records cannot deadlock.
        let mut records: Vec<&Outcome> = records.iter().collect();
        records.sort_by_key(|record| (record.job_id, record.started_at, record.ended_at));
        match self.record(source, cluster, &records, true).await {
            Err(error) if error.is_of_the_data() => {}
            all => return all,
        }
        let mut recorded = Recorded::default();
        for of_job in records.chunk_by(|one, other| one.job_id == other.job_id) {
            let one = match self.record(source, cluster, of_job, true).await {
                Err(error) if error.is_of_the_data() => {
                    self.record(source, cluster, of_job, false).await?
                }
                one => one?,
            };
            recorded.stored += one.stored;
            recorded.duplicates += one.duplicates;
        }
        Ok(recorded)
    }

    async fn record(
        &self,
        source: Source,
        cluster: &str,
        records: &[&Outcome],
        joins: bool,
    ) -> Result<Recorded, StoreError> {
        const NAME: &str = "record_outcomes";
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        let mut jobs = insert(&mut transaction, NAME, source, cluster, records).await?;
        let stored = jobs.len() as u64;
        jobs.dedup();
        if joins {
            join(&mut transaction, NAME, cluster, &jobs).await?;
        }
        transaction.commit().await.named(NAME)?;
        Ok(Recorded {
            stored,
            duplicates: records.len() as u64 - stored,
        })
    }

    /// Joins records that came before their runs to runs without a verdict, without the jobs in
    /// `except`. The jobs whose records cannot be joined are returned, and do not hold up others.
    pub async fn claim_outcomes(
        &self,
        cluster: &str,
        except: &[i64],
    ) -> Result<Claimed, StoreError> {
        const NAME: &str = "claim_outcomes";
        let jobs = sqlx::query_scalar!(
            "select distinct r.job_id from runs r
             where r.cluster = $1 and (r.state = 'in_flight' or r.changes > r.judged_changes)
               and r.job_id <> all($3)
               and exists (select from outcomes o where o.cluster = r.cluster and o.job_id = r.job_id
                           and o.run_id is null)
             order by r.job_id limit $2",
            cluster,
            JOBS_AT_ONCE,
            except
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        match self.claim(cluster, &jobs).await {
            Err(error) if error.is_of_the_data() => {}
            all => {
                return all.map(|()| Claimed {
                    jobs: jobs.len(),
                    failed: Vec::new(),
                });
            }
        }
        let mut claimed = Claimed::default();
        for job in jobs {
            match self.claim(cluster, &[job]).await {
                Ok(()) => claimed.jobs += 1,
                Err(error) if error.is_of_the_data() => {
                    claimed.failed.push((number(NAME, job)?, error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(claimed)
    }

    async fn claim(&self, cluster: &str, jobs: &[i64]) -> Result<(), StoreError> {
        const NAME: &str = "claim_outcomes";
        if jobs.is_empty() {
            return Ok(());
        }
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        join(&mut transaction, NAME, cluster, jobs).await?;
        transaction.commit().await.named(NAME)
    }

    /// Deletes records that have met no run for this long. Returns their number.
    pub async fn forget_unclaimed(&self, older_than: Duration) -> Result<u64, StoreError> {
        const NAME: &str = "forget_unclaimed";
        let result = sqlx::query!(
            "delete from outcomes where id in (
                 select id from outcomes
                 where run_id is null and received_at < now() - $1 * interval '1 second'
                 for update skip locked)",
            older_than.as_secs_f64()
        )
        .execute(&self.pool)
        .await
        .named(NAME)?;
        Ok(result.rows_affected())
    }
}

async fn insert(
    connection: &mut Connection,
    name: &'static str,
    source: Source,
    cluster: &str,
    records: &[&Outcome],
) -> Result<Vec<i64>, StoreError> {
    fn column<T>(records: &[&Outcome], of: impl Fn(&Outcome) -> T) -> Vec<T> {
        records.iter().map(|record| of(record)).collect()
    }
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
    // A number above the column's range becomes its largest.
    let seconds = |seconds: Option<u64>| seconds.map(|s| i64::try_from(s).unwrap_or(i64::MAX));
    let mut jobs = sqlx::query_scalar!(
        r#"insert into outcomes (source, cluster, job_id, state, exit_code, restart_count, started_at, ended_at,
                                 suspended_seconds, limit_seconds, account, uid, node_list)
           select $1, $2, job_id, state, exit_code, restart_count,
                  timestamptz 'epoch' + started_at * interval '1 microsecond',
                  timestamptz 'epoch' + ended_at * interval '1 microsecond', suspended_seconds, limit_seconds,
                  account, uid, node_list
           from unnest($3::bigint[], $4::text[], $5::text[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[],
                       $10::bigint[], $11::text[], $12::bigint[], $13::text[])
               as w (job_id, state, exit_code, restart_count, started_at, ended_at, suspended_seconds, limit_seconds,
                     account, uid, node_list)
           on conflict do nothing returning job_id"#,
        source.as_str(),
        cluster,
        &column(records, |record| i64::from(record.job_id)),
        &column(records, |record| record.state.clone()),
        &column(records, |record| record.exit_code.clone()) as &[Option<String>],
        &column(records, |record| record.restart_count.map(u32::cast_signed)) as &[Option<i32>],
        &column(records, |record| micros(record.started_at)) as &[Option<i64>],
        &column(records, |record| micros(record.ended_at)) as &[Option<i64>],
        &column(records, |record| seconds(record.suspended_seconds)) as &[Option<i64>],
        &column(records, |record| seconds(record.limit_seconds)) as &[Option<i64>],
        &column(records, |record| record.account.clone()) as &[Option<String>],
        &column(records, |record| record.uid.map(i64::from)) as &[Option<i64>],
        &column(records, |record| record.node_list.clone()) as &[Option<String>]
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    jobs.sort_unstable();
    Ok(jobs)
}

struct RunNow {
    at: RunAt,
    truth: Option<Truth>,
    /// True if its reports have been removed, and with them what a new verdict would need.
    is_trimmed: bool,
}

/// Joins all records of the jobs to their runs, which it locks in the order of their ids.
async fn join(
    connection: &mut Connection,
    name: &'static str,
    cluster: &str,
    jobs: &[i64],
) -> Result<(), StoreError> {
    let runs = runs_of(connection, name, cluster, jobs).await?;
    if runs.is_empty() {
        return Ok(());
    }
    let jobs: Vec<i64> = runs.keys().copied().collect();
    let mut joined = Vec::new();
    let mut changed = Vec::new();
    for (job_id, records) in records_of(connection, name, cluster, &jobs).await? {
        let Some(runs) = runs.get(&job_id) else {
            continue;
        };
        let at: Vec<_> = runs.iter().map(|run| run.at.clone()).collect();
        let (known, records): (Vec<_>, Vec<_>) = records.into_iter().unzip();
        let claims = claims(&records, &at);
        for ((record, known), claim) in records.iter().zip(&known).zip(&claims) {
            if known != claim {
                joined.push((record.id, *claim));
            }
        }
        for run in runs {
            let spoke = |claim: &Option<i64>| *claim == Some(run.at.run_id);
            // An outcome that was stored before records were kept stays until a record comes.
            if !known.iter().any(spoke) && !claims.iter().any(spoke) {
                continue;
            }
            let own: Vec<_> = records
                .iter()
                .zip(&claims)
                .filter(|(_, claim)| spoke(claim))
                .map(|(record, _)| record)
                .collect();
            let now = truth(&run.at, &own);
            if now != run.truth && !run.is_trimmed {
                changed.push((run, now));
            }
        }
    }
    write_claims(connection, name, &joined).await?;
    let runs: Vec<i64> = joined.iter().filter_map(|(_, run_id)| *run_id).collect();
    if !runs.is_empty() {
        accounts::remember(connection, name, &runs).await?;
    }
    for (run, now) in changed {
        write_truth(connection, name, run, now.as_ref()).await?;
    }
    Ok(())
}

async fn runs_of(
    connection: &mut Connection,
    name: &'static str,
    cluster: &str,
    jobs: &[i64],
) -> Result<BTreeMap<i64, Vec<RunNow>>, StoreError> {
    let rows = sqlx::query!(
        // Nodes' clocks agree with slurmctld's (MUNGE requires it); the database's clock may have
        // jumped.
        r#"select id, job_id, restart_count, unstarted, outcome, outcome_source, suspended, limit_seconds,
                  trimmed_at is not null as "is_trimmed!",
                  -- As text: one that is no time would end the statement for all jobs.
                  array(select body ->> 'prolog_at' from reports
                        where run_id = runs.id and body ? 'prolog_at') as "prologs!",
                  (extract(epoch from started_at) * 1000000)::bigint as "started_at!"
           from runs where cluster = $1 and job_id = any($2) order by id for no key update"#,
        cluster,
        jobs
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let mut runs: BTreeMap<i64, Vec<RunNow>> = BTreeMap::new();
    for row in rows {
        let truth = match (row.outcome, row.outcome_source) {
            (Some(outcome), Some(source)) => Some(Truth {
                outcome,
                source: word(name, &source)?,
                suspended: row.suspended,
                limit_seconds: row.limit_seconds,
            }),
            _ => None,
        };
        let at = RunAt {
            run_id: row.id,
            restart_count: row.restart_count,
            started_at: earliest(&row.prologs).unwrap_or(row.started_at),
            unstarted: row.unstarted,
        };
        runs.entry(row.job_id).or_default().push(RunNow {
            at,
            truth,
            is_trimmed: row.is_trimmed,
        });
    }
    Ok(runs)
}

/// The earliest time of a prolog in nodes' reports, in microseconds since 1970. A text that is not
/// a time, or a time that no clock shows, is ignored.
fn earliest(prologs: &[String]) -> Option<i64> {
    let times = prologs
        .iter()
        .filter_map(|text| text.parse::<Timestamp>().ok());
    let times = times.map(Timestamp::as_microsecond);
    times.filter(|at| *at >= 0).min()
}

async fn records_of(
    connection: &mut Connection,
    name: &'static str,
    cluster: &str,
    jobs: &[i64],
) -> Result<BTreeMap<i64, Vec<(Option<i64>, OutcomeRecord)>>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, job_id, source, state, restart_count, limit_seconds, run_id,
                  (extract(epoch from started_at) * 1000000)::bigint as started_at,
                  (extract(epoch from ended_at) * 1000000)::bigint as ended_at,
                  coalesce(suspended_seconds > 0, false) as "suspended!"
           from outcomes where cluster = $1 and job_id = any($2) order by id"#,
        cluster,
        jobs
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let mut records: BTreeMap<i64, Vec<(Option<i64>, OutcomeRecord)>> = BTreeMap::new();
    for row in rows {
        let record = OutcomeRecord {
            id: row.id,
            source: word(name, &row.source)?,
            state: row.state,
            restart_count: row.restart_count,
            started_at: row.started_at,
            ended_at: row.ended_at,
            suspended: row.suspended,
            limit_seconds: row.limit_seconds,
        };
        records
            .entry(row.job_id)
            .or_default()
            .push((row.run_id, record));
    }
    Ok(records)
}

async fn write_claims(
    connection: &mut Connection,
    name: &'static str,
    joined: &[(i64, Option<i64>)],
) -> Result<(), StoreError> {
    if joined.is_empty() {
        return Ok(());
    }
    let (records, runs): (Vec<i64>, Vec<Option<i64>>) = joined.iter().copied().unzip();
    let result = sqlx::query!(
        "update outcomes o set run_id = c.run_id
         from unnest($1::bigint[], $2::bigint[]) as c (id, run_id) where o.id = c.id",
        &records,
        &runs as &[Option<i64>]
    )
    .execute(connection)
    .await
    .named(name)?;
    if result.rows_affected() == records.len() as u64 {
        return Ok(());
    }
    Err(StoreError::invariant(name, "a word of Slurm's is gone"))
}

/// Updates a run's outcome. It counts as a change if the state, the suspension or the limit
/// differs.
async fn write_truth(
    connection: &mut Connection,
    name: &'static str,
    run: &RunNow,
    now: Option<&Truth>,
) -> Result<(), StoreError> {
    let record = |truth: Option<&Truth>| {
        truth.map(|truth| (truth.outcome.clone(), truth.suspended, truth.limit_seconds))
    };
    let changes = i64::from(record(run.truth.as_ref()) != record(now));
    let result = sqlx::query!(
        "update runs set outcome = $2, outcome_source = $3, suspended = $4, limit_seconds = $5, changes = changes + $6,
                         -- Now that it is known which nodes the job had, others' reports are not heard.
                         dirty = dirty or $6 > 0 and (select count(*) > 1 from reports where run_id = $1),
                         outcome_at = case when $2::text is not null then coalesce(outcome_at, now()) end
         where id = $1",
        run.at.run_id,
        now.map(|truth| &truth.outcome),
        now.map(|truth| truth.source.as_str()),
        now.is_some_and(|truth| truth.suspended),
        now.and_then(|truth| truth.limit_seconds),
        changes
    )
    .execute(connection)
    .await
    .named(name)?;
    crate::pool::one_row(name, &result)
}
