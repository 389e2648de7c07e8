//! The arguments for reaching the service and for the deadline, with the clients and the
//! configuration that follow from them.

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
    /// The deadline of a process that began at this time.
    pub(crate) fn deadline(&self, began: Instant) -> Deadline {
        Deadline {
            end: began + Duration::from_millis(self.deadline_ms),
        }
    }

    /// The configuration of the changes that root allows accelerators to make on this node.
    pub(crate) fn node_config(&self) -> Result<NodeConfig, NodeConfigError> {
        NodeConfig::load(&NodeConfig::path_beside(&self.config))
    }

    /// The client for sbatch, also for root: previews are given only at the address for users.
    pub(crate) fn client(&self) -> Result<Client, ConfigError> {
        Client::new(&ClientConfig::load(&self.config)?)
    }

    /// The client for root of a node, in which another process reads the answers.
    pub(crate) fn node_client(&self) -> Result<Client, ConfigError> {
        let client = Client::new(&ClientConfig::load(&self.config)?.for_node())?;
        Ok(client.reading_apart(|| {
            let mut reader = Command::new("/proc/self/exe");
            reader.arg("read-answer");
            reader
        }))
    }
}
