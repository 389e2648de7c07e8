//! Transfer of studies as text, from one service's database to another's.

mod export;
mod format;
mod import;

pub use export::{Cursor, ExportPage, NoCursor};
pub use format::{VERSION, check_header};
pub use import::{Import, ImportError, Imported, Refusal};
