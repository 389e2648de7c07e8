//! Files and directories that root can trust: only root can write, replace or block them.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::libc;
use nix::sys::statvfs::{FsFlags, statvfs};

const LIMIT: u64 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path} must be a directory of uid {uid} that nobody else can write: remove it or repair it"
    )]
    Untrusted { path: PathBuf, uid: u32 },
    #[error(
        "{path} must be root's, and nobody else's to write unless it is sticky: who can write it can put another directory in the place of {below}"
    )]
    Above { path: PathBuf, below: PathBuf },
    #[error("{path}: {source}")]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}

/// Reads a small file of the helper's own. It follows no link and does not block on a FIFO. The
/// error is `InvalidData` if the file can never be read: not UTF-8, too long, or writable by
/// others.
pub(crate) fn read_own(path: &Path) -> io::Result<String> {
    let bytes = read_own_bytes(path)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The same for a file that need not be UTF-8.
pub(crate) fn read_own_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    let file = match opened {
        // A socket, or a device node without a device.
        Err(error) if [Some(libc::ELOOP), Some(libc::ENXIO)].contains(&error.raw_os_error()) => {
            return Err(refused("it is no file".into()));
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    let uid = effective_uid()?;
    if !metadata.is_file() || metadata.uid() != uid || metadata.mode() & 0o022 != 0 {
        return Err(refused(format!(
            "it must be a file of uid {uid} that nobody else can write"
        )));
    }
    if metadata.len() > LIMIT {
        return Err(refused(format!("it is longer than {LIMIT} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Finds the file at a path without opening it; a link is itself found, not followed.
pub(crate) fn find(path: &Path) -> io::Result<File> {
    found(path, 0)
}

/// The same for a directory. Returns an error if it is something else.
pub(crate) fn find_directory(path: &Path) -> io::Result<File> {
    found(path, libc::O_DIRECTORY)
}

fn found(path: &Path, more: i32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW | more)
        .open(path)
}

/// A path to a file that was found, whatever has taken its place since. It is valid for this
/// process only, and so of no use to a user.
pub(crate) fn way_to(found: &File) -> PathBuf {
    format!("/proc/self/fd/{}", found.as_raw_fd()).into()
}

/// Opens for reading a user's file that was [found](find), without ever waiting for that user:
/// neither for the other end of a FIFO nor for the holder of a lease (fcntl(2), "Leases").
pub(crate) fn open_anothers(found: &File, uid: u32) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(way_to(found));
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(
            io::ErrorKind::WouldBlock,
            "a process of the job holds a lease on it, which is not waited for",
        ),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.uid() == uid {
        Ok(file)
    } else {
        let why = format!("it must be a file of uid {uid}");
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// Reads a file of the kernel's, up to a limit.
pub(crate) fn read_limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

/// The lines of `/proc/self/mountinfo`, one after the other. They are bytes, because a user's mount
/// may have any name of any length, which must not hide the others.
pub(crate) fn mounts() -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>>> {
    Ok(BufReader::new(File::open("/proc/self/mountinfo")?).split(b'\n'))
}

/// Checks that a file is root's, and that nobody else can replace it.
pub(crate) fn check_owned(path: &Path) -> Result<(), DirectoryError> {
    check_above(path)?;
    let metadata = fs::symlink_metadata(path).map_err(at(path))?;
    let uid = effective_uid().map_err(at(path))?;
    if metadata.is_file() && metadata.uid() == uid && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    let why = format!("it must be a file of uid {uid} that nobody else can write");
    Err(at(path)(io::Error::other(why)))
}

/// Makes or checks the topmost of the helper's directories, which nobody else may be able to
/// replace.
pub(crate) fn ensure_top_directory(path: &Path) -> Result<(), DirectoryError> {
    check_above(path)?;
    ensure_directory(path)
}

/// Checks that nobody else can replace the file at a path through a directory above it.
fn check_above(path: &Path) -> Result<(), DirectoryError> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let above = fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(at(path))?;
    let uid = effective_uid().map_err(at(path))?;
    for directory in above.ancestors() {
        let metadata = fs::symlink_metadata(directory).map_err(at(directory))?;
        let is_ours = [0, uid].contains(&metadata.uid());
        // In a sticky directory nobody can rename another user's files.
        let is_open = metadata.mode() & 0o022 != 0 && metadata.mode() & 0o1000 == 0;
        if !is_ours || is_open {
            return Err(DirectoryError::Above {
                path: directory.to_owned(),
                below: path.to_owned(),
            });
        }
    }
    Ok(())
}

pub(crate) fn ensure_directory(path: &Path) -> Result<(), DirectoryError> {
    match DirBuilder::new().mode(0o711).create(path) {
        // The umask has reduced the mode.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o711)).map_err(at(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_directory(path),
        Err(error) => Err(at(path)(error)),
    }
}

/// Checks that a directory is root's own. Root works only in directories that no user can have
/// prepared.
pub(crate) fn check_directory(path: &Path) -> Result<(), DirectoryError> {
    let metadata = fs::symlink_metadata(path).map_err(at(path))?;
    let uid = effective_uid().map_err(at(path))?;
    let trusted = metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o022 == 0;
    if trusted {
        Ok(())
    } else {
        Err(DirectoryError::Untrusted {
            path: path.to_owned(),
            uid,
        })
    }
}

fn effective_uid() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// Replaces a file atomically, in a directory that the caller has checked. Whoever reads it finds the
/// old content or the new one, unless the host goes down: the run directory does not outlive that.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    mode: u32,
    gid: Option<u32>,
) -> Result<(), DirectoryError> {
    replaced(path, content, mode, gid, |_| Ok(()))
}

/// The same for a file that must survive the host's going down.
pub(crate) fn replace_durably(
    path: &Path,
    content: &[u8],
    mode: u32,
) -> Result<(), DirectoryError> {
    replaced(path, content, mode, None, File::sync_data)
}

fn replaced(
    path: &Path,
    content: &[u8],
    mode: u32,
    gid: Option<u32>,
    sync: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), DirectoryError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(content)?;
        if gid.is_some() {
            fchown(&file, None, gid)?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        sync(&file)?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        at(path)(error)
    })
}

/// Sets the time of the last access to the epoch's: then only a read changes it, whatever the
/// mount's `relatime` and steps of the clock.
pub(crate) fn mark_unread(path: &Path) -> io::Result<()> {
    let times = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
    // Opening the file does not change it.
    File::open(path)?.set_times(times)
}

/// Returns true if a file was read since it was [marked](mark_unread); none if reads leave no trace
/// (`noatime`).
pub(crate) fn was_read(path: &Path) -> io::Result<Option<bool>> {
    if statvfs(path)?.flags().contains(FsFlags::ST_NOATIME) {
        return Ok(None);
    }
    let metadata = fs::symlink_metadata(path)?;
    Ok(Some((metadata.atime(), metadata.atime_nsec()) != (0, 0)))
}

/// Returns true if a value fits into a line of `job.env` (`job_env.c`): printable ASCII, with room
/// for the name.
pub(crate) fn is_one_line(value: &str) -> bool {
    value.len() <= 3900 && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Lease;

    /// Attack (files): What a user wrote for root is under a lease, a link, a FIFO, a directory, or
    /// another's.
    #[test]
    fn anothers_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        let uid = effective_uid().unwrap();
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert!(open_anothers(&find(&file).unwrap(), uid).is_ok());
        assert!(
            open_anothers(&find(&link).unwrap(), uid).is_err(),
            "a link is followed"
        );
        assert!(
            open_anothers(&find(&file).unwrap(), uid + 1).is_err(),
            "another's file"
        );
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open_anothers(&find(&fifo).unwrap(), uid).is_err(), "a FIFO");
        // With a write lease the kernel makes an open wait for lease-break-time, 45 s.
        let lease = Lease::of(&file);
        let error = open_anothers(&find(&file).unwrap(), uid).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(error.to_string().contains("lease"), "{error}");
        drop(lease);
        assert!(open_anothers(&find(&file).unwrap(), uid).is_ok());
    }

    #[test]
    fn what_is_no_file_of_ours_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("good"), "x").unwrap();
        fs::set_permissions(path("good"), Permissions::from_mode(0o400)).unwrap();
        assert_eq!(read_own(&path("good")).unwrap(), "x");

        symlink(path("good"), path("link")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        symlink("/dev/zero", path("device")).unwrap();
        fs::write(path("open"), "x").unwrap();
        fs::set_permissions(path("open"), Permissions::from_mode(0o666)).unwrap();
        fs::write(path("bytes"), b"\xff\xfe").unwrap();
        File::create(path("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        for name in [
            "link",
            "directory",
            "fifo",
            "socket",
            "device",
            "open",
            "bytes",
            "sparse",
        ] {
            let error = read_own(&path(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{name}: {error}");
        }
        assert_eq!(
            read_own(&path("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
