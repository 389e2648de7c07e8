use serde::Deserialize;

/// A requirement of an accelerator on a job and its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A node that the job has to itself.
    Exclusive,
    /// Nodes whose `node.toml` lets root make the accelerator's changes.
    Root,
    /// A burst buffer of Slurm's whose script completes directives.
    BurstBuffer,
}

io_autotune_model::word_enum!(
    Need, "need",
    Exclusive => "exclusive",
    Root => "root",
    BurstBuffer => "burst_buffer",
);
