//! When the search pauses for a proof.

use io_autotune_search::checks::{SettingsError, whole};
use serde::{Deserialize, Serialize};

/// When the search pauses for a proof.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProofSettings {
    /// Not before so many design and search runs have ended, half as many while a prior holds; 0:
    /// the search never pauses.
    pub after: u32,
    /// Only if a proof is expected to take at most so many runs. It ends with a claim; without one
    /// after so many tuned runs, or a quarter of them if nothing is promising by then.
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
    /// The search never pauses: for studies of which nobody looks whether a gain may be claimed.
    pub const NEVER: ProofSettings = ProofSettings {
        after: 0,
        within: 40,
    };

    /// Errs with the first setting that cannot be used.
    pub fn validate(&self) -> Result<(), SettingsError> {
        whole("proof.after", self.after, 0, 100_000)?;
        whole("proof.within", self.within, 4, 100_000)
    }
}
