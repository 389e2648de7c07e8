//! Privileged settings. The prolog saves the old values and applies the new ones; the epilog
//! restores them in reverse order. After a crash the next prolog or epilog does, or the next boot.

mod command;
mod kernel;
mod online;
mod place;
mod saved;
mod stops;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use io_autotune_protocol::{DeliveredSetting, Delivery, Job, SettingKind};
use serde::{Deserialize, Serialize};

use crate::agent::statistics::given_and_taken;
use crate::config::{NodeConfig, NodeConfigError};
use crate::deadline::Deadline;
use crate::files::{DirectoryError, ensure_top_directory, read_limited};
use crate::output::say;
pub(crate) use command::Asker;
use command::Running;
use kernel::{Kernel, Target};
use online::{Agent, Waiting, Wish};
use saved::{LockError, Saved, SavedDirectory, Value};
use stops::{Stop, Stops};

/// The time that a hook has to remove what a command has left. The timer has its deadline, and the
/// removal at boot has [`place::AT_BOOT`].
const REMOVAL: Duration = Duration::from_millis(300);

/// Pairs of names for one setting. Writing one zeroes the other; the first accepts no zero
/// (kernel/sysctl.c, mm/page-writeback.c).
const TWINS: [(&str, &str); 2] = [
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Outcome {
    InForce {
        values: BTreeMap<String, String>,
        /// Variables of the job that a command provides.
        #[serde(default)]
        provided: BTreeMap<String, String>,
        /// The levers that an agent moves.
        #[serde(default)]
        levers: Vec<GivenLever>,
    },
    NotApplied {
        why: String,
    },
}

/// A lever with its targets when the job begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GivenLever {
    targets: Vec<Target>,
    began: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Config(#[from] NodeConfigError),
    #[error("the old values cannot be saved: {0}")]
    Save(#[from] DirectoryError),
    #[error("{label}: {source}")]
    Io { label: String, source: io::Error },
}

fn at(target: &Target) -> impl FnOnce(io::Error) -> SettingsError {
    let label = target.label();
    move |source| SettingsError::Io { label, source }
}

/// The target of the operations. That of the tests dies before any step, like a killed helper.
trait World {
    fn read(&mut self, target: &Target) -> io::Result<String>;
    fn write(&mut self, target: &Target, value: &str) -> io::Result<()>;
    fn save(&mut self, job_id: u32, saved: &Saved) -> Result<(), DirectoryError>;
    fn forget(&mut self, job_id: u32) -> io::Result<()>;
    fn start(&mut self, command: &Running) -> io::Result<BTreeMap<String, String>>;
    /// Records that the command is to be stopped.
    fn keep_stop(&mut self, job_id: u32, saved: &Saved, command: &Running);
    fn stop(&mut self, job_id: u32, saved: &Saved, command: &Running);
    fn targets(&mut self, kind: SettingKind, name: &str) -> io::Result<Vec<Target>>;
    /// Starts an agent, which moves nothing before it is released.
    fn engage(&mut self, wish: &Wish, levers: &[GivenLever], kept: &[Value]) -> io::Result<Agent>;
    fn release(&mut self) -> io::Result<()>;
    fn end_agent(&mut self, agent: &Agent) -> io::Result<()>;
}

struct Node<'a> {
    kernel: &'a Kernel,
    saved: &'a SavedDirectory,
    boot_id: &'a str,
    most: Duration,
    agent: Option<Waiting>,
}

impl World for Node<'_> {
    fn read(&mut self, target: &Target) -> io::Result<String> {
        self.kernel.read(target)
    }

    fn write(&mut self, target: &Target, value: &str) -> io::Result<()> {
        self.kernel.write(target, value)
    }

    fn save(&mut self, job_id: u32, saved: &Saved) -> Result<(), DirectoryError> {
        self.saved.write(job_id, saved)
    }

    fn forget(&mut self, job_id: u32) -> io::Result<()> {
        self.saved.remove(job_id)
    }

    fn start(&mut self, command: &Running) -> io::Result<BTreeMap<String, String>> {
        command.start(self.most)
    }

    fn keep_stop(&mut self, job_id: u32, saved: &Saved, command: &Running) {
        let stops = Stops::new(self.saved.spool());
        if let Err(error) = stops.add(&self.stop_name(job_id, command), &first(saved, command)) {
            say(&format!("{error}; the command is stopped once at most"));
        }
    }

    fn stop(&mut self, job_id: u32, saved: &Saved, command: &Running) {
        let stops = Stops::new(self.saved.spool());
        let name = self.stop_name(job_id, command);
        stops.attempt(&name, &first(saved, command), self.boot_id, REMOVAL);
    }

    fn targets(&mut self, kind: SettingKind, name: &str) -> io::Result<Vec<Target>> {
        self.kernel.targets(kind, name)
    }

    fn engage(&mut self, wish: &Wish, levers: &[GivenLever], kept: &[Value]) -> io::Result<Agent> {
        let of = |target: &Target| {
            let disturbed = disturbed_by(target);
            let kept = kept
                .iter()
                .filter(|one| disturbed.as_ref() == Some(&one.target));
            kept.map(|one| (one.target.clone(), one.value.clone()))
                .collect()
        };
        let (agent, waiting) = online::engage(&wish.order(self.kernel, levers, of)?)?;
        self.agent = Some(waiting);
        Ok(agent)
    }

    fn release(&mut self) -> io::Result<()> {
        let most = self.most;
        self.agent
            .take()
            .map_or(Ok(()), |waiting| waiting.release(most))
    }

    fn end_agent(&mut self, agent: &Agent) -> io::Result<()> {
        // An agent that waits sees the end of its input.
        self.agent = None;
        agent.end().map(drop)
    }
}

impl Node<'_> {
    fn stop_name(&self, job_id: u32, command: &Running) -> String {
        let unique = command.unique_name().map(str::to_owned);
        unique.unwrap_or_else(|| self.saved.name_of(job_id))
    }
}

fn first(saved: &Saved, command: &Running) -> Stop {
    Stop {
        boot_id: saved.boot_id.clone(),
        tries: 1,
        command: command.clone(),
    }
}

pub(crate) fn is_privileged(delivery: &Delivery) -> bool {
    !delivery.settings.is_empty() || delivery.command.is_some() || delivery.online.is_some()
}

