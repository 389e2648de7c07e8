//! A run's verdict enters the study's caches, and is revised when the truth arrives late.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_engine::{Parametrization, Tally, Tested};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::judgements::{Effect, fold};
use crate::pool::{Store, one_row};
use crate::records::{number, word};
use crate::start::lock_study;
use crate::tested;

/// Whether a run counts, and for what.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It counts, with its elapsed, for the parametrization that was really applied.
    Counted {
        /// What was really applied.
        parametrization: Parametrization,
        /// Why, in one sentence.
        why: String,
    },
    /// Its time limit cut it short: its elapsed is a lower bound for what was really applied.
    Censored {
        /// What was really applied.
        parametrization: Parametrization,
        /// Why, in one sentence.
        why: String,
    },
    /// It does not count.
    NotCounted {
        /// Why, in one sentence.
        why: String,
        /// Under what the job failed, if that may be the parametrization's doing.
        failed: Option<Failure>,
    },
}

/// What a failure speaks against.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// Whether the job ran out of memory.
    pub out_of_memory: bool,
}

impl Verdict {
    fn state(&self) -> &'static str {
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

    /// What it does to the caches for a run of `elapsed` seconds with these measures; `None`: it needs an
    /// elapsed.
    fn effect(&self, elapsed: Option<f64>, measures: BTreeMap<String, f64>) -> Option<Effect> {
        match self {
            Self::Counted {
                parametrization, ..
            } => Some(Effect::Sample(parametrization.clone(), elapsed?, measures)),
            Self::Censored {
                parametrization, ..
            } => Some(Effect::Censored(parametrization.clone(), elapsed?)),
            Self::NotCounted {
                failed: Some(failure),
                ..
            } => Some(match failure.out_of_memory {
                true => Effect::OutOfMemory(failure.parametrization.clone()),
                false => Effect::Failure(failure.parametrization.clone()),
            }),
            Self::NotCounted { failed: None, .. } => Some(Effect::Nothing),
        }
    }
}

/// What became of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is the run's first.
    First,
    /// It takes the place of an earlier one.
    Revised,
    /// It is the one that the run has.
    Unchanged,
    /// Something new was heard of the run since: nothing changed, and it is to be judged again.
    Outdated,
}

/// The judgement of a run that holds.
#[derive(PartialEq)]
struct Standing {
    effect: Effect,
    why: String,
}

