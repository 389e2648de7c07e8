//! Tuning inside the job, as hooks see it: the levers, the agent's start, and its end.
//!
//! An agent is identified by its process id and the time of its start, which are on disk before it
//! moves anything.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use io_autotune_online::Lever;
use io_autotune_protocol::{DeliveredOnline, Job, OnlinePolicy, SettingKind};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::kernel::{Kernel, Target};
use crate::agent::statistics::{Format, Source};
use crate::agent::{GO, LeverFiles, MEMORY_MOST, Order, READY};
use crate::cgroup;
use crate::config::NodeConfig;
use crate::files::check_owned;
use crate::job::name_on_node;
use crate::output::say;

/// The part of the prolog's time that an agent has to become ready, which takes about a
/// millisecond.
const COMING: Duration = Duration::from_millis(300);
/// The time in which a last turn may end, and in which a killed process has to die.
const TURN: Duration = Duration::from_millis(100);
const DYING: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The tuning that the job's parametrization asks for, before any file is looked up.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) policy: OnlinePolicy,
    pub(super) levers: Vec<(SettingKind, String, Lever)>,
    pub(super) period_ms: u64,
    pub(super) statistics: Option<PathBuf>,
    pub(super) journal: PathBuf,
    /// The name of the agent's control group.
    pub(super) name: String,
}

/// A running agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agent {
    pid: u32,
    /// The start in clock ticks since boot: no other process with this id has the same (`starttime`
    /// in proc_pid_stat(5)).
    started: u64,
    group: Option<PathBuf>,
}

/// An agent that waits to be released. It ends if this is dropped.
pub(super) struct Waiting {
    input: ChildStdin,
    child: Child,
}

impl Wish {
    pub(super) fn new(
        delivered: &DeliveredOnline,
        config: &NodeConfig,
        job: &Job,
        journal: &Path,
    ) -> Result<Self, String> {
        let levers = delivered.levers.iter().map(|lever| {
            let range = config.range(lever)?;
            Ok((lever.kind, lever.name.clone(), range))
        });
        if config.online.period_ms == 0 {
            return Err("[online] period_ms in this node's node.toml must be at least 1".into());
        }
        let name = name_on_node(&job.cluster, &job.node, job.job_id);
        Ok(Self {
            policy: delivered.policy,
            levers: levers.collect::<Result<_, String>>()?,
            period_ms: config.online.period_ms,
            statistics: config.online.statistics.clone(),
            journal: journal.to_owned(),
            name: format!("{name}.{}.online", std::process::id()),
        })
    }

    /// The order for the agent. `levers` are their targets, in the order of the wish.
    pub(super) fn order(
        &self,
        kernel: &Kernel,
        levers: &[super::GivenLever],
        kept: impl Fn(&Target) -> Vec<(Target, String)>,
    ) -> io::Result<Order> {
        let files =
            |((_, name, range), given): (&(SettingKind, String, Lever), &super::GivenLever)| {
                let targets = given.targets.iter();
                let kept = given.targets.iter().flat_map(&kept);
                Ok(LeverFiles {
                    name: name.clone(),
                    least: range.least,
                    most: range.most,
                    began: given.began,
                    files: targets
                        .map(|target| kernel.file(target))
                        .collect::<io::Result<_>>()?,
                    kept: kept
                        .map(|(target, value)| Ok((kernel.file(&target)?, value)))
                        .collect::<io::Result<_>>()?,
                })
            };
        let all: Vec<&Target> = levers.iter().flat_map(|lever| &lever.targets).collect();
        Ok(Order {
            policy: self.policy,
            period_ms: self.period_ms,
            levers: self
                .levers
                .iter()
                .zip(levers)
                .map(files)
                .collect::<io::Result<_>>()?,
            sources: sources(kernel, &all, self.statistics.as_deref())?,
            journal: self.journal.clone(),
            group: cgroup::place(&self.name),
        })
    }
}

