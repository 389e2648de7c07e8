//! Command lines and output of each program.
//!
//! The result of a program goes to standard output, and if it cannot be written the program reports
//! that and fails. Everything else goes to standard error, whose loss changes nothing: programs run
//! in jobs, in Slurm's hooks and as units, with whatever files they are given.

#![deny(unsafe_code)]

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Parser};

mod file_size;

/// The error for a result that could not be written to standard output.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written: {0}")]
pub struct OutputLost(io::Error);

pub use file_size::survive_file_size_limit;

/// Reads the command line, with the source of each value. If it is wrong, or asks for help or the
/// version, the message is printed.
///
/// # Errors
///
/// The exit code of a process that has nothing more to do.
pub fn arguments<A: Parser>() -> Result<(A, ArgMatches), ExitCode> {
    let matches = A::command().try_get_matches();
    let read = matches.and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    read.map_err(|error| answer(&error))
}

/// Reports an error of a command line, or prints the help that was asked for. Returns the exit
/// code.
pub fn answer(error: &clap::Error) -> ExitCode {
    let written = error.print().and_then(|()| io::stdout().flush());
    match delivered(written) {
        // Help is a result; an error of a command line is not.
        Err(lost) if !error.use_stderr() => {
            say(&lost.to_string());
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Writes a result to standard output.
///
/// # Errors
///
/// If it is lost. A reader that has closed the pipe after reading enough, such as a pager, is no
/// error.
pub fn print(text: &str) -> Result<(), OutputLost> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    delivered(written.and_then(|()| stdout.flush()))
}

/// Judges the result of a write to standard output.
///
/// # Errors
///
/// If the text is lost and the reader had not closed the pipe.
pub fn delivered(written: io::Result<()>) -> Result<(), OutputLost> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputLost(error)),
        _ => Ok(()),
    }
}

/// The exit code of a program with this result. An error is reported.
pub fn ended<E: std::error::Error>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error. If that fails the line is lost, without other consequences.
pub fn say(line: &str) {
    // Written in one piece, so that lines of several processes that share a file do not mix.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn only_a_reader_that_has_gone_loses_nothing() {
        assert!(delivered(Ok(())).is_ok());
        assert!(delivered(Err(ErrorKind::BrokenPipe.into())).is_ok());
        let lost = delivered(Err(ErrorKind::StorageFull.into())).unwrap_err();
        assert!(
            lost.to_string()
                .starts_with("the answer cannot be written: ")
        );
    }

    #[test]
    fn a_command_line_that_is_wrong_is_no_help_that_was_asked_for() {
        let command = || Command::new("program").version("1");
        let given = |word: &str| command().try_get_matches_from(["program", word]);
        assert!(given("--nothing").unwrap_err().use_stderr());
        assert!(!given("--help").unwrap_err().use_stderr());
        assert!(!given("--version").unwrap_err().use_stderr());
    }
}
