//! Orders: they steer all studies of a scope, including those that begin later.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use io_autotune_catalogue::canonical_name;
use io_autotune_engine::{Parametrization, Space};
use io_autotune_protocol::{
    Affected, ErrorBody, ORDERS_PAGE, OrderAnswer, OrderKind, OrderRequest, OrderScope,
    OrderSummary,
};
use io_autotune_store::{Directive, OrderRow, Scope, StudyFilter, StudyRow, Values, fitting};
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::deciding::{Asker, is_own, told};
use super::naming;
use super::reason::{Concerns, reason};
use super::studies::{key_of, later, one_row, renew};
use super::{ApiError, Service};
use crate::access::Caller;
use crate::reader::Reader;

/// The most studies that an answer lists; the snapshots and findings of these are renewed at once,
/// those of others within seconds.
const LISTED: usize = 1000;

/// The page of the orders in force that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct OrdersQuery {
    /// Only the orders after this one, the last of the page before.
    after: Option<i64>,
    /// The number of orders (100 unless given, and at the most).
    limit: Option<u32>,
}

/// A page of the orders in force, oldest first: those about studies that the caller may see, or all
/// for those who may read them.
#[utoipa::path(get, path = "/v1/orders", params(OrdersQuery), responses((status = 200, body = Vec<OrderSummary>)))]
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Query(OrdersQuery { after, limit })): Checked<Query<OrdersQuery>>,
) -> Result<Json<Vec<OrderSummary>>, ApiError> {
    let seen = service.access.seen(asker.reader);
    let limit = limit.unwrap_or(ORDERS_PAGE).min(ORDERS_PAGE);
    let orders = service
        .store
        .orders(
            seen.owner_uid,
            seen.coordinated.as_ref(),
            after.unwrap_or_default(),
            i64::from(limit),
        )
        .await?;
    // The owner of the study of an order for one study is not known here: it is answered with the
    // study.
    let shown = orders.into_iter().map(|order| OrderSummary {
        may_end: asker.reader == Reader::Admin || is_own(&order, asker.caller),
        ..told(order)
    });
    Ok(Json(shown.collect()))
}

