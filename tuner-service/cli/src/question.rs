//! A question before much is changed or begun.

use std::io::{BufRead, IsTerminal, Read, Write};

use crate::service::CliError;

/// The most bytes of an answer.
const LONGEST: u64 = 1024;

/// Asks the user whether to do `what`, which would change the entries of the list. Returns an error
/// if there is nobody to ask, or if the answer is no.
pub(crate) fn ask(what: &str, note: &str, list: &str) -> Result<(), CliError> {
    let answer = answer(&format!("{list}\n{what}{note}. Do it? [y/N] "))?;
    match answer.is_some_and(|answer| is_yes(&answer)) {
        true => Ok(()),
        false => Err(CliError::NotSure(what.to_owned())),
    }
}

/// Returns true for an answer that agrees. Whatever else is typed does not.
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "Y" | "yes")
}

/// What the user types after a question, without the spaces around it. `None` if there is nobody to
/// ask.
pub(crate) fn answer(question: &str) -> Result<Option<String>, CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    // A user who has not seen the question has not agreed.
    if write!(std::io::stderr(), "{question}").is_err() {
        return Ok(None);
    }
    let mut answer = String::new();
    stdin.lock().take(LONGEST).read_line(&mut answer)?;
    Ok(Some(answer.trim().to_owned()))
}
