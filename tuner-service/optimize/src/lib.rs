//! Tuning outside Slurm, as `io-autotune optimize` does it.
//!
//! A [`SpaceFile`] describes what is tuned. A [`session::Session`] is a study of it whose runs are
//! asked for and reported line by line. `analysis/simulation` reads the same files, with
//! measurements beside them.

#![forbid(unsafe_code)]

mod error;
mod none_twice;
pub mod session;
mod space_file;

pub use error::SpaceFileError;
pub use space_file::SpaceFile;
