use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use io_autotune_configuration::read_text;

use crate::catalogue::{self, Catalogue};
use crate::followed::{Refused, Stamp};
use crate::{Accelerator, CatalogueError};

/// The accelerators of a directory as of the last [`LiveCatalogue::refresh`]. A wrong file keeps
/// its last valid accelerator; a removed file takes its accelerator along.
#[derive(Debug)]
pub struct LiveCatalogue {
    directory: PathBuf,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    catalogue: Arc<Catalogue>,
    files: BTreeMap<PathBuf, Known>,
    refused: Vec<Refused>,
}

#[derive(Clone, Debug)]
struct Known {
    stamp: Stamp,
    /// The accelerator of its last valid content.
    good: Option<Arc<Accelerator>>,
    problem: Option<String>,
}

/// A change that a refresh has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An accelerator is new or has changed.
    Loaded(String),
    /// An accelerator has gone.
    Gone(String),
    /// A file is wrong; its last valid content stays in use.
    Refused(Refused),
}

impl LiveCatalogue {
    /// Reads the directory and leaves wrong files out. Returns an error if the directory cannot be
    /// read.
    pub fn open(directory: &Path) -> Result<Self, CatalogueError> {
        catalogue::files(directory).map_err(|source| CatalogueError::Io {
            path: directory.to_owned(),
            source,
        })?;
        let live = Self {
            directory: directory.to_owned(),
            state: RwLock::default(),
        };
        live.refresh();
        Ok(live)
    }

    /// The present catalogue. Later changes do not affect the returned one.
    #[must_use]
    pub fn current(&self) -> Arc<Catalogue> {
        Arc::clone(&self.read(|state| Arc::clone(&state.catalogue)))
    }

    /// The files that are wrong, or the directory.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        self.read(|state| state.refused.clone())
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files that have changed, and returns the changes. For one caller at a time.
    pub fn refresh(&self) -> Vec<Change> {
        let (known, before, refused_before) = self.read(|state| {
            (
                state.files.clone(),
                Arc::clone(&state.catalogue),
                state.refused.clone(),
            )
        });
        let mut refused = Vec::new();
        let files = match catalogue::files(&self.directory) {
            Ok(paths) => paths
                .into_iter()
                .map(|path| {
                    let file = look(&path, known.get(&path));
                    (path, file)
                })
                .collect(),
            Err(error) => {
                refused.push(Refused {
                    path: self.directory.clone(),
                    problem: format!("cannot be read: {error}; what was read before stays"),
                });
                known
            }
        };
        let mut catalogue = Catalogue::default();
        for (path, file) in &files {
            let mut problem = file.problem.clone();
            if let Some(good) = &file.good
                && !catalogue.add(Arc::clone(good))
            {
                problem = Some(format!(
                    "the accelerator {:?} is described by another file too; rename one",
                    good.name
                ));
            }
            refused.extend(problem.map(|problem| Refused {
                path: path.clone(),
                problem,
            }));
        }
        let mut changes = differences(&before, &catalogue);
        let news = refused
            .iter()
            .filter(|refused| !refused_before.contains(refused));
        changes.extend(news.cloned().map(Change::Refused));
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State {
            catalogue: Arc::new(catalogue),
            files,
            refused,
        };
        changes
    }
}

/// The file as it is now, read only if it has changed.
fn look(path: &Path, known: Option<&Known>) -> Known {
    let good = known.and_then(|known| known.good.clone());
    match Stamp::of(path) {
        Ok(stamp) => match known {
            Some(known) if known.stamp == stamp => known.clone(),
            _ => match read(path) {
                Ok(accelerator) => Known {
                    stamp,
                    good: Some(Arc::new(accelerator)),
                    problem: None,
                },
                Err(problem) => Known {
                    stamp,
                    good,
                    problem: Some(problem),
                },
            },
        },
        Err(error) => Known {
            stamp: Stamp::default(),
            good,
            problem: Some(error.to_string()),
        },
    }
}

fn read(path: &Path) -> Result<Accelerator, String> {
    let text = read_text(path).map_err(|error| error.to_string())?;
    Accelerator::parse(&text).map_err(|error| error.to_string())
}

