//! The program io-autotuned; the library of the same name has all of it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Many threads allocate much that is small, for which the C library's takes a quarter of all
/// processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    io_autotuned::run()
}
