//! The file that keeps the runs of studies: lines of JSON that are only ever appended, each brought
//! to the disk before what it says is acted on. What a kill leaves of a last line is not read, and
//! is cut off before the next one is written.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use io_autotune_configuration::explained;
use io_autotune_optimize::SpaceFile;
use io_autotune_optimize::session::{Asked, Goal, Record, Told};
use serde::{Deserialize, Serialize};

use super::error::OptimizeError;
use super::template::line_of;

/// The form of the lines.
pub(super) const FORMAT: u32 = 1;
/// The most bytes of a file.
const LARGEST: u64 = 256 << 20;

/// Where a study is kept.
#[derive(Debug)]
pub(super) struct Storage {
    file: Option<File>,
    path: PathBuf,
    study: String,
}

/// A line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    study: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<Begun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Asked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

/// The part of a line that every version has. The line may be another study's.
#[derive(Debug, Deserialize)]
struct AnyLine {
    study: String,
    #[serde(default)]
    begun: Option<AnyBegun>,
}

#[derive(Debug, Deserialize)]
struct AnyBegun {
    format: u32,
}

/// The identity of a study: whoever goes on with it asks the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begun {
    pub(super) format: u32,
    /// The text of the file with the space, and its path.
    pub(super) space: String,
    pub(super) space_file: String,
    pub(super) goal: Goal,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) measure: Option<String>,
}

/// One study, as a file has it.
#[derive(Debug, Default)]
struct Kept {
    begun: Option<Begun>,
    records: Vec<Record>,
    /// The bytes of whole lines.
    whole: u64,
}

impl Storage {
    /// Nothing is kept.
    pub(super) fn nowhere() -> Self {
        Storage {
            file: None,
            path: PathBuf::new(),
            study: String::new(),
        }
    }

    /// Opens a study of a file, or begins one, and both if there is none. Errs when another process
    /// has the file, when it is no such file, and when the study is about something else.
    pub(super) fn open(
        path: &Path,
        study: &str,
        begun: &Begun,
    ) -> Result<(Self, Vec<Record>), OptimizeError> {
        let mut storage = Storage {
            file: None,
            path: path.to_owned(),
            study: study.to_owned(),
        };
        let mut file = storage.opened()?;
        let kept = storage.read(&mut file)?;
        let cut = |file: &mut File| {
            file.set_len(kept.whole)?;
            file.seek(SeekFrom::End(0))
        };
        cut(&mut file).map_err(|error| storage.error(&error.to_string()))?;
        storage.file = Some(file);
        match &kept.begun {
            Some(before) => storage.check(before, begun)?,
            None => {
                storage.append(&Line {
                    begun: Some(begun.clone()),
                    ..storage.line()
                })?;
                storage.sync()?;
            }
        }
        Ok((storage, kept.records))
    }

