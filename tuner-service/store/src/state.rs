//! A study's state, from which suggestions are made: epoch, history, runs in flight.

use std::sync::Arc;

use io_autotune_model::{
    Gain, History, Objective, Outlook, ParameterEffects, Parametrization, Pending, Space,
};
use sqlx::types::Json;

use crate::connections::Connection;
use crate::epoch_state::{EpochOpening, EpochState, epoch_state};
use crate::error::{Named, StoreError};
use crate::exploring::Spent;
use crate::orders::{self, InForce, Ordered};
use crate::pool::Store;
use crate::records::{StudyKey, number, objective};
use crate::sharing::{self, Sibling};
use crate::sources::Learnt;

/// A study at one moment.
#[derive(Clone, Debug)]
pub struct StudyState {
    /// The study.
    pub study_id: i64,
    /// The current epoch's id.
    pub epoch_id: i64,
    /// The current epoch's number, from 1.
    pub epoch: i32,
    /// The epoch's seed.
    pub seed: u64,
    /// The epoch's space.
    pub space: Arc<Space>,
    /// The objective of the epoch.
    pub objective: Objective,
    /// The reason for and the time of the epoch's opening.
    pub opened: EpochOpening,
    /// The parametrizations that were best in the parent epoch or another study, the best first.
    pub inherited: Vec<Parametrization>,
    /// Judged runs.
    pub history: Arc<History>,
    /// The number of judgements in `history`, for [`Store::history_at`].
    pub judged: i64,
    /// The effects of parameters in the epoch's runs, by the values in force that the accelerator
    /// reported.
    pub effects: Arc<ParameterEffects>,
    /// Runs in flight that hold an exploring place.
    pub pending: Vec<Pending>,
    /// The time limit in seconds of the epoch's latest run with an outcome, if it is known.
    pub limit_seconds: Option<u64>,
    /// The parametrization of every run, if the study is pinned by itself or by an order.
    pub pin: Option<Parametrization>,
    /// The other orders in force.
    pub ordered: Ordered,
    /// True if an admin or the owner accepted mixed work.
    pub accepts_mixed: bool,
    /// How likely it is that more control runs of the epoch show a gain.
    pub outlook: Outlook,
    /// The share by which the study uses other studies' runs: `group G` or `account A`.
    pub share: Option<String>,
    /// The other studies.
    pub siblings: Vec<Sibling>,
    /// The sources of a prior, until the epoch has settled. Only read by [`Store::study_state`] and
    /// by a start.
    pub sources: Vec<Arc<Learnt>>,
    /// What exploring has taken today of those that the study's runs are charged to, until the epoch has
    /// settled. Only read by a start that has [`Budgets`](crate::Budgets).
    pub spent: Vec<Spent>,
}

impl StudyState {
    /// The study's own pin, without that of an order.
    pub(crate) fn own_pin(&self) -> Option<&Parametrization> {
        self.pin.as_ref().filter(|_| self.ordered.own_pin)
    }

    /// The site's default with which the study's exploring begins, if any.
    #[must_use]
    pub fn site_default(&self) -> Option<Parametrization> {
        let site_default = self.ordered.site_default.as_ref()?;
        orders::begins_with(site_default, &self.opened, &self.space, &self.effects)
    }

    /// Returns true if the ranks that the epoch began with are another study's.
    #[must_use]
    pub fn is_warm_started(&self) -> bool {
        self.opened.takes == "ranks" && self.opened.drift.is_none()
    }
}

/// The inputs with which an epoch was opened, which never change.
#[derive(Clone, Debug)]
pub struct EpochInputs {
    /// The epoch's id.
    pub epoch_id: i64,
    /// The space.
    pub space: Space,
    /// The seed.
    pub seed: u64,
    /// The parametrizations it took from its parent or another study, the best first.
    pub inherited: Vec<Parametrization>,
    /// True if they are another study's.
    pub is_warm_started: bool,
    /// The objective.
    pub objective: Objective,
}

impl Store {
    /// The current state of a study.
    pub async fn study_state(&self, study_id: i64) -> Result<StudyState, StoreError> {
        const NAME: &str = "study_state";
        let mut snapshot = self.snapshot(NAME).await?;
        self.state_in(&mut snapshot, NAME, study_id).await
    }

