//! The arguments that say which directories of this node the helper works in.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct Places {
    /// Where jobs' files are laid out.
    #[arg(long, default_value = "/run/io-autotune")]
    pub(crate) run_dir: PathBuf,
    /// Where undelivered reports are kept.
    #[arg(long, default_value = "/var/spool/io-autotune")]
    pub(crate) spool_dir: PathBuf,
}
