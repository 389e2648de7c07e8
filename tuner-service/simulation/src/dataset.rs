//! Data sets of two files. `NAME.json` holds `name`, `parameters` (`name`, `kind`, `values`) and
//! `default` ([`SpaceFile`]). `NAME.csv` has a column per parameter, `rep`, `time` and optionally
//! `rel_sd` ([`Table`]). Anything else in the files is ignored.

mod draw;
mod error;
mod space_file;
mod table;

pub use draw::Draw;
pub use error::DatasetError;
pub use space_file::SpaceFile;
pub use table::{Configuration, Sample, Table};
