//! The text of `io-autotune prospect`.

use super::columns::{Column, Columns};
use super::units::{grouped, percent};
use crate::prospect::{Prospect, STEADY, Share, Study};
use crate::screen::Screen;

/// The shares, then the largest studies, at most so many.
pub(crate) fn prospect(found: &Prospect, most: usize, screen: &Screen) -> String {
    if found.all.jobs == 0 {
        return format!("no job of this file ran\n{}", unread(found));
    }
    let mut text = shares(found).text(screen);
    let steady = STEADY * 100.0;
    text.push_str(&format!(
        "\nA study has the jobs of one application of one user, on one partition, with\n\
         one number of nodes and of CPUs per node. It is steady if its times vary by\n\
         less than {steady:.0} %.\n"
    ));
    if !found.studies.is_empty() {
        let listed = found.studies.len().min(most);
        text.push_str(&format!(
            "\nThe {listed} largest of {} studies:\n",
            grouped(&found.studies.len().to_string())
        ));
        text.push_str(&studies(found, most).text(screen));
    }
    text.push_str(
        "\nAccounting does not say how much of a job is I/O: these are the jobs that run\n\
         often enough. docs/worth.md says what so many runs are worth.\n",
    );
    text.push_str(&unread(found));
    text
}

fn shares(found: &Prospect) -> Columns {
    let mut table = Columns::new(vec![
        Column::left("Jobs of"),
        Column::right("Studies"),
        Column::right("Jobs"),
        Column::right("Node-hours"),
        Column::right("Share"),
        Column::right("Steady"),
    ]);
    let share = |seconds: f64| match found.all.node_seconds {
        all if all > 0.0 => format!("{} %", percent(seconds / all)),
        _ => "-".to_owned(),
    };
    let mut row = |name: &str, studies: String, of: Share, steady: String| {
        table.row([
            name.to_owned(),
            studies,
            grouped(&of.jobs.to_string()),
            hours(of.node_seconds),
            share(of.node_seconds),
            steady,
        ]);
    };
    for often in &found.often {
        row(
            &format!("studies of {} runs or more", often.runs),
            grouped(&often.studies.to_string()),
            often.share,
            share(often.steady_node_seconds),
        );
    }
    let none = String::new;
    row("names that say nothing", none(), found.unnamed, none());
    row(
        "jobs that did not complete",
        none(),
        found.not_completed,
        none(),
    );
    if found.beyond.jobs > 0 {
        row(
            "studies beyond the first million",
            none(),
            found.beyond,
            none(),
        );
    }
    let studies = grouped(&found.studies.len().to_string());
    row("all", studies, found.all, none());
    table
}

/// The studies, one a row, at most so many.
pub(crate) fn studies(found: &Prospect, most: usize) -> Columns {
    let mut table = Columns::new(vec![
        Column::left("Cluster").spare(0),
        Column::left("User").least(6),
        Column::left("Application").least(8),
        Column::left("Partition").least(6).spare(2),
        Column::right("Nodes"),
        Column::right("CPUs").spare(1),
        Column::right("Runs"),
        Column::right("Node-hours"),
        Column::right("Vary by"),
    ]);
    for Study {
        key,
        jobs,
        node_seconds,
        varies_by,
    } in found.studies.iter().take(most)
    {
        table.row([
            key.cluster.clone(),
            key.user.clone(),
            key.application.clone(),
            key.partition.clone(),
            key.nodes.to_string(),
            key.cpus_per_node.to_string(),
            jobs.to_string(),
            hours(*node_seconds),
            varies_by.map_or_else(|| "-".to_owned(), |by| format!("{:.0} %", by * 100.0)),
        ]);
    }
    table
}

fn hours(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    grouped(&format!("{hours:.*}", usize::from(hours < 9.95)))
}

fn unread(found: &Prospect) -> String {
    match found.unread.first {
        None => String::new(),
        Some((line, why)) => format!(
            "Lines that could not be read: {}. The first is line {line}:\n{why}.\n",
            found.unread.lines
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prospect::{Key, Often, Unread};

    fn found() -> Prospect {
        let share = |jobs, node_seconds| Share { jobs, node_seconds };
        let study = |application: &str, jobs, varies_by| Study {
            key: Key {
                cluster: "c".to_owned(),
                user: "alice".to_owned(),
                application: application.to_owned(),
                partition: "batch".to_owned(),
                nodes: 2,
                cpus_per_node: 8,
            },
            jobs,
            node_seconds: 3_600_000.0,
            varies_by,
        };
        Prospect {
            all: share(260, 7_200_000.0),
            not_completed: Share::default(),
            unnamed: Share::default(),
            often: vec![Often {
                runs: 200,
                studies: 1,
                share: share(200, 3_600_000.0),
                steady_node_seconds: 1_800_000.0,
            }],
            studies: vec![
                study("oc\u{1b}ean", 200, Some(0.07)),
                study("once", 1, None),
            ],
            beyond: Share::default(),
            unread: Unread {
                lines: 3,
                first: Some((17, "it has fewer columns than the first line")),
            },
        }
    }

    #[test]
    fn shares_come_first_and_then_the_largest() {
        let text = prospect(&found(), 1, &Screen::wide(80));
        for part in [
            "studies of 200 runs or more        1   200       1,000   50.0 %  25.0 %",
            "all                                2   260       2,000  100.0 %",
            "The 1 largest of 2 studies:",
            "7 %",
            "Lines that could not be read: 3. The first is line 17:\nit has fewer columns",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("once") && !text.contains('\u{1b}'), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let all = studies(&found(), usize::MAX).csv().unwrap();
        assert!(all.contains("once"), "{all}");
    }

    #[test]
    fn a_file_without_jobs_says_so() {
        let empty = Prospect {
            all: Share::default(),
            ..found()
        };
        let text = prospect(&empty, 10, &Screen::plain());
        assert!(text.starts_with("no job of this file ran\nLines"), "{text}");
    }
}