    fn opened(&self) -> Result<File, OptimizeError> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&self.path);
        let file = file.map_err(|error| self.error(&error.to_string()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(self.error(
                "another io-autotune has it open: wait until that ends, or give this study a --storage of its own",
            )),
            Err(TryLockError::Error(error)) => Err(self.error(&error.to_string())),
        }
    }

    fn read(&self, file: &mut File) -> Result<Kept, OptimizeError> {
        let of_system = |error: io::Error| self.error(&error.to_string());
        let mut bytes = Vec::new();
        file.take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(of_system)?;
        if bytes.len() as u64 > LARGEST {
            return Err(self.error(&format!(
                "it has more than {LARGEST} bytes: give the study another file"
            )));
        }
        kept(&bytes, &self.study).map_err(|problem| self.error(&problem))
    }

    /// Errs when a study was begun about something else.
    fn check(&self, before: &Begun, now: &Begun) -> Result<(), OptimizeError> {
        let study = &self.study;
        let otherwise = |what: &str, was: &str| {
            Err(self.error(&format!(
                "study {study:?} was begun with {what}: {was}; go on with that, or give this one another --name"
            )))
        };
        let then = SpaceFile::parse(&before.space, Path::new(&before.space_file));
        let now_read = SpaceFile::parse(&now.space, Path::new(&now.space_file));
        if let Some(what) = then.ok().zip(now_read.ok()).map_or(
            Some("it cannot be read any more".to_owned()),
            |(then, now)| difference(&then, &now),
        ) {
            return otherwise("another space", &format!("{}: {what}", before.space_file));
        }
        if before.goal != now.goal {
            return otherwise("another goal", before.goal.as_str());
        }
        if before.command != now.command {
            return otherwise("another command", &line_of(&before.command));
        }
        if before.measure != now.measure {
            return otherwise(
                "another --measure",
                before.measure.as_deref().unwrap_or("none"),
            );
        }
        Ok(())
    }

    /// Keeps what happened, on the disk when this returns.
    pub(super) fn keep(&mut self, records: Vec<Record>) -> Result<(), OptimizeError> {
        if self.file.is_none() || records.is_empty() {
            return Ok(());
        }
        for record in records {
            let line = self.line();
            self.append(&match record {
                Record::Asked(asked) => Line {
                    asked: Some(asked),
                    ..line
                },
                Record::Told(told) => Line {
                    told: Some(told),
                    ..line
                },
            })?;
        }
        self.sync()
    }

    fn line(&self) -> Line {
        Line {
            study: self.study.clone(),
            ..Line::default()
        }
    }

    fn append(&mut self, line: &Line) -> Result<(), OptimizeError> {
        let text = serde_json::to_string(line)? + "\n";
        let length = self
            .file
            .as_ref()
            .map(|file| file.metadata().map(|of| of.len()));
        let length = length.transpose();
        let length = length.map_err(|error| self.error(&error.to_string()))?;
        if length.unwrap_or_default() + text.len() as u64 > LARGEST {
            // What is longer would not be read again.
            return Err(self.error(&format!(
                "it would have more than {LARGEST} bytes: give the study another file"
            )));
        }
        let written = self
            .file
            .as_mut()
            .map(|file| file.write_all(text.as_bytes()));
        written
            .transpose()
            .map_err(|error| self.error(&error.to_string()))?;
        Ok(())
    }

    fn sync(&self) -> Result<(), OptimizeError> {
        let synced = self.file.as_ref().map(File::sync_data);
        synced
            .transpose()
            .map_err(|error| self.error(&error.to_string()))?;
        Ok(())
    }

    /// An error of this file.
    pub(super) fn error(&self, problem: &str) -> OptimizeError {
        OptimizeError::Storage {
            path: self.path.clone(),
            problem: problem.to_owned(),
        }
    }

    /// The file's path, for people.
    pub(super) fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// How a study's space differs from the one that it was begun with; none if it does not.
fn difference(then: &SpaceFile, now: &SpaceFile) -> Option<String> {
    let spelt = |file: &SpaceFile| file.spell(&file.space.default());
    if now.space.offers_the_same(&then.space) && spelt(now) == spelt(then) {
        return None;
    }
    let names = |file: &SpaceFile| -> Vec<String> {
        let parameters = file.space.parameters().iter();
        parameters.map(|one| one.name.clone()).collect()
    };
    let (old, new) = (names(then), names(now));
    if old != new {
        let (old, new) = (old.join(", "), new.join(", "));
        return Some(format!("its parameters were {old}, and now are {new}"));
    }
    let pairs = then.space.parameters().iter().zip(now.space.parameters());
    let mut others =
        pairs.filter(|(a, b)| (&a.domain, &a.default, &a.when) != (&b.domain, &b.default, &b.when));
    Some(match others.next() {
        Some((one, _)) => format!(
            "{} has other values, another default or another condition",
            one.name
        ),
        None => "its constraints or the spelling of a value differ".to_owned(),
    })
}

