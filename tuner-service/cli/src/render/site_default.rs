//! The site's default of an accelerator: what its studies have in common, and what is in force.

use io_autotune_protocol::{InCommon, OrderSummary, SiteDefault, shown_lines};

use super::differing;
use super::order::{ending, ordered};
use crate::people::called;
use crate::screen::Screen;

/// The site's default on each cluster.
pub(crate) fn site_defaults(clusters: &[SiteDefault], screen: &Screen) -> String {
    let each = clusters.iter().map(|one| site_default(one, screen));
    shown_lines(&each.collect::<Vec<_>>().join("\n"))
}

fn site_default(one: &SiteDefault, screen: &Screen) -> String {
    let on = one.cluster.as_ref();
    let on = on.map_or_else(String::new, |cluster| format!(" on {cluster}"));
    let mut text = format!("accelerator  {}{on}\n", one.accelerator);
    match (&one.in_common, one.made_at) {
        (Some(found), _) => text.push_str(&in_common(found)),
        (None, Some(_)) => text.push_str(
            "in common    nothing: no setting is harmless in the studies of three users besides\n\
             \x20            the one who found it, and faster in all of them together\n",
        ),
        (None, None) => text.push_str(
            "in common    not known yet: it takes studies of four users, each with two runs of\n\
             \x20            the default and five other settings\n",
        ),
    }
    if let Some(at) = one.made_at {
        text.push_str(&format!("as of        {}\n", screen.short(at)));
    }
    text.push_str(&match &one.in_force {
        Some(order) => in_force(order, screen),
        None => "in force     the accelerator's own default\n".to_owned(),
    });
    text
}

fn in_common(found: &InCommon) -> String {
    let mut text = format!("in common    {}\n", differing(&found.values));
    let mut more = |line: String| text.push_str(&format!("{:13}{line}\n", ""));
    more(format!(
        "one more application: {}",
        change(found.ratio.mean)
    ));
    more(format!(
        "(95 % sure: {} to {})",
        change(found.ratio.high),
        change(found.ratio.low),
    ));
    more(format!(
        "{} of {} studies gain, {} expected to lose",
        found.gain,
        found.studies,
        match found.lose {
            1 => "1 is".to_owned(),
            several => format!("{several} are"),
        },
    ));
    more(format!(
        "they expect {} to {}",
        change(found.largest),
        change(found.smallest),
    ));
    more(match found.worst {
        worst if worst > 1.0 => format!("at worst: {}", change(worst)),
        _ => "at worst: no loss".to_owned(),
    });
    for loser in &found.losers {
        more(format!(
            "study {} ({} of {}): {}",
            loser.study_id,
            loser.application,
            called(loser.user.as_deref(), loser.uid),
            change(loser.ratio.mean),
        ));
    }
    text
}

fn in_force(order: &OrderSummary, screen: &Screen) -> String {
    let number = order.order_id.unwrap_or_default();
    let by = called(order.user.as_deref(), order.uid);
    let mut text = format!(
        "in force     {}, order {number} by {by} since {}: {}\n",
        ordered(order),
        screen.short(order.at),
        order.why,
    );
    if order.may_end {
        text.push_str(&format!("{:13}to end it: {}\n", "", ending(order)));
    }
    text
}

/// A ratio of times, as a change of time.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match percent.abs() {
        under if under < 0.05 => "the same time".to_owned(),
        under if under < 9.95 => format!("{under:.1} % {} time", way(percent)),
        other => format!("{other:.0} % {} time", way(percent)),
    }
}

fn way(percent: f64) -> &'static str {
    if percent < 0.0 { "less" } else { "more" }
}

#[cfg(test)]
mod tests {
    use io_autotune_model::{Parametrization, Ratio, Value};
    use io_autotune_protocol::Loser;

    use super::*;

    fn found() -> InCommon {
        InCommon {
            values: Parametrization([("cb_nodes".to_owned(), Value::Integer(8))].into()),
            users: 5,
            ratio: Ratio {
                mean: 0.74,
                low: 0.67,
                high: 0.82,
            },
            studies: 14,
            gain: 11,
            lose: 1,
            smallest: 0.59,
            largest: 1.031,
            worst: 1.09,
            losers: vec![Loser {
                study_id: 12,
                application: "ocean".to_owned(),
                uid: 1000,
                user: Some("alice".to_owned()),
                ratio: Ratio {
                    mean: 1.031,
                    low: 0.98,
                    high: 1.09,
                },
            }],
        }
    }

    fn shown(in_common: Option<InCommon>) -> String {
        let one = SiteDefault {
            cluster: None,
            accelerator: "romio".to_owned(),
            made_at: None,
            in_common,
            in_force: None,
        };
        site_defaults(&[one], &Screen::plain())
    }

    #[test]
    fn what_studies_have_in_common_is_told_with_who_would_lose() {
        assert_eq!(
            shown(Some(found())),
            "accelerator  romio\n\
             in common    cb_nodes=8\n\
             \x20            one more application: 26 % less time\n\
             \x20            (95 % sure: 18 % less time to 33 % less time)\n\
             \x20            11 of 14 studies gain, 1 is expected to lose\n\
             \x20            they expect 3.1 % more time to 41 % less time\n\
             \x20            at worst: 9.0 % more time\n\
             \x20            study 12 (ocean of alice): 3.1 % more time\n\
             in force     the accelerator's own default\n"
        );
    }

    #[test]
    fn without_four_users_nothing_is_in_common_yet() {
        let text = shown(None);
        assert!(
            text.contains("not known yet: it takes studies of four users"),
            "{text}"
        );
    }
}
