//! The files that slurmctld keeps of a batch job in its directory, by the path of a script that it
//! passes to its burst buffer's functions: `hash.H/job.N/script`, H being N's last digit, and
//! `environment` beside it.

use std::io::Read;
use std::path::{Path, PathBuf};

use io_autotune_protocol::Request;

use super::DirectivesError;

/// The variable of the request, which sbatch leaves in the job's environment.
const REQUEST: &[u8] = b"SLURM_SPANK_IO_AUTOTUNE=";

/// The largest script and environment that are read, in bytes: sbatch accepts none larger by
/// default.
pub(super) const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The files of one job.
#[derive(Debug, PartialEq)]
pub(super) struct Kept {
    script: PathBuf,
}

impl Kept {
    pub(super) fn by_script(script: &Path) -> Self {
        Self {
            script: script.to_owned(),
        }
    }

    /// The files of an array's own job, which all its tasks share; none if slurmctld keeps none.
    ///
    /// Slurm itself reads a task's files there. Until 24.05 it also links the script at the path
    /// that it passes to its burst buffer's functions for a task; from 24.11 on there is nothing at
    /// that path.
    pub(super) fn of_array(&self, array: u32) -> Option<Self> {
        let state = self.script.parent()?.parent()?.parent()?;
        let script = state.join(format!("hash.{}/job.{array}/script", array % 10));
        script.exists().then_some(Self { script })
    }

    pub(super) fn script(&self) -> Result<Vec<u8>, DirectivesError> {
        read(&self.script)
    }

    fn environment(&self) -> PathBuf {
        self.script.with_file_name("environment")
    }

    /// Returns true if the job's environment is here: salloc's jobs have none, and tasks use their
    /// array's.
    pub(super) fn has_environment(&self) -> bool {
        self.environment().exists()
    }

    /// The request of `--io-autotune` in the job's environment. The file has a number, and
    /// NAME=VALUE with a NUL after each.
    pub(super) fn request(&self) -> Result<Option<Request>, DirectivesError> {
        if !self.has_environment() {
            return Ok(None);
        }
        let text = read(&self.environment())?;
        let entries = text.get(4..).unwrap_or_default();
        let mut entries = entries.split(|byte| *byte == 0);
        let Some(value) = entries.find_map(|entry| entry.strip_prefix(REQUEST)) else {
            return Ok(None);
        };
        Ok(Some(String::from_utf8_lossy(value).parse()?))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, DirectivesError> {
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text))
        .map_err(|error| DirectivesError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
    if text.len() as u64 > MOST_BYTES {
        return Err(DirectivesError::TooLarge(path.to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(state: &Path, job_id: u32) -> Kept {
        let directory = state.join(format!("hash.{}/job.{job_id}", job_id % 10));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("script"), format!("#BB {job_id}\n")).unwrap();
        Kept::by_script(&directory.join("script"))
    }

    #[test]
    fn a_task_has_the_files_of_its_array() {
        let state = tempfile::tempdir().unwrap();
        // Slurm names this path, but has made neither the file nor its directory.
        let task = Kept::by_script(&state.path().join("hash.7/job.17/script"));
        assert_eq!(task.of_array(23), None, "an array that is gone");
        let array = kept(state.path(), 23);
        assert_eq!(task.of_array(23), Some(Kept { ..array }));
        let script = task.of_array(23).unwrap().script().unwrap();
        assert_eq!(script, b"#BB 23\n");
    }

    #[test]
    fn the_request_is_found_in_the_environment_that_slurmctld_keeps() {
        let state = tempfile::tempdir().unwrap();
        let job = kept(state.path(), 23);
        assert!(!job.has_environment());
        assert!(job.request().unwrap().is_none(), "salloc has none");
        let request = |entries: &[u8]| {
            std::fs::write(job.environment(), [b"\x02\0\0\0", entries].concat()).unwrap();
            job.request()
        };
        assert!(request(b"A=1\0B=2\0").unwrap().is_none());
        let found = request(b"A=1\0SLURM_SPANK_IO_AUTOTUNE=app=ocean,mode=tune\0").unwrap();
        assert_eq!(found.unwrap().app.as_deref(), Some("ocean"));
        let first = request(b"SLURM_SPANK_IO_AUTOTUNE=app=ocean,mode=tune\0A=\xff\0").unwrap();
        assert!(first.is_some());
        assert!(request(b"SLURM_SPANK_IO_AUTOTUNE=app=../x\0").is_err());
        let quoted = request(b"A=SLURM_SPANK_IO_AUTOTUNE=app=other,mode=tune\0").unwrap();
        assert!(quoted.is_none(), "only a name counts");
    }
}
