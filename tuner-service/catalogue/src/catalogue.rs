use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use io_autotune_configuration::read_text;

use crate::delivery::is_plain_name;
use crate::joint::{self, JointError};
use crate::{Accelerator, AcceleratorError, Fault};

/// The accelerators of a site, from the [files](is_read) of one directory.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    accelerators: BTreeMap<String, Arc<Accelerator>>,
}

/// The reason why a catalogue could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The directory or a file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path that was to be read.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file was refused.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The faults in it.
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
    #[error(
        "{0} has no accelerator: put a file NAME.toml there, NAME being letters, digits, '.', '_' and '-' with a letter \
         or digit first"
    )]
    Empty(PathBuf),
}

/// All reasons why a catalogue could not be loaded, one a line, by file and by line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(CatalogueError::lines).collect::<Vec<_>>().join("\n"))]
pub struct CatalogueErrors(pub Vec<CatalogueError>);

impl From<CatalogueError> for CatalogueErrors {
    fn from(error: CatalogueError) -> Self {
        Self(vec![error])
    }
}

impl CatalogueError {
    /// The faults, one a line: `FILE:LINE:COLUMN: ...` if they are in a file.
    fn lines(&self) -> String {
        match self {
            Self::File { path, source } => in_file(path, &source.0),
            other => other.to_string(),
        }
    }
}

