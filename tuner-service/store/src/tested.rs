//! The table `tested`, which has the statistics of a parametrization in an epoch.

use std::collections::BTreeMap;

use io_autotune_model::{Moments, Parametrization, RecentRun, Tested};
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::records::number;

pub(crate) struct Row {
    pub(crate) parametrization: Json<Parametrization>,
    pub(crate) count: i64,
    pub(crate) mean: f64,
    pub(crate) m2: f64,
    pub(crate) log_mean: f64,
    pub(crate) log_m2: f64,
    pub(crate) recent: Json<Vec<RecentRun>>,
    pub(crate) others: Json<BTreeMap<i64, f64>>,
    pub(crate) censored: Json<Vec<RecentRun>>,
    pub(crate) measures: Json<BTreeMap<String, Moments>>,
    pub(crate) failed: i64,
    pub(crate) out_of_memory: i64,
    pub(crate) first_run: i64,
}

impl Row {
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
            recent: beside(self.recent.0, &self.others.0),
            censored: self.censored.0,
            measures: self.measures.0,
            failed: number(name, self.failed)?,
            out_of_memory: number(name, self.out_of_memory)?,
            first_ordinal: self.first_run,
        })
    }
}

/// Adds to runs, by their numbers, how long other runs took at the same time.
fn beside(runs: Vec<RecentRun>, others: &BTreeMap<i64, f64>) -> Vec<RecentRun> {
    let runs = runs.into_iter();
    runs.map(|run| run.beside(others.get(&run.ordinal).copied()))
        .collect()
}

/// The runs in the form that older programs can read, too.
fn alone(runs: &[RecentRun]) -> Vec<RecentRun> {
    runs.iter().map(|run| run.beside(None)).collect()
}

fn others(runs: &[RecentRun]) -> BTreeMap<i64, f64> {
    let known = runs.iter();
    known
        .filter_map(|run| Some((run.ordinal, run.others?)))
        .collect()
}

/// All rows of an epoch, ordered by first run.
pub(crate) async fn all(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
) -> Result<Vec<Tested>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select parametrization as "parametrization: Json<Parametrization>", count, mean, m2,
                  log_mean, log_m2, recent as "recent: Json<Vec<RecentRun>>",
                  others as "others: Json<BTreeMap<i64, f64>>",
                  censored as "censored: Json<Vec<RecentRun>>",
                  measures as "measures: Json<BTreeMap<String, Moments>>", failed, out_of_memory,
                  first_run
           from tested where epoch_id = $1 order by first_run, key"#,
        epoch_id
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    rows.into_iter().map(|row| row.tested(name)).collect()
}

pub(crate) async fn of_keys(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    keys: &[String],
) -> Result<Vec<Tested>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select parametrization as "parametrization: Json<Parametrization>", count, mean, m2,
                  log_mean, log_m2, recent as "recent: Json<Vec<RecentRun>>",
                  others as "others: Json<BTreeMap<i64, f64>>",
                  censored as "censored: Json<Vec<RecentRun>>",
                  measures as "measures: Json<BTreeMap<String, Moments>>", failed, out_of_memory,
                  first_run
           from tested where epoch_id = $1 and key = any($2)"#,
        epoch_id,
        keys
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    rows.into_iter().map(|row| row.tested(name)).collect()
}

/// Writes rows of an epoch, each for another parametrization, in one statement.
pub(crate) async fn write(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    all: impl IntoIterator<Item = &Tested>,
) -> Result<(), StoreError> {
    // JSON keeps every digit of the numbers.
    let rows: Vec<Value> = all
        .into_iter()
        .map(|tested| {
            json!({
                "key": tested.parametrization.key(),
                "parametrization": tested.parametrization,
                "count": tested.elapsed.count,
                "mean": tested.elapsed.mean,
                "m2": tested.elapsed.m2,
                "log_mean": tested.log_elapsed.mean,
                "log_m2": tested.log_elapsed.m2,
                "recent": alone(&tested.recent),
                "others": others(&tested.recent),
                "censored": tested.censored,
                "measures": tested.measures,
                "failed": tested.failed,
                "out_of_memory": tested.out_of_memory,
                "first_run": tested.first_ordinal,
            })
        })
        .collect();
    let wanted = rows.len() as u64;
    let result = sqlx::query!(
        "insert into tested (epoch_id, key, parametrization, count, mean, m2, log_mean, log_m2, recent, others, censored,
                             measures, failed, out_of_memory, first_run)
         select $1, key, parametrization, count, mean, m2, log_mean, log_m2, recent, others, censored,
                measures, failed, out_of_memory, first_run
         from jsonb_to_recordset($2) as written(
             key text, parametrization jsonb, count bigint, mean double precision, m2 double precision,
             log_mean double precision, log_m2 double precision, recent jsonb, others jsonb, censored jsonb,
             measures jsonb, failed bigint, out_of_memory bigint, first_run bigint)
         on conflict (epoch_id, key) do update
             set count = excluded.count, mean = excluded.mean, m2 = excluded.m2, log_mean = excluded.log_mean,
                 log_m2 = excluded.log_m2, recent = excluded.recent, others = excluded.others, censored = excluded.censored,
                 measures = excluded.measures, failed = excluded.failed,
                 out_of_memory = excluded.out_of_memory, first_run = excluded.first_run",
        epoch_id,
        Value::Array(rows)
    )
    .execute(connection)
    .await
    .named(name)?;
    match result.rows_affected() {
        written if written == wanted => Ok(()),
        written => Err(StoreError::invariant(
            name,
            format!("of {wanted} parametrizations {written} were written"),
        )),
    }
}

pub(crate) async fn replace(
    connection: &mut Connection,
    name: &'static str,
    epoch_id: i64,
    all: &BTreeMap<String, Tested>,
) -> Result<(), StoreError> {
    sqlx::query!("delete from tested where epoch_id = $1", epoch_id)
        .execute(&mut *connection)
        .await
        .named(name)?;
    write(connection, name, epoch_id, all.values()).await
}
