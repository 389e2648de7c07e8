//! The arguments that say how the service is reached and until when the helper may try, and the
//! clients and the configuration that they lead to.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use io_autotune_protocol::{Client, ClientConfig, ConfigError};

use crate::config::{NodeConfig, NodeConfigError};
use crate::deadline::Deadline;

#[derive(Args)]
pub(crate) struct ServiceArguments {
    /// How the service is reached.
    #[arg(
        long,
        env = "IO_AUTOTUNE_CONFIG",
        default_value = "/etc/io-autotune/client.toml"
    )]
    pub(crate) config: PathBuf,
    /// Milliseconds for everything, munge and connecting included.
    #[arg(long, default_value_t = 2000)]
    pub(crate) deadline_ms: u64,
}

impl ServiceArguments {
    /// The deadline of a process that began then.
    pub(crate) fn deadline(&self, began: Instant) -> Deadline {
        Deadline {
            end: began + Duration::from_millis(self.deadline_ms),
        }
    }

    /// What root lets accelerators change on this node.
    pub(crate) fn node_config(&self) -> Result<NodeConfig, NodeConfigError> {
        NodeConfig::load(&NodeConfig::path_beside(&self.config))
    }

    /// The client for sbatch, root's too: previews are given at the users' door alone.
    pub(crate) fn client(&self) -> Result<Client, ConfigError> {
        Client::new(&ClientConfig::load(&self.config)?)
    }

    /// The client for root of a node, which reads no answer itself.
    pub(crate) fn node_client(&self) -> Result<Client, ConfigError> {
        let client = Client::new(&ClientConfig::load(&self.config)?.for_node())?;
        Ok(client.reading_apart(|| {
            let mut reader = Command::new("/proc/self/exe");
            reader.arg("read-answer");
            reader
        }))
    }
}
