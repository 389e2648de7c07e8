//! How each program reads its command line, writes what was asked for, and says what is wrong.
//!
//! What was asked for goes to standard output, and if it does not get there the program says so and
//! fails. Everything else goes to standard error, whose loss changes nothing: programs run in jobs,
//! in Slurm's hooks and as units, with whatever files they are given.

#![deny(unsafe_code)]

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Parser};

mod file_size;

/// What was asked for is not where it was to be written.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written: {0}")]
pub struct OutputLost(io::Error);

pub use file_size::survive_file_size_limit;

/// Reads the command line, and what of it was given where. Where it is wrong, or asks for help or the
/// version, that is said, and the answer is the process's exit code.
///
/// # Errors
///
/// The exit code of a process that has nothing more to do.
pub fn arguments<A: Parser>() -> Result<(A, ArgMatches), ExitCode> {
    let matches = A::command().try_get_matches();
    let read = matches.and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    read.map_err(|error| answer(&error))
}

/// Says what is wrong with a command line, or prints the help that it asks for; returns the exit code.
pub fn answer(error: &clap::Error) -> ExitCode {
    let written = error.print().and_then(|()| io::stdout().flush());
    match delivered(written) {
        // Help is what was asked for; what is wrong with a command line is not.
        Err(lost) if !error.use_stderr() => {
            say(&lost.to_string());
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Writes what was asked for to standard output.
///
/// # Errors
///
/// When it is lost. A reader that has read enough, such as a pager that was closed, loses nothing.
pub fn print(text: &str) -> Result<(), OutputLost> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    delivered(written.and_then(|()| stdout.flush()))
}

/// What comes of a write to standard output.
///
/// # Errors
///
/// When its text is lost, and somebody still wanted it.
pub fn delivered(written: io::Result<()>) -> Result<(), OutputLost> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputLost(error)),
        _ => Ok(()),
    }
}

/// The exit code of a program that ends so; says why it fails.
pub fn ended<E: std::error::Error>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Says a line on standard error. Where that takes nothing the line is lost, and nothing else is.
pub fn say(line: &str) {
    // In one piece: lines of several processes that share a file do not mix.
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
