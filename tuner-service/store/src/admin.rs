//! Pin, unpin, reset and accept. Each writes an audit entry in the same transaction.

use std::time::Duration;

use io_autotune_model::Parametrization;
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::epochs::{Opening, open_epoch};
use crate::error::{Named, StoreError};
use crate::pool::{Store, one_row};
use crate::records::{number, timestamp};
use crate::state;
use crate::studies::lock_study;

/// Who changes a study, and why.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    /// Who.
    pub uid: u32,
    /// Why.
    pub why: &'a str,
}

/// An entry of the audit table.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// Who.
    pub uid: u32,
    /// `pin`, `unpin`, `reset` or `accept`.
    pub action: String,
    /// The action's parameters, as stored.
    pub detail: Value,
    /// Why.
    pub why: String,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// Pins a study: every later start gets `parametrization`. Replaces an earlier pin.
    pub async fn pin(
        &self,
        study_id: i64,
        parametrization: &Parametrization,
        audit: Audit<'_>,
    ) -> Result<(), StoreError> {
        const NAME: &str = "pin";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let result = sqlx::query!(
            "insert into pins (study_id, parametrization, uid, why) values ($1, $2, $3, $4)
             on conflict (study_id) do update set parametrization = excluded.parametrization,
                 uid = excluded.uid, why = excluded.why, pinned_at = now()",
            study_id,
            Json(parametrization) as _,
            i64::from(audit.uid),
            audit.why
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        write(
            &mut transaction,
            NAME,
            study_id,
            audit,
            json!({ "parametrization": parametrization }),
        )
        .await?;
        transaction.commit().await.named(NAME)
    }

    /// Unpins a study. `false`: it was not pinned.
    pub async fn unpin(&self, study_id: i64, audit: Audit<'_>) -> Result<bool, StoreError> {
        const NAME: &str = "unpin";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let removed = remove_pin(&mut transaction, NAME, study_id).await?;
        if let Some(parametrization) = &removed {
            let detail = json!({ "parametrization": parametrization });
            write(&mut transaction, NAME, study_id, audit, detail).await?;
        }
        transaction.commit().await.named(NAME)?;
        Ok(removed.is_some())
    }

    /// Opens a new epoch that takes nothing from its parent, and removes the pin. Runs in flight
    /// and history stay with the old epoch. Returns the new epoch's number.
    pub async fn reset(&self, study_id: i64, audit: Audit<'_>) -> Result<i32, StoreError> {
        const NAME: &str = "reset";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let parent = state::load(&mut transaction, NAME, study_id).await?;
        let unpinned = remove_pin(&mut transaction, NAME, study_id).await?;
        let why = format!("reset: {}", audit.why);
        let opening = Opening::afresh(Some(&parent), &parent.space, &why);
        let epoch = open_epoch(&mut transaction, NAME, study_id, opening).await?;
        let detail = json!({ "opened_epoch": epoch, "unpinned": unpinned });
        write(&mut transaction, NAME, study_id, audit, detail).await?;
        transaction.commit().await.named(NAME)?;
        Ok(epoch)
    }

    /// Accepts mixed work: the study's runs count as one application's, however much they differ.
    pub async fn accept_mixed(&self, study_id: i64, audit: Audit<'_>) -> Result<(), StoreError> {
        const NAME: &str = "accept";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let result = sqlx::query!(
            "update studies set mixed_accepted_at = now(), mixed_accepted_by = $2, mixed_accepted_why = $3
             where id = $1",
            study_id,
            i64::from(audit.uid),
            audit.why
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        write(&mut transaction, NAME, study_id, audit, json!({})).await?;
        transaction.commit().await.named(NAME)
    }

    /// A study's audit entries, oldest first.
    pub async fn audit_of(&self, study_id: i64) -> Result<Vec<AuditEntry>, StoreError> {
        const NAME: &str = "audit_of";
        let rows = sqlx::query!(
            r#"select uid, action, detail, why, (extract(epoch from at) * 1000000)::bigint as "at!"
               from audit where study_id = $1 order by id"#,
            study_id
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(AuditEntry {
                    uid: number(NAME, row.uid)?,
                    action: row.action,
                    detail: row.detail,
                    why: row.why,
                    at: timestamp(NAME, row.at)?,
                })
            })
            .collect()
    }
}

async fn remove_pin(
    connection: &mut PgConnection,
    name: &'static str,
    study_id: i64,
) -> Result<Option<Value>, StoreError> {
    sqlx::query_scalar!(
        "delete from pins where study_id = $1 returning parametrization",
        study_id
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

async fn write(
    connection: &mut PgConnection,
    action: &'static str,
    study_id: i64,
    audit: Audit<'_>,
    detail: Value,
) -> Result<(), StoreError> {
    let result = sqlx::query!(
        "insert into audit (uid, action, study_id, detail, why) values ($1, $2, $3, $4, $5)",
        i64::from(audit.uid),
        action,
        study_id,
        detail,
        audit.why
    )
    .execute(connection)
    .await
    .named(action)?;
    one_row(action, &result)
}
