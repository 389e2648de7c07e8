//! A study's evidence and assessment, written in the transaction that changes their basis.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::{
    Assessment, Objective, Parametrization, Phase, Role, Space, carried_parametrization,
    stays_settled,
};
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::{Connection, Transaction};
use crate::error::{Named, StoreError};
use crate::judgements;
use crate::pool::{Store, one_row};
use crate::records::{number, objective, value, word};
use crate::sharing;
use crate::state::StudyState;
use crate::studies::lock_study;
use crate::tested;

const NAME: &str = "assess";

/// The most runs in a page of [`Assessing::runs_after`].
pub const EVIDENCE_PAGE: usize = 1000;

/// A locked study. If it is dropped without [`commit`](Assessing::commit), it is rolled back.
#[derive(Debug)]
pub struct Assessing {
    store: Store,
    transaction: Transaction,
    study_id: i64,
    epoch_id: i64,
    /// The first of the judged runs.
    judged: Option<i64>,
}

/// The stored evidence of an epoch.
#[derive(Clone, Debug)]
pub struct KeptEvidence {
    /// The epoch's id.
    pub epoch_id: i64,
    /// The epoch's number in its study.
    pub epoch: i32,
    /// The key of its space's default.
    pub default: String,
    /// The evidence of this epoch, if it has any yet.
    pub own: Option<Value>,
    /// The evidence of the latest epoch before it that has some.
    pub earlier: Option<Value>,
    /// Set if the study had settled in the epoch of `earlier`, and has stayed so in another space.
    pub continues: Option<Continued>,
    /// The first of the epoch's runs that were judged in this transaction, if any.
    pub judged: Option<i64>,
}

/// A change of the space that a settled study has outlived.
#[derive(Clone, Debug)]
pub struct Continued {
    /// The number of the epoch before.
    pub epoch: i32,
    /// The space of that epoch.
    pub from: Space,
    /// The space since then.
    pub to: Space,
}

impl Continued {
    /// The present key of a parametrization of the earlier space, if it is still offered.
    #[must_use]
    pub fn carried(&self, key: &str) -> Option<String> {
        let was: Parametrization = serde_json::from_str(key).ok()?;
        carried_parametrization(&was, &self.from, &self.to).map(|now| now.key())
    }
}

/// A run of an epoch.
#[derive(Clone, Debug)]
pub struct EvidenceRow {
    /// The run.
    pub run_id: i64,
    /// The start, in microseconds since 1970.
    pub started: i64,
    /// How the cluster's runs fared before its start, as a log of a ratio; 0 if that is not known.
    pub slowness: f64,
    /// The study's phase at the start.
    pub phase: Phase,
    /// The run's role in the phase.
    pub role: Role,
    /// The probability with which it was drawn to be a control run, if it was drawn.
    pub control_chance: Option<f64>,
    /// Number of nodes; 1 if unknown.
    pub nodes: u32,
    /// The key of the parametrization that it was given.
    pub given: String,
    /// The result, if the run is counted or censored.
    pub counts: Option<CountsRow>,
}

/// The result of a counted or censored run.
#[derive(Clone, Debug)]
pub struct CountsRow {
    /// The key of the parametrization that was applied.
    pub key: String,
    /// The objective's value.
    pub value: f64,
    /// Elapsed seconds, if the objective is another.
    pub beside: Option<f64>,
    /// True if the values are lower bounds.
    pub cut_short: bool,
}

impl Store {
    /// Locks a study to assess it. Returns an error if the lock takes longer than two seconds.
    pub async fn assess(&self, study_id: i64) -> Result<Assessing, StoreError> {
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let epoch_id = sqlx::query_scalar!(
            "select id from epochs where study_id = $1 order by ordinal desc limit 1",
            study_id
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        Ok(self.assessing(transaction, study_id, epoch_id, None))
    }

    pub(crate) fn assessing(
        &self,
        transaction: Transaction,
        study_id: i64,
        epoch_id: i64,
        judged: Option<i64>,
    ) -> Assessing {
        Assessing {
            store: self.clone(),
            transaction,
            study_id,
            epoch_id,
            judged,
        }
    }

    /// The assessment at a study's last verdict; `None` before the first.
    pub async fn assessment(&self, study_id: i64) -> Result<Option<Assessment>, StoreError> {
        let mut connection = self.pool.acquire().await.named(NAME)?;
        assessment(&mut connection, study_id).await
    }

    /// Judged studies that have an epoch from a version without stored evidence, and studies that were
    /// assessed by another engine or by other settings than `by`.
    pub async fn unassessed(
        &self,
        limit: i64,
        except: &[i64],
        by: &str,
    ) -> Result<Vec<i64>, StoreError> {
        sqlx::query_scalar!(
            r#"select e.study_id as "study_id!" from epochs e
               where e.evidence is null and e.study_id <> all($2)
                 and exists (select from epochs judged where judged.study_id = e.study_id and judged.judgements > 0)
               union
               select s.id from studies s
               where s.assessment is not null and s.id <> all($2)
                 and (s.assessed_by is null or s.assessed_by < $3 or s.assessed_by > $3)
               order by 1 limit $1"#,
            limit,
            except,
            by
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)
    }
}

impl Assessing {
    /// The study's state in the transaction, with what other studies have learnt, as a start has it.
    pub async fn state(&mut self) -> Result<StudyState, StoreError> {
        self.store
            .state_in(&mut self.transaction, NAME, self.study_id)
            .await
    }