    /// Likewise, in several statements: needs the study's lock or a snapshot.
    pub(crate) async fn state_in(
        &self,
        connection: &mut Connection,
        name: &'static str,
        study_id: i64,
    ) -> Result<StudyState, StoreError> {
        let Parts {
            moment,
            epoch,
            siblings,
        } = parts(connection, name, study_id, i32::MAX).await?;
        let sources = self.sources(connection, name, study_id, &epoch).await?;
        moment.state(name, &epoch, siblings, sources)
    }

    /// The state of the study with a key, which is created with an epoch of `space` if needed.
    pub async fn state_of(
        &self,
        study: &StudyKey,
        space: &Space,
    ) -> Result<StudyState, StoreError> {
        let study_id = self.ensure_study(study, space).await?;
        self.study_state(study_id).await
    }

    /// The inputs with which a run's epoch was opened; `None`: there is no such run.
    pub async fn epoch_inputs(&self, run_id: i64) -> Result<Option<EpochInputs>, StoreError> {
        const NAME: &str = "epoch_inputs";
        let row = sqlx::query!(
            r#"select e.id, e.seed, e.objective, e.space as "space: Json<Space>",
                      e.inherited as "inherited: Json<Vec<Parametrization>>",
                      e.takes = 'ranks' and e.drift is null as "is_warm_started!"
               from runs r join epochs e on e.id = r.epoch_id where r.id = $1"#,
            run_id
        )
        .fetch_optional(&self.pool)
        .await
        .named(NAME)?;
        row.map(|row| {
            Ok(EpochInputs {
                epoch_id: row.id,
                space: row.space.0,
                seed: row.seed.cast_unsigned(),
                inherited: row.inherited.0,
                is_warm_started: row.is_warm_started,
                objective: objective(NAME, &row.objective)?,
            })
        })
        .transpose()
    }
}

/// The part of a study's state that changes with a start, with time, or with an order, and the
/// current epoch.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) study_id: i64,
    pub(crate) epoch_id: i64,
    /// A version that changes whenever the study is locked or written.
    pub(crate) turn: String,
    /// A version that changes whenever the [`EpochState`] may have changed. A database that was set
    /// back has another start.
    pub(crate) version: String,
    accepts_mixed: bool,
    outlook: Outlook,
    pub(crate) share: Option<String>,
    pin: Option<Parametrization>,
    orders: Vec<InForce>,
    limit_seconds: Option<i64>,
    pending: Vec<Pending>,
}

/// A study by its number or by its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    Number(i64),
    Key(&'a StudyKey),
}

