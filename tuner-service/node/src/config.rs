//! `node.toml`, which is beside `client.toml`: the changes that root allows accelerators to make.
//! Without the file none are allowed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use io_autotune_configuration::{File, Mistake, Shown, ShownError, parse, text};
use io_autotune_online::Lever;
use io_autotune_protocol::{ConfigError, DeliveredSetting, Job, OnlineLever, SettingKind};
use serde::{Deserialize, Serialize};

use crate::files::read_own_bytes;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeConfigError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} must be a file of uid {uid} that nobody else can write")]
    Untrusted { path: PathBuf, uid: u32 },
    #[error("{path}: {source}")]
    Syntax { path: PathBuf, source: Mistake },
    #[error(transparent)]
    Client(#[from] ConfigError),
    #[error(transparent)]
    Shown(#[from] ShownError),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NodeConfig {
    pub(crate) exclusive: Exclusive,
    pub(crate) settings: Settings,
    pub(crate) online: Online,
    pub(crate) commands: Vec<SiteCommand>,
}

/// The settings of tuning inside the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Online {
    /// The period in milliseconds, in each of which the policy decides once.
    pub(crate) period_ms: u64,
    /// For levers of the kinds file and fuse: a file of root's with statistics of the path.
    pub(crate) statistics: Option<PathBuf>,
}

impl Default for Online {
    fn default() -> Self {
        Self {
            // The period of the published policy.
            period_ms: 10_000,
            statistics: None,
        }
    }
}

/// A command of the site that accelerators may name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteCommand {
    pub(crate) name: String,
    /// The program, by absolute path, and its arguments; run before the job.
    pub(crate) start: Vec<String>,
    /// The same for the program that is run after the job and after a failed start.
    pub(crate) stop: Vec<String>,
    #[serde(default)]
    pub(crate) run_as: RunAs,
    /// The directory below which a job's directory is made for a command that runs as the user; the
    /// spool unless set.
    pub(crate) directory: Option<PathBuf>,
    /// The most memory of a command that runs as the user, in MiB.
    #[serde(default = "SiteCommand::default_mib")]
    pub(crate) memory_mib: u64,
    /// Milliseconds after which the start is killed; the job then runs without it.
    #[serde(default = "SiteCommand::default_ms")]
    pub(crate) start_ms: u64,
    /// Milliseconds after which the stop is killed; the timer tries again.
    #[serde(default = "SiteCommand::default_ms")]
    pub(crate) stop_ms: u64,
    /// The default runs that have it too; unless set, a default run starts nothing.
    pub(crate) default_runs: Option<DefaultRuns>,
}

/// The default runs that have a command, and what their jobs find where it does not start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefaultRuns {
    /// The accelerators, by one of which a job has asked.
    pub(crate) of: Vec<String>,
    /// Variables of the job. The command has to print each of them when it starts.
    pub(crate) otherwise: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunAs {
    /// The command runs as the job's user and group, without other groups.
    #[default]
    User,
    Root,
}

impl SiteCommand {
    fn default_ms() -> u64 {
        1000
    }

    fn default_mib() -> u64 {
        4096
    }
}

/// The conditions under which a job has the node to itself. Slurm only tells the prolog how many
/// CPUs the job has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exclusive {
    /// The number of the node's CPUs as in slurm.conf; by default that of this host.
    pub(crate) cpus: Option<u32>,
    /// Partitions that give a CPU to one job only (not `OverSubscribe=FORCE` or `YES`); empty: all.
    pub(crate) partitions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The block devices whose queues may be changed: names in /sys/block.
    pub(crate) block_devices: Vec<String>,
    /// The mount points of the FUSE file systems whose settings may be changed.
    pub(crate) fuse_mounts: Vec<PathBuf>,
    /// The mount points of the NFS file systems whose read-ahead may be changed.
    pub(crate) nfs_mounts: Vec<PathBuf>,
    pub(crate) lctl: PathBuf,
    /// The kernel's directories. Tests use other paths.
    pub(crate) proc: PathBuf,
    pub(crate) proc_sys: PathBuf,
    pub(crate) sys: PathBuf,
    pub(crate) allow: Vec<Allowed>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            block_devices: Vec::new(),
            fuse_mounts: Vec::new(),
            nfs_mounts: Vec::new(),
            lctl: "/usr/sbin/lctl".into(),
            proc: "/proc".into(),
            proc_sys: "/proc/sys".into(),
            sys: "/sys".into(),
            allow: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    pub(crate) kind: SettingKind,
    pub(crate) name: String,
    /// The path of a setting of the kind file. The file must be root's, in directories of root's.
    pub(crate) path: Option<PathBuf>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

