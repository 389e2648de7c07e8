//! The start of a run: idempotent per job and restart.

use std::time::Duration;

use io_autotune_model::{
    History, Parametrization, Phase, Role, Space, carried, carried_parametrization,
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

use crate::error::{Named, StoreError};
use crate::pool::{Store, one_row};
use crate::records::{JobKey, StudyKey, number};
use crate::recurrence::{self, Launch};
use crate::state::{self, StudyState};
use crate::tested;

/// A run to be started.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// The job.
    pub job: &'a JobKey,
    /// The node that asks.
    pub node: &'a str,
    /// How many nodes the job has.
    pub nodes: u32,
    /// The study it belongs to; it is made if it is the first run.
    pub study: &'a StudyKey,
    /// What the user asked for, as it is kept.
    pub request: Value,
    /// The accelerator's space as the catalogue has it now. Where the study's epoch has another,
    /// a new epoch is opened, which takes the runs that still fit.
    pub space: &'a Space,
    /// When this launch of the job began, by slurmctld's clock, where the node was told.
    pub began_at: Option<Timestamp>,
}

impl NewRun<'_> {
    fn launch(&self) -> Launch<'_> {
        Launch {
            job: self.job,
            uid: self.study.owner_uid,
            prolog_at: None,
            began_at: self.began_at,
        }
    }
}

/// What was decided for a run.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The study's phase.
    pub phase: Phase,
    /// The run's part in it.
    pub role: Role,
    /// What it is launched under.
    pub parametrization: Parametrization,
    /// Why, in one sentence.
    pub reason: String,
    /// Everything the suggestion was made from, so that it can be replayed.
    pub suggestion: Value,
    /// How the parametrization is delivered.
    pub delivery: Value,
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

impl Store {
    /// Starts the run of a job. The first asking decides, by `decide`, inside the transaction that
    /// holds the study's row lock, which is waited for so long at most; every other asking gets the
    /// first one's answer.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] when the lock could not be had in time.
    pub async fn start_run(
        &self,
        new: &NewRun<'_>,
        wait: Duration,
        decide: impl FnOnce(&StudyState) -> Decision,
    ) -> Result<StartedRun, StoreError> {
        const NAME: &str = "start_run";
        let launch = new.launch();
        // Every node of a job asks: all but the first need not wait for the study.
        if new.nodes > 1
            && let Some(run) = self.run_of(NAME, &launch).await?
        {
            return Ok(run);
        }
        let mut transaction = self.begin(NAME, wait).await?;
        let study_id = match lock_study_of(&mut transaction, NAME, new.study).await? {
            Some(study_id) => study_id,
            None => make_study(&mut transaction, NAME, new.study, new.space).await?,
        };
        // Another of its nodes may have been first: nothing is to be decided twice.
        let latest = recurrence::latest(&mut transaction, NAME, &launch).await?;
        let recurrence = recurrence::next(latest.as_ref());
        if let Some(own) = latest.filter(|latest| !latest.is_anothers) {
            return Ok(own.run);
        }
        let mut state = state::load(&mut transaction, NAME, study_id).await?;
        if !state.space.offers_the_same(new.space) {
            open_changed_epoch(&mut transaction, NAME, &state, new.space).await?;
            state = state::load(&mut transaction, NAME, study_id).await?;
        }
        let decision = decide(&state);
        let place = (state.epoch_id, recurrence);
        let inserted = insert(&mut transaction, NAME, new, place, &decision).await?;
        transaction.commit().await.named(NAME)?;
        self.answer(NAME, &launch, inserted, decision).await
    }

    /// Starts the run of a job without the study's lock: for a decision that explores nothing, made
    /// from a state that may be some moments old. Every other asking gets the first one's answer.
    ///
    /// # Errors
    ///
    /// When the database fails; [`StoreError::Outdated`] when the study has another epoch, or another pin,
    /// than that state has: nothing is started then.
    pub async fn start_unlocked(
        &self,
        new: &NewRun<'_>,
        state: &StudyState,
        decide: impl FnOnce(&StudyState) -> Decision,
    ) -> Result<StartedRun, StoreError> {
        const NAME: &str = "start_unlocked";
        let launch = new.launch();
        let mut connection = self.pool.acquire().await.named(NAME)?;
        let latest = recurrence::latest(&mut connection, NAME, &launch).await?;
        let recurrence = recurrence::next(latest.as_ref());
        if let Some(own) = latest.filter(|latest| !latest.is_anothers) {
            return Ok(own.run);
        }
        if !is_current(&mut connection, NAME, state).await? {
            return Err(StoreError::Outdated { transaction: NAME });
        }
        let decision = decide(state);
        let place = (state.epoch_id, recurrence);
        let inserted = insert(&mut connection, NAME, new, place, &decision).await?;
        drop(connection);
        self.answer(NAME, &launch, inserted, decision).await
    }

