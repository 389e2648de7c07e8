//! Orders: pins and freezes of many studies, tuning that is turned off, and the site's default of an
//! accelerator. An order is a rule for a scope, and so applies to studies that begin later too.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::{ParameterEffects, Parametrization, Space};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::accounts::{Coordinated, Visible};
use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::epoch_state::EpochOpening;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::{number, timestamp};

/// Values as text, by parameter.
pub type Values = BTreeMap<String, String>;

/// The studies that an order applies to. `None`: any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The study.
    pub study_id: Option<i64>,
    /// The owner.
    pub owner_uid: Option<u32>,
    /// The application's name.
    pub application: Option<String>,
    /// The accelerator.
    pub accelerator: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
}

/// The content of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Every run gets these values; other parameters keep the default.
    Pin(Values),
    /// Every run gets the best known parametrization; nothing is explored.
    Freeze,
    /// Runs are measured, and nothing is applied.
    Off,
    /// The first exploring run of a study gets these values. The scope is an accelerator.
    SiteDefault(Values),
}

impl Directive {
    /// The word in the table.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Pin(_) => "pin",
            Self::Freeze => "freeze",
            Self::Off => "off",
            Self::SiteDefault(_) => "site-default",
        }
    }

    fn values(&self) -> Option<&Values> {
        match self {
            Self::Pin(values) | Self::SiteDefault(values) => Some(values),
            Self::Freeze | Self::Off => None,
        }
    }

    fn of(name: &'static str, kind: &str, values: Option<Values>) -> Result<Self, StoreError> {
        match (kind, values) {
            ("pin", Some(values)) => Ok(Self::Pin(values)),
            ("freeze", None) => Ok(Self::Freeze),
            ("off", None) => Ok(Self::Off),
            ("site-default", Some(values)) => Ok(Self::SiteDefault(values)),
            _ => Err(StoreError::invariant(
                name,
                format!("an order of kind {kind:?}"),
            )),
        }
    }
}

/// An order that was given or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderChange {
    /// The order.
    pub order_id: i64,
    /// The number of the line in the audit.
    pub line: i64,
}

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderRow {
    /// The order's number.
    pub order_id: i64,
    /// The content.
    pub directive: Directive,
    /// The studies.
    pub scope: Scope,
    /// The uid of the user who gave it.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// The reason.
    pub why: String,
    /// The time when it was given.
    pub at: Timestamp,
    /// The order is in force before this time; `None`: until it is ended.
    pub until: Option<Timestamp>,
    /// True if it is no longer in force.
    pub is_over: bool,
}

/// A site's default as an epoch with this space begins with it: parameters without effect keep
/// their default. `None` if nothing of it is left then, or if the epoch knows something from its
/// parent or from another study.
pub(crate) fn begins_with(
    site_default: &Parametrization,
    opened: &EpochOpening,
    space: &Space,
    effects: &ParameterEffects,
) -> Option<Parametrization> {
    if !opened.takes_nothing() {
        return None;
    }
    let default = space.default();
    let mut setting = site_default.clone();
    for (one, _) in effects.ineffective() {
        if let Some(value) = default.0.get(&one.parameter) {
            setting.0.insert(one.parameter, value.clone());
        }
    }
    (setting != default).then_some(setting)
}

/// The orders in force for a study at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ordered {
    /// The orders in force, by number, the most specific first.
    pub ids: Vec<i64>,
    /// True if nothing is explored.
    pub frozen: bool,
    /// True if nothing is applied.
    pub off: bool,
    /// The order that decides what runs get; `None`: the search decides, or the study's own pin.
    pub decides: Option<i64>,
    /// True if `StudyState::pin` is the study's own.
    pub(crate) own_pin: bool,
    pub(crate) pin: Option<Parametrization>,
    /// The site's default of the study's accelerator, if its space has it.
    pub site_default: Option<Parametrization>,
    /// The number of the orders in force that steer every run, which a site's default does not.
    pub steering: usize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct InForce {
    id: i64,
    kind: String,
    given: Option<Values>,
}

impl Ordered {
    /// Evaluates the orders in force, the most specific first. A pin whose values do not fit the
    /// space is meant for studies of another accelerator.
    pub(crate) fn of(orders: &[InForce], space: &Space, own_pin: bool) -> Self {
        let first = |kind| orders.iter().find(|order| order.kind == kind);
        let (off, freeze) = (first("off"), first("freeze"));
        let values_of = |kind| {
            let mut those = orders.iter().filter(|order| order.kind == kind);
            those.find_map(|order| Some((order.id, fitting(space, order.given.as_ref()?)?)))
        };
        let (pinned_by, pin) = values_of("pin").unzip();
        let is_steering = |order: &&InForce| order.kind != "site-default";
        let decides = match (off, own_pin) {
            (Some(off), _) => Some(off.id),
            (None, true) => None,
            (None, false) => pinned_by.or(freeze.map(|order| order.id)),
        };
        Self {
            ids: orders.iter().map(|order| order.id).collect(),
            frozen: freeze.is_some(),
            off: off.is_some(),
            decides,
            own_pin,
            pin,
            site_default: values_of("site-default").map(|(_, setting)| setting),
            steering: orders.iter().filter(is_steering).count(),
        }
    }

