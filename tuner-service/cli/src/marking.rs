//! Marks and measures of a job, which it reports itself: where its I/O phases are, and numbers of
//! its own. They are appended to a local file, at once or not at all: nothing waits, and no service
//! is asked.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use io_autotune_protocol::{MARKS_BYTES, MARKS_VARIABLE, Mark, ReportedError};
use nix::libc::{O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::spelling::place_of_command;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotMarked {
    #[error("nothing is marked: this is no job that io-autotune tunes or observes")]
    NoJob,
    #[error("nothing is marked: {MARKS_VARIABLE} is of another job")]
    AnotherJob,
    #[error("nothing is marked: {0:?} is neither begin nor end")]
    Phase(String),
    #[error("nothing is reported: {0}")]
    Reported(#[from] ReportedError),
    #[error("nothing more is marked: {MARKS_BYTES} bytes of marks are enough")]
    Full,
    #[error("nothing is marked: {0}")]
    Io(#[from] io::Error),
}

/// Returns true if `objective` reports a job's measure instead of changing a study: a word is
/// `NAME=VALUE`, or there is only one word and the command runs in a job, where `NAME=VALUE` was
/// meant.
pub(crate) fn is_reported(words: &[String]) -> bool {
    words.iter().any(|word| word.contains('=')) || (words.len() == 1 && is_in_job())
}

/// Returns true if a command line that cannot be read was meant to mark or to report something.
/// Like one that can be read, it must not end a job with `set -e`.
pub(crate) fn is_meant_by(words: &[OsString]) -> bool {
    let Some((command, words)) = place_of_command(words).and_then(|at| words[at..].split_first())
    else {
        return false;
    };
    let words = words.iter().map(|word| word.to_string_lossy());
    match command.to_str() {
        Some("mark") => true,
        Some("objective") => {
            let words: Vec<String> = words
                .filter(|word| !word.starts_with('-'))
                .map(Cow::into_owned)
                .collect();
            is_reported(&words) || (words.is_empty() && is_in_job())
        }
        _ => false,
    }
}

fn is_in_job() -> bool {
    [MARKS_VARIABLE, "SLURM_JOB_ID"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// Marks that an I/O phase begins or ends.
pub(crate) fn phase(what: &str) -> Result<(), NotMarked> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from)?;
    let now = u64::try_from(now.num_nanoseconds()).unwrap_or_default();
    let mark = match what {
        "begin" => Mark::Begin(now),
        "end" => Mark::End(now),
        other => return Err(NotMarked::Phase(other.to_owned())),
    };
    append(&[mark], |name| std::env::var_os(name))
}

/// Reports measures, each `NAME=VALUE`.
pub(crate) fn reported(words: &[String]) -> Result<(), NotMarked> {
    let marks: Result<Vec<Mark>, _> = words.iter().map(|word| Mark::reported(word)).collect();
    append(&marks?, |name| std::env::var_os(name))
}

fn append(marks: &[Mark], variable: impl Fn(&str) -> Option<OsString>) -> Result<(), NotMarked> {
    let path = variable(MARKS_VARIABLE).ok_or(NotMarked::NoJob)?;
    let path = Path::new(&path);
    // A job passes its environment to the jobs that it submits, so the path must be this job's:
    // SPOOL/in-force/CLUSTER.NODE.JOBID/marks.
    let of = path.parent().and_then(Path::extension);
    if let (Some(of), Some(job)) = (of, variable("SLURM_JOB_ID"))
        && of != job
    {
        return Err(NotMarked::AnotherJob);
    }
    let mut file = OpenOptions::new()
        .append(true)
        .custom_flags(O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other(format!("{} is no file", path.display())).into());
    }
    let lines: String = marks.iter().map(|mark| format!("{mark}\n")).collect();
    if metadata.len() + lines.len() as u64 > MARKS_BYTES {
        return Err(NotMarked::Full);
    }
    // One write, so that lines of processes that mark at the same time do not mix.
    Ok(file.write_all(lines.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The environment of job 7, whose marks are in `directory`.
    fn job(directory: &Path) -> impl Fn(&str) -> Option<OsString> {
        let path = directory.join("c.n1.7").join("marks");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        move |name| match name {
            MARKS_VARIABLE => Some(path.clone().into_os_string()),
            "SLURM_JOB_ID" => Some("7".into()),
            _ => None,
        }
    }

    #[test]
    fn lines_are_appended_until_there_are_enough() {
        let directory = tempfile::tempdir().unwrap();
        let job = job(directory.path());
        let path = directory.path().join("c.n1.7/marks");
        let rate = Mark::reported("rate=4").unwrap();
        assert!(
            matches!(
                append(std::slice::from_ref(&rate), &job),
                Err(NotMarked::Io(_))
            ),
            "no file is made"
        );
        fs::write(&path, "").unwrap();
        append(&[Mark::Begin(5), rate.clone()], &job).unwrap();
        append(&[Mark::End(9)], &job).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "begin 5\nobjective rate 4\nend 9\n"
        );
        fs::write(&path, vec![b'\n'; 65530]).unwrap();
        assert!(matches!(append(&[rate], &job), Err(NotMarked::Full)));
    }

    #[test]
    fn outside_a_job_or_in_another_nothing_is_written() {
        let mark = [Mark::Begin(5)];
        assert!(matches!(append(&mark, |_| None), Err(NotMarked::NoJob)));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.n1.7").join("marks");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let inner = |name: &str| match name {
            MARKS_VARIABLE => Some(path.clone().into_os_string()),
            _ => Some("8".into()),
        };
        assert!(matches!(append(&mark, inner), Err(NotMarked::AnotherJob)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_line_that_was_meant_for_a_job_is_known_though_it_is_wrong() {
        let meant = |line: &str| is_meant_by(&Vec::from_iter(line.split(' ').map(OsString::from)));
        for line in [
            "io-autotune mark",
            "io-autotune mark begin end",
            "io-autotune --config /nowhere mark --loudly begin",
            "io-autotune -M c objective rate=5 --loudly",
        ] {
            assert!(meant(line), "{line}");
        }
        for line in [
            "io-autotune",
            "io-autotune status --application mark --loudly",
            "io-autotune --cluster mark status --loudly",
            "io-autotune objective ocean marked --loudly --why=x",
        ] {
            assert!(!meant(line), "{line}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let job = job(directory.path());
        let path = directory.path().join("c.n1.7/marks");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert!(matches!(
            append(&[Mark::Begin(5)], &job),
            Err(NotMarked::Io(_))
        ));
        assert!(phase("middle").is_err());
        assert!(reported(&["rate".to_owned()]).is_err());
    }
}
