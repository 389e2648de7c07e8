//! Studies that share: the other users' studies whose runs decide together with a study's own.

use std::collections::BTreeMap;

use io_autotune_model::{History, Moments, Objective, Parametrization, RecentRun, Space, Tally};
use serde_json::Value;
use sqlx::types::Json;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::number;
use crate::tested;

/// The most other studies whose runs a study uses, those that began first: a start reads the tested
/// parametrizations of each.
const MOST_SIBLINGS: i64 = 31;

/// The current epoch of another study of the same share.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// The study.
    pub study_id: i64,
    /// The owner's uid.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The id of its current epoch.
    pub epoch_id: i64,
    /// The number of judgements in `history`, for [`Store::history_at`].
    pub judged: i64,
    /// Judged runs.
    pub history: History,
}

/// A study that shares, or that may share by its application and owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// The study.
    pub study_id: i64,
    /// The study's cluster.
    pub cluster: String,
    /// The study's owner.
    pub uid: u32,
    /// The study's application.
    pub application: String,
    /// The share that the study has at present: `group G` or `account A`.
    pub share: Option<String>,
}

/// The tested parametrizations of the other studies that a study shares with. After a reset or a
/// drift only those that are as new are used: of studies that began later, or after a drift also of
/// studies whose own drift was in the 30 days before. Read in one statement, because nothing locks
/// the other studies.
pub(crate) async fn siblings(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    space: &Space,
    objective: &Objective,
) -> Result<Vec<Sibling>, StoreError> {
    let rows = sqlx::query!(
        r#"with others as (
               select s.id, a.owner_uid, a.owner_name
               from studies mine
               join applications own on own.id = mine.application_id
               join study_beginnings began on began.study_id = mine.id
               join studies s on s.share = mine.share and s.accelerator = mine.accelerator
                                 and s.context_key = mine.context_key and s.cluster = mine.cluster
                                 and s.id <> mine.id
               join applications a on a.id = s.application_id
                                     and coalesce(a.full_name, a.name) = coalesce(own.full_name, own.name)
               join study_beginnings since on since.study_id = s.id
               where mine.id = $1
                 and (not began.drifted and (began.takes <> 'nothing' or began.ordinal = 1 or began.has_turned)
                      or since.opened_at > began.opened_at
                      or began.drifted and since.drifted and since.opened_at > began.opened_at - interval '30 days')
               order by s.id limit $2
           )
           select others.id as study_id, others.owner_uid, others.owner_name, e.id as epoch_id, e.judgements,
                  case when row_number() over (partition by e.id order by t.first_run, t.key) = 1 then e.space end
                      as "space: Json<Space>",
                  e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.proof, e.total,
                  t.parametrization as "parametrization: Json<Parametrization>", t.count, t.mean, t.m2, t.log_mean,
                  t.log_m2, t.recent as "recent: Json<Vec<RecentRun>>",
                  t.others as "others: Json<BTreeMap<i64, f64>>",
                  t.censored as "censored: Json<Vec<RecentRun>>",
                  t.measures as "measures: Json<BTreeMap<String, Moments>>", t.failed,
                  t.out_of_memory, t.first_run
           from others
           join lateral (select * from epochs where epochs.study_id = others.id order by ordinal desc limit 1) e on true
           join tested t on t.epoch_id = e.id
           where e.objective = $3
           order by others.id, t.first_run, t.key"#,
        study_id,
        MOST_SIBLINGS,
        objective.to_string()
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let mut siblings: Vec<Sibling> = Vec::new();
    let mut is_heard = false;
    for row in rows {
        if let Some(Json(theirs)) = row.space {
            is_heard = theirs.offers_the_same(space);
            if is_heard {
                siblings.push(Sibling {
                    study_id: row.study_id,
                    uid: number(name, row.owner_uid)?,
                    user: row.owner_name,
                    epoch_id: row.epoch_id,
                    judged: row.judgements,
                    history: History {
                        tested: Vec::new(),
                        tally: Tally {
                            baseline: number(name, row.baseline)?,
                            explored: number(name, row.explored)?,
                            controls: number(name, row.controls)?,
                            settled: number(name, row.settled)?,
                            settled_controls: number(name, row.settled_controls)?,
                            proof: number(name, row.proof)?,
                            total: number(name, row.total)?,
                        },
                    },
                });
            }
        }
        let row = tested::Row {
            parametrization: row.parametrization,
            count: row.count,
            mean: row.mean,
            m2: row.m2,
            log_mean: row.log_mean,
            log_m2: row.log_m2,
            recent: row.recent,
            others: row.others,
            censored: row.censored,
            measures: row.measures,
            failed: row.failed,
            out_of_memory: row.out_of_memory,
            first_run: row.first_run,
        };
        if let Some(sibling) = siblings.last_mut().filter(|_| is_heard) {
            sibling.history.tested.push(row.tested(name)?);
        }
    }
    Ok(siblings)
}

/// The evidence of all epochs of these studies with this objective, in order for each study; none
/// where none was stored.
pub(crate) async fn evidence(
    connection: &mut Connection,
    name: &'static str,
    studies: &[i64],
    objective: &Objective,
) -> Result<BTreeMap<i64, Vec<Option<Value>>>, StoreError> {
    let rows = sqlx::query!(
        "select study_id, evidence from epochs where study_id = any($1) and objective = $2 order by study_id, ordinal",
        studies,
        objective.to_string()
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let mut evidence: BTreeMap<i64, Vec<Option<Value>>> = BTreeMap::new();
    for row in rows {
        evidence.entry(row.study_id).or_default().push(row.evidence);
    }
    Ok(evidence)
}

impl Store {
    /// Studies with a higher number that share, or whose application has one of these names or
    /// begins with one of these prefixes; at most `limit`, by number.
    pub async fn sharers(
        &self,
        prefixes: &[String],
        after: i64,
        limit: i64,
    ) -> Result<Vec<Sharer>, StoreError> {
        const NAME: &str = "sharers";
        let rows = sqlx::query!(
            r#"select s.id, s.cluster as "cluster!", a.owner_uid, a.name, s.share
             from studies s join applications a on a.id = s.application_id
             where s.id > $2 and s.cluster is not null
               and (s.share is not null
                    or exists (select from unnest($1::text[]) as prefix where starts_with(a.name, prefix)))
             order by s.id limit $3"#,
            prefixes,
            after,
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(Sharer {
                    study_id: row.id,
                    cluster: row.cluster,
                    uid: number(NAME, row.owner_uid)?,
                    application: row.name,
                    share: row.share,
                })
            })
            .collect()
    }

    /// Sets the share of a study; `None`: it is its owner's alone.
    pub async fn share(&self, study_id: i64, share: Option<&str>) -> Result<(), StoreError> {
        const NAME: &str = "share";
        sqlx::query!(
            "update studies set share = $2, assessed_by = null where id = $1 and share is distinct from $2",
            study_id,
            share
        )
        .execute(&self.pool)
        .await
        .named(NAME)?;
        Ok(())
    }
}
