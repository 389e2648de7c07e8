//! Orders in words, with their authors, and with the commands that end them and take them back.

use io_autotune_protocol::{OrderKind, OrderScope, OrderSummary};

use crate::people::{called, name_of};
use crate::screen::Screen;

/// A scope in words.
pub(crate) fn scope(scope: &OrderScope) -> String {
    scope_with(scope, None)
}

/// A scope in words; if it is a single study, with the study's application.
pub(crate) fn scope_with(scope: &OrderScope, of_study: Option<&str>) -> String {
    let study = scope.study.map(|study| match of_study {
        Some(application) => named(study, application),
        None => format!("study {study}"),
    });
    let others = narrowed(scope).map(|(what, name)| format!("{what} {name}"));
    let words: Vec<String> = study.into_iter().chain(others).collect();
    match words.is_empty() {
        true => "all studies".to_owned(),
        false => words.join(", "),
    }
}

/// The parts that narrow a scope besides a study, by the names of options.
fn narrowed(scope: &OrderScope) -> impl Iterator<Item = (&'static str, String)> {
    let narrowed = [
        ("application", scope.application.clone()),
        ("user", scope.uid.map(name_of)),
        ("accelerator", scope.accelerator.clone()),
        ("cluster", scope.cluster.clone()),
    ];
    let narrowed = narrowed.into_iter();
    narrowed.filter_map(|(what, name)| Some((what, name?)))
}

/// The name of a study, for a user who has changed it.
pub(crate) fn named(study: i64, application: &str) -> String {
    format!("study {study} (application {application})")
}

/// The command that gives an order, and with `--end` ends it.
pub(crate) fn command_of(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Pin => "pin",
        OrderKind::Freeze => "freeze",
        OrderKind::Off => "off",
        OrderKind::SiteDefault => "accelerators site-default",
    }
}

/// The command that ends an order, for a user who may.
pub(crate) fn ending(order: &OrderSummary) -> String {
    if let (OrderKind::SiteDefault, Some(name)) = (order.kind, &order.scope.accelerator) {
        let command = command_of(order.kind);
        return format!("io-autotune {command} {name} --end --why \"...\"");
    }
    let study = order.scope.study;
    let options = narrowed(&order.scope).filter(|(what, _)| study.is_none() || *what != "user");
    let options: Vec<(&str, String)> = options.collect();
    let whose = match study {
        Some(study) => format!(" study:{study}"),
        None if options.iter().all(|(what, _)| *what == "cluster") => " --all".to_owned(),
        None => String::new(),
    };
    let options = options
        .iter()
        .map(|(what, name)| format!(" --{what} {name}"));
    let options: String = options.collect();
    let kind = command_of(order.kind);
    format!("io-autotune {kind}{options}{whose} --end --why \"...\"")
}

/// The order in words; a pin with its values.
pub(crate) fn ordered(order: &OrderSummary) -> String {
    let values = order.values.iter().flatten();
    let values: Vec<_> = values
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    match order.kind {
        OrderKind::Pin if values.is_empty() => "pin default".to_owned(),
        OrderKind::Pin => format!("pin {}", values.join(" ")),
        OrderKind::SiteDefault => format!("site's default {}", values.join(" ")),
        kind => command_of(kind).to_owned(),
    }
}

/// Two lines: the order that decides in the place of the search, and the command that ends it.
pub(crate) fn decided_by(order: &OrderSummary, screen: &Screen) -> String {
    let by = called(order.user.as_deref(), order.uid);
    let label = match order.order_id {
        Some(_) => "ordered",
        None => "pinned",
    };
    let until = order.until.map_or_else(String::new, |until| {
        format!(" until {}", screen.short(until))
    });
    let end = match (order.is_over, order.may_end) {
        (true, _) => "it is over".to_owned(),
        (false, true) => format!("to end it: {}", ending(order)),
        (false, false) => match by.as_str() {
            "root" => "only an admin can end it".to_owned(),
            by => format!("only {by} or an admin can end it"),
        },
    };
    format!(
        "{label:<13}{} of {}, by {by} since {}{until}: {}\n{:13}{end}\n",
        ordered(order),
        scope(&order.scope),
        screen.short(order.at),
        order.why,
        "",
    )
}

/// The command that takes a change back, by its line of the audit; empty without a line. A reason
/// is asked for if the change had one, because then it may be required.
pub(crate) fn undoing(line: Option<i64>, has_reason: bool) -> String {
    let why = if has_reason { " --why \"...\"" } else { "" };
    line.map_or_else(String::new, |line| {
        format!("to take it back: io-autotune undo {line}{why}\n")
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn order(kind: OrderKind, scope: OrderScope) -> OrderSummary {
        OrderSummary {
            order_id: Some(12),
            kind,
            scope,
            values: None,
            uid: 4_000_000_123,
            user: Some("carol".to_owned()),
            why: "a test".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            until: None,
            is_over: false,
            may_end: true,
        }
    }

    #[test]
    fn an_order_is_named_with_the_whole_command_that_ends_it() {
        let all = OrderScope::default();
        let of_user = OrderScope {
            uid: Some(0),
            accelerator: Some("romio".to_owned()),
            ..OrderScope::default()
        };
        let of_ocean = OrderScope {
            application: Some("ocean".to_owned()),
            ..OrderScope::default()
        };
        let of_study = OrderScope {
            study: Some(7),
            uid: Some(0),
            ..OrderScope::default()
        };
        let of_beta = OrderScope {
            cluster: Some("beta".to_owned()),
            ..OrderScope::default()
        };
        for (kind, scope, command) in [
            (OrderKind::Freeze, all, "freeze --all --end"),
            (
                OrderKind::Off,
                of_user,
                "off --user root --accelerator romio --end",
            ),
            (OrderKind::Pin, of_ocean, "pin --application ocean --end"),
            (OrderKind::Off, of_study, "off study:7 --end"),
            (
                OrderKind::Freeze,
                of_beta,
                "freeze --cluster beta --all --end",
            ),
        ] {
            let text = decided_by(&order(kind, scope), &Screen::plain());
            let ending = format!("\n             to end it: io-autotune {command} --why \"...\"\n");
            assert!(text.ends_with(&ending), "{text}");
        }
    }

    #[test]
    fn what_decides_is_told_with_who_said_so_and_who_can_end_it() {
        let of_ocean = OrderScope {
            application: Some("ocean".to_owned()),
            ..OrderScope::default()
        };
        let mut off = order(OrderKind::Off, of_ocean);
        (off.may_end, off.until) = (false, Some(Timestamp::from_second(86400).unwrap()));
        let said = |order: &OrderSummary| decided_by(order, &Screen::plain());
        assert_eq!(
            said(&off),
            "ordered      off of application ocean, by carol since 01-01 00:00 until 01-02 00:00: a test\n\
             \x20            only carol or an admin can end it\n"
        );
        off.user = Some("root".to_owned());
        assert!(said(&off).ends_with(" only an admin can end it\n"));
        off.is_over = true;
        assert!(said(&off).ends_with(" it is over\n"));
        let mut pin = order(
            OrderKind::Pin,
            OrderScope {
                study: Some(7),
                ..OrderScope::default()
            },
        );
        (pin.order_id, pin.values) = (None, Some([("cb_nodes".to_owned(), "2".to_owned())].into()));
        let text = said(&pin);
        assert!(
            text.starts_with("pinned       pin cb_nodes=2 of study 7, by carol since"),
            "{text}"
        );
        assert!(
            text.contains("io-autotune pin study:7 --end --why"),
            "{text}"
        );
    }
}
