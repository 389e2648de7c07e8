//! The command line as it is offered: the commands of every day come first.

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

/// Commands under their headings, as they are listed.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "Every day",
        &["status", "explain", "report", "pin", "off", "reset", "undo"],
    ),
    (
        "More",
        &[
            "history",
            "show",
            "compare",
            "freeze",
            "objective",
            "accept",
            "audit",
            "transfer",
            "accelerators",
            "mark",
            "optimize",
        ],
    ),
    ("For admins", &["doctor", "rules", "admin"]),
];

/// The command line, with its commands in groups.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let template = template(&command);
    command.help_template(template)
}

/// The help template with groups, because clap lists all commands under one heading.
fn template(command: &Command) -> String {
    let heading = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{heading}{title}:{heading:#}\n"));
        for one in names {
            let about = command.find_subcommand(one).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name}{one:<12}{name:#}  {about}\n"));
        }
    }
    text + &format!("\n{heading}Options:{heading:#}\n{{options}}{{after-help}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_and_there_are_at_most_twenty_one() {
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let command = Arguments::command();
        let all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        assert_eq!(listed, all, "as the command line has them");
        assert!(all.len() <= 21, "{}", all.len());
    }

    #[test]
    fn the_commands_are_listed_in_groups_in_eighty_columns() {
        let help = command().render_help().to_string();
        let places: Vec<usize> = [
            "Every day:\n",
            "More:\n",
            "For admins:\n",
            "Options:\n",
            "Examples:\n",
        ]
        .iter()
        .map(|heading| {
            help.find(heading)
                .unwrap_or_else(|| panic!("{heading}: {help}"))
        })
        .collect();
        assert!(places.is_sorted(), "{help}");
        for line in help[..places[3]].lines() {
            assert!(line.len() <= 80, "{line}");
            assert!(!line.ends_with("  "), "{line:?}");
        }
        let first: Vec<&str> = help[places[0]..places[1]]
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .collect();
        assert_eq!(
            first[..6],
            ["status", "explain", "report", "pin", "off", "reset"]
        );
    }

    #[test]
    fn what_asks_no_service_lists_nothing_of_one_and_still_reads_it() {
        let words = ["io-autotune", "optimize", "--help"];
        let help = command().try_get_matches_from(words).unwrap_err();
        let help = help.to_string();
        assert!(help.contains("--space"), "{help}");
        assert!(
            !help.contains("--config") && !help.contains("--cluster"),
            "{help}"
        );
        let words = "io-autotune optimize --space a --runs 1 --config b -M c -- d".split(' ');
        command().try_get_matches_from(words).unwrap();
    }

    #[test]
    fn a_commands_own_help_lists_its_own() {
        let mut command = command();
        let pin = command
            .find_subcommand_mut("pin")
            .unwrap()
            .render_help()
            .to_string();
        assert!(!pin.contains("Every day") && pin.contains("--end"), "{pin}");
    }
}
