//! A section of a page of measurements. Other programs have this file as well.

use std::io::Write;

use crate::Failure;

/// A title, a text, and the head of a table whose first columns are words.
pub(crate) fn section(
    out: &mut impl Write,
    title: &str,
    text: &str,
    head: &[&str],
    words: usize,
) -> Result<(), Failure> {
    writeln!(out, "\n## {title}\n\n{text}\n\n| {} |", head.join(" | "))?;
    let numbers = head.len() - words;
    writeln!(
        out,
        "|{}{}",
        " --- |".repeat(words),
        " ---: |".repeat(numbers)
    )?;
    Ok(())
}
