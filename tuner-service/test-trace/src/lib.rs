//! Shows what a test does to its files, in the order in which the kernel is asked for it.
//!
//! A file must be on disk before it takes another's place. If it is not, only a power failure shows it.
//! But strace shows what a program asks of the kernel, so a test runs itself under strace.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_panics_doc,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test ends when it cannot be traced, and says so where there is no strace"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the directory of the traced process.
const DIRECTORY: &str = "IO_AUTOTUNE_TRACED";

/// All that changes a file's content or name, or waits until that is on disk.
const CALLS: &str = "write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,syncfs,\
                     sync_file_range,rename,renameat,renameat2,link,linkat,unlink,unlinkat";

/// Returns what `work` does in a directory of its own: each successful call, and the files that it names,
/// such as `rename draft start.json`. A file that ends in `.new` is called `draft`, the directory `.`.
///
/// The test named `test`, as the harness knows it, is run again under strace, and does its `work`
/// there. It has nothing to judge in that process, nor where there is no strace: `None`.
pub fn calls(test: &str, work: impl FnOnce(&Path)) -> Option<Vec<String>> {
    if let Some(directory) = env::var_os(DIRECTORY) {
        work(Path::new(&directory));
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let (directory, trace) = (place.path().join("directory"), place.path().join("trace"));
    fs::create_dir(&directory).unwrap();
    let ended = Command::new("strace")
        .args(["-f", "-qq", "-y", "-s", "0", "-e", "status=successful"])
        .args(["-e", &format!("trace={CALLS}")])
        .args(["-o".as_ref(), trace.as_os_str()])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(DIRECTORY, &directory)
        .stdin(Stdio::null())
        .output();
    let ended = match ended {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("strace is not installed");
            return None;
        }
        ended => ended.unwrap(),
    };
    assert!(ended.status.success(), "{test}: {ended:?}");
    let trace = fs::read_to_string(trace).unwrap();
    Some(
        trace
            .lines()
            .filter_map(|line| told(line, &directory))
            .collect(),
    )
}

/// A line of strace's, unless it names nothing in the directory: `77 rename("/d/a", "/d/b") = 0`,
/// `77 fsync(3</d>) = 0`.
fn told(line: &str, directory: &Path) -> Option<String> {
    let (name, arguments) = line.split_once('(')?;
    let mut told = name.split_whitespace().next_back()?.to_owned();
    let mut names_any = false;
    for quoted in arguments.split(['"', '<', '>']) {
        let Ok(path) = PathBuf::from(quoted)
            .strip_prefix(directory)
            .map(Path::to_owned)
        else {
            continue;
        };
        names_any = true;
        told.push(' ');
        told += match path.to_str().unwrap() {
            "" => ".",
            path if path.ends_with(".new") => "draft",
            path => path,
        };
    }
    names_any.then_some(told)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn each_call_is_told_with_its_files_in_order() {
        let elsewhere = tempfile::tempdir().unwrap();
        let calls = calls(
            "tests::each_call_is_told_with_its_files_in_order",
            |place| {
                let mut file = File::create(place.join("a.1.new")).unwrap();
                file.write_all(b"one \"line\" <of> text").unwrap();
                file.sync_data().unwrap();
                fs::rename(place.join("a.1.new"), place.join("a")).unwrap();
                File::open(place).unwrap().sync_all().unwrap();
                // It fails, or is done elsewhere.
                fs::rename(place.join("none"), place.join("a")).unwrap_err();
                fs::write(elsewhere.path().join("b"), "x").unwrap();
                fs::remove_file(place.join("a")).unwrap();
            },
        );
        let Some(calls) = calls else { return };
        assert_eq!(
            calls,
            [
                "write draft",
                "fdatasync draft",
                "rename draft a",
                "fsync .",
                "unlink a"
            ]
        );
    }
}
