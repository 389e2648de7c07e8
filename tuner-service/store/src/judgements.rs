//! The table `judgements`, whose rows add up to an epoch's history.

use std::collections::BTreeMap;

use io_autotune_model::{
    History, OTHERS_RATIO, Objective, Parametrization, RecentRun, Space, Tally, Tested, carried,
};
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{objective, value, word};
use crate::retention::refuse_removed;

/// The number of rows per query, because an epoch has as many judgements as runs.
const PAGE: i64 = 1000;

/// The effect of a judgement on a parametrization's statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// A counted run: seconds and measures.
    Sample(Parametrization, f64, BTreeMap<String, f64>),
    /// A censored run: its lower bound in seconds.
    Censored(Parametrization, f64),
    Failure(Parametrization),
    OutOfMemory(Parametrization),
    Nothing,
}

impl Effect {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Sample(..) => "sample",
            Self::Censored(..) => "censored",
            Self::Failure(_) => "failure",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Nothing => "nothing",
        }
    }

    pub(crate) fn parametrization(&self) -> Option<&Parametrization> {
        match self {
            Self::Sample(parametrization, ..)
            | Self::Censored(parametrization, _)
            | Self::Failure(parametrization)
            | Self::OutOfMemory(parametrization) => Some(parametrization),
            Self::Nothing => None,
        }
    }

    pub(crate) fn elapsed(&self) -> Option<f64> {
        match self {
            Self::Sample(_, elapsed, _) | Self::Censored(_, elapsed) => Some(*elapsed),
            Self::Failure(_) | Self::OutOfMemory(_) | Self::Nothing => None,
        }
    }

    pub(crate) fn measures(&self) -> BTreeMap<String, f64> {
        match self {
            Self::Sample(_, _, measures) => measures.clone(),
            _ => BTreeMap::new(),
        }
    }

    pub(crate) fn read(
        name: &'static str,
        effect: &str,
        parametrization: Option<Parametrization>,
        elapsed: Option<f64>,
        measures: BTreeMap<String, f64>,
    ) -> Result<Self, StoreError> {
        match (effect, parametrization, elapsed) {
            ("sample", Some(parametrization), Some(elapsed)) => {
                Ok(Self::Sample(parametrization, elapsed, measures))
            }
            ("censored", Some(parametrization), Some(elapsed)) => {
                Ok(Self::Censored(parametrization, elapsed))
            }
            ("failure", Some(parametrization), None) => Ok(Self::Failure(parametrization)),
            ("out_of_memory", Some(parametrization), None) => {
                Ok(Self::OutOfMemory(parametrization))
            }
            ("nothing", None, None) => Ok(Self::Nothing),
            (effect, ..) => Err(StoreError::invariant(
                name,
                format!("a judgement's effect {effect:?} does not fit its other columns"),
            )),
        }
    }

    /// Adds a run to its parametrization's statistics. `started` is in seconds since 1970.
    pub(crate) fn enter(
        &self,
        name: &'static str,
        tested: &mut Tested,
        run_id: i64,
        started: i64,
        objective: &Objective,
    ) -> Result<(), StoreError> {
        let entered = match self {
            Self::Sample(_, elapsed, measures) => {
                let value = value(name, objective, *elapsed, measures)?;
                tested.record_measures(&objective.beside(*elapsed, measures));
                let run = RecentRun::new(run_id, value).started_at(started);
                tested.record_run(run.beside(measures.get(OTHERS_RATIO).copied()))
            }
            Self::Censored(_, elapsed) => tested.record_censored(run_id, *elapsed),
            Self::Failure(_) => {
                tested.record_failure(run_id);
                Ok(())
            }
            Self::OutOfMemory(_) => {
                tested.record_out_of_memory(run_id);
                Ok(())
            }
            Self::Nothing => Ok(()),
        };
        entered.map_err(|error| StoreError::invariant(name, error.to_string()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fold {
    pub(crate) tested: BTreeMap<String, Tested>,
    pub(crate) tally: Tally,
}

impl Fold {
    fn of(history: History) -> Self {
        let tested = history.tested.into_iter();
        Self {
            tested: tested
                .map(|tested| (tested.parametrization.key(), tested))
                .collect(),
            tally: history.tally,
        }
    }

    fn history(self) -> History {
        let mut tested: Vec<_> = self.tested.into_values().collect();
        // The order is unique, because a run belongs to one parametrization.
        tested.sort_by_key(|tested| tested.first_ordinal);
        History {
            tested,
            tally: self.tally,
        }
    }
}

/// Adds up an epoch's judgements up to an ordinal, on top of what the epoch took from its parent.
/// The caches are updated in the same order, so the results agree to the last bit. Returns
/// [`StoreError::Removed`] if retention has removed any of the judgements.
pub(crate) async fn fold(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    up_to: i64,
) -> Result<Fold, StoreError> {
    let mut chain = vec![link(connection, name, epoch_id, up_to).await?];
    while let Some((parent_id, taken)) = chain.last().and_then(|link| link.takes) {
        chain.push(link(connection, name, parent_id, taken).await?);
    }
    let mut fold = Fold::default();
    let mut space: Option<Space> = None;
    while let Some(link) = chain.pop() {
        if let Some(from) = space {
            fold = Fold::of(carried(&fold.history(), &from, &link.space));
        }
        add(connection, name, &mut fold, &link).await?;
        space = Some(link.space);
    }
    Ok(fold)
}

struct Link {
    epoch_id: i64,
    space: Space,
    objective: Objective,
    /// The number of its judgements that count.
    up_to: i64,
    /// The parent, and the number of its judgements that were taken.
    takes: Option<(i64, i64)>,
}

async fn link(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    up_to: i64,
) -> Result<Link, StoreError> {
    refuse_removed(&mut *connection, name, epoch_id).await?;
    let row = sqlx::query!(
        r#"select parent_id, taken_judgements, objective, space as "space: Json<Space>" from epochs where id = $1"#,
        epoch_id
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    Ok(Link {
        epoch_id,
        space: row.space.0,
        objective: objective(name, &row.objective)?,
        up_to,
        takes: row.parent_id.zip(row.taken_judgements),
    })
}

/// Adds an epoch's judgements up to an ordinal, in order. Only the latest of each run counts.
async fn add(
    connection: &mut Connection,
    name: &'static str,
    fold: &mut Fold,
    link: &Link,
) -> Result<(), StoreError> {
    let mut last = 0;
    loop {
        let rows = sqlx::query!(
            r#"select j.ordinal, j.run_id, j.effect, j.elapsed, r.phase, r.role,
                      floor(extract(epoch from r.started_at))::bigint as "started!",
                      j.parametrization as "parametrization: Json<Parametrization>",
                      j.measures as "measures: Json<BTreeMap<String, f64>>"
               from judgements j join runs r on r.id = j.run_id
               where j.epoch_id = $1 and j.ordinal > $2 and j.ordinal <= $3
                 and not exists (select from judgements later where later.run_id = j.run_id
                                 and later.ordinal > j.ordinal and later.ordinal <= $3)
               order by j.ordinal limit $4"#,
            link.epoch_id,
            last,
            link.up_to,
            PAGE
        )
        .fetch_all(&mut *connection)
        .await
        .named(name)?;
        let Some(end) = rows.last() else {
            return Ok(());
        };
        last = end.ordinal;
        for row in rows {
            let parametrization = row.parametrization.map(|json| json.0);
            let effect = Effect::read(
                name,
                &row.effect,
                parametrization,
                row.elapsed,
                row.measures.0,
            )?;
            fold.tally += Tally::of(word(name, &row.phase)?, word(name, &row.role)?);
            if let Some(parametrization) = effect.parametrization() {
                let tested = fold
                    .tested
                    .entry(parametrization.key())
                    .or_insert_with(|| Tested::new(parametrization.clone(), row.run_id));
                effect.enter(name, tested, row.run_id, row.started, &link.objective)?;
            }
        }
    }
}

impl Store {
    /// An epoch's history after its first `judged` judgements, as a suggestion saw it.
    pub async fn history_at(&self, epoch_id: i64, judged: i64) -> Result<History, StoreError> {
        const NAME: &str = "history_at";
        let mut snapshot = self.snapshot(NAME).await?;
        Ok(fold(&mut snapshot, NAME, epoch_id, judged).await?.history())
    }
}
