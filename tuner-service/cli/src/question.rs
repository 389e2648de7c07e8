//! A question before many studies are changed.

use std::io::{BufRead, IsTerminal, Write};

use crate::service::CliError;

/// Asks a person who is there whether to do `what`, which would change what the list says; errs where
/// nobody is, or says no.
#[expect(clippy::print_stderr, reason = "a question is no output")]
pub(crate) fn ask(what: &str, note: &str, list: &str) -> Result<(), CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CliError::NotSure(what.to_owned()));
    }
    eprintln!("{list}");
    eprint!("{what}{note}. Do it? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CliError::NotSure(what.to_owned())),
    }
}
