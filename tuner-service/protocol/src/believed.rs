//! Which files root believes.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns false if this process is root's and another user could have written the file. Returns an
/// error if there is none.
pub(crate) fn may_be_used(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    let is_roots = metadata.is_file() && metadata.uid() == 0 && metadata.mode() & 0o022 == 0;
    Ok(is_roots || !nix::unistd::geteuid().is_root())
}
