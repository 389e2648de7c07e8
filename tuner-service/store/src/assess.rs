//! The assessment of a study, and the evidence it rests on, kept in the transaction that changes what
//! they are made of.

use std::time::Duration;

use io_autotune_model::{Assessment, Phase, Role};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres, Transaction};

use crate::error::{Named, StoreError};
use crate::judgements;
use crate::pool::{Store, one_row};
use crate::records::{number, word};
use crate::state::{self, StudyState};
use crate::studies::lock_study;
use crate::tested;

const NAME: &str = "assess";

/// A study under its lock, whose evidence and assessment are to be written. Dropped without
/// [`commit`](Assessing::commit) nothing of the transaction holds.
#[derive(Debug)]
pub struct Assessing {
    transaction: Transaction<'static, Postgres>,
    study_id: i64,
    epoch_id: i64,
    /// The first of the runs that were judged.
    judged: Option<i64>,
}

/// An epoch, and its study.
#[derive(Clone, Copy, Debug)]
pub struct EpochOfStudy {
    /// The study.
    pub study_id: i64,
    /// Its epoch.
    pub epoch_id: i64,
}

/// What is kept of an epoch's evidence.
#[derive(Clone, Debug)]
pub struct KeptEvidence {
    /// The epoch's number in its study.
    pub epoch: i32,
    /// Whether it is the study's current one.
    pub is_current: bool,
    /// Its evidence; none where it has none yet.
    pub own: Option<Value>,
    /// Its parent's.
    pub parent: Option<Value>,
    /// The study's assessment so far.
    pub assessment: Option<Assessment>,
    /// The first of the runs that were judged in this transaction, where some were.
    pub judged: Option<i64>,
}

/// A run of an epoch, in the order of starts.
#[derive(Clone, Debug)]
pub struct EvidenceRow {
    /// The run.
    pub run_id: i64,
    /// When it started, microseconds since 1970.
    pub started: i64,
    /// The study's phase at its start.
    pub phase: Phase,
    /// Its part in it.
    pub role: Role,
    /// How many nodes it had; 1 where nobody said.
    pub nodes: u32,
    /// What it counts for, if it counts or was cut short: the key, seconds, and whether they are a lower bound.
    pub counts: Option<(String, f64, bool)>,
}

impl Store {
    /// Locks a study, so that its evidence and assessment can be renewed.
    ///
    /// # Errors
    ///
    /// When the database fails, or the lock cannot be had in two seconds.
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
        Ok(Assessing::of(transaction, study_id, epoch_id, None))
    }

    /// Locks a study, so that an epoch's evidence can be made where it has none.
    ///
    /// # Errors
    ///
    /// As [`assess`](Self::assess).
    pub async fn assess_epoch(&self, epoch: EpochOfStudy) -> Result<Assessing, StoreError> {
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        lock_study(&mut transaction, NAME, epoch.study_id).await?;
        Ok(Assessing::of(
            transaction,
            epoch.study_id,
            epoch.epoch_id,
            None,
        ))
    }

    /// What the engine said of a study at its last verdict; none before its first.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn assessment(&self, study_id: i64) -> Result<Option<Assessment>, StoreError> {
        let row = sqlx::query_scalar!(
            r#"select assessment as "assessment: Json<Assessment>" from studies where id = $1"#,
            study_id
        )
        .fetch_optional(&self.pool)
        .await
        .named(NAME)?;
        Ok(row.flatten().map(|json| json.0))
    }

    /// Some epochs without evidence, of studies with verdicts: those were given before evidence was
    /// kept. A study's come in their order, in which they are to be assessed.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn unassessed(&self, limit: i64) -> Result<Vec<EpochOfStudy>, StoreError> {
        sqlx::query_as!(
            EpochOfStudy,
            "select e.study_id, e.id as epoch_id from epochs e
             where e.evidence is null
               and exists (select from epochs judged where judged.study_id = e.study_id and judged.judgements > 0)
             order by e.study_id, e.ordinal limit $1",
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)
    }
}

