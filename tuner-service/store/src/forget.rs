//! Forgetting a user who has left: what says who they were goes, and what was learnt stays.
//!
//! One transaction, of the schema's owner: the service's role may not rewrite history. The tables
//! and columns are in [`columns`]. A dry run does everything and takes it back.

mod columns;

use std::time::Duration;

use serde_json::json;
use sqlx::{AssertSqlSafe, Row};

use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::number;
use columns::{TABLES, Table, Why};

const NAME: &str = "forget";
/// The longest time of a statement: some look at all rows of a table.
const LONGEST: Duration = Duration::from_hours(1);
/// The longest wait for a study that is being written.
const WAIT: Duration = Duration::from_secs(10);
/// A name that is shorter would be found everywhere.
const SHORTEST_NAME: usize = 3;

/// The uid of all users who were erased: below the two that mean nobody, and no user's.
pub(crate) const ERASED_UID: i64 = 4_294_967_293;
/// Pseudonyms are made in the place of uids that no site gives.
const PSEUDONYMS_FROM: i64 = 4_000_000_000;

/// What a user becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgetting {
    /// Somebody: what they ran stays one person's, under a name that was drawn.
    Pseudonym,
    /// Nobody: the same name for all who are erased, and nothing leads to their jobs.
    Erase,
}

/// Whom to forget, and how.
#[derive(Clone, Debug)]
pub struct Forget<'a> {
    /// A login name, or a uid.
    pub user: &'a str,
    /// The uid that this host's accounts have for that name.
    pub known_uid: Option<u32>,
    /// What becomes of them.
    pub how: Forgetting,
    /// Nothing is kept of what was done.
    pub is_dry_run: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgot {
    /// Nothing is known of such a user.
    Nobody,
    /// Nothing was done: so many runs have no verdict yet, or another one to come.
    Awaited(u64),
    /// It was done, or would be.
    Done(Forgotten),
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The uid that the user had.
    pub uid: u32,
    /// The uid in its place.
    pub new_uid: u32,
    /// The name in the place of the user's.
    pub name: String,
    /// By table, in the order in which they were changed: rows that were changed, and rows that went.
    pub tables: Vec<ForgottenRows>,
    /// Places in which others have written the user's name, or that of an application that was
    /// theirs alone, and the number of rows: `audit.why`.
    pub named: Vec<(String, u64)>,
}

/// The rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenRows {
    /// The table.
    pub table: &'static str,
    /// Rows in which something was changed; one may be counted twice if it is two persons'.
    pub changed: u64,
    /// Rows that went as a whole.
    pub removed: u64,
    /// The columns that were changed.
    pub columns: Vec<&'static str>,
}

/// The columns that stay in the rows of a forgotten user, by the reason why.
#[must_use]
pub fn kept_of_the_forgotten() -> Vec<(&'static str, Vec<String>)> {
    let mut kept: Vec<(Why, String)> = Vec::new();
    for table in TABLES.iter().filter(|table| !table.changes.is_empty()) {
        let columns = table.keeps.iter();
        kept.extend(columns.map(|(column, why)| (*why, format!("{}.{column}", table.name))));
    }
    kept.sort_by_key(|(why, _)| *why);
    kept.chunk_by(|(one, _), (other, _)| one == other)
        .map(|same| {
            let columns = same.iter().map(|(_, column)| column.clone());
            (same[0].0.words(), columns.collect())
        })
        .collect()
}