impl NodeConfig {
    /// The path of `node.toml`, which is beside `client.toml`.
    pub(crate) fn path_beside(client_toml: &Path) -> PathBuf {
        client_toml.with_file_name("node.toml")
    }

    pub(crate) fn load(path: &Path) -> Result<Self, NodeConfigError> {
        Ok(Self::read(path)?.0)
    }

    /// Adds the configuration in force with this file, below a table `node`.
    pub(crate) fn show(path: &Path, shown: &mut Shown) -> Result<(), NodeConfigError> {
        let (config, text) = Self::read(path)?;
        let file = File {
            path,
            text: text.as_deref(),
            renamed: &[],
        };
        Ok(shown.file("node", &config, file)?)
    }

    /// Reads the configuration and its text, which is `None` if there is no file.
    fn read(path: &Path) -> Result<(Self, Option<String>), NodeConfigError> {
        let unreadable = |source| NodeConfigError::Io {
            path: path.to_owned(),
            source,
        };
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::default(), None));
            }
            other => other.map_err(unreadable)?,
        };
        let uid = fs::metadata("/proc/self").map_err(unreadable)?.uid();
        if !metadata.is_file() || metadata.uid() != uid || metadata.mode() & 0o022 != 0 {
            let path = path.to_owned();
            return Err(NodeConfigError::Untrusted { path, uid });
        }
        let bytes = read_own_bytes(path).map_err(unreadable)?;
        let text = text(bytes).map_err(|source| unreadable(source.into()))?;
        let config = parse(&text).map_err(|source| NodeConfigError::Syntax {
            path: path.to_owned(),
            source,
        })?;
        Ok((config, Some(text)))
    }

    /// The reason why a setting may not have this value; `None` if it may.
    pub(crate) fn objection(&self, setting: &DeliveredSetting) -> Option<String> {
        let Some(allowed) = self.allowed(setting.kind, &setting.name) else {
            return Some(not_allowed(setting.kind, &setting.name));
        };
        let in_range = || {
            let number: u64 = setting.value.parse().ok()?;
            let (min, max) = (allowed.min?, allowed.max?);
            (min..=max).contains(&number).then_some(())
        };
        if allowed.values.contains(&setting.value) || in_range().is_some() {
            return None;
        }
        Some(format!(
            "{} = {} is out of the range that this node's node.toml allows",
            setting.name, setting.value
        ))
    }

    fn allowed(&self, kind: SettingKind, name: &str) -> Option<&Allowed> {
        let mut all = self.settings.allow.iter();
        all.find(|allowed| allowed.kind == kind && allowed.name == name)
    }

    /// The range of a setting that may be moved while a job runs, or the reason why it may not.
    pub(crate) fn range(&self, lever: &OnlineLever) -> Result<Lever, String> {
        let OnlineLever { kind, name } = lever;
        let allowed = self
            .allowed(*kind, name)
            .ok_or_else(|| not_allowed(*kind, name))?;
        match (allowed.min, allowed.max) {
            (Some(least), Some(most)) if 0 < least && least <= most => Ok(Lever { least, most }),
            _ => Err(format!(
                "{kind} {name} has no range from min, at least 1, to max in this node's node.toml"
            )),
        }
    }

    pub(crate) fn command(&self, name: &str) -> Result<&SiteCommand, String> {
        let named = self.commands.iter().find(|command| command.name == name);
        let command = named.ok_or_else(|| {
            format!("this node's node.toml has no [[commands]] with the name {name:?}")
        })?;
        let absolute =
            |argv: &[String]| argv.first().is_some_and(|program| program.starts_with('/'));
        if command
            .directory
            .as_ref()
            .is_some_and(|directory| !directory.is_absolute())
        {
            Err(format!(
                "[[commands]] {name:?} in this node's node.toml: directory needs a whole path"
            ))
        } else if absolute(&command.start) && absolute(&command.stop) {
            Ok(command)
        } else {
            Err(format!(
                "[[commands]] {name:?} in this node's node.toml: start and stop need a program by its whole path"
            ))
        }
    }

    pub(crate) fn others_on_node(&self, job: &Job) -> Option<String> {
        let partitions = &self.exclusive.partitions;
        if !partitions.is_empty() && !partitions.contains(&job.partition) {
            return Some(format!(
                "partition {} may give a CPU to several jobs ([exclusive] partitions in node.toml)",
                job.partition
            ));
        }
        let Some(cpus) = self.exclusive.cpus.or_else(host_cpus) else {
            return Some("the node's CPUs are not known: set [exclusive] cpus in node.toml".into());
        };
        let has_all = fewest_cpus(&job.cpus_per_node).is_some_and(|fewest| fewest >= cpus);
        (!has_all).then(|| {
            format!(
                "the job has {} of the node's {cpus} CPUs, so that others may be on it: submit it with --exclusive",
                job.cpus_per_node
            )
        })
    }
}

