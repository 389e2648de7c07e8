//! Verdicts: they enter the study's caches, and a later verdict may revise them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use io_autotune_model::{
    NotCountedBecause, OTHERS_RATIO, Objective, ObservedValue, ParameterEffects, Parametrization,
    Phase, Role, Tally, Tested,
};
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::assess::Assessing;
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::judgements::{Effect, fold};
use crate::pool::{Store, one_row};
use crate::records::{number, objective, word};
use crate::retention::refuse_removed;
use crate::studies::lock_study;
use crate::tested;

/// The verdict on a run: whether it counts, and for which parametrization.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The elapsed of the run counts for the parametrization that was applied.
    Counted {
        /// The parametrization that was applied.
        parametrization: Parametrization,
        /// The reason, in one sentence.
        why: String,
    },
    /// The time limit ended the run: elapsed is a lower bound for the parametrization that was
    /// applied.
    Censored {
        /// The parametrization that was applied.
        parametrization: Parametrization,
        /// The reason, in one sentence.
        why: String,
    },
    /// It does not count.
    NotCounted {
        /// The reason, from the list.
        because: NotCountedBecause,
        /// The reason, in one sentence.
        why: String,
        /// The parametrization of the run, if it may have made the job fail.
        failed: Option<Parametrization>,
    },
}

impl Verdict {
    /// The state that it gives its run: `counted`, `censored` or `not_counted`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self {
            Self::Counted { .. } => "counted",
            Self::Censored { .. } => "censored",
            Self::NotCounted { .. } => "not_counted",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Counted { why, .. }
            | Self::Censored { why, .. }
            | Self::NotCounted { why, .. } => why,
        }
    }

    /// The reason why the run does not count, from the list.
    #[must_use]
    pub fn because(&self) -> Option<NotCountedBecause> {
        match self {
            Self::Counted { .. } | Self::Censored { .. } => None,
            Self::NotCounted { because, .. } => Some(*because),
        }
    }

    /// The effect on the caches. `None`: the verdict needs an elapsed time, and there is none.
    fn effect(&self, elapsed: Option<f64>, measures: BTreeMap<String, f64>) -> Option<Effect> {
        match self {
            Self::Counted {
                parametrization, ..
            } => Some(Effect::Sample(parametrization.clone(), elapsed?, measures)),
            Self::Censored {
                parametrization, ..
            } => Some(Effect::Censored(parametrization.clone(), elapsed?)),
            Self::NotCounted {
                because,
                failed: Some(parametrization),
                ..
            } => Some(match because {
                NotCountedBecause::OutOfMemory => Effect::OutOfMemory(parametrization.clone()),
                _ => Effect::Failure(parametrization.clone()),
            }),
            Self::NotCounted { failed: None, .. } => Some(Effect::Nothing),
        }
    }
}

/// The result of [`Store::judge_runs`] for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The run's first verdict.
    First,
    /// The verdict replaces an earlier one.
    Revised,
    /// The run already has this verdict.
    Unchanged,
    /// The run has changes that the verdict has not seen: judge again.
    Outdated,
}

/// A verdict on a run.
#[derive(Clone, Debug)]
pub struct Judgement<'a> {
    /// The run.
    pub run_id: i64,
    /// The run's number of changes that the verdict has seen.
    pub changes: i64,
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The values in force on the run's nodes, as the accelerator reports them. Recorded with the
    /// first verdict.
    pub observed_values: &'a [ObservedValue],
}

#[derive(Clone, PartialEq)]
struct Standing {
    effect: Effect,
    why: String,
    because: Option<NotCountedBecause>,
}

struct Added {
    ordinal: i64,
    run_id: i64,
    started: i64,
    state: &'static str,
    judgement: Standing,
}

struct Judging {
    phase: Phase,
    role: Role,
    /// The start, in seconds since 1970.
    started: i64,
    elapsed: Option<f64>,
    measures: BTreeMap<String, f64>,
    /// How long other runs took at the same time, over the means of their parametrizations.
    others: Option<f64>,
    changes: i64,
    dirty: bool,
}