/// By table, its columns that are changed and that are kept, for comparison with the database; a
/// table whose rows go has neither.
#[must_use]
pub fn classified_columns() -> Vec<(&'static str, Vec<&'static str>, bool)> {
    let columns = |table: &Table| {
        let kept = table.keeps.iter().map(|(column, _)| *column);
        let mut all: Vec<_> = kept.chain(table.changed()).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    TABLES
        .iter()
        .map(|table| (table.name, columns(table), table.is_emptied()))
        .collect()
}

/// Who it is, and who they become.
struct Person {
    uid: i64,
    new_uid: i64,
    new_name: String,
    erase: bool,
    measures: Vec<String>,
}

impl Store {
    /// Forgets a user, in one transaction that ends with a line of the audit by `audit`. It is for
    /// the schema's owner: [`StoreError::MayNotForget`] to others. Returns
    /// [`StoreError::SeveralUsers`] if the name was several uids'.
    pub async fn forget(&self, asked: &Forget<'_>, audit: Audit<'_>) -> Result<Forgot, StoreError> {
        self.ready().await?;
        let mut transaction = self.begin(NAME, WAIT).await?;
        transaction.allow(LONGEST).await.named(NAME)?;
        refuse_others(&mut transaction).await?;
        let Some(uid) = uid_of(&mut transaction, asked).await? else {
            return Ok(Forgot::Nobody);
        };
        // A study is locked before its runs, and nobody else locks two.
        sqlx::query(
            "select s.id from studies s join applications a on a.id = s.application_id
             where a.owner_uid = $1 order by s.id for update of s",
        )
        .bind(uid)
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        let awaited = awaited(&mut transaction, uid).await?;
        if awaited > 0 {
            return Ok(Forgot::Awaited(number(NAME, awaited)?));
        }
        let person = person(&mut transaction, uid, asked.how).await?;
        let names = names(&mut transaction, asked.user, uid).await?;
        sign(&mut transaction, &person, audit).await?;
        let mut tables = Vec::new();
        for table in TABLES {
            tables.extend(change(&mut transaction, table, &person).await?);
        }
        if tables.is_empty() {
            return Ok(Forgot::Nobody);
        }
        let named = named(&mut transaction, &names).await?;
        if !asked.is_dry_run {
            transaction.commit().await.named(NAME)?;
        }
        Ok(Forgot::Done(Forgotten {
            uid: number(NAME, person.uid)?,
            new_uid: number(NAME, person.new_uid)?,
            name: person.new_name,
            tables,
            named,
        }))
    }
}

/// Returns an error unless the role may rewrite lines of the audit, which the service's may not.
async fn refuse_others(connection: &mut Connection) -> Result<(), StoreError> {
    let row = sqlx::query(
        "select current_user::text as role, has_table_privilege('audit', 'update') as may_update",
    )
    .fetch_one(connection)
    .await
    .named(NAME)?;
    match row.try_get("may_update").named(NAME)? {
        true => Ok(()),
        false => Err(StoreError::MayNotForget {
            role: row.try_get("role").named(NAME)?,
        }),
    }
}

/// The uid of a name or number. A name is looked for among the owners of applications; who never
/// had one may have an account here. Digits may be a name too, with `+` before them they are none.
async fn uid_of(
    connection: &mut Connection,
    asked: &Forget<'_>,
) -> Result<Option<i64>, StoreError> {
    let number = asked.user.parse::<u32>().ok().map(i64::from);
    // All who were erased are not one person.
    let number_of_one = number.filter(|uid| *uid != ERASED_UID);
    if asked.user.starts_with('+') {
        return Ok(number_of_one);
    }
    let mut uids: Vec<i64> = sqlx::query_scalar(
        "select distinct owner_uid from applications where owner_name = $1 and forgotten_at is null",
    )
    .bind(asked.user)
    .fetch_all(connection)
    .await
    .named(NAME)?;
    uids.extend(asked.known_uid.map(i64::from));
    uids.extend(number_of_one);
    uids.sort_unstable();
    uids.dedup();
    match uids[..] {
        [] => Ok(None),
        [uid] => Ok(Some(uid)),
        _ => Err(StoreError::SeveralUsers {
            name: asked.user.to_owned(),
            uids,
        }),
    }
}

async fn awaited(connection: &mut Connection, uid: i64) -> Result<i64, StoreError> {
    sqlx::query_scalar(
        "select count(*) from runs r
         where (r.uid = $1 or r.epoch_id in (
                   select e.id from epochs e join studies s on s.id = e.study_id
                   join applications a on a.id = s.application_id where a.owner_uid = $1))
           and (r.state = 'in_flight'
                or r.trimmed_at is null and (r.changes > r.judged_changes or r.dirty))",
    )
    .bind(uid)
    .fetch_one(connection)
    .await
    .named(NAME)
}

async fn person(
    connection: &mut Connection,
    uid: i64,
    how: Forgetting,
) -> Result<Person, StoreError> {
    // What others' studies are about is theirs, and has to be called alike.
    let measures = sqlx::query_scalar(
        "with own as (
             select e.id, e.objective from epochs e join studies s on s.id = e.study_id
             join applications a on a.id = s.application_id where a.owner_uid = $1
         ), told as (
             select split_part(objective, ' ', 1) as name from own
             union select jsonb_object_keys(r.measures) from runs r
                   where r.uid = $1 or r.epoch_id in (select id from own)
             union select jsonb_object_keys(j.measures) from judgements j where j.epoch_id in (select id from own)
         )
         select substr(name, 11) from told
         where name ~ '^objective\\.[A-Za-z][A-Za-z0-9_-]*$'
           and not exists (select from epochs e where e.id not in (select id from own)
                           and split_part(e.objective, ' ', 1) = name)
         order by 1",
    )
    .bind(uid)
    .fetch_all(&mut *connection)
    .await
    .named(NAME)?;
    // Drawn by the database, and not made of anything of the user's.
    let (new_uid, new_name) = match how {
        Forgetting::Erase => (ERASED_UID, "erased".to_owned()),
        Forgetting::Pseudonym => sqlx::query_as(
            "select uid, name from (
                 select $1 + ('x' || substr(drawn, 1, 7))::bit(28)::bigint as uid, 'left-' || substr(drawn, 17, 8) as name
                 from (select replace(gen_random_uuid()::text, '-', '') as drawn from generate_series(1, 100)) draws) one
             where not exists (select from applications a where a.owner_uid = one.uid or a.owner_name = one.name)
               and not exists (select from audit l where l.uid = one.uid)
             limit 1",
        )
        .bind(PSEUDONYMS_FROM)
        .fetch_one(connection)
        .await
        .named(NAME)?,
    };
    Ok(Person {
        uid,
        new_uid,
        new_name,
        erase: how == Forgetting::Erase,
        measures,
    })
}

