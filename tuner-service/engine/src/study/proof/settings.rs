//! The settings of the proof: when the search pauses for one, and for how long.

use io_autotune_search::checks::{SettingsError, whole};
use serde::{Deserialize, Serialize};

/// When the search pauses for a proof.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProofSettings {
    /// The number of design and search runs that must have ended before, half as many while a prior
    /// holds; 0: the search never pauses.
    pub after: u32,
    /// The search pauses only if a proof is expected to take at most this many runs. It ends with a
    /// claim, or without one after this many tuned runs, or after a quarter of them if nothing is
    /// promising by then.
    pub within: u32,
}

impl Default for ProofSettings {
    fn default() -> Self {
        ProofSettings {
            after: 12,
            within: 40,
        }
    }
}

impl ProofSettings {
    /// The search never pauses: for studies in which nobody looks at the claim of a gain.
    pub const NEVER: ProofSettings = ProofSettings {
        after: 0,
        within: 40,
    };

    /// Returns an error for the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        whole("proof.after", self.after, 0, 100_000)?;
        whole("proof.within", self.within, 4, 100_000)
    }
}
