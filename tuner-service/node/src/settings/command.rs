//! The site's commands, which start something for a job and stop it again.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use io_autotune_protocol::{DeliveredCommand, Job, is_deliverable_variable};
use serde::{Deserialize, Serialize};

use crate::config::{RunAs, SiteCommand};
use crate::files::is_one_line;
use crate::limited;

/// A command for one job. All that is needed to stop it is saved before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Running {
    pub(crate) name: String,
    start: Vec<String>,
    stop: Vec<String>,
    /// Uid and gid; `None` for root.
    owner: Option<(u32, u32)>,
    environment: BTreeMap<String, String>,
    provides: Vec<String>,
    start_ms: u64,
    stop_ms: u64,
}

impl Running {
    pub(crate) fn new(
        delivered: &DeliveredCommand,
        site: &SiteCommand,
        job: &Job,
    ) -> Result<Self, String> {
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
        ] {
            environment.insert(name.to_owned(), value);
        }
        Ok(Self {
            name: delivered.name.clone(),
            start: site.start.clone(),
            stop: site.stop.clone(),
            owner: (site.run_as == RunAs::User).then_some((job.uid, job.gid)),
            environment,
            provides: delivered.provides.clone(),
            start_ms: site.start_ms,
            stop_ms: site.stop_ms,
        })
    }

    /// Starts it, within `most`; returns the job's variables that it provides.
    pub(crate) fn start(&self, most: Duration) -> io::Result<BTreeMap<String, String>> {
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

    pub(crate) fn stop(&self) -> io::Result<()> {
        self.run(&self.stop, Duration::from_millis(self.stop_ms))
            .map(drop)
    }

    fn run(&self, argv: &[String], limit: Duration) -> io::Result<String> {
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| io::Error::other("it has no program"))?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some((uid, gid)) = self.owner {
            // Setting a uid makes the standard library drop root's supplementary groups.
            command.gid(gid).uid(uid);
        }
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let ended = limited::run(&mut command, environment, limit)?;
        if ended.good {
            Ok(ended.output)
        } else {
            Err(io::Error::other(format!("it ended with {}", ended.how)))
        }
    }
}

#[cfg(test)]
pub(crate) fn stand_in(directory: &std::path::Path, start: &str) -> Running {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
