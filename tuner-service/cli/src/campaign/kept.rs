//! The file that keeps a campaign, in the user's own state directory: what it was begun with, what
//! was agreed to, and the number of each job. sbatch itself writes the numbers, so that no job is
//! lost however this program ends. How the jobs went is for the service to say.
//!
//! The file is only ever appended to. Its lock is sbatch's too: who goes on with a campaign does not
//! overtake a submission that is under way.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use io_autotune_configuration::explained;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};

use crate::service::CliError;

/// The form of the lines.
pub(crate) const FORMAT: u32 = 1;
/// The most bytes of a file: sbatch takes no longer command line, and the numbers of 10,000 jobs
/// take less.
const LARGEST: u64 = 4 << 20;

/// The identity of a campaign: whoever goes on with it asks the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begun {
    pub(crate) format: u32,
    /// The directory in which sbatch is called.
    pub(crate) directory: PathBuf,
    /// The words that sbatch is given.
    pub(crate) words: Vec<String>,
    pub(crate) cluster: Option<String>,
}

/// What the user has agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreed {
    pub(crate) runs: u32,
    pub(crate) node_hours: f64,
}

/// A job as sbatch names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobName {
    pub(crate) job_id: u32,
    pub(crate) cluster: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<Begun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreed: Option<Agreed>,
}

/// The whole lines of a file.
#[derive(Debug, Default, PartialEq)]
struct Lines {
    begun: Option<Begun>,
    agreed: Option<Agreed>,
    jobs: Vec<JobName>,
    whole: u64,
}

/// An open file, which no other campaign has.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    path: PathBuf,
    /// The bytes that have been read.
    read: u64,
    pub(crate) agreed: Option<Agreed>,
    pub(crate) jobs: Vec<JobName>,
}

impl Kept {
    /// Opens a campaign of the user's, or begins one. Returns an error if another process has it,
    /// if it is about something else, and if the file is not the user's alone.
    pub(crate) fn open(name: &str, begun: &Begun) -> Result<Self, CliError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let directory = directory(variable("XDG_STATE_HOME"), variable("HOME"));
        let directory = directory.ok_or_else(|| {
            CliError::Campaign(
                "a campaign is kept below HOME, or XDG_STATE_HOME: neither is set to an absolute path".to_owned(),
            )
        })?;
        Self::open_in(&directory, name, begun)
    }

    fn open_in(directory: &Path, name: &str, begun: &Begun) -> Result<Self, CliError> {
        let path = directory.join(format!("{name}.campaign"));
        let error = |problem: &str| error_of(&path, problem);
        let of_system = |problem: io::Error| error(&problem.to_string());
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(directory);
        made.map_err(of_system)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let options = options.custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let mut file = options.open(&path).map_err(of_system)?;
        let metadata = file.metadata().map_err(of_system)?;
        let is_own = metadata.uid() == Uid::effective().as_raw() && metadata.mode() & 0o077 == 0;
        if !(metadata.is_file() && is_own) {
            return Err(error(
                "it is not a file of yours alone: nothing of it is believed; move it away to begin anew",
            ));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(error(
                    "another io-autotune watches this campaign, or its sbatch still runs: wait until that ends, or give this one another --name",
                ));
            }
            Err(TryLockError::Error(problem)) => return Err(of_system(problem)),
        }
        let mut bytes = Vec::new();
        let read = (&mut file).take(LARGEST + 1).read_to_end(&mut bytes);
        read.map_err(of_system)?;
        if bytes.len() as u64 > LARGEST {
            return Err(error(
                "it is longer than any campaign: move it away to begin anew",
            ));
        }
        let lines = lines(&bytes).map_err(|problem| error(&problem))?;
        // What a full disk has left of a last line would become a part of the next one.
        file.set_len(lines.whole).map_err(of_system)?;
        let mut kept = Self {
            file,
            path: path.clone(),
            read: lines.whole,
            agreed: lines.agreed,
            jobs: lines.jobs,
        };
        match &lines.begun {
            Some(before) => kept.check(before, begun)?,
            None => kept.append(&Line {
                begun: Some(begun.clone()),
                agreed: None,
            })?,
        }
        Ok(kept)
    }

    fn check(&self, before: &Begun, now: &Begun) -> Result<(), CliError> {
        let differs = [
            (
                before.words != now.words,
                "other words for sbatch",
                before.words.join(" "),
            ),
            (
                before.directory != now.directory,
                "another directory",
                before.directory.display().to_string(),
            ),
            (
                before.cluster != now.cluster,
                "another --cluster",
                before.cluster.clone().unwrap_or_else(|| "none".to_owned()),
            ),
        ];
        let other = differs.into_iter().find(|(differs, ..)| *differs);
        other.map_or(Ok(()), |(_, what, was)| {
            Err(error_of(
                &self.path,
                &format!(
                    "that campaign was begun with {what}: {was}. Go on with that, give this one another --name, or remove the file"
                ),
            ))
        })
    }

    /// Keeps what was agreed to, on the disk when this returns.
    pub(crate) fn agree(&mut self, agreed: Agreed) -> Result<(), CliError> {
        if self.agreed != Some(agreed) {
            self.append(&Line {
                begun: None,
                agreed: Some(agreed),
            })?;
            self.agreed = Some(agreed);
        }
        Ok(())
    }

    fn append(&mut self, line: &Line) -> Result<(), CliError> {
        let text = serde_json::to_string(line)? + "\n";
        if self.read + text.len() as u64 > LARGEST / 2 {
            return Err(self.error("sbatch's words are too long to be kept"));
        }
        let written = self.file.write_all(text.as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|problem| self.error(&problem.to_string()))?;
        self.read += text.len() as u64;
        Ok(())
    }

    /// The file for sbatch to write the job's number to, with the lock.
    pub(crate) fn for_sbatch(&self) -> Result<File, CliError> {
        let file = self.file.try_clone();
        file.map_err(|problem| self.error(&problem.to_string()))
    }

    /// Reads the jobs that sbatch has written meanwhile; how many there are.
    pub(crate) fn submitted(&mut self) -> Result<usize, CliError> {
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.read));
        let read = read.and_then(|_| {
            (&mut self.file)
                .take(LARGEST.saturating_sub(self.read))
                .read_to_end(&mut bytes)
        });
        read.map_err(|problem| self.error(&problem.to_string()))?;
        let lines = lines(&bytes).map_err(|problem| self.error(&problem))?;
        self.read += lines.whole;
        let new = lines.jobs.len();
        self.jobs.extend(lines.jobs);
        Ok(new)
    }

    /// Forgets the campaign, which is over.
    pub(crate) fn remove(self) -> Result<(), CliError> {
        let removed = std::fs::remove_file(&self.path);
        removed.map_err(|problem| self.error(&problem.to_string()))
    }

    fn error(&self, problem: &str) -> CliError {
        error_of(&self.path, problem)
    }
}

