//! A command of the site's that jobs have in default runs too: a mount, for storage that is there in
//! no other way.
//!
//! The node alone decides it, so that a job finds its storage although no service answers.

use std::time::Duration;

use io_autotune_protocol::{DeliveredCommand, Delivery, is_deliverable_variable};

use crate::config::{DefaultRuns, NodeConfig, SiteCommand};
use crate::files::is_one_line;
use crate::output::say;

/// The command of a job, by the accelerator that it names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served<'a> {
    command: &'a SiteCommand,
    runs: &'a DefaultRuns,
}

impl<'a> Served<'a> {
    /// The first command that serves the default runs of this accelerator, or of one of several
    /// that are joined by `+`. With values at risk it is the same accelerator.
    pub(crate) fn of(config: &'a NodeConfig, accelerator: Option<&str>) -> Option<Self> {
        let named: Vec<&str> = accelerator?
            .split('+')
            .map(|one| one.strip_suffix("@risk").unwrap_or(one))
            .collect();
        config.commands.iter().find_map(|command| {
            let runs = command.default_runs.as_ref()?;
            let serves = runs.of.iter().any(|one| named.contains(&one.as_str()));
            serves.then_some(Self { command, runs })
        })
    }

    /// The time that the service may take to answer, so that the command can start after it.
    pub(crate) fn for_answer(&self, left: Duration) -> Duration {
        let start = Duration::from_millis(self.command.start_ms);
        left.saturating_sub(start).max(left / 2)
    }

    /// The delivery with this command in it: without values, unless it has the command with some.
    pub(crate) fn delivery(&self, delivery: &Delivery) -> Delivery {
        let with_defaults = || DeliveredCommand {
            name: self.command.name.clone(),
            environment: Vec::new(),
            provides: self.runs.otherwise.keys().cloned().collect(),
        };
        let mut delivery = delivery.clone();
        delivery.command.get_or_insert_with(with_defaults);
        delivery
    }

    /// The variables of a job for which the command does not run.
    pub(crate) fn otherwise(&self) -> Vec<(String, String)> {
        let of = |(name, value): (&String, &String)| {
            let is_fit = is_deliverable_variable(name) && is_one_line(value);
            if !is_fit {
                say(&format!(
                    "[[commands]] {:?} in node.toml: otherwise sets {name:?} to {value:?}; it is ignored",
                    self.command.name
                ));
            }
            is_fit.then(|| (name.clone(), value.clone()))
        };
        self.runs.otherwise.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> NodeConfig {
        toml::from_str(
            r#"
            [[commands]]
            name = "other"
            start = ["/bin/other", "start"]
            stop = ["/bin/other", "stop"]
            [[commands]]
            name = "mount"
            start = ["/bin/mount", "start"]
            stop = ["/bin/mount", "stop"]
            start_ms = 700
            default_runs = { of = ["vfs"], otherwise = { VFS_DIR = "/project", PATH = "/evil" } }
            "#,
        )
        .unwrap()
    }

    #[test]
    fn only_jobs_that_name_the_accelerator_have_it() {
        let config = config();
        for (accelerator, has_it) in [
            (Some("vfs"), true),
            (Some("romio+vfs"), true),
            (Some("romio+vfs@risk"), true),
            (Some("romio"), false),
            (Some("vfs2"), false),
            (None, false),
        ] {
            let served = Served::of(&config, accelerator);
            assert_eq!(served.is_some(), has_it, "{accelerator:?}");
        }
    }

    #[test]
    fn without_values_it_is_started_as_its_program_does_by_default() {
        let config = config();
        let served = Served::of(&config, Some("vfs")).unwrap();
        let command = served.delivery(&Delivery::default()).command.unwrap();
        assert_eq!(command.name, "mount");
        assert!(command.environment.is_empty());
        let tuned = Delivery {
            command: Some(DeliveredCommand {
                name: "mount".into(),
                environment: Vec::new(),
                provides: vec!["VFS_DIR".into()],
            }),
            ..Delivery::default()
        };
        assert_eq!(served.delivery(&tuned), tuned);
        assert_eq!(
            served.otherwise(),
            [("VFS_DIR".to_owned(), "/project".to_owned())],
            "no variable that a loader or a shell acts on"
        );
    }

    #[test]
    fn a_service_that_hangs_leaves_time_for_the_start() {
        let config = config();
        let served = Served::of(&config, Some("vfs")).unwrap();
        let ms = Duration::from_millis;
        assert_eq!(served.for_answer(ms(2000)), ms(1300));
        assert_eq!(
            served.for_answer(ms(1000)),
            ms(500),
            "both have half at least"
        );
    }
}
