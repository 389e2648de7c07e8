//! `io-autotune report`: makes the nightly report, or fetches the latest one.

use std::env;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use io_autotune_protocol::ReportFile;

use crate::arguments::Report;

/// The program of `analysis/` that makes the report.
const PROGRAM: &str = "io-autotune-report";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(
        "cannot run {PROGRAM}: {0}; it makes the report, and is installed where the report is made (docs/install.md). What was made last is shown by `io-autotune report --latest`"
    )]
    Program(std::io::Error),
    #[error("cannot write {path}: {source}")]
    Output {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "neither HOME nor XDG_CACHE_HOME says where the page can be kept for a browser: give --output FILE"
    )]
    NoPlace,
}

/// Executes the program. Returns only on failure.
pub(crate) fn make(report: &Report) -> ReportError {
    ReportError::Program(Command::new(PROGRAM).args(arguments(report)).exec())
}

fn arguments(report: &Report) -> Vec<OsString> {
    let mut arguments = vec!["--config".into(), report.report_config.clone().into()];
    for (name, day) in [("--first", &report.first), ("--last", &report.last)] {
        if let Some(day) = day {
            arguments.extend([name.into(), day.to_string().into()]);
        }
    }
    arguments
}

/// The text to print for a fetched file.
pub(crate) fn show(report: &Report, file: ReportFile) -> Result<String, ReportError> {
    let what = format!("{} of the night {}", report.file.as_str(), file.night);
    match &report.output {
        Some(path) => put(path, SHARED, &file.content, &what),
        None => Ok(file.content),
    }
}

/// The text to print for the page of one's own studies. On a terminal, which cannot show a page, it
/// is kept for a browser, and opened where there is one.
pub(crate) fn show_mine(report: &Report, page: ReportFile) -> Result<String, ReportError> {
    let what = format!("the page of your studies, of the night {},", page.night);
    if let Some(path) = &report.output {
        return put(path, SHARED, &page.content, &what);
    }
    if !std::io::stdout().is_terminal() {
        return Ok(page.content);
    }
    let path = kept(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))?;
    // As the service gives the page to nobody else, nobody else may read it here.
    let said = put(&path, OWN, &page.content, &what)?;
    open(&path);
    Ok(said)
}

/// The mode of a new file that the user's umask decides about, and of one that is the user's alone.
const SHARED: u32 = 0o666;
const OWN: u32 = 0o600;

/// Writes a file, which has this mode if it is new, and returns what to print.
fn put(path: &Path, mode: u32, text: &str, what: &str) -> Result<String, ReportError> {
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| ReportError::Output {
        path: path.to_owned(),
        source,
    })?;
    Ok(format!("{what} is in {}\n", path.display()))
}

/// The file in which the latest page is kept, in a directory that is there.
fn kept(cache: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, ReportError> {
    // As the XDG Base Directory Specification says, a relative path is none.
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|it| it.is_absolute());
    let cache = absolute(cache).or_else(|| Some(absolute(home)?.join(".cache")));
    let directory = cache.ok_or(ReportError::NoPlace)?.join("io-autotune");
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory);
    made.map_err(|source| ReportError::Output {
        path: directory.clone(),
        source,
    })?;
    Ok(directory.join("report.html"))
}

/// Opens a file in the user's browser. Without a display, or if that fails, they have its path.
fn open(path: &Path) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .into_iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    if has_display {
        let _ = Command::new("xdg-open")
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn parsed(line: &str) -> Box<Report> {
        match Arguments::try_parse_from(line.split(' ')).unwrap().command {
            Command::Report(report) => report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_range_is_passed_on() {
        let report = parsed("io-autotune report --first 2026-11-01 --last 2026-11-07");
        let expected = "--config /etc/io-autotune/report.toml --first 2026-11-01 --last 2026-11-07";
        assert_eq!(
            arguments(&report).join(&OsString::from(" ")),
            OsString::from(expected)
        );
    }

    #[test]
    fn what_was_made_last_is_printed_or_written() {
        let file = ReportFile {
            night: "2026-11-20".into(),
            content: "saved: 3 node-hours\n".into(),
        };
        let report = parsed("io-autotune report --latest");
        assert_eq!(show(&report, file.clone()).unwrap(), file.content);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("night.html");
        let line = format!(
            "io-autotune report --latest --file index.html --output {}",
            path.display()
        );
        let said = show(&parsed(&line), file.clone()).unwrap();
        assert!(said.starts_with("index.html of the night 2026-11-20 is in "));
        assert_eq!(fs::read_to_string(path).unwrap(), file.content);
    }

    #[test]
    fn a_page_of_ones_own_is_printed_or_written() {
        let page = ReportFile {
            night: "2026-11-20".into(),
            content: "<!doctype html>".into(),
        };
        // The standard output of a test is no terminal.
        let printed = show_mine(&parsed("io-autotune report --mine"), page.clone());
        assert_eq!(printed.unwrap(), page.content);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.html");
        let line = format!("io-autotune report --mine --output {}", path.display());
        let said = show_mine(&parsed(&line), page.clone()).unwrap();
        let expected = format!(
            "the page of your studies, of the night 2026-11-20, is in {}\n",
            path.display()
        );
        assert_eq!(said, expected);
        assert_eq!(fs::read_to_string(path).unwrap(), page.content);
    }

    #[test]
    fn a_page_is_kept_in_the_user_s_cache() {
        let directory = tempfile::tempdir().unwrap();
        let [cache, home] = ["cache", "home"].map(|name| directory.path().join(name));
        let both = kept(Some(cache.clone().into()), Some(home.clone().into()));
        assert_eq!(both.unwrap(), cache.join("io-autotune/report.html"));
        let relative = kept(Some("cache".into()), Some(home.clone().into()));
        assert_eq!(
            relative.unwrap(),
            home.join(".cache/io-autotune/report.html")
        );
        assert!(home.join(".cache/io-autotune").is_dir());
        assert!(matches!(kept(None, None), Err(ReportError::NoPlace)));
    }

    #[test]
    fn a_range_of_what_was_made_last_is_refused() {
        for line in [
            "io-autotune report --latest --first 2026-11-01",
            "io-autotune report --file mail.txt",
            "io-autotune report --output page.html",
            "io-autotune report --mine --latest",
            "io-autotune report --mine --file index.html",
            "io-autotune report --mine --last 2026-11-01",
            "io-autotune report --latest --file passwd",
        ] {
            assert!(
                Arguments::try_parse_from(line.split(' ')).is_err(),
                "{line}"
            );
        }
    }
}
