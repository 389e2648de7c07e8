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

io_autotune_model::words!(
    Need, "need",
    Exclusive => "exclusive",
    Root => "root",
    BurstBuffer => "burst_buffer",
);
