//! The two outputs of the helper: messages on standard error, and results on standard output.

use std::process::ExitCode;

use io_autotune_console as console;

/// Writes a message, which the plugin passes to slurmd's log, or to the user at submission.
///
/// If it cannot be written the helper continues, because its work for a job matters more.
pub(crate) fn say(line: &str) {
    console::say(line);
}

/// Prints lines for the caller of the helper: the plugin, a site's script or a person. Returns
/// `status`, or a failure if they could not be written.
pub(crate) fn show(lines: &str, status: ExitCode) -> ExitCode {
    match console::print(&format!("{lines}\n")) {
        Ok(()) => status,
        Err(lost) => {
            say(&lost.to_string());
            ExitCode::FAILURE
        }
    }
}
