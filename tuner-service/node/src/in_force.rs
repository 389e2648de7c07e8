//! The profiling library's reports of values in force that only the accelerator knows.
//!
//! The library (`mpi-in-force/`) appends to the file `SPOOL/in-force/CLUSTER.NODE.JOBID/values`,
//! owned by the user and named by a job variable. It is alone in a file system of its own, in
//! memory, so small that whatever a job writes there fills neither a disk nor a memory. The text is
//! the user's: a forged one can only make that user's own run not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use io_autotune_protocol::{Job, ObservedParameter, ReadBack};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::files::{DirectoryError, at, check_directory, ensure_directory, find, open_anothers};
use crate::job::name_on_node;

pub(crate) const VARIABLE: &str = "MPI_IO_IN_FORCE";

/// The most that is read: the library's FILE_MAX and TEXT_MAX (`mpi_in_force.c`).
const LIMIT: u64 = 65536 + 8192;
/// What a job can leave: the file, and the directory that it is in. In whole pages above [`LIMIT`].
const ROOM: &str = "size=81920,nr_inodes=2,mode=0711";
const FILE: &str = "values";
const VALUE_LIMIT: usize = 256;
const VALUES_SHOWN: usize = 4;

/// The reported values by name; several if opened files differ.
pub(crate) type Values = BTreeMap<String, BTreeSet<String>>;

fn directory(spool_dir: &Path) -> PathBuf {
    spool_dir.join("in-force")
}

fn place(spool_dir: &Path, job: &Job) -> PathBuf {
    directory(spool_dir).join(name_on_node(&job.cluster, &job.node, job.job_id))
}

pub(crate) fn make(spool_dir: &Path, job: &Job) -> Result<PathBuf, DirectoryError> {
    ensure_directory(spool_dir)?;
    ensure_directory(&directory(spool_dir))?;
    let place = place(spool_dir, job);
    // Of an earlier launch.
    clear(&place).map_err(at(&place))?;
    ensure_directory(&place)?;
    let path = place.join(FILE);
    let made = (|| {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(
            Some("io-autotune"),
            &place,
            Some("tmpfs"),
            flags,
            Some(ROOM),
        )?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        fchown(&file, Some(job.uid), Some(job.gid))?;
        file.set_permissions(Permissions::from_mode(0o600))
    })();
    made.map_err(|source| {
        let _ = clear(&place);
        at(&path)(source)
    })?;
    Ok(path)
}

/// Reads and removes what a job has left. What cannot be read at once is not waited for.
pub(crate) fn take(spool_dir: &Path, job: &Job) -> Result<Values, DirectoryError> {
    let directory = directory(spool_dir);
    if !directory.exists() {
        return Ok(Values::new());
    }
    check_directory(&directory)?;
    let place = place(spool_dir, job);
    let text = read(&place, job.uid);
    let cleared = clear(&place);
    // Fails while another job's is there.
    let _ = fs::remove_dir(&directory);
    cleared.map_err(at(&place))?;
    let text = text.map_err(at(&place))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn read(place: &Path, uid: u32) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match found(place).and_then(|file| open_anothers(&file, uid)) {
        Ok(file) => file.take(LIMIT).read_to_end(&mut text)?,
        // There is none; or, by a helper of 0.2.0, a file where the directory should be.
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            0
        }
        Err(error) => return Err(error),
    };
    Ok(text)
}

/// The job's file, not yet opened for reading. Its user can mount a file system of their own over
/// it (fusermount(1)), whose answers root would wait for.
fn found(place: &Path) -> io::Result<File> {
    let file = find(&place.join(FILE))?;
    if mount_of(&file)? == mount_of(&find(place)?)? {
        Ok(file)
    } else {
        Err(io::Error::other("something is mounted over it"))
    }
}

/// The line of proc_pid_fdinfo(5) that tells the mount that a file was found in.
fn mount_of(file: &File) -> io::Result<String> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let line = told.lines().find(|line| line.starts_with("mnt_id:"));
    line.map(str::to_owned)
        .ok_or_else(|| io::Error::other("the kernel does not tell its mount"))
}

