//! Data sets of two files. `NAME.toml` describes the space as an accelerator's file does, or
//! `NAME.json` as published tables do ([`SpaceFile`](io_autotune_optimize::SpaceFile)). `NAME.csv` has a column per parameter, `time`
//! and optionally `rel_sd` ([`Table`]); its other columns are ignored.

mod draw;
mod error;
mod table;

pub use draw::Draw;
pub use error::DatasetError;
pub use table::{Configuration, Sample, Table};
