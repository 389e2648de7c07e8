//! Orders, the audit, and the changes that an order makes.

use io_autotune_model::AuditLine;
use io_autotune_protocol::{
    Affected, OrderAnswer, OrderScope, OrderSummary, StudySummary, WarmStartAnswer, shown_lines,
};
use jiff::Timestamp;

use super::columns::{Cell, Column, Columns, Tone};
use super::order::{named, ordered, scope, undoing};
use super::{differing, fold, gain, status};
use crate::format::{LINE_FIELDS, Wanted};
use crate::people::called;
use crate::screen::Screen;

/// The studies of an order, with what changes.
pub(crate) fn affected(answer: &OrderAnswer, screen: &Screen) -> String {
    if answer.studies.is_empty() {
        return "No study is of this scope now. Those that begin later are.\n".to_owned();
    }
    let mut text = changes(&answer.studies).text(screen);
    if answer.more {
        text.push_str("and more studies than are listed\n");
    }
    text
}

/// The parametrizations with which a study begins, and its state.
pub(crate) fn warm_start(answer: &WarmStartAnswer, has_reason: bool, screen: &Screen) -> String {
    let study = named(answer.study.study_id, &answer.study.application);
    let of = named(answer.from, &answer.from_application);
    let said = match answer.epoch {
        Some(epoch) => format!("{study}: epoch {epoch} begins with what {of} ranks best."),
        None => format!("dry run: {study} would begin with what {of} ranks best."),
    };
    let mut text = format!("{said}\n\n");
    for (place, one) in answer.inherited.iter().enumerate() {
        text.push_str(&format!("{:>4}. {}\n", place + 1, differing(one)));
    }
    text.push_str(&undoing(answer.study.line, has_reason));
    let status = status::study(&answer.study, screen);
    format!("{}\n{status}", shown_lines(&text))
}

/// A text on the effect of undoing a reset.
pub(crate) const UNDO_OF_RESET: &str =
    "The pin and what the values took are back then; the gain is proved anew.\n";

/// A text on what a reset would open, and drop.
pub(crate) fn would_reset(study: &StudySummary, screen: &Screen) -> String {
    let mut text = format!(
        "dry run: {} would be reset: its search would begin anew.\n",
        named(study.study_id, &study.application),
    );
    let mut drop = |what: &str| text.push_str(&format!("would be dropped: {what}\n"));
    if let Some(known) = &study.assessment {
        drop(&format!("the gain: {}", gain::of(known)));
    }
    if study.recommended.is_some() {
        drop(&format!("the choice: {}", differing(&study.differs)));
    }
    if let Some(pin) = &study.pin {
        drop(&format!("the pin: {}", pin.why));
    }
    fold::labelled(&shown_lines(&text), screen)
}

pub(crate) fn changes(studies: &[Affected]) -> Columns {
    let mut list = Columns::new(vec![
        Column::right("Study"),
        Column::left("Cluster").least(6),
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
            Cell::new(study.cluster.clone().unwrap_or_default()),
            Cell::new(study.application.clone()),
            Cell::new(called(study.user.as_deref(), study.uid)),
            Cell::new(study.accelerator.clone()),
            Cell::new(study.now.clone()),
            Cell::toned(study.then.clone(), tone),
        ]);
    }
    if studies.iter().all(|study| study.cluster.is_none()) {
        list.leave_out(1);
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
        list.row([
            order
                .order_id
                .map_or_else(|| "-".to_owned(), |number| number.to_string()),
            ordered(order),
            scope(&order.scope),
            called(order.user.as_deref(), order.uid),
            screen.short(order.at),
            order
                .until
                .map_or_else(|| "-".to_owned(), |until| screen.short(until)),
            order.why.clone(),
        ]);
    }
    list
}

/// The change that was taken back, and the line that did it.
pub(crate) fn undone(line: &AuditLine) -> String {
    let by = line.undone_by.map(|by| format!(" by line {by}"));
    let by = by.unwrap_or_default();
    let text = format!(
        "line {}, {}, is undone{by}: {}.\nThere is no undo of an undo. Give the command again if you want it again.\n",
        line.audit_id,
        line.action,
        of(line)
    );
    shown_lines(&text)
}

/// Lines of the audit in these columns; for programs all columns if `None`. On a terminal there is
/// no room for a column of times until which changes hold, which few lines have: they are shown
/// with the rest.
pub(crate) fn audit(
    lines: &[AuditLine],
    wanted: Option<&[Wanted]>,
    screen: &Screen,
    exact: bool,
) -> Columns {
    let mut usual = Wanted::all(&LINE_FIELDS);
    usual.retain(|wanted| exact || wanted.field.name != "Until");
    let wanted = wanted.unwrap_or(&usual);
    let has_until = wanted.iter().any(|wanted| wanted.field.name == "Until");
    let column = |one: &Wanted| match one.field.name {
        "By" if lines.iter().all(|line| line.uid == lines[0].uid) => Column::of(one).spare(2),
        "Undone" if lines.iter().all(|line| line.undone_by.is_none()) => Column::of(one).spare(1),
        _ => Column::of(one),
    };
    let mut list = Columns::new(wanted.iter().map(column).collect());
    let time = |at| match exact {
        true => screen.exact(at),
        false => screen.short(at),
    };
    for line in lines {
        let cell = |name: &str| match name {
            "Line" => line.audit_id.to_string(),
            "Time" => time(line.at),
            "By" => called(line.user.as_deref(), line.uid),
            "Action" => line.action.clone(),
            "Of" => of(line),
            "What" => {
                let until = until(line).filter(|_| !has_until);
                let until = until.map(|until| format!("until {}", time(until)));
                let said: Vec<String> = what(line).into_iter().chain(until).collect();
                match said.is_empty() {
                    true => "-".to_owned(),
                    false => said.join(" "),
                }
            }
            "Until" => until(line).map_or_else(|| "-".to_owned(), time),
            "Undone" => line
                .undone_by
                .map_or_else(|| "-".to_owned(), |by| format!("by {by}")),
            _ => line.why.clone(),
        };
        list.row(wanted.iter().map(|one| cell(one.field.name)));
    }
    list
}