/// The files with statistics of the levers' path.
fn sources(kernel: &Kernel, targets: &[&Target], own: Option<&Path>) -> io::Result<Vec<Source>> {
    let mut found: Vec<Source> = Vec::new();
    let mut add = |path: PathBuf, format| {
        let source = Source { path, format };
        if !found.contains(&source) {
            found.push(source);
        }
    };
    for target in targets {
        match target {
            Target::Block { device, .. } => {
                add(
                    kernel.below_sys(&format!("block/{device}/stat")),
                    Format::BlockStat,
                );
                add(kernel.below_proc("vmstat"), Format::Vmstat);
                add(kernel.below_proc("meminfo"), Format::Meminfo);
            }
            Target::Lctl { name } => {
                let device = name.split('.').nth(1).unwrap_or_default();
                let of = |parts: &[&str]| {
                    let missing = || {
                        let why = format!("{} is nowhere on this node", parts.join("."));
                        io::Error::new(io::ErrorKind::NotFound, why)
                    };
                    kernel.lustre_file(parts).ok_or_else(missing)
                };
                add(of(&["osc", device, "stats"])?, Format::Osc);
                add(of(&["osc", device, "cur_dirty_bytes"])?, Format::OscDirty);
                // lfs-OST0000-osc-ffff... is a target of lfs-ffff...
                let system = device
                    .split_once("-OST")
                    .map_or(device, |(system, _)| system);
                for client in kernel.lustre_devices("llite") {
                    if client
                        .rsplit_once('-')
                        .is_some_and(|(name, _)| name == system)
                    {
                        add(of(&["llite", &client, "stats"])?, Format::Llite);
                    }
                }
            }
            Target::Fuse { device, .. } if own.is_none() => {
                let path = format!("kernel/debug/bdi/{device}/stats");
                add(kernel.below_sys(&path), Format::Bdi);
            }
            Target::Fuse { .. } | Target::File { .. } => {
                let path = own.ok_or_else(|| {
                    io::Error::other("[online] statistics in node.toml names no file")
                })?;
                check_owned(path).map_err(io::Error::other)?;
                add(path.to_owned(), Format::Named);
            }
            Target::Sysctl { name } | Target::Nfs { name, .. } => {
                return Err(io::Error::other(format!("{name} is no lever")));
            }
        }
    }
    Ok(found)
}

/// Starts an agent, which then waits.
pub(super) fn engage(order: &Order) -> io::Result<(Agent, Waiting)> {
    if let Some(group) = &order.group {
        cgroup::make(group, MEMORY_MOST)?;
    }
    let mut child = Command::new("/proc/self/exe")
        .arg("agent")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut input) = child.stdin.take() else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let agent = Agent {
        pid: child.id(),
        // It is this process's child, so no other process has its id.
        started: started(child.id()).ok_or(io::ErrorKind::NotFound)?,
        group: order.group.clone(),
    };
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    // An agent that could not start does not read it.
    input.write_all(&line)?;
    Ok((agent, Waiting { input, child }))
}

impl Waiting {
    /// Releases the agent, once it is ready.
    pub(super) fn release(mut self, most: Duration) -> io::Result<()> {
        let Some(output) = self.child.stdout.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let most = u16::try_from(COMING.min(most).as_millis()).unwrap_or(u16::MAX);
        let mut waits = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if poll(&mut waits, PollTimeout::from(most))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut said = String::new();
        BufReader::new(output).read_line(&mut said)?;
        if said != READY {
            let why = if said.is_empty() {
                "it has ended"
            } else {
                said.trim_end()
            };
            return Err(io::Error::other(why.to_owned()));
        }
        self.input.write_all(GO.as_bytes())
    }
}

impl Agent {
    /// Ends the agent. Returns false if it had ended before.
    pub(crate) fn end(&self) -> io::Result<bool> {
        let lives = self.lives();
        if lives {
            for (signal, patience) in [(Signal::SIGTERM, TURN), (Signal::SIGKILL, DYING)] {
                self.signal(signal)?;
                if self.ends_within(patience) {
                    break;
                }
            }
        }
        if let Some(group) = &self.group {
            cgroup::end(group, DYING)?;
        }
        if self.lives() {
            return Err(io::Error::other(format!(
                "the agent, process {}, does not die",
                self.pid
            )));
        }
        Ok(lives)
    }

    fn lives(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.lives() {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(LOOK_AGAIN);
        }
        true
    }

    /// Signals the process only if it is the agent by its start. It is held by a pidfd while that
    /// is checked; before Linux 5.3 there is no such hold.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let Ok(pid) = i32::try_from(self.pid) else {
            return Ok(());
        };
        let held = rustix::process::Pid::from_raw(pid)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if !self.lives() {
            return Ok(());
        }
        let Some(held) = held else {
            return Ok(kill(Pid::from_raw(pid), signal)?);
        };
        let signal = match signal {
            Signal::SIGTERM => rustix::process::Signal::TERM,
            _ => rustix::process::Signal::KILL,
        };
        match pidfd_send_signal(held, signal) {
            // It has just ended.
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

/// The start of a process; `None` if there is none, or if its parent has not yet waited for its
/// end.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is its name, which may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(started)
}

