//! The arguments for the directories of this node in which the helper works.

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
