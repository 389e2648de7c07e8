//! The spool: a directory with a file per day, to which the job-completion script appends.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use io_autotune_protocol::Outcome;
use jiff::civil::Date;

use crate::files::{FileError, at};
use crate::line;

/// The longest line in bytes. The script's lines have a few hundred at most.
const LONGEST_LINE: u64 = 4096;

/// The prefix of a file's name, followed by the day as YYYYMMDD.
const PREFIX: &str = "outcomes-";

/// A line and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    pub(crate) line: String,
    pub(crate) outcome: Outcome,
}

/// The content between two offsets of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) words: Vec<Word>,
    /// The offset of the end, in bytes.
    pub(crate) end: u64,
    /// The number of invalid lines, and the problem of the first.
    pub(crate) unbelievable: u64,
    pub(crate) first_problem: Option<String>,
}

impl Batch {
    fn disbelieve(&mut self, problem: String) {
        self.unbelievable += 1;
        self.first_problem.get_or_insert(problem);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DayFile {
    pub(crate) day: Date,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The spool's files, oldest first; ignores other names.
pub(crate) fn day_files(directory: &Path) -> Result<Vec<DayFile>, FileError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let entry = entry.map_err(at(directory))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if let (true, Some(name)) = (is_file, entry.file_name().to_str())
            && let Some(day) = day(name)
        {
            found.push(DayFile {
                day,
                name: name.to_owned(),
                path: entry.path(),
            });
        }
    }
    found.sort();
    Ok(found)
}

fn day(name: &str) -> Option<Date> {
    let digits = name.strip_prefix(PREFIX)?;
    let plain = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| Date::strptime("%Y%m%d", digits).ok())?
}

impl DayFile {
    pub(crate) fn length(&self) -> Result<u64, FileError> {
        Ok(fs::metadata(&self.path).map_err(at(&self.path))?.len())
    }

    /// Reads whole lines from `offset`, up to `most` outcomes. An unfinished line waits.
    pub(crate) fn read(&self, offset: u64, most: usize) -> Result<Batch, FileError> {
        let open = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            read(BufReader::new(file), offset, most)
        };
        open().map_err(at(&self.path))
    }

    pub(crate) fn remove(&self) -> Result<(), FileError> {
        fs::remove_file(&self.path).map_err(at(&self.path))
    }
}

fn read(mut file: impl BufRead, offset: u64, most: usize) -> io::Result<Batch> {
    let mut batch = Batch {
        end: offset,
        ..Batch::default()
    };
    let mut text = Vec::new();
    while batch.words.len() < most {
        let Some(length) = next_line(&mut file, &mut text)? else {
            break;
        };
        batch.end += length;
        if length > LONGEST_LINE {
            batch.disbelieve(format!("it is longer than {LONGEST_LINE} bytes"));
            continue;
        }
        match line::parse(&text) {
            Ok(None) => {}
            Ok(Some(outcome)) => batch.words.push(Word {
                line: String::from_utf8_lossy(&text).into_owned(),
                outcome,
            }),
            Err(error) => batch.disbelieve(error.to_string()),
        }
    }
    Ok(batch)
}

