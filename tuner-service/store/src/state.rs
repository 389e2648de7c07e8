//! A study's state, from which suggestions are made: epoch, history, runs in flight.

use io_autotune_model::{
    Gain, History, Objective, Outlook, ParameterEffects, Parametrization, Pending, Space, Tally,
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::orders::{InForce, Ordered};
use crate::pool::Store;
use crate::records::{StudyKey, number, objective, timestamp};
use crate::sharing::{self, Sibling};
use crate::sources::{self, Learnt};
use crate::tested;

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
    pub space: Space,
    /// What the epoch makes small or large.
    pub objective: Objective,
    /// Why and when the epoch was opened.
    pub opened: EpochOpening,
    /// The parametrizations that were best in the parent epoch or another study, the best first.
    pub inherited: Vec<Parametrization>,
    /// Judged runs.
    pub history: History,
    /// Number of judgements in `history`, for [`Store::history_at`].
    pub judged: i64,
    /// What the accelerator said was in force in the epoch's runs.
    pub effects: ParameterEffects,
    /// Runs in flight that hold their place.
    pub pending: Vec<Pending>,
    /// Time limit in seconds of the epoch's latest run with an outcome, if it has a known one.
    pub limit_seconds: Option<u64>,
    /// What every run gets, if the study is pinned, by itself or by an order.
    pub pin: Option<Parametrization>,
    /// What is ordered besides.
    pub ordered: Ordered,
    /// An admin accepted mixed work.
    pub accepts_mixed: bool,
    /// What more control runs of the epoch may show.
    pub outlook: Outlook,
    /// By what it hears other studies: `group G` or `account A`.
    pub share: Option<String>,
    /// Those it hears.
    pub siblings: Vec<Sibling>,
    /// What other studies have learnt of the space, until the epoch has settled.
    pub sources: Vec<Learnt>,
}

impl StudyState {
    /// The study's own pin; not that of an order.
    pub(crate) fn own_pin(&self) -> Option<&Parametrization> {
        self.pin.as_ref().filter(|_| self.ordered.own_pin)
    }

    /// Whether the ranks that the epoch began with are another study's.
    #[must_use]
    pub fn is_warm_started(&self) -> bool {
        self.opened.takes == "ranks" && self.opened.drift.is_none()
    }
}

/// How an epoch was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochOpening {
    /// When.
    pub at: Timestamp,
    /// Why, in one sentence.
    pub why: String,
    /// What it took: `nothing`, `ranks` (its parent's, or without a drift another study's), or its
    /// parent's `runs`.
    pub takes: String,
    /// The drift that opened it, if one did.
    pub drift: Option<Value>,
}

/// What an epoch was opened with. It never changes.
#[derive(Clone, Debug)]
pub struct EpochInputs {
    /// The epoch's id.
    pub epoch_id: i64,
    /// Its space.
    pub space: Space,
    /// Its seed.
    pub seed: u64,
    /// The parametrizations it took from its parent or another study, the best first.
    pub inherited: Vec<Parametrization>,
    /// They are another study's.
    pub is_warm_started: bool,
    /// What it makes small or large.
    pub objective: Objective,
}

impl Store {
    /// The current state of a study.
    pub async fn study_state(&self, study_id: i64) -> Result<StudyState, StoreError> {
        const NAME: &str = "study_state";
        let mut snapshot = self.snapshot(NAME).await?;
        load(&mut snapshot, NAME, study_id).await
    }

    /// The state of a key's study, which is created with an epoch of `space` if needed.
    pub async fn state_of(
        &self,
        study: &StudyKey,
        space: &Space,
    ) -> Result<StudyState, StoreError> {
        let study_id = self.ensure_study(study, space).await?;
        self.study_state(study_id).await
    }