/// Gives an order. An order of the same kind and scope ends.
#[utoipa::path(post, path = "/v1/orders", request_body = OrderRequest, responses(
    (status = 200, body = OrderAnswer), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn order(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Json(body)): Checked<Json<OrderRequest>>,
) -> Result<Json<OrderAnswer>, ApiError> {
    later(body.until, service.clock.now())?;
    let scope = scope(&service, asker.reader, body.scope).await?;
    let directive = match (body.kind, body.values) {
        (OrderKind::Pin, Some(values)) if scope.study_id.is_none() => Directive::Pin(values),
        (OrderKind::Pin, Some(_)) => {
            return Err(ApiError::bad_request(
                "a study's own pin is /v1/studies/{study_id}/pin".into(),
            ));
        }
        (OrderKind::Pin, None) => {
            return Err(ApiError::bad_request(
                "name the values to pin; {} is the default".into(),
            ));
        }
        (OrderKind::Freeze, None) => Directive::Freeze,
        (OrderKind::Off, None) => Directive::Off,
        (OrderKind::Freeze | OrderKind::Off, Some(_)) => {
            return Err(ApiError::bad_request(
                "only a pin and a site's default have values".into(),
            ));
        }
        (OrderKind::SiteDefault, values) => {
            is_of_the_site(asker.reader, &scope)?;
            Directive::SiteDefault(values.filter(|values| !values.is_empty()).ok_or_else(|| {
                ApiError::bad_request("name the values of the site's default".into())
            })?)
        }
    };
    // Before anything else, so that nobody learns what is ordered for a study that they may not
    // see.
    let found = Found::of(&service, &scope).await?;
    let why = reason(
        &body.why,
        Concerns::of(found.owner_of(&scope), asker.caller),
    )?;
    let scope = match service
        .store
        .order_in_force(&scope, directive.kind())
        .await?
    {
        Some(replaced) => {
            may_end(asker.reader, asker.caller, &Given::of(&replaced))?;
            replaced.scope
        }
        None => scope,
    };
    let mut studies = Vec::with_capacity(found.rows.len());
    let mut unfit = None;
    for row in &found.rows {
        let then = match &directive {
            Directive::Off => "off".to_owned(),
            _ if row.ordered.off => now(row),
            Directive::Freeze => row.pinned().map_or("frozen".into(), |_| now(row)),
            Directive::SiteDefault(values) => match fitting(&row.space, values) {
                Some(setting) => beginning_with(row, &setting),
                None => {
                    unfit = unfit.or(misfit(&row.space, values));
                    now(row)
                }
            },
            Directive::Pin(_) if row.pin.is_some() => now(row),
            Directive::Pin(values) => match fitting(&row.space, values) {
                Some(pin) => pinned_to(row, &pin),
                None => {
                    unfit = unfit.or(misfit(&row.space, values));
                    now(row)
                }
            },
        };
        studies.push(affected(&service, row, then));
    }
    // Values that fit no study at all are a mistake.
    let changes = studies.iter().any(|one| one.now != one.then);
    if let Some(misfit) = unfit.filter(|_| !changes) {
        return Err(ApiError::bad_request(misfit));
    }
    let given = if body.dry_run {
        None
    } else {
        let audit = asker.audit(&service, why);
        let ordered = service.store.order(&scope, &directive, body.until, audit);
        let given = ordered.await?;
        tracing::info!(
            given.order_id,
            uid = asker.caller.uid,
            kind = directive.kind(),
            ?scope,
            "ordered"
        );
        found.renew(&service).await;
        Some(given)
    };
    Ok(Json(OrderAnswer {
        order_id: given.map(|given| given.order_id),
        line: given.map(|given| given.line),
        studies,
        more: found.more,
    }))
}

/// Ends the order of this kind and scope.
#[utoipa::path(post, path = "/v1/orders/end", request_body = OrderRequest, responses(
    (status = 200, body = OrderAnswer), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn end(
    State(service): State<Arc<Service>>,
    asker: Asker,
    Checked(Json(body)): Checked<Json<OrderRequest>>,
) -> Result<Json<OrderAnswer>, ApiError> {
    if body.values.is_some() || body.until.is_some() {
        return Err(ApiError::bad_request(
            "what ends an order has neither values nor a date".into(),
        ));
    }
    let scope = scope(&service, asker.reader, body.scope).await?;
    let kind = match body.kind {
        OrderKind::Pin => "pin",
        OrderKind::Freeze => "freeze",
        OrderKind::Off => "off",
        OrderKind::SiteDefault => {
            is_of_the_site(asker.reader, &scope)?;
            "site-default"
        }
    };
    let found = Found::of(&service, &scope).await?;
    let why = reason(
        &body.why,
        Concerns::of(found.owner_of(&scope), asker.caller),
    )?;
    let ended = service.store.order_in_force(&scope, kind).await?;
    let ended = ended.ok_or_else(|| {
        ApiError::conflict(format!(
            "no {kind} of this scope is in force; `io-autotune audit orders` lists what is"
        ))
    })?;
    may_end(asker.reader, asker.caller, &Given::of(&ended))?;
    let scope = &ended.scope;
    let (ended, after) = if body.dry_run {
        (None, None)
    } else {
        let audit = asker.audit(&service, why);
        let ended = service.store.end_order(scope, kind, audit).await?;
        tracing::info!(
            order_id = ended.map(|ended| ended.order_id),
            uid = asker.caller.uid,
            kind,
            ?scope,
            "order ended"
        );
        found.renew(&service).await;
        // The order is ended, though a study of it be gone by now.
        (ended, Found::of(&service, scope).await.ok())
    };
    let then = |row: &StudyRow| match &after {
        None => without(row, kind),
        Some(after) => {
            let mut after = after.rows.iter();
            let same = after.find(|after| after.study_id == row.study_id);
            now(same.unwrap_or(row))
        }
    };
    let studies = found.rows.iter();
    let studies = studies
        .map(|row| affected(&service, row, then(row)))
        .collect();
    Ok(Json(OrderAnswer {
        order_id: ended.map(|ended| ended.order_id),
        line: ended.map(|ended| ended.line),
        studies,
        more: found.more,
    }))
}