/// Ends a job's agent, if it has one, before its last values are read. Returns true if it had ended
/// by itself.
pub(super) fn end(agent: Option<&Agent>) -> bool {
    match agent.map(Agent::end) {
        None | Some(Ok(true)) => false,
        Some(Ok(false)) => true,
        Some(Err(error)) => {
            say(&error.to_string());
            false
        }
    }
}

/// The agent for a process.
#[cfg(test)]
pub(super) fn process(pid: u32) -> Agent {
    Agent {
        pid,
        started: started(pid).unwrap(),
        group: None,
    }
}

/// An agent whose process is gone.
#[cfg(test)]
pub(super) fn nobody() -> Agent {
    Agent {
        pid: u32::MAX,
        started: 0,
        group: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_of(child: &Child) -> Agent {
        Agent {
            pid: child.id(),
            started: started(child.id()).unwrap(),
            group: None,
        }
    }

    /// Attack (files): Another process has an agent's process id by now.
    /// Outcome: It is not ended, because the id counts only with its start time.
    #[test]
    fn only_the_process_that_was_started_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let agent = agent_of(&child);
        let other = Agent {
            started: agent.started + 1,
            ..agent.clone()
        };
        assert!(!other.end().unwrap(), "another process of this id");
        assert!(child.try_wait().unwrap().is_none());
        assert!(agent.end().unwrap());
        assert!(
            !agent.end().unwrap(),
            "it has ended, and nobody has waited for it"
        );
        assert!(!child.wait().unwrap().success());
        assert!(!agent.end().unwrap());
    }

    #[test]
    fn one_that_does_not_heed_is_killed() {
        let script = "trap '' TERM; echo up; while :; do sleep 1; done";
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(agent_of(&child).end().unwrap());
        assert!(!child.wait().unwrap().success());
    }

    fn made(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn formats(found: &[Source]) -> Vec<(String, Format)> {
        let name = |source: &Source| source.path.display().to_string();
        found.iter().map(|one| (name(one), one.format)).collect()
    }

    /// The places of statistics in 2.12, and in 2.15 and 2.16.
    #[test]
    fn lustre_s_statistics_are_those_of_the_levers_file_system() {
        for (stats, llite) in [
            (
                "proc/fs/lustre/osc/l-OST0000-osc-ff/stats",
                "proc/fs/lustre/llite",
            ),
            (
                "sys/kernel/debug/lustre/osc/l-OST0000-osc-ff/stats",
                "sys/kernel/debug/lustre/llite",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let kernel = super::super::kernel::stand_in(root.path());
            let (own, other) = (
                format!("{llite}/l-ff/stats"),
                format!("{llite}/l2-ff/stats"),
            );
            made(
                root.path(),
                &[
                    (stats, ""),
                    ("sys/fs/lustre/osc/l-OST0000-osc-ff/cur_dirty_bytes", "0\n"),
                    (&own, ""),
                    (&other, ""),
                ],
            );
            let target = Target::Lctl {
                name: "osc.l-OST0000-osc-ff.max_rpcs_in_flight".into(),
            };
            let found = sources(&kernel, &[&target, &target], None).unwrap();
            let expected = [
                (stats, Format::Osc),
                (
                    "sys/fs/lustre/osc/l-OST0000-osc-ff/cur_dirty_bytes",
                    Format::OscDirty,
                ),
                (own.as_str(), Format::Llite),
            ]
            .map(|(path, format)| (root.path().join(path).display().to_string(), format));
            assert_eq!(formats(&found), expected);
        }
    }

    #[test]
    fn levers_without_statistics_are_none() {
        let root = tempfile::tempdir().unwrap();
        let kernel = super::super::kernel::stand_in(root.path());
        let lever = Target::File {
            name: "lever".into(),
        };
        let error = sources(&kernel, &[&lever], None).unwrap_err().to_string();
        assert!(error.contains("[online] statistics"), "{error}");
        let own = root.path().join("statistics");
        assert!(
            sources(&kernel, &[&lever], Some(&own)).is_err(),
            "there is no such file"
        );
        fs::write(&own, "moved_bytes 1\n").unwrap();
        let found = sources(&kernel, &[&lever], Some(&own)).unwrap();
        assert_eq!(found[0].format, Format::Named);
        let missing = Target::Lctl {
            name: "osc.none.max_rpcs_in_flight".into(),
        };
        let error = sources(&kernel, &[&missing], None).unwrap_err().to_string();
        assert!(error.contains("osc.none.stats"), "{error}");
    }
}
