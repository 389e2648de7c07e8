//! Data sets: a JSON file that names the parameters, and a CSV file beside it with the times.
//!
//! `NAME.json` holds `name`, `parameters` (`name`, `kind`, `values`) and `default`; [`SpaceFile`] reads
//! it. `NAME.csv` has a column per parameter, `rep`, `time` and optionally `rel_sd`; [`Table`] reads
//! both. Whatever else the files hold is ignored.

mod draw;
mod error;
mod space_file;
mod table;

pub use draw::Draw;
pub use error::DatasetError;
pub use space_file::SpaceFile;
pub use table::{Configuration, Sample, Table};
