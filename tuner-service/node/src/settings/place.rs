//! A command's directory for one job: the user's, below one of root's in which only root makes and
//! removes. Everything left in it is moved into a directory that no user can enter, and removed
//! there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::libc;
use nix::mount::{MntFlags, umount2};
use serde::{Deserialize, Serialize};

use crate::files::{
    DirectoryError, at, check_directory, ensure_top_directory, find_directory, mounts, way_to,
};
use crate::time_limited;

/// The directory in which files wait for their removal; mode 0700.
const OVER: &str = ".over";
/// The time limit at boot, when no job waits.
pub(super) const AT_BOOT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    base: PathBuf,
    name: String,
}

/// The directory of commands' directories: the one that node.toml names, or the spool.
pub(crate) fn base(directory: Option<&Path>, spool: &Path) -> PathBuf {
    match directory {
        // A directory of the helper's own there, because at boot everything in it is removed.
        Some(directory) => directory.join("io-autotune"),
        None => spool.join("commands"),
    }
}

impl Place {
    pub(crate) fn new(base: PathBuf, name: String) -> Self {
        Self { base, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn over(&self) -> PathBuf {
        self.base.join(OVER).join(&self.name)
    }

    /// Makes the directory, with `owner` as its user and group.
    pub(crate) fn make(&self, owner: Option<(u32, u32)>) -> Result<(), DirectoryError> {
        let path = self.path();
        let made = || {
            if let Some(above) = self.base.parent() {
                // A sticky directory is not enough, because another user could come first.
                check_directory(above)?;
            }
            ensure_top_directory(&self.base)?;
            let created = DirBuilder::new().mode(0o700).create(&path);
            created.map_err(at(&path))
        };
        // The timer may have just removed an empty base.
        made().or_else(|_| made())?;
        if let Some((uid, gid)) = owner {
            chown(&path, Some(uid), Some(gid)).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Removes the directory, whatever is mounted and left in it, within `limit`. It can be called
    /// again.
    pub(crate) fn remove(&self, limit: Duration) -> io::Result<()> {
        let (path, over) = (self.path(), self.over());
        unmount_below(&path)?;
        if fs::symlink_metadata(&path).is_ok() {
            make_over(&self.base)?;
            fs::rename(&path, &over)?;
        }
        if fs::symlink_metadata(&over).is_ok() {
            unmount_below(&over)?;
            remove_tree(&over, limit)?;
        }
        // Both stay while they contain something.
        let _ = fs::remove_dir(self.base.join(OVER));
        let _ = fs::remove_dir(&self.base);
        Ok(())
    }
}

/// Removes all jobs' directories. Only to be called while no job runs.
pub(crate) fn forget_all(base: &Path) -> io::Result<()> {
    if fs::symlink_metadata(base).is_err() {
        return Ok(());
    }
    check_directory(base).map_err(io::Error::other)?;
    for entry in fs::read_dir(base)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != OVER {
            Place::new(base.to_owned(), name).remove(AT_BOOT)?;
        }
    }
    if base.join(OVER).is_dir() {
        remove_tree(&base.join(OVER), AT_BOOT)?;
    }
    let _ = fs::remove_dir(base);
    Ok(())
}

fn make_over(base: &Path) -> io::Result<()> {
    check_directory(base).map_err(io::Error::other)?;
    match DirBuilder::new().mode(0o700).create(base.join(OVER)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Unmounts everything at and below a directory. A user's file system in user space is never asked
/// for anything: its connection is cut.
fn unmount_below(directory: &Path) -> io::Result<()> {
    let mut points = Vec::new();
    for line in mounts()? {
        let line = line?;
        if let Some(field) = line.split(|byte| *byte == b' ').nth(4) {
            let point = PathBuf::from(unescaped(field));
            if point.starts_with(directory) {
                points.push(point);
            }
        }
    }
    // A mount comes after the one that contains it, and is detached with it: a path to it would
    // lead through a user's file system.
    for point in points {
        match unmount(directory, &point) {
            Ok(()) => {}
            // The user, or the program in user space, was quicker; or it was detached with another
            // mount.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    [libc::EINVAL, libc::ENOENT, libc::ENOTDIR]
        .map(Some)
        .contains(&error.raw_os_error())
}

/// Unmounts a point in a user's directory. That user can meanwhile put a link in the place of any
/// part of the path, so no link is followed, and nothing else is unmounted.
fn unmount(directory: &Path, point: &Path) -> io::Result<()> {
    let within = point.strip_prefix(directory).map_err(io::Error::other)?;
    let flags = MntFlags::MNT_FORCE | MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW;
    let (Some(above), Some(name)) = (within.parent(), within.file_name()) else {
        // The directory itself, which is in one of root's.
        return Ok(umount2(directory, flags)?);
    };
    let mut found = find_directory(directory)?;
    for part in above {
        found = find_directory(&way_to(&found).join(part))?;
    }
    Ok(umount2(&way_to(&found).join(name), flags)?)
}

/// A path of mountinfo, in which blanks, tabs, line ends and backslashes are written as octal
/// numbers.
fn unescaped(bytes: &[u8]) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let (mut path, mut place) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(place) {
        let octal = bytes
            .get(place + 1..place + 4)
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        match (byte, octal) {
            (b'\\', Some(byte)) => {
                path.push(byte);
                place += 4;
            }
            _ => {
                path.push(*byte);
                place += 1;
            }
        }
    }
    std::ffi::OsString::from_vec(path)
}

/// Removes a tree with rm(1), which enters directories however deep, and leaves mounts alone.
fn remove_tree(path: &Path, limit: Duration) -> io::Result<()> {
    let mut rm = Command::new("/bin/rm");
    rm.args(["-rf", "--one-file-system", "--"]).arg(path);
    let ended = time_limited::run(&mut rm, [], limit)?;
    if ended.good {
        return Ok(());
    }
    let what = path.display();
    Err(io::Error::other(format!(
        "rm -rf {what} ended with {}",
        ended.how
    )))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    /// The time limit for removals in tests: beside other tests rm(1) took 18 s for a thousand
    /// nested directories, and had a processor for a quarter of a second of it.
    const LONG: Duration = Duration::from_mins(10);

    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o711)).unwrap();
        root
    }

    /// Attack (files): A job leaves nested or closed directories, or mounts within mounts, in a
    /// command's directory.
    /// Outcome: All are removed, if need be later and out of reach.
    #[test]
    fn whatever_is_left_in_it_is_removed() {
        let root = root();
        let base = base(None, root.path());
        let place = Place::new(base.clone(), "c.n1.7.1".into());
        let own = fs::metadata(root.path()).unwrap();
        place.make(Some((own.uid(), own.gid()))).unwrap();
        assert_eq!(fs::metadata(&base).unwrap().mode() & 0o777, 0o711);
        assert!(place.make(None).is_err(), "there is one already");
        let mut deep = place.path();
        for _ in 0..1000 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let closed = place.path().join("closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        if nix::unistd::geteuid().is_root() {
            fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        }
        place.remove(LONG).unwrap();
        assert!(!base.exists());
        place.remove(LONG).unwrap();
    }

    /// Attack (files): A job leaves nested or closed directories, or mounts within mounts, in a
    /// command's directory.
    /// Outcome: All are removed, if need be later and out of reach.
    #[test]
    fn what_takes_longer_is_out_of_the_way_and_removed_later() {
        let root = root();
        let base = base(Some(root.path()), Path::new("/nonexistent"));
        let place = Place::new(base.clone(), "c.n1.7.1".into());
        place.make(None).unwrap();
        for name in 0..100 {
            fs::write(place.path().join(name.to_string()), "").unwrap();
        }
        assert!(place.remove(Duration::ZERO).is_err());
        assert!(!place.path().exists(), "it is where no user can go");
        assert_eq!(fs::metadata(base.join(OVER)).unwrap().mode() & 0o777, 0o700);
        place.remove(LONG).unwrap();
        assert!(!base.exists());

        place.make(None).unwrap();
        fs::create_dir_all(base.join(OVER).join("another")).unwrap();
        forget_all(&base).unwrap();
        assert!(!base.exists() && root.path().exists());
        forget_all(&base).unwrap();
    }

    /// Attack (files): Others can make or swap directories where ours are to be.
    /// Outcome: None is used, unless the one above has the sticky bit.
    #[test]
    fn a_directory_in_which_others_could_come_first_is_refused() {
        let root = root();
        fs::set_permissions(root.path(), Permissions::from_mode(0o1777)).unwrap();
        let base = base(Some(root.path()), Path::new("/nonexistent"));
        let place = Place::new(base, "c.n1.7.1".into());
        let error = place.make(None).unwrap_err();
        assert!(
            error.to_string().contains("nobody else can write"),
            "{error}"
        );
    }

    #[test]
    fn what_is_mounted_is_found_by_its_path() {
        assert_eq!(unescaped(b"/a\\040b/c\\134"), "/a b/c\\");
        assert_eq!(unescaped(b"/a\\04"), "/a\\04");
        assert_eq!(unescaped(b"/a\\9"), "/a\\9");
    }

    /// Mounts a file system at a path, as root.
    fn mounted(point: &Path) {
        fs::create_dir_all(point).unwrap();
        let none = nix::mount::MsFlags::empty();
        nix::mount::mount(Some("test"), point, Some("tmpfs"), none, Some("size=4096")).unwrap();
    }

    fn is_mounted(point: &Path) -> bool {
        let above = fs::metadata(point.parent().unwrap()).unwrap();
        fs::metadata(point).unwrap().dev() != above.dev()
    }

    /// Attack (second-round): While root unmounts in a command's directory, a link replaces a
    /// directory on the way.
    /// Outcome: The link is not followed; the other mount stays.
    #[test]
    fn a_link_leads_no_unmount_out_of_the_directory() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let root = root();
        let (theirs, sites) = (root.path().join("theirs"), root.path().join("sites"));
        let (own, other) = (theirs.join("x").join("data"), sites.join("data"));
        mounted(&own);
        mounted(&other);
        // As a user can do after the mounts were listed.
        fs::rename(theirs.join("x"), theirs.join("y")).unwrap();
        std::os::unix::fs::symlink(&sites, theirs.join("x")).unwrap();
        assert!(is_gone(&unmount(&theirs, &own).unwrap_err()));
        let stays = is_mounted(&other);
        unmount_below(&theirs).unwrap();
        let gone = !is_mounted(&theirs.join("y").join("data"));
        unmount(&sites, &other).unwrap();
        assert!(stays && gone);
    }

    /// Attack (files): A job leaves nested or closed directories, or mounts within mounts, in a
    /// command's directory.
    /// Outcome: All are removed, if need be later and out of reach.
    #[test]
    fn mounts_in_mounts_and_at_the_directory_itself_are_taken_away() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let root = root();
        let theirs = root.path().join("theirs");
        for point in ["", "", "a", "a/b", "a/b/c"] {
            mounted(&theirs.join(point));
        }
        unmount_below(&theirs).unwrap();
        assert!(!is_mounted(&theirs));
        fs::remove_dir(&theirs).unwrap();
    }

    /// Attack (second-round): A mount's name is no UTF-8.
    /// Outcome: The mounts of a command's directory are found all the same.
    #[test]
    fn a_mount_whose_name_is_no_text_hides_no_other() {
        use std::os::unix::ffi::OsStrExt;
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let root = root();
        let theirs = root.path().join("theirs");
        let name = std::ffi::OsStr::from_bytes(b"m\xff n");
        let elsewhere = root.path().join(name);
        mounted(&elsewhere);
        mounted(&theirs.join(name));
        let with = crate::cgroup::place("c.n1.7.1");
        unmount_below(&theirs).unwrap();
        assert!(!is_mounted(&theirs.join(name)) && is_mounted(&elsewhere));
        unmount_below(root.path()).unwrap();
        assert_eq!(with, crate::cgroup::place("c.n1.7.1"));
        assert!(!is_mounted(&elsewhere));
    }
}
