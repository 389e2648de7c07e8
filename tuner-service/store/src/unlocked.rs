//! Starts of a busy study, which cannot wait for its lock: from a state that may be slightly old,
//! for decisions that explore nothing.

use std::collections::{HashMap, HashSet};

use io_autotune_model::{Parametrization, Sluid};
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::generation::{self, StartedRun};
use crate::pool::Store;
use crate::records::{JobKey, StudyKey, number};
use crate::start::{Decision, NewRun, insert, nodes, started};
use crate::state::StudyState;

/// A run of a busy study, with its decision.
#[derive(Clone, Debug)]
pub struct BusyStart {
    job: JobKey,
    sluid: Option<Sluid>,
    node: String,
    nodes: u32,
    request: Value,
    decision: Decision,
}

impl BusyStart {
    /// The run with a decision that explores nothing.
    #[must_use]
    pub fn new(new: &NewRun<'_>, decision: Decision) -> Self {
        BusyStart {
            job: new.job.clone(),
            sluid: new.sluid.cloned(),
            node: new.node.to_owned(),
            nodes: new.nodes,
            request: new.request.clone(),
            decision,
        }
    }
}

/// What became of one of several runs that were to start together.
#[derive(Clone, Debug)]
pub enum StartedTogether {
    /// It has started.
    Started(StartedRun),
    /// Nothing was started, because the job's key has runs already.
    HasRuns,
    /// Nothing was started, because the study was steered since its state was read.
    Outdated,
}

impl Store {
    /// Starts a job's run without the study's lock, for a decision that explores nothing, from a
    /// state that may be slightly old. Later requests get the first one's answer. Returns
    /// [`StoreError::Outdated`], and starts nothing, if the study's epoch, pin or acceptance of
    /// mixed work differs from the state's.
    pub async fn start_unlocked(
        &self,
        new: &NewRun<'_>,
        state: &StudyState,
        decide: impl FnOnce(&StudyState) -> Decision,
    ) -> Result<StartedRun, StoreError> {
        const NAME: &str = "start_unlocked";
        let launch = new.launch();
        let mut connection = self.pool.acquire().await.named(NAME)?;
        let latest = generation::latest(&mut connection, NAME, &launch).await?;
        let generation_number = generation::next(latest.as_ref());
        if let Some(own) = latest.filter(|latest| !latest.is_anothers) {
            return Ok(own.run);
        }
        if !is_current(&mut connection, NAME, state).await? {
            return Err(StoreError::Outdated { transaction: NAME });
        }
        let decision = decide(state);
        let place = (state.epoch_id, generation_number);
        let inserted = insert(&mut connection, NAME, new, place, &decision).await?;
        connection.finish().await.named(NAME)?;
        self.answer(NAME, &launch, inserted, decision).await
    }

    /// Starts the runs of many jobs of one study, as [`start_unlocked`](Self::start_unlocked) starts
    /// one, by one statement that inserts them all. The results are in the order of the jobs.
    pub async fn start_together(
        &self,
        study: &StudyKey,
        state: &StudyState,
        starts: Vec<BusyStart>,
    ) -> Result<Vec<StartedTogether>, StoreError> {
        const NAME: &str = "start_together";
        let mut connection = self.pool.acquire().await.named(NAME)?;
        if !is_current(&mut connection, NAME, state).await? {
            return Ok(starts.iter().map(|_| StartedTogether::Outdated).collect());
        }
        // Of two requests of one job the first one's is inserted, and the other finds that run.
        let mut keys = HashSet::new();
        let firsts: Vec<&BusyStart> = (starts.iter())
            .filter(|start| keys.insert(&start.job))
            .collect();
        let mut inserted =
            insert_all(&mut connection, NAME, study, state.epoch_id, &firsts).await?;
        connection.finish().await.named(NAME)?;
        let told = starts
            .into_iter()
            .map(|start| match inserted.remove(&start.job) {
                Some(run_id) => StartedTogether::Started(started(run_id, start.decision)),
                None => StartedTogether::HasRuns,
            });
        Ok(told.collect())
    }
}