/// The faults of a file, one a line: `FILE:LINE:COLUMN: ...`.
#[must_use]
pub fn in_file(path: &Path, faults: &[Fault]) -> String {
    let lines = faults.iter().map(|fault| {
        let Fault {
            line,
            column,
            problem,
        } = fault;
        format!("{}:{line}:{column}: {problem}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The reason why a name has no accelerator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LookupError {
    /// No file describes it.
    #[error("there is no accelerator {name:?}; choose one of: {choices}")]
    Unknown {
        /// The name that was asked for, or the unknown one among several.
        name: String,
        /// The accelerators that exist.
        choices: String,
    },
    /// The name is of several accelerators that cannot be tuned together.
    #[error(transparent)]
    Together(#[from] JointError),
}

impl Catalogue {
    /// Loads every [file](is_read) of `directory`. Returns an error with all files that are
    /// unreadable or wrong.
    pub fn load(directory: &Path) -> Result<Self, CatalogueErrors> {
        let unreadable = |path: &Path, source| CatalogueError::Io {
            path: path.to_owned(),
            source,
        };
        let files = files(directory)
            .map_err(|error| CatalogueErrors::from(unreadable(directory, error)))?;
        let mut catalogue = Self::default();
        let mut errors = Vec::new();
        for path in files {
            let text = match read_text(&path) {
                Ok(text) => text,
                Err(error) => {
                    errors.push(unreadable(&path, error));
                    continue;
                }
            };
            match Accelerator::parse(&text) {
                Ok(accelerator) => {
                    let name = accelerator.name.clone();
                    if !catalogue.add(Arc::new(accelerator)) {
                        errors.push(CatalogueError::Twice { path, name });
                    }
                }
                Err(source) => errors.push(CatalogueError::File { path, source }),
            }
        }
        if !errors.is_empty() {
            return Err(CatalogueErrors(errors));
        }
        if catalogue.accelerators.is_empty() {
            return Err(CatalogueError::Empty(directory.to_owned()).into());
        }
        Ok(catalogue)
    }

    pub(crate) fn add(&mut self, accelerator: Arc<Accelerator>) -> bool {
        let at_risk = accelerator.at_risk.clone();
        match self.accelerators.entry(accelerator.name.clone()) {
            Entry::Vacant(place) => {
                place.insert(accelerator);
                // No file has this name: a file's has no '@'.
                let at_risk = at_risk.map(|other| (other.name.clone(), other));
                self.accelerators.extend(at_risk);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Accelerator>> {
        self.accelerators.get(name)
    }

    /// The accelerator with this name, or the joint one of several names joined with `+` in any
    /// order. Returns an error if one is unknown, or if they cannot be tuned together.
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

/// Returns true if a catalogue reads a file, by its name alone: `NAME.toml`, NAME being letters,
/// digits, `.`, `_` and `-` with a letter or digit first. Files that editors and packages leave
/// have other names: `.#a.toml`, `.a.toml.swp`, `#a.toml#`, `a.toml~`, `4913`, `a.toml.rpmsave`.
#[must_use]
pub fn is_read(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_suffix(".toml"))
        .is_some_and(is_plain_name)
}

pub(crate) fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = entries(directory)?;
    files.retain(|path| is_read(path));
    Ok(files)
}

/// The files of a directory that may be meant as accelerators' and are not [read](is_read), in
/// order: their names end with `.toml`, and are not ones that editors leave.
pub fn left_out(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = entries(directory)?;
    let is_meant = |path: &Path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.ends_with(b".toml")
            && !name.starts_with(b".")
            && !name.starts_with(b"#")
            && !name.starts_with(b"~")
    };
    files.retain(|path| is_meant(path) && !is_read(path));
    Ok(files)
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::Delivery;

    use super::*;

    /// Nobody has seen them work, so that `accelerators list` is to say so.
    #[test]
    fn those_that_could_not_be_tried_are_valid_and_do_not_say_that_they_were() {
        let contributed =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/contrib/accelerators.d");
        let catalogue = Catalogue::load(&contributed).unwrap();
        let cray = catalogue.get("cray-mpich").expect("cray-mpich is there");
        assert_eq!(
            cray.render(&cray.space.default()).unwrap(),
            cray.render_nothing()
        );
        for accelerator in catalogue.iter() {
            assert_eq!(accelerator.tried_on, None, "{}", accelerator.name);
        }
    }

    #[test]
    fn every_shipped_accelerator_is_valid() {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let shipped = Catalogue::load(&deploy.join("accelerators.d")).unwrap();
        let contributed = Catalogue::load(&deploy.join("contrib/accelerators.d")).unwrap();
        let romio = shipped.get("romio").expect("romio is shipped");
        assert!(romio.space.parameters().len() >= 6);
        for accelerator in shipped.iter().chain(contributed.iter()) {
            let default = accelerator.render(&accelerator.space.default()).unwrap();
            assert!(default.read_back.iter().all(|one| one.asked.is_none()));
            assert_eq!(
                Delivery {
                    // Checked above: the names are read back, and no value is expected.
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
        assert!(matches!(error.0[..], [CatalogueError::Empty(_)]), "{error}");
        let text = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d/romio.toml"),
        )
        .unwrap();
        for name in ["a.toml", "b.toml"] {
            std::fs::write(directory.path().join(name), &text).unwrap();
        }
        let error = Catalogue::load(directory.path()).unwrap_err();
        assert!(
            matches!(error.0[..], [CatalogueError::Twice { .. }]),
            "{error}"
        );
    }

    #[test]
    fn a_file_is_utf_8_with_or_without_a_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("romio.toml");
        let text = include_str!("../../../deploy/accelerators.d/romio.toml");
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        std::fs::write(&path, &windows).unwrap();
        assert_eq!(
            Catalogue::load(directory.path()).unwrap().choices(),
            "romio"
        );
        let latin1 = [b"# Gr\xf6\xdfe\n", text.as_bytes()].concat();
        let utf16: Vec<u8> = windows.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, words) in [(latin1, "line 1 is not in UTF-8"), (utf16, "in UTF-16")] {
            std::fs::write(&path, bytes).unwrap();
            let error = Catalogue::load(directory.path()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("iconv"), "{error}");
            assert!(error.contains("romio.toml"), "{error}");
            let live = crate::LiveCatalogue::open(directory.path()).unwrap();
            assert!(live.refused()[0].problem.contains(words));
        }
    }

    /// Attack (files): Editors leave copies and dangling links beside an accelerator's file.
    #[test]
    fn what_editors_and_packages_leave_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let shipped =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d/romio.toml");
        std::fs::copy(&shipped, at("romio.toml")).unwrap();
        for name in [
            ".romio.toml",
            "._romio.toml",
            ".romio.toml.swp",
            ".romio.toml.swo",
            ".romio.toml.XyZ123",
            "romio.toml~",
            "~romio.toml",
            "romio.toml.bak",
            "romio.toml.orig",
            "romio.toml.rej",
            "romio.toml.tmp",
            "#romio.toml#",
            "#romio.toml",
            "4913",
            "romio.toml.dpkg-old",
            "romio.toml.dpkg-dist",
            "romio.toml.dpkg-new",
            "romio.toml.dpkg-tmp",
            "romio.toml.ucf-dist",
            "romio.toml.rpmsave",
            "romio.toml.rpmnew",
            "romio.toml.rpmorig",
            "romio (copy).toml",
            "-romio.toml",
        ] {
            std::fs::copy(&shipped, at(name)).unwrap();
        }
        std::os::unix::fs::symlink("u@h.1", at(".#romio.toml")).unwrap();
        std::fs::create_dir(at(".git.toml")).unwrap();
        assert_eq!(files(directory.path()).unwrap(), [at("romio.toml")]);
        assert_eq!(
            Catalogue::load(directory.path()).unwrap().choices(),
            "romio"
        );
        let left_out = left_out(directory.path()).unwrap();
        assert!(left_out.contains(&at("romio (copy).toml")), "{left_out:?}");
        assert!(!left_out.contains(&at(".#romio.toml")), "{left_out:?}");
        let live = crate::LiveCatalogue::open(directory.path()).unwrap();
        assert_eq!(
            (live.current().choices(), live.refused().len()),
            ("romio".to_owned(), 0)
        );
    }

    #[test]
    fn all_that_is_wrong_in_all_files_is_told_at_its_lines() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("a.toml"), "nmae = \"a\"\nx = 1\n").unwrap();
        std::fs::write(at("b.toml"), "x = \n").unwrap();
        std::fs::create_dir(at("c.toml")).unwrap();
        let told = Catalogue::load(directory.path()).unwrap_err().to_string();
        let starts = told
            .lines()
            .map(|line| line.split_once(": ").unwrap().0.to_owned());
        let of = |name: &str, line| format!("{}:{line}", at(name).display());
        let expected = [
            of("a.toml", "1:1"),
            of("a.toml", "2:1"),
            of("b.toml", "1:5"),
            format!("cannot read {}", at("c.toml").display()),
        ];
        let starts: Vec<String> = starts.collect();
        for one in &expected {
            assert!(starts.contains(one), "{one} in {told}");
        }
    }
}
