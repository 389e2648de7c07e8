//! The table `judgements`, and what its rows add up to: an epoch's history.

use std::collections::BTreeMap;

use io_autotune_model::{History, Parametrization, RecentRun, Space, Tally, Tested, carried};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::word;

/// So many rows are read at once: an epoch's judgements are as many as its runs.
const PAGE: i64 = 1000;

/// What a judgement does to what is known of a parametrization.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// A run of so many seconds and with these measures counts for it.
    Sample(Parametrization, f64, BTreeMap<String, f64>),
    /// A run of it was cut short after so many seconds.
    Censored(Parametrization, f64),
    /// A run of it failed.
    Failure(Parametrization),
    /// A run of it ran out of memory.
    OutOfMemory(Parametrization),
    /// Nothing.
    Nothing,
}

impl Effect {
    /// The word in the table.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Sample(..) => "sample",
            Self::Censored(..) => "censored",
            Self::Failure(_) => "failure",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Nothing => "nothing",
        }
    }

    /// What it speaks of.
    pub(crate) fn parametrization(&self) -> Option<&Parametrization> {
        match self {
            Self::Sample(parametrization, ..)
            | Self::Censored(parametrization, _)
            | Self::Failure(parametrization)
            | Self::OutOfMemory(parametrization) => Some(parametrization),
            Self::Nothing => None,
        }
    }

    /// Seconds.
    pub(crate) fn elapsed(&self) -> Option<f64> {
        match self {
            Self::Sample(_, elapsed, _) | Self::Censored(_, elapsed) => Some(*elapsed),
            Self::Failure(_) | Self::OutOfMemory(_) | Self::Nothing => None,
        }
    }

    /// Positive numbers by name.
    pub(crate) fn measures(&self) -> BTreeMap<String, f64> {
        match self {
            Self::Sample(_, _, measures) => measures.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// Reads a row.
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
            (effect, ..) => Err(StoreError::Invariant {
                transaction: name,
                problem: format!("a judgement's effect {effect:?} does not fit its other columns"),
            }),
        }
    }

    /// Enters a run, which started at a second since 1970, into what is known of the parametrization that the
    /// effect speaks of.
    pub(crate) fn enter(
        &self,
        name: &'static str,
        tested: &mut Tested,
        run_id: i64,
        started: i64,
    ) -> Result<(), StoreError> {
        let entered = match self {
            Self::Sample(_, elapsed, measures) => {
                tested.record_measures(measures);
                tested.record_run(RecentRun::new(run_id, *elapsed).started_at(started))
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
        entered.map_err(|error| StoreError::Invariant {
            transaction: name,
            problem: error.to_string(),
        })
    }
}

/// What the judgements of an epoch add up to.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    /// By the parametrizations' keys.
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
        // No two have the same first run: a run speaks of one parametrization.
        tested.sort_by_key(|tested| tested.first_ordinal);
        History {
            tested,
            tally: self.tally,
        }
    }
}

/// Adds up the judgements of an epoch up to an ordinal, to what the epoch took from its parent when it was
/// opened. That is the order in which the caches are kept, so the result is the same to the last bit.
pub(crate) async fn fold(
    connection: &mut PgConnection,
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
        add(connection, name, &mut fold, link.epoch_id, link.up_to).await?;
        space = Some(link.space);
    }
    Ok(fold)
}

/// One epoch of those that a history is made of.
struct Link {
    epoch_id: i64,
    space: Space,
    /// So many of its judgements.
    up_to: i64,
    /// The parent, and how many of its judgements the epoch took the runs of.
    takes: Option<(i64, i64)>,
}

async fn link(
    connection: &mut PgConnection,
    name: &'static str,
    epoch_id: i64,
    up_to: i64,
) -> Result<Link, StoreError> {
    let row = sqlx::query!(
        r#"select parent_id, taken_judgements, space as "space: Json<Space>" from epochs where id = $1"#,
        epoch_id
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    Ok(Link {
        epoch_id,
        space: row.space.0,
        up_to,
        takes: row.parent_id.zip(row.taken_judgements),
    })
}

/// Adds an epoch's own judgements up to an ordinal: of each run the latest of them, in their order.
async fn add(
    connection: &mut PgConnection,
    name: &'static str,
    fold: &mut Fold,
    epoch_id: i64,
    up_to: i64,
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
            epoch_id,
            last,
            up_to,
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
                effect.enter(name, tested, row.run_id, row.started)?;
            }
        }
    }
}

impl Store {
    /// The history of an epoch as it was after so many judgements: what a suggestion was made from
    /// that says it knew `judged`.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn history_at(&self, epoch_id: i64, judged: i64) -> Result<History, StoreError> {
        const NAME: &str = "history_at";
        let mut snapshot = self.snapshot(NAME).await?;
        Ok(fold(&mut snapshot, NAME, epoch_id, judged).await?.history())
    }
}
