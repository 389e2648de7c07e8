//! The two ways in which the helper speaks: it says a line on standard error, and shows one on
//! standard output.

/// Says a line, which the plugin passes to slurmd's log, or to the user at submission.
#[expect(clippy::print_stderr, reason = "the helper's way to speak")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Shows a line to who has run the helper: the plugin, a site's script or a person.
#[expect(clippy::print_stdout, reason = "what the plugin shows the user")]
pub(crate) fn show(line: &str) {
    println!("{line}");
}
