//! The places of settings: below /proc/sys, in a block device's queue, in Lustre, FUSE or NFS, or in
//! a file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use io_autotune_protocol::SettingKind;
use serde::{Deserialize, Serialize};

use crate::config::Settings;
use crate::files::{DirectoryError, check_owned, read_limited};
use crate::time_limited;

/// The time limit of lctl, which is quick because it only asks this node's kernel.
const LCTL_LIMIT: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub(crate) enum Target {
    /// A setting below /proc/sys, with dots for slashes.
    Sysctl { name: String },
    /// A setting in the queue of a block device.
    Block { device: String, name: String },
    /// A parameter of Lustre, by its full name.
    Lctl { name: String },
    /// A setting of a FUSE file system, by its device number: in its connection, or its read-ahead.
    Fuse { device: String, name: String },
    /// The read-ahead of an NFS file system, by its device number.
    Nfs { device: String, name: String },
    /// A file that node.toml names.
    File { name: String },
}

impl Target {
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Sysctl { name } | Self::Lctl { name } | Self::File { name } => name.clone(),
            Self::Block { device, name }
            | Self::Fuse { device, name }
            | Self::Nfs { device, name } => {
                format!("{device}/{name}")
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    proc_sys: PathBuf,
    sys: PathBuf,
    proc: PathBuf,
    block_devices: Vec<String>,
    fuse_mounts: Vec<PathBuf>,
    nfs_mounts: Vec<PathBuf>,
    lctl: PathBuf,
    files: Vec<(String, PathBuf)>,
}

impl Kernel {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            proc_sys: settings.proc_sys.clone(),
            sys: settings.sys.clone(),
            proc: settings.proc.clone(),
            block_devices: settings.block_devices.clone(),
            fuse_mounts: settings.fuse_mounts.clone(),
            nfs_mounts: settings.nfs_mounts.clone(),
            lctl: settings.lctl.clone(),
            files: settings
                .allow
                .iter()
                .filter(|allowed| allowed.kind == SettingKind::File)
                .filter_map(|allowed| Some((allowed.name.clone(), allowed.path.clone()?)))
                .collect(),
        }
    }

    /// The targets of a setting: the queues of all block devices or all FUSE or NFS file systems in
    /// node.toml, or the Lustre parameters that match the pattern.
    pub(crate) fn targets(&self, kind: SettingKind, name: &str) -> io::Result<Vec<Target>> {
        if !kind.takes_name(name) {
            return Err(refused(name, "is no name of a setting"));
        }
        let setting = name;
        let name = name.to_owned();
        let each = |devices: Vec<String>, target: fn(String, String) -> Target| {
            let devices = devices.into_iter();
            devices.map(|device| target(device, name.clone())).collect()
        };
        let found: Vec<Target> = match kind {
            SettingKind::File => vec![Target::File { name }],
            SettingKind::Sysctl => vec![Target::Sysctl { name }],
            SettingKind::Block => each(self.block_devices.clone(), |device, name| Target::Block {
                device,
                name,
            }),
            SettingKind::Fuse => {
                let devices = self.mounted(&self.fuse_mounts, is_fuse)?;
                each(devices, |device, name| Target::Fuse { device, name })
            }
            SettingKind::Nfs => {
                let mut devices = self.mounted(&self.nfs_mounts, is_nfs)?;
                // Mounts of one export share their superblock, and so their read-ahead.
                devices.sort_unstable();
                devices.dedup();
                each(devices, |device, name| Target::Nfs { device, name })
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
            return Err(refused(setting, "is nowhere on this node"));
        }
        Ok(found)
    }

    pub(crate) fn read(&self, target: &Target) -> io::Result<String> {
        let text = match self.path(target)? {
            Some(path) => read_limited(&path)?,
            None => self.lctl_of(target, &["get_param", "-n", &target.label()])?,
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
            // The kernel ignores the truncation; the tree of the tests needs it.
            Some(path) => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(path)?
                .write_all(format!("{value}\n").as_bytes()),
            None => {
                let assignment = format!("{}={value}", target.label());
                self.lctl_of(target, &["set_param", "-n", &assignment])
                    .map(drop)
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
            Target::Fuse { device, name } | Target::Nfs { device, name }
                if name == "read_ahead_kb" =>
            {
                // A link of the kernel's, like those in /sys/block.
                let root = fs::canonicalize(self.sys.join("class/bdi").join(plain(device)?))?;
                let devices = fs::canonicalize(&self.sys)?.join("devices");
                if !root.starts_with(&devices) {
                    return Err(refused(device, "leads out of /sys/devices"));
                }
                (root, vec![name.as_str()])
            }
            Target::Nfs { name, .. } => return Err(refused(name, "is no setting of NFS")),
            Target::Fuse { device, name } => {
                // The connection's name is the device's minor number.
                let minor = device
                    .split_once(':')
                    .map_or(device.as_str(), |(_, minor)| minor);
                let root = self.sys.join("fs/fuse/connections");
                (root, vec![minor, name.as_str()])
            }
            Target::File { name } => {
                let mut files = self.files.iter();
                let path = files.find_map(|(known, path)| (known == name).then_some(path));
                let path = path.ok_or_else(|| refused(name, "has no path in node.toml"))?;
                check_owned(path).map_err(|error| match error {
                    DirectoryError::Io { source, .. }
                        if source.kind() == io::ErrorKind::NotFound =>
                    {
                        source
                    }
                    other => io::Error::other(other),
                })?;
                return Ok(Some(path.clone()));
            }
            Target::Lctl { name } if is_lustre_name(name) => return Ok(None),
            Target::Lctl { name } => return Err(refused(name, "is no parameter of Lustre's")),
        };
        plain_file(root, &components).map(Some)
    }

    /// The file of a target, to be opened once. Lustre's parameters are files too, in one of
    /// several places, which lctl knows (`lctl-get_param(8)`).
    pub(crate) fn file(&self, target: &Target) -> io::Result<PathBuf> {
        if let Some(path) = self.path(target)? {
            return Ok(path);
        }
        let label = target.label();
        let parts = parts_of_device(&label)
            .ok_or_else(|| refused(&label, "is no parameter of a device's"))?;
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.lustre_file(&parts).ok_or_else(missing)
    }

    /// A file of Lustre's client, in the place where the installed version has it.
    pub(crate) fn lustre_file(&self, parts: &[&str]) -> Option<PathBuf> {
        let mut places = self.lustre_places().into_iter();
        places.find_map(|place| plain_file(place, parts).ok())
    }

    /// The devices of a subsystem of Lustre's client: the names of its directories.
    pub(crate) fn lustre_devices(&self, subsystem: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for place in self.lustre_places() {
            let entries = fs::read_dir(place.join(subsystem)).into_iter().flatten();
            let found = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            names.extend(found);
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn lustre_places(&self) -> [PathBuf; 3] {
        [
            self.sys.join("fs/lustre"),
            self.proc.join("fs/lustre"),
            self.sys.join("kernel/debug/lustre"),
        ]
    }

    /// The path of a kernel's statistics file of a lever's device.
    pub(crate) fn below_sys(&self, path: &str) -> PathBuf {
        self.sys.join(path)
    }

    pub(crate) fn below_proc(&self, path: &str) -> PathBuf {
        self.proc.join(path)
    }

    /// The device numbers of the file systems of a kind at these mount points, from the list of
    /// mounts: looking at the file system itself might wait for its daemon or server.
    fn mounted(&self, points: &[PathBuf], is_kind: fn(&str) -> bool) -> io::Result<Vec<String>> {
        let text = read_limited(&self.proc.join("self/mountinfo"))?;
        Ok(devices(&text, points, is_kind))
    }

    /// Runs lctl on a parameter. The error is `NotFound` only if the kernel has no such parameter,
    /// which lctl's exit code does not tell from its own failures.
    fn lctl_of(&self, target: &Target, arguments: &[&str]) -> io::Result<String> {
        self.lctl(arguments).map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidInput && self.is_gone(target) {
                io::Error::new(io::ErrorKind::NotFound, error)
            } else {
                error
            }
        })
    }

    /// Returns true if there is no file of this parameter in any place of any version of Lustre's
    /// client.
    fn is_gone(&self, target: &Target) -> bool {
        let label = target.label();
        // A device's name may contain dots, and a parameter may be deeper than in a device's
        // directory, like ldlm.namespaces.NAME.lru_max_age.
        let of_device = parts_of_device(&label).map(|parts| parts.to_vec());
        let deeper: Vec<&str> = label.split('.').collect();
        let mut places = of_device.into_iter().chain([deeper]);
        places.all(|parts| self.lustre_file(&parts).is_none())
    }

    /// The output of lctl. The error is `InvalidInput` if it has ended by itself without success.
    fn lctl(&self, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new(&self.lctl);
        let ended = time_limited::run(command.args(arguments), [], LCTL_LIMIT)
            .map_err(|error| io::Error::other(format!("{}: {error}", self.lctl.display())))?;
        if ended.good {
            Ok(ended.output)
        } else {
            let words = arguments.join(" ");
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("lctl {words} ended with {}", ended.how),
            ))
        }
    }
}

