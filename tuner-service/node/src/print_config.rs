//! The configuration in force as text, with the source of each value.

use std::path::Path;

use io_autotune_configuration::{Origin, Shown};
use io_autotune_protocol::ClientConfig;

use crate::config::{NodeConfig, NodeConfigError};

/// `client.toml`, whose path has this origin, below `[client]`, and `node.toml`, which is beside
/// it, below `[node]`.
pub(crate) fn print_config(path: &Path, origin: &Origin) -> Result<String, NodeConfigError> {
    let mut shown = Shown::default();
    shown.note(&path.to_string_lossy(), origin);
    ClientConfig::show(path, &mut shown)?;
    NodeConfig::show(&NodeConfig::path_beside(path), &mut shown)?;
    Ok(shown.text().trim_end().to_owned())
}
