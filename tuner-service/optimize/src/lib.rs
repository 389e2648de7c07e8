//! Tuning outside Slurm, as `io-autotune optimize` does it.
//!
//! A [`SpaceFile`] describes what is tuned. A [`session::Session`] is a study of it whose runs are
//! asked for and reported line by line. `analysis/simulation` reads the same files, with
//! measurements beside them.

#![forbid(unsafe_code)]

mod error;
pub mod session;
mod space_file;
mod unique_keys;

pub use error::SpaceFileError;
pub use space_file::SpaceFile;