fn differences(before: &Catalogue, after: &Catalogue) -> Vec<Change> {
    let mut changes = Vec::new();
    for accelerator in after.iter() {
        let same = before
            .get(&accelerator.name)
            .is_some_and(|old| Arc::ptr_eq(old, accelerator));
        if !same {
            changes.push(Change::Loaded(accelerator.name.clone()));
        }
    }
    for accelerator in before.iter() {
        if after.get(&accelerator.name).is_none() {
            changes.push(Change::Gone(accelerator.name.clone()));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "NAME"
title = "x"
[[parameters]]
name = "size"
kind = "ordered"
values = [1, 2]
default = 1
[[delivery.environment]]
variable = "SIZE"
value = "{size}"
"#;

    /// Replaces a file as an admin's tools do: written beside it and renamed.
    fn write(directory: &Path, file: &str, text: &str) {
        let temporary = directory.join("new");
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(temporary, directory.join(file)).unwrap();
    }

    fn sizes(live: &LiveCatalogue, name: &str) -> Option<usize> {
        Some(live.current().get(name)?.space.parameters()[0].levels())
    }

    #[test]
    fn the_directory_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        write(path, "a.toml", &TEXT.replace("NAME", "a"));
        let live = LiveCatalogue::open(path).unwrap();
        assert_eq!(sizes(&live, "a"), Some(2));
        assert_eq!(live.refresh(), [], "nothing has changed");

        let kept = live.current();
        write(
            path,
            "a.toml",
            &TEXT.replace("NAME", "a").replace("[1, 2]", "[1, 2, 3]"),
        );
        write(path, "b.toml", &TEXT.replace("NAME", "b"));
        assert_eq!(
            live.refresh(),
            [Change::Loaded("a".into()), Change::Loaded("b".into())]
        );
        assert_eq!(sizes(&live, "a"), Some(3));
        assert_eq!(kept.get("a").unwrap().space.parameters()[0].levels(), 2);

        std::fs::remove_file(path.join("b.toml")).unwrap();
        assert_eq!(live.refresh(), [Change::Gone("b".into())]);
        assert_eq!(sizes(&live, "b"), None);
    }

    #[test]
    fn a_bad_file_keeps_what_it_last_said_rightly_and_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        write(path, "a.toml", &TEXT.replace("NAME", "a"));
        write(path, "c.toml", &TEXT.replace("NAME", "c"));
        let live = LiveCatalogue::open(path).unwrap();
        write(
            path,
            "a.toml",
            &TEXT.replace("NAME", "a").replace("{size}", "{sise}"),
        );
        let changes = live.refresh();
        let [Change::Refused(refused)] = changes.as_slice() else {
            panic!("{changes:?}")
        };
        assert_eq!(refused.path, path.join("a.toml"));
        assert!(refused.problem.contains("line 11"), "{refused}");
        assert_eq!(live.refresh(), [], "it is told once");
        assert_eq!(live.refused(), std::slice::from_ref(refused));
        assert_eq!((sizes(&live, "a"), sizes(&live, "c")), (Some(2), Some(2)));

        // It is mended.
        write(
            path,
            "a.toml",
            &TEXT.replace("NAME", "a").replace("[1, 2]", "[1, 2, 4]"),
        );
        assert_eq!(live.refresh(), [Change::Loaded("a".into())]);
        assert_eq!((live.refused(), sizes(&live, "a")), (vec![], Some(3)));

        // A second file of the same name is the one that is refused.
        write(path, "b.toml", &TEXT.replace("NAME", "a"));
        let [Change::Refused(twice)] = &live.refresh()[..] else {
            panic!("{:?}", live.refused())
        };
        assert!(twice.problem.contains("rename one"), "{twice}");
        assert_eq!(sizes(&live, "a"), Some(3));
    }

    #[test]
    fn what_is_tuned_together_follows_each_of_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let text = |name: &str| TEXT.replace("NAME", name).replace("SIZE", name);
        for name in ["a", "b"] {
            write(path, &format!("{name}.toml"), &text(name));
        }
        let live = LiveCatalogue::open(path).unwrap();
        let both = || live.current().find("b+a");
        let before = both().unwrap();
        write(path, "a.toml", &text("a").replace("x", "another title"));
        live.refresh();
        assert!(both().unwrap().space.offers_the_same(&before.space));
        write(path, "b.toml", &text("b").replace("[1, 2]", "[1, 2, 3]"));
        live.refresh();
        let after = both().unwrap();
        assert!(
            !after.space.offers_the_same(&before.space),
            "a change of either is another space"
        );
        write(path, "b.toml", "nothing");
        live.refresh();
        assert_eq!(both().unwrap().space, after.space, "a bad file keeps it");
        std::fs::remove_file(path.join("b.toml")).unwrap();
        live.refresh();
        assert_eq!(
            both().unwrap_err().to_string(),
            "there is no accelerator \"b\"; choose one of: a"
        );
    }

    #[test]
    fn a_directory_that_has_gone_keeps_everything() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d");
        assert!(LiveCatalogue::open(&path).is_err());
        std::fs::create_dir(&path).unwrap();
        write(&path, "a.toml", &TEXT.replace("NAME", "a"));
        let live = LiveCatalogue::open(&path).unwrap();
        std::fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        assert!(matches!(live.refresh()[..], [Change::Refused(_)]));
        assert_eq!(sizes(&live, "a"), Some(2));
    }
}