impl Store {
    /// [`Store::judge_runs`] for one run without observed values.
    pub async fn judge_run(
        &self,
        run_id: i64,
        changes: i64,
        verdict: &Verdict,
    ) -> Result<Judged, StoreError> {
        let judgement = Judgement {
            run_id,
            changes,
            verdict,
            observed_values: &[],
        };
        let (judged, assessing) = self.judge_runs(&[judgement]).await?;
        if let Some(assessing) = assessing {
            assessing.commit().await?;
        }
        judged
            .first()
            .copied()
            .ok_or_else(|| StoreError::invariant(NAME, "a run has no verdict"))
    }

    /// Stores verdicts on runs of one epoch, in this order and in one transaction, and enters them
    /// into the epoch's caches. Returns the results and, if a verdict is new, the open transaction:
    /// the caller assesses the study in it, then commits. Returns an error if a verdict does not
    /// fit its run, or if the runs are of several epochs.
    pub async fn judge_runs(
        &self,
        judgements: &[Judgement<'_>],
    ) -> Result<(Vec<Judged>, Option<Assessing>), StoreError> {
        let run_ids: Vec<i64> = judgements.iter().map(|one| one.run_id).collect();
        if run_ids.is_empty() {
            return Ok((Vec::new(), None));
        }
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        let Locked {
            epoch_id,
            study_id,
            objective,
        } = lock_epoch(&mut transaction, &run_ids).await?;
        let mut runs = lock_runs(&mut transaction, &run_ids).await?;
        let mut standings = standings(&mut transaction, &run_ids).await?;
        let (mut judged, mut added) = (Vec::new(), Vec::new());
        let (mut tally, mut unchanged) = (Tally::default(), Vec::new());
        let (mut is_revised, mut first_heard) = (false, Vec::new());
        for &Judgement {
            run_id,
            changes,
            verdict,
            observed_values,
        } in judgements
        {
            let run = runs.remove(&run_id).ok_or_else(|| {
                StoreError::invariant(
                    NAME,
                    format!("run {run_id} does not exist or is judged twice at once"),
                )
            })?;
            if run.changes != changes || run.dirty {
                judged.push(Judged::Outdated);
                continue;
            }
            let mut measures = run.measures;
            measures.remove(OTHERS_RATIO);
            // What an earlier verdict has stored stays.
            let others = match standings.get(&run_id) {
                Some(standing) => standing.effect.measures().remove(OTHERS_RATIO),
                None => run.others,
            };
            measures.extend(others.map(|ratio| (OTHERS_RATIO.to_owned(), ratio)));
            let judgement = Standing {
                effect: verdict.effect(run.elapsed, measures).ok_or_else(|| {
                    StoreError::invariant(NAME, "a run without elapsed cannot count")
                })?,
                why: verdict.why().to_owned(),
                because: verdict.because(),
            };
            judged.push(match standings.remove(&run_id) {
                Some(standing) if standing == judgement => {
                    unchanged.push(run_id);
                    Judged::Unchanged
                }
                standing => {
                    // If neither effect concerns a parametrization, the caches stay valid.
                    is_revised |= standing.as_ref().is_some_and(|standing| {
                        standing.effect != Effect::Nothing || judgement.effect != Effect::Nothing
                    });
                    let is_first = standing.is_none();
                    if is_first {
                        tally += Tally::of(run.phase, run.role);
                        first_heard.push(observed_values);
                    }
                    added.push(Added {
                        ordinal: 0,
                        run_id,
                        started: run.started,
                        state: verdict.state(),
                        judgement,
                    });
                    if is_first {
                        Judged::First
                    } else {
                        Judged::Revised
                    }
                }
            });
        }
        if !unchanged.is_empty() {
            sqlx::query!(
                "update runs set judged_changes = changes where id = any($1)",
                &unchanged
            )
            .execute(&mut *transaction)
            .await
            .named(NAME)?;
        }
        if !added.is_empty() {
            let last = count_judgements(&mut transaction, epoch_id, added.len(), tally).await?;
            for (one, ordinal) in added.iter_mut().rev().zip((1..=last).rev()) {
                one.ordinal = ordinal;
            }
            add(&mut transaction, epoch_id, &added).await?;
            if is_revised {
                // A number cannot be taken out of a mean without rounding errors; adding up anew
                // gives the same bits.
                let fold = fold(&mut transaction, NAME, epoch_id, last).await?;
                tested::replace(&mut transaction, NAME, epoch_id, &fold.tested).await?;
            } else {
                enter(&mut transaction, epoch_id, &objective, &added).await?;
            }
        }
        first_heard.retain(|observed_values| !observed_values.is_empty());
        if !first_heard.is_empty() {
            hear(&mut transaction, epoch_id, &first_heard).await?;
        }
        let Some(first) = added.iter().map(|one| one.run_id).min() else {
            transaction.commit().await.named(NAME)?;
            return Ok((judged, None));
        };
        let assessing = self.assessing(transaction, study_id, epoch_id, Some(first));
        Ok((judged, Some(assessing)))
    }
}

const NAME: &str = "judge_run";

struct Locked {
    epoch_id: i64,
    study_id: i64,
    objective: Objective,
}

/// Locks the study of the runs, which must be of one epoch.
async fn lock_epoch(connection: &mut Connection, run_ids: &[i64]) -> Result<Locked, StoreError> {
    let epochs = sqlx::query!(
        "select distinct e.id, e.study_id, e.objective from runs r join epochs e on e.id = r.epoch_id where r.id = any($1)",
        run_ids
    )
    .fetch_all(&mut *connection)
    .await
    .named(NAME)?;
    let [epoch] = epochs.as_slice() else {
        return Err(StoreError::invariant(
            NAME,
            format!(
                "runs of one epoch are judged together, and these are of {}",
                epochs.len()
            ),
        ));
    };
    lock_study(&mut *connection, NAME, epoch.study_id).await?;
    refuse_removed(connection, NAME, epoch.id).await?;
    Ok(Locked {
        epoch_id: epoch.id,
        study_id: epoch.study_id,
        objective: objective(NAME, &epoch.objective)?,
    })
}

async fn lock_runs(
    connection: &mut Connection,
    run_ids: &[i64],
) -> Result<HashMap<i64, Judging>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, phase, role, floor(extract(epoch from started_at))::bigint as "started!", elapsed, changes,
                  dirty, measures as "measures: Json<BTreeMap<String, f64>>",
                  (select exp(avg(s.slowness)) from surroundings s
                   where s.cluster = runs.cluster and s.at <= runs.finished_at
                     and s.at > least(runs.started_at, runs.finished_at - interval '5 minutes')) as others
           from runs where id = any($1) order by id for no key update"#,
        run_ids
    )
    .fetch_all(connection)
    .await
    .named(NAME)?;
    rows.into_iter()
        .map(|row| {
            let judging = Judging {
                phase: word(NAME, &row.phase)?,
                role: word(NAME, &row.role)?,
                started: row.started,
                elapsed: row.elapsed,
                measures: row.measures.0,
                others: row.others,
                changes: row.changes,
                dirty: row.dirty,
            };
            Ok((row.id, judging))
        })
        .collect()
}