fn of(line: &AuditLine) -> String {
    match (&line.application, line.study_id) {
        (Some(application), Some(study)) => match &line.cluster {
            Some(cluster) => format!("study {study} ({application} on {cluster})"),
            None => format!("study {study} ({application})"),
        },
        _ => {
            let stored = line.detail.get("scope");
            stored.map_or_else(|| "-".to_owned(), |stored| scope(&stored_scope(stored)))
        }
    }
}

fn until(line: &AuditLine) -> Option<Timestamp> {
    line.detail.get("until")?.as_str()?.parse().ok()
}

fn stored_scope(stored: &serde_json::Value) -> OrderScope {
    let text = |name: &str| stored.get(name)?.as_str().map(str::to_owned);
    let number = |name: &str| stored.get(name)?.as_i64();
    OrderScope {
        study: number("study_id"),
        uid: number("owner_uid").and_then(|uid| u32::try_from(uid).ok()),
        application: text("application"),
        accelerator: text("accelerator"),
        cluster: text("cluster"),
    }
}

fn what(line: &AuditLine) -> Option<String> {
    let values = |name: &str| {
        let values = line.detail.get(name)?.as_object()?;
        let values = values.iter().map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}={value}"),
        });
        Some(match values.collect::<Vec<_>>().join(" ") {
            none if none.is_empty() => "default".to_owned(),
            values => values,
        })
    };
    if let Some(undoes) = line.undoes {
        return Some(format!("line {undoes}"));
    }
    let epoch = line.detail.get("opened_epoch");
    let epoch = epoch.and_then(|epoch| epoch.as_i64());
    if line.action == "retention" {
        let count = |name: &str| line.detail.get(name).and_then(serde_json::Value::as_u64);
        return Some(match (count("runs"), count("epoch")) {
            (Some(runs), Some(epoch)) => format!("{runs} runs of epoch {epoch}"),
            _ => format!("reports of {} runs", count("trimmed").unwrap_or(0)),
        });
    }
    if line.action == "map-cluster" {
        let name = |name: &str| line.detail.get(name).and_then(serde_json::Value::as_str);
        let from = name("from").unwrap_or("no cluster");
        return Some(format!("{from} to {}", name("to").unwrap_or_default()));
    }
    if line.detail.get("forgotten").is_some() {
        return Some("of a user who was forgotten".to_owned());
    }
    if line.action == "forget" {
        let name = line.detail.get("as").and_then(serde_json::Value::as_str);
        return Some(format!("a user, who is {} now", name.unwrap_or("nobody")));
    }
    values("pinned")
        .or_else(|| values("parametrization"))
        .or_else(|| epoch.map(|epoch| format!("epoch {epoch}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reset_that_is_tried_tells_what_would_be_dropped() {
        let study: StudySummary = serde_json::from_value(json!({
            "study_id": 7, "application": "ocean", "uid": 1000, "user": "io-alice",
            "accelerator": "romio", "context": {}, "epoch": 1,
            "opened": { "at": "1970-01-01T00:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
            "phase": "settled", "counted": 9, "not_counted": 0, "in_flight": 0, "explored": [50, 50],
            "default": null, "control": null, "tuned": null, "gain": null,
            "recommended": { "cb_nodes": 2 }, "differs": { "cb_nodes": 2 },
            "why": "", "pin": null, "warnings": []
        }))
        .unwrap();
        assert_eq!(
            would_reset(&study, &Screen::plain()),
            "dry run: study 7 (application ocean) would be reset: its search would begin anew.\nwould be dropped: the choice: cb_nodes=2\n"
        );
    }

    #[test]
    fn the_audit_has_the_columns_that_are_asked_for_and_until_when_it_was_ordered() {
        let line: AuditLine = serde_json::from_value(json!({
            "audit_id": 17, "at": "1970-01-01T00:00:00Z", "uid": 4_000_000_123_u32, "user": "carol",
            "action": "off", "study_id": null, "application": null, "owner_uid": null,
            "detail": { "scope": { "study_id": null, "owner_uid": 0, "application": "a, b", "accelerator": null },
                        "pinned": null, "until": "1970-01-02T00:00:00Z", "replaced": null },
            "undoes": null, "undone_by": null, "why": "a test"
        }))
        .unwrap();
        let all = audit(std::slice::from_ref(&line), None, &Screen::plain(), true).parsable();
        assert_eq!(
            all,
            "Line|Time|By|Action|Of|What|Until|Undone|Why\n\
             17|1970-01-01T00:00:00|carol|off|application a, b, user root|-|1970-01-02T00:00:00|-|a test\n"
        );
        let shown = audit(std::slice::from_ref(&line), None, &Screen::plain(), false).parsable();
        assert!(shown.contains("|until 01-02 00:00|-|a test"), "{shown}");
        let wanted = ["Why", "line"].map(|name| Wanted::of(&LINE_FIELDS, name).unwrap());
        let some = audit(&[line], Some(&wanted), &Screen::plain(), true).parsable();
        assert_eq!(some, "Why|Line\na test|17\n");
    }
}