impl Assessing {
    pub(crate) fn of(
        transaction: Transaction<'static, Postgres>,
        study_id: i64,
        epoch_id: i64,
        judged: Option<i64>,
    ) -> Self {
        Self {
            transaction,
            study_id,
            epoch_id,
            judged,
        }
    }

    /// The study as it is in the transaction.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn state(&mut self) -> Result<StudyState, StoreError> {
        state::load(&mut self.transaction, NAME, self.study_id).await
    }

    /// Builds the epoch's caches from its judgements, for a database that holds the truth alone.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn fold_caches(&mut self) -> Result<(), StoreError> {
        let connection = &mut *self.transaction;
        let fold = judgements::fold(connection, NAME, self.epoch_id, i64::MAX).await?;
        tested::replace(connection, NAME, self.epoch_id, &fold.tested).await
    }

    /// What was kept last time.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn evidence(&mut self) -> Result<KeptEvidence, StoreError> {
        let row = sqlx::query!(
            r#"select e.ordinal, e.evidence, parent.evidence as "parent_evidence?",
                      s.assessment as "assessment: Json<Assessment>",
                      not exists (select from epochs later where later.study_id = e.study_id
                                  and later.ordinal > e.ordinal) as "is_current!"
               from epochs e join studies s on s.id = e.study_id left join epochs parent on parent.id = e.parent_id
               where e.id = $1"#,
            self.epoch_id
        )
        .fetch_one(&mut *self.transaction)
        .await
        .named(NAME)?;
        Ok(KeptEvidence {
            epoch: row.ordinal,
            is_current: row.is_current,
            own: row.evidence,
            parent: row.parent_evidence,
            assessment: row.assessment.map(|json| json.0),
            judged: self.judged,
        })
    }

    /// The next runs of the epoch after one, in the order of starts, up to the first that may yet be judged:
    /// entering later ones before it would sort runs by how long they take. A page of them; none: there are no more.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn runs_after(&mut self, run_id: i64) -> Result<Vec<EvidenceRow>, StoreError> {
        runs_after(&mut self.transaction, self.epoch_id, run_id).await
    }

    /// Writes the epoch's evidence and the study's assessment.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn write(
        &mut self,
        evidence: &Value,
        assessment: &Assessment,
    ) -> Result<(), StoreError> {
        let result = sqlx::query!(
            "with kept as (update epochs set evidence = $2 where id = $1 returning study_id)
             update studies set assessment = $3 from kept where studies.id = kept.study_id",
            self.epoch_id,
            evidence,
            Json(assessment) as _
        )
        .execute(&mut *self.transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)
    }

    /// Ends the transaction; all that it wrote holds.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.named(NAME)
    }
}

async fn runs_after(
    connection: &mut PgConnection,
    epoch_id: i64,
    run_id: i64,
) -> Result<Vec<EvidenceRow>, StoreError> {
    const PAGE: i64 = 1000;
    let rows = sqlx::query!(
        r#"select r.id, (extract(epoch from r.started_at) * 1000000)::bigint as "started!", r.phase, r.role, r.nodes,
                  j.effect as "effect?", j.elapsed as "elapsed?",
                  j.parametrization as "parametrization?: Json<io_autotune_model::Parametrization>"
           from runs r left join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
           where r.epoch_id = $1 and r.id > $2
             and r.id < coalesce((select min(flying.id) from runs flying
                                  where flying.epoch_id = $1 and flying.state = 'in_flight' and not flying.released),
                                 9223372036854775807)
           order by r.id limit $3"#,
        epoch_id,
        run_id,
        PAGE
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
                phase: word(NAME, &row.phase)?,
                role: word(NAME, &row.role)?,
                nodes: row.nodes.map_or(Ok(1), |nodes| number(NAME, nodes))?,
                counts: key
                    .zip(row.elapsed)
                    .filter(|_| counts)
                    .map(|(key, elapsed)| (key, elapsed, cut_short)),
            })
        })
        .collect()
}
