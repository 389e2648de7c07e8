//! Finding, creating and locking the rows of studies.

use std::time::Duration;

use io_autotune_model::Space;
use sqlx::types::Json;

use crate::audit::{Counted, lock_count};
use crate::connections::Connection;
use crate::connections::Connections;
use crate::epochs::{Opening, open_epoch};
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{StudyKey, number};
use crate::state::StudyState;

async fn find_study(
    pool: &Connections,
    name: &'static str,
    key: &StudyKey,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "select s.id from studies s join applications a on a.id = s.application_id
         where a.owner_uid = $1 and a.name = $2 and s.accelerator = $3 and s.context_key = $4
           and s.cluster = $5",
        i64::from(key.owner_uid),
        key.application,
        key.accelerator,
        key.context_key(),
        key.cluster
    )
    .fetch_optional(pool)
    .await
    .named(name)
}

/// [`lock_study`] for a key; `None`: there is no such study yet. A study made by a program of a
/// version without clusters becomes the key's, because there is only one cluster as long as such
/// programs run.
pub(crate) async fn lock_study_of(
    connection: &mut Connection,
    name: &'static str,
    key: &StudyKey,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "update studies s set share = s.share, cluster = $5 from applications a
         where a.id = s.application_id
           and a.owner_uid = $1 and a.name = $2 and s.accelerator = $3 and s.context_key = $4
           and coalesce(s.cluster, $5) = $5
         returning s.id",
        i64::from(key.owner_uid),
        key.application,
        key.accelerator,
        key.context_key(),
        key.cluster
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

async fn count_of(
    connection: &mut Connection,
    name: &'static str,
    owner_uid: u32,
) -> Result<i64, StoreError> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from studies s join applications a on a.id = s.application_id
           where a.owner_uid = $1"#,
        i64::from(owner_uid)
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// Creates and locks the study of a key with its first epoch. A concurrent request may have created
/// it. Returns [`StoreError::TooManyStudies`] if its owner has `most_studies` already; the caller
/// must then drop the transaction.
pub(crate) async fn make_study(
    connection: &mut Connection,
    name: &'static str,
    key: &StudyKey,
    space: &Space,
    most_studies: u32,
) -> Result<i64, StoreError> {
    let context_key = key.context_key();
    let application_id = sqlx::query_scalar!(
        "insert into applications (owner_uid, owner_name, name, full_name) values ($1, $2, $3, $4)
         on conflict (owner_uid, name) do update
             set owner_name = coalesce(excluded.owner_name, applications.owner_name)
         returning id",
        i64::from(key.owner_uid),
        key.owner_name,
        key.application,
        key.full_name
    )
    .fetch_one(&mut *connection)
    .await
    .named(name)?;
    let inserted = sqlx::query_scalar!(
        "insert into studies (application_id, accelerator, context, context_key, cluster)
         values ($1, $2, $3, $4, $5) on conflict do nothing returning id",
        application_id,
        key.accelerator,
        Json(&key.context) as _,
        context_key,
        key.cluster
    )
    .fetch_optional(&mut *connection)
    .await
    .named(name)?;
    if let Some(study_id) = inserted {
        lock_count(connection, name, Counted::Studies, key.owner_uid).await?;
        if count_of(&mut *connection, name, key.owner_uid).await? > i64::from(most_studies) {
            return Err(StoreError::TooManyStudies {
                transaction: name,
                uid: key.owner_uid,
                most: most_studies,
            });
        }
        let opening = Opening::afresh(None, space, "first run");
        open_epoch(connection, name, study_id, opening).await?;
        return Ok(study_id);
    }
    lock_study_of(connection, name, key)
        .await?
        .ok_or_else(|| StoreError::invariant(name, "a study exists and cannot be read"))
}

/// The names of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The name.
    pub name: String,
    /// The full name, if the name does not have all of it.
    pub full_name: Option<String>,
}

impl Store {
    /// The current state of the study with a key; none if it has had no run.
    pub async fn state_if_any(&self, study: &StudyKey) -> Result<Option<StudyState>, StoreError> {
        const NAME: &str = "state_if_any";
        match find_study(&self.pool, NAME, study).await? {
            Some(study_id) => self.study_state(study_id).await.map(Some),
            None => Ok(None),
        }
    }

    /// A user's applications with this name or full name, the oldest first.
    pub async fn applications_called(
        &self,
        owner_uid: Option<u32>,
        name: &str,
        full_name: &str,
    ) -> Result<Vec<Called>, StoreError> {
        const NAME: &str = "applications_called";
        let rows = sqlx::query!(
            "select name, full_name from applications
             where ($1::bigint is null or owner_uid = $1) and (name = $2 or full_name = $3) order by id",
            owner_uid.map(i64::from),
            name,
            full_name
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        let called = rows.into_iter().map(|row| Called {
            name: row.name,
            full_name: row.full_name,
        });
        Ok(called.collect())
    }

    /// The number of a user's studies.
    pub async fn studies_of(&self, uid: u32) -> Result<u32, StoreError> {
        const NAME: &str = "studies_of";
        let mut connection = self.pool.acquire().await.named(NAME)?;
        number(NAME, count_of(&mut connection, NAME, uid).await?)
    }

    pub(crate) async fn ensure_study(
        &self,
        key: &StudyKey,
        space: &Space,
    ) -> Result<i64, StoreError> {
        const NAME: &str = "ensure_study";
        if let Some(study_id) = find_study(&self.pool, NAME, key).await? {
            return Ok(study_id);
        }
        let mut transaction = self.begin(NAME, Duration::from_secs(1)).await?;
        let study_id = make_study(&mut transaction, NAME, key, space, self.most_studies).await?;
        transaction.commit().await.named(NAME)?;
        Ok(study_id)
    }
}

/// Takes a study's row lock, which serialises its suggestions and caches, and its turn, so that a
/// start that was decided before is decided anew.
pub(crate) async fn lock_study(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<(), StoreError> {
    sqlx::query_scalar!(
        "update studies set share = share where id = $1 returning id",
        study_id
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    Ok(())
}