async fn standings(
    connection: &mut Connection,
    run_ids: &[i64],
) -> Result<HashMap<i64, Standing>, StoreError> {
    let rows = sqlx::query!(
        r#"select distinct on (run_id) run_id, effect, elapsed, verdict, not_counted_because,
                  parametrization as "parametrization: Json<Parametrization>",
                  measures as "measures: Json<BTreeMap<String, f64>>"
           from judgements where run_id = any($1) order by run_id, ordinal desc"#,
        run_ids
    )
    .fetch_all(connection)
    .await
    .named(NAME)?;
    rows.into_iter()
        .map(|row| {
            let parametrization = row.parametrization.map(|json| json.0);
            let effect = Effect::read(
                NAME,
                &row.effect,
                parametrization,
                row.elapsed,
                row.measures.0,
            )?;
            let standing = Standing {
                effect,
                why: row.verdict,
                because: row
                    .not_counted_because
                    .and_then(|because| because.parse().ok()),
            };
            Ok((row.run_id, standing))
        })
        .collect()
}

/// Adds to the epoch's number of judgements and to its tally. Returns the last ordinal.
async fn count_judgements(
    connection: &mut Connection,
    epoch_id: i64,
    count: usize,
    tally: Tally,
) -> Result<i64, StoreError> {
    let number = |count: u64| number::<u64, i64>(NAME, count);
    sqlx::query_scalar!(
        "update epochs set judgements = judgements + $9, baseline = baseline + $2, explored = explored + $3,
                controls = controls + $4, settled = settled + $5, settled_controls = settled_controls + $6,
                proof = proof + $7, total = total + $8
         where id = $1 returning judgements",
        epoch_id,
        number(tally.baseline)?,
        number(tally.explored)?,
        number(tally.controls)?,
        number(tally.settled)?,
        number(tally.settled_controls)?,
        number(tally.proof)?,
        number(tally.total)?,
        number(count as u64)?
    )
    .fetch_one(connection)
    .await
    .named(NAME)
}

