//! The program io-autotuned; the library of the same name has all of it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    io_autotuned::run()
}
