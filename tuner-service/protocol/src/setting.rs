//! The kinds of settings that a node may change.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The place where a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// Below /proc/sys: `vm.dirty_bytes`.
    Sysctl,
    /// In the queue of a block device that the node's configuration names: `read_ahead_kb`.
    Block,
    /// A parameter of Lustre's client, or a pattern: `osc.*.max_rpcs_in_flight`.
    Lctl,
    /// A setting of the FUSE file systems that the node's configuration names: `max_background`.
    Fuse,
    /// The read-ahead, `read_ahead_kb`, of the NFS mounts that the node's configuration names.
    Nfs,
    /// A file with a number, which the node's configuration names.
    File,
}

impl SettingKind {
    /// Returns true if a setting of this kind may have this name.
    #[must_use]
    pub fn takes_name(self, name: &str) -> bool {
        let of = |more: &[char]| {
            (1..=200).contains(&name.len())
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || more.contains(&c))
        };
        match self {
            Self::Sysctl => of(&['.']) && name.split('.').all(|part| !part.is_empty()),
            Self::Block | Self::Fuse => of(&[]),
            Self::Nfs => name == "read_ahead_kb",
            Self::File => of(&['.']),
            Self::Lctl => of(&['.', '*']),
        }
    }
}

io_autotune_model::word_enum!(
    SettingKind, "kind of setting",
    Sysctl => "sysctl",
    Block => "block",
    Lctl => "lctl",
    Fuse => "fuse",
    Nfs => "nfs",
    File => "file",
);
