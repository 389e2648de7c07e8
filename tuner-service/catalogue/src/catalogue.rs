use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::joint::{self, JointError};
use crate::{Accelerator, AcceleratorError};

/// The accelerators of a site, from the `*.toml` files of one directory.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    accelerators: BTreeMap<String, Arc<Accelerator>>,
}

/// Why a catalogue could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The directory or a file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file was refused.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        source: AcceleratorError,
    },
    /// Two files describe one accelerator.
    #[error("{path}: the accelerator {name:?} is described by another file too; rename one")]
    Twice {
        /// The second file.
        path: PathBuf,
        /// The name both carry.
        name: String,
    },
    /// The directory has no accelerator.
    #[error("{0} has no accelerator: put a *.toml file there")]
    Empty(PathBuf),
}

/// Why a name has no accelerator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LookupError {
    /// No file describes it.
    #[error("there is no accelerator {name:?}; choose one of: {choices}")]
    Unknown {
        /// The name asked for, or the unknown one of several.
        name: String,
        /// What there is.
        choices: String,
    },
    /// It names several that cannot be tuned together.
    #[error(transparent)]
    Together(#[from] JointError),
}

impl Catalogue {
    /// Loads every `*.toml` file of `directory`; errs at the first that is unreadable or wrong.
    pub fn load(directory: &Path) -> Result<Self, CatalogueError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| CatalogueError::Io { path, source }
        };
        let mut catalogue = Self::default();
        for path in files(directory).map_err(unreadable(directory))? {
            let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
            let accelerator = Accelerator::parse(&text).map_err(|source| CatalogueError::File {
                path: path.clone(),
                source,
            })?;
            let name = accelerator.name.clone();
            if !catalogue.add(Arc::new(accelerator)) {
                return Err(CatalogueError::Twice { path, name });
            }
        }
        if catalogue.accelerators.is_empty() {
            return Err(CatalogueError::Empty(directory.to_owned()));
        }
        Ok(catalogue)
    }

    pub(crate) fn add(&mut self, accelerator: Arc<Accelerator>) -> bool {
        match self.accelerators.entry(accelerator.name.clone()) {
            Entry::Vacant(place) => {
                place.insert(accelerator);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Accelerator>> {
        self.accelerators.get(name)
    }

    /// The accelerator of this name, or of several joined with `+` in any order, as one. Errs when
    /// one is unknown or they cannot be tuned together.
    pub fn find(&self, name: &str) -> Result<Arc<Accelerator>, LookupError> {
        let known = |name: &str| {
            self.get(name).cloned().ok_or_else(|| LookupError::Unknown {
                name: name.to_owned(),
                choices: self.choices(),
            })
        };
        match joint::named(name)?.as_slice() {
            [only] => known(only),
            several => {
                let several = several.iter().map(|name| known(name));
                Ok(Arc::new(joint::joint(
                    &several.collect::<Result<Vec<_>, _>>()?,
                )?))
            }
        }
    }

    /// All accelerators, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Accelerator>> {
        self.accelerators.values()
    }

    /// The names users may type, for messages.
    #[must_use]
    pub fn choices(&self) -> String {
        self.accelerators
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

pub(crate) fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::Delivery;

    use super::*;

    #[test]
    fn every_shipped_accelerator_is_valid() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d");
        let catalogue = Catalogue::load(&shipped).unwrap();
        let romio = catalogue.get("romio").expect("romio is shipped");
        assert!(romio.space.parameters().len() >= 6);
        for accelerator in catalogue.iter() {
            let default = accelerator.render(&accelerator.space.default()).unwrap();
            assert!(default.read_back.iter().all(|one| one.asked.is_none()));
            assert_eq!(
                Delivery {
                    // It is told what it has, and asked for nothing.
                    read_back: Vec::new(),
                    ..default
                },
                accelerator.render_nothing(),
                "{}: a run of the default must be what a job has without us",
                accelerator.name
            );
            for text in [&accelerator.description, &accelerator.takes_effect] {
                assert!(
                    !text.is_empty(),
                    "{} does not say what it is",
                    accelerator.name
                );
            }
        }
    }

    #[test]
    fn an_empty_directory_and_a_double_name_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = Catalogue::load(directory.path()).unwrap_err();
        assert!(matches!(error, CatalogueError::Empty(_)), "{error}");
        let text = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d/romio.toml"),
        )
        .unwrap();
        for name in ["a.toml", "b.toml"] {
            std::fs::write(directory.path().join(name), &text).unwrap();
        }
        let error = Catalogue::load(directory.path()).unwrap_err();
        assert!(matches!(error, CatalogueError::Twice { .. }), "{error}");
    }
}
