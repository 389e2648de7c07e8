//! Orders, the audit, and what an order changes.

use io_autotune_protocol::{
    Affected, AuditLine, OrderAnswer, OrderKind, OrderScope, OrderSummary, WarmStartAnswer,
    shown_lines,
};

use super::columns::{Cell, Column, Columns, Tone};
use super::{differing, status};
use crate::people::name_of;
use crate::screen::Screen;

/// A scope in words.
pub(crate) fn scope(scope: &OrderScope) -> String {
    let mut words = Vec::new();
    if let Some(study) = scope.study {
        words.push(format!("study {study}"));
    }
    if let Some(application) = &scope.application {
        words.push(format!("application {application}"));
    }
    if let Some(uid) = scope.uid {
        words.push(format!("user {}", name_of(uid)));
    }
    if let Some(accelerator) = &scope.accelerator {
        words.push(format!("accelerator {accelerator}"));
    }
    match words.is_empty() {
        true => "all studies".to_owned(),
        false => words.join(", "),
    }
}

/// The studies of an order, with what changes.
pub(crate) fn affected(answer: &OrderAnswer, screen: &Screen) -> String {
    if answer.studies.is_empty() {
        return "no study is of this scope now; those that begin later are\n".to_owned();
    }
    let mut text = changes(&answer.studies).text(screen);
    if answer.more {
        text.push_str("and more studies than are listed\n");
    }
    text
}

/// What a study begins with, and where it stands.
pub(crate) fn warm_start(answer: &WarmStartAnswer, screen: &Screen) -> String {
    let (study, from) = (answer.study.study_id, answer.from);
    let of = format!("study {from} (application {})", answer.from_application);
    let said = match answer.epoch {
        Some(epoch) => format!("study {study}: epoch {epoch} begins with what {of} ranks best"),
        None => format!("dry run: study {study} would begin with what {of} ranks best"),
    };
    let mut text = format!("{said}\n\n");
    for (place, one) in answer.inherited.iter().enumerate() {
        text.push_str(&format!("{:>4}. {}\n", place + 1, differing(one)));
    }
    let status = status::study(&answer.study, screen);
    format!("{}\n{status}", shown_lines(&text))
}

pub(crate) fn changes(studies: &[Affected]) -> Columns {
    let mut list = Columns::new(vec![
        Column::right("Study"),
        Column::left("Application").least(8),
        Column::left("User").least(6),
        Column::left("Accelerator").least(6),
        Column::left("Now").least(8),
        Column::left("Then").least(8),
    ]);
    for study in studies {
        let tone = match study.now == study.then {
            true => Tone::Plain,
            false => Tone::Notable,
        };
        list.row([
            Cell::new(study.study_id.to_string()),
            Cell::new(study.application.clone()),
            Cell::new(study.user.clone().unwrap_or_else(|| name_of(study.uid))),
            Cell::new(study.accelerator.clone()),
            Cell::new(study.now.clone()),
            Cell::toned(study.then.clone(), tone),
        ]);
    }
    list
}

pub(crate) fn orders(orders: &[OrderSummary], screen: &Screen) -> Columns {
    let mut list = Columns::new(vec![
        Column::right("Order"),
        Column::left("What").least(10),
        Column::left("Of").least(12),
        Column::left("By"),
        Column::left("Since"),
        Column::left("Until"),
        Column::left("Why").least(10),
    ]);
    for order in orders {
        let values = order.values.iter().flatten();
        let values: Vec<_> = values
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let what = match order.kind {
            OrderKind::Pin if values.is_empty() => "pin default".to_owned(),
            OrderKind::Pin => format!("pin {}", values.join(" ")),
            OrderKind::Freeze => "freeze".to_owned(),
            OrderKind::Off => "off".to_owned(),
        };
        list.row([
            order.order_id.to_string(),
            what,
            scope(&order.scope),
            name_of(order.uid),
            screen.short(order.at),
            order
                .until
                .map_or_else(|| "-".to_owned(), |until| screen.short(until)),
            order.why.clone(),
        ]);
    }
    list
}

pub(crate) fn audit(lines: &[AuditLine], screen: &Screen, exact: bool) -> Columns {
    let mut list = Columns::new(vec![
        Column::right("Line"),
        Column::left("Time"),
        Column::left("By"),
        Column::left("Action"),
        Column::left("Of").least(10),
        Column::left("What").least(10),
        Column::left("Undone"),
        Column::left("Why").least(10),
    ]);
    for line in lines {
        let of = match (&line.application, line.study_id) {
            (Some(application), Some(study)) => format!("study {study} ({application})"),
            _ => line
                .detail
                .get("scope")
                .map_or_else(|| "-".to_owned(), |stored| scope(&stored_scope(stored))),
        };
        let time = match exact {
            true => screen.exact(line.at),
            false => screen.short(line.at),
        };
        list.row([
            line.audit_id.to_string(),
            time,
            name_of(line.uid),
            line.action.clone(),
            of,
            what(line),
            line.undone_by
                .map_or_else(|| "-".to_owned(), |by| format!("by {by}")),
            line.why.clone(),
        ]);
    }
    list
}

fn stored_scope(stored: &serde_json::Value) -> OrderScope {
    let text = |name: &str| stored.get(name)?.as_str().map(str::to_owned);
    let number = |name: &str| stored.get(name)?.as_i64();
    OrderScope {
        study: number("study_id"),
        uid: number("owner_uid").and_then(|uid| u32::try_from(uid).ok()),
        application: text("application"),
        accelerator: text("accelerator"),
    }
}

fn what(line: &AuditLine) -> String {
    let values = |name: &str| {
        let values = line.detail.get(name)?.as_object()?;
        let values: Vec<_> = values
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => format!("{name}={text}"),
                None => format!("{name}={value}"),
            })
            .collect();
        Some(match values.is_empty() {
            true => "default".to_owned(),
            false => values.join(" "),
        })
    };
    if let Some(undoes) = line.undoes {
        return format!("line {undoes}");
    }
    let epoch = line
        .detail
        .get("opened_epoch")
        .and_then(|epoch| epoch.as_i64());
    if line.action == "retention" {
        let count = |name: &str| line.detail.get(name).and_then(serde_json::Value::as_u64);
        return match (count("runs"), count("epoch")) {
            (Some(runs), Some(epoch)) => format!("{runs} runs of epoch {epoch}"),
            _ => format!("reports of {} runs", count("trimmed").unwrap_or(0)),
        };
    }
    values("pinned")
        .or_else(|| values("parametrization"))
        .or_else(|| epoch.map(|epoch| format!("epoch {epoch}")))
        .unwrap_or_else(|| "-".to_owned())
}
