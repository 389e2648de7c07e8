//! The start of a run, idempotent per launch; launches are told apart by Slurm's id or by
//! generation.

use std::sync::Arc;
use std::time::Duration;

use io_autotune_model::{Parametrization, Phase, Role, Rule, Sluid, Space};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::epoch_state::EpochState;
use crate::epochs::open_changed_epoch;
use crate::error::{Named, Scarce, StoreError};
use crate::exploring::{self, Budgets, Spent};
use crate::generation::{self, Launch, StartedRun};
use crate::pool::Store;
use crate::records::{JobKey, StudyKey};
use crate::state::{self, Moment, StudyState, Which};
use crate::studies::{lock_study_of, make_study};

/// A run to be started.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// The job.
    pub job: &'a JobKey,
    /// Slurm's id of the launch, if it has one.
    pub sluid: Option<&'a Sluid>,
    /// The node that asks.
    pub node: &'a str,
    /// The number of the job's nodes.
    pub nodes: u32,
    /// The run's study, which is created with its first run.
    pub study: &'a StudyKey,
    /// The user's request, as stored.
    pub request: Value,
    /// The accelerator's space in the catalogue. If the epoch's space differs, a new epoch opens
    /// and takes the runs that still fit.
    pub space: &'a Space,
    /// The begin of this launch by slurmctld's clock, if the node knows it.
    pub began_at: Option<Timestamp>,
    /// The site's budgets for exploring; `None`: exploring has none, and nothing is charged.
    pub budgets: Option<Budgets>,
}

impl NewRun<'_> {
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch {
            job: self.job,
            sluid: self.sluid,
            uid: self.study.owner_uid,
            prolog_at: None,
            began_at: self.began_at,
        }
    }

    /// What exploring has taken today of those that the run may be charged to; nothing if it cannot be
    /// charged, because there are no budgets or the study has settled.
    async fn spent(
        &self,
        connection: &mut Connection,
        name: &'static str,
        study_id: i64,
        epoch: &EpochState,
    ) -> Result<Vec<Spent>, StoreError> {
        let Some(budgets) = self.budgets.filter(|_| !epoch.has_settled()) else {
            return Ok(Vec::new());
        };
        let offset = budgets.utc_offset;
        let spent = exploring::spent(connection, name, &[study_id], offset).await?;
        Ok(spent.into_values().flatten().collect())
    }
}

/// The decision for a run.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The study's phase.
    pub phase: Phase,
    /// The run's role in the phase.
    pub role: Role,
    /// The parametrization that it is launched with.
    pub parametrization: Parametrization,
    /// The reason, in one sentence.
    pub reason: String,
    /// All inputs of the suggestion, for replay.
    pub suggestion: Value,
    /// How the parametrization is delivered.
    pub delivery: Value,
    /// Node-seconds that the run is expected to take at most, if it explores.
    pub explores: Option<f64>,
}

/// How often a start is decided whose run had room in the budgets for exploring when they were read,
/// and none when it was charged.
const CHARGES: u32 = 3;

impl Store {
    /// Starts a job's run. The first request decides, by `decide`, and later requests get the same
    /// answer. If the study was locked or written meanwhile, the decision is not used and `decide`
    /// is asked again, under the study's row lock. A run that explores is charged to the budgets for
    /// exploring. Returns [`StoreError::Busy`] if the lock takes longer than `wait`, or if other
    /// starts use up a budget each time before this one can.
    pub async fn start_run(
        &self,
        new: &NewRun<'_>,
        wait: Duration,
        mut decide: impl FnMut(&StudyState) -> Decision,
    ) -> Result<StartedRun, StoreError> {
        const NAME: &str = "start_run";
        let launch = new.launch();
        // Every node of a job asks, but only the first has to wait for the study.
        if new.nodes > 1
            && let Some(run) = self.run_of(NAME, &launch).await?
        {
            return Ok(run);
        }
        if let Some(run) = self.start_known(NAME, new, wait, &mut decide).await? {
            return Ok(run);
        }
        for _ in 0..CHARGES {
            if let Some(run) = self.start_locked(NAME, new, wait, &mut decide).await? {
                return Ok(run);
            }
        }
        Err(StoreError::Busy {
            transaction: NAME,
            scarce: Scarce::Budget,
        })
    }

