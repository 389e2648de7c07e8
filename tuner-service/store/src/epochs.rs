//! Opening epochs.

use io_autotune_model::{
    History, Objective, Parametrization, Space, carried, carried_parametrization, stays_settled,
};
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::{Store, one_row};
use crate::records::number;
use crate::state::StudyState;
use crate::tested;

/// The uid that owns catalogue files, and so changes spaces.
const ROOT: u32 = 0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) parent: Option<&'a StudyState>,
    pub(crate) space: &'a Space,
    pub(crate) why: &'a str,
    /// Ranked parametrizations from the parent or another study, the best first.
    pub(crate) inherited: &'a [Parametrization],
    pub(crate) drift: Option<&'a Value>,
    pub(crate) objective: &'a Objective,
}

/// The objective of a study until a user names another.
static FIRST: Objective = Objective::Elapsed;

impl<'a> Opening<'a> {
    pub(crate) fn afresh(parent: Option<&'a StudyState>, space: &'a Space, why: &'a str) -> Self {
        Self {
            parent,
            space,
            why,
            inherited: &[],
            drift: None,
            objective: parent.map_or(&FIRST, |parent| &parent.objective),
        }
    }

    fn takes(&self) -> &'static str {
        match self.drift.is_some() || !self.inherited.is_empty() {
            true => "ranks",
            false => "nothing",
        }
    }
}

/// Opens a study's next epoch under its row lock. Returns its number.
pub(crate) async fn open_epoch(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    opening: Opening<'_>,
) -> Result<i32, StoreError> {
    let ordinal = opening.parent.map_or(0, |parent| parent.epoch) + 1;
    let result = sqlx::query!(
        "insert into epochs (study_id, ordinal, parent_id, takes, space, seed, opened_why, inherited, drift, objective)
         values ($1, $2::int, $3, $4, $5, hashint8extended($1, $2::int::bigint), $6, $7, $8, $9)",
        study_id,
        ordinal,
        opening.parent.map(|parent| parent.epoch_id),
        opening.takes(),
        Json(opening.space) as _,
        opening.why,
        Json(opening.inherited) as _,
        opening.drift,
        opening.objective.to_string()
    )
    .execute(&mut *connection)
    .await
    .named(name)?;
    one_row(name, &result)?;
    assess_again(connection, name, study_id).await?;
    Ok(ordinal)
}

/// Has the next sweep assess a study: its last assessment is of an epoch before.
async fn assess_again(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update studies set assessed_by = null where id = $1 and assessed_by is not null",
        study_id
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(())
}

/// Opens the next epoch in a changed space, under the study's lock. Runs and a pin that still fit
/// the space are taken along. A pin that does not fit is removed, and the audit names root, who
/// changed the accelerator's file.
pub(crate) async fn open_changed_epoch(
    connection: &mut Connection,
    name: &'static str,
    parent: &StudyState,
    space: &Space,
) -> Result<(), StoreError> {
    let why = "the accelerator's parameters changed";
    open_following_epoch(connection, name, parent, parent.epoch + 1, space, why).await?;
    let has_settled = parent.history.tally.settled > 0;
    if has_settled && stays_settled(&parent.space, space) {
        // The claim stays valid, and belongs to the new epoch until that has a verdict. What is told of
        // the space before is not.
        sqlx::query!(
            "update studies set assessment = jsonb_set(assessment - 'overview', '{epoch}', to_jsonb($2::int))
             where id = $1 and assessment->'epoch' = to_jsonb($3::int)",
            parent.study_id,
            parent.epoch + 1,
            parent.epoch
        )
        .execute(&mut *connection)
        .await
        .named(name)?;
    } else if has_settled {
        let detail = json!({ "opened_epoch": parent.epoch + 1 });
        let entry = Entry::of_study("search-again", parent.study_id, detail);
        let why = "the accelerator's file has another default, or offers other values in the place of some";
        write(connection, name, entry, Audit::unbounded(ROOT, why)).await?;
    }
    let Some(pin) = parent.own_pin() else {
        return Ok(());
    };
    if let Some(pin) = carried_parametrization(pin, &parent.space, space) {
        let result = sqlx::query!(
            "update pins set parametrization = $2 where study_id = $1",
            parent.study_id,
            Json(&pin) as _
        )
        .execute(connection)
        .await
        .named(name)?;
        one_row(name, &result)?;
    } else {
        sqlx::query!("delete from pins where study_id = $1", parent.study_id)
            .execute(&mut *connection)
            .await
            .named(name)?;
        let detail = json!({ "parametrization": pin, "is_offered": false });
        let entry = Entry::of_study("unpin", parent.study_id, detail);
        let why = "the accelerator does not offer what was pinned any more";
        write(connection, name, entry, Audit::unbounded(ROOT, why)).await?;
    }
    Ok(())
}

impl Store {
    /// The spaces in which studies of an accelerator search at present, with true if these have
    /// settled, and the number of studies.
    pub async fn spaces_in_use(
        &self,
        accelerator: &str,
    ) -> Result<Vec<(Space, bool, u64)>, StoreError> {
        const NAME: &str = "spaces_in_use";
        let rows = sqlx::query!(
            r#"select e.space as "space: Json<Space>", e.settled > 0 as "has_settled!", count(*) as "studies!"
               from studies s
               cross join lateral (select space, settled from epochs where study_id = s.id
                                   order by ordinal desc limit 1) e
               where s.accelerator = $1 group by 1, 2 order by 3 desc"#,
            accelerator
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| Ok((row.space.0, row.has_settled, number(NAME, row.studies)?)))
            .collect()
    }
}

/// Opens the epoch with this number, which takes the parent's runs that fit the space.
pub(crate) async fn open_following_epoch(
    connection: &mut Connection,
    name: &'static str,
    parent: &StudyState,
    ordinal: i32,
    space: &Space,
    why: &str,
) -> Result<(), StoreError> {
    assess_again(connection, name, parent.study_id).await?;
    let History { tested, tally } = carried(&parent.history, &parent.space, space);
    let epoch_id = sqlx::query_scalar!(
        "insert into epochs (study_id, ordinal, parent_id, takes, taken_judgements, space, seed, opened_why,
                             objective, baseline, explored, controls, settled, settled_controls, proof, total)
         values ($1, $2::int, $3, 'runs', $4, $5, hashint8extended($1, $2::int::bigint), $6,
                 $7, $8, $9, $10, $11, $12, $13, $14) returning id",
        parent.study_id,
        ordinal,
        parent.epoch_id,
        parent.judged,
        Json(space) as _,
        why,
        parent.objective.to_string(),
        number::<u64, i64>(name, tally.baseline)?,
        number::<u64, i64>(name, tally.explored)?,
        number::<u64, i64>(name, tally.controls)?,
        number::<u64, i64>(name, tally.settled)?,
        number::<u64, i64>(name, tally.settled_controls)?,
        number::<u64, i64>(name, tally.proof)?,
        number::<u64, i64>(name, tally.total)?
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    tested::write(connection, name, epoch_id, &tested).await
}
