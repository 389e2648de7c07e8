//! What epochs have learnt of their spaces, which other studies begin with.

use std::collections::BTreeMap;

use io_autotune_model::{Space, Tested};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::Store;
use crate::error::{Named, StoreError};

/// Of so many that began last, those whose measures are nearest are taken.
const LOOKED_AT: i64 = 64;
/// Most that a start reads.
const MOST: i64 = 8;

/// What another study's epoch has learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The epoch.
    pub epoch_id: i64,
    /// Number of judgements that it is made of, for [`Store::history_at`](crate::Store::history_at).
    pub judged: i64,
    /// What the engine made of them.
    pub learnt: Value,
}

impl Store {
    /// The number and application of each of these epochs' studies, if it is this owner's; without
    /// an owner all.
    pub async fn studies_of_epochs(
        &self,
        epochs: &[i64],
        owner: Option<u32>,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        const NAME: &str = "studies_of_epochs";
        let rows = sqlx::query!(
            "select distinct s.id, a.name from epochs e join studies s on s.id = e.study_id
             join applications a on a.id = s.application_id
             where e.id = any($1) and ($2::bigint is null or a.owner_uid = $2) order by s.id",
            epochs,
            owner.map(i64::from)
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
    }
}

/// Of other studies with the same accelerator and space. A study whose latest epoch has learnt little
/// is none: what it knew before a reset or a drift may hold no longer.
pub(crate) async fn sources(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
    space: &Space,
    tested: &[Tested],
) -> Result<Vec<Learnt>, StoreError> {
    let default = space.default();
    let own = tested.iter().find(|one| one.parametrization == default);
    let own: BTreeMap<&str, f64> = own
        .iter()
        .flat_map(|one| &one.measures)
        .filter(|(_, moments)| moments.count > 0)
        .map(|(name, moments)| (name.as_str(), moments.mean))
        .collect();
    sqlx::query_as!(
        Learnt,
        r#"with latest as materialized (
               -- One value each and no other condition: the index gives these without a look at all others.
               select f.study_id, f.epoch_id, f.measures
               from sources f
               where f.accelerator = (select accelerator from studies where id = $1)
                 and f.space_key = (select hashtextextended(space::text, 0) from epochs where study_id = $1
                                    order by ordinal desc limit 1)
                 and f.study_id <> $1
               order by f.epoch_id desc limit $3
           ), nearest as (
               select latest.study_id from latest
               where latest.epoch_id = (select id from epochs where study_id = latest.study_id order by ordinal desc
                                        limit 1)
               order by coalesce((select avg(power(theirs.value::double precision - own.value::double precision, 2))
                                  from jsonb_each_text(latest.measures) theirs
                                  join jsonb_each_text($2) own on own.key = theirs.key), 1),
                        latest.epoch_id desc
               limit $4
           )
           select f.epoch_id, f.judged, f.learnt from sources f join nearest n on n.study_id = f.study_id
           order by f.epoch_id"#,
        study_id,
        Json(own) as _,
        LOOKED_AT,
        MOST
    )
    .fetch_all(connection)
    .await
    .named(name)
}