/// Loads the current epoch in several statements. The caller must hold the study's lock, or be in a
/// snapshot.
pub(crate) async fn load(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<StudyState, StoreError> {
    load_before(connection, name, study_id, i32::MAX).await
}

/// [`load`] for the latest epoch before the one with this number.
pub(crate) async fn load_before(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    before: i32,
) -> Result<StudyState, StoreError> {
    let Parts {
        moment,
        epoch,
        siblings,
    } = parts(connection, name, study_id, before).await?;
    moment.state(name, &epoch, siblings, Vec::new())
}

struct Parts {
    moment: Moment,
    epoch: EpochState,
    siblings: Vec<Sibling>,
}

async fn parts(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    before: i32,
) -> Result<Parts, StoreError> {
    let moment = moment(connection, name, Which::Number(study_id), before)
        .await?
        .ok_or(sqlx::Error::RowNotFound)
        .named(name)?;
    let epoch = epoch_state(connection, name, moment.epoch_id).await?;
    let siblings = siblings(connection, name, &moment, &epoch).await?;
    Ok(Parts {
        moment,
        epoch,
        siblings,
    })
}

pub(crate) async fn siblings(
    connection: &mut Connection,
    name: &'static str,
    moment: &Moment,
    epoch: &EpochState,
) -> Result<Vec<Sibling>, StoreError> {
    match moment.share {
        Some(_) => {
            let (space, objective) = (&epoch.space, &epoch.objective);
            sharing::siblings(connection, name, moment.study_id, space, objective).await
        }
        None => Ok(Vec::new()),
    }
}

impl Moment {
    pub(crate) fn state(
        self,
        name: &'static str,
        epoch: &EpochState,
        siblings: Vec<Sibling>,
        sources: Vec<Arc<Learnt>>,
    ) -> Result<StudyState, StoreError> {
        let ordered = Ordered::of(&self.orders, &epoch.space, self.pin.is_some());
        Ok(StudyState {
            study_id: self.study_id,
            epoch_id: self.epoch_id,
            epoch: epoch.epoch,
            seed: epoch.seed,
            space: Arc::clone(&epoch.space),
            objective: epoch.objective.clone(),
            opened: epoch.opened.clone(),
            inherited: epoch.inherited.clone(),
            history: Arc::clone(&epoch.history),
            judged: epoch.judged,
            effects: Arc::clone(&epoch.effects),
            pending: self.pending,
            limit_seconds: self
                .limit_seconds
                .map(|seconds| number(name, seconds))
                .transpose()?,
            pin: self.pin.or_else(|| ordered.pin.clone()),
            ordered,
            accepts_mixed: self.accepts_mixed,
            outlook: self.outlook,
            share: self.share,
            siblings,
            sources,
            spent: Vec::new(),
        })
    }
}

/// A study's moment, with the latest epoch before the one with this number; `None`: there is no
/// such study.
pub(crate) async fn moment(
    connection: &mut Connection,
    name: &'static str,
    which: Which<'_>,
    before: i32,
) -> Result<Option<Moment>, StoreError> {
    let (study_id, key) = match which {
        Which::Number(study_id) => (Some(study_id), None),
        Which::Key(key) => (None, Some(key)),
    };
    let row = sqlx::query!(
        r#"select s.id as study_id, e.id as epoch_id, s.xmin::text as "turn!",
                  concat_ws(' ', e.row_version, e.judgements, pg_postmaster_start_time()) as "version!",
                  s.mixed_accepted_at is not null as "accepts_mixed!",
                  case when s.assessment->'epoch' = to_jsonb(e.ordinal) then s.assessment->'gain' end
                      as "gain: Json<Gain>",
                  s.share, case when s.share is not null then s.assessment->'shared'->'gain' end
                      as "shared: Json<Gain>",
                  p.parametrization as "pin?: Json<Parametrization>",
                  coalesce((select jsonb_agg(jsonb_build_object('id', o.id, 'kind', o.kind, 'given', o.given)
                                              order by o.specificity desc, o.id desc)
                            from orders_in_force o where o.of_study = s.id), '[]') as "orders!: Json<Vec<InForce>>",
                  (select r.limit_seconds from runs r
                   where r.epoch_id = e.id and r.outcome is not null and r.outcome <> 'REQUEUED'
                   order by r.id desc limit 1) as limit_seconds,
                  coalesce((select jsonb_agg(jsonb_build_object('parametrization', parametrization, 'phase', phase,
                                                                'role', role, 'count', count) order by first)
                            from (select r.parametrization, r.phase, r.role, count(*) as count, min(r.id) as first
                                  from runs r where r.epoch_id = e.id and r.state = 'in_flight' and not r.released
                                  group by r.parametrization, r.phase, r.role) flying), '[]')
                      as "pending!: Json<Vec<Pending>>"
           from studies s
           cross join lateral (select id, ordinal, judgements, xmin::text as row_version from epochs
                               where study_id = s.id and ordinal < $2 order by ordinal desc limit 1) e
           left join pins p on p.study_id = s.id and (p.until is null or p.until > now())
           where s.id = coalesce($1, (select of_key.id from studies of_key
                                      join applications a on a.id = of_key.application_id
                                      where a.owner_uid = $3 and a.name = $4 and of_key.accelerator = $5
                                        and of_key.context_key = $6 and of_key.cluster = $7))"#,
        study_id,
        before,
        key.map(|key| i64::from(key.owner_uid)),
        key.map(|key| &key.application),
        key.map(|key| &key.accelerator),
        key.map(StudyKey::context_key),
        key.map(|key| &key.cluster)
    )
    .fetch_optional(connection)
    .await
    .named(name)?;
    Ok(row.map(|row| Moment {
        study_id: row.study_id,
        epoch_id: row.epoch_id,
        turn: row.turn,
        version: row.version,
        accepts_mixed: row.accepts_mixed,
        outlook: Outlook::of(row.gain.as_deref(), row.shared.as_deref()),
        share: row.share,
        pin: row.pin.map(|pin| pin.0),
        orders: row.orders.0,
        limit_seconds: row.limit_seconds,
        pending: row.pending.0,
    }))
}