/// Takes a job's file system away, whoever still has its file open.
fn clear(place: &Path) -> io::Result<()> {
    loop {
        match umount2(place, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            // Not even a helper that was killed and run again mounts two at one place, but a loop
            // that ends only where nothing is mounted leaves none.
            Ok(()) => {}
            // There is no mount, or nothing; or we may not mount, and have not.
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

/// Removes all jobs' files; only while no job runs.
pub(crate) fn forget_all(spool_dir: &Path) -> Result<(), DirectoryError> {
    let path = directory(spool_dir);
    if !path.exists() {
        return Ok(());
    }
    check_directory(&path)?;
    for entry in fs::read_dir(&path).map_err(at(&path))? {
        let place = entry.map_err(at(&path))?.path();
        clear(&place).map_err(at(&place))?;
    }
    fs::remove_dir(&path).map_err(at(&path))
}

/// Reads lines of two tokens and ignores others: a user can write anything.
fn parse(text: &str) -> Values {
    let mut values = Values::new();
    for line in text.lines() {
        let mut tokens = line.split(' ');
        let (Some(name), Some(value), None) = (tokens.next(), tokens.next(), tokens.next()) else {
            continue;
        };
        let is_token = |text: &str| {
            !text.is_empty()
                && text.len() <= VALUE_LIMIT
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if is_token(name) && is_token(value) {
            let of_name = values.entry(name.to_owned()).or_default();
            if of_name.len() <= VALUES_SHOWN {
                of_name.insert(value.to_owned());
            }
        }
    }
    values
}

/// The reports on the parameters in `read_back` that have a value.
pub(crate) fn observed(read_back: &[ReadBack], values: &Values) -> Vec<ObservedParameter> {
    let found = read_back.iter().filter_map(|one| {
        let found = values.get(&one.name)?;
        let in_force: Vec<&str> = found.iter().map(String::as_str).collect();
        Some(ObservedParameter {
            parameter: one.parameter.clone(),
            name: one.name.clone(),
            asked: one.asked.clone(),
            in_force: in_force.join(", "),
            as_asked: one
                .asked
                .as_deref()
                .is_none_or(|asked| found.iter().all(|value| is_as_asked(one, asked, value))),
        })
    });
    found.collect()
}

fn is_as_asked(one: &ReadBack, asked: &str, in_force: &str) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let is_within = || Some(number(in_force)? <= number(asked)?);
    in_force == asked || (one.at_most && is_within().unwrap_or(false))
}

pub(crate) fn obstacle(observed: &[ObservedParameter]) -> Option<String> {
    let others: Vec<String> = observed
        .iter()
        .filter(|one| !one.as_asked)
        .map(|one| {
            let asked = one.asked.as_deref().unwrap_or_default();
            format!("{} was {} and not {asked}", one.parameter, one.in_force)
        })
        .collect();
    (!others.is_empty()).then(|| format!("not in force in the application: {}", others.join("; ")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::testing;

    fn read_back(asked: Option<&str>, at_most: bool) -> ReadBack {
        ReadBack {
            parameter: "sieve".into(),
            name: "romio_ds_write".into(),
            asked: asked.map(str::to_owned),
            at_most,
        }
    }

    fn one(asked: Option<&str>, at_most: bool, text: &str) -> Option<ObservedParameter> {
        observed(&[read_back(asked, at_most)], &parse(text)).pop()
    }

    #[test]
    fn what_was_asked_for_is_compared_with_every_opened_file() {
        let enabled = "cb_nodes 4\nromio_ds_write enable\n";
        assert!(one(Some("enable"), false, enabled).unwrap().as_asked);
        let other = one(Some("disable"), false, enabled).unwrap();
        assert!(!other.as_asked);
        assert_eq!(
            obstacle(&[other]).unwrap(),
            "not in force in the application: sieve was enable and not disable"
        );
        let both = one(
            Some("enable"),
            false,
            "romio_ds_write disable\nromio_ds_write enable\n",
        );
        let both = both.unwrap();
        assert!(!both.as_asked, "one file had another");
        assert_eq!(both.in_force, "disable, enable");
        let nothing_asked = one(None, false, enabled).unwrap();
        assert!(nothing_asked.as_asked);
        assert_eq!(obstacle(&[nothing_asked]), None);
        assert_eq!(one(Some("enable"), false, ""), None, "nobody said anything");
    }

    #[test]
    fn of_a_limit_a_smaller_number_is_as_asked() {
        for (asked, text, expected) in [
            ("8", "romio_ds_write 4\n", true),
            ("8", "romio_ds_write 8\n", true),
            ("8", "romio_ds_write 16\n", false),
            ("8", "romio_ds_write few\n", false),
        ] {
            assert_eq!(one(Some(asked), true, text).unwrap().as_asked, expected);
            assert_eq!(
                one(Some(asked), false, text).unwrap().as_asked,
                text.ends_with(" 8\n")
            );
        }
    }

    #[test]
    fn the_file_is_the_users_and_goes_when_it_is_read() {
        let spool = tempfile::tempdir().unwrap();
        let spool_dir = spool.path().join("spool");
        let job = testing::job();
        assert!(take(&spool_dir, &job).unwrap().is_empty());
        if !nix::unistd::geteuid().is_root() {
            // Only root mounts; the job goes on without.
            assert!(make(&spool_dir, &job).is_err());
            assert!(take(&spool_dir, &job).unwrap().is_empty());
            return;
        }
        let path = make(&spool_dir, &job).unwrap();
        let made = fs::metadata(&path).unwrap();
        assert_eq!((made.uid(), made.mode() & 0o777), (job.uid, 0o600));
        fs::write(&path, "romio_ds_write enable\n").unwrap();
        assert_eq!(take(&spool_dir, &job).unwrap().len(), 1);
        assert!(!directory(&spool_dir).exists());
        fs::write(make(&spool_dir, &job).unwrap(), "romio_ds_write enable\n").unwrap();
        make(&spool_dir, &job).unwrap();
        assert!(
            take(&spool_dir, &job).unwrap().is_empty(),
            "of an earlier launch"
        );
        let left = make(&spool_dir, &job).unwrap();
        forget_all(&spool_dir).unwrap();
        assert!(!left.exists());
        // As a helper of 0.2.0 has left it.
        fs::create_dir_all(directory(&spool_dir)).unwrap();
        fs::write(place(&spool_dir, &job), "romio_ds_write enable\n").unwrap();
        assert!(take(&spool_dir, &job).unwrap().is_empty());
        assert!(!directory(&spool_dir).exists());
    }

    #[test]
    fn a_job_can_leave_no_more_than_is_read_of_it() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let spool = tempfile::tempdir().unwrap();
        let job = testing::job();
        let path = make(spool.path(), &job).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        let line = "romio_ds_write enable\n".repeat(1000);
        let full = (0..100).find_map(|_| file.write_all(line.as_bytes()).err());
        assert_eq!(full.unwrap().kind(), io::ErrorKind::StorageFull);
        let length = fs::metadata(&path).unwrap().len();
        assert!((LIMIT..2 * LIMIT).contains(&length), "{length}");
        assert!(
            fs::write(path.with_file_name("more"), "").is_err(),
            "a second file"
        );
        assert_eq!(take(spool.path(), &job).unwrap().len(), 1);
        assert!(!path.exists(), "though it is still open");
    }

    #[test]
    fn what_is_mounted_over_the_file_is_not_read() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let spool = tempfile::tempdir().unwrap();
        let job = testing::job();
        let path = make(spool.path(), &job).unwrap();
        let over = spool.path().join("over");
        fs::write(&over, "romio_ds_write enable\n").unwrap();
        std::os::unix::fs::chown(&over, Some(job.uid), None).unwrap();
        mount(
            Some(&over),
            &path,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .unwrap();
        let error = take(spool.path(), &job).unwrap_err();
        assert!(error.to_string().contains("mounted over"), "{error}");
        assert!(!path.exists(), "it is taken away all the same");
        assert!(over.exists());
    }

    #[test]
    fn fuzz_in_force() {
        io_autotune_fuzzing::Target::new("in_force", &["cb_nodes 4\nromio_ds_write enable\n"]).run(
            |input| {
                for (name, found) in parse(&String::from_utf8_lossy(input)) {
                    assert!(name.len() <= VALUE_LIMIT && found.len() <= VALUES_SHOWN + 1);
                    assert!(
                        found
                            .iter()
                            .all(|value| value.bytes().all(|byte| byte.is_ascii_graphic()))
                    );
                }
            },
        );
    }
}
