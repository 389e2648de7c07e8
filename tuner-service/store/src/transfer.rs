//! Studies as text: out of one service's database and into another's.

mod export;
mod format;
mod import;

pub use export::{Cursor, ExportPage, NoCursor};
pub use format::{VERSION, check_header};
pub use import::{Import, ImportError, Imported, Refusal};
