//! Drift: a new epoch follows a settled one whose results no longer hold, and keeps its ranks.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::{DRIFT_RUNS, Drift, Parametrization, Role, SettledRun};
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::epochs::{Opening, open_epoch};
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{objective, value, word};
use crate::state::{self, StudyState};
use crate::studies::lock_study;

/// The ranks and the reason with which a new epoch opens after a drift.
#[derive(Clone, Debug)]
pub struct Inheritance {
    /// The parent's best parametrizations, the best first.
    pub inherited: Vec<Parametrization>,
    /// The drift and its evidence.
    pub drift: Value,
    /// The reason why the epoch opens, in one sentence.
    pub why: String,
}

impl Store {
    /// The latest counted runs of an epoch's settled phase, at most `limit`, in order of start:
    /// control runs and runs of the recommendation. Runs that did not get the parametrization that
    /// they were given are left out.
    pub async fn settled_runs(
        &self,
        epoch_id: i64,
        most: usize,
    ) -> Result<Vec<SettledRun>, StoreError> {
        const NAME: &str = "settled_runs";
        let mut connection = self.pool.acquire().await.named(NAME)?;
        settled_runs(&mut connection, NAME, epoch_id, most).await
    }

    /// Looks for drift in a study's current epoch after judgements, and opens the next epoch if
    /// there is any. Returns its number and the drift. `None` without looking if no run is of a
    /// settled phase, if the runs' epoch is not current, or if the study is pinned.
    ///
    /// `detect` runs first without the study's lock, then under it. Of several replicas one opens
    /// the epoch, and the others find a new one that has not settled. Returns [`StoreError::Busy`]
    /// if the lock takes longer than two seconds; the next judgement looks again.
    pub async fn follow_drift(
        &self,
        run_ids: &[i64],
        detect: impl Fn(&[SettledRun]) -> Option<Drift>,
        inherit: impl FnOnce(&StudyState, &Drift) -> Inheritance,
    ) -> Result<Option<(i32, Drift)>, StoreError> {
        const NAME: &str = "drift";
        let watched = sqlx::query!(
            r#"select e.study_id, e.id as epoch_id from runs r join epochs e on e.id = r.epoch_id
               where r.id = any($1) and r.phase = 'settled' and r.role in ('settled', 'control')
                 and not exists (select from epochs later where later.study_id = e.study_id
                                 and later.ordinal > e.ordinal)
                 and not exists (select from pins p where p.study_id = e.study_id
                                 and (p.until is null or p.until > now()))
               limit 1"#,
            run_ids
        )
        .fetch_optional(&self.pool)
        .await
        .named(NAME)?;
        let Some(watched) = watched else {
            return Ok(None);
        };
        let mut connection = self.pool.acquire().await.named(NAME)?;
        let runs = settled_runs(&mut connection, NAME, watched.epoch_id, DRIFT_RUNS).await?;
        drop(connection);
        if detect(&runs).is_none() {
            return Ok(None);
        }
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        lock_study(&mut transaction, NAME, watched.study_id).await?;
        let state = state::load(&mut transaction, NAME, watched.study_id).await?;
        if state.epoch_id != watched.epoch_id || state.pin.is_some() {
            return Ok(None);
        }
        let runs = settled_runs(&mut transaction, NAME, state.epoch_id, DRIFT_RUNS).await?;
        let Some(drift) = detect(&runs) else {
            return Ok(None);
        };
        let inheritance = inherit(&state, &drift);
        let opening = Opening {
            parent: Some(&state),
            space: &state.space,
            why: &inheritance.why,
            inherited: &inheritance.inherited,
            drift: Some(&inheritance.drift),
            objective: &state.objective,
        };
        let epoch = open_epoch(&mut transaction, NAME, watched.study_id, opening).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Some((epoch, drift)))
    }
}

async fn settled_runs(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    most: usize,
) -> Result<Vec<SettledRun>, StoreError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = sqlx::query!(
        r#"select r.id, r.role, j.elapsed as "elapsed!", e.objective,
                  j.measures as "measures: Json<BTreeMap<String, f64>>"
           from runs r join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
           join epochs e on e.id = r.epoch_id
           where r.epoch_id = $1 and r.phase = 'settled' and r.state = 'counted' and r.role in ('settled', 'control')
             and not (r.applied ->> 'kind' = 'default'
                      and jsonb_path_exists(r.delivery - '{watch,watch_directives,read_back}'::text[], '$.*[*]'))
           order by r.id desc limit $2"#,
        epoch_id,
        most
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    rows.into_iter()
        .rev()
        .map(|row| {
            let objective = objective(name, &row.objective)?;
            Ok(SettledRun {
                ordinal: row.id,
                control: word::<Role>(name, &row.role)? == Role::Control,
                elapsed: value(name, &objective, row.elapsed, &row.measures.0)?,
            })
        })
        .collect()
}