/// The device numbers of the file systems of a kind at these mount points. If several mounts cover
/// each other, the last one counts (proc_pid_mountinfo(5)).
fn devices(mountinfo: &str, points: &[PathBuf], is_kind: fn(&str) -> bool) -> Vec<String> {
    let of = |point: &PathBuf| {
        let mut found = mountinfo.lines().filter_map(|line| {
            let (mount, system) = line.split_once(" - ")?;
            let mut fields = mount.split(' ');
            let (device, at) = (fields.nth(2)?, fields.nth(1)?);
            let kind = system.split(' ').next()?;
            (point.to_str() == Some(at)).then(|| is_kind(kind).then(|| device.to_owned()))
        });
        found.next_back().flatten()
    };
    points.iter().filter_map(of).collect()
}

fn is_fuse(kind: &str) -> bool {
    kind == "fuse" || kind.starts_with("fuse.")
}

fn is_nfs(kind: &str) -> bool {
    kind == "nfs" || kind == "nfs4"
}

/// The subsystem, device and name of a device's parameter:
/// `osc.lfs-OST0000-osc-ffff9a.max_dirty_mb`. A device's name may contain dots.
fn parts_of_device(label: &str) -> Option<[&str; 3]> {
    let (subsystem, rest) = label.split_once('.')?;
    let (device, name) = rest.rsplit_once('.')?;
    Some([subsystem, device, name])
}

