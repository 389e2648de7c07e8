//! The phase of an epoch and the role of a run.

use serde::{Deserialize, Serialize};

use crate::word_enum;

/// The phase of a study's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The default is being measured.
    Baseline,
    /// The points of the Latin hypercube are being run.
    Design,
    /// The method proposes parametrizations.
    Search,
    /// The recommended parametrization is in use.
    Settled,
}

/// The role of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// One of the first runs of the default.
    Baseline,
    /// A point of the design.
    Design,
    /// A parametrization that the method proposed.
    Search,
    /// A control run: the default, interleaved.
    Control,
    /// The recommended parametrization of a settled epoch.
    Settled,
    /// The best known parametrization, because this run may not explore.
    BestKnown,
    /// The parametrization that an admin or the user pinned.
    Pinned,
    /// Nothing is applied; the run is only measured.
    Observe,
}

impl Role {
    /// Returns true if such a run explores, and so counts against `exploring` and the budget.
    pub fn explores(self) -> bool {
        matches!(self, Role::Design | Role::Search)
    }
}

word_enum!(Phase, "phase",
    Baseline => "baseline", Design => "design", Search => "search", Settled => "settled");
word_enum!(Role, "role",
    Baseline => "baseline", Design => "design", Search => "search", Control => "control",
    Settled => "settled", BestKnown => "best_known", Pinned => "pinned", Observe => "observe");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_serde_words() {
        for role in Role::ALL {
            let json = serde_json::to_string(role).unwrap();
            assert_eq!(json, format!("\"{role}\""));
            assert_eq!(role.as_str().parse::<Role>().unwrap(), *role);
        }
        for phase in Phase::ALL {
            let json = serde_json::to_string(phase).unwrap();
            assert_eq!(json, format!("\"{phase}\""));
            assert_eq!(phase.as_str().parse::<Phase>().unwrap(), *phase);
        }
        let error = "best-known".parse::<Role>().unwrap_err().to_string();
        assert!(error.contains("best_known"), "{error}");
    }
}
