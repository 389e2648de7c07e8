//! Pin, unpin, reset, warm start, accept and undo. Each writes an audit entry in the same transaction.

use std::time::Duration;

use io_autotune_model::{Objective, Parametrization};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::epochs::{Opening, open_epoch, open_following_epoch};
use crate::error::{Named, StoreError};
use crate::orders::{has_room, id_in, lock_orders, put_back, take_back};
use crate::pool::{Store, one_row};
use crate::retention::refuse_removed;
use crate::state::{self, StudyState};
use crate::studies::lock_study;

/// An epoch that a reset, a warm start or another objective has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The epoch's number.
    pub epoch: i32,
    /// The number of the line in the audit.
    pub line: i64,
}

/// The result of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The change is undone.
    Done,
    /// There is no line with this number.
    NotFound,
    /// The change cannot be undone, for this reason.
    Cannot(&'static str),
}

/// The source of the ranks of a warm start.
#[derive(Clone, Copy, Debug)]
pub struct WarmStart<'a> {
    /// The other study.
    pub study_id: i64,
    /// The name of its application.
    pub application: &'a str,
    /// The number of its epoch.
    pub epoch: i32,
}

/// A row of `pins` from before a change, as the audit stores it for an undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptPin {
    parametrization: Value,
    uid: i64,
    why: String,
    /// Microseconds since 1970.
    pinned_at: i64,
    until: Option<i64>,
}

/// The acceptance of mixed work from before a change, as the audit stores it for an undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptAcceptance {
    uid: Option<i64>,
    why: Option<String>,
    /// Microseconds since 1970.
    accepted_at: i64,
}

impl Store {
    /// Pins a study: every later start gets `parametrization`, until `until`. Replaces an earlier
    /// pin. Returns the number of the line in the audit, as all changes do.
    pub async fn pin(
        &self,
        study_id: i64,
        parametrization: &Parametrization,
        until: Option<Timestamp>,
        audit: Audit<'_>,
    ) -> Result<i64, StoreError> {
        const NAME: &str = "pin";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let before = kept_pin(&mut transaction, NAME, study_id).await?;
        let result = sqlx::query!(
            "insert into pins (study_id, parametrization, uid, why, until)
             values ($1, $2, $3, $4, to_timestamp($5::bigint / 1e6))
             on conflict (study_id) do update set parametrization = excluded.parametrization,
                 uid = excluded.uid, why = excluded.why, pinned_at = now(), until = excluded.until",
            study_id,
            Json(parametrization) as _,
            i64::from(audit.uid),
            audit.why,
            until.map(Timestamp::as_microsecond)
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        let detail =
            json!({ "parametrization": parametrization, "until": until, "before": before });
        let entry = Entry::of_study(NAME, study_id, detail);
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(line)
    }

    /// Unpins a study. `None`: it was not pinned.
    pub async fn unpin(&self, study_id: i64, audit: Audit<'_>) -> Result<Option<i64>, StoreError> {
        const NAME: &str = "unpin";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let before = kept_pin(&mut transaction, NAME, study_id).await?;
        let Some(pin) = before else {
            return Ok(None);
        };
        remove_pin(&mut transaction, NAME, study_id).await?;
        let detail = json!({ "parametrization": pin.parametrization, "before": pin });
        let entry = Entry::of_study(NAME, study_id, detail);
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Some(line))
    }