pub(crate) fn apply(
    delivery: &Delivery,
    asker: &Asker<'_>,
    config: Result<&NodeConfig, String>,
    (spool, journal): (&Path, &Path),
    most: Duration,
) -> Outcome {
    let job = asker.job;
    let applied = (|| {
        let config = config.map_err(SettingsError::Refused)?;
        let objections = delivery
            .settings
            .iter()
            .filter_map(|setting| config.objection(setting));
        let others = config.others_on_node(job);
        if let Some(objection) = objections.chain(others).next() {
            return Err(SettingsError::Refused(objection));
        }
        let saved = SavedDirectory::new(spool, &job.cluster, &job.node);
        let in_the_way = |error: DirectoryError| SettingsError::Refused(error.to_string());
        ensure_top_directory(spool).map_err(in_the_way)?;
        let refused = |error: LockError| SettingsError::Refused(error.to_string());
        let _locked = saved.lock().map_err(refused)?;
        if !saved.jobs().map_err(in_the_way)?.is_empty() {
            let why = "what an earlier job changed on this node could not be put back yet";
            return Err(SettingsError::Refused(why.into()));
        }
        let kernel = Kernel::new(&config.settings);
        let wanted = Wanted {
            settings: wanted(&kernel, &delivery.settings)?,
            command: running(delivery, config, asker, spool).map_err(SettingsError::Refused)?,
            online: delivery
                .online
                .as_ref()
                .map(|online| Wish::new(online, config, job, journal))
                .transpose()
                .map_err(SettingsError::Refused)?,
        };
        let boot_id = boot_id()?;
        let mut node = Node {
            kernel: &kernel,
            saved: &saved,
            boot_id: &boot_id,
            most,
            agent: None,
        };
        if wanted
            .command
            .as_ref()
            .is_some_and(|command| command.unique_name().is_none())
        {
            // A pending stop of an earlier launch would stop this launch's command.
            Stops::new(spool).supersede(&saved.name_of(job.job_id));
        }
        let applied = apply_in(&mut node, job.job_id, &boot_id, &wanted);
        saved.tidy();
        applied
    })();
    match applied {
        Ok(Given {
            values,
            provided,
            levers,
        }) => Outcome::InForce {
            values,
            provided,
            levers,
        },
        Err(error) => Outcome::NotApplied {
            why: error.to_string(),
        },
    }
}

pub(crate) fn is_anything_changed(job: &Job, spool: &Path) -> bool {
    let saved = SavedDirectory::new(spool, &job.cluster, &job.node);
    match saved.jobs() {
        Ok(jobs) => jobs.contains(&job.job_id),
        // A directory that cannot be read may have any job's values. If there is no directory, as
        // in a spool that cannot be trusted and has never had any, nothing is saved.
        Err(_) => saved.is_there(),
    }
}

/// The first setting that somebody else has changed: its value, or the file that has it. A file
/// system that was mounted again is another one, without the setting. `left` are the values that an
/// agent has set last, one for each lever.
pub(crate) fn changed_meanwhile(
    in_force: &BTreeMap<String, String>,
    (levers, left): (&[GivenLever], Option<&[u64]>),
    delivery: &Delivery,
    config: &NodeConfig,
) -> Option<String> {
    let kernel = Kernel::new(&config.settings);
    let given = match wanted(&kernel, &delivery.settings) {
        Ok(given) => given,
        Err(error) => return Some(format!("at the end of the job: {error}")),
    };
    let labels = |targets: &[Target]| targets.iter().map(Target::label).collect::<BTreeSet<_>>();
    let now = given.iter().map(|(target, _)| target.label()).collect();
    if let Some(others) = others(&in_force.keys().cloned().collect(), &now) {
        return Some(others);
    }
    let asked = delivery.online.iter().flat_map(|online| &online.levers);
    for (lever, asked) in levers.iter().zip(asked) {
        let now = match kernel.targets(asked.kind, &asked.name) {
            Ok(targets) => labels(&targets),
            Err(error) => return Some(format!("at the end of the job: {}: {error}", asked.name)),
        };
        if let Some(others) = others(&labels(&lever.targets), &now) {
            return Some(others);
        }
    }
    let given = given.iter().filter_map(|(target, _)| {
        let is_moved = levers.iter().any(|lever| lever.targets.contains(target));
        let then = in_force.get(&target.label()).filter(|_| !is_moved)?;
        Some((target, then.clone()))
    });
    let moved = levers.iter().enumerate().flat_map(|(place, lever)| {
        let then = left
            .and_then(|left| left.get(place))
            .unwrap_or(&lever.began);
        lever
            .targets
            .iter()
            .map(move |target| (target, then.to_string()))
    });
    let mut all = given.chain(moved);
    all.find_map(|(target, then)| {
        let label = target.label();
        let now = kernel
            .read(target)
            .unwrap_or_else(|error| error.to_string());
        (now != then).then(|| format!("{label} was {then} and is {now} at the end of the job"))
    })
}

/// A target that had a setting when the job began and is gone, or one that has come since without
/// it.
fn others(then: &BTreeSet<String>, now: &BTreeSet<String>) -> Option<String> {
    let gone = then.difference(now).next();
    let gone =
        gone.map(|label| format!("{label} had its setting and is gone before the job ended"));
    let come = || {
        let come = now.difference(then).next();
        come.map(|label| format!("{label} has come during the job, without its setting"))
    };
    gone.or_else(come)
}

/// The bytes that programs on this node have read and written on Lustre so far; `None` without
/// Lustre.
pub(crate) fn moved_on_lustre(config: &NodeConfig) -> Option<f64> {
    let kernel = Kernel::new(&config.settings);
    let clients = kernel.lustre_devices("llite");
    let of = |client: &String| {
        let path = kernel.lustre_file(&["llite", client, "stats"])?;
        given_and_taken(&std::fs::read_to_string(path).ok()?)
    };
    let moved = clients.iter().map(of).sum::<Option<f64>>();
    moved.filter(|_| !clients.is_empty())
}

/// Ends the agent of a job, if it has one. Returns the reason why its run does not count if the
/// agent had ended before.
pub(crate) fn end_agent(job: &Job, spool: &Path) -> Option<String> {
    let saved = SavedDirectory::new(spool, &job.cluster, &job.node);
    // Values that cannot be read now are tried again when they are put back.
    let is_there = saved.jobs().is_ok_and(|jobs| jobs.contains(&job.job_id));
    let values = is_there.then(|| saved.read(job.job_id).ok()).flatten()?;
    let of_now = boot_id().is_ok_and(|boot_id| boot_id == values.boot_id);
    let agent = values.agent.as_ref().filter(|_| of_now);
    online::end(agent).then(|| "tuning inside the job ended before the job did".to_owned())
}

/// A function that notes that the values saved for a job of this cluster and node are about to be
/// put back.
pub(crate) type Note<'a> = &'a dyn Fn((&str, &str), u32);

/// Restores the changes of jobs on one node or, with `None`, on all nodes of this host.
pub(crate) fn restore(
    node: Option<(&str, &str)>,
    config: &NodeConfig,
    spool: &Path,
    note: Note<'_>,
) {
    let directories = match node {
        Some((cluster, node)) => Ok(vec![SavedDirectory::new(spool, cluster, node)]),
        None => SavedDirectory::all(spool),
    };
    let kernel = Kernel::new(&config.settings);
    let directories = directories.unwrap_or_else(|error| {
        say(&format!("the saved values cannot be read: {error}"));
        Vec::new()
    });
    for saved in directories {
        restore_of(&kernel, &saved, note);
    }
}

/// The lock on the settings of a job's node: no other helper changes them or puts them back until
/// this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    saved: SavedDirectory,
    job_id: u32,
    _lock: Option<File>,
}

