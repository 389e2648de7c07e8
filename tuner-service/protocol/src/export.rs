//! What frames the studies of an exported file.

use serde_json::json;

/// The first line, of a version of the format.
pub fn export_header(version: u32) -> String {
    json!({ "header": { "format": "io-autotune-export", "version": version } }).to_string()
}

/// The last line, without which a file is cut.
pub fn export_end(studies: u64) -> String {
    json!({ "end": { "studies": studies } }).to_string()
}
