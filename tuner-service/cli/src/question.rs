//! A question before many studies are changed.

use std::io::{BufRead, IsTerminal, Write};

use crate::service::CliError;

/// Asks a person who is there whether to do `what`, which would change what the list says; errs where
/// nobody is, or says no.
pub(crate) fn ask(what: &str, note: &str, list: &str) -> Result<(), CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CliError::NotSure(what.to_owned()));
    }
    // Whoever has not seen the question has not agreed.
    let asked = write!(std::io::stderr(), "{list}\n{what}{note}. Do it? [y/N] ");
    if asked.is_err() {
        return Err(CliError::NotSure(what.to_owned()));
    }
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CliError::NotSure(what.to_owned())),
    }
}