    /// Starts a run under its study's lock. `None`: nothing was started, because a budget for
    /// exploring that was read has no room any more.
    async fn start_locked(
        &self,
        name: &'static str,
        new: &NewRun<'_>,
        wait: Duration,
        decide: &mut impl FnMut(&StudyState) -> Decision,
    ) -> Result<Option<StartedRun>, StoreError> {
        let launch = new.launch();
        let mut transaction = self.begin(name, wait).await?;
        let study_id = match lock_study_of(&mut transaction, name, new.study).await? {
            Some(study_id) => study_id,
            None => {
                let most = self.most_studies;
                make_study(&mut transaction, name, new.study, new.space, most).await?
            }
        };
        // Another node of the job may have been first.
        let latest = generation::latest(&mut transaction, name, &launch).await?;
        let generation_number = generation::next(latest.as_ref());
        if let Some(own) = latest.filter(|latest| !latest.is_anothers) {
            return Ok(Some(own.run));
        }
        let (mut moment, mut epoch) = self.current(&mut transaction, name, study_id).await?;
        if !epoch.space.offers_the_same(new.space) {
            let parent = state::load(&mut transaction, name, study_id).await?;
            open_changed_epoch(&mut transaction, name, &parent, new.space).await?;
            (moment, epoch) = self.current(&mut transaction, name, study_id).await?;
        }
        let siblings = state::siblings(&mut transaction, name, &moment, &epoch).await?;
        let sources = self
            .sources(&mut transaction, name, study_id, &epoch)
            .await?;
        let spent = new.spent(&mut transaction, name, study_id, &epoch).await?;
        let mut state = moment.state(name, &epoch, siblings, sources)?;
        state.spent = spent;
        let decision = decide(&state);
        let place = (state.epoch_id, generation_number);
        let inserted = insert(&mut transaction, name, new, place, &decision).await?;
        if !charged(&mut transaction, name, new, inserted, &decision, &state).await? {
            return Ok(None);
        }
        transaction.commit().await.named(name)?;
        self.answer(name, &launch, inserted, decision)
            .await
            .map(Some)
    }

    /// The current epoch of a locked study.
    async fn current(
        &self,
        connection: &mut Connection,
        name: &'static str,
        study_id: i64,
    ) -> Result<(Moment, Arc<EpochState>), StoreError> {
        let moment = state::moment(connection, name, Which::Number(study_id), i32::MAX)
            .await?
            .ok_or(sqlx::Error::RowNotFound)
            .named(name)?;
        let epoch = self
            .kept
            .read(connection, name, (moment.epoch_id, &moment.version))
            .await?;
        Ok((moment, epoch))
    }

    /// Starts the first run of a job's key in two statements: one reads what has no copy here, and
    /// the other takes the study's turn. `None`: nothing was started, because there is no copy, the
    /// key has runs, another start has taken the turn, or a budget for exploring has no room any more.
    async fn start_known(
        &self,
        name: &'static str,
        new: &NewRun<'_>,
        wait: Duration,
        decide: impl FnOnce(&StudyState) -> Decision,
    ) -> Result<Option<StartedRun>, StoreError> {
        let mut connection = self.pool.acquire().await.named(name)?;
        let which = Which::Key(new.study);
        let Some(moment) = state::moment(&mut connection, name, which, i32::MAX).await? else {
            return Ok(None);
        };
        let Some(epoch) = self.kept.at(moment.epoch_id, &moment.version) else {
            return Ok(None);
        };
        // There are no copies of other users' runs.
        if moment.share.is_some() || !epoch.space.offers_the_same(new.space) {
            return Ok(None);
        }
        let turn = Turn {
            study_id: moment.study_id,
            after: moment.turn.clone(),
            wait,
        };
        let sources = self
            .sources(&mut connection, name, moment.study_id, &epoch)
            .await?;
        let spent = new
            .spent(&mut connection, name, moment.study_id, &epoch)
            .await?;
        let mut state = moment.state(name, &epoch, Vec::new(), sources)?;
        state.spent = spent;
        let decision = decide(&state);
        let place = (state.epoch_id, 0);
        if new.budgets.is_none() || decision.explores.is_none() {
            let inserted =
                insert_in(&mut connection, name, new, place, &decision, Some(&turn)).await?;
            connection.finish().await.named(name)?;
            return Ok(inserted.map(|run_id| started(run_id, decision)));
        }
        // A run and its charges are in the database together, or not at all.
        drop(connection);
        let mut transaction = self.begin(name, wait).await?;
        let inserted =
            insert_in(&mut transaction, name, new, place, &decision, Some(&turn)).await?;
        if !charged(&mut transaction, name, new, inserted, &decision, &state).await? {
            return Ok(None);
        }
        transaction.commit().await.named(name)?;
        Ok(inserted.map(|run_id| started(run_id, decision)))
    }

