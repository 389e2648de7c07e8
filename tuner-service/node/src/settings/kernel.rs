//! Where settings live: below /proc/sys, in a block device's queue, or in Lustre.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use io_autotune_protocol::{DeliveredSetting, SettingKind};
use serde::{Deserialize, Serialize};

use crate::config::Settings;
use crate::files::read_limited;
use crate::limited;

/// lctl is quick: it asks only this node's kernel.
const LCTL_LIMIT: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub(crate) enum Target {
    /// Below /proc/sys, with dots for slashes.
    Sysctl { name: String },
    /// In the queue of a block device.
    Block { device: String, name: String },
    /// By its full name.
    Lctl { name: String },
}

impl Target {
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Sysctl { name } | Self::Lctl { name } => name.clone(),
            Self::Block { device, name } => format!("{device}/{name}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    proc_sys: PathBuf,
    sys: PathBuf,
    block_devices: Vec<String>,
    lctl: PathBuf,
}

impl Kernel {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            proc_sys: settings.proc_sys.clone(),
            sys: settings.sys.clone(),
            block_devices: settings.block_devices.clone(),
            lctl: settings.lctl.clone(),
        }
    }

    /// All block devices' queues in node.toml, or the Lustre parameters that match the pattern.
    pub(crate) fn targets(&self, setting: &DeliveredSetting) -> io::Result<Vec<Target>> {
        if !setting.kind.takes_name(&setting.name) {
            return Err(refused(&setting.name, "is no name of a setting"));
        }
        let name = setting.name.clone();
        let found: Vec<Target> = match setting.kind {
            SettingKind::Sysctl => vec![Target::Sysctl { name }],
            SettingKind::Block => {
                let devices = self.block_devices.iter();
                devices
                    .map(|device| Target::Block {
                        device: device.clone(),
                        name: name.clone(),
                    })
                    .collect()
            }
            SettingKind::Lctl => {
                let output = self.lctl(&["get_param", "-N", &name])?;
                let names = output
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty());
                names
                    .map(|name| Target::Lctl {
                        name: name.to_owned(),
                    })
                    .collect()
            }
        };
        if found.is_empty() {
            return Err(refused(&setting.name, "is nowhere on this node"));
        }
        Ok(found)
    }

    pub(crate) fn read(&self, target: &Target) -> io::Result<String> {
        let text = match self.path(target)? {
            Some(path) => read_limited(&path)?,
            None => self.lctl(&["get_param", "-n", &target.label()])?,
        };
        let text = text.trim();
        // A list shows the value in force in brackets: `none [mq-deadline]`.
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map_or(text, |(chosen, _)| chosen);
        Ok(chosen.to_owned())
    }

    pub(crate) fn write(&self, target: &Target, value: &str) -> io::Result<()> {
        match self.path(target)? {
            // The kernel ignores the truncation; the tests' tree needs it.
            Some(path) => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(path)?
                .write_all(format!("{value}\n").as_bytes()),
            None => {
                let assignment = format!("{}={value}", target.label());
                self.lctl(&["set_param", "-n", &assignment]).map(drop)
            }
        }
    }

    /// The target's file; `None` for lctl's. It lies below its root, and no component is a link,
    /// except the kernel's own from /sys/block into /sys/devices.
    fn path(&self, target: &Target) -> io::Result<Option<PathBuf>> {
        let (root, components) = match target {
            Target::Sysctl { name } => (self.proc_sys.clone(), name.split('.').collect::<Vec<_>>()),
            Target::Block { device, name } => {
                if !is_component(device) {
                    return Err(refused(device, "is no name of a block device"));
                }
                let root = fs::canonicalize(self.sys.join("block").join(device))?;
                let devices = fs::canonicalize(&self.sys)?.join("devices");
                if !root.starts_with(&devices) || root.file_name() != Some(device.as_ref()) {
                    return Err(refused(device, "leads out of /sys/devices"));
                }
                (root, vec!["queue", name.as_str()])
            }
            Target::Lctl { name } if is_lustre_name(name) => return Ok(None),
            Target::Lctl { name } => return Err(refused(name, "is no parameter of Lustre's")),
        };
        plain_file(root, &components).map(Some)
    }

    fn lctl(&self, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new(&self.lctl);
        let ended = limited::run(command.args(arguments), [], LCTL_LIMIT)?;
        if ended.good {
            Ok(ended.output)
        } else {
            let words = arguments.join(" ");
            Err(io::Error::other(format!(
                "lctl {words} ended with {}",
                ended.how
            )))
        }
    }
}

fn refused(name: &str, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} {why}"))
}

fn is_component(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && !text.starts_with('.')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '!'))
}

/// Without patterns: `osc.lfs-OST0000-osc-ffff9a.max_rpcs_in_flight`.
fn is_lustre_name(name: &str) -> bool {
    name.len() <= 256
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '@'))
}

fn plain_file(root: PathBuf, components: &[&str]) -> io::Result<PathBuf> {
    let mut path = root;
    for (place, component) in components.iter().enumerate() {
        if !is_component(component) {
            return Err(refused(component, "is no part of a setting's name"));
        }
        path.push(component);
        let kind = fs::symlink_metadata(&path)?.file_type();
        let last = place + 1 == components.len();
        if !(if last { kind.is_file() } else { kind.is_dir() }) {
            return Err(refused(
                &path.display().to_string(),
                "is not a plain file or directory",
            ));
        }
    }
    Ok(path)
}