/// Keeps other helpers from the settings of a job's node. `None`, with a line in the log, if
/// another helper holds the lock and takes longer.
pub(crate) fn hold(job: &Job, spool: &Path) -> Option<Held> {
    let saved = SavedDirectory::new(spool, &job.cluster, &job.node);
    let locked = ensure_top_directory(spool)
        .map_err(LockError::Cannot)
        .and_then(|()| saved.lock());
    Some(Held {
        _lock: unless_busy(locked)?,
        saved,
        job_id: job.job_id,
    })
}

/// Restores the changes of the job.
pub(crate) fn restore_held(held: &Held, config: &NodeConfig) {
    let kernel = Kernel::new(&config.settings);
    for job_id in jobs_of(&held.saved, |job_id| job_id == held.job_id) {
        restore_job(&kernel, &held.saved, job_id);
    }
    held.saved.tidy();
}

/// If nobody can lock, nobody else holds the lock: leaving settings in force would be worse.
fn unless_busy(locked: Result<File, LockError>) -> Option<Option<File>> {
    match locked {
        Ok(locked) => Some(Some(locked)),
        Err(LockError::Busy) => {
            let again = "settings are not put back now; the next prolog or epilog tries again";
            say(&format!("{}: {again}", LockError::Busy));
            None
        }
        Err(error @ LockError::Cannot(_)) => {
            say(&error.to_string());
            Some(None)
        }
    }
}

fn jobs_of(saved: &SavedDirectory, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let jobs = saved.jobs().unwrap_or_else(|error| {
        say(&format!("the saved values cannot be read: {error}"));
        Vec::new()
    });
    jobs.into_iter()
        .filter(|job_id| is_wanted(*job_id))
        .collect()
}

fn restore_of(kernel: &Kernel, saved: &SavedDirectory, note: Note<'_>) {
    if jobs_of(saved, |_| true).is_empty() && !saved.is_there() {
        return;
    }
    let Some(_locked) = unless_busy(saved.lock()) else {
        return;
    };
    // The helper that had the lock may have put them back.
    for job_id in jobs_of(saved, |_| true) {
        note(saved.of_node(), job_id);
        restore_job(kernel, saved, job_id);
    }
    saved.tidy();
}

fn restore_job(kernel: &Kernel, saved: &SavedDirectory, job_id: u32) {
    match put_back(kernel, saved, job_id) {
        Ok(0) => {}
        Ok(count) => say(&format!(
            "{count} settings are as they were before job {job_id}"
        )),
        Err(problem) => say(&format!(
            "not all settings are as they were before job {job_id}: {problem}; the next prolog or epilog tries again"
        )),
    }
}

/// The timer's part: stops commands that no hook could stop.
pub(crate) fn stop_again(spool: &Path, deadline: Deadline, now: SystemTime) {
    match boot_id() {
        Ok(boot_id) => Stops::new(spool).retry(&boot_id, deadline, Some(now)),
        Err(error) => say(&error.to_string()),
    }
}

/// Removes what commands have left on this host. Only to be called while no job runs.
pub(crate) fn forget_commands(config: &NodeConfig, spool: &Path) {
    let end = Instant::now() + place::AT_BOOT;
    match boot_id() {
        Ok(boot_id) => Stops::new(spool).retry(&boot_id, Deadline { end }, None),
        Err(error) => say(&error.to_string()),
    }
    let named = config
        .commands
        .iter()
        .map(|command| command.directory.as_deref());
    let bases: BTreeSet<_> = named
        .chain([None])
        .map(|directory| place::base(directory, spool))
        .collect();
    for base in bases {
        if let Err(error) = place::forget_all(&base) {
            say(&format!("{}: {error}", base.display()));
        }
    }
}

fn put_back(kernel: &Kernel, saved: &SavedDirectory, job_id: u32) -> Result<usize, String> {
    let values = saved.read(job_id).map_err(|error| error.to_string())?;
    let boot = boot_id().map_err(|error| error.to_string())?;
    let mut node = Node {
        kernel,
        saved,
        boot_id: &boot,
        most: Duration::ZERO,
        agent: None,
    };
    restore_in(&mut node, job_id, &boot, &values)
}

fn boot_id() -> Result<String, SettingsError> {
    let text = read_limited(Path::new("/proc/sys/kernel/random/boot_id"));
    let text = text.map_err(|source| SettingsError::Io {
        label: "boot_id".into(),
        source,
    })?;
    Ok(text.trim().to_owned())
}

struct Wanted {
    settings: Vec<(Target, String)>,
    command: Option<Running>,
    online: Option<Wish>,
}

#[derive(Debug)]
struct Given {
    values: BTreeMap<String, String>,
    provided: BTreeMap<String, String>,
    levers: Vec<GivenLever>,
}

fn running(
    delivery: &Delivery,
    config: &NodeConfig,
    asker: &Asker<'_>,
    spool: &Path,
) -> Result<Option<Running>, String> {
    let Some(delivered) = &delivery.command else {
        return Ok(None);
    };
    let site = config.command(&delivered.name)?;
    Running::new(delivered, site, asker, spool).map(Some)
}

fn wanted(
    kernel: &Kernel,
    settings: &[DeliveredSetting],
) -> Result<Vec<(Target, String)>, SettingsError> {
    let mut wanted = Vec::new();
    for setting in settings {
        let targets = kernel
            .targets(setting.kind, &setting.name)
            .map_err(|source| SettingsError::Io {
                label: setting.name.clone(),
                source,
            })?;
        wanted.extend(
            targets
                .into_iter()
                .map(|target| (target, setting.value.clone())),
        );
    }
    Ok(wanted)
}

/// Saves, writes, reads back and starts. Any failure undoes all steps before it.
fn apply_in(
    world: &mut impl World,
    job_id: u32,
    boot_id: &str,
    wanted: &Wanted,
) -> Result<Given, SettingsError> {
    // Restoring is in reverse order: the first value here is restored last.
    let mut values = Vec::new();
    for disturbed in wanted.settings.iter().filter_map(|(t, _)| disturbed_by(t)) {
        values.push(in_force_of_pair(world, &disturbed)?);
    }
    let kept: Vec<Value> = values
        .iter()
        .filter(|value| keeps_its_value(&value.target))
        .cloned()
        .collect();
    for (target, _) in &wanted.settings {
        if !values.iter().any(|value| value.target == *target) {
            values.push(in_force_of_pair(world, target)?);
        }
    }
    let mut saved = Saved {
        boot_id: boot_id.to_owned(),
        values,
        command: wanted.command.clone(),
        agent: None,
    };
    world.save(job_id, &saved)?;
    let given = write_all(world, &wanted.settings, &kept).and_then(|values| {
        let provided = match &wanted.command {
            Some(command) => world.start(command).map_err(|source| SettingsError::Io {
                label: format!("the command {}", command.name),
                source,
            })?,
            None => BTreeMap::new(),
        };
        // A command may have made the levers available.
        let levers = match &wanted.online {
            Some(wish) => tune_inside(world, job_id, &mut saved, wish)?,
            None => Vec::new(),
        };
        Ok(Given {
            values,
            provided,
            levers,
        })
    });
    if given.is_err()
        && let Err(problem) = restore_in(world, job_id, boot_id, &saved)
    {
        say(&format!(
            "not all settings are as they were before job {job_id}: {problem}; the next prolog or epilog tries again"
        ));
    }
    given
}