fn plain(device: &str) -> io::Result<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match device.split_once(':') {
        Some((major, minor)) if is_number(major) && is_number(minor) => Ok(device),
        _ => Err(refused(device, "is no number of a device")),
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

/// Returns true for a parameter's name without patterns:
/// `osc.lfs-OST0000-osc-ffff9a.max_rpcs_in_flight`.
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
        proc: root.join("proc"),
        block_devices: vec!["loop9".into()],
        fuse_mounts: vec!["/bb".into()],
        nfs_mounts: vec!["/home".into(), "/project".into()],
        lctl: "/nonexistent/lctl".into(),
        files: vec![("lever".into(), root.join("lever"))],
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
        let [target] = &kernel.targets(SettingKind::Block, "scheduler").unwrap()[..] else {
            panic!("one device")
        };
        assert_eq!(target.label(), "loop9/scheduler");
        assert_eq!(kernel.read(target).unwrap(), "mq-deadline");
    }

    /// Attack (files): A setting's name leads elsewhere, by `..`, a link, or as an option of lctl.
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
    fn fuse_settings_are_found_by_the_mounts_device() {
        let mounts = "30 24 0:27 / /sys/fs/pstore rw - pstore pstore rw\n\
            40 24 0:47 / /bb rw,nosuid shared:1 - fuse.bb bb rw,user_id=0\n\
            41 24 0:48 / /other rw - fuse x rw\n";
        let points = ["/bb".into(), "/nowhere".into()];
        assert_eq!(devices(mounts, &points, is_fuse), ["0:47"]);
        let over = format!("{mounts}42 40 8:1 / /bb rw - ext4 /dev/sda1 rw\n");
        assert!(
            devices(&over, &points, is_fuse).is_empty(),
            "another one is above it"
        );
        let root = tempfile::tempdir().unwrap();
        let kernel = stand_in(root.path());
        let connection = root.path().join("sys/fs/fuse/connections/47");
        let bdi = root.path().join("sys/devices/virtual/bdi/0:47");
        for directory in [&connection, &bdi, &root.path().join("proc/self")] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::create_dir_all(root.path().join("sys/class/bdi")).unwrap();
        let link = root.path().join("sys/class/bdi/0:47");
        symlink("../../devices/virtual/bdi/0:47", link).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        for (file, value) in [
            (connection.join("max_background"), "12\n"),
            (bdi.join("read_ahead_kb"), "128\n"),
        ] {
            fs::write(&file, value).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap();
            let [target] = &kernel.targets(SettingKind::Fuse, name).unwrap()[..] else {
                panic!("one file system")
            };
            assert_eq!(kernel.read(target).unwrap(), value.trim());
            kernel.write(target, "64").unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "64\n");
            assert_eq!(
                kernel.file(target).unwrap(),
                fs::canonicalize(&file).unwrap()
            );
        }
        for device in ["0:48", "../47", "0:../..", "47"] {
            let device = device.to_owned();
            let name = "read_ahead_kb".to_owned();
            assert!(kernel.read(&Target::Fuse { device, name }).is_err());
        }
    }

    #[test]
    fn nfs_has_its_read_ahead_where_its_mount_says() {
        let root = tempfile::tempdir().unwrap();
        let kernel = stand_in(root.path());
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let mounts = "30 1 0:52 /home /home rw - nfs4 server:/home rw,vers=4.2\n\
                      31 1 0:52 /project /project rw - nfs4 server:/project rw,vers=4.2\n\
                      32 1 0:53 / /other rw - nfs server:/other rw\n";
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        for number in ["0:52", "0:53"] {
            let bdi = root.path().join("sys/devices/virtual/bdi").join(number);
            fs::create_dir_all(&bdi).unwrap();
            fs::write(bdi.join("read_ahead_kb"), "128\n").unwrap();
            let class = root.path().join("sys/class/bdi");
            fs::create_dir_all(&class).unwrap();
            symlink(
                format!("../../devices/virtual/bdi/{number}"),
                class.join(number),
            )
            .unwrap();
        }
        let targets = kernel.targets(SettingKind::Nfs, "read_ahead_kb").unwrap();
        let [target] = &targets[..] else {
            panic!("one export of one server: {targets:?}")
        };
        assert_eq!(kernel.read(target).unwrap(), "128");
        kernel.write(target, "15360").unwrap();
        let value = |number: &str| {
            let bdi = root.path().join("sys/devices/virtual/bdi").join(number);
            fs::read_to_string(bdi.join("read_ahead_kb")).unwrap()
        };
        assert_eq!(value("0:52"), "15360\n");
        assert_eq!(value("0:53"), "128\n", "node.toml does not name it");
        assert!(kernel.targets(SettingKind::Nfs, "max_ratio").is_err());
        assert!(kernel.targets(SettingKind::Fuse, "read_ahead_kb").is_err());
    }

    /// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
    /// writable by others.
    #[test]
    fn a_file_that_node_toml_names_is_roots_alone() {
        let root = tempfile::tempdir().unwrap();
        let kernel = stand_in(root.path());
        let path = root.path().join("lever");
        let target = Target::File {
            name: "lever".into(),
        };
        let missing = kernel.read(&target).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound, "there is none");
        fs::write(&path, "8\n").unwrap();
        assert_eq!(kernel.read(&target).unwrap(), "8");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(kernel.write(&target, "9").is_err(), "others write it");
        fs::remove_file(&path).unwrap();
        symlink("/etc/hostname", &path).unwrap();
        assert!(kernel.read(&target).is_err(), "a link");
        let other = Target::File {
            name: "other".into(),
        };
        assert!(kernel.read(&other).is_err());
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
        let targets = kernel
            .targets(SettingKind::Lctl, "osc.*.max_dirty_mb")
            .unwrap();
        assert_eq!(targets.len(), 2, "{targets:?}");
        kernel.write(&targets[1], "64").unwrap();
        assert_eq!(kernel.read(&targets[0]).unwrap(), "2000");
        assert_eq!(kernel.read(&targets[1]).unwrap(), "64");
        // lctl's own failure does not come from the kernel; a parameter that neither lctl nor the
        // kernel has is gone.
        let left = root.path().join("sys/fs/lustre/osc/l-OST0001-osc-ff");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("max_dirty_mb"), "64\n").unwrap();
        fs::remove_file(values.join("osc.l-OST0001-osc-ff.max_dirty_mb")).unwrap();
        let kind = |kernel: &Kernel| kernel.read(&targets[1]).unwrap_err().kind();
        assert_ne!(kind(&kernel), io::ErrorKind::NotFound);
        fs::remove_dir_all(&left).unwrap();
        assert_eq!(kind(&kernel), io::ErrorKind::NotFound);
        let without_lctl = Kernel {
            lctl: "/nonexistent/lctl".into(),
            ..kernel.clone()
        };
        assert_ne!(kind(&without_lctl), io::ErrorKind::NotFound);
        // An agent finds the same file: in sysfs, or where 2.10 still had it.
        assert!(kernel.file(&targets[0]).is_err());
        let older = root.path().join("proc/fs/lustre/osc/l-OST0000-osc-ff");
        fs::create_dir_all(&older).unwrap();
        fs::write(older.join("max_dirty_mb"), "2000\n").unwrap();
        let found = kernel.file(&targets[0]).unwrap();
        assert_eq!(found, older.join("max_dirty_mb"));
        assert_eq!(kernel.lustre_devices("osc"), ["l-OST0000-osc-ff"]);
    }
}