fn not_allowed(kind: SettingKind, name: &str) -> String {
    format!("{kind} {name} is not among the settings that this node's node.toml allows")
}

/// The fewest CPUs that a job has on any of its nodes, from Slurm's notation: `8(x2),16`.
fn fewest_cpus(notation: &str) -> Option<u32> {
    let counts = notation.split(',').map(|part| {
        let count = part.split_once("(x").map_or(part, |(count, _)| count);
        count.parse::<u32>().ok()
    });
    counts.collect::<Option<Vec<u32>>>()?.into_iter().min()
}

/// The number of the host's online CPUs, whatever this process's affinity is.
fn host_cpus() -> Option<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let mut count = 0;
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing;

    fn config(text: &str) -> NodeConfig {
        toml::from_str(text).unwrap()
    }

    fn setting(name: &str, value: &str) -> DeliveredSetting {
        DeliveredSetting {
            kind: SettingKind::Sysctl,
            name: name.into(),
            value: value.into(),
        }
    }

    #[test]
    fn the_shipped_sample_is_read_and_allows_nothing() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/etc/node.toml");
        let shipped = config(&fs::read_to_string(path).unwrap());
        assert!(shipped.settings.allow.is_empty());
        assert!(
            shipped
                .objection(&setting("vm.dirty_bytes", "1048576"))
                .is_some()
        );
        let none = NodeConfig::load(Path::new("/nonexistent/node.toml")).unwrap();
        assert!(none.settings.allow.is_empty());
    }

    /// Attack (parsers): A file of an admin's.
    #[test]
    fn fuzz_node_toml() {
        let sample = "[exclusive]\ncpus = 8\npartitions = [\"main\"]\n[[settings.allow]]\nkind = \"sysctl\"\n\
                      name = \"vm.dirty_bytes\"\nmin = 1048576\nmax = 4194304\n[[commands]]\nname = \"a\"\n\
                      start = [\"/bin/true\"]\nstop = [\"/bin/true\"]\nrun_as = \"root\"\n";
        let asked = setting("vm.dirty_bytes", "1048575");
        io_autotune_fuzzing::Target::new("node_toml", &[sample])
            .rounds(5000)
            .run(|input| {
                let Ok(text) = str::from_utf8(input) else {
                    return;
                };
                match toml::from_str::<NodeConfig>(text) {
                    Ok(config) => {
                        let _ = config.objection(&asked);
                        let _ = config.others_on_node(&testing::job());
                        if let Ok(command) = config.command("a") {
                            assert!(command.start[0].starts_with('/'));
                        }
                    }
                    Err(error) => assert!(error.to_string().contains("line"), "{error}"),
                }
            });
    }

    #[test]
    fn only_what_is_named_may_be_changed_and_only_in_its_range() {
        let config = config(
            r#"
            [[settings.allow]]
            kind = "sysctl"
            name = "vm.dirty_bytes"
            min = 1048576
            max = 4194304
            [[settings.allow]]
            kind = "block"
            name = "scheduler"
            values = ["none", "mq-deadline"]
            [[settings.allow]]
            kind = "sysctl"
            name = "vm.swappiness"
            "#,
        );
        assert_eq!(
            config.objection(&setting("vm.dirty_bytes", "1048576")),
            None
        );
        for (name, value) in [
            ("vm.dirty_bytes", "1048575"),
            ("vm.dirty_bytes", "4194305"),
            ("vm.dirty_bytes", "-1"),
            ("vm.dirty_bytes", "2097152 "),
            ("vm.dirty_ratio", "20"),
            ("kernel.core_pattern", "|/bin/x"),
            ("vm.swappiness", "10"),
            // It is allowed for a block device's queue, but not as a sysctl.
            ("scheduler", "none"),
        ] {
            assert!(
                config.objection(&setting(name, value)).is_some(),
                "{name}={value}"
            );
        }
        let mut block = setting("scheduler", "none");
        block.kind = SettingKind::Block;
        assert_eq!(config.objection(&block), None);
        block.value = "bfq".into();
        assert!(config.objection(&block).is_some());
    }

    #[test]
    fn what_is_shown_is_read_again_as_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        let sample = include_str!("../../../deploy/etc/node.toml");
        let every: String = sample
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with("[[") || rest.contains(" = ") => rest,
                _ => line,
            })
            .filter(|line| {
                line.is_empty()
                    || line.starts_with('#')
                    || toml::from_str::<toml::Table>(line).is_ok()
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let of = |text: Option<&str>| {
            let _ = fs::remove_file(&path);
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
            }
            let mut shown = Shown::default();
            NodeConfig::show(&path, &mut shown).unwrap();
            let shown = shown.text();
            let read = toml::from_str::<toml::Table>(&shown).unwrap()["node"].clone();
            let config = NodeConfig::load(&path).unwrap();
            assert_eq!(read.try_into::<NodeConfig>().unwrap(), config, "{shown}");
            (shown, config)
        };
        let (shown, config) = of(Some(&every));
        assert_eq!((config.settings.allow.len(), config.commands.len()), (4, 1));
        assert!(shown.contains("memory_mib = 4096 # /"), "{shown}");
        assert!(of(Some(sample)).0.contains("period_ms = 10000 # default"));
        assert!(!of(None).0.contains("node.toml"));
    }

    #[test]
    fn a_typing_mistake_is_named() {
        for (wrong, right) in [
            ("[exclusive]\ncpu = 8\n", "cpus"),
            ("[setings]\n", "settings"),
            ("[[settings.allow]]\nkind = \"sysctrl\"\n", "sysctl"),
            ("[[settings.allow]]\nkinds = \"sysctl\"\n", "kind"),
            ("[[commands]]\nrunas = \"user\"\n", "run_as"),
        ] {
            let error = parse::<NodeConfig>(wrong).unwrap_err().to_string();
            let expected = format!("did you mean `{right}`?");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn a_command_is_run_by_its_whole_path() {
        let config = config(
            "[[commands]]\nname = \"a\"\nstart = [\"/bin/true\"]\nstop = [\"/bin/true\"]\n\
             [[commands]]\nname = \"b\"\nstart = [\"true\"]\nstop = []\nrun_as = \"root\"\n",
        );
        let command = config.command("a").unwrap();
        assert_eq!((command.run_as, command.start_ms), (RunAs::User, 1000));
        assert!(config.command("b").unwrap_err().contains("whole path"));
        assert!(config.command("c").unwrap_err().contains("no [[commands]]"));
    }

    #[test]
    fn a_file_is_utf_8_with_or_without_a_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        fs::write(&path, "\u{feff}[exclusive]\r\ncpus = 8\r\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(NodeConfig::load(&path).unwrap().exclusive.cpus, Some(8));
        fs::write(&path, b"[exclusive]\ncpus = 8 # f\xfcr alle\n").unwrap();
        let error = NodeConfig::load(&path).unwrap_err().to_string();
        assert!(error.contains("line 2 is not in UTF-8"), "{error}");
    }

    /// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
    /// writable by others.
    #[test]
    fn a_file_that_others_can_write_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        fs::write(&path, "[exclusive]\ncpus = 8\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(NodeConfig::load(&path).unwrap().exclusive.cpus, Some(8));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(
            NodeConfig::load(&path),
            Err(NodeConfigError::Untrusted { .. })
        ));
        fs::write(&path, "[exclusive]\ncpu = 8\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            NodeConfig::load(&path),
            Err(NodeConfigError::Syntax { .. })
        ));
    }

    #[test]
    fn a_job_with_all_cpus_of_its_nodes_has_them_to_itself() {
        let job = |cpus: &str, partition: &str| Job {
            nodes: 2,
            partition: partition.into(),
            cpus_per_node: cpus.into(),
            ..testing::job()
        };
        let config = config("[exclusive]\ncpus = 8\npartitions = [\"main\"]\n");
        for cpus in ["8", "8(x2)", "8,16(x3)"] {
            assert_eq!(config.others_on_node(&job(cpus, "main")), None, "{cpus}");
        }
        for cpus in ["4", "8(x2),7", "16,4", "x", ""] {
            assert!(
                config.others_on_node(&job(cpus, "main")).is_some(),
                "{cpus}"
            );
        }
        assert!(config.others_on_node(&job("8", "shared")).is_some());
        assert!(host_cpus().is_some_and(|cpus| cpus >= 1));
    }
}
