//! The audit: who changed what, when and why. Lines are only added.

use io_autotune_model::AuditLine;
use serde_json::Value;

use crate::accounts::{Coordinated, Visible};
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{number, timestamp};

/// The author of a change, and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    /// The uid of the author.
    pub uid: u32,
    /// The reason.
    pub why: &'a str,
    /// The limits on that user's changes.
    pub most: Most,
}

impl<'a> Audit<'a> {
    /// An author without limits.
    #[must_use]
    pub const fn unbounded(uid: u32, why: &'a str) -> Self {
        let most = Most {
            changes_per_day: None,
            orders: None,
        };
        Self { uid, why, most }
    }
}

/// Limits on a user's changes; `None`: no limit.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// The most lines of the audit within a day.
    pub changes_per_day: Option<u64>,
    /// The most orders in force.
    pub orders: Option<u64>,
}

/// Selects lines of the audit. `None` selects all.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Lines about studies of this owner, and about orders for them or for everyone.
    pub owner_uid: Option<u32>,
    /// Lines about studies of other users that are visible, in addition to the owner's or instead
    /// of everyone's.
    pub coordinated: Option<Coordinated>,
    /// Lines about this study.
    pub study_id: Option<i64>,
    /// Lines of this user's changes.
    pub uid: Option<u32>,
    /// This line only.
    pub audit_id: Option<i64>,
    /// Lines before this one.
    pub before: Option<i64>,
    /// The most lines, the newest first.
    pub limit: i64,
}

/// The entry of the audit, without its author and reason.
pub(crate) struct Entry {
    pub(crate) action: &'static str,
    pub(crate) study_id: Option<i64>,
    pub(crate) order_id: Option<i64>,
    pub(crate) undoes: Option<i64>,
    pub(crate) detail: Value,
}

impl Entry {
    pub(crate) fn of_study(action: &'static str, study_id: i64, detail: Value) -> Self {
        Self {
            action,
            study_id: Some(study_id),
            order_id: None,
            undoes: None,
            detail,
        }
    }
}

impl Store {
    /// The number of audit lines that a user has caused in the last day. Further changes may be
    /// under way; [`Most`] limits what is written.
    pub async fn changes_by(&self, uid: u32) -> Result<u64, StoreError> {
        const NAME: &str = "changes_by";
        let mut connection = self.pool.acquire().await.named(NAME)?;
        changes_by(&mut connection, NAME, uid).await
    }

    /// The newest lines of the audit that match, newest first.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditLine>, StoreError> {
        const NAME: &str = "audit";
        let visible = Visible::of(filter.owner_uid, filter.coordinated.as_ref());
        let rows = sqlx::query!(
            r#"select l.id, l.uid, (select n.owner_name from applications n where n.owner_uid = l.uid
                                    and n.owner_name is not null order by n.id desc limit 1) as "user?", l.action, l.study_id, s.cluster as "cluster?",
                      a.name as "application?",
                      a.owner_uid as "owner_uid?", l.detail, l.undoes, l.why,
                      (select u.id from audit u where u.undoes = l.id) as undone_by,
                      (extract(epoch from l.at) * 1000000)::bigint as "at!"
               from audit l
               left join studies s on s.id = l.study_id left join applications a on a.id = s.application_id
               left join study_accounts c on c.study_id = s.id
               left join orders o on o.id = l.order_id
               where ($7::bigint[] is null or a.owner_uid = $1
                      or (c.cluster, a.owner_uid, c.account)
                         in (select * from unnest($8::text[], $9::bigint[], $10::text[]))
                      or (l.order_id is not null and l.study_id is null and coalesce(o.owner_uid, $1) = $1))
                 and ($2::bigint is null or l.study_id = $2
                      or exists (select from studies t join applications b on b.id = t.application_id
                                 where t.id = $2 and l.order_id is not null and coalesce(o.study_id, t.id) = t.id
                                   and coalesce(o.owner_uid, b.owner_uid) = b.owner_uid
                                   and coalesce(o.application, b.name) = b.name
                                   and coalesce(o.accelerator, t.accelerator) = t.accelerator
                                   and coalesce(o.cluster, t.cluster) = t.cluster)) and ($3::bigint is null or l.uid = $3)
                 and ($4::bigint is null or l.id = $4) and ($5::bigint is null or l.id < $5)
               order by l.id desc limit $6"#,
            visible.own,
            filter.study_id,
            filter.uid.map(i64::from),
            filter.audit_id,
            filter.before,
            filter.limit,
            visible.owners.as_deref(),
            &visible.clusters,
            &visible.members,
            &visible.accounts
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(AuditLine {
                    audit_id: row.id,
                    uid: number(NAME, row.uid)?,
                    user: row.user,
                    action: row.action,
                    study_id: row.study_id,
                    cluster: row.cluster,
                    application: row.application,
                    owner_uid: row.owner_uid.map(|uid| number(NAME, uid)).transpose()?,
                    detail: row.detail,
                    undoes: row.undoes,
                    undone_by: row.undone_by,
                    why: row.why,
                    at: timestamp(NAME, row.at)?,
                })
            })
            .collect()
    }
}

async fn changes_by(
    connection: &mut Connection,
    name: &'static str,
    uid: u32,
) -> Result<u64, StoreError> {
    let changes = sqlx::query_scalar!(
        r#"select count(*) as "changes!" from audit where uid = $1 and at > now() - interval '1 day'"#,
        i64::from(uid)
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    number(name, changes)
}

/// The things of which a user may have a limited number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    Changes,
    Studies,
}

/// Locks a user's count: until the transaction ends, no other one adds to what it is about to
/// count. It must be the last lock that a transaction takes, so that two never wait for each other.
pub(crate) async fn lock_count(
    connection: &mut Connection,
    name: &'static str,
    counted: Counted,
    uid: u32,
) -> Result<(), StoreError> {
    let class: i64 = match counted {
        Counted::Changes => 1,
        Counted::Studies => 2,
    };
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(class << 32 | i64::from(uid))
        .execute(connection)
        .await
        .named(name)?;
    Ok(())
}

/// Writes a line and returns its number. Returns [`StoreError::TooManyChanges`] if the user is at a
/// limit; the caller must then drop the transaction.
pub(crate) async fn write(
    connection: &mut Connection,
    name: &'static str,
    entry: Entry,
    audit: Audit<'_>,
) -> Result<i64, StoreError> {
    if let Some(most) = audit.most.changes_per_day {
        lock_count(connection, name, Counted::Changes, audit.uid).await?;
        if changes_by(connection, name, audit.uid).await? >= most {
            return Err(StoreError::TooManyChanges {
                transaction: name,
                uid: audit.uid,
                most,
            });
        }
    }
    sqlx::query_scalar!(
        "insert into audit (uid, action, study_id, order_id, undoes, detail, why)
         values ($1, $2, $3, $4, $5, $6, $7) returning id",
        i64::from(audit.uid),
        entry.action,
        entry.study_id,
        entry.order_id,
        entry.undoes,
        entry.detail,
        audit.why
    )
    .fetch_one(connection)
    .await
    .named(name)
}