#[cfg(test)]
pub(crate) fn stand_in(root: &std::path::Path) -> Kernel {
    let vm = root.join("proc_sys/vm");
    let queue = root.join("sys/devices/virtual/block/loop9/queue");
    fs::create_dir_all(&vm).unwrap();
    fs::create_dir_all(&queue).unwrap();
    fs::create_dir_all(root.join("sys/block")).unwrap();
    for (name, value) in [
        ("dirty_bytes", "0"),
        ("dirty_ratio", "20"),
        ("dirty_background_bytes", "0"),
        ("dirty_background_ratio", "10"),
        ("dirty_expire_centisecs", "3000"),
    ] {
        fs::write(vm.join(name), format!("{value}\n")).unwrap();
    }
    fs::write(queue.join("read_ahead_kb"), "128\n").unwrap();
    fs::write(queue.join("max_sectors_kb"), "1280\n").unwrap();
    fs::write(queue.join("nr_requests"), "256\n").unwrap();
    fs::write(queue.join("scheduler"), "none [mq-deadline]\n").unwrap();
    std::os::unix::fs::symlink(
        "../devices/virtual/block/loop9",
        root.join("sys/block/loop9"),
    )
    .unwrap();
    Kernel {
        proc_sys: root.join("proc_sys"),
        sys: root.join("sys"),
        block_devices: vec!["loop9".into()],
        lctl: "/nonexistent/lctl".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn sysctl(name: &str) -> Target {
        Target::Sysctl { name: name.into() }
    }

    #[test]
    fn values_are_read_and_written() {
        let root = tempfile::tempdir().unwrap();
        let kernel = stand_in(root.path());
        let target = sysctl("vm.dirty_ratio");
        kernel.write(&target, "7").unwrap();
        assert_eq!(kernel.read(&target).unwrap(), "7");
        let setting = DeliveredSetting {
            kind: SettingKind::Block,
            name: "scheduler".into(),
            value: "none".into(),
        };
        let [target] = &kernel.targets(&setting).unwrap()[..] else {
            panic!("one device")
        };
        assert_eq!(target.label(), "loop9/scheduler");
        assert_eq!(kernel.read(target).unwrap(), "mq-deadline");
    }

    #[test]
    fn nothing_leads_out_of_the_kernels_trees() {
        let root = tempfile::tempdir().unwrap();
        let kernel = stand_in(root.path());
        let outside = root.path().join("outside");
        fs::create_dir_all(outside.join("queue")).unwrap();
        fs::write(outside.join("queue/read_ahead_kb"), "1\n").unwrap();
        fs::write(outside.join("file"), "1\n").unwrap();
        symlink(&outside, root.path().join("proc_sys/out")).unwrap();
        symlink(outside.join("file"), root.path().join("proc_sys/vm/link")).unwrap();
        symlink(&outside, root.path().join("sys/block/outside")).unwrap();
        let block = |device: &str| Target::Block {
            device: device.into(),
            name: "read_ahead_kb".into(),
        };
        for target in [
            sysctl("out.file"),
            sysctl("vm.link"),
            sysctl("vm"),
            sysctl("vm...outside"),
            sysctl(""),
            sysctl("vm/dirty_ratio"),
            block("outside"),
            block("../../outside"),
            block(".."),
            Target::Lctl {
                name: "osc.*.x".into(),
            },
            Target::Lctl { name: "-n".into() },
        ] {
            let error = kernel.write(&target, "2").unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::PermissionDenied, "{target:?}");
            assert!(kernel.read(&target).is_err(), "{target:?}");
        }
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "1\n");
    }

    #[test]
    fn lustre_is_reached_by_lctl() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("lctl");
        let values = root.path().join("values");
        fs::create_dir(&values).unwrap();
        for ost in [
            "osc.l-OST0000-osc-ff.max_dirty_mb",
            "osc.l-OST0001-osc-ff.max_dirty_mb",
        ] {
            fs::write(values.join(ost), "2000\n").unwrap();
        }
        let script = format!(
            "#!/bin/sh\ncd {}\ncase \"$1 $2\" in\n'get_param -N') ls -d $3 ;;\n'get_param -n') cat \"$3\" ;;\n'set_param -n') echo \"${{3#*=}}\" > \"${{3%%=*}}\" ;;\nesac\n",
            values.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let kernel = Kernel {
            lctl: program,
            ..stand_in(root.path())
        };
        let setting = DeliveredSetting {
            kind: SettingKind::Lctl,
            name: "osc.*.max_dirty_mb".into(),
            value: "64".into(),
        };
        let targets = kernel.targets(&setting).unwrap();
        assert_eq!(targets.len(), 2, "{targets:?}");
        kernel.write(&targets[1], "64").unwrap();
        assert_eq!(kernel.read(&targets[0]).unwrap(), "2000");
        assert_eq!(kernel.read(&targets[1]).unwrap(), "64");
    }
}