    /// Opens a new epoch that takes nothing from its parent, and removes the pin. Runs in flight
    /// and history stay with the old epoch.
    pub async fn reset(&self, study_id: i64, audit: Audit<'_>) -> Result<Opened, StoreError> {
        const NAME: &str = "reset";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let parent = state::load(&mut transaction, NAME, study_id).await?;
        let before = kept_pin(&mut transaction, NAME, study_id).await?;
        remove_pin(&mut transaction, NAME, study_id).await?;
        let why = format!("reset: {}", audit.why);
        let opening = Opening::afresh(Some(&parent), &parent.space, &why);
        let epoch = open_epoch(&mut transaction, NAME, study_id, opening).await?;
        let unpinned = before.as_ref().map(|pin| &pin.parametrization);
        let detail = json!({ "opened_epoch": epoch, "unpinned": unpinned, "before": before });
        let entry = Entry::of_study(NAME, study_id, detail);
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Opened { epoch, line })
    }

    /// Opens a new epoch with ranks that `inherit` computes from the study's state under its lock:
    /// another study's, the best first. Runs in flight and history stay with the old epoch. If
    /// `inherit` fails its error is returned, and nothing is changed.
    pub async fn warm_start<E>(
        &self,
        study_id: i64,
        from: &WarmStart<'_>,
        inherit: impl FnOnce(&StudyState) -> Result<Vec<Parametrization>, E>,
        audit: Audit<'_>,
    ) -> Result<Result<Opened, E>, StoreError> {
        const NAME: &str = "warm-start";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let parent = state::load(&mut transaction, NAME, study_id).await?;
        let inherited = match inherit(&parent) {
            Ok(inherited) => inherited,
            Err(nothing) => return Ok(Err(nothing)),
        };
        let why = format!(
            "warm start with what study {} (application {}) ranked best: {}",
            from.study_id, from.application, audit.why
        );
        let opening = Opening {
            inherited: &inherited,
            ..Opening::afresh(Some(&parent), &parent.space, &why)
        };
        let epoch = open_epoch(&mut transaction, NAME, study_id, opening).await?;
        // A warm start is refused for a pinned study, so there is no pin to restore.
        let detail = json!({
            "opened_epoch": epoch, "from_study": from.study_id, "from_epoch": from.epoch,
            "inherited": inherited.len(), "before": null,
        });
        let entry = Entry::of_study(NAME, study_id, detail);
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Ok(Opened { epoch, line }))
    }

    /// Gives a study another objective. That opens a new epoch that takes nothing, because ranks by
    /// one objective are meaningless for another. A pin stays. `None`: the study has this objective
    /// already.
    pub async fn set_objective(
        &self,
        study_id: i64,
        objective: &Objective,
        audit: Audit<'_>,
    ) -> Result<Option<Opened>, StoreError> {
        const NAME: &str = "objective";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let parent = state::load(&mut transaction, NAME, study_id).await?;
        if parent.objective == *objective {
            return Ok(None);
        }
        let why = format!("the objective is {objective} now: {}", audit.why);
        let opening = Opening {
            objective,
            ..Opening::afresh(Some(&parent), &parent.space, &why)
        };
        let epoch = open_epoch(&mut transaction, NAME, study_id, opening).await?;
        let detail = json!({
            "opened_epoch": epoch, "objective": objective, "before": parent.objective,
        });
        let entry = Entry::of_study(NAME, study_id, detail);
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Some(Opened { epoch, line }))
    }

    /// Accepts mixed work: the study's runs count as one application's, however much they differ.
    pub async fn accept_mixed(&self, study_id: i64, audit: Audit<'_>) -> Result<i64, StoreError> {
        const NAME: &str = "accept";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_study(&mut transaction, NAME, study_id).await?;
        let before = kept_acceptance(&mut transaction, NAME, study_id).await?;
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
        let entry = Entry::of_study(NAME, study_id, json!({ "before": before }));
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(line)
    }

    /// Undoes the change of a line of the audit, if nothing has changed the study since. After an
    /// undone reset or warm start the study continues, in a new epoch, with its earlier history.
    pub async fn undo(&self, audit_id: i64, audit: Audit<'_>) -> Result<Undone, StoreError> {
        const NAME: &str = "undo";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        // Taken before the line is read, so that two undos of the same line are serialised.
        lock_orders(&mut transaction, NAME).await?;
        let line = sqlx::query!(
            r#"select l.action, l.study_id, l.order_id, l.detail, l.uid, l.why,
                      exists (select from audit u where u.undoes = l.id) as "undone!"
               from audit l where l.id = $1"#,
            audit_id
        )
        .fetch_optional(&mut *transaction)
        .await
        .named(NAME)?;
        let Some(line) = line else {
            return Ok(Undone::NotFound);
        };
        if line.undone {
            return Ok(Undone::Cannot("it is undone already"));
        }
        if line.detail.get("forgotten").is_some() {
            return Ok(Undone::Cannot(
                "its user was forgotten, and with them what it did",
            ));
        }
        if let Some(study_id) = line.study_id {
            lock_study(&mut transaction, NAME, study_id).await?;
        }
        let done = match (line.action.as_str(), line.study_id, line.order_id) {
            ("pin" | "freeze" | "off" | "site-default", _, Some(order_id)) => {
                let replaced = id_in(&line.detail, "replaced");
                take_back(&mut transaction, NAME, order_id, replaced).await?
            }
            // Undoing the end of an order gives the order again.
            ("unpin" | "resume" | "on" | "end-site-default", _, Some(order_id)) => {
                has_room(&mut transaction, NAME, audit).await?;
                put_back(&mut transaction, NAME, order_id).await?
            }
            ("objective", Some(study_id), None) => {
                let why = "a change of the objective was undone";
                match reopen(&mut transaction, NAME, study_id, &line.detail, why).await {
                    Err(StoreError::Removed { .. }) => return Ok(Undone::Cannot(REMOVED)),
                    reopened => reopened?,
                }
            }
            ("pin" | "unpin" | "reset" | "warm-start", Some(study_id), None) => {
                if line.detail.get("is_offered") == Some(&Value::Bool(false)) {
                    return Ok(Undone::Cannot(
                        "the accelerator does not offer what was pinned any more",
                    ));
                }
                let Some(before) = line.detail.get("before") else {
                    return Ok(Undone::Cannot(
                        "a version before 0.3 did it, which did not keep what was before",
                    ));
                };
                let before: Option<KeptPin> = kept(NAME, "a pin", before)?;
                let mut now = kept_pin(&mut transaction, NAME, study_id).await?;
                let is_as_left = match line.action.as_str() {
                    "pin" => now.take().is_some_and(|pin| {
                        line.detail.get("parametrization") == Some(&pin.parametrization)
                            && (pin.uid, &pin.why) == (line.uid, &line.why)
                    }),
                    "unpin" => now.is_none(),
                    opened => {
                        let why = match opened {
                            "reset" => "a reset was undone",
                            _ => "a warm start was undone",
                        };
                        match reopen(&mut transaction, NAME, study_id, &line.detail, why).await {
                            Err(StoreError::Removed { .. }) => return Ok(Undone::Cannot(REMOVED)),
                            reopened => now.is_none() && reopened?,
                        }
                    }
                };
                if is_as_left {
                    remove_pin(&mut transaction, NAME, study_id).await?;
                    if let Some(pin) = &before {
                        restore_pin(&mut transaction, NAME, study_id, pin).await?;
                    }
                }
                is_as_left
            }
            ("accept", Some(study_id), None) => {
                let Some(before) = line.detail.get("before") else {
                    return Ok(Undone::Cannot(
                        "a version before 0.4 did it, which did not keep what was before",
                    ));
                };
                let before: Option<KeptAcceptance> = kept(NAME, "an acceptance", before)?;
                let now = kept_acceptance(&mut transaction, NAME, study_id).await?;
                let is_as_left = now.is_some_and(|now| {
                    (now.uid, now.why.as_deref()) == (Some(line.uid), Some(line.why.as_str()))
                });
                if is_as_left {
                    restore_acceptance(&mut transaction, NAME, study_id, before.as_ref()).await?;
                }
                is_as_left
            }
            _ => {
                return Ok(Undone::Cannot(
                    "only a pin, a reset, a warm start, another objective, an acceptance, a freeze, an off, a site's default, and what has ended one, can be undone",
                ));
            }
        };
        if !done {
            return Ok(Undone::Cannot(
                "it is not in force any more: something later has changed it",
            ));
        }
        let entry = Entry {
            action: "undo",
            study_id: line.study_id,
            order_id: line.order_id,
            undoes: Some(audit_id),
            detail: json!({ "action": line.action }),
        };
        write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Undone::Done)
    }
}