/// The study of whole lines. Errs with the number of a line that is none.
fn kept(bytes: &[u8], study: &str) -> Result<Kept, String> {
    let mut kept = Kept::default();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") {
            if is_torn(line, kept.whole > 0) {
                break;
            }
            return Err(format!(
                "line {} is none of a file of studies, and has no end; give the study another --storage",
                number + 1
            ));
        }
        kept.whole += line.len() as u64;
        let is_none = |error: serde_json::Error| {
            format!(
                "line {} is none of a file of studies: {}; give the study another --storage",
                number + 1,
                explained(&error.to_string())
            )
        };
        let any: AnyLine = serde_json::from_slice(line).map_err(is_none)?;
        if any.study != study {
            // It may be of a newer version, and is left as it is.
            continue;
        }
        if let Some(begun) = any.begun.filter(|begun| begun.format != FORMAT) {
            return Err(format!(
                "line {}: study {study:?} was written by another version of io-autotune (format {}, and this one reads {FORMAT}): give this study another --name",
                number + 1,
                begun.format
            ));
        }
        let line: Line = serde_json::from_slice(line).map_err(is_none)?;
        kept.begun = kept.begun.or(line.begun);
        kept.records.extend(line.asked.map(Record::Asked));
        kept.records.extend(line.told.map(Record::Told));
    }
    Ok(kept)
}

/// How a line begins.
const BEGINNING: &[u8] = br#"{"study":"#;

/// True if this is the beginning of a line, or what a file system leaves after a power cut. If no line of
/// ours is before it, a few bytes may as well be somebody else's.
fn is_torn(bytes: &[u8], is_ours: bool) -> bool {
    let is_short = || BEGINNING.starts_with(bytes) || bytes.iter().all(|byte| *byte == 0);
    bytes.starts_with(BEGINNING) || (is_ours && is_short())
}

#[cfg(test)]
mod tests {
    use io_autotune_engine::MethodName;
    use io_autotune_optimize::session::{Plan, Session};

    use super::*;

    const SPACE: &str =
        r#"{"parameters": [{"name": "a", "kind": "int", "values": [1, 2, 3, 4, 5, 6]}]}"#;

    fn begun() -> Begun {
        Begun {
            format: FORMAT,
            space: SPACE.to_owned(),
            space_file: "a.json".to_owned(),
            goal: Goal::Seconds,
            command: vec!["sort".to_owned()],
            measure: None,
        }
    }

    fn session() -> Session {
        let file = SpaceFile::parse(SPACE, Path::new("a.json")).unwrap();
        Session::planned(
            file,
            Plan {
                runs: 20,
                compare: 0,
                goal: Goal::Seconds,
                method: MethodName::SurrogateGenetic,
                seed: 1,
            },
        )
    }

    /// Keeps some runs; what the session says of them.
    fn filled(path: &Path, study: &str) -> String {
        let (mut storage, records) = Storage::open(path, study, &begun()).unwrap();
        assert!(records.is_empty());
        let mut session = session();
        for id in 1..=6 {
            session.answer(r#"{"ask":true}"#);
            session.answer(&format!(r#"{{"tell":{{"id":{id},"elapsed":{id}.5}}}}"#));
            storage.keep(session.take_records()).unwrap();
        }
        session.answer(r#"{"runs":true}"#).to_string()
    }

    fn read_again(path: &Path, study: &str) -> String {
        let (_, records) = Storage::open(path, study, &begun()).unwrap();
        let mut session = session();
        session.restore(records).unwrap();
        session.answer(r#"{"runs":true}"#).to_string()
    }

    #[test]
    fn studies_of_one_file_come_back_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        let one = filled(&path, "one");
        let two = filled(&path, "two");
        assert_eq!(
            (read_again(&path, "one"), read_again(&path, "two")),
            (one, two)
        );
    }

    #[test]
    fn whatever_a_kill_leaves_of_the_last_line_the_rest_is_read_and_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        filled(&path, "one");
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            if (1..BEGINNING.len()).contains(&length) {
                // So little may be anybody's.
                assert!(Storage::open(&path, "one", &begun()).is_err(), "{length}");
                assert_eq!(std::fs::read(&path).unwrap(), &whole[..length]);
                continue;
            }
            let (mut storage, records) = Storage::open(&path, "one", &begun()).unwrap();
            let mut session = session();
            session.restore(records).unwrap();
            session.answer(r#"{"ask":true}"#);
            storage.keep(session.take_records()).unwrap();
            let expected = session.answer(r#"{"runs":true}"#).to_string();
            drop(storage);
            assert_eq!(read_again(&path, "one"), expected, "{length}");
        }
    }

    #[test]
    fn a_study_about_something_else_is_refused_with_what_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        filled(&path, "one");
        let space = SPACE.replace(", 6", "");
        for (other, words) in [
            (
                Begun { space, ..begun() },
                "another space: a.json: a has other values",
            ),
            (
                Begun {
                    goal: Goal::Maximize,
                    ..begun()
                },
                "another goal: seconds",
            ),
            (
                Begun {
                    command: vec!["dd".to_owned()],
                    ..begun()
                },
                "another command: sort",
            ),
            (
                Begun {
                    measure: Some("(.)".to_owned()),
                    ..begun()
                },
                "another --measure: none",
            ),
        ] {
            let error = Storage::open(&path, "one", &other).unwrap_err().to_string();
            assert!(
                error.contains(words) && error.contains("another --name"),
                "{error}"
            );
        }
    }

    /// A newer version may write a form of its own, with keys that nobody knows here.
    #[test]
    fn a_newer_study_is_refused_and_does_not_keep_another_from_being_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        let one = filled(&path, "one");
        let newer = concat!(
            r#"{"study":"new","begun":{"format":2,"spaces":["a"]}}"#,
            "\n",
            r#"{"study":"new","asked":{"id":1,"values":[3]},"at":"noon"}"#,
            "\n"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, newer.to_owned() + &text + newer).unwrap();
        assert_eq!(read_again(&path, "one"), one);
        filled(&path, "two");
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(&(newer.to_owned() + &text + newer)));
        let error = Storage::open(&path, "new", &begun())
            .unwrap_err()
            .to_string();
        assert!(error.contains("another version"), "{error}");
        assert!(error.contains("format 2"), "{error}");
        // A line of one's own is read strictly.
        std::fs::write(&path, newer.replace("\"format\":2", "\"format\":1")).unwrap();
        let error = Storage::open(&path, "new", &begun())
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 1 is none"), "{error}");
    }

    #[test]
    fn zeros_alone_are_no_file_of_studies_and_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        std::fs::write(&path, [0; 64]).unwrap();
        assert!(Storage::open(&path, "one", &begun()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), [0; 64]);
    }