/// Saves the values that an agent may change, and releases the agent.
fn tune_inside(
    world: &mut impl World,
    job_id: u32,
    saved: &mut Saved,
    wish: &Wish,
) -> Result<Vec<GivenLever>, SettingsError> {
    let (mut levers, mut kept) = (Vec::new(), Vec::new());
    for (kind, name, _) in &wish.levers {
        let lever = |source| SettingsError::Io {
            label: name.clone(),
            source,
        };
        let targets = world.targets(*kind, name).map_err(lever)?;
        let mut began = BTreeSet::new();
        for target in &targets {
            let value = world.read(target).map_err(at(target))?;
            if let Some(own) = disturbed_by(target) {
                let value = world.read(&own).map_err(at(&own))?;
                keep(saved, &own, &value);
                if keeps_its_value(&own) {
                    kept.push(Value { target: own, value });
                }
            }
            keep(saved, target, &value);
            began.insert(value);
        }
        let number = began.iter().next().and_then(|value| value.parse().ok());
        let (Some(began), 1) = (number, began.len()) else {
            let values: Vec<String> = began.into_iter().collect();
            let values = values.join(", ");
            let why = format!("{name} is to be one number everywhere, and is {values}");
            return Err(SettingsError::Refused(why));
        };
        levers.push(GivenLever { targets, began });
    }
    let agent = |source| SettingsError::Io {
        label: "tuning inside the job".into(),
        source,
    };
    saved.agent = Some(world.engage(wish, &levers, &kept).map_err(agent)?);
    world.save(job_id, saved)?;
    world.release().map_err(agent)?;
    Ok(levers)
}

/// Keeps a value for restoring, unless an earlier one, from before the settings were changed, is
/// saved.
fn keep(saved: &mut Saved, target: &Target, value: &str) {
    if !saved.values.iter().any(|known| known.target == *target) {
        saved.values.push(Value {
            target: target.clone(),
            value: value.to_owned(),
        });
    }
}

/// Writes the settings that disturb others, then `kept` where the kernel has changed it, then the
/// rest.
fn write_all(
    world: &mut impl World,
    wanted: &[(Target, String)],
    kept: &[Value],
) -> Result<BTreeMap<String, String>, SettingsError> {
    let (disturbing, others): (Vec<_>, Vec<_>) = wanted
        .iter()
        .partition(|(target, _)| disturbed_by(target).is_some());
    for (target, value) in disturbing {
        world.write(target, value).map_err(at(target))?;
    }
    for Value { target, value } in kept {
        restore_one(world, target, value).map_err(at(target))?;
    }
    for (target, value) in others {
        world.write(target, value).map_err(at(target))?;
    }
    let mut in_force = BTreeMap::new();
    for (target, value) in wanted {
        let found = world.read(target).map_err(at(target))?;
        if found != *value {
            return Err(SettingsError::Refused(format!(
                "{} was set to {value} and is {found}",
                target.label()
            )));
        }
        in_force.insert(target.label(), found);
    }
    Ok(in_force)
}

/// The target's value; for a pair, the member in force with its value.
fn in_force_of_pair(world: &mut impl World, target: &Target) -> Result<Value, SettingsError> {
    let value = world.read(target).map_err(at(target))?;
    if let Some(twin) = twin(target).filter(|_| value == "0") {
        let value = world.read(&twin).map_err(at(&twin))?;
        return Ok(Value {
            target: twin,
            value,
        });
    }
    Ok(Value {
        target: target.clone(),
        value,
    })
}

fn twin(target: &Target) -> Option<Target> {
    let Target::Sysctl { name } = target else {
        return None;
    };
    let twin = TWINS
        .iter()
        .find_map(|(bytes, ratio)| match name.as_str() {
            name if name == *bytes => Some(*ratio),
            name if name == *ratio => Some(*bytes),
            _ => None,
        })?;
    Some(Target::Sysctl { name: twin.into() })
}

/// The setting that the kernel changes together with this one: a scheduler sets its own
/// `nr_requests` (blk-mq's elevator_switch), a new `max_sectors_kb` recomputes the read-ahead
/// (queue_limits_commit_update), and Lustre raises `max_dirty_mb` to what may be in flight
/// (client_adjust_max_dirty), and does not lower it again.
fn disturbed_by(target: &Target) -> Option<Target> {
    if let Target::Lctl { name } = target {
        let (device, setting) = name.rsplit_once('.')?;
        let in_flight = ["max_pages_per_rpc", "max_rpcs_in_flight"].contains(&setting);
        return (device.starts_with("osc.") && in_flight).then(|| Target::Lctl {
            name: format!("{device}.max_dirty_mb"),
        });
    }
    let Target::Block { device, name } = target else {
        return None;
    };
    let disturbed = match name.as_str() {
        "scheduler" => "nr_requests",
        "max_sectors_kb" => "read_ahead_kb",
        _ => return None,
    };
    Some(Target::Block {
        device: device.clone(),
        name: disturbed.into(),
    })
}

/// Returns true if a disturbed target keeps its old value during the job. `nr_requests` belongs to
/// the scheduler, and Lustre's `max_dirty_mb` to what may be in flight.
fn keeps_its_value(target: &Target) -> bool {
    matches!(target, Target::Block { name, .. } if name == "read_ahead_kb")
}

/// Restores in reverse order, past any failure, and deletes the saved values once all are back.
/// Values of another boot are only deleted, because its settings are gone.
fn restore_in(
    world: &mut impl World,
    job_id: u32,
    boot_id: &str,
    saved: &Saved,
) -> Result<usize, String> {
    let mut problems = Vec::new();
    let mut count = 0;
    if saved.boot_id == boot_id {
        // Otherwise it would move what is put back.
        if let Some(agent) = &saved.agent
            && let Err(error) = world.end_agent(agent)
        {
            problems.push(error.to_string());
        }
        for Value { target, value } in saved.values.iter().rev() {
            match restore_one(world, target, value) {
                Ok(changed) => count += usize::from(changed),
                // Its settings are gone with it: anything that takes its place later has its own.
                Err(error) if error.kind() == io::ErrorKind::NotFound => say(&format!(
                    "{} is gone, and is not set back to {value:?} after job {job_id}",
                    target.label()
                )),
                Err(error) => problems.push(format!("{}: {error}", target.label())),
            }
        }
    }
    // A stop that fails or hangs does not keep a value from being put back, nor does it keep values
    // saved.
    if let Some(command) = &saved.command {
        world.keep_stop(job_id, saved, command);
    }
    let forgotten = if problems.is_empty() {
        world.forget(job_id).map_err(|error| error.to_string())
    } else {
        let values_alone = Saved {
            command: None,
            ..saved.clone()
        };
        let kept = world.save(job_id, &values_alone);
        problems.extend(kept.err().map(|error| error.to_string()));
        Err(problems.join("; "))
    };
    if let Some(command) = &saved.command {
        world.stop(job_id, saved, command);
    }
    forgotten.map(|()| count)
}

