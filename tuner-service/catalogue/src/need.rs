use std::fmt;

use serde::Deserialize;

/// What an accelerator needs of a job and its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A node that the job has to itself.
    Exclusive,
    /// Nodes whose `node.toml` lets root change what the accelerator changes.
    Root,
    /// A burst buffer of Slurm's, whose script completes directives.
    BurstBuffer,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Root => "root",
            Self::BurstBuffer => "burst_buffer",
        })
    }
}
