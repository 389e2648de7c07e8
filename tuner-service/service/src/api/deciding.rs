//! The orders and pins that decide what a study's runs get, in the place of the search.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use io_autotune_engine::{Reason, Space};
use io_autotune_model::{AuditLine, Pin};
use io_autotune_protocol::{OrderKind, OrderScope, OrderSummary};
use io_autotune_store::{AuditFilter, Directive, OrderRow, RunRow, StudyFilter, StudyRow};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{ApiError, Service};
use crate::access::Caller;
use crate::reader::Reader;

/// The number of the newest lines of the audit among which a run's pin is looked for.
const LINES: i64 = 500;

/// Returns true if a user has given the order for their own studies.
pub(super) fn is_own(order: &OrderRow, caller: Caller) -> bool {
    order.uid == caller.uid && order.scope.owner_uid == Some(caller.uid)
}

/// An order as it is answered, without leave for anybody to end it.
pub(super) fn told(order: OrderRow) -> OrderSummary {
    let (kind, values) = match order.directive {
        Directive::Pin(values) => (OrderKind::Pin, Some(values)),
        Directive::Freeze => (OrderKind::Freeze, None),
        Directive::Off => (OrderKind::Off, None),
        Directive::SiteDefault(values) => (OrderKind::SiteDefault, Some(values)),
    };
    OrderSummary {
        order_id: Some(order.order_id),
        kind,
        scope: OrderScope {
            study: order.scope.study_id,
            uid: order.scope.owner_uid,
            cluster: order.scope.cluster,
            application: order.scope.application,
            accelerator: order.scope.accelerator,
        },
        values,
        uid: order.uid,
        user: order.user,
        why: order.why,
        at: order.at,
        until: order.until,
        is_over: order.is_over,
        may_end: false,
    }
}

/// A study's own pin as it is answered.
fn told_pin(study_id: i64, space: &Space, pin: Pin) -> OrderSummary {
    let values = space.differences(&pin.parametrization).0;
    let values = values
        .into_iter()
        .map(|(name, value)| (name, value.to_string()));
    OrderSummary {
        order_id: None,
        kind: OrderKind::Pin,
        scope: OrderScope {
            study: Some(study_id),
            ..OrderScope::default()
        },
        values: Some(values.collect()),
        uid: pin.uid,
        user: pin.user,
        why: pin.why,
        at: pin.at,
        until: pin.until,
        is_over: false,
        may_end: false,
    }
}

/// The sender of a request about studies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) reader: Reader,
    pub(crate) caller: Caller,
}

impl Asker {
    /// The answer about an order, for a study of this owner.
    fn told(self, order: OrderRow, owner_uid: u32) -> OrderSummary {
        let changes = self.reader.changes(self.caller.uid, owner_uid);
        let is_open = order.scope.study_id.is_some() || is_own(&order, self.caller);
        OrderSummary {
            may_end: self.reader == Reader::Admin || (changes && is_open),
            ..told(order)
        }
    }
}

/// The orders and pins by which the runs of studies get something other than the search's choice
/// now. An order that decides for many studies is read once.
#[derive(Default)]
pub(crate) struct Deciding(BTreeMap<i64, Option<OrderRow>>);

impl Deciding {
    /// The order or the pin that decides for a study.
    pub(crate) async fn of(
        &mut self,
        service: &Service,
        asker: Asker,
        row: &StudyRow,
    ) -> Result<Option<OrderSummary>, ApiError> {
        if let Some(order_id) = row.ordered.decides {
            let order = match self.0.entry(order_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(service.store.order_of(order_id).await?),
            };
            return Ok(order.clone().map(|order| asker.told(order, row.owner_uid)));
        }
        Ok(row.pin.clone().map(|pin| OrderSummary {
            may_end: asker.reader.changes(asker.caller.uid, row.owner_uid),
            ..told_pin(row.study_id, &row.space, pin)
        }))
    }
}

/// The order or the pin by which a run got something other than the search's choice; `None` if
/// there was none, if it is not known, or if the reader may not learn it.
pub(super) async fn decided(
    service: &Service,
    asker: Asker,
    run: &RunRow,
) -> Result<Option<OrderSummary>, ApiError> {
    let reason = run.suggestion.get("reason").map(Reason::deserialize);
    let is_ordered = matches!(reason, Some(Ok(reason)) if reason.is_ordered());
    if !is_ordered || !asker.reader.learns_inputs(run) {
        return Ok(None);
    }
    if let Some(order_id) = run.suggestion.get("order").and_then(Value::as_i64) {
        let order = service.store.order_of(order_id).await?;
        return Ok(order.map(|order| asker.told(order, run.uid)));
    }
    let filter = AuditFilter {
        study_id: Some(run.study_id),
        limit: LINES,
        ..AuditFilter::default()
    };
    let lines = service.store.audit(&filter).await?;
    let Some(line) = pin_of(run, &lines) else {
        return Ok(None);
    };
    let filter = StudyFilter {
        study_id: Some(run.study_id),
        ..StudyFilter::default()
    };
    let study = service.store.studies(&filter).await?.pop();
    let now = study.and_then(|study| study.pin);
    let now = now.filter(|pin| (pin.uid, pin.at) == (line.uid, line.at));
    let pin = Pin {
        parametrization: run.parametrization.clone(),
        uid: line.uid,
        user: line.user.clone(),
        at: line.at,
        why: line.why.clone(),
        until: until(&line.detail),
    };
    Ok(Some(OrderSummary {
        is_over: now.is_none(),
        may_end: asker.reader.changes(asker.caller.uid, run.uid),
        ..told_pin(run.study_id, &run.space, pin)
    }))
}

/// The line of the audit by which a study was pinned as this run was; the newest first.
fn pin_of<'a>(run: &RunRow, lines: &'a [AuditLine]) -> Option<&'a AuditLine> {
    let pinned = serde_json::to_value(&run.parametrization).ok()?;
    let undone = |line: &AuditLine| {
        let mut undoings = lines.iter();
        undoings.any(|one| Some(one.audit_id) == line.undone_by && one.at <= run.started_at)
    };
    let mut pins = lines.iter().filter(|line| {
        line.action == "pin" && line.study_id.is_some() && line.at <= run.started_at
    });
    pins.find(|line| line.detail.get("parametrization") == Some(&pinned) && !undone(line))
}

/// The time at which the order in a line of the audit ends.
fn until(detail: &Value) -> Option<Timestamp> {
    Timestamp::deserialize(detail.get("until")?).ok()
}