impl Store {
    /// Gives a run its verdict and enters it into the caches of its epoch, or puts it in the place
    /// of the one it has. `news` is the run's when the verdict was made.
    ///
    /// # Errors
    ///
    /// When the database fails or the verdict does not fit the run.
    pub async fn judge_run(
        &self,
        run_id: i64,
        news: i64,
        verdict: &Verdict,
    ) -> Result<Judged, StoreError> {
        const NAME: &str = "judge_run";
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        let study_id = sqlx::query_scalar!(
            "select e.study_id from runs r join epochs e on e.id = r.epoch_id where r.id = $1",
            run_id
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let run = sqlx::query!(
            r#"select epoch_id, phase, role, elapsed, news, measures as "measures: Json<BTreeMap<String, f64>>"
               from runs where id = $1 for no key update"#,
            run_id
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        if run.news != news {
            return Ok(Judged::Outdated);
        }
        let judgement = Standing {
            effect: verdict
                .effect(run.elapsed, run.measures.0)
                .ok_or(StoreError::Invariant {
                    transaction: NAME,
                    problem: "a run without elapsed cannot count".into(),
                })?,
            why: verdict.why().to_owned(),
        };
        let standing = standing(&mut transaction, NAME, run_id).await?;
        if standing.as_ref() == Some(&judgement) {
            let result = sqlx::query!("update runs set judged_news = news where id = $1", run_id)
                .execute(&mut *transaction)
                .await
                .named(NAME)?;
            one_row(NAME, &result)?;
            transaction.commit().await.named(NAME)?;
            return Ok(Judged::Unchanged);
        }
        let tally = match &standing {
            None => Tally::of(word(NAME, &run.phase)?, word(NAME, &run.role)?),
            Some(_) => Tally::default(),
        };
        let ordinal = add_judgement(&mut transaction, NAME, run.epoch_id, tally).await?;
        let result = sqlx::query!(
            "insert into judgements (epoch_id, ordinal, run_id, effect, parametrization, elapsed, measures, verdict)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
            run.epoch_id,
            ordinal,
            run_id,
            judgement.effect.word(),
            judgement.effect.parametrization().map(Json) as _,
            judgement.effect.elapsed(),
            Json(judgement.effect.measures()) as _,
            judgement.why
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        let result = sqlx::query!(
            "update runs set state = $2, verdict = $3, judged_at = now(), judged_ordinal = $4, judged_news = news
             where id = $1",
            run_id,
            verdict.state(),
            judgement.why,
            ordinal
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        match &standing {
            None => {
                enter(
                    &mut transaction,
                    NAME,
                    run.epoch_id,
                    run_id,
                    &judgement.effect,
                )
                .await?;
            }
            // Neither said anything of any parametrization.
            Some(standing)
                if standing.effect == Effect::Nothing && judgement.effect == Effect::Nothing => {}
            // A mean cannot be taken back without rounding; adding up anew gives the same caches as
            // if the earlier verdict had never been.
            Some(_) => {
                let fold = fold(&mut transaction, NAME, run.epoch_id, ordinal).await?;
                tested::replace(&mut transaction, NAME, run.epoch_id, &fold.tested).await?;
            }
        }
        transaction.commit().await.named(NAME)?;
        Ok(match standing {
            None => Judged::First,
            Some(_) => Judged::Revised,
        })
    }
}

/// The judgement of a run that holds, if it was judged.
async fn standing(
    connection: &mut PgConnection,
    name: &'static str,
    run_id: i64,
) -> Result<Option<Standing>, StoreError> {
    let row = sqlx::query!(
        r#"select effect, elapsed, verdict, parametrization as "parametrization: Json<Parametrization>",
                  measures as "measures: Json<BTreeMap<String, f64>>"
           from judgements where run_id = $1 order by ordinal desc limit 1"#,
        run_id
    )
    .fetch_optional(connection)
    .await
    .named(name)?;
    row.map(|row| {
        let parametrization = row.parametrization.map(|json| json.0);
        Ok(Standing {
            effect: Effect::read(
                name,
                &row.effect,
                parametrization,
                row.elapsed,
                row.measures.0,
            )?,
            why: row.verdict,
        })
    })
    .transpose()
}

/// Counts a judgement in its epoch, whose tally grows by what its run adds; returns its ordinal.
async fn add_judgement(
    connection: &mut PgConnection,
    name: &'static str,
    epoch_id: i64,
    tally: Tally,
) -> Result<i64, StoreError> {
    let number = |count: u64| number::<u64, i64>(name, count);
    sqlx::query_scalar!(
        "update epochs set judgements = judgements + 1, baseline = baseline + $2, explored = explored + $3,
                controls = controls + $4, settled = settled + $5, settled_controls = settled_controls + $6,
                total = total + $7
         where id = $1 returning judgements",
        epoch_id,
        number(tally.baseline)?,
        number(tally.explored)?,
        number(tally.controls)?,
        number(tally.settled)?,
        number(tally.settled_controls)?,
        number(tally.total)?
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// Enters a run into the cache of the parametrization that its judgement speaks of.
async fn enter(
    connection: &mut PgConnection,
    name: &'static str,
    epoch_id: i64,
    run_id: i64,
    effect: &Effect,
) -> Result<(), StoreError> {
    let Some(parametrization) = effect.parametrization() else {
        return Ok(());
    };
    let known = tested::one(connection, name, epoch_id, &parametrization.key()).await?;
    let mut entry = known.unwrap_or_else(|| Tested::new(parametrization.clone(), run_id));
    effect.enter(name, &mut entry, run_id)?;
    tested::write(connection, name, epoch_id, &entry).await
}
