//! The site's commands, which start a service for a job and stop it again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use io_autotune_protocol::{DeliveredCommand, Job, is_deliverable_variable};
use serde::{Deserialize, Serialize};

use super::place::{self, Place};
use crate::config::{RunAs, SiteCommand};
use crate::files::is_one_line;
use crate::job::name_on_node;
use crate::output::say;
use crate::{cgroup, enter_cgroup, time_limited};

/// The time that killed processes have to die.
const DYING: Duration = Duration::from_millis(200);

/// A command for one job. Everything needed to stop it is saved before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Running {
    pub(crate) name: String,
    start: Vec<String>,
    stop: Vec<String>,
    /// The uid and gid to run as; `None` for root.
    owner: Option<(u32, u32)>,
    environment: BTreeMap<String, String>,
    provides: Vec<String>,
    start_ms: u64,
    stop_ms: u64,
    /// For a command that runs as the user: a directory, and a control group with the memory limit
    /// of its processes, in bytes. Root removes both whatever the command does.
    place: Option<Place>,
    group: Option<PathBuf>,
    #[serde(default)]
    memory_most: u64,
}

/// The job for which something is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) job: &'a Job,
    /// The user's directory that a command may act on.
    pub(crate) dir: Option<&'a str>,
    /// True on the node where the batch script runs: what is to be done once for a job is done
    /// there.
    pub(crate) is_first_node: bool,
}

fn word(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

impl Running {
    pub(crate) fn new(
        delivered: &DeliveredCommand,
        site: &SiteCommand,
        asker: &Asker<'_>,
        spool: &Path,
    ) -> Result<Self, String> {
        let job = asker.job;
        let mut environment = BTreeMap::new();
        for variable in &delivered.environment {
            if !is_deliverable_variable(&variable.name) || !is_one_line(&variable.value) {
                return Err(format!("{:?} is no variable for a command", variable.name));
            }
            environment.insert(variable.name.clone(), variable.value.clone());
        }
        for (name, value) in [
            ("IO_AUTOTUNE_CLUSTER", job.cluster.clone()),
            ("IO_AUTOTUNE_NODE", job.node.clone()),
            ("IO_AUTOTUNE_JOB_ID", job.job_id.to_string()),
            ("IO_AUTOTUNE_UID", job.uid.to_string()),
            ("IO_AUTOTUNE_GID", job.gid.to_string()),
            (
                "IO_AUTOTUNE_FIRST_NODE",
                word(asker.is_first_node).to_owned(),
            ),
        ] {
            environment.insert(name.to_owned(), value);
        }
        let owner = (site.run_as == RunAs::User).then_some((job.uid, job.gid));
        // Root goes nowhere because a user says so.
        if let (Some(dir), Some(_)) = (asker.dir, owner) {
            environment.insert("IO_AUTOTUNE_DIR".to_owned(), dir.to_owned());
        }
        // A name that no other launch has on this host, so that nothing of an earlier one is in the
        // way.
        let place = owner.is_some().then(|| {
            let base = place::base(site.directory.as_deref(), spool);
            let job = name_on_node(&job.cluster, &job.node, job.job_id);
            Place::new(base, format!("{job}.{}", std::process::id()))
        });
        if let Some(place) = &place {
            let path = place.path().display().to_string();
            environment.insert("IO_AUTOTUNE_DIRECTORY".to_owned(), path);
        }
        Ok(Self {
            name: delivered.name.clone(),
            start: site.start.clone(),
            stop: site.stop.clone(),
            owner,
            environment,
            provides: delivered.provides.clone(),
            start_ms: site.start_ms,
            stop_ms: site.stop_ms,
            group: place.as_ref().and_then(|place| {
                let group = cgroup::place(place.name());
                if group.is_none() {
                    let name = &delivered.name;
                    say(&format!(
                        "no control groups here: what the command {name} leaves running is not killed"
                    ));
                }
                group
            }),
            place,
            memory_most: site.memory_mib.saturating_mul(1024 * 1024),
        })
    }

    /// The name of its stop, if that is not the job's name alone.
    pub(super) fn unique_name(&self) -> Option<&str> {
        self.place.as_ref().map(Place::name)
    }

    /// Starts the command, within `most`. Returns the job's variables that it provides.
    pub(crate) fn start(&self, most: Duration) -> io::Result<BTreeMap<String, String>> {
        if let Some(place) = &self.place {
            place.make(self.owner).map_err(io::Error::other)?;
        }
        let limit = Duration::from_millis(self.start_ms).min(most);
        let output = self.run(&self.start, limit)?;
        let mut provided = BTreeMap::new();
        for line in output.lines() {
            if let Some((name, value)) = line.split_once('=')
                && self.provides.iter().any(|known| known == name)
                && is_deliverable_variable(name)
                && is_one_line(value)
            {
                provided.insert(name.to_owned(), value.to_owned());
            }
        }
        match self
            .provides
            .iter()
            .find(|name| !provided.contains_key(*name))
        {
            None => Ok(provided),
            Some(name) => Err(io::Error::other(format!("it has not printed {name}=VALUE"))),
        }
    }

    /// Stops the command, unless `runs` is false, and removes the processes and files that it has
    /// left, for which `removal` is the time. Each step is tried even if others fail.
    pub(super) fn end(&self, runs: bool, removal: Duration) -> io::Result<()> {
        let mut problems = Vec::new();
        let mut tried = |ended: io::Result<()>| {
            problems.extend(ended.err().map(|error| error.to_string()));
        };
        if runs {
            let limit = Duration::from_millis(self.stop_ms);
            tried(self.run(&self.stop, limit).map(drop));
        }
        if let Some(group) = &self.group {
            tried(cgroup::end(group, DYING));
        }
        if let Some(place) = &self.place {
            tried(place.remove(removal));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(io::Error::other(problems.join("; ")))
        }
    }

    fn run(&self, argv: &[String], limit: Duration) -> io::Result<String> {
        let mut command = self.command(argv)?;
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let ended = time_limited::run(&mut command, environment, limit)?;
        if ended.good {
            Ok(ended.output)
        } else {
            Err(io::Error::other(format!("it ended with {}", ended.how)))
        }
    }

    fn command(&self, argv: &[String]) -> io::Result<Command> {
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| io::Error::other("it has no program"))?;
        if let Some(group) = &self.group {
            match cgroup::make(group, self.memory_most) {
                Ok(()) => return Ok(enter_cgroup::command(group, self.owner, argv)),
                Err(error) => say(&format!(
                    "{}: {error}; what the command {} leaves running is not killed",
                    group.display(),
                    self.name
                )),
            }
        }
        let mut command = Command::new(program);
        enter_cgroup::as_user(command.args(arguments), self.owner);
        Ok(command)
    }
}

