//! The collector's state on disk: its position in the spool, and refused lines.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub(crate) struct FileError {
    path: PathBuf,
    source: io::Error,
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError { path, source }
}

/// The number of delivered bytes of each file, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    pub(crate) delivered: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub(crate) struct StateDirectory {
    path: PathBuf,
}

impl StateDirectory {
    const POSITION: &str = "position.json";
    const REFUSED: &str = "refused";

    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    pub(crate) fn refused(&self) -> PathBuf {
        self.path.join(Self::REFUSED)
    }

    /// The position, and the problem with the stored one if it is unusable: then everything is sent
    /// again, and the service recognises it.
    pub(crate) fn load(&self) -> Result<(Position, Option<String>), FileError> {
        let path = self.path.join(Self::POSITION);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((Position::default(), None))
            }
            Err(error) => Err(at(&path)(error)),
            Ok(text) => Ok(match serde_json::from_slice(&text) {
                Ok(position) => (position, None),
                Err(error) => (
                    Position::default(),
                    Some(format!("{}: {error}", path.display())),
                ),
            }),
        }
    }

    /// Replaces the position atomically and durably.
    pub(crate) fn save(&self, position: &Position) -> Result<(), FileError> {
        let path = self.path.join(Self::POSITION);
        let temporary = path.with_extension("new");
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(&serde_json::to_vec(position)?)?;
            file.sync_data()?;
            fs::rename(&temporary, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(at(&path))
    }

    /// Keeps a refused line durably.
    pub(crate) fn keep_refused(&self, line: &str) -> Result<(), FileError> {
        let path = self.refused();
        let write = || {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        };
        write().map_err(at(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_comes_back_and_damage_means_from_the_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(directory.path());
        assert_eq!(state.load().unwrap(), (Position::default(), None));
        let position = Position {
            delivered: BTreeMap::from([("outcomes-20261121".into(), 7)]),
        };
        state.save(&position).unwrap();
        assert_eq!(state.load().unwrap(), (position, None));
        for damage in ["", "{\"delivered\":", "{\"delivered\":{\"a\":-1}}", "[]"] {
            fs::write(directory.path().join("position.json"), damage).unwrap();
            let (position, problem) = state.load().unwrap();
            assert_eq!(position, Position::default());
            assert!(problem.unwrap().contains("position.json"));
        }
    }

    #[test]
    fn the_position_is_on_disk_before_it_takes_the_place_of_the_last() {
        let calls = io_autotune_test_trace::calls(
            "files::tests::the_position_is_on_disk_before_it_takes_the_place_of_the_last",
            |place| {
                let state = StateDirectory::new(place);
                state.save(&Position::default()).unwrap();
            },
        );
        let Some(calls) = calls else { return };
        assert_eq!(
            calls,
            [
                "write draft",
                "fdatasync draft",
                "rename draft position.json",
                "fsync ."
            ]
        );
    }

    #[test]
    fn a_refused_line_is_on_disk_when_it_is_kept() {
        let calls = io_autotune_test_trace::calls(
            "files::tests::a_refused_line_is_on_disk_when_it_is_kept",
            |place| {
                let state = StateDirectory::new(place);
                state.keep_refused("1 7 COMPLETED").unwrap();
            },
        );
        let Some(calls) = calls else { return };
        assert_eq!(calls, ["write refused", "fdatasync refused"]);
    }

    #[test]
    fn a_directory_that_is_missing_is_an_error_that_names_it() {
        let state = StateDirectory::new(Path::new("/nonexistent/collector"));
        let error = state.save(&Position::default()).unwrap_err();
        assert!(
            error.to_string().contains("/nonexistent/collector"),
            "{error}"
        );
    }
}