    /// What a run's epoch was opened with; `None`: no such run.
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

/// Loads the current epoch in several statements: needs the study's lock or a snapshot.
pub(crate) async fn load(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
) -> Result<StudyState, StoreError> {
    load_before(connection, name, study_id, i32::MAX).await
}

/// [`load`], of the latest epoch before the one of this number.
pub(crate) async fn load_before(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
    before: i32,
) -> Result<StudyState, StoreError> {
    let epoch = sqlx::query!(
        r#"select e.id, e.ordinal, e.seed, e.space as "space: Json<Space>", e.judgements, e.objective,
                  (extract(epoch from e.opened_at) * 1000000)::bigint as "opened_at!", e.opened_why, e.takes,
                  e.drift, e.inherited as "inherited: Json<Vec<Parametrization>>", e.parameter_effects as "parameter_effects: Json<ParameterEffects>",
                  e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.total,
                  s.mixed_accepted_at is not null as "accepts_mixed!",
                  case when (s.assessment->>'epoch')::int = e.ordinal then s.assessment->'gain' end
                      as "gain: Json<Gain>",
                  s.share, case when s.share is not null then s.assessment->'shared'->'gain' end
                      as "shared: Json<Gain>",
                  p.parametrization as "pin?: Json<Parametrization>",
                  coalesce((select jsonb_agg(jsonb_build_object('id', o.id, 'kind', o.kind, 'pinned', o.pinned)
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
           from epochs e join studies s on s.id = e.study_id
           left join pins p on p.study_id = s.id and (p.until is null or p.until > now())
           where e.study_id = $1 and e.ordinal < $2 order by e.ordinal desc limit 1"#,
        study_id,
        before
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    let tested = tested::all(connection, name, epoch.id).await?;
    let objective = objective(name, &epoch.objective)?;
    let siblings = match epoch.share {
        Some(_) => {
            sharing::siblings(connection, name, study_id, &epoch.space.0, &objective).await?
        }
        None => Vec::new(),
    };
    let sources = match epoch.settled {
        0 => sources::sources(connection, name, study_id, &epoch.space.0, &tested).await?,
        _ => Vec::new(),
    };
    let limit_seconds = epoch
        .limit_seconds
        .map(|seconds| number(name, seconds))
        .transpose()?;
    let tally = Tally {
        baseline: number(name, epoch.baseline)?,
        explored: number(name, epoch.explored)?,
        controls: number(name, epoch.controls)?,
        settled: number(name, epoch.settled)?,
        settled_controls: number(name, epoch.settled_controls)?,
        total: number(name, epoch.total)?,
    };
    let own_pin = epoch.pin.map(|pin| pin.0);
    let ordered = Ordered::of(&epoch.orders.0, &epoch.space.0, own_pin.is_some());
    Ok(StudyState {
        study_id,
        epoch_id: epoch.id,
        epoch: epoch.ordinal,
        seed: epoch.seed.cast_unsigned(),
        space: epoch.space.0,
        objective,
        opened: EpochOpening {
            at: timestamp(name, epoch.opened_at)?,
            why: epoch.opened_why,
            takes: epoch.takes,
            drift: epoch.drift,
        },
        inherited: epoch.inherited.0,
        history: History { tested, tally },
        judged: epoch.judgements,
        effects: epoch.parameter_effects.0,
        pending: epoch.pending.0,
        limit_seconds,
        pin: own_pin.or_else(|| ordered.pin.clone()),
        ordered,
        accepts_mixed: epoch.accepts_mixed,
        outlook: outlook(epoch.gain, epoch.shared),
        share: epoch.share,
        siblings,
        sources,
    })
}

/// What is claimed by own runs needs no more, whatever is not claimed with others.
fn outlook(own: Option<Json<Gain>>, shared: Option<Json<Gain>>) -> Outlook {
    let own = own.map(|last| last.0.outlook()).unwrap_or_default();
    match shared {
        Some(shared) if own != Outlook::Resolved => shared.0.outlook_together(),
        _ => own,
    }
}
