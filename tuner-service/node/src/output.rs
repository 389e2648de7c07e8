//! The two ways in which the helper speaks: it says a line on standard error, and shows one on
//! standard output.

use std::process::ExitCode;

use io_autotune_console as console;

/// Says a line, which the plugin passes to slurmd's log, or to the user at submission.
///
/// Where nobody takes it, the helper goes on: what it does for a job matters more.
pub(crate) fn say(line: &str) {
    console::say(line);
}

/// Shows lines to who has run the helper: the plugin, a site's script or a person. Returns `status`, or
/// a failure where they are lost.
pub(crate) fn show(lines: &str, status: ExitCode) -> ExitCode {
    match console::print(&format!("{lines}\n")) {
        Ok(()) => status,
        Err(lost) => {
            say(&lost.to_string());
            ExitCode::FAILURE
        }
    }
}
