//! The site's TOML files: they are read, with all mistakes named, and shown with the source of each
//! value.

#![forbid(unsafe_code)]

mod difference;
mod every;
mod mistake;
mod nearest;
mod secret;
mod shown;
mod text;

pub use difference::differences;
pub use every::{Every, Found, every};
pub use mistake::{Mistake, parse};
pub use nearest::{explained, misspelt, nearest};
pub use shown::{File, Origin, Shown, ShownError};
pub use text::{NoText, read_text, text};
