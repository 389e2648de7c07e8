//! Files of the site that are followed while the service runs.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tells whether a file has changed, without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// A file or directory that is not in use as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its path.
    pub path: PathBuf,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}