async fn hear(
    connection: &mut Connection,
    epoch_id: i64,
    runs: &[&[ObservedValue]],
) -> Result<(), StoreError> {
    let mut effects = sqlx::query_scalar!(
        r#"select parameter_effects as "parameter_effects: Json<ParameterEffects>" from epochs where id = $1"#,
        epoch_id
    )
    .fetch_one(&mut *connection)
    .await
    .named(NAME)?
    .0;
    for observed_values in runs {
        effects.record(observed_values);
    }
    let result = sqlx::query!(
        "update epochs set parameter_effects = $2 where id = $1",
        epoch_id,
        Json(effects) as _
    )
    .execute(connection)
    .await
    .named(NAME)?;
    one_row(NAME, &result)
}

async fn add(
    connection: &mut Connection,
    epoch_id: i64,
    added: &[Added],
) -> Result<(), StoreError> {
    // JSON keeps every digit of the numbers, and null stays null.
    let rows: Vec<Value> = added
        .iter()
        .map(|one| {
            json!({
                "ordinal": one.ordinal,
                "run_id": one.run_id,
                "state": one.state,
                "effect": one.judgement.effect.word(),
                "parametrization": one.judgement.effect.parametrization(),
                "elapsed": one.judgement.effect.elapsed(),
                "measures": one.judgement.effect.measures(),
                "verdict": one.judgement.why,
                "not_counted_because": one.judgement.because,
            })
        })
        .collect();
    let result = sqlx::query!(
        "with added as (
             select * from jsonb_to_recordset($2) as added(
                 ordinal bigint, run_id bigint, state text, effect text, parametrization jsonb,
                 elapsed double precision, measures jsonb, verdict text, not_counted_because text)
         ), inserted as (
             insert into judgements (epoch_id, ordinal, run_id, effect, parametrization, elapsed, measures, verdict,
                                     not_counted_because)
             select $1, ordinal, run_id, effect, parametrization, elapsed, measures, verdict, not_counted_because
             from added
         )
         update runs set state = added.state, verdict = added.verdict, judged_at = now(),
                         judged_ordinal = added.ordinal, judged_changes = changes
         from added where runs.id = added.run_id",
        epoch_id,
        Value::Array(rows)
    )
    .execute(connection)
    .await
    .named(NAME)?;
    if result.rows_affected() == added.len() as u64 {
        Ok(())
    } else {
        Err(StoreError::invariant(
            NAME,
            format!(
                "{} runs have a judgement, and {} their verdict",
                added.len(),
                result.rows_affected()
            ),
        ))
    }
}

async fn enter(
    connection: &mut Connection,
    epoch_id: i64,
    objective: &Objective,
    added: &[Added],
) -> Result<(), StoreError> {
    let keys: BTreeSet<String> = added
        .iter()
        .filter_map(|one| one.judgement.effect.parametrization())
        .map(Parametrization::key)
        .collect();
    let keys: Vec<String> = keys.into_iter().collect();
    let mut entries: BTreeMap<String, Tested> = tested::of_keys(connection, NAME, epoch_id, &keys)
        .await?
        .into_iter()
        .map(|entry| (entry.parametrization.key(), entry))
        .collect();
    for one in added {
        let effect = &one.judgement.effect;
        if let Some(parametrization) = effect.parametrization() {
            let entry = entries
                .entry(parametrization.key())
                .or_insert_with(|| Tested::new(parametrization.clone(), one.run_id));
            effect.enter(NAME, entry, one.run_id, one.started, objective)?;
        }
    }
    tested::write(connection, NAME, epoch_id, entries.values()).await
}