    pub(crate) async fn answer(
        &self,
        name: &'static str,
        launch: &Launch<'_>,
        inserted: Option<i64>,
        decision: Decision,
    ) -> Result<StartedRun, StoreError> {
        match inserted {
            Some(run_id) => Ok(started(run_id, decision)),
            None => self
                .run_of(name, launch)
                .await?
                .ok_or_else(|| StoreError::invariant(name, "a run exists and cannot be read")),
        }
    }
}

/// The column for a number of nodes: 0 means unknown and is stored as null.
pub(crate) fn nodes(nodes: u32) -> Option<i32> {
    i32::try_from(nodes).ok().filter(|nodes| *nodes > 0)
}

/// The turn of a study, which only one start at a time can take.
struct Turn {
    study_id: i64,
    /// The turn that must still be the latest.
    after: String,
    /// The longest wait for a start that has the turn at present.
    wait: Duration,
}

/// Inserts a run. `None`: a concurrent request, under another study's lock or none, has inserted
/// it.
pub(crate) async fn insert(
    connection: &mut Connection,
    name: &'static str,
    new: &NewRun<'_>,
    place: (i64, i32),
    decision: &Decision,
) -> Result<Option<i64>, StoreError> {
    insert_in(connection, name, new, place, decision, None).await
}

/// Inserts a run in a turn, only if nobody has taken the turn since, and as the first run of the
/// job's key.
async fn insert_in(
    connection: &mut Connection,
    name: &'static str,
    new: &NewRun<'_>,
    (epoch_id, generation_number): (i64, i32),
    decision: &Decision,
    turn: Option<&Turn>,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        // The update waits for a transaction that has locked the study, and then sees the row as it
        // is afterwards.
        r#"with turn as (
               update studies s set share = s.share
               from (select set_config('lock_timeout', $19, true) as set) wait
               where s.id = $17 and s.xmin::text = $18 and wait.set is not null returning s.id
           )
           insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                             parametrization, reason, suggestion, delivery, nodes, generation, sluid)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
           where $18::text is null
              or exists (select from turn)
                 and not exists (select from runs where cluster = $2 and job_id = $3 and restart_count = $4)
           on conflict (cluster, job_id, restart_count, generation) do nothing returning id"#,
        epoch_id,
        new.job.cluster,
        i64::from(new.job.job_id),
        new.job.restart_count.cast_signed(),
        i64::from(new.study.owner_uid),
        new.node,
        new.request,
        decision.phase.to_string(),
        decision.role.to_string(),
        Json(&decision.parametrization) as _,
        decision.reason,
        decision.suggestion,
        decision.delivery,
        nodes(new.nodes),
        generation_number,
        new.sluid.map(Sluid::as_str),
        turn.map(|turn| turn.study_id),
        turn.map(|turn| &turn.after),
        turn.map(|turn| turn.wait.as_millis().max(1).to_string()),
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

/// Charges an inserted run to the budgets for exploring, if it explores and there are budgets. Returns
/// false if one has no room any more; the caller must then drop the transaction.
async fn charged(
    connection: &mut Connection,
    name: &'static str,
    new: &NewRun<'_>,
    inserted: Option<i64>,
    decision: &Decision,
    state: &StudyState,
) -> Result<bool, StoreError> {
    match (&new.budgets, inserted, decision.explores) {
        (Some(budgets), Some(run_id), Some(cost)) => {
            exploring::charge(connection, name, run_id, cost, &state.spent, budgets).await
        }
        _ => Ok(true),
    }
}

pub(crate) fn started(run_id: i64, decision: Decision) -> StartedRun {
    StartedRun {
        run_id,
        phase: decision.phase,
        role: decision.role,
        rule: Rule::deserialize(&decision.suggestion["rule"]).ok(),
        is_drawn: !decision.suggestion["control_chance"].is_null(),
        parametrization: decision.parametrization,
        reason: decision.reason,
        delivery: decision.delivery,
        directives: None,
    }
}
