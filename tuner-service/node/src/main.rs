//! io-autotune-node: the program that the SPANK plugin runs. All of it is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    io_autotune_node::run()
}