    /// The effect of orders and pins on every run, as one word: `off`, `pinned` or `frozen`; `None`
    /// if there is none. `is_pinned`: the study has a pin of its own or by an order.
    #[must_use]
    pub fn word(&self, is_pinned: bool) -> Option<&'static str> {
        match self {
            Self { off: true, .. } => Some("off"),
            _ if is_pinned => Some("pinned"),
            Self { frozen, .. } => frozen.then_some("frozen"),
        }
    }
}

/// The parametrization with these values in a space; `None` if they do not fit it.
#[must_use]
pub fn fitting(space: &Space, values: &Values) -> Option<Parametrization> {
    let values = values.iter();
    let parsed =
        values.map(|(name, text)| Some((name.clone(), space.parse_value(name, text).ok()?)));
    space.complete(&parsed.collect::<Option<_>>()?).ok()
}

impl Store {
    /// Gives an order. An order of the same kind and scope ends.
    pub async fn order(
        &self,
        scope: &Scope,
        directive: &Directive,
        until: Option<Timestamp>,
        audit: Audit<'_>,
    ) -> Result<OrderChange, StoreError> {
        const NAME: &str = "order";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_orders(&mut transaction, NAME).await?;
        let replaced = end(&mut transaction, NAME, scope, directive.kind()).await?;
        if replaced.is_none() {
            has_room(&mut transaction, NAME, audit).await?;
        }
        let order_id = insert(&mut transaction, NAME, scope, directive, until, audit).await?;
        let entry = Entry {
            action: directive.kind(),
            study_id: scope.study_id,
            order_id: Some(order_id),
            undoes: None,
            detail: json!({
                "scope": scope, "pinned": directive.values(), "until": until, "replaced": replaced,
            }),
        };
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(OrderChange { order_id, line })
    }

    /// Ends the order of this kind and scope. `None`: there is none.
    pub async fn end_order(
        &self,
        scope: &Scope,
        kind: &'static str,
        audit: Audit<'_>,
    ) -> Result<Option<OrderChange>, StoreError> {
        const NAME: &str = "end_order";
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        lock_orders(&mut transaction, NAME).await?;
        let Some(order_id) = end(&mut transaction, NAME, scope, kind).await? else {
            return Ok(None);
        };
        let entry = Entry {
            action: match kind {
                "pin" => "unpin",
                "freeze" => "resume",
                "site-default" => "end-site-default",
                _ => "on",
            },
            study_id: scope.study_id,
            order_id: Some(order_id),
            undoes: None,
            detail: json!({ "scope": scope, "ended": order_id }),
        };
        let line = write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(Some(OrderChange { order_id, line }))
    }

    /// An order, in force or over. `None`: there is none with this number.
    pub async fn order_of(&self, order_id: i64) -> Result<Option<OrderRow>, StoreError> {
        let everyone = Visible::of(None, None);
        let which = Which::Number(order_id);
        let mut found = self.listed("order_of", &everyone, which).await?;
        Ok(found.pop())
    }

