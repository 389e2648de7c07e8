//! io-autotune-node: the program that the SPANK plugin runs. All its code is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    io_autotune_node::run()
}
