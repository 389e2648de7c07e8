//! All accelerators of a site, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Accelerator, AcceleratorError};

/// The accelerators of a site, from the `*.toml` files of one directory.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    accelerators: BTreeMap<String, Accelerator>,
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
        source: Box<AcceleratorError>,
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

impl Catalogue {
    /// Loads every `*.toml` file of `directory`.
    ///
    /// # Errors
    ///
    /// The first file that cannot be read or is wrong; a site never runs on half a catalogue.
    pub fn load(directory: &Path) -> Result<Self, CatalogueError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| CatalogueError::Io { path, source }
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable(directory))? {
            let path = entry.map_err(unreadable(directory))?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                files.push(path);
            }
        }
        files.sort();
        let mut accelerators = BTreeMap::new();
        for path in files {
            let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
            let accelerator = Accelerator::parse(&text).map_err(|source| CatalogueError::File {
                path: path.clone(),
                source: Box::new(source),
            })?;
            let name = accelerator.name.clone();
            if accelerators.insert(name.clone(), accelerator).is_some() {
                return Err(CatalogueError::Twice { path, name });
            }
        }
        if accelerators.is_empty() {
            return Err(CatalogueError::Empty(directory.to_owned()));
        }
        Ok(Self { accelerators })
    }

    /// The accelerator called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Accelerator> {
        self.accelerators.get(name)
    }

    /// All accelerators, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Accelerator> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_accelerator_is_valid() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d");
        let catalogue = Catalogue::load(&shipped).unwrap();
        let romio = catalogue.get("romio").expect("romio is shipped");
        assert!(romio.space.parameters().len() >= 6);
        assert!(
            romio
                .render(&romio.space.default())
                .unwrap()
                .files
                .is_empty()
        );
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