/// The next line's length with its newline; its text, unless it is too long. `None`: no whole line.
fn next_line(file: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let mut length = 0;
    loop {
        text.clear();
        let read = file.by_ref().take(LONGEST_LINE).read_until(b'\n', text)?;
        length += u64::try_from(read).unwrap_or(u64::MAX);
        if text.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(length));
        }
        if read == 0 {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn good(job_id: u32) -> String {
        format!("1 {job_id} COMPLETED 0:0 10 20 UNLIMITED 1\n")
    }

    fn ids(batch: &Batch) -> Vec<u32> {
        batch.words.iter().map(|word| word.outcome.job_id).collect()
    }

    #[test]
    fn only_files_named_for_a_day_are_read() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "outcomes-20261122",
            "outcomes-20261121",
            "outcomes-20261321",
            "outcomes-2026112",
            "outcomes-20261121.old",
            "other",
        ] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        symlink("/etc/passwd", directory.path().join("outcomes-20261120")).unwrap();
        fs::create_dir(directory.path().join("outcomes-20261119")).unwrap();
        let names: Vec<_> = day_files(directory.path()).unwrap();
        let names: Vec<_> = names.into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["outcomes-20261121", "outcomes-20261122"]);
    }

    #[test]
    fn what_the_script_writes_is_read() {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../deploy/jobcomp/io-autotune-jobcomp"
        );
        let directory = tempfile::tempdir().unwrap();
        for (job_id, state) in [("7", "COMPLETED"), ("8", "PENDING")] {
            let status = Command::new(script)
                .arg(directory.path())
                .env_clear()
                .envs([("JOBID", job_id), ("JOBSTATE", state), ("EXITCODE", "0:0")])
                .envs([("START", "10"), ("END", "20"), ("LIMIT", "00:05:00")])
                .envs([
                    ("NODECNT", "2"),
                    ("NODES", "n[1-2]"),
                    ("JOBNAME", "1 9 COMPLETED\n"),
                ])
                .status()
                .unwrap();
            assert!(status.success());
        }
        // The variables as if Slurm had set none.
        Command::new(script)
            .arg(directory.path())
            .env_clear()
            .status()
            .unwrap();
        let files = day_files(directory.path()).unwrap();
        // There are two files if the test runs over midnight.
        let batches: Vec<_> = files.iter().map(|file| file.read(0, 10).unwrap()).collect();
        let words: Vec<_> = batches.iter().flat_map(|batch| &batch.words).collect();
        assert_eq!(words[0].line, "3 7 COMPLETED 0:0 10 20 00:05:00 2 - n[1-2]");
        assert_eq!(words[1].outcome.state, "REQUEUED");
        assert_eq!(words.len(), 2);
        let unbelievable: u64 = batches.iter().map(|batch| batch.unbelievable).sum();
        assert_eq!(unbelievable, 1);
    }

    #[test]
    fn whole_lines_are_read_and_what_has_no_end_waits() {
        let text = format!("{}{}1 9 COMPLETED 0:0", good(7), good(8));
        let batch = read(text.as_bytes(), 100, 10).unwrap();
        assert_eq!(ids(&batch), [7, 8]);
        assert_eq!(batch.words[0].line, good(7).trim_end());
        assert_eq!(batch.end, 100 + good(7).len() as u64 * 2);
        assert_eq!(batch.unbelievable, 0);
    }

    #[test]
    fn a_batch_is_no_larger_than_asked() {
        let text: String = (1..=5).map(good).collect();
        let batch = read(text.as_bytes(), 0, 2).unwrap();
        assert_eq!(ids(&batch), [1, 2]);
        assert_eq!(batch.end, good(1).len() as u64 * 2);
    }

    #[test]
    fn lines_that_are_not_believed_are_counted_and_passed_over() {
        let long = "x".repeat(10_000);
        let text = format!("nonsense\n{}{long}\n\n{}{long}", good(7), good(8));
        let batch = read(text.as_bytes(), 0, 10).unwrap();
        assert_eq!(ids(&batch), [7, 8]);
        assert_eq!(batch.unbelievable, 3);
        assert!(batch.first_problem.unwrap().contains("\"nonsense\""));
        assert_eq!(batch.end, (text.len() - long.len()) as u64);
    }

    proptest! {
        /// However the file is cut into batches, each line comes out once.
        #[test]
        fn batches_join_without_gap_or_overlap(
            lines in prop::collection::vec(prop_oneof![
                (1u32..).prop_map(good),
                "[ -~]{0,60}\n",
                Just(format!("{}\n", "y".repeat(5000))),
            ], 0..20),
            most in 1usize..5,
        ) {
            let text = lines.concat();
            let whole = read(text.as_bytes(), 0, usize::MAX).unwrap();
            let (mut offset, mut words, mut unbelievable) = (0, Vec::new(), 0);
            loop {
                let batch = read(&text.as_bytes()[offset as usize..], offset, most).unwrap();
                prop_assert!(batch.words.len() <= most);
                if batch.end == offset {
                    break;
                }
                offset = batch.end;
                words.extend(batch.words);
                unbelievable += batch.unbelievable;
            }
            prop_assert_eq!(offset, text.len() as u64);
            prop_assert_eq!(&words, &whole.words);
            prop_assert_eq!(unbelievable, whole.unbelievable);
        }
    }
}