    /// At most `limit` of the orders in force with a number above `after`, oldest first. For an
    /// owner: those for all or some of their studies, those for everyone among them, and those for
    /// a single visible study of another user.
    pub async fn orders(
        &self,
        owner_uid: Option<u32>,
        coordinated: Option<&Coordinated>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<OrderRow>, StoreError> {
        let visible = Visible::of(owner_uid, coordinated);
        let which = Which::InForce { after, limit };
        self.listed("orders", &visible, which).await
    }

    /// The order of a kind that is in force for a scope. For a single study it is the same order,
    /// whether its owner gave it or an admin did.
    pub async fn order_in_force(
        &self,
        scope: &Scope,
        kind: &str,
    ) -> Result<Option<OrderRow>, StoreError> {
        const NAME: &str = "order_in_force";
        let order_id = sqlx::query_scalar!(
            "select id from orders
             where ended_at is null and (until is null or until > now())
               and kind = $1 and coalesce(study_id, 0) = coalesce($2::bigint, 0)
               and ($2 is not null
                    or (coalesce(owner_uid, -1) = coalesce($3::bigint, -1)
                        and coalesce(application, '') = coalesce($4::text, '')
                        and coalesce(accelerator, '') = coalesce($5::text, '')
                        and coalesce(cluster, '') = coalesce($6::text, '')))
             order by id limit 1",
            kind,
            scope.study_id,
            scope.owner_uid.map(i64::from),
            scope.application,
            scope.accelerator,
            scope.cluster
        )
        .fetch_optional(&self.pool)
        .await
        .named(NAME)?;
        match order_id {
            Some(order_id) => self.order_of(order_id).await,
            None => Ok(None),
        }
    }

    /// Ends the orders whose time is over, so that queries for orders in force need not look at
    /// them.
    pub async fn end_overdue_orders(&self) -> Result<u64, StoreError> {
        let ended = sqlx::query!(
            "update orders set ended_at = until where ended_at is null and until <= now()"
        )
        .execute(&self.pool)
        .await
        .named("end_overdue_orders")?;
        Ok(ended.rows_affected())
    }

    /// The visible orders in force, or a single order in force or over.
    async fn listed(
        &self,
        name: &'static str,
        visible: &Visible,
        which: Which,
    ) -> Result<Vec<OrderRow>, StoreError> {
        let (order_id, after, limit) = match which {
            Which::Number(order_id) => (Some(order_id), 0, 1),
            Which::InForce { after, limit } => (None, after, limit),
        };
        let rows = sqlx::query!(
            r#"select o.id, o.kind, o.study_id, o.owner_uid, o.application, o.accelerator, o.cluster,
                      o.pinned as "pinned: Json<Values>", o.uid, o.why,
                      (select n.owner_name from applications n where n.owner_uid = o.uid
                       and n.owner_name is not null order by n.id desc limit 1) as "user?",
                      (extract(epoch from o.ordered_at) * 1000000)::bigint as "at!",
                      (extract(epoch from o.until) * 1000000)::bigint as until,
                      o.ended_at is not null or coalesce(o.until <= now(), false) as "is_over!"
               from orders o
               left join studies s on s.id = o.study_id left join applications a on a.id = s.application_id
               left join study_accounts c on c.study_id = s.id
               where (o.id = $6 or ($6 is null and o.id > $7 and o.ended_at is null
                                    and (o.until is null or o.until > now())))
                 and ($2::bigint[] is null or coalesce(o.owner_uid, a.owner_uid, $1) = $1
                      or (c.cluster, a.owner_uid, c.account)
                         in (select * from unnest($3::text[], $4::bigint[], $5::text[])))
               order by o.id limit $8"#,
            visible.own,
            visible.owners.as_deref(),
            &visible.clusters,
            &visible.members,
            &visible.accounts,
            order_id,
            after,
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(name)?;
        rows.into_iter()
            .map(|row| {
                Ok(OrderRow {
                    order_id: row.id,
                    directive: Directive::of(name, &row.kind, row.pinned.map(|pinned| pinned.0))?,
                    scope: Scope {
                        study_id: row.study_id,
                        owner_uid: row.owner_uid.map(|uid| number(name, uid)).transpose()?,
                        application: row.application,
                        accelerator: row.accelerator,
                        cluster: row.cluster,
                    },
                    uid: number(name, row.uid)?,
                    user: row.user,
                    why: row.why,
                    at: timestamp(name, row.at)?,
                    until: row.until.map(|at| timestamp(name, at)).transpose()?,
                    is_over: row.is_over,
                })
            })
            .collect()
    }
}

/// The orders to list.
#[derive(Clone, Copy)]
enum Which {
    Number(i64),
    InForce { after: i64, limit: i64 },
}

/// Serialises changes of orders. They can be read at the same time.
pub(crate) async fn lock_orders(
    connection: &mut Connection,
    name: &'static str,
) -> Result<(), StoreError> {
    sqlx::query("lock table orders in share row exclusive mode")
        .execute(connection)
        .await
        .named(name)?;
    Ok(())
}

/// Returns [`StoreError::TooManyOrders`] if a user may give no further order. The caller must hold
/// the [lock](lock_orders), so that nobody adds one at the same time.
pub(crate) async fn has_room(
    connection: &mut Connection,
    name: &'static str,
    audit: Audit<'_>,
) -> Result<(), StoreError> {
    let Some(most) = audit.most.orders else {
        return Ok(());
    };
    let orders = sqlx::query_scalar!(
        r#"select count(*) as "orders!" from orders
               where uid = $1 and ended_at is null and (until is null or until > now())"#,
        i64::from(audit.uid)
    )
    .fetch_one(connection)
    .await
    .named(name)?;
    let orders: u64 = number(name, orders)?;
    if orders < most {
        return Ok(());
    }
    Err(StoreError::TooManyOrders {
        transaction: name,
        uid: audit.uid,
        most,
    })
}

async fn end(
    connection: &mut Connection,
    name: &'static str,
    scope: &Scope,
    kind: &str,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!(
        "update orders set ended_at = now()
         where ended_at is null and kind = $1 and coalesce(study_id, 0) = coalesce($2::bigint, 0)
           and coalesce(owner_uid, -1) = coalesce($3::bigint, -1)
           and coalesce(application, '') = coalesce($4::text, '')
           and coalesce(accelerator, '') = coalesce($5::text, '')
           and coalesce(cluster, '') = coalesce($6::text, '')
         returning id",
        kind,
        scope.study_id,
        scope.owner_uid.map(i64::from),
        scope.application,
        scope.accelerator,
        scope.cluster
    )
    .fetch_optional(connection)
    .await
    .named(name)
}

async fn insert(
    connection: &mut Connection,
    name: &'static str,
    scope: &Scope,
    directive: &Directive,
    until: Option<Timestamp>,
    audit: Audit<'_>,
) -> Result<i64, StoreError> {
    sqlx::query_scalar!(
        "insert into orders (kind, study_id, owner_uid, application, accelerator, cluster, pinned, uid, why, until)
         values ($1, $2, $3, $4, $5, $10, $6, $7, $8, to_timestamp($9::bigint / 1e6)) returning id",
        directive.kind(),
        scope.study_id,
        scope.owner_uid.map(i64::from),
        scope.application,
        scope.accelerator,
        directive.values().map(Json) as _,
        i64::from(audit.uid),
        audit.why,
        until.map(Timestamp::as_microsecond),
        scope.cluster
    )
    .fetch_one(connection)
    .await
    .named(name)
}

/// Takes an order back: it ends, and the one that it replaced is in force again. `false`: it has
/// ended already.
pub(crate) async fn take_back(
    connection: &mut Connection,
    name: &'static str,
    order_id: i64,
    replaced: Option<i64>,
) -> Result<bool, StoreError> {
    let ended = sqlx::query!(
        "update orders set ended_at = now()
         where id = $1 and ended_at is null and (until is null or until > now())",
        order_id
    )
    .execute(&mut *connection)
    .await
    .named(name)?;
    if ended.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(replaced) = replaced {
        put_back(connection, name, replaced).await?;
    }
    Ok(true)
}

/// Puts an order that has ended in force again. `false`: another one with its kind and scope is in
/// force.
pub(crate) async fn put_back(
    connection: &mut Connection,
    name: &'static str,
    order_id: i64,
) -> Result<bool, StoreError> {
    let revived = sqlx::query!(
        "update orders o set ended_at = null where o.id = $1 and not exists
             (select from orders other where other.ended_at is null and other.kind = o.kind
              and coalesce(other.study_id, 0) = coalesce(o.study_id, 0)
              and coalesce(other.owner_uid, -1) = coalesce(o.owner_uid, -1)
              and coalesce(other.application, '') = coalesce(o.application, '')
              and coalesce(other.accelerator, '') = coalesce(o.accelerator, '')
              and coalesce(other.cluster, '') = coalesce(o.cluster, ''))",
        order_id
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(revived.rows_affected() == 1)
}

/// The number that an audit line's detail has under this name.
pub(crate) fn id_in(detail: &Value, name: &str) -> Option<i64> {
    detail.get(name).and_then(Value::as_i64)
}

#[cfg(test)]
mod tests {
    use io_autotune_model::ObservedValue;

    use super::*;

    fn opening(takes: &str) -> EpochOpening {
        EpochOpening {
            at: Timestamp::UNIX_EPOCH,
            why: String::new(),
            takes: takes.to_owned(),
            drift: None,
        }
    }

    #[test]
    fn a_study_begins_with_what_is_left_of_a_sites_default() {
        let space: Space = serde_json::from_value(json!([
            { "name": "a", "kind": "integer", "min": 1, "max": 8, "default": 1 },
            { "name": "b", "kind": "integer", "min": 1, "max": 8, "default": 1 },
        ]))
        .unwrap();
        let setting = |a: &str, b: &str| {
            let values = [("a", a), ("b", b)].map(|(name, value)| (name.into(), value.into()));
            fitting(&space, &Values::from(values)).unwrap()
        };
        let mut effects = ParameterEffects::default();
        let begins = |given: &Parametrization, takes, effects: &ParameterEffects| {
            begins_with(given, &opening(takes), &space, effects)
        };
        let both = setting("4", "8");
        assert_eq!(begins(&both, "nothing", &effects), Some(both.clone()));
        assert_eq!(begins(&both, "ranks", &effects), None);
        assert_eq!(begins(&setting("1", "1"), "nothing", &effects), None);
        let overridden = ObservedValue {
            parameter: "b".into(),
            name: "b".into(),
            given: Some("8".into()),
            in_force: "1".into(),
            as_given: false,
        };
        for _ in 0..2 {
            effects.record(std::slice::from_ref(&overridden));
        }
        assert_eq!(begins(&both, "nothing", &effects), Some(setting("4", "1")));
        assert_eq!(begins(&setting("1", "8"), "nothing", &effects), None);
    }
}