/// Returns true if epoch, pin, orders and acceptance of mixed work are still those of the state.
/// Runs may differ.
async fn is_current(
    connection: &mut Connection,
    name: &'static str,
    state: &StudyState,
) -> Result<bool, StoreError> {
    sqlx::query_scalar!(
        r#"select s.mixed_accepted_at is not null = $4
                  and p.parametrization is not distinct from $3
                  and (select coalesce(array_agg(o.id order by o.specificity desc, o.id desc), '{}')
                       from orders_in_force o where o.of_study = s.id) = $5
                  and (select e.id from epochs e where e.study_id = s.id order by e.ordinal desc limit 1) = $2
                  as "current!"
           from studies s left join pins p on p.study_id = s.id and (p.until is null or p.until > now())
           where s.id = $1"#,
        state.study_id,
        state.epoch_id,
        state.own_pin().map(Json) as _,
        state.accepts_mixed,
        &state.ordered.ids
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// Inserts the first runs of their jobs' keys, and returns their numbers. A job that is not among
/// them has runs already.
async fn insert_all(
    connection: &mut Connection,
    name: &'static str,
    study: &StudyKey,
    epoch_id: i64,
    starts: &[&BusyStart],
) -> Result<HashMap<JobKey, i64>, StoreError> {
    fn column<'a, T>(starts: &[&'a BusyStart], of: impl Fn(&'a BusyStart) -> T) -> Vec<T> {
        starts.iter().map(|start| of(start)).collect()
    }
    let inserted = sqlx::query!(
        // One look into the index for each job: an anti-join might read all runs. In an order, so that
        // two statements about the same jobs wait for each other and not both.
        r#"insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                             parametrization, reason, suggestion, delivery, nodes, generation, sluid)
           select $1, $2, job_id, restart_count, $3, node, request, phase, role,
                  parametrization, reason, suggestion, delivery, nodes, 0, sluid
           from unnest($4::bigint[], $5::int[], $6::text[], $7::jsonb[], $8::text[], $9::text[], $10::jsonb[],
                       $11::text[], $12::jsonb[], $13::jsonb[], $14::int[], $15::text[])
                as n (job_id, restart_count, node, request, phase, role, parametrization,
                      reason, suggestion, delivery, nodes, sluid)
           where (select count(*) from runs r where r.cluster = $2 and r.job_id = n.job_id
                                                and r.restart_count = n.restart_count) = 0
           order by n.job_id, n.restart_count
           on conflict (cluster, job_id, restart_count, generation) do nothing
           returning id, job_id, restart_count"#,
        epoch_id,
        study.cluster,
        i64::from(study.owner_uid),
        &column(starts, |start| i64::from(start.job.job_id)),
        &column(starts, |start| start.job.restart_count.cast_signed()),
        &column(starts, |start| start.node.as_str()) as &[&str],
        &column(starts, |start| &start.request) as &[&Value],
        &column(starts, |start| start.decision.phase.to_string()),
        &column(starts, |start| start.decision.role.to_string()),
        &column(starts, |start| Json(&start.decision.parametrization)) as &[Json<&Parametrization>],
        &column(starts, |start| start.decision.reason.as_str()) as &[&str],
        &column(starts, |start| &start.decision.suggestion) as &[&Value],
        &column(starts, |start| &start.decision.delivery) as &[&Value],
        &column(starts, |start| nodes(start.nodes)) as &[Option<i32>],
        &column(starts, |start| start.sluid.as_ref().map(Sluid::as_str)) as &[Option<&str>],
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let keyed = inserted.into_iter().map(|row| {
        let job = JobKey {
            cluster: study.cluster.clone(),
            job_id: number(name, row.job_id)?,
            restart_count: row.restart_count.cast_unsigned(),
        };
        Ok((job, row.id))
    });
    keyed.collect()
}
