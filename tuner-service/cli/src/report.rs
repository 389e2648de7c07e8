//! `io-autotune report`: makes the nightly report, or fetches the latest one.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
        path: std::path::PathBuf,
        source: std::io::Error,
    },
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

/// Writes the text to a file, or returns it to be printed.
pub(crate) fn put(report: &Report, text: String, what: &str) -> Result<String, ReportError> {
    let Some(path) = &report.output else {
        return Ok(text);
    };
    fs::write(path, text).map_err(|source| ReportError::Output {
        path: path.clone(),
        source,
    })?;
    Ok(format!("{what} is in {}\n", path.display()))
}

/// The text to print for a fetched file.
pub(crate) fn show(report: &Report, file: ReportFile) -> Result<String, ReportError> {
    let what = format!("{} of the night {}", report.file.as_str(), file.night);
    put(report, file.content, &what)
}

#[cfg(test)]
mod tests {
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
        let text = || "<!DOCTYPE html>".to_owned();
        let printed = put(&parsed("io-autotune report --mine"), text(), "the page");
        assert_eq!(printed.unwrap(), text());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.html");
        let line = format!("io-autotune report --mine --output {}", path.display());
        let said = put(&parsed(&line), text(), "the page").unwrap();
        assert_eq!(said, format!("the page is in {}\n", path.display()));
        assert_eq!(fs::read_to_string(path).unwrap(), text());
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
