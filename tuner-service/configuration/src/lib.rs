//! The site's TOML files: they are read, with all mistakes named, and shown with the source of each
//! value.

#![forbid(unsafe_code)]

mod all_mistakes;
mod difference;
mod earlier;
mod mistake;
mod nearest;
mod print_config;
mod secret;
mod text;

pub use all_mistakes::{Found, Parsed, parse_recoverable};
pub use difference::differences;
pub use earlier::{Earlier, Met, Now, parse_with_earlier};
pub use mistake::{Mistake, parse};
pub use nearest::{explained, misspelt, nearest};
pub use print_config::{File, Origin, Shown, ShownError};
pub use text::{NoText, read_text, text};
