//! The files that a job writes for its epilog: [values in force](crate::in_force) and
//! [marks](io_autotune_protocol::Mark).
//!
//! They are owned by the user, named by variables of the job, and alone in a file system of their
//! own, in memory, at `SPOOL/in-force/CLUSTER.NODE.JOBID`. It is so small that a job can fill
//! neither a disk nor the memory with it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use io_autotune_protocol::{Job, MARKS_BYTES};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::files::{
    DirectoryError, at, check_directory, ensure_directory, find, find_directory, open_anothers,
    way_to,
};
use crate::job::name_on_node;
use crate::output::say;

/// The most bytes of values that are read: the library's FILE_MAX and TEXT_MAX (`mpi_in_force.c`).
const VALUES_BYTES: u64 = 65536 + 8192;
/// The options of the file system, which limit what a job can leave: the two files and their
/// directory, in whole pages.
const ROOM: &str = "size=147456,nr_inodes=3,mode=0711";
const VALUES: &str = "values";
const MARKS: &str = "marks";

/// The files that a job writes.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) values: PathBuf,
    pub(crate) marks: PathBuf,
}

/// The content of the files that a job has left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) values: Vec<u8>,
    /// The marks; one byte more than [`MARKS_BYTES`] of a longer file.
    pub(crate) marks: Vec<u8>,
}

/// A job's place, as it was found: anything that comes to its path afterwards is another launch's,
/// and is neither read nor removed.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// The root of its file system; none if a helper of 0.2.0 has left a file.
    root: Option<File>,
}

fn directory(spool_dir: &Path) -> PathBuf {
    spool_dir.join("in-force")
}

fn place(spool_dir: &Path, job: &Job) -> PathBuf {
    directory(spool_dir).join(name_on_node(&job.cluster, &job.node, job.job_id))
}

pub(crate) fn make(spool_dir: &Path, job: &Job) -> Result<Written, DirectoryError> {
    ensure_directory(spool_dir)?;
    ensure_directory(&directory(spool_dir))?;
    let place = place(spool_dir, job);
    // The place of an earlier launch.
    clear(&place).map_err(at(&place))?;
    let written = Written {
        values: place.join(VALUES),
        marks: place.join(MARKS),
    };
    let made = (|| {
        mounted(&place)?;
        for path in [&written.values, &written.marks] {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            fchown(&file, Some(job.uid), Some(job.gid))?;
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(())
    })();
    made.map_err(|source| {
        let _ = clear(&place);
        at(&place)(source)
    })?;
    Ok(written)
}

/// Makes the place, and mounts its file system there.
fn mounted(place: &Path) -> Result<(), io::Error> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let attempt = || {
        ensure_directory(place).map_err(io::Error::other)?;
        let mounted = mount(Some("io-autotune"), place, Some("tmpfs"), flags, Some(ROOM));
        mounted.map_err(io::Error::from)
    };
    match attempt() {
        // A helper that removes an earlier launch's place has just removed the empty directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => attempt(),
        made => made,
    }
}

/// The place where a job writes; `None` if there is none, or none that can be trusted.
pub(crate) fn find_place(spool_dir: &Path, job: &Job) -> Option<Place> {
    let found =
        check_directory(&directory(spool_dir)).and_then(|()| Place::found(place(spool_dir, job)));
    found.unwrap_or_else(|error| {
        let is_missing = matches!(&error, DirectoryError::Io { source, .. }
            if source.kind() == io::ErrorKind::NotFound);
        if !is_missing {
            say(&format!("nothing of what the job wrote is read: {error}"));
        }
        None
    })
}

/// Reads the files that a job has left at its place. A file that cannot be read at once is not
/// waited for.
pub(crate) fn read(place: Option<&Place>, job: &Job) -> Left {
    let Some(place) = place else {
        return Left::default();
    };
    Left {
        values: place.read_or_say(VALUES, job.uid, VALUES_BYTES),
        marks: place.read_or_say(MARKS, job.uid, MARKS_BYTES + 1),
    }
}

/// Removes a job's place, once its content is in a report that survives.
pub(crate) fn remove(place: Option<Place>) {
    if let Some(place) = place
        && let Err(error) = place.clear()
    {
        say(&format!(
            "{}: cannot be removed: {error}",
            place.path.display()
        ));
    }
}

