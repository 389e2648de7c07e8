//! What a suggestion is made from: a study's epoch, its history, its runs in flight.

use io_autotune_engine::{
    History, Moments, Parametrization, Pending, RecentRun, Space, Tally, Tested,
};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::records::{number, word};

/// A study at one moment.
#[derive(Clone, Debug)]
pub struct StudyState {
    /// The study.
    pub study_id: i64,
    /// The current epoch's row.
    pub epoch_id: i64,
    /// The current epoch's number, from 1.
    pub epoch: i32,
    /// The epoch's seed.
    pub seed: u64,
    /// The epoch's space.
    pub space: Space,
    /// Runs that ended.
    pub history: History,
    /// Runs in flight.
    pub pending: Vec<Pending>,
    /// Set while the study is pinned.
    pub pin: Option<Parametrization>,
}

/// Loads the current epoch of a study.
pub(crate) async fn load(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
) -> Result<StudyState, StoreError> {
    let epoch = sqlx::query!(
        r#"select e.id, e.ordinal, e.seed, e.space as "space: Json<Space>",
                  e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.total,
                  p.parametrization as "pin?: Json<Parametrization>"
           from epochs e left join pins p on p.study_id = e.study_id
           where e.study_id = $1 order by e.ordinal desc limit 1"#,
        study_id
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    let tested = sqlx::query_as!(
        TestedRow,
        r#"select parametrization as "parametrization: Json<Parametrization>", count, mean, m2,
                  log_mean, log_m2, recent as "recent: Json<Vec<RecentRun>>", failed, first_run
           from tested where epoch_id = $1 order by first_run, key"#,
        epoch.id
    )
    .fetch_all(&mut *connection)
    .await
    .named(name)?;
    let pending = sqlx::query!(
        r#"select parametrization as "parametrization: Json<Parametrization>", phase, role, count(*) as "count!"
           from runs where epoch_id = $1 and state = 'in_flight'
           group by parametrization, phase, role order by min(id)"#,
        epoch.id
    )
    .fetch_all(&mut *connection)
    .await
    .named(name)?;

    let tested = tested
        .into_iter()
        .map(|row| row.tested(name))
        .collect::<Result<_, StoreError>>()?;
    let pending = pending
        .into_iter()
        .map(|row| {
            Ok(Pending {
                parametrization: row.parametrization.0,
                phase: word(name, &row.phase)?,
                role: word(name, &row.role)?,
                count: number(name, row.count)?,
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let tally = Tally {
        baseline: number(name, epoch.baseline)?,
        explored: number(name, epoch.explored)?,
        controls: number(name, epoch.controls)?,
        settled: number(name, epoch.settled)?,
        settled_controls: number(name, epoch.settled_controls)?,
        total: number(name, epoch.total)?,
    };
    Ok(StudyState {
        study_id,
        epoch_id: epoch.id,
        epoch: epoch.ordinal,
        seed: epoch.seed.cast_unsigned(),
        space: epoch.space.0,
        history: History { tested, tally },
        pending,
        pin: epoch.pin.map(|pin| pin.0),
    })
}

/// A row of the table `tested`.
pub(crate) struct TestedRow {
    pub(crate) parametrization: Json<Parametrization>,
    pub(crate) count: i64,
    pub(crate) mean: f64,
    pub(crate) m2: f64,
    pub(crate) log_mean: f64,
    pub(crate) log_m2: f64,
    pub(crate) recent: Json<Vec<RecentRun>>,
    pub(crate) failed: i64,
    pub(crate) first_run: i64,
}

impl TestedRow {
    pub(crate) fn tested(self, name: &'static str) -> Result<Tested, StoreError> {
        let count = number(name, self.count)?;
        Ok(Tested {
            parametrization: self.parametrization.0,
            elapsed: Moments {
                count,
                mean: self.mean,
                m2: self.m2,
            },
            log_elapsed: Moments {
                count,
                mean: self.log_mean,
                m2: self.log_m2,
            },
            recent: self.recent.0,
            censored: Vec::new(),
            failed: number(name, self.failed)?,
            first_ordinal: self.first_run,
        })
    }
}