const REMOVED: &str = "the runs of the epoch before were removed by retention";

fn kept<T: for<'de> Deserialize<'de>>(
    name: &'static str,
    what: &str,
    before: &Value,
) -> Result<Option<T>, StoreError> {
    Option::deserialize(before).map_err(|error| {
        StoreError::invariant(
            name,
            format!("{what} that the audit keeps cannot be read: {error}"),
        )
    })
}

/// Opens an epoch that continues the one before `opened`. `false`: a later one is open. Returns
/// [`StoreError::Removed`] if its runs are gone.
async fn reopen(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    opened: &Value,
    why: &str,
) -> Result<bool, StoreError> {
    let latest = state::load(&mut *connection, name, study_id).await?;
    if id_in(opened, "opened_epoch") != Some(latest.epoch.into()) {
        return Ok(false);
    }
    let before = state::load_before(&mut *connection, name, study_id, latest.epoch).await?;
    refuse_removed(&mut *connection, name, before.epoch_id).await?;
    open_following_epoch(
        connection,
        name,
        &before,
        latest.epoch + 1,
        &latest.space,
        why,
    )
    .await?;
    Ok(true)
}

async fn kept_pin(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<Option<KeptPin>, StoreError> {
    sqlx::query_as!(
        KeptPin,
        r#"select parametrization, uid, why, (extract(epoch from pinned_at) * 1000000)::bigint as "pinned_at!",
                  (extract(epoch from until) * 1000000)::bigint as until
           from pins where study_id = $1 and (until is null or until > now())"#,
        study_id
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

async fn restore_pin(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    pin: &KeptPin,
) -> Result<(), StoreError> {
    let result = sqlx::query!(
        "insert into pins (study_id, parametrization, uid, why, pinned_at, until)
         values ($1, $2, $3, $4, to_timestamp($5::bigint / 1e6), to_timestamp($6::bigint / 1e6))",
        study_id,
        pin.parametrization,
        pin.uid,
        pin.why,
        pin.pinned_at,
        pin.until
    )
    .execute(connection)
    .await
    .named(name)?;
    one_row(name, &result)
}

async fn remove_pin(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<(), StoreError> {
    sqlx::query!("delete from pins where study_id = $1", study_id)
        .execute(connection)
        .await
        .named(name)?;
    Ok(())
}

async fn kept_acceptance(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
) -> Result<Option<KeptAcceptance>, StoreError> {
    sqlx::query_as!(
        KeptAcceptance,
        r#"select mixed_accepted_by as uid, mixed_accepted_why as why,
                  (extract(epoch from mixed_accepted_at) * 1000000)::bigint as "accepted_at!"
           from studies where id = $1 and mixed_accepted_at is not null"#,
        study_id
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

async fn restore_acceptance(
    connection: &mut Connection,
    name: &'static str,
    study_id: i64,
    before: Option<&KeptAcceptance>,
) -> Result<(), StoreError> {
    let result = sqlx::query!(
        "update studies set mixed_accepted_at = to_timestamp($2::bigint / 1e6), mixed_accepted_by = $3,
                            mixed_accepted_why = $4
         where id = $1",
        study_id,
        before.map(|one| one.accepted_at),
        before.and_then(|one| one.uid),
        before.and_then(|one| one.why.as_deref())
    )
    .execute(connection)
    .await
    .named(name)?;
    one_row(name, &result)
}
