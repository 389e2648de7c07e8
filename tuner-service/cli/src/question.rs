//! A question before many studies are changed.

use std::io::{BufRead, IsTerminal, Write};

use crate::service::CliError;

/// Asks the user whether to do `what`, which would change the entries of the list. Returns an error
/// if there is nobody to ask, or if the answer is no.
pub(crate) fn ask(what: &str, note: &str, list: &str) -> Result<(), CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CliError::NotSure(what.to_owned()));
    }
    // A user who has not seen the question has not agreed.
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
