//! The files of a lever, opened once.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use io_autotune_online::Lever;
use nix::libc;
use serde::{Deserialize, Serialize};

/// The most bytes of a number's text.
const TEXT_MOST: usize = 64;

/// The bounds of a lever, and the files that have its value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeverFiles {
    pub(crate) name: String,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// The value in all files when the job begins.
    pub(crate) began: u64,
    pub(crate) files: Vec<PathBuf>,
    /// Files whose value the kernel changes along with the lever, and that are to keep this value.
    pub(crate) kept: Vec<(PathBuf, String)>,
}

impl LeverFiles {
    /// The bounds of the lever. They include the value at the start, whatever range is allowed.
    pub(crate) fn bounds(&self) -> Lever {
        Lever {
            least: self.least.min(self.began),
            most: self.most.max(self.began),
        }
    }
}

pub(super) struct Opened {
    bounds: Lever,
    files: Vec<Setting>,
    kept: Vec<(Setting, String)>,
}

/// A file with a number.
struct Setting {
    file: File,
    /// True if the file can be read again. The files of a FUSE connection cannot
    /// (fs/fuse/control.c, `nonseekable_open`): for them the value that the kernel accepted is
    /// believed, and the hook after the job sees if another process moved them.
    is_seekable: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Moved {
    Taken,
    /// The lever has its old value, and should stay within these bounds.
    Refused(Lever),
}

impl Opened {
    pub(super) fn open(lever: &LeverFiles) -> io::Result<Self> {
        let open = |path: &PathBuf| {
            Setting::open(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })
        };
        let kept = lever.kept.iter();
        Ok(Self {
            bounds: lever.bounds(),
            files: lever.files.iter().map(open).collect::<io::Result<_>>()?,
            kept: kept
                .map(|(path, value)| Ok((open(path)?, value.clone())))
                .collect::<io::Result<_>>()?,
        })
    }

    pub(super) fn is_at(&self, value: u64) -> bool {
        self.files.iter().all(|file| file.is_at(value))
    }

    /// Moves the lever in all files, or in none.
    pub(super) fn moves(&mut self, from: u64, to: u64) -> Moved {
        if self.write(to) {
            return Moved::Taken;
        }
        self.write(from);
        // The device may accept half the distance.
        let Lever { least, most } = self.bounds;
        self.bounds = if to > from {
            let most = most.min((to / 2).max(from));
            Lever { least, most }
        } else {
            let least = least.max(to.saturating_mul(2).min(from));
            Lever { least, most }
        };
        Moved::Refused(self.bounds)
    }

    /// Writes a value again to the files that another lever has moved along. One that cannot be put
    /// back shows in the next turn.
    pub(super) fn holds(&self, value: u64) {
        for file in self.files.iter().filter(|file| !file.is_at(value)) {
            let _ = file.write(&value.to_string());
        }
    }

    fn write(&self, value: u64) -> bool {
        let text = value.to_string();
        // Each file is written, even if another fails.
        let written: Vec<bool> = self
            .files
            .iter()
            .map(|file| file.write(&text).is_ok() && file.is_at(value))
            .collect();
        for (file, text) in &self.kept {
            let _ = file.write(text);
        }
        written.into_iter().all(|is_written| is_written)
    }
}

impl Setting {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        let is_seekable = file.stream_position().is_ok();
        Ok(Self { file, is_seekable })
    }

    /// Writes a value. The kernel takes a text at once and ignores the length; in other files
    /// nothing may be left after the text.
    fn write(&self, text: &str) -> io::Result<()> {
        let line = format!("{text}\n");
        if !self.is_seekable {
            return (&self.file).write_all(line.as_bytes());
        }
        self.file.write_all_at(line.as_bytes(), 0)?;
        let _ = self.file.set_len(line.len() as u64);
        Ok(())
    }

    fn is_at(&self, value: u64) -> bool {
        !self.is_seekable || self.number() == Some(value)
    }

    fn number(&self) -> Option<u64> {
        let mut text = [0; TEXT_MOST];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(text.get(..length)?).ok()?;
        text.lines().next()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use super::*;

    fn place() -> (tempfile::TempDir, LeverFiles) {
        let root = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| root.path().join(name));
        for file in &files {
            fs::write(file, "128\n").unwrap();
        }
        let kept = root.path().join("kept");
        fs::write(&kept, "512\n").unwrap();
        let lever = LeverFiles {
            name: "lever".into(),
            least: 4,
            most: 1024,
            began: 128,
            files: files.into(),
            kept: vec![(kept, "512".into())],
        };
        (root, lever)
    }

    #[test]
    fn a_lever_moves_in_all_its_files_and_what_it_disturbs_is_kept() {
        let (root, files) = place();
        let mut lever = Opened::open(&files).unwrap();
        assert!(lever.is_at(128));
        fs::write(root.path().join("kept"), "777\n").unwrap();
        assert_eq!(lever.moves(128, 8), Moved::Taken);
        let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(
            (read("a"), read("b"), read("kept")),
            ("8\n".into(), "8\n".into(), "512\n".into())
        );
        fs::write(root.path().join("b"), "9\n").unwrap();
        assert!(!lever.is_at(8), "somebody else has moved it");
    }

    #[test]
    fn a_lever_that_another_moved_along_is_put_back() {
        let (root, files) = place();
        let lever = Opened::open(&files).unwrap();
        fs::write(root.path().join("b"), "4096\n").unwrap();
        lever.holds(128);
        assert!(lever.is_at(128));
        assert_eq!(fs::read_to_string(root.path().join("b")).unwrap(), "128\n");
    }

    #[test]
    fn what_is_refused_by_one_is_taken_back_in_all_and_half_the_way_is_left() {
        let (root, files) = place();
        // A device that accepts nothing: its file never changes.
        let mut lever = Opened::open(&files).unwrap();
        lever.files[1].file = File::open(root.path().join("b")).unwrap();
        assert_eq!(
            lever.moves(128, 512),
            Moved::Refused(Lever {
                least: 4,
                most: 256
            })
        );
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "128\n");
        assert_eq!(
            lever.moves(128, 256),
            Moved::Refused(Lever {
                least: 4,
                most: 128
            })
        );
        assert_eq!(lever.moves(128, 64), Moved::Refused(Lever::at(128)));
    }

    #[test]
    fn a_value_outside_of_the_range_at_the_start_stays_possible() {
        let (_root, files) = place();
        let above = LeverFiles { most: 64, ..files };
        assert!(above.bounds().takes(128) && above.bounds().takes(4));
    }

    #[test]
    fn what_cannot_be_read_twice_is_believed() {
        let (root, mut files) = place();
        // A pipe is read and written through one opening, and never at an offset.
        let pipe = root.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        files.files = vec![pipe];
        let mut lever = Opened::open(&files).unwrap();
        assert!(lever.is_at(128));
        assert_eq!(lever.moves(128, 8), Moved::Taken);
        let mut told = [0; 8];
        let length = (&lever.files[0].file).read(&mut told).unwrap();
        assert_eq!(&told[..length], b"8\n");
    }

    /// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
    /// writable by others.
    #[test]
    fn a_link_is_not_followed() {
        let (root, mut files) = place();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path().join("a"), &link).unwrap();
        files.files = vec![link];
        assert!(Opened::open(&files).is_err());
    }
}
