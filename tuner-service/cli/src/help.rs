//! The command line as it is offered: the commands of every day come first, each with an example.

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

/// The number of commands of every day, which are the first of all.
const EVERY_DAY: usize = 6;

/// The end of each command's help, after its options, below the command's name; of all commands first,
/// for the manual page.
const EXAMPLES: &str = include_str!("examples.txt");

/// The number of commands for admins, which are the last of all.
const FOR_ADMINS: usize = 4;

const MORE: &str = "`io-autotune COMMAND --help` says more, `man io-autotune` the exit statuses.";

/// The command line, with its commands in groups.
pub(crate) fn command() -> Command {
    let command = described();
    let template = template(&command);
    command.help_template(template)
}

/// The command line, with examples of each command.
pub(crate) fn described() -> Command {
    with_examples(Arguments::command(), "io-autotune")
}

fn with_examples(command: Command, path: &str) -> Command {
    let of_path = |one: &'static str| one.strip_prefix(path)?.strip_prefix('\n');
    let examples = EXAMPLES.split("== ").find_map(of_path);
    let command = command.after_help(examples.map(str::trim_end));
    command.mut_subcommands(|one| {
        let path = format!("{path} {}", one.get_name());
        with_examples(one, &path)
    })
}

/// The help template with groups, because clap lists all commands under one heading.
fn template(command: &Command) -> String {
    let heading = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let listed = |(place, one): (usize, &Command)| {
        let (word, about) = (one.get_name(), one.get_about().cloned().unwrap_or_default());
        let examples = one.get_after_help().map(ToString::to_string);
        let first = examples.as_deref().and_then(|text| text.lines().nth(1));
        let first = first.and_then(|line| line.trim().split("  ").next());
        let example = match first.filter(|_| place < EVERY_DAY) {
            Some(first) => format!("{:16}{first}\n", ""),
            None => String::new(),
        };
        format!("  {name}{word:<12}{name:#}  {about}\n{example}")
    };
    let listed: Vec<String> = command.get_subcommands().enumerate().map(listed).collect();
    let (every_day, others) = listed.split_at(EVERY_DAY);
    let (more, admins) = others.split_at(others.len() - FOR_ADMINS);
    let groups = [
        ("Every day", every_day),
        ("More", more),
        ("For admins", admins),
    ];
    let groups =
        groups.map(|(title, lines)| format!("\n{heading}{title}:{heading:#}\n{}", lines.concat()));
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n\
         {heading}Options:{heading:#}\n{{options}}\n\n{MORE}\n",
        groups.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_listed_in_groups_in_eighty_columns() {
        let help = command().render_help().to_string();
        let group = |title: &str| -> Vec<String> {
            let lines = help.lines().skip_while(|line| *line != title).skip(1);
            let lines = lines.take_while(|line| !line.is_empty());
            let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
            let names = names.filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        assert_eq!(
            group("Every day:"),
            ["status", "explain", "report", "pin", "off", "reset"]
        );
        assert_eq!(
            group("For admins:"),
            ["doctor", "rules", "prospect", "admin"]
        );
        let command = Arguments::command();
        let all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let groups = ["Every day:", "More:", "For admins:"].map(group);
        assert_eq!(groups.concat(), all, "each command is in one group");
        assert!(all.len() <= 23, "{}", all.len());
        for line in help.lines().take_while(|line| *line != "Options:") {
            assert!(line.len() <= 80 && !line.ends_with("  "), "{line:?}");
        }
        assert!(help.lines().count() <= 51, "{help}");
    }

    #[test]
    fn every_command_shows_an_example_and_every_example_is_of_a_command() {
        let command = command();
        let mut shown = 1;
        for one in command.get_subcommands() {
            let help = one.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.contains("io-autotune "), "{}", one.get_name());
            let nested = one.get_subcommands();
            shown += 1 + nested.filter(|one| one.get_after_help().is_some()).count();
        }
        assert_eq!(EXAMPLES.split("== ").count() - 1, shown);
    }

    #[test]
    fn the_example_of_each_command_of_every_day_can_be_given() {
        let help = command().render_help().to_string();
        let examples = help.lines().filter_map(|line| {
            let line = line.strip_prefix("                ")?;
            line.starts_with("io-autotune ").then(|| line.split(' '))
        });
        let mut given = 0;
        for example in examples {
            given += 1;
            command().try_get_matches_from(example).unwrap();
        }
        assert_eq!(given, EVERY_DAY);
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