    /// Rebuilds an epoch's caches from its judgements.
    pub async fn fold_caches(&mut self, epoch_id: i64) -> Result<(), StoreError> {
        let connection = &mut *self.transaction;
        let fold = judgements::fold(connection, NAME, epoch_id, i64::MAX).await?;
        tested::replace(connection, NAME, epoch_id, &fold.tested).await
    }

    /// The epochs to assess, the earliest first: the judged one, and those before it without
    /// evidence. Each continues the comparison numbers of the epoch before it, whichever epoch is
    /// its parent, because a comparison in an epoch whose reset is undone was a look at the data,
    /// too.
    pub async fn evidence(&mut self) -> Result<Vec<KeptEvidence>, StoreError> {
        let rows = sqlx::query!(
            r#"select e.id, e.ordinal, e.space as "space: Json<Space>", e.evidence,
                      earlier.evidence as "earlier_evidence?", earlier.ordinal as "earlier_ordinal?",
                      case when e.takes = 'runs' and e.parent_id = earlier.id and earlier.settled > 0
                                and e.space <> earlier.space then earlier.space end as "changed: Json<Space>"
               from epochs judged join epochs e on e.study_id = judged.study_id
               left join lateral (select earlier.id, earlier.ordinal, earlier.space, earlier.settled, earlier.evidence
                                  from epochs earlier
                                  where earlier.study_id = e.study_id and earlier.ordinal < e.ordinal
                                    and earlier.evidence is not null
                                  order by earlier.ordinal desc limit 1) earlier on true
               where judged.id = $1
                 and (e.id = judged.id or e.evidence is null and e.ordinal < judged.ordinal)
               order by e.ordinal"#,
            self.epoch_id
        )
        .fetch_all(&mut *self.transaction)
        .await
        .named(NAME)?;
        let kept = rows.into_iter().map(|row| KeptEvidence {
            epoch_id: row.id,
            epoch: row.ordinal,
            default: row.space.0.default().key(),
            own: row.evidence,
            earlier: row.earlier_evidence,
            continues: row
                .changed
                .zip(row.earlier_ordinal)
                .filter(|(from, _)| stays_settled(&from.0, &row.space.0))
                .map(|(from, epoch)| Continued {
                    epoch,
                    from: from.0,
                    to: row.space.0.clone(),
                }),
            judged: self.judged.filter(|_| row.id == self.epoch_id),
        });
        Ok(kept.collect())
    }

    /// The study's assessment so far.
    pub async fn assessment(&mut self) -> Result<Option<Assessment>, StoreError> {
        assessment(&mut self.transaction, self.study_id).await
    }

    /// The next runs of an epoch, in order of start, up to the first that may still be judged,
    /// because entering later runs first would favour short ones. A page with fewer than
    /// [`EVIDENCE_PAGE`] runs is the last.
    pub async fn runs_after(
        &mut self,
        epoch_id: i64,
        run_id: i64,
    ) -> Result<Vec<EvidenceRow>, StoreError> {
        runs_after(&mut self.transaction, epoch_id, run_id).await
    }

    /// The evidence of all epochs of studies with this objective, in order; none where none was
    /// stored.
    pub async fn evidence_of(
        &mut self,
        studies: &[i64],
        objective: &Objective,
    ) -> Result<BTreeMap<i64, Vec<Option<Value>>>, StoreError> {
        sharing::evidence(&mut self.transaction, NAME, studies, objective).await
    }

    /// Writes an epoch's evidence.
    pub async fn write_evidence(
        &mut self,
        epoch_id: i64,
        evidence: &Value,
    ) -> Result<(), StoreError> {
        let result = sqlx::query!(
            "update epochs set evidence = $2 where id = $1",
            epoch_id,
            evidence
        )
        .execute(&mut *self.transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)
    }

