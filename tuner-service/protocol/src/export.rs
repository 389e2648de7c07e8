//! The header and the end of an exported file, which enclose its studies.

use serde_json::json;

/// The first line, with the version of the format.
pub fn export_header(version: u32) -> String {
    json!({ "header": { "format": "io-autotune-export", "version": version } }).to_string()
}

/// The last line. A file without it was cut.
pub fn export_end(studies: u64) -> String {
    json!({ "end": { "studies": studies } }).to_string()
}