fn error_of(path: &Path, problem: &str) -> CliError {
    CliError::Campaign(format!("{}: {problem}", path.display()))
}

/// The directory of campaigns. A relative path says nothing, by the XDG specification.
fn directory(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let below_home = || Some(home.filter(absolute)?.join(".local/state"));
    let state = state.filter(absolute).or_else(below_home)?;
    Some(state.join("io-autotune"))
}

/// The whole lines of a file, or of a part of one. Words that a site's sbatch prints beside the
/// number are left out.
fn lines(bytes: &[u8]) -> Result<Lines, String> {
    let mut lines = Lines::default();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") {
            break;
        }
        lines.whole += line.len() as u64;
        if !line.starts_with(b"{") {
            lines.jobs.extend(job(line));
            continue;
        }
        let read: Result<Line, _> = serde_json::from_slice(line);
        let is_none = |what: &str| {
            Err(format!(
                "line {} is none of a campaign: {what}; move the file away to begin anew",
                number + 1
            ))
        };
        match read {
            Ok(Line {
                begun: Some(begun), ..
            }) if begun.format != FORMAT => return is_none("it is of another version"),
            Ok(line) => {
                let is_wrong = |agreed: &Agreed| !(agreed.node_hours > 0.0 && agreed.runs > 0);
                if line.agreed.as_ref().is_some_and(is_wrong) {
                    return is_none("nobody agrees to that");
                }
                lines.begun = lines.begun.or(line.begun);
                lines.agreed = line.agreed.or(lines.agreed);
            }
            Err(error) => return is_none(&explained(&error.to_string())),
        }
    }
    Ok(lines)
}