/// The names that say who it was: the user's, and those of applications that nobody else has. What
/// others have called an application may be the user's all the same.
async fn names(
    connection: &mut Connection,
    asked: &str,
    uid: i64,
) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = sqlx::query_scalar(
        "select owner_name as name from applications where owner_uid = $1 and owner_name is not null
         union
         select name from (
             select unnest(array[name, full_name]) as name from applications where owner_uid = $1) own
         where name is not null
           and not exists (select from applications o where o.owner_uid <> $1 and name in (o.name, o.full_name))",
    )
    .bind(uid)
    .fetch_all(connection)
    .await
    .named(NAME)?;
    if asked.parse::<u32>().is_err() {
        names.push(asked.to_owned());
    }
    names.retain(|name| name.len() >= SHORTEST_NAME);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Adds the line of the audit, without which none of its lines can be changed.
async fn sign(
    connection: &mut Connection,
    person: &Person,
    audit: Audit<'_>,
) -> Result<(), StoreError> {
    let how = if person.erase { "erased" } else { "pseudonym" };
    let entry = Entry {
        action: "forget",
        study_id: None,
        order_id: None,
        undoes: None,
        detail: json!({ "how": how, "as": person.new_name }),
    };
    let line = write(&mut *connection, NAME, entry, audit).await?;
    sqlx::query(
        "select set_config('io_autotune.forgets_by', $1::text, true), set_config('io_autotune.forgets_as', $2::text, true)",
    )
    .bind(line.to_string())
    .bind(person.new_uid.to_string())
    .execute(connection)
    .await
    .named(NAME)?;
    Ok(())
}

/// Changes the rows of a table. `None`: it has none of the user's.
async fn change(
    connection: &mut Connection,
    table: &Table,
    person: &Person,
) -> Result<Option<ForgottenRows>, StoreError> {
    let (mut changed, mut removed) = (0, 0);
    for change in table.changes {
        // Safe, because it is made of constants.
        let statement = AssertSqlSafe(change.statement(table.name));
        let done = sqlx::query(statement)
            .bind(person.uid)
            .bind(person.new_uid)
            .bind(&person.new_name)
            .bind(person.erase)
            .bind(&person.measures)
            .execute(&mut *connection)
            .await
            .named(NAME)?;
        match change {
            columns::Change::Set { .. } => changed += done.rows_affected(),
            columns::Change::Delete { .. } => removed += done.rows_affected(),
        }
    }
    Ok((changed + removed > 0).then(|| ForgottenRows {
        table: table.name,
        changed,
        removed,
        columns: table.changed().collect(),
    }))
}

/// The columns in which people write that still have one of the names as a word of its own, in
/// small letters or capitals. Names may be thousands, which are too many for one expression.
async fn named(
    connection: &mut Connection,
    names: &[String],
) -> Result<Vec<(String, u64)>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let patterns: Vec<String> = names
        .iter()
        // In JSON a line's end is a letter.
        .map(|name| format!(r"(^|[^[:alnum:]]|\\[bfnrt]){}([^[:alnum:]]|$)", literal(name)))
        .collect();
    let mut found = Vec::new();
    for table in TABLES {
        for column in table.written {
            let statement = format!(
                "select count(*) from {} t cross join lateral (select lower(t.{column}::text) as text offset 0) w
                 where exists (select from unnest($1::text[], $2::text[]) as n (name, pattern)
                               where case when strpos(w.text, lower(n.name)) > 0 then w.text ~* n.pattern end)",
                table.name
            );
            let rows: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
                .bind(names)
                .bind(&patterns)
                .fetch_one(&mut *connection)
                .await
                .named(NAME)?;
            if rows > 0 {
                found.push((format!("{}.{column}", table.name), number(NAME, rows)?));
            }
        }
    }
    Ok(found)
}

/// A regular expression that is matched by this text alone.
fn literal(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_searched_for_as_it_stands() {
        assert_eq!(literal("a.b_c+1é"), r"a\.b\_c\+1é");
    }

    #[test]
    fn no_column_is_both_kept_and_changed() {
        for table in TABLES {
            for (column, _) in table.keeps {
                assert!(
                    !table.changed().any(|changed| changed == *column),
                    "{}.{column}",
                    table.name
                );
            }
        }
    }

    #[test]
    fn what_stays_has_a_reason_that_is_said_once() {
        let kept = kept_of_the_forgotten();
        let mut reasons: Vec<_> = kept.iter().map(|(why, _)| *why).collect();
        reasons.dedup();
        assert_eq!(reasons.len(), kept.len());
        let columns: Vec<&String> = kept.iter().flat_map(|(_, columns)| columns).collect();
        assert!(columns.contains(&&"runs.elapsed".to_owned()), "{columns:?}");
        assert!(!columns.contains(&&"runs.uid".to_owned()), "{columns:?}");
    }
}