/// Restores a value. Returns true if it was different.
fn restore_one(world: &mut impl World, target: &Target, value: &str) -> io::Result<bool> {
    if world.read(target)? == value {
        return Ok(false);
    }
    world.write(target, value)?;
    let found = world.read(target)?;
    if found == value {
        Ok(true)
    } else {
        Err(io::Error::other(format!(
            "set back to {value}, it is {found}"
        )))
    }
}

/// Saves, as a prolog does, that a job has changed nothing and has this process as its agent.
/// Returns the path.
#[cfg(test)]
pub(crate) fn save_with_agent(spool: &Path, job: &Job, pid: u32) -> std::path::PathBuf {
    let saved = Saved {
        boot_id: boot_id().unwrap(),
        values: Vec::new(),
        command: None,
        agent: Some(online::process(pid)),
    };
    let directory = SavedDirectory::new(spool, &job.cluster, &job.node);
    directory.write(job.job_id, &saved).unwrap();
    let node = spool.join("saved").join(&job.cluster).join(&job.node);
    node.join(format!("{}.json", job.job_id))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use io_autotune_online::Lever;
    use io_autotune_protocol::OnlinePolicy;

    use super::*;
    use crate::testing;

    const JOB: u32 = 7;

    fn asker(job: &Job) -> Asker<'_> {
        Asker {
            job,
            dir: None,
            is_first_node: true,
        }
    }

    /// A world with the kernel's own rules for pairs and queues, which a tree of files lacks, and
    /// with death after a number of steps.
    struct Mortal<'a> {
        node: Node<'a>,
        steps: usize,
        engaged: Vec<Target>,
    }

    impl Mortal<'_> {
        fn step(&mut self) -> io::Result<()> {
            self.steps = self
                .steps
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("killed"))?;
            Ok(())
        }
    }

    impl World for Mortal<'_> {
        fn read(&mut self, target: &Target) -> io::Result<String> {
            self.step()?;
            self.node.read(target)
        }

        fn write(&mut self, target: &Target, value: &str) -> io::Result<()> {
            self.step()?;
            self.node.write(target, value)?;
            if let Some(disturbed) = disturbed_by(target) {
                self.node.write(&disturbed, "777")?;
            }
            match twin(target) {
                Some(twin) => self.node.write(&twin, "0"),
                None => Ok(()),
            }
        }

        fn save(&mut self, job_id: u32, saved: &Saved) -> Result<(), DirectoryError> {
            let killed = |source| DirectoryError::Io {
                path: "saved".into(),
                source,
            };
            self.step().map_err(killed)?;
            self.node.save(job_id, saved)
        }

        fn forget(&mut self, job_id: u32) -> io::Result<()> {
            self.step()?;
            self.node.forget(job_id)
        }

        fn start(&mut self, command: &Running) -> io::Result<BTreeMap<String, String>> {
            self.step()?;
            self.node.start(command)
        }

        fn keep_stop(&mut self, job_id: u32, saved: &Saved, command: &Running) {
            if self.step().is_ok() {
                self.node.keep_stop(job_id, saved, command);
            }
        }

        fn stop(&mut self, job_id: u32, saved: &Saved, command: &Running) {
            if self.step().is_ok() {
                self.node.stop(job_id, saved, command);
            }
        }

        fn targets(&mut self, kind: SettingKind, name: &str) -> io::Result<Vec<Target>> {
            self.step()?;
            self.node.targets(kind, name)
        }

        /// A stand-in for the agent's process, which moves all levers as soon as it may.
        fn engage(&mut self, _: &Wish, levers: &[GivenLever], kept: &[Value]) -> io::Result<Agent> {
            self.step()?;
            assert_eq!(kept.len(), 1);
            self.engaged = levers
                .iter()
                .flat_map(|lever| lever.targets.clone())
                .collect();
            Ok(online::nobody())
        }

        fn release(&mut self) -> io::Result<()> {
            self.step()?;
            for target in std::mem::take(&mut self.engaged) {
                self.node.write(&target, "9")?;
                if let Some(disturbed) = disturbed_by(&target) {
                    self.node.write(&disturbed, "777")?;
                }
            }
            // The helper may be killed once the agent is released.
            self.step()
        }

        fn end_agent(&mut self, agent: &Agent) -> io::Result<()> {
            self.step()?;
            self.node.end_agent(agent)
        }
    }

    fn sysctl(name: &str) -> Target {
        Target::Sysctl { name: name.into() }
    }

    fn block(name: &str) -> Target {
        Target::Block {
            device: "loop9".into(),
            name: name.into(),
        }
    }

    fn asked(place: &Place) -> Wanted {
        let settings = [
            (sysctl("vm.dirty_background_bytes"), "1048576"),
            (sysctl("vm.dirty_bytes"), "4194304"),
            (sysctl("vm.dirty_expire_centisecs"), "100"),
            (block("read_ahead_kb"), "4096"),
            (block("max_sectors_kb"), "256"),
        ]
        .map(|(target, value)| (target, value.to_owned()));
        Wanted {
            settings: settings.into(),
            command: Some(command::stand_in(place.root.path(), "echo MOUNT=/mnt")),
            online: Some(Wish {
                policy: OnlinePolicy::Settling,
                levers: ["max_sectors_kb", "nr_requests"]
                    .map(|name| {
                        (
                            SettingKind::Block,
                            name.to_owned(),
                            Lever {
                                least: 4,
                                most: 512,
                            },
                        )
                    })
                    .into(),
                period_ms: 10_000,
                statistics: None,
                journal: place.root.path().join("journal"),
                name: "c.n1.7.1".into(),
            }),
        }
    }

    const ALL: [&str; 5] = [
        "vm.dirty_bytes",
        "vm.dirty_ratio",
        "vm.dirty_background_bytes",
        "vm.dirty_background_ratio",
        "vm.dirty_expire_centisecs",
    ];

    fn values(kernel: &Kernel) -> Vec<String> {
        let queue = [
            "read_ahead_kb",
            "max_sectors_kb",
            "nr_requests",
            "scheduler",
        ];
        let targets = ALL.map(sysctl).into_iter().chain(queue.map(block));
        targets
            .map(|target| kernel.read(&target).unwrap())
            .collect()
    }

    struct Place {
        root: tempfile::TempDir,
        kernel: Kernel,
        saved: SavedDirectory,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        let kernel = kernel::stand_in(root.path());
        let saved = SavedDirectory::new(&root.path().join("spool"), "c", "n1");
        Place {
            root,
            kernel,
            saved,
        }
    }

    impl Place {
        fn mortal(&self, steps: usize) -> Mortal<'_> {
            Mortal {
                node: Node {
                    kernel: &self.kernel,
                    saved: &self.saved,
                    boot_id: "boot",
                    most: Duration::from_secs(20),
                    agent: None,
                },
                steps,
                engaged: Vec::new(),
            }
        }

        fn is_started(&self) -> bool {
            self.root.path().join("started").exists()
        }

        /// Acts as a hook that comes later.
        fn sweep(&self, steps: usize) {
            for job_id in self.saved.jobs().unwrap() {
                let saved = self.saved.read(job_id).unwrap();
                let _ = restore_in(&mut self.mortal(steps), job_id, "boot", &saved);
            }
        }

        /// Acts as the timer does a while later.
        fn stop_again(&self) {
            let end = Instant::now() + Duration::from_secs(20);
            Stops::new(self.saved.spool()).retry("boot", Deadline { end }, None);
        }
    }

    #[test]
    fn settings_are_applied_and_put_back() {
        let place = place();
        let before = values(&place.kernel);
        let given = apply_in(&mut place.mortal(1000), JOB, "boot", &asked(&place)).unwrap();
        let (in_force, provided) = (given.values, given.provided);
        assert_eq!(given.levers[0].began, 256, "as the study sets it");
        assert_eq!(given.levers[1].began, 256);
        assert_eq!(place.kernel.read(&block("nr_requests")).unwrap(), "9");
        assert_eq!(provided["MOUNT"], "/mnt");
        assert!(place.is_started());
        assert_eq!(in_force["vm.dirty_bytes"], "4194304");
        assert_eq!(in_force["loop9/read_ahead_kb"], "4096");
        assert_eq!(place.kernel.read(&sysctl("vm.dirty_ratio")).unwrap(), "0");
        let saved = place.saved.read(JOB).unwrap();
        assert_eq!(
            saved.values[2].target,
            sysctl("vm.dirty_ratio"),
            "of the pair what was in force"
        );
        place.sweep(1000);
        assert_eq!(values(&place.kernel), before);
        assert!(!place.is_started());
        assert!(place.saved.jobs().unwrap().is_empty());
        place.saved.tidy();
        assert!(!place.root.path().join("spool/saved").exists());
    }

    #[test]
    fn whoever_is_killed_wherever_the_next_hook_puts_everything_back() {
        let mut applied = false;
        let mut killed_at = 0;
        while !applied {
            let place = place();
            let before = values(&place.kernel);
            applied = apply_in(&mut place.mortal(killed_at), JOB, "boot", &asked(&place)).is_ok();
            // The hooks that put it back are killed at every step too, one after the other.
            let mut swept = 0;
            while !place.saved.jobs().unwrap().is_empty() {
                place.sweep(swept);
                swept += 1;
                assert!(
                    swept < 100,
                    "killed at step {killed_at}: it is never put back"
                );
            }
            assert_eq!(values(&place.kernel), before, "killed at step {killed_at}");
            place.stop_again();
            assert!(
                !place.is_started(),
                "killed at step {killed_at}: the command is not stopped"
            );
            killed_at += 1;
        }
        // It reads, saves once, writes, and reads back.
        assert!(
            killed_at > 12,
            "{killed_at} steps are too few to have been all"
        );
    }

    #[test]
    fn a_value_that_does_not_take_effect_leaves_nothing_behind() {
        let place = place();
        let before = values(&place.kernel);
        let mut wanted = asked(&place);
        wanted
            .settings
            .push((block("scheduler"), "bfq [kyber]".into()));
        let error = apply_in(&mut place.mortal(1000), JOB, "boot", &wanted).unwrap_err();
        assert!(error.to_string().contains("and is kyber"), "{error}");
        assert_eq!(values(&place.kernel), before);
        assert!(place.saved.jobs().unwrap().is_empty());
        wanted = asked(&place);
        wanted.settings.push((sysctl("vm.none"), "1".into()));
        assert!(apply_in(&mut place.mortal(1000), JOB, "boot", &wanted).is_err());
        assert_eq!(values(&place.kernel), before);
    }

    #[test]
    fn what_the_kernel_changes_along_is_put_back_after_what_disturbs_it() {
        let place = place();
        let before = values(&place.kernel);
        let read = |name| place.kernel.read(&block(name)).unwrap();
        let mut wanted = Wanted {
            settings: vec![(block("max_sectors_kb"), "256".into())],
            command: None,
            online: None,
        };
        apply_in(&mut place.mortal(1000), JOB, "boot", &wanted).unwrap();
        assert_eq!(
            read("read_ahead_kb"),
            "128",
            "nobody asked for another in the job"
        );
        place.sweep(1000);
        assert_eq!(values(&place.kernel), before);

        // A stand-in's list, once written, does not show the value in force in brackets.
        let scheduler = before.last().unwrap();
        let others = [
            ("nr_requests", "64"),
            ("read_ahead_kb", "512"),
            ("scheduler", "none"),
            ("max_sectors_kb", "256"),
        ];
        wanted.settings = others
            .map(|(name, value)| (block(name), value.to_owned()))
            .into();
        let given = apply_in(&mut place.mortal(1000), JOB, "boot", &wanted).unwrap();
        assert_eq!(
            given.values.len(),
            4,
            "each holds what was asked for, whatever the order"
        );
        place.sweep(1000);
        assert_eq!(values(&place.kernel), before);
        assert_eq!(read("scheduler"), *scheduler);
    }

    #[test]
    fn a_command_that_fails_leaves_nothing_behind() {
        let place = place();
        let before = values(&place.kernel);
        let mut wanted = asked(&place);
        wanted.command = Some(command::stand_in(place.root.path(), "exit 1"));
        let error = apply_in(&mut place.mortal(1000), JOB, "boot", &wanted).unwrap_err();
        assert!(
            error.to_string().contains("the command stand-in"),
            "{error}"
        );
        assert_eq!(values(&place.kernel), before);
        assert!(!place.is_started());
        assert!(place.saved.jobs().unwrap().is_empty());
    }

    #[test]
    fn one_that_cannot_be_put_back_does_not_keep_the_others() {
        let place = place();
        apply_in(&mut place.mortal(1000), JOB, "boot", &asked(&place)).unwrap();
        let expire = place.root.path().join("proc_sys/vm/dirty_expire_centisecs");
        fs::remove_file(&expire).unwrap();
        fs::create_dir(&expire).unwrap();
        place.sweep(1000);
        assert_eq!(place.kernel.read(&sysctl("vm.dirty_ratio")).unwrap(), "20");
        assert_eq!(place.kernel.read(&block("read_ahead_kb")).unwrap(), "128");
        assert_eq!(place.saved.jobs().unwrap(), [JOB], "it is tried again");
        fs::remove_dir(&expire).unwrap();
        place.sweep(1000);
        assert!(
            place.saved.jobs().unwrap().is_empty(),
            "it has gone, and so has its value"
        );
    }

    /// Attack (files): A user stops or traces what a command started, or a stop always fails.
    /// Outcome: It is killed with its control group; a stop is tried twenty times, and then
    /// `doctor` tells an admin.
    #[test]
    fn a_stop_that_fails_keeps_no_value_and_no_later_job() {
        let place = place();
        let before = values(&place.kernel);
        let mut wanted = asked(&place);
        wanted.command = Some(command::stand_in_that_stops_by(
            place.root.path(),
            "test -e mended || exit 1; rm -f started",
        ));
        // For a command that takes effect without a start.
        let start = apply_in(&mut place.mortal(1000), JOB, "boot", &wanted);
        assert!(start.unwrap_err().to_string().contains("not printed"));
        assert_eq!(values(&place.kernel), before);
        assert!(place.saved.jobs().unwrap().is_empty(), "it is in the way");
        assert!(place.is_started());
        fs::write(place.root.path().join("mended"), "").unwrap();
        place.stop_again();
        assert!(!place.is_started(), "it is not tried again");
        assert!(!place.saved.spool().join("stops").exists());
    }

    /// A client of Lustre, with an lctl whose parameters are the files below its directory.
    struct Lustre {
        root: tempfile::TempDir,
        config: NodeConfig,
    }

    impl Lustre {
        fn mounted(instance: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            let lctl = root.path().join("lctl");
            let osc = root.path().join("sys/fs/lustre");
            let script = format!(
                "#!/bin/sh\ncd {} || exit 1\nfile=$(echo \"${{3%%=*}}\" | tr . /)\n\
                 case \"$1 $2\" in\n'get_param -N') ls -d $file | tr / . ;;\n\
                 'get_param -n') cat \"$file\" ;;\n\
                 'set_param -n') [ -e \"$file\" ] && echo \"${{3#*=}}\" >\"$file\" ;;\nesac\n",
                osc.display()
            );
            fs::write(&lctl, script).unwrap();
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&lctl, executable).unwrap();
            let config = format!(
                "[exclusive]\ncpus = 8\n[settings]\nlctl = {lctl:?}\nsys = {:?}\nproc = {:?}\n\
                 [[settings.allow]]\nkind = \"lctl\"\nname = \"osc.*.max_dirty_mb\"\nmin = 1\nmax = 4096\n\
                 [[settings.allow]]\nkind = \"lctl\"\nname = \"osc.*.max_rpcs_in_flight\"\nmin = 1\nmax = 256\n",
                root.path().join("sys"),
                root.path().join("proc"),
            );
            let config = toml::from_str(&config).unwrap();
            let lustre = Self { root, config };
            lustre.mount(instance);
            lustre
        }

        fn file(&self, instance: &str) -> std::path::PathBuf {
            let target = format!("sys/fs/lustre/osc/l-OST0000-osc-{instance}/max_dirty_mb");
            self.root.path().join(target)
        }

        fn mount(&self, instance: &str) {
            let file = self.file(instance);
            let directory = file.parent().unwrap();
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("max_rpcs_in_flight"), "8\n").unwrap();
            fs::write(file, "2000\n").unwrap();
        }

        fn unmount(&self, instance: &str) {
            fs::remove_dir_all(self.file(instance).parent().unwrap()).unwrap();
        }

        fn spool(&self) -> std::path::PathBuf {
            self.root.path().join("spool")
        }

        fn delivery() -> Delivery {
            Delivery {
                settings: vec![DeliveredSetting {
                    kind: SettingKind::Lctl,
                    name: "osc.*.max_dirty_mb".into(),
                    value: "64".into(),
                }],
                ..Delivery::default()
            }
        }

        fn applied(&self) -> Outcome {
            self.given(&Self::delivery())
        }

        fn given(&self, delivery: &Delivery) -> Outcome {
            let job = Job {
                job_id: JOB,
                ..testing::job()
            };
            let journal = self.root.path().join("journal");
            apply(
                delivery,
                &asker(&job),
                Ok(&self.config),
                (&self.spool(), &journal),
                Duration::from_secs(20),
            )
        }

        fn in_force(&self) -> BTreeMap<String, String> {
            match self.applied() {
                Outcome::InForce { values, .. } => values,
                other => panic!("{other:?}"),
            }
        }

        fn changed(&self, values: &BTreeMap<String, String>) -> Option<String> {
            changed_meanwhile(values, (&[], None), &Self::delivery(), &self.config)
        }

        fn restore(&self) {
            restore(Some(("c", "n1")), &self.config, &self.spool(), &|_, _| {});
        }
    }

    /// client_adjust_max_dirty raises it with what may be in flight, and does not lower it again.
    ///
    /// Promise: a setting stays changed after a job
    #[test]
    fn what_lustre_raises_along_is_put_back_too() {
        let lustre = Lustre::mounted("ff9a");
        let delivery = Delivery {
            settings: vec![DeliveredSetting {
                kind: SettingKind::Lctl,
                name: "osc.*.max_rpcs_in_flight".into(),
                value: "256".into(),
            }],
            ..Delivery::default()
        };
        let outcome = lustre.given(&delivery);
        assert!(matches!(outcome, Outcome::InForce { .. }), "{outcome:?}");
        let file = lustre.file("ff9a");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "2000\n",
            "it is Lustre's to raise during the job"
        );
        fs::write(&file, "4096\n").unwrap();
        lustre.restore();
        let put_back = |name: &str| fs::read_to_string(file.with_file_name(name)).unwrap();
        assert_eq!(put_back("max_dirty_mb").trim(), "2000");
        assert_eq!(put_back("max_rpcs_in_flight").trim(), "8");
    }

    /// Attack (files): A file system is mounted under another name while a job has a setting of it.
    /// Outcome: The run does not count, and the value is forgotten with a line.
    ///
    /// Promise: a failed run is taken for a fast one
    #[test]
    fn a_mount_that_came_again_is_another_and_has_no_setting() {
        let lustre = Lustre::mounted("ff9a");
        let values = lustre.in_force();
        assert_eq!(lustre.changed(&values), None);
        lustre.unmount("ff9a");
        let gone = lustre.changed(&values).unwrap();
        assert!(gone.contains("at the end of the job"), "{gone}");
        lustre.mount("ff9b");
        let other = lustre.changed(&values).unwrap();
        assert!(
            other.contains("osc-ff9a.max_dirty_mb had its setting and is gone"),
            "{other}"
        );
        lustre.restore();
        let value = fs::read_to_string(lustre.file("ff9b")).unwrap();
        assert_eq!(value.trim(), "2000", "it was never another");
        lustre.in_force();
        // A file system that was mounted in addition.
        let values = BTreeMap::from([("osc.l-OST0000-osc-ff9b.max_dirty_mb".into(), "64".into())]);
        assert_eq!(lustre.changed(&values), None);
        lustre.mount("ff9c");
        let come = lustre.changed(&values).unwrap();
        assert!(come.contains("osc-ff9c.max_dirty_mb has come"), "{come}");
    }

    /// Attack (files): A late epilog puts settings back while the next job's prolog changes them.
    /// Outcome: One waits for the other, or leaves the settings to a later hook.
    ///
    /// Promise: a setting stays changed after a job
    #[test]
    fn only_one_helper_at_a_time_changes_settings_and_what_is_saved_of_them() {
        let lustre = Lustre::mounted("ff9a");
        let saved = SavedDirectory::new(&lustre.spool(), "c", "n1");
        fs::create_dir(lustre.spool()).unwrap();
        let other = saved.lock().unwrap();
        let Outcome::NotApplied { why } = lustre.applied() else {
            panic!("both change settings")
        };
        assert!(why.contains("another helper"), "{why}");
        drop(other);
        lustre.in_force();
        let other = saved.lock().unwrap();
        lustre.restore();
        let value = || fs::read_to_string(lustre.file("ff9a")).unwrap();
        assert_eq!(value().trim(), "64");
        assert_eq!(saved.jobs().unwrap(), [JOB]);
        drop(other);
        lustre.restore();
        assert_eq!(value().trim(), "2000");
        assert!(saved.jobs().unwrap().is_empty());
    }

    /// Attack (files): The spool, or a directory of ours, is a link, a file, full, read-only, or
    /// writable by others.
    /// Outcome: The helper says so and does not use it; whole reports wait in memory.
    #[test]
    fn in_a_spool_that_is_not_trusted_only_what_is_there_may_be_any_jobs() {
        let spool = tempfile::tempdir().unwrap();
        let open = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(spool.path(), mode).unwrap();
        };
        let (own, other) = (
            crate::testing::job(),
            Job {
                job_id: 8,
                ..crate::testing::job()
            },
        );
        open(0o777);
        assert!(!is_anything_changed(&own, spool.path()));
        open(0o711);
        let saved = Saved {
            boot_id: "boot".into(),
            values: Vec::new(),
            command: None,
            agent: None,
        };
        let directory = SavedDirectory::new(spool.path(), &other.cluster, &other.node);
        directory.write(other.job_id, &saved).unwrap();
        assert!(!is_anything_changed(&own, spool.path()));
        assert!(is_anything_changed(&other, spool.path()));
        open(0o777);
        assert!(is_anything_changed(&own, spool.path()));
    }

    #[test]
    fn a_value_stays_saved_while_only_the_program_that_sets_it_fails() {
        let lustre = Lustre::mounted("ff9a");
        lustre.in_force();
        let lctl = lustre.root.path().join("lctl");
        let works = fs::read_to_string(&lctl).unwrap();
        for fails in ["#!/bin/sh\nexit 2\n", "#!/nonexistent\n"] {
            fs::write(&lctl, fails).unwrap();
            lustre.restore();
            assert!(matches!(lustre.applied(), Outcome::NotApplied { .. }));
        }
        fs::write(&lctl, works).unwrap();
        lustre.restore();
        let value = fs::read_to_string(lustre.file("ff9a")).unwrap();
        assert_eq!(value.trim(), "2000");
    }

    #[test]
    fn a_parameter_that_lies_deeper_is_gone_only_if_its_file_is() {
        let lustre = Lustre::mounted("ff9a");
        let file = lustre
            .root
            .path()
            .join("sys/fs/lustre/ldlm/namespaces/l-OST0000/lru_max_age");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "3900000\n").unwrap();
        fs::write(lustre.root.path().join("lctl"), "#!/bin/sh\nexit 2\n").unwrap();
        let kernel = Kernel::new(&lustre.config.settings);
        let target = Target::Lctl {
            name: "ldlm.namespaces.l-OST0000.lru_max_age".into(),
        };
        let kind = || kernel.read(&target).unwrap_err().kind();
        assert_eq!(kind(), io::ErrorKind::InvalidInput);
        fs::remove_file(file).unwrap();
        assert_eq!(kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_another_boot_had_is_not_put_back() {
        let place = place();
        apply_in(&mut place.mortal(1000), JOB, "boot", &asked(&place)).unwrap();
        let saved = place.saved.read(JOB).unwrap();
        assert_eq!(
            restore_in(&mut place.mortal(1000), JOB, "next boot", &saved),
            Ok(0)
        );
        assert_eq!(
            place
                .kernel
                .read(&sysctl("vm.dirty_expire_centisecs"))
                .unwrap(),
            "100"
        );
        assert!(place.saved.jobs().unwrap().is_empty());
    }

    #[test]
    fn what_the_node_does_not_allow_is_not_applied() {
        let root = tempfile::tempdir().unwrap();
        kernel::stand_in(root.path());
        let setting = DeliveredSetting {
            kind: SettingKind::Sysctl,
            name: "vm.dirty_expire_centisecs".into(),
            value: "100".into(),
        };
        let job = |cpus: &str| Job {
            job_id: JOB,
            cpus_per_node: cpus.into(),
            ..testing::job()
        };
        let allowing: NodeConfig = toml::from_str(&format!(
            "[exclusive]\ncpus = 8\n[settings]\nproc_sys = {:?}\n[[settings.allow]]\nkind = \"sysctl\"\nname = \"vm.dirty_expire_centisecs\"\nmin = 100\nmax = 200\n",
            root.path().join("proc_sys")
        ))
        .unwrap();
        let nothing = NodeConfig::default();
        let spool = root.path().join("spool");
        let delivery = Delivery {
            settings: vec![setting.clone()],
            ..Delivery::default()
        };
        let most = Duration::from_secs(20);
        let tried = |cpus: &str, config: Result<&NodeConfig, String>| {
            apply(
                &delivery,
                &asker(&job(cpus)),
                config,
                (&spool, &root.path().join("journal")),
                most,
            )
        };
        for (outcome, expected) in [
            (tried("8", Ok(&nothing)), "node.toml allows"),
            (tried("4", Ok(&allowing)), "--exclusive"),
            (tried("8", Err("node.toml is broken".into())), "is broken"),
        ] {
            let Outcome::NotApplied { why } = outcome else {
                panic!("{outcome:?}")
            };
            assert!(why.contains(expected), "{why}");
        }
        let Outcome::InForce { values, .. } = tried("8", Ok(&allowing)) else {
            panic!("it is allowed")
        };
        assert_eq!(values["vm.dirty_expire_centisecs"], "100");
        let changed = || changed_meanwhile(&values, (&[], None), &delivery, &allowing);
        assert_eq!(changed(), None);
        let file = root.path().join("proc_sys/vm/dirty_expire_centisecs");
        fs::write(&file, "700\n").unwrap();
        let told = changed().unwrap();
        assert!(told.contains("is 700"), "{told}");
        // A value that an agent has set is not a change; a value that differs from the one it has
        // left is one.
        let lever = GivenLever {
            targets: vec![sysctl("vm.dirty_expire_centisecs")],
            began: 100,
        };
        for (left, is_changed) in [(Some([700]), false), (Some([300]), true), (None, true)] {
            let left = left.as_ref().map(<[u64; 1]>::as_slice);
            let levers = std::slice::from_ref(&lever);
            let told = changed_meanwhile(&values, (levers, left), &delivery, &allowing);
            assert_eq!(told.is_some(), is_changed, "{told:?}");
        }
        // While an earlier job's values are not back, nothing else is changed.
        assert!(matches!(
            tried("8", Ok(&allowing)),
            Outcome::NotApplied { .. }
        ));
        restore(Some(("c", "n1")), &allowing, &spool, &|_, _| {});
        assert_eq!(fs::read_to_string(&file).unwrap(), "3000\n");
        assert!(!spool.join("saved").exists());
    }
}