/// An order as far as its ending is concerned: who gave it, why, and for which studies.
pub(super) struct Given<'a> {
    pub(super) uid: u32,
    pub(super) user: Option<&'a str>,
    pub(super) why: &'a str,
    pub(super) owner_uid: Option<u32>,
    pub(super) study_id: Option<i64>,
}

impl<'a> Given<'a> {
    fn of(order: &'a OrderRow) -> Self {
        Self {
            uid: order.uid,
            user: order.user.as_deref(),
            why: &order.why,
            owner_uid: order.scope.owner_uid,
            study_id: order.scope.study_id,
        }
    }
}

/// Refuses the ending of an order by a caller who may not. An admin ends every order. Others end
/// the orders that they or the studies' owner gave, and those about one study; other orders of an
/// admin stay in force.
pub(super) fn may_end(reader: Reader, caller: Caller, order: &Given<'_>) -> Result<(), ApiError> {
    let by = Some(order.uid);
    let is_theirs = by == Some(caller.uid) || by == order.owner_uid;
    if reader == Reader::Admin || is_theirs || order.study_id.is_some() {
        return Ok(());
    }
    let who = match order.user {
        Some(user) => user.to_owned(),
        None if order.uid == 0 => "root".to_owned(),
        None => format!("uid {}", order.uid),
    };
    Err(ApiError::forbidden(&format!(
        "{who} ordered that ({}): they or an admin take it back",
        order.why
    )))
}

/// The studies of a scope.
struct Found {
    rows: Vec<StudyRow>,
    more: bool,
}

impl Found {
    async fn of(service: &Service, scope: &Scope) -> Result<Self, ApiError> {
        let filter = StudyFilter {
            owner_uid: scope.owner_uid,
            coordinated: None,
            account: None,
            cluster: scope.cluster.clone(),
            study_id: scope.study_id,
            application: scope.application.clone(),
            accelerator: scope.accelerator.clone(),
            after: None,
            limit: Some(LISTED as i64 + 1),
        };
        let mut rows = service.store.studies(&filter).await?;
        if let (Some(study_id), true) = (scope.study_id, rows.is_empty()) {
            return Err(ApiError::not_found(&format!("study {study_id}")));
        }
        let more = rows.len() > LISTED;
        rows.truncate(LISTED);
        Ok(Self { rows, more })
    }

    /// The owner of the studies of a scope; `None` if it is for everyone's.
    fn owner_of(&self, scope: &Scope) -> Option<u32> {
        let of_one = scope.study_id.and_then(|_| self.rows.first());
        scope.owner_uid.or(of_one.map(|row| row.owner_uid))
    }

    async fn renew(&self, service: &Service) {
        for row in &self.rows {
            renew(service, row.study_id, &key_of(row.clone())).await;
        }
    }
}

/// The scope that is meant. A user's is restricted to their own studies. A coordinator may name a
/// study of another user: the scope is then restricted to that owner, as if the owner had asked.
async fn scope(service: &Service, reader: Reader, asked: OrderScope) -> Result<Scope, ApiError> {
    let owner_uid = match (reader, asked.study) {
        (Reader::Coordinator(_), Some(study_id)) => {
            let owner_uid = one_row(service, reader, study_id).await?.owner_uid;
            asked
                .uid
                .is_none_or(|uid| uid == owner_uid)
                .then_some(Some(owner_uid))
        }
        _ => match (reader.owner(), asked.uid) {
            (Some(owner), Some(uid)) if owner != uid => None,
            (owner, uid) => Some(owner.or(uid)),
        },
    };
    let owner_uid = owner_uid.ok_or_else(|| {
        ApiError::forbidden("only admins steer the studies of others: leave the user out")
    })?;
    let application = match asked.application {
        Some(application) => Some(naming::meant(&service.store, owner_uid, application).await?),
        None => None,
    };
    Ok(Scope {
        study_id: asked.study,
        owner_uid,
        application,
        accelerator: asked.accelerator.as_deref().map(canonical_name),
        cluster: service.wanted_cluster(asked.cluster)?,
    })
}

