//! The part of an epoch's state that only judgements change.

use std::sync::Arc;

use io_autotune_model::{History, Objective, ParameterEffects, Parametrization, Space, Tally};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::records::{number, objective, timestamp};
use crate::tested;

/// The opening of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochOpening {
    /// The time.
    pub at: Timestamp,
    /// The reason, in one sentence.
    pub why: String,
    /// The knowledge that it took: `nothing`, `ranks` (its parent's after a drift, otherwise
    /// another study's), or its parent's `runs`.
    pub takes: String,
    /// The drift that opened it, if one did.
    pub drift: Option<Value>,
}

impl EpochOpening {
    /// Returns true if the epoch took nothing from its parent or from another study.
    #[must_use]
    pub fn takes_nothing(&self) -> bool {
        self.takes == "nothing"
    }
}

/// The part of an epoch's state that only judgements change.
#[derive(Debug)]
pub(crate) struct EpochState {
    pub(crate) epoch: i32,
    pub(crate) seed: u64,
    pub(crate) cluster: String,
    pub(crate) accelerator: String,
    pub(crate) space: Arc<Space>,
    /// A hash of the space, by which epochs with the same space are found.
    pub(crate) space_key: i64,
    pub(crate) objective: Objective,
    pub(crate) opened: EpochOpening,
    pub(crate) inherited: Vec<Parametrization>,
    pub(crate) history: Arc<History>,
    pub(crate) judged: i64,
    pub(crate) effects: Arc<ParameterEffects>,
}

impl EpochState {
    #[cfg(test)]
    pub(crate) fn of_size(tested: usize) -> Self {
        let one = io_autotune_model::Tested::new(Parametrization::default(), 1);
        Self {
            epoch: 1,
            seed: 0,
            cluster: String::new(),
            accelerator: String::new(),
            space_key: 0,
            space: Arc::new(
                serde_json::from_str(
                    r#"[{ "name": "a", "kind": "integer", "min": 1, "max": 8, "default": 1 }]"#,
                )
                .unwrap(),
            ),
            objective: Objective::Elapsed,
            opened: EpochOpening {
                at: Timestamp::UNIX_EPOCH,
                why: String::new(),
                takes: String::new(),
                drift: None,
            },
            inherited: Vec::new(),
            history: Arc::new(History {
                tested: vec![one; tested],
                tally: Tally::default(),
            }),
            judged: 0,
            effects: Arc::default(),
        }
    }

    pub(crate) fn has_settled(&self) -> bool {
        self.history.tally.settled > 0
    }
}

/// Reads an epoch's state, in two statements. The caller must hold the study's lock, or be in a
/// snapshot.
pub(crate) async fn epoch_state(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
) -> Result<EpochState, StoreError> {
    let epoch = sqlx::query!(
        r#"select e.ordinal, e.seed, e.space as "space: Json<Space>", e.judgements, e.objective,
                  (extract(epoch from e.opened_at) * 1000000)::bigint as "opened_at!", e.opened_why, e.takes, e.drift,
                  e.inherited as "inherited: Json<Vec<Parametrization>>",
                  e.parameter_effects as "parameter_effects: Json<ParameterEffects>",
                  e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.proof, e.total,
                  s.accelerator, coalesce(s.cluster, '') as "cluster!",
                  hashtextextended(e.space::text, 0) as "space_key!"
           from epochs e join studies s on s.id = e.study_id where e.id = $1"#,
        epoch_id
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    let tested = tested::all(connection, name, epoch_id).await?;
    let tally = Tally {
        baseline: number(name, epoch.baseline)?,
        explored: number(name, epoch.explored)?,
        controls: number(name, epoch.controls)?,
        settled: number(name, epoch.settled)?,
        settled_controls: number(name, epoch.settled_controls)?,
        proof: number(name, epoch.proof)?,
        total: number(name, epoch.total)?,
    };
    Ok(EpochState {
        epoch: epoch.ordinal,
        seed: epoch.seed.cast_unsigned(),
        cluster: epoch.cluster,
        accelerator: epoch.accelerator,
        space: Arc::new(epoch.space.0),
        space_key: epoch.space_key,
        objective: objective(name, &epoch.objective)?,
        opened: EpochOpening {
            at: timestamp(name, epoch.opened_at)?,
            why: epoch.opened_why,
            takes: epoch.takes,
            drift: epoch.drift,
        },
        inherited: epoch.inherited.0,
        history: Arc::new(History { tested, tally }),
        judged: epoch.judgements,
        effects: Arc::new(epoch.parameter_effects.0),
    })
}
