//! The profiling library's reports of values in force that only the accelerator knows.
//!
//! The library (`mpi-in-force/`) appends to the file `SPOOL/in-force/CLUSTER.NODE.JOBID`, owned by
//! the user and named by a job variable. It is on disk because a user must not fill the run
//! directory's memory. The text is the user's: a forged one can only make that user's own run not
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use io_autotune_protocol::{Job, ObservedParameter, ReadBack};

use crate::files::{DirectoryError, check_directory, ensure_directory};

pub(crate) const VARIABLE: &str = "MPI_IO_IN_FORCE";

/// The most that is read: the library's FILE_MAX and TEXT_MAX (`mpi_in_force.c`).
const LIMIT: u64 = 65536 + 8192;
const VALUE_LIMIT: usize = 256;
const VALUES_SHOWN: usize = 4;

/// The reported values by name; several if opened files differ.
pub(crate) type Values = BTreeMap<String, BTreeSet<String>>;

fn directory(spool_dir: &Path) -> PathBuf {
    spool_dir.join("in-force")
}

fn file(spool_dir: &Path, job: &Job) -> PathBuf {
    directory(spool_dir).join(format!("{}.{}.{}", job.cluster, job.node, job.job_id))
}

pub(crate) fn make(spool_dir: &Path, job: &Job) -> Result<PathBuf, DirectoryError> {
    ensure_directory(spool_dir)?;
    ensure_directory(&directory(spool_dir))?;
    let path = file(spool_dir, job);
    let made = (|| {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        fchown(&file, Some(job.uid), Some(job.gid))?;
        file.set_permissions(Permissions::from_mode(0o600))
    })();
    made.map_err(|source| DirectoryError::Io {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

pub(crate) fn take(spool_dir: &Path, job: &Job) -> Result<Values, DirectoryError> {
    let directory = directory(spool_dir);
    if !directory.exists() {
        return Ok(Values::new());
    }
    check_directory(&directory)?;
    let path = file(spool_dir, job);
    let taken = (|| {
        let mut text = Vec::new();
        match fs::File::open(&path) {
            Ok(file) => file.take(LIMIT).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(text),
            Err(error) => return Err(error),
        };
        fs::remove_file(&path)?;
        Ok(text)
    })();
    // Fails while another job's file is there.
    let _ = fs::remove_dir(&directory);
    let text = taken.map_err(|source| DirectoryError::Io { path, source })?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// Removes all jobs' files; only while no job runs.
pub(crate) fn forget_all(spool_dir: &Path) -> Result<(), DirectoryError> {
    let path = directory(spool_dir);
    if !path.exists() {
        return Ok(());
    }
    check_directory(&path)?;
    fs::remove_dir_all(&path).map_err(|source| DirectoryError::Io { path, source })
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
        let mut job = testing::job();
        let own = fs::metadata(spool.path()).unwrap();
        (job.uid, job.gid) = (own.uid(), own.gid());
        assert!(take(&spool_dir, &job).unwrap().is_empty());
        let path = make(&spool_dir, &job).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
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