impl Place {
    fn found(path: PathBuf) -> Result<Option<Self>, DirectoryError> {
        match find_directory(&path) {
            Ok(root) => Ok(Some(Self {
                path,
                root: Some(root),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Ok(Some(Self { path, root: None }))
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn read_or_say(&self, name: &str, uid: u32, most: u64) -> Vec<u8> {
        self.read(name, uid, most).unwrap_or_else(|error| {
            let path = self.path.join(name);
            say(&format!("{} is not read: {error}", path.display()));
            Vec::new()
        })
    }

    fn read(&self, name: &str, uid: u32, most: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let Some(root) = &self.root else {
            return Ok(text);
        };
        match file_of(root, name).and_then(|file| open_anothers(&file, uid)) {
            Ok(file) => file.take(most).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(text)
    }

    /// Unmounts its file system, even if some process still has a file of it open, and then removes
    /// the directory, unless it is not empty.
    fn clear(&self) -> io::Result<()> {
        let Some(root) = &self.root else {
            return clear(&self.path);
        };
        match umount2(&way_to(root), MntFlags::MNT_DETACH) {
            // There is no mount; or this process may not mount, and has not.
            Ok(()) | Err(Errno::EINVAL | Errno::ENOENT | Errno::EPERM) => {}
            Err(error) => return Err(error.into()),
        }
        match fs::remove_dir(&self.path) {
            Err(error)
                if ![io::ErrorKind::NotFound, io::ErrorKind::ResourceBusy]
                    .contains(&error.kind()) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// The job's file, not yet opened for reading. Its user can mount a file system of their own over
/// it (fusermount(1)), for whose answers root would wait.
fn file_of(root: &File, name: &str) -> io::Result<File> {
    let file = find(&way_to(root).join(name))?;
    if mount_of(&file)? == mount_of(root)? {
        Ok(file)
    } else {
        Err(io::Error::other("something is mounted over it"))
    }
}

/// The line of proc_pid_fdinfo(5) that tells the mount in which a file was found.
fn mount_of(file: &File) -> io::Result<String> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let line = told.lines().find(|line| line.starts_with("mnt_id:"));
    line.map(str::to_owned)
        .ok_or_else(|| io::Error::other("the kernel does not tell its mount"))
}

/// Unmounts a job's file system, even if some process still has its file open.
fn clear(place: &Path) -> io::Result<()> {
    loop {
        match umount2(place, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            // Not even a helper that was killed and run again mounts two at one place, but a loop
            // that ends only when nothing is mounted leaves none.
            Ok(()) => {}
            // There is no mount, or no file; or this process may not mount, and has not.
            Err(Errno::EINVAL | Errno::ENOENT | Errno::EPERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    match fs::remove_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(place),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes all jobs' files. Only to be called while no job runs.
pub(crate) fn forget_all(spool_dir: &Path) -> Result<(), DirectoryError> {
    forget_those(spool_dir, |_| true)
}

/// Removes the files of the jobs for whose place `is_left` returns true.
pub(crate) fn forget_those(
    spool_dir: &Path,
    is_left: impl Fn(&Path) -> bool,
) -> Result<(), DirectoryError> {
    let path = directory(spool_dir);
    if !path.exists() {
        return Ok(());
    }
    check_directory(&path)?;
    for entry in fs::read_dir(&path).map_err(at(&path))? {
        let entry = entry.map_err(at(&path))?.path();
        // Found before `is_left` is called, so that its answer is about this place.
        if let Some(place) = Place::found(entry)?
            && is_left(&place.path)
        {
            place.clear().map_err(at(&place.path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::testing;

    const LINE: &str = "romio_ds_write enable\n";

    /// The files of a job in a spool; none if the test does not run as root, because only root can
    /// mount.
    fn made() -> Option<(tempfile::TempDir, Job, Written)> {
        let spool = tempfile::tempdir().unwrap();
        let job = testing::job();
        let made = make(spool.path(), &job);
        if !nix::unistd::geteuid().is_root() {
            // The job runs without them.
            assert!(made.is_err());
            assert!(take(spool.path(), &job).values.is_empty());
            return None;
        }
        let written = made.unwrap();
        Some((spool, job, written))
    }

    /// Reads and removes the files, as a job's epilog does.
    fn take(spool_dir: &Path, job: &Job) -> Left {
        let place = find_place(spool_dir, job);
        let left = read(place.as_ref(), job);
        remove(place);
        left
    }

    /// The number of jobs with a place. The directory of places stays, because another job may be
    /// about to begin in it.
    fn places(spool_dir: &Path) -> usize {
        fs::read_dir(directory(spool_dir)).unwrap().count()
    }

    #[test]
    fn the_files_are_the_users_and_go_when_they_are_read() {
        let Some((spool, job, written)) = made() else {
            return;
        };
        for path in [&written.values, &written.marks] {
            let made = fs::metadata(path).unwrap();
            assert_eq!((made.uid(), made.mode() & 0o777), (job.uid, 0o600));
        }
        fs::write(&written.values, LINE).unwrap();
        fs::write(&written.marks, "begin 1\n").unwrap();
        let left = take(spool.path(), &job);
        assert_eq!(
            (&left.values[..], &left.marks[..]),
            (LINE.as_bytes(), &b"begin 1\n"[..])
        );
        assert_eq!(places(spool.path()), 0);
        fs::write(make(spool.path(), &job).unwrap().values, LINE).unwrap();
        make(spool.path(), &job).unwrap();
        let left = take(spool.path(), &job);
        assert!(left.values.is_empty(), "of an earlier launch");
        let again = make(spool.path(), &job).unwrap();
        forget_all(spool.path()).unwrap();
        assert!(!again.values.exists());
        // The place as a helper of 0.2.0 has left it.
        fs::create_dir_all(directory(spool.path())).unwrap();
        fs::write(place(spool.path(), &job), LINE).unwrap();
        assert!(take(spool.path(), &job).values.is_empty());
        assert_eq!(places(spool.path()), 0);
    }

    /// Attack (files): A job fills the place of its observed values and marks, and makes other
    /// files there.
    /// Outcome: The place holds 144 KiB and no other file, of which root reads less.
    #[test]
    fn a_job_can_leave_no_more_than_fits_in_little_memory() {
        let Some((spool, job, written)) = made() else {
            return;
        };
        let filled = |path: &Path| {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            let line = LINE.repeat(1000);
            let full = (0..100).find_map(|_| file.write_all(line.as_bytes()).err());
            assert_eq!(full.unwrap().kind(), io::ErrorKind::StorageFull);
        };
        filled(&written.values);
        filled(&written.marks);
        let length = |path: &Path| fs::metadata(path).unwrap().len();
        let both = length(&written.values) + length(&written.marks);
        assert!((VALUES_BYTES..=147_456).contains(&both), "{both}");
        assert!(
            fs::write(written.values.with_file_name("more"), "").is_err(),
            "another file"
        );
        assert_eq!(
            take(spool.path(), &job).values.len() as u64,
            VALUES_BYTES,
            "no more is read"
        );
        assert!(!written.values.exists(), "though it is still open");
    }

    type Put<'a> = &'a dyn Fn(&Path);

    /// Attack (files): What a user wrote for root is under a lease, a link, a FIFO, a directory, or
    /// another's.
    #[test]
    fn what_is_in_the_place_of_the_users_file_is_not_read_and_not_waited_for() {
        let elsewhere = tempfile::tempdir().unwrap();
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "begin 1\nend 9\n").unwrap();
        // Root puts things there that no user can.
        let puts: [(&str, Put); 4] = [
            ("a link to a file of root's", &|path| {
                symlink(&secret, path).unwrap();
            }),
            ("a FIFO", &|path| {
                mkfifo(path, Mode::S_IRWXU).unwrap();
                chown(path, Some(testing::job().uid), None).unwrap();
            }),
            ("a file of another user's", &|path| {
                fs::write(path, "begin 1\nend 9\n").unwrap();
                chown(path, Some(testing::job().uid + 1), None).unwrap();
            }),
            ("a directory", &|path| fs::create_dir(path).unwrap()),
        ];
        for (what, put) in puts {
            let Some((spool, job, written)) = made() else {
                return;
            };
            fs::write(&written.values, LINE).unwrap();
            fs::remove_file(&written.marks).unwrap();
            put(&written.marks);
            let left = take(spool.path(), &job);
            assert!(left.marks.is_empty(), "{what} was read");
            assert_eq!(left.values, LINE.as_bytes(), "{what} hides the other");
            assert!(!written.values.exists());
        }
        assert!(secret.exists());
    }

    /// Attack (files): A job fills the place of its observed values and marks, and makes other
    /// files there.
    /// Outcome: The place holds 144 KiB and no other file, of which root reads less.
    #[test]
    fn of_a_sparse_file_little_is_read() {
        let Some((spool, job, written)) = made() else {
            return;
        };
        let file = OpenOptions::new().write(true).open(&written.marks).unwrap();
        file.set_len(100 << 20).unwrap();
        let left = take(spool.path(), &job);
        assert_eq!(left.marks.len() as u64, MARKS_BYTES + 1);
        let marked = io_autotune_protocol::marked(&left.marks, u64::MAX);
        assert!(marked.measures.is_empty() && marked.dropped.len() == 1);
    }

    /// Attack (second-round): Another file is mounted over the files of observed values and marks.
    /// Outcome: It is not read, and the mount is taken away.
    #[test]
    fn what_is_mounted_over_the_file_is_not_read() {
        let Some((spool, job, written)) = made() else {
            return;
        };
        let over = spool.path().join("over");
        fs::write(&over, LINE).unwrap();
        chown(&over, Some(job.uid), None).unwrap();
        for path in [&written.values, &written.marks] {
            let flags = MsFlags::MS_BIND;
            mount(Some(&over), path, None::<&str>, flags, None::<&str>).unwrap();
        }
        let left = take(spool.path(), &job);
        assert!(
            left.values.is_empty() && left.marks.is_empty(),
            "it was read"
        );
        assert!(!written.values.exists(), "it is taken away all the same");
        assert!(over.exists());
    }
}
