//! Writes the burst-buffer stand-in: `cargo run --release -p io-autotune-simulation --example
//! burst_buffer -- analysis/data`.

use std::path::PathBuf;

use io_autotune_simulation::burst_buffer::{SEED, csv, json};

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = PathBuf::from(directory).join("burst-buffer.json");
    std::fs::write(&path, json())?;
    std::fs::write(path.with_extension("csv"), csv(SEED))
}