    #[test]
    fn nothing_is_kept_that_would_not_be_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        let (mut storage, _) = Storage::open(&path, "one", &begun()).unwrap();
        storage
            .file
            .as_ref()
            .unwrap()
            .set_len(LARGEST - 10)
            .unwrap();
        let mut session = session();
        session.answer(r#"{"ask":true}"#);
        let error = storage
            .keep(session.take_records())
            .unwrap_err()
            .to_string();
        assert!(error.contains("give the study another file"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LARGEST - 10);
    }

    #[test]
    fn who_comes_second_is_told_that_the_file_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        let first = Storage::open(&path, "one", &begun()).unwrap();
        let error = Storage::open(&path, "two", &begun())
            .unwrap_err()
            .to_string();
        assert!(error.contains("another io-autotune has it open"), "{error}");
        drop(first);
        Storage::open(&path, "two", &begun()).unwrap();
    }

    /// A file of studies is read and gone on with, or refused with its line; it is never changed then.
    ///
    /// Attack (parsers): The file that keeps the runs of `optimize`.
    /// Outcome: It is gone on with, or refused and left as it was.
    #[test]
    fn fuzz_storage() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs");
        filled(&path, "one");
        let sample = std::fs::read_to_string(&path).unwrap();
        io_autotune_fuzzing::Target::new("storage", &[sample.as_str()])
            .rounds(1500)
            .run(|input| {
                match kept(input, "one") {
                    Ok(kept) => {
                        assert!(kept.whole <= input.len() as u64);
                        // Numbers and ids that no session had are refused, and nothing panics.
                        if session().restore(kept.records).is_ok() {
                            assert!(
                                input[..usize::try_from(kept.whole).unwrap()].ends_with(b"\n")
                                    || kept.whole == 0
                            );
                        }
                    }
                    Err(problem) => assert!(problem.contains("line "), "{problem}"),
                }
            });
        std::fs::write(&path, "notes of mine\n").unwrap();
        let error = Storage::open(&path, "one", &begun())
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 1 is none"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes of mine\n");
        // Nor is a file that happens to be one line without an end.
        std::fs::write(&path, "notes of mine").unwrap();
        assert!(Storage::open(&path, "one", &begun()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes of mine");
    }
}