#[cfg(test)]
pub(crate) fn stand_in(directory: &Path, start: &str) -> Running {
    let shell = |line: &str| vec!["/bin/sh".to_owned(), "-c".to_owned(), line.to_owned()];
    let mark = directory.join("started");
    Running {
        name: "stand-in".into(),
        start: shell(&format!("touch {}; {start}", mark.display())),
        stop: shell(&format!("rm -f {}", mark.display())),
        owner: None,
        environment: BTreeMap::from([("SIZE".to_owned(), "4 GiB".to_owned())]),
        provides: vec!["MOUNT".into()],
        start_ms: 20_000,
        stop_ms: 20_000,
        place: None,
        group: None,
        memory_most: 0,
    }
}

#[cfg(test)]
pub(crate) fn stand_in_that_stops_by(directory: &Path, stop: &str) -> Running {
    let line = format!("cd {}; {stop}", directory.display());
    Running {
        stop: vec!["/bin/sh".to_owned(), "-c".to_owned(), line],
        ..stand_in(directory, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack (environment): A job names a directory, `dir=PATH`, that is not its user's.
    /// Outcome: Only commands that run as the user are told of it, and root acts on none.
    #[test]
    fn a_users_directory_is_told_to_what_runs_as_the_user_alone() {
        let job = crate::testing::job();
        let spool = tempfile::tempdir().unwrap();
        for (run_as, told) in [("user", Some("/project/x")), ("root", None)] {
            let site: SiteCommand = toml::from_str(&format!(
                "name = \"stripe\"\nstart = [\"/bin/true\"]\nstop = [\"/bin/true\"]\nrun_as = \"{run_as}\""
            ))
            .unwrap();
            let delivered = DeliveredCommand {
                name: "stripe".into(),
                environment: Vec::new(),
                provides: Vec::new(),
            };
            for (is_first_node, first) in [(true, "yes"), (false, "no")] {
                let asker = Asker {
                    job: &job,
                    dir: Some("/project/x"),
                    is_first_node,
                };
                let running = Running::new(&delivered, &site, &asker, spool.path()).unwrap();
                let of = |name: &str| running.environment.get(name).map(String::as_str);
                assert_eq!(of("IO_AUTOTUNE_DIR"), told, "{run_as}");
                assert_eq!(of("IO_AUTOTUNE_FIRST_NODE"), Some(first));
            }
        }
    }

    #[test]
    fn what_it_prints_is_believed_as_far_as_it_was_announced() {
        let directory = tempfile::tempdir().unwrap();
        let most = Duration::from_secs(20);
        let says = |line: &str| stand_in(directory.path(), line).start(most);
        let provided = says("echo \"MOUNT=/mnt/$SIZE\"; echo PATH=/evil; echo OTHER=1").unwrap();
        assert_eq!(
            provided,
            BTreeMap::from([("MOUNT".to_owned(), "/mnt/4 GiB".to_owned())])
        );
        assert!(
            says("true")
                .unwrap_err()
                .to_string()
                .contains("not printed MOUNT")
        );
        assert!(says("echo MOUNT=/x; exit 1").is_err());
        let slow = stand_in(directory.path(), "sleep 600");
        let error = slow.start(Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