/// The job of a line of `sbatch --parsable`: `4711`, or `4711;alpha`.
fn job(line: &[u8]) -> Option<JobName> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (id, cluster) = match line.split_once(';') {
        None => (line, None),
        Some((id, cluster)) => (id, Some(cluster.to_owned())),
    };
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |name: &String| {
        let mut bytes = name.bytes();
        name.len() <= 128
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    if !is_number || !cluster.as_ref().is_none_or(is_name) {
        return None;
    }
    let job_id = id.parse().ok()?;
    Some(JobName { job_id, cluster })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use std::time::{Duration, Instant};

    use super::*;

    fn begun() -> Begun {
        Begun {
            format: FORMAT,
            directory: PathBuf::from("/home/alice"),
            words: vec!["-N2".to_owned(), "ocean.sh".to_owned()],
            cluster: None,
        }
    }

    const AGREED: Agreed = Agreed {
        runs: 20,
        node_hours: 2.5,
    };

    /// Opens a campaign that nobody watches. Between fork and exec, children of tests that run beside
    /// this one have all descriptors of the process, and with them its locks: they are waited for.
    fn opened(directory: &Path, begun: &Begun) -> Result<Kept, CliError> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            match Kept::open_in(directory, "ocean.sh", begun) {
                Err(error)
                    if error.to_string().contains("watches this campaign")
                        && Instant::now() < end =>
                {
                    std::thread::yield_now();
                }
                other => return other,
            }
        }
    }

    fn told(result: Result<Kept, CliError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_campaign_goes_on_with_the_jobs_that_sbatch_has_written() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("state/io-autotune");
        let open = || opened(&directory, &begun());
        let mut kept = open().unwrap();
        kept.agree(AGREED).unwrap();
        kept.for_sbatch().unwrap().write_all(b"4711\n").unwrap();
        assert_eq!(kept.submitted().unwrap(), 1);
        // Of these this process hears nothing any more.
        let mut sbatch = kept.for_sbatch().unwrap();
        drop(kept);
        let error = told(Kept::open_in(&directory, "ocean.sh", &begun()));
        assert!(error.contains("its sbatch still runs"), "{error}");
        sbatch
            .write_all(b"welcome to alpha\n4712;alpha\n47")
            .unwrap();
        drop(sbatch);
        let kept = open().unwrap();
        let ids: Vec<u32> = kept.jobs.iter().map(|job| job.job_id).collect();
        assert_eq!((ids, kept.agreed), (vec![4711, 4712], Some(AGREED)));
        assert_eq!(kept.jobs[1].cluster.as_deref(), Some("alpha"));
        kept.for_sbatch().unwrap().write_all(b"4713\n").unwrap();
        drop(kept);
        assert_eq!(
            open().unwrap().jobs[2].job_id,
            4713,
            "the torn line is cut off"
        );
        open().unwrap().remove().unwrap();
        assert!(open().unwrap().jobs.is_empty());
    }

    #[test]
    fn another_campaign_of_the_same_name_is_refused_and_kept() {
        let root = tempfile::tempdir().unwrap();
        let open = |begun: &Begun| opened(root.path(), begun);
        let mut kept = open(&begun()).unwrap();
        kept.agree(AGREED).unwrap();
        drop(kept);
        let others = [
            (
                Begun {
                    words: vec!["x.sh".to_owned()],
                    ..begun()
                },
                "other words",
            ),
            (
                Begun {
                    directory: "/tmp".into(),
                    ..begun()
                },
                "another directory",
            ),
            (
                Begun {
                    cluster: Some("beta".to_owned()),
                    ..begun()
                },
                "another --cluster",
            ),
        ];
        for (other, what) in others {
            let error = told(open(&other));
            assert!(
                error.contains(what) && error.contains("another --name"),
                "{error}"
            );
        }
        assert_eq!(open(&begun()).unwrap().agreed, Some(AGREED));
    }

    /// Attack (parsers): The file of a campaign is a link, or another's, or others can write it.
    /// Outcome: Nothing of it is believed, and no job is submitted.
    #[test]
    fn only_a_file_of_the_users_alone_is_believed() {
        let root = tempfile::tempdir().unwrap();
        let open = || opened(root.path(), &begun());
        drop(open().unwrap());
        let path = root.path().join("ocean.sh.campaign");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(told(open()).contains("not a file of yours alone"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        drop(open().unwrap());
        fs::rename(&path, root.path().join("moved")).unwrap();
        symlink(root.path().join("moved"), &path).unwrap();
        assert!(told(open()).contains("ocean.sh.campaign: "));
    }

    /// Attack (parsers): The file that keeps a campaign has any bytes.
    /// Outcome: It is gone on with, or refused and left as it was.
    #[test]
    fn fuzz_campaign() {
        let line = |begun, agreed| serde_json::to_string(&Line { begun, agreed }).unwrap();
        let [first, second] = [line(Some(begun()), None), line(None, Some(AGREED))];
        let sample = format!("{first}\n{second}\n4711\n4712;alpha\n");
        io_autotune_fuzzing::Target::new("campaign", &[sample.as_str()])
            .rounds(3000)
            .run(|input| match lines(input) {
                Ok(lines) => {
                    assert!(lines.whole <= input.len() as u64);
                    assert!(lines.agreed.is_none_or(|agreed| agreed.node_hours > 0.0));
                }
                Err(problem) => assert!(problem.contains("line "), "{problem}"),
            });
        let root = tempfile::tempdir().unwrap();
        let open = || opened(root.path(), &begun());
        drop(open().unwrap());
        let path = root.path().join("ocean.sh.campaign");
        for text in [
            "{\"mine\": 1}\n",
            "{\"agreed\":{\"runs\":0,\"node_hours\":1}}\n",
        ] {
            fs::write(&path, text).unwrap();
            assert!(told(open()).contains("line 1 is none"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(LARGEST + 1)
            .unwrap();
        assert!(told(open()).contains("longer than any campaign"));
    }

    #[test]
    fn state_is_kept_where_the_user_wants_it() {
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(directory(path("/s"), path("/h")), path("/s/io-autotune"));
        let below_home = path("/h/.local/state/io-autotune");
        assert_eq!(directory(path("s"), path("/h")), below_home);
        assert_eq!(directory(None, path("/h")), below_home);
        assert_eq!(directory(None, path("h")), None);
    }
}
