//! The limit of a file's size (`ulimit -f`).
//!
//! The only unsafe code of this crate: a handler for a signal.

#![allow(unsafe_code)]

use std::ffi::c_int;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Makes a write beyond the limit of a file's size fail with an error that can be handled, as a
/// write to a full disk does. The kernel's signal would end the process.
///
/// The signal gets a handler, which a program that is executed does not inherit. If it were blocked
/// or ignored, the site's commands and Slurm's programs that this process starts would inherit
/// that.
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: c_int) {}
    let handler = SigHandler::Handler(nothing);
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, which may be done at any time.
    let before = unsafe { sigaction(Signal::SIGXFSZ, &action) };
    // The process was started with the signal ignored, on which its children may rely. A kernel
    // that refuses leaves the limit as deadly as it was.
    if let Ok(before) = before
        && matches!(before.handler(), SigHandler::SigIgn)
    {
        // SAFETY: it is the action that was in force before.
        let _ = unsafe { sigaction(Signal::SIGXFSZ, &before) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// Attack (files): A job limits the size of files for our programs, which start others.
    /// Outcome: The limit holds for the others.
    #[test]
    fn only_this_program_survives_the_limit() {
        survive_file_size_limit();
        nix::sys::signal::raise(Signal::SIGXFSZ).unwrap();
        let mut shell = Command::new("/bin/sh");
        let ended = shell.args(["-c", "kill -s XFSZ $$; exit 3"]).status();
        assert_eq!(ended.unwrap().signal(), Some(Signal::SIGXFSZ as i32));
    }
}