    /// The answer to a start whose run was inserted now, or, where it was not, earlier.
    async fn answer(
        &self,
        name: &'static str,
        launch: &Launch<'_>,
        inserted: Option<i64>,
        decision: Decision,
    ) -> Result<StartedRun, StoreError> {
        match inserted {
            Some(run_id) => Ok(StartedRun {
                run_id,
                phase: decision.phase,
                role: decision.role,
                parametrization: decision.parametrization,
                reason: decision.reason,
                delivery: decision.delivery,
            }),
            None => self
                .run_of(name, launch)
                .await?
                .ok_or_else(|| StoreError::Invariant {
                    transaction: name,
                    problem: "a run exists and cannot be read".into(),
                }),
        }
    }
}

/// The study of a key, if there is one.
async fn find_study(
    pool: &PgPool,
    name: &'static str,
    key: &StudyKey,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "select s.id from studies s join applications a on a.id = s.application_id
         where a.owner_uid = $1 and a.name = $2 and s.accelerator = $3 and s.context_key = $4",
        i64::from(key.owner_uid),
        key.application,
        key.accelerator,
        key.context_key()
    )
    .fetch_optional(pool)
    .await
    .named(name)
}

/// Takes the row lock of a key's study; `None`: there is no such study.
async fn lock_study_of(
    connection: &mut PgConnection,
    name: &'static str,
    key: &StudyKey,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "select s.id from studies s join applications a on a.id = s.application_id
         where a.owner_uid = $1 and a.name = $2 and s.accelerator = $3 and s.context_key = $4
         for update of s",
        i64::from(key.owner_uid),
        key.application,
        key.accelerator,
        key.context_key()
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

/// Makes the study of a key, with its first epoch, unless somebody else just did. Its row is locked in either case.
async fn make_study(
    connection: &mut PgConnection,
    name: &'static str,
    key: &StudyKey,
    space: &Space,
) -> Result<i64, StoreError> {
    let context_key = key.context_key();
    let application_id = sqlx::query_scalar!(
        "insert into applications (owner_uid, owner_name, name) values ($1, $2, $3)
         on conflict (owner_uid, name) do update
             set owner_name = coalesce(excluded.owner_name, applications.owner_name)
         returning id",
        i64::from(key.owner_uid),
        key.owner_name,
        key.application
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    let inserted = sqlx::query_scalar!(
        "insert into studies (application_id, accelerator, context, context_key)
         values ($1, $2, $3, $4)
         on conflict (application_id, accelerator, context_key) do nothing returning id",
        application_id,
        key.accelerator,
        Json(&key.context) as _,
        context_key
    )
    .fetch_optional(&mut *connection)
    .await
    .named(name)?;
    if let Some(study_id) = inserted {
        let opening = Opening::afresh(None, space, "first run");
        open_epoch(connection, name, study_id, opening).await?;
        return Ok(study_id);
    }
    lock_study_of(connection, name, key)
        .await?
        .ok_or(StoreError::Invariant {
            transaction: name,
            problem: "a study exists and cannot be read".into(),
        })
}

impl Store {
    /// The study of a key, made with its first epoch where there is none.
    pub(crate) async fn ensure_study(
        &self,
        key: &StudyKey,
        space: &Space,
    ) -> Result<i64, StoreError> {
        const NAME: &str = "ensure_study";
        if let Some(study_id) = find_study(&self.pool, NAME, key).await? {
            return Ok(study_id);
        }
        let mut transaction = self.begin(NAME, Duration::from_secs(1)).await?;
        let study_id = make_study(&mut transaction, NAME, key, space).await?;
        transaction.commit().await.named(NAME)?;
        Ok(study_id)
    }
}

/// Takes a study's row lock, which serialises its suggestions and its caches.
pub(crate) async fn lock_study(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
) -> Result<(), StoreError> {
    sqlx::query_scalar!("select id from studies where id = $1 for update", study_id)
        .fetch_one(connection)
        .await
        .named(name)?;
    Ok(())
}

/// Whether nobody has steered a study since its state was read. Runs may have come and gone.
async fn is_current(
    connection: &mut PgConnection,
    name: &'static str,
    state: &StudyState,
) -> Result<bool, StoreError> {
    sqlx::query_scalar!(
        r#"select s.mixed_accepted_at is not null = $4
                  and p.parametrization is not distinct from $3
                  and (select e.id from epochs e where e.study_id = s.id order by e.ordinal desc limit 1) = $2
                  as "current!"
           from studies s left join pins p on p.study_id = s.id where s.id = $1"#,
        state.study_id,
        state.epoch_id,
        state.pin.as_ref().map(Json) as _,
        state.accepts_mixed
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// What an epoch is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    /// The epoch before.
    pub(crate) parent: Option<&'a StudyState>,
    /// The epoch's space.
    pub(crate) space: &'a Space,
    /// Why it is opened.
    pub(crate) why: &'a str,
    /// The ranks that it takes from its parent, the best first.
    pub(crate) inherited: &'a [Parametrization],
    /// The change that made its parent end, if one did.
    pub(crate) drift: Option<&'a Value>,
}

impl<'a> Opening<'a> {
    /// It takes nothing from its parent.
    pub(crate) fn afresh(parent: Option<&'a StudyState>, space: &'a Space, why: &'a str) -> Self {
        Self {
            parent,
            space,
            why,
            inherited: &[],
            drift: None,
        }
    }

    fn takes(&self) -> &'static str {
        match self.drift {
            Some(_) => "ranks",
            None => "nothing",
        }
    }
}

/// Opens the next epoch of a study, whose row lock is held.
pub(crate) async fn open_epoch(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
    opening: Opening<'_>,
) -> Result<i32, StoreError> {
    let ordinal = opening.parent.map_or(0, |parent| parent.epoch) + 1;
    let result = sqlx::query!(
        "insert into epochs (study_id, ordinal, parent_id, takes, space, seed, opened_why, inherited, drift)
         values ($1, $2::int, $3, $4, $5, hashint8extended($1, $2::int::bigint), $6, $7, $8)",
        study_id,
        ordinal,
        opening.parent.map(|parent| parent.epoch_id),
        opening.takes(),
        Json(opening.space) as _,
        opening.why,
        Json(opening.inherited) as _,
        opening.drift
    )
    .execute(connection)
    .await
    .named(name)?;
    one_row(name, &result)?;
    Ok(ordinal)
}

/// A number of nodes as it is kept; none is nobody's word.
pub(crate) fn nodes(nodes: u32) -> Option<i32> {
    i32::try_from(nodes).ok().filter(|nodes| *nodes > 0)
}

/// Opens the next epoch of a study, whose row lock is held, because the accelerator's parameters have
/// changed. It takes the runs that still fit, and so does the study's pin.
async fn open_changed_epoch(
    connection: &mut PgConnection,
    name: &'static str,
    parent: &StudyState,
    space: &Space,
) -> Result<(), StoreError> {
    let History { tested, tally } = carried(&parent.history, &parent.space, space);
    let epoch_id = sqlx::query_scalar!(
        "insert into epochs (study_id, ordinal, parent_id, takes, taken_judgements, space, seed, opened_why,
                             baseline, explored, controls, settled, settled_controls, total)
         values ($1, $2::int, $3, 'runs', $4, $5, hashint8extended($1, $2::int::bigint), $6,
                 $7, $8, $9, $10, $11, $12) returning id",
        parent.study_id,
        parent.epoch + 1,
        parent.epoch_id,
        parent.judged,
        Json(space) as _,
        "the accelerator's parameters changed",
        number::<u64, i64>(name, tally.baseline)?,
        number::<u64, i64>(name, tally.explored)?,
        number::<u64, i64>(name, tally.controls)?,
        number::<u64, i64>(name, tally.settled)?,
        number::<u64, i64>(name, tally.settled_controls)?,
        number::<u64, i64>(name, tally.total)?
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    for entry in &tested {
        tested::write(connection, name, epoch_id, entry).await?;
    }
    let pin = parent.pin.as_ref();
    if let Some(pin) = pin.and_then(|pin| carried_parametrization(pin, &parent.space, space)) {
        let result = sqlx::query!(
            "update pins set parametrization = $2 where study_id = $1",
            parent.study_id,
            Json(&pin) as _
        )
        .execute(connection)
        .await
        .named(name)?;
        one_row(name, &result)?;
    }
    Ok(())
}

/// Inserts a run into an epoch, with a recurrence; `None`: the launch has one already, of an asking at the
/// same moment under another study's lock or under none.
async fn insert(
    connection: &mut PgConnection,
    name: &'static str,
    new: &NewRun<'_>,
    (epoch_id, recurrence): (i64, i32),
    decision: &Decision,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role,
                           parametrization, reason, suggestion, delivery, nodes, recurrence)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         on conflict (cluster, job_id, restart_count, recurrence) do nothing returning id",
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
        recurrence,
    )
    .fetch_optional(connection)
    .await
    .named(name)
}
