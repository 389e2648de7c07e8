use io_autotune_protocol::called as called_in_full;

use super::columns::{Column, Columns};
use crate::people::called;
use crate::rules::{Change, Checked, Trial, What};
use crate::screen::Screen;

/// The applications of job names, one a line.
pub(crate) fn checked(checked: &[Checked], screen: &Screen) -> String {
    let mut table = Columns::new(vec![
        Column::left("Job's name").least(12),
        Column::left("Application").least(12),
        Column::left("By rule"),
    ]);
    for one in checked {
        table.row([
            one.job_name.clone(),
            application(
                &called_in_full(&one.application, one.full_name.as_deref()),
                one.observed,
            ),
            one.rule.clone().unwrap_or_else(|| "-".into()),
        ]);
    }
    table.text(screen)
}

/// The changes that rules would make, one pair of histories a line.
pub(crate) fn trial(trial: &Trial, screen: &Screen) -> String {
    let unchanged = trial.unchanged_runs;
    let mut text = String::new();
    if trial.changes.is_empty() {
        text.push_str("nothing would change\n");
    } else {
        let mut table = Columns::new(vec![
            Column::left("User"),
            Column::left("Application").least(10),
            Column::left("Would be").least(10),
            Column::left("By rule"),
            Column::right("Runs"),
            Column::left("History"),
        ]);
        for change in &trial.changes {
            let rules = match change.rules.is_empty() {
                true => "-".to_owned(),
                false => Vec::from_iter(change.rules.iter().map(String::as_str)).join(", "),
            };
            table.row([
                called(change.user.as_deref(), change.uid),
                change.application.clone(),
                application(&change.becomes, change.observed),
                rules,
                change.runs.to_string(),
                history(change),
            ]);
        }
        text.push_str(&table.text(screen));
    }
    text.push_str(&format!(
        "runs of the last 30 days that stay where they are: {unchanged}\n"
    ));
    if trial.more {
        text.push_str("There are more job names than these, which are the most frequent.\n");
    }
    text
}

fn application(name: &str, observed: bool) -> String {
    if observed {
        format!("{name} (only observed)")
    } else {
        name.to_owned()
    }
}

fn history(change: &Change) -> String {
    let words = change.what.iter().map(|what| match what {
        What::Renamed => "renamed",
        What::Merged => "merged",
        What::Split => "split",
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_changes_are_shown_on_a_line_each() {
        let one = Checked {
            job_name: "a\u{1b}[2J".into(),
            comment: None,
            application: "unnamed".into(),
            full_name: None,
            observed: true,
            rule: None,
        };
        let text = checked(&[one], &Screen::plain());
        assert!(text.contains("unnamed (only observed)"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let change = Change {
            uid: 4_000_000_123,
            user: None,
            application: "nf-A__1_".into(),
            becomes: "nf-A".into(),
            observed: false,
            rules: BTreeSet::from(["nextflow".to_owned()]),
            runs: 7,
            what: vec![What::Split, What::Merged],
        };
        let trial_of = Trial {
            changes: vec![change],
            unchanged_runs: 3,
            more: true,
        };
        let text = trial(&trial_of, &Screen::plain());
        for part in [
            "4000000123",
            "nf-A__1_",
            "nextflow",
            " 7 ",
            "split, merged",
            "are: 3",
            "more job",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