fn affected(service: &Service, row: &StudyRow, then: String) -> Affected {
    Affected {
        study_id: row.study_id,
        cluster: service.shown_cluster(&row.cluster),
        application: row.application.clone(),
        uid: row.owner_uid,
        user: row.owner_name.clone(),
        accelerator: row.accelerator.clone(),
        now: now(row),
        then,
    }
}

/// A sentence's part about what a study's runs get.
fn now(row: &StudyRow) -> String {
    match (row.ordered.word(row.pinned().is_some()), row.pinned()) {
        (Some("pinned"), Some(pin)) => pinned_to(row, pin),
        (Some(ordered), _) => ordered.to_owned(),
        (None, _) => match &row.ordered.site_default {
            Some(setting) => beginning_with(row, setting),
            None => "tuned".to_owned(),
        },
    }
}

/// The same with a site's default, which is what a study explores first.
fn beginning_with(row: &StudyRow, setting: &Parametrization) -> String {
    if row.ordered.word(row.pinned().is_some()).is_some() {
        return now(row);
    }
    let overview = row
        .assessment
        .as_ref()
        .and_then(|one| one.overview.as_ref());
    let explored = overview.map_or(0, |one| one.standing.progress.explored);
    match row.begins_with(setting).filter(|_| explored == 0) {
        None => "tuned".to_owned(),
        Some(first) => format!("tuned, beginning with {}", row.space.differences(&first)),
    }
}

/// Refuses a site's default of anybody but an admin, and one of anything but an accelerator.
fn is_of_the_site(reader: Reader, scope: &Scope) -> Result<(), ApiError> {
    if reader != Reader::Admin {
        return Err(ApiError::forbidden(
            "only admins make a setting the site's default",
        ));
    }
    let narrowed = (&scope.study_id, &scope.owner_uid, &scope.application);
    match (narrowed, &scope.accelerator) {
        ((None, None, None), Some(_)) => Ok(()),
        _ => Err(ApiError::bad_request(
            "a site's default is of an accelerator, for everybody's studies: name it, and no study, \
             user or application"
                .into(),
        )),
    }
}

fn pinned_to(row: &StudyRow, pin: &Parametrization) -> String {
    let differs = row.space.differences(pin);
    match differs.0.is_empty() {
        true => "pinned to the default".to_owned(),
        false => format!("pinned to {differs}"),
    }
}

/// The same once the order of this kind has ended; other orders of the kind may be in force.
fn without(row: &StudyRow, kind: &str) -> String {
    let others = row.ordered.steering > 1;
    match (row.ordered.word(row.pinned().is_some()), kind) {
        (Some("off"), "off") | (Some("frozen"), "freeze") | (Some("pinned"), "pin") if !others => {
            "tuned".to_owned()
        }
        (Some("off"), "off") | (Some("frozen"), "freeze") | (Some("pinned"), "pin") => {
            "what its other orders say".to_owned()
        }
        (None, "site-default") => "tuned".to_owned(),
        _ => now(row),
    }
}

/// Why values do not fit a study's space.
fn misfit(space: &Space, values: &Values) -> Option<String> {
    for (name, text) in values {
        if let Err(error) = space.parse_value(name, text) {
            return Some(error.to_string());
        }
    }
    let values = values.iter();
    let values =
        values.filter_map(|(name, text)| Some((name.clone(), space.parse_value(name, text).ok()?)));
    let completed = space.complete(&values.collect());
    completed.err().map(|error| error.to_string())
}