    /// Writes the study's assessment. `by`: the engine and the settings that it was made by.
    pub async fn write_assessment(
        &mut self,
        assessment: &Assessment,
        by: &str,
    ) -> Result<(), StoreError> {
        let result = sqlx::query!(
            "update studies set assessment = $2, assessed_by = $3 where id = $1",
            self.study_id,
            Json(assessment) as _,
            by
        )
        .execute(&mut *self.transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)
    }

    /// Stores what an epoch has learnt for other studies. It is only written when the number of
    /// judged runs has grown by a tenth since the last time, because studies that begin with it
    /// compute values from it and keep them until it changes.
    pub async fn write_learnt(
        &mut self,
        epoch_id: i64,
        judged: i64,
        measures: &BTreeMap<String, f64>,
        learnt: &Value,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "insert into sources (study_id, epoch_id, accelerator, space_key, judged, measures, learnt)
             select s.id, e.id, s.accelerator, hashtextextended(e.space::text, 0), $2, $3, $4
             from epochs e join studies s on s.id = e.study_id where e.id = $1
             on conflict (study_id) do update
             set epoch_id = excluded.epoch_id, accelerator = excluded.accelerator, space_key = excluded.space_key,
                 judged = excluded.judged, measures = excluded.measures, learnt = excluded.learnt
             where sources.epoch_id <> excluded.epoch_id or sources.judged + sources.judged / 10 < excluded.judged",
            epoch_id,
            judged,
            Json(measures) as _,
            learnt
        )
        .execute(&mut *self.transaction)
        .await
        .named(NAME)?;
        Ok(())
    }

    /// Commits the transaction.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.named(NAME)
    }
}

async fn assessment(
    connection: &mut Connection,
    study_id: i64,
) -> Result<Option<Assessment>, StoreError> {
    let row = sqlx::query_scalar!(
        r#"select assessment as "assessment: Json<Assessment>" from studies where id = $1"#,
        study_id
    )
    .fetch_optional(connection)
    .await
    .named(NAME)?;
    Ok(row.flatten().map(|json| json.0))
}

async fn runs_after(
    connection: &mut Connection,
    epoch_id: i64,
    run_id: i64,
) -> Result<Vec<EvidenceRow>, StoreError> {
    let rows = sqlx::query!(
        r#"select r.id, (extract(epoch from r.started_at) * 1000000)::bigint as "started!", r.phase, r.role, r.nodes,
                  r.suggestion->'control_chance' as control_chance,
                  r.parametrization as "given: Json<io_autotune_model::Parametrization>", j.effect as "effect?", j.elapsed as "elapsed?",
                  e.objective, j.measures as "measures?: Json<BTreeMap<String, f64>>",
                  j.parametrization as "parametrization?: Json<io_autotune_model::Parametrization>",
                  (select s.slowness from surroundings s
                   where s.cluster = r.cluster and s.at <= r.started_at and s.at > r.started_at - interval '5 minutes'
                   order by s.at desc limit 1) as slowness
           from runs r join epochs e on e.id = r.epoch_id
           left join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
           where r.epoch_id = $1 and r.id > $2
             and r.id < coalesce((select min(flying.id) from runs flying
                                  where flying.epoch_id = $1 and flying.state = 'in_flight' and not flying.released),
                                 9223372036854775807)
           order by r.id limit $3"#,
        epoch_id,
        run_id,
        EVIDENCE_PAGE as i64
    )
    .fetch_all(connection)
    .await
    .named(NAME)?;
    rows.into_iter()
        .map(|row| {
            let cut_short = row.effect.as_deref() == Some("censored");
            let counts = cut_short || row.effect.as_deref() == Some("sample");
            let key = row.parametrization.map(|json| json.0.key());
            Ok(EvidenceRow {
                run_id: row.id,
                started: row.started,
                slowness: row.slowness.unwrap_or(0.0),
                phase: word(NAME, &row.phase)?,
                role: word(NAME, &row.role)?,
                control_chance: row.control_chance.as_ref().and_then(Value::as_f64),
                given: row.given.0.key(),
                nodes: row.nodes.map_or(Ok(1), |nodes| number(NAME, nodes))?,
                counts: key
                    .zip(row.elapsed)
                    .filter(|_| counts)
                    .map(|(key, elapsed)| {
                        let objective = objective(NAME, &row.objective)?;
                        let measures = row.measures.map(|json| json.0).unwrap_or_default();
                        Ok::<_, StoreError>(CountsRow {
                            key,
                            value: value(NAME, &objective, elapsed, &measures)?,
                            beside: (!objective.is_elapsed()).then_some(elapsed),
                            cut_short,
                        })
                    })
                    .transpose()?,
            })
        })
        .collect()
}
